"""A journal of the passes of a fit, from which a fit that was ended goes on where it was.

A fit is deterministic: begun anew it asks for the same products in the same order. What a pass has
summed up (or, of products with one number per row, what each batch gave) is appended to a file,
under a hash of what was asked for; asked again, it is read from there, and only the batches that
are missing are read. The answer is that of a fit that was never ended, to the last bit.

A record is ``magic, hash, batches done, length, payload, CRC-32``. Records are appended and never
changed: one that is cut short, or damaged, ends the journal, and what follows it is dropped.
"""

from __future__ import annotations

import io
import os
import struct
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError

_HEAD = struct.Struct("<4s8sIQ")
_MAGIC = b"TLJ1"
_ABOUT = b"\0" * 8
# Sums are written no more often than this many seconds: as much is read again after a crash.
_EVERY = 2.0


class Journal:
    """Records of finished and unfinished passes in a file.

    Parameters
    ----------
    path : str or path
    about : bytes
        What tells the rows from others: a journal of other rows is refused.
    every : float
        Seconds between two records of a sum.

    Examples
    --------
    >>> import tempfile, os, numpy as np
    >>> from trueline.streams.journal import Journal
    >>> path = os.path.join(tempfile.mkdtemp(), "fit.journal")
    >>> journal = Journal(path, b"these rows")
    >>> key = journal.key("product", np.ones(3))
    >>> journal.note(key, 2, lambda: [np.array([1.0, 2.0])])
    >>> done, (total,) = Journal(path, b"these rows").last(key)
    >>> done, total.tolist()
    (2, [1.0, 2.0])
    """

    def __init__(self, path: str | Path, about: bytes, every: float = _EVERY) -> None:
        self.path, self._every, self._written = Path(path), every, -np.inf
        self._places: dict[bytes, list[tuple[int, int, int]]] = {}
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
            self._append(_ABOUT, 0, about)
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
            magic, key, done, length = _HEAD.unpack(head)
            if magic != _MAGIC:
                break
            rest = file.read(length + 4)
            if len(rest) < length + 4 or crc32(head + rest[:-4]).to_bytes(4, "little") != rest[-4:]:
                break
            self._places.setdefault(key, []).append((done, end + _HEAD.size, length))
            end += _HEAD.size + length + 4
        return end

    def _payload(self, place: tuple[int, int, int]) -> bytes:
        with self._open() as file:
            file.seek(place[1])
            return file.read(place[2])

    def key(self, *asked: Any) -> bytes:
        """A hash of what is asked for: words, arrays and None."""
        hashed = blake2b(digest_size=8)
        for one in asked:
            if isinstance(one, np.ndarray):
                hashed.update(f"{one.shape}{one.dtype.str}".encode())
                hashed.update(np.ascontiguousarray(one).data)
            else:
                hashed.update(repr(one).encode())
        return hashed.digest()

    def last(self, key: bytes) -> tuple[int, list[NDArray[Any]]]:
        """How many batches are in the last record of a key, and its arrays; zero without one."""
        places = self._places.get(key)
        if not places:
            return 0, []
        return places[-1][0], _arrays(self._payload(places[-1]))

    def all(self, key: bytes) -> list[NDArray[Any]]:
        """The arrays of the records of every batch, from the first one on."""
        return [_arrays(self._payload(place))[0] for place in self._places.get(key, ())]

    def note(
        self, key: bytes, done: int, made: Callable[[], Sequence[Any]], *, is_due: bool = True
    ) -> None:
        """Append a record; with ``is_due=False`` only if the last one is some seconds old."""
        if not is_due and time.monotonic() - self._written < self._every:
            return
        payload = io.BytesIO()
        for array in made():
            np.save(payload, np.asarray(array), allow_pickle=False)
        self._append(key, done, payload.getvalue())

    def _append(self, key: bytes, done: int, payload: bytes) -> None:
        head = _HEAD.pack(_MAGIC, key, done, len(payload))
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
        self._places.setdefault(key, []).append((done, self._end + _HEAD.size, len(payload)))
        self._end += _HEAD.size + len(payload) + 4
        self._written = time.monotonic()

    def close(self) -> None:
        """The fit has ended: the file goes."""
        os.unlink(self.path)


def _arrays(payload: bytes) -> list[NDArray[Any]]:
    stream, found = io.BytesIO(payload), []
    while stream.tell() < len(payload):
        found.append(np.load(stream, allow_pickle=False))
    return found
