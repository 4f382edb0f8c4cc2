r"""Ridge by eigenvectors: one decomposition for every strength, and the dual form of wide data.

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

With more columns than rows the dual (kernel) form is smaller,

    w = V^T c,      (V V^T + alpha I) c = y,      V = S^(1/2) (X - m)

The system has one unknown per row. With V V^T = U diag(e) U^T every strength costs one product
more. The identity is the matrix inversion lemma; C. Saunders, A. Gammerman, V. Vovk, "Ridge
regression learning algorithm in dual variables", ICML 1998.

V V^T squares the condition of V. Where that costs the proof, V = U diag(s) Q^T gives the same
steps,

    H^{-1} g = Q (s^2 + alpha)^{-1} Q^T g      for g in the span of the rows, as gradients are,

from gradients in doubled precision.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from trueline.certificates.quadratic import Evidence, certify_quadratic
from trueline.design import Design
from trueline.design.dense import DenseDesign
from trueline.moments import Moments
from trueline.numerics.blas import svd
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution, Status
from trueline.solvers.base import CALL, Cost, Facts, Monitor, Options, Solver, kernel_seconds
from trueline.solvers.iterative import target_gap
from trueline.solvers.least_squares.krylov import has_strengths
from trueline.solvers.least_squares.normal_equations import (
    as_dense,
    curvature_matrix,
    evidence_from_refined,
    evidence_from_rows,
    same_strength_groups,
)
from trueline.solvers.least_squares.orthogonal import rank_tolerance, triangular_factor
from trueline.solvers.least_squares.qr import QR, best_level, certify_groups, part_of, solve_after
from trueline.solvers.least_squares.refinement import can_refine, refine
from trueline.solvers.pending import CLAIMED
from trueline.wording import counted

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
        lifted = LiftedKernel.of(problem)
        values, U = np.linalg.eigh(lifted.kernel)
        values, U = np.maximum(values[::-1], 0.0), U[:, ::-1]
        if problem.fit_intercept:
            values, U = values[1:], U[:, 1:]
        return cls(values, U.T @ lifted.target, None, U, lifted.x_mean, lifted.y_mean)

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


@dataclass(frozen=True)
class LiftedKernel:
    """V V^T of the weighted, centred rows, and the target that belongs to it.

    Centring leaves the direction q = sqrt(s) / ||sqrt(s)|| without a part in V V^T. It is lifted
    above all others, so that it is an eigenvector of its own and can be dropped.

    Attributes
    ----------
    kernel : array of shape (n, n)
        V V^T + lift q q^T.
    lift : float
        Zero without an intercept.
    lifted : array of shape (n,)
        q.
    target : array of shape (n, k)
    x_mean, y_mean : arrays
    """

    kernel: Array
    lift: float
    lifted: Array
    target: Array
    x_mean: Array
    y_mean: Array

    @classmethod
    def of(cls, problem: Problem) -> LiftedKernel:
        """Read the rows."""
        design, weights = problem.design, problem.weights
        x_mean, y_mean = np.zeros(problem.n_features), np.zeros(problem.n_targets)
        if problem.fit_intercept:
            x_mean = design.column_means(weights)
            y_mean = problem.weigh(problem.target).sum(axis=0) / problem.total_weight
        kernel = design.kernel(weights, x_mean if problem.fit_intercept else None)
        root = np.ones(problem.n_samples) if weights is None else np.sqrt(weights)
        q, lift = root / np.linalg.norm(root), 0.0
        if problem.fit_intercept:
            lift = float(2 * np.trace(kernel) + 1.0)
            kernel += lift * np.outer(q, q)
        target = root[:, None] * (problem.target - y_mean)
        return cls(kernel, lift, q, target, x_mean, y_mean)


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


# Of many strengths on the same rows each takes this share of a decomposition.
_OF_A_PATH = 0.1
# Steps of refinement; the first is enough unless alpha is small against the kernel.
_STEPS = 4
# Of the squares that a constant leaves: the gap up to which the answer is taken as it is.
_TRUSTED = 1e-13
_EPS = float(np.finfo(np.float64).eps)
# Squares of rounding are clearly below a strength if they are below this share of it.
_CLEAR = 1e-8


class Kernel(Solver):
    """Ridge by a system with one unknown per row."""

    name = "kernel"
    title = "dual form, one unknown per row"
    needs_loss = frozenset({"quadratic"})
    needs_penalty = frozenset({"quadratic"})
    proof = "quadratic"

    def refuses(self, facts: Facts) -> str | None:
        if facts.unpenalised:
            return "needs a positive strength for every coefficient"
        if facts.n > 30_000:
            return f"a kernel of {facts.n} x {facts.n} would take {facts.n**2 * 8e-9:.0f} GB"
        return None

    def cost(self, facts: Facts) -> Cost:
        n, d = facts.n, facts.d
        if facts.is_sparse:
            product = facts.nonzeros * max(1.0, facts.density * n)
        else:
            product = float(n) * n * d
        factor = facts.strengths * n**3 / 3.0 + 4.0 * n * n * facts.k
        flops = 2 * product + factor + 8.0 * facts.nonzeros * facts.k
        memory = 8.0 * (3.0 * n * n + (0 if facts.is_sparse else n * d))
        # With more rows than columns it would win by a hair at most, and leave no moments.
        doubt = 10.0 if facts.n > facts.d else 1.0
        return Cost(flops, 4.0, memory, doubt * (CALL + kernel_seconds(facts)))

    def set_cost(self, facts: Facts, count: int) -> Cost:
        if not facts.has_one_strength:
            return super().set_cost(facts, count)
        one = self.cost(facts)
        seconds = CALL + count * _OF_A_PATH * (one.seconds + 2e-10 * float(facts.n) ** 3)
        return Cost(count * one.flops, count * one.passes, one.memory, seconds)

    def solve_paths(self, problems: ProblemSet, options: Options) -> list[PathSolution] | None:
        if not serves_strengths(problems):
            return None
        return solve_strengths(problems, options.tol, self.name, from_rows=True)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        start = time.perf_counter()
        curvature = curvature_matrix(problem)
        if (curvature != curvature[:1]).any():
            why = "columns are penalised differently"
            return solve_after(problem, self.name, start, why, use_svd=True)
        design, weights = problem.design, problem.weights
        d, k = problem.n_features, problem.n_targets
        alpha = curvature[0] if d else np.ones(k)
        mean = design.column_means(weights) if problem.fit_intercept else np.zeros(d)
        root = np.ones(problem.n_samples) if weights is None else np.sqrt(weights)
        kernel = design.kernel(weights, mean if problem.fit_intercept else None)
        solve = _solver_of(kernel, alpha)
        why = "too ill-conditioned for the kernel"
        if solve is None:
            found = _by_singular_vectors(problem, curvature, mean)
            return found or solve_after(problem, self.name, start, why, use_svd=True)
        b = np.zeros(k)
        if problem.fit_intercept:
            b = problem.weigh(problem.target).sum(axis=0) / problem.total_weight

        def back(right: Array) -> Array:
            """V^T (V V^T + alpha)^{-1} right."""
            dual = root[:, None] * solve(right)
            return design.rmatvec(dual) - np.outer(mean, dual.sum(axis=0))

        W = back(root[:, None] * (problem.target - b))
        b = b - mean @ W
        enough = _enough(problem)
        for _ in range(_STEPS):
            # Refinement: H^{-1} g = (g - V^T (V V^T + alpha)^{-1} V g) / alpha.
            weighted = problem.weigh(problem.target - problem.scores(W, b))
            slope = weighted.sum(axis=0) if problem.fit_intercept else np.zeros(k)
            gradient = design.rmatvec(weighted) - np.outer(mean, slope) - alpha * W
            inner = root[:, None] * (design.matvec(gradient) - mean @ gradient)
            step = (gradient - back(inner)) / alpha
            W = W + step
            if problem.fit_intercept:
                b = b + slope / problem.total_weight - mean @ step
            evidence = evidence_from_rows(
                problem, W, b, mean, np.ones(d), float(alpha.min(initial=np.inf))
            )
            proof = certify_quadratic(problem, W, b, evidence)
            if proof.gap <= enough:
                return Solution(W, b, Status.SOLVED, self.name, proof=proof)
        if (found := _by_singular_vectors(problem, curvature, mean)) is not None:
            return found
        if QR().refuses(Facts.of(problem)) is not None:
            return Solution(W, b, Status.SOLVED, self.name, proof=proof)
        return solve_after(problem, self.name, start, why, use_svd=True)


def _by_singular_vectors(problem: Problem, curvature: Array, mean: Array) -> Solution | None:
    """Steps from the singular vectors of the rows and exact gradients; None if not proven."""
    dense = as_dense(problem)
    if not can_refine(dense):
        return None
    X = dense.design.toarray()
    V = X - mean
    if problem.weights is not None:
        V *= np.sqrt(problem.weights)[:, None]
    # Where the penalty is below what rounding leaves of the centred rows, that would be fitted.
    with np.errstate(over="ignore"):
        noise = _EPS * float(np.abs(X).max(initial=0.0)) * np.sqrt(V.size) * _largest_root(problem)
        is_clear = noise**2 <= _CLEAR * float(curvature.min(initial=np.inf))
    if not (is_clear and np.isfinite(V).all()):
        return None
    _, singular, rows = svd(V)
    # Along what the rows do not see, and in columns that do not vary, the answer is zero, and
    # rounding would not be.
    seen = singular > rank_tolerance(*V.shape) * singular.max(initial=0.0)
    singular, rows = singular[seen], rows[seen]
    rows[:, ~V.any(axis=0)] = 0.0
    d, k = problem.n_features, problem.n_targets
    W, b, steps = np.zeros((d, k)), np.zeros(k), 0
    parts: list[tuple[NDArray[np.intp], Evidence]] = []
    for strength, targets in same_strength_groups(curvature):
        part = dense if len(targets) == k else part_of(dense, targets, strength)
        alpha = float(strength[0])
        basis = rows.T / np.sqrt(singular**2 + alpha)
        start, level = np.zeros((d, len(targets))), best_level(part)
        found = refine(part, start, level, basis, mean, curvature[:, targets])
        W[:, targets], b[targets] = found.coef, found.intercept
        steps = max(steps, found.steps)
        # Every direction has that much curvature by the penalty alone.
        plain = np.full(d, 1.0 / np.sqrt(alpha))
        parts.append((targets, evidence_from_refined(part, found, plain, 1.0, True)))
    proof = certify_groups(problem, W, b, parts)
    if not proof.gap <= _enough(problem):
        return None
    notes = [f"singular vectors of the rows, {counted(steps, 'step')} in doubled precision"]
    return Solution(W, b, Status.SOLVED, Kernel.name, notes=notes, proof=proof)


def _largest_root(problem: Problem) -> float:
    """The largest root of a weight."""
    return 1.0 if problem.weights is None else float(np.sqrt(problem.weights.max(initial=0.0)))


def _enough(problem: Problem) -> float:
    """The gap up to which an answer is taken as it is."""
    return _TRUSTED * float(problem.weigh((problem.target - best_level(problem)) ** 2).sum())


def _solver_of(kernel: Array, alpha: Array):  # type: ignore[no-untyped-def]
    """(K + alpha_t)^{-1} for each target t; None if alpha vanishes against the kernel."""
    largest = float(np.trace(kernel))
    if not np.isfinite(largest) or alpha.min() < 1e-14 * largest:
        return None
    strengths, group = np.unique(alpha, return_inverse=True)
    if len(strengths) > 4:
        values, vectors = np.linalg.eigh(kernel)
        return lambda right: (
            vectors @ ((vectors.T @ right) / (np.maximum(values, 0.0)[:, None] + alpha))
        )
    factors = []
    for strength in strengths:
        shifted = kernel.copy()
        shifted.flat[:: len(kernel) + 1] += strength
        try:
            factors.append(cho_factor(shifted, overwrite_a=True, check_finite=False))
        except LinAlgError:
            return None

    def solve(right: Array) -> Array:
        out = np.empty_like(right)
        for g, factor in enumerate(factors):
            columns = group.ravel() == g
            out[:, columns] = cho_solve(factor, right[:, columns], check_finite=False)
        return out

    return solve
