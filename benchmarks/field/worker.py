"""Measure models on a data set: python -m benchmarks.field.worker FOLDER NAME MODEL ...

Both libraries take their turn in one process, and the best of several fits counts. A line is
reported for each model; one that takes too long ends the process, and the next goes on behind it.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import trueline
from benchmarks.field.cases import MODELS
from benchmarks.field.files import DataSet, read
from benchmarks.field.objective import objective
from benchmarks.isolated import emit

__all__ = ["measure"]

# Seconds of fits of one model on one data set, and the repetitions that are enough before. Fits
# that take no time are repeated until all together take some.
_ENOUGH, _REPEATS, _SOME = 1.0, 15, 0.2
#: Reported before a model is tried, so that it is known which one ended the process.
STARTED = "started"


def measure(data: DataSet, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Times, objectives, agreement and cost of the proof, a line per model."""
    for who in wanted:
        case = MODELS[who]
        if not case.suits(data):
            continue
        ours = getattr(trueline, case.kind)(**case.parameters)
        theirs = getattr(importlib.import_module(case.home), case.kind)(
            **case.parameters, **case.theirs
        )
        yield {"model": who, "state": STARTED}
        yield {"model": who, **_pair(ours, theirs, data)}


def _pair(ours: Any, theirs: Any, data: DataSet) -> dict[str, Any]:
    X, y = data.X, data.y
    row: dict[str, Any] = {"shape": data.text}
    row["first"] = _seconds(lambda: ours.fit(X, y))
    times: tuple[list[float], list[float]] = ([], [])
    spent = 0.0
    while len(times[0]) < 2 or spent < (_ENOUGH if len(times[0]) < _REPEATS else _SOME):
        for model, own in zip((ours, theirs), times, strict=True):
            own.append(_seconds(lambda model=model: model.fit(X, y)))  # type: ignore[misc]
            spent += own[-1]
        if spent > 10 * _ENOUGH:
            break
    row["ours"], row["theirs"] = min(times[0]), min(times[1])
    row["medians"] = [statistics.median(own) for own in times]
    row["plan"] = ", ".join(_solvers(ours))
    row["certificate"] = _seconds(lambda: getattr(ours, "certificate_", None))
    verdict: list[Any] = []
    row["verify"] = _seconds(lambda: verdict.append(ours.verify(X, y)))
    row["verified"], row["is_conditional"] = bool(verdict[0].holds), not verdict[0]
    row["objective"], row["objective_theirs"] = objective(ours, X, y), objective(theirs, X, y)
    row["agreement"] = _agreement(ours, theirs, data)
    return row


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _solvers(model: Any) -> list[str]:
    """What ran, as ``explain()`` tells it."""
    facts = getattr(model, "_solution_facts", None) or {}
    return [stage[0] for stage in facts.get("stages", ())] or [str(getattr(model, "solver_", ""))]


def _agreement(ours: Any, theirs: Any, data: DataSet) -> float:
    """Classes: share of rows with another answer; numbers: largest difference over the spread."""
    a, b = ours.predict(data.X), theirs.predict(data.X)
    if data.is_classes:
        return float((a != b).mean())
    return float(np.abs(a - b).max() / max(float(np.std(data.y)), 1e-300))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in measure(read(Path(sys.argv[1]), sys.argv[2]), sys.argv[3:]):
            emit(**line)
