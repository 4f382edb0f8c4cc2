"""Streams of rows, with features by name, and how predictions fared on them before learning.

Named features get a fixed number of columns: the hashing trick.

A name is hashed to a column and to a sign, so that names which share a column cancel on average
(Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009). The hash is
the CRC-32 of the name in UTF-8, mixed by multiplications and shifts: the same on every machine and
in every run, unlike Python's own.

A value that is a string stands for the feature ``name=value`` with the value 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.online.rows import give_signs

# Names whose columns are kept at hand, at most.
_REMEMBERED = 2**20
_PLAIN_NAMES = frozenset((str, int))
_PLAIN_VALUES = frozenset((float, int))


def column_of(name: str, width: int) -> tuple[int, float]:
    """Column and sign of a name.

    Examples
    --------
    >>> from trueline.online.stream import column_of
    >>> column, sign = column_of("word", 1000)
    >>> 0 <= column < 1000, sign in (-1.0, 1.0)
    (True, True)
    """
    h = crc32(name.encode())
    h = ((h ^ (h >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    h ^= h >> 16
    return (h >> 1) % width, 1.0 if h & 1 else -1.0


class _Columns(dict[Any, int]):
    """Twice the column of a name, plus 1 if its sign is positive; worked out when first asked for.

    One number rather than two, so that a row is looked up without a loop in Python.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def __missing__(self, name: Any) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        column, sign = column_of(name if type(name) is str else str(name), self.width)
        self[name] = found = 2 * column + (sign > 0)
        return found


_columns = lru_cache(maxsize=8)(_Columns)


def hashed_row(x: Mapping[Any, Any], width: int) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Columns and values of one row; names that share a column appear twice.

    Parameters
    ----------
    x : mapping of names to numbers or strings
        Names that are not strings are written out (``str``).
    width : int
        Number of columns, below 2^31.
    """
    # Names of other types may be equal and yet be written differently: 1.0 and True.
    if _PLAIN_NAMES.issuperset(map(type, x)) and _PLAIN_VALUES.issuperset(map(type, x.values())):
        columns = np.fromiter(map(_columns(width).__getitem__, x), np.uint32, len(x))
        values = np.fromiter(x.values(), np.float64, len(x))
    else:
        named = [_plain(name, value) for name, value in x.items()]
        known = _columns(width)
        columns = np.array([known[name] for name, _ in named], dtype=np.uint32)
        values = np.array([value for _, value in named], dtype=np.float64)
    give_signs(columns, values)
    return columns, values


def _plain(name: Any, value: Any) -> tuple[str, Any]:
    name = name if type(name) is str else str(name)
    return (f"{name}={value}", 1.0) if type(value) is str else (name, value)


def hashed_rows(rows: Sequence[Mapping[Any, Any]], width: int) -> Any:
    """Several rows as a CSR matrix.

    Examples
    --------
    >>> from trueline.online.stream import hashed_rows
    >>> X = hashed_rows([{"a": 1.0, "colour": "red"}, {}], 16)
    >>> X.shape, X.nnz
    ((2, 16), 2)
    """
    parts = [hashed_row(x, width) for x in rows]
    indptr = np.cumsum([0, *(len(values) for _, values in parts)]).astype(np.int32)
    indices = np.concatenate([columns for columns, _ in parts]).astype(np.int32)
    data = np.concatenate([values for _, values in parts])
    return sp.csr_array((data, indices, indptr), shape=(len(parts), width))


@dataclass
class Progress:
    """Progressive validation: every row is predicted before it is learned.

    Attributes
    ----------
    rows : int
        Rows seen.
    mistakes : int
        Rows whose prediction was wrong (a score of zero is).
    blocks : list of (int, int)
        Rows and mistakes at the end of each batch, at most about a thousand of them.

    Examples
    --------
    >>> from trueline.online.stream import Progress
    >>> progress = Progress()
    >>> progress.add(10, 4)
    >>> progress.add(10, 1)
    >>> progress.accuracy, progress.blocks
    (0.75, [(10, 4), (20, 5)])
    """

    rows: int = 0
    mistakes: int = 0
    blocks: list[tuple[int, int]] = field(default_factory=list)
    every: int = 1

    @property
    def accuracy(self) -> float:
        """Share of rows predicted right before they were learned."""
        return 1.0 - self.mistakes / self.rows if self.rows else float("nan")

    def add(self, rows: int, mistakes: int) -> None:
        """Count a batch."""
        self.rows += rows
        self.mistakes += mistakes
        if not self.blocks or self.rows - self.blocks[-1][0] >= self.every:
            self.blocks.append((self.rows, self.mistakes))
            if len(self.blocks) > 1000:
                self.blocks = self.blocks[1::2]
                self.every = max(1, 2 * self.every)


# Bets on mistakes: the share of its stake that each loses at a row that is right.
_BETS = np.array([0.01, 0.03, 0.1, 0.3])


@dataclass
class DriftAlarm:
    """Rings when a stream has more mistakes than it used to, with a stated rate of false alarms.

    While the chance of a mistake, given all rows before, is at most ``level``, each bet b on
    mistakes multiplies its stake at a batch of n rows with m mistakes by::

        L_b = (1 + b (1 - level) / level)^m (1 - b)^(n - m),        E L_b <= 1

    and the statistic R <- (R + 1) L, averaged over bets, reaches ``mean_wait`` after at least
    ``mean_wait`` batches on average (Shiryaev and Roberts; J. Shin, A. Ramdas, A. Rinaldo,
    "E-detectors", 2023): so rare are false alarms, whatever the distribution of the rows.

    Parameters
    ----------
    level : float
        The share of mistakes that is no drift, strictly between 0 and 1.
    mean_wait : float, default=10_000
        At least so many batches lie before a false alarm, on average.

    Attributes
    ----------
    batches : int
        Batches seen since the start, or since :meth:`reset`.
    is_ringing : bool

    Examples
    --------
    >>> from trueline.online.stream import DriftAlarm
    >>> alarm = DriftAlarm(level=0.1, mean_wait=1000)
    >>> [alarm.add(100, mistakes) for mistakes in (9, 12, 8, 40)]
    [False, False, False, True]
    """

    level: float
    mean_wait: float = 10_000.0
    batches: int = 0
    is_ringing: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {self.level!r}.")
        self.reset()

    def reset(self) -> None:
        """Begin anew, as after the model has been changed."""
        self._log = np.full(len(_BETS), -np.inf)  # of R
        self.batches, self.is_ringing = 0, False

    def add(self, rows: int, mistakes: int) -> bool:
        """Count a batch; whether the alarm rings."""
        gain = np.log1p(_BETS * (1 - self.level) / self.level)
        self._log = np.logaddexp(self._log, 0.0)
        self._log += mistakes * gain + (rows - mistakes) * np.log1p(-_BETS)
        self.batches += 1
        mean = np.logaddexp.reduce(self._log) - np.log(len(_BETS))
        self.is_ringing = self.is_ringing or bool(mean >= np.log(self.mean_wait))
        return self.is_ringing


def batches_of(stream: Iterable[Any], width: Callable[[], int]) -> Iterator[tuple[Any, Any, Any]]:
    """Each item of a stream as rows of shape (n, d), labels and weights.

    Parameters
    ----------
    stream : iterable of (x, y) or (x, y, weight)
        x is a row, a mapping, a list of mappings, or a batch.
    width : callable
        Number of columns for hashed rows.
    """
    for item in stream:
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise ValueError(
                "A stream is an iterable of (x, y), or of (x, y, weight); it gave an item of type "
                f"{type(item).__name__}."
            )
        x, y, *rest = item
        weight = rest[0] if rest else None
        if isinstance(x, Mapping):
            x, y, weight = hashed_rows([x], width()), [y], _single(weight)
        elif isinstance(x, list) and x and isinstance(x[0], Mapping):
            x = hashed_rows(x, width())
        elif not sp.issparse(x) and not hasattr(x, "columns"):
            x = np.asarray(x)
            if x.ndim == 1:
                x, y, weight = x.reshape(1, -1), [y], _single(weight)
        yield x, np.asarray(y), weight


def _single(weight: Any) -> Any:
    return None if weight is None else np.array([weight], dtype=np.float64)
