"""A fan of quantile lines with shaded bands, over the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from trueline.plots.style import COLOURS, GREY, Display, axes, legend, some_rows, tidy

__all__ = ["QuantileFanDisplay", "plot_quantile_fan"]

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
        names = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
        values = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        j = _column(feature, names, values.shape[1])
        grid = np.linspace(values[:, j].min(), values[:, j].max(), _GRID)
        rows = np.tile(np.median(values, axis=0), (_GRID, 1))
        rows[:, j] = grid
        frame: Any = rows
        if names:
            frame = type(X)({name: rows[:, i] for i, name in enumerate(names)})
        curves = np.asarray(estimator.predict(frame), dtype=float).reshape(_GRID, -1)
        quantiles = np.atleast_1d(np.asarray(getattr(estimator, "quantile", 0.5), dtype=float))
        name = names[j] if names else ("x" if values.shape[1] == 1 else f"x{j}")
        return cls(values[:, j], y, grid, curves, quantiles, name).plot(**arguments)

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
        ax = axes(ax)
        tidy(ax)
        self._scatter(ax)
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
        ax.set_xlabel(self.name)
        ax.set_ylabel("target")
        legend(ax, "best")
        return self._drawn_on(ax)

    def _scatter(self, ax: Any) -> None:
        x, y = np.asarray(self.feature, float), np.asarray(self.target, float)
        keep, label = some_rows(len(x))
        alpha = 0.6 if len(x) <= 500 else 0.3
        ax.scatter(x[keep], y[keep], s=12, color=GREY, alpha=alpha, linewidths=0, label=label)


def _column(feature: int | str | None, names: list[str], d: int) -> int:
    """The number of the column to draw over."""
    if feature is None:
        if d == 1:
            return 0
        raise ValueError(f"There are {d} columns: say over which to draw with feature=...")
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature={feature!r} is not one of {names}.")
        return names.index(feature)
    if not 0 <= feature < d:
        raise ValueError(f"feature={feature} is not between 0 and {d - 1}.")
    return int(feature)


def _percent(q: float) -> str:
    return f"{100 * q:.4g}%"


def _middle(q: float) -> str:
    return "median" if q == 0.5 else f"quantile {q:g}"


def plot_quantile_fan(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, *, feature: int | str | None = None
) -> QuantileFanDisplay:
    """Draw the quantiles of a fitted model over the data; see :class:`QuantileFanDisplay`."""
    return QuantileFanDisplay.from_estimator(estimator, X, y, feature=feature, ax=ax)
