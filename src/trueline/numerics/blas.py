"""BLAS and LAPACK in the form that is needed here, and the threads over them.

G += A^T A for a block of rows, on one triangle, in place, without the interpreter's lock: NumPy's
``A.T @ A`` fills both triangles of a new matrix each time, SciPy's ``dsyrk`` keeps the lock. SciPy
publishes the address of its BLAS for compiled code (``scipy.linalg.cython_blas``); called through
ctypes it lets other threads run. Where that is not possible NumPy does the work.

Singular values where LAPACK's divide and conquer (gesdd, which NumPy calls) gives up, as it does on
some matrices with many equal rows and columns: QR iterations (gesvd) take longer, and do not.

There is one small thread pool of our own, over single-threaded BLAS. Two threads that each run
single-threaded BLAS on row blocks form a Gram matrix nearly twice as fast as one call of a threaded
BLAS, because every block is read from memory once and stays in cache. Work is cut into a number of
strands that depends on the data alone, each strand runs its blocks in order, and the strands'
results are folded in order: the answer does not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]


@cache
def _dsyrk() -> Callable[..., None] | None:
    """SciPy's dsyrk as a foreign function; None if it is not as expected."""
    try:
        from scipy.linalg import cython_blas

        capsule = cython_blas.__pyx_capi__["dsyrk"]
        name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
        name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        signature = name(capsule)
    except (ImportError, AttributeError, KeyError):
        return None
    words = [word.strip().split()[0] for word in signature.decode().split("(")[1].split(",")]
    integers = [words[i] for i in (2, 3, 6, 9)]
    if len(words) != 10 or integers != ["int"] * 4:  # a BLAS of 64-bit integers, say
        return None
    integer, double = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
    text, address = ctypes.c_char_p, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(
        None, text, text, integer, integer, double, address, integer, double, address, integer
    )
    return kind(pointer(capsule, signature))


#: So few columns are a matter of calls, not of multiplications.
FEW_COLUMNS = 64


def add_gram(block: Array, gram: Array) -> None:
    """Add block^T block to the lower triangle of gram, which is C-contiguous.

    The rows of the block are neighbours in memory, or its columns are.

    What stands above the diagonal is left without meaning (:func:`symmetrised` mirrors it). Where
    a matrix has few columns, a call of NumPy's costs less than a foreign one.
    """
    dsyrk = None if len(gram) <= FEW_COLUMNS else _dsyrk()
    if dsyrk is None:
        gram += block.T @ block
        return
    m, d = block.shape
    one = ctypes.byref(ctypes.c_double(1.0))
    rows, columns = ctypes.byref(ctypes.c_int(m)), ctypes.byref(ctypes.c_int(d))
    # Fortran reads the rows of a C-ordered matrix as columns: its upper triangle is our lower one.
    is_by_columns = block.strides[0] < block.strides[1]
    transposed = b"T" if is_by_columns else b"N"
    apart = ctypes.byref(ctypes.c_int(max(block.strides) // block.itemsize))
    arguments: tuple[Any, ...] = (columns, rows, one, block.ctypes.data, apart, one)
    dsyrk(b"U", transposed, *arguments, gram.ctypes.data, columns)


def symmetrised(gram: Array) -> Array:
    """The whole matrix from its lower triangle, exactly symmetric."""
    lower = np.tril(gram)
    return lower + np.tril(lower, -1).T


def svd(A: Array, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """U, the singular values in descending order, and V^T; A is finite."""
    try:
        U, s, Vt = np.linalg.svd(A, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        if not np.isfinite(A).all():
            raise
        U, s, Vt = linalg.svd(
            A, full_matrices=full_matrices, lapack_driver="gesvd", check_finite=False
        )
    return U, s, Vt


def singular_values(A: Array) -> Array:
    """The singular values in descending order."""
    try:
        return np.asarray(np.linalg.svd(A, compute_uv=False))
    except np.linalg.LinAlgError:
        return svd(A)[1]


Result = TypeVar("Result")

# Whether this is the work of a strand: its thread is counted among those at work.
_inside_strand: ContextVar[bool] = ContextVar("trueline_inside_strand", default=False)
# Whether the caller has threads of its own, and wants no others.
_alone: ContextVar[bool] = ContextVar("trueline_alone", default=False)


@cache
def _blas_libraries() -> list[Any]:
    # NumPy and SciPy may each bring a BLAS: both must be loaded before they are looked for.
    import scipy.linalg.blas  # noqa: F401

    return [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]


@cache
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    # Keyed by the process: a forked child must not wait for threads that only its parent has.
    return ThreadPoolExecutor(workers, thread_name_prefix="trueline")


def available_threads() -> int:
    """How many threads the caller allows: cores of the process, capped by the BLAS limit.

    ``threadpoolctl.threadpool_limits``, ``OMP_NUM_THREADS`` and joblib's inner limits are all
    seen through the current limit of the loaded BLAS libraries.
    """
    if _limits.depth:  # inside our own strands BLAS is limited to one; the cap is remembered
        return min(_cores(), _limits.allowed)
    return _allowed([lib.get_num_threads() for lib in _blas_libraries()])


def _allowed(limits: Sequence[int | None]) -> int:
    """Threads under the limits of some libraries."""
    return max(1, min([_cores(), *(limit for limit in limits if limit)]))


def _cores() -> int:
    """Cores that the process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity
        return os.cpu_count() or 1


class _Limits:
    """Counts nested and concurrent users of the process-wide BLAS limit.

    The limit is global: if two threads each saved and restored it, the second could restore the
    first one's limit of one thread for ever. Only the first to enter sets it, only the last to
    leave restores it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.allowed = 1
        self.before: list[tuple[Any, int | None]] = []
        #: How many threads run strands at present.
        self.at_work = 0

    def __enter__(self) -> None:
        with self.lock:
            if self.depth == 0:
                # Setting the libraries directly takes a third of threadpoolctl's context manager.
                self.before = [(lib, lib.get_num_threads()) for lib in _blas_libraries()]
                self.allowed = _allowed([threads for _, threads in self.before])
                for lib, threads in self.before:
                    if threads != 1:
                        lib.set_num_threads(1)
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.restore()

    def restore(self) -> None:
        for lib, threads in self.before:
            if threads is not None and threads != 1:
                lib.set_num_threads(threads)
        self.before = []

    def engage(self, wanted: int, own: int) -> int:
        """Count ``own`` threads as being at work, and as many of the wanted ones as are idle."""
        with self.lock:
            self.at_work += own
            engaged = max(0, min(wanted, available_threads() - self.at_work))
            self.at_work += engaged
        return engaged

    def release(self, count: int) -> None:
        """So many threads are idle again; if negative, at work."""
        with self.lock:
            self.at_work -= count

    def after_fork(self) -> None:
        """A forked child has none of the threads that would have released lock and limit."""
        self.lock = threading.Lock()
        self.at_work = 0
        if self.depth:
            self.depth = 0
            self.restore()


_limits = _Limits()
if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_limits.after_fork)


def single_threaded_blas() -> AbstractContextManager[None]:
    """BLAS calls inside use one thread each, in every thread of the process."""
    return _limits


@contextmanager
def one_strand() -> Iterator[None]:
    """Everything inside is one strand: for callers that have threads of their own."""
    token = _alone.set(True)
    try:
        with single_threaded_blas():
            yield
    finally:
        _alone.reset(token)


class Tally:
    """How many threads did the work inside a ``with`` statement, and what kept others from it.

    Examples
    --------
    >>> from trueline.numerics.blas import Tally, run_strands
    >>> with Tally() as tally:
    ...     found = run_strands(str, [1, 2])
    >>> tally.strands, found
    (2, ['1', '2'])
    """

    def __init__(self) -> None:
        self.threads = self.strands = 1
        self.allowed = available_threads()
        self.shared = self.seconds = 0.0

    def __enter__(self) -> Tally:
        self._start, self._token = time.perf_counter(), _tally.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _tally.reset(self._token)
        self.seconds = time.perf_counter() - self._start

    @contextmanager
    def counting(self, threads: int, strands: int) -> Iterator[None]:
        """Count so many threads for so many strands; what is inside is not counted again."""
        self.threads, self.strands = max(self.threads, threads), max(self.strands, strands)
        start, token = time.perf_counter(), _tally.set(None)
        try:
            yield
        finally:
            _tally.reset(token)
            self.shared += time.perf_counter() - start

    def facts(self) -> tuple[int, int, int, float]:
        """Threads at work and allowed, the most strands, and their share of the time."""
        share = self.shared / max(self.seconds, 1e-9)
        return self.threads, self.allowed, self.strands, share


_tally: ContextVar[Tally | None] = ContextVar("trueline_tally", default=None)


def run_strands(work: Callable[[Any], Result], strands: Sequence[Any]) -> list[Result]:
    """Apply ``work`` to every strand, in parallel where allowed; results in the given order.

    BLAS is single-threaded inside, also for one strand alone: how a threaded BLAS cuts a sum
    depends on the number of threads, and so would the last digits. The caller works too, and idle
    threads help: whoever is free takes the next strand. A strand that calls this function again
    does the same, so that all threads are used where there are fewer outer strands than threads,
    and nobody waits for a thread that is busy. Of several errors the first strand's is raised.

    Examples
    --------
    >>> from trueline.numerics.blas import run_strands
    >>> run_strands(lambda bounds: sum(range(*bounds)), [(0, 3), (3, 5)])
    [3, 7]
    """
    with single_threaded_blas():
        if len(strands) <= 1 or _alone.get():
            return [work(strand) for strand in strands]
        own = 0 if _inside_strand.get() else 1
        helpers = _limits.engage(len(strands) - 1, own)
        token, tally = _inside_strand.set(True), _tally.get()
        try:
            with nullcontext() if tally is None else tally.counting(helpers + 1, len(strands)):
                if helpers:
                    return _shared(work, strands, helpers)
                return [work(strand) for strand in strands]
        finally:
            _inside_strand.reset(token)
            _limits.release(own)


def _shared(work: Callable[[Any], Result], strands: Sequence[Any], helpers: int) -> list[Result]:
    """The strands' results, by this thread and so many others."""
    waiting = deque(enumerate(strands))
    results: dict[int, Result] = {}
    failures: dict[int, BaseException] = {}
    errors = np.geterr()

    def take() -> None:
        with np.errstate(**errors):
            while waiting:
                try:
                    number, strand = waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                try:
                    results[number] = work(strand)
                except BaseException as error:
                    failures[number] = error
                    waiting.clear()

    def help_out() -> None:
        try:
            take()
        finally:
            _limits.release(1)

    # Each thread sees the caller's context, where NumPy keeps its errstate since 2.0; before, that
    # belonged to the thread.
    pool = _pool(available_threads(), os.getpid())
    futures = [pool.submit(copy_context().run, help_out) for _ in range(helpers)]
    try:
        take()
    finally:
        # Nothing may run on outside of the limits; helpers that did not come are not needed. While
        # this thread waits for the others, another one may work in its place.
        waiting.clear()
        for future in futures:
            if future.cancel():
                _limits.release(1)
        _limits.release(1)
        try:
            wait(futures)
        finally:
            _limits.release(-1)
    if failures:
        raise failures[min(failures)]
    return [results[number] for number in range(len(strands))]
