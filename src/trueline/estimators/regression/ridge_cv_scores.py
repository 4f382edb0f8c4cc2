"""Scores of all strengths of a ridge regression: by leave-one-out, or by folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite

from trueline.design import DenseDesign
from trueline.estimators.shared.scaling import exponents_of
from trueline.estimators.shared.validation import some_folds
from trueline.moments import Moments
from trueline.penalties import L2, NoPenalty
from trueline.planner import execute_paths, make_set_plans
from trueline.problem import Problem
from trueline.selection.folds import fold_problems, held_moments, r2_from_moments
from trueline.selection.leave_one_out import leave_one_out_errors, leave_one_out_squares
from trueline.solution import PathSolution
from trueline.solvers.base import Options
from trueline.solvers.least_squares.quadratic import MOST_DENSE
from trueline.solvers.least_squares.spectrum import Spectrum
from trueline.solvers.registry import SOLVERS

__all__ = ["StrengthSearch"]

Array = NDArray[np.float64]

# The gap that is asked of the fits of the folds, relative to the objective of the best constant.
_TOL = 1e-12
# Squares of means relative to those of spreads that cost more than four digits.
_FAR = 1e4


class StrengthSearch:
    """Sets ``alpha_``, ``best_score_`` and the scores behind them."""

    alpha_per_target: bool
    cv: Any
    scoring: Any
    store_cv_results: bool
    alpha_: Any
    cv_results_: NDArray[Any]
    best_score_: Any
    _own_name: Any

    #: Whether the default score is R^2, which the moments of held-out rows tell.
    _scores_from_moments = True

    def _as_predicted(self) -> Any:
        """A model that takes its predictions in place of X."""
        return _Identity()

    def _model(self, W: Array, b: Array, y_ndim: int) -> Any:
        """A model of given coefficients."""
        return _Fitted(W, b, y_ndim)

    def _scored_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """What predictions are compared with."""
        return y

    def _splitter(self, y: NDArray[Any]) -> Any:
        return check_cv(self.cv)

    def _choose_by_leave_one_out(
        self,
        problem: Problem,
        X: Any,
        y: NDArray[Any],
        alphas: Array,
        scorer_params: dict[str, Any],
    ) -> Moments | None:
        """Score all strengths by leave-one-out; returns the moments if they were formed."""
        problem = _near_zero(problem)
        moments = _moments_of(problem)
        is_safe = _is_safe(moments)
        if not is_safe or problem.design.is_sparse:
            # Otherwise the sums tell that every number is finite.
            assert_all_finite(X, input_name="X", estimator_name=self._own_name)
        if not is_safe:
            _check_range(problem)
        spectrum = Spectrum.of(problem, moments, float(alphas.min()))
        n, k = problem.n_samples, problem.n_targets
        per_target = self.alpha_per_target and k > 1
        if self.scoring is None and not self.store_cv_results:
            scores = -leave_one_out_squares(problem, spectrum, alphas) / n
        else:
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
                scores = self._scorer_values(results, y, scorer_params)
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
        self, predictions: Array, y: NDArray[Any], scorer_params: dict[str, Any]
    ) -> Array:
        """The user's scorer on leave-one-out predictions, per strength (and per target)."""
        scorer = check_scoring(estimator=self, scoring=self.scoring, allow_none=True)
        identity, scored = self._as_predicted(), self._scored_target(y)
        k, count = predictions.shape[1:]
        if self.alpha_per_target and k > 1:
            values = [
                [
                    scorer(identity, predictions[:, t, a], scored[:, t], **scorer_params)
                    for a in range(count)
                ]
                for t in range(k)
            ]
            return np.array(values, dtype=float)
        flat = predictions[:, 0] if y.ndim == 1 else predictions
        values = [scorer(identity, flat[..., a], scored, **scorer_params) for a in range(count)]
        return np.array(values, dtype=float)

    def _choose_by_folds(
        self,
        problem: Problem,
        X: Any,
        y: NDArray[Any],
        alphas: Array,
        scorer_params: dict[str, Any],
        split_params: dict[str, Any],
    ) -> Moments | None:
        """Score all strengths by folds; returns the moments if they were formed."""
        assert_all_finite(X, input_name="X", estimator_name=self._own_name)
        X = X.tocsr() if sp.issparse(X) else X  # rows can be taken
        scored = self._scored_target(y)
        splits = some_folds(self._splitter(scored).split(X, scored, **split_params))
        problem = _near_zero(problem)
        penalties = [L2(float(alpha)) if alpha else NoPenalty() for alpha in alphas]
        problems = fold_problems(problem, splits, lambda weight: penalties)
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
            held = None
            if self._scores_from_moments and self.scoring is None and moments is not None:
                held = held_moments(problems, path.numbers[0], test)
            W, b = path.coefs, path.intercepts
            if held is not None and held.count > 1:
                return r2_from_moments(held, W, b)
            given = {
                name: np.asarray(value)[test] if np.ndim(value) else value
                for name, value in scorer_params.items()
            }
            models = [self._model(W[..., i], b[:, i], y.ndim) for i in range(b.shape[1])]
            return np.array([float(scorer(one, X[test], scored[test], **given)) for one in models])

        flat = np.empty(len(problems))
        for path in found:
            flat[path.numbers] = score(path, splits[path.numbers[0] // len(alphas)][1])
        self.fold_scores_ = flat.reshape(len(splits), len(alphas))
        mean = self.fold_scores_.mean(axis=0)
        best = int(np.argmax(mean))
        self.alpha_, self.best_score_ = float(alphas[best]), float(mean[best])
        return moments


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
        raise ValueError(
            "The squares of these values overflow or vanish in double precision: multiply the "
            "columns or the target by a power of ten."
        )


class _Identity(RegressorMixin, BaseEstimator):
    """Predictions given in place of X: what a scorer needs to score them."""

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict(self, X: Any) -> Any:
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _Fitted(RegressorMixin, BaseEstimator):
    """Coefficients that predict, for scorers on test rows."""

    def __init__(self, W: Array, b: Array, y_ndim: int) -> None:
        self.W, self.b, self.y_ndim = W, b, y_ndim

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict(self, X: Any) -> Array:
        values = X @ self.W + self.b
        return values[:, 0] if self.y_ndim == 1 else values

    def __sklearn_is_fitted__(self) -> bool:
        return True
