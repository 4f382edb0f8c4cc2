r"""The generalised inverse of Moore and Penrose.

With the singular values s_1 >= s_2 >= ... of X = U diag(s) V^T, of which r are above the tolerance,

    X^+ = sum_{j <= r} v_j u_j^T / s_j

It is the only matrix with X X^+ X = X, X^+ X X^+ = X^+, and X X^+ and X^+ X symmetric; w = X^+ y
has the least norm of all that minimise ||y - X w||.

R. Penrose, "A generalized inverse for matrices", Math. Proc. Camb. Philos. Soc. 51 (1955) 406-413.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from trueline.solvers.least_squares.orthogonal import rank_tolerance
from trueline.wording import Readable

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class PseudoInverse(Readable):
    """The generalised inverse of a matrix of shape (n, d).

    Attributes
    ----------
    matrix : array of shape (d, n)
    rank : int
    tolerance : float
        Singular values up to this are taken for zeros.
    singular_values : array of shape (min(n, d),)
        In descending order, those too.
    """

    matrix: Array
    rank: int
    tolerance: float
    singular_values: Array

    def __matmul__(self, y: ArrayLike) -> Array:
        return np.asarray(self.matrix @ np.asarray(y, dtype=np.float64))

    def __str__(self) -> str:
        d, n = self.matrix.shape
        left_out = len(self.singular_values) - self.rank
        return (
            f"generalised inverse of a matrix of shape ({n}, {d}) and rank {self.rank}: "
            f"{left_out} of {len(self.singular_values)} singular values are at most "
            f"{self.tolerance:.3g}, and taken for zero"
        )


def pseudo_inverse(X: Any, *, tolerance: float | None = None) -> PseudoInverse:
    """The generalised inverse of Moore and Penrose, with the rank that it supposes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        As it is: no column is centred or added. Sparse matrices are made dense.
    tolerance : float, optional
        Singular values up to this are taken for zeros; by default ``16 sqrt(max(n, d))`` times
        the spacing of doubles at one, times the largest singular value.

    Returns
    -------
    inverse : PseudoInverse
        ``inverse @ y`` is the least squares solution of least norm.

    Examples
    --------
    >>> from trueline import pseudo_inverse
    >>> inverse = pseudo_inverse([[1.0, 1.0], [1.0, 1.0]])
    >>> inverse.matrix.round(12), inverse.rank
    (array([[0.25, 0.25],
           [0.25, 0.25]]), 1)
    """
    A = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if A.ndim != 2 or not np.isfinite(A).all():
        raise ValueError(f"X must be a matrix of finite numbers, got an array of shape {A.shape}.")
    if tolerance is not None and not tolerance >= 0:
        raise ValueError(f"tolerance must not be negative, got {tolerance!r}.")
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    if tolerance is None:
        tolerance = rank_tolerance(*A.shape) * float(s.max(initial=0.0))
    rank = int(np.count_nonzero(s > tolerance))
    inverse = (Vt[:rank].T / s[:rank]) @ U[:, :rank].T
    return PseudoInverse(inverse, rank, float(tolerance), s)
