"""The axis of strengths: logarithmic, weaker to the right, with numbers of columns on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.plots.style import GREY, Array

__all__ = ["MARKS", "count_on_top", "draw_strengths", "mark_strengths", "positive_strengths"]

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
    ax.set_xscale("log")
    ax.set_xlim(alphas.max(), alphas.min())
    ax.set_xlabel("alpha (weaker penalty to the right)")


def count_on_top(ax: Any, x: Array, counts: NDArray[np.integer]) -> Any:
    """Numbers of non-zero coefficients along the top, at places evenly spread over the axis."""
    left, right = ax.get_xlim()
    scale = np.log if ax.get_xscale() == "log" else np.asarray
    share = (scale(x) - scale(left)) / (scale(right) - scale(left))
    wanted = np.linspace(0.0, 1.0, min(_MOST_COUNTS, len(x)))
    picked = np.unique([int(np.argmin(np.abs(share - place))) for place in wanted])
    top = ax.secondary_xaxis("top")
    top.set_xticks(x[picked], [str(int(counts[i])) for i in picked])
    top.minorticks_off()
    top.spines["top"].set_visible(False)
    top.tick_params(length=0)
    top.set_xlabel("non-zero coefficients")
    return top


def mark_strengths(ax: Any, places: Mapping[str, float]) -> list[Any]:
    """A vertical line for each chosen strength, named in the legend."""
    return [
        ax.axvline(place, color=GREY, linestyle=style, linewidth=1.2, label=label)
        for (label, place), style in zip(places.items(), MARKS * len(places))
    ]
