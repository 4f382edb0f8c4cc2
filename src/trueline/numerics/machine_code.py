"""Machine code on disk: the user's cache, and what a wheel brings along.

A wheel for one kind of machine brings code that was compiled when it was built, for a level of
processors rather than for the very one that built it. It is read where the user's own cache has
nothing, if the processor has all features of the level, and the versions of Python, NumPy, Numba
and llvmlite are those it was built with; else as if there were none.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

#: Machine -> names of the processor and of the features that LLVM generates code for.
LEVELS = {
    "x86_64": ("x86-64-v3", "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2"),
    "aarch64": ("generic", "+neon"),
}
_KEPT_FOLDERS = 4
_FOLDER_NAME = re.compile(r"[0-9a-f]{24}")
# Whoever can write here decides what runs: only the owner may.
_MODE = 0o755


def level_of_machine() -> tuple[str, str] | None:
    """The level that wheels for machines like this one are built for."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return LEVELS.get(machine)


@cache
def level_of_host() -> tuple[str, str] | None:
    """The same if this very processor has all its features."""
    from llvmlite.binding import get_host_cpu_features

    level, features = level_of_machine(), get_host_cpu_features()
    if level is None or not all(features.get(name[1:]) for name in level[1].split(",")):
        return None
    return level


def open_folder(base: Path, key: str) -> Path | None:
    """The folder of a key, made if it can be; None without one, or if anybody could write to it."""
    folder = base / key
    try:
        base.mkdir(parents=True, exist_ok=True, mode=_MODE)
        fresh = not folder.is_dir()
        folder.mkdir(exist_ok=True, mode=_MODE)
        if fresh:
            prune(base)
        os.utime(folder)  # in use now: pruning goes by this time
    except OSError:
        pass  # not ours: it may still be read
    try:
        open_to_all = any(p.stat().st_mode & stat.S_IWOTH for p in (base, folder))
    except OSError:
        return None
    return None if open_to_all and sys.platform != "win32" else folder


def label_of(function: FunctionType) -> str:
    """What the names of a kernel's files on disk begin with."""
    return re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")[-80:]


def disk_cache(folder: Path | None, shipped: Path | None, function: FunctionType) -> Any:
    """Cache of one kernel: one file per signature and processor, in the shape Numba asks for.

    Numba's own store numbers its files and lists them in an index that is rewritten without a
    lock. Two processes that compile different signatures at once can both take number 1, and one
    signature is then served the machine code of the other. Here a file is named by a digest of
    what it holds, repeats it inside, and appears by an atomic rename, so nothing can be confused.

    Parameters
    ----------
    folder : Path, optional
        Is read and written, as far as permissions allow.
    shipped : Path, optional
        Is read after it: code for the level of this machine.
    """
    from numba.core.caching import _Cache
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

    # The folder's name digests the sources, so the place of a function identifies its code.
    identity = (function.__module__, function.__qualname__, function.__code__.co_firstlineno)
    label = label_of(function)

    class DiskCache(_Cache):
        enabled = True
        writable = folder is not None

        @property
        def cache_path(self) -> str:
            return str(folder or shipped)

        def enable(self) -> None:
            self.enabled = True

        def disable(self) -> None:
            self.enabled = False

        def flush(self) -> None:
            for path in folder.glob(f"{label}-*.nbc") if folder is not None else ():
                path.unlink(missing_ok=True)

        def has(self, sig: Any, target_context: Any) -> bool:
            """Whether there is a file for these arguments."""
            return any(path.exists() for path, _ in self._places(sig, target_context.codegen()))

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            target_context.refresh()
            for path, key in self._places(sig, target_context.codegen()) if self.enabled else ():
                try:
                    stored_key, payload = pickle.loads(path.read_bytes())
                    if stored_key == key:
                        return CompileResult._rebuild(target_context, *payload)
                except Exception:
                    # Absent or damaged: a miss. The kernel is compiled again, the file replaced.
                    continue
            return None

        def save_overload(self, sig: Any, compiled: Any) -> None:
            # Same conditions as Numba's: such code holds addresses of this very process.
            dynamic = compiled.lifted or compiled.library.has_dynamic_globals
            if not (self.enabled and self.writable) or dynamic or folder is None:
                return
            path, key = self._place(folder, sig, compiled.codegen.magic_tuple())
            if " at 0x" in key:
                return  # a function passed as argument: its type names an address of this process
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=_MODE)
                _write_atomically(path, dumps((key, compiled._reduce())))
            except OSError:
                self.writable = False  # full disk, folder of another user: go on without

        def _places(self, sig: Any, codegen: Any) -> Iterator[tuple[Path, str]]:
            own = codegen.magic_tuple()
            if folder is not None:
                yield self._place(folder, sig, own)
            level = level_of_host()
            if shipped is not None and level is not None:
                yield self._place(shipped, sig, (own[0], *level))

        def _place(self, where: Path, sig: Any, processor: tuple[str, ...]) -> tuple[Path, str]:
            key = repr((identity, sig, processor))
            return where / f"{label}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc", key

    return DiskCache()


def _write_atomically(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # for all to read: an image may be made by one user for others
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def prune(base: Path) -> None:
    """Remove all but the most recently used folders of earlier versions of the sources."""
    folders = [p for p in base.iterdir() if _FOLDER_NAME.fullmatch(p.name)]
    folders.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for old in folders[_KEPT_FOLDERS:]:
        shutil.rmtree(old, ignore_errors=True)


def user_cache(name: str) -> Path:
    """The folder where this user keeps what can be made again."""
    chosen = os.environ.get("TRUELINE_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser() / name
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / name
