"""One contestant on one case of the online suite, in a process of its own.

``python -m benchmarks.online.worker CASE NAME SCALE``; the first call, with imports, is apart.
"""

from __future__ import annotations

import sys
import time
import warnings

from benchmarks.isolated import emit
from benchmarks.machine import LoadMeter, version
from benchmarks.online.contestants import CONTESTANTS
from benchmarks.online.problems import CASES

__all__ = ["main"]

_CALLS = 5


def main(case: str, name: str, scale: str) -> None:
    """Make the rows, learn from them a few times, report the best."""
    warnings.simplefilter("ignore")
    split, contestant = CASES[case].make(float(scale)), CONTESTANTS[name]
    prepared = contestant.prepare(split)
    rows = len(split.y)
    if contestant.package == "vowpalwabbit" and case == "dense":
        rows = min(rows, 200_000)
    start = time.perf_counter()
    contestant.learn(prepared)
    emit(kind="ready", first=time.perf_counter() - start, version=version(contestant.package))
    for _ in range(_CALLS):
        meter, start = LoadMeter(), time.perf_counter()
        model = contestant.learn(prepared)
        seconds = time.perf_counter() - start
        emit(kind="call", seconds=seconds, other=meter.stop(), rows=rows)
    emit(kind="accuracy", accuracy=contestant.accuracy(model, split))


if __name__ == "__main__":
    main(*sys.argv[1:])
