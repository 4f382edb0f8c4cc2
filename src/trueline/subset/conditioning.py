r"""How nearly dependent the columns of a support can be.

With more columns than rows, and no squared penalty, some combination of columns fits anything, and
no convex relaxation bounds what k of them can do: it would have to rule out supports that are
nearly dependent. That is hard in itself (A. M. Tillmann, M. E. Pfetsch, "The computational
complexity of the restricted isometry property", IEEE Trans. Inf. Theory 60 (2014) 1248-1259). So a
proof is then given for the supports whose correlation matrix has no eigenvalue below a stated
delta, and delta is the smallest eigenvalue that exchange descents find among all supports:

    delta  ~  min over |S| = k of the smallest eigenvalue of R_SS.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["correlation", "least_eigenvalue"]

Array = NDArray[np.float64]
Support = NDArray[np.int64]

_STARTS = 30
_ROUNDS = 10


def correlation(gram: Array) -> Array:
    """The Gram matrix of columns scaled to norm one; columns of zeros stay so."""
    size = np.sqrt(gram.diagonal())
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    R: Array = gram * scale[:, None] * scale
    return R


def _smallest(R: Array, support: Support) -> tuple[float, Array]:
    values, vectors = np.linalg.eigh(R[np.ix_(support, support)])
    return float(values[0]), vectors[:, 0]


def _most_aligned(R: Array, support: Support) -> int:
    """The column that lowers the smallest eigenvalue most, to first order."""
    pull = np.abs(R[support].T @ _smallest(R, support)[1])
    pull[support] = -1.0
    return int(np.argmax(pull))


def least_eigenvalue(R: Array, k: int, given: Support) -> float:
    """The smallest eigenvalue found among the supports of k columns.

    Parameters
    ----------
    R : array of shape (d, d)
        Correlations of the columns that may enter.
    k : int
    given : array of int
        One support to start from; its own smallest eigenvalue is never below what is returned.
    """
    d = len(R)
    k = min(k, d)
    if k <= 1:
        return 1.0
    upper = np.abs(np.triu(R, 1))
    # Start from the most correlated pairs, each at most once per row.
    rows = np.argsort(-upper.max(axis=1), kind="stable")[:_STARTS]
    starts = [np.array([i, np.argmax(upper[i])]) for i in rows]
    least = _smallest(R, given)[0] if len(given) else 1.0
    for support in starts:
        while len(support) < k:
            support = np.append(support, _most_aligned(R, support))
        least = min(least, _descend(R, support))
    return max(least, 0.0)


def _descend(R: Array, support: Support) -> float:
    """Exchange columns while the smallest eigenvalue falls."""
    value = _smallest(R, support)[0]
    for _ in range(_ROUNDS):
        before = value
        for i in range(len(support)):
            rest = np.delete(support, i)
            trial = np.append(rest, _most_aligned(R, rest))
            reached = _smallest(R, trial)[0]
            if reached < value - 1e-12:
                support, value = trial, reached
        if value == before:
            break
    return value
