"""Scores of several models on the same folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueline.plots.style import COLOURS, GREY, PALE, Display, axes, tidy

__all__ = ["ComparisonDisplay"]


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
        ax = axes(ax, (7.2, 1.5 + 0.45 * count))
        tidy(ax)
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
        ax.set_ylim(count - 0.5, -0.5)
        ax.set_xlabel(f"{self.scorer}, {folds} folds")
        self._leave_out_far_ones(ax, mean, error)
        # Above the picture: the rows of models leave no room for it.
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
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
