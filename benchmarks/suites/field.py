"""Estimators with default parameters on all data sets of a folder, beside scikit-learn's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.field.cases import MODELS
from benchmarks.field.files import names
from benchmarks.isolated import run_module
from benchmarks.machine import LoadMeter
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["measure", "run", "tables"]

TITLE = "estimators with default parameters on the data sets of a folder (--data FOLDER)"
_WORST = 25


def run(request: Request) -> Store:
    """Measure what is asked for: a process per data set, and another one after each that died."""
    store = Store("field", request.folder)
    if request.data is None:
        print("a folder of data sets is wanted: --data FOLDER")
        return store
    for name in names(request.data):
        wanted = [who for who in MODELS if request.wants(name, who, store.get(name, who))]
        if wanted:
            measure(store, request, request.data, name, wanted)
    return store


def measure(store: Store, request: Request, data: Path, name: str, wanted: list[str]) -> None:
    """A data set, by models one after the other."""
    while wanted:
        meter = LoadMeter()
        outcome = run_module(
            "benchmarks.field.worker",
            [str(data), name, *wanted],
            request.limit,
            priority=request.priority,
        )
        other, tried = meter.stop(), None
        for line in outcome.lines:
            who = line.pop("model")
            if "state" in line:
                tried = who
                continue
            tried = None
            store.put(name, who, {**line, "other": other})
            text = f"{seconds_text(line['ours'])} against {seconds_text(line['theirs'])}"
            print(f"{name} / {who}: {text} ({line['theirs'] / line['ours']:.2f})", flush=True)
        if tried is None:
            if outcome.error:
                print(f"{name}: {outcome.error}", flush=True)
            return
        problem = "over the limit" if outcome.is_late else outcome.error
        store.put(name, tried, {"error": problem})
        print(f"{name} / {tried}: {problem}", flush=True)
        wanted = wanted[wanted.index(tried) + 1 :]


def tables(store: Store) -> list[Table]:
    """The distribution of the ratios, the worst pairs, and what did not go well."""
    pairs = [
        (f"{who} / {name}", row) for name, rows in store.rows.items() for who, row in rows.items()
    ]
    good = [(label, row) for label, row in pairs if "ours" in row]
    if not good:
        return []
    worst = sorted(good, key=lambda pair: _ratio(pair[1]))[:_WORST]
    return [
        _distribution(good),
        Table(
            f"The {len(worst)} slowest beside scikit-learn",
            ["model / data", "shape", "ours", "theirs", "ratio", "what ran"],
            [
                [
                    label,
                    row["shape"],
                    seconds_text(row["ours"]),
                    seconds_text(row["theirs"]),
                    number(_ratio(row), ".2f"),
                    row["plan"],
                ]
                for label, row in worst
            ],
        ),
        _faults(pairs),
    ]


def _ratio(row: dict[str, Any]) -> float:
    return float(row["theirs"] / row["ours"])


def _distribution(good: list[tuple[str, dict[str, Any]]]) -> Table:
    rows = []
    for title in ["all", *MODELS]:
        ratios = [_ratio(row) for label, row in good if title in ("all", label.split(" / ")[0])]
        if ratios:
            points = np.percentile(ratios, [0, 5, 25, 50])
            mean = float(np.exp(np.mean(np.log(ratios))))
            cells = [number(float(value), ".2f") for value in (*points, mean)]
            rows.append([title, str(len(ratios)), *cells, str(sum(r < 0.9 for r in ratios))])
    heads = [
        "scikit-learn's time / ours",
        "pairs",
        "least",
        "p5",
        "p25",
        "median",
        "mean",
        "under 0.9",
    ]
    return Table("Ratios of times (the mean is geometric)", heads, rows)


def _faults(pairs: list[tuple[str, dict[str, Any]]]) -> Table:
    """What failed, was not verified, ended farther from the optimum, or has a dear proof."""
    rows = []
    for label, row in pairs:
        said = [row["error"]] if "error" in row else list(_complaints(row))
        rows += [[label, row.get("shape", ""), text] for text in said]
    return Table("What did not go well", ["model / data", "shape", "what"], rows)


def _complaints(row: dict[str, Any]) -> list[str]:
    said = []
    if not row["verified"]:
        said.append("not verified")
    elif row.get("is_conditional"):
        said.append("proven under a condition")
    ours, theirs = row["objective"], row["objective_theirs"]
    if ours is not None and ours > theirs + 1e-9 * abs(theirs):
        said.append(f"objective {ours:.12g}, scikit-learn {theirs:.12g}")
    if row["certificate"] > max(0.1 * row["ours"], 1e-3):
        said.append(f"certificate {row['certificate'] / row['ours']:.2g} times the fit")
    return said
