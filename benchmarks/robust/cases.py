"""The cases: what is minimised on which rows, what a call may take, and what should be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.robust.objective import RobustData
from benchmarks.robust.problems import Rows, heavy_tails, words

__all__ = ["CASES", "COMPARED", "PROBLEMS", "TARGETS", "Case", "Target", "data_of"]

#: In units of the scale that is fitted, or of the noise: Huber's own choice.
HUBER = 1.35
#: Half width of the errors that cost nothing, and strength of the loss.
EPSILON, C = 0.1, 1.0
#: scikit-learn's default strength of the penalty of Huber's loss with a scale.
RIDGE = 1e-4
NINE = tuple(k / 10 for k in range(1, 10))


def _size(full: int, scale: float, least: int) -> int:
    return max(min(full, least), round(full * scale))


def _tall(n: int, d: int, seed: int) -> Callable[[float], Rows]:
    def make(scale: float) -> Rows:
        columns = _size(d, np.sqrt(scale), 5)
        return heavy_tails(_size(n, scale, 40 * columns), columns, seed=seed)

    return make


def _text(scale: float) -> Rows:
    rows, columns = _size(20_000, scale, 150), _size(50_000, scale, 300)
    return words(rows, columns, min(0.05, 2e-3 / np.sqrt(scale)), max(10, round(500 * scale)))


#: From the scale (1 is the size of the name) to X and y.
PROBLEMS: dict[str, Callable[[float], Rows]] = {
    "1e4x20": _tall(10_000, 20, 11),
    "1e5x50": _tall(100_000, 50, 12),
    "1e6x20": _tall(1_000_000, 20, 13),
    "2e5x100": _tall(200_000, 100, 14),
    "5e4x50": _tall(50_000, 50, 15),
    "text": _text,
}
_SIZES = {
    "1e4x20": "n = 10,000, d = 20",
    "1e5x50": "n = 100,000, d = 50",
    "1e6x20": "n = 1,000,000, d = 20",
    "2e5x100": "n = 200,000, d = 100",
    "5e4x50": "dense 50,000 x 50",
    "text": "sparse 20,000 x 50,000, density 2e-3",
}


@dataclass(frozen=True)
class Case:
    """What is minimised on which rows.

    Attributes
    ----------
    title : str
    task : str
        Contestants that are tuned for it take part.
    problem : str
    limit : float
        Seconds for one call.
    quantiles : tuple of float
    threshold, strength : float
        As in RobustData.
    measure : {"time", "memory"}
    """

    title: str
    task: str
    problem: str
    limit: float
    quantiles: tuple[float, ...] = (0.5,)
    threshold: float = 0.0
    strength: float = 0.0
    measure: str = "time"

    @property
    def kind(self) -> str:
        """The objective."""
        return "quantile" if self.task == "quantiles" else self.task


def data_of(case: Case, X: Any, y: Any) -> RobustData:
    """What a contestant is given."""
    return RobustData(
        X,
        y,
        fit_intercept=True,
        kind=case.kind,
        quantiles=case.quantiles,
        threshold=case.threshold,
        strength=case.strength,
    )


def _case(what: str, task: str, problem: str, limit: float, **more: Any) -> Case:
    return Case(f"{what}, {_SIZES[problem]}", task, problem, limit, **more)


def _cases() -> dict[str, Case]:
    out = {}
    levels = {"absolute": ("Absolute loss", 0.5), "quantile90": ("Quantile 0.9", 0.9)}
    for problem, limit in (("1e4x20", 15.0), ("1e5x50", 35.0)):
        for name, (what, q) in levels.items():
            out[f"{name}_{problem}"] = _case(what, "quantile", problem, limit, quantiles=(q,))
    out["nine_1e5x50"] = _case(
        "Quantiles 0.1, 0.2, ..., 0.9", "quantiles", "1e5x50", 60.0, quantiles=NINE
    )
    for name, (what, q) in levels.items():
        out[f"{name}_1e6x20"] = _case(
            what, "quantile", "1e6x20", 60.0, quantiles=(q,), measure="memory"
        )
    for problem, limit in (("1e4x20", 15.0), ("1e5x50", 25.0)):
        out[f"maximum_{problem}"] = _case("Maximum error", "maximum", problem, limit)
    out["huber_scale_2e5x100"] = _case(
        "Huber with a scale, epsilon 1.35",
        "huber_scale",
        "2e5x100",
        30.0,
        threshold=HUBER,
        strength=RIDGE,
    )
    # The noise has scale 1/2.
    out["huber_2e5x100"] = _case(
        "Huber at a fixed threshold", "huber", "2e5x100", 20.0, threshold=0.5 * HUBER
    )
    for problem in ("5e4x50", "text"):
        for task, what in (("svr", ""), ("svr_squared", "squared ")):
            out[f"{task}_{problem}"] = _case(
                f"Support vector regression, {what}epsilon-insensitive, C = {C:g}",
                task,
                problem,
                10.0,
                threshold=EPSILON,
                strength=C,
            )
    return out


CASES = _cases()
#: Quantiles on rows that are not too many for other libraries.
COMPARED = tuple(
    name for name, case in CASES.items() if case.task == "quantile" and case.measure == "time"
)


@dataclass(frozen=True)
class Target:
    """What trueline should reach.

    Attributes
    ----------
    case : str
    kind : {"fastest", "memory", "several"}
        The fastest peer's time over ours, at least; the growth of memory over the size of X, at
        most; our time over that of the case ``one``, below.
    bound : float
    one : str
    """

    case: str
    kind: str
    bound: float
    one: str = ""


TARGETS = (
    Target("absolute_1e4x20", "fastest", 8.0),
    Target("quantile90_1e4x20", "fastest", 8.0),
    Target("absolute_1e5x50", "fastest", 20.0),
    Target("quantile90_1e5x50", "fastest", 20.0),
    Target("nine_1e5x50", "several", 4.0, "absolute_1e5x50"),
    Target("nine_1e5x50", "several", 4.0, "quantile90_1e5x50"),
    Target("absolute_1e6x20", "memory", 1.0),
    Target("quantile90_1e6x20", "memory", 1.0),
    Target("maximum_1e4x20", "fastest", 5.0),
    Target("maximum_1e5x50", "fastest", 20.0),
    Target("huber_scale_2e5x100", "fastest", 8.0),
    Target("huber_2e5x100", "fastest", 8.0),
    *(Target(name, "fastest", 1.0) for name in CASES if name.startswith("svr")),
)
