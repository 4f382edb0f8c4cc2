"""An online learner: its mistakes with the bound they never pass, and its corrections."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueline.errors import require
from trueline.online.history import errors_after_passes
from trueline.plots import shared
from trueline.plots.shared import COLOURS, GREY, MARKERS, Array, Display
from trueline.wording import Readable, counted


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
        Mistakes made in each pass over the data.
    errors : array of int, optional
        Rows that the weights at the end of each pass get wrong.

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
    errors: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, problem: int = 0, **arguments: Any
    ) -> MistakeDisplay:
        """Draw the mistakes that a fitted online classifier made while it learned.

        Parameters
        ----------
        estimator : fitted Perceptron or other online classifier
            With ``record_updates=True`` every mistake is drawn where it was made, otherwise their
            number after every pass, or after every batch of ``fit_stream``. With ``trace=True``
            the rows that are wrong after each pass are drawn beside the mistakes made in it.
        problem : int, default=0
            Which class against the rest, where there are several.
        **arguments
            For :meth:`plot`.
        """
        estimator = shared.fitted(estimator).model
        records, progress = (
            getattr(estimator, "records_", None),
            getattr(estimator, "progress_", None),
        )
        if progress is not None and not hasattr(estimator, "certificate_"):  # after a stream
            rows, mistakes = np.reshape(progress.blocks, (-1, 2)).T
            positions = np.repeat(rows, np.diff(mistakes, prepend=0))
            return cls(positions, progress.rows).plot(**arguments)
        if not records:
            raise ValueError(
                f"{type(estimator).__name__} kept no record of its mistakes: only online learners "
                "such as Perceptron do, in fit and in fit_stream."
            )
        record, bound, errors = records[problem], None, None
        if estimator.certificate_.kind in ("mistake bound", "kernel mistake bound"):
            bound = float(estimator.certificate_.witness["bound"][problem])
        if hasattr(estimator, "trace_") and record.updates_per_pass:
            errors = errors_after_passes(estimator.trace_, record)
        passes = record.mistakes_per_pass
        return cls(_positions(record), record.visits, bound, passes, errors).plot(**arguments)

    def plot(self, ax: Any = None, *, show: str = "cumulative") -> MistakeDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        show : {"cumulative", "epochs"}, default="cumulative"
            All mistakes so far against the rows seen; or the mistakes made in each pass, and the
            rows that are wrong after it where that is known.

        Returns
        -------
        self : MistakeDisplay
        """
        shared.check_choice("show", show, ("cumulative", "epochs"))
        ax = shared.axes(ax)
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
        ax.set(xlabel="rows seen", ylabel="mistakes so far")
        shared.legend(ax, "best")

    def _epochs(self, ax: Any) -> None:
        if self.epochs is None or not np.size(self.epochs):
            raise ValueError(
                "There are no counts per pass to draw: variant='textbook' and streams make "
                "none. Leave show='cumulative', or take plot_trace of a fit with trace=True."
            )
        counts = np.asarray(self.epochs, dtype=float)
        passes = np.arange(1, len(counts) + 1)
        both = self.errors is not None
        style = {"linewidth": 1.6, "markersize": 4}
        ax.plot(passes, counts, "-o", color=COLOURS[0], label="mistakes made in the pass", **style)
        if both:
            after = {"color": COLOURS[1], "label": "rows on the wrong side after it"}
            ax.plot(passes, np.asarray(self.errors, dtype=float), "--s", **style, **after)
            shared.legend(ax, "upper right")
        if not counts[-1]:
            ax.annotate(
                "none left", (passes[-1], 0.0), (-8, 14), textcoords="offset points", color=GREY
            )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="pass over the data", ylabel="rows" if both else "mistakes in this pass")


def _positions(record: Any) -> Any:
    """After how many rows each mistake was made; at the end of its pass if it was not recorded."""
    if record.times is not None and len(record.times) == record.mistakes:
        return record.times
    counts = np.asarray(record.mistakes_per_pass, dtype=np.intp)
    ends = record.visits * np.arange(1, len(counts) + 1) / max(len(counts), 1)
    return np.repeat(ends, counts)


def plot_mistakes(estimator: Any, ax: Any = None, *, show: str = "cumulative") -> MistakeDisplay:
    """Draw the mistakes of a fitted online classifier; see :class:`MistakeDisplay`."""
    return MistakeDisplay.from_estimator(estimator, ax=ax, show=show)


_CANVAS = 5.6, 5.2


@dataclass(repr=False)
class UpdateAnimation(Readable):
    """The boundary after each correction, the row that caused it, and the boundary before.

    Parameters
    ----------
    X : array of shape (n, 2)
    signs : array of shape (n,)
        -1 or +1.
    weights : array of shape (m + 1, 3)
        The two weights and the intercept: at the start and after each of m corrections.
    rows : array of int of shape (m,)
        The row that caused each correction.
    names : tuple of str, default=("x0", "x1")
    max_frames : int, default=60
        With more corrections, the first and an even selection of the others are shown.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from trueline.plots import UpdateAnimation
    >>> X, signs = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, -1.0])
    >>> weights = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [-1.0, 1.0, 0.0]])
    >>> animation = UpdateAnimation(X, signs, weights, [0, 1])
    >>> animation.frames
    array([0, 1, 2])
    """

    X: ArrayLike
    signs: ArrayLike
    weights: ArrayLike
    rows: ArrayLike
    names: tuple[str, ...] = ("x0", "x1")
    max_frames: int = 60

    def __post_init__(self) -> None:
        self._X = np.asarray(self.X, dtype=float)
        self._signs = np.asarray(self.signs, dtype=float)
        self._weights = np.asarray(self.weights, dtype=float)
        self._rows = np.asarray(self.rows, dtype=np.intp)
        if self._X.ndim != 2 or self._X.shape[1] != 2:
            raise ValueError(f"X must have two columns to be drawn, got shape {self._X.shape}.")
        if self._weights.shape != (len(self._rows) + 1, 3):
            raise ValueError(
                f"weights must have shape ({len(self._rows) + 1}, 3): two weights and the "
                f"intercept at the start and after each correction; got {self._weights.shape}."
            )

    @property
    def frames(self) -> NDArray[np.intp]:
        """The corrections that are shown, counted from 0, the start."""
        last = len(self._rows)
        if last < self.max_frames:
            return np.arange(last + 1)
        # The first corrections turn the boundary most.
        first = np.arange(self.max_frames // 2)
        later = np.linspace(len(first), last, self.max_frames - len(first)).astype(np.intp)
        return np.concatenate([first, np.unique(later)])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, max_frames: int = 60
    ) -> UpdateAnimation:
        """Animate a binary perceptron that recorded its updates.

        Parameters
        ----------
        estimator : fitted Perceptron
            With ``record_updates=True``.
        X : array-like of shape (n, 2)
            The rows that were fitted.
        y : array-like of shape (n,)
        max_frames : int, default=60
        """
        records = getattr(estimator, "records_", None)
        if not records or records[0].rows is None:
            raise ValueError(
                f"{type(estimator).__name__} recorded no updates. Fit it with record_updates=True."
            )
        if len(estimator.classes_) != 2:
            raise ValueError("Only perceptrons of two classes are animated.")
        names = tuple(str(name) for name in getattr(X, "columns", ("x0", "x1")))
        signs = np.where(np.asarray(y) == estimator.classes_[1], 1.0, -1.0)
        rows = np.asarray(X, dtype=float)
        step = (estimator.intercept_step or 1.0) if estimator.fit_intercept else 0.0
        weights = [np.zeros(3)]
        for _, w, b in records[0].weights_after_updates(rows, intercept_step=step):
            weights.append(np.append(w, b))
        return cls(rows, signs, np.array(weights), records[0].rows, names, max_frames)

    def animate(self, interval: float = 600.0) -> Any:
        """A matplotlib ``FuncAnimation``, for a window that moves.

        Parameters
        ----------
        interval : float, default=600
            Milliseconds for each correction.
        """
        from matplotlib.animation import FuncAnimation

        ax = shared.new_axes(size=_CANVAS)
        return FuncAnimation(
            ax.figure,
            lambda frame: self.draw(ax, int(frame)),
            frames=self.frames,
            interval=interval,
        )

    def save(self, path: str | Path, *, interval: float = 600.0) -> None:
        """Write the animation: a GIF, or a page with buttons if the path ends in ``.html``."""
        pyplot = require("matplotlib.pyplot", "plot")
        from matplotlib.animation import HTMLWriter, PillowWriter

        path = Path(path)
        frames_per_second: Any = 1000.0 / interval  # a fraction is fine
        if path.suffix == ".gif":
            writer: Any = PillowWriter(fps=frames_per_second)
        elif path.suffix == ".html":
            writer = HTMLWriter(fps=frames_per_second, embed_frames=True)
        else:
            raise ValueError(f"An animation is a .gif or an .html file, not {path.name!r}.")
        ax = shared.new_axes(size=_CANVAS)
        with writer.saving(ax.figure, str(path), dpi=100):
            for frame in self.frames:
                self.draw(ax, int(frame))
                writer.grab_frame()
        pyplot.close(ax.figure)

    def _repr_html_(self) -> str:
        """In a notebook: the animation with buttons."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "updates.html"
            self.save(path)
            return path.read_text(encoding="utf-8")

    def draw(self, ax: Any, update: int) -> None:
        """Draw the state after so many corrections on given axes."""
        ax.clear()
        shared.tidy(ax)
        low, high = shared.limits(self._X, 0.12)
        for number, sign in enumerate((-1.0, 1.0)):
            rows = self._signs == sign
            ax.scatter(
                *self._X[rows].T, s=30, color=COLOURS[number], marker=MARKERS[number], zorder=3
            )
        w = self._weights[update]
        self._shade(ax, w, low, high)
        if update:
            self._line(ax, self._weights[update - 1], low, high, color=GREY, linestyle="--")
            x = self._X[self._rows[update - 1]]
            ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.6}
            ax.scatter(*x, s=140, zorder=4, **ring)
        self._line(ax, w, low, high, color="black", linestyle="-")
        wrong = int(np.sum(self._signs * (self._X @ w[:2] + w[2]) <= 0))
        ax.set_title(f"after {counted(update, 'correction')}: {counted(wrong, 'mistake')} left")
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=self.names[0])
        ax.set_ylabel(self.names[1])

    def _shade(self, ax: Any, w: Array, low: Array, high: Array) -> None:
        """The side of the second class, coloured."""
        if not w[:2].any():
            return
        x, y = np.linspace(low[0], high[0], 60), np.linspace(low[1], high[1], 60)
        score = w[0] * x[None, :] + w[1] * y[:, None] + w[2]
        ax.contourf(
            x,
            y,
            (score > 0).astype(float),
            levels=[-0.5, 0.5, 1.5],
            colors=[COLOURS[0], COLOURS[1]],
            alpha=0.12,
            zorder=0,
        )

    def _line(self, ax: Any, w: Array, low: Array, high: Array, **style: Any) -> None:
        """Where w1 x + w2 y + b = 0, across the picture."""
        if not w[:2].any():
            return
        if abs(w[1]) * (high[1] - low[1]) >= abs(w[0]) * (high[0] - low[0]):
            x = np.array([low[0], high[0]])
            y = -(w[0] * x + w[2]) / w[1]
        else:
            y = np.array([low[1], high[1]])
            x = -(w[1] * y + w[2]) / w[0]
        ax.plot(x, y, linewidth=1.6, zorder=2, **style)


def animate_updates(
    estimator: Any, X: Any, y: ArrayLike, path: str | Path | None = None, *, max_frames: int = 60
) -> UpdateAnimation:
    """Animate the corrections of a perceptron, and write them if a path is given.

    See :class:`UpdateAnimation`.
    """
    animation = UpdateAnimation.from_estimator(estimator, X, y, max_frames=max_frames)
    if path is not None:
        animation.save(path)
    return animation
