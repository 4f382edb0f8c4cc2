"""Ridge regression that chooses its strength by cross-validation."""

from __future__ import annotations

import numbers
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import check_scalar
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from trueline.design import DenseDesign
from trueline.errors import squares_out_of_range
from trueline.estimators.shared.base import Host, LinearEstimator, build_problem, fit_with_callbacks
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.precision import exponents_of
from trueline.estimators.shared.regressor import (
    GaussianLikelihood,
    LinearRegressorBase,
    real_problem,
)
from trueline.estimators.shared.validation import (
    refuse_nonfinite,
    router_of,
    some_folds,
    takes_batches,
)
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import L2, NoPenalty, Penalty
from trueline.planner import execute_paths, make_set_plans
from trueline.problem import Array, Problem
from trueline.selection.cross_validation import (
    edge_notes,
    fold_problems,
    held_out_moments,
    r2_from_moments,
)
from trueline.selection.leave_one_out import (
    errors_by_inverses,
    leave_one_out_errors,
    leave_one_out_squares,
)
from trueline.solution import PathSolution
from trueline.solvers import MOST_DENSE, Spectrum
from trueline.solvers.base import Options
from trueline.solvers.registry import SOLVERS

DEFAULT_ALPHAS = (0.1, 1.0, 10.0)
# Stands for the strength until it is chosen; as an array it is not printed as a number.
_SOME_STRENGTH = L2(np.ones(1))
# Below this many multiplications no BLAS starts threads, and limiting it would cost more.
_TINY_WORK = 50_000
# Up to so many strengths are named one by one.
_NAMED = 6
# The gap that is asked of the fits of the folds, relative to the objective of the best constant.
_TOL = 1e-12
# Squares of means relative to those of spreads that cost more than four digits.
_FAR = 1e4


class StrengthSearch(Host):
    """Sets ``alpha_``, ``best_score_`` and the scores behind them."""

    alphas: Any
    cv: Any
    fit_intercept: bool
    scoring: Any
    store_cv_results: bool
    cv_results_: NDArray[Any]
    alpha_per_target = False

    #: What folds are scored by where metadata are routed and ``scoring`` is not given.
    _default_scoring = "r2"

    def _penalty(self, n_targets: int) -> Penalty:
        alpha = np.asarray(self.alpha_, dtype=np.float64)
        return L2(float(alpha) if alpha.ndim == 0 else alpha) if alpha.any() else NoPenalty()

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return build_problem(X, Y, weights, Squared(), _SOME_STRENGTH, self.fit_intercept)

    def _strengths(self) -> Array:
        """The strengths to try, checked one by one."""
        if self.alphas is DEFAULT_ALPHAS:
            return np.array(DEFAULT_ALPHAS)
        boundaries = "neither" if self.cv is None else "left"
        check = partial(
            check_scalar, target_type=numbers.Real, min_val=0.0, include_boundaries=boundaries
        )
        if np.ndim(self.alphas) == 0:
            return np.array([check(np.asarray(self.alphas).item(), "alphas")], dtype=np.float64)
        if len(self.alphas) == 0:
            raise ValueError("alphas is empty: give at least one strength to try.")
        if len(self.alphas) == 1:
            check(self.alphas[0], "alphas")
        else:
            for i, alpha in enumerate(self.alphas):
                check(alpha, f"alphas[{i}]")
        alphas = np.asarray(self.alphas, dtype=np.float64)
        if not np.isfinite(alphas).all():
            raise ValueError(f"alphas must be finite, got {self.alphas!r}.")
        return alphas

    def _search(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], scored: Any = None
    ) -> tuple[Problem, Any, NDArray[Any], Moments | None]:
        """Choose the strength; the problem with it, the checked data, and moments if there are.

        ``scored`` tells what predictions are compared with: by default the target.
        """
        alphas = self._strengths()
        if self.cv is not None and self.store_cv_results:
            raise ValueError("cv!=None and store_cv_results=True are incompatible")
        if self.cv is not None and self.alpha_per_target:
            raise ValueError("cv!=None and alpha_per_target=True are incompatible")
        for name in ("alpha_", "cv_results_", "fold_scores_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        problem, X, y = real_problem(self, X, y, sample_weight, reset=True)
        if sample_weight is not None:
            params["sample_weight"] = problem.weights
        scorer_params, split_params = self._route(params)
        scored = AsNumbers(y) if scored is None else scored
        n, d = problem.design.shape
        is_tiny = n * d * max(min(n, d), problem.n_targets * len(alphas)) < _TINY_WORK
        # The answer must not depend on the number of threads.
        with nullcontext() if is_tiny else single_threaded_blas():
            if self.cv is None:
                moments = self._choose_by_leave_one_out(
                    problem, X, y, alphas, scored, scorer_params
                )
            else:
                moments = self._choose_by_folds(
                    problem, X, alphas, scored, scorer_params, split_params
                )
        if self.store_cv_results:
            self.cv_results_ = self.cv_results_.astype(X.dtype, copy=False)
        return replace(problem, penalty=self._penalty(problem.n_targets)), X, y, moments

    def _choose_by_leave_one_out(
        self,
        problem: Problem,
        X: Any,
        y: NDArray[Any],
        alphas: Array,
        scored: Any,
        scorer_params: dict[str, Any],
    ) -> Moments | None:
        """Score all strengths by leave-one-out; returns the moments if they were formed."""
        problem = _near_zero(problem)
        moments = _moments_of(problem)
        is_safe = _is_safe(moments)
        if not is_safe or problem.design.is_sparse:
            # Otherwise the sums tell that every number is finite.
            refuse_nonfinite(X, self)
        if not is_safe:
            _check_range(problem)
        n, k = problem.n_samples, problem.n_targets
        per_target = self.alpha_per_target and k > 1
        errors = errors_by_inverses(problem, alphas)
        if errors is None:
            spectrum = Spectrum.of(problem, moments, float(alphas.min()))
        if self.scoring is None and not self.store_cv_results:
            if errors is None:
                squares = leave_one_out_squares(problem, spectrum, alphas)
            else:
                squares = np.einsum("ika,ika->ka", errors, errors)
            scores = -squares / n
        else:
            if errors is None:
                errors = leave_one_out_errors(problem, spectrum, alphas)
            if self.scoring is None:
                results = errors**2
                scores = -results.mean(axis=0)
            else:
                if problem.weights is not None:
                    with np.errstate(divide="ignore", invalid="ignore"):
                        errors = errors / np.sqrt(problem.weights)[:, None, None]
                    errors[problem.weights == 0] = 0.0
                results = problem.target[:, :, None] - errors
                scores = self._scorer_values(results, y.ndim, scored, scorer_params)
            if self.store_cv_results:
                self.cv_results_ = results[:, 0] if y.ndim == 1 else results
        if not per_target and scores.ndim == 2:
            scores = scores.mean(axis=0)
        best = scores.argmax(axis=-1)
        if per_target:
            self.alpha_, self.best_score_ = alphas[best], scores[np.arange(k), best]
        else:
            self.alpha_, self.best_score_ = float(alphas[best]), float(scores[best])
        return moments

    def _scorer_values(
        self, predictions: Array, y_ndim: int, scored: Any, scorer_params: dict[str, Any]
    ) -> Array:
        """The user's scorer on leave-one-out predictions, per strength (and per target)."""
        scorer = check_scoring(estimator=self, scoring=self.scoring, allow_none=True)
        target = scored.target
        k, count = predictions.shape[1:]
        if self.alpha_per_target and k > 1:
            values = [
                [
                    scorer(scored, predictions[:, t, a], target[:, t], **scorer_params)
                    for a in range(count)
                ]
                for t in range(k)
            ]
            return np.array(values, dtype=float)
        flat = predictions[:, 0] if y_ndim == 1 else predictions
        values = [scorer(scored, flat[..., a], target, **scorer_params) for a in range(count)]
        return np.array(values, dtype=float)

    def _choose_by_folds(
        self,
        problem: Problem,
        X: Any,
        alphas: Array,
        scored: Any,
        scorer_params: dict[str, Any],
        split_params: dict[str, Any],
    ) -> Moments | None:
        """Score all strengths by folds; returns the moments if they were formed."""
        refuse_nonfinite(X, self)
        X = X.tocsr() if sp.issparse(X) else X  # rows can be taken
        target = scored.target
        splitter = check_cv(self.cv, target, classifier=is_classifier(self))
        splits = some_folds(splitter.split(X, target, **split_params))
        problem = _near_zero(problem)
        penalties = [L2(float(alpha)) if alpha else NoPenalty() for alpha in alphas]
        problems, tests = fold_problems(problem, splits, lambda weight: penalties)
        plans = make_set_plans(problems)
        assert problems.shared is not None
        moments = None
        if all(SOLVERS[plan.chosen].reads_once(plan.facts) for plan in plans):
            with np.errstate(over="ignore", invalid="ignore"):  # looked at next
                moments = problems.shared.total
        if not _is_safe(moments):
            _check_range(problem)
        found, _ = execute_paths(problems, plans, Options(tol=_TOL))
        scorer = check_scoring(estimator=self, scoring=self.scoring, allow_none=True)

        def score(path: PathSolution, test: Any) -> Array:
            held_out = None
            if scored.from_moments and self.scoring is None and moments is not None:
                held_out = held_out_moments(problems, path.numbers[0], test)
            W, b = path.coefs, path.intercepts
            if held_out is not None and held_out.count > 1:
                return r2_from_moments(held_out, W, b)
            given = {
                name: np.asarray(value)[test] if np.ndim(value) else value
                for name, value in scorer_params.items()
            }
            rows, count = X[test], b.shape[1]
            if problem.design.is_sequential:  # one pass for all strengths
                flat = rows.matvec(W.reshape(len(W), -1)).reshape(-1, len(b), count) + b
                each = [(scored.at(None, 0.0), flat[..., i]) for i in range(count)]
            else:
                each = [(scored.at(W[..., i], b[:, i]), rows) for i in range(count)]
            return np.array([float(scorer(*one, target[test], **given)) for one in each])

        flat = np.empty(len(problems))
        for path in found:
            flat[path.numbers] = score(path, tests[path.numbers[0] // len(alphas)])
        self.fold_scores_ = flat.reshape(len(tests), len(alphas))
        mean = self.fold_scores_.mean(axis=0)
        best = int(np.argmax(mean))
        self.alpha_, self.best_score_ = float(alphas[best]), float(mean[best])
        return moments

    # --- what is said about it, and metadata ----------------------------------------------------

    def _explained_fit(self) -> Any:
        return replace(super()._explained_fit(), search=self._search_done())

    def _explained_plan(self, X: Any, y: Any, sample_weight: Any) -> Any:
        explanation = super()._explained_plan(X, y, sample_weight)
        plan = explanation.plan
        objective = f"{plan.objective},  {self._search_text()}"
        return replace(explanation, plan=replace(plan, objective=objective))

    def _search_done(self) -> list[str]:
        """What the last fit chose from, and what is to be said of the choice."""
        return [self._search_text(), *edge_notes("alpha", self.alpha_, self._strengths())]

    def _search_text(self) -> str:
        """Which strengths are searched, and how they are scored."""
        alphas = self._strengths()
        if len(alphas) <= _NAMED:
            among = "of " + ", ".join(f"{alpha:g}" for alpha in alphas)
        else:
            among = f"of {len(alphas)} from {alphas.min():g} to {alphas.max():g}"
        return f"alpha the best {among} by {'leave-one-out' if self.cv is None else 'folds'}"

    def _route(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Metadata for the scorer and for the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", **params)
            return dict(routed.scorer.score), dict(routed.splitter.split)
        weight = params.get("sample_weight")
        if weight is None:
            return {}, {}
        # As scikit-learn's grid search does: weights count in the scores where a scorer takes them.
        scorer = check_scoring(estimator=self, scoring=self.scoring, allow_none=True)
        accepts = getattr(scorer, "_accept_sample_weight", None)
        takes = accepts() if accepts else "sample_weight" in signature(scorer).parameters
        return ({"sample_weight": weight} if self.cv is None or takes else {}), {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata go to the scorer and to the splitter."""
        # Only splitters ask for metadata; a generator of splits must not be used up here.
        splitter = self.cv if hasattr(self.cv, "split") else None
        return router_of(self, splitter, self._routed_scorer())

    def _routed_scorer(self) -> Any:
        if self.scoring is None and _routing_enabled():
            return get_scorer(self._default_scoring).set_score_request(sample_weight=True)
        return check_scoring(estimator=self, scoring=self.scoring, allow_none=True)


def _moments_of(problem: Problem) -> Moments | None:
    """The moments of tall data, formed once for all that follows; None for wide data."""
    n, d = problem.design.shape
    return None if n <= d else Moments.from_rows(problem.design, problem.target, problem.weights)


def _near_zero(problem: Problem) -> Problem:
    """The problem with dense rows if the means of its sparse columns exceed their spreads by far.

    Sparse columns are centred by subtracting squares of means from sums of squares: an offset of
    10^k spreads costs 2 k digits there, and none of dense rows.
    """
    n, d = problem.design.shape
    if not (problem.design.is_sparse and problem.fit_intercept) or n * d > MOST_DENSE:
        return problem
    with np.errstate(over="ignore", invalid="ignore"):
        squares = problem.design.column_squares(problem.weights, None)
        of_means = problem.total_weight * problem.design.column_means(problem.weights) ** 2
        is_far = of_means.sum() > _FAR * np.maximum(squares - of_means, 0.0).sum()
    return replace(problem, design=DenseDesign(problem.design.toarray())) if is_far else problem


def _is_safe(moments: Moments | None) -> bool:
    """Whether the moments show that every number is finite and no square left its range."""
    return moments is not None and moments.is_ordinary() and moments.is_finite()


def _check_range(problem: Problem) -> None:
    """Refuse data whose squares overflow or vanish: the scores would mean nothing."""
    if exponents_of(problem) is not None:
        raise squares_out_of_range()


class AsNumbers(RegressorMixin, BaseEstimator):
    """Predictions given in place of X, or coefficients that make them, as a model for scorers."""

    #: Whether the default score follows from moments of held-out rows: R^2 does.
    from_moments = True

    def __init__(self, target: NDArray[Any], W: Array | None = None, b: Any = 0.0) -> None:
        self.target, self.W, self.b = target, W, b

    def at(self, W: Array, b: Array) -> Self:
        """The same for given coefficients."""
        return type(self)(self.target, W, b)

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict(self, X: Any) -> Array:
        values = X if self.W is None else X @ self.W + self.b
        return values[:, 0] if self.target.ndim < values.ndim else values

    def __sklearn_is_fitted__(self) -> bool:
        return True


@parameters()
class RidgeCV(StrengthSearch, GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """Ridge regression with the strength chosen by cross-validation, for the cost of a few fits.

    For each strength in ``alphas`` the objective of :class:`Ridge`::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2

    is scored by leave-one-out (``cv=None``, in closed form) or by any splitter (from the moments
    of the folds), and the best one is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.RidgeCV``.

    Parameters
    ----------
    alphas : float or array-like, default=(0.1, 1.0, 10.0)
        Strengths to try; positive for leave-one-out.
    fit_intercept : bool, default=True
    scoring : str, callable or None
        None means the negative mean squared error for leave-one-out and R^2 for folds.
    cv : int, splitter, iterable or None
        None means leave-one-out.
    gcv_mode : {"auto", "svd", "eigen"} or None
        Accepted for compatibility: the decomposition is chosen by shape and conditioning.
    store_cv_results : bool, default=False
        Keep the leave-one-out errors (``cv=None`` only).
    alpha_per_target : bool, default=False
        Choose one strength per target (``cv=None`` only).

    Attributes
    ----------
    alpha_ : float or array of shape (k,)
        The chosen strength.
    best_score_ : float or array of shape (k,)
    cv_results_ : array of shape (n, number of alphas) or (n, k, number of alphas)
        Squared leave-one-out errors (times the weights), or predictions if ``scoring`` is given.
    fold_scores_ : array of shape (folds, number of alphas)
        Scores of every fold and strength (``cv`` given).
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1.0]).fit(X, y)
    >>> float(model.alpha_)
    0.01
    """

    _keeps_single_target = False

    alphas: Any = given(DEFAULT_ALPHAS, "array-like", "(0, inf)")
    _: KW_ONLY
    fit_intercept: bool = True
    scoring: Any = given(None, one_of(*get_scorer_names()), callable, None)
    cv: Any = given(None, "cv_object")
    gcv_mode: str | None = given(None, one_of("auto", "svd", "eigen"), None)
    store_cv_results: bool = False
    alpha_per_target: bool = False

    @fit_with_callbacks
    @takes_batches
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the strength and fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : float or array-like of shape (n,), optional
            Used in the fits and, where the scorer takes weights, in the scores.
        **params
            Routed to the scorer and the splitter, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        _raise_for_params(params, self, "fit")
        self._check_parameters()
        problem, X, y, moments = self._search(X, y, sample_weight, params)
        self._solve_and_store(problem, X, y, sample_weight, moments)
        return self
