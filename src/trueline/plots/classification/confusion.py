"""Which classes are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from trueline.plots.fitted import replaces
from trueline.plots.style import Array, Display, axes, check_choice, colour_bar

__all__ = ["ConfusionDisplay", "plot_confusion"]

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
        check_is_fitted(estimator)
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
        check_choice("numbers", numbers, ("counts", "percent", "none"))
        counts, k = np.asarray(self.counts, dtype=float), len(self.classes)
        side = min(3.0 + 0.42 * k, 9.0)
        ax = axes(ax, (side + 0.6, side))
        total = counts.sum(axis=1, keepdims=True)
        share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
        image = ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0)
        colour_bar(image, ax, "share of the true class", shrink=0.8)
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
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        wrong, everything = counts.sum() - np.trace(counts), counts.sum()
        part = 100 * wrong / everything if everything else 0.0
        ax.set_title(f"{wrong:g} of {everything:g} rows mistaken ({part:.1f} %)", fontsize="medium")
        return self._drawn_on(ax)

    def _write(self, ax: Any, counts: Array, share: Array, numbers: str) -> None:
        for i, j in np.argwhere(counts > 0):
            text = f"{counts[i, j]:g}" if numbers == "counts" else f"{100 * share[i, j]:.0f}%"
            colour = "white" if share[i, j] > 0.5 else "black"
            size = "small" if len(self.classes) > 8 else "medium"
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=size)


def _from_predictions(
    y_true: ArrayLike, y_predicted: ArrayLike, ax: Any = None, **arguments: Any
) -> ConfusionDisplay:
    return ConfusionDisplay.from_predictions(y_true, y_predicted, ax=ax, **arguments)


@replaces(
    _from_predictions,
    instead="plot_confusion(model, X, y), or ConfusionDisplay.from_predictions(y_true, y_pred)",
)
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
