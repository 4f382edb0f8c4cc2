"""Problems on disk with the bound and the decisions that answers are compared with.

``python -m benchmarks.kernels.prepare CASE SCALE CACHE`` makes what a case needs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks.problems
from benchmarks.isolated import emit
from benchmarks.judged import Suite
from benchmarks.kernels import cases, objective
from benchmarks.kernels.cases import CASES, PROBLEMS, TARGETS, data_of
from benchmarks.kernels.objective import (
    KernelData,
    Machine,
    decision,
    label_errors,
    lower_bound,
    suboptimality,
)

__all__ = ["SUITE", "facts_of", "prepare"]

# What the bound must be worth, and the tolerance of the solution that gives it.
_WORTH, _EXACT = 1e-7, 1e-7
# Rows of the first call.
_PART = 300


def facts_of(data: KernelData) -> dict[str, Any]:
    """A proven lower bound on the dual, and the decisions about the rows to predict.

    Raises
    ------
    ValueError
        If the bound is too far from the solution that gave it.
    """
    from benchmarks.contestants import trueline_classifiers as ours

    machine = ours.kernel_machine(data, _EXACT)
    emit(kind="solved")
    least = lower_bound(data, machine)
    gap = suboptimality(data, machine, least)
    if not abs(gap) <= _WORTH:
        raise ValueError(f"The bound is {gap:.1e} from the dual: too far to judge by.")
    clear = decision(data, machine, data.queries)
    return {"least": least, "bounds_gap": gap, "decision": clear.tolist()}


def _quality(data: KernelData, answer: Any, facts: dict[str, Any]) -> float:
    if isinstance(answer, Machine):
        return suboptimality(data, answer, facts["least"])
    return label_errors(answer, facts["decision"])


SUITE = Suite(
    name="kernels",
    cases=CASES,
    problems=PROBLEMS,
    targets=TARGETS,
    data_of=data_of,
    facts_of=facts_of,
    quality=_quality,
    part_of=lambda data: replace(data, X=data.X[:_PART], y=data.y[:_PART]),
    makers=(cases, benchmarks.problems),
    recipes=(objective, sys.modules[__name__]),
)
prepare = SUITE.prepare


def main(name: str, scale: str, cache: str, folder: str = "") -> None:
    """Prepare one case."""
    facts = prepare(Path(cache), name, float(scale))
    emit(kind="prepared", shape=facts["shape"], bounds_gap=facts["bounds_gap"])


if __name__ == "__main__":
    main(*sys.argv[1:])
