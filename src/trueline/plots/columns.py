"""A criterion along the steps of a selection of columns, and against the number of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueline.best_subset.search import SubsetPath
from trueline.plots import shared
from trueline.plots.shared import COLOURS, CRITERION_WORDS, PALE, Array, Display
from trueline.selection.criteria import CRITERIA

_MOST_NAMES = 40
_SHOWN_NAMES = 2


@dataclass(repr=False)
class StepsDisplay(Display):
    """A criterion after each step, with the columns that entered and left.

    Parameters
    ----------
    values : sequence of float
        The criterion: at the start (if there is a record of it) and after each step.
    entered, left : sequences of sequences of str
        Names of the columns that came and went in each step.
    criterion : str, default="criterion"
        Its name.
    errors : sequence of float, optional
        Standard errors of the values.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The markers: "start", "entered" and "left", as far as there are any.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import StepsDisplay
    >>> display = StepsDisplay([9.0, 5.0, 4.0], [[], ["age"], ["bmi"]], [[], [], []], "aic").plot()
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['start', '+ age', '+ bmi']
    """

    values: Sequence[float]
    entered: Sequence[Sequence[str]]
    left: Sequence[Sequence[str]]
    criterion: str = "criterion"
    errors: Sequence[float] | None = None
    lines_: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, **arguments: Any) -> StepsDisplay:
        """Draw the history of a fitted StepwiseRegression or SequentialFeatureSelector.

        Parameters
        ----------
        estimator : fitted estimator
        **arguments
            For :meth:`plot`.
        """
        estimator, names, _ = shared.fitted(estimator)
        if not getattr(estimator, "history_", None):
            raise ValueError(f"{type(estimator).__name__} has no history of steps to draw.")
        history = estimator.history_
        if "score" in history[0]:
            forward = estimator.direction == "forward"
            history = [
                {
                    "entered": [step["feature"]] if forward else [],
                    "left": [] if forward else [step["feature"]],
                    "criterion": step["score"],
                }
                for step in history
            ]
            return _steps_display(history, names, "cross-validated score").plot(**arguments)
        return _from_history(history, names, estimator.criterion).plot(**arguments)

    def plot(self, ax: Any = None) -> StepsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : StepsDisplay
        """
        values = np.asarray(self.values, dtype=float)
        if not len(values) == len(self.entered) == len(self.left):
            raise ValueError(
                f"{len(values)} values need as many lists of columns, got {len(self.entered)} that "
                f"entered and {len(self.left)} that left."
            )
        steps = np.arange(len(values))
        came = np.array([bool(names) for names in self.entered], dtype=bool)
        went = np.array([bool(names) for names in self.left], dtype=bool) & ~came
        ax = shared.axes(ax, (max(6.4, min(0.32 * len(values) + 2.0, 14.0)), 4.8))
        ax.plot(steps, values, color=PALE, linewidth=1.0, zorder=1.5)
        if self.errors is not None and np.isfinite(self.errors).any():
            ax.errorbar(steps, values, yerr=self.errors, fmt="none", ecolor=PALE, capsize=2.0)
        self.lines_ = {}
        for name, which, marker, colour in (
            ("start", ~(came | went), "o", "black"),
            ("entered", came, "^", COLOURS[0]),
            ("left", went, "v", COLOURS[1]),
        ):
            if which.any():
                style = {"color": colour, "markersize": 7, "label": name}
                (self.lines_[name],) = ax.plot(steps[which], values[which], marker, **style)
        self._label(ax, steps)
        return self._drawn_on(ax)

    def _label(self, ax: Any, steps: Any) -> None:
        ax.set_ylabel(CRITERION_WORDS.get(self.criterion, self.criterion))
        if len(steps) <= _MOST_NAMES:
            changes = [_change(came, went) for came, went in zip(self.entered, self.left)]
            tilt: dict[str, Any] = {"rotation": 90}
            if max(map(len, changes)) * len(steps) < 60:
                tilt = {}
            ax.set_xticks(steps, changes, fontsize="small", **tilt)
        else:
            ax.set_xlabel("step")
            ax.xaxis.get_major_locator().set_params(integer=True)
        if len(self.lines_) > 1:
            shared.legend(ax, "best")


def _change(entered: Sequence[str], left: Sequence[str]) -> str:
    """What a step did, in a few characters."""
    parts = []
    for sign, names in (("+", entered), ("−", left)):
        shown = ", ".join(names[:_SHOWN_NAMES]) + (", ..." if len(names) > _SHOWN_NAMES else "")
        parts += [f"{sign} {shown}"] if shown else []
    return "  ".join(parts) or "start"


def _steps_display(
    history: Sequence[Mapping[str, Any]], names: Sequence[str] | None, criterion: str
) -> StepsDisplay:
    def called(columns: Sequence[int]) -> list[str]:
        return [f"x{j}" if names is None else str(names[j]) for j in columns]

    has_errors = all("standard_error" in step for step in history)
    return StepsDisplay(
        [step["criterion"] for step in history],
        [called(step["entered"]) for step in history],
        [called(step["left"]) for step in history],
        criterion,
        [step["standard_error"] for step in history] if has_errors else None,
    )


def _from_history(
    history: Sequence[Mapping[str, Any]], names: Sequence[str] | None, criterion: str
) -> StepsDisplay:
    start = {**history[0], "entered": [], "left": []}  # of a backward search: all columns
    return _steps_display([start, *history[1:]], names, criterion)


def plot_steps(
    estimator: Any,
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    criterion: str = "criterion",
) -> StepsDisplay:
    """Draw the steps of a selection; see :class:`StepsDisplay`.

    Parameters
    ----------
    estimator : fitted StepwiseRegression or SequentialFeatureSelector, or list of dict
        A list is the ``history_`` of a StepwiseRegression.
    ax : matplotlib Axes, optional
    names : sequence of str, optional
        Of all columns, for a list: a model knows its own.
    criterion : str
        The name of what the search improved, for a list: a model knows its own.

    Returns
    -------
    display : StepsDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import StepwiseRegression
    >>> from trueline.plots import plot_steps
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> display = plot_steps(StepwiseRegression(criterion="bic").fit(X, y))
    >>> [label.get_text() for label in display.ax_.get_xticklabels()][:3]
    ['start', '+ bmi', '+ s5']
    """
    if hasattr(estimator, "fit"):
        return StepsDisplay.from_estimator(estimator, ax=ax)
    return _from_history(estimator, names, criterion).plot(ax)


@dataclass(repr=False)
class SubsetDisplay(Display):
    """A criterion against the number of columns; what is proven is told from what is not.

    Parameters
    ----------
    sizes : array of int of shape (m,)
        Numbers of columns.
    values : array of shape (m,)
        The criterion of the best support that was found for each.
    proven : array of bool of shape (m,), optional
        Whether no better support exists; all by default.
    criterion : str, default="bic"
        "aic", "aicc", "bic", "adjusted_r2", "cp" or "objective".
    chosen : int, optional
        The size to be marked.
    lower : array of shape (m,), optional
        Lower bounds on the values, drawn as whiskers where nothing is proven.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The markers: "proven", "not proven" and "chosen", as far as there are any.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import SubsetDisplay
    >>> display = SubsetDisplay([1, 2, 3], [5.0, 2.0, 2.5], [True, True, False], chosen=2).plot()
    >>> list(display.lines_)
    ['proven', 'not proven', 'chosen']
    """

    sizes: ArrayLike
    values: ArrayLike
    proven: ArrayLike | None = None
    criterion: str = "bic"
    chosen: int | None = None
    lower: ArrayLike | None = None
    lines_: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, criterion: str | None = None, **arguments: Any
    ) -> SubsetDisplay:
        """Draw what a fitted BestSubset has found.

        Parameters
        ----------
        estimator : fitted BestSubset
        criterion : str, optional
            By default the one that chose the size; "objective" shows what was minimised.
        **arguments
            For :meth:`plot`.
        """
        return _found(estimator, criterion).plot(**arguments)

    def plot(self, ax: Any = None) -> SubsetDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : SubsetDisplay
        """
        sizes, values, proven, lower = self._sorted()
        ax = shared.axes(ax)
        ax.plot(sizes, values, color=PALE, linewidth=1.0, zorder=1.5)
        if lower is not None and not proven.all():
            ax.vlines(sizes[~proven], lower[~proven], values[~proven], color=COLOURS[1], lw=1.2)
        self.lines_ = {}
        for name, which, colour, face in (
            ("proven", proven, COLOURS[0], COLOURS[0]),
            ("not proven", ~proven, COLOURS[1], "white"),
        ):
            if which.any():
                (self.lines_[name],) = ax.plot(
                    sizes[which],
                    values[which],
                    "o",
                    color=colour,
                    markerfacecolor=face,
                    markersize=6,
                    label="proven to be the best" if name == "proven" else "best found, not proven",
                )
        if self.chosen is not None:
            here = sizes == self.chosen
            (self.lines_["chosen"],) = ax.plot(
                sizes[here],
                values[here],
                "o",
                color="black",
                markerfacecolor="none",
                markersize=13,
                label=f"chosen: {self.chosen} column{'s' * (self.chosen != 1)}",
            )
        ax.set_xlabel("number of columns")
        ax.set_ylabel(CRITERION_WORDS.get(self.criterion, self.criterion))
        ax.xaxis.get_major_locator().set_params(integer=True)
        shared.legend(ax, "best")
        return self._drawn_on(ax)

    def _sorted(self) -> tuple[NDArray[np.intp], Array, NDArray[np.bool_], Array | None]:
        """By size; sizes whose criterion is not finite are left out."""
        sizes, values = np.asarray(self.sizes, dtype=np.intp), np.asarray(self.values, dtype=float)
        proven = np.ones(len(sizes), bool) if self.proven is None else np.asarray(self.proven, bool)
        if not sizes.shape == values.shape == proven.shape or sizes.ndim != 1:
            raise ValueError(
                f"Sizes, values and proven must be equally long, got shapes {sizes.shape}, "
                f"{values.shape} and {proven.shape}."
            )
        shown = np.flatnonzero(np.isfinite(values))
        if not len(shown):
            raise ValueError(f"No size has a finite {self.criterion}: there is nothing to draw.")
        order = shown[np.argsort(sizes[shown], kind="stable")]
        lower = None if self.lower is None else np.asarray(self.lower, dtype=float)[order]
        return sizes[order], values[order], proven[order], lower


def _subset_display(path: SubsetPath, criterion: str) -> SubsetDisplay:
    shared.check_choice("criterion", criterion, (*CRITERIA, "objective"))
    if criterion == "objective":
        return SubsetDisplay(path.k, path.objective, path.proven, criterion, lower=path.lower_bound)
    return SubsetDisplay(path.k, path.criteria[criterion], path.proven, criterion)


def _found(estimator: Any, criterion: str | None) -> SubsetDisplay:
    """What a fitted model has found and chosen."""
    model = shared.fitted(estimator).model
    if not isinstance(getattr(model, "path_", None), SubsetPath):
        raise ValueError(
            f"{type(model).__name__} has no path of subsets: fit BestSubset or L0Regression."
        )
    own: str = getattr(model, "criterion", "objective")
    display = _subset_display(model.path_, criterion or own)
    display.chosen = getattr(model, "k_", None)
    return display


def plot_subsets(
    estimator: Any, ax: Any = None, *, criterion: str | None = None, chosen: int | None = None
) -> SubsetDisplay:
    """Draw what a best-subset search has found; see :class:`SubsetDisplay`.

    Parameters
    ----------
    estimator : fitted BestSubset, or SubsetPath
        A path is what a fitted model keeps in ``path_``.
    ax : matplotlib Axes, optional
    criterion : str, optional
        By default the one that chose the size, "bic" for a path.
    chosen : int, optional
        The size to be marked; by default the one that the model has chosen.

    Returns
    -------
    display : SubsetDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import BestSubset
    >>> from trueline.plots import plot_subsets
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BestSubset(k=[1, 2, 3, 4], criterion="bic").fit(X, y)
    >>> plot_subsets(model).chosen == model.k_
    True
    """
    if isinstance(estimator, SubsetPath):
        display = _subset_display(estimator, criterion or "bic")
    else:
        display = _found(estimator, criterion)
    display.chosen = display.chosen if chosen is None else chosen
    return display.plot(ax)
