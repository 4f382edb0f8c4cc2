r"""A face of the optimal solutions, and the smallest largest error on it.

On a face some coordinates are free: v = origin + directions v'. At first these are all. The rows
that carry a minimum (those with multipliers) err alike in every minimum; fixing their errors leaves
the directions that are orthogonal to them, and only rows that these directions move count there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve, qr

from trueline.numerics.blas import singular_values, svd
from trueline.solvers.chebyshev.reference import Reference
from trueline.solvers.chebyshev.rows import Rows

__all__ = ["Answer", "Face", "Minimum", "working_rows"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Working rows at first, some and some per coordinate, and half of the former in later rounds:
# fewer need more passes, more make every exchange dearer.
_FEWEST, _PER_COORDINATE = 200, 3
# Directions that working rows determine less than this are looked for in all rows.
_WEAK = 1e-6
# Rows that are moved by less than this (they have norms around one) are not moved.
_STILL = 1e-10


@dataclass
class Answer:
    """One target: coefficients, the rows that carry them with their multipliers, and the work."""

    w: Array
    b: float
    rows: Indices
    multipliers: Array
    exchanges: int = 0
    rounds: int = 0
    working: int = 0


class Minimum(NamedTuple):
    """Free coordinates, the largest error, and the rows that carry it with their multipliers."""

    v: Array
    level: float
    rows: Indices
    multipliers: Array


def working_rows(n: int, p: int) -> int:
    """How many rows are exchanged at first."""
    return min(n, _FEWEST + _PER_COORDINATE * p)


@dataclass
class Face:
    """Coordinates origin + directions v', and the rows that these move.

    Attributes
    ----------
    source : Rows
    origin : array of shape (p,)
    directions : array of shape (p, free)
        Orthonormal columns.
    counts : array of bool of shape (n,)
        The rows that count.
    seen : array of int
        Rows that were worked on before.
    idle : array of int
        Rows of the last reference without multipliers: independent on the face beyond.
    """

    source: Rows
    origin: Array
    directions: Array
    counts: NDArray[np.bool_]
    seen: Indices
    idle: Indices

    @property
    def size(self) -> int:
        """Number of free coordinates."""
        return self.directions.shape[1]

    def gather(self, rows: Indices) -> Array:
        """Some rows in the free coordinates."""
        return self.source.gather(rows) @ self.directions

    def errors(self, v: Array) -> Array:
        """Errors of all rows; zero for those that do not count."""
        error = self.source.errors(self.origin + self.directions @ v)
        return error if self.counts.all() else np.where(self.counts, error, 0.0)

    def beyond(self, rows: Indices) -> Face:
        """The face on which these rows err as they do now."""
        if len(rows) > self.size:  # a whole reference leaves nothing free
            nothing = self.directions[:, :0]
            none = np.zeros_like(self.counts)
            return Face(self.source, self.origin, nothing, none, self.seen, self.idle)
        _, size, Vt = svd(self.gather(rows), full_matrices=True)
        rank = int(np.count_nonzero(size > _STILL * size.max(initial=0.0)))
        directions = self.directions @ Vt[rank:].T
        # What no direction moves, no mixture of them moves, and conversely with probability one.
        mixtures = np.random.default_rng(0).standard_normal((directions.shape[1], 2))
        moved = np.abs(self.source.products(directions @ mixtures)).max(axis=1)
        counts = self.counts & (moved > _STILL)
        return Face(self.source, self.origin, directions, counts, self.seen, self.idle)

    def minimise(self, work: Answer) -> Minimum:
        """The smallest largest error on this face; the work is added to what was done before."""
        p, n = self.size, int(self.counts.sum())
        residual = self.errors(np.zeros(p))
        working, Q = self._first_rows(np.abs(residual), working_rows(n, p))
        if n <= p:
            return self._interpolation(working, Q, residual)
        # What the residuals were rounded by when they were formed is part of the data from here on.
        noise = 64 * _EPS * float(np.abs(residual).max())
        first = self._first_reference(working, Q, residual[working])
        reference = Reference(Q, residual[working], first)
        more = (_FEWEST + _PER_COORDINATE * p) // 2
        while True:
            work.rounds += 1
            finished = reference.optimise(noise, 50 * (p + 1) + 10_000)
            reference.polish()
            error = np.abs(self.errors(reference.v))
            error[working] = 0.0
            beyond = np.flatnonzero(error > reference.level + 4 * noise)
            if not len(beyond) or not finished:
                break
            if len(beyond) > more:
                beyond = beyond[np.argpartition(-error[beyond], more - 1)[:more]]
            working = np.concatenate([working, beyond])
            reference.extend(self.gather(beyond), residual[beyond])
        work.exchanges += reference.exchanges
        work.working = max(work.working, len(working))
        self.seen = working
        self.idle = working[reference.rows[reference.multipliers == 0]]
        carried = reference.multipliers > 0
        return Minimum(
            reference.v,
            reference.level,
            working[reference.rows[carried]],
            (reference.signs * reference.multipliers)[carried],
        )

    def _interpolation(self, rows: Indices, Q: Array, residual: Array) -> Minimum:
        """As many coordinates as rows: no error is left."""
        factor = lu_factor(Q, check_finite=False)
        v = lu_solve(factor, residual[rows])
        v = v + lu_solve(factor, self.errors(v)[rows])
        return Minimum(v, 0.0, np.empty(0, dtype=np.intp), np.empty(0))

    def _first_reference(self, working: Indices, Q: Array, r: Array) -> Indices:
        """Of the rows that the reference before left over, or of any that are independent."""
        first = np.flatnonzero(np.isin(working, self.idle))
        if len(first) == self.size:
            size = singular_values(Q[first])
            if size[-1] > _WEAK * size[0]:
                return _reference(Q, r, first)
        first = qr(Q.T, mode="r", pivoting=True, check_finite=False)[1][: self.size]
        return _reference(Q, r, first)

    def _first_rows(self, error: Array, count: int) -> tuple[Indices, Array]:
        """The rows that err most, and as many more as are needed to determine all coordinates."""
        candidates = np.flatnonzero(self.counts)
        rows = candidates
        if count < len(candidates):
            most = candidates[np.argpartition(-error[candidates], count - 1)[:count]]
            rows = np.union1d(most, self.seen[self.counts[self.seen]])
        Q = self.gather(rows)
        while len(rows) < len(candidates):
            # The last rows of V^T: directions that the working rows hardly see.
            _, size, Vt = svd(np.asarray(np.linalg.qr(Q, mode="r")), full_matrices=True)
            weak = Vt[size <= _WEAK * size[0]]
            if not len(weak):
                break
            seen = np.abs(self.source.products(self.directions @ weak.T))
            seen[~self.counts] = seen[rows] = 0.0
            extra = np.unique(seen.argmax(axis=0))
            rows = np.concatenate([rows, extra])
            Q = np.concatenate([Q, self.gather(extra)])
        return rows, Q


def _reference(Q: Array, r: Array, first: Indices) -> Indices:
    """A first reference: independent rows, and the one that errs most if these do not err."""
    error = np.abs(r - Q @ np.linalg.solve(Q[first], r[first]))
    error[first] = -1.0
    return np.append(first, int(error.argmax()))
