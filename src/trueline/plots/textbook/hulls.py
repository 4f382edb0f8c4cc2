"""The convex hulls of two classes: a line between them, or a point that both share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from trueline.estimators.classification.separability import separability
from trueline.plots.shared import COLOURS, Array, Display, axes, fitted, legend, limits, names_of
from trueline.separation.separate import Separability


@dataclass(repr=False)
class HullDisplay(Display):
    """Rows of two classes and their hulls, which touch if and only if no line separates them.

    Parameters
    ----------
    X : array of shape (n, 2)
    y : array of shape (n,)
        Two classes.
    coef : array of shape (2,), optional
        The line w.x + b = 0, if it is to be drawn.
    intercept : float, default=0.0
    common_point : array of shape (2,), optional
        What both hulls share.
    rows : array of int, optional
        The rows of which it is a mixture.
    names : pair of str, optional
        Of the columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import separability
    >>> from trueline.plots import plot_hulls
    >>> X = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 0.0]])
    >>> y = np.array(["a", "a", "b", "b"])
    >>> plot_hulls(separability(X, y), X, y).common_point
    array([1., 1.])
    """

    X: ArrayLike
    y: ArrayLike
    coef: ArrayLike | None = None
    intercept: float = 0.0
    common_point: ArrayLike | None = None
    rows: NDArray[np.integer] | None = None
    names: Sequence[str] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **arguments: Any) -> HullDisplay:
        """Draw the answer of ``separability``, or the line of a linear classifier.

        Parameters
        ----------
        estimator : Separability, or fitted linear classifier of two columns and two classes
        X : array-like of shape (n, 2)
        y : array-like of shape (n,)
        **arguments
            For :meth:`plot`.
        """
        names: Any = getattr(X, "columns", None)
        verdict, line = estimator, None
        if not isinstance(estimator, Separability):
            model, names, transform = fitted(estimator)
            X = transform(X)
            verdict = separability(X, y)
            line = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        A = np.asarray(X, dtype=float)
        if A.shape[1:] != (2,) or len(verdict.classes) != 2:
            raise ValueError("Hulls are drawn for two columns and two classes.")
        if line is None and verdict.is_separable:
            line = np.ravel(verdict.coef), float(verdict.intercept)
        joint = verdict.common_point if len(verdict.common_point) else None
        coef, intercept = line or (None, 0.0)
        return cls(
            A, y, coef, intercept, joint, verdict.rows, None if names is None else list(names)
        ).plot(**arguments)

    def plot(self, ax: Any = None) -> HullDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : HullDisplay
        """
        X, y = np.asarray(self.X, dtype=float), np.asarray(self.y)
        names = names_of(self.names, 2)
        ax = axes(ax)
        for number, label in enumerate(np.unique(y)):
            own, colour = X[y == label], COLOURS[number]
            corners = hull(own)
            ax.fill(*corners.T, facecolor=colour, alpha=0.15, linewidth=0)
            ax.plot(*np.vstack([corners, corners[:1]]).T, color=colour, linewidth=1.5)
            marker = "os"[number % 2]
            style = {"s": 28, "marker": marker, "color": colour, "edgecolors": "white"}
            ax.scatter(*own.T, linewidths=0.5, label=str(label), zorder=3, **style)
        low, high = limits(X, 0.1)
        if self.coef is not None:
            ends = _line(np.asarray(self.coef, float), self.intercept, low, high)
            ax.plot(*ends.T, color="black", linewidth=1.8, label="line")
        if self.common_point is not None:
            self._mixture(ax, X, y)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=names[0], ylabel=names[1])
        legend(ax, "best")
        return self._drawn_on(ax)

    def _mixture(self, ax: Any, X: Array, y: NDArray[Any]) -> None:
        """The common point, and the rows that it is made of."""
        point = np.asarray(self.common_point, dtype=float)
        rows = np.zeros(0, dtype=int) if self.rows is None else np.asarray(self.rows)
        for number, label in enumerate(np.unique(y[rows])):
            corners = hull(X[rows[y[rows] == label]])
            said = None if number else "rows it is a mixture of"
            style = {"color": "black", "linewidth": 1.0, "label": said}
            ax.plot(*np.vstack([corners, corners[:1]]).T, "--", **style)
        style = {"s": 160, "marker": "*", "color": COLOURS[1], "edgecolors": "black"}
        ax.scatter(*point, linewidths=0.8, label="in both hulls", zorder=5, **style)


def hull(points: Array) -> Array:
    """The corners of the convex hull in order; of points on a line, both ends.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.plots.textbook.hulls import hull
    >>> len(hull(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])))
    3
    >>> hull(np.array([[1.0, 1.0], [0.0, 0.0], [3.0, 3.0]]))
    array([[0., 0.],
           [3., 3.]])
    """
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        order = np.lexsort(points.T[::-1])
        return np.asarray(points[order[[0, -1]]])


def _line(w: Array, b: float, low: Array, high: Array) -> Array:
    """Two points of w.x + b = 0 beyond the limits."""
    middle = (low + high) / 2
    foot = middle - (w @ middle + b) / (w @ w) * w
    along = np.array([-w[1], w[0]]) / np.linalg.norm(w)
    reach = 2.0 * float(np.linalg.norm(high - low))
    return np.stack([foot - reach * along, foot + reach * along])


def plot_hulls(estimator: Any, X: Any, y: ArrayLike, ax: Any = None) -> HullDisplay:
    """Draw the hulls of two classes, and what separates or joins them; see :class:`HullDisplay`.

    Parameters
    ----------
    estimator : Separability, or fitted linear classifier of two columns and two classes
    X : array-like of shape (n, 2)
    y : array-like of shape (n,)
    ax : matplotlib Axes, optional

    Returns
    -------
    display : HullDisplay
    """
    return HullDisplay.from_estimator(estimator, X, y, ax=ax)
