r"""What robust answers are worth: the same functions for every contestant.

With residuals r_i = y_i - x_i.w - b, sums over the rows, and h(r) = r^2/2 up to the threshold t,
t (abs(r) - t/2) beyond::

    quantile         F(w, b)    = sum max(q r, (q - 1) r)
    maximum          F(w, b)    = max abs(r)
    huber            F(w, b)    = sum h(r)
    huber_scale      F(w, b, s) = sum (s + 2 s h(r / s)) + a ||w||^2
    svr              F(w, b)    = (||w||^2 + b^2) / 2 + C sum max(0, abs(r) - e)
    svr_squared      F(w, b)    = (||w||^2 + b^2) / 2 + C sum max(0, abs(r) - e)^2

Each is a largest value over multipliers u, one per row, of a function that is linear in r. So any
u in its domain D gives a lower bound on the optimum (weak duality), with X' the columns and a
column of ones::

    quantile         q - 1 <= u <= q,  X'^T u = 0                        F >= y.u
    maximum          sum abs(u) <= 1,  X'^T u = 0                        F >= y.u
    huber            abs(u) <= t,      X'^T u = 0                        F >= y.u - ||u||^2 / 2
    huber_scale      abs(u) <= 2 t, sum u = 0, ||u||^2 <= 4 n    F >= y.u - ||X^T u||^2 / (4 a)
    svr              abs(u) <= C             F >= y.u - e sum abs(u) - ||X'^T u||^2 / 2
    svr_squared      all u    F >= y.u - e sum abs(u) - ||u||^2 / (4 C) - ||X'^T u||^2 / 2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.objective import Answer, Data

__all__ = ["KINDS", "RobustData", "lower_bound", "objectives", "residuals", "suboptimality"]

Array = NDArray[np.float64]

KINDS = ("quantile", "maximum", "huber", "huber_scale", "svr", "svr_squared")

# Equations of the domain hold to this, relative to the size of their terms: that is rounding.
_EQUATION = 1e-11


@dataclass(frozen=True)
class RobustData(Data):
    """Data, and what is minimised.

    Attributes
    ----------
    kind : str
        One of KINDS.
    quantiles : tuple of float
        Each one is a problem of its own.
    threshold : float
        t of Huber's losses, e of support vector regression.
    strength : float
        a of Huber's loss with a scale, C of support vector regression.
    """

    kind: str = "quantile"
    quantiles: tuple[float, ...] = (0.5,)
    threshold: float = 0.0
    strength: float = 0.0


def _huber(r: Array, t: float) -> Array:
    near = np.minimum(np.abs(r), t)
    return near * (np.abs(r) - 0.5 * near)


def residuals(data: RobustData, answer: Answer) -> Array:
    """Of shape (n, number of problems); not finite if the answer is of the wrong shape."""
    d, k = data.X.shape[1], len(data.quantiles)
    is_whole = np.size(answer.coef) == d * k and len(answer.coef) == d
    if not is_whole or np.size(answer.intercept) not in (1, k):
        return np.full((len(data.y), k), np.nan)
    W = np.asarray(answer.coef, dtype=np.float64).reshape(d, k)
    return data.y[:, None] - data.X @ W - np.asarray(answer.intercept, dtype=np.float64)


def objectives(data: RobustData, answer: Answer) -> Array:
    """F of each problem (one for all kinds but several quantiles)."""
    R = residuals(data, answer)
    if data.kind == "quantile":
        q = np.array(data.quantiles)
        return np.maximum(q * R, (q - 1) * R).sum(axis=0)
    r, t = R[:, 0], data.threshold
    w, b = np.ravel(np.asarray(answer.coef, dtype=np.float64)), float(np.ravel(answer.intercept)[0])
    if data.kind == "maximum":
        value = np.abs(r).max()
    elif data.kind == "huber":
        value = _huber(r, t).sum()
    elif data.kind == "huber_scale":
        s = float(answer.scale)
        fit = 2 * s * _huber(r / s, t).sum() if s > 0 else np.nan
        value = len(r) * s + fit + data.strength * (w @ w)
    else:
        excess = np.maximum(0.0, np.abs(r) - t)
        power = 2 if data.kind == "svr_squared" else 1
        value = 0.5 * (w @ w + b * b) + data.strength * (excess**power).sum()
    return np.array([float(value)])


def _combination(data: RobustData, u: Array) -> Array:
    """X'^T u."""
    return np.append(np.asarray(data.X.T @ u).ravel(), u.sum())


def _check_equations(data: RobustData, u: Array, V: Array, free: slice) -> None:
    """That V vanishes up to rounding, where it must.

    Raises
    ------
    ValueError
        If it does not.
    """
    sizes = np.append(np.asarray(abs(data.X).T @ np.abs(u)).ravel(), np.abs(u).sum())
    worst = float(np.max(np.abs(V[free]) / np.maximum(sizes[free], np.finfo(float).tiny)))
    if not worst <= _EQUATION:
        raise ValueError(f"The multipliers miss their equations by {worst:.1e}: no bound.")


def lower_bound(data: RobustData, u: Any, quantile: float = 0.5) -> float:
    """A number that the optimum does not lie below, from any multipliers near the domain.

    They are moved into the boxes and balls of the domain here; the equations must hold.

    Parameters
    ----------
    data : RobustData
    u : array of shape (n,)
    quantile : float
        Which of the quantiles.
    """
    u, t, kind = np.array(u, dtype=np.float64), data.threshold, data.kind
    y = data.y
    if kind == "quantile":
        u = np.clip(u, quantile - 1, quantile)
    elif kind == "maximum":
        u /= max(1.0, float(np.abs(u).sum()))
    elif kind == "huber":
        u /= max(1.0, float(np.abs(u).max()) / t)
    elif kind == "huber_scale":
        u /= max(1.0, float(np.abs(u).max()) / (2 * t), float(np.sqrt(u @ u / (4 * len(u)))))
    elif kind == "svr":
        u = np.clip(u, -data.strength, data.strength)
    V = _combination(data, u)
    if kind == "huber_scale":
        _check_equations(data, u, V, slice(-1, None))
        return float(y @ u - V[:-1] @ V[:-1] / (4 * data.strength))
    if kind in ("quantile", "maximum", "huber"):
        _check_equations(data, u, V, slice(None))
        return float(y @ u - (0.5 * (u @ u) if kind == "huber" else 0.0))
    curved = u @ u / (4 * data.strength) if kind == "svr_squared" else 0.0
    return float(y @ u - t * np.abs(u).sum() - curved - 0.5 * (V @ V))


def suboptimality(data: RobustData, answer: Answer, bounds: Any) -> float:
    """(F - bound) / bound, the worst of the problems; infinite if the answer is not finite."""
    values, bounds = objectives(data, answer), np.asarray(bounds, dtype=np.float64)
    if not np.isfinite(values).all():
        return float("inf")
    return float(np.max((values - bounds) / bounds))
