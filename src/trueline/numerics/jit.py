"""The one Numba decorator, and the one rule for keeping machine code on disk.

Hot loops are module-level functions marked ``@kernel``::

    from trueline.numerics.jit import kernel


    @kernel
    def soft_threshold(z, t):
        return max(abs(z) - t, 0.0) * np.sign(z)


    @kernel(reassociate=True)
    def dot(a, b): ...

What the decorator promises:

- *Light imports.* Decorating neither imports Numba nor compiles.
- *No waiting for small work.* A kernel without machine code is interpreted at first
  (:mod:`trueline.numerics.interpreted`), and compiled when it has used up its steps or its
  arguments are large.
- *Kernels call kernels.* A kernel used inside another one, from any module, is compiled into it,
  without what only calls from Python need: its wrapper, and its place on disk.
- *Honest floats.* Division by zero gives infinity as in NumPy, and the order of operations is the
  order written. ``reassociate=True`` allows the compiler to reorder sums (twice the speed in
  dot-product loops) and to fuse multiply-adds; NaN and infinity keep their meaning.
- *Compiled once per machine.* Machine code is kept in ``<cache>/<key>/``, where ``key`` digests
  every source file of the package that compiles anything and the versions of Python, NumPy, Numba
  and llvmlite. Numba's own cache looks at the kernel's file alone, so that editing a helper in
  another file leaves the old helper's code in use; here an edit of any such file starts an empty
  folder. Kernels therefore use names of such files only (a test sees to it). The newest few
  folders stay.
- *Switches.* ``TRUELINE_COMPILE=always`` compiles at the first call, ``never`` not at all: what is
  on disk is used, the rest interpreted. ``TRUELINE_PURE_PYTHON=1`` leaves functions undecorated
  (debugger, coverage). ``TRUELINE_CACHE_DIR`` moves the cache.
"""

from __future__ import annotations

import gc
import hashlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast, overload

import numpy as np

from trueline.numerics.interpreted import (
    NUMBERS,
    OPERATIONS,
    WHOLE_NUMBERS,
    WORTH_IMPORTING,
    Budget,
    Running,
    arrays_in,
    as_compiled,
    counting,
)
from trueline.numerics.machine_code import disk_cache, label_of, open_folder, user_cache

P = ParamSpec("P")
R = TypeVar("R")

#: Values of TRUELINE_COMPILE.
MODES = ("auto", "always", "never")
_running = Running()
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
        self._shipped: Path | None = None
        self._folders_known = False
        self._labels: set[str] | None = None
        #: Operations that kernels took in Python so far.
        self.interpreted = 0.0
        #: Called with the name of each kernel that was compiled.
        self.after_compiling: Callable[[str], object] = str
        self.mode = os.environ.get("TRUELINE_COMPILE", "auto")
        if self.mode not in MODES:
            raise ValueError(f"TRUELINE_COMPILE={self.mode} is not one of {', '.join(MODES)}.")

    @overload
    def kernel(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def kernel(
        self, *, reassociate: bool = False, whole: Callable[..., Any] | None = None
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def kernel(
        self,
        function: Callable[..., Any] | None = None,
        *,
        reassociate: bool = False,
        whole: Callable[..., Any] | None = None,
    ) -> Any:
        """Mark a module-level function for compilation at its first call.

        ``whole`` is the same with NumPy's whole arrays, called in place of the interpreter; where
        it raises, machine code takes over.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            if os.environ.get("TRUELINE_PURE_PYTHON", "0") not in ("", "0"):
                return function
            lazy = LazyKernel(self, cast(FunctionType, function), reassociate, whole)
            return cast(Callable[P, R], lazy)

        return decorate if function is None else decorate(function)

    def cache_folder(self) -> Path | None:
        """Folder for this exact version of the sources, or None when nothing can be cached."""
        self._find_folders()
        return self._folder

    def write_into(self, base: Path) -> Path | None:
        """Keep machine code below another folder from now on, as a wheel brings it along."""
        with self._lock:
            key = self._key(sys.version_info[:2])
            self._folder = None if key is None else open_folder(base, key)
            self._folders_known = True
            return self._folder

    def _find_folders(self) -> None:
        with self._lock:
            if self._folders_known:
                return
            self._folders_known = True
            key, shared_key = self._key(sys.version), self._key(sys.version_info[:2])
            if key is not None and shared_key is not None:
                self._folder = open_folder(user_cache(self.name), key)
                shipped = self.root / "machine_code" / shared_key
                self._shipped = shipped if shipped.is_dir() else None

    def has_code(self, name: str) -> bool:
        """Whether machine code of the kernel is on disk, or wanted at once.

        For some kind of arguments: to ask for which ones Numba would have to be imported.
        """
        with self._lock:
            if self._labels is None:
                self._find_folders()
                found = [f.glob("*.nbc") for f in (self._folder, self._shipped) if f is not None]
                self._labels = {path.name[:-29] for files in found for path in files}
            return self.mode == "always" or name in self._labels

    @contextmanager
    def telling(self, name: str) -> Iterator[None]:
        """Say in a terminal what it is that takes more than a second."""
        wanted = os.environ.get("TRUELINE_QUIET", "0") in ("", "0") and sys.stderr is not None
        if not (wanted and sys.stderr.isatty()):
            yield
            return
        text = f"{self.name}: compiling kernels for this machine, once: {name}\n"
        timer = threading.Timer(1.0, sys.stderr.write, [text])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def build(self, kernel: LazyKernel, reassociate: bool) -> Any:
        """Return the Numba dispatcher of a kernel, attached to our cache."""
        function = kernel.py_func
        dispatcher = _dispatcher_of(function, reassociate)
        source = Path(function.__code__.co_filename).resolve()
        # NUMBA_DISABLE_JIT makes njit return the function itself.
        if dispatcher is not function and source.is_relative_to(self.root):
            self._find_folders()
            if self._folder is not None or self._shipped is not None:
                dispatcher._cache = disk_cache(self._folder, self._shipped, function)
        if dispatcher is not function:
            _let_wait(dispatcher, kernel)
        return dispatcher

    def _key(self, python: object) -> str | None:
        """Digest of sources and versions; None if a source changed after it was imported."""
        versions = (python, *map(version, ("numpy", "numba", "llvmlite")))
        switches = tuple(os.environ.get(name, "") for name in _CODEGEN_SWITCHES)
        text = repr((self._sources, versions, switches))
        return self._sources and hashlib.sha256(text.encode()).hexdigest()[:24]

    @cached_property
    def _sources(self) -> str | None:
        """Digest of the sources; None if one changed after it was imported.

        In that case (a notebook, an editor and an unlucky moment) the code in memory is not the
        code on disk, and no digest of the files describes it.
        """
        digest = hashlib.sha256()
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
        return digest.hexdigest()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Import Numba and compile without searches for garbage, a fifth of the time and more.

    Both make hundreds of thousands of objects that stay, and every search visits those before.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class NotCompiled(Exception):
    """There is no machine code for these arguments, and to interpret costs less than to compile."""


class LazyKernel:
    """A function that is interpreted while that costs little, then compiled by Numba.

    Attributes
    ----------
    py_func : function
        The function as written.
    """

    def __init__(
        self,
        compiler: Compiler,
        function: FunctionType,
        reassociate: bool,
        whole: Callable[..., Any] | None = None,
    ) -> None:
        if function.__closure__:
            raise TypeError(
                f"kernel {function.__qualname__!r} uses variables of the function around it; "
                "machine code of such a function cannot be kept on disk. Pass them as arguments."
            )
        update_wrapper(self, function)
        self.py_func = function
        self._compiler = compiler
        self._reassociate = reassociate
        self._whole, self._numbers_left = whole, WHOLE_NUMBERS
        self._dispatcher: Any = None
        self._inner: Any = None
        self._budget = Budget(OPERATIONS if compiler.mode == "auto" else math.inf)

    def __call__(self, *args: Any) -> Any:
        dispatcher = self._dispatcher
        if dispatcher is None:
            if self._whole is not None and _running.step is not None:
                return self._whole(*args)  # called by a kernel that is interpreted
            if self._interpretable(args) and not self._code_is_at_hand():
                return self._interpret(args)
            dispatcher = self.dispatcher
        try:
            return dispatcher(*args)
        except NotCompiled:
            return self._interpret(args)

    @property
    def is_ready(self) -> bool:
        """Whether a call takes no interpreter and no compiler."""
        is_wanted = self._compiler.mode == "always"
        return is_wanted or self._dispatcher is not None or self._code_is_at_hand()

    def _code_is_at_hand(self) -> bool:
        """Whether machine code is on disk, and Numba's import (0.6 seconds) done or worth it."""
        compiler = self._compiler
        wanted = "numba" in sys.modules or compiler.mode == "never"
        wanted = wanted or compiler.interpreted > WORTH_IMPORTING
        return wanted and compiler.has_code(self._label)

    def _interpretable(self, args: tuple[Any, ...]) -> bool:
        """Whether to interpret a call for which there is no machine code."""
        if self._compiler.mode != "auto" or _running.step is not None:
            return self._compiler.mode != "always"
        numbers = 0
        for array in arrays_in(args):
            # A sum that starts with a number of Python stays in single precision with NumPy, and
            # is in double precision in machine code.
            if array.dtype == np.float32:
                return False
            numbers += array.size
        if self._whole is not None and self._budget.left > 0:
            self._numbers_left -= numbers
            self._compiler.interpreted += numbers // 10
            return self._numbers_left > 0
        return self._budget.left > 0 and numbers <= NUMBERS

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        if _running.step is not None:  # called by a kernel that is interpreted, at its expense
            return self._counted(_running.step, *args)
        before = [(a, a.copy()) for a in arrays_in(args) if a.flags.writeable]
        budget, left = self._budget, self._budget.left
        _running.step = budget.step
        try:
            with np.errstate(all="ignore"):
                if self._whole is not None:
                    return self._whole(*args)
                return as_compiled(self._counted(budget.step, *args))
        except Exception:
            # No operations are left, or Python refuses what machine code does.
            for array, copy in before:
                array[...] = copy
            if self._compiler.mode == "never":
                raise
            budget.left = 0
        finally:
            _running.step = None
            if self._compiler.mode == "auto":
                self._compiler.interpreted += left - budget.left
        return self(*args)

    @cached_property
    def _label(self) -> str:
        return label_of(self.py_func)

    @cached_property
    def _counted(self) -> Callable[..., Any]:
        return counting(self.py_func, self._compiler._imported_at)

    @property
    def dispatcher(self) -> Any:
        """The Numba dispatcher, built when first asked for."""
        if self._dispatcher is None:
            with self._compiler._lock:
                if self._dispatcher is None:
                    self._dispatcher = self._compiler.build(self, self._reassociate)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        # Numba asks any object it meets for this attribute. Answering with the dispatcher's type
        # makes a lazy kernel callable from compiled code, and is asked only when compiling: a
        # kernel loaded from disk already contains the kernels it calls.
        import numba

        if self._dispatcher is not None:
            return numba.typeof(self._dispatcher)
        with self._compiler._lock:
            if self._inner is None:
                self._inner = _dispatcher_of(self.py_func, self._reassociate, inner=True)
        return numba.typeof(self._inner)

    @property
    def stats(self) -> Any:
        """Numba's record of this process: ``cache_path``, ``cache_hits``, ``cache_misses``."""
        return self.dispatcher.stats

    def __reduce__(self) -> str:
        return cast(str, self.__qualname__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        compiled = self._dispatcher is not None and self._dispatcher.signatures
        state = "compiled" if compiled else "not compiled yet"
        return f"<kernel {self.py_func.__module__}.{self.py_func.__qualname__}, {state}>"


def _dispatcher_of(function: FunctionType, reassociate: bool, inner: bool = False) -> Any:
    """The Numba dispatcher of a function; ``inner``: for calls by other kernels alone.

    The wrappers that are left out take up to a quarter of the time of compiling.
    """
    with no_garbage_collection():
        import numba

        dispatcher = numba.njit(
            nogil=True,
            no_cpython_wrapper=inner,
            no_cfunc_wrapper=True,  # nobody calls kernels from C
            error_model="numpy",
            fastmath={"reassoc", "contract"} if reassociate else False,
        )(function)
    if dispatcher is not function:
        _forget_literals(dispatcher)
    return dispatcher


def _let_wait(dispatcher: Any, kernel: LazyKernel) -> None:
    """Have the dispatcher raise NotCompiled where it would compile and need not."""
    compile_for_args = dispatcher._compile_for_args

    def compile_or_wait(*args: Any) -> Any:
        if kernel._interpretable(args):
            has = getattr(dispatcher._cache, "has", None)
            types = tuple(dispatcher.typeof_pyval(a) for a in args)
            if has is None or not has(types, dispatcher.targetctx):
                raise NotCompiled(kernel)
        compiler, known = kernel._compiler, len(dispatcher.stats.cache_misses)
        with compiler.telling(kernel.py_func.__name__), no_garbage_collection():
            code = compile_for_args(*args)
        if len(dispatcher.stats.cache_misses) > known:
            compiler.after_compiling(label_of(kernel.py_func))
        return code

    # The attribute by which Numba asks for code that it does not have.
    dispatcher._compile_for_args = compile_or_wait


def _forget_literals(dispatcher: Any) -> None:
    """Have kernels that call this one with a number in the source share the code for any number.

    Numba would compile ``f(x, k)`` twice where ``k = 0`` comes before a loop: for zero, and for
    all integers. The optimiser puts short kernels into their callers, constants included, anyway.
    """
    from numba import types

    get_call_template = dispatcher.get_call_template

    def of_any_number(args: Any, kws: Any) -> Any:
        return get_call_template(tuple(map(types.unliteral, args)), kws)

    dispatcher.get_call_template = of_any_number


def is_ready(kernel: Callable[..., Any]) -> bool:
    """Whether machine code of a kernel is there: what the planner asks of its cost."""
    return getattr(kernel, "is_ready", False)


compiler = Compiler(Path(__file__).parents[1], "trueline")
kernel = compiler.kernel
has_code = compiler.has_code
