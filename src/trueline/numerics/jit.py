"""The one Numba decorator, and the one rule for keeping machine code on disk.

Hot loops are module-level functions marked ``@kernel``::

    from trueline.numerics.jit import kernel


    @kernel
    def soft_threshold(z, t):
        return max(abs(z) - t, 0.0) * np.sign(z)


    @kernel(reassociate=True)
    def dot(a, b): ...

What the decorator promises:

- *Light imports.* Decorating neither imports Numba nor compiles. Both happen at the first call.
- *Kernels call kernels.* A kernel used inside another one, from any module, is compiled into it.
- *Honest floats.* Division by zero gives infinity as in NumPy, and the order of operations is the
  order written. ``reassociate=True`` allows the compiler to reorder sums (twice the speed in
  dot-product loops) and to fuse multiply-adds; NaN and infinity keep their meaning.
- *Compiled once per machine.* Machine code is kept in ``<cache>/<key>/``, where ``key`` digests
  every source file of the package that compiles anything and the versions of Python, NumPy, Numba
  and llvmlite. Numba's own cache looks at the kernel's file alone, so that editing a helper in
  another file leaves the old helper's code in use; here an edit of any such file starts an empty
  folder. Kernels therefore use names of such files only (a test sees to it). The newest few
  folders stay.
- *Switches.* ``TRUELINE_PURE_PYTHON=1`` leaves functions undecorated (debugger, coverage).
  ``TRUELINE_CACHE_DIR`` moves the cache. A folder that cannot be written means no cache.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast, overload

__all__ = ["Compiler", "kernel"]

P = ParamSpec("P")
R = TypeVar("R")

_KEPT_FOLDERS = 4
_FOLDER_NAME = re.compile(r"[0-9a-f]{24}")
# Environment variables by which Numba changes the code it generates.
_CODEGEN_SWITCHES = (
    "NUMBA_OPT",
    "NUMBA_BOUNDSCHECK",
    "NUMBA_LOOP_VECTORIZE",
    "NUMBA_SLP_VECTORIZE",
)


class Compiler:
    """Makes the ``kernel`` decorator of one package.

    Parameters
    ----------
    root : Path
        Folder of the package. The Python files below it that compile anything enter the cache key,
        and only functions defined below it are cached: the key knows nothing of others.
    name : str
        Name of the folder inside the user's cache directory.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.root = root.resolve()
        self.name = name
        self._imported_at = time.time()
        self._lock = threading.RLock()
        self._folder: Path | None = None
        self._folder_known = False

    @overload
    def kernel(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def kernel(
        self, *, reassociate: bool = False
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def kernel(
        self, function: Callable[..., Any] | None = None, *, reassociate: bool = False
    ) -> Any:
        """Mark a module-level function for compilation at its first call."""

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            if os.environ.get("TRUELINE_PURE_PYTHON", "0") not in ("", "0"):
                return function
            lazy = LazyKernel(self, cast(FunctionType, function), reassociate)
            return cast(Callable[P, R], lazy)

        return decorate if function is None else decorate(function)

    def cache_folder(self) -> Path | None:
        """Folder for this exact version of the sources, or None when nothing can be cached."""
        with self._lock:
            if not self._folder_known:
                self._folder = self._open_folder()
                self._folder_known = True
            return self._folder

    def build(self, function: FunctionType, reassociate: bool) -> Any:
        """Return the Numba dispatcher of ``function``, attached to our cache."""
        import numba

        dispatcher = numba.njit(
            nogil=True,
            error_model="numpy",
            fastmath={"reassoc", "contract"} if reassociate else False,
        )(function)
        source = Path(function.__code__.co_filename).resolve()
        # NUMBA_DISABLE_JIT makes njit return the function itself.
        if dispatcher is not function and source.is_relative_to(self.root):
            folder = self.cache_folder()
            if folder is not None:
                dispatcher._cache = _make_disk_cache(folder, function)
        return dispatcher

    def _open_folder(self) -> Path | None:
        key = self._key()
        if key is None:
            return None
        base = _user_cache(self.name)
        folder = base / key
        try:
            fresh = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            tempfile.TemporaryFile(dir=folder).close()
            os.utime(folder)  # in use now: pruning goes by this time
            if fresh:
                _prune(base)
        except OSError:
            return None
        return folder

    def _key(self) -> str | None:
        """Digest of sources and versions; None if a source changed after it was imported.

        In that case (a notebook, an editor and an unlucky moment) the code in memory is not the
        code on disk, and no digest of the files describes it.
        """
        import llvmlite
        import numba
        import numpy

        digest = hashlib.sha256()
        versions = (sys.version, numpy.__version__, numba.__version__, llvmlite.__version__)
        switches = tuple(os.environ.get(name, "") for name in _CODEGEN_SWITCHES)
        digest.update(repr((versions, switches)).encode())
        try:
            for path in sorted(self.root.rglob("*.py")):
                content = path.read_bytes()
                if b"@kernel" not in content and b"numba" not in content:
                    continue
                if path.stat().st_mtime > self._imported_at:
                    return None
                digest.update(f"{path.relative_to(self.root).as_posix()}:{len(content)}:".encode())
                digest.update(content)
        except OSError:
            return None
        return digest.hexdigest()[:24]


class LazyKernel:
    """A function that Numba compiles when it is first called.

    Attributes
    ----------
    py_func : function
        The function as written.
    """

    def __init__(self, compiler: Compiler, function: FunctionType, reassociate: bool) -> None:
        if function.__closure__:
            raise TypeError(
                f"kernel {function.__qualname__!r} uses variables of the function around it; "
                "machine code of such a function cannot be kept on disk. Pass them as arguments."
            )
        update_wrapper(self, function)
        self.py_func = function
        self._compiler = compiler
        self._reassociate = reassociate
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        dispatcher = self._dispatcher
        if dispatcher is None:
            dispatcher = self.dispatcher
        return dispatcher(*args)

    @property
    def dispatcher(self) -> Any:
        """The Numba dispatcher, built when first asked for."""
        if self._dispatcher is None:
            with self._compiler._lock:
                if self._dispatcher is None:
                    self._dispatcher = self._compiler.build(self.py_func, self._reassociate)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        # Numba asks any object it meets for this attribute. Answering with the dispatcher's type
        # makes a lazy kernel callable from compiled code, and is asked only when compiling: a
        # kernel loaded from disk already contains the kernels it calls.
        import numba

        return numba.typeof(self.dispatcher)

    @property
    def stats(self) -> Any:
        """Numba's record of this process: ``cache_path``, ``cache_hits``, ``cache_misses``."""
        return self.dispatcher.stats

    def __reduce__(self) -> str:
        return cast(str, self.__qualname__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        state = "not compiled yet" if self._dispatcher is None else "compiled"
        return f"<kernel {self.py_func.__module__}.{self.py_func.__qualname__}, {state}>"


def _make_disk_cache(folder: Path, function: FunctionType) -> Any:
    """Cache of one kernel: one file per signature and processor, in the shape Numba asks for.

    Numba's own store numbers its files and lists them in an index that is rewritten without a
    lock. Two processes that compile different signatures at once can both take number 1, and one
    signature is then served the machine code of the other. Here a file is named by a digest of
    what it holds, repeats it inside, and appears by an atomic rename, so nothing can be confused.
    """
    from numba.core.caching import _Cache
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

    # The folder's name digests the sources, so the place of a function identifies its code.
    identity = (function.__module__, function.__qualname__, function.__code__.co_firstlineno)
    label = re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")[-80:]

    class DiskCache(_Cache):
        enabled = True

        @property
        def cache_path(self) -> str:
            return str(folder)

        def enable(self) -> None:
            self.enabled = True

        def disable(self) -> None:
            self.enabled = False

        def flush(self) -> None:
            for path in folder.glob(f"{label}-*.nbc"):
                path.unlink(missing_ok=True)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            if not self.enabled:
                return None
            target_context.refresh()
            path, key = self._locate(sig, target_context.codegen())
            try:
                stored_key, payload = pickle.loads(path.read_bytes())
                if stored_key != key:
                    return None
                return CompileResult._rebuild(target_context, *payload)
            except Exception:
                # Absent or damaged: a miss. The kernel is compiled again and the file replaced.
                return None

        def save_overload(self, sig: Any, compiled: Any) -> None:
            # Same conditions as Numba's: such code holds addresses of this very process.
            if not self.enabled or compiled.lifted or compiled.library.has_dynamic_globals:
                return
            path, key = self._locate(sig, compiled.codegen)
            if " at 0x" in key:
                return  # a function passed as argument: its type names an address of this process
            content = dumps((key, compiled._reduce()))
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                _write_atomically(path, content)
            except OSError:
                self.enabled = False  # full disk, folder taken away: go on without

        def _locate(self, sig: Any, codegen: Any) -> tuple[Path, str]:
            key = repr((identity, sig, codegen.magic_tuple()))
            return folder / f"{label}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc", key

    return DiskCache()


def _write_atomically(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _prune(base: Path) -> None:
    """Remove all but the most recently used folders of earlier versions of the sources."""
    folders = [p for p in base.iterdir() if _FOLDER_NAME.fullmatch(p.name)]
    folders.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for old in folders[_KEPT_FOLDERS:]:
        shutil.rmtree(old, ignore_errors=True)


def _user_cache(name: str) -> Path:
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


_compiler = Compiler(Path(__file__).parents[1], "trueline")
kernel = _compiler.kernel
