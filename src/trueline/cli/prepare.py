"""From a file and options to rows, a family of models and its encoding."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueline.cli.families import Family, choose_family, family_with, find_family
from trueline.errors import TableError
from trueline.table import Encoded, Guess, Table, encode, guess_task, read_table
from trueline.table.columns import implausible


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
    drop_missing: bool = False
    force: bool = False
    standardize: bool = False

    def read(self) -> tuple[Table, Guess]:
        """The table, and what its target looks like."""
        table = read_table(self.data)
        if self.target is None:
            names = ", ".join(table.columns)
            raise TableError(f"Say which column to predict: --target NAME. There are: {names}.")
        if table.n_rows > 1 and (seen := table.guess(self.target)).kind == "constant":
            raise TableError(
                f"The target {self.target!r} is {seen.reason}: there is nothing to predict."
            )
        return table, guess_task(table.column(self.target))

    def encode(self, table: Table, task: str, standardize: bool = False) -> Encoded:
        """The columns that were asked for, as numbers."""
        if task == "classification":
            refuse_implausible(table, self)
        assert self.target is not None  # or the table would not have been read
        return encode(
            table,
            self.target,
            features=self.features,
            drop=self.drop or (),
            categories=self.categories or (),
            task=task,
            standardize=standardize or self.standardize,
            missing="drop" if self.drop_missing else "fill",
        )


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
    table, guess = request.read()
    asked = None if request.model == "auto" else find_family(request.model)
    encoded = request.encode(
        table, asked.task if asked else guess.kind, asked is not None and asked.is_kernel
    )
    notes = list(encoded.notes)
    if request.standardize:
        notes.append("columns are standardised: coefficients are for a change by one deviation")
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
        more = f" It holds {looks.kind}s ({looks.reason})."
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
def quiet_names() -> Iterator[None]:
    """The encoding puts the columns in order; their names need not be checked once more."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
