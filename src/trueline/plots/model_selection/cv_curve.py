"""Errors on held-out rows against the strength of a penalty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueline.plots.fitted import fitted, replaces
from trueline.plots.model_selection.path import (
    chosen_grid,
    count_on_top,
    draw_strengths,
    mark_strengths,
    path_of,
    positive_strengths,
)
from trueline.plots.style import COLOURS, GREY, PALE, Array, Display, axes, legend, tidy

__all__ = ["CVCurveDisplay", "plot_cv_curve"]


@dataclass(repr=False)
class CVCurveDisplay(Display):
    """Mean error of the folds with its standard error, against the strength.

    Two vertical lines mark the strength with the smallest mean error, and the largest one whose
    mean error is within one standard error of it (the horizontal line).

    Parameters
    ----------
    alphas : array of shape (m,)
    errors : array of shape (m, folds)
        Mean squared error of each strength on the test rows of each fold.
    counts : array of int of shape (m,), optional
        Numbers of non-zero coefficients, for the upper axis.

    Attributes
    ----------
    alpha_min_, alpha_1se_ : float
        The marked strengths.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    errorbar_ : matplotlib ErrorbarContainer
    top_ : matplotlib SecondaryAxis or None

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import CVCurveDisplay
    >>> errors = [[9.0, 7.0], [3.0, 2.0], [2.0, 2.5], [4.0, 3.0]]
    >>> display = CVCurveDisplay([1.0, 0.3, 0.1, 0.03], errors).plot()
    >>> display.alpha_min_, display.alpha_1se_
    (0.1, 0.3)
    """

    alphas: ArrayLike
    errors: ArrayLike
    counts: ArrayLike | None = None
    alpha_min_: float = field(default=float("nan"), init=False, repr=False)
    alpha_1se_: float = field(default=float("nan"), init=False, repr=False)
    errorbar_: Any = field(default=None, init=False, repr=False)
    top_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        **arguments: Any,
    ) -> CVCurveDisplay:
        """Draw the errors of a fitted LassoCV or ElasticNetCV, for the mixture it has chosen.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like or sparse matrix of shape (n, d), optional
            With ``y``: the numbers of non-zero coefficients are shown, of the path over all rows.
        y : array-like of shape (n,), optional
        sample_weight : array-like of shape (n,), optional
        **arguments
            For :meth:`plot`.
        """
        model, _, transform = fitted(estimator)
        if not hasattr(model, "mse_path_"):
            raise ValueError(
                f"{type(model).__name__} has no errors of folds: fit LassoCV or ElasticNetCV."
            )
        alphas, errors = chosen_grid(model)
        counts = None
        if X is not None and y is not None:
            counts = path_of(model, transform(X), y, sample_weight).n_nonzero
        return cls(alphas, errors, counts).plot(**arguments)

    def plot(self, ax: Any = None) -> CVCurveDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : CVCurveDisplay
        """
        alphas, errors, counts = self._sorted()
        mean, spread = errors.mean(axis=1), np.zeros(len(alphas))
        folds = errors.shape[1]
        if folds > 1:
            spread = errors.std(axis=1, ddof=1) / np.sqrt(folds)
        least = int(np.argmin(mean))
        limit = mean[least] + spread[least]
        self.alpha_min_ = float(alphas[least])
        self.alpha_1se_ = float(alphas[np.argmax(mean <= limit)])
        shown = positive_strengths(alphas)  # the choice is among all
        alphas, mean, spread = alphas[shown], mean[shown], spread[shown]
        ax = axes(ax, (8.0, 4.8))
        tidy(ax)
        self.errorbar_ = ax.errorbar(
            alphas,
            mean,
            yerr=spread if folds > 1 else None,
            fmt="o",
            markersize=3.5,
            color=COLOURS[1],
            ecolor=PALE,
            elinewidth=1.0,
            capsize=2.0,
        )
        draw_strengths(ax, alphas)
        places = {"smallest error": self.alpha_min_}
        if folds > 1:
            places["one standard error"] = self.alpha_1se_
            ax.axhline(limit, color=GREY, linewidth=0.6)
        if mark_strengths(ax, {name: alpha for name, alpha in places.items() if alpha > 0}):
            legend(ax, "best")
        ax.set_ylabel(f"mean squared error on held-out rows\n(mean of {folds} folds, ± 1 se)")
        if folds == 1:
            ax.set_ylabel("mean squared error on held-out rows")
        self.top_ = None if counts is None else count_on_top(ax, alphas, counts[shown])
        return self._drawn_on(ax)

    def _sorted(self) -> tuple[Array, Array, NDArray[np.intp] | None]:
        """Strengths, decreasing, with their errors and counts."""
        alphas = np.asarray(self.alphas, dtype=float)
        errors = np.asarray(self.errors, dtype=float)
        if alphas.ndim != 1 or errors.ndim != 2 or len(errors) != len(alphas):
            raise ValueError(
                f"{np.size(alphas)} strengths need errors of shape ({np.size(alphas)}, folds), got "
                f"{errors.shape}."
            )
        order = np.argsort(-alphas, kind="stable")
        counts = None if self.counts is None else np.asarray(self.counts, dtype=np.intp)[order]
        return alphas[order], errors[order], counts


def _from_numbers(
    alphas: ArrayLike, errors: ArrayLike, ax: Any = None, *, counts: ArrayLike | None = None
) -> CVCurveDisplay:
    return CVCurveDisplay(alphas, errors, counts).plot(ax)


@replaces(
    _from_numbers,
    instead="plot_cv_curve(model), or CVCurveDisplay(alphas, errors).plot() for plain numbers",
)
def plot_cv_curve(
    estimator: Any, X: Any = None, y: Any = None, ax: Any = None, *, sample_weight: Any = None
) -> CVCurveDisplay:
    """Draw the errors on held-out rows against the strength; see :class:`CVCurveDisplay`.

    Parameters
    ----------
    estimator : fitted LassoCV or ElasticNetCV
        Or a pipeline that ends in one.
    X : array-like or sparse matrix of shape (n, d), optional
        With ``y``: the numbers of non-zero coefficients are shown, of the path over all rows.
    y : array-like of shape (n,), optional
    ax : matplotlib Axes, optional
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    display : CVCurveDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import LassoCV
    >>> from trueline.plots import plot_cv_curve
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV().fit(X, y)
    >>> bool(plot_cv_curve(model).alpha_min_ == model.alpha_)
    True
    """
    return CVCurveDisplay.from_estimator(estimator, X, y, sample_weight=sample_weight, ax=ax)
