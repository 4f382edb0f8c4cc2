"""A law is a function that asserts; a book is the list of laws of one kind of part."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Law", "LawBook"]

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
