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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
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

# A strand that cuts its own work into strands must not wait for the pool it occupies.
_inside_strand: ContextVar[bool] = ContextVar("trueline_inside_strand", default=False)


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

    def after_fork(self) -> None:
        """A forked child has none of the threads that would have released lock and limit."""
        self.lock = threading.Lock()
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
    token = _inside_strand.set(True)
    try:
        with single_threaded_blas():
            yield
    finally:
        _inside_strand.reset(token)


def run_strands(work: Callable[[Any], Result], strands: Sequence[Any]) -> list[Result]:
    """Apply ``work`` to every strand, in parallel where allowed; results in the given order.

    BLAS is single-threaded inside, also for one strand alone: how a threaded BLAS cuts a sum
    depends on the number of threads, and so would the last digits. A strand that calls this
    function again runs its own strands one after the other.

    Examples
    --------
    >>> from trueline.numerics.blas import run_strands
    >>> run_strands(lambda bounds: sum(range(*bounds)), [(0, 3), (3, 5)])
    [3, 7]
    """
    with single_threaded_blas():
        threads = 1 if len(strands) == 1 else min(available_threads(), len(strands))
        if threads <= 1 or _inside_strand.get():
            return [work(strand) for strand in strands]

        errors = np.geterr()

        def run(strand: Any) -> Result:
            _inside_strand.set(True)
            with np.errstate(**errors):
                return work(strand)

        # Each strand sees the caller's context, where NumPy keeps its errstate since 2.0; before,
        # that belonged to the thread.
        contexts = [copy_context() for _ in strands]
        pool = _pool(threads, os.getpid())
        futures = [pool.submit(context.run, run, s) for context, s in zip(contexts, strands)]
        try:
            return [future.result() for future in futures]
        finally:
            # After a failure nothing may run on outside of the limits.
            for future in futures:
                future.cancel()
            wait(futures)
