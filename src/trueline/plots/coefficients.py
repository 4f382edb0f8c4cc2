"""Which coefficients matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueline.plots.fitted import coefficients_of, fitted, replaces
from trueline.plots.style import COLOURS, Display, axes, names_of, tidy

__all__ = ["CoefficientDisplay", "plot_coefficients"]


@dataclass(repr=False)
class CoefficientDisplay(Display):
    """Coefficients as horizontal bars with names, the largest on top.

    Parameters
    ----------
    names : sequence of str
    coef : array of shape (d,)
    interval : array of shape (d, 2), optional
        Lower and upper ends, drawn as whiskers.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import CoefficientDisplay
    >>> display = CoefficientDisplay(["age", "height"], [0.5, -2.0]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['height', 'age']
    """

    names: Sequence[str]
    coef: ArrayLike
    interval: ArrayLike | None = None
    bars_: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        d = len(self.names)
        if np.shape(self.coef) != (d,):
            raise ValueError(
                f"{d} names need coefficients of shape ({d},), got {np.shape(self.coef)}."
            )
        if self.interval is not None and np.shape(self.interval) != (d, 2):
            raise ValueError(
                f"{d} names need intervals of shape ({d}, 2), got {np.shape(self.interval)}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Sequence[str] | None = None,
        target: int = 0,
        **arguments: Any,
    ) -> CoefficientDisplay:
        """Draw the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : fitted linear estimator
            Or a pipeline that ends in one.
        names : sequence of str, optional
            By default ``feature_names_in_``, else x0, x1, ...
        target : int, default=0
            Which target or class, if there are several.
        **arguments
            For :meth:`plot`.
        """
        model, own, _ = fitted(estimator)
        coef = coefficients_of(model)
        if not 0 <= target < len(coef):
            raise ValueError(f"target={target} is not one of the {len(coef)} targets (from 0).")
        names = own if names is None else names
        return cls(names_of(names, coef.shape[1]), coef[target]).plot(**arguments)

    def plot(
        self, ax: Any = None, *, top: int | None = 20, sort: bool = True
    ) -> CoefficientDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        top : int or None, default=20
            Only so many coefficients, those of largest magnitude; None for all.
        sort : bool, default=True
            By magnitude, or in the order given.

        Returns
        -------
        self : CoefficientDisplay
        """
        coef = np.asarray(self.coef, dtype=float)
        order = np.argsort(-np.abs(coef), kind="stable")[:top]
        order = order if sort else np.sort(order)
        ax = axes(ax, (6.4, 1.2 + 0.28 * max(3, len(order))))
        place = np.arange(len(order))
        shown = coef[order]
        colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in shown]
        whiskers = None
        if self.interval is not None:
            ends = np.asarray(self.interval, dtype=float)[order]
            whiskers = np.abs(ends.T - shown)
        self.bars_ = ax.barh(
            place, shown, height=0.7, color=colours, xerr=whiskers, ecolor="#333333", capsize=2.5
        )
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_yticks(place, [str(self.names[j]) for j in order])
        ax.invert_yaxis()
        left_out = len(coef) - len(order)
        ax.set_xlabel("coefficient" + (f" ({left_out} smaller ones not shown)" if left_out else ""))
        tidy(ax)
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
        return self._drawn_on(ax)


def _from_numbers(
    names: Sequence[str],
    coef: ArrayLike,
    ax: Any = None,
    *,
    interval: ArrayLike | None = None,
    top: int | None = 20,
    sort: bool = True,
) -> CoefficientDisplay:
    return CoefficientDisplay(names, coef, interval).plot(ax, top=top, sort=sort)


@replaces(
    _from_numbers,
    instead="plot_coefficients(model), or CoefficientDisplay(names, coef).plot() for plain numbers",
)
def plot_coefficients(
    estimator: Any,
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    target: int = 0,
    top: int | None = 20,
    sort: bool = True,
) -> CoefficientDisplay:
    """Draw the coefficients of a fitted linear model.

    Parameters
    ----------
    estimator : fitted linear estimator
        Or a pipeline that ends in one.
    ax : matplotlib Axes, optional
    names : sequence of str, optional
        By default the names of the columns that were fitted, else x0, x1, ...
    target : int, default=0
        Which target or class, if there are several.
    top, sort
        As in :meth:`CoefficientDisplay.plot`.

    Returns
    -------
    display : CoefficientDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import Lasso
    >>> from trueline.plots import plot_coefficients
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> display = plot_coefficients(Lasso(alpha=1.0).fit(X, y), top=3)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['bmi', 's5', 'bp']
    """
    return CoefficientDisplay.from_estimator(
        estimator, names=names, target=target, ax=ax, top=top, sort=sort
    )
