"""Coefficients, and errors on held-out rows, against the strength of a penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.regression.ridge import Ridge
from trueline.estimators.regression.ridge_cv import RidgeCV
from trueline.estimators.sparse.paths import RegularizationPath, regularization_path
from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, PALE, Array, Display

_DASHES = ("-", "--", ":", "-.")
_LINE = 0.17  # inches between two names


@dataclass(repr=False)
class PathDisplay(Display):
    """Coefficients against the strength, with names, and how many are not zero along the top.

    Parameters
    ----------
    alphas : array of shape (m,)
        Strengths.
    coefs : array or sparse matrix of shape (d, m)
    names : sequence of str, optional
        Of the columns; x0, x1, ... by default.
    marked : mapping of str to float, optional
        Strengths to be marked, by what they are.
    freedom : array of shape (m,), optional
        Degrees of freedom, for the top axis in place of the numbers of non-zero coefficients.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The lines with a name.
    top_ : matplotlib SecondaryAxis
        The axis with the numbers of non-zero coefficients, or the degrees of freedom.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import PathDisplay
    >>> display = PathDisplay([1.0, 0.1], [[0.0, 2.0], [0.0, 0.0]], ["age", "height"]).plot()
    >>> list(display.lines_)
    ['age']
    """

    alphas: ArrayLike
    coefs: Any
    names: Sequence[str] | None = None
    marked: Mapping[str, float] | None = None
    freedom: ArrayLike | None = None
    lines_: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    top_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        names: Sequence[str] | None = None,
        sample_weight: Any = None,
        **arguments: Any,
    ) -> PathDisplay:
        """Follow the path of a fitted lasso, elastic net or ridge regression, and draw it.

        What the estimator has chosen is marked.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        names : sequence of str, optional
            By default ``feature_names_in_``, else x0, x1, ...
        sample_weight : array-like of shape (n,), optional
        **arguments
            For :meth:`plot`.
        """
        model, own, transform = shared.fitted(estimator)
        path = path_of(model, transform(X), y, sample_weight)
        # The strength of a ridge regression is that of a sum.
        alphas = path.alphas * (path.total_weight if path.l1_ratio == 0 else 1.0)
        named, marked = own if names is None else names, chosen_strengths(model)
        return cls(alphas, path.coefs, named, marked, _freedom(path)).plot(**arguments)

    def plot(self, ax: Any = None, *, top: int | None = 10, against: str = "alpha") -> PathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        top : int or None, default=10
            So many columns get a colour and a name, those with the largest coefficients at the end
            of the path; None for all that are not zero.
        against : {"alpha", "norm"}, default="alpha"
            The strength on a logarithmic axis, weaker to the right, or the sum of the absolute
            values of the coefficients.

        Returns
        -------
        self : PathDisplay
        """
        shared.check_choice("against", against, ("alpha", "norm"))
        alphas, coefs, order = self._sorted()
        names = shared.names_of(self.names, len(coefs))
        norms = np.abs(coefs).sum(axis=0)
        x = alphas if against == "alpha" else norms
        ax = shared.axes(ax, (8.0, 4.8))
        ax.axhline(0.0, color="black", linewidth=0.8)
        if against == "alpha":
            draw_strengths(ax, alphas)
            places = dict(self.marked or {})
        else:
            ax.set(xlabel="sum of absolute coefficients", xlim=(norms.min(), norms.max() or 1.0))
            at = np.log(alphas[::-1]), norms[::-1]
            places = {
                name: float(np.interp(np.log(alpha), *at))
                for name, alpha in (self.marked or {}).items()
                if alpha > 0
            }
        self._draw_lines(ax, x, coefs, names, top)
        if mark_strengths(ax, places):
            shared.legend(ax, _empty_corner(ax, x, coefs))
        if self.freedom is None:
            self.top_ = count_on_top(ax, x, np.count_nonzero(coefs, axis=0))
        else:
            counts = np.asarray(self.freedom, dtype=float)[order]
            self.top_ = count_on_top(ax, x, counts, "degrees of freedom")
        ax.set_ylabel("coefficient")
        return self._drawn_on(ax)

    def _sorted(self) -> tuple[Array, Array, NDArray[np.intp]]:
        """Strengths, decreasing, coefficients of shape (d, m), and their places before."""
        alphas = np.asarray(self.alphas, dtype=float)
        coefs = self.coefs.toarray() if sp.issparse(self.coefs) else np.asarray(self.coefs, float)
        if alphas.ndim != 1 or coefs.ndim != 2 or coefs.shape[1] != len(alphas):
            raise ValueError(
                f"{np.size(alphas)} strengths need coefficients of shape (d, {np.size(alphas)}), "
                f"got {coefs.shape}."
            )
        shown = np.flatnonzero(positive_strengths(alphas))
        order = shown[np.argsort(-alphas[shown], kind="stable")]
        return alphas[order], coefs[:, order], order

    def _draw_lines(
        self, ax: Any, x: Array, coefs: Array, names: list[str], top: int | None
    ) -> None:
        """Pale lines for all, coloured ones with names for the largest."""
        used = np.flatnonzero(coefs.any(axis=1))
        size = np.abs(coefs[:, -1]) + 1e-9 * np.abs(coefs).max(axis=1)
        foremost = used[np.argsort(-size[used], kind="stable")][:top]
        for j in np.setdiff1d(used, foremost):
            ax.plot(x, coefs[j], color=PALE, linewidth=0.7, zorder=1.5)
        self.lines_ = {}
        for number, j in enumerate(foremost):
            style = _DASHES[number // len(COLOURS) % len(_DASHES)]
            colour = COLOURS[number % len(COLOURS)]
            (line,) = ax.plot(x, coefs[j], style, color=colour, linewidth=1.6, label="_" + names[j])
            self.lines_[names[j]] = line
        if len(foremost):
            _name_lines(ax, float(x[-1]), coefs[foremost, -1], list(self.lines_.items()))


def _empty_corner(ax: Any, x: Array, coefs: Array) -> str:
    """The left corner with more room: few columns have entered there."""
    scale = np.log if ax.get_xscale() == "log" else np.asarray
    left, right = scale(ax.get_xlim())
    early = coefs[:, np.abs(scale(x) - left) < 0.35 * abs(right - left)]
    low, high = ax.get_ylim()
    above, below = high - early.max(initial=0.0), early.min(initial=0.0) - low
    return "upper left" if above >= below else "lower left"


def _name_lines(ax: Any, x: float, ends: Array, lines: list[tuple[str, Any]]) -> None:
    """Names at the right, next to where the lines end, moved apart where they would overlap."""
    low, high = ax.get_ylim()
    room = (ax.get_position().height * ax.figure.get_size_inches()[1]) or 1.0
    gap = min(_LINE / room * (high - low), (high - low) / max(len(ends), 1))
    for place, end, (name, line) in zip(spread(ends, gap, low, high), ends, lines):
        ax.annotate(
            name,
            xy=(x, end),
            xytext=(1.03, place),
            textcoords=ax.get_yaxis_transform(),
            color=line.get_color(),
            va="center",
            fontsize="small",
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linewidth": 0.6,
                "shrinkA": 1.0,
                "shrinkB": 0.0,
                "relpos": (0.0, 0.5),
            },
        )


def spread(places: Array, gap: float, low: float, high: float) -> Array:
    """The nearest places (in squares) that are at least ``gap`` apart and within the limits.

    With the i-th place in order lowered by i gaps this is isotonic regression.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.plots.path import spread
    >>> spread(np.array([1.0, 0.0, 1.0]), gap=1.0, low=-5.0, high=5.0).round(3)
    array([ 0.667, -0.333,  1.667])
    """
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    top = max(low, high - steps[-1])
    spaced = np.empty(len(places))
    spaced[order] = isotonic_regression(places[order] - steps, y_min=low, y_max=top) + steps
    return spaced


def chosen_strengths(estimator: Any) -> dict[str, float]:
    """What a fitted estimator has chosen, by name."""
    rules = {
        "smallest error": getattr(estimator, "alpha_min_", getattr(estimator, "alpha_", None)),
        "one standard error": getattr(estimator, "alpha_1se_", None),
        "alpha": None if hasattr(estimator, "alpha_") else getattr(estimator, "alpha", None),
    }
    return {name: float(alpha) for name, alpha in rules.items() if alpha is not None}


def chosen_grid(estimator: Any) -> tuple[Array, Array]:
    """Of the mixture that was chosen: strengths of shape (m,) and errors of shape (m, folds)."""
    ratios = np.atleast_1d(getattr(estimator, "l1_ratio", 1.0))
    alphas, errors = np.asarray(estimator.alphas_), np.asarray(estimator.mse_path_)
    count = alphas.shape[-1]
    errors = errors.reshape(len(ratios), count, -1)
    best = int(np.argmin(np.abs(ratios - getattr(estimator, "l1_ratio_", ratios[0]))))
    return np.atleast_2d(alphas)[best if alphas.ndim == 2 else 0], errors[best]


def path_of(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> RegularizationPath:
    """The path of a fitted model, over the grid of its cross-validation if any."""
    check_is_fitted(estimator)
    if isinstance(estimator, Ridge | RidgeCV):
        if estimator.coef_.ndim > 1:
            raise ValueError("A path is drawn for one target.")
        rule = {"fit_intercept": estimator.fit_intercept, "sample_weight": sample_weight}
        return regularization_path(
            X, y, l1_ratio=0.0, positive=getattr(estimator, "positive", False), **rule
        )
    if not hasattr(estimator, "positive"):
        raise ValueError(
            f"{type(estimator).__name__} has no path to draw: fit Lasso, ElasticNet, Ridge or one "
            "with its cross-validation, or give a path of regularization_path."
        )
    ratio = getattr(estimator, "l1_ratio_", getattr(estimator, "l1_ratio", 1.0))
    return regularization_path(
        X,
        y,
        l1_ratio=float(np.ravel(ratio)[0]),
        alphas=chosen_grid(estimator)[0] if hasattr(estimator, "mse_path_") else 100,
        fit_intercept=estimator.fit_intercept,
        sample_weight=sample_weight,
        positive=estimator.positive,
        feature_weights=getattr(estimator, "feature_weights", None),
        bounds=getattr(estimator, "bounds", None),
    )


def _freedom(path: RegularizationPath) -> Array | None:
    """Degrees of freedom, where no coefficient becomes zero."""
    return path.degrees_of_freedom if path.l1_ratio == 0 else None


def plot_path(
    path: Any,
    X: Any = None,
    y: Any = None,
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    marked: Mapping[str, float] | None = None,
    sample_weight: Any = None,
    top: int | None = 10,
    against: str = "alpha",
) -> PathDisplay:
    """Draw how coefficients change with the strength of a penalty; see :class:`PathDisplay`.

    Parameters
    ----------
    path : fitted Lasso, ElasticNet, Ridge, or one with CV; RegularizationPath; or tuple
        A model needs X and y, to follow its path; what it has chosen is marked. A path is what
        :func:`trueline.regularization_path` or :func:`trueline.lasso_path` returns.
    X : array-like or sparse matrix of shape (n, d), optional
        The rows that the model was fitted to.
    y : array-like of shape (n,), optional
    ax : matplotlib Axes, optional
    names : sequence of str, optional
        By default those that the model or the path knows.
    marked : mapping of str to float, optional
        Strengths to be marked on a path.
    sample_weight : array-like of shape (n,), optional
        With which the model was fitted.
    top, against
        As in :meth:`PathDisplay.plot`.

    Returns
    -------
    display : PathDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import LassoCV
    >>> from trueline.plots import plot_path
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> display = plot_path(LassoCV().fit(X, y), X, y, top=3)
    >>> sorted(display.lines_)
    ['bmi', 's1', 's5']
    """
    if hasattr(path, "fit"):
        if X is None or y is None:
            raise ValueError(
                "A fitted model does not keep its rows: plot_path(model, X, y) follows its path."
            )
        return PathDisplay.from_estimator(
            path, X, y, names=names, sample_weight=sample_weight, ax=ax, top=top, against=against
        )
    if isinstance(path, RegularizationPath):
        if names is None and path.feature_names is not None:
            names = path.feature_names.tolist()
        display = PathDisplay(path.alphas, path.coefs, names, marked, _freedom(path))
        return display.plot(ax, top=top, against=against)
    return PathDisplay(path[0], path[1], names, marked).plot(ax, top=top, against=against)


#: How the first, second, ... marked strength is drawn.
MARKS = ("--", ":", "-.")
_MOST_COUNTS = 9


def positive_strengths(alphas: Array) -> NDArray[np.bool_]:
    """Which strengths a logarithmic axis can show; an error if these are fewer than two."""
    shown = alphas > 0
    if np.count_nonzero(shown) < 2:
        raise ValueError("A path needs at least two positive strengths to be drawn.")
    return shown


def draw_strengths(ax: Any, alphas: Array) -> None:
    """Make the lower axis one of strengths."""
    ax.set(xscale="log", xlim=(alphas.max(), alphas.min()))
    ax.set_xlabel("alpha (weaker penalty to the right)")


def count_on_top(
    ax: Any, x: Array, counts: NDArray[Any], label: str = "non-zero coefficients"
) -> Any:
    """Numbers of non-zero coefficients along the top, at places evenly spread over the axis."""
    left, right = ax.get_xlim()
    scale = np.log if ax.get_xscale() == "log" else np.asarray
    share = (scale(x) - scale(left)) / (scale(right) - scale(left))
    wanted = np.linspace(0.0, 1.0, min(_MOST_COUNTS, len(x)))
    picked = np.unique([int(np.argmin(np.abs(share - place))) for place in wanted])
    top = ax.secondary_xaxis("top")
    top.set_xticks(x[picked], [f"{counts[i]:.3g}" for i in picked])
    top.minorticks_off()
    top.spines["top"].set_visible(False)
    top.tick_params(length=0)
    top.set_xlabel(label)
    return top


def mark_strengths(ax: Any, places: Mapping[str, float]) -> list[Any]:
    """A vertical line for each chosen strength, named in the legend."""
    return [
        ax.axvline(place, color=GREY, linestyle=style, linewidth=1.2, label=label)
        for (label, place), style in zip(places.items(), MARKS * len(places))
    ]


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
        model, _, transform = shared.fitted(estimator)
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
        ax = shared.axes(ax, (8.0, 4.8))
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
            shared.legend(ax, "best")
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
