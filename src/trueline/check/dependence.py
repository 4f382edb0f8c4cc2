r"""Which columns depend on others, exactly.

A matrix factor R of the (centred, weighted) columns, R^T R = X_c^T S X_c up to rounding, suggests
columns J that are independent and, for each other column, a combination of them. The suggestion
proves nothing. That a column *is* a combination (up to a constant, where there is an intercept) is
decided without rounding: the coefficients are taken to be multiples of 1/1024, and the sums are
exact in doubles where all terms are multiples of a common power of two and small enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.check.exact import as_integers, null_space
from trueline.check.rows import Rows

__all__ = ["factor", "independent_columns", "inverse"]

Array = NDArray[np.float64]

# A column of which less than this is left after the others counts as dependent.
_LEAST = 1e-9
_GRID = 1024.0
# Tables of so few numbers are decided by exact elimination.
_FEW = 1500


def factor(
    rows: Rows, columns: NDArray[np.intp], centre: Array, lift: Array | None = None
) -> Array:
    """A triangular R with R^T R = X_c^T S X_c + diag(lift) for these columns, up to rounding."""
    R: Array = np.zeros((0, len(columns))) if lift is None else np.diag(np.sqrt(lift))
    for where, block in rows:
        centred = (block[:, columns] - centre[columns]) * np.sqrt(rows.s[where])[:, None]
        R = np.asarray(np.linalg.qr(np.vstack([R, centred]), mode="r"))
    return R


def inverse(R: Array) -> Array | None:
    """The inverse of a square factor, whatever the scale of its columns; None if there is none."""
    if len(R) < R.shape[1]:
        return None
    scale = 1.0 / np.linalg.norm(R, axis=0)
    try:
        return scale[:, None] * np.linalg.inv(R * scale)
    except np.linalg.LinAlgError:
        return None


def independent_columns(
    rows: Rows, columns: NDArray[np.intp], centre: Array, constant: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], bool]:
    """Columns that look independent, the others, and whether those are exact combinations.

    ``constant`` allows combinations to be off by the same number in all rows.
    """
    R = factor(rows, columns, centre)
    norms = np.zeros(len(columns))
    for where, block in rows:
        norms += rows.s[where] @ block[:, columns] ** 2
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


def _independent(R: Array, sizes: Array) -> NDArray[np.intp]:
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
    rows: Rows, column: int, others: NDArray[np.intp], coefficients: Array, constant: bool
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
    value = None
    for _, block in rows:
        part = block[:, used]
        if len(used) == 1 and constant:
            value = part[0, 0] if value is None else value
            if (part != value).any():
                return False
            continue
        top = float(np.abs(part).max(initial=0.0))
        if top == 0.0:
            total = np.zeros(len(part))
        else:
            # Multiples of one unit, so few of them that sums are whole numbers below 2^53.
            unit = np.ldexp(
                1.0, int(np.frexp(top)[1]) - 52 + int(np.ceil(np.log2(np.abs(c).sum())))
            )
            whole = part / unit
            if (whole != np.rint(whole)).any():
                return len(used) == 2 and _is_copy(rows, used, c)
            total = (whole @ c) * unit
        value = (total[0] if constant else 0.0) if value is None else value
        if (total != value).any():
            return False
    return True


def _is_copy(rows: Rows, used: NDArray[np.intp], c: Array) -> bool:
    """Whether a column is a power of two times another one."""
    ratio = -c[0] / c[1]
    if np.frexp(abs(ratio))[0] != 0.5:
        return False
    return all((block[:, used[1]] == ratio * block[:, used[0]]).all() for _, block in rows)
