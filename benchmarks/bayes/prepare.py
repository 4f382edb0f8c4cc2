"""Problems on disk with the values that answers are compared with.

``python -m benchmarks.bayes.prepare CASE SCALE CACHE`` makes what a case needs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

import benchmarks.problems
from benchmarks.bayes import cases, objective
from benchmarks.bayes.cases import CASES, PROBLEMS, TARGETS, data_of
from benchmarks.bayes.objective import BayesData, plain_fit, suboptimality
from benchmarks.isolated import emit
from benchmarks.judged import Suite

__all__ = ["SUITE", "best_value", "prepare"]

# Rows of the first call: enough for every part of the code to be loaded.
_PART = 450


def best_value(data: BayesData) -> float:
    """The highest value that plain optimisers of SciPy find."""
    if data.kind == "process":
        part = BayesData(data.X[::4], data.y[::4], data.kind, data.by_column)
        start = plain_fit(part).theta
        return objective.objective(data, plain_fit(data, 1e-13, start).theta)
    first = np.array([-np.log(np.var(data.y)), 0.0])
    found = optimize.minimize(
        lambda theta: -objective.objective(data, theta),
        first,
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-9, "maxfev": 400},
    )
    return -float(found.fun)


def _quality(data: BayesData, answer: Any, facts: dict[str, Any]) -> float:
    return suboptimality(data, answer, facts["best"])


SUITE = Suite(
    name="bayes",
    cases=CASES,
    problems=PROBLEMS,
    targets=TARGETS,
    data_of=data_of,
    facts_of=lambda data: {"best": best_value(data)},
    quality=_quality,
    part_of=lambda data: replace(data, X=data.X[:_PART], y=data.y[:_PART]),
    makers=(cases, benchmarks.problems),
    recipes=(objective, sys.modules[__name__]),
)
prepare = SUITE.prepare


def main(name: str, scale: str, cache: str, folder: str = "") -> None:
    """Prepare one case."""
    facts = prepare(Path(cache), name, float(scale))
    emit(kind="prepared", shape=facts["shape"], best=facts["best"])


if __name__ == "__main__":
    main(*sys.argv[1:])
