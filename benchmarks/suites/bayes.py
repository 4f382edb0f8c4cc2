"""Gaussian processes and regression by maximum evidence beside other libraries."""

from __future__ import annotations

from benchmarks.bayes.cases import CASES, Case
from benchmarks.bayes.tables import tables
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.tuned import measure_rows, summarise, taking_part

__all__ = ["TITLE", "run", "summarise", "tables"]

TITLE = "Gaussian processes and Bayesian ridge regression beside other libraries"

_SMALL = 0.05


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""

    def limit_of(case: Case) -> float:
        return request.own_limit or case.limit

    scale = _SMALL if request.small else request.scale
    return measure_rows(request, "bayes", taking_part(CASES), limit_of, scale)
