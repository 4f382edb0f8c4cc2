"""What the commands do."""

from __future__ import annotations

import csv
import math
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from trueline.check import Verdict, Verification
from trueline.cli import show
from trueline.cli.families import Family, choose_family, family_with, find_family
from trueline.errors import ModelFileError, TableError, require
from trueline.estimators.shared.certified import verify
from trueline.evaluation.leakage import leaking_columns
from trueline.persistence import ModelFile, read, save
from trueline.table import Encoded, Encoding, Source, Table, encode, guess_task, read_table
from trueline.table.columns import implausible
from trueline.wording import counted, relative

__all__ = ["Request", "refuse_implausible", "run_explain", "run_fit", "run_predict", "run_verify"]

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Request:
    """What a person asks for: a table, a target, a model and its options."""

    data: Path
    target: str | None
    model: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    features: list[str] | None = None
    drop: list[str] | None = None
    categories: list[str] | None = None
    force: bool = False


@dataclass(frozen=True)
class Prepared:
    """A table ready to be fitted."""

    table: Table
    encoded: Encoded
    family: Family
    reason: str
    estimator: Any
    notes: list[str]


def prepare(request: Request) -> Prepared:
    """Read the table, guess what is asked, choose the model."""
    table = read_table(request.data)
    if request.target is None:
        raise TableError(
            f"Say which column to predict: --target NAME. {table.path} has: "
            f"{', '.join(table.columns)}."
        )
    guess = guess_task(table.column(request.target))
    asked = None if request.model == "auto" else find_family(request.model)
    if (asked.task if asked else guess.kind) == "classification":
        refuse_implausible(table, request)
    encoded = encode(
        table,
        request.target,
        features=request.features,
        drop=request.drop or (),
        categories=request.categories or (),
        task=asked.task if asked else guess.kind,
        standardize=asked is not None and asked.is_kernel,
    )
    notes = list(encoded.notes)
    if asked is None:
        family, reason = _choose(request, guess, encoded)
    else:
        family, reason = asked, "asked for"
        if guess.kind != asked.task:
            notes.insert(0, f"{request.target} looks like {guess.kind} ({guess.reason})")
    sources = [source.name for source in encoded.encoding.sources for _ in source.names]
    estimator = family.make(sources, **request.options)
    estimator._validate_params()  # before the table is shown
    return Prepared(table, encoded, family, reason, estimator, notes)


def refuse_implausible(table: Table, request: Request) -> None:
    """An error if the target is not meant as classes, by all appearances."""
    assert request.target is not None
    column = table.column(request.target)
    reason = "" if request.force else implausible(column)
    if not reason:
        return
    more = ""
    if column.numbers is not None:
        more = " It holds numbers: leave --model out, or take a model of numbers."
    elif (looks := table.guess(request.target)).kind in ("text", "date"):
        more = f" It looks like {looks.kind}: {looks.reason}."
    raise TableError(
        f"The target {request.target!r} does not look like classes: {reason}.{more} Say another "
        "--target; --force fits it as classes all the same."
    )


def _choose(request: Request, guess: Any, encoded: Encoded) -> tuple[Family, str]:
    """The family for ``--model auto``; options such as ``--alpha`` ask for one that has them."""
    given = [name for name, value in request.options.items() if value is not None]
    if given and guess.kind == "regression":
        return family_with(guess.kind, given)
    try:
        return choose_family(guess.kind, *encoded.X.shape)
    except TableError as error:
        message = f"The target {request.target!r} looks like classes ({guess.reason}). {error}"
        if "two values" in guess.reason:
            message += " To fit the two numbers as amounts, say --model linear."
        raise TableError(message) from error


@contextmanager
def _quiet_names() -> Iterator[None]:
    """The encoding puts the columns in order; their names need not be checked once more."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def run_fit(request: Request, out_path: Path) -> None:
    """Fit, show, save."""
    out = show.console()
    _check_folder(out_path)  # before the work, not after it
    ready = prepare(request)
    encoded, table = ready.encoded, ready.table
    _show_data(out, ready)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model = ready.estimator.fit(encoded.X, encoded.y)
        seconds = time.perf_counter() - start
    model.feature_names_in_ = np.array(encoded.names, dtype=object)
    _show_model(out, ready, model, seconds)
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
    show.note(out, f"check it:  trueline verify {path} {request.data}", "")
    show.note(out, f"use it:    trueline predict {path} {request.data}", "")


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
                said.append(
                    f"alpha={alpha:.4g} is the {which} that was tried: see trueline compare"
                )
    return said


# Measured targets are not explained to so many digits; with fewer rows for each column they may be.
_EXACT, _ROWS_PER_COLUMN = 1e-12, 3


def _is_exact(ready: Prepared, model: Any) -> bool:
    """Whether a fit of few columns leaves nothing of the target."""
    X, y = ready.encoded.X, ready.encoded.y
    if ready.family.is_kernel or len(y) < _ROWS_PER_COLUMN * (X.shape[1] + 1):
        return False
    with _quiet_names():
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
    names = [encoded.names[j] for j in np.flatnonzero(ends <= _ROUNDING)]
    if not names:
        return []
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    follow = "follows" if len(names) == 1 else "follow"
    return [
        f"rank {d - len(names)} of {d} columns: {listed} {follow} from the columns before, so that "
        "other coefficients fit as well as these; leave out with --drop what is said twice"
    ]


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} to.")


def _show_data(out: Console, ready: Prepared) -> None:
    table, encoding = ready.table, ready.encoded.encoding
    size = f"{table.path}: {table.n_rows:,} rows, {len(table.columns)} columns"
    show.heading(out, "Data", f"{size}, {table.delimiter_name} separated")
    used = [source.name for source in encoding.sources]
    show.show_columns(out, table, encoding.target, used)
    seen = [f"{name} left out" for name in list(table.columns)[: show.MOST_ROWS]]
    for text in ready.notes:
        if not text.startswith(tuple(seen)):  # the table says it already
            show.note(out, text, "yellow")


def _show_model(out: Console, ready: Prepared, model: Any, seconds: float) -> None:
    X, y = ready.encoded.X, ready.encoded.y
    show.heading(out, "Model", f"{ready.family.title}")
    with _quiet_names():
        score = model.score(X, y)
    facts = {
        "task": f"{ready.encoded.encoding.task} ({ready.encoded.encoding.target})",
        "model": f"{ready.family.name}: {ready.reason}",
    }
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    if alpha is not None and getattr(model, "penalty", "") is not None and np.ndim(alpha) == 0:
        facts["alpha"] = f"{np.max(alpha):.4g}"
    otherwise = "maximum likelihood" if ready.family.is_kernel else "passes over the rows"
    solver = getattr(model, "solver_", otherwise)
    facts["solver"] = f"{solver}, {show.quantity(seconds, 's')}"
    facts["fitted"] = f"{X.shape[0]:,} rows, {X.shape[1]} columns"
    used = X.shape[1] if ready.family.is_kernel else int(np.count_nonzero(model.coef_))
    if used < X.shape[1]:
        facts["used"] = f"{used} of {X.shape[1]} columns"
    is_class = ready.encoded.encoding.task == "classification"
    facts["accuracy" if is_class else "R2"] = f"{score:.4f} on these rows"
    show.show_facts(out, facts)
    if ready.family.is_kernel:
        return
    show.heading(out, "Coefficients")
    show_model_coefficients(out, model, ready.encoded.names)


def show_model_coefficients(out: Console, model: Any, names: list[str]) -> None:
    """The coefficients of a model with one target, or of each class."""
    coef = np.atleast_2d(model.coef_)
    for number, level in enumerate(np.ravel(model.intercept_)):
        if len(coef) > 1:
            show.heading(out, "Class", str(model.classes_[number]))
        show.show_coefficients(out, names, coef[number].tolist(), float(level))
    classes: Any = getattr(model, "classes_", ())
    if len(coef) == 1 and len(classes) == 2:
        show.note(out, f"positive coefficients speak for {classes[1]}, negative for {classes[0]}")


def show_proof(out: Console, model: Any) -> None:
    """What is proven about a model, and what is not."""
    show.heading(out, "Proof")
    show_certificate(out, model.certificate_)
    if hasattr(model, "history_"):
        text = "This is about the chosen columns: that no other choice is better is not claimed."
        show.note(out, text, "yellow")


def show_certificate(out: Console, certificate: Any) -> None:
    """What is proven, in words and numbers."""
    statement = certificate.statement
    show.note(out, f"{statement[0].upper()}{statement[1:]}.", "")
    if math.isinf(certificate.gap):  # what is proven is local
        show.show_facts(out, {"claim": str(certificate), "kind": certificate.kind})
        return
    show.show_facts(
        out,
        {
            "objective": f"{certificate.objective:.12g}",
            "gap": f"{certificate.gap:.3g}  ({relative(certificate.relative_gap)})",
            "kind": f"{certificate.kind} proof",
        },
    )


def run_explain(request: Request) -> None:
    """The plan for a table, or what happened in a model."""
    out = show.console()
    if _is_archive(request.data):
        _explain_model(out, _read_fitted(request.data), str(request.data))
        return
    ready = prepare(request)
    _show_data(out, ready)
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


def show_explanation(out: Console, explanation: Any) -> None:
    """What is minimised and by which solver; after a fit, also what happened."""
    from trueline.estimators.shared.report import Explanation
    from trueline.selection.stepwise import StepwiseExplanation

    if isinstance(explanation, StepwiseExplanation):
        show_search(out, explanation)
        return
    if not isinstance(explanation, Explanation):
        show.note(out, str(explanation), "")
        return
    plan, happened = explanation.plan, explanation.facts
    facts = {"minimise": plan.objective, "solver": f"{plan.chosen}: {plan.reason}"}
    if happened is not None:
        times = "one pass" if happened["n_iter"] == 1 else f"{happened['n_iter']} iterations"
        seconds = show.quantity(happened["seconds"], "s")
        facts["happened"] = f"{happened['solver']}, {times}, {seconds}: {happened['status']}"
        remarks = happened["notes"]
        facts |= {"noted" if i == 0 else " " * i: text for i, text in enumerate(remarks)}
    show.show_facts(out, facts)
    show.heading(out, "Plan", "estimates before anything is computed")
    show.show_plan(out, plan)


def show_search(out: Console, explanation: Any) -> None:
    """What a stepwise search looks for; after a fit, also its steps."""
    lines = (line.split(maxsplit=1) for line in explanation.title)
    show.show_facts(out, dict(lines))
    if explanation.history:
        show.heading(out, "Steps")
        show.show_steps(out, explanation.table(), explanation.criterion)


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


def run_verify(model_path: Path, data: Path, target: str | None) -> Verification:
    """Check the proof of a model against its data; show every check and what is proven."""
    out = show.console()
    file = _read_model(model_path, data)
    if hasattr(file.model, "steps"):
        X, y = _frame_and_target(file.model, data, target)
        show.heading(out, "Verify", f"{model_path} against {data}, {len(y):,} rows")
        last = type(file.model[-1]).__name__
        show.note(out, f"a pipeline: {last}, its last step, on the rows as transformed before it")
    else:
        X, y = _complete_rows(out, file, model_path, data, target)
    try:
        with _quiet_names():
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


def show_verdict(out: Console, outcome: Verification) -> None:
    """The end of a verification: which of the three answers, what is proven, and under what."""
    out.print()
    if outcome.verdict is Verdict.NOT_PROVEN:
        show.note(out, "The proof does NOT hold for this model and this data.", "bold red")
        return
    if outcome.verdict is Verdict.PROVEN:
        show.note(out, "The proof holds.", "bold green")
    else:
        show.note(out, f"The proof holds if {'; and if '.join(outcome.conditions)}.", "bold yellow")
    if outcome.statement:
        show.note(out, f"Proven: {outcome.statement}.", "")


def run_predict(model_path: Path, data: Path, out_path: Path | None) -> None:
    """Write the table again, with one more column."""
    if out_path is not None:
        _check_folder(out_path)
    file = _read_model(model_path, data)
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
        with _quiet_names():
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
