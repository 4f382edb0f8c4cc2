"""One data set with outliers, and the lines that different losses draw through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from trueline.plots.fitted import replaces
from trueline.plots.style import COLOURS, GREY, Array, Display, axes, legend, tidy

__all__ = ["OutlierDisplay", "plot_outliers"]

# Residuals beyond so many median absolute residuals are marked.
_FAR = 6.0


def _default_models() -> dict[str, Any]:
    import trueline

    return {
        "squared": trueline.LinearRegression(),
        "absolute": trueline.LeastAbsoluteDeviations(),
        "Huber": trueline.HuberRegressor(alpha=0.0),
        "maximum error": trueline.ChebyshevRegressor(),
    }


@dataclass(repr=False)
class OutlierDisplay(Display):
    """Data over one feature, outliers ringed, and one line for each model.

    Parameters
    ----------
    feature, target : arrays of shape (n,)
    lines : mapping of str to array of shape (n,)
        Predictions at the data, by label.
    outliers : array of bool of shape (n,), optional
        Which points to ring.
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
    >>> from trueline.plots import OutlierDisplay
    >>> display = OutlierDisplay([0.0, 1.0, 2.0], [0.0, 1.0, 9.0], {"fit": [0.0, 1.0, 2.0]}).plot()
    >>> display.ax_.get_xlabel()
    'x'
    """

    feature: ArrayLike
    target: ArrayLike
    lines: Mapping[str, ArrayLike]
    outliers: ArrayLike | None = None
    name: str = "x"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, **arguments: Any
    ) -> OutlierDisplay:
        """Draw the lines of fitted models.

        Parameters
        ----------
        estimator : fitted regressor, or mapping of str to fitted regressors
        X : array-like of shape (n, 1)
        y : array-like of shape (n,)
        **arguments
            For :meth:`plot`.
        """
        models = dict(estimator) if isinstance(estimator, Mapping) else {"fit": estimator}
        _check_one_column(X)
        for model in models.values():
            check_is_fitted(model)
        return _lines(cls, models, X, y).plot(**arguments)

    @classmethod
    def from_data(
        cls, X: Any, y: ArrayLike, models: Mapping[str, Any] | None = None, **arguments: Any
    ) -> OutlierDisplay:
        """Fit the models and draw.

        Parameters
        ----------
        X : array-like of shape (n, 1)
        y : array-like of shape (n,)
        models : mapping of str to regressor, optional
            By label, fitted or not (they are cloned and fitted here); by default least squares,
            least absolute deviations, Huber's and the smallest maximum error.
        **arguments
            For :meth:`plot`.
        """
        from sklearn.base import clone

        _check_one_column(X)
        models = _default_models() if models is None else models
        fitted = {label: clone(model).fit(X, y) for label, model in models.items()}
        return _lines(cls, fitted, X, y).plot(**arguments)

    def plot(self, ax: Any = None) -> OutlierDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : OutlierDisplay
        """
        x, y = np.asarray(self.feature, float), np.asarray(self.target, float)
        if x.shape != y.shape or x.ndim != 1:
            raise ValueError(
                f"feature and target must be one-dimensional and equally long, got shapes "
                f"{x.shape} and {y.shape}."
            )
        ax = axes(ax)
        tidy(ax)
        ax.scatter(x, y, s=16, color=GREY, alpha=0.7, linewidths=0, label="data", zorder=2)
        if self.outliers is not None and np.any(self.outliers):
            far = np.asarray(self.outliers, dtype=bool)
            ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.0}
            ax.scatter(x[far], y[far], s=70, label="outliers", zorder=3, **ring)
        order = np.argsort(x, kind="stable")
        for number, (label, line) in enumerate(self.lines.items()):
            colour = COLOURS[number % len(COLOURS)]
            line = np.asarray(line, dtype=float)
            # Later lines are thinner: where two coincide, both are seen.
            width = max(3.6 - 0.6 * number, 1.2)
            ax.plot(x[order], line[order], color=colour, linewidth=width, label=label, zorder=4)
        ax.set_xlabel(self.name)
        ax.set_ylabel("target")
        legend(ax, "best")
        return self._drawn_on(ax)


def _far(X: Any, y: Array) -> Any:
    """Rows far from the line of least absolute deviations, which they hardly move."""
    from trueline.estimators.robust.quantile import LeastAbsoluteDeviations

    size = np.abs(y - LeastAbsoluteDeviations().fit(X, y).predict(X))
    return size > _FAR * np.median(size) + 1e-9 * np.abs(y).max(initial=0.0)


def _check_one_column(X: Any) -> None:
    if np.ndim(X) != 2 or np.shape(X)[1] != 1:
        raise ValueError(f"X must have one column to draw over, got shape {np.shape(X)}.")


def _lines(
    cls: type[OutlierDisplay], models: Mapping[str, Any], X: Any, y: ArrayLike
) -> OutlierDisplay:
    """What fitted models predict over the only column of X."""
    name = "x"
    for model in models.values():
        name = str(getattr(model, "feature_names_in_", [name])[0])
    lines = {label: model.predict(X) for label, model in models.items()}
    target = np.asarray(y, dtype=float)
    return cls(np.asarray(X, dtype=float)[:, 0], target, lines, _far(X, target), name)


def _from_data(
    X: Any, y: ArrayLike, ax: Any = None, *, models: Mapping[str, Any] | None = None
) -> OutlierDisplay:
    return OutlierDisplay.from_data(X, y, models, ax=ax)


@replaces(
    _from_data,
    instead="plot_outliers({name: fitted model, ...}, X, y), or OutlierDisplay.from_data(X, y)",
)
def plot_outliers(estimator: Any, X: Any, y: ArrayLike, ax: Any = None) -> OutlierDisplay:
    """Draw the lines of fitted models through data with outliers; see :class:`OutlierDisplay`.

    Parameters
    ----------
    estimator : fitted regressor, or mapping of str to fitted regressors
    X : array-like of shape (n, 1)
    y : array-like of shape (n,)
    ax : matplotlib Axes, optional

    Returns
    -------
    display : OutlierDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import HuberRegressor, LinearRegression
    >>> from trueline.plots import plot_outliers
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = X.ravel() + np.where(X.ravel() == 15, 30.0, 0.0)
    >>> models = {"squared": LinearRegression().fit(X, y), "Huber": HuberRegressor().fit(X, y)}
    >>> list(plot_outliers(models, X, y).lines)
    ['squared', 'Huber']
    """
    return OutlierDisplay.from_estimator(estimator, X, y, ax=ax)
