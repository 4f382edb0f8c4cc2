"""What all linear estimators share: input, plan, fit, proof, prediction."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from trueline.certificates.base import Certificate, Reading
from trueline.check import Verification, verify
from trueline.design import as_design
from trueline.estimators.as_fitted import chosen_by, marked, tied
from trueline.estimators.callbacks import CallbackSupport, Seen, fit_with_callbacks, watch
from trueline.estimators.numeric_target import numeric_target
from trueline.estimators.report import Explanation, in_given_terms
from trueline.estimators.scaling import (
    exponents_of,
    in_original_units,
    least_norm,
    rescaled,
    unscaled,
)
from trueline.estimators.validation import validate_data
from trueline.guard import confirm, is_about, judge
from trueline.moments import Moments
from trueline.penalties import Penalty
from trueline.planner import Plan, execute, make_plan
from trueline.problem import MomentsProblem, Problem
from trueline.solution import PendingCertificate, Solution, Status, resolved
from trueline.solvers.base import Options
from trueline.solvers.cholesky import PendingProof
from trueline.solvers.iterative import make_prover
from trueline.solvers.loop import Monitor
from trueline.solvers.quadratic import evidence_at, evidence_from_moments
from trueline.trace import Trace
from trueline.wording import counted

__all__ = [
    "LinearEstimator",
    "LinearRegressorBase",
    "build_problem",
    "is_plain",
    "validate_changed",
]

Array = NDArray[np.float64]

# Solvers whose sums become non-finite if any number is.
_SUMS_TELL = {
    "cholesky",
    "active_set",
    "gram_descent",
    "coordinate_descent",
    "interior_point",
    "newton",
    "proximal_newton",
}
# Magnitudes beyond this need other units to be squared; rows without weight do without them.
_LARGE = 1e100
# What rounding to single precision may cost: of the squares that a constant leaves, and of another
# loss, which may grow in proportion to the rounding, not to its square.
_FELT, _FELT_ELSEWHERE = 1e-7, 5e-7


class LinearEstimator(CallbackSupport, BaseEstimator):
    """The thin common part of estimators that minimise one :class:`~trueline.problem.Problem`."""

    _doc_link_module = "trueline"

    coef_: NDArray[Any]
    intercept_: Any
    _certificate: Certificate | PendingCertificate | None
    _plan: Plan
    _solution_facts: dict[str, Any]

    @abstractmethod
    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        """The problem that this estimator minimises."""

    def _solver_name(self) -> str:
        """The solver asked for, in the registry's terms."""
        return getattr(self, "solver", "auto")

    def _options(self) -> Options:
        """What the parameters ask of a solver."""
        return Options()

    def _plan_for(self, problem: Problem) -> Plan:
        """Who solves the problem, and why."""
        return make_plan(problem, self._solver_name())

    #: Whether a fit is the solution of the stated problem, and nothing else.
    _is_its_problem: ClassVar[bool] = False

    def _can_be_in_a_set(self) -> bool:
        """Whether the problem can be solved with others: unless somebody watches the fit.

        A class derived from ours may do something else.
        """
        is_watched = getattr(self, "trace", False) or getattr(self, "_skl_callbacks", None)
        is_ours = self._is_its_problem and type(self).__module__.startswith(__package__)
        return is_ours and not (is_watched or getattr(self, "warm_start", False))

    # --- fitting --------------------------------------------------------------------------------

    #: The estimator that was called, if this one does its work.
    _speaks_for: str | None = None

    @property
    def _own_name(self) -> str:
        """What messages call this estimator."""
        return self._speaks_for or type(self).__name__

    def _weights(self, sample_weight: Any, X: Any) -> Array | None:
        """Sample weights as float64, or None; zero everywhere is an error."""
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError(
                "Sample weights are all zero: no row is left to fit. Give at least one row a "
                "positive weight."
            )
        largest = weights.max()
        if not 1e-100 <= largest <= 1e100:
            raise ValueError(
                f"The largest sample weight is {largest:.3g}: sums of weighted squares would leave "
                "the range of double precision. Multiply all weights (and alpha) by a power of ten."
            )
        return weights

    def _solve(
        self, problem: Problem, X: Any, monitor: Monitor, moments: Moments | None = None
    ) -> tuple[Plan, Solution]:
        """Plan, run, and deal with numbers too large or too small to be squared."""
        plan = self._plan_for(problem)
        if plan.chosen in _SUMS_TELL and not problem.design.is_sparse:
            # Reading the data once more only to look for NaN costs a third of a large fit.
            solution = self._run_by_sums(problem, plan, monitor, X, moments)
        else:
            assert_all_finite(X, input_name="X", estimator_name=self._own_name)
            solution = self._run_scaled(problem, plan, monitor)
        if solution.status is Status.DIVERGED or not np.isfinite(solution.coef).all():
            raise ValueError(f"{self._own_name} did not converge: {solution.status.value}.")
        if not solution.status.is_final:
            self._warn(solution)
        return plan, solution

    def _run_by_sums(
        self, problem: Problem, plan: Plan, monitor: Monitor, X: Any, moments: Moments | None
    ) -> Solution:
        """Run first; sums of squares out of range tell of NaN, infinity or extreme scales."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                solution = execute(problem, plan, self._options(), monitor, moments)
        except (ArithmeticError, np.linalg.LinAlgError, ValueError) as error:
            with np.errstate(invalid="ignore"):  # infinities of both signs
                assert_all_finite(X, input_name="X", estimator_name=self._own_name)
            if not isinstance(error, FloatingPointError) and exponents_of(problem) is None:
                raise
            return self._run_scaled(problem, plan, monitor)
        moments = solution.moments
        if moments is None or moments.is_ordinary() or exponents_of(problem) is None:
            return solution
        return self._run_scaled(problem, plan, monitor)

    def _run_scaled(self, problem: Problem, plan: Plan, monitor: Monitor) -> Solution:
        """Run, in units of powers of two if squares would overflow or vanish."""
        exponents = exponents_of(problem)
        # What overflows all the same (a scaled strength, a step too long) is not finite at the end.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if exponents is None:
                return execute(problem, plan, self._options(), monitor)
            scaled = rescaled(problem, *exponents)
            monitor = in_original_units(monitor, *exponents)
            solution = execute(scaled, plan, self._options(), monitor)
            return unscaled(least_norm(scaled, solution, exponents[0]), *exponents)

    def _warn(self, solution: Solution) -> None:
        gap = solution.stages[-1].gap if solution.stages else np.inf
        certificate = solution.certificate
        if certificate is not None and is_about(certificate, solution.coef, solution.intercept):
            gap = certificate.gap
        proven = f"proven within {gap:.3g} of it" if np.isfinite(gap) else "nothing proven"
        iterations = counted(solution.n_iter, "iteration")
        warnings.warn(
            f"{self._own_name} stopped short of the optimum ({proven}) after {iterations} of "
            f"{solution.solver}: {solution.status.value}.",
            ConvergenceWarning,
            # From the line that called fit: past _solve, _solve_and_store, fit and its wrapper.
            stacklevel=5 + hasattr(type(self).fit, "__wrapped__"),
        )

    def _solve_and_store(
        self,
        problem: Problem,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        moments: Moments | None = None,
    ) -> None:
        """Solve under the eyes of those who watch; ``X`` and ``y`` are as validated."""

        def attributes(W: Array, b: Array) -> dict[str, Any]:
            W, b = W.astype(X.dtype), b.astype(X.dtype)
            return self._fitted_attributes(W, b, y.ndim, problem.fit_intercept)

        trace = Trace(enabled=bool(getattr(self, "trace", False)))
        with watch(self, trace, Seen(X, y, sample_weight, attributes)) as monitor:
            plan, solution = self._solve(problem, X, monitor, moments)
            self._store(problem, plan, solution, X.dtype, y.ndim)

    def _check_parameters(self) -> None:
        """Raise for parameters that are out of range."""
        validate_changed(self)

    def _store(
        self, problem: Any, plan: Plan, solution: Solution, dtype: np.dtype, y_ndim: int
    ) -> None:
        """Copy the solution into fitted attributes, in scikit-learn's shapes and dtypes."""
        self._guard(problem, solution)
        W, b = solution.coef, solution.intercept
        proof = solution.proof
        if dtype == np.float32:
            W, b = _in_single_precision(problem, W, b)
            if W.dtype == np.float32:
                proof = self._certify_rounded(problem, solution, W, b)
        self.__dict__.update(self._fitted_attributes(W, b, y_ndim, problem.fit_intercept))
        self.solver_ = solution.solver
        self.n_iter_ = solution.n_iter
        self.trace_ = solution.trace
        if solution.moments is not None:
            self.moments_ = solution.moments
        elif hasattr(self, "moments_"):
            del self.moments_
        self._plan = plan
        self._certificate = proof
        self._solution_facts = solution.facts()
        self._mark_fitted()

    def _mark_fitted(self) -> None:
        """Remember coefficients and hyperparameters, so that later changes of them are noticed."""
        self._as_fitted = marked(chosen_by(self))

    def _guard(self, problem: Any, solution: Solution) -> None:
        """Judge an answer that did not come by the planner, which judges its own, and warn."""
        if not np.isnan(solution.allowed):
            return
        claimed = solution.status.is_final
        confirm(solution, judge(problem, solution, self._options().tol))
        if claimed and not solution.status.is_final:
            self._warn(solution)

    @abstractmethod
    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        """Coefficients and intercepts in scikit-learn's shapes."""

    def _certify_rounded(
        self, problem: Any, solution: Solution, W: NDArray[Any], b: NDArray[Any]
    ) -> Certificate | PendingCertificate:
        """The certificate of coefficients rounded to single precision."""
        from trueline.certificates.beside import BESIDE, certify_beside
        from trueline.certificates.choose import certify
        from trueline.certificates.quadratic import certify_quadratic

        W, b = W.astype(np.float64), b.astype(np.float64)
        if isinstance(solution.proof, PendingProof):
            pending = replace(solution.proof, coef=W, intercept=b)
            if not pending.needs_rows():
                return pending.without_rows()
        certificate, moments = solution.certificate, solution.moments
        assert certificate is not None
        witness = certificate.witness
        if "column_exponent" in witness:
            return certificate
        if certificate.kind == "maximum error":
            from trueline.certificates.maximum import certify_maximum

            rows, dual = solution.extra["rows"], solution.extra["dual"]
            return certify_maximum(problem, W, b, rows, dual)
        if certificate.kind in BESIDE and is_about(certificate, solution.coef, solution.intercept):
            return certify_beside(problem, certificate, W, b)
        if "basis" not in witness:
            return certify(problem, W, b)
        basis, coercivity = witness["basis"], float(witness["coercivity"])
        if isinstance(problem, Problem):
            evidence = evidence_at(problem, W, b, basis, coercivity)
        else:
            assert moments is not None
            about = moments if problem.fit_intercept else moments.about_zero()
            evidence = evidence_from_moments(problem, about, W, b, basis, coercivity)
        left_out = float(witness.get("left_out", 0.0))
        is_global = certificate.kind == "quadratic"
        evidence = replace(evidence, is_global=is_global, left_out=left_out)
        proof = certify_quadratic(problem, W, b, evidence)
        if basis.ndim == 1 and isinstance(problem, Problem):
            # A bound by the penalty alone is sharp at the optimum, not beside it.
            other = make_prover(problem).certify(W, b)
            return min(proof, other, key=lambda certificate: certificate.gap)
        return proof

    # --- what is known afterwards ---------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """What is proven about the coefficients as they are now.

        The certificate is tied to ``coef_`` and ``intercept_``: if they are changed after the fit,
        it is about the changed ones, and :meth:`Certificate.verify` will reject it.
        """
        check_is_fitted(self)
        W, b = self._coefficients()
        certificate = self._resolved_certificate()
        x_power = certificate.witness.get("column_exponent")
        y_power = certificate.witness.get("target_exponent")
        if x_power is not None and y_power is not None:
            W = np.ldexp(W, (y_power - x_power[:, None]).astype(int))
            b = np.ldexp(b, y_power.astype(int))
        return replace(certificate, coef=W, intercept=b, reading=self._reading())

    def _reading(self) -> Reading | None:
        """What the certificate does with data before it looks at them; None if nothing."""
        own = {"_verified_data", "_verified_design", "_verified_target"}
        classes = type(self).__mro__[: type(self).__mro__.index(LinearEstimator)]
        return self._verified_data if any(own & set(vars(c)) for c in classes) else None

    def _resolved_certificate(self) -> Certificate:
        """The certificate of the fit; a pending proof is worked out once."""
        certificate = resolved(self._certificate)
        assert certificate is not None
        self._certificate = certificate
        return certificate

    def _coefficients(self) -> tuple[Array, Array]:
        """``coef_`` and ``intercept_`` as float64 arrays of shape (d, k) and (k,)."""
        W = np.atleast_2d(np.asarray(self.coef_, dtype=np.float64)).T
        b = np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), W.shape[1])
        return W, b

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the certificate against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if every claim holds.
        """
        certificate = self.certificate_
        return self._tied(verify(certificate, *certificate.read(X, y, sample_weight)))

    def _tied(self, verification: Verification) -> Verification:
        """The outcome, which fails as well if hyperparameters were changed after the fit."""
        before = getattr(self, "_as_fitted", {})
        return tied(before, chosen_by(self), verification)

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Design, target and weights that the certificate is about."""
        return self._verified_design(X), self._verified_target(y), sample_weight

    def _verified_design(self, X: Any) -> Any:
        """The design that the certificate is about."""
        return X

    def _verified_target(self, y: Any) -> Any:
        """The target that the certificate is about."""
        return y

    def explain(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, all: bool = False
    ) -> Explanation:
        """Say what will be done with (X, y), or what was done in the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            With ``y``: plan a fit on these data without running it.
        y : array-like, optional
        sample_weight : array-like, optional
        all : bool, default=False
            List every solver with its reason, those for other losses and penalties too.

        Returns
        -------
        explanation : Explanation
            Prints as text; ``table()`` gives rows.
        """
        if X is not None:
            if y is None:
                raise ValueError("explain(X, y) needs the target y beside X.")
            self._check_parameters()
            problem = self._validated_problem(X, y, sample_weight, reset=False)[0]
            return replace(self._planned_explanation(problem, self._plan_for(problem)), all=all)
        check_is_fitted(self)
        certificate = self._resolved_certificate()
        penalty = getattr(certificate, "penalty", None)
        total = None if "sum_i s_i" in self._plan.objective else float(self._plan.facts.n)
        plan = self._in_given_terms(self._plan, penalty, total)
        return Explanation(plan, self._solution_facts, certificate, all=all)

    #: What the strength that is given becomes in the objective, a sum over rows: "alpha" itself,
    #: "n alpha" (alpha is that of a mean), or "1/C".
    _strength_in_sum = "alpha"

    def _planned_explanation(self, problem: Problem, plan: Plan) -> Explanation:
        return Explanation(self._in_given_terms(plan, problem.penalty, problem.total_weight))

    def _in_given_terms(self, plan: Plan, penalty: Penalty | None, total: float | None) -> Plan:
        """The plan, its objective in terms of the parameters as they were given."""
        given = getattr(self, "alpha_", getattr(self, "alpha", None))
        given = None if given is None or np.ndim(given) else float(given)
        return in_given_terms(plan, self._strength_in_sum, penalty, total, given)

    @abstractmethod
    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        """Check the input and state the problem."""


class LinearRegressorBase(MultiOutputMixin, RegressorMixin, LinearEstimator):
    """Regression: real targets, scores are predictions."""

    #: Whether a target of shape (n, 1) gives ``coef_`` of shape (1, d) (as in least squares) or
    #: (d,) (as in ridge regression): scikit-learn does both.
    _keeps_single_target = True

    def _posed_on_all_rows(self, X: Any, Y: Array, weights: Array, classes: None = None) -> Problem:
        """The problem of checked data, with rows of weight zero in their place."""
        return self._problem(X, Y, weights)

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        arguments: dict[str, Any] = {
            "accept_sparse": ["csr", "csc", "coo"],
            "dtype": [np.float64, np.float32],
            "multi_output": True,
            "y_numeric": True,
            "ensure_all_finite": False,
        }
        if is_plain(X, y):
            if reset:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
        else:
            with numeric_target(self, y):
                if reset:
                    X, y = validate_data(self, X, y, **arguments)
                else:
                    from trueline.estimators.validation import check_X_y

                    X, y = check_X_y(X, y, estimator=self, **arguments)
        weights = self._weights(sample_weight, X)
        with numeric_target(self, y):
            Y = (y.reshape(-1, 1) if y.ndim == 1 else y).astype(np.float64, copy=False)
        if weights is not None and not weights.all():
            return self._problem(*self._without_idle_rows(X, Y, weights)), X, y
        return self._problem(X, Y, weights), X, y

    def _without_idle_rows(self, X: Any, Y: Array, weights: Array) -> tuple[Any, Array, Array]:
        """The data without what rows of weight zero could do to the fit.

        Sums of squares count such rows with weight zero and nothing else, as long as their squares
        are numbers: the rows stay where they are, X is not copied.
        """
        return *_without_idle_extremes(X, Y, weights), weights

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows to learn from.
        y : array-like of shape (n,) or (n, k)
            One target, or several.
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem, X, y = self._validated_problem(X, y, sample_weight, reset=True)
        self._solve_and_store(problem, X, y, sample_weight)
        return self

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        """Coefficients and intercepts in scikit-learn's shapes."""
        single = y_ndim == 1 or (not self._keeps_single_target and W.shape[1] == 1)
        coef = W[:, 0].copy() if single else np.ascontiguousarray(W.T)
        intercept: Any = 0.0
        if fit_intercept:
            intercept = b[0] if y_ndim == 1 else b
        return {"coef_": coef, "intercept_": intercept}

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,) or (n, k)
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            reset=False,
        )
        scores = X @ self.coef_.T
        if sp.issparse(scores):
            scores = scores.toarray()
        return np.asarray(scores) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def validate_changed(model: Any) -> None:
    """Raise for parameters that are out of range; those at their defaults need no look."""
    own, defaults = vars(model), _defaults(type(model))  # type: ignore[arg-type]
    changed = {name: own[name] for name, default in defaults if own[name] is not default}
    if changed:
        validate_parameter_constraints(
            model._parameter_constraints, changed, caller_name=type(model).__name__
        )


@cache
def _defaults(cls: type) -> tuple[tuple[str, Any], ...]:
    """Names and defaults of the parameters of an estimator."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return tuple((parameter.name, parameter.default) for parameter in parameters)


def is_plain(X: Any, y: Any) -> bool:
    """Whether X and y are what every check would leave as they are: float64 arrays that match.

    Half of the time of a small fit would go into finding that out through the general checks.
    Finiteness of y is tested here; X is tested by the fit.
    """
    return bool(
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == np.float64
        and y.dtype == np.float64
        and X.ndim == 2
        and 1 <= y.ndim <= 2
        and len(X) == len(y) >= 1
        and X.shape[1] >= 1
        and y.size >= 1
        and np.isfinite(y).all()
    )


def _without_idle_extremes(X: Any, Y: Array, weights: Array) -> tuple[Any, Array]:
    """X and Y with zeros in rows of weight zero whose squares would overflow.

    These rows do not count, whatever they hold; NaN and infinity are left to be complained about.
    """
    idle = np.flatnonzero(weights == 0)
    Y_idle = Y[idle]
    beyond = (np.abs(Y_idle) > _LARGE) & np.isfinite(Y_idle)
    if beyond.any():
        Y = Y.copy()
        Y[idle] = np.where(beyond, 0.0, Y_idle)
    if X.dtype != np.float64:
        return X, Y
    if sp.issparse(X):
        X = X.tocsr()
        X_idle = X[idle]
        if ((np.abs(X_idle.data) > _LARGE) & np.isfinite(X_idle.data)).any():
            X = X.copy()
            of_idle = np.repeat(weights == 0, np.diff(X.indptr))
            X.data[of_idle & (np.abs(X.data) > _LARGE) & np.isfinite(X.data)] = 0.0
        return X, Y
    X_idle = X[idle]
    beyond = (np.abs(X_idle) > _LARGE) & np.isfinite(X_idle)
    if beyond.any():
        X = X.copy()
        X[idle] = np.where(beyond, 0.0, X_idle)
    return X, Y


def _in_single_precision(problem: Any, W: Array, b: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Coefficients as float32, unless that would change the fit: then as they are.

    Offsets of the columns multiply the rounding: coefficients of columns around 1e6 with a spread
    of one are needed to more digits than single precision has.
    """
    with np.errstate(over="ignore", under="ignore"):
        single, level = W.astype(np.float32), b.astype(np.float32)
    # Infinity, or fewer digits than single precision has: out of its range.
    lost, lost_level = np.abs(W - single) > 1e-6 * np.abs(W), np.abs(b - level) > 1e-6 * np.abs(b)
    if lost.any() or lost_level.any():
        if isinstance(problem, Problem):
            x_size, y_size = problem.design.column_largest(), np.abs(problem.target).max(axis=0)
        else:
            x_size, y_size = np.sqrt(problem.moments.x_size), np.sqrt(problem.moments.y_size)
        matters = lost & (np.abs(W) * x_size[:, None] > 1e-6 * y_size)
        if matters.any() or (lost_level & (np.abs(b) > 1e-6 * y_size)).any():
            return W, b
    return (W, b) if _is_felt(problem, W, b, single - W, level - b) else (single, level)


def _is_felt(problem: Any, W: Array, b: Array, dW: Array, db: Array) -> bool:
    """Whether changes of the coefficients cost a fit more than a last digit.

    At a minimum of least squares they cost 1/2 sum_i s_i (x_i.dw + db)^2, to be compared with the
    objective of the best constant. Other losses are compared with what is left of them.
    """
    if isinstance(problem, Problem) and "quadratic" in problem.loss.capabilities:
        y = problem.target
        level = problem.weigh(y).sum(axis=0) / problem.total_weight if problem.fit_intercept else 0
        cost = problem.weigh(problem.scores(dW, db) ** 2).sum(axis=0)
        return bool((cost > _FELT * problem.weigh((y - level) ** 2).sum(axis=0)).any())
    if isinstance(problem, MomentsProblem):
        moments = problem.moments
        off = moments.x_mean @ dW + db
        cost = np.einsum("ij,ij->j", dW, moments.gram @ dW) + moments.weight * off**2
        square = moments.y_square
        if not problem.fit_intercept:
            square = square + moments.weight * moments.y_mean**2
        return bool((cost > _FELT * square).any())
    if not isinstance(problem, Problem):
        return False
    before = problem.objective(W, b)
    return bool(problem.objective(W + dW, b + db) - before > _FELT_ELSEWHERE * abs(before))


def build_problem(
    X: Any, Y: Array, weights: Array | None, loss: Any, penalty: Penalty, fit_intercept: bool
) -> Problem:
    """A problem from validated arrays."""
    loss.check_target(Y)
    return Problem(as_design(X), Y, loss, penalty, fit_intercept, weights)
