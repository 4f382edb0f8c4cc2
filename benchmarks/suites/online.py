"""Perceptrons and online learning beside other libraries: rows per second, held-out accuracy."""

from __future__ import annotations

from typing import Any

from benchmarks.isolated import run_module
from benchmarks.machine import wait_until_quiet
from benchmarks.online.contestants import CONTESTANTS
from benchmarks.online.problems import CASES
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["TARGETS", "TITLE", "run", "tables"]

TITLE = "one pass of the perceptron and its relatives, and one row at a time"

_SMALL = 0.01
#: Case, ours, another, how many times its rows per second.
TARGETS = [
    ("text", "trueline Perceptron", "scikit-learn Perceptron", 2.0),
    ("text", "trueline Perceptron", "scikit-learn SGDClassifier, hinge", 2.0),
    ("text", "trueline Perceptron", "Vowpal Wabbit, plain", 1.0),
    ("text", "trueline OnlineLogisticRegression", "Vowpal Wabbit, adaptive", 1.0),
    ("dense", "trueline Perceptron", "scikit-learn Perceptron", 4.0),
    ("dense", "trueline Perceptron", "scikit-learn SGDClassifier, hinge", 4.0),
    ("dense", "trueline Perceptron", "Vowpal Wabbit, plain", 1.0),
    ("dense", "trueline OnlineLogisticRegression", "Vowpal Wabbit, adaptive", 1.0),
    ("rows", "trueline Perceptron, partial_fit", "scikit-learn Perceptron, partial_fit", 20.0),
    ("rows", "trueline Perceptron, partial_fit", "River LogisticRegression, learn_one", 1.0),
    ("documents", "trueline Perceptron, learn_one", "River LogisticRegression, learn_one", 1.0),
]


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""
    store = Store("online", request.folder)
    scale = _SMALL if request.small else request.scale
    for case in CASES:
        for name, contestant in CONTESTANTS.items():
            if case not in contestant.cases:
                continue
            if not request.wants(case, name, store.get(case, name)):
                continue
            wait_until_quiet(request.patience)
            python = request.python.get(name) or (
                request.peer_python if contestant.is_guest else None
            )
            outcome = run_module(
                "benchmarks.online.worker",
                [case, name, str(scale)],
                request.limit,
                python,
                request.priority,
            )
            row = _row(outcome)
            store.put(case, name, row)
            print(f"{case} / {name}: {_text(row)}", flush=True)
    return store


def _row(outcome: Any) -> dict[str, Any]:
    lines = {kind: [] for kind in ("ready", "call", "accuracy")}
    for line in outcome.lines:
        lines[line["kind"]].append(line)
    if outcome.is_late or outcome.error or not lines["accuracy"]:
        return {"error": outcome.error or "too slow"}
    best = min(lines["call"], key=lambda line: line["seconds"])
    return {
        "seconds": best["seconds"],
        "rows": best["rows"],
        "rate": best["rows"] / best["seconds"],
        "other": best["other"],
        "first": lines["ready"][0]["first"],
        "version": lines["ready"][0]["version"],
        "accuracy": lines["accuracy"][0]["accuracy"],
    }


def _text(row: dict[str, Any]) -> str:
    if "error" in row:
        return str(row["error"])
    return f"{row['rate']:,.0f} rows/s, held-out accuracy {row['accuracy']:.4f}"


def tables(store: Store) -> list[Table]:
    """The targets, then one table per case."""
    out = [_targets(store)]
    heads = ["", "rows per second", "seconds", "first call", "held-out accuracy", "other load"]
    for case, problem in CASES.items():
        rows = store.rows.get(case)
        if not rows:
            continue
        body = [
            [name, row["error"], "", "", "", ""]
            if "error" in row
            else [
                f"{name} ({row['version']})",
                f"{row['rate']:,.0f}",
                seconds_text(row["seconds"]),
                seconds_text(row["first"]),
                number(row["accuracy"], ".4f"),
                number(row["other"], ".2f"),
            ]
            for name, row in rows.items()
        ]
        out.append(Table(problem.title, heads, body))
    return out


def _targets(store: Store) -> Table:
    body = []
    for case, ours, theirs, goal in TARGETS:
        one, other = store.get(case, ours), store.get(case, theirs)
        if not one or not other or "error" in one or "error" in other:
            continue
        ratio = one["rate"] / other["rate"]
        mark = "yes" if ratio >= goal else "no"
        body.append([CASES[case].title, ours, theirs, f"{goal:g}", f"{ratio:.2f}", mark])
    heads = ["case", "ours", "compared with", "our rows/s / its, at least", "measured", "reached"]
    return Table("Targets", heads, body)
