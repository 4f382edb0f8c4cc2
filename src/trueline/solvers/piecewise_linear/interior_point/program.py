r"""A convex function made of kinks, in the form that the methods of this package share.

    minimise over v     ell.v + 1/2 sum_j quad_j v_j^2 + sum_e c_e max(0, a_e.v - t_e)

A row of a piecewise linear loss is a line and one kink e for each place where its slope rises, by
c_e: the line goes into ell. A coefficient with a penalty abs(v_j) is a kink at 0 of a row that is
the unit vector e_j. All kinks of a row share its scores; the rows A of shape (m, p) are dense.

At the minimum there are multipliers pi_e in [0, c_e] with

    ell_j + quad_j v_j + sum_e pi_e a_ej = 0,    pi_e = 0 where a_e.v < t_e, c_e where a_e.v > t_e:

the rows whose multipliers are strictly inside lie exactly on their kinks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.gram import weighted_gram
from trueline.numerics.jit import kernel

Array = NDArray[np.float64]

# Gram matrices of so few products are formed at once.
_SMALL = 1_000_000


@dataclass(frozen=True)
class Program:
    """The function above.

    Attributes
    ----------
    A : array of shape (m, p)
        Rows, of columns of similar size.
    ell : array of shape (p,)
    quad : array of shape (p,)
    lasso : array of int
        Coefficients with a kink at zero.
    t, c : arrays of shape (kinks * m + len(lasso),)
        Where the kinks are and by how much the slope rises there: first those of all rows, as often
        as a row has kinks, then those of the coefficients.
    share : array like t, or float
        The part of c at which the multipliers cancel the lines of their rows.
    """

    A: Array
    ell: Array
    quad: Array
    lasso: NDArray[np.intp]
    t: Array
    c: Array
    share: Array | float = field(default=0.5, kw_only=True)

    @property
    def is_linear(self) -> bool:
        """Whether there is no curvature between the kinks."""
        return not self.quad.any()

    @property
    def _rows(self) -> int:
        return len(self.t) - len(self.lasso)

    def offsets(self, v: Array) -> Array:
        """a_e.v - t_e for all kinks."""
        return self.scores(v) - self.t

    def scores(self, v: Array) -> Array:
        """a_e.v for all kinks."""
        z = self.A @ v
        if len(z) == len(self.t):  # one kink for each row and none of coefficients
            return z
        parts = [z] * (self._rows // len(z)) if len(z) else []
        return np.concatenate([*parts, v[self.lasso]])

    def rmatvec(self, weights: Array) -> Array:
        """sum_e weights_e a_e."""
        if len(self.A) == len(self.t):
            return self.A.T @ weights
        out = self.A.T @ self.by_row(weights)
        out[self.lasso] += weights[self._rows :]
        return out

    def gram(self, weights: Array) -> Array:
        """sum_e weights_e a_e a_e^T + diag(quad)."""
        by_row, A = self.by_row(weights), self.A
        there = np.flatnonzero(by_row)
        if len(there) * A.shape[1] ** 2 < _SMALL:
            rooted = np.sqrt(by_row[there])[:, None] * A[there]
            out = rooted.T @ rooted
        else:
            if 2 * len(there) < len(by_row):
                A, by_row = A[there], by_row[there]
            out = weighted_gram(A, by_row, compiled=True)
        diagonal = self.quad.copy()
        diagonal[self.lasso] += weights[self._rows :]
        out.flat[:: len(out) + 1] += diagonal
        return out

    def rows(self, kinks: NDArray[np.intp]) -> Array:
        """The rows a_e of some kinks."""
        if not len(self.lasso):
            return self.A[kinks % max(1, len(self.A))]
        out = np.zeros((len(kinks), len(self.ell)))
        of_rows = kinks < self._rows
        out[of_rows] = self.A[kinks[of_rows] % max(1, len(self.A))]
        own = np.flatnonzero(~of_rows)
        out[own, self.lasso[kinks[own] - self._rows]] = 1.0
        return out

    def row(self, kink: int) -> Array:
        """The row a_e of one kink."""
        if kink < self._rows:
            return self.A[kink % len(self.A)]
        return self.rows(np.array([kink]))[0]

    def at_zero(self, kinks: NDArray[np.intp]) -> NDArray[np.intp]:
        """The coefficients whose own kinks, at zero, are among these."""
        return self.lasso[kinks[kinks >= self._rows] - self._rows]

    def slopes(self, multipliers: Array, v: Array) -> Array:
        """The derivative of the function, for multipliers of the kinks."""
        return self.ell + self.quad * v + self.rmatvec(multipliers)

    def value(self, v: Array) -> float:
        """The function at a point."""
        kinks = self.c @ np.maximum(self.offsets(v), 0.0)
        return float(self.ell @ v + 0.5 * self.quad @ v**2 + kinks)

    def by_row(self, weights: Array) -> Array:
        """Weights of kinks, added up by row."""
        m = len(self.A)
        of_rows = weights[: self._rows]
        return of_rows if self._rows == m else of_rows.reshape(-1, m).sum(axis=0)


Indices = NDArray[np.intp]

# The slope along a direction counts as zero at this part of where it began.
_FLAT = 0.1
_TRIALS, _FARTHEST = 60, 1e6


@kernel
def pieces(z: Array, y: Array, kinks: Array) -> tuple[NDArray[np.int8], Array, Indices]:
    """On which straight piece each row is, how far its nearest kink is, and each piece's rows."""
    piece, distance = np.empty(len(z), dtype=np.int8), np.empty(len(z))
    there = np.zeros(len(kinks) + 1, dtype=np.intp)
    for i in range(len(z)):
        residual, passed, nearest = z[i] - y[i], 0, np.inf
        for kink in kinks:
            passed += residual > kink
            nearest = min(nearest, abs(residual - kink))
        piece[i], distance[i] = passed, nearest
        there[passed] += 1
    return piece, distance, there


@kernel
def ramped(share: Array, offset: Array, c: Array, gamma: float) -> tuple[Array, Array, int]:
    """Multipliers of rounded kinks, how fast they rise, and how many are on their ramps.

    pi_e = c_e clip(share_e + offset_e / gamma, 0, 1) rises by c_e / gamma on its ramp, else by 0.
    """
    pi, rise, count = np.zeros(len(c)), np.zeros(len(c)), 0
    for e in range(len(c)):
        part = share[e] + offset[e] / gamma
        if part >= 1.0:
            pi[e] = c[e]
        elif part > 0.0:
            pi[e] = c[e] * part
            rise[e] = c[e] / gamma
            count += 1
    return pi, rise, count


@kernel
def step_length(
    share: Array,
    offset: Array,
    moved: Array,
    c: Array,
    gamma: float,
    line: float,
    curvature: float,
    first: float,
) -> float:
    """Where the function of rounded kinks stops falling along a direction, roughly.

    Its slope line + t curvature + sum_e pi_e moved_e only rises. Zero if it does not fall at
    first, or without end.

    Parameters
    ----------
    share, offset, moved, c : arrays
        Of the kinks: as in the program, at the start, and how the offsets change with t.
    gamma : float
    line, curvature : float
        What everything but the kinks adds to the slope.
    first : float
        The slope at t = 0.
    """
    if not first < 0:
        return 0.0
    low, low_slope, high = 0.0, first, 1.0
    high_slope = line + curvature + _slope_along(share, offset, moved, c, gamma, high)
    while high_slope < _FLAT * first:
        if high > _FARTHEST:
            return 0.0
        low, low_slope, high = high, high_slope, 2 * high
        high_slope = line + high * curvature + _slope_along(share, offset, moved, c, gamma, high)
    for _ in range(_TRIALS):
        if high_slope <= -_FLAT * first:
            return high
        middle = low + (high - low) * low_slope / (low_slope - high_slope)
        middle = min(max(middle, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        value = line + middle * curvature + _slope_along(share, offset, moved, c, gamma, middle)
        if abs(value) <= -_FLAT * first:
            return middle
        if value < 0:
            low, low_slope = middle, value
        else:
            high, high_slope = middle, value
    return low if low > 0.0 else high


@kernel(reassociate=True)
def _slope_along(
    share: Array, offset: Array, moved: Array, c: Array, gamma: float, t: float
) -> float:
    """sum_e pi_e moved_e, with the multipliers of rounded kinks at offset + t moved."""
    total = 0.0
    for e in range(len(c)):
        part = share[e] + (offset[e] + t * moved[e]) / gamma
        total += c[e] * moved[e] * min(max(part, 0.0), 1.0)
    return total


@kernel(reassociate=True)
def extend_basis(rows: Array, least: float, basis: Array, count: int, chosen: Indices) -> int:
    """Orthonormal rows of ``basis`` from those given rows that do not depend on earlier ones.

    Gram-Schmidt, repeated where much cancels. The places of rows taken go into ``chosen``.

    Parameters
    ----------
    rows : array of shape (m, p)
    least : float
        A row depends on others if what is outside of their span is shorter than this part of it.
    basis : array of shape (p, p)
        Whose first ``count`` rows are there already.
    count : int
    chosen : array of int of shape (m,)

    Returns
    -------
    taken : int
    """
    p, taken = basis.shape[1], 0
    rest = np.empty(p)
    for place in range(rows.shape[0]):
        if count + taken == p:
            break
        whole = 0.0
        for j in range(p):
            rest[j] = rows[place, j]
            whole += rest[j] * rest[j]
        before, left = np.inf, whole
        while left < 0.5 * before:  # once more where much cancelled
            for i in range(count + taken):
                along = 0.0
                for j in range(p):
                    along += basis[i, j] * rest[j]
                for j in range(p):
                    rest[j] -= along * basis[i, j]
            before, left = left, 0.0
            for j in range(p):
                left += rest[j] * rest[j]
            if left <= least * least * whole:
                break
        if left > 0.0 and left > least * least * whole:
            left = np.sqrt(left)
            for j in range(p):
                basis[count + taken, j] = rest[j] / left
            chosen[taken] = place
            taken += 1
    return taken
