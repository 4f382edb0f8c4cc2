"""Good columns for best subsets by plain exchanges: a start that every contestant may have.

Also a price per column at which a search with a price should find as many columns as were asked
for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["good_columns", "price_per_column"]

Array = NDArray[np.float64]
_STARTS = 20


def _gains(X: Array, y: Array, inside: Any) -> tuple[Array, float]:
    """By how much each further column would lower the residual square, and that square."""
    Q = np.linalg.qr(X[:, inside])[0] if len(inside) else np.zeros((len(y), 0))
    residual = y - Q @ (Q.T @ y)
    rest = X - Q @ (Q.T @ X)
    sizes = np.einsum("ij,ij->j", rest, rest)
    free = sizes > 1e-8 * np.einsum("ij,ij->j", X, X)
    free[list(inside)] = False
    gains = np.where(free, (rest.T @ residual) ** 2 / np.where(free, sizes, 1.0), 0.0)
    return gains, float(residual @ residual)


def _exchanged(X: Array, y: Array, columns: list[int]) -> tuple[float, list[int]]:
    """Exchange one column at a time as long as that lowers the residual square."""
    current = _gains(X, y, columns)[1]
    while True:
        trials = []
        for out in columns:
            rest = [j for j in columns if j != out]
            gains, square = _gains(X, y, rest)
            best = int(np.argmax(gains))
            trials.append((square - gains[best], [*rest, best]))
        square, found = min(trials, key=lambda trial: trial[0])
        if square >= current * (1 - 1e-12):
            return current, columns
        current, columns = float(square), found


def good_columns(X: Array, y: Array, k: int, seed: int = 0) -> NDArray[np.intp]:
    """The best of exchanges from forward selection and from random starts; nothing is proven."""
    random = np.random.default_rng(seed)
    forward: list[int] = []
    for _ in range(k):
        forward.append(int(np.argmax(_gains(X, y, forward)[0])))
    # Exchanges from a start cost d k n each: many where columns are few.
    more = _STARTS if X.shape[1] <= 200 else 3
    starts = [random.choice(X.shape[1], k, replace=False).tolist() for _ in range(more)]
    starts.append(forward)
    best = min((_exchanged(X, y, start) for start in starts), key=lambda end: end[0])
    return np.sort(np.array(best[1], dtype=np.intp))


def price_per_column(X: Array, y: Array, columns: Any) -> float:
    """A price at which neither one column more nor one less pays, in units of half the square.

    The geometric mean of what the best further column gains and the worst of these loses. Where a
    weak signal makes the first larger than the second there is no such price; this one then lies
    between the two all the same.
    """
    columns = list(columns)
    gains, square = _gains(X, y, columns)
    losses = [_gains(X, y, [j for j in columns if j != out])[1] - square for out in columns]
    return 0.5 * float(np.sqrt(gains.max() * min(losses)))
