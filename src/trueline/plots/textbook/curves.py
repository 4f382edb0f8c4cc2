"""Curves over one feature: radial bumps with their sum, polynomials of several degrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from trueline.features.radial import RadialBasisFeatures
from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, Display

_GRID = 400


@dataclass(repr=False)
class BumpDisplay(Display):
    """A sum of bumps: every radial feature times its coefficient, and all of them together.

    Parameters
    ----------
    feature, target : arrays of shape (n,)
        The data.
    grid : array of shape (m,)
    bumps : array of shape (m, k)
        Each with its coefficient.
    intercept : float, default=0.0
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
    >>> from sklearn.pipeline import make_pipeline
    >>> from trueline import RadialBasisFeatures, Ridge
    >>> from trueline.plots import plot_bumps
    >>> x = np.linspace(0, 6, 30)[:, None]
    >>> model = make_pipeline(RadialBasisFeatures("grid", n_centres=5), Ridge(0.1))
    >>> plot_bumps(model.fit(x, np.sin(x.ravel())), x, np.sin(x.ravel())).bumps.shape
    (400, 5)
    """

    feature: ArrayLike
    target: ArrayLike
    grid: ArrayLike
    bumps: ArrayLike
    intercept: float = 0.0
    name: str = "x"

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **arguments: Any) -> BumpDisplay:
        """Draw a pipeline of radial features and a linear model over one column.

        Parameters
        ----------
        estimator : fitted pipeline, ``make_pipeline(RadialBasisFeatures(...), Ridge(...))``
        X : array-like of shape (n, 1)
        y : array-like of shape (n,)
        **arguments
            For :meth:`plot`.
        """
        check_is_fitted(estimator)
        steps = [step for _, step in getattr(estimator, "steps", [])]
        if len(steps) != 2 or not isinstance(steps[0], RadialBasisFeatures):
            raise ValueError("Give a pipeline of RadialBasisFeatures and a linear model.")
        shared.check_one_column(X)
        x, grid, frame, name = shared.over_feature(X, 0, _GRID)
        bumps = np.asarray(steps[0].transform(frame)) * np.ravel(steps[1].coef_)
        level = float(np.ravel(steps[1].intercept_)[0])
        return cls(x, y, grid, bumps, level, name).plot(**arguments)

    def plot(self, ax: Any = None) -> BumpDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : BumpDisplay
        """
        grid, bumps = np.asarray(self.grid, float), np.asarray(self.bumps, float)
        if bumps.ndim != 2 or len(bumps) != len(grid):
            raise ValueError(f"bumps must have a row for each of {len(grid)} places of the grid.")
        ax = shared.axes(ax, (7.2, 4.6))
        b, one = self.intercept, COLOURS[0]
        for number, bump in enumerate(bumps.T):
            label = f"{bumps.shape[1]} bumps times coefficients" if number == 0 else None
            ax.plot(grid, b + bump, color=one, linewidth=1.0, label=label)
            ax.fill_between(grid, b, b + bump, color=one, alpha=0.08, linewidth=0)
        ax.axhline(b, color=GREY, linewidth=0.9, linestyle="dashed", label="intercept")
        ax.plot(grid, b + bumps.sum(axis=1), color=COLOURS[1], linewidth=2.4, label="sum")
        shared.scatter_rows(ax, self.feature, self.target, s=16, color=GREY, zorder=3)
        ax.set(xlabel=self.name, ylabel="target")
        # Above: curves and data leave no corner free.
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
        return self._drawn_on(ax)


@dataclass(repr=False)
class DegreeDisplay(Display):
    """Polynomials of several degrees through the same data, side by side.

    The limits are those of the data: what a high degree does between and beyond the rows leaves
    the picture and does not flatten it.

    Parameters
    ----------
    feature, target : arrays of shape (n,)
    grid : array of shape (m,)
    curves : mapping of int to array of shape (m,)
        By degree.
    errors : mapping of int to float, optional
        Root mean squared errors of the data, for the titles.
    name : str, default="x"
        Of the feature.

    Attributes
    ----------
    ax_ : array of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import PolynomialRegression
    >>> from trueline.plots import plot_degrees
    >>> x = np.linspace(0, 1, 15)[:, None]
    >>> y = np.sin(6 * x.ravel())
    >>> display = plot_degrees(PolynomialRegression().fit(x, y), x, y, degrees=[1, 3])
    >>> [ax.get_title() for ax in display.ax_]
    ['degree 1, RMSE 0.461', 'degree 3, RMSE 0.071']
    """

    feature: ArrayLike
    target: ArrayLike
    grid: ArrayLike
    curves: Mapping[int, ArrayLike]
    errors: Mapping[int, float] | None = None
    name: str = "x"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        degrees: Sequence[int] = (1, 2, 9, 12),
        **arguments: Any,
    ) -> DegreeDisplay:
        """Fit a copy of the model with each degree, and draw.

        Parameters
        ----------
        estimator : fitted model, or pipeline, with a parameter ``degree``
        X : array-like of shape (n, 1)
        y : array-like of shape (n,)
        degrees : sequence of int, default=(1, 2, 9, 12)
        **arguments
            For :meth:`plot`.
        """
        check_is_fitted(estimator)
        known = [name for name in estimator.get_params() if name.rpartition("__")[2] == "degree"]
        if not known:
            raise ValueError(f"{type(estimator).__name__} has no parameter degree.")
        shared.check_one_column(X)
        x, grid, frame, name = shared.over_feature(X, 0, _GRID, 0.05)
        target, curves, errors = np.asarray(y, dtype=float), {}, {}
        for degree in degrees:
            model = clone(estimator).set_params(**{known[0]: degree}).fit(X, y)
            curves[degree] = np.asarray(model.predict(frame), dtype=float)
            errors[degree] = float(np.sqrt(np.mean((model.predict(X) - target) ** 2)))
        return cls(x, target, grid, curves, errors, name).plot(**arguments)

    def plot(self, ax: Sequence[Any] | None = None) -> DegreeDisplay:
        """Draw.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, optional
            One for each degree.

        Returns
        -------
        self : DegreeDisplay
        """
        y = np.asarray(self.target, dtype=float)
        if ax is None:
            count = len(self.curves)
            size = (2.9 * min(count, 4) + 0.4, 2.7 * -(-count // 4) + 0.4)
            ax = shared.grid_of_axes(count, 4, size, sharex=True, sharey=True)
        air = 0.25 * (float(np.ptp(y)) or 1.0)
        for each, (degree, curve) in zip(ax, self.curves.items(), strict=True):
            shared.tidy(each)
            shared.scatter_rows(each, self.feature, self.target, s=16, color=GREY, zorder=3)
            each.plot(self.grid, curve, color=COLOURS[1], linewidth=1.8)
            error = "" if self.errors is None else f", RMSE {self.errors[degree]:.3g}"
            each.set_title(f"degree {degree}{error}", fontsize="medium")
            each.set(xlabel=self.name, ylim=(y.min() - air, y.max() + air))
        ax[0].set_ylabel("target")
        return self._drawn_on(np.asarray(ax))


def plot_bumps(estimator: Any, X: Any, y: ArrayLike, ax: Any = None) -> BumpDisplay:
    """Draw radial bumps and their sum; see :class:`BumpDisplay`.

    Parameters
    ----------
    estimator : fitted pipeline, ``make_pipeline(RadialBasisFeatures(...), Ridge(...))``
    X : array-like of shape (n, 1)
    y : array-like of shape (n,)
    ax : matplotlib Axes, optional

    Returns
    -------
    display : BumpDisplay
    """
    return BumpDisplay.from_estimator(estimator, X, y, ax=ax)


def plot_degrees(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, *, degrees: Sequence[int] = (1, 2, 9, 12)
) -> DegreeDisplay:
    """Draw polynomials of several degrees side by side; see :class:`DegreeDisplay`.

    Parameters
    ----------
    estimator : fitted model, or pipeline, with a parameter ``degree``
        A copy is fitted with each degree.
    X : array-like of shape (n, 1)
    y : array-like of shape (n,)
    ax : sequence of matplotlib Axes, optional
        One for each degree.
    degrees : sequence of int, default=(1, 2, 9, 12)

    Returns
    -------
    display : DegreeDisplay
    """
    return DegreeDisplay.from_estimator(estimator, X, y, degrees=degrees, ax=ax)
