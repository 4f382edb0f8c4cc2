"""Radial basis functions: bumps at chosen or learned centres.

Where radial basis functions stand, and how wide they are by rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from threadpoolctl import threadpool_limits

from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.features.base import FeatureMap

Array = NDArray[Any]

# Widths tried by validation: around the rule, by factors of the square root of two, which changes
# the overlap of neighbours from almost none to almost constant functions.
_FACTORS = 2.0 ** np.arange(-3.0, 4.5, 0.5)
# Strengths among which each width is given its best one: bumps are at most 1, so that these reach
# from hardly any to overwhelming for any number of rows.
_STRENGTHS = np.geomspace(1e-8, 1e4, 25)
# Rows that k-means looks at for each centre: means of so many err by a sixteenth of the spread of
# a cluster, far less than its width.
_ROWS_PER_CENTRE = 256
# Products in a round of k-means, some tens of milliseconds, below which one thread does them.
_FOR_ONE_THREAD = 50_000_000


@parameters()
class RadialBasisFeatures(FeatureMap):
    """Gaussian bumps around centres: phi_j(x) = exp(-||x - c_j||^2 / (2 width^2)).

    A linear model on these features is a smooth function of x with as much detail as there are
    centres. Columns should have comparable scales: put a ``StandardScaler`` first otherwise.

    Parameters
    ----------
    centres : {"kmeans", "data", "grid"} or array-like of shape (k, d), default="kmeans"
        Means of clusters (of at most 256 rows per centre, drawn at random), rows of the data chosen
        at random (all of them if ``n_centres`` is at least their number), a regular grid over the
        range of each column, or given points.
    n_centres : int, default=20
        How many; for a grid, at most this many. Unused if centres are given.
    width : {"nearest", "maximum", "validation"} or float, default="nearest"
        A number; or the mean distance of a centre to its two nearest neighbours (Moody and Darken,
        1989); or the largest distance of two centres over sqrt(2 k) (Haykin); or the width whose
        ridge regression has the smallest leave-one-out error on y, for labels on their indicators.
    random_state : int, RandomState or None, default=None
        For k-means and for the choice of rows.

    Attributes
    ----------
    centres_ : array of shape (k, d)
    width_ : float
    widths_, width_errors_ : arrays
        With ``width="validation"``: the widths tried and their mean squared leave-one-out errors.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import RadialBasisFeatures
    >>> x = np.linspace(0.0, 1.0, 5)[:, None]
    >>> bumps = RadialBasisFeatures("grid", n_centres=3, width=0.25).fit(x)
    >>> bumps.centres_.ravel()
    array([0. , 0.5, 1. ])
    >>> bumps.transform([[0.5]]).round(3)
    array([[0.135, 1.   , 0.135]])
    """

    _takes_sparse = True
    centres: Any = given("kmeans", one_of("kmeans", "data", "grid"), "array-like")
    _: KW_ONLY
    n_centres: int = given(20, "int [1, inf)")
    width: Any = given("nearest", one_of("nearest", "maximum", "validation"), "(0, inf)")
    random_state: Any = given(None, "random_state")

    def _learn(self, X: Any, y: Any) -> None:
        self.centres_ = self._centres(X)
        if self.width == "validation":
            self.width_ = self._validated_width(X, y)
        elif isinstance(self.width, str):
            self.width_ = width_by_rule(self.width, X, self.centres_)
        else:
            self.width_ = float(self.width)

    def _centres(self, X: Any) -> Array:
        if isinstance(self.centres, str):
            return choose_centres(self.centres, X, self.n_centres, self.random_state)
        centres = np.asarray(self.centres, dtype=X.dtype)
        if centres.ndim != 2 or centres.shape[1] != X.shape[1] or not np.isfinite(centres).all():
            raise ValueError(
                f"centres must be a finite array with one row per centre and {X.shape[1]} columns, "
                f"as X has; got shape {centres.shape}."
            )
        return centres

    def _validated_width(self, X: Any, y: Any) -> float:
        """The width with the smallest leave-one-out error of ridge regression, in closed form."""
        from trueline.estimators.regression.ridge_cv import RidgeCV

        if y is None:
            raise ValueError(
                "width='validation' chooses the width by its error on y: call fit(X, y). "
                "width='nearest' needs no y."
            )
        Y = _targets(y, X.shape[0])
        squares = distances(X, self.centres_) ** 2
        self.widths_ = width_by_rule("nearest", X, self.centres_) * _FACTORS
        errors = [
            -RidgeCV(_STRENGTHS).fit(np.exp(squares / (-2.0 * width**2)), Y).best_score_
            for width in self.widths_
        ]
        self.width_errors_ = np.array(errors)
        return float(self.widths_[np.argmin(self.width_errors_)])

    def _map(self, X: Any) -> Array:
        scaled = distances(X, self.centres_) / self.width_
        return np.exp(-0.5 * scaled**2).astype(X.dtype, copy=False)

    def _names(self, inputs: Sequence[str]) -> list[str]:
        if len(inputs) == 1:
            return [f"bump({inputs[0]} at {centre[0]:.4g})" for centre in self.centres_]
        return [f"bump{j}" for j in range(len(self.centres_))]

    def _details(self) -> list[str]:
        how = self.width if isinstance(self.width, str) else "given"
        kind = self.centres if isinstance(self.centres, str) else "given"
        return [
            "map        exp(-||x - c||^2 / (2 width^2))",
            f"centres    {len(self.centres_)}, {kind}",
            f"width      {self.width_:.4g}, {how}",
        ]


def _targets(y: Any, n: int) -> Array:
    """Numbers as they are; labels as one indicator per class."""
    y = np.asarray(y)
    if len(y) != n:
        raise ValueError(f"X has {n} rows, but y has {len(y)}.")
    if y.ndim == 1 and type_of_target(y) in ("binary", "multiclass"):
        return (y[:, None] == np.unique(y)[None, :]).astype(np.float64)
    return y.astype(np.float64)


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

    enough = _ROWS_PER_CENTRE * count
    if X.shape[0] > enough:
        X = X[np.sort(random.choice(X.shape[0], enough, replace=False))]
    different = _count_different(X, count)
    means = KMeans(min(count, different), n_init=3, random_state=random)
    # Threads that wait for each other spin: of few rows they take fifty times the work.
    alone = X.shape[0] * X.shape[1] * count <= _FOR_ONE_THREAD
    with threadpool_limits(1) if alone else nullcontext():
        return means.fit(X).cluster_centers_


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
