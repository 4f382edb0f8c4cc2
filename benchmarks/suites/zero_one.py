"""The fewest training errors of a halfspace, proven, beside the mixed integer program of HiGHS."""

from __future__ import annotations

from typing import Any

from benchmarks.isolated import run_module
from benchmarks.report import Table, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.zero_one.cases import CASES, CONTESTANTS, FRONTIER, MILP, US

__all__ = ["TITLE", "run", "tables"]

TITLE = "halfspaces with the fewest training errors, beside mixed integer programming"

_CALLS = 5
_MILP_LIMIT = 40.0
_FRONTIER_LIMIT = 60.0
# Seconds for imports and compilation, and to come to an end.
_GRACE = 60.0
_TARGET_RATIO = 5.0
_TARGETS = {(500, 2): 2.0, (200, 3): 2.0}


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""
    store = Store("zero_one", request.folder)
    cases = CASES[:1] if request.small else CASES
    for n, d in cases:
        for name in CONTESTANTS:
            limit = _MILP_LIMIT if name == MILP else request.limit
            _measure(request, store, f"n={n} d={d}", name, n, d, limit)
    for d, sizes in FRONTIER.items():
        for n in () if request.small else sizes:
            row = _measure(request, store, f"frontier d={d}", str(n), n, d, _FRONTIER_LIMIT)
            if row is not None and not row.get("is_proven", False):
                break
    return store


def _measure(
    request: Request, store: Store, group: str, label: str, n: int, d: int, limit: float
) -> dict[str, Any] | None:
    """The row of one contestant; from the store if it is there."""
    name = label if label in CONTESTANTS else US
    kept = store.get(group, label)
    if not request.wants(group, label, kept):
        return kept
    arguments = [name, str(n), str(d), str(limit), str(_CALLS)]
    outcome = run_module(
        "benchmarks.zero_one.worker", arguments, limit + _GRACE, priority=request.priority
    )
    calls = [line for line in outcome.lines if line["kind"] == "call"]
    if calls:
        best = min(calls, key=lambda call: call["seconds"])
        row = {key: best[key] for key in ("seconds", "other", "errors", "bound", "is_proven")}
    else:
        row = {"error": outcome.error or "too late"}
    store.put(group, label, row)
    return row


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or "seconds" not in row:
        return "" if row is None else row["error"]
    said = f"{row['errors']}"
    if row["bound"] is not None and not row["is_proven"]:
        said += f" (bound {row['bound']:g})"
    return f"{said}, {seconds_text(row['seconds'])}"


def tables(store: Store) -> list[Table]:
    """Errors and seconds, the targets, and how far proofs go."""
    groups = [f"n={n} d={d}" for n, d in CASES if store.rows.get(f"n={n} d={d}")]
    body = [[group, *(_cell(store.get(group, name)) for name in CONTESTANTS)] for group in groups]
    notes = [
        f"Errors and seconds (best of {_CALLS}); those of {US} and {MILP} are the fewest, proven, "
        f"unless a bound is given. The program has {_MILP_LIMIT:g} s. Ten percent of the labels "
        "are wrong."
    ]
    found = [Table("Fewest errors, ten percent noise", ["case", *CONTESTANTS], body, notes)]
    return [*found, _targets(store, groups), _frontier(store)]


def _targets(store: Store, groups: list[str]) -> Table:
    body = []
    for (n, d), goal in _TARGETS.items():
        row = store.get(f"n={n} d={d}", US)
        if row and "seconds" in row:
            reached = row["is_proven"] and row["seconds"] < goal
            measured = seconds_text(row["seconds"])
            body.append(
                [f"n={n} d={d}", f"proven in {goal:g} s", measured, "yes" if reached else "no"]
            )
    for group in groups:
        ours, theirs = store.get(group, US) or {}, store.get(group, MILP) or {}
        if ours.get("is_proven") and theirs.get("is_proven"):
            ratio = theirs["seconds"] / ours["seconds"]
            reached = ratio >= _TARGET_RATIO and ours["errors"] == theirs["errors"]
            goal = f"{_TARGET_RATIO:g} x as fast as {MILP}"
            body.append([group, goal, f"{ratio:.3g} x", "yes" if reached else "no"])
    for group in groups:
        rows = {name: store.get(group, name) or {} for name in CONTESTANTS}
        others = [row["errors"] for name, row in rows.items() if name != US and "errors" in row]
        if others and "errors" in rows[US]:
            reached = rows[US]["errors"] <= min(others)
            measured = f"{rows[US]['errors']} and {min(others)}"
            body.append([group, "no more errors than any", measured, "yes" if reached else "no"])
    return Table("Targets", ["case", "goal", "measured", "reached"], body)


def _frontier(store: Store) -> Table:
    body = []
    for d in FRONTIER:
        rows = store.rows.get(f"frontier d={d}", {})
        proven = [(int(n), row) for n, row in rows.items() if row.get("is_proven")]
        if proven:
            n, row = max(proven, key=lambda item: item[0])
            body.append([str(d), f"{n:,}", str(row["errors"]), seconds_text(row["seconds"])])
    heads = ["columns", "rows", "errors", "seconds"]
    notes = [f"The most rows, of those tried, that were proven within {_FRONTIER_LIMIT:g} s."]
    return Table("How far proofs go", heads, body, notes)
