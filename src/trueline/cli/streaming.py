"""The commands on data that are read batch by batch: Parquet, Arrow, folders, or ``--memory``."""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trueline.check import Verification
from trueline.cli import show
from trueline.cli.families import choose_family, find_family
from trueline.cli.model_text import show_model_coefficients, show_proof, show_verdict
from trueline.cli.prepare import Request
from trueline.errors import TableError, require
from trueline.persistence import ModelFile, save
from trueline.streams import Batches
from trueline.streams import open as open_rows
from trueline.table import Encoding, Source
from trueline.wording import counted, quantity

_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".svm", ".svmlight", ".libsvm", ".gz")
_MEMORY = "1GB"


def is_streamed(data: Path, memory: str | None) -> bool:
    """Whether a table is read batch by batch."""
    is_pattern = any(sign in str(data) for sign in "*?[")
    return bool(memory) or is_pattern or data.is_dir() or data.suffix.lower() in _ENDINGS


@contextmanager
def watched(rows: Batches) -> Iterator[Batches]:
    """Report every pass on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield rows
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=show.console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=rows.shape[0])

        def tell(number: int, done: int) -> None:
            text = f"pass {number}: {done:,} of {rows.shape[0]:,} rows"
            bar.update(task, description=text, completed=done)

        rows.on_batch = tell
        try:
            yield rows
        finally:
            rows.on_batch = None


def opened(request: Request, memory: str | None) -> tuple[Batches, list[str]]:
    """The rows that are asked for, and what is left out: columns that hold no numbers."""
    if request.target is None:
        raise TableError("Say which column to predict: --target NAME.")
    refused = {
        "--category": request.categories,
        "--drop-missing": request.drop_missing,
        "--standardize": request.standardize,
    }
    for option, given in refused.items():
        if given:
            raise TableError(f"{option} is for tables in memory: encode the columns before.")
    rows = open_rows(request.data, target=request.target, memory=memory or _MEMORY)
    dropped = set(request.drop or ())
    if missing := [name for name in dropped if name not in rows.columns]:
        raise TableError(f"{request.data} has no column {missing[0]!r}.")
    wanted = request.features or [name for name in rows.columns if name not in dropped]
    words = [] if request.features else [name for name in wanted if name not in rows.numbers]
    kept = [name for name in wanted if name not in words]
    if kept != rows.columns:
        rows = open_rows(
            request.data, target=request.target, columns=kept, memory=memory or _MEMORY
        )
    return rows, words


def _task_of(target: Any) -> tuple[str, str]:
    """Regression or classification, and why."""
    if target.dtype.kind not in "fiu":
        return "classification", "it holds words"
    values = np.unique(target)
    if len(values) <= 2:
        return "classification", "it has two values"
    return "regression", f"it has {len(values):,} different numbers"


def fit_rows(request: Request, memory: str | None, out_path: Path) -> None:
    """Fit, show, save."""
    out = show.console()
    rows, words = opened(request, memory)
    task, reason = _task_of(rows.target)
    if request.model == "auto":
        family, reason = choose_family(task, *rows.shape)
    else:
        family, reason = find_family(request.model), "asked for"
        task = family.task
    show.heading(out, "Data", str(rows))
    for name in words:
        show.note(out, f"{name} left out: it holds no numbers", "yellow")
    estimator = family.make(rows.columns, **request.options)
    estimator._validate_params()
    with warnings.catch_warnings(record=True) as caught, watched(rows):
        warnings.simplefilter("always")
        start = time.perf_counter()
        model = estimator.fit(rows)
        seconds = time.perf_counter() - start
    show.heading(out, "Model", family.title)
    facts = {"task": f"{task} ({request.target})", "model": f"{family.name}: {reason}"}
    alpha = getattr(model, "alpha_", None)
    if alpha is not None and np.ndim(alpha) == 0:
        facts["alpha"] = f"{alpha:.4g}"
    facts["fitted"] = f"{rows.shape[0]:,} rows, {rows.shape[1]} columns"
    facts["read"] = f"{counted(rows.passes, 'pass', 'passes')}, {quantity(seconds, 's')}"
    show.show_facts(out, facts)
    show.heading(out, "Coefficients")
    show_model_coefficients(out, model, rows.columns)
    for one in caught:
        show.note(out, f"warning: {one.message}", "yellow")
    show_proof(out, model)
    sources = tuple(Source(name, "number") for name in rows.columns)
    encoding = Encoding(request.target or "", task, sources).to_dict()
    extra: dict[str, Any] = {"family": family.name, "encoding": encoding}
    extra |= {"source": str(request.data), "rows": rows.shape[0]}
    path = save(model, out_path, extra)
    show.heading(out, "Saved", f"{path}")


def verify_rows(
    file: ModelFile, data: Path, target: str | None, memory: str | None
) -> Verification:
    """Check a model's proof, batch by batch."""
    out = show.console()
    encoding = file.extra.get("encoding")
    target = target or (encoding or {}).get("target")
    if not target:
        raise TableError("This model was saved without its target's name: say --target NAME.")
    rows = open_rows(data, target=target, columns=_names(file), memory=memory or _MEMORY)
    show.heading(out, "Verify", str(rows))
    with watched(rows):
        outcome: Verification = file.model.verify(rows)
    show.show_checks(out, outcome.checks)
    show_verdict(out, outcome)
    return outcome


def _names(file: ModelFile) -> list[str]:
    names = getattr(file.model, "feature_names_in_", None)
    if names is None:
        raise TableError("This model does not know the names of its columns.")
    return [str(name) for name in names]


def predict_rows(file: ModelFile, data: Path, memory: str | None, out_path: Path | None) -> None:
    """Write the predictions, one column, batch by batch; a file is whole or not there."""
    rows = open_rows(data, columns=_names(file), memory=memory or _MEMORY)
    name = f"{(file.extra.get('encoding') or {}).get('target') or 'target'}_predicted"
    with watched(rows):
        parts = (np.ravel(file.model.predict(part.toarray())) for _, part in rows.parts())
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            if out_path is None:
                _write_text(sys.stdout, name, parts)
                return
            partial = out_path.with_name(f".{out_path.name}.part")
            try:
                if out_path.suffix.lower() == ".parquet":
                    _write_parquet(partial, name, parts)
                else:
                    with partial.open("w", encoding="utf-8", newline="") as stream:
                        _write_text(stream, name, parts)
                os.replace(partial, out_path)
            finally:
                partial.unlink(missing_ok=True)
    show.console().print(f"{counted(rows.shape[0], 'prediction')} in {out_path}, column {name}")


def _write_text(stream: Any, name: str, parts: Iterator[Any]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([name])
    for values in parts:
        writer.writerows([value] for value in values.tolist())


def _write_parquet(path: Path, name: str, parts: Iterator[Any]) -> None:
    arrow, parquet = require("pyarrow", "tables"), require("pyarrow.parquet", "tables")
    writer = None
    try:
        for values in parts:
            table = arrow.table({name: values})
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def compare_rows(request: Request, folds: int, memory: str | None) -> None:
    """Compare models of numbers on the same folds, from the moments of the folds."""
    from sklearn.model_selection import KFold

    from trueline import ElasticNetCV, LassoCV, RidgeCV

    out = show.console()
    rows, words = opened(request, memory)
    y = rows.target
    assert y is not None
    if _task_of(y)[0] == "classification":
        raise TableError("Batches are compared by squared errors: the target must be numbers.")
    show.heading(out, "Data", str(rows))
    for name in words:
        show.note(out, f"{name} left out: it holds no numbers", "yellow")
    cv = KFold(folds)
    spread = np.array([np.var(y[test]) for _, test in cv.split(y)])
    found: dict[str, tuple[float, Any]] = {}
    with watched(rows):
        strengths = [0.0, *np.geomspace(1e-6, 1e2, 17) * rows.shape[0]]
        ridge = RidgeCV(strengths, cv=cv).fit(rows)
        errors = (1.0 - ridge.fold_scores_) * spread[:, None]
        best = 1 + int(errors[:, 1:].mean(axis=0).argmin())
        found["linear"] = 0.0, errors[:, 0]
        found["ridge"] = strengths[best], errors[:, best]
        for name, model in (
            ("lasso", LassoCV(cv=cv)),
            ("elastic-net", ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], cv=cv)),
        ):
            model.fit(rows)
            paths = model.mse_path_.reshape(-1, folds)
            found[name] = model.alpha_, paths[paths.mean(axis=1).argmin()]
    show.heading(out, "Models", f"{folds} folds of rows as they come")
    for name, (alpha, error) in sorted(found.items(), key=lambda one: one[1][1].mean()):
        deviation = error.std(ddof=1) / np.sqrt(folds)
        text = f"mean squared error {error.mean():.6g} +- {deviation:.2g}"
        score = f"R2 {np.mean(1 - error / spread):.4f}"
        show.note(out, f"{name:12} {text}, {score}, alpha = {alpha:.4g}", "")
    show.note(out, "strengths are the best ones on these folds: new rows may do a little worse")
