"""Words that texts for people share, and how results are shown at a prompt and in a notebook."""

from __future__ import annotations

import dataclasses
import functools
import html
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TextIO, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_WIDTH = 88  # of a line of an outline
_SHORT = 60  # characters of a value that are shown
_PREFIXES = {-4: "p", -3: "n", -2: "u", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P"}


def is_watched(stream: TextIO) -> bool:
    """Whether what is written is seen at once: on a terminal, or in a notebook."""
    if stream.isatty():
        return True
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"  # a notebook


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, singular or plural.

    Examples
    --------
    >>> from trueline.wording import counted
    >>> counted(1, "step"), counted(0, "step"), counted(1200, "iteration")
    ('1 step', '0 steps', '1,200 iterations')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def quantity(value: float, unit: str) -> str:
    """A number with three digits and an SI prefix.

    Examples
    --------
    >>> from trueline.wording import quantity
    >>> quantity(0.0012, "s"), quantity(2.5e9, "flop")
    ('1.2 ms', '2.5 Gflop')
    """
    power = 0
    while value >= 1000 and power < 5:
        value, power = value / 1000, power + 1
    while 0 < value < 1 and power > -4:
        value, power = value * 1000, power - 1
    return f"{value:.3g} {_PREFIXES[power]}{unit}"


def outline(value: Any) -> str:
    """One value in a few characters: an array is its shape, a collection its length.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.wording import outline
    >>> outline(np.zeros((442, 10))), outline([1, 2, 3]), outline(0.1 + 0.2), outline("bic")
    ('array of shape (442, 10)', 'list of 3', '0.3', "'bic'")
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        kind = "sparse array" if hasattr(value, "tocsr") else "array"
        return f"{kind} of shape {shape}"
    if isinstance(value, float):
        return f"{float(value):.6g}"
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return f"{type(value).__name__} of {len(value)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 4]} ..."


class Readable:
    """Shows as a few lines of text; the same in a notebook.

    For dataclasses, made with ``repr=False``: each field is shown by :func:`outline`, unless a
    class says in ``__str__`` what is worth reading.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from trueline.wording import Readable
    >>> @dataclass(repr=False)
    ... class Line(Readable):
    ...     slope: float
    ...     points: object
    >>> Line(2.0, np.zeros(100))
    Line(slope: 2, points: array of shape (100,))
    """

    def __str__(self) -> str:
        shown = [
            f"{field.name}: {outline(getattr(self, field.name))}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if field.repr and getattr(self, field.name) is not None
        ]
        text = f"{type(self).__name__}({', '.join(shown)})"
        return "\n".join(textwrap.wrap(text, _WIDTH, subsequent_indent="    "))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Text(str):
    r"""Text that a prompt shows line by line, not in quotes with ``\n`` in it.

    Examples
    --------
    >>> from trueline.wording import Text
    >>> Text("one line\nanother")
    one line
    another
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


def shown_as_text(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method whose text is shown line by line; see :class:`Text`."""

    @functools.wraps(method)
    def explain(*args: P.args, **named: P.kwargs) -> R:
        said = method(*args, **named)
        return cast("R", Text(said)) if isinstance(said, str) else said

    return explain


def relative(share: float) -> str:
    """A gap relative to the objective; where the objective is zero but for rounding, in words.

    Examples
    --------
    >>> from trueline.wording import relative
    >>> relative(2.5e-9), relative(3.6e213)
    ('relative 2.5e-09', 'more than the objective itself')
    """
    return f"relative {share:.2g}" if share <= 1.0 else "more than the objective itself"


def times(ratio: float) -> str:
    """How many times; large numbers in words.

    Examples
    --------
    >>> from trueline.wording import times
    >>> times(12.3456), times(3.6e213)
    ('12.3 times', 'more than a million times')
    """
    return f"{ratio:.3g} times" if ratio <= 1e6 else "more than a million times"
