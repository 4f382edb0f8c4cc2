"""Where a classifier changes its mind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, MARKERS, Array, Display
from trueline.plots.views import View, choose_view

# Probabilities along which lines are drawn.
_LEVELS = (0.01, 0.1, 0.25, 0.75, 0.9, 0.99)


@dataclass(repr=False)
class BoundaryDisplay(Display):
    """Regions of the classes, the boundary between them, and the rows; mistakes are ringed.

    With one coordinate the score is drawn above it; with two, the plane is coloured. For two
    classes and a linear model the weight vector stands on the boundary and points to the second
    class, and dashed lines show the margin.

    Parameters
    ----------
    points : array of shape (n, 1) or (n, 2)
        The rows in the coordinates of the picture.
    labels : array of shape (n,)
        The class of each row, as a position in ``classes``.
    mistaken : array of bool of shape (n,)
    classes : sequence
        The classes' names.
    grid : tuple of one or two arrays
        The ticks of a grid over the picture.
    regions : array of int
        The class predicted on the grid, of shape (columns,) or (rows, columns).
    scores : array of the same shape, optional
        The score on the grid, zero at the boundary (two classes only).
    normal : array of shape (2,), optional
        The weight vector in the coordinates of the picture.
    margin : float, optional
        The score at the dashed lines.
    names : sequence of str, default=("x0", "x1")
        Of the coordinates.
    probabilities : array of the shape of ``regions`` and one axis more, optional
        Those of all classes on the grid: the surer the classifier, the stronger the colour.
    support : array of bool of shape (n,), optional
        Support vectors, marked by squares.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from trueline.plots import BoundaryDisplay
    >>> from sklearn.linear_model import Perceptron
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> X, y = X.iloc[:100, [0, 2]], y[:100]
    >>> display = BoundaryDisplay.from_estimator(Perceptron().fit(X, y), X, y)
    >>> display.ax_.get_xlabel(), int(display.mistaken.sum())
    ('sepal length (cm)', 0)
    """

    points: Array
    labels: NDArray[np.intp]
    mistaken: NDArray[np.bool_]
    classes: Any
    grid: tuple[Array, ...]
    regions: NDArray[np.intp]
    scores: Array | None = None
    normal: Array | None = None
    margin: float | None = None
    names: tuple[str, ...] = ("x0", "x1")
    probabilities: Array | None = None
    support: NDArray[np.bool_] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        view: str = "auto",
        features: tuple[Any, ...] | None = None,
        at: ArrayLike | None = None,
        margin: float | str | None = "auto",
        resolution: int = 200,
        max_points: int = 2000,
        shade: str = "classes",
        support: bool = False,
        **arguments: Any,
    ) -> BoundaryDisplay:
        """Draw a fitted classifier over data.

        Parameters
        ----------
        estimator : fitted classifier
            Also a pipeline: boundaries need not be straight.
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        view : {"auto", "plane", "projection"}, default="auto"
            What to do with more than two columns. ``"plane"`` cuts through two of them and holds
            the others fixed. ``"projection"`` (linear models, two classes) draws the signed
            distance to the boundary against the direction in which the rows vary most along it,
            so that every row is on its true side. ``"auto"`` projects where it can.
        features : tuple of one or two columns, optional
            Numbers or names, for ``"plane"``; by default those with the largest weights.
        at : array-like of shape (d,), optional
            Where the other columns are held; by default at their means.
        margin : float, "auto" or None
            The score at which dashed lines are drawn; ``"auto"`` takes the smallest in the data if
            there is no mistake (then no row lies between the lines).
        resolution : int, default=200
            Grid points along an axis.
        max_points : int, default=2000
            With more rows, an even selection is drawn.
        shade : {"classes", "probabilities"}, default="classes"
            Colour regions evenly, or by the probabilities of ``predict_proba`` with lines of equal
            probability (two coordinates).
        support : bool, default=False
            For support vector machines drawn over the rows they were fitted to: mark the support
            vectors, and draw the margin at scores of -1 and +1 unless ``margin`` says otherwise.
        **arguments
            For :meth:`plot`.
        """
        shared.check_choice("view", view, ("auto", "plane", "projection"))
        shared.check_choice("shade", shade, ("classes", "probabilities"))
        view = "plane" if shade == "probabilities" and view == "auto" else view
        seen = choose_view(estimator, X, y, view, features, at, max_points)
        ticks = _ticks(seen.points, resolution)
        regions, scores = _on_grid(seen, ticks)
        if support and margin == "auto":
            margin = 1.0 if scores is not None else None
        level = _margin_level(seen, margin) if scores is not None else None
        return cls(
            seen.points,
            seen.labels,
            seen.mistaken,
            seen.classes,
            ticks,
            regions,
            scores,
            seen.normal,
            level,
            seen.names,
            _probabilities(seen, ticks, estimator) if shade == "probabilities" else None,
            _support(seen, X, estimator) if support else None,
        ).plot(**arguments)

    def plot(self, ax: Any = None, *, arrow: bool = True) -> BoundaryDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        arrow : bool, default=True
            Whether to draw the weight vector.

        Returns
        -------
        self : BoundaryDisplay
        """
        if self.points.shape[1] not in (1, 2):
            raise ValueError(f"points must have one or two columns, got {self.points.shape[1]}.")
        ax = shared.axes(ax)
        if self.points.shape[1] == 1:
            self._line(ax)
        else:
            self._plane(ax, arrow)
        # Outside the picture: regions fill it to its edges, and rows may be anywhere.
        shared.legend_below(ax, 3)
        return self._drawn_on(ax)

    # --- one coordinate -------------------------------------------------------------------------

    def _line(self, ax: Any) -> None:
        """The score over the coordinate; rows at the height of their class."""
        (x,) = self.grid
        starts = np.flatnonzero(np.diff(self.regions, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(x)], strict=True):
            colour = _colour(self.regions[start])
            ax.axvspan(x[start], x[min(stop, len(x) - 1)], color=colour, alpha=0.12, linewidth=0)
        heights = self.labels.astype(float)
        if self.scores is not None:
            # The score is scaled into the strip of the classes: its zero and its sign are read.
            size = np.abs(self.scores).max() or 1.0
            ax.plot(x, self.scores / size, color="black", linewidth=1.4, label="score (scaled)")
            ax.axhline(0.0, color=GREY, linewidth=0.8)
            heights = np.where(self.labels == 1, 1.0, -1.0)
        for edge in x[starts[1:]]:
            ax.axvline(edge, color="black", linestyle="--", linewidth=1.0)
        self._rows(ax, np.column_stack([self.points[:, 0], heights]))
        ax.set_xlim(x[0], x[-1])
        ax.set_yticks(np.unique(heights), [str(self.classes[k]) for k in np.unique(self.labels)])
        ax.set(xlabel=self.names[0], ylabel="class")

    # --- two coordinates ------------------------------------------------------------------------

    def _plane(self, ax: Any, arrow: bool) -> None:
        x, y = self.grid
        if self.probabilities is None:
            self._regions(ax, x, y)
        else:
            self._shades(ax, x, y)
        if self.scores is not None:
            self._contours(ax)
        if _comparable(np.ptp(x), np.ptp(y)):
            ax.set_aspect("equal")
        if arrow and self.normal is not None:
            self._arrow(ax)
        self._rows(ax, self.points)
        ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel=self.names[0], ylabel=self.names[1])

    def _regions(self, ax: Any, x: Array, y: Array) -> None:
        """Every region in the colour of its class."""
        from matplotlib.colors import ListedColormap

        count = len(self.classes)
        ax.imshow(
            self.regions,
            extent=(x[0], x[-1], y[0], y[-1]),
            origin="lower",
            aspect="auto",
            cmap=ListedColormap([_colour(k) for k in range(count)]),
            vmin=-0.5,
            vmax=count - 0.5,
            alpha=0.14,
            interpolation="nearest",
            zorder=0,
        )

    def _shades(self, ax: Any, x: Array, y: Array) -> None:
        """Colours of the classes mixed by their probabilities, with lines of equal probability."""
        from matplotlib.colors import to_rgb

        given = np.asarray(self.probabilities)
        k = given.shape[-1]
        # One for a sure classifier, zero for one that does not know.
        sure = (given.max(axis=-1, keepdims=True) - 1 / k) / (1 - 1 / k)
        mixed = given @ np.array([to_rgb(_colour(j)) for j in range(k)])
        colours = 1 - 0.4 * np.clip(sure, 0, 1) * (1 - mixed)
        extent = (x[0], x[-1], y[0], y[-1])
        ax.imshow(colours, extent=extent, origin="lower", aspect="auto", zorder=0)
        of, levels = (given[..., 1], _LEVELS) if k == 2 else (given.max(axis=-1), _LEVELS[3:])
        if of.min() < levels[-1] and of.max() > levels[0]:
            lines = ax.contour(x, y, of, levels=levels, colors=GREY, linewidths=0.8)
            ax.clabel(lines, fmt=lambda level: f"{100 * level:.0f} %", fontsize="small")

    def _contours(self, ax: Any) -> None:
        x, y = self.grid
        scores = np.asarray(self.scores)
        if scores.min() < 0 < scores.max():
            ax.contour(x, y, scores, levels=[0.0], colors="black", linewidths=1.6)
            ax.plot([], [], color="black", linewidth=1.6, label="boundary")
        if self.margin:
            levels = [-self.margin, self.margin]
            if scores.min() < levels[0] or scores.max() > levels[1]:
                style = {"colors": "black", "linewidths": 0.9, "linestyles": "dashed"}
                ax.contour(x, y, scores, levels=levels, **style)
                ax.plot([], [], "--", color="black", linewidth=0.9, label="margin")

    def _arrow(self, ax: Any) -> None:
        """The weight vector, from the point of the boundary nearest to the middle of the rows."""
        foot = self._foot()
        normal = np.asarray(self.normal, dtype=float)
        length = float(np.hypot(*normal))
        if foot is None or length == 0.0:
            return
        x, y = self.grid
        spread = np.ptp(x), np.ptp(y)
        reach = 0.18 * (min(spread) if _comparable(*spread) else spread[0])
        tip = foot + reach * normal / length
        style = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.8, "mutation_scale": 16}
        ax.annotate("", xy=tip, xytext=foot, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})
        ax.annotate("w", xy=tip, xytext=(5, 5), textcoords="offset points", fontweight="bold")

    def _foot(self) -> Array | None:
        """The grid point with the smallest score near the middle of the rows."""
        x, y = self.grid
        mesh_x, mesh_y = np.meshgrid(x, y)
        middle = self.points.mean(axis=0)
        change = np.zeros(mesh_x.shape, dtype=bool)
        signs = np.asarray(self.scores) > 0
        change[:, 1:] |= signs[:, 1:] != signs[:, :-1]
        change[1:, :] |= signs[1:, :] != signs[:-1, :]
        if not change.any():
            return None
        distance = ((mesh_x - middle[0]) / np.ptp(x)) ** 2 + ((mesh_y - middle[1]) / np.ptp(y)) ** 2
        row, column = np.unravel_index(
            np.argmin(np.where(change, distance, np.inf)), distance.shape
        )
        return np.array([x[column], y[row]])

    def _rows(self, ax: Any, where: Array) -> None:
        # Few rows are drawn large: the corners of a square are the whole picture.
        size = float(np.clip(2600 / max(1, len(where)), 26, 220))
        for k in range(len(self.classes)):
            rows = self.labels == k
            ax.scatter(
                where[rows, 0],
                where[rows, 1],
                s=size,
                color=_colour(k),
                marker=MARKERS[k % len(MARKERS)],
                edgecolors="white",
                linewidths=0.5,
                label=str(self.classes[k]),
                zorder=3,
            )
        count = int(self.mistaken.sum())
        if count:
            wrong = where[self.mistaken]
            ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1}
            label = f"{count} mistake{'' if count == 1 else 's'}"
            ax.scatter(wrong[:, 0], wrong[:, 1], s=3 * size, label=label, zorder=4, **ring)
        if self.support is not None and self.support.any():
            held, many = where[self.support], int(self.support.sum())
            square = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.9, "zorder": 4}
            label = f"{many} support vector{'' if many == 1 else 's'}"
            ax.scatter(held[:, 0], held[:, 1], s=3 * size, marker="s", label=label, **square)


def _colour(k: int) -> str:
    return COLOURS[int(k) % len(COLOURS)]


def _comparable(first: float, second: float) -> bool:
    """Whether both axes can have one scale: only then is the weight vector seen as a normal."""
    return bool(0.25 < first / second < 4.0)


def _ticks(points: Array, resolution: int) -> tuple[Array, ...]:
    """A grid that surrounds the rows with some air."""
    low, high = shared.limits(points, 0.12)
    spread = high - low
    if len(spread) == 2 and _comparable(*spread):
        # Both axes have one scale: the shorter one is filled up, or the picture were a strip.
        more = np.maximum(0.7 * spread.max() - spread, 0.0) / 2
        low, high = low - more, high + more
    count = max(resolution, 2)
    return tuple(np.linspace(a, b, count) for a, b in zip(low, high, strict=True))


def _on_grid(seen: View, ticks: tuple[Array, ...]) -> tuple[NDArray[np.intp], Array | None]:
    """Predicted classes and scores at all points of the grid."""
    mesh = np.meshgrid(*ticks)
    at = np.column_stack([part.ravel() for part in mesh])
    shape = mesh[0].shape
    scores = seen.score(at)
    regions = seen.predict(at) if scores is None else (scores > 0).astype(np.intp)
    return regions.reshape(shape), None if scores is None else scores.reshape(shape)


def _probabilities(seen: View, ticks: tuple[Array, ...], estimator: Any) -> Array:
    """Of all classes, at all points of the grid."""
    if len(ticks) != 2:
        raise ValueError("shade='probabilities' needs two coordinates to colour a plane.")
    if seen.probability is None:
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba in this view: shade='probabilities' "
            "needs probabilities, and view='plane'."
        )
    mesh = np.meshgrid(*ticks)
    found = seen.probability(np.column_stack([part.ravel() for part in mesh]))
    return found.reshape(*mesh[0].shape, -1)


def _support(seen: View, X: Any, estimator: Any) -> NDArray[np.bool_]:
    """Which of the drawn rows are support vectors."""
    numbers = getattr(estimator, "support_", None)
    if numbers is None or (len(numbers) and np.max(numbers) >= X.shape[0]):
        raise ValueError(
            "support=True needs a support vector machine (with support_) and the rows that it was "
            "fitted to."
        )
    assert seen.rows is not None
    return np.isin(seen.rows, numbers)


def _margin_level(seen: View, margin: float | str | None) -> float | None:
    if margin is None or seen.row_scores is None:
        return None
    if margin != "auto":
        return float(margin)
    if seen.mistaken.any() or seen.normal is None:
        return None
    return float(np.abs(seen.row_scores).min())


def plot_boundary(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, **arguments: Any
) -> BoundaryDisplay:
    """Draw the decision boundary of a fitted classifier; see :class:`BoundaryDisplay`.

    Keyword arguments go to :meth:`BoundaryDisplay.from_estimator`.
    """
    return BoundaryDisplay.from_estimator(estimator, X, y, ax=ax, **arguments)
