"""Two ways to score the features of a step: from the moments of folds, or by refitting."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import cross_val_score
from sklearn.utils import check_array, check_consistent_length

from trueline.design import as_design
from trueline.estimators.regression.linear_regression import LinearRegression
from trueline.estimators.regression.ridge import Ridge
from trueline.losses import Squared
from trueline.numerics.blas import single_threaded_blas
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.selection.stepwise.folds import fold_tableaux
from trueline.selection.stepwise.scores import SCORES, FoldScores

__all__ = ["NeedsRefits", "Refits", "Route", "checked", "least_squares", "score_name"]

Mask = NDArray[np.bool_]

# Solvers that give the least-squares answer to rounding; iterative ones stop at a tolerance.
_DIRECT = {"auto", "cholesky", "svd", "qr", "kernel"}
# Tableaux of more bytes than this are not made: scikit-learn's way needs no memory.
_MOST_BYTES = 2 << 30


class Refits:
    """Scores a candidate by cross-validation with refits, as scikit-learn does."""

    def __init__(self, owner: Any, estimator: Any, X: Any, y: Any, cv: Any, params: Any) -> None:
        self.owner, self.estimator, self.cv, self.params = owner, estimator, cv, params
        self.X, self.y = X, y
        self.count = 0

    def __call__(self, mask: Mask, feature: int) -> float:
        self.count += 1
        candidate = mask.copy()
        candidate[feature] = True
        if self.owner.direction == "backward":
            candidate = ~candidate
        scores = cross_val_score(
            self.estimator,
            self.X[:, candidate],
            self.y,
            cv=self.cv,
            scoring=self.owner.scoring,
            n_jobs=self.owner.n_jobs,
            params=self.params,
        )
        return float(scores.mean())


@dataclass(frozen=True)
class Route:
    """What scores from moments are made of."""

    X: Any
    Y: Any
    splits: list[Any]
    fit_intercept: bool
    strength: float
    name: str

    @property
    def words(self) -> str:
        return f"moments of {len(self.splits)} folds; refits only between near ties"

    def scores(self) -> FoldScores:
        return _fold_scores(
            self.X, self.Y, self.splits, self.fit_intercept, self.strength, self.name
        )


class NeedsRefits(Exception):
    """Why moments would not mean the same as refitting."""


def score_name(scoring: Any) -> str:
    """The score, if it is a function of squared errors."""
    if scoring is None:
        return "r2"
    if isinstance(scoring, str) and scoring in SCORES:
        return scoring
    raise NeedsRefits(f"scoring={scoring!r} is not a function of squared errors")


def least_squares(estimator: Any) -> tuple[bool, float]:
    """Intercept and strength of an estimator whose answer is least squares."""
    from sklearn import linear_model

    kind = type(estimator)
    plain = kind in (LinearRegression, linear_model.LinearRegression)
    if not plain and kind not in (Ridge, linear_model.Ridge):
        raise NeedsRefits(f"{kind.__name__} is not least squares")
    if estimator.positive or getattr(estimator, "solver", "auto") not in _DIRECT:
        raise NeedsRefits("coefficients are bounded, or a solver stops at a tolerance")
    alpha = 0.0 if plain else estimator.alpha
    if not isinstance(alpha, Real) or not 0 <= float(alpha) < np.inf:
        raise NeedsRefits(f"alpha={alpha!r} is not one strength")
    if getattr(estimator, "_skl_callbacks", None):
        raise NeedsRefits("callbacks watch the fits")
    return bool(estimator.fit_intercept), float(alpha)


def checked(X: Any, y: Any, cv: Any, split_params: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    """Dense X of single or double precision, y of double precision, and the folds."""
    if not isinstance(X, np.ndarray):
        raise NeedsRefits("X is not a dense array")
    try:
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
        check_consistent_length(X, y)
        splits = list(cv.split(X, y, **split_params))
        X = np.asarray(X, dtype=X.dtype if X.dtype == np.float32 else np.float64)
    except (ValueError, TypeError) as error:  # scikit-learn has its own words for it
        raise NeedsRefits(str(error)) from None
    return X, y.reshape(len(y), -1), splits


def _fold_scores(
    X: Any, Y: Any, splits: list[Any], fit_intercept: bool, strength: float, name: str
) -> FoldScores:
    if 16 * len(splits) * (X.shape[1] + Y.shape[1]) ** 2 > _MOST_BYTES:
        raise NeedsRefits("the Gram matrices of so many columns and folds take too much memory")
    problem = Problem(as_design(X), Y, Squared(), NoPenalty(), fit_intercept)
    try:
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            tableaux, helds, total = fold_tableaux(problem, splits, strength)
    except (ValueError, IndexError) as error:  # an empty fold, say
        raise NeedsRefits(str(error)) from None
    if not total.is_finite() or max(total.x_size.max(), total.y_size.max()) > 1e200:
        raise NeedsRefits("squares of these numbers overflow")
    # Answers in single precision can be compared no better than they are.
    unit = 64 * float(np.finfo(np.float32).eps) if X.dtype == np.float32 else 0.0
    scores = FoldScores(tableaux, helds, name, unit)
    if not scores.is_usable:
        raise NeedsRefits("the target does not vary within the test rows of a fold")
    return scores
