"""What ``trueline compare`` does."""

from __future__ import annotations

import csv
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold

from trueline.cli import show
from trueline.cli.commands import Request, refuse_implausible
from trueline.errors import TableError
from trueline.table import encode, guess_task, read_table
from trueline.wording import counted

__all__ = ["Choices", "run_compare"]


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
    table = read_table(request.data)
    if request.target is None:
        names = ", ".join(table.columns)
        raise TableError(f"Say which column to predict: --target NAME. There are: {names}.")
    guess = guess_task(table.column(request.target))
    if guess.kind == "classification":
        refuse_implausible(table, request)
    encoded = encode(
        table,
        request.target,
        features=request.features,
        drop=request.drop or (),
        categories=request.categories or (),
        task=guess.kind,
    )
    if choices.folds > len(encoded.y):
        rows = counted(len(encoded.y), "row")
        raise TableError(f"{choices.folds} folds of {rows}: some fold would have no row.")
    show.heading(out, "Data", f"{table.path}: {table.n_rows:,} rows")
    used = [source.name for source in encoded.encoding.sources]
    show.show_columns(out, table, request.target, used)
    for text in encoded.notes:
        show.note(out, text, "yellow")
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
    seconds = show.quantity(time.perf_counter() - start, "s")
    title = f"{guess.kind} of {request.target} ({guess.reason}), {counted(choices.folds, 'fold')}"
    show.heading(out, "Comparison", f"{title}, {seconds}")
    out.print(str(result), soft_wrap=True, markup=False)
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        show.note(out, f"warning: {text}", "yellow")
    if out_path is not None:
        _write(out_path, result.rows())
        show.note(out, f"table in {out_path}", "")
    return not result.unfinished


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
