"""A law is a function that asserts; a book is the list of laws of one kind of part.

Assertions name the worst offender; some laws are obeyed by every frozen part.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Check = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Law:
    """One law: a function of a part and of sample points, which asserts.

    Attributes
    ----------
    name : str
        The law in a few words.
    statement : str
        The law in full, with its formula.
    needs : frozenset of str
        Capabilities without which the law says nothing about a part.
    check : callable
        ``check(part, points)`` raises if the law is broken.
    """

    name: str
    statement: str
    needs: frozenset[str]
    check: Check

    def concerns(self, part: Any) -> bool:
        """Whether the part claims what the law is about."""
        return self.needs <= getattr(part, "capabilities", frozenset())


@dataclass
class LawBook:
    """The laws of one kind of part, in the order in which they are checked.

    Parameters
    ----------
    kind : str
        What the laws are about, for messages.

    Examples
    --------
    >>> from trueline.checks import LawBook
    >>> book = LawBook("number")
    >>> @book.law()
    ... def is_not_negative(number, points):
    ...     '''x >= 0.'''
    ...     assert number >= 0, number
    >>> book.check(2.0, None)
    ['is not negative']
    >>> book.check(-1.0, None)
    Traceback (most recent call last):
    ...
    AssertionError: The number -1.0 breaks the law "is not negative": x >= 0.
    -1.0
    """

    kind: str
    laws: list[Law] = field(default_factory=list)

    def law(self, *needs: str) -> Callable[[Check], Check]:
        """Enter a function into the book; it concerns parts with the given capabilities."""

        def enter(check: Check) -> Check:
            name = check.__name__.replace("_", " ")
            statement = inspect.getdoc(check) or ""
            self.laws.append(Law(name, statement, frozenset(needs), check))
            return check

        return enter

    def __iter__(self) -> Iterator[Law]:
        return iter(self.laws)

    def __getitem__(self, name: str) -> Law:
        return next(law for law in self.laws if law.name == name)

    def check_one(self, law: Law, part: Any, points: Any) -> None:
        """Check one law; any failure, also a crash, becomes an AssertionError that names it."""
        try:
            # Laws go to the edge of the floating-point range on purpose.
            with np.errstate(all="ignore"):
                law.check(part, points)
        except Exception as error:
            found = str(error) if isinstance(error, AssertionError) else f"It raised {error!r}."
            raise AssertionError(
                f'The {self.kind} {part!r} breaks the law "{law.name}": {law.statement}\n{found}'
            ) from error

    def check(self, part: Any, points: Any) -> list[str]:
        """Check every law that concerns the part; the names of the laws that were checked."""
        concerned = [law for law in self.laws if law.concerns(part)]
        for law in concerned:
            self.check_one(law, part, points)
        return [law.name for law in concerned]


EPS = float(np.finfo(np.float64).eps)


def _worst(excess: NDArray[Any], **arrays: ArrayLike) -> str:
    """The values at the place where the excess is largest."""
    excess = np.atleast_1d(excess)
    place = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
    shown = [
        f"{name} = {np.broadcast_to(values, excess.shape)[place]!r}"
        for name, values in arrays.items()
    ]
    return ", ".join(shown)


def assert_at_most(left: ArrayLike, right: ArrayLike, slack: ArrayLike, **where: ArrayLike) -> None:
    """left <= right + slack everywhere; NaN is never at most anything."""
    left, right, slack = np.asarray(left), np.asarray(right), np.asarray(slack)
    holds = left <= right + slack
    if not np.all(holds):
        excess = np.where(holds, -np.inf, np.nan_to_num(left - right - slack, nan=np.inf))
        shapes = np.broadcast_shapes(excess.shape, *(np.shape(value) for value in where.values()))
        excess = np.broadcast_to(excess, shapes)
        raise AssertionError(_worst(excess, left=left, right=right, slack=slack, **where))


def assert_close(got: ArrayLike, expected: ArrayLike, slack: ArrayLike, **where: ArrayLike) -> None:
    """abs(got - expected) <= slack everywhere, and equal shapes."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"shape {got.shape}, expected {expected.shape}"
    difference = np.where(got == expected, 0.0, np.abs(got - expected))
    assert_at_most(difference, 0.0, slack, got=got, expected=expected, **where)


def assert_same_parts(first: Any, second: Any) -> None:
    """Equal class and equal fields, arrays included (which ``==`` cannot compare)."""
    assert type(first) is type(second), f"{type(first)} is not {type(second)}"
    if dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            ours, theirs = getattr(first, field.name), getattr(second, field.name)
            if dataclasses.is_dataclass(ours):
                assert_same_parts(ours, theirs)
            else:
                assert np.array_equal(ours, theirs), f"{field.name}: {ours!r} != {theirs!r}"


def assert_is_frozen(part: Any) -> None:
    """Setting a field, or inventing one, raises."""
    names = (
        [field.name for field in dataclasses.fields(part)] if dataclasses.is_dataclass(part) else []
    )
    for name in [*names, "an_attribute_of_no_part"]:
        victim = copy.copy(part)
        try:
            setattr(victim, name, 1.0)
        except (AttributeError, TypeError):
            continue
        raise AssertionError(f"{name} could be set; declare the class @dataclass(frozen=True)")


def assert_survives_pickling(part: Any) -> None:
    """pickle gives the same part back."""
    assert_same_parts(pickle.loads(pickle.dumps(part)), part)


def assert_text_rebuilds(part: Any) -> None:
    """eval(repr(part)) is the part, with the names of its module and its fields' modules."""
    names: dict[str, Any] = {"array": np.array, "np": np, "inf": np.inf}
    parts = [part]
    while parts:
        one = parts.pop()
        names.update(vars(importlib.import_module(type(one).__module__)))
        names[type(one).__name__] = type(one)
        if dataclasses.is_dataclass(one):
            values = [getattr(one, field.name) for field in dataclasses.fields(one)]
            parts.extend(value for value in values if dataclasses.is_dataclass(value))
    assert_same_parts(eval(repr(part), names), part)
