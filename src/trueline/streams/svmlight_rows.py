"""Rows of text in the format of SVMlight and LIBSVM: ``label column:value ... # remark``.

A compiled loop reads the plain lines. A line with anything else, such as ``nan``, an exponent
beyond 22 or an error, is left to Python, which says what is wrong with it; and so are all lines of
a short text where the loop is not compiled yet.

The nearest double. With m < 2^53 and p = 10^e, e <= 22, both are doubles, and m p and m / p are
rounded once (W. Clinger, "How to read floating point numbers accurately", 1990). A number of up to
18 digits is m = h + l, both doubles, and::

    h p = q + r  exactly,           m p = q + (r + l p)
    h = q p + r  exactly,           m / p = q + (r + l) / p

The rest in brackets is rounded, and digits beyond the 18th are left out, by less than a known
amount: if the ends of that interval round to the same double, it is the nearest (A. Ziv, "Fast
evaluation of elementary mathematical functions with correctly rounded last bit", 1991); if they do
not, Python reads the line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.jit import is_ready, kernel

_Number = TypeVar("_Number", int, float)
_NEWLINE, _HASH, _PLUS, _MINUS, _DOT, _COLON = (ord(sign) for sign in "\n#+-.:")
_ZERO, _E, _Q, _I, _D = (ord(sign) for sign in "0eqid")
# The powers of ten that are doubles.
_TENS = np.array([float(10**k) for k in range(23)])
_LARGEST_TEN = len(_TENS) - 1
# The numbers of so many digits, and one more, are 64-bit integers.
_DIGITS_KEPT = 10**17
_EXACT = 2**53
# The rest is rounded three times, and the interval around it twice: 2^-48 is many times as much.
_SLACK = 2.0**-48
# An exponent that no double has.
_HUGE = 9999
_SPLITTER = 134217729.0  # 2^27 + 1
# Python reads so many bytes in half a second, and to compile the loop takes some seconds.
_WORTH_COMPILING = 1 << 22
# Columns are 32-bit integers.
_COLUMNS = 2**31 - 1


class Rows(NamedTuple):
    """The rows of a block as compressed rows, with their labels; columns as they are written.

    ``lines`` counts those without a row, too.
    """

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    labels: NDArray[np.float64]
    lines: int


def parsed(text: bytes, first_line: int = 1) -> Rows:
    r"""The rows of whole lines; a ``ValueError`` names the line, counted from that of the first.

    Examples
    --------
    >>> from trueline.streams.svmlight_rows import parsed
    >>> rows = parsed(b"1 2:0.5 7:1e3\n-1 # an empty row\n")
    >>> rows.labels.tolist(), rows.indices.tolist(), rows.data.tolist(), rows.indptr.tolist()
    ([1.0, -1.0], [2, 7], [0.5, 1000.0], [0, 2, 2])
    """
    if not text.endswith(b"\n"):
        text += b"\n"  # loops end there without counting
    numbers = np.frombuffer(text, dtype=np.uint8)
    # Many colons are counted by vectors in a third of the time of bytes.count.
    lines, entries = text.count(b"\n"), int(np.count_nonzero(numbers == _COLON))
    labels, indptr = np.empty(lines), np.zeros(lines + 1, dtype=np.int32)
    data, indices = np.empty(entries), np.empty(entries, dtype=np.int32)
    sizes = np.zeros(2, dtype=np.int64)
    is_compiled = is_ready(read_lines) or len(text) >= _WORTH_COMPILING
    at = 0
    while True:
        if is_compiled:
            at = read_lines(numbers, at, sizes, labels, indptr, indices, data)
        row, k = sizes
        if at == len(text):
            return Rows(data[:k], indices[:k], indptr[: row + 1], labels[:row], lines)
        end = text.index(b"\n", at)
        words = text[at:end].partition(b"#")[0].split()
        if words:
            try:
                labels[row], columns, values = _read_words(*words)
            except ValueError as error:
                number = first_line + text.count(b"\n", 0, at)
                raise ValueError(f"line {number:,}: {error}") from error
            last = k + len(values)
            indices[k:last], data[k:last], indptr[row + 1] = columns, values, last
            sizes[:] = row + 1, last
        at = end + 1


def _read_words(label: bytes, *features: bytes) -> tuple[float, list[int], list[float]]:
    """Label, columns and values of one line, in any notation that Python reads."""
    columns: list[int] = []
    values: list[float] = []
    last = -1
    has_group = bool(features) and features[0].startswith(b"qid:")
    for feature in features[has_group:]:
        name, colon, value = feature.partition(b":")
        if not colon:
            raise ValueError(f"{feature.decode(errors='replace')!r} is not column:value")
        column = _number(name, int, "the number of a column")
        if not 0 <= column < _COLUMNS:
            raise ValueError(f"column {column} is not among 0, ..., {_COLUMNS - 1:,}")
        if column <= last:
            raise ValueError(f"column {column} comes after {last}: columns must rise")
        columns.append(column)
        values.append(_number(value, float, "a number"))
        last = column
    return _number(label, float, "a number"), columns, values


def _number(word: bytes, kind: Callable[[bytes], _Number], what: str) -> _Number:
    try:
        return kind(word)
    except ValueError:
        raise ValueError(f"{word.decode(errors='replace')!r} is not {what}") from None


@kernel
def read_lines(
    text: Any, at: int, sizes: Any, labels: Any, indptr: Any, indices: Any, data: Any
) -> int:
    """Read plain lines from a position on; where the first other one begins, or the text ends.

    ``sizes`` holds how many rows and entries have been read. The text ends with a line's end. A
    label is read as a value is, without a column in front.
    """
    row, k = int(sizes[0]), int(sizes[1])
    is_plain = True
    while is_plain and at < text.shape[0]:
        line, first, last, is_label = at, k, -1, True
        at = after_blanks(text, at)
        while is_plain and not is_end(text[at]):
            if not is_label:
                column, at, is_plain = column_at(text, at)
                is_plain &= column > last
                last = column
            is_negative = text[at] == _MINUS
            m, exponent, at, is_number = digits_at(text, at + (is_negative or text[at] == _PLUS))
            if (text[at] | 32) == _E:
                power, at = exponent_at(text, at + 1)
                exponent += power
            value = nearest(m, exponent)
            is_plain &= is_number and value == value and (is_blank(text[at]) or is_end(text[at]))
            at = after_blanks(text, at)
            if is_plain and is_label:
                labels[row], is_label = -value if is_negative else value, False
                row += 1
                at = after_group(text, at)
            elif is_plain:
                indices[k], data[k] = last, -value if is_negative else value
                k += 1
        if is_plain:
            indptr[row] = k
            while text[at] != _NEWLINE:
                at += 1
            at += 1
        else:
            at, k, row = line, first, row - (not is_label)
    sizes[0], sizes[1] = row, k
    return at


@kernel
def is_blank(c: Any) -> bool:
    """Whether a byte separates words within a line."""
    return c == 32 or (9 <= c <= 13 and c != _NEWLINE)


@kernel
def is_end(c: Any) -> bool:
    """Whether a line ends at a byte, or a remark begins."""
    return c in (_NEWLINE, _HASH)


@kernel
def after_blanks(text: Any, at: int) -> int:
    """Where the next word begins."""
    while is_blank(text[at]):
        at += 1
    return at


@kernel
def after_group(text: Any, at: int) -> int:
    """Where the first feature begins, after ``qid:`` and its number."""
    if text[at] == _Q and text[at + 1] == _I and text[at + 2] == _D and text[at + 3] == _COLON:
        while not (is_blank(text[at]) or is_end(text[at])):
            at += 1
        at = after_blanks(text, at)
    return at


@kernel
def column_at(text: Any, at: int) -> Any:
    """The column whose number begins at a position, where its value does, and whether one does."""
    start, column = at, 0
    while 0 <= int(text[at]) - _ZERO <= 9:
        column = 10 * column + int(text[at]) - _ZERO
        at += 1
    is_plain = 0 < at - start < 10 and text[at] == _COLON
    return column, at + is_plain, is_plain


@kernel
def digits_at(text: Any, at: int) -> Any:
    """Digits and a point from a position on, as m 10^e; where they end, and whether there are any.

    Of more digits than are kept the first ones count, and m is negative.
    """
    m, exponent, count, is_cut, is_fraction = 0, 0, 0, False, False
    c = int(text[at]) - _ZERO
    while 0 <= c <= 9 or (c == _DOT - _ZERO and not is_fraction):
        if c < 0:
            is_fraction = True
        elif m < _DIGITS_KEPT:
            m = 10 * m + c
            exponent -= is_fraction
            count += 1
        else:
            is_cut = True
            exponent += not is_fraction
        at += 1
        c = int(text[at]) - _ZERO
    return -m if is_cut else m, exponent, at, count > 0


@kernel
def exponent_at(text: Any, at: int) -> Any:
    """The exponent that begins at a position, and where it ends; a huge one if there is none."""
    is_negative = text[at] == _MINUS
    at += is_negative or text[at] == _PLUS
    start, power = at, 0
    while 0 <= int(text[at]) - _ZERO <= 9:
        power = min(10 * power + int(text[at]) - _ZERO, _HUGE)
        at += 1
    if at == start:
        power = _HUGE
    return -power if is_negative else power, at


@kernel
def nearest(m: int, exponent: int) -> float:
    """The double nearest to m 10^exponent; NaN where that is not certain.

    If m is negative digits were left out: it is the nearest to all of [-m, 1 - m] 10^exponent.
    """
    if abs(exponent) > _LARGEST_TEN:
        return np.nan
    p = _TENS[abs(exponent)]
    if 0 <= m <= _EXACT:
        return m / p if exponent < 0 else m * p
    return rounded(abs(m), p, exponent < 0, m < 0)


@kernel
def rounded(m: int, p: float, is_quotient: bool, is_cut: bool) -> float:
    """The double nearest to m p or m / p, and to (m + 1) p or (m + 1) / p if digits were cut."""
    h = float(m)
    l = float(m - int(h))
    if is_quotient:
        q = h / p
        rest, slack = ((h - q * p) - product_error(q, p) + l) / p, 2.0 / p
    else:
        q = h * p
        rest, slack = product_error(h, p) + l * p, 2.0 * p
    slack = _SLACK * abs(rest) + (slack if is_cut else 0.0)
    return q + rest if q + (rest - slack) == q + (rest + slack) else np.nan


@kernel
def product_error(a: float, b: float) -> float:
    """a b less its rounded value, exactly (``numerics.precision``, for one pair of numbers)."""
    c, e = _SPLITTER * a, _SPLITTER * b
    a_high, b_high = c - (c - a), e - (e - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((a * b - a_high * b_high) - a_low * b_high) - a_high * b_low)
