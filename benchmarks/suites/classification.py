"""Linear classifiers beside other libraries: logistic, softmax, support vectors, many classes."""

from __future__ import annotations

from benchmarks import judged
from benchmarks.classification.prepare import SUITE
from benchmarks.report import Table
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.tuned import summarise

__all__ = ["TITLE", "run", "summarise", "tables"]

TITLE = "logistic and softmax regression and linear support vector machines beside other libraries"

_SMALL = 0.005


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""
    return judged.run(SUITE, request, _SMALL)


def tables(store: Store) -> list[Table]:
    """The targets, then one table per case."""
    return judged.tables(SUITE, store)
