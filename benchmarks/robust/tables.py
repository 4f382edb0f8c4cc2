"""Tables and targets of the robust suite, from what is stored."""

from __future__ import annotations

from benchmarks.report import Table, number, seconds_text
from benchmarks.robust.cases import CASES, TARGETS, Target
from benchmarks.rows import (
    US,
    Line,
    Rows,
    against_fastest,
    is_good,
    load_of,
    quality_of,
    scales,
    seconds_of,
    time_table,
    versions,
)
from benchmarks.store import Store

__all__ = ["tables"]


def _judged(target: Target, store: Store, rows: Rows) -> Line | None:
    """What it is compared with, the goal, what was measured, and whether it is reached."""
    ours = rows[US]
    if target.kind == "fastest":
        return against_fastest(rows, target.bound)
    is_right = is_good(ours, rows)
    if target.kind == "memory":
        grown = ours["growth"]
        goal = f"memory beside X at most {target.bound:g} x X"
        reached = is_right and grown <= target.bound
        return "", goal, f"{grown:.2f} in {seconds_text(ours['seconds'])}", _mark(reached)
    one = (store.get(target.one, US) or {}).get("seconds")
    if one is None:
        return None
    ratio = ours["seconds"] / one
    goal = f"our time / that of one below {target.bound:g}"
    versus = CASES[target.one].title.split(",")[0]
    return versus, goal, f"{ratio:.2f}", _mark(is_right and ratio < target.bound)


def _mark(reached: bool) -> str:
    return "yes" if reached else "no"


def _targets(store: Store) -> Table:
    body = []
    for target in TARGETS:
        rows = store.rows.get(target.case, {})
        if "seconds" not in rows.get(US, {}):
            continue
        line = _judged(target, store, rows)
        if line is not None:
            body.append([CASES[target.case].title, *line])
    heads = ["case", "compared with", "goal", "measured", "reached"]
    return Table("Targets", heads, body, [*versions(store), *scales(store)])


def _memory(title: str, rows: Rows) -> Table:
    heads = ["", "seconds", "first call", "growth / size of X", "growth in MB", "suboptimality"]
    body = [
        [
            name,
            seconds_of(row),
            seconds_text(row.get("first")),
            number(row.get("growth"), ".2f"),
            number(row.get("megabytes"), ".0f"),
            quality_of(row),
            *load_of(row),
        ]
        for name, row in rows.items()
    ]
    return Table(title, [*heads, "calls", "other load"], body)


def tables(store: Store) -> list[Table]:
    """The targets, then one table per case."""
    out = [_targets(store)]
    for name, case in CASES.items():
        rows = store.rows.get(name)
        if rows:
            out.append((_memory if case.measure == "memory" else time_table)(case.title, rows))
    return out
