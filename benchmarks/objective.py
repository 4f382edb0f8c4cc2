r"""How far an answer is from the best one: the same function for every contestant.

    F(w, b) = 1/2 sum_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2

F is quadratic, so the distance to its minimum needs no reference solution. With g the gradient at
the best intercept for w, m the column means and H = (X - m)^T (X - m) + alpha I,

    F(w, b) - min F = 1/2 g^T H^{-1} g + 1/2 (sum_i residual_i)^2 / n

Squares of small numbers: unlike a difference of two objectives, it resolves far below 1e-16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answer", "Data", "relative_suboptimality"]

Array = NDArray[np.float64]

_ROWS = 8192


@dataclass(frozen=True)
class Data:
    """What a contestant is given.

    Attributes
    ----------
    X : array of shape (n, d)
        Sparse in some cases of the sparse suite.
    y : array of shape (n,)
    fit_intercept : bool
    alphas : array
        Strengths to try (cross-validation), or the one to use.
    folds : int
        Consecutive folds; 0 asks for leave-one-out.
    choose : int
        How many columns to choose.
    known : tuple of int
        Good columns, for those who can begin with some.
    """

    X: Any
    y: Array
    fit_intercept: bool = False
    alphas: tuple[float, ...] = ()
    folds: int = 0
    choose: int = 0
    known: tuple[int, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a contestant gives back.

    Attributes
    ----------
    coef : array of shape (d,)
        For a path (d, number of strengths), dense or sparse.
    intercept : float
        For a path one per strength.
    alpha : float
        The strength that was chosen.
    scale : float
        The scale of the errors, where it is fitted too.
    """

    coef: Any
    intercept: Any = 0.0
    alpha: float = 0.0
    scale: float = 1.0


def relative_suboptimality(data: Data, answer: Answer) -> float:
    """(F(answer) - min F) / min F, at the strength that the contestant chose.

    Parameters
    ----------
    data : Data
    answer : Answer

    Returns
    -------
    value : float
        Infinite if the answer is not finite.
    """
    X, y = data.X, data.y
    n, d = X.shape
    w, b = np.ravel(np.asarray(answer.coef, dtype=np.float64)), float(answer.intercept)
    if len(w) != d or not (np.isfinite(w).all() and np.isfinite(b)):
        return float("inf")
    mean = X.mean(axis=0) if data.fit_intercept else np.zeros(d)
    gram, gradient = np.zeros((d, d)), np.zeros(d)
    total, squares = 0.0, 0.0
    for start in range(0, n, _ROWS):
        block = X[start : start + _ROWS]
        residual = block @ w + b - y[start : start + _ROWS]
        centred = block - mean
        gram += centred.T @ centred
        gradient += centred.T @ residual
        total += float(residual.sum())
        squares += float(residual @ residual)
    gradient += answer.alpha * w
    gram.flat[:: d + 1] += answer.alpha
    gap = 0.5 * float(gradient @ np.linalg.lstsq(gram, gradient, rcond=None)[0])
    if data.fit_intercept:
        gap += 0.5 * total**2 / n
    objective = 0.5 * squares + 0.5 * answer.alpha * float(w @ w)
    return gap / max(objective - gap, np.finfo(float).tiny)
