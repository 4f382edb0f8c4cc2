"""Sparse regression beside other libraries: lasso, forward selection, best subsets."""

from __future__ import annotations

from pathlib import Path

from benchmarks.contestants import Contestant
from benchmarks.selection import Request
from benchmarks.sparse.cases import Case, all_cases
from benchmarks.sparse.tables import tables
from benchmarks.store import Store
from benchmarks.tuned import measure_rows, summarise, taking_part, too_tight

__all__ = ["TITLE", "rows_of", "run", "summarise", "tables", "too_tight"]

TITLE = "lasso, forward selection and best subsets beside other libraries"

_SMALL = 0.002


def rows_of(folder: Path | None = None) -> list[tuple[str, Case, Contestant]]:
    """Who takes part in what, in the order of measurement."""
    return taking_part(all_cases(folder)[0])


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""

    def limit_of(case: Case) -> float:
        # Searches for best subsets end by themselves, after seconds of their own.
        return case.limit if case.task == "best_subset" else request.own_limit or case.limit

    scale = _SMALL if request.small else request.scale
    folder = str(request.data.resolve()) if request.data else ""
    return measure_rows(request, "sparse", rows_of(request.data), limit_of, scale, folder)
