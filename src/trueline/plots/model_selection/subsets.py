"""A criterion against the number of columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueline.best_subset import SubsetPath
from trueline.plots.fitted import fitted
from trueline.plots.style import (
    COLOURS,
    CRITERION_WORDS,
    PALE,
    Array,
    Display,
    axes,
    check_choice,
    legend,
    tidy,
)
from trueline.selection.criteria import CRITERIA

__all__ = ["SubsetDisplay", "plot_subsets"]


@dataclass(repr=False)
class SubsetDisplay(Display):
    """A criterion against the number of columns; what is proven is told from what is not.

    Parameters
    ----------
    sizes : array of int of shape (m,)
        Numbers of columns.
    values : array of shape (m,)
        The criterion of the best support that was found for each.
    proven : array of bool of shape (m,), optional
        Whether no better support exists; all by default.
    criterion : str, default="bic"
        "aic", "aicc", "bic", "adjusted_r2", "cp" or "objective".
    chosen : int, optional
        The size to be marked.
    lower : array of shape (m,), optional
        Lower bounds on the values, drawn as whiskers where nothing is proven.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The markers: "proven", "not proven" and "chosen", as far as there are any.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import SubsetDisplay
    >>> display = SubsetDisplay([1, 2, 3], [5.0, 2.0, 2.5], [True, True, False], chosen=2).plot()
    >>> list(display.lines_)
    ['proven', 'not proven', 'chosen']
    """

    sizes: ArrayLike
    values: ArrayLike
    proven: ArrayLike | None = None
    criterion: str = "bic"
    chosen: int | None = None
    lower: ArrayLike | None = None
    lines_: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, criterion: str | None = None, **arguments: Any
    ) -> SubsetDisplay:
        """Draw what a fitted BestSubset has found.

        Parameters
        ----------
        estimator : fitted BestSubset
        criterion : str, optional
            By default the one that chose the size; "objective" shows what was minimised.
        **arguments
            For :meth:`plot`.
        """
        return _found(estimator, criterion).plot(**arguments)

    def plot(self, ax: Any = None) -> SubsetDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : SubsetDisplay
        """
        sizes, values, proven, lower = self._sorted()
        ax = axes(ax)
        tidy(ax)
        ax.plot(sizes, values, color=PALE, linewidth=1.0, zorder=1.5)
        if lower is not None and not proven.all():
            ax.vlines(sizes[~proven], lower[~proven], values[~proven], color=COLOURS[1], lw=1.2)
        self.lines_ = {}
        for name, which, colour, face in (
            ("proven", proven, COLOURS[0], COLOURS[0]),
            ("not proven", ~proven, COLOURS[1], "white"),
        ):
            if which.any():
                (self.lines_[name],) = ax.plot(
                    sizes[which],
                    values[which],
                    "o",
                    color=colour,
                    markerfacecolor=face,
                    markersize=6,
                    label="proven to be the best" if name == "proven" else "best found, not proven",
                )
        if self.chosen is not None:
            here = sizes == self.chosen
            (self.lines_["chosen"],) = ax.plot(
                sizes[here],
                values[here],
                "o",
                color="black",
                markerfacecolor="none",
                markersize=13,
                label=f"chosen: {self.chosen} column{'s' * (self.chosen != 1)}",
            )
        ax.set_xlabel("number of columns")
        ax.set_ylabel(CRITERION_WORDS.get(self.criterion, self.criterion))
        ax.xaxis.get_major_locator().set_params(integer=True)
        legend(ax, "best")
        return self._drawn_on(ax)

    def _sorted(self) -> tuple[NDArray[np.intp], Array, NDArray[np.bool_], Array | None]:
        """By size; sizes whose criterion is not finite are left out."""
        sizes, values = np.asarray(self.sizes, dtype=np.intp), np.asarray(self.values, dtype=float)
        proven = np.ones(len(sizes), bool) if self.proven is None else np.asarray(self.proven, bool)
        if not sizes.shape == values.shape == proven.shape or sizes.ndim != 1:
            raise ValueError(
                f"Sizes, values and proven must be equally long, got shapes {sizes.shape}, "
                f"{values.shape} and {proven.shape}."
            )
        shown = np.flatnonzero(np.isfinite(values))
        if not len(shown):
            raise ValueError(f"No size has a finite {self.criterion}: there is nothing to draw.")
        order = shown[np.argsort(sizes[shown], kind="stable")]
        lower = None if self.lower is None else np.asarray(self.lower, dtype=float)[order]
        return sizes[order], values[order], proven[order], lower


def _display(path: SubsetPath, criterion: str) -> SubsetDisplay:
    check_choice("criterion", criterion, (*CRITERIA, "objective"))
    if criterion == "objective":
        return SubsetDisplay(path.k, path.objective, path.proven, criterion, lower=path.lower_bound)
    return SubsetDisplay(path.k, path.criteria[criterion], path.proven, criterion)


def _found(estimator: Any, criterion: str | None) -> SubsetDisplay:
    """What a fitted model has found and chosen."""
    model = fitted(estimator).model
    if not isinstance(getattr(model, "path_", None), SubsetPath):
        raise ValueError(
            f"{type(model).__name__} has no path of subsets: fit BestSubset or L0Regression."
        )
    own: str = getattr(model, "criterion", "objective")
    display = _display(model.path_, criterion or own)
    display.chosen = getattr(model, "k_", None)
    return display


def plot_subsets(
    estimator: Any, ax: Any = None, *, criterion: str | None = None, chosen: int | None = None
) -> SubsetDisplay:
    """Draw what a best-subset search has found; see :class:`SubsetDisplay`.

    Parameters
    ----------
    estimator : fitted BestSubset, or SubsetPath
        A path is what a fitted model keeps in ``path_``.
    ax : matplotlib Axes, optional
    criterion : str, optional
        By default the one that chose the size, "bic" for a path.
    chosen : int, optional
        The size to be marked; by default the one that the model has chosen.

    Returns
    -------
    display : SubsetDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import BestSubset
    >>> from trueline.plots import plot_subsets
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BestSubset(k=[1, 2, 3, 4], criterion="bic").fit(X, y)
    >>> plot_subsets(model).chosen == model.k_
    True
    """
    if isinstance(estimator, SubsetPath):
        display = _display(estimator, criterion or "bic")
    else:
        display = _found(estimator, criterion)
    display.chosen = display.chosen if chosen is None else chosen
    return display.plot(ax)
