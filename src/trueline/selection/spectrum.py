r"""One eigendecomposition that serves every strength of a ridge penalty.

With V = S^(1/2) (X - m) (weighted, centred rows) and V = U diag(sigma) Q^T,

    Z = V Q = U diag(sigma),     e = sigma^2,     p = Z^T y~      (y~ weighted, centred target)

give for every alpha

    fitted values   Z (p / (e + alpha))
    leverages       sum_j Z_ij^2 / (e_j + alpha)
    coefficients    Q (p / (e + alpha))

Tall data take e and Q from the Gram matrix (of d x d), wide data from the kernel (of n x n). When
the smallest strength is below the rounding of the Gram matrix, the triangular factor of the rows
is decomposed instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.design.dense import DenseDesign
from trueline.moments import Moments
from trueline.problem import Problem
from trueline.solvers.orthogonal import triangular_factor

__all__ = ["Spectrum"]

Array = NDArray[np.float64]

_BLOCK = 4096


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and what is needed to go between rows, directions and coefficients.

    Attributes
    ----------
    values : array of shape (r,)
        e, descending.
    projected : array of shape (r, k)
        p.
    directions : array of shape (d, r), optional
        Q, for tall data.
    scores : array of shape (n, r), optional
        Z, for wide data, where it is small.
    x_mean, y_mean : arrays
    """

    values: Array
    projected: Array
    directions: Array | None
    scores: Array | None
    x_mean: Array
    y_mean: Array

    @classmethod
    def of(cls, problem: Problem, moments: Moments | None, smallest: float) -> Spectrum:
        """Decompose; ``smallest`` is the least strength that will be asked for."""
        n, d = problem.design.shape
        if moments is None and n <= d:
            return cls._from_kernel(problem)
        if moments is None:
            moments = Moments.from_rows(problem.design, problem.target, problem.weights)
        about = moments if problem.fit_intercept else moments.about_zero()
        values, Q = np.linalg.eigh(about.gram)
        values, Q = np.maximum(values[::-1], 0.0), Q[:, ::-1]
        if d and smallest < 1e-10 * values[0] and isinstance(problem.design, DenseDesign):
            mean = about.x_mean if problem.fit_intercept else None
            R = triangular_factor(problem, mean, np.ones(d), np.zeros(d))
            _, sigma, right = np.linalg.svd(R)
            values, Q = sigma**2, right.T
        return cls(values, Q.T @ about.cross, Q, None, about.x_mean, about.y_mean)

    @classmethod
    def _from_kernel(cls, problem: Problem) -> Spectrum:
        design, weights = problem.design, problem.weights
        d, k = problem.n_features, problem.n_targets
        x_mean, y_mean = np.zeros(d), np.zeros(k)
        if problem.fit_intercept:
            x_mean = design.column_means(weights)
            y_mean = problem.weigh(problem.target).sum(axis=0) / problem.total_weight
        kernel = design.kernel(weights, x_mean if problem.fit_intercept else None)
        values, U = np.linalg.eigh(kernel)
        values, U = np.maximum(values[::-1], 0.0), U[:, ::-1]
        Z = U * np.sqrt(values)
        root = np.ones(problem.n_samples) if weights is None else np.sqrt(weights)
        return cls(
            values, Z.T @ (root[:, None] * (problem.target - y_mean)), None, Z, x_mean, y_mean
        )

    def blocks(self, problem: Problem) -> Iterator[tuple[slice, Array]]:
        """Z, a block of rows at a time."""
        if self.scores is not None:
            for start in range(0, problem.n_samples, _BLOCK):
                rows = slice(start, min(start + _BLOCK, problem.n_samples))
                yield rows, self.scores[rows]
            return
        assert self.directions is not None
        offset = self.x_mean @ self.directions
        design: Design = problem.design
        for rows, block in design.blocks(_BLOCK):
            Z = block @ self.directions
            Z -= offset
            if problem.weights is not None:
                Z *= np.sqrt(problem.weights[rows])[:, None]
            yield rows, Z

    def shrunken(self, alpha: float | Array) -> Array:
        """p / (e + alpha), zero where both vanish; of shape (r, k)."""
        total = self.values[:, None] + alpha
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(total > 0, self.projected / total, 0.0)

    def coefficients(self, alpha: float | Array) -> tuple[Array, Array]:
        """Coefficients and intercepts for a strength; tall data only."""
        assert self.directions is not None
        W = self.directions @ self.shrunken(alpha)
        return W, self.y_mean - self.x_mean @ W
