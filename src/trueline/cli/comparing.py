"""What ``trueline compare`` does.

What ``trueline separability`` does.
"""

from __future__ import annotations

import csv
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold

from trueline.cli import show
from trueline.cli.model_text import show_verdict
from trueline.cli.prepare import Request
from trueline.errors import TableError
from trueline.estimators.shared.classifier import encode_labels
from trueline.evaluation.leakage import LeakageWarning
from trueline.separation.separate import separate
from trueline.table import Encoded, Table
from trueline.wording import counted, quantity


@dataclass(frozen=True)
class Choices:
    """Which models, on which folds, by which score."""

    models: list[str] | None
    folds: int
    scoring: str | None
    rule: str
    shuffle: bool


def run_compare(request: Request, choices: Choices, out_path: Path | None) -> bool:
    """Read, compare, show; write the table if asked to. Whether all models are in it."""
    from trueline.evaluation import compare

    out = show.console()
    table, guess = request.read()
    encoded = request.encode(table, guess.kind)
    if choices.folds > len(encoded.y):
        rows = counted(len(encoded.y), "row")
        raise TableError(f"{choices.folds} folds of {rows}: some fold would have no row.")
    _show_table(out, table, request, encoded)
    is_classes = guess.kind == "classification"
    kind = StratifiedKFold if is_classes else KFold
    cv = kind(choices.folds, shuffle=choices.shuffle, random_state=0 if choices.shuffle else None)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = compare(
            _with_names(encoded.X, encoded.names),
            encoded.y,
            choices.models,
            cv=cv,
            scoring=choices.scoring,
            task=guess.kind,
            rule=choices.rule,
            scale=True,
        )
    seconds = quantity(time.perf_counter() - start, "s")
    title = f"{guess.kind} of {request.target} ({guess.reason}), {counted(choices.folds, 'fold')}"
    show.heading(out, "Comparison", f"{title}, {seconds}")
    out.print(str(result), soft_wrap=True, markup=False)
    # Leaking columns are named below the table already.
    told = (warning for warning in caught if not issubclass(warning.category, LeakageWarning))
    for text in dict.fromkeys(str(warning.message) for warning in told):
        show.note(out, f"warning: {text}", "yellow")
    if out_path is not None:
        _write(out_path, result.rows())
        show.note(out, f"table in {out_path}", "")
    return not result.unfinished


def _show_table(out: Any, table: Table, request: Request, encoded: Encoded) -> None:
    show.heading(out, "Data", f"{table.path}: {table.n_rows:,} rows")
    used = [source.name for source in encoded.encoding.sources]
    show.show_columns(out, table, encoded.encoding.target, used)
    for text in encoded.notes:
        show.note(out, text, "yellow")


def _with_names(X: Any, names: list[str]) -> Any:
    """The design as a table, so that messages can name its columns."""
    if sp.issparse(X):
        return X
    try:
        import pandas
    except ImportError:
        return X
    return pandas.DataFrame(X, columns=names)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} to.")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def run_separability(request: Request, fit_intercept: bool) -> bool:
    """Decide, show what proves it, and check that; whether the check succeeds."""
    out = show.console()
    table, _ = request.read()
    encoded = request.encode(table, "classification")
    _show_table(out, table, request, encoded)
    start = time.perf_counter()
    classes, codes = encode_labels(encoded.y, "separability")
    answer = separate(encoded.X, codes, classes, fit_intercept, tuple(encoded.names))
    seconds = time.perf_counter() - start
    show.heading(out, "Verdict", f"{answer.verdict}, in {quantity(seconds, 's')}")
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
