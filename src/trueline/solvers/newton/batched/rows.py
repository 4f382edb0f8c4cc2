r"""The losses of many problems, and products of their rows with their vectors.

Coefficients of p problems with k scores each have the shape (d + 1, p, k), the intercepts last;
scores have the shape (n, p, k). The rows are the same for all problems: one product with a matrix
serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.tangent import RowSums
from trueline.design import Design
from trueline.losses import Loss
from trueline.numerics.blas import run_strands
from trueline.numerics.gram import fold

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# Rows at a time, so that what they are multiplied by stays in the cache.
_BLOCK = 1024
# Numbers from which on rows are copied in single precision, their largest norm, and rows that a
# thread takes at a time.
_MANY_NUMBERS, _LARGE, _STRAND = 500_000, 1e12, 4096


@dataclass(frozen=True)
class SharedRows:
    """The rows of a design, which all problems have."""

    design: Design
    fit_intercept: bool

    @property
    def width(self) -> int:
        """Columns, an intercept left out."""
        return self.design.shape[1]

    @cached_property
    def farthest(self) -> float:
        """The largest norm of a row."""
        return float(np.sqrt(self.design.row_squares(None).max(initial=0.0)))

    def squares(self, S: Array) -> Array:
        """sum_i s_ij x_i^2 of each problem, of shape (p, d)."""
        out = np.zeros((S.shape[1], self.width))
        for where, block in self.design.blocks(_BLOCK):
            out += S[where].T @ (block * block)
        return out

    @cached_property
    def terms(self) -> float:
        """Most additions one after the other in sums over the rows."""
        return float(self.design.accuracy(None, np.zeros(self.width)).column_terms)

    @cached_property
    def single(self) -> NDArray[np.float32] | None:
        """Dense rows in single precision: steps need few digits, and gradients are exact anyway."""
        is_small = self.design.nonzeros < _MANY_NUMBERS
        if self.design.is_sparse or is_small or not 1 / _LARGE < self.farthest < _LARGE:
            return None
        return self.design.toarray().astype(np.float32)


@dataclass(frozen=True)
class Batch:
    """Problems that are solved together.

    Attributes
    ----------
    rows : SharedRows
    loss : Loss
    Y : array of shape (n, p, k)
        Targets.
    S : array of shape (n, p)
        Weights of the rows in each problem.
    strength : array of shape (p,)
        Of the squared penalty.
    """

    rows: SharedRows
    loss: Loss
    Y: Array
    S: Array
    strength: Array

    @property
    def fit_intercept(self) -> bool:
        return self.rows.fit_intercept

    @property
    def is_coupled(self) -> bool:
        """Whether the scores of a row belong to one loss."""
        return "coupled" in self.loss.capabilities

    def take(self, which: Integers) -> Batch:
        """Some of the problems."""
        if len(which) == len(self.strength):
            return self
        own = self.Y[:, which], self.S[:, which], self.strength[which]
        return Batch(self.rows, self.loss, *own)

    # --- losses ---------------------------------------------------------------------------------

    def _by_row(self, function: Callable[..., Array], first: Array, second: Array) -> Array:
        """A function of a loss, which takes arrays of shape (rows, k)."""
        if not self.is_coupled:
            return function(first, second)
        k = first.shape[2]
        return function(first.reshape(-1, k), second.reshape(-1, k)).reshape(first.shape)

    def derivatives(self, Z: Array) -> tuple[Array, Array]:
        """Weighted derivatives with respect to the scores, and what second ones are made of."""
        if self.is_coupled:
            return self.gradient(Z), self._by_row(self.loss.hessian_terms, self.Y, Z)
        u, h = self.loss.derivatives(self.Y, Z)
        return self.S[:, :, None] * u, h

    def gradient(self, Z: Array) -> Array:
        """Weighted derivatives of the losses with respect to the scores."""
        return self.S[:, :, None] * self._by_row(self.loss.gradient, self.Y, Z)

    def curvature(self, hessian_terms: Array) -> Array:
        """Weighted second derivatives; of coupled scores their diagonal."""
        return self.S[:, :, None] * self.loss.hessian_diagonal(hessian_terms)

    def intercept_curvature(self, hessian_terms: Array) -> Array:
        """Second derivatives with respect to the intercepts, regular matrices of shape (p, k, k).

        A shift of all coupled scores by the same changes no loss: there something else is added.
        """
        p, k = hessian_terms.shape[1:]
        out = np.zeros((p, k, k))
        for c, unit in enumerate(np.eye(k)):
            change = np.broadcast_to(unit, hessian_terms.shape)
            curved = self._by_row(self.loss.hessian_product, hessian_terms, change)
            out[:, c] = np.einsum("np,npk->pk", self.S, curved)
        size = np.trace(out, axis1=1, axis2=2)[:, None, None]
        free = np.full((k, k), 1.0 / k) if self.is_coupled else np.zeros((k, k))
        flat = (out[:, range(k), range(k)] <= 0)[:, :, None] * np.eye(k)
        return out + size * free + flat

    def losses(self, Z: Array) -> Array:
        """The sums of the losses, of shape (p, k)."""
        return np.einsum("np,npk->pk", self.S, self._by_row(self.loss.value, self.Y, Z))

    def squares(self, A: Array, B: Array) -> Array:
        """The bilinear form of the squared penalty, of shape (p, k) or (p, 1)."""
        return self.summed(self.strength[:, None] * _dots(A[:-1], B[:-1]))

    def objective(self, V: Array, Z: Array) -> Array:
        """Of each problem, of shape (p,)."""
        return self.losses(Z).sum(axis=1) + 0.5 * self.squares(V, V).sum(axis=1)

    def summed(self, values: Array) -> Array:
        """Values by problem and score, (p, k), added up where scores are coupled."""
        return values.sum(axis=1, keepdims=True) if self.is_coupled else values

    def dot(self, A: Array, B: Array) -> Array:
        """Inner products, by problem and, where scores are not coupled, by score."""
        return self.summed(_dots(A, B))

    # --- products -------------------------------------------------------------------------------

    def row_sums(self) -> RowSums | None:
        """What proofs need to know of the rows of each problem; None where they need them all."""
        is_dense = not self.rows.design.is_sparse
        if "margins" not in self.loss.capabilities or self.Y.shape[2] > 1 or not is_dense:
            return None
        sides = [self.S * side for side in (self.Y[:, :, 0] < 0, self.Y[:, :, 0] > 0)]
        shares = np.stack([side.sum(axis=0) for side in sides], axis=1)
        if not (shares > 0).all():
            return None
        totals = [self.totals(side[:, :, None])[:-1, :, 0].T for side in sides]
        farthest = np.full(len(shares), self.rows.farthest)
        sums = np.stack(totals, axis=1), self.rows.squares(self.S), farthest
        count = np.count_nonzero(self.S, axis=0)
        return RowSums.of(np.zeros(self.rows.width), self.fit_intercept, shares, *sums, count)

    def scores(self, V: Array) -> Array:
        """[X, 1] V of shape (n, p, k)."""
        Z = self.rows.design.matvec(_flat(V[:-1])).reshape(len(self.S), *V.shape[1:])
        return Z + V[-1] if self.fit_intercept else Z

    def totals(self, U: Array) -> Array:
        """[X, 1]^T U of shape (d + 1, p, k), of derivatives that vanish where rows do not count."""
        out = np.zeros((self.rows.width + 1, *U.shape[1:]))
        out[:-1] = self.rows.design.rmatvec(_flat(U)).reshape(out[:-1].shape)
        if self.fit_intercept:
            out[-1] = U.sum(axis=0)
        return out

    def gradients(self, V: Array, u: Array) -> Array:
        """Of the objectives, from the weighted derivatives of the losses."""
        G = self.totals(u)
        G[:-1] += self.strength[:, None] * V[:-1]
        return G

    def hessian(self, hessian_terms: Array) -> Callable[[Array], Array]:
        """Products with the Hessians of all problems on shared rows, squares included."""
        strength, S = self.strength[:, None], self.S[:, :, None]
        H = None if self.is_coupled else self._curved(_flat(S * hessian_terms))

        def losses(P: Array) -> Array:
            if H is not None:
                return H(P)
            product = self._by_row(self.loss.hessian_product, hessian_terms, self.scores(P))
            return self.totals(S * product)

        def product(P: Array) -> Array:
            out = losses(P)
            out[:-1] += strength * P[:-1]
            return out

        return product

    def _curved(self, H: Array) -> Callable[[Array], Array]:
        """Products with [X, 1]^T diag(h) [X, 1] for h of each problem and score, (n, p k)."""
        X, design = self.rows.single, self.rows.design
        by_problem = None if X is None else np.ascontiguousarray(H.T, dtype=np.float32)

        def product(P: Array) -> Array:
            out = np.zeros_like(P)
            level = P[-1].ravel() if self.fit_intercept else np.zeros(H.shape[1])
            if X is None or by_problem is None:
                image, total = design.curved_product(H, _flat(P[:-1]), level)
            else:
                image, total = self._curved_single(X, by_problem, _flat(P[:-1]), level)
            out[:-1] = image.reshape(out[:-1].shape)
            if self.fit_intercept:
                out[-1] = total.reshape(out[-1].shape)
            return out

        return product

    def _curved_single(
        self, X: NDArray[np.float32], H: NDArray[np.float32], V: Array, level: Array
    ) -> tuple[Array, Array]:
        """The same in single precision, in one pass over the rows."""
        along, levels = np.ascontiguousarray(V.T, dtype=np.float32), level.astype(np.float32)

        def work(first: int) -> Array:
            out, last = np.zeros((len(H), along.shape[1] + 1)), min(first + _STRAND, len(X))
            for start in range(first, last, _BLOCK // 2):
                where = slice(start, min(start + _BLOCK // 2, last))
                Z = along @ X[where].T
                Z += levels[:, None]
                Z *= H[:, where]
                out[:, :-1] += Z @ X[where]
                out[:, -1] += Z.sum(axis=1)
            return out

        out = fold(run_strands(work, range(0, len(X), _STRAND)))
        return out[:, :-1].T, out[:, -1]


def _flat(V: Array) -> Array:
    """(m, p, k) as (m, p k)."""
    return np.ascontiguousarray(V).reshape(len(V), -1)


def _dots(A: Array, B: Array) -> Array:
    """Inner products of the vectors, of shape (p, k)."""
    return np.asarray(np.einsum("dpk,dpk->pk", A, B))
