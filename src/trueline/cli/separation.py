"""What ``trueline separability`` does."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from trueline.cli import show
from trueline.cli.commands import Request, refuse_implausible, show_verdict
from trueline.errors import TableError
from trueline.estimators.labels import encode_labels
from trueline.halfspaces.separate import separate
from trueline.table import Encoded, Table, encode, read_table

__all__ = ["run_separability"]


def run_separability(request: Request, fit_intercept: bool) -> bool:
    """Decide, show what proves it, and check that; whether the check succeeds."""
    out = show.console()
    table = read_table(request.data)
    if request.target is None:
        names = ", ".join(table.columns)
        raise TableError(f"Say which column holds the classes: --target NAME. There are: {names}.")
    refuse_implausible(table, request)
    encoded = encode(
        table,
        request.target,
        features=request.features,
        drop=request.drop or (),
        categories=request.categories or (),
        task="classification",
    )
    show.heading(out, "Data", f"{table.path}: {table.n_rows:,} rows")
    used = [source.name for source in encoded.encoding.sources]
    show.show_columns(out, table, request.target, used)
    for text in encoded.notes:
        show.note(out, text, "yellow")
    start = time.perf_counter()
    classes, codes = encode_labels(encoded.y, "separability")
    answer = separate(encoded.X, codes, classes, fit_intercept, tuple(encoded.names))
    seconds = time.perf_counter() - start
    show.heading(out, "Verdict", f"{answer.verdict}, in {show.quantity(seconds, 's')}")
    show.note(out, answer.statement, "")
    if len(answer.rows):
        show.heading(out, "Rows", "that exclude a strict separation, counted from 0")
        show.show_rows(out, ("row", "line", "class", "weight"), _rows(table, encoded, answer))
    outcome = answer.verify(encoded.X, encoded.y)
    show.heading(out, "Proof")
    show.show_checks(out, outcome.checks)
    show_verdict(out, outcome)
    return bool(outcome)


def _rows(table: Table, encoded: Encoded, answer: Any) -> list[tuple[str, ...]]:
    """The few rows of the proof: number, line in the file, class and weight."""
    places = np.flatnonzero(encoded.kept)[answer.rows]
    target = table.column(encoded.encoding.target)
    lines = [target.line(int(place)).removeprefix("line ") for place in places]
    labels = [str(encoded.y[row]) for row in answer.rows]
    weights = [f"{weight:.6g}" for weight in answer.weights]
    return list(zip((str(row) for row in answer.rows), lines, labels, weights, strict=True))
