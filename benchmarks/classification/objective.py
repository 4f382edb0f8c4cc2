r"""What linear classifiers are worth: the same functions for every contestant.

Two classes, with y_i = -1 or 1 and margins m_i = y_i (x_i.w + b), sums over the rows::

    F(w, b) = R(w) + sum loss(m_i)        R = ||w||^2 / 2, for the l1 penalty ||w||_1

    logistic         log(1 + exp(-m))
    hinge            max(0, 1 - m)
    squared_hinge    max(0, 1 - m)^2

Each loss is a largest value over u of h(u) - u m. So any u in its domain gives a lower bound on the
optimum (weak duality), with v = sum u_i y_i x_i, and sum u_i y_i = 0 if there is an intercept::

    F >= sum h(u_i) - ||v||^2 / 2         for the l1 penalty: sum h(u_i), if max abs(v) <= 1

    logistic         h = - u log u - (1 - u) log(1 - u),   0 <= u <= 1
    hinge            h = u,                                0 <= u <= 1
    squared_hinge    h = u - u^2 / 4,                      0 <= u

Softmax of K classes, with p_i any probabilities of the classes, e_i the one that is true, and
V = sum x_i (e_i - p_i)^T::

    F(W) = ||W||^2 / 2 + sum (log sum_k exp(z_ik) - z_iy)  >=  sum entropy(p_i) - ||V||^2 / 2

One-vs-rest and one-vs-one are several problems of two classes, each judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, logsumexp

from benchmarks.objective import Answer, Data

__all__ = ["LOSSES", "SCHEMES", "ClassData", "bounds", "two_classes", "objectives", "suboptimality"]

Array = NDArray[np.float64]

LOSSES = ("logistic", "hinge", "squared_hinge", "softmax")
SCHEMES = ("two", "rest", "one")

# Multipliers are balanced to this, relative to their sum: that is rounding.
_BALANCE = 1e-11


@dataclass(frozen=True)
class ClassData(Data):
    """Data, and what is minimised.

    Attributes
    ----------
    loss : str
        One of LOSSES.
    penalty : {"l2", "l1"}
    scheme : str
        One of SCHEMES: two classes (-1 and 1; softmax takes any labels), one-vs-rest, one-vs-one.
    """

    loss: str = "logistic"
    penalty: str = "l2"
    scheme: str = "two"

    @property
    def count(self) -> int:
        """How many columns of coefficients there are."""
        classes = len(np.unique(self.y))
        if self.loss == "softmax" or self.scheme == "rest":
            return classes
        return classes * (classes - 1) // 2 if self.scheme == "one" else 1


def two_classes(data: ClassData) -> Iterator[tuple[Any, Array]]:
    """Rows and labels, -1 and 1, of the problems of two classes, in scikit-learn's order."""
    classes = np.unique(data.y)
    if data.scheme == "two":
        yield data.X, data.y
    elif data.scheme == "rest":
        for label in classes:
            yield data.X, np.where(data.y == label, 1.0, -1.0)
    else:
        for first, second in combinations(classes, 2):
            rows = np.flatnonzero((data.y == first) | (data.y == second))
            yield data.X[rows], np.where(data.y[rows] == second, 1.0, -1.0)


def _columns(data: ClassData, answer: Answer) -> tuple[Array, Array] | None:
    """Coefficients and intercepts, one column for each problem or class; None if they are wrong."""
    d, k = data.X.shape[1], data.count
    W, b = (np.asarray(part, dtype=np.float64) for part in (answer.coef, answer.intercept))
    if W.size != d * k or len(W) != d or b.size not in (1, k):
        return None
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        return None
    return W.reshape(d, k), np.broadcast_to(b.ravel(), k)


def _losses(loss: str, m: Array) -> Array:
    if loss == "logistic":
        return np.logaddexp(0.0, -m)
    return np.maximum(0.0, 1.0 - m) ** (2 if loss == "squared_hinge" else 1)


def objectives(data: ClassData, answer: Answer) -> Array:
    """F of each problem; not finite if the answer is not, or is of the wrong shape."""
    found = _columns(data, answer)
    if found is None:
        return np.full(1, np.nan)
    W, b = found
    if data.loss == "softmax":
        Z = data.X @ W + b
        own = Z[np.arange(len(Z)), np.searchsorted(np.unique(data.y), data.y)]
        return np.array([0.5 * float((W**2).sum()) + float((logsumexp(Z, axis=1) - own).sum())])
    sizes = np.abs(W).sum(axis=0) if data.penalty == "l1" else 0.5 * (W**2).sum(axis=0)
    fits = [
        _losses(data.loss, y * (X @ w + level)).sum()
        for (X, y), w, level in zip(two_classes(data), W.T, b, strict=True)
    ]
    return sizes + np.array(fits)


def _balanced(y: Array, z: Array) -> Array:
    """Multipliers of the logistic loss at the best intercept, by Newton's method."""
    level = 0.0
    for _ in range(50):
        u = expit(-y * (z + level))
        slope = float(y @ u)
        if abs(slope) <= 0.1 * _BALANCE * u.sum():
            break
        level += slope / float(u @ (1.0 - u))
    return expit(-y * (z + level))


def _multipliers(data: ClassData, y: Array, z: Array) -> Array:
    """The u at which the bound meets F, if z is that of the solution; not for the hinge loss."""
    if data.loss == "logistic":
        return _balanced(y, z) if data.fit_intercept else expit(-y * z)
    return 2.0 * np.maximum(0.0, 1.0 - y * z)


def _bound(data: ClassData, X: Any, y: Array, u: Array) -> float:
    """The lower bound of the module's text.

    Raises
    ------
    ValueError
        If there is an intercept and the multipliers are not balanced.
    """
    u = np.maximum(u, 0.0) if data.loss == "squared_hinge" else np.clip(u, 0.0, 1.0)
    if data.fit_intercept and not abs(y @ u) <= _BALANCE * u.sum():
        raise ValueError("The multipliers are not balanced: no bound.")
    v = np.asarray(X.T @ (y * u)).ravel()
    if data.penalty == "l1":
        u = u / max(1.0, float(np.abs(v).max()))
    if data.loss == "logistic":
        value = float((entr(u) + entr(1.0 - u)).sum())
    else:
        value = float(u.sum() - (0.25 * (u @ u) if data.loss == "squared_hinge" else 0.0))
    return value - (0.0 if data.penalty == "l1" else 0.5 * float(v @ v))


def bounds(data: ClassData, answer: Answer, multipliers: Any = None) -> Array:
    """Proven lower bounds of all problems, near F if the answer is near the optimum.

    Parameters
    ----------
    data : ClassData
    answer : Answer
    multipliers : array of shape (n,), optional
        The hinge loss, which has corners, needs some.
    """
    found = _columns(data, answer)
    assert found is not None
    W, b = found
    if data.loss == "softmax":
        Z = data.X @ W + b
        P = np.exp(Z - logsumexp(Z, axis=1)[:, None])
        V = data.X.T @ ((data.y[:, None] == np.unique(data.y)) - P)
        return np.array([float(entr(P).sum()) - 0.5 * float((V**2).sum())])
    return np.array(
        [
            _bound(
                data,
                X,
                y,
                _multipliers(data, y, X @ w + level) if multipliers is None else multipliers,
            )
            for (X, y), w, level in zip(two_classes(data), W.T, b, strict=True)
        ]
    )


def suboptimality(data: ClassData, answer: Answer, least: Any) -> float:
    """(F - bound) / bound, the worst of the problems; infinite if the answer is not finite."""
    values, least = objectives(data, answer), np.asarray(least, dtype=np.float64)
    if not np.isfinite(values).all():
        return float("inf")
    return float(np.max((values - least) / least))
