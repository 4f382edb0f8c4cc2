r"""The point of a polytope that is nearest to the origin.

    minimise  ||sum_i t_i p_i||   such that   t >= 0,  sum_i t_i = 1

by P. Wolfe's method ("Finding the nearest point in a polytope", Math. Program. 11 (1976) 128-149).
It keeps a corral of affinely independent points, moves to the nearest point of their affine hull,
and drops those whose weight would become negative on the way. At the end either x != 0 separates
all points from the origin, p_i.x >= ||x||^2, or the corral, of at most q + 1 points, has the origin
in its convex hull.

The least-squares systems are solved by the QR factors of the matrix with columns (1, p_i), which
are updated as points come and go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr_delete, qr_insert, solve_triangular

__all__ = ["NearestPoint"]

Array = NDArray[np.float64]

# Weights below this are zero; points nearer than this to optimality are not entered.
_ZERO = 1e-12
_REFRESH = 60


class NearestPoint:
    """Wolfe's method on a growing list of points.

    Parameters
    ----------
    points : array of shape (m, q)
        About of length one.

    Attributes
    ----------
    points : array of shape (m, q)
    corral : list of int
        The points that x is made of.
    weights : array
        Their weights, positive, of sum one.
    x : array of shape (q,)
    """

    def __init__(self, points: Array) -> None:
        self.points = points
        start = int(np.argmin((points**2).sum(axis=1)))
        self.corral, self.weights = [start], np.ones(1)
        self._factor()
        self.x = points[start].copy()
        self.is_stalled = False

    def add(self, points: Array) -> None:
        """More points; the corral stays."""
        self.points = np.vstack([self.points, points])
        self.is_stalled = False

    def _column(self, i: int) -> Array:
        return np.concatenate([[1.0], self.points[i]])

    def _factor(self) -> None:
        A = np.stack([self._column(i) for i in self.corral], axis=1)
        self.Q, self.R = np.linalg.qr(A, mode="complete")
        self.updates = 0

    def _enter(self, i: int) -> None:
        m = len(self.corral)
        self.corral.append(i)
        self.weights = np.append(self.weights, 0.0)
        self.updates += 1
        if self.updates > _REFRESH:
            self._factor()
        else:
            self.Q, self.R = qr_insert(
                self.Q, self.R, self._column(i), m, which="col", check_finite=False
            )

    def _drop(self, place: int) -> None:
        del self.corral[place]
        self.weights = np.delete(self.weights, place)
        self.updates += 1
        self.Q, self.R = qr_delete(self.Q, self.R, place, 1, which="col", check_finite=False)

    def _affine(self) -> Array | None:
        """Weights of the nearest point of the affine hull; None if rounding hides it."""
        m = len(self.corral)
        R = self.R[:m, :m]
        size = np.abs(R.diagonal())
        if len(size) < m or size.min() <= 1e-14 * size.max():
            return None
        ones = np.ones(m)
        u = solve_triangular(R, solve_triangular(R, ones, trans=1, check_finite=False))
        total = u.sum()
        return u / total if np.isfinite(total) and total > 0 else None

    def improve(self, enough: float = 1.0, most: int = 100_000) -> bool:
        """Steps until p_i.x >= enough ||x||^2 for all points, or x vanishes, or nothing improves.

        Parameters
        ----------
        enough : float
            Up to one; one asks for the nearest point itself.

        Returns
        -------
        separates : bool
            Whether all p_i.x > 0, as far as rounding tells.
        """
        for _ in range(most):
            length = float(self.x @ self.x)
            if length <= _ZERO**2:
                return False
            inner = self.points @ self.x
            i = int(np.argmin(inner))
            if inner[i] >= enough * length * (1 - 1e-9) or i in self.corral:
                self.is_stalled = bool(inner[i] < 0.5 * length)
                return bool(inner[i] > 0)
            self._enter(i)
            if not self._minor():
                self.is_stalled = True
                return False
            moved = self.points[self.corral].T @ self.weights
            if moved @ moved >= length:
                self.is_stalled = True
                self.x = moved
                return bool((self.points @ moved).min() > 0)
            self.x = moved
        return False

    def _minor(self) -> bool:
        """From the current weights to the nearest point of the hull of some of the corral."""
        for _ in range(len(self.corral) + 1):
            target = self._affine()
            if target is None:
                # The newest point lies in the affine hull of the others, up to rounding.
                self._factor()
                target = self._affine()
                if target is None:
                    return False
            if (target > _ZERO).all():
                self.weights = target
                return True
            falling = target <= _ZERO
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(falling, self.weights / (self.weights - target), np.inf)
            ratio[np.isnan(ratio)] = 0.0
            step = min(1.0, float(ratio.min()))
            self.weights = self.weights + step * (target - self.weights)
            self.weights[int(np.argmin(ratio))] = 0.0
            for place in reversed(np.flatnonzero(self.weights <= _ZERO)):
                if len(self.corral) > 1:
                    self._drop(int(place))
            self.weights = np.maximum(self.weights, 0.0)
            self.weights /= self.weights.sum()
        return True
