r"""Gram matrices of some columns: factors, how strongly they bend, and which columns depend.

*Coercivity.* With X_c the columns about their weighted means (or as they are), S and A diagonal and
not negative, and a matrix M, the returned nu has ``M^T (X_c^T S X_c + A) M >= nu I``. *Proof.* With
the rows z_i = sqrt(s_i) M^T (x_i - c) about *any* point c and t = sum_i sqrt(s_i) z_i, the matrix
is Z^T Z + M^T A M - t t^T / sum(s): its square root is the norm of a projection of Z. Columns and
weights are first multiplied by powers of two, exactly, so that no square overflows or vanishes;
rows whose share of the weights is below 1e-250 are left out, which lowers the matrix. Rounding,
with N = min(n, 2048) + n / 2048 terms added in any order (Higham, "Accuracy and Stability", section
3.1) and size = trace(Z^T Z + M^T A M):

    Z^T Z, its lift and t t^T    (2 N + d + 24) eps size       products of columns, Cauchy-Schwarz
    Z itself                     (d + 4) eps ||S^(1/2) |X_c| |M|||_F    taken off the square root
    Cholesky of B - theta I      (r + 4) eps size      if it succeeds (Rump, BIT 46 (2006) 433-452)

*Dependence.* A factor R of the columns, R^T R = X_c^T S X_c up to rounding, suggests columns that
are independent and, for each other column, a combination of them. The suggestion proves nothing.
That a column *is* a combination (up to a constant, where there is an intercept) is decided without
rounding: by elimination in integers where numbers are few; else coefficients are taken to be
multiples of 1/1024, and the sums are exact in doubles where all terms are multiples of a common
power of two and small enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.numbers.arithmetic import EPS, ROWS, Array, as_integers, null_space
from trueline.check.numbers.rows import Rows

__all__ = ["Table", "coercivity", "factor", "independent_columns", "inverse", "inverse_basis"]
__all__ += ["least_eigenvalue"]

Indices = NDArray[np.intp]

# A column of which less than this is left after the others counts as dependent.
_LEAST = 1e-9
_GRID = 1024.0
# Tables of so few numbers are decided by exact elimination.
_FEW = 1500


class Table:
    """Some columns about a centre, and a column of ones if asked for."""

    def __init__(
        self, rows: Rows, centre: Array, columns: Any = None, constant: bool = False
    ) -> None:
        self.rows, self.n, self.constant = rows, rows.n, int(constant)
        self.columns = np.arange(rows.d) if columns is None else columns
        self.centre = centre[self.columns]
        self.d = len(self.columns) + self.constant

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for where, block in self.rows:
            part = block[:, self.columns] - self.centre
            yield where, np.hstack([part, np.ones((len(part), self.constant))])


def factor(table: Table, weights: Array | None = None, lift: Array | None = None) -> Array:
    """A triangular R with R^T R = sum_i weights_i a_i a_i^T + diag(lift), up to rounding."""
    R: Array = np.zeros((0, table.d)) if lift is None else np.diag(np.sqrt(lift))
    weights = table.rows.s if weights is None else weights
    for where, block in table:
        R = np.asarray(
            np.linalg.qr(np.vstack([R, block * np.sqrt(weights[where])[:, None]]), mode="r")
        )
    return R


def inverse(R: Array) -> Array | None:
    """The inverse of a square factor, whatever the scale of its columns; None if there is none."""
    if len(R) < R.shape[1]:
        return None
    scale = 1.0 / np.abs(R).max(axis=0, initial=0.0)
    try:
        return scale[:, None] * np.linalg.inv(R * scale)
    except np.linalg.LinAlgError:
        return None


def inverse_basis(
    table: Table, centred: bool, lift: Array | None = None
) -> tuple[float, float, Array]:
    """nu, the trace and M, the inverse of a factor; nu is zero where it has none."""
    M = inverse(factor(table, lift=lift))
    if M is None:
        return 0.0, 0.0, np.zeros((table.d, 0))
    return *coercivity(table, M, centred, lift), M


def coercivity(
    table: Table, M: Array, centred: bool, lift: Array | None = None
) -> tuple[float, float]:
    """A number nu >= 0 with M^T (X_c^T S X_c + A) M >= nu I, and about the trace of the left side.

    nu is zero where it is not known.

    Parameters
    ----------
    table : Table
        The columns, about any point.
    M : array of shape (d,) or (d, r)
        One dimension means a diagonal matrix.
    centred : bool
        Whether columns are counted from their weighted means (there is an intercept).
    lift : array of shape (d,), optional
        The diagonal of A.
    """
    n, m, r, s = table.n, table.d, M.shape[-1], table.rows.s
    if r == 0:
        return 1.0, 0.0
    half = (int(np.frexp(s.max(initial=0.0))[1]) + 1) // 2
    s, a = (np.ldexp(v, -2 * half) for v in (s, np.zeros(m) if lift is None else lift))
    s, a = (np.where(v < 1e-250, 0.0, v) for v in (s, a))
    reach = np.sqrt(a)
    for _, block in table:
        reach = np.maximum(reach, np.abs(block).max(axis=0))
    power = np.frexp(reach)[1]
    M = np.ldexp(M, (power + half)[:, None] if M.ndim == 2 else power + half)
    least = np.abs(M).max(axis=0) if M.ndim == 2 else np.abs(M)  # of a column
    if not (np.isfinite(reach).all() and ((least > 1e-100) & (least < 1e100)).all()):
        return 0.0, 0.0
    M = np.diag(M) if M.ndim == 1 else M
    gram, total, drift = np.zeros((r, r)), np.zeros(r), 0.0
    for where, block in table:
        root = np.sqrt(s[where])
        Z = root[:, None] * np.ldexp(block, -power)
        drift += float(np.square(np.abs(Z) @ np.abs(M)).sum())
        Z = Z @ M
        gram, total = gram + Z.T @ Z, total + root @ Z
    gram += M.T @ (np.ldexp(a, -2 * power)[:, None] * M)
    size = float(np.trace(gram))
    gram -= np.outer(total, total) / (s.sum() or 1.0) * float(centred)
    if not np.isfinite(gram).all():
        return 0.0, size
    theta = float(np.linalg.eigvalsh(gram)[0]) - (r + 8) * EPS * size
    try:
        np.linalg.cholesky(gram - theta * np.eye(r))
    except np.linalg.LinAlgError:
        return 0.0, size
    terms = 2 * (min(n, ROWS) + n / ROWS) + m + r + 32
    root_least = np.sqrt(max(theta - terms * EPS * size - 1e-290, 0.0))
    root_least = max(float(root_least) - (m + 4) * EPS * float(np.sqrt(drift)), 0.0)
    return root_least**2 * (1 - 8 * EPS), size


def least_eigenvalue(table: Table, weights: Array, lift: Array | None, M: Array) -> float:
    """A lower bound on the smallest eigenvalue of M (sum_i weights_i a_i a_i^T + lift) M.

    Weights may be negative; M and lift are diagonal. With size the sum of the magnitudes of the
    diagonal, sums of n products err by (min(n, 2048) + n / 2048) eps size, their factors by 8 eps
    size, and the computed eigenvalue by 16 r eps size (Higham, section 3.1; LAPACK Users' Guide,
    section 4.7).
    """
    lift = np.zeros(table.d) if lift is None else lift * M**2
    gram, size = np.diag(lift), float(lift.sum())
    for where, block in table:
        scaled, own = block * M, weights[where, None]
        gram += (own * scaled).T @ scaled
        size += float((np.abs(own) * scaled**2).sum())
    if not (np.isfinite(gram).all() and np.isfinite(size)):
        return -np.inf
    least = float(np.linalg.eigvalsh(gram)[0]) if table.d else np.inf
    terms = 2 * (min(table.n, ROWS) + table.n / ROWS) + 16 * table.d + 64
    return least - terms * EPS * size - 1e-290


def independent_columns(
    rows: Rows, columns: Indices, centre: Array, constant: bool
) -> tuple[Indices, Indices, bool]:
    """Columns that look independent, the others, and whether those are exact combinations.

    ``constant`` allows combinations to be off by the same number in all rows.
    """
    R = factor(Table(rows, centre, columns))
    norms = sum((rows.s[w] @ block[:, columns] ** 2 for w, block in rows), np.zeros(len(columns)))
    kept = _independent(R, np.sqrt(norms))
    rest = np.setdiff1d(np.arange(len(columns)), kept)
    C: Array = np.zeros((0, len(rest)))
    if len(kept) and len(rest):
        C = np.asarray(np.linalg.lstsq(R[:, kept], R[:, rest], rcond=None)[0])
    exact = all(
        _is_combination(rows, int(columns[j]), columns[kept], C[:, i], constant)
        for i, j in enumerate(rest)
    )
    return columns[kept], columns[rest], exact


def _independent(R: Array, sizes: Array) -> Indices:
    """Places of columns of R that are independent, found greedily.

    ``sizes`` are the norms of the columns before they were centred: what is below rounding of
    these is zero.
    """
    left, chosen = R.copy(), []
    start = np.linalg.norm(R, axis=0)
    start = np.where(start > 1e-12 * sizes, start, np.inf)
    for _ in range(min(R.shape)):
        share = np.linalg.norm(left, axis=0) / start
        best = int(np.argmax(share))
        if not share[best] > _LEAST:
            break
        chosen.append(best)
        unit = left[:, best] / np.linalg.norm(left[:, best])
        for _ in range(2):
            left = left - np.outer(unit, unit @ left)
        left[:, best] = 0.0
    return np.sort(np.array(chosen, dtype=np.intp))


def _is_combination(
    rows: Rows, column: int, others: Indices, coefficients: Array, constant: bool
) -> bool:
    """Whether a column is exactly this combination of others, rounded to a grid.

    ``constant`` allows for the same number in all rows.
    """
    if rows.n * (len(others) + 2) <= _FEW:  # by elimination without rounding
        table = np.concatenate([block[:, np.append(others, column)] for _, block in rows])
        ones = np.ones((rows.n, int(constant)))
        return bool(null_space(as_integers(np.hstack([ones, table]))[0]))
    c = np.rint(coefficients * _GRID)
    if not np.allclose(c / _GRID, coefficients, rtol=1e-6, atol=1e-6) or (np.abs(c) > 2**20).any():
        return False
    used, c = np.append(others[c != 0], column), np.append(c[c != 0], -_GRID)
    first = next(iter(rows))[1][:1, used] if constant and len(used) == 1 else 0.0
    value = 0.0 if not constant or len(used) == 1 else None
    for _, block in rows:
        part = block[:, used] - first
        top = float(np.abs(part).max(initial=0.0))
        # Multiples of one unit, so few of them that sums are whole numbers below 2^53.
        unit = np.ldexp(1.0, int(np.frexp(top)[1]) - 52 + int(np.ceil(np.log2(np.abs(c).sum()))))
        whole = part / unit
        if (whole != np.rint(whole)).any():
            return len(used) == 2 and _is_copy(rows, used, c)
        total = (whole @ c) * unit
        value = total[0] if value is None else value
        if (total != value).any():
            return False
    return True


def _is_copy(rows: Rows, used: Indices, c: Array) -> bool:
    """Whether a column is a power of two times another one."""
    ratio = -c[0] / c[1]
    if np.frexp(abs(ratio))[0] != 0.5:
        return False
    return all((block[:, used[1]] == ratio * block[:, used[0]]).all() for _, block in rows)
