"""Mistakes of an online learner: how many so far, and the bound they never pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueline.plots.fitted import fitted
from trueline.plots.style import COLOURS, GREY, Display, axes, check_choice, legend, tidy

__all__ = ["MistakeDisplay", "plot_mistakes"]


@dataclass(repr=False)
class MistakeDisplay(Display):
    """Cumulative mistakes against rows seen, with the bound (R / gamma)^2 where there is one.

    Parameters
    ----------
    positions : array of int, ascending
        After how many rows each mistake was made (1 is the first row).
    n_rows : int
        Rows seen in all.
    bound : float, optional
        Proven: no more mistakes than this.
    epochs : array of int, optional
        Misclassified rows in each pass over the data.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from trueline.plots import MistakeDisplay
    >>> display = MistakeDisplay([1, 2, 5], 8, bound=4.0).plot()
    >>> display.ax_.get_ylabel()
    'mistakes so far'
    """

    positions: ArrayLike
    n_rows: int
    bound: float | None = None
    epochs: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, problem: int = 0, **arguments: Any
    ) -> MistakeDisplay:
        """Draw the mistakes that a fitted online classifier made while it learned.

        Parameters
        ----------
        estimator : fitted Perceptron or other online classifier
            With ``record_updates=True`` every mistake is drawn where it was made, otherwise their
            number after every pass.
        problem : int, default=0
            Which class against the rest, where there are several.
        **arguments
            For :meth:`plot`.
        """
        estimator = fitted(estimator).model
        records = getattr(estimator, "records_", None)
        if not records:
            raise ValueError(
                f"{type(estimator).__name__} kept no record of its mistakes: only online learners "
                "such as Perceptron do."
            )
        record, bound = records[problem], None
        if estimator.certificate_.kind in ("mistake bound", "kernel mistake bound"):
            bound = float(estimator.certificate_.witness["bound"][problem])
        return cls(_positions(record), record.visits, bound, record.mistakes_per_pass).plot(
            **arguments
        )

    def plot(self, ax: Any = None, *, show: str = "cumulative") -> MistakeDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        show : {"cumulative", "epochs"}, default="cumulative"
            All mistakes so far against the rows seen, or the mistakes of each pass.

        Returns
        -------
        self : MistakeDisplay
        """
        check_choice("show", show, ("cumulative", "epochs"))
        ax = axes(ax)
        tidy(ax)
        if show == "cumulative":
            self._cumulative(ax)
        else:
            self._epochs(ax)
        ax.set_ylim(bottom=0)
        return self._drawn_on(ax)

    def _cumulative(self, ax: Any) -> None:
        positions = np.asarray(self.positions, dtype=float)
        steps = np.concatenate([[0.0], positions, [float(self.n_rows)]])
        counts = np.concatenate([np.arange(len(positions) + 1), [len(positions)]])
        ax.step(steps, counts, where="post", color=COLOURS[0], linewidth=1.8, label="mistakes made")
        if self.bound is not None and np.isfinite(self.bound):
            label = rf"bound $(R/\gamma)^2$ = {self.bound:,.4g}"
            # A bound far above the mistakes would press them against the axis: it is said instead.
            if self.bound <= 20 * max(len(positions), 1):
                ax.axhline(self.bound, color=COLOURS[1], linestyle="--", linewidth=1.4, label=label)
            else:
                ax.plot([], [], "--", color=COLOURS[1], label=label + " (above the picture)")
        ax.set_xlabel("rows seen")
        ax.set_ylabel("mistakes so far")
        legend(ax, "best")

    def _epochs(self, ax: Any) -> None:
        if self.epochs is None or not np.size(self.epochs):
            raise ValueError("There are no counts per pass to draw.")
        counts = np.asarray(self.epochs, dtype=float)
        passes = np.arange(1, len(counts) + 1)
        ax.plot(passes, counts, "-o", color=COLOURS[0], linewidth=1.6, markersize=4)
        if not counts[-1]:
            ax.annotate(
                "none left", (passes[-1], 0.0), (-8, 14), textcoords="offset points", color=GREY
            )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("pass over the data")
        ax.set_ylabel("mistakes in this pass")


def _positions(record: Any) -> Any:
    """After how many rows each mistake was made; at the end of its pass if nobody wrote it down."""
    if record.times is not None and len(record.times) == record.mistakes:
        return record.times
    counts = np.asarray(record.mistakes_per_pass, dtype=np.intp)
    ends = record.visits * np.arange(1, len(counts) + 1) / max(len(counts), 1)
    return np.repeat(ends, counts)


def plot_mistakes(estimator: Any, ax: Any = None, *, show: str = "cumulative") -> MistakeDisplay:
    """Draw the mistakes of a fitted online classifier; see :class:`MistakeDisplay`."""
    return MistakeDisplay.from_estimator(estimator, ax=ax, show=show)
