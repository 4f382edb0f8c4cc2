r"""The largest error: no coefficients have a smaller one, by multipliers of a few rows.

Theorem. Let u be multipliers of rows with sum_i u_i (x_i, 1) = 0 (without an intercept, sum_i u_i
x_i = 0), not all zero. Every (w, b) has max_i |y_i - x_i.w - b| >= |sum_i u_i y_i| / sum_i |u_i|.

Proof. sum_i u_i y_i = sum_i u_i (y_i - x_i.w - b) <= sum_i |u_i| max_i |y_i - x_i.w - b|.

The stated multipliers satisfy the equations up to rounding only. They are repaired without any
bound on coefficients, in one of two ways.

1. With r the errors of the stated coefficients, M the rows about their mean with a column of ones,
   columns scaled by powers of two, R an approximate inverse of M^T, and q = ||I - M^T R|| < 1: some
   d with M^T d = -M^T u has sum_i |d_i| <= eta = ||R||_1,1 ||M^T u|| / (1 - q), maximum norms. Then
   u + d is in the theorem, and |sum_i (u_i + d_i) y_i| >= sum_i u_i r_i - eta max_i |r_i|.
2. Where rows and columns are few, the equations are solved in integers for the u that agrees with
   the stated one wherever it may be chosen.

Columns that depend on each other up to rounding have no such u: coefficients of 1e16 would make use
of the rounding. Then the theorem is that of coefficients near the stated ones, and a condition says
how near: what is left of sum_i u_i (x_i - c) and sum_i u_i is multiplied by the radii R, B that are
chosen here, a thousand times what the data ask for.

Read: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef, intercept; of the
witness rows (among those with a positive weight) and dual, their multipliers; powers of two that
columns and target were multiplied with, if any (then all of the statement is about those).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from trueline.check.arithmetic import (
    EPS,
    SMALLEST,
    Array,
    as_integers,
    exact_product,
    fsum,
    null_space,
)
from trueline.check.claims import UNITS, below, judged, read_about
from trueline.check.rows import Rows
from trueline.check.schema import Field
from trueline.check.verdict import Refused, Verification

_WITNESS = {
    "rows": Field(("m",), "integer", low=0),
    "dual": Field(("m", "k"), low=-1.0, high=1.0),
    **UNITS,
}
# Products of integers in an elimination that take about a second.
_FEW = 3e5


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a claim about the largest error, summed over targets."""
    rows = Rows(X, y, sample_weight)
    claim = read_about("maximum_error", "none", certificate, rows, _WITNESS)
    if (claim.rows >= rows.n).any() or len(np.unique(claim.rows)) < len(claim.rows):
        raise Refused("the witness names rows that are not there, or some twice")
    scaled = claim.column_exponent is not None or claim.target_exponent is not None
    if scaled:
        rows = Rows(X, y, sample_weight, claim.column_exponent, claim.target_exponent)
    low = high = proven = near = 0.0
    radii: list[str] = []
    for t in range(rows.k):
        w, b, target = claim.coef[:, [t]], claim.intercept[[t]], rows.y[:, [t]]
        least, most = _largest_error(rows, target, w, b)
        used, u = claim.rows[claim.dual[:, t] != 0], claim.dual[claim.dual[:, t] != 0, t]
        table, ones = Rows(rows.some(used), target[used]), claim.fit_intercept
        bound, close, radius = _in_doubles(table, u, w, b, ones, most) if len(u) else (0.0, 0.0, "")
        enough = claim.objective + claim.objective_rounding - claim.gap if rows.k == 1 else np.inf
        work = 0 if effort == "full" else len(u) * (rows.d + 1) ** 2
        if len(u) and not bound >= enough * (1 + 32 * EPS) and work <= _FEW:
            bound = max(bound, _in_integers(table.X, table.y[:, 0], u, ones))
        low, high = low + least, high + most
        proven, near = proven + bound, near + max(bound, close)
        radii += [radius] * (close > bound)
    value, error = (low + high) / 2, (high - low) / 2 * (1 + 4 * EPS) + rows.k * EPS * high
    checks = judged(claim, value, error, proven * (1 - rows.k * EPS))
    radii = [] if checks[1].holds else radii
    if radii:
        checks = judged(claim, value, error, near * (1 - rows.k * EPS))
    unit = ", columns and target multiplied by the stated powers of two" * scaled
    said = f"no coefficients have a largest error {below(claim)}{unit}"
    return Verification(checks, said, tuple(radii))


def _largest_error(rows: Rows, y: Array, w: Array, b: Array) -> tuple[float, float]:
    """Bounds on the largest error; rows that may have it are evaluated in twice the digits."""
    z, _, off = rows.scores(w, b, y)
    near = np.flatnonzero(~(np.abs(z) + off < np.max(np.abs(z) - off, initial=0.0)))
    z, _, off = Rows(rows.some(near), y[near]).scores(w, b, y[near], doubled=True)
    off += 2 * EPS * np.abs(z)
    least, most = (np.abs(z) + side * off for side in (-1, 1))
    return float(least.max(initial=0.0)), float(most.max(initial=0.0))


def _in_doubles(
    rows: Rows, u: Array, w: Array, b: Array, with_ones: bool, most: float
) -> tuple[float, float, str]:
    """The first way of the text above; the bound within radii, and these radii in words."""
    m, total, X, w_size = len(u), fsum(np.abs(u)), rows.X, np.abs(w[:, 0])
    high, low, off = (part[:, 0] for part in rows.scores(w, b, rows.y, doubled=True))
    products, errors = exact_product(u, high)
    value = -fsum([products, errors, u * low])
    value -= float(np.abs(u) @ off) * (1 + m * EPS) + 2 * EPS * abs(value) + m * SMALLEST
    # Differences err by eps/2 each, products by (m + 1) eps of their magnitudes.
    centred, units = X - (X.mean(axis=0) if with_ones else 0.0), (m + 4) * EPS
    missed = np.abs(centred.T @ u) + units * (np.abs(centred).T @ np.abs(u)) + m * SMALLEST
    sides, spread = abs(fsum(u)) * with_ones, np.abs(centred).max(axis=0)
    alone = np.divide(most, spread, out=np.zeros(rows.d), where=spread > 0)
    R, B = 1e3 * (w_size + alone), 1e3 * most * with_ones
    near = value - (float(missed @ R) + sides * B) * (1 + (rows.d + 8) * EPS)
    said = f"coefficients differ from the stated ones by at most {R.min(initial=np.inf):.3g} to "
    said += f"{R.max(initial=0.0):.3g} (1000 times size and error / spread of each), their level "
    said += f"by at most {B:.3g}"
    # Columns of zeros have nothing to repair.
    power, proven = -np.frexp(spread[spread > 0])[1], 0.0
    M = np.ldexp(centred[:, spread > 0], power)
    M = np.hstack([M, np.ones((m, int(with_ones)))])
    missed = np.append(np.ldexp(missed[spread > 0], power), [sides * (1 + 4 * EPS)] * with_ones)
    if np.isfinite(M).all():
        inverse = np.linalg.pinv(M.T)
        q = np.abs(np.eye(M.shape[1]) - M.T @ inverse) + units * (np.abs(M).T @ np.abs(inverse))
        left = 1.0 - float(q.sum(axis=1).max(initial=0.0)) * (1 + m * EPS)
        eta = float(np.abs(inverse).sum() * missed.max(initial=0.0)) * (1 + (m * m + 8) * EPS)
        largest = float(np.abs(high).max()) * (1 + 4 * EPS)
        if left > 0:
            proven = (value - eta / left * largest) / (total + eta / left) * (1 - 8 * EPS)
    return max(proven, 0.0), near / total * (1 - 8 * EPS), said


def _in_integers(X: Array, y: Array, u: Array, with_ones: bool) -> float:
    """The second way."""
    A, _ = as_integers(np.hstack([X, np.ones((len(u), int(with_ones)))]))
    (targets, power), stated = as_integers(y), as_integers(u)[0]
    total = np.zeros(len(u), dtype=object)
    for vector in null_space(A.T):
        free = int(np.flatnonzero(vector)[-1])  # zero in the other vectors of the basis
        total = total + stated[free] * vector * (1 if vector[free] > 0 else -1)
    size = int(np.abs(total).sum())
    exact = Fraction(abs(int(total @ targets)), size or 1) * Fraction(2) ** power
    return math.nextafter(float(exact), 0.0)
