"""How a solver got there: what fell along the iterations, and the way over the objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, MARKERS, Array, Display
from trueline.trace import Trace

_SECOND = {"gap": "proven gap", "violation": "largest violation of the KKT conditions"}
_AGAINST = {"iteration": "updates", "visits": "rows seen", "passes": "passes over the data"}


@dataclass(repr=False)
class TraceDisplay(Display):
    """What happened along the iterations, one colour per solver.

    Objective and proven gap fall on a logarithmic axis; of SMO, which has no gap, the largest
    violation of the KKT conditions falls beside the objective. Of a perceptron it is the number of
    rows on the wrong side, with the errors in the pocket if there is one.

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
            trace, model = _trace_of(estimator), shared.fitted(estimator).model
            traces = {label or getattr(model, "solver_", type(model).__name__): trace}
        return cls(traces).plot(**arguments)

    def plot(
        self, ax: Any = None, *, against: str = "iteration", show: str = "both"
    ) -> TraceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        against : str, default="iteration"
            The column of the trace to draw against, such as "seconds"; of a perceptron also
            "visits" and "passes".
        show : {"both", "gap", "objective", "errors"}, default="both"
            The proven gap (dashed when both are shown), the objective above the lowest value that
            any of the traces reached (solid), or both; the rows on the wrong side, which is what
            is drawn of a perceptron.

        Returns
        -------
        self : TraceDisplay
        """
        shared.check_choice("show", show, ("both", "gap", "objective", "errors"))
        traces = {label: trace for label, trace in self.traces.items() if len(trace)}
        if not traces:
            raise ValueError("The traces are empty. Fit with trace=True to record one.")
        columns = set.intersection(*(set(trace.columns()) for trace in traces.values()))
        shared.check_choice("against", against, sorted(columns - {"gap", "objective", "errors"}))
        self.lines_ = []
        if "objective" not in columns or show == "errors":
            return self._errors(shared.axes(ax), traces, against)
        ax = shared.axes(ax, (8.0, 4.4))  # the legend stands beside the lines
        second = next((name for name in ("gap", "violation") if name in columns), None)
        show = "objective" if show == "both" and second is None else show
        lowest = min(np.nanmin(trace["objective"]) for trace in traces.values())
        for number, (label, trace) in enumerate(traces.items()):
            if show != "gap":
                above = trace["objective"] - lowest
                self._line(ax, trace[against], above, "-", number, label)
            if show != "objective":
                style = "--" if show == "both" else "-"
                name = "_" + label if show == "both" else label
                self._line(ax, trace[against], trace[second or "gap"], style, number, name)
        self._label(ax, against, show, _SECOND[second or "gap"])
        return self._drawn_on(ax)

    def _errors(self, ax: Any, traces: Mapping[str, Trace], against: str) -> TraceDisplay:
        """Rows on the wrong side, and the errors in the pocket, as steps."""
        of = {label: f"{label}: " if len(traces) > 1 else "" for label in traces}
        for number, (label, trace) in enumerate(traces.items()):
            colour = COLOURS[number % len(COLOURS)]
            pocket = trace.columns().get("pocket")
            thin = {"linewidth": 0.9, "alpha": 0.7} if pocket is not None else {"linewidth": 1.8}
            name = label if pocket is None else of[label] + "present weights"
            self.lines_ += ax.step(
                trace[against], trace["errors"], where="post", color=colour, label=name, **thin
            )
            if pocket is not None:
                dark = {"color": COLOURS[(number + 1) % len(COLOURS)], "linewidth": 2.2}
                self.lines_ += ax.step(
                    trace[against], pocket, where="post", label=of[label] + "pocket", **dark
                )
        ax.set_ylim(bottom=0)
        ax.set(xlabel=_AGAINST.get(against, against), ylabel="rows on the wrong side")
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_locator().set_params(integer=True)
        if len(self.lines_) > 1:
            shared.legend(ax, "upper right")
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

    def _label(self, ax: Any, against: str, show: str, second: str) -> None:
        ax.set(yscale="log", xlabel=against)
        names = {"gap": second, "objective": "objective above the lowest reached"}
        ax.set_ylabel(names.get(show, "distance to the optimum"))
        handles, _ = ax.get_legend_handles_labels()
        if show == "both":
            handles += ax.plot([], [], "-", color=GREY, label="objective above the lowest")
            handles += ax.plot([], [], "--", color=GREY, label=second)
        if len(handles) > 1:
            ax.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _trace_of(estimator: Any) -> Trace:
    model = shared.fitted(estimator).model
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
    against, show : str
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


# Lines of equal objective, and grid points along each axis.
_LEVELS, _GRID = 16, 121


@dataclass(repr=False)
class DescentDisplay(Display):
    """The way of a descent over the lines of equal objective, one picture for each fit.

    Parameters
    ----------
    paths : mapping of str to array of shape (points, 2)
        Where each fit came by, in two of its coordinates.
    objective : function of an array of shape (m, 2)
        The objective at points of the picture.
    minimum : array of shape (2,)
    names : tuple of str
        Of the coordinates.

    Attributes
    ----------
    ax_ : array of matplotlib Axes, one for each fit
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline.plots import DescentDisplay
    >>> path = np.array([[2.0, 2.0], [1.0, 0.5], [0.2, 0.1]])
    >>> bowl = lambda at: at[:, 0] ** 2 + 3 * at[:, 1] ** 2
    >>> DescentDisplay({"batch": path}, bowl, np.zeros(2)).plot().ax_[0].get_title()
    'batch'
    """

    paths: Mapping[str, Array]
    objective: Callable[[Array], Array]
    minimum: Array
    names: tuple[str, str] = ("$w_1$", "$w_2$")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        features: tuple[int, int] | None = None,
        ax: Any = None,
    ) -> DescentDisplay:
        """Draw where descents came by.

        Parameters
        ----------
        estimator : fitted LinearRegressor or LogisticRegression, or mapping of str to these
            Fitted with ``trace=True``, all with the same objective.
        X : array-like of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,)
        features : pair of int, optional
            Numbers of the coefficients to draw, d for the intercept. By default the two of two
            columns, or that of one column with the intercept. The others, and the intercept, stand
            at the minimum.
        ax : array of matplotlib Axes, or Axes, optional
        """
        models = estimator if isinstance(estimator, Mapping) else {"": estimator}
        traces = {label: _trace_of(one) for label, one in models.items()}
        first, columns, transform = shared.fitted(next(iter(models.values())))
        X = transform(X)
        problem = _problem_of(first, X, y)
        d = problem.n_features
        features = features or ((0, 1) if d > 1 else (0, d))
        if (
            problem.n_targets != 1
            or len(set(features)) != 2
            or not set(features) <= set(range(d + 1))
        ):
            raise ValueError(
                f"features={features} are not two different numbers from 0 to {d} (which is the "
                "intercept) of a model with one target or two classes."
            )
        asked = {"solver": "auto", "trace": False, "max_iter": 10_000, "tol": 1e-6}
        best = clone(first).set_params(**asked).fit(X, y)
        rest = np.append(np.ravel(best.coef_), best.intercept_)

        def objective(at: Array) -> Array:
            points = np.tile(rest, (len(at), 1))
            points[:, list(features)] = at
            return np.array([problem.objective(w[:d, None], w[d:]) for w in points])

        paths = {}
        for label, trace in traces.items():
            points = np.column_stack([trace.coef.reshape(len(trace.at), -1), trace.intercept])
            paths[label] = points[:, list(features)]
        words = [*(f"$w_{{{j + 1}}}$" for j in range(d)), "$b$"]
        if columns is not None and len(columns) == d:
            words[:d] = [f"weight of {name}" for name in columns]
        names = words[features[0]], words[features[1]]
        return cls(paths, objective, rest[list(features)], names).plot(ax)

    def plot(self, ax: Any = None) -> DescentDisplay:
        """Draw.

        Parameters
        ----------
        ax : array of matplotlib Axes, or Axes, optional
            One for each path.

        Returns
        -------
        self : DescentDisplay
        """
        count = len(self.paths)
        if ax is None:
            size = (4.6 * count if count > 1 else 5.6, 4.4)
            ax = shared.new_axes(1, count, size=size, squeeze=False)
        places = np.ravel(ax)
        if len(places) != count:
            raise ValueError(f"There are {count} paths to draw on {len(places)} axes.")
        shown = np.vstack([*self.paths.values(), self.minimum[None]])
        ends = shared.limits(shown[np.isfinite(shown).all(axis=1)], 0.15)
        ticks = [np.linspace(a, b, _GRID) for a, b in zip(*ends)]
        mesh = np.meshgrid(*ticks)
        heights = self.objective(np.column_stack([part.ravel() for part in mesh]))
        heights = heights.reshape(mesh[0].shape)
        bottom = float(self.objective(self.minimum[None])[0])
        # Squares of equal steps: lines that are evenly spaced in a bowl.
        levels = bottom + (np.nanmax(heights) - bottom) * np.linspace(0, 1, _LEVELS + 1)[1:] ** 2
        for place, (label, path) in zip(places, self.paths.items()):
            place.contour(*ticks, heights, levels=levels, cmap="Greys_r", linewidths=0.8)
            self._way(place, path)
            place.set(xlabel=self.names[0], ylabel=self.names[1])
            place.spines[["top", "right"]].set_visible(False)
            if label:
                shared.title(place, label)
        return self._drawn_on(places)

    def _way(self, ax: Any, path: Array) -> None:
        few = len(path) <= 60
        marker = {"marker": "o", "markersize": 3.5} if few else {}
        ax.plot(*path.T, color=COLOURS[1], linewidth=1.4 if few else 0.8, **marker, zorder=3)
        ax.plot(*path[0], "o", color=COLOURS[0], markersize=8, label="start", zorder=4)
        style = {"color": "black", "markersize": 12, "markeredgecolor": "white", "zorder": 5}
        ax.plot(*self.minimum, "*", label="minimum", **style)
        shared.legend(ax, "best")


def _problem_of(model: Any, X: Any, y: Any) -> Any:
    """The problem that a fitted model solved, stated again."""
    if not hasattr(model, "_validated_problem") or not hasattr(model, "coef_"):
        raise ValueError(
            f"{type(model).__name__} does not minimise an objective of its weights: descents are "
            "those of LinearRegressor and LogisticRegression."
        )
    return model._validated_problem(X, y, None, reset=False)[0]


def plot_descent(
    estimator: Any, X: Any, y: Any, ax: Any = None, *, features: tuple[int, int] | None = None
) -> DescentDisplay:
    """Draw the way of descents over the lines of equal objective; see :class:`DescentDisplay`.

    Parameters
    ----------
    estimator : fitted LinearRegressor or LogisticRegression, or mapping of str to these
        Fitted with ``trace=True``, all with the same objective.
    X : array-like of shape (n, d)
        The rows that were fitted.
    y : array-like of shape (n,)
    ax : array of matplotlib Axes, or Axes, optional
    features : pair of int, optional
        Numbers of the coefficients to draw, d for the intercept.

    Returns
    -------
    display : DescentDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline import LinearRegressor
    >>> from trueline.plots import plot_descent
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 2.0])
    >>> model = LinearRegressor(penalty=None, solver="gradient_descent", trace=True)
    >>> plot_descent(model.fit(X, y, coef_init=[3.0]), X, y).names
    ('$w_{1}$', '$b$')
    """
    return DescentDisplay.from_estimator(estimator, X, y, features=features, ax=ax)
