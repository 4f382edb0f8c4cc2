"""Sums over the rows that several theorems need, with bounds on their rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import (
    EPS,
    ROWS,
    SMALLEST,
    exact_product,
    sum_units,
    tree_sum,
    two_sum,
)
from trueline.check.objective import Claim
from trueline.check.rows import Rows

__all__ = ["Augmented", "least_eigenvalue", "sums_of_columns"]

Array = NDArray[np.float64]

_FEW = 64  # rows that are added one after the other


def sums_of_columns(
    claim: Claim, weighted: Array, rest: Array, error: Array, doubled: bool
) -> tuple[Array, Array, Array]:
    """sum_i (weighted + rest)_i (x_i - centre), its error, and sum_i s_i (x_i - centre)^2.

    ``rest`` is what double precision leaves of the weighted numbers, ``error`` bounds their error.
    """
    rows, centre = claim.rows, claim.centre
    d, k = rows.d, weighted.shape[1]
    parts: list[Array] = []
    low, off, squares = np.zeros((d, k)), np.zeros((d, k)), np.zeros(d)
    longest = min(rows.n, _FEW)
    if rows.is_sparse and not centre.any():  # zeros add nothing, not even rounding
        longest = int(np.bincount(rows.X.indices, minlength=1).max(initial=1)) + 1
    units = (longest + math.log2(rows.n / _FEW + 2) + 16) * EPS
    if doubled:
        units = sum_units(rows.n) + (rows.n + 16) * EPS**2
    for where, block in rows if doubled else rows.blocks():
        own = weighted[where]
        if doubled:
            centred, below = two_sum(block, -centre)
            for t in range(k):
                products, slack = exact_product(centred, own[:, t : t + 1])
                high, small = tree_sum(products)
                parts.append(np.where(np.arange(k) == t, high[:, None], 0.0))
                low[:, t] += small + slack.sum(axis=0) + own[:, t] @ below
        elif rows.is_sparse and not centre.any():
            centred = block
            parts.append(np.asarray(block.T @ own))
        else:
            centred = np.asarray(block - centre) if centre.any() else block
            parts += [centred[i : i + _FEW].T @ own[i : i + _FEW] for i in range(0, len(own), _FEW)]
        low += np.asarray(centred.T @ rest[where])
        size = abs(centred)
        fuzzy = units * np.abs(own) + rows.n * EPS * np.abs(rest[where]) + error[where]
        off += np.asarray(size.T @ fuzzy)
        squares += np.asarray((centred * centred).T @ rows.s[where]).reshape(d)
    stacked = np.stack(parts)
    high, small = tree_sum(stacked)
    total = high + (small + low)
    return total, off * (1 + 1e-9) + 2 * EPS * np.abs(total) + rows.n * SMALLEST, squares


class Augmented:
    """Some columns about a centre, and a column of ones for the intercept."""

    def __init__(
        self, rows: Rows, centre: Array, constant: bool, columns: NDArray[np.intp] | None = None
    ) -> None:
        self.rows, self.constant = rows, int(constant)
        self.columns = np.arange(rows.d) if columns is None else columns
        self.centre = centre[self.columns]
        self.n, self.d = rows.n, len(self.columns) + self.constant

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for where, block in self.rows:
            part = block[:, self.columns] - self.centre
            yield where, np.hstack([part, np.ones((len(part), self.constant))])


def least_eigenvalue(rows: Augmented, weights: Array, lift: Array | None, M: Array) -> float:
    """A lower bound on the smallest eigenvalue of M (sum_i weights_i a_i a_i^T + lift) M.

    Weights may be negative; M and lift are diagonal. With size the sum of the magnitudes of the
    diagonal, sums of n products err by (min(n, 2048) + n / 2048) eps size, their factors by 8 eps
    size, and the computed eigenvalue by 16 r eps size (Higham, section 3.1; LAPACK Users' Guide,
    section 4.7).
    """
    gram, size = np.zeros((rows.d, rows.d)), 0.0
    for where, block in rows:
        scaled, own = block * M, weights[where, None]
        gram += (own * scaled).T @ scaled
        size += float((np.abs(own) * scaled**2).sum())
    if lift is not None:
        gram += np.diag(lift * M**2)
        size += float((lift * M**2).sum())
    if not (np.isfinite(gram).all() and np.isfinite(size)):
        return -np.inf
    least = float(np.linalg.eigvalsh(gram)[0]) if rows.d else np.inf
    terms = 2 * (min(rows.n, ROWS) + rows.n / ROWS) + 16 * rows.d + 64
    return least - terms * EPS * size - 1e-290
