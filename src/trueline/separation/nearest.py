r"""The point of a polytope that is nearest to the origin.

    minimise  ||sum_i t_i p_i||   such that   t >= 0,  sum_i t_i = 1

by P. Wolfe's method ("Finding the nearest point in a polytope", Math. Program. 11 (1976) 128-149).
It keeps a corral of affinely independent points, moves to the nearest point of their affine hull,
and drops those whose weight would become negative on the way. At the end either x != 0 separates
all points from the origin, p_i.x >= ||x||^2, or the corral, of at most q + 1 points, has the origin
in its convex hull.

The least-squares systems are solved by the triangular factor R of the matrix with columns
(1, p_i): ``R^T R = 1 1^T + P P^T``, without forming that product. A point that enters is
orthogonalised twice; when one leaves, the part of R behind it is triangularised again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Weights below this are zero; points nearer than this to optimality are not entered.
_ZERO = 1e-12


class NearestPoint:
    """Wolfe's method on a growing list of points.

    Parameters
    ----------
    points : array of shape (m, q)
        About of length one.

    Attributes
    ----------
    points : array of shape (m, q)
    corral : list
        The points that x is made of, by their numbers.
    weights : array
        Their weights, positive, of sum one.
    x : array of shape (q,)
    """

    def __init__(self, points: Array) -> None:
        self.points = points
        start = int(np.argmin((points**2).sum(axis=1)))
        self.corral: list[Any] = [start]
        self.weights = np.ones(1)
        #: The matrix with rows (1, p_i), and the triangular factor of its transpose.
        self.A = np.concatenate([[1.0], points[start]])[None, :]
        self.R = np.full((1, 1), np.sqrt(self.A[0] @ self.A[0]))
        self.x = points[start].copy()
        self.is_stalled = False

    def add(self, points: Array) -> None:
        """More points; the corral stays."""
        self.points = np.vstack([self.points, points])
        self.is_stalled = False

    def _enter(self, i: Any, point: Array) -> None:
        A, m = self.A, len(self.corral)
        a = np.empty(A.shape[1])
        a[0], a[1:] = 1.0, point
        along = dtrtrs(self.R, A @ a, trans=1)[0]
        rest = a - dtrtrs(self.R, along)[0] @ A
        if rest @ rest < 0.01 * (a @ a):
            # Much has cancelled: what is left along the others goes, too.
            part = dtrtrs(self.R, A @ rest, trans=1)[0]
            along = along + part
            rest = rest - dtrtrs(self.R, part)[0] @ A
        R = np.zeros((m + 1, m + 1), order="F")
        R[:m, :m], R[:m, m], R[m, m] = self.R, along, np.sqrt(rest @ rest)
        self.R = R
        self.A = np.vstack([A, a])
        self.corral.append(i)
        self.weights = np.append(self.weights, 0.0)

    def _drop(self, place: int) -> None:
        R = np.delete(self.R, place, axis=1)
        R[place:-1, place:] = np.linalg.qr(R[place:, place:], mode="r")
        self.R = np.asfortranarray(R[:-1])
        self.A = np.delete(self.A, place, axis=0)
        del self.corral[place]
        self.weights = np.delete(self.weights, place)

    def _affine(self) -> Array | None:
        """Weights of the nearest point of the affine hull; None if rounding hides it."""
        size = np.abs(self.R.diagonal())
        if size.min() <= 1e-14 * size.max():
            return None
        u = self.solve(np.ones(len(size)))
        if size.min() <= 1e-3 * size.max():
            # One correction makes up for the square of the condition (A. Bjorck 1987).
            u += self.solve(1.0 - self.A @ (u @ self.A))
        total = u.sum()
        return u / total if np.isfinite(total) and total > 0 else None

    def solve(self, v: Array) -> Array:
        """(1 1^T + P P^T)^-1 v, for the points of the corral."""
        return np.asarray(dtrtrs(self.R, dtrtrs(self.R, v, trans=1)[0])[0])

    def _lowest(self) -> tuple[Any, Array, float]:
        """The point farthest behind x: its name in the corral, itself, and p.x."""
        inner = self.points @ self.x
        i = int(np.argmin(inner))
        return i, self.points[i], float(inner[i])

    def improve(self, enough: float = 1.0, most: int = 100_000) -> bool:
        """Steps until p_i.x >= enough ||x||^2 for all points, or x vanishes, or nothing improves.

        Parameters
        ----------
        enough : float
            Below one; nearly one asks for the nearest point itself.

        Returns
        -------
        separates : bool
            Whether all p_i.x > 0, as far as rounding tells.
        """
        for _ in range(most):
            length = float(self.x @ self.x)
            if length <= _ZERO**2:
                return False
            i, point, inner = self._lowest()
            noise = 16 * _EPS * float(np.sqrt(length))
            if inner >= enough * length - noise or i in self.corral:
                self.is_stalled = inner < 0.5 * enough * length
                return inner > 0
            before = self.corral.copy(), self.weights, self.A, self.R, self.x
            self._enter(i, point)
            if self._minor():
                self.x = self.weights @ self.A[:, 1:]
                if self.x @ self.x < length:
                    continue
            # Rounding has the last word: nothing more can be gained.
            self.corral, self.weights, self.A, self.R, self.x = before
            self.is_stalled = inner < 0.5 * enough * length
            return inner > 0
        return False

    def _minor(self) -> bool:
        """From the current weights to the nearest point of the hull of some of the corral."""
        for _ in range(len(self.corral) + 1):
            target = self._affine()
            if target is None:
                return False  # a point in the affine hull of the others, up to rounding
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


class NearestPair(NearestPoint):
    """The same for the differences of the points of two polytopes: their distance.

    The corral is of pairs (i, j), which stand for ``above[i] - below[j]``.

    Parameters
    ----------
    above, below : arrays of shape (m, q) and (m', q)
    """

    def __init__(self, above: Array, below: Array) -> None:
        self.above, self.below = above, below
        super().__init__(above[:1] - below[:1])
        self.corral = [(0, 0)]

    def extend(self, above: Array, below: Array) -> None:
        """More points of both polytopes."""
        self.above = np.vstack([self.above, above])
        self.below = np.vstack([self.below, below])
        self.is_stalled = False

    def _lowest(self) -> tuple[Any, Array, float]:
        i = int(np.argmin(self.above @ self.x))
        j = int(np.argmax(self.below @ self.x))
        point = self.above[i] - self.below[j]
        return (i, j), point, float(point @ self.x)
