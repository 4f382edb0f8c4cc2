"""Gaussian processes and regression by maximum evidence beside other libraries."""

from __future__ import annotations

from benchmarks import judged
from benchmarks.bayes.prepare import SUITE
from benchmarks.report import Table
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.tuned import summarise

__all__ = ["TITLE", "run", "summarise", "tables"]

TITLE = "Gaussian processes and Bayesian ridge regression beside other libraries"

_SMALL = 0.05


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""
    return judged.run(SUITE, request, _SMALL)


def tables(store: Store) -> list[Table]:
    """The targets, then one table per case."""
    return judged.tables(SUITE, store)
