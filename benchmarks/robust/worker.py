"""One contestant on one case of the robust suite, in a process of its own.

``python -m benchmarks.robust.worker CASE NAME SCALE CACHE LIMIT [FOLDER [BELOW]]``. A first call
(imports, compilation) on a small part of the data is apart. Then the loosest tolerance that reaches
the criterion is looked for, and calls with it are repeated.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.contestants import CONTESTANTS
from benchmarks.contestants.base import Tuned
from benchmarks.isolated import emit
from benchmarks.machine import LoadMeter, forget_peak, peak_bytes, resident_bytes, version
from benchmarks.objective import Data
from benchmarks.robust.cases import CASES, Case
from benchmarks.robust.objective import RobustData, suboptimality
from benchmarks.robust.prepare import load
from benchmarks.sparse.worker import measure

__all__ = ["judge", "measure_memory"]

# Rows and columns of the problem of the first call.
_PART = (300, 40)
# Repetitions where memory is measured too.
_CALLS = 3


def judge(
    case: Case, tuned: Tuned, data: Data, facts: dict[str, Any], answer: Any
) -> dict[str, Any]:
    """What is reported of an answer."""
    assert isinstance(data, RobustData)
    return {"quality": suboptimality(data, answer, facts["bounds"])}


def _small_part(data: RobustData) -> RobustData:
    """Some rows of the columns with the most entries, in the same kind of storage."""
    X: Any = data.X[: _PART[0]]
    entries = X.count_nonzero(axis=0) if sp.issparse(X) else np.zeros(X.shape[1])
    columns = np.sort(np.argsort(-entries, kind="stable")[: _PART[1]])
    return replace(data, X=X[:, columns], y=data.y[: _PART[0]].copy())


def warm_up(tuned: Tuned, data: RobustData) -> float:
    """Seconds of a first call, with imports and compilation, on a small part of the data."""
    part, start = _small_part(data), time.perf_counter()
    tuned.fit(part, tuned.ladder[0])
    return time.perf_counter() - start


def measure_memory(case: Case, tuned: Tuned, data: RobustData, facts: dict[str, Any]) -> None:
    """How far the resident set grows during a call, and the seconds of a few."""
    rung = tuned.ladder[0]
    for call in range(_CALLS):
        emit(kind="start", rung=rung)
        before = resident_bytes()
        forget_peak()
        meter, start = LoadMeter(), time.perf_counter()
        answer = tuned.fit(data, rung)
        line = {"seconds": time.perf_counter() - start, "other": meter.stop(), "rung": rung}
        grown = max(0, peak_bytes() - before)
        emit(kind="returned")
        if call == 0:  # later ones reuse what the first one has left in the pool of memory
            line |= judge(case, tuned, data, facts, answer)
            line |= {"growth": grown / data.X.nbytes, "megabytes": grown / 1e6}
        emit(kind="call", **line)


def main(
    name: str,
    contestant: str,
    scale: str,
    cache: str,
    limit: str,
    folder: str = "",
    below: str = "",
) -> None:
    """Load the data and measure."""
    warnings.simplefilter("ignore")
    case, peer = replace(CASES[name], limit=float(limit)), CONTESTANTS[contestant]
    data, facts = load(Path(cache), name, case, float(scale))
    tuned = peer.tuned[case.task]
    first = warm_up(tuned, data)
    emit(kind="ready", first=first, version=version(peer.package), numpy=np.__version__)
    if case.measure == "memory":
        measure_memory(case, tuned, data, facts)
        return
    tightest = float(below) if below else None
    measure(name, case, tuned, data, facts, float(scale), tightest, judge)


if __name__ == "__main__":
    main(*sys.argv[1:])
