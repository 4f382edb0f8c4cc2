"""Scores of several models on the same folds, and errors against complexity or number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, PALE, Display


@dataclass(repr=False)
class ComparisonDisplay(Display):
    """Mean scores with their standard errors, the best on top.

    Filled points are means on test rows, hollow ones on training rows, small dots single folds. The
    vertical line is one standard error below the best.

    Parameters
    ----------
    names : sequence of str
    scores : array of shape (models, folds)
        Of test rows.
    train : array of shape (models,), optional
        Means on training rows.
    scorer : str, default="score"
    chosen : str, optional
        The model to point out.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import ComparisonDisplay
    >>> display = ComparisonDisplay(["ridge", "mean"], [[0.5, 0.6], [0.0, -0.1]]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['ridge', 'mean']
    """

    names: Sequence[str]
    scores: ArrayLike
    train: ArrayLike | None = None
    scorer: str = "score"
    chosen: str | None = None

    @classmethod
    def from_comparison(cls, comparison: Any) -> ComparisonDisplay:
        """The display of a :class:`~trueline.Comparison`."""
        entries = comparison.entries
        return cls(
            [entry.name for entry in entries],
            np.array([entry.fold_scores for entry in entries]),
            np.array([entry.train_score for entry in entries]),
            comparison.scorer,
            comparison.best.name,
        )

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : ComparisonDisplay
        """
        scores = np.asarray(self.scores, dtype=float)
        if scores.ndim != 2 or len(scores) != len(self.names):
            raise ValueError(
                f"{len(self.names)} names need scores of shape ({len(self.names)}, folds), got "
                f"{scores.shape}."
            )
        count, folds = scores.shape
        ax = shared.axes(ax, (7.2, 1.5 + 0.45 * count))
        place = np.arange(count)
        mean = scores.mean(axis=1)
        error = scores.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(count)
        ax.plot(scores.ravel(), np.repeat(place, folds), ".", color=PALE, markersize=4)
        if self.train is not None:
            ax.plot(
                np.asarray(self.train),
                place,
                "o",
                markerfacecolor="white",
                markeredgecolor=GREY,
                label="training rows",
            )
        ax.errorbar(
            mean,
            place,
            xerr=error,
            fmt="o",
            color=COLOURS[0],
            capsize=3.0,
            label="test rows, ± 1 se",
        )
        best = int(np.nanargmax(mean))
        if folds > 1:
            ax.axvline(mean[best] - error[best], color=GREY, linewidth=0.7, linestyle="--")
        ax.set_yticks(place, list(self.names))
        for label in ax.get_yticklabels():
            if label.get_text() == self.chosen:
                label.set_fontweight("bold")
        ax.set(ylim=(count - 0.5, -0.5), xlabel=f"{self.scorer}, {folds} folds")
        self._leave_out_far_ones(ax, mean, error)
        # Outside the picture: the rows of models leave no room for it.
        shared.legend_below(ax, 2)
        return self._drawn_on(ax)

    @staticmethod
    def _leave_out_far_ones(ax: Any, mean: Any, error: Any) -> None:
        """A baseline far behind would squeeze the others together: it goes to the edge."""
        low, high = ax.get_xlim()
        order = np.sort(mean)[::-1]
        if len(order) > 3 and order[-2] - order[-1] > 3 * (order[0] - order[-2]) > 0:
            low = order[-2] - 1.0 * (order[0] - order[-2]) - 2 * float(np.max(error))
            ax.set_xlim(low, high)
            last = int(np.argmin(mean))
            ax.annotate(
                f"◂ {mean[last]:.3g}", (low, last), va="center", ha="left", color=COLOURS[0]
            )


_LABELS = {
    "degree": "degree of the polynomial",
    "lambda": "strength $\\lambda$ (simple to the left)",
    "rbf": "number of radial basis functions",
    "subset": "number of columns",
    "rows": "rows to learn from",
}


@dataclass(repr=False)
class ComplexityDisplay(Display):
    """Two curves: the error on rows that were fitted, and on others, with bands of one error.

    Parameters
    ----------
    values : array of shape (m,)
    test, train : arrays of shape (m, folds)
    parameter : str
        What is on the horizontal axis.
    scorer : str
        What is on the vertical axis; "neg" scores are drawn as errors.
    best : float, optional
        The value to mark.
    criteria : dict of str to array, optional
        Criteria of the fits to all rows, each drawn on an axis of its own scale.
    is_reversed : bool, default=False
        Whether large values are simple, and drawn on the left.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    twin_ : matplotlib Axes or None

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import ComplexityDisplay
    >>> display = ComplexityDisplay([1, 2, 3], [[3.0], [1.0], [2.0]], [[2.0], [0.8], [0.2]]).plot()
    >>> [line.get_label() for line in display.ax_.lines]
    ['training rows', 'test rows']
    """

    values: ArrayLike
    test: ArrayLike
    train: ArrayLike
    parameter: str = "complexity"
    scorer: str = "score"
    best: float | None = None
    criteria: dict[str, ArrayLike] = field(default_factory=dict)
    is_reversed: bool = False
    twin_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_curve(cls, curve: Any) -> ComplexityDisplay:
        """The display of a complexity curve."""
        criteria = {}
        if curve.aic is not None and np.isfinite(curve.aic).all():
            criteria = {"AIC": curve.aic, "BIC": curve.bic}
        return cls(
            curve.values,
            curve.test,
            curve.train,
            curve.parameter,
            curve.scorer,
            curve.best,
            criteria,
            not curve.grows,
        )

    @classmethod
    def from_learning(cls, curve: Any) -> ComplexityDisplay:
        """The display of a learning curve."""
        return cls(curve.sizes, curve.test, curve.train, "rows", curve.scorer)

    def plot(self, ax: Any = None) -> ComplexityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self : ComplexityDisplay
        """
        values = np.asarray(self.values, dtype=float)
        is_error = self.scorer.startswith("neg ")
        sign = -1.0 if is_error else 1.0
        ax = shared.axes(ax, (7.2, 4.6))
        order = np.argsort(values)
        for which, label, colour, marker in (
            (self.train, "training rows", GREY, "s"),
            (self.test, "test rows", COLOURS[1], "o"),
        ):
            scores = sign * np.asarray(which, dtype=float)[order]
            mean, folds = scores.mean(axis=1), scores.shape[1]
            ax.plot(values[order], mean, marker=marker, color=colour, markersize=4, label=label)
            if folds > 1:
                error = scores.std(axis=1, ddof=1) / np.sqrt(folds)
                band = mean - error, mean + error
                ax.fill_between(values[order], *band, color=colour, alpha=0.15, linewidth=0)
        if self.best is not None:
            ax.axvline(self.best, color=COLOURS[1], linewidth=0.8, linestyle="--")
        self._scale(ax, values, sign)
        self._draw_criteria(ax, values, order)
        ax.set_xlabel(_LABELS.get(self.parameter, self.parameter))
        ax.set_ylabel(self.scorer.removeprefix("neg "))
        if self.criteria:  # "best" would not see the lines of the other axis
            shared.legend_below(ax, 4)
        else:
            shared.legend(ax, "best")
        return self._drawn_on(ax)

    def _scale(self, ax: Any, values: Any, sign: float) -> None:
        """Logarithms where values or errors span more than two powers of ten."""
        if values.min() > 0 and values.max() / values.min() > 100:
            ax.set_xscale("log")
        elif np.allclose(values, values.round()) and np.ptp(values) <= 20:
            ax.set_xticks(np.unique(values))
        errors = sign * np.concatenate([np.ravel(self.test), np.ravel(self.train)])
        if sign < 0 and errors.min() > 0 and errors.max() / errors.min() > 100:
            ax.set_yscale("log")
        if self.is_reversed:
            ax.invert_xaxis()

    def _draw_criteria(self, ax: Any, values: Any, order: Any) -> None:
        self.twin_ = None
        if not self.criteria:
            return
        self.twin_ = ax.twinx()
        self.twin_.spines["top"].set_visible(False)
        for number, (name, given) in enumerate(self.criteria.items()):
            numbers = np.asarray(given, dtype=float)[order]
            style = {"color": COLOURS[(0, 2)[number % 2]], "linewidth": 1.5, "linestyle": ":"}
            self.twin_.plot(values[order], numbers, **style)
            ax.plot([], [], label=f"{name} (right axis)", **style)
        self.twin_.set_ylabel(" and ".join(self.criteria))
