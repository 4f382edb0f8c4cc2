r"""The losses of many problems on the same rows, and products of these rows with their vectors.

Coefficients of p problems with k scores each have the shape (d + 1, p, k), the intercepts last;
scores have the shape (n, p, k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.losses import Loss
from trueline.solvers.batched_newton.vectors import dots

__all__ = ["Batch"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]


@dataclass(frozen=True)
class Batch:
    """Problems that are solved together.

    Attributes
    ----------
    design : Design
    fit_intercept : bool
    loss : Loss
    Y : array of shape (n, p, k)
        Targets.
    S : array of shape (n, p)
        Weights of the rows in each problem.
    strength : array of shape (p,)
        Of the squared penalty.
    """

    design: Design
    fit_intercept: bool
    loss: Loss
    Y: Array
    S: Array
    strength: Array

    @property
    def is_coupled(self) -> bool:
        """Whether the scores of a row belong to one loss."""
        return "coupled" in self.loss.capabilities

    def take(self, which: Integers) -> Batch:
        """Some of the problems."""
        if len(which) == len(self.strength):
            return self
        own = self.Y[:, which], self.S[:, which], self.strength[which]
        return Batch(self.design, self.fit_intercept, self.loss, *own)

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

    def objective(self, V: Array, Z: Array) -> Array:
        """Of each problem and, where scores are not coupled, of each score: (p, k) or (p, 1)."""
        values = np.einsum("np,npk->pk", self.S, self._by_row(self.loss.value, self.Y, Z))
        squares = 0.5 * self.strength[:, None] * dots(V[:-1], V[:-1])
        return self.summed(values + squares)

    def summed(self, values: Array) -> Array:
        """Values by problem and score, (p, k), added up where scores are coupled."""
        return values.sum(axis=1, keepdims=True) if self.is_coupled else values

    def dot(self, A: Array, B: Array) -> Array:
        """Inner products, by problem and, where scores are not coupled, by score."""
        return self.summed(dots(A, B))

    # --- products -------------------------------------------------------------------------------

    def scores(self, V: Array) -> Array:
        """[X, 1] V, of shape (n, p, k)."""
        shape = (self.design.shape[0], *V.shape[1:])
        Z = self.design.matvec(_flat(V[:-1])).reshape(shape)
        return Z + V[-1] if self.fit_intercept else Z

    def totals(self, U: Array) -> Array:
        """[X, 1]^T U, of shape (d + 1, p, k)."""
        out = np.zeros((self.design.shape[1] + 1, *U.shape[1:]))
        out[:-1] = self.design.rmatvec(_flat(U)).reshape(out[:-1].shape)
        if self.fit_intercept:
            out[-1] = U.sum(axis=0)
        return out

    def hessian(self, bending: Array) -> Callable[[Array], Array]:
        """Products with the Hessians of all problems, squares included."""
        strength, S = self.strength[:, None], self.S[:, :, None]
        H = None if self.is_coupled else _flat(S * bending)

        def product(P: Array) -> Array:
            if H is None:
                out = self.totals(S * self._by_row(self.loss.bend, bending, self.scores(P)))
                out[:-1] += strength * P[:-1]
                return out
            out = np.zeros_like(P)
            level = P[-1].ravel() if self.fit_intercept else np.zeros(H.shape[1])
            image, total = self.design.curved_product(H, _flat(P[:-1]), level)
            np.multiply(P[:-1], strength, out=out[:-1])
            out[:-1] += image.reshape(out[:-1].shape)
            if self.fit_intercept:
                out[-1] = total.reshape(out[-1].shape)
            return out

        return product


def _flat(V: Array) -> Array:
    """(m, p, k) as (m, p k)."""
    return np.ascontiguousarray(V).reshape(len(V), -1)
