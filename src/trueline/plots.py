"""Pictures of fits: how a solver got there, which coefficients matter, how well it predicts.

Each picture is a display in scikit-learn's manner: made from an estimator or from plain numbers,
drawn by ``plot(ax=None)``, kept in ``ax_`` and ``figure_``. Matplotlib is imported when something
is drawn (``pip install 'trueline[plot]'``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.errors import require
from trueline.trace import Trace

__all__ = [
    "CoefficientDisplay",
    "FitDisplay",
    "TraceDisplay",
    "plot_coefficients",
    "plot_fit",
    "plot_trace",
]

Array = NDArray[np.float64]

# Okabe and Ito's palette without its yellow, told apart by every kind of colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "#888888"
# More points than this only make a picture darker and its file larger.
_MOST_POINTS = 5000


def _axes(ax: Any, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """The axes to draw on: the given ones, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plot")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _tidy(ax: Any) -> None:
    """Only the lines that are read."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)


# --- the way to the solution ----------------------------------------------------------------------


@dataclass
class TraceDisplay:
    """How objective and proven gap fell, one colour per solver, on a logarithmic axis.

    Parameters
    ----------
    traces : mapping of str to Trace
        Labels and traces (fits with ``trace=True``).

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import TraceDisplay
    >>> from trueline.trace import Trace
    >>> trace = Trace(enabled=True)
    >>> for t in range(4):
    ...     trace.record(iteration=t, objective=1.0 + 0.1**t, gap=0.3**t, seconds=0.01 * t)
    >>> display = TraceDisplay({"descent": trace}).plot(against="iteration")
    >>> display.ax_.get_yscale()
    'log'
    """

    traces: Mapping[str, Trace]
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    lines_: list[Any] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, label: str | None = None, **arguments: Any
    ) -> TraceDisplay:
        """Draw the trace of a fitted estimator (or of several, given as a mapping).

        Parameters
        ----------
        estimator : estimator or mapping of str to estimator
            Fitted with ``trace=True``.
        label : str, optional
            By default the name of the solver that ran.
        **arguments
            For :meth:`plot`.
        """
        if isinstance(estimator, Mapping):
            traces = {name: _trace_of(one) for name, one in estimator.items()}
        else:
            trace = _trace_of(estimator)
            traces = {label or getattr(estimator, "solver_", type(estimator).__name__): trace}
        return cls(traces).plot(**arguments)

    def plot(
        self, ax: Any = None, *, against: str = "iteration", show: str = "both"
    ) -> TraceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        against : {"iteration", "seconds"}, default="iteration"
        show : {"both", "gap", "objective"}, default="both"
            The proven gap (dashed when both are shown), the objective above the lowest value that
            any of the traces reached (solid), or both.

        Returns
        -------
        self : TraceDisplay
        """
        _check_choice("against", against, ("iteration", "seconds"))
        _check_choice("show", show, ("both", "gap", "objective"))
        if not any(len(trace) for trace in self.traces.values()):
            raise ValueError("The traces are empty. Fit with trace=True to record one.")
        ax = _axes(ax, (8.0, 4.4))  # the legend stands beside the lines
        lowest = min(np.nanmin(trace["objective"]) for trace in self.traces.values() if len(trace))
        self.lines_ = []
        for number, (label, trace) in enumerate(self.traces.items()):
            if not len(trace):
                continue
            if show != "gap":
                above = trace["objective"] - lowest
                self._line(ax, trace[against], above, "-", number, label)
            if show != "objective":
                style = "--" if show == "both" else "-"
                name = "_" + label if show == "both" else label
                self._line(ax, trace[against], trace["gap"], style, number, name)
        self._label(ax, against, show)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _line(self, ax: Any, x: Array, y: Array, style: str, number: int, label: str) -> None:
        """One line; what a logarithm cannot show is left out."""
        shown = np.isfinite(y) & (y > 0)
        # Hollow markers of several shapes keep lines apart that run over each other.
        every = max(1, np.count_nonzero(shown) // 12)
        self.lines_ += ax.plot(
            x[shown],
            y[shown],
            style,
            color=_COLOURS[number % len(_COLOURS)],
            label=label,
            linewidth=1.6,
            marker=_MARKERS[number % len(_MARKERS)],
            markevery=every,
            markersize=5,
            markerfacecolor="none",
        )

    def _label(self, ax: Any, against: str, show: str) -> None:
        ax.set_yscale("log")
        ax.set_xlabel(against)
        names = {"gap": "proven gap", "objective": "objective above the lowest reached"}
        ax.set_ylabel(names.get(show, "distance to the optimum"))
        _tidy(ax)
        handles, _ = ax.get_legend_handles_labels()
        if show == "both":
            handles += ax.plot([], [], "-", color=_GREY, label="objective above the lowest")
            handles += ax.plot([], [], "--", color=_GREY, label="proven gap")
        if len(handles) > 1:
            ax.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {tuple(choices)}.")


def _trace_of(estimator: Any) -> Trace:
    check_is_fitted(estimator)
    trace = getattr(estimator, "trace_", None)
    if trace is None or not len(trace):
        raise ValueError(
            f"{type(estimator).__name__} recorded no trace. Fit it with trace=True and an "
            "iterative solver."
        )
    return trace


def plot_trace(
    trace: Trace | Mapping[str, Trace],
    ax: Any = None,
    *,
    against: str = "iteration",
    show: str = "both",
) -> TraceDisplay:
    """Draw one trace, or several by name; see :class:`TraceDisplay`."""
    traces = trace if isinstance(trace, Mapping) else {"fit": trace}
    return TraceDisplay(traces).plot(ax, against=against, show=show)


# --- coefficients ---------------------------------------------------------------------------------


@dataclass
class CoefficientDisplay:
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
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
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
        names : sequence of str, optional
            By default ``feature_names_in_``, else x0, x1, ...
        target : int, default=0
            Which target or class, if there are several.
        **arguments
            For :meth:`plot`.
        """
        check_is_fitted(estimator)
        coef = np.atleast_2d(estimator.coef_)
        if not 0 <= target < len(coef):
            raise ValueError(f"target={target} is not one of the {len(coef)} targets (from 0).")
        if names is None:
            names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(coef.shape[1])]
        return cls(list(names), coef[target]).plot(**arguments)

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
        ax = _axes(ax, (6.4, 1.2 + 0.28 * max(3, len(order))))
        place = np.arange(len(order))
        shown = coef[order]
        colours = [_COLOURS[0] if value >= 0 else _COLOURS[1] for value in shown]
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
        _tidy(ax)
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_coefficients(
    names: Sequence[str],
    coef: ArrayLike,
    ax: Any = None,
    *,
    interval: ArrayLike | None = None,
    top: int | None = 20,
    sort: bool = True,
) -> CoefficientDisplay:
    """Draw coefficients with names; see :class:`CoefficientDisplay`."""
    return CoefficientDisplay(names, coef, interval).plot(ax, top=top, sort=sort)


# --- predictions ----------------------------------------------------------------------------------


@dataclass
class FitDisplay:
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
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

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
        ax = _axes(ax)
        _tidy(ax)
        keep = _sample(len(y_true))
        if self.feature is None:
            self._against_truth(ax, y_true, y_pred, keep)
        else:
            self._over_feature(ax, y_true, y_pred, keep)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _against_truth(self, ax: Any, y_true: Array, y_pred: Array, keep: Any) -> None:
        ends = [min(y_true.min(), y_pred.min()), max(y_true.max(), y_pred.max())]
        ax.plot(ends, ends, color="black", linewidth=0.9, label="predicted = actual")
        _scatter(ax, y_pred[keep], y_true[keep], len(y_true))
        ax.set_xlabel("predicted")
        ax.set_ylabel("actual")
        ax.legend(frameon=False, title=_quality(y_true, y_pred), title_fontsize="medium")

    def _over_feature(self, ax: Any, y_true: Array, y_pred: Array, keep: Any) -> None:
        feature = np.asarray(self.feature, float)
        _scatter(ax, feature[keep], y_true[keep], len(y_true))
        order = np.argsort(feature, kind="stable")
        x, y = self.line if self.line is not None else (feature[order], y_pred[order])
        ax.plot(x, y, color=_COLOURS[1], linewidth=2.0, label="fit")
        ax.set_xlabel(self.name)
        ax.set_ylabel("target")
        ax.legend(frameon=False, title=_quality(y_true, y_pred), title_fontsize="medium")


def _column(y: Any, target: int) -> Array:
    y = np.asarray(y, dtype=float)
    return y if y.ndim == 1 else y[:, target]


def _sample(n: int) -> Any:
    """All rows, or the same few thousand of them each time."""
    if n <= _MOST_POINTS:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n, _MOST_POINTS, replace=False))


def _scatter(ax: Any, x: Array, y: Array, n: int) -> None:
    label = "data" if n <= _MOST_POINTS else f"data ({_MOST_POINTS:,} of {n:,} rows)"
    alpha = 0.7 if len(x) <= 500 else 0.25
    ax.scatter(x, y, s=16, color=_COLOURS[0], alpha=alpha, linewidths=0, label=label)


def _quality(y_true: Array, y_pred: Array) -> str:
    """R^2 over all rows, as text."""
    spread = float(np.sum((y_true - y_true.mean()) ** 2))
    if spread == 0:
        return ""
    return f"$R^2$ = {1.0 - float(np.sum((y_true - y_pred) ** 2)) / spread:.3f}"


def plot_fit(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    ax: Any = None,
    *,
    feature: ArrayLike | None = None,
    name: str = "x",
) -> FitDisplay:
    """Draw predictions against the truth, or over a single feature; see :class:`FitDisplay`."""
    return FitDisplay(y_true, y_pred, feature, name).plot(ax)
