"""One contestant on one case, in a process of its own: ``python -m benchmarks.worker CASE NAME``.

Time: the first call (with imports and compilation) apart, then the best of several. Tiny fits:
median and best of many. Memory: how far the resident set grows above what it was before the call.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from dataclasses import replace

from benchmarks.contestants import CONTESTANTS
from benchmarks.contestants.base import Fit
from benchmarks.isolated import emit
from benchmarks.machine import LoadMeter, forget_peak, peak_bytes, resident_bytes
from benchmarks.objective import Answer, Data, relative_suboptimality
from benchmarks.suites.speed import CASES

# Repetitions end when there are so many, or when they took so long together.
_CALLS, _SECONDS = 7, 10.0
# A first call of more than this is not repeated.
_TOO_LONG = 20.0
_DISTURBED = 0.3
_TINY_CALLS = 400


def timed(fit: Fit, data: Data) -> tuple[Answer, float, float | None]:
    """Answer, seconds, and the cores that others used meanwhile."""
    meter = LoadMeter()
    start = time.perf_counter()
    answer = fit(data)
    seconds = time.perf_counter() - start
    return answer, seconds, meter.stop()


def measure_time(fit: Fit, data: Data) -> None:
    """The first call, its quality, then repetitions."""
    emit(kind="ready")
    answer, seconds, other = timed(fit, data)
    quality = relative_suboptimality(data, answer)
    emit(kind="first", seconds=seconds, other=other, quality=quality, alpha=answer.alpha)
    if seconds > _TOO_LONG:
        return
    spent, calls, calm = 0.0, 0, 0
    while calls == 0 or (spent < _SECONDS and calls < _CALLS) or (calm < 2 and spent < _SECONDS):
        answer, seconds, other = timed(fit, data)
        emit(kind="call", seconds=seconds, other=other)
        spent, calls = spent + seconds, calls + 1
        calm += other is None or other < _DISTURBED


def measure_tiny(fit: Fit, data: Data) -> None:
    """Many calls in a row."""
    emit(kind="ready")
    answer, first, _ = timed(fit, data)
    times, meter = [], LoadMeter()
    for _ in range(_TINY_CALLS):
        start = time.perf_counter()
        fit(data)
        times.append(time.perf_counter() - start)
    emit(
        kind="tiny",
        first=first,
        seconds=statistics.median(times),
        best=min(times),
        other=meter.stop(),
        quality=relative_suboptimality(data, answer),
    )


def measure_memory(fit: Fit, data: Data) -> None:
    """Growth of the resident set during a fit, after a small fit has loaded what is lazy."""
    fit(replace(data, X=data.X[:2000].copy(), y=data.y[:2000].copy()))
    emit(kind="ready")
    before = resident_bytes()
    forget_peak()
    answer, seconds, other = timed(fit, data)
    grown = max(0, peak_bytes() - before)
    emit(
        kind="memory",
        seconds=seconds,
        other=other,
        growth=grown / data.X.nbytes,
        megabytes=grown / 1e6,
        quality=relative_suboptimality(data, answer),
    )


MEASURES = {"time": measure_time, "tiny": measure_tiny, "memory": measure_memory}


def main(case_name: str, contestant: str, size: str) -> None:
    """Make the data and measure."""
    warnings.simplefilter("ignore")
    case = CASES[case_name]
    data = case.make(size == "small")
    MEASURES[case.measure](CONTESTANTS[contestant].fits[case.task], data)


if __name__ == "__main__":
    main(*sys.argv[1:4])
