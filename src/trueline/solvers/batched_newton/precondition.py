r"""Approximate inverses of the Hessians of problems that share their rows.

Folds share most of their rows and their solutions are close, so that one Hessian serves all:

    sum_i h_i [x_i, 1] [x_i, 1]^T + a I,       h_i the mean of the problems' s_i l''_i

is factored, where it has few columns, and kept as long as conjugate gradients end quickly with it
(a kept Hessian is Shamanskii's variant of Newton's method: C. T. Kelley, "Iterative Methods for
Linear and Nonlinear Equations", SIAM 1995, section 5.4). Held-out rows that are in it change the
way to the answer of a fold, not the answer. Scores that are coupled have one Hessian of (d + 1) k
columns. Of sparse and of wide rows the diagonal of each problem's Hessian is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from trueline.gram import weighted_gram
from trueline.solvers.batched_newton.rows import Batch
from trueline.solvers.curved.descent import Factor

__all__ = ["Preconditioner", "coupled_hessian", "make_preconditioner"]

Array = NDArray[np.float64]

# Wider Hessians are dear to factor.
_MOST_COLUMNS = 700
# Conjugate gradients that took no more steps are not worth another factor.
_FEW = 6
# Rows at a time, so that what they are multiplied by stays in the cache.
_BLOCK = 1024
# Products of pairs of columns are formed once for all classes where they fit into the cache.
_FEW_COLUMNS = 16
# Of the diagonal: shifts of all scores by the same, which no loss feels, stay where they are.
_TRACE = 1e-9


def make_preconditioner(batch: Batch) -> Preconditioner:
    """The one for these rows; nothing is computed yet."""
    d, k = batch.design.shape[1], batch.Y.shape[2]
    width = (d + 1) * (k if batch.is_coupled else 1)
    if batch.design.is_sparse or width > _MOST_COLUMNS:
        return _Diagonal()
    return (_Coupled if batch.is_coupled else _Factors)(batch)


class Preconditioner(ABC):
    """One approximate inverse for all problems."""

    def __init__(self) -> None:
        self.is_stale = True

    @abstractmethod
    def renew(self, batch: Batch, bending: Array) -> None:
        """Form it at the present points."""

    @abstractmethod
    def apply(self, batch: Batch, R: Array) -> Array:
        """Times R of shape (d + 1, p, k), for these problems."""

    def prepared(self, batch: Batch, bending: Array) -> Preconditioner:
        """The same, renewed if it has become too slow."""
        if self.is_stale:
            self.renew(batch, bending)
            self.is_stale = False
        return self

    def judge(self, batch: Batch, steps: int) -> None:
        """Whether conjugate gradients took more steps than a new one costs."""
        self.is_stale = steps > _FEW


class _Diagonal(Preconditioner):
    """The diagonals, of each problem its own, renewed at every point."""

    def renew(self, batch: Batch, bending: Array) -> None:
        h = batch.curvature(bending)
        diagonal = np.empty((batch.design.shape[1] + 1, *h.shape[1:]))
        for place in np.ndindex(h.shape[1:]):
            own = np.ascontiguousarray(h[:, *place])
            diagonal[:-1, *place] = batch.design.column_squares(own, None)
        diagonal[-1] = h.sum(axis=0)
        diagonal[:-1] += batch.strength[:, None]
        self._inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)

    def apply(self, batch: Batch, R: Array) -> Array:
        return R * self._inverse

    def judge(self, batch: Batch, steps: int) -> None:
        self.is_stale = True


class _Factors(Preconditioner):
    """A Cholesky factor for each score, which all problems share."""

    def __init__(self, batch: Batch) -> None:
        super().__init__()
        n, d = batch.design.shape
        self._A = np.empty((n, d + batch.fit_intercept))
        self._A[:, :d] = batch.design.toarray()
        self._A[:, d:] = 1.0
        self._strength, self._factors = np.nan, list[Factor]()

    def renew(self, batch: Batch, bending: Array) -> None:
        h = batch.curvature(bending).mean(axis=1)
        self._grams = [weighted_gram(self._A, np.ascontiguousarray(own)) for own in h.T]
        self._strength = np.nan

    def _refactored(self, batch: Batch) -> list[Factor]:
        """The factors for the strength that these problems have in the mean."""
        strength = float(batch.strength.mean())
        if strength != self._strength:
            d, m = batch.design.shape[1], self._A.shape[1]
            squares = np.repeat(np.where(np.arange(m) < d, strength, 0.0), len(self._grams[0]) // m)
            self._factors = [_factor(gram, squares) for gram in self._grams]
            self._strength = strength
        return self._factors

    def apply(self, batch: Batch, R: Array) -> Array:
        out, m = np.zeros_like(R), self._A.shape[1]
        for c, factor in enumerate(self._refactored(batch)):
            out[:m, :, c] = factor.solve(R[:m, :, c])
        return out


class _Coupled(_Factors):
    """One factor for all scores of a row together."""

    def renew(self, batch: Batch, bending: Array) -> None:
        self._grams = [coupled_hessian(self._A, batch.S.mean(axis=1), bending.mean(axis=1))]
        self._strength = np.nan

    def apply(self, batch: Batch, R: Array) -> Array:
        (factor,) = self._refactored(batch)
        out, (_, p, k), m = np.zeros_like(R), R.shape, self._A.shape[1]
        right = R[:m].transpose(0, 2, 1).reshape(m * k, p)
        out[:m] = factor.solve(right).reshape(m, k, p).transpose(0, 2, 1)
        return out

    def judge(self, batch: Batch, steps: int) -> None:
        # To form the Hessian costs about so many products with it, for all problems together.
        p, k = batch.Y.shape[1:]
        self.is_stale = steps > max(_FEW, self._A.shape[1] * k / (4 * p))


def coupled_hessian(A: Array, s: Array, Q: Array) -> Array:
    """sum_i s_i (diag(q_i) - q_i q_i^T) kron a_i a_i^T, ordered by column."""
    (_, m), k = A.shape, Q.shape[1]
    H, blocks = np.zeros((m * k, m * k)), np.zeros((k, m, m))
    used = np.flatnonzero(s)
    for start in range(0, len(used), _BLOCK):
        some = used[start : start + _BLOCK]
        rows, weighted = A[some], s[some, None] * Q[some]
        root = weighted / np.sqrt(s[some, None])
        B = (rows[:, :, None] * root[:, None, :]).reshape(len(some), m * k)
        H -= B.T @ B
        if m <= _FEW_COLUMNS:
            pairs = (rows[:, :, None] * rows[:, None, :]).reshape(len(some), m * m)
            blocks += (weighted.T @ pairs).reshape(k, m, m)
        else:
            for c in range(k):
                blocks[c] += rows.T @ (rows * weighted[:, c, None])
    for c in range(k):
        H[c::k, c::k] += blocks[c]
    return H


def _factor(gram: Array, squares: Array) -> Factor:
    """Of gram + diag(squares), and a little more where it needs that."""
    diagonal = np.maximum(gram.diagonal(), 0.0) * (1 + _TRACE) + squares
    # Where no row has curvature nothing is divided by zero.
    diagonal[diagonal <= 0] = float(diagonal.max(initial=0.0)) or 1.0
    H, more = gram.copy(), 0.0
    while True:
        H[np.diag_indices(len(H))] = diagonal * (1 + more)
        factor = Factor(H)
        if factor.least > 0:
            return factor
        more = max(10 * more, 1e-8)
