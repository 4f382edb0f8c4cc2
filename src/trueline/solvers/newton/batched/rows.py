r"""The losses of many problems, and products of their rows with their vectors.

Coefficients of p problems with k scores each have the shape (d + 1, p, k), the intercepts last;
scores have the shape (n, p, k). The rows are the same for all problems: one product with a matrix
serves all of them, and where rows count in few of the problems, one for each stretch of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.tangent import RowSums
from trueline.design import Design
from trueline.losses import Loss
from trueline.numerics.blas import run_strands

__all__ = ["Batch", "SharedRows"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# Rows at a time, so that what they are multiplied by stays in the cache.
_BLOCK = 1024
# Numbers from which on rows are copied in single precision, their largest norm, and rows that a
# thread takes at a time.
_MANY_NUMBERS, _LARGE, _STRAND = 500_000, 1e12, 4096
# Rows that count in the same problems are taken together where that saves a part of the products,
# and there are so many of them in the mean.
_MOST_COUNTED, _LEAST_ROWS = 0.7, 128


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


class Stretch(NamedTuple):
    """Neighbouring rows, and which columns of coefficients (problem by problem) they count in."""

    rows: slice
    columns: Integers


def _stretches(S: Array, k: int) -> list[Stretch] | None:
    """Rows that count in the same problems; None where that saves little.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.newton.batched.rows import _stretches
    >>> for stretch in _stretches(np.repeat(np.eye(3), 400, axis=0), 1):
    ...     print(stretch.rows.start, stretch.rows.stop, stretch.columns.tolist())
    0 400 [0]
    400 800 [1]
    800 1200 [2]
    """
    counts = S != 0
    changes = np.flatnonzero((counts[1:] != counts[:-1]).any(axis=1)) + 1
    if counts.mean() > _MOST_COUNTED or len(changes) * _LEAST_ROWS > len(S):
        return None
    ends = [0, *changes.tolist(), len(S)]
    scores = np.arange(counts.shape[1] * k).reshape(-1, k)
    return [
        Stretch(slice(start, min(start + _STRAND, last)), scores[counts[first]].ravel())
        for first, last in pairwise(ends)
        for start in range(first, last, _STRAND)
    ]


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
            return self.gradient(Z), self._by_row(self.loss.bending, self.Y, Z)
        u, h = self.loss.derivatives(self.Y, Z)
        return self.S[:, :, None] * u, h

    def gradient(self, Z: Array) -> Array:
        """Weighted derivatives of the losses with respect to the scores."""
        return self.S[:, :, None] * self._by_row(self.loss.gradient, self.Y, Z)

    def curvature(self, bending: Array) -> Array:
        """Weighted second derivatives; of coupled scores their diagonal."""
        return self.S[:, :, None] * self.loss.bend_diagonal(bending)

    def intercept_curvature(self, bending: Array) -> Array:
        """Second derivatives with respect to the intercepts, regular matrices of shape (p, k, k).

        A shift of all coupled scores by the same changes no loss: there something else is added.
        """
        p, k = bending.shape[1:]
        out = np.zeros((p, k, k))
        for c, unit in enumerate(np.eye(k)):
            change = np.broadcast_to(unit, bending.shape)
            bent = self._by_row(self.loss.bend, bending, change)
            out[:, c] = np.einsum("np,npk->pk", self.S, bent)
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

    @cached_property
    def _stretches(self) -> list[Stretch] | None:
        return _stretches(self.S, self.Y.shape[2])

    def scores(self, V: Array) -> Array:
        """[X, 1] V of shape (n, p, k), of the rows that count in a problem."""
        W, design = _flat(V[:-1]), self.rows.design
        if self._stretches is None:
            Z = design.matvec(W).reshape(len(self.S), *V.shape[1:])
        else:
            Z = np.zeros((len(self.S), *V.shape[1:]))
            flat = _flat(Z)
            for rows, own in self._stretches:
                flat[rows, own] = design.take(rows).matvec(W[:, own])
        return Z + V[-1] if self.fit_intercept else Z

    def totals(self, U: Array) -> Array:
        """[X, 1]^T U of shape (d + 1, p, k), of derivatives that vanish where rows do not count."""
        out, design = np.zeros((self.rows.width + 1, *U.shape[1:])), self.rows.design
        if self._stretches is None:
            out[:-1] = design.rmatvec(_flat(U)).reshape(out[:-1].shape)
        else:
            flat, image = _flat(U), _flat(out[:-1])
            for rows, own in self._stretches:
                image[:, own] += design.take(rows).rmatvec(flat[rows, own])
        if self.fit_intercept:
            out[-1] = U.sum(axis=0)
        return out

    def gradients(self, V: Array, u: Array) -> Array:
        """Of the objectives, from the weighted derivatives of the losses."""
        G = self.totals(u)
        G[:-1] += self.strength[:, None] * V[:-1]
        return G

    def hessian(self, bending: Array) -> Callable[[Array], Array]:
        """Products with the Hessians of all problems on shared rows, squares included."""
        strength, S = self.strength[:, None], self.S[:, :, None]
        H = None if self.is_coupled else self._curved(_flat(S * bending))

        def losses(P: Array) -> Array:
            if H is not None:
                return H(P)
            return self.totals(S * self._by_row(self.loss.bend, bending, self.scores(P)))

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
        every = np.arange(len(H))
        stretches = self._stretches or [
            Stretch(slice(start, min(start + _STRAND, len(X))), every)
            for start in range(0, len(X), _STRAND)
        ]

        def work(stretch: Stretch) -> tuple[Array, Array]:
            rows, own = stretch
            v, f = along[own], levels[own, None]
            image, total = np.zeros(v.shape), np.zeros(len(v))
            for start in range(rows.start, rows.stop, _BLOCK // 2):
                where = slice(start, min(start + _BLOCK // 2, rows.stop))
                Z = v @ X[where].T
                Z += f
                Z *= H[own, where]
                image += Z @ X[where]
                total += Z.sum(axis=1)
            return image, total

        out, totals = np.zeros(along.shape), np.zeros(len(H))
        for (_, own), (image, total) in zip(stretches, run_strands(work, stretches)):
            out[own] += image
            totals[own] += total
        return out.T, totals


def _flat(V: Array) -> Array:
    """(m, p, k) as (m, p k)."""
    return np.ascontiguousarray(V).reshape(len(V), -1)


def _dots(A: Array, B: Array) -> Array:
    """Inner products of the vectors, of shape (p, k)."""
    return np.asarray(np.einsum("dpk,dpk->pk", A, B))
