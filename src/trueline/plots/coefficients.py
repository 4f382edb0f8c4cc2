"""Which coefficients matter; and those of every class, as a map or as images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueline.plots import shared
from trueline.plots.shared import COLOURS, Array, Display


@dataclass(repr=False)
class CoefficientDisplay(Display):
    """Coefficients as horizontal bars with names, the largest on top.

    Parameters
    ----------
    names : sequence of str
    coef : array of shape (d,) or (k, d)
        Of k classes or targets, bars stand side by side, a colour for each.
    interval : array of shape (d, 2), optional
        Lower and upper ends, drawn as whiskers.
    labels : sequence of str, optional
        Names of the k classes or targets.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer, or a list of one for each class or target

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
    labels: Sequence[str] | None = None
    bars_: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        d = len(self.names)
        if np.shape(self.coef) not in ((d,), (len(self.labels or ()), d)):
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
        target: int | None = None,
        **arguments: Any,
    ) -> CoefficientDisplay:
        """Draw the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : fitted linear estimator
            Or a pipeline that ends in one.
        names : sequence of str, optional
            By default ``feature_names_in_``, else x0, x1, ...
        target : int, optional
            Which target or class, if there are several; by default all, or the first of more than
            seven.
        **arguments
            For :meth:`plot`.
        """
        model, own, _ = shared.fitted(estimator)
        coef = shared.coefficients_of(model)
        names = shared.names_of(own if names is None else names, coef.shape[1])
        classes: Any = getattr(model, "classes_", ())
        if target is None and 1 < len(coef) <= len(COLOURS):
            labels = [str(c) for c in classes] or [f"target {j}" for j in range(len(coef))]
            display = cls(names, coef, labels=labels).plot(**arguments)
            if len(classes):
                display.ax_.set_title("positive coefficients speak for a class", fontsize="medium")
            return display
        shown = target or 0
        if not 0 <= shown < len(coef):
            raise ValueError(f"target={target} is not one of the {len(coef)} targets (from 0).")
        display = cls(names, coef[shown]).plot(**arguments)
        if len(classes) > 1:
            spoken_for = classes[shown] if len(coef) > 1 else classes[1]
            is_some = target is None and len(coef) > 1
            count = f", the first of {len(coef)} classes" if is_some else ""
            display.ax_.set_title(
                f"positive coefficients speak for {spoken_for}{count}", fontsize="medium"
            )
        return display

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
        coef = np.atleast_2d(np.asarray(self.coef, dtype=float))
        size = np.abs(coef).max(axis=0, initial=0.0)
        order = np.argsort(-size, kind="stable")[:top]
        order = order if sort else np.sort(order)
        k, place = len(coef), np.arange(len(order))
        ax = shared.axes(
            ax, (6.4, 1.2 + (0.28 if k == 1 else 0.12 + 0.16 * k) * max(3, len(order)))
        )
        if self.labels is None:
            self.bars_ = self._bars(ax, place, coef[0], order)
        else:
            height = 0.8 / k
            self.bars_ = [
                ax.barh(
                    place + (c - 0.5 * (k - 1)) * height, row, height, color=colour, label=label
                )
                for c, (row, colour, label) in enumerate(zip(coef[:, order], COLOURS, self.labels))
            ]
            ax.legend(frameon=False)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_yticks(place, [str(self.names[j]) for j in order])
        ax.invert_yaxis()
        left_out = coef.shape[1] - len(order)
        ax.set_xlabel("coefficient" + (f" ({left_out} smaller ones not shown)" if left_out else ""))
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
        return self._drawn_on(ax)

    def _bars(self, ax: Any, place: Any, coef: Array, order: Any) -> Any:
        shown, whiskers = coef[order], None
        if self.interval is not None:
            ends = np.asarray(self.interval, dtype=float)[order]
            whiskers = np.abs(ends.T - shown)
        colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in shown]
        return ax.barh(
            place, shown, height=0.7, color=colours, xerr=whiskers, ecolor="#333333", capsize=2.5
        )


def plot_coefficients(
    estimator: Any,
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    target: int | None = None,
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
    target : int, optional
        Which target or class, if there are several; by default all, or the first of more than
        seven.
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
        model, own, _ = shared.fitted(estimator)
        coef = shared.coefficients_of(model)
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
            self._map(shared.axes(ax, self._size(top), is_image=True), coef, largest, top)
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
        names = shared.names_of(self.names, coef.shape[1])
        ax.set_xticks(range(len(order)), [names[j] for j in order], rotation=45, ha="right")
        ax.set_yticks(range(len(self.classes)), [str(name) for name in self.classes])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("class")
        left_out = coef.shape[1] - len(order)
        if left_out:
            ax.set_xlabel(f"{left_out} columns with smaller coefficients not shown")
        shared.colour_bar(image, ax, "coefficient")
        self._drawn_on(ax)

    def _images(self, coef: Array, largest: float, shape: tuple[int, int]) -> None:
        if int(np.prod(shape)) != coef.shape[1]:
            raise ValueError(f"shape={shape} is not that of {coef.shape[1]} columns.")
        k = len(self.classes)
        grid = shared.grid_of_axes(k, 5, (1.6 * min(k, 5) + 1.0, 1.75 * -(-k // 5)))
        for place, row, name in zip(grid, coef, self.classes, strict=True):
            image = place.imshow(row.reshape(shape), cmap=_COLOURS, vmin=-largest, vmax=largest)
            shared.title(place, str(name))
            place.set_xticks([])
            place.set_yticks([])
            place.spines[:].set_color("#BBBBBB")
        shared.colour_bar(image, grid, "coefficient", shrink=0.8)
        self._drawn_on(grid)


def plot_class_coefficients(
    estimator: Any, ax: Any = None, **arguments: Any
) -> ClassCoefficientDisplay:
    """Draw the coefficients of every class; see :class:`ClassCoefficientDisplay`.

    Keyword arguments go to :meth:`ClassCoefficientDisplay.from_estimator`.
    """
    return ClassCoefficientDisplay.from_estimator(estimator, ax=ax, **arguments)
