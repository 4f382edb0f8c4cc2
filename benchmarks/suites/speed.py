"""Speed and memory beside other libraries: least squares, cross-validated ridge, tiny fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.isolated import Outcome, run_module
from benchmarks.machine import wait_until_quiet
from benchmarks.objective import Data
from benchmarks.problems import flowers, regression, ridge_grid
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["CASES", "TARGETS", "Case", "Target", "run", "summarise", "tables"]

TITLE = "time and memory beside other libraries"
US = "trueline"
CRITERION = 1e-6


@dataclass(frozen=True)
class Case:
    """A task on data, and what is measured.

    Attributes
    ----------
    title : str
    task : str
        Contestants that offer it take part.
    make : function
        From "small sizes?" to Data.
    measure : {"time", "tiny", "memory"}
    """

    title: str
    task: str
    make: Callable[[bool], Data]
    measure: str = "time"


def _tall(n: int, d: int, fit_intercept: bool) -> Callable[[bool], Data]:
    return lambda small: regression(n // 100 if small else n, d, fit_intercept=fit_intercept)


def _ridge(folds: int) -> Callable[[bool], Data]:
    return lambda small: ridge_grid(1000 if small else 100_000, 30 if small else 300, folds=folds)


CASES = {
    "ols_1e6x100": Case(
        "Least squares, n = 1,000,000, d = 100, no intercept",
        "least_squares",
        _tall(1_000_000, 100, False),
    ),
    "ols_1e6x100_intercept": Case(
        "Least squares, n = 1,000,000, d = 100, with intercept",
        "least_squares",
        _tall(1_000_000, 100, True),
    ),
    "ols_2e5x500": Case(
        "Least squares, n = 200,000, d = 500, no intercept",
        "least_squares",
        _tall(200_000, 500, False),
    ),
    "ols_2e5x500_intercept": Case(
        "Least squares, n = 200,000, d = 500, with intercept",
        "least_squares",
        _tall(200_000, 500, True),
    ),
    "ridge_cv_1e5x300": Case(
        "Ridge, 100 strengths by leave-one-out, n = 100,000, d = 300", "ridge_cv", _ridge(0)
    ),
    "ridge_folds_1e5x300": Case(
        "Ridge, 100 strengths by 5 folds, n = 100,000, d = 300", "ridge_folds", _ridge(5)
    ),
    "tiny_ols": Case(
        "Tiny fit: LinearRegression on 150 x 4",
        "least_squares",
        lambda small: flowers("least_squares"),
        "tiny",
    ),
    "tiny_ridge": Case(
        "Tiny fit: Ridge on 150 x 4", "ridge", lambda small: flowers("ridge"), "tiny"
    ),
    "tiny_ridge_cv": Case(
        "Tiny fit: RidgeCV (leave-one-out, 3 strengths) on 150 x 4",
        "ridge_cv",
        lambda small: flowers("ridge_cv"),
        "tiny",
    ),
    "memory_1e6x100": Case(
        "Memory of a least-squares fit, n = 1,000,000, d = 100, with intercept",
        "least_squares",
        _tall(1_000_000, 100, True),
        "memory",
    ),
}


@dataclass(frozen=True)
class Target:
    """What trueline should reach: the other's time over ours, at least so much."""

    case: str
    versus: str
    at_least: float


TARGETS = (
    *(Target(f"ols_1e6x100{end}", "scikit-learn", 20.0) for end in ("", "_intercept")),
    *(Target(f"ols_2e5x500{end}", "scikit-learn", 8.0) for end in ("", "_intercept")),
    *(
        Target(f"ols_{size}{end}", versus, ratio)
        for size in ("1e6x100", "2e5x500")
        for end in ("", "_intercept")
        for versus, ratio in (("dsyrk + Cholesky", 1.0), ("scikit-learn-intelex", 1 / 1.1))
    ),
    Target("ridge_cv_1e5x300", "scikit-learn", 50.0),
    Target("ridge_folds_1e5x300", "scikit-learn", 50.0),
    *(Target(f"tiny_{kind}", "scikit-learn", 1.0) for kind in ("ols", "ridge", "ridge_cv")),
)


def run(request: Request) -> Store:
    """Measure what is asked for, one process after the other."""
    from benchmarks.contestants import CONTESTANTS

    store = Store("speed", request.folder)
    for name, case in CASES.items():
        for contestant in CONTESTANTS.values():
            if case.task not in contestant.fits:
                continue
            if not request.wants(name, contestant.name, store.get(name, contestant.name)):
                continue
            wait_until_quiet(request.patience)
            size = "small" if request.small else "full"
            outcome = run_module(
                "benchmarks.worker",
                [name, contestant.name, size],
                request.limit,
                request.python.get(contestant.name),
                request.priority,
            )
            row = summarise(outcome, request.limit)
            store.put(name, contestant.name, row)
            print(f"{name} / {contestant.name}: {_brief(row)}", flush=True)
    return store


def summarise(outcome: Outcome, limit: float) -> dict[str, Any]:
    """The row of one process: the best undisturbed call if there is one."""
    row: dict[str, Any] = {}
    if outcome.is_late:
        row["over"] = limit
    if outcome.error:
        row["error"] = outcome.error[:200]
    for line in outcome.lines:
        if line["kind"] in ("tiny", "memory"):
            return row | {key: value for key, value in line.items() if key != "kind"}
    first = next((line for line in outcome.lines if line["kind"] == "first"), None)
    if first is None:
        return row
    calls = [line for line in outcome.lines if line["kind"] == "call"]
    best = min(calls or [first], key=lambda line: line["seconds"])
    return row | {
        "seconds": best["seconds"],
        "other": best["other"],
        "first": first["seconds"],
        "calls": len(calls),
        "quality": first["quality"],
        "alpha": first["alpha"],
    }


def _brief(row: dict[str, Any]) -> str:
    if "seconds" not in row:
        return row.get("error") or f"over {row.get('over')} s"
    extra = f", {row['growth']:.3f} of X" if "growth" in row else ""
    return f"{seconds_text(row['seconds'])}{extra}, other load {number(row['other'], '.2f')}"


def tables(store: Store) -> list[Table]:
    """One table per case, and the targets."""
    out = [_targets(store)]
    for name, case in CASES.items():
        rows = store.rows.get(name)
        if rows:
            out.append({"time": _times, "tiny": _tiny, "memory": _memory}[case.measure](case, rows))
    return out


def _ratio(row: dict[str, Any], ours: dict[str, Any], key: str = "seconds") -> str:
    if not ours.get(key):
        return ""
    if key not in row:
        return f"> {row['over'] / ours[key]:.0f}" if "over" in row else ""
    ratio = row[key] / ours[key]
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def _sorted(rows: dict[str, dict[str, Any]], key: str) -> list[tuple[str, dict[str, Any]]]:
    return sorted(rows.items(), key=lambda item: item[1].get(key, float("inf")))


def _times(case: Case, rows: dict[str, dict[str, Any]]) -> Table:
    ours = rows.get(US, {})
    heads = ["", "seconds", "x trueline", "first call", "suboptimality", "calls", "other load"]
    if case.task.startswith("ridge"):
        heads.insert(5, "chosen alpha")
    body = []
    for name, row in _sorted(rows, "seconds"):
        line = [name, _seconds(row), _ratio(row, ours), seconds_text(row.get("first"))]
        quality = number(row.get("quality"), ".1e")
        if row.get("quality", 0.0) > CRITERION:
            quality += " (not solved)"
        line.append(quality)
        if case.task.startswith("ridge"):
            line.append(number(row.get("alpha"), ".4g"))
        line += [number(row.get("calls"), "d"), number(row.get("other"), ".2f")]
        body.append(line)
    return Table(case.title, heads, body)


def _seconds(row: dict[str, Any]) -> str:
    if "seconds" in row:
        return seconds_text(row["seconds"])
    return f"over {row['over']:.0f} s" if "over" in row else f"failed: {row.get('error', '')[:60]}"


def _tiny(case: Case, rows: dict[str, dict[str, Any]]) -> Table:
    ours = rows.get(US, {})
    heads = ["", "median", "x trueline", "best", "x trueline", "first call", "other load"]
    body = [
        [
            name,
            _seconds(row),
            _ratio(row, ours),
            seconds_text(row.get("best")),
            _ratio(row, ours, "best"),
            seconds_text(row.get("first")),
            number(row.get("other"), ".2f"),
        ]
        for name, row in _sorted(rows, "seconds")
    ]
    return Table(case.title, heads, body)


def _memory(case: Case, rows: dict[str, dict[str, Any]]) -> Table:
    heads = ["", "growth / size of X", "growth in MB", "seconds"]
    body = [
        [name, number(row.get("growth"), ".3f"), number(row.get("megabytes"), ".0f"), _seconds(row)]
        for name, row in _sorted(rows, "growth")
    ]
    return Table(case.title, heads, body)


def _targets(store: Store) -> Table:
    body = []
    for target in TARGETS:
        ours, theirs = store.get(target.case, US), store.get(target.case, target.versus)
        if not ours or not theirs or "seconds" not in ours:
            continue
        known = theirs.get("seconds", theirs.get("over"))
        if known is None:
            continue
        ratio = known / ours["seconds"]
        reached = ratio >= target.at_least
        mark = "yes" if reached else ("no" if "seconds" in theirs else "not known: over the limit")
        least = "" if "seconds" in theirs else "> "
        text = f"{target.at_least:.2f}" if target.at_least < 10 else f"{target.at_least:.0f}"
        body.append([CASES[target.case].title, target.versus, text, f"{least}{ratio:.2f}", mark])
    heads = ["case", "compared with", "its time / ours, at least", "measured", "reached"]
    return Table("Targets", heads, body)
