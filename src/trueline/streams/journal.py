"""A journal of the passes of a fit, from which a fit that was ended goes on where it was.

A fit is deterministic: begun anew it asks for the same products in the same order. What each
batch gave is appended to a file, under a hash of what was asked for; asked again, it is read from
there, and only the batches that are missing are read. The answer is that of a fit that was never
ended, to the last bit.

A record is ``magic, hash, length, payload, CRC-32``. Records are appended and never
changed: one that is cut short, or damaged, ends the journal, and what follows it is dropped.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import IO, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from trueline.design.base import SecondMoments
from trueline.errors import TableError
from trueline.moments import Moments

_HEAD = struct.Struct("<4s8sQ")
_MAGIC = b"TLJ1"
_ABOUT = b"\0" * 8


class Journal:
    """Records of finished and unfinished passes in a file.

    Parameters
    ----------
    path : str or path
    about : bytes
        What tells the rows from others: a journal of other rows is refused.

    Examples
    --------
    >>> import tempfile, os, numpy as np
    >>> from trueline.streams.journal import Journal
    >>> path = os.path.join(tempfile.mkdtemp(), "fit.journal")
    >>> journal = Journal(path, b"these rows")
    >>> key = journal.key("product", np.ones(3))
    >>> journal.note(key, np.array([1.0, 2.0]))
    >>> [value.tolist() for value in Journal(path, b"these rows").all(key)]
    [[1.0, 2.0]]
    """

    def __init__(self, path: str | Path, about: bytes) -> None:
        self.path = Path(path)
        self._places: dict[bytes, list[tuple[int, int]]] = {}
        try:
            self.path.touch()
            with self._open() as file:
                self._end = self._read(file)
        except OSError as error:
            raise TableError(f"The checkpoint {path} cannot be written: {error}.") from error
        known = self._places.get(_ABOUT)
        if known is None:
            if self.path.stat().st_size and self._end == 0:
                raise TableError(f"{path} is no checkpoint: name another file, or delete it.")
            self._append(_ABOUT, about)
        elif self._payload(known[0]) != about:
            raise TableError(
                f"The checkpoint {path} was written for other rows, or these have changed: delete "
                "it to begin anew, or name another file."
            )

    def _open(self) -> IO[bytes]:
        return self.path.open("r+b")

    def _read(self, file: IO[bytes]) -> int:
        """Find all records; where the last whole one ends."""
        end = 0
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            magic, key, length = _HEAD.unpack(head)
            if magic != _MAGIC:
                break
            rest = file.read(length + 4)
            if len(rest) < length + 4 or crc32(head + rest[:-4]).to_bytes(4, "little") != rest[-4:]:
                break
            self._places.setdefault(key, []).append((end + _HEAD.size, length))
            end += _HEAD.size + length + 4
        return end

    def _payload(self, place: tuple[int, int]) -> bytes:
        with self._open() as file:
            file.seek(place[0])
            return file.read(place[1])

    def key(self, *asked: Any) -> bytes | None:
        """A hash of what is asked for; None if something in it has no name in another process."""
        hashed = blake2b(digest_size=8)
        try:
            for one in asked:
                _tell(one, hashed.update)
        except TypeError:
            return None
        return hashed.digest()

    def all(self, key: bytes) -> Iterator[Any]:
        """What the batches gave, from the first one on."""
        for place in self._places.get(key, ()):
            yield _value(_arrays(self._payload(place)))

    def note(self, key: bytes, value: Any) -> None:
        """Append what one batch gave."""
        if not isinstance(value, np.ndarray | SecondMoments | list | tuple):
            return  # it is asked for anew
        payload = io.BytesIO()
        for array in _flat(value):
            np.save(payload, np.asarray(array), allow_pickle=False)
        self._append(key, payload.getvalue())

    def _append(self, key: bytes, payload: bytes) -> None:
        head = _HEAD.pack(_MAGIC, key, len(payload))
        try:
            with self._open() as file:
                file.seek(self._end)
                file.truncate()
                file.write(head + payload + crc32(head + payload).to_bytes(4, "little"))
        except OSError as error:
            raise TableError(
                f"The checkpoint {self.path} cannot be written ({error.strerror}). Nothing is "
                "lost: all passes before are in it. Make room, and run the same lines again."
            ) from error
        self._places.setdefault(key, []).append((self._end + _HEAD.size, len(payload)))
        self._end += _HEAD.size + len(payload) + 4

    def close(self) -> None:
        """The fit has ended: the file goes."""
        os.unlink(self.path)


def _arrays(payload: bytes) -> list[NDArray[Any]]:
    stream, found = io.BytesIO(payload), []
    while stream.tell() < len(payload):
        found.append(np.load(stream, allow_pickle=False))
    return found


def _tell(one: Any, update: Callable[[Any], object]) -> None:
    """Feed a hash with a value, or with a function and what it has closed over."""
    if isinstance(one, np.ndarray) and one.dtype != object:
        update(f"{one.shape}{one.dtype.str}".encode())
        update(np.ascontiguousarray(one).data)
    elif one is None or isinstance(one, str | bytes | int | float | slice):
        update(f"{type(one).__name__} {one!r}".encode())
    elif isinstance(one, tuple | list):
        update(f"{len(one)} values".encode())
        for each in one:
            _tell(each, update)
    elif is_dataclass(one):  # a loss
        update(f"{type(one).__qualname__}".encode())
        for field in fields(one):
            _tell(getattr(one, field.name), update)
    elif isinstance(one, FunctionType):
        update(f"{one.__module__} {one.__qualname__}".encode())
        for cell in one.__closure__ or ():
            _tell(cell.cell_contents, update)
    else:
        raise TypeError


def _flat(value: Any) -> list[Any]:
    """Arrays that tell a value: an array, sums of some kind, or moments of some folds."""
    if isinstance(value, SecondMoments):
        return [np.array([1]), *value]
    if isinstance(value, tuple):
        return [np.array([3]), value[0][0], *value[1:]]
    if not isinstance(value, list):
        return [np.array([0]), value]
    present = [one is not None for one in value]
    every = [getattr(one, each.name) for one in value if one for each in fields(Moments)]
    return [np.array([2, *present]), *every]


def _value(arrays: list[NDArray[Any]]) -> Any:
    """The value that such arrays tell."""
    (kind, *present), given = arrays[0].tolist(), iter(arrays[1:])
    plain: Any = (one.item() if one.ndim == 0 else one for one in given)
    if kind == 0:
        return arrays[1]
    if kind == 1:
        return SecondMoments(*plain)
    if kind == 3:
        return [arrays[1]], *arrays[2:]
    count = len(fields(Moments))
    return [Moments(*islice(plain, count)) if one else None for one in present]
