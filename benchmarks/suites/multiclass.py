"""One-vs-rest, one-vs-one and output codes beside scikit-learn's."""

from __future__ import annotations

from benchmarks.isolated import run_module
from benchmarks.machine import LoadMeter, wait_until_quiet
from benchmarks.multiclass.cases import CASES, CONTESTANTS, US
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["TARGET", "run", "tables"]

TITLE = "one-vs-rest, one-vs-one and output codes beside scikit-learn's"
#: Times the fastest of scikit-learn's wrappers, for fits of one-vs-rest and one-vs-one.
TARGET = 2.0


def run(request: Request) -> Store:
    """Measure what is asked for: a process per case, in which all contestants take turns."""
    store = Store("multiclass", request.folder)
    for name in CASES:
        if not any(request.wants(name, who, store.get(name, who)) for who in CONTESTANTS):
            continue
        wait_until_quiet(request.patience)
        meter = LoadMeter()
        size = "small" if request.small else "full"
        # Nothing is heard before all have taken their turns.
        limit = 10 * request.limit
        arguments = ("benchmarks.multiclass.worker", [name, size], limit)
        outcome = run_module(*arguments, priority=request.priority)
        other = meter.stop()
        if outcome.error or outcome.is_late:
            print(f"{name}: {outcome.error or 'too slow'}", flush=True)
        for line in outcome.lines:
            who = line.pop("contestant")
            store.put(name, who, {**line, "other": other})
            print(f"{name} / {who}: {seconds_text(line['fit'])}", flush=True)
    return store


def tables(store: Store) -> list[Table]:
    """One table per case, with ratios to the fastest of scikit-learn's."""
    out = []
    for name, case in CASES.items():
        rows = store.rows.get(name, {})
        if US not in rows:
            continue
        theirs = [row["fit"] for who, row in rows.items() if who.startswith("scikit-learn")]
        fastest = min(theirs, default=float("nan"))
        body = [
            [
                who,
                seconds_text(row["fit"]),
                number(row["fit"] / rows[US]["fit"], ".2f"),
                seconds_text(row["predict"]),
                number(100 * row["same"], ".2f") + " %",
                number(row["accuracy"], ".4f"),
                number(row.get("other"), ".2f"),
            ]
            for who, row in rows.items()
        ]
        heads = ["contestant", "fit", "ratio", "predict", "same", "accuracy", "other load"]
        out.append(Table(case.title, heads, body, _verdict(case.scheme, fastest, rows[US]["fit"])))
    return out


def _verdict(scheme: str, fastest: float, ours: float) -> list[str]:
    if scheme == "OutputCodeClassifier" or fastest != fastest:
        return []
    mark = "reached" if fastest >= TARGET * ours else "missed"
    text = f"Target: {TARGET:g} times scikit-learn's wrapper around its fastest ridge"
    return [f"{text}: {fastest / ours:.1f} times, {mark}."]
