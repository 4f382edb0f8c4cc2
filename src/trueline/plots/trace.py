"""How a solver got there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueline.plots.style import (
    COLOURS,
    GREY,
    MARKERS,
    Array,
    Display,
    axes,
    check_choice,
    fitted,
    tidy,
)
from trueline.trace import Trace


@dataclass(repr=False)
class TraceDisplay(Display):
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
            trace, model = _trace_of(estimator), fitted(estimator).model
            traces = {label or getattr(model, "solver_", type(model).__name__): trace}
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
        check_choice("against", against, ("iteration", "seconds"))
        check_choice("show", show, ("both", "gap", "objective"))
        if not any(len(trace) for trace in self.traces.values()):
            raise ValueError("The traces are empty. Fit with trace=True to record one.")
        ax = axes(ax, (8.0, 4.4))  # the legend stands beside the lines
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
        return self._drawn_on(ax)

    def _line(self, ax: Any, x: Array, y: Array, style: str, number: int, label: str) -> None:
        """One line; what a logarithm cannot show is left out."""
        shown = np.isfinite(y) & (y > 0)
        # Hollow markers of several shapes keep lines apart that run over each other.
        every = max(1, np.count_nonzero(shown) // 12)
        self.lines_ += ax.plot(
            x[shown],
            y[shown],
            style,
            color=COLOURS[number % len(COLOURS)],
            label=label,
            linewidth=1.6,
            marker=MARKERS[number % len(MARKERS)],
            markevery=every,
            markersize=5,
            markerfacecolor="none",
        )

    def _label(self, ax: Any, against: str, show: str) -> None:
        ax.set_yscale("log")
        ax.set_xlabel(against)
        names = {"gap": "proven gap", "objective": "objective above the lowest reached"}
        ax.set_ylabel(names.get(show, "distance to the optimum"))
        tidy(ax)
        handles, _ = ax.get_legend_handles_labels()
        if show == "both":
            handles += ax.plot([], [], "-", color=GREY, label="objective above the lowest")
            handles += ax.plot([], [], "--", color=GREY, label="proven gap")
        if len(handles) > 1:
            ax.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _trace_of(estimator: Any) -> Trace:
    model = fitted(estimator).model
    trace = getattr(model, "trace_", None)
    if trace is None or not len(trace):
        raise ValueError(
            f"{type(model).__name__} recorded no trace. Fit it with trace=True and an "
            "iterative solver."
        )
    return trace


def plot_trace(
    estimator: Any, ax: Any = None, *, against: str = "iteration", show: str = "both"
) -> TraceDisplay:
    """Draw the iterations of a fit, or of several fits by name; see :class:`TraceDisplay`.

    Parameters
    ----------
    estimator : estimator fitted with ``trace=True``, Trace, or mapping of str to these
        A trace is what a fitted model keeps in ``trace_``.
    ax : matplotlib Axes, optional
    against, show
        As in :meth:`TraceDisplay.plot`.

    Returns
    -------
    display : TraceDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import LinearRegressor
    >>> from trueline.plots import plot_trace
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearRegressor("squared", "l1", 10.0, trace=True).fit(X, y)
    >>> plot_trace(model).ax_.get_xlabel()
    'iteration'
    """
    if isinstance(estimator, Mapping):
        traces = {
            name: one if isinstance(one, Trace) else _trace_of(one)
            for name, one in estimator.items()
        }
        return TraceDisplay(traces).plot(ax, against=against, show=show)
    if isinstance(estimator, Trace):
        return TraceDisplay({"fit": estimator}).plot(ax, against=against, show=show)
    return TraceDisplay.from_estimator(estimator, ax=ax, against=against, show=show)
