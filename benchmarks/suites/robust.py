"""Robust regression beside other libraries: quantiles, maximum error, Huber, support vectors."""

from __future__ import annotations

from benchmarks.robust.cases import CASES, Case
from benchmarks.robust.tables import tables
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.tuned import measure_rows, summarise, taking_part

__all__ = ["TITLE", "run", "summarise", "tables"]

TITLE = "quantiles, maximum error, Huber and support vector regression beside other libraries"

_SMALL = 0.005


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""

    def limit_of(case: Case) -> float:
        return request.own_limit or case.limit

    scale = _SMALL if request.small else request.scale
    return measure_rows(request, "robust", taking_part(CASES), limit_of, scale)
