"""Whether two classes are separable, decided by trueline and by the linear program of HiGHS."""

from __future__ import annotations

from benchmarks.selection import Request
from benchmarks.separability.cases import CASES, Case
from benchmarks.separability.tables import tables
from benchmarks.store import Store
from benchmarks.tuned import measure_rows, summarise, taking_part

__all__ = ["TITLE", "run", "summarise", "tables"]

TITLE = "separability of two classes, with proof, beside the linear program by HiGHS"

_SMALL = 0.01


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""

    def limit_of(case: Case) -> float:
        return request.own_limit or case.limit

    scale = _SMALL if request.small else request.scale
    return measure_rows(request, "separability", taking_part(CASES), limit_of, scale)
