"""Where radial basis functions stand, and how wide they are by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

__all__ = ["choose_centres", "distances", "width_by_rule"]

Array = NDArray[Any]

# A regular grid of more points than this was not meant: it grows exponentially with the columns.
_LARGEST_GRID = 100_000


def distances(X: Any, centres: Array) -> Array:
    """Euclidean distances of all rows to all centres, from differences rather than products.

    ||x||^2 - 2 x.c + ||c||^2 would lose the digits of small distances far from the origin; sparse
    rows are compared block by block to keep the differences.
    """
    if not sparse.issparse(X):
        return cdist(X, centres)
    block = max(1, 10_000_000 // max(1, X.shape[1]))
    parts = [cdist(X[i : i + block].toarray(), centres) for i in range(0, X.shape[0], block)]
    return np.vstack(parts)


def choose_centres(kind: str, X: Any, count: int, random_state: Any) -> Array:
    """The centres: rows of the data, means of clusters, or a regular grid over the range."""
    if kind == "grid":
        return _grid(X, count)
    count = min(count, X.shape[0])
    random = check_random_state(random_state)
    if kind == "data":
        rows = np.sort(random.choice(X.shape[0], count, replace=False))
        chosen = X[rows]
        return chosen.toarray() if sparse.issparse(chosen) else chosen.copy()
    from sklearn.cluster import KMeans  # heavy: brings all of scikit-learn's clusterings

    different = _count_different(X, count)
    means = KMeans(min(count, different), n_init=3, random_state=random).fit(X)
    return means.cluster_centers_


def _count_different(X: Any, enough: int) -> int:
    """The number of different rows, counted no further than needed."""
    seen: set[bytes] = set()
    for i in range(X.shape[0]):
        row = X[i].toarray() if sparse.issparse(X) else X[i]
        seen.add((row + 0.0).tobytes())  # minus zero is zero
        if len(seen) >= enough:
            break
    return len(seen)


def _grid(X: Any, count: int) -> Array:
    d = X.shape[1]
    # The largest k with k^d <= count; the small amount guards a root such as 8^(1/3) = 1.9999...
    per_column = int(count ** (1.0 / d) + 1e-9)
    if per_column < 2 or per_column**d > _LARGEST_GRID:
        raise ValueError(
            f"A grid over {d} columns needs at least 2^{d} centres and at most {_LARGEST_GRID:,}; "
            f"n_centres={count} leaves {per_column} per column. Use centres='kmeans', whose number "
            "of centres does not grow with the columns."
        )
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    axes = [np.linspace(a, b, per_column) if b > a else np.array([a]) for a, b in zip(low, high)]
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.column_stack([axis.ravel() for axis in mesh])


def width_by_rule(rule: str, X: Any, centres: Array) -> float:
    """A width from the geometry of the centres.

    nearest: the mean distance of a centre to its two nearest neighbours (J. Moody, C. Darken, Fast
    learning in networks of locally-tuned processing units, Neural Computation 1, 1989), so that
    neighbours overlap. maximum: largest distance / sqrt(2 k) for k centres (S. Haykin, Neural
    Networks, section 5.13), neither too peaked nor too flat on the whole.
    """
    if len(centres) < 2:
        spread = float(distances(X, centres).std())
        return spread if spread > 0 else 1.0
    between = cdist(centres, centres)
    if rule == "maximum":
        width = between.max() / np.sqrt(2.0 * len(centres))
    else:
        np.fill_diagonal(between, np.inf)
        neighbours = min(2, len(centres) - 1)
        width = np.sort(between, axis=1)[:, :neighbours].mean()
    return float(width) if width > 0 else 1.0
