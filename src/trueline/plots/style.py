"""What the pictures share: axes to draw on, colours, and the lines that are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trueline.errors import require
from trueline.wording import Readable

__all__ = [
    "COLOURS",
    "CRITERION_WORDS",
    "GREY",
    "MARKERS",
    "PALE",
    "Array",
    "Display",
    "axes",
    "check_choice",
    "colour_bar",
    "legend",
    "names_of",
    "pair_of_axes",
    "some_rows",
    "tidy",
]

Array = NDArray[np.float64]

# Okabe and Ito's palette without its yellow, told apart by every kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#888888"
PALE = "#BBBBBB"
# More points than this only make a picture darker and its file larger.
_MOST_POINTS = 5000

#: Criteria by name, as they are written on an axis.
CRITERION_WORDS = {
    "aic": "AIC",
    "aicc": "corrected AIC",
    "bic": "BIC",
    "adjusted_r2": "adjusted $R^2$",
    "cp": "Mallows' $C_p$",
    "cv": "mean squared error on held-out rows",
}


class Display(Readable):
    """A picture: a dataclass of what is drawn, whose ``plot`` draws it and keeps the axes."""

    ax_: Any = None
    figure_: Any = None

    def _drawn_on(self, ax: Any) -> Self:
        """Keep the axes, one or several."""
        self.ax_, self.figure_ = ax, np.ravel(ax)[0].figure
        return self


def axes(ax: Any, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """The axes to draw on: the given ones, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plot")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def pair_of_axes(ax: Any, reach: float) -> Any:
    """Two axes side by side, for curves from -reach to reach."""
    if not reach > 0:
        raise ValueError(f"reach must be positive, got {reach!r}.")
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plot")
    return pyplot.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")[1]


def some_rows(n: int) -> tuple[Any, str]:
    """Which of n rows are drawn, the same each time, and how they are called in the legend."""
    if n <= _MOST_POINTS:
        return slice(None), "data"
    rows = np.sort(np.random.default_rng(0).choice(n, _MOST_POINTS, replace=False))
    return rows, f"data ({_MOST_POINTS:,} of {n:,} rows)"


def tidy(ax: Any) -> None:
    """Only the lines that are read."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)


def legend(ax: Any, loc: str) -> None:
    """A legend without a frame that stays readable where lines run behind it."""
    ax.legend(loc=loc, facecolor="white", edgecolor="none", framealpha=0.9)


def colour_bar(image: Any, ax: Any, label: str, shrink: float = 1.0) -> None:
    """What the colours of an image mean."""
    bar = np.ravel(ax)[0].figure.colorbar(image, ax=ax, shrink=shrink)
    bar.set_label(label)
    bar.outline.set_visible(False)


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {tuple(choices)}.")


def names_of(names: Any, d: int) -> list[str]:
    """The names of d columns; x0, x1, ... if there are none."""
    if names is None:
        return [f"x{j}" for j in range(d)]
    if len(names) != d:
        raise ValueError(f"There are {len(names)} names for {d} columns.")
    return [str(name) for name in names]
