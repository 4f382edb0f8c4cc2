"""Calls of BLAS and LAPACK that NumPy does not offer in the form that is needed here.

G += A^T A for a block of rows, on one triangle, in place, without the interpreter's lock: NumPy's
``A.T @ A`` fills both triangles of a new matrix each time, SciPy's ``dsyrk`` keeps the lock. SciPy
publishes the address of its BLAS for compiled code (``scipy.linalg.cython_blas``); called through
ctypes it lets other threads run. Where that is not possible NumPy does the work.

Singular values where LAPACK's divide and conquer (gesdd, which NumPy calls) gives up, as it does on
some matrices with many equal rows and columns: QR iterations (gesvd) take longer, and do not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["add_gram", "singular_values", "svd", "symmetrised"]

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


def add_gram(block: Array, gram: Array) -> None:
    """Add block^T block to the lower triangle of gram; both are C-contiguous.

    What stands above the diagonal is left without meaning (:func:`symmetrised` mirrors it).
    """
    dsyrk = _dsyrk()
    if dsyrk is None:
        gram += block.T @ block
        return
    m, d = block.shape
    one = ctypes.byref(ctypes.c_double(1.0))
    rows, columns = ctypes.byref(ctypes.c_int(m)), ctypes.byref(ctypes.c_int(d))
    # Fortran reads the rows of a C-ordered matrix as columns: its upper triangle is our lower one.
    arguments: tuple[Any, ...] = (columns, rows, one, block.ctypes.data, columns, one)
    dsyrk(b"U", b"N", *arguments, gram.ctypes.data, columns)


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
