"""The models that the command line offers. A new family is one line in :data:`FAMILIES`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trueline.errors import TableError

__all__ = ["FAMILIES", "Family", "choose_family", "find_family"]

# With this many rows per column, least squares needs no help from a penalty.
_PLENTY = 20


@dataclass(frozen=True)
class Family:
    """A model by the name it has on the command line.

    Attributes
    ----------
    name : str
        For ``--model``.
    task : {"regression", "classification"}
    estimator : str
        Name of the class in :mod:`trueline.estimators`; imported only when it is used.
    title : str
        One line for the help.
    options : tuple of str
        Parameters of the estimator that the command line may set, such as ``alpha``.
    defaults : mapping
        Parameters that differ from the estimator's own defaults.
    suits : callable
        ``suits(rows, columns)`` is the reason why ``--model auto`` takes this family for data of
        such a size, or None. The first family of the task with a reason is taken.
    """

    name: str
    task: str
    estimator: str
    title: str
    options: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    suits: Callable[[int, int], str | None] = lambda rows, columns: None

    def make(self, **given: Any) -> Any:
        """The estimator; options that are None keep their defaults."""
        from trueline import estimators

        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if name not in self.options:
                able = [family.name for family in FAMILIES.values() if name in family.options]
                raise TableError(
                    f"--{name} has no meaning for --model {self.name}; it belongs to "
                    f"--model {' or '.join(able)}."
                )
        return getattr(estimators, self.estimator)(**{**self.defaults, **given})


def _plenty_of_rows(rows: int, columns: int) -> str | None:
    if rows < _PLENTY * columns:
        return None
    return f"{rows / columns:,.0f} rows per column are plenty, no penalty is needed"


def _few_rows(rows: int, columns: int) -> str | None:
    return (
        f"{rows / columns:.3g} rows per column are few, a penalty steadies the coefficients; "
        "cross-validation chooses its strength"
    )


# From hardly any penalty to hardly any coefficient, four strengths per factor of ten.
_STRENGTHS = tuple(10.0 ** (quarter / 4) for quarter in range(-16, 25))

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "linear",
            "regression",
            "LinearRegression",
            "least squares, no penalty",
            suits=_plenty_of_rows,
        ),
        Family(
            "ridge",
            "regression",
            "Ridge",
            "least squares with a squared penalty of strength --alpha",
            options=("alpha",),
        ),
        Family(
            "ridge-cv",
            "regression",
            "RidgeCV",
            "ridge whose strength is chosen by leave-one-out",
            defaults={"alphas": _STRENGTHS},
            suits=_few_rows,
        ),
    )
}


def find_family(name: str) -> Family:
    """A family by name; the error suggests names that look alike."""
    if name in FAMILIES:
        return FAMILIES[name]
    close = difflib.get_close_matches(name.lower(), FAMILIES, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise TableError(f"--model {name} is not known: take one of auto, {', '.join(FAMILIES)}.{hint}")


def choose_family(task: str, rows: int, columns: int) -> tuple[Family, str]:
    """The family for ``--model auto``, and the reason.

    Examples
    --------
    >>> from trueline.cli.families import choose_family
    >>> choose_family("regression", rows=1000, columns=10)[0].name
    'linear'
    >>> choose_family("regression", rows=20, columns=10)[0].name
    'ridge-cv'
    """
    for family in FAMILIES.values():
        reason = family.suits(rows, columns) if family.task == task else None
        if reason is not None:
            return family, reason
    raise TableError(f"There is no model for {task} on the command line yet.")
