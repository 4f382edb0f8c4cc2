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
is decomposed instead. The gap of an answer with the gradient g is at most ||g||^2 / (2 alpha).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.design.dense import DenseDesign
from trueline.moments import Moments
from trueline.numerics.blas import svd
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution
from trueline.solvers.iterative import target_gap
from trueline.solvers.least_squares.orthogonal import triangular_factor
from trueline.solvers.least_squares.shifted import has_strengths
from trueline.solvers.pending import CLAIMED

__all__ = ["Spectrum", "serves_strengths", "solve_strengths"]

Array = NDArray[np.float64]

_BLOCK = 4096
# Squares of means relative to those of spreads from which on rows are centred first.
_FAR = 1e4


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
        """Decompose; ``smallest`` is the least strength that will be asked for.

        Moments belong to tall data; without them the kernel is decomposed.
        """
        if moments is None:
            return cls._from_kernel(problem)
        spectrum = cls.from_moments(moments, problem.fit_intercept)
        if spectrum.resolves(smallest) or not isinstance(problem.design, DenseDesign):
            return spectrum
        mean = spectrum.x_mean if problem.fit_intercept else None
        d = problem.n_features
        _, sigma, right = svd(triangular_factor(problem, mean, np.ones(d), np.zeros(d)))
        about = moments if problem.fit_intercept else moments.about_zero()
        return replace(spectrum, values=sigma**2, projected=right @ about.cross, directions=right.T)

    @classmethod
    def from_moments(cls, moments: Moments, fit_intercept: bool) -> Spectrum:
        """Decompose the Gram matrix."""
        about = moments if fit_intercept else moments.about_zero()
        values, Q = np.linalg.eigh(about.gram)
        values, Q = np.maximum(values[::-1], 0.0), Q[:, ::-1]
        return cls(values, Q.T @ about.cross, Q, None, about.x_mean, about.y_mean)

    def resolves(self, smallest: float) -> bool:
        """Whether the least strength is above the rounding of the Gram matrix."""
        return bool(smallest >= 1e-10 * self.values.max(initial=0.0))

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
        # Means far beyond the spreads would cancel in the products.
        is_far = problem.total_weight * (self.x_mean @ self.x_mean) > _FAR * self.values.sum()
        design: Design = problem.design
        for rows, block in design.blocks(_BLOCK):
            Z = (block - self.x_mean if is_far else block) @ self.directions
            if not is_far:
                Z -= offset
            if problem.weights is not None:
                Z *= np.sqrt(problem.weights[rows])[:, None]
            yield rows, Z

    def inverse(self, alphas: Array) -> Array:
        """1 / (e + alpha), zero where both vanish; of shape (r, number of alphas)."""
        total = self.values[:, None] + alphas
        with np.errstate(divide="ignore"):
            return np.where(total > 0, 1.0 / total, 0.0)

    def coefficients(self, problem: Problem, alphas: Array) -> tuple[Array, Array]:
        """Coefficients (d, k, number of alphas) and intercepts (k, number of alphas)."""
        r, k = self.projected.shape
        shrunken = self.projected[:, :, None] * self.inverse(alphas)[:, None, :]
        flat = shrunken.reshape(r, -1)
        if self.directions is not None:
            W = self.directions @ flat
        else:
            assert self.rows is not None
            dual = self.rows @ flat  # w = V^T (V V^T + alpha)^{-1} y~
            if problem.weights is not None:
                dual *= np.sqrt(problem.weights)[:, None]
            W = problem.design.rmatvec(dual) - np.outer(self.x_mean, dual.sum(axis=0))
        b = np.repeat(self.y_mean, len(alphas)) - self.x_mean @ W
        return W.reshape(-1, k, len(alphas)), b.reshape(k, len(alphas))


def serves_strengths(problems: ProblemSet) -> bool:
    """Whether a decomposition serves several members: paths of strengths, each one number."""
    return len(problems.paths()) < len(problems) and has_strengths(problems)


def solve_strengths(
    problems: ProblemSet, tol: float, name: str, *, from_rows: bool = False
) -> list[PathSolution]:
    """Solutions of all members, from one decomposition for each path of strengths.

    Parameters
    ----------
    problems : ProblemSet
        One that :func:`serves_strengths`.
    tol : float
        The gap asked for, relative to the objective of the best constant.
    name : str
        The solver's, for the solutions.
    from_rows : bool, default=False
        Whether the kernel of the rows is decomposed, not their Gram matrix.
    """
    found = []
    for path in problems.paths():
        problem = problems.on_all_rows(path[0])
        alphas = np.array([float(problems.members[i].penalty.curvature) for i in path])
        moments = None
        if from_rows:
            problem = problems[path[0]]
            spectrum = Spectrum.of(problem, None, alphas[-1])
        else:
            moments = problems.moments(path[0])
            if not moments.is_finite():
                raise FloatingPointError("the sums of squares of the data are not finite")
            spectrum = Spectrum.from_moments(moments, problem.fit_intercept)
            if not spectrum.resolves(alphas[-1]):
                problem = problems[path[0]]
                spectrum = Spectrum.of(problem, moments, alphas[-1])
        W, b = spectrum.coefficients(problem, alphas)
        gaps, steps = CLAIMED * _gaps(problem, moments, W, b, alphas), [1] * len(path)
        allowed = target_gap(problem, tol)
        found.append(PathSolution(path, W, b, gaps, allowed, name, steps, moments))
    return found


def _gaps(problem: Problem, moments: Moments | None, W: Array, b: Array, alphas: Array) -> Array:
    """At least the gap for each strength, but for rounding: ||g||^2 / (2 alpha)."""
    d, k, m = W.shape
    flat = W.reshape(d, k * m)
    if moments is not None:
        about = moments if problem.fit_intercept else moments.about_zero()
        g = (about.gram @ flat).reshape(W.shape) - about.cross[:, :, None]
    else:
        scores = problem.design.matvec(flat).reshape(-1, k, m) + b
        residual = problem.weigh((scores - problem.target[:, :, None]).reshape(-1, k * m))
        g = problem.design.rmatvec(residual).reshape(W.shape)
    g += alphas * W
    return 0.5 * np.einsum("dkm,dkm->m", g, g) / alphas
