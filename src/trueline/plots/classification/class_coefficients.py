"""The coefficients of every class, as a map or as images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueline.errors import require
from trueline.plots.fitted import coefficients_of, fitted
from trueline.plots.style import Array, Display, axes, colour_bar, names_of

__all__ = ["ClassCoefficientDisplay", "plot_class_coefficients"]

# Blue for what speaks against a class, red for what speaks for it, white for what says nothing.
_COLOURS = "RdBu_r"


@dataclass(repr=False)
class ClassCoefficientDisplay(Display):
    """Coefficients by class: what speaks for it in red, against it in blue.

    Parameters
    ----------
    coef : array of shape (k, d)
        One row per class.
    classes : sequence of length k
        The classes' names.
    names : sequence of str, optional
        Of the columns; by default x0, x1, ...

    Attributes
    ----------
    ax_ : matplotlib Axes, or array of these
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from trueline import LogisticRegression
    >>> from trueline.plots import plot_class_coefficients
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = plot_class_coefficients(LogisticRegression().fit(X, y))
    >>> display.coef.shape, [text.get_text() for text in display.ax_.get_yticklabels()]
    ((3, 4), ['0', '1', '2'])
    """

    coef: Array
    classes: Any
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.coef) != 2 or len(self.coef) != len(self.classes):
            raise ValueError(
                f"{len(self.classes)} classes need coef of shape ({len(self.classes)}, d), got "
                f"{np.shape(self.coef)}."
            )

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: Sequence[str] | None = None, **arguments: Any
    ) -> ClassCoefficientDisplay:
        """Draw the coefficients of a fitted linear classifier.

        Parameters
        ----------
        estimator : fitted linear classifier
            With ``coef_`` and ``classes_``; of two classes both rows are drawn, with opposite
            signs.
        names : sequence of str, optional
            By default ``feature_names_in_``, else x0, x1, ...
        **arguments
            For :meth:`plot`.
        """
        model, own, _ = fitted(estimator)
        coef = coefficients_of(model)
        if not hasattr(model, "classes_"):
            raise ValueError(
                f"{type(model).__name__} has no classes: plot_coefficients draws regressors."
            )
        if len(coef) == 1 and len(model.classes_) == 2:
            coef = np.vstack([-coef, coef])
        return cls(coef, model.classes_, own if names is None else names).plot(**arguments)

    def plot(
        self, ax: Any = None, *, shape: tuple[int, int] | None = None, top: int | None = 30
    ) -> ClassCoefficientDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            For a map; images make a figure of their own.
        shape : (height, width), optional
            Draw the coefficients of each class as an image of this shape, for columns that are
            pixels.
        top : int or None, default=30
            Of a map: only so many columns, those of largest magnitude in any class, in their
            order; None for all.

        Returns
        -------
        self : ClassCoefficientDisplay
        """
        coef = np.asarray(self.coef, dtype=float)
        largest = float(np.abs(coef).max(initial=0.0)) or 1.0
        if shape is None:
            self._map(axes(ax, self._size(top)), coef, largest, top)
        else:
            self._images(coef, largest, shape)
        return self

    def _size(self, top: int | None) -> tuple[float, float]:
        d = self.coef.shape[1]
        shown = d if top is None else min(top, d)
        return min(2.6 + 0.34 * shown, 12.0), 1.9 + 0.36 * len(self.classes)

    def _map(self, ax: Any, coef: Array, largest: float, top: int | None) -> None:
        order = np.sort(np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:top])
        image = ax.imshow(coef[:, order], cmap=_COLOURS, vmin=-largest, vmax=largest, aspect="auto")
        names = names_of(self.names, coef.shape[1])
        ax.set_xticks(range(len(order)), [names[j] for j in order], rotation=45, ha="right")
        ax.set_yticks(range(len(self.classes)), [str(name) for name in self.classes])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("class")
        left_out = coef.shape[1] - len(order)
        if left_out:
            ax.set_xlabel(f"{left_out} columns with smaller coefficients not shown")
        colour_bar(image, ax, "coefficient")
        self._drawn_on(ax)

    def _images(self, coef: Array, largest: float, shape: tuple[int, int]) -> None:
        if int(np.prod(shape)) != coef.shape[1]:
            raise ValueError(f"shape={shape} is not that of {coef.shape[1]} columns.")
        pyplot = require("matplotlib.pyplot", "plot")
        k = len(self.classes)
        across = min(k, 5)
        down = -(-k // across)
        size = (1.6 * across + 1.0, 1.75 * down)
        _, grid = pyplot.subplots(down, across, figsize=size, layout="constrained", squeeze=False)
        for place in grid.ravel()[k:]:
            place.set_visible(False)
        for place, row, name in zip(grid.ravel(), coef, self.classes, strict=False):
            image = place.imshow(row.reshape(shape), cmap=_COLOURS, vmin=-largest, vmax=largest)
            place.set_title(str(name), fontsize="medium")
            place.set_xticks([])
            place.set_yticks([])
            place.spines[:].set_color("#BBBBBB")
        colour_bar(image, grid, "coefficient", shrink=0.8)
        self._drawn_on(grid)


def plot_class_coefficients(
    estimator: Any, ax: Any = None, **arguments: Any
) -> ClassCoefficientDisplay:
    """Draw the coefficients of every class; see :class:`ClassCoefficientDisplay`.

    Keyword arguments go to :meth:`ClassCoefficientDisplay.from_estimator`.
    """
    return ClassCoefficientDisplay.from_estimator(estimator, ax=ax, **arguments)
