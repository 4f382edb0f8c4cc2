r"""One eigendecomposition that serves every strength of a ridge penalty.

With V = S^(1/2) (X - m) (weighted, centred rows) and V = U diag(sigma) Q^T,

    Z = V Q = U diag(sigma),     e = sigma^2,     p = Z^T y~      (y~ weighted, centred target)

give for every alpha

    fitted values   Z (p / (e + alpha))
    leverages       sum_j Z_ij^2 / (e_j + alpha)
    coefficients    Q (p / (e + alpha))

Tall data take e and Q from the Gram matrix (of d x d). Wide data take e and U from the kernel V V^T
(of n x n) and work with U itself, since fits that nearly interpolate would cancel in Z. When the
smallest strength is below the rounding of the Gram matrix, the triangular factor of the rows
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
        p = Z^T y~ for tall data, U^T y~ for wide data.
    directions : array of shape (d, r), optional
        Q, for tall data.
    rows : array of shape (n, r), optional
        U, for wide data.
    x_mean, y_mean : arrays
    """

    values: Array
    projected: Array
    directions: Array | None
    rows: Array | None
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
        root = np.ones(problem.n_samples) if weights is None else np.sqrt(weights)
        if problem.fit_intercept:
            # Centring leaves sqrt(s) without a part in the kernel. Lift that direction above all
            # others, so that it is an eigenvector of its own and can be dropped.
            q = root / np.linalg.norm(root)
            kernel += (2 * np.trace(kernel) + 1.0) * np.outer(q, q)
        values, U = np.linalg.eigh(kernel)
        values, U = np.maximum(values[::-1], 0.0), U[:, ::-1]
        if problem.fit_intercept:
            values, U = values[1:], U[:, 1:]
        target = root[:, None] * (problem.target - y_mean)
        return cls(values, U.T @ target, None, U, x_mean, y_mean)

    def blocks(self, problem: Problem) -> Iterator[tuple[slice, Array]]:
        """Z (tall data) or U (wide data), a block of rows at a time."""
        if self.rows is not None:
            for start in range(0, problem.n_samples, _BLOCK):
                rows = slice(start, min(start + _BLOCK, problem.n_samples))
                yield rows, self.rows[rows]
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

    def inverse(self, alphas: Array) -> Array:
        """1 / (e + alpha), zero where both vanish; of shape (r, number of alphas)."""
        total = self.values[:, None] + alphas
        with np.errstate(divide="ignore"):
            return np.where(total > 0, 1.0 / total, 0.0)

    def coefficients(self, problem: Problem, alpha: float) -> tuple[Array, Array]:
        """Coefficients and intercepts for a strength."""
        shrunken = self.projected * self.inverse(np.array([alpha]))
        if self.directions is not None:
            W = self.directions @ shrunken
        else:
            assert self.rows is not None
            dual = self.rows @ shrunken  # w = V^T (V V^T + alpha)^{-1} y~
            if problem.weights is not None:
                dual *= np.sqrt(problem.weights)[:, None]
            W = problem.design.rmatvec(dual) - np.outer(self.x_mean, dual.sum(axis=0))
        return W, self.y_mean - self.x_mean @ W
