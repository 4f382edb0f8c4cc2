"""The demo's picture: what the model says, and how well it says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import require

__all__ = ["save_picture"]

_NEGATIVE, _POSITIVE, _POINTS = "#c44e52", "#4c72b0", "#55789e"


def save_picture(
    path: Path,
    names: list[str],
    coef: NDArray[np.float64],
    actual: NDArray[np.float64],
    predicted: NDArray[np.float64],
    target: str,
) -> Path:
    """Two panels, coefficients and predictions, as an image.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    """
    require("matplotlib", "plot")
    # A figure of its own rather than pyplot's: no window, no global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_coefficients(left, names, coef)
    _draw_predictions(right, actual, predicted, target)
    figure.savefig(path, dpi=150)
    return path


def _draw_coefficients(axes: Any, names: list[str], coef: NDArray[np.float64]) -> None:
    order = np.argsort(np.abs(coef))
    colours = [_NEGATIVE if coef[j] < 0 else _POSITIVE for j in order]
    axes.barh([names[j] for j in order], coef[order], color=colours)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_title("Coefficients", loc="left", fontweight="bold")
    axes.set_xlabel("change of the target per standard deviation")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_predictions(
    axes: Any, actual: NDArray[np.float64], predicted: NDArray[np.float64], target: str
) -> None:
    low = min(actual.min(), predicted.min())
    high = max(actual.max(), predicted.max())
    axes.plot([low, high], [low, high], color="black", linewidth=0.8, zorder=1)
    axes.scatter(predicted, actual, s=14, alpha=0.6, color=_POINTS, linewidth=0, zorder=2)
    axes.annotate(
        "perfect", (high, high), xytext=(-4, 2), textcoords="offset points", ha="right", va="bottom"
    )
    axes.set_title("Predicted and actual", loc="left", fontweight="bold")
    axes.set_xlabel(f"predicted {target}")
    axes.set_ylabel(f"actual {target}")
    axes.spines[["top", "right"]].set_visible(False)
