"""Fits of 150 x 4 and 1,000 x 10 of every class that both libraries have, when all is warm."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.field.cases import MODELS
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.suites.field import measure

__all__ = ["run", "tables"]

TITLE = "fits that take no time, of every class that scikit-learn has too"
_SHAPES = ((150, 4), (1000, 10))


def run(request: Request) -> Store:
    """Measure what is asked for, by the worker of the field."""
    store = Store("tiny", request.folder)
    with tempfile.TemporaryDirectory() as folder:
        for name in _write(Path(folder)):
            wanted = [who for who in MODELS if request.wants(name, who, store.get(name, who))]
            if wanted:
                measure(store, request, Path(folder), name, wanted)
    return store


def _write(folder: Path) -> list[str]:
    """Data sets with a number, two numbers and two classes as their target."""
    names = []
    for n, d in _SHAPES:
        random = np.random.default_rng(n)
        X, noise = random.normal(size=(n, d)), random.normal(size=n)
        score = X @ np.linspace(1.0, -1.0, d) + noise
        targets = {
            "numbers": np.exp(0.3 * score),
            "two targets": np.column_stack([score, score[::-1]]),
            "classes": (score > 0).astype(int),
        }
        for kind, y in targets.items():
            names.append(f"{n} x {d}, {kind}.npz")
            np.savez(folder / names[-1], X=X, y=y)
    return names


def tables(store: Store) -> list[Table]:
    """Medians side by side, the slowest beside scikit-learn first."""
    pairs = [(f"{who} / {name[:-4]}", row) for name, rows in store.rows.items()
             for who, row in rows.items() if "medians" in row]  # fmt: skip
    pairs.sort(key=lambda pair: pair[1]["medians"][1] / pair[1]["medians"][0])
    body = [
        [label, seconds_text(ours), seconds_text(theirs), number(theirs / ours, ".2f")]
        for label, row in pairs
        for ours, theirs in [row["medians"]]
    ]
    slower = sum(float(cells[-1]) < 1 for cells in body)
    heads = ["median of warm fits", "trueline", "scikit-learn", "its time / ours"]
    text = f"Target: no class is slower than scikit-learn's. {slower} of {len(body)} pairs are."
    return [Table("", heads, body, [text] if body else [])]
