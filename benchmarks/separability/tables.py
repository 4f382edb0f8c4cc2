"""Tables and targets of the suite on separability, from what is stored."""

from __future__ import annotations

from benchmarks.report import Table, seconds_text
from benchmarks.rows import (
    US,
    Rows,
    against_fastest,
    is_good,
    load_of,
    ordered,
    ratio_of,
    scales,
    seconds_of,
    versions,
)
from benchmarks.separability.cases import CASES, TARGETS
from benchmarks.store import Store

__all__ = ["tables"]


def _targets(store: Store) -> Table:
    body = []
    for name, bound in TARGETS.items():
        rows = store.rows.get(name, {})
        if "seconds" in rows.get(US, {}):
            line = against_fastest(rows, bound)
            if line is not None:
                body.append([CASES[name].title, *line])
    heads = ["case", "compared with", "goal", "measured", "reached"]
    return Table("Targets", heads, body, [*versions(store), *scales(store)])


def _times(title: str, rows: Rows) -> Table:
    heads = ["", "seconds", "x trueline", "first call", "verdict", "calls", "other load"]
    ours = rows.get(US, {})
    body = []
    for name, row in ordered(rows):
        verdict = ("right" if is_good(row, rows) else "wrong") if "seconds" in row else ""
        line = [name, seconds_of(row), ratio_of(row, ours), seconds_text(row.get("first")), verdict]
        body.append(line + load_of(row))
    return Table(title, heads, body)


def tables(store: Store) -> list[Table]:
    """The targets, then one table per case."""
    stored = [(case.title, store.rows.get(name)) for name, case in CASES.items()]
    return [_targets(store), *(_times(title, rows) for title, rows in stored if rows)]
