r"""The triangular factor of the rows, one block at a time, and what it says about the rank.

QR of stacked blocks needs each block once and no copy of the whole:

    R_0 = sqrt(A),     R_j = R-factor of [R_{j-1}; S^(1/2) (X_j - m) T]

(J. Demmel, L. Grigori, M. Hoemmen, J. Langou, "Communication-optimal parallel and sequential QR
and LU factorizations", SIAM J. Sci. Comput. 34 (2012) A206-A239). The column of ones goes first,
so that the rest of R is the factor of the exactly centred design whatever the rounding of m. With
fewer rows than columns the transpose is factored, after the same first step: the reflection that
takes the weighted ones to a single row, which is left out. What remains has one row less, as the
centred design has one dimension less.

Unlike the Gram matrix, R keeps the singular values of X to relative accuracy cond(X) eps, not its
square. The rank is decided on columns of equal norm, from the singular values of R; the
Moore-Penrose answer is the one of least norm in the original units.

Columns that follow from others exactly, as those of categories do, need no R if the others are far
from dependent: the Gram matrix shows which they are, X_f = X_b C, and the rows confirm it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dposv, dpstrf

from trueline.certificates.quadratic import proven_coercivity
from trueline.design import Design
from trueline.moments import Moments
from trueline.numerics.blas import run_strands, singular_values, svd
from trueline.problem import Problem
from trueline.solvers.least_squares.normal_equations import (
    NormalFactor,
    are_alike,
    factor_normal_equations,
    left_out_growth,
    noise_of_squares,
    power_of_two_scale,
    project,
    row_space,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# What M^T H M >= nu I must reach for steps along M to be trusted, and to be left as they are.
_PROVEN_ENOUGH, _CLOSE_TO_ONE = 0.5, 0.9
# Singular values, relative to the largest, up to which rounding of the gradient is felt more than a
# penalty: about the root of the rounding of a product.
_WEAK = 1e-6

_EPS = float(np.finfo(np.float64).eps)
# Pivots of a correlation matrix up to this may be rounding; above, up to this condition number, the
# Gram matrix loses no digits to speak of.
_CLEAR, _WELL_CONDITIONED, _FAR_APART = 1e-9, 1e6, 1e3
# Dependences with coefficients whose squares add up to no more, as those of zeros and ones, can be
# projected out by equations: their condition number is at most one more than that.
_SMALL = 100.0
# Squares of smaller numbers lose their digits, and then vanish.
_UNSQUARED = 1e-145


def rank_tolerance(n: int, d: int) -> float:
    """Singular values (of equilibrated columns) below this fraction of the largest are zero.

    Rounding of a column of length n grows like sqrt(n) eps in practice; the factor 16 leaves room
    for the factorisation's own errors while matrices of condition 1e12 are still full rank.
    """
    return 16 * np.sqrt(max(n, d)) * _EPS


@dataclass(frozen=True)
class RowFactor:
    """What the rows' triangular factor says.

    Attributes
    ----------
    basis : array of shape (d, rank)
        M with M^T (X_c^T S X_c + A) M = I up to cond(X) eps, for proofs.
    coercivity : float
        The proven part of that.
    rank : int
    condition : float
        Ratio of the largest to the smallest singular value, or pivot of QR, of the scaled design.
    singular : array of shape (min(n, d),)
        Singular values of [S^(1/2) X_c; A^(1/2)] in its own units, descending.
    left_out : float
        Bound on the part of the design, its columns scaled to equal norm, outside of the basis.
    steps : array of shape (d, r)
        The same for refinement: without directions that only a weak penalty decides, along which
        the answer is zero.
    space : array of shape (d, r), optional
        Vectors that span the row space, if it is not everything.
    is_least_norm : bool
        Whether the steps lie in the row space. If not they have the same effects on the fit, and
        coefficients are to be projected.
    """

    basis: Array
    coercivity: float
    rank: int
    condition: float
    singular: Array
    left_out: float
    steps: Array
    space: Array | None = None
    is_least_norm: bool = True


def triangular_factor(
    problem: Problem, mean: Array | None, scale: Array, curvature: Array
) -> Array:
    """The factor R of the module's text, without the row and column of the ones.

    The columns are scaled, by T = diag(scale), or combined, by a matrix M in place of T.
    """
    design, weights = problem.design, problem.weights
    n, d = design.shape
    first = 0 if mean is None else 1
    is_diagonal = scale.ndim == 1
    width = (d if is_diagonal else scale.shape[1]) + first
    rows = max(2 * width, 512)
    count = 1 if n * d * d < 20_000_000 or design.is_sequential else 4
    strands = [slice(a, b) for a, b in pairwise(np.linspace(0, n, count + 1).astype(int))]

    def work(part: Design, weight: Array | None) -> Array:
        R = np.zeros((0, width))
        for where, block in part.blocks(rows):
            V = np.ones((len(block), width))
            centred = block if mean is None else block - mean
            (np.multiply if is_diagonal else np.matmul)(centred, scale, out=V[:, first:])
            if weight is not None:
                V *= np.sqrt(weight[where])[:, None]
            R = np.asarray(np.linalg.qr(np.vstack([R, V]), mode="r"))
        return R

    def joined(one: Array, other: Array) -> Array:
        return np.asarray(np.linalg.qr(np.vstack([one, other]), mode="r"))

    def of_strand(strand: slice) -> Array:
        return work(design.take(strand), None if weights is None else weights[strand])

    if count == 1:
        R = design.summed(work, weights, add=joined)
    else:
        R = np.vstack(run_strands(of_strand, strands))
    lift = np.zeros((d, width))
    root = np.sqrt(curvature)
    lift[:, first:] = np.diag(root * scale) if is_diagonal else root[:, None] * scale
    R = np.asarray(np.linalg.qr(np.vstack([R, lift]), mode="r"))
    square = np.zeros((width, width))
    square[: len(R)] = R
    return square[first:, first:]


def factor_rows(
    problem: Problem, mean: Array | None, curvature: Array, *, use_svd: bool = False
) -> RowFactor:
    """Factor the rows; decides the rank and proves the coercivity.

    Parameters
    ----------
    problem : Problem
    mean : array of shape (d,), optional
        Weighted mean of the rows; None without an intercept.
    curvature : array of shape (d,)
    use_svd : bool, default=False
        Decide the rank by singular values always, not only when pivoted QR finds a small pivot.
    """
    n, d = problem.design.shape
    squares = centred_squares(problem, mean)
    # Columns that do not vary have no part in the factor; a penalty keeps their coefficients zero.
    flat = np.flatnonzero(squares == 0)
    scale = np.where(squares > 0, power_of_two_scale(squares + curvature), 0.0)
    wide = d > n and not curvature.any()
    is_alike = wide and are_alike(scale[squares > 0])
    if is_alike:  # in one unit for all, singular vectors are directions of the coefficients
        scale = np.where(squares > 0, scale.max(), 0.0)
    R = (_factor_of_transpose if wide else triangular_factor)(problem, mean, scale, curvature)
    tolerance = rank_tolerance(n, d)
    found = None
    if not (use_svd or wide or len(flat)):
        found = _pivoted(R, _WEAK if curvature.any() else tolerance)
    weak = np.zeros((d, 0))
    if found is None:
        left, singular, right = svd(R)
        # Of the transpose the left vectors belong to the columns of X.
        vectors = left if wide else right.T
        largest = float(singular.max(initial=0.0))
        own_curvature = np.linalg.norm((np.sqrt(curvature) * scale)[:, None] * vectors, axis=0)
        data = np.sqrt(np.maximum(singular**2 - own_curvature**2, 0.0))
        is_seen = singular > tolerance * largest
        # Along what a weak penalty alone decides, the answer is zero, and rounding would not be.
        is_weak = is_seen & (data <= tolerance * largest) & (singular <= _WEAK * largest)
        weak = scale[:, None] * vectors[:, is_weak] / singular[is_weak]
        vectors, singular = vectors[:, is_seen & ~is_weak], singular[is_seen & ~is_weak]
        inverse = vectors / singular
    else:
        inverse, singular = found
    condition = float(singular[0] / singular[-1]) if len(singular) else 1.0
    steps, space = scale[:, None] * inverse, None
    is_least, growth, proven = True, 1.0, -1.0
    if steps.shape[1] + len(flat) < d:
        # Each direction is replaced by the one of least norm that has the same effect on the fit:
        # the parts of the coefficients that the data do not see are zero (Moore-Penrose).
        level = tolerance * float(singular.max(initial=0.0))
        space = row_space(vectors, singular, scale, level)
        least = steps if is_alike else project(steps, space)
        least, proven = _conditioned(problem, mean, curvature, least)
        is_least = proven >= _PROVEN_ENOUGH
        if is_least:  # otherwise units are so far apart that it has lost the digits of some columns
            steps, growth = least, left_out_growth(least, scale, singular)
    elif len(flat):
        space = np.eye(d)[:, squares > 0]
    if proven < _PROVEN_ENOUGH:
        steps, proven = _conditioned(problem, mean, curvature, steps)
    held = _held(problem, mean, curvature, flat)
    # Columns whose squares underflow are not flat: the penalty decides their coefficients.
    small = held[(problem.design.column_largest() < _UNSQUARED)[held]]
    if len(small):
        steps = np.hstack([steps, np.eye(d)[:, small] / np.sqrt(curvature[small])])
        held = np.setdiff1d(held, small)
    basis = steps
    if weak.shape[1] or len(held):
        basis = np.hstack([steps, weak, np.eye(d)[:, held] / np.sqrt(curvature[held])])
        basis, proven = _conditioned(problem, mean, curvature, basis)
    rank = basis.shape[1]
    own = np.zeros(min(n, d))
    if is_alike:
        values = singular / scale.max()
    else:
        own_units = R.T if not wide else R
        own_units = np.divide(
            own_units, scale[:, None], out=np.zeros_like(own_units), where=scale[:, None] > 0
        )
        values = singular_values(own_units)[: len(own)]
    own[: len(values)] = values
    # Columns that do not vary are left out without an error.
    is_complete = rank + len(flat) - len(held) >= d
    left_out = 0.0 if is_complete else 8 * tolerance * float(np.sqrt(d)) * growth
    return RowFactor(basis, 0.9 * proven, rank, condition, own, left_out, steps, space, is_least)


def factor_dependent(problem: Problem, moments: Moments) -> NormalFactor | None:
    """Factor the normal equations of columns that depend on some well-conditioned ones exactly.

    Parameters
    ----------
    problem : Problem
        Without a penalty.
    moments : Moments
        About the means with an intercept, about zero without.

    Returns
    -------
    NormalFactor or None
        None if the rows do not confirm the dependences, or the other columns are nearly dependent.
    """
    gram, diagonal = moments.gram, moments.gram.diagonal()
    varies = diagonal > noise_of_squares(moments)
    d, size = len(diagonal), np.sqrt(diagonal)
    mean = moments.x_mean if problem.fit_intercept else None
    if not varies.all() and centred_squares(problem, mean)[~varies].any():
        return None
    alive = varies.nonzero()[0]
    own = size[alive]
    unit = gram if len(alive) == d else gram[alive[:, None], alive]
    _, order, rank, _ = dpstrf(unit / (own[:, None] * own), tol=_CLEAR)
    kept, free = alive[order[:rank] - 1], alive[order[rank:] - 1]
    if rank in (0, d):
        return None
    inner = _factor_of(moments, kept)
    if inner is None:
        return None
    tolerance = rank_tolerance(*problem.design.shape)
    C = _combinations(problem, moments, inner, kept, free, tolerance)
    if C is None:
        return None
    ratios = size[kept, None] / size[free]
    told = ratios[C != 0]
    if len(told) and max(told.max(), 1 / told.min()) > _FAR_APART:
        return None  # columns in small units need digits of C that the Gram matrix has lost
    space, basis = np.zeros((d, rank)), np.zeros((d, rank))
    space[kept], space[free], basis[kept] = np.eye(rank), C.T, inner.basis
    if len(free) and np.vdot(C, C) <= _SMALL:
        # Away from the complement [-C; 1], by equations of the few columns that depend on others.
        products = C.T @ C
        products.flat[:: len(free) + 1] += 1.0
        along = dposv(products, C.T @ inner.basis)[1]
        basis[kept], basis[free] = inner.basis - C @ along, along
    elif len(free):
        basis = project(basis, space)
    # X_c M = X_b M_b + (X_f - X_b C) M_f, with M_b the basis for the columns that are kept.
    squares = (basis[free] * basis[free]).sum(axis=1)
    lost = float(tolerance * size[free] @ np.sqrt(squares))
    growth = 2.0 + float(np.linalg.norm(C * ratios))
    others = np.ones(d, dtype=bool)
    others[kept] = False
    return NormalFactor(
        basis=basis,
        coercivity=max(math.sqrt(inner.coercivity) - 2 * lost, 0.0) ** 2,
        scale=power_of_two_scale(diagonal),
        diagonal_coercivity=0.0,
        condition=inner.condition,
        # Columns that do not vary are left out without an error.
        left_out=8 * tolerance * math.sqrt(d) * growth if len(free) else 0.0,
        space=space,
        dependent=others.nonzero()[0],
    )


def _factor_of(moments: Moments, kept: Indices) -> NormalFactor | None:
    """The factor for some of the columns; None if these are nearly dependent."""
    own = replace(
        moments,
        x_mean=moments.x_mean[kept],
        x_size=moments.x_size[kept],
        gram=moments.gram[kept[:, None], kept],
    )
    found = factor_normal_equations(own, np.zeros(len(kept)))
    if found is None or found.coercivity < _PROVEN_ENOUGH or found.condition > _WELL_CONDITIONED:
        return None
    return found


def _combinations(
    problem: Problem,
    moments: Moments,
    inner: NormalFactor,
    kept: Indices,
    free: Indices,
    tolerance: float,
) -> Array | None:
    """C with X_f = X_b C for the columns b that are kept; None if the rows do not confirm it."""
    size, x_mean = np.sqrt(moments.gram.diagonal()), moments.x_mean
    cross = moments.gram[kept[:, None], free]
    C, combined = np.zeros((len(kept), len(free))), np.zeros((len(size), len(free)))
    combined[free] = np.eye(len(free))
    least, enough = _CLEAR * size[free], tolerance * size[free]
    for _ in range(3):  # later rounds make up for the rounding of the Gram matrix
        C += inner.solve(cross)
        C[np.abs(C) * size[kept, None] <= least] = 0.0
        combined[kept] = -C
        left = problem.design.matvec(combined) - x_mean @ combined
        weighted = problem.weigh(left)
        if (np.sqrt((weighted * left).sum(axis=0)) <= enough).all():
            return C
        totals = weighted.sum(axis=0)
        cross = problem.design.rmatvec(weighted)[kept] - x_mean[kept, None] * totals
    return None


def _conditioned(
    problem: Problem, mean: Array | None, curvature: Array, basis: Array
) -> tuple[Array, float]:
    """A basis of the same span for which M^T H M is close to the identity, and its coercivity.

    Where rounding has kept M from that, M R^{-1} is closer, with R the factor of the rows X_c M.
    """
    weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights

    def proven(M: Array) -> float:
        return proven_coercivity(problem.design.blocks(2048), weights, M, curvature, mean)

    found = proven(basis)
    if found >= _CLOSE_TO_ONE:
        return basis, found
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        R = triangular_factor(problem, mean, basis, curvature)
        pivots = np.abs(R.diagonal())
        if not pivots.min(initial=np.inf) > 1e-6 * pivots.max(initial=0.0):
            return basis, found
        other = np.ascontiguousarray(solve_triangular(R, basis.T, trans=1).T)
    if not np.isfinite(other).all():
        return basis, found
    return max((basis, found), (other, proven(other)), key=lambda pair: pair[1])


def _held(problem: Problem, mean: Array | None, curvature: Array, flat: Indices) -> Indices:
    """Columns that do not vary and whose coefficients a penalty holds at zero.

    The penalty must be more than what proofs in doubled precision see of such a column after its
    mean was subtracted.
    """
    noise = np.zeros(len(flat))
    if mean is not None:
        noise = 1e-8 * problem.total_weight * (64 * _EPS * mean[flat]) ** 2
    return flat[curvature[flat] > noise]


def centred_squares(problem: Problem, mean: Array | None) -> Array:
    """Weighted squares of the columns about their means; zero if a column does not vary."""
    if mean is None:
        return problem.design.column_squares(problem.weights, None)
    if problem.design.is_sparse:
        # It would multiply the squares out, and be left with the rounding of what cancels.
        return _squares_of_differences(problem, np.arange(problem.n_features))
    squares = problem.design.column_squares(problem.weights, mean)
    # Squares about a rounded mean may be nothing but the rounding of that mean.
    limit = (8 * problem.n_samples * _EPS) ** 2 * problem.total_weight * mean**2
    doubtful = np.flatnonzero(squares <= limit)
    if len(doubtful):
        squares[doubtful] = _squares_of_differences(problem, doubtful)
    return squares


def _squares_of_differences(problem: Problem, columns: Indices) -> Array:
    """Centred squares of columns that hardly vary; zero for those that do not vary at all.

    Differences to one of the rows are exact or nearly so, and small: their mean is accurate.
    """
    weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    first = problem.design.row(int(np.argmax(weights > 0)))[columns]
    mean, squares = np.zeros(len(columns)), np.zeros(len(columns))
    for adds_up in ("mean", "squares"):
        for rows, block in problem.design.blocks(4096):
            present = weights[rows] > 0
            difference = block[present][:, columns] - first
            if adds_up == "mean":
                mean += weights[rows][present] @ difference / problem.total_weight
            else:
                squares += weights[rows][present] @ (difference - mean) ** 2
    return squares


def _pivoted(R: Array, tolerance: float) -> tuple[Array, Array] | None:
    """R^{-1} by QR with column pivoting and the pivots; None if a pivot is negligible."""
    triangle, order = qr(R, mode="r", pivoting=True)
    pivots = np.abs(triangle.diagonal())
    if len(pivots) == 0 or pivots.min() <= tolerance * pivots.max():
        return None
    inverse = np.empty_like(R)
    inverse[order] = solve_triangular(triangle, np.eye(len(R)))
    return inverse, pivots


def _factor_of_transpose(
    problem: Problem, mean: Array | None, scale: Array, curvature: Array
) -> Array:
    """(S^(1/2) (X - m) T)^T whole, for designs with more columns than rows.

    With an intercept, the rows are reflected so that their weighted sum is the first one, which is
    zero but for the rounding of m and left out.
    """
    V = problem.design.toarray()
    V = (V if mean is None else V - mean) * scale
    root = np.ones(len(V)) if problem.weights is None else np.sqrt(problem.weights)
    if problem.weights is not None:
        present = root > 0
        root = root[present]
        V = V[present] * root[:, None]
    if mean is not None:
        normal = root / np.linalg.norm(root)
        normal[0] += 1.0
        V -= np.outer(normal, (normal @ V) / normal[0])
        V = V[1:]
    return V.T
