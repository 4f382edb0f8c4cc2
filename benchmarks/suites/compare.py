"""Comparisons of linear models beside the same ones written with ``GridSearchCV``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.compare.cases import CASES
from benchmarks.compare.files import FILES
from benchmarks.compare.worker import OURS, THEIRS
from benchmarks.isolated import run_module
from benchmarks.machine import LoadMeter, wait_until_quiet
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["TARGET", "keep", "run", "tables"]

TITLE = "comparisons of linear models beside GridSearchCV"
#: Times faster than scikit-learn's estimators and GridSearchCV.
TARGET = 5.0
# A search of the other side may take so many times the limit of one call: it makes dozens of them.
_CALLS = 10
# Scores nearer than this are the same: less than a row of the largest data set.
_TIE = 3e-5


def run(request: Request) -> Store:
    """Measure what is asked for: a process per case, in which both sides take their turn."""
    store = Store("compare", request.folder)
    files = [name for name in FILES if request.data and (request.data / name).exists()]
    for name in [*CASES, *files]:
        if not any(request.wants(name, who, store.get(name, who)) for who in (OURS, THEIRS)):
            continue
        wait_until_quiet(request.patience)
        meter = LoadMeter()
        limit = _CALLS * request.limit
        size = "small" if request.small else "full"
        folder = [str(request.data)] if name in files else []
        # Of processor time inside, of the clock here: others may be at work.
        arguments = ("benchmarks.compare.worker", [name, size, str(limit), *folder], 3 * limit)
        outcome = run_module(*arguments, priority=request.priority)
        other = meter.stop()
        if outcome.error or outcome.is_late:
            print(f"{name}: {outcome.error or 'too slow'}", flush=True)
        for who, row in keep(store, name, outcome.lines, other).items():
            print(f"{name} / {who}: {seconds_text(row['seconds'])}", flush=True)
    return store


def keep(
    store: Store, name: str, lines: Iterable[dict[str, Any]], other: float
) -> dict[str, dict[str, Any]]:
    """The rows of both sides, stored."""
    rows: dict[str, dict[str, Any]] = {}
    for line in lines:
        who = line.pop("contestant")
        if who == OURS:
            rows[who] = line
            continue
        theirs = rows.setdefault(who, {"seconds": 0.0, "models": {}})
        theirs["seconds"] += line["seconds"]
        theirs["models"][line.pop("model")] = line
    for who, row in rows.items():
        store.put(name, who, {**row, "other": other})
    return rows


def tables(store: Store) -> list[Table]:
    """All models of a case together, and one by one."""
    whole, single = [], []
    for name, case in {**CASES, **FILES}.items():
        rows = store.rows.get(name, {})
        if OURS not in rows or THEIRS not in rows:
            continue
        ours, theirs = rows[OURS], rows[THEIRS]
        pairs = [(ours["models"][who], row) for who, row in theirs["models"].items()]
        both = [(a["score"], b["score"]) for a, b in pairs if "score" in b]
        is_late = any(row.get("is_late") for row in theirs["models"].values())
        ratio = theirs["seconds"] / ours["seconds"]
        whole.append(
            [
                case.title,
                seconds_text(ours["seconds"]),
                _least(is_late) + seconds_text(theirs["seconds"]),
                _least(is_late) + number(ratio, ".1f"),
                "yes" if ratio >= TARGET else "no",
                f"{_winners(ours)} / {_winners(theirs)}",
                number(max(abs(a - b) for a, b in both) if both else None, ".1e"),
                number(ours.get("other"), ".2f"),
            ]
        )
        for who, row in theirs["models"].items():
            own = ours["models"][who]
            late = _least(bool(row.get("is_late")))
            single.append(
                [
                    case.title,
                    who,
                    seconds_text(own["seconds"]),
                    late + seconds_text(row["seconds"]),
                    late + number(row["seconds"] / own["seconds"], ".1f"),
                    number(own["score"], ".5f"),
                    number(row.get("score"), ".5f"),
                ]
            )
    if not whole:
        return []
    heads = ["case", "ours", "theirs", "ratio", f">= {TARGET:g}", "winners", "scores", "other load"]
    by_model = ["case", "model", "ours", "theirs", "ratio", "our score", "their score"]
    return [
        Table("All models with their grids, five folds", heads, whole, []),
        Table("One model at a time", by_model, single, []),
    ]


def _least(is_late: bool) -> str:
    """Before what was ended early."""
    return "> " if is_late else ""


def _winners(row: dict[str, Any]) -> str:
    """The model of the best score, with all that share it."""
    scores = {who: one["score"] for who, one in row["models"].items() if "score" in one}
    best = max(scores.values(), default=0.0)
    return " = ".join(sorted(who for who, score in scores.items() if score >= best - _TIE))
