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
from trueline.solvers.piecewise_linear.interior_point.kernels import rooted_rows

__all__ = ["Program"]

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
        """Whether nothing bends between the kinks."""
        return not self.quad.any()

    @property
    def is_plain(self) -> bool:
        """Whether the rows of all kinks are those of A and of single coefficients."""
        return True

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
        out = self.A.T @ self._by_row(weights)
        out[self.lasso] += weights[self._rows :]
        return out

    def gram(self, weights: Array) -> Array:
        """sum_e weights_e a_e a_e^T + diag(quad)."""
        by_row, A = self._by_row(weights), self.A
        there = np.flatnonzero(by_row)
        if len(there) * A.shape[1] ** 2 < _SMALL:
            rooted = rooted_rows(A, there, by_row)
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

    def _by_row(self, weights: Array) -> Array:
        m = len(self.A)
        of_rows = weights[: self._rows]
        return of_rows if self._rows == m else of_rows.reshape(-1, m).sum(axis=0)
