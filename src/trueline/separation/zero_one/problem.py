r"""What is minimised: the weight of the rows that are not on their side.

    minimise over w, b      sum_i s_i [y_i (x_i.w + b) <= 0]

A row on the boundary is an error. With signed rows a_i = y_i (x_i, 1) and v = (w, b) a row is right
if a_i.v > 0, and the best v has no row on its boundary that it could not do without: the minimum
over all v is the minimum over the open cells of the arrangement of the rows.

Rows that are equal become one with the sum of their weights; rows that contradict each other
(same x, other label) cost the lighter weight whatever v is, and what is left of the heavier one
stays. Rows of zeros, which occur only without intercept, are always errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.separation.lifting import (
    MOST_EQUATIONS,
    exact_products,
    integer_rows,
    solve_integers,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Determinants of rows of integers up to this are told from zero by rounded ones.
_LARGEST_DETERMINANT = 2.0**45
_MOST_BITS = 30
_DEPENDENT = 1e-10
_MOST_COLUMNS = 3000


@dataclass(frozen=True)
class Task:
    """A search to be made.

    Attributes
    ----------
    A : array of shape (k, m)
        Signed rows, no two of them parallel because of equal data; columns in powers of two.
    s : array of shape (k,)
        Their weights, all positive.
    norms : array of shape (k,)
        The largest magnitude in each row.
    constant : float
        Weight of errors that no hyperplane avoids.
    row : array of shape (k,)
        The row of the data that stands for each signed row.
    columns : array of int
        Columns of (x, 1) that take part; the others are combinations of them.
    exponent : array of int
        Columns were multiplied by these powers of two.
    separation : float
        A coefficient in a combination of rows that is smaller than this is zero; 0 if not known.
    slack : float
        Weights that differ by less than this are equal.
    is_exact : bool
        Whether sums of weights have no rounding.
    fit_intercept : bool
    """

    A: Array
    s: Array
    norms: Array
    constant: float
    row: Indices
    columns: Indices
    exponent: Indices
    separation: float
    slack: float
    is_exact: bool
    fit_intercept: bool
    n_features: int

    def coefficients(self, v: Array) -> tuple[Array, float]:
        """w and b of a point of the search."""
        full = np.zeros(self.n_features + int(self.fit_intercept))
        # The hyperplane is the same for every multiple: no number need be larger than 2^1000.
        excess = (self.exponent + np.frexp(v)[1])[v != 0].max(initial=0) - 1000
        full[self.columns] = np.ldexp(v, self.exponent - max(0, int(excess)))
        if self.fit_intercept:
            return full[:-1], float(full[-1])
        return full, 0.0


def state(X: Array, y: Array, weights: Array | None, fit_intercept: bool) -> Task:
    """The task of dense rows, signs and positive weights."""
    n, d = X.shape
    if d > _MOST_COLUMNS:
        raise ValueError(
            f"X has {d:,} columns: the search keeps the inverse of a matrix of that size. Choose "
            f"at most {_MOST_COLUMNS:,} columns first."
        )
    s = np.ones(n) if weights is None else weights
    Z = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    A, s, row, constant = _merged(np.asarray(Z, dtype=np.float64), y, s)
    A, exponent = _scaled(A)
    columns = _independent_columns(A)
    A, exponent = np.ascontiguousarray(A[:, columns]), exponent[columns]
    slack, is_exact = _slack(s, constant)
    return Task(
        A=A,
        s=s,
        norms=np.abs(A).max(axis=1, initial=0.0),
        constant=constant,
        row=row,
        columns=columns,
        exponent=exponent,
        separation=_separation(A),
        slack=slack,
        is_exact=is_exact,
        fit_intercept=fit_intercept,
        n_features=d,
    )


def _merged(Z: Array, y: Array, s: Array) -> tuple[Array, Array, Indices, float]:
    """Signed rows with their net weights, the row that stands for each, and the constant."""
    Z = Z + 0.0  # no negative zeros
    if (np.diff(np.sort(Z[:, 0])) > 0).all():
        # One column tells all rows apart: nothing to merge.
        some = Z.any(axis=1)
        A = np.ascontiguousarray((Z * y[:, None])[some]) + 0.0
        return A, s[some], np.flatnonzero(some).astype(np.int64), float(s[~some].sum())
    places, first, group = np.unique(Z, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()
    above = np.bincount(group, weights=s * (y > 0), minlength=len(places))
    below = np.bincount(group, weights=s * (y < 0), minlength=len(places))
    empty = ~places.any(axis=1)
    constant = float(np.minimum(above, below)[~empty].sum() + (above + below)[empty].sum())
    kept = (above != below) & ~empty
    sign = np.where(above > below, 1.0, -1.0)
    # Without an intercept a row may be the opposite of another one.
    A = np.ascontiguousarray((places * sign[:, None])[kept]) + 0.0
    weight = np.abs(above - below)[kept]
    stands = np.full(len(places), -1)
    heavier = np.flatnonzero(y == sign[group])[::-1]
    stands[group[heavier]] = heavier
    order = np.argsort(first[kept], kind="stable")
    return A[order], weight[order], stands[kept][order].astype(np.int64), constant


def _scaled(A: Array) -> tuple[Array, Indices]:
    """Columns multiplied by powers of two, so that the largest magnitude is about one."""
    largest = np.abs(A).max(axis=0, initial=0.0)
    exponent = -np.frexp(np.where(largest > 0, largest, 1.0))[1].astype(np.int64)
    scaled = np.ldexp(A, exponent)
    lossless = np.ldexp(scaled, -exponent) == A
    if not lossless.all():
        column = int(np.flatnonzero(~lossless.all(axis=0))[0])
        raise ValueError(
            f"Column {column} of X has values so far apart ({largest[column]:.3g} and less than "
            "1e-300) that double precision cannot compare them: set the small ones to zero."
        )
    return scaled, exponent


def _independent_columns(A: Array) -> Indices:
    """Columns of which all others are combinations, in exact arithmetic where it matters.

    Columns are left out only to be fast: combinations of dependent columns make every conflict
    doubtful.
    """
    from scipy.linalg import qr

    k, m = A.shape
    every = np.arange(m)
    if k <= m or k == 0:
        return every
    largest = np.abs(A).max(axis=0)
    present = np.flatnonzero(largest > 0)
    if len(present) == 0:
        return every[:1]
    U = A[:, present] / np.sqrt(np.sum(A[:, present] ** 2, axis=0))
    values = np.linalg.eigvalsh(U.T @ U)
    if values[0] > _DEPENDENT * values[-1]:
        return present
    R, pivots = qr(U, mode="r", pivoting=True)[:2]
    size = np.abs(R.diagonal())
    rank = int((size > 1e-7 * size[0]).sum())
    kept, others = np.sort(present[pivots[:rank]]), np.sort(present[pivots[rank:]])
    B = A[:, kept] / np.abs(A[:, kept]).max(axis=1, initial=1e-300)[:, None]
    rows = np.sort(qr(B.T, mode="r", pivoting=True)[1][:rank])
    if _are_combinations(A, kept, others, rows):
        return kept
    return present


def _are_combinations(A: Array, kept: Indices, others: Indices, rows: Indices) -> bool:
    """Whether the other columns are combinations of those kept, exactly and in every row."""
    if len(kept) > MOST_EQUATIONS:
        return False
    N = integer_rows(A)[0]
    for column in others:
        solved = solve_integers(N[np.ix_(rows, kept)], N[rows, column].astype(object))
        if solved is None:
            return False
        x, q = solved
        if (exact_products(N[:, kept], x) != q * N[:, column].astype(object)).any():
            return False
    return True


def _separation(A: Array) -> float:
    """The smallest magnitude of a ratio of two determinants of rows that is not zero.

    Rows of integers have determinants that are integers; by Hadamard's inequality none is larger
    than the product of the lengths of the columns.
    """
    m = A.shape[1]
    logarithm = 0.0
    if (np.ldexp(A, _MOST_BITS) % 1.0).any():
        return 0.0
    for column in A.T:
        power = next(q for q in range(_MOST_BITS + 1) if not (np.ldexp(column, q) % 1.0).any())
        logarithm += power + 1 + 0.5 * np.log2(m)
    return float(2.0**-logarithm) if 2.0**logarithm <= _LARGEST_DETERMINANT else 0.0


def _slack(s: Array, constant: float) -> tuple[float, bool]:
    """Half the unit of the weights if sums of them are exact; else what rounding could do."""
    total = float(s.sum()) + constant
    for power in range(-8, 21):
        units = np.ldexp(s, power)
        if not (units % 1.0).any() and np.ldexp(constant, power) % 1.0 == 0:
            if np.ldexp(total, power) < 2.0**52:
                return float(0.5 * np.ldexp(1.0, -power)), True
            break
    return 4e-16 * (len(s) + 16) * total, False
