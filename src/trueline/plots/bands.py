"""Bands over the data: a fan of quantile lines, and the narrowest band that holds every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, Array, Display

_GRID = 200


@dataclass(repr=False)
class QuantileFanDisplay(Display):
    """Quantile lines over one feature: the middle one strong, bands between pairs shaded.

    Parameters
    ----------
    feature, target : arrays of shape (n,)
        The data.
    grid : array of shape (m,)
        Values of the feature, ascending.
    curves : array of shape (m, k)
        The quantiles there.
    quantiles : array of shape (k,)
    name : str, default="x"
        Of the feature.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import QuantileRegressor
    >>> from trueline.plots import QuantileFanDisplay
    >>> X = np.arange(50.0).reshape(-1, 1)
    >>> y = X[:, 0] + np.tile([0.0, 3.0, 1.0, 4.0, 2.0], 10)
    >>> model = QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0).fit(X, y)
    >>> display = QuantileFanDisplay.from_estimator(model, X, y)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['data', '10% to 90%', 'median']
    """

    feature: ArrayLike
    target: ArrayLike
    grid: ArrayLike
    curves: ArrayLike
    quantiles: ArrayLike
    name: str = "x"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        feature: int | str | None = None,
        **arguments: Any,
    ) -> QuantileFanDisplay:
        """Predict over a grid and draw.

        Parameters
        ----------
        estimator : fitted QuantileRegressor
            Of one or several quantiles.
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
        feature : int or str, optional
            The column to draw over, if there are several; the others rest at their medians.
        **arguments
            For :meth:`plot`.
        """
        check_is_fitted(estimator)
        d = np.shape(X)[1]
        if feature is None and d > 1:
            raise ValueError(f"There are {d} columns: say over which to draw with feature=...")
        names = shared.names_of(getattr(estimator, "feature_names_in_", None), d)
        j = shared.column_number(feature or 0, names)
        column, grid, frame, name = shared.over_feature(X, j, _GRID)
        curves = np.asarray(estimator.predict(frame), dtype=float).reshape(_GRID, -1)
        quantiles = np.atleast_1d(np.asarray(getattr(estimator, "quantile", 0.5), dtype=float))
        return cls(column, y, grid, curves, quantiles, name).plot(**arguments)

    def plot(self, ax: Any = None) -> QuantileFanDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : QuantileFanDisplay
        """
        grid, curves = np.asarray(self.grid, float), np.asarray(self.curves, float)
        quantiles = np.asarray(self.quantiles, float)
        if curves.shape != (len(grid), len(quantiles)):
            raise ValueError(
                f"curves must have one row for each of {len(grid)} grid values and one column for "
                f"each of {len(quantiles)} quantiles, got shape {curves.shape}."
            )
        ax = shared.axes(ax)
        alpha = 0.6 if np.size(self.feature) <= 500 else 0.3
        shared.scatter_rows(ax, self.feature, self.target, s=12, color=GREY, alpha=alpha)
        order = np.argsort(quantiles, kind="stable")
        quantiles, curves = quantiles[order], curves[:, order]
        k = len(quantiles)
        for low in range(k // 2):
            high = k - 1 - low
            label = f"{_percent(quantiles[low])} to {_percent(quantiles[high])}"
            shade = {"color": COLOURS[0], "alpha": 0.16, "linewidth": 0, "label": label}
            ax.fill_between(grid, curves[:, low], curves[:, high], **shade)
        for number in range(k):
            is_middle = 2 * number + 1 == k
            name = _middle(quantiles[number]) if is_middle else None
            width, colour = (2.2, COLOURS[1]) if is_middle else (0.9, COLOURS[0])
            ax.plot(grid, curves[:, number], color=colour, linewidth=width, label=name)
        ax.set(xlabel=self.name, ylabel="target")
        shared.legend(ax, "best")
        return self._drawn_on(ax)


def _percent(q: float) -> str:
    return f"{100 * q:.4g}%"


def _middle(q: float) -> str:
    return "median" if q == 0.5 else f"quantile {q:g}"


def plot_quantile_fan(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, *, feature: int | str | None = None
) -> QuantileFanDisplay:
    """Draw the quantiles of a fitted model over the data; see :class:`QuantileFanDisplay`."""
    return QuantileFanDisplay.from_estimator(estimator, X, y, feature=feature, ax=ax)


@dataclass(repr=False)
class AlternationDisplay(Display):
    """Data, fit, the band of the largest error, and the rows on its edges with their signs.

    Parameters
    ----------
    x : array of shape (n,)
        What the rows are drawn over: a single feature, or anything else, such as time.
    y : array of shape (n,)
    predicted : array of shape (n,)
    alternation : array of int
        The rows that carry the fit.
    dual : array of float
        Their multipliers: the size of a mark grows with them, their signs are written beside.
    name : str, default="x"
        Of the horizontal axis.
    errors : bool, default=False
        Draw the errors y - predicted instead of the data: alternation is then seen at once.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import ChebyshevRegressor
    >>> from trueline.plots import AlternationDisplay
    >>> X = np.linspace(0, 1, 50).reshape(-1, 1)
    >>> y = np.exp(X.ravel())
    >>> model = ChebyshevRegressor().fit(X, y)
    >>> AlternationDisplay.from_estimator(model, X, y).ax_.get_ylabel()
    'target'
    """

    x: ArrayLike
    y: ArrayLike
    predicted: ArrayLike
    alternation: ArrayLike
    dual: ArrayLike
    name: str = "x"
    errors: bool = False

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        over: ArrayLike | int | None = None,
        errors: bool = False,
        ax: Any = None,
    ) -> AlternationDisplay:
        """Predict and draw.

        Parameters
        ----------
        estimator : fitted ChebyshevRegressor
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,)
        over : int or array of shape (n,), optional
            The column of X, or the values, to draw over. By default the first column; the
            predictions, if there are several columns.
        errors : bool, default=False
            Draw the errors instead of the data.
        ax : matplotlib Axes, optional
        """
        check_is_fitted(estimator, "alternation_")
        predicted = np.asarray(estimator.predict(X), dtype=float)
        names = getattr(estimator, "feature_names_in_", None)
        if over is None and estimator.n_features_in_ == 1:
            over = 0
        if over is None:
            x, name = predicted, "predicted"
        elif np.ndim(over) == 0:
            number = int(over)  # type: ignore[arg-type]
            x = shared.dense(X)[:, number]
            name = str(names[number]) if names is not None else f"x{number}"
            name = "x" if names is None and estimator.n_features_in_ == 1 else name
        else:
            x, name = np.asarray(over, dtype=float), "x"
        display = cls(x, y, predicted, estimator.alternation_, estimator.dual_, name, errors)
        return display.plot(ax)

    def plot(self, ax: Any = None) -> AlternationDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : AlternationDisplay
        """
        x, y, predicted = shared.lines_of(x=self.x, y=self.y, predicted=self.predicted)
        rows, dual = np.asarray(self.alternation, dtype=int), np.asarray(self.dual, dtype=float)
        if rows.shape != dual.shape:
            raise ValueError(f"There are {len(dual)} multipliers for {len(rows)} rows.")
        ax = shared.axes(ax)
        largest = float(np.abs(y - predicted).max(initial=0.0))
        middle, shown = (0.0 * y, y - predicted) if self.errors else (predicted, y)
        self._band(ax, x, middle, largest)
        shared.scatter_rows(ax, x, shown, s=16 if len(x) <= 500 else 6, color=COLOURS[0], alpha=0.6)
        self._marks(ax, x[rows], shown[rows], dual)
        ax.set(xlabel=self.name, ylabel="error" if self.errors else "target")
        if self.errors:  # they fill the band from edge to edge
            shared.legend_below(ax, 2)
        else:
            shared.legend(ax, "best")
        return self._drawn_on(ax)

    def _band(self, ax: Any, x: Array, middle: Array, largest: float) -> None:
        """The fit and its band, as lines over the sorted x."""
        order = np.argsort(x, kind="stable")
        x, middle = x[order], middle[order]
        ax.fill_between(
            x,
            middle - largest,
            middle + largest,
            color=GREY,
            alpha=0.18,
            linewidth=0,
            label=f"fit ± {largest:.3g}",
        )
        for edge in (-largest, largest):
            ax.plot(x, middle + edge, color=GREY, linewidth=0.9)
        ax.plot(x, middle, color="black", linewidth=1.2)

    def _marks(self, ax: Any, x: Array, y: Array, dual: Array) -> None:
        """Circles on the edges, above in one colour and below in the other, with their signs."""
        share = np.abs(dual) / np.abs(dual).max(initial=1e-300)
        sides = ((dual > 0, COLOURS[1], "+", 9), (dual < 0, COLOURS[2], "−", -9))
        for side, colour, sign, offset in sides:
            if not side.any():
                continue
            ax.scatter(
                x[side],
                y[side],
                s=40 + 100 * share[side],
                facecolors="none",
                edgecolors=colour,
                linewidths=1.8,
                zorder=3,
                label=f"carries the fit ({sign})",
            )
            for place in zip(x[side], y[side]):
                ax.annotate(
                    sign,
                    place,
                    xytext=(0, offset),
                    textcoords="offset points",
                    ha="center",
                    va="bottom" if offset > 0 else "top",
                    color=colour,
                    fontweight="bold",
                )
        ax.margins(y=0.12)


def plot_alternation(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    ax: Any = None,
    *,
    over: ArrayLike | int | None = None,
    errors: bool = False,
) -> AlternationDisplay:
    """Draw the band of a fit and the rows that carry it; see :class:`AlternationDisplay`."""
    return AlternationDisplay.from_estimator(estimator, X, y, over=over, errors=errors, ax=ax)
