"""Generalised linear models: Poisson, gamma and Tweedie regression, with offsets and exposures.

With the logarithm as link and exposure e_i = exp(offset_i) the mean of a row is m_i = e_i exp(z_i),
z_i = x_i.w + b. The deviance d of power p is homogeneous,

    d(y, e m) = e^(2 - p) d(y / e, m),

so that the model of the rates y_i / e_i with weights s_i e_i^(2 - p) is the same one, to the last
constant. With the identity as link (and squared error) the offset is subtracted from the target.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.curvature import certify_local
from trueline.check import Check, Verification
from trueline.cluster import blockwise
from trueline.estimators.regression.standard_errors import FisherInference
from trueline.estimators.shared.base import (
    LinearEstimator,
    Stated,
    Task,
    build_problem,
    fit_with_callbacks,
)
from trueline.estimators.shared.columns import ColumnRank
from trueline.estimators.shared.likelihood import Likelihood, of_targets
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.estimators.shared.report import Explanation
from trueline.estimators.shared.validation import (
    checked_rows,
    is_plain,
    keep_columns_of,
    numeric_target,
    refuse_nonfinite,
    takes_batches,
    unpacked,
    weights_of,
    with_weight,
)
from trueline.losses import Gamma, LocalDeviance, Loss, Poisson, Squared, Tweedie
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import L2, NoPenalty
from trueline.plan import Plan
from trueline.problem import Array, Problem
from trueline.solution import Proof, Solution
from trueline.solvers import solve_locally
from trueline.solvers.base import Facts, Options
from trueline.solvers.registry import SOLVERS

# Logarithms of exposures whose products with counts and weights stay far from the range's ends.
_FARTHEST = 80.0


class Exposed(NamedTuple):
    """Target and weights that an offset leaves; no weights means one for each row."""

    target: Array
    weights: Array | None


def as_offset(offset: Any, exposure: Any, n: int, is_log: bool) -> Array | None:
    """What is added to the scores of n rows, or None; exposures become logarithms.

    Examples
    --------
    >>> from trueline.estimators.regression.glm import as_offset
    >>> as_offset(None, [1.0, 2.0], 2, is_log=True).round(4)
    array([0.    , 0.6931])
    """
    if offset is None and exposure is None:
        return None
    total = np.zeros(n)
    if offset is not None:
        total = total + _rows(offset, n, "offset")
    if exposure is not None:
        if not is_log:
            raise ValueError(
                "exposure multiplies the mean, which is for the logarithm as link. With "
                "link='identity' give an offset."
            )
        given = _rows(exposure, n, "exposure")
        if not (given > 0).all():
            raise ValueError(
                f"exposure must be positive, but its least value is {given.min():g}. Leave out the "
                "rows without exposure, or give them sample weight zero and any exposure."
            )
        total = total + np.log(given)
    return total


def expose(
    y: Array, weights: Array | None, offset: Array | None, power: float, is_log: bool
) -> Exposed:
    """The target and the weights of the model without offset that has the same deviance."""
    if offset is None:
        return Exposed(y, weights)
    if not is_log:
        if power != 0:
            raise ValueError(
                f"An offset with link='identity' is for power=0, got power={power:g}. "
                "With link='log' every power takes one."
            )
        return Exposed(y - offset, weights)
    largest = float(np.abs(offset).max(initial=0.0))
    if largest > _FARTHEST:
        raise ValueError(
            f"The largest offset is {largest:.3g} in magnitude: an exposure of exp({largest:.3g}) "
            "leaves the range in which double precision can add. Subtract the mean from the "
            "offsets (with a logarithm as link that changes the intercept alone), or leave out the "
            f"rows beyond {_FARTHEST:g}."
        )
    factor = np.exp((2.0 - power) * offset)
    return Exposed(y * np.exp(-offset), factor if weights is None else weights * factor)


def _rows(values: Any, n: int, name: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(n, float(array))
    if array.shape != (n,):
        raise ValueError(
            f"{name} must have one number for each of the {n} rows, got {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return array


#: scikit-learn's names of solvers, and ours: they all minimise the same function.
SOLVER_NAMES = {
    "auto": "auto",
    "lbfgs": "auto",
    "newton-cholesky": "auto",
    "newton": "newton",
    "newton_cg": "newton_cg",
}
# A gap is quadratic in the gradient that scikit-learn's tolerances are about.
_FINEST = 1e-13


@parameters()
class GeneralizedLinearRegressor(
    FisherInference, Likelihood, ColumnRank, SingleTarget, LinearRegressorBase, LinearEstimator
):
    """A deviance of a distribution with variance ~ mean^power, and a link.

    Minimises over w and b, with the unit deviance d and S = sum_i s_i::

        1/(2 S) sum_i s_i d(y_i, m_i) + alpha/2 ||w||^2,    link(m_i) = x_i.w + b + offset_i

    (as solved: S times that).

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty; 0 is maximum likelihood.
    fit_intercept : bool, default=True
    max_iter : int, default=100
        Limit on the steps of Newton's method.
    tol : float, default=1e-4
        Tolerance of the gradient: the gap to prove is ``tol ** 2``, relative to the objective of
        the best constant.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    verbose : int, default=0
        Accepted; ``explain()`` tells what happened.
    trace : bool, default=False
        Keep objective and gap of every iteration in ``trace_``.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    certificate_ : Certificate
    solver_ : str
    n_iter_ : int
    trace_ : Trace
    n_features_in_ : int
    feature_names_in_ : array of str
    """

    _strength_in_sum = "n alpha"
    _: KW_ONLY
    alpha: float = given(1.0, "[0, inf)")
    fit_intercept: bool = True
    solver: str = given("auto", one_of(*SOLVER_NAMES))
    max_iter: int = given(100, "int [1, inf)")
    tol: float = given(1e-4, "(0, inf)")
    warm_start: bool = False
    verbose: int = given(0, "verbose")
    trace: bool = False

    # --- the model ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _power(self) -> float:
        """The exponent of the variance."""

    @property
    def _is_log(self) -> bool:
        """Whether the link is the logarithm, else the identity."""
        return True

    @abstractmethod
    def _loss(self) -> Loss:
        """Half the unit deviance as a function of the score."""

    def _mean(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The inverse of the link."""
        return np.exp(scores) if self._is_log else scores

    def _keep_of_rows(self, X: Any, y: NDArray[Any], sample_weight: Any) -> None:
        super()._keep_of_rows(X, y, sample_weight)
        s = None if sample_weight is None else weights_of(sample_weight, len(y))
        self._level_of_target = of_targets(self._loss().noise_model, y, s)

    def _solver_name(self) -> str:
        return SOLVER_NAMES[self.solver] if self._loss().name != "squared" else "auto"

    def _options(self) -> Options:
        tol = max(self.tol**2, _FINEST)
        return Options(tol=tol, max_iter=self.max_iter, **self._warm())

    # --- fitting --------------------------------------------------------------------------------

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return self._stated(X, Y[:, 0], weights, None)

    def _stated(self, X: Any, y: Array, weights: Array | None, offset: Array | None) -> Problem:
        """S times the objective, for rows that all count."""
        loss, is_log = self._loss(), self._is_log
        loss.check_target(y)
        if self._power >= 1 and self.fit_intercept and not y.any():
            raise ValueError(
                "y is zero everywhere: the best intercept of these data is minus infinity. There "
                "is nothing to fit."
            )
        total = float(len(y)) if weights is None else float(weights.sum())
        target, weights = expose(y, weights, offset, self._power, is_log)
        penalty = L2(float(self.alpha) * total) if self.alpha > 0 else NoPenalty()
        target = target.reshape(-1, 1)
        return build_problem(X, target, weights, loss, penalty, self.fit_intercept)

    def _validated_problem(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        reset: bool,
        offset: Any = None,
        exposure: Any = None,
    ) -> Stated:
        if not (is_plain(X, y) and y.ndim == 1):
            with numeric_target(self, y):
                X, y = checked_rows(self, X, y, reset, accept_sparse=["csr", "csc"], y_numeric=True)
                own = y.astype(np.float64)
        else:
            own = y.astype(np.float64)
            if reset:
                keep_columns_of(self, X)
        weights = self._weights(sample_weight, X)
        shift = as_offset(offset, exposure, len(y), self._is_log)
        part, weights, own, shift = with_weight(X, weights, own, shift)
        return self._stated(part, own, weights, shift), X, y

    @fit_with_callbacks
    @takes_batches
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows to learn from.
        y : array-like of shape (n,)
            The target.
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.
        offset : float or array-like of shape (n,), optional
            What is added to the score of each row, with coefficient one.
        exposure : float or array-like of shape (n,), optional
            With the logarithm as link: what the mean of each row is multiplied by, for example
            time or number of people at risk; the same as ``offset=np.log(exposure)``.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem, X, y = self._validated_problem(X, y, sample_weight, True, offset, exposure)
        self._solve_and_store(problem, X, y, sample_weight)
        return self

    def _plan_for(self, problem: Problem) -> Plan:
        if "nonconvex" not in problem.loss.capabilities:
            return super()._plan_for(problem)
        solver, facts = SOLVERS["newton"], Facts.of(problem)
        title = "Newton's method, or Fisher's scoring where it is not convex"
        return Plan.only(solver.name, title, solver.cost(facts), problem.formula, facts)

    def _run(self, task: Task) -> Solution:
        if "nonconvex" not in task.problem.loss.capabilities:
            return super()._run(task)
        refuse_nonfinite(task.X, self)
        begin = time.perf_counter()
        with np.errstate(all="ignore"), single_threaded_blas():
            solution = solve_locally(task.problem, task.options, task.monitor)
        solution.seconds = time.perf_counter() - begin
        return solution

    def _certify_rounded(self, problem: Any, solution: Solution, W: Any, b: Any) -> Proof:
        before = solution.certificate
        if before is None or before.kind != "local" or np.isinf(before.gap):
            return super()._certify_rounded(problem, solution, W, b)
        witness = before.witness
        W, b = W.astype(np.float64), b.astype(np.float64)
        return certify_local(problem, W, b, witness["about"], witness["diagonal"][:, 0])

    # --- what is known afterwards ---------------------------------------------------------------

    def _verified_data(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, exposure: Any = None
    ) -> tuple[Any, Any, Any]:
        y = np.asarray(y, dtype=np.float64).ravel()
        weights = None if sample_weight is None else weights_of(sample_weight, len(y))
        shift = as_offset(offset, exposure, len(y), self._is_log)
        target, weights = expose(y, weights, shift, self._power, self._is_log)
        return X, target, weights

    def verify(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> Verification:
        """Check the certificate against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight, offset, exposure : as in ``fit``

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim holds.
        """
        X, y, sample_weight = unpacked(X, y, sample_weight)
        certificate = replace(self.certificate_, reading=None)
        try:
            data = self._verified_data(X, y, sample_weight, offset, exposure)
        except ValueError as error:
            return Verification((Check("data fit the model", "yes", str(error), False),))
        return self._tied(lambda: certificate.verify(*data))

    def explain(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        all: bool = False,
    ) -> Explanation:
        """Say what will be done with (X, y), or what was done in the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            With ``y``: plan a fit on these data without running it.
        y : array-like, optional
        sample_weight, offset, exposure : as in ``fit``
        all : bool, default=False
            List every solver with its reason, those for other losses and penalties too.

        Returns
        -------
        explanation : Explanation
            Prints as text; ``table()`` gives rows.
        """
        if X is None or y is None:
            return super().explain(X, y, sample_weight, all=all)
        self._check_parameters()
        problem = self._validated_problem(X, y, sample_weight, False, offset, exposure)[0]
        return replace(self._planned_explanation(problem, self._plan_for(problem)), all=all)

    # --- prediction -----------------------------------------------------------------------------

    def _shifted_scores(self, X: Any, offset: Any, exposure: Any) -> NDArray[Any]:
        scores = self._scores(X)
        shift = as_offset(offset, exposure, len(scores), self._is_log)
        return scores if shift is None else scores + shift.astype(scores.dtype)

    @blockwise
    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> NDArray[Any]:
        """The mean of the target for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        offset, exposure : as in ``fit``
            Without them the mean per unit of exposure.

        Returns
        -------
        y : array of shape (n,)
        """
        return self._mean(self._shifted_scores(X, offset, exposure))

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> float:
        """D^2, the share of the deviance that is explained.

        1 is the best; 0 is what the best constant reaches (with an exposure: the best constant per
        unit of it).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight, offset, exposure : as in ``fit``

        Returns
        -------
        score : float
        """
        scores = np.asarray(self._scores(X), dtype=np.float64)
        _, y, weights = self._verified_data(scores, y, sample_weight, offset, exposure)
        loss = self._loss()
        loss.check_target(y)
        s = np.ones(len(y)) if weights is None else weights
        mean = float(s @ y) / float(s.sum())
        level = np.full(len(y), np.log(mean) if self._is_log else mean)
        residual, null = float(s @ loss.value(y, scores)), float(s @ loss.value(y, level))
        return 1.0 - residual / null if null > 0 else float(residual == 0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._power > 0
        return tags


@parameters()
class PoissonRegressor(GeneralizedLinearRegressor):
    """Poisson regression: counts whose logarithm of the mean is linear, proven optimal.

    Minimises over w and b, with m_i = exp(x_i.w + b + offset_i) and S = sum_i s_i::

        1/S sum_i s_i (m_i - y_i + y_i log(y_i / m_i)) + alpha/2 ||w||^2

    which is half the mean deviance (as solved: S times that). The intercept is not penalised.

    Parameters
    ----------
    solver : str, default="auto"
        "auto" plans. scikit-learn's "lbfgs" and "newton-cholesky" plan too: the function decides
        the answer. By name: "newton", "newton_cg".

    Attributes
    ----------
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import PoissonRegressor
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> claims, years = np.array([1, 4, 8, 30]), np.array([1.0, 2.0, 2.0, 3.0])
    >>> model = PoissonRegressor(alpha=0).fit(X, claims, exposure=years)
    >>> model.predict(X).round(2)  # a year
    array([0.85, 1.93, 4.36, 9.86])
    >>> bool(model.verify(X, claims, exposure=years))
    True
    """

    @property
    def _power(self) -> float:
        return 1.0

    def _loss(self) -> Loss:
        return Poisson()


@parameters()
class GammaRegressor(GeneralizedLinearRegressor):
    """Gamma regression: positive targets of constant relative spread, proven optimal.

    Minimises over w and b, with m_i = exp(x_i.w + b + offset_i) and S = sum_i s_i::

        1/S sum_i s_i (y_i / m_i - 1 - log(y_i / m_i)) + alpha/2 ||w||^2

    which is half the mean deviance (as solved: S times that). The intercept is not penalised.

    Parameters
    ----------
    solver : str, default="auto"
        "auto" plans. scikit-learn's "lbfgs" and "newton-cholesky" plan too: the function decides
        the answer. By name: "newton", "newton_cg".

    Attributes
    ----------
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import GammaRegressor
    >>> X = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 3.0]])
    >>> y = np.array([19.0, 26.0, 33.0, 30.0])
    >>> model = GammaRegressor().fit(X, y)
    >>> round(model.score(X, y), 3), bool(model.verify(X, y))
    (0.773, True)
    """

    @property
    def _power(self) -> float:
        return 2.0

    def _loss(self) -> Loss:
        return Gamma()


@parameters()
class TweedieRegressor(GeneralizedLinearRegressor):
    """Regression with variance proportional to a power of the mean.

    Minimises over w and b, with link(m_i) = x_i.w + b + offset_i and S = sum_i s_i::

        1/(2 S) sum_i s_i d(y_i, m_i) + alpha/2 ||w||^2
        d(y, m) = 2 (max(y, 0)^(2-p)/((1-p)(2-p)) - y m^(1-p)/(1-p) + m^(2-p)/(2-p)),   p = power

    with the limits of d for p = 1 and p = 2 (as solved: S times that). The intercept is not
    penalised.

    This is convex, and proven for all coefficients, for power 0 with the identity as link and for
    powers 1 to 2 with the logarithm. Elsewhere several minima may exist: the fit is proven to be a
    minimum within a stated distance (``certificate_.kind == "local"``), and no more.

    Parameters
    ----------
    power : float, default=0.0
        0 is the normal distribution, 1 Poisson, between 1 and 2 compound Poisson-gamma (with exact
        zeros), 2 gamma, 3 inverse Gaussian. Powers between 0 and 1 belong to no distribution.
    link : {"auto", "identity", "log"}, default="auto"
        "auto" is the identity for powers up to 0, the logarithm beyond.
    solver : str, default="auto"
        "auto" plans. scikit-learn's "lbfgs" and "newton-cholesky" plan too: the function decides
        the answer. By name, where the function is convex: "newton", "newton_cg".

    Attributes
    ----------
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import TweedieRegressor
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> cost = np.array([0.0, 2.0, 0.0, 4.0, 11.0])
    >>> model = TweedieRegressor(power=1.5, alpha=0.1).fit(X, cost)
    >>> model.predict(X).round(2), model.certificate_.kind
    (array([0.31, 0.73, 1.73, 4.09, 9.68]), 'curvature')
    """

    _: KW_ONLY
    power: float = given(0.0, "(-inf, inf)")
    link: str = given("auto", one_of("auto", "identity", "log"))

    @property
    def _power(self) -> float:
        return float(self.power)

    @property
    def _is_log(self) -> bool:
        return self.power > 0 if self.link == "auto" else self.link == "log"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if 0 < self.power < 1:
            raise ValueError(
                f"power={self.power:g} belongs to no distribution: give 0 or less, or 1 or more."
            )

    def _loss(self) -> Loss:
        power = self._power
        if not self._is_log:
            return Squared() if power == 0 else LocalDeviance(power, "identity")
        if power in (1.0, 2.0):
            return Poisson() if power == 1 else Gamma()
        return Tweedie(power) if 1 < power < 2 else LocalDeviance(power, "log")
