r"""How far sparse answers are from the best ones: the same functions for every contestant.

The lasso, for each strength a::

    F(w, b) = 1/(2 n) ||y - X w - b||^2 + a ||w||_1

Any r (with sum_i r_i = 0 if there is an intercept) and any c with c ||X^T r||_inf <= n a give ::

    D = (c y.r - c^2/2 ||r||^2) / n  <=  min F

A solution of high accuracy gives r; D at the best c is a proven bound, so that nobody's
suboptimality (F - D) / D is flattered, whoever supplied the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.objective import Answer, Data

__all__ = [
    "SAME",
    "Chosen",
    "fold_error",
    "lasso_bounds",
    "lasso_objectives",
    "residual_square",
    "suboptimality",
]

Array = NDArray[np.float64]

# Strengths computed at once: the coefficients of many columns are densified in such parts.
_AT_ONCE = 20
#: Strengths as near as this are the same one, computed by another formula.
SAME = 1e-8


@dataclass(frozen=True)
class Chosen:
    """Columns that were chosen, and what was proven about the choice.

    Attributes
    ----------
    columns : array of int
    gap : float, optional
        Proven: no better choice has less than (1 - gap) times this one's residual square.
    own_gap : float, optional
        The gap in the library's own terms, where they differ.
    is_proven : bool
        The search was finished: within the library's own tolerance there is no better choice.
    """

    columns: NDArray[np.intp]
    gap: float | None = None
    own_gap: float | None = None
    is_proven: bool = False


def _residuals(data: Data, coef: Any, intercepts: Array) -> Array:
    W = coef.toarray() if sp.issparse(coef) else np.asarray(coef, dtype=np.float64)
    return data.y[:, None] - data.X @ W - intercepts


def _columns(answer: Answer, start: int, stop: int) -> Any:
    coef = answer.coef
    if sp.issparse(coef):
        return sp.csc_matrix(coef)[:, start:stop]
    return np.reshape(coef, (len(coef), -1))[:, start:stop]


def lasso_objectives(data: Data, answer: Answer, alphas: Array) -> Array:
    """F at each strength, for coefficients of shape (d, number of strengths)."""
    n, out = len(data.y), np.empty(len(alphas))
    intercepts = np.broadcast_to(np.asarray(answer.intercept, dtype=float), len(alphas))
    for start in range(0, len(alphas), _AT_ONCE):
        part = slice(start, min(start + _AT_ONCE, len(alphas)))
        W = _columns(answer, part.start, part.stop)
        R = _residuals(data, W, intercepts[part])
        sizes = np.asarray(abs(W).sum(axis=0)).ravel()
        out[part] = 0.5 * np.einsum("ij,ij->j", R, R) / n + alphas[part] * sizes
    return out


def lasso_bounds(data: Data, answer: Answer, alphas: Array) -> Array:
    """D at each strength, from solutions of shape (d, number of strengths)."""
    n, out = len(data.y), np.empty(len(alphas))
    for start in range(0, len(alphas), _AT_ONCE):
        part = slice(start, min(start + _AT_ONCE, len(alphas)))
        R = _residuals(data, _columns(answer, part.start, part.stop), np.zeros(1))
        if data.fit_intercept:
            R -= R.mean(axis=0)
        norms = np.einsum("ij,ij->j", R, R)
        most = np.abs(data.X.T @ R).max(axis=0)
        along = data.y @ R
        tiny = np.finfo(float).tiny
        scale = np.minimum(along / np.maximum(norms, tiny), n * alphas[part] / (most + tiny))
        out[part] = (scale * along - 0.5 * scale**2 * norms) / n
    return out


def suboptimality(data: Data, answer: Answer, bounds: Array) -> float:
    """(F - D) / D, the worst over the strengths; at the chosen one if one was chosen.

    Infinite if the answer is not finite, not of the right shape, or at a strength that was not
    asked for.
    """
    alphas, bounds = np.asarray(data.alphas, dtype=float), np.asarray(bounds, dtype=float)
    if data.folds:
        nearest = int(np.argmin(np.abs(alphas - answer.alpha)))
        if abs(alphas[nearest] - answer.alpha) > SAME * answer.alpha:
            return float("inf")
        alphas, bounds = alphas[[nearest]], bounds[[nearest]]
    shape = answer.coef.shape if answer.coef.ndim == 2 else (len(answer.coef), 1)
    if shape != (data.X.shape[1], len(alphas)):
        return float("inf")
    values = lasso_objectives(data, answer, alphas)
    if not np.isfinite(values).all():
        return float("inf")
    return float(np.max((values - bounds) / bounds))


def residual_square(data: Data, columns: Any) -> float:
    """Residual square of least squares on some columns; infinite if they are too many."""
    columns = np.asarray(columns, dtype=int)
    if len(set(columns.tolist())) > data.choose:
        return float("inf")
    X, y = data.X[:, columns], data.y
    if data.fit_intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return float(residual @ residual)


def fold_error(data: Data, columns: Any) -> float:
    """1 - R^2 of least squares on some columns, mean over consecutive folds."""
    columns = np.asarray(columns, dtype=int)
    if len(set(columns.tolist())) > data.choose:
        return float("inf")
    n = len(data.y)
    X = np.column_stack([np.ones(n), data.X[:, columns]])
    # The first n % folds parts have one row more, as scikit-learn's KFold cuts.
    sizes = np.full(data.folds, n // data.folds) + (np.arange(data.folds) < n % data.folds)
    errors = []
    for start, stop in pairwise(np.concatenate([[0], np.cumsum(sizes)])):
        held = np.zeros(n, dtype=bool)
        held[start:stop] = True
        w = np.linalg.lstsq(X[~held], data.y[~held], rcond=None)[0]
        rest, y = data.y[held] - X[held] @ w, data.y[held]
        errors.append(float(rest @ rest) / float(np.sum((y - y.mean()) ** 2)))
    return float(np.mean(errors))
