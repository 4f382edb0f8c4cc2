"""Quantile regression, several quantiles at once, and least absolute deviations."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.certificates.duality import certify_ordered
from trueline.estimators.regression.standard_errors import QuantileInference
from trueline.estimators.shared.base import Attributes, LinearEstimator, build_problem
from trueline.estimators.shared.likelihood import Likelihood
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase, SingleTarget
from trueline.losses import Absolute, OrderedQuantiles, Quantile
from trueline.penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from trueline.problem import Array, Problem
from trueline.solution import Proof, Solution
from trueline.solvers.base import Options

#: scikit-learn's names of solvers, and ours.
_SOLVERS = {
    "auto": "auto",
    "interior_point": "interior_point",
    "highs": "highs",
    "highs-ds": "highs",
    "highs-ipm": "highs",
    "smoothed": "smoothed",
}


@parameters()
class _PiecewiseLinear(Likelihood, SingleTarget, LinearRegressorBase, LinearEstimator):
    """What estimators with losses made of straight lines share."""

    _: KW_ONLY
    l1_ratio: float = given(1.0, "[0, 1]")
    fit_intercept: bool = True
    smoothing: float | None = given(None, "(0, inf)", None)
    trace: bool = False

    def _options(self) -> Options:
        return Options(smoothing=self.smoothing)

    @staticmethod
    def _elastic(strength: float, l1_ratio: float) -> Penalty:
        """The penalty of a strength and a mixture."""
        if strength == 0:
            return NoPenalty()
        if l1_ratio == 1:
            return L1(strength)
        return L2(strength) if l1_ratio == 0 else ElasticNet(strength, l1_ratio)


@parameters()
class QuantileRegressor(QuantileInference, _PiecewiseLinear):
    """Linear regression that predicts conditional quantiles, exactly.

    Minimises over w and b, with q the quantile and s the sample weights (their sum S)::

        1/S sum_i s_i [q max(0, y_i - z_i) + (1 - q) max(0, z_i - y_i)]
            + alpha (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2),      z_i = x_i.w + b

    An interior-point method whose every step is one weighted Gram matrix finds the rows that
    matter, then the exact vertex of the linear program is read off them.

    Parameters
    ----------
    quantile : float or sequence of float, default=0.5
        The quantile to predict, strictly between 0 and 1; several in a sequence are fitted
        together and predicted side by side.
    alpha : float, default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
    solver : {"auto", "interior_point", "highs", "highs-ds", "highs-ipm", "smoothed"}, \
default="auto"
        "auto" plans; the names that begin with "highs" give the linear program to HiGHS instead,
        as an independent check. "smoothed" minimises the textbook's loss whose kink is
        rounded off, less and less (not with an L1 penalty): see ``smoothing``.
    solver_options : dict, optional
        Accepted for compatibility; without effect here.
    l1_ratio : float, default=1.0
        1 is the lasso's penalty, 0 that of ridge regression.
    non_crossing : bool, default=False
        Whether several quantiles must keep their order at every row that is fitted: the sum of all
        their objectives is minimised subject to that (Bondell, Reich and Wang, Biometrika 97 (2010)
        825-838). Without it, quantiles that are close may cross where rows are few.
    smoothing : float, optional
        For "smoothed": the width delta of the rounded kink at the end, in units of y. Minimised to
        rounding is the objective with ``u r - delta u^2 / 2`` in place of the pinball loss, where
        ``r = z - y`` and ``u = clip(r / delta, -q, 1 - q)``; the certificate states the gap to the
        objective without smoothing, at most ``delta max(q, 1 - q)^2 / 2`` per unit of weight. By
        default delta shrinks until the gap is a millionth of the objective of the best constant.
    trace : bool, default=False
        For "smoothed": keep objective and gap of every iteration in ``trace_``.

    Attributes
    ----------
    coef_ : array of shape (d,), or (k, d) for several quantiles
    intercept_ : float, or array of shape (k,)
    certificate_ : Certificate
        What is proven about the fit. Its objective is S times the one above.
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import QuantileRegressor
    >>> X = np.arange(100.0).reshape(-1, 1)
    >>> y = X.ravel() + np.tile([0.0, 1.0, 2.0, 3.0, 10.0], 20)
    >>> model = QuantileRegressor(quantile=0.8, alpha=0).fit(X, y)
    >>> round(float(np.mean(y <= model.predict(X) + 1e-9)), 1)
    0.8
    >>> band = QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0).fit(X, y)
    >>> band.predict(X).shape, band.predict_interval(X).shape
    ((100, 3), (100, 2))
    >>> bool(band.verify(X, y))
    True
    """

    _strength_in_sum = "n alpha"
    _: KW_ONLY
    quantile: Any = given(0.5, "(0, 1)", "array-like")
    alpha: float = given(1.0, "[0, inf)")
    solver: str = given("auto", one_of(*_SOLVERS))
    solver_options: dict[str, Any] | None = given(None, dict, None)
    non_crossing: bool = False

    def _quantiles(self) -> tuple[float, ...]:
        """The quantiles, checked."""
        given = np.asarray(self.quantile, dtype=np.float64)
        if given.ndim > 1 or not given.size or not ((given > 0) & (given < 1)).all():
            raise ValueError(
                "quantile must be a number strictly between 0 and 1, or a sequence of such "
                f"numbers, got {self.quantile!r}."
            )
        return tuple(float(q) for q in np.atleast_1d(given))

    @property
    def _is_several(self) -> bool:
        return np.ndim(self.quantile) > 0

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        quantiles = self._quantiles()
        total = float(len(Y)) if weights is None else float(weights.sum())
        penalty = self._elastic(total * self.alpha, self.l1_ratio)
        kind = OrderedQuantiles if self._is_ordered else Quantile
        loss = kind(quantiles if self._is_several else quantiles[0])
        # One target, seen once for every quantile.
        Y = np.broadcast_to(Y, (len(Y), len(quantiles)))
        return build_problem(X, Y, weights, loss, penalty, self.fit_intercept)

    @property
    def _is_ordered(self) -> bool:
        return self.non_crossing and self._is_several and len(self._quantiles()) > 1

    def _solver_name(self) -> str:
        if not self._is_ordered:
            return _SOLVERS[self.solver]
        if self.solver not in ("auto", "interior_point"):
            raise ValueError(
                f"non_crossing=True is solved by solver='auto', not by {self.solver!r}."
            )
        return "non_crossing"

    def _certify_rounded(self, problem: Any, solution: Solution, W: Any, b: Any) -> Proof:
        certificate = solution.certificate
        assert certificate is not None
        if certificate.kind != "ordered duality" or "column_exponent" in certificate.witness:
            return super()._certify_rounded(problem, solution, W, b)
        W, b = W.astype(np.float64), b.astype(np.float64)
        witness = certificate.witness
        return certify_ordered(problem, W, b, witness["dual"], witness["order"])

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        if not self._is_several:
            return super()._fitted_attributes(W, b, y_ndim, fit_intercept)
        return {"coef_": np.ascontiguousarray(W.T), "intercept_": b if fit_intercept else 0 * b}

    def _verified_target(self, y: Any) -> Any:
        if not self._is_several:
            return y
        return np.repeat(np.asarray(y).reshape(-1, 1), len(self._quantiles()), axis=1)

    def predict_interval(self, X: Any) -> NDArray[Any]:
        """The lowest and the highest of the fitted quantiles, row by row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        interval : array of shape (n, 2)
            Lower and upper end. With quantiles 0.05 and 0.95 a new y falls in between with
            probability 0.9, as far as the model holds.
        """
        check_is_fitted(self)
        quantiles = self._quantiles()
        if len(quantiles) < 2:
            raise ValueError(
                "An interval needs two quantiles: fit QuantileRegressor(quantile=[0.05, 0.95])."
            )
        predicted = self.predict(X)
        return predicted[:, [int(np.argmin(quantiles)), int(np.argmax(quantiles))]]


@parameters()
class LeastAbsoluteDeviations(QuantileInference, _PiecewiseLinear):
    """Linear regression by least absolute deviations: the conditional median, exactly.

    Minimises over w and b, with s the sample weights::

        sum_i s_i |y_i - x_i.w - b| + alpha (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2)

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the penalty.
    l1_ratio : float, default=1.0
        1 is the lasso's penalty, 0 that of ridge regression.
    fit_intercept : bool, default=True
    solver : {"auto", "interior_point", "highs", "smoothed"}, default="auto"
        "auto" plans. "smoothed" minimises Huber's loss with a threshold that shrinks instead (not
        with an L1 penalty): see ``smoothing``.
    smoothing : float, optional
        For "smoothed": Huber's threshold delta at the end, in units of y. Minimised to rounding is
        the objective with ``r^2 / (2 delta)`` in place of ``|r|`` where ``|r| <= delta``, and
        ``|r| - delta/2`` elsewhere; the certificate states the gap to the objective without
        smoothing, at most ``delta/2`` per unit of weight. By default delta shrinks until the gap is
        a millionth of the objective of the best constant.
    trace : bool, default=False
        For "smoothed": keep objective and gap of every iteration in ``trace_``.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    certificate_ : Certificate
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LeastAbsoluteDeviations
    >>> X = np.arange(5.0).reshape(-1, 1)
    >>> y = 2 * X.ravel() + 1
    >>> y[4] = 100.0  # an outlier
    >>> model = LeastAbsoluteDeviations().fit(X, y)
    >>> model.coef_.round(9), float(round(model.intercept_, 9))
    (array([2.]), 1.0)
    """

    alpha: float = given(0.0, "[0, inf)")
    _: KW_ONLY
    solver: str = given("auto", one_of("auto", "interior_point", "highs", "smoothed"))

    _is_several: ClassVar[bool] = False

    def _quantiles(self) -> tuple[float, ...]:
        return (0.5,)

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        penalty = self._elastic(float(self.alpha), self.l1_ratio)
        return build_problem(X, Y, weights, Absolute(), penalty, self.fit_intercept)
