"""Comparisons of linear models beside the same ones written with ``GridSearchCV``."""

from __future__ import annotations

from benchmarks.compare.cases import CASES
from benchmarks.isolated import run_module
from benchmarks.machine import LoadMeter, wait_until_quiet
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["TARGET", "run", "tables"]

TITLE = "comparisons of linear models beside GridSearchCV"
#: Times faster than scikit-learn's estimators and GridSearchCV.
TARGET = 5.0
_US, _THEM = "trueline.compare", "scikit-learn, GridSearchCV"


def run(request: Request) -> Store:
    """Measure what is asked for: a process per case, in which both sides take their turn."""
    store = Store("compare", request.folder)
    for name in CASES:
        if not any(request.wants(name, who, store.get(name, who)) for who in (_US, _THEM)):
            continue
        wait_until_quiet(request.patience)
        meter = LoadMeter()
        size = "small" if request.small else "full"
        # The other side has hundreds of fits to make, and nothing is heard before.
        arguments = ("benchmarks.compare.worker", [name, size], 20 * request.limit)
        outcome = run_module(*arguments, priority=request.priority)
        other = meter.stop()
        if outcome.error or outcome.is_late:
            print(f"{name}: {outcome.error or 'too slow'}", flush=True)
        for line in outcome.lines:
            who = line.pop("contestant")
            store.put(name, who, {**line, "other": other})
            print(f"{name} / {who}: {seconds_text(line['seconds'])}", flush=True)
    return store


def tables(store: Store) -> list[Table]:
    """One table: both times, both winners, and how far scores are apart."""
    body = []
    for name, case in CASES.items():
        rows = store.rows.get(name, {})
        if _US not in rows or _THEM not in rows:
            continue
        ours, theirs = rows[_US], rows[_THEM]
        ratio = theirs["seconds"] / ours["seconds"]
        body.append(
            [
                case.title,
                seconds_text(ours["seconds"]),
                seconds_text(theirs["seconds"]),
                number(ratio, ".1f"),
                "yes" if ratio >= TARGET else "no",
                f"{ours['winner']} / {theirs['winner']}",
                number(theirs["difference"], ".1e"),
                number(ours.get("other"), ".2f"),
            ]
        )
    heads = ["case", "ours", "theirs", "ratio", f">= {TARGET:g}", "winners", "scores", "other load"]
    return [Table("All models with their grids, five folds", heads, body, [])] if body else []
