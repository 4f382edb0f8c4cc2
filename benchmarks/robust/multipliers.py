r"""Multipliers from a solution: what proves how good the best objective is.

They need not be trusted: :func:`benchmarks.robust.objective.lower_bound` makes a bound of them
that holds whatever they are; if the solution was poor, the bound is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.objective import Answer
from benchmarks.robust.objective import RobustData, residuals

__all__ = ["multipliers"]

Array = NDArray[np.float64]


def multipliers(data: RobustData, answer: Answer) -> list[Array]:
    """One vector for each problem, for all kinds but "svr" (whose solution does not tell them)."""
    R = residuals(data, answer)
    if data.kind == "quantile":
        return [_quantile(data, r, q) for r, q in zip(R.T, data.quantiles, strict=True)]
    r, t = R[:, 0], data.threshold
    if data.kind == "maximum":
        return [_maximum(data, r)]
    if data.kind == "huber":
        return [_repaired(data, np.clip(r, -t, t), t, np.zeros(data.X.shape[1]))]
    if data.kind == "huber_scale":
        u = np.clip(2 * r / _scale(r, t), -2 * t, 2 * t)
        return [_repaired(data, u, 2 * t, 2 * data.strength * np.ravel(answer.coef))]
    if data.kind == "svr_squared":
        return [2 * data.strength * np.sign(r) * np.maximum(0.0, np.abs(r) - t)]
    raise ValueError(f"The multipliers of {data.kind} are not known from a solution alone.")


def _with_ones(X: Any) -> Array:
    return np.column_stack([X, np.ones(len(X))])


def _quantile(data: RobustData, r: Array, q: float) -> Array:
    """Signs off the vertex; on its d + 1 rows what makes X'^T u vanish."""
    basis = np.argpartition(np.abs(r), data.X.shape[1])[: data.X.shape[1] + 1]
    u = np.where(r > 0, q, q - 1)
    u[basis] = 0.0
    missing = np.append(data.X.T @ u, u.sum())
    u[basis] = np.linalg.solve(_with_ones(data.X[basis]).T, -missing)
    return u


def _maximum(data: RobustData, r: Array) -> Array:
    """On the d + 2 rows of the largest errors: a signed combination to zero, of sum one."""
    count = data.X.shape[1] + 2
    rows = np.argpartition(-np.abs(r), count - 1)[:count]
    signs = np.sign(r[rows])
    system = np.vstack([(_with_ones(data.X[rows]) * signs[:, None]).T, np.ones(count)])
    shares = np.linalg.solve(system, np.append(np.zeros(count - 1), 1.0))
    u = np.zeros(len(r))
    u[rows] = signs * shares
    return u


def _scale(r: Array, t: float) -> float:
    """The best one for these residuals: ||u||^2 = 4 n holds there."""
    from scipy.optimize import brentq

    size = np.sqrt(r @ r / len(r))
    return float(
        brentq(lambda s: np.minimum((r / s) ** 2, t**2).mean() - 1, 1e-9 * size, size, rtol=1e-15)
    )


def _repaired(data: RobustData, u: Array, box: float, goal: Array) -> Array:
    """Near u, with X^T u = goal and sum u = 0: rows that are not at the box's ends move."""
    inside = np.abs(u) < box
    Z = _with_ones(data.X[inside])
    gram = Z.T @ Z
    for _ in range(3):  # the second and third time for rounding
        missing = np.append(data.X.T @ u - goal, u.sum())
        u[inside] -= Z @ np.linalg.solve(gram, missing)
    return u
