"""Suites whose contestants climb ladders of tolerances: the loop over rows, and what a row is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contestants import CONTESTANTS, Contestant
from benchmarks.contestants.base import Tuned
from benchmarks.isolated import Outcome, run_module
from benchmarks.machine import wait_until_quiet
from benchmarks.report import number, seconds_text
from benchmarks.rows import CRITERION, US
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["measure_rows", "summarise", "taking_part", "too_tight"]

_CACHE = Path(tempfile.gettempdir()) / "trueline-benchmarks"
_PREPARATION = 180.0

Entry = tuple[str, Any, Contestant]


def taking_part(cases: dict[str, Any]) -> list[Entry]:
    """Who takes part in what, in the order of measurement."""
    return [
        (name, case, contestant)
        for name, case in cases.items()
        for contestant in CONTESTANTS.values()
        if case.task in contestant.tuned and contestant.tuned[case.task].takes(name)
    ]


def measure_rows(
    request: Request,
    suite: str,
    entries: Sequence[Entry],
    limit_of: Callable[[Any], float],
    scale: float,
    folder: str = "",
) -> Store:
    """Measure what is asked for, one process after the other.

    Parameters
    ----------
    request : Request
    suite : str
        ``benchmarks.SUITE.prepare`` makes the data, ``benchmarks.SUITE.worker`` measures.
    entries : sequence of (name, case, contestant)
    limit_of : function
        Seconds for one call in a case.
    scale : float
        Size of the problems.
    folder : str
        Data files, for suites that read some.
    """
    store, end = Store(suite, request.folder), time.monotonic() + 60 * request.minutes
    worker = f"benchmarks.{suite}.worker"
    broken: dict[str, str] = {}
    prepared: set[str] = set()
    for name, case, contestant in entries:
        stored = store.get(name, contestant.name)
        if stored and stored.get("scale", 1.0) != scale:
            stored = None  # of another size
        if not request.wants(name, contestant.name, stored):
            continue
        if time.monotonic() > end:
            print("No time left: the same command goes on from here.", flush=True)
            break
        if name not in prepared | broken.keys():
            arguments = [name, str(scale), str(_CACHE), folder]
            outcome = run_module(f"benchmarks.{suite}.prepare", arguments, _PREPARATION)
            prepared.add(name)
            if outcome.error or outcome.is_late:
                broken[name] = outcome.error or "too slow"
                print(f"{name}: not prepared: {broken[name]}", flush=True)
        if name in broken:
            continue
        wait_until_quiet(request.patience)
        limit = limit_of(case)
        arguments = [name, contestant.name, str(scale), str(_CACHE), str(limit), folder]
        python, began = _interpreter(request, contestant), time.monotonic()
        outcome = run_module(worker, arguments, limit, python, request.priority)
        below = too_tight(outcome, contestant.tuned[case.task])
        if below is not None:
            arguments.append(repr(below))
            again = run_module(worker, arguments, limit, python, request.priority)
            outcome = Outcome([*outcome.lines, *again.lines], True, again.error)
        if _is_missing(outcome, contestant):
            print(f"{name} / {contestant.name}: not installed, left out", flush=True)
            continue
        row = summarise(outcome, limit) | ({"scale": scale} if scale != 1 else {})
        row["wall"] = round(time.monotonic() - began, 1)
        store.put(name, contestant.name, row)
        print(f"{name} / {contestant.name}: {_brief(row)}, took {row['wall']:g} s", flush=True)
    return store


def _interpreter(request: Request, contestant: Contestant) -> str | None:
    own = request.python.get(contestant.name)
    return own or (request.peer_python if contestant.is_guest else None)


def _is_missing(outcome: Outcome, contestant: Contestant) -> bool:
    is_ours = contestant.name.startswith(US)
    return not is_ours and outcome.error.startswith("ModuleNotFoundError")


def too_tight(outcome: Outcome, tuned: Tuned) -> float | None:
    """The tolerance that took too long, if looser ones are left that might do."""
    rungs = [line["rung"] for line in outcome.lines if line["kind"] == "start"]
    if not outcome.is_late or not rungs or len(tuned.ladder) < 3:
        return None
    judged = {line["rung"]: line["quality"] for line in outcome.lines if "quality" in line}
    looser = tuned.ladder.index(rungs[-1]) - 1
    is_open = looser >= 0 and tuned.ladder[looser] not in judged
    has_good = any(quality <= CRITERION for quality in judged.values())
    return rungs[-1] if is_open and not has_good else None


def summarise(outcome: Outcome, limit: float) -> dict[str, Any]:
    """The row of one process.

    The best call at the loosest tolerance that reached the criterion counts. Where none reached it,
    the last one is reported with its quality.
    """
    row: dict[str, Any] = {}
    if outcome.is_late:
        row["over"] = limit
    if outcome.error:
        row["error"] = outcome.error[:200]
    ready = next((line for line in outcome.lines if line["kind"] == "ready"), {})
    row |= {
        key: ready[key] for key in ("first", "version", "numpy", "conversion") if ready.get(key)
    }
    proofs = [line for line in outcome.lines if line["kind"] == "certificate"]
    if proofs:
        return row | _certificate_row(proofs)
    calls = [line for line in outcome.lines if line["kind"] == "call"]
    judged = [line for line in calls if "quality" in line or "objective" in line]
    if not judged:
        return row
    good = [line for line in judged if line.get("quality", 0.0) <= CRITERION]
    is_stopped = any(line["kind"] == "stopped" for line in outcome.lines)
    if not good and (outcome.is_late or is_stopped):
        # Tighter tolerances take longer: what it took without reaching the criterion is too little.
        last = min(judged, key=lambda line: line["rung"])
        row.setdefault("over", last["seconds"])
        return row | {"quality": last["quality"], "tolerance": last["rung"]}
    # Of searches the longest one is the answer; of tolerances the loosest that is good.
    is_search = "objective" in judged[-1]
    chosen = judged[-1] if is_search or not good else max(good, key=lambda line: line["rung"])
    same = [line for line in calls if line["rung"] == chosen["rung"]]
    best = min(same, key=lambda line: line["seconds"])
    kept = ["quality", "alpha", "objective", "gap", "own_gap", "proven", "columns"]
    kept += ["growth", "megabytes"]
    row.pop("over", None)
    row |= {key: chosen[key] for key in kept if chosen.get(key) is not None}
    if is_search and judged[0].get("gap") is not None:
        row["gaps"] = {f"{line['rung']:g}": line["gap"] for line in judged}
    return row | {
        "seconds": best["seconds"],
        "other": best["other"],
        "calls": len(same),
        "tolerance": chosen["rung"],
    }


def _certificate_row(proofs: list[dict[str, Any]]) -> dict[str, Any]:
    fit, proof = (min(line[key] for line in proofs) for key in ("fit", "proof"))
    loads = [line["other"] for line in proofs if line["other"] is not None]
    return {
        "seconds": fit,
        "proof": proof,
        "share": proof / fit,
        "gap": proofs[-1]["gap"],
        "quality": proofs[-1]["quality"],
        "calls": len(proofs),
        "other": min(loads, default=None),
    }


def _brief(row: dict[str, Any]) -> str:
    if "seconds" not in row:
        return row.get("error") or f"over {row.get('over')} s"
    text = f"{seconds_text(row['seconds'])}, other load {number(row['other'], '.2f')}"
    for key, form in (("quality", ".1e"), ("tolerance", "g"), ("gap", ".3g"), ("share", ".3f")):
        if isinstance(row.get(key), float):
            text += f", {key} {row[key]:{form}}"
    return text
