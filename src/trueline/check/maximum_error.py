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
the
   stated one wherever it may be chosen.

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
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, SMALLEST, exact_product, residual_doubled, sum_units
from trueline.check.claims import judged, read_about
from trueline.check.exact import as_integers, dense, null_space
from trueline.check.rows import Rows
from trueline.check.schema import Field
from trueline.check.verdict import Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

_WITNESS = {
    "rows": Field(("m",), "integer", low=0),
    "dual": Field(("m", "k"), low=-1.0, high=1.0),
    "column_exponent": Field(("d",), "integer", low=-2200, high=2200, optional=True),
    "target_exponent": Field(("k",), "integer", low=-2200, high=2200, optional=True),
}
# Products of integers in an elimination that take about a second.
_FEW = 3e5


def check(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
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
        w, b, target = claim.coef[:, t], float(claim.intercept[t]), rows.y[:, t]
        least, most = _largest_error(rows, target, w, b)
        low, high = low + least, high + most
        used = claim.rows[claim.dual[:, t] != 0]
        u, X_used = claim.dual[claim.dual[:, t] != 0, t], dense(rows.X[used])
        enough = claim.objective + claim.objective_rounding - claim.gap if rows.k == 1 else np.inf
        bound = _lower_bound(X_used, target[used], u, w, b, claim.fit_intercept, enough, effort)
        close, radius = _near(X_used, target[used], u, w, b, claim.fit_intercept, most)
        proven, near = proven + bound, near + max(bound, close)
        radii += [radius] * (close > bound)
    value, error = (low + high) / 2, (high - low) / 2 * (1 + 4 * EPS) + rows.k * EPS * high
    checks = judged(claim, value, error, proven * (1 - rows.k * EPS))
    if checks[1].holds:
        radii = []
    else:
        checks = judged(claim, value, error, near * (1 - rows.k * EPS))
    unit = ", columns and target multiplied by the stated powers of two" * scaled
    return Verification(
        checks,
        f"no coefficients have a largest error below {claim.objective:.10g} by more than "
        f"{claim.gap:.3g}{unit}",
        tuple(radii),
    )


def _largest_error(rows: Rows, y: Array, w: Array, b: float) -> tuple[float, float]:
    """Bounds on the largest error; rows that may have it are evaluated in twice the digits."""
    error, off = np.zeros(rows.n), np.zeros(rows.n)
    for where, block in rows.blocks():
        error[where] = np.abs(y[where] - (block @ w + b))
        off[where] = abs(block) @ np.abs(w) + abs(b) + np.abs(y[where])
    off = (rows.row_terms + 4) * EPS * off + rows.d * SMALLEST
    least, most = 0.0, 0.0
    near = np.flatnonzero(~(error + off < np.max(error - off, initial=0.0)))
    for start in range(0, len(near), 512):
        X, own = dense(rows.X[near[start : start + 512]]), y[near[start : start + 512]]
        exact = np.abs(residual_doubled(X, w, b, own)[0])
        size = np.abs(X) @ np.abs(w) + abs(b) + np.abs(own)
        away = sum_units(rows.d + 2) * size + 2 * EPS * exact + rows.d * SMALLEST
        least = max(least, float((exact - away).max(initial=0.0)))
        most = max(most, float((exact + away).max(initial=0.0)))
    return least, most


def _lower_bound(
    X: Array, y: Array, u: Array, w: Array, b: float, with_ones: bool, enough: float, effort: str
) -> float:
    """What every largest error is at least, from rows with multipliers."""
    if len(u) == 0:
        return 0.0
    best = max(_repaired(X, y, u, w, b, with_ones), 0.0)
    p, m = X.shape[1] + with_ones, len(u)
    if best >= enough * (1 + 32 * EPS) or (p * p * m > _FEW and effort == "normal"):
        return best
    A, _ = as_integers(np.hstack([X, np.ones((m, int(with_ones)))]))
    targets, power = as_integers(y)
    stated, total = as_integers(u)[0], np.zeros(m, dtype=object)
    for vector in null_space(A.T):
        free = int(np.flatnonzero(vector)[-1])  # zero in the other vectors of the basis
        total = total + stated[free] * vector * (1 if vector[free] > 0 else -1)
    size = int(np.abs(total).sum())
    if size == 0:
        return best
    exact = Fraction(abs(int(total @ targets)), size) * Fraction(2) ** power
    return max(best, float(exact) * (1 - 2 * EPS))


def _repaired(X: Array, y: Array, u: Array, w: Array, b: float, with_ones: bool) -> float:
    """The first way of the text above, in doubles, on the safe side of their rounding."""
    m = len(u)
    centred = X - (X.mean(axis=0) if with_ones else 0.0)
    # Columns of zeros have nothing to repair.
    centred = centred[:, centred.any(axis=0)]
    centred = np.ldexp(centred, -np.frexp(np.abs(centred).max(axis=0, initial=0.0))[1])
    M = np.hstack([centred, np.ones((m, int(with_ones)))])
    if not np.isfinite(M).all():
        return 0.0
    R = np.linalg.pinv(M.T)
    # Differences in M err by eps/2 each, products by (m + 1) eps of their magnitudes.
    off = (m + 4) * EPS
    q = np.abs(np.eye(M.shape[1]) - M.T @ R) + off * (np.abs(M).T @ np.abs(R))
    missed = np.abs(M.T @ u) + off * (np.abs(M).T @ np.abs(u)) + m * SMALLEST
    left = 1.0 - float(q.sum(axis=1).max(initial=0.0)) * (1 + m * EPS)
    if not left > 0:
        return 0.0
    eta = float(np.abs(R).sum() * missed.max(initial=0.0)) / left * (1 + (m * m + 8) * EPS)
    value, largest = _weighted_errors(X, y, u, w, b)
    return (value - eta * largest) / (math.fsum(np.abs(u)) + eta) * (1 - 8 * EPS)


def _near(
    X: Array, y: Array, u: Array, w: Array, b: float, with_ones: bool, most: float
) -> tuple[float, str]:
    """The bound for coefficients within radii of the stated ones, and these radii in words."""
    if len(u) == 0:
        return 0.0, ""
    centred = X - (X.mean(axis=0) if with_ones else 0.0)
    spread = np.abs(centred).max(axis=0)
    alone = np.divide(most, spread, out=np.zeros(len(w)), where=spread > 0)
    R, B = 1e3 * (np.abs(w) + alone), 1e3 * most * with_ones
    V = np.abs(centred.T @ u) + (len(u) + 4) * EPS * (np.abs(centred).T @ np.abs(u))
    missed = float((V * R).sum()) * (1 + len(w) * EPS) + abs(math.fsum(u)) * B * (1 + 4 * EPS)
    value = _weighted_errors(X, y, u, w, b)[0] - missed * (1 + 4 * EPS)
    said = f"coefficients differ from the stated ones by at most {R.min():.3g} to {R.max():.3g}"
    said += f" (1000 times size and error / spread of each), their level by at most {B:.3g}"
    return value / math.fsum(np.abs(u)) * (1 - 8 * EPS), said


def _weighted_errors(X: Array, y: Array, u: Array, w: Array, b: float) -> tuple[float, float]:
    """sum_i u_i (y_i - x_i.w - b) from below, and the largest error of these rows from above."""
    high, low = residual_doubled(X, w, b, y)  # X w + b - y
    products, errors = exact_product(-u, high)
    value = math.fsum([*products.tolist(), *errors.tolist(), *(-u * low).tolist()])
    size = float(np.abs(u) @ (np.abs(X) @ np.abs(w) + abs(b) + np.abs(y)))
    units = sum_units(len(w) + 2) + 8 * EPS**2
    value -= units * size * (1 + len(u) * EPS) + 2 * EPS * abs(value) + len(u) * SMALLEST
    return value, float(np.abs(high).max()) * (1 + 4 * EPS)
