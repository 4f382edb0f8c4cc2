"""How well a model predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from trueline.plots.fitted import replaces
from trueline.plots.style import COLOURS, Array, Display, axes, some_rows, tidy

__all__ = ["FitDisplay", "plot_fit"]


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
        check_is_fitted(estimator)
        if is_classifier(estimator):
            raise ValueError(
                f"{type(estimator).__name__} predicts classes: draw it with plot_confusion or "
                "plot_boundary."
            )
        y_true, y_pred = _column(y, target), _column(estimator.predict(X), target)
        if np.shape(X)[1] != 1 or not hasattr(X, "__array__"):
            return cls(y_true, y_pred).plot(**arguments)
        feature = np.asarray(X, dtype=float)[:, 0]
        # A curve (polynomial features) shows as one only if it is drawn on a fine grid.
        grid = np.linspace(feature.min(), feature.max(), 200)
        frame = grid[:, None]
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            frame = type(X)({names[0]: grid})
        curve = _column(estimator.predict(frame), target)
        name = str(names[0]) if names is not None else "x"
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
        y_true, y_pred = np.asarray(self.y_true, float), np.asarray(self.y_pred, float)
        if y_true.shape != y_pred.shape or y_true.ndim != 1:
            raise ValueError(
                f"y_true and y_pred must be one-dimensional and equally long, got shapes "
                f"{y_true.shape} and {y_pred.shape}."
            )
        ax = axes(ax)
        tidy(ax)
        draw = self._against_truth if self.feature is None else self._over_feature
        draw(ax, y_true, y_pred)
        return self._drawn_on(ax)

    def _against_truth(self, ax: Any, y_true: Array, y_pred: Array) -> None:
        ends = [min(y_true.min(), y_pred.min()), max(y_true.max(), y_pred.max())]
        ax.plot(ends, ends, color="black", linewidth=0.9, label="predicted = actual")
        _scatter(ax, y_pred, y_true)
        ax.set_xlabel("predicted")
        ax.set_ylabel("actual")
        ax.legend(frameon=False, title=_quality(y_true, y_pred), title_fontsize="medium")

    def _over_feature(self, ax: Any, y_true: Array, y_pred: Array) -> None:
        feature = np.asarray(self.feature, float)
        _scatter(ax, feature, y_true)
        order = np.argsort(feature, kind="stable")
        x, y = self.line if self.line is not None else (feature[order], y_pred[order])
        ax.plot(x, y, color=COLOURS[1], linewidth=2.0, label="fit")
        ax.set_xlabel(self.name)
        ax.set_ylabel("target")
        ax.legend(frameon=False, title=_quality(y_true, y_pred), title_fontsize="medium")


def _column(y: Any, target: int) -> Array:
    y = np.asarray(y, dtype=float)
    return y if y.ndim == 1 else y[:, target]


def _scatter(ax: Any, x: Array, y: Array) -> None:
    keep, label = some_rows(len(x))
    alpha = 0.7 if len(x) <= 500 else 0.25
    ax.scatter(x[keep], y[keep], s=16, color=COLOURS[0], alpha=alpha, linewidths=0, label=label)


def _quality(y_true: Array, y_pred: Array) -> str:
    """R^2 over all rows, as text."""
    spread = float(np.sum((y_true - y_true.mean()) ** 2))
    if spread == 0:
        return ""
    return f"$R^2$ = {1.0 - float(np.sum((y_true - y_pred) ** 2)) / spread:.3f}"


def _from_predictions(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    ax: Any = None,
    *,
    feature: ArrayLike | None = None,
    name: str = "x",
) -> FitDisplay:
    return FitDisplay(y_true, y_pred, feature, name).plot(ax)


@replaces(
    _from_predictions,
    instead="plot_fit(model, X, y), or FitDisplay(y_true, y_pred).plot() for plain numbers",
)
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
