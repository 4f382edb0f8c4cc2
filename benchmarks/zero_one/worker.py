"""One contestant on one case, in a process of its own.

``python -m benchmarks.zero_one.worker NAME ROWS COLUMNS LIMIT CALLS``. A first call (imports,
compilation) on a small problem is apart.
"""

from __future__ import annotations

import sys
import time
import warnings

from benchmarks.isolated import emit
from benchmarks.machine import LoadMeter
from benchmarks.zero_one.cases import CONTESTANTS, errors_of, make

__all__: list[str] = []


def main(name: str, rows: str, columns: str, limit: str, calls: str) -> None:
    """Fit and report."""
    warnings.simplefilter("ignore")
    fit = CONTESTANTS[name]
    start = time.perf_counter()
    fit(*make(30, 2), 10.0)
    emit(kind="ready", first=time.perf_counter() - start)
    X, y = make(int(rows), int(columns))
    for _ in range(int(calls)):
        meter, start = LoadMeter(), time.perf_counter()
        outcome = fit(X, y, float(limit))
        seconds = time.perf_counter() - start
        emit(
            kind="call",
            seconds=seconds,
            other=meter.stop(),
            errors=errors_of(X, y, outcome),
            bound=outcome.bound,
            is_proven=bool(outcome.is_proven),
        )
        if seconds > 2.0:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
