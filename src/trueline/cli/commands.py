"""What the commands do."""

from __future__ import annotations

import csv
import math
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from trueline.check import Verification
from trueline.cli import show
from trueline.cli.model_text import (
    show_data,
    show_explanation,
    show_model,
    show_model_coefficients,
    show_proof,
    show_verdict,
)
from trueline.cli.prepare import Prepared, Request, prepare, quiet_names
from trueline.cli.streaming import fit_rows, is_streamed, predict_rows, verify_rows
from trueline.errors import ModelFileError, TableError, require
from trueline.estimators.shared.report import verify
from trueline.evaluation.leakage import leaking_columns
from trueline.persistence import ModelFile, read, save
from trueline.table import Encoded, Encoding, Source, Table, read_table
from trueline.wording import counted

_ZIP = b"PK\x03\x04"


def run_fit(request: Request, out_path: Path, memory: str | None = None) -> None:
    """Fit, show, save."""
    out = show.console()
    _check_folder(out_path)  # before the work, not after it
    if is_streamed(request.data, memory):
        return fit_rows(request, memory, out_path)
    ready = prepare(request)
    encoded, table = ready.encoded, ready.table
    show_data(out, ready)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model = ready.estimator.fit(encoded.X, encoded.y)
        seconds = time.perf_counter() - start
    model.feature_names_in_ = np.array(encoded.names, dtype=object)
    show_model(out, ready, model, seconds)
    for text in [*_remarks(ready, model), *(f"warning: {one.message}" for one in caught)]:
        show.note(out, text, "yellow")
    show_proof(out, model)
    extra = {
        "family": ready.family.name,
        "encoding": encoded.encoding.to_dict(),
        "source": table.path,
        "rows": len(encoded.y),
    }
    path = save(model, out_path, extra)
    show.heading(out, "Saved", f"{path}")
    show.command(out, "check it:", f"trueline verify {path} {request.data}")
    show.command(out, "use it:", f"trueline predict {path} {request.data}")


def _remarks(ready: Prepared, model: Any) -> list[str]:
    """What a person should know before believing the coefficients and the score."""
    encoded = ready.encoded
    said = []
    is_class = encoded.encoding.task == "classification"
    leaking = [encoded.names[j] for j in leaking_columns(encoded.X, encoded.y, is_class)]
    if leaking:
        which = f"{', '.join(leaking)} {'tells' if len(leaking) == 1 else 'tell'}"
        said.append(
            f"leakage: {which} the target exactly. The score is that of a copy of the target; "
            "leave out, with --drop, what is only known together with the target."
        )
    elif not is_class and _is_exact(ready, model):
        said.append(
            "leakage: the columns together tell the target exactly. Is it a sum of some of them? "
            "Leave out, with --drop, what is only known together with the target."
        )
    if not ready.family.is_kernel:
        said += _dependent(encoded)
    alphas = getattr(model, "alphas_", None)
    tried: Any = getattr(model, "alphas", None) if alphas is None else alphas
    alpha = getattr(model, "alpha_", None)
    if alpha is not None and np.ndim(tried) == 1 and np.size(tried) > 1 and np.ndim(alpha) == 0:
        for which, end in (("smallest", np.min(tried)), ("largest", np.max(tried))):
            if math.isclose(float(alpha), float(end), rel_tol=1e-9):
                said.append(f"alpha={alpha:.4g} is the {which} that was tried{_at_end(model)}")
    return said


def _at_end(model: Any) -> str:
    """What it means that the strength is at an end of those tried."""
    if np.count_nonzero(model.coef_):
        return ": trueline compare goes on beyond it where that helps"
    if getattr(model, "rule", "min") == "1se":
        return (
            ", which uses no column: the mean alone predicts as well, within one standard error. "
            "--rule min takes the strength of the smallest error"
        )
    return ", which uses no column: none predicted better than the mean alone"


# Measured targets are not explained to so many digits; with fewer rows for each column they may be.
_EXACT, _ROWS_PER_COLUMN = 1e-12, 3


def _is_exact(ready: Prepared, model: Any) -> bool:
    """Whether a fit of few columns leaves nothing of the target."""
    X, y = ready.encoded.X, ready.encoded.y
    if ready.family.is_kernel or len(y) < _ROWS_PER_COLUMN * (X.shape[1] + 1):
        return False
    with quiet_names():
        return bool(model.score(X, y) >= 1.0 - _EXACT and np.ptp(y) > 0)


# Beyond this, columns are not looked at for dependence: it costs as much as least squares.
_MOST_LOOKED_AT = 2_000
_ROUNDING = 1e-10


def _dependent(encoded: Encoded) -> list[str]:
    """Columns that are combinations of those before them, and what that means."""
    n, d = encoded.X.shape
    if d > _MOST_LOOKED_AT:
        return []
    if d >= n:
        return [f"{d} columns in {counted(n, 'row')}: other coefficients fit as well as these"]
    centred = encoded.X - encoded.X.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    ends = np.abs(np.diag(np.linalg.qr(centred / np.where(norms > 0, norms, 1.0), mode="r")))
    # What has one value in all rows, as a mark that no row with a target has, says nothing twice.
    names = [repr(encoded.names[j]) for j in np.flatnonzero((ends <= _ROUNDING) & (norms > 0))]
    if not names:
        return []
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return [
        f"{counted(len(names), 'column')} of {d} can be computed from the columns before: {listed}."
        " How an effect is divided among such columns, the rows do not tell: other coefficients "
        "predict the same. --drop leaves a column out"
    ]


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} to.")


def run_explain(request: Request) -> None:
    """The plan for a table, or what happened in a model."""
    out = show.console()
    if _is_archive(request.data):
        _explain_model(out, _read_fitted(request.data), str(request.data))
        return
    ready = prepare(request)
    show_data(out, ready)
    show.heading(out, "Model", f"{ready.family.name}: {ready.reason}")
    show_explanation(out, ready.estimator.explain(ready.encoded.X, ready.encoded.y))


def _is_archive(path: Path) -> bool:
    """Whether this is a file that begins as model files do; pipes are left to their reader."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def _explain_model(out: Console, file: ModelFile, path: str) -> None:
    model, extra = file.model, file.extra
    made_by = f"written by trueline {file.versions.get('trueline', 'unknown')}"
    show.heading(out, f"{type(model).__name__}", f"{path}, {made_by}")
    if extra.get("source"):
        show.note(out, f"fitted to {extra['rows']:,} rows of {extra['source']}", "")
    show_explanation(out, model.explain())
    coef = getattr(model, "coef_", None)  # kernel machines have none
    if coef is not None and (np.ndim(coef) == 1 or hasattr(model, "classes_")):
        show.heading(out, "Coefficients")
        names = getattr(model, "feature_names_in_", None)
        count = np.shape(coef)[-1]
        labels = [f"x{j}" for j in range(count)] if names is None else list(names)
        show_model_coefficients(out, model, labels)
    show_proof(out, model)


def _encoding_of(file: ModelFile, target: str | None) -> Encoding:
    """How to turn a table into this model's design."""
    if isinstance(file.extra.get("encoding"), dict):
        encoding = _stored_encoding(file.extra["encoding"])
        if target not in (None, encoding.target):
            raise TableError(
                f"This model predicts {encoding.target!r}, not {target!r}: leave --target out."
            )
        return encoding
    names = getattr(file.model, "feature_names_in_", None)
    if names is None:
        raise TableError(
            "This model does not know the names of its columns. Fit it to a DataFrame, or with "
            "'trueline fit'."
        )
    sources = tuple(Source(str(name), "number") for name in names)
    classes = np.asarray(getattr(file.model, "classes_", 0))
    are_words = classes.dtype.kind in "UO"  # classes that are numbers are read as numbers
    return Encoding(target or "", "classification" if are_words else "regression", sources)


def _stored_encoding(data: Mapping[str, Any]) -> Encoding:
    try:
        return Encoding.from_dict(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            "What this model file says about the columns of its table does not make sense "
            f"({type(error).__name__}: {error})."
        ) from error


def _read_model(path: Path, data: Path) -> ModelFile:
    """A model, unless its place was taken by the table."""
    if _is_archive(data) and not _is_archive(path):
        raise TableError(f"The model comes before the table: give {data} first, then {path}.")
    return _read_fitted(path)


def _read_fitted(path: Path) -> ModelFile:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    file = read(path)
    try:
        check_is_fitted(file.model)
    except NotFittedError as error:
        raise TableError(f"{path} holds a model that was never fitted.") from error
    return file


def run_verify(
    model_path: Path, data: Path, target: str | None, memory: str | None = None
) -> Verification:
    """Check the proof of a model against its data; show every check and what is proven."""
    out = show.console()
    file = _read_model(model_path, data)
    if is_streamed(data, memory):
        return verify_rows(file, data, target, memory)
    if hasattr(file.model, "steps"):
        X, y = _frame_and_target(file.model, data, target)
        show.heading(out, "Verify", f"{model_path} against {data}, {len(y):,} rows")
        last = type(file.model[-1]).__name__
        show.note(out, f"a pipeline: {last}, its last step, on the rows as transformed before it")
    else:
        X, y = _complete_rows(out, file, model_path, data, target)
    try:
        with quiet_names():
            outcome = verify(file.model, X, y)
    except TypeError as error:
        raise TableError(f"{model_path}: {error}") from error
    show.show_checks(out, outcome.checks)
    show_verdict(out, outcome)
    return outcome


def _complete_rows(
    out: Console, file: ModelFile, model_path: Path, data: Path, target: str | None
) -> tuple[Any, Any]:
    """The rows of a table that a model was fitted to, as numbers."""
    if not hasattr(file.model, "verify"):
        name = type(file.model).__name__
        raise TableError(f"{model_path} holds a {name}, which claims nothing that can be verified.")
    encoding = _encoding_of(file, target)
    if not encoding.target:
        raise TableError("This model was saved without its target's name: say --target NAME.")
    X, y, kept = encoding.apply(read_table(data))
    if not len(y):
        raise TableError(f"No row of {data} is complete: values are missing in each.")
    show.heading(out, "Verify", f"{model_path} against {data}, {len(y):,} rows")
    if not kept.all():
        left = counted(int((~kept).sum()), "row")
        show.note(out, f"{left} of {len(kept):,} left out: values are missing", "yellow")
    fitted = file.extra.get("rows", len(y))
    if fitted != len(y):
        show.note(out, f"the model was fitted to {fitted} rows: not the same data", "yellow")
    return X, y


def _frame(model: Any, data: Path) -> Any:
    """A table as pandas reads it, which is what pipelines of scikit-learn are fitted to."""
    pandas = require("pandas", "tables")
    table = read_table(data)  # for its delimiter, and for messages about files that are no tables
    decimal = "," if table.delimiter == ";" else "."
    frame = pandas.read_csv(
        data, sep=table.delimiter, decimal=decimal, skipinitialspace=True, encoding="utf-8-sig"
    )
    frame.columns = list(table.columns)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise TableError(
            "This pipeline does not know the names of its columns: fit it to a DataFrame."
        )
    for name in names:
        table.column(str(name))
    return frame


def _frame_and_target(model: Any, data: Path, target: str | None) -> tuple[Any, Any]:
    """The columns that a pipeline takes, and its target; without rows that lack a target."""
    frame = _frame(model, data)
    names = [str(name) for name in model.feature_names_in_]
    if target is None:
        others = [str(name) for name in frame.columns if name not in names]
        if len(others) != 1:
            listed = ", ".join(others) or "no other column"
            raise TableError(
                f"Say which column the pipeline predicts: --target NAME ({listed} of {data})."
            )
        target = others[0]
    if target not in frame.columns:
        read_table(data).column(target)  # says which names look alike
    frame = frame[frame[target].notna()]
    return frame[names], frame[target].to_numpy()


def run_predict(
    model_path: Path, data: Path, out_path: Path | None, memory: str | None = None
) -> None:
    """Write the table again, with one more column; of batches the predictions alone."""
    if out_path is not None:
        _check_folder(out_path)
    file = _read_model(model_path, data)
    if is_streamed(data, memory):
        return predict_rows(file, data, memory, out_path)
    table = read_table(data)
    predicted = np.full(table.n_rows, "", dtype=object)
    X: Any
    if hasattr(file.model, "steps"):
        X, target = _frame(file.model, data)[list(file.model.feature_names_in_)], ""
        complete = np.ones(table.n_rows, dtype=bool)  # what is missing is the pipeline's business
    else:
        encoding = _encoding_of(file, None)
        target = encoding.target
        X, complete = encoding.design(table)
    if complete.any():
        with quiet_names():
            predicted[complete] = np.ravel(file.model.predict(X[complete])).tolist()
    name = f"{target or 'target'}_predicted"
    if out_path is None:
        _write_predictions(sys.stdout, table, name, predicted)
    else:
        with out_path.open("w", encoding="utf-8", newline="") as stream:
            _write_predictions(stream, table, name, predicted)
        count = counted(int(complete.sum()), "prediction")
        show.console().print(f"{count} in {out_path}, column {name}")
    if not complete.all():
        missing = int((~complete).sum())
        text = f"no prediction for {counted(missing, 'row')} with missing values"
        show.note(show.console(stderr=True), text, "yellow")


def _write_predictions(
    stream: IO[str], table: Table, name: str, predicted: NDArray[np.object_]
) -> None:
    writer = csv.writer(stream, delimiter=table.delimiter, lineterminator="\n")
    writer.writerow([*table.columns, name])
    writer.writerows(zip(*(column.cells for column in table.columns.values()), predicted))
