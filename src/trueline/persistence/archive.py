"""The archive of a model file: read with suspicion, written whole or not at all.

A file that is saved has no name while it is written where the system can do that (``O_TMPFILE`` on
Linux): a process that is killed then leaves nothing behind. A new file gets its name once it is
complete. An old one can only be replaced by renaming, so the complete file has a temporary name
between two consecutive system calls; should the process be killed right there, or on a system
without nameless files, the next save in that folder removes what was left. The owner of a temporary
file holds a lock on it, and the system releases locks of processes that are gone.

Entries are stored without compression. Coefficients hardly compress, and it means that a file can
never unfold into more than its own size: whatever an entry claims is compared with the file's true
length before any memory is taken.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from trueline.errors import ModelFileError
from trueline.persistence.codec import ARRAY_KINDS, LONGEST_INTEGER

_locks: Any
try:
    import fcntl as _locks
except ImportError:  # Windows, where a file that is open cannot be removed anyway
    _locks = None

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
# The same in every folder and for every model, so that any save recognises what another one left.
_TEMPORARY = re.compile(r"\.trueline-[0-9a-f]{16}\.tmp")
# A pipe without a writer is opened at once, without waiting for one.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _kind(mode: int) -> str | None:
    """What there is instead of a regular file, or None."""
    if stat.S_ISREG(mode):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "not a regular file")


# --- reading -------------------------------------------------------------------------------------


@contextmanager
def open_regular(path: Path) -> Iterator[IO[bytes]]:
    """A regular file for reading; anything else is refused, and never waited for."""
    descriptor = _open_to_read(path)
    try:
        # What was opened is looked at, not what the name stands for by now.
        _check_readable(os.fstat(descriptor).st_mode)
        file = os.fdopen(descriptor, "rb", closefd=False)
        with file:
            yield file
    finally:
        os.close(descriptor)


def _open_to_read(path: Path) -> int:
    try:
        return os.open(path, _READ)
    except FileNotFoundError:
        raise
    except OSError:  # sockets, and on some systems folders, cannot even be opened
        _check_readable(path.stat().st_mode)
        raise


def _check_readable(mode: int) -> None:
    if kind := _kind(mode):
        advice = "give the name of a file in it" if stat.S_ISDIR(mode) else "copy it to a file"
        raise ModelFileError(f"it is {kind}, and a model is read from a regular file: {advice}")


# --- writing -------------------------------------------------------------------------------------


def replace_file(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file whole, in place of an older one or as a new one.

    Symbolic links are followed: what they point to is replaced, not the link. The mode of an older
    file is kept. What is not a regular file is never replaced.

    Parameters
    ----------
    path : Path
    write : callable
        Gets the open file. If it fails, everything is as it was before.
    """
    mode = _mode_of_old(path)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(target.parent))
    _remove_strays(target.parent)
    if not _replace_without_name(target, mode, write):
        _replace_by_name(target, mode, write)


def _mode_of_old(path: Path) -> int | None:
    """The permissions of the file that is about to be replaced; None if there is none."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if kind := _kind(mode):
        advice = (
            f"give the name of a file in it, such as {path / 'model.trueline'}"
            if stat.S_ISDIR(mode)
            else "give the name of a regular file, or of one that does not exist yet"
        )
        raise ModelFileError(f"{path} is {kind}, which a model cannot replace: {advice}.")
    return stat.S_IMODE(mode)


def _replace_without_name(
    target: Path, mode: int | None, write: Callable[[IO[bytes]], None]
) -> bool:
    """Write a file that gets a name once it is complete; False where that cannot be done."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    try:
        descriptor = os.open(target.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError:  # the file system has none; if it is something else, it happens again by name
        return False
    with os.fdopen(descriptor, "wb") as file:
        _lock(file)
        _write(file, mode, write)
        if mode is None:
            try:
                return _link(descriptor, target)
            except FileExistsError:  # by now there is one
                pass
        temporary = _temporary_name(target)
        _mode_of_old(target)  # writing took a while: something else may stand there by now
        try:
            if not _link(descriptor, temporary):
                return False
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    return True


def _link(descriptor: int, path: Path) -> bool:
    """Give an open file without a name one (``man 2 open``); False if the system refuses."""
    try:
        # Only with a folder given does Python call linkat, which follows the link in /proc; of
        # paths that are absolute the folder is not used.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
    except FileExistsError:
        raise
    except OSError:  # no /proc, or hard links are forbidden
        return False
    return True


def _replace_by_name(target: Path, mode: int | None, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file under a temporary name, then rename it."""
    temporary, file = _create_locked(target)
    try:
        with file:
            _write(file, mode, write)
            _mode_of_old(target)  # as above
            if _locks is not None:  # while the lock is held
                os.replace(temporary, target)
        if _locks is None:  # Windows renames closed files only
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _create_locked(target: Path) -> tuple[Path, IO[bytes]]:
    """A temporary file beside the target that is not taken for a stray."""
    while True:
        temporary = _temporary_name(target)
        file = temporary.open("xb")
        _lock(file)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # another save removed it before it was locked


def _lock(file: IO[bytes]) -> None:
    if _locks is not None:
        with suppress(OSError):  # where there are no locks, nothing is taken for a stray either
            _locks.flock(file.fileno(), _locks.LOCK_EX)


def _write(file: IO[bytes], mode: int | None, write: Callable[[IO[bytes]], None]) -> None:
    """Everything on disk, with the permissions it will have from the first byte on."""
    if mode is not None and hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), mode)
    write(file)
    file.flush()
    os.fsync(file.fileno())


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".trueline-{secrets.token_hex(8)}.tmp")


def _remove_strays(folder: Path) -> None:
    """Remove the temporary files of processes that were killed."""
    try:
        names = [entry for entry in os.scandir(folder) if _TEMPORARY.fullmatch(entry.name)]
    except PermissionError:  # a folder that can be written to need not be readable
        return
    for entry in names:
        # Of another user, in use, or just gone: none of it is a reason not to save.
        with suppress(OSError):
            _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    """Remove a temporary file unless its owner lives (then an ``OSError`` comes out)."""
    if _locks is None:
        os.unlink(path)
        return
    descriptor = _open_stray(path)
    try:
        _locks.flock(descriptor, _locks.LOCK_EX | _locks.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(descriptor)


def _open_stray(path: str) -> int:
    """For writing if possible: over a network, locking needs it."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, os.O_RDWR | flags)
    except PermissionError:
        return os.open(path, os.O_RDONLY | flags)


HEADER = "model.json"

# Text takes up to some thirty times its size once parsed; no model's header comes near this.
_LONGEST_HEADER = 1 << 28
# The same model gives the same bytes whenever it is saved.
_DATE = (1980, 1, 1, 0, 0, 0)


def _array_name(index: int) -> str:
    return f"arrays/{index}.npy"


def _as_json(header: Any) -> bytes:
    """Text as it is; all but ASCII escaped if it holds half of a pair of surrogates."""
    for is_escaped in (False, True):
        text = json.dumps(header, allow_nan=False, ensure_ascii=is_escaped, separators=(",", ":"))
        try:
            return text.encode()
        except UnicodeEncodeError:
            continue
    raise AssertionError("ASCII can always be encoded")


def write_archive(path: Path, header: Any, arrays: list[np.ndarray]) -> None:
    """Write a header and its arrays; an existing file is replaced only once all is on disk."""
    data = _as_json(header)
    if len(data) > _LONGEST_HEADER:
        raise ModelFileError(
            f"This model has {len(data)} bytes of names, texts and other values that are not "
            f"arrays, and a model file holds at most {_LONGEST_HEADER}."
        )

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo(HEADER, _DATE), data)
            for index, array in enumerate(arrays):
                entry = zipfile.ZipInfo(_array_name(index), _DATE)
                with archive.open(entry, "w", force_zip64=array.nbytes > 1 << 30) as out:
                    npy.write_array(out, array, allow_pickle=False)

    replace_file(path, write)


def read_archive(path: Path) -> tuple[Any, list[np.ndarray]]:
    """The header and the arrays of a file; ``ModelFileError`` for whatever is odd about it."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                entries = _check_entries(archive, size)
                header = _read_header(archive, entries[HEADER])
                names = map(_array_name, range(len(entries) - 1))
                return header, [_read_array(archive, entries[name]) for name in names]
        except ModelFileError:
            raise
        except zipfile.BadZipFile as error:
            raise ModelFileError(f"it is not a complete model file ({error})") from error
        except RecursionError as error:
            raise ModelFileError("its header is nested too deeply") from error
        # Bytes that are wrong on purpose make the readers of zip, JSON and .npy fail in many ways
        # (ValueError, KeyError, RuntimeError, struct.error, MemoryError ...); all mean the same.
        except Exception as error:
            raise ModelFileError(f"it is damaged ({type(error).__name__}: {error})") from error


def _check_entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The entries by name: exactly the expected ones, stored plainly, no larger than the file."""
    entries = {entry.filename: entry for entry in archive.infolist()}
    expected = {HEADER, *(_array_name(index) for index in range(len(entries) - 1))}
    if HEADER not in entries:
        raise ModelFileError(f"it is a zip archive without {HEADER}")
    if unexpected := sorted(entries.keys() - expected):
        raise ModelFileError(f"it holds an entry that does not belong there, {unexpected[0]!r}")
    if len(archive.infolist()) != len(entries):
        raise ModelFileError("it holds two entries of the same name")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries.values()):
        raise ModelFileError("it is compressed, which model files never are")
    if sum(entry.file_size for entry in entries.values()) > size:
        raise ModelFileError("its entries claim to be larger than the file")
    return entries


def _read_header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Any:
    if entry.file_size > _LONGEST_HEADER:
        raise ModelFileError(f"its header is too long ({entry.file_size} bytes)")
    return json.loads(
        archive.read(entry).decode(),
        parse_constant=_refuse_constant,
        parse_int=None if 0 < sys.get_int_max_str_digits() <= LONGEST_INTEGER else _integer,
        object_pairs_hook=_distinct,
    )


def _refuse_constant(name: str) -> Any:
    raise ModelFileError(f"its header holds {name}, which is not JSON")


def _integer(digits: str) -> int:
    """Without a limit, as where Python's own was lifted, this takes quadratic time."""
    if len(digits) > LONGEST_INTEGER:
        raise ModelFileError(f"its header holds an integer of {len(digits)} digits")
    return int(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON leaves repeated keys open; here they would let two readers see two models."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("its header repeats a key")
    return found


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """One array, its claims checked before its memory is taken."""
    with archive.open(entry) as file:
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        if version not in read:
            raise ModelFileError(f"{entry.filename} is of .npy version {version}")
        shape, fortran_order, dtype = read[version](file)
        if dtype.kind not in ARRAY_KINDS or dtype.hasobject or not dtype.itemsize:
            raise ModelFileError(f"{entry.filename} holds {dtype}, not numbers or strings")
        if dtype.itemsize * math.prod(shape) != entry.file_size - file.tell():
            raise ModelFileError(f"{entry.filename} does not have the size it claims")
        array = np.empty(shape, dtype, order="F" if fortran_order else "C")
        data = np.frombuffer(file.read(), dtype=np.uint8)  # to the end: compares the checksum
        if array.size:
            array.reshape(-1, order="A").view(np.uint8)[:] = data
        if dtype.kind == "U" and array.size and not _are_characters(array):
            raise ModelFileError(f"{entry.filename} holds strings that are not Unicode")
        return array


def _are_characters(array: np.ndarray) -> bool:
    """NumPy itself would only stumble over them later, when one is printed."""
    codes = array.reshape(-1, order="A").view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
    return int(codes.max(initial=0)) <= sys.maxunicode
