r"""How strongly a Gram matrix bends: a verified lower bound on its smallest eigenvalue.

Theorem. With X_c the columns about their weighted means (or as they are), S and A diagonal and not
negative, and a matrix M, the returned nu has ``M^T (X_c^T S X_c + A) M >= nu I``.

Proof. With the rows z_i = sqrt(s_i) M^T (x_i - c) about *any* point c and t = sum_i sqrt(s_i) z_i,
the matrix is Z^T Z + M^T A M - t t^T / sum(s): its square root is the norm of a projection of Z.
Columns and weights are first multiplied by powers of two, exactly, so that no square overflows or
vanishes; rows whose share of the weights is below 1e-250 are left out, which lowers the matrix.
Rounding, with N = min(n, 2048) + n / 2048 terms added in any order (Higham, "Accuracy and
Stability", section 3.1) and size = trace(Z^T Z + M^T A M):

    Z^T Z, its lift and t t^T    (2 N + d + 24) eps size       products of columns, Cauchy-Schwarz
    Z itself                     (d + 4) eps ||S^(1/2) |X_c| |M|||_F    taken off the square root
    Cholesky of B - theta I      (r + 4) eps size      if it succeeds (Rump, BIT 46 (2006) 433-452)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, ROWS
from trueline.check.rows import Rows
from trueline.check.verdict import Refused

__all__ = ["coercivity"]

Array = NDArray[np.float64]


def coercivity(
    rows: Rows,
    columns: Any = None,
    weights: Array | None = None,
    curvature: Any = None,
    basis: Array | None = None,
    centred: bool = True,
) -> tuple[float, Array]:
    """A number nu >= 0 with M^T (X_c^T S X_c + A) M >= nu I, and M.

    Parameters
    ----------
    rows : Rows
    columns : array of int or of bool, optional
        Those of X that take part; by default all.
    weights : array of shape (n,), optional
        S; by default that of the rows.
    curvature : array of shape (d,) or number, optional
        The diagonal of A, for the columns that take part.
    basis : array of shape (d,) or (d, r), optional
        M, one dimension meaning a diagonal matrix, which is used as it is. Columns of others are
        multiplied by powers of two. By default the diagonal that makes the Gram matrix one of
        correlations.
    centred : bool
        Whether columns are counted from their weighted means (there is an intercept).

    Raises
    ------
    Refused
        For numbers so large that differences overflow, and for a basis with columns of zeros,
        with subnormal numbers, or far from the scale of the data.
    """
    pick = np.arange(rows.d) if columns is None else np.arange(rows.d)[columns]
    m, s = len(pick), rows.s if weights is None else weights
    a = np.zeros(m) + (0.0 if curvature is None else curvature)
    half = (int(np.frexp(s.max(initial=0.0))[1]) + 1) // 2
    s, a = (np.where(v < 1e-250, 0.0, v) for v in (np.ldexp(s, -2 * half), np.ldexp(a, -2 * half)))
    centre, low, high = np.zeros(m), np.full(m, np.inf), np.full(m, -np.inf)
    for where, block in rows:
        own = block[:, pick]
        low, high = np.minimum(low, own.min(axis=0)), np.maximum(high, own.max(axis=0))
        centre += s[where] @ own
    centre = centre / (s.sum() or 1.0) if centred else np.zeros(m)
    reach = np.maximum(np.maximum(high - centre, centre - low), np.sqrt(a))
    if not np.isfinite(reach).all():
        raise Refused("the columns are too wide for the range of doubles")
    power = np.frexp(reach)[1]
    M, stated = _basis(basis, power + half)
    r = M.shape[-1]
    gram, total, drift = np.zeros((r, r)), np.zeros(r), np.zeros(r)
    for where, block in rows:
        root = np.sqrt(s[where])
        Z = root[:, None] * np.ldexp(block[:, pick] - centre, -power)
        if M.ndim == 2:
            drift += np.square(np.abs(Z) @ np.abs(M)).sum(axis=0)
            Z = Z @ M
        gram, total = gram + Z.T @ Z, total + root @ Z
    a = np.ldexp(a, -2 * power)
    gram += np.diag(a) if M.ndim == 1 else M.T @ (a[:, None] * M)
    if basis is None:
        M = 1.0 / np.sqrt(np.maximum(gram.diagonal(), 1e-200))
        stated = _normal(np.ldexp(M, -(power + half)))
    # A diagonal basis is applied here; columns of another one are made equally long.
    unit = M if M.ndim == 1 else 1.0 / np.sqrt(np.maximum(gram.diagonal(), 1e-200))
    gram, total = unit[:, None] * gram * unit, unit * total
    stated = stated if M.ndim == 1 else _normal(stated * unit)
    size = float(np.trace(gram))
    missed = size if M.ndim == 1 else float((drift * unit**2).sum())
    gram -= np.outer(total, total) / (s.sum() or 1.0) * float(centred)
    if not (gram.size and np.isfinite(gram).all()):
        return 0.0, stated
    theta = float(np.linalg.eigvalsh(gram)[0]) - (len(gram) + 8) * EPS * size
    try:
        np.linalg.cholesky(gram - theta * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        return 0.0, stated
    terms = 2 * (min(rows.n, ROWS) + rows.n / ROWS) + m + len(gram) + 32
    root_least = np.sqrt(max(theta - terms * EPS * size - 1e-290, 0.0))
    return max(root_least - (m + 4) * EPS * np.sqrt(missed), 0.0) ** 2 * (1 - 8 * EPS), stated


def _basis(basis: Array | None, power: NDArray[Any]) -> tuple[Array, Array]:
    """The basis in the units of the scaled data, and the same in those of the data."""
    if basis is None:
        return np.ones(len(power)), np.ones(len(power))
    if basis.ndim == 1:
        M = np.ldexp(basis, power)
        if not ((np.abs(M) > 1e-100) & (np.abs(M) < 1e100)).all():
            raise Refused("the basis is far from the scale of the data")
        return M, _normal(basis)
    if not basis.any(axis=0).all():
        raise Refused("the basis has a column of zeros")
    exponent = np.where(basis != 0, np.frexp(basis)[1] + power[:, None], -(2**30))
    down = -exponent.max(axis=0)
    return np.ldexp(basis, power[:, None] + down), _normal(np.ldexp(_normal(basis), down))


def _normal(numbers: Array) -> Array:
    """Numbers that are zero or in the range where doubles have all their digits."""
    size = np.abs(numbers[numbers != 0])
    if not ((size > 1e-300) & (size < 1e300)).all():
        raise Refused("the basis leaves the range of doubles")
    return numbers
