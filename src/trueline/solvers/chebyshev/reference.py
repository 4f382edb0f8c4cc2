r"""A reference of p + 1 rows, and the exchange of one row for another.

Rows q_i of p coordinates, targets r_i. A reference is p + 1 rows of rank p; up to a factor there is
one lambda with sum_i lambda_i q_i = 0 over them. With sigma_i = sign(lambda_i) and
sum_i abs(lambda_i) = 1 the system

    sigma_i q_i.v + h = sigma_i r_i            for the rows of the reference

has one solution: errors of equal magnitude h, which no v can bring below h on all of these rows,
for sum_i lambda_i (r_i - q_i.v) = h whatever v is. If no other row errs by more than h, v is
optimal. Otherwise the row that errs most enters, and the ratio test decides which row leaves so
that the multipliers keep their signs; h rises by the share of the new row in what it errs too much
(E. Stiefel, "Ueber diskrete und lineare Tschebyscheff-Approximationen", Numer. Math. 1 (1959)
1-28). This is the simplex method on the dual linear program, whose basis matrix B has the columns
(sigma_i q_i, 1) and whose solution is B lambda = (0, ..., 0, 1) with lambda >= 0.

Where multipliers vanish h may stay as it is. A right hand side (0, ..., 0, 1) + e B delta with
random delta > 0 and infinitely small e has no such steps, so that nothing can cycle (A. Charnes,
"Optimality and degeneracy in linear programming", Econometrica 20 (1952) 160-170): ties of the
ratio test are broken by the same test on delta. Where rounding makes a delta negative it is drawn
anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.chebyshev.kernels import ZERO, exchange_rows

__all__ = ["Reference"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Multipliers as negative as this are not rounding of zero.
_NEGATIVE = 1e-9
# Exchanges after which the inverse is computed afresh.
_REFACTOR = 100


class Reference:
    """A reference among working rows, exchanged until none of them errs more.

    Parameters
    ----------
    Q : array of shape (m, p)
    r : array of shape (m,)
    rows : array of int of shape (p + 1,)
        Which of the working rows, of rank p.

    Attributes
    ----------
    Q, r : arrays
        The working rows; :meth:`extend` adds more.
    rows : array of int
    signs : array of shape (p + 1,)
    multipliers : array of shape (p + 1,)
        lambda >= 0; with their signs they are ``signs * multipliers``.
    v : array of shape (p,)
    level : float
        h.
    exchanges : int
    """

    def __init__(self, Q: Array, r: Array, rows: Indices) -> None:
        self.Q, self.r, self.rows = np.ascontiguousarray(Q), r, rows.copy()
        self.exchanges = 0
        self._ease = _ease(Q)
        null = _null_vector(Q[rows])
        null[np.abs(null) <= ZERO] = 0.0
        if null @ r[rows] < 0:
            null = -null
        self.signs = np.where(null < 0, -1.0, 1.0)
        self._delta = np.random.default_rng(0).uniform(0.5, 1.0, len(rows))
        self._state = np.array([1], dtype=np.uint64)
        self._factor()

    def _basis(self) -> Array:
        """B of the module's text."""
        signed = self.signs[:, None] * self.Q[self.rows]
        return np.concatenate([signed, np.ones((len(signed), 1))], axis=1).T

    def _factor(self) -> None:
        """Inverse, multipliers and solution of the reference, without a history."""
        self._inverse = np.ascontiguousarray(np.linalg.inv(self._basis()))
        multipliers = self._inverse[:, -1].copy()
        if (multipliers < -_NEGATIVE).any():
            # Rounding has led astray; with other signs every reference is one all the same.
            null = _null_vector(self.Q[self.rows])
            null = -null if null @ self.signs < 0 else null
            self.signs = np.where(np.abs(null) <= ZERO, self.signs, np.sign(null))
            self._inverse = np.ascontiguousarray(np.linalg.inv(self._basis()))
            multipliers = np.abs(null)
        self.multipliers = np.where(multipliers <= ZERO, 0.0, multipliers)
        self._solve()

    def _solve(self) -> None:
        solution = (self.signs * self.r[self.rows]) @ self._inverse
        self.v, self.level = solution[:-1], float(solution[-1])

    def polish(self) -> None:
        """The exact level and coordinates of the reference, to rounding."""
        self._factor()
        Q, r = self.Q[self.rows], self.r[self.rows]
        for _ in range(2):
            missed = self.signs * (r - Q @ self.v) - self.level
            step = missed @ self._inverse
            self.v, self.level = self.v + step[:-1], self.level + float(step[-1])

    def extend(self, Q: Array, r: Array) -> None:
        """More working rows."""
        self.Q, self.r = np.concatenate([self.Q, Q]), np.concatenate([self.r, r])
        self._ease = _ease(self.Q)

    def optimise(self, noise: float, most: int) -> bool:
        """Exchange until no working row errs by more than the level and the noise.

        Returns False if that took more than ``most`` exchanges.
        """
        while most > 0:
            done = exchange_rows(
                self.Q,
                self.r,
                self._ease,
                noise,
                self._inverse,
                self.rows,
                self.signs,
                self.multipliers,
                self._delta,
                self._state,
                min(most, _REFACTOR),
            )
            if done == 0:
                return True
            self.exchanges += done
            most -= done
            self._factor()  # look again with an inverse without a history
        return False


def _ease(Q: Array) -> Array:
    """1 / ||(q_i, 1)||: the distance of v and h from a row per unit of its error."""
    return 1.0 / np.sqrt(1.0 + np.einsum("ij,ij->i", Q, Q))


def _null_vector(Q: Array) -> Array:
    """lambda with Q^T lambda = 0 and magnitudes that sum to one."""
    full = np.linalg.qr(Q, mode="complete")[0][:, -1]
    return full / np.abs(full).sum()
