"""How well a model predicts: numbers against the truth, and which classes are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from trueline.plots import shared
from trueline.plots.shared import COLOURS, Array, Display


@dataclass(repr=False)
class FitDisplay(Display):
    """Predictions against the truth; with a single feature, the data and the fitted line.

    Parameters
    ----------
    y_true, y_pred : arrays of shape (n,)
    feature : array of shape (n,), optional
        Values of the only feature: data and line are drawn over it.
    name : str, optional
        Its name.
    line : tuple of two arrays, optional
        Feature values in ascending order, and predictions there. By default the line joins the
        predictions of the data.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import FitDisplay
    >>> FitDisplay([1.0, 2.0, 3.0], [1.1, 1.9, 3.0]).plot().ax_.get_xlabel()
    'predicted'
    """

    y_true: ArrayLike
    y_pred: ArrayLike
    feature: ArrayLike | None = None
    name: str = "x"
    line: tuple[Array, Array] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, target: int = 0, **arguments: Any
    ) -> FitDisplay:
        """Predict and draw.

        Parameters
        ----------
        estimator : fitted regressor
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        target : int, default=0
            Which target, if there are several.
        **arguments
            For :meth:`plot`.
        """
        shared.check_is_model(estimator)
        if is_classifier(estimator):
            raise ValueError(
                f"{type(estimator).__name__} predicts classes: draw it with plot_confusion or "
                "plot_boundary."
            )
        y_true, y_pred = _column(y, target), _column(estimator.predict(X), target)
        if np.shape(X)[1] != 1 or not hasattr(X, "__array__"):
            return cls(y_true, y_pred).plot(**arguments)
        # A curve (polynomial features) shows as one only if it is drawn on a fine grid.
        feature, grid, frame, name = shared.over_feature(X, 0, 200)
        curve = _column(estimator.predict(frame), target)
        return cls(y_true, y_pred, feature, name, (grid, curve)).plot(**arguments)

    def plot(self, ax: Any = None) -> FitDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : FitDisplay
        """
        y_true, y_pred = shared.lines_of(y_true=self.y_true, y_pred=self.y_pred)
        ax = shared.axes(ax)
        draw = self._against_truth if self.feature is None else self._over_feature
        draw(ax, y_true, y_pred)
        return self._drawn_on(ax)

    def _against_truth(self, ax: Any, y_true: Array, y_pred: Array) -> None:
        ends = [min(y_true.min(), y_pred.min()), max(y_true.max(), y_pred.max())]
        ax.plot(ends, ends, color="black", linewidth=0.9, label="predicted = actual")
        _scatter(ax, y_pred, y_true)
        ax.set(xlabel="predicted", ylabel="actual")
        ax.legend(frameon=False, title=_quality(y_true, y_pred), title_fontsize="medium")

    def _over_feature(self, ax: Any, y_true: Array, y_pred: Array) -> None:
        feature = np.asarray(self.feature, float)
        _scatter(ax, feature, y_true)
        order = np.argsort(feature, kind="stable")
        x, y = self.line if self.line is not None else (feature[order], y_pred[order])
        ax.plot(x, y, color=COLOURS[1], linewidth=2.0, label="fit")
        ax.set(xlabel=self.name, ylabel="target")
        ax.legend(frameon=False, title=_quality(y_true, y_pred), title_fontsize="medium")


def _column(y: Any, target: int) -> Array:
    y = np.asarray(y, dtype=float)
    return y if y.ndim == 1 else y[:, target]


def _scatter(ax: Any, x: Array, y: Array) -> None:
    shared.scatter_rows(ax, x, y, s=16, color=COLOURS[0], alpha=0.7 if len(x) <= 500 else 0.25)


def _quality(y_true: Array, y_pred: Array) -> str:
    """R^2 over all rows, as text."""
    spread = float(np.sum((y_true - y_true.mean()) ** 2))
    if spread == 0:
        return ""
    return f"$R^2$ = {1.0 - float(np.sum((y_true - y_pred) ** 2)) / spread:.3f}"


def plot_fit(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, *, target: int = 0
) -> FitDisplay:
    """Draw the predictions of a fitted regressor against the truth; see :class:`FitDisplay`.

    With a single feature: the data and the fitted line over it.

    Parameters
    ----------
    estimator : fitted regressor
        Or a pipeline that ends in one.
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    ax : matplotlib Axes, optional
    target : int, default=0
        Which target, if there are several.

    Returns
    -------
    display : FitDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import Ridge
    >>> from trueline.plots import plot_fit
    >>> X, y = load_diabetes(return_X_y=True)
    >>> plot_fit(Ridge().fit(X, y), X, y).ax_.get_ylabel()
    'actual'
    """
    return FitDisplay.from_estimator(estimator, X, y, target=target, ax=ax)


# From this many classes on numbers in the cells would not be readable.
_MOST_WRITTEN = 20


@dataclass(repr=False)
class ConfusionDisplay(Display):
    """A confusion matrix: true classes down, predicted classes across.

    The diagonal holds what is right. Colours are shares of the true class, so that rare classes
    show as much as frequent ones; numbers are counts (or the sums of weights).

    Parameters
    ----------
    counts : array of shape (k, k)
        Rows of true class i that were predicted as class j.
    classes : sequence of length k
        The classes' names.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import ConfusionDisplay
    >>> truth, predicted = ["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog"]
    >>> display = ConfusionDisplay.from_predictions(truth, predicted)
    >>> display.counts.astype(int).tolist(), display.ax_.get_title()
    ([[1, 1], [0, 2]], '1 of 4 rows mistaken (25.0 %)')
    """

    counts: Array
    classes: Any

    def __post_init__(self) -> None:
        k = len(self.classes)
        if np.shape(self.counts) != (k, k):
            raise ValueError(
                f"{k} classes need counts of shape ({k}, {k}), got {np.shape(self.counts)}."
            )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, **arguments: Any
    ) -> ConfusionDisplay:
        """Predict, count and draw.

        Parameters
        ----------
        estimator : fitted classifier
            Or a pipeline that ends in one.
        X : array-like or sparse matrix of shape (n, d)
            Best rows that were not fitted.
        y : array-like of shape (n,)
            Their classes.
        **arguments
            For :meth:`from_predictions` and :meth:`plot`.
        """
        shared.check_is_model(estimator)
        return cls.from_predictions(y, estimator.predict(X), **arguments)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_predicted: ArrayLike,
        *,
        classes: Any = None,
        sample_weight: ArrayLike | None = None,
        **arguments: Any,
    ) -> ConfusionDisplay:
        """Count and draw.

        Parameters
        ----------
        y_true, y_predicted : array-like of shape (n,)
        classes : array-like, optional
            The classes in their order; by default those that occur, sorted.
        sample_weight : array-like of shape (n,), optional
        **arguments
            For :meth:`plot`.
        """
        truth, said = np.asarray(y_true), np.asarray(y_predicted)
        if truth.ndim != 1 or truth.shape != said.shape:
            raise ValueError(
                f"y_true and y_predicted must be of one length, got {truth.shape} and {said.shape}."
            )
        known = np.unique(np.concatenate([truth, said])) if classes is None else np.asarray(classes)
        order = np.argsort(known, kind="stable")
        places = []
        for labels in (truth, said):
            unknown = ~np.isin(labels, known)
            if unknown.any():
                raise ValueError(f"classes lacks {np.unique(labels[unknown])[:5].tolist()}.")
            places.append(order[np.searchsorted(known, labels, sorter=order)])
        counts = np.zeros((len(known), len(known)))
        weight = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=float)
        np.add.at(counts, tuple(places), weight)
        return cls(counts, known).plot(**arguments)

    def plot(self, ax: Any = None, *, numbers: str = "counts") -> ConfusionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        numbers : {"counts", "percent", "none"}, default="counts"
            What is written into the cells: counts, or shares of the true class. Zeros are left
            empty, and so is everything with more than twenty classes.

        Returns
        -------
        self : ConfusionDisplay
        """
        shared.check_choice("numbers", numbers, ("counts", "percent", "none"))
        counts, k = np.asarray(self.counts, dtype=float), len(self.classes)
        side = min(3.0 + 0.42 * k, 9.0)
        ax = shared.axes(ax, (side + 0.6, side), is_image=True)
        total = counts.sum(axis=1, keepdims=True)
        share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
        image = ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0)
        shared.colour_bar(image, ax, "share of the true class", shrink=0.8)
        if numbers != "none" and k <= _MOST_WRITTEN:
            self._write(ax, counts, share, numbers)
        names = [str(name) for name in self.classes]
        steep = max(map(len, names)) > 4 and k > 4
        ax.set_xticks(
            range(k), names, rotation=45 if steep else 0, ha="right" if steep else "center"
        )
        ax.set_yticks(range(k), names)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set(xlabel="predicted class", ylabel="true class")
        wrong, everything = counts.sum() - np.trace(counts), counts.sum()
        part = 100 * wrong / everything if everything else 0.0
        shared.title(ax, f"{wrong:g} of {everything:g} rows mistaken ({part:.1f} %)")
        return self._drawn_on(ax)

    def _write(self, ax: Any, counts: Array, share: Array, numbers: str) -> None:
        for i, j in np.argwhere(counts > 0):
            text = f"{counts[i, j]:g}" if numbers == "counts" else f"{100 * share[i, j]:.0f}%"
            colour = "white" if share[i, j] > 0.5 else "black"
            size = "small" if len(self.classes) > 8 else "medium"
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=size)


def plot_confusion(
    estimator: Any, X: Any, y: ArrayLike, ax: Any = None, **arguments: Any
) -> ConfusionDisplay:
    """Draw the confusion matrix of a fitted classifier; see :class:`ConfusionDisplay`.

    Parameters
    ----------
    estimator : fitted classifier
        Or a pipeline that ends in one.
    X : array-like or sparse matrix of shape (n, d)
        Best rows that were not fitted.
    y : array-like of shape (n,)
        Their classes.
    ax : matplotlib Axes, optional
    **arguments
        For :meth:`ConfusionDisplay.from_predictions` and :meth:`ConfusionDisplay.plot`.

    Returns
    -------
    display : ConfusionDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from trueline import LogisticRegression
    >>> from trueline.plots import plot_confusion
    >>> X, y = load_iris(return_X_y=True)
    >>> plot_confusion(LogisticRegression().fit(X, y), X, y).ax_.get_title()
    '4 of 150 rows mistaken (2.7 %)'
    """
    return ConfusionDisplay.from_estimator(estimator, X, y, ax=ax, **arguments)
