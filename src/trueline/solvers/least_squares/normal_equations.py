r"""The normal equations, solved and proven from moments; what all least-squares solvers share.

    (G + A) w = c,     G centred Gram, c cross products, A the penalty's curvature

Columns are first scaled by powers of two (exact in floating point) so that the diagonal is near
one; then R^T R = T (G + A) T by Cholesky, and M = T R^{-1} gives the answer w = M M^T c.

M is also the basis of the proof (:mod:`trueline.certificates.quadratic`). How far M^T (G + A) M
can be from the identity is bounded beforehand: by the backward error of Cholesky's factorisation
(Higham, theorem 10.3) and of the triangular inverse (Higham, section 14.2), and by the rounding of
the moments themselves. If that bound does not prove a coercivity of one half, the data are too
ill-conditioned for normal equations in double precision, and the caller must factor the rows.

The functions ``evidence_from_...`` bound the gap of an answer, from whatever it was found with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpotrf, dtrtri

from trueline.certificates.quadratic import Evidence
from trueline.design import DenseDesign
from trueline.moments import Moments
from trueline.problem import MomentsProblem, Problem
from trueline.solvers.least_squares.refinement import Refined, can_refine, evaluate_exactly
from trueline.wording import counted

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Columns whose scales differ by no more than this count as given in like units.
_LIKE_UNITS = 64.0
# Dependent columns that a note lists.
_LISTED = 8


def power_of_two_scale(squares: Array) -> Array:
    """Powers of two t_j such that t_j^2 squares_j is about one (one where squares_j is zero)."""
    exponent = np.frexp(squares)[1] >> 1  # zero has the exponent zero
    return np.ldexp(1.0, -exponent)


@dataclass(frozen=True)
class NormalFactor:
    """M with M^T (G + A) M close to the identity, and how close that is proven to be.

    Attributes
    ----------
    basis : array of shape (d, d)
        M, upper triangular.
    coercivity : float
        nu with M^T (G + A) M >= nu I, proven; not positive if nothing could be proven.
    scale : array of shape (d,)
        T, powers of two.
    diagonal_coercivity : float
        nu with T (G + A) T >= nu I, proven; not positive if nothing could be proven.
    condition : float
        Estimate (from above) of the condition number of the scaled design.
    left_out : float
        Bound on the part of the design, its columns scaled to equal norm, outside of the basis.
    space : array of shape (d, rank), optional
        Vectors that span the row space, if it is not everything.
    dependent : array of shape (d - rank,), optional
        Columns that follow from the others, if they are known.
    """

    basis: Array
    coercivity: float
    scale: Array
    diagonal_coercivity: float
    condition: float
    left_out: float = 0.0
    space: Array | None = None
    dependent: Indices | None = None

    def solve(self, right: Array) -> Array:
        """(G + A)^{-1} right."""
        return self.basis @ (self.basis.T @ right)


def factor_normal_equations(moments: Moments, curvature: Array) -> NormalFactor | None:
    """Factor the normal equations; None if the matrix is not numerically positive definite.

    Parameters
    ----------
    moments : Moments
    curvature : array of shape (d,)
        The diagonal of A.
    """
    d = moments.n_features
    diagonal = moments.gram.diagonal() + curvature
    if not (diagonal > _noise_of_means(moments)).all():
        return None
    scale = power_of_two_scale(diagonal)
    square = scale * scale
    hessian = moments.gram * scale
    hessian *= scale[:, None]
    scaled = hessian.flat[:: d + 1] = diagonal * square
    trace = float(np.add.reduce(scaled))
    R, info = dpotrf(hessian.T, lower=0, clean=1, overwrite_a=1)
    if info != 0:
        return None
    inverse, info = dtrtri(R, lower=0)
    if info != 0:
        return None
    norm_R, norm_inverse = _frobenius(R), _frobenius(inverse)
    residual = (d + 2) * _EPS * norm_R * norm_inverse  # of R R^{-1} = I, in the Frobenius norm
    backward = 2 * (d + 3) * _EPS * trace
    rounding = moments.unit * float(moments.x_size @ square)
    coercivity = -np.inf
    if residual < 0.1:
        residual *= 1.2
        coercivity = (1 - residual) ** 2 - (backward + rounding) * norm_inverse**2
    return NormalFactor(
        basis=scale[:, None] * inverse,
        coercivity=coercivity,
        scale=scale,
        # M = T R^{-1}: what holds for M holds for T up to the norm of R^{-1}.
        diagonal_coercivity=coercivity / norm_inverse**2 if d else 1.0,
        condition=norm_R * norm_inverse,
    )


def _noise_of_means(moments: Moments) -> Array:
    """What is left of a column that does not vary when its rounded mean is subtracted, squared.

    A penalty smaller than that would be all that holds its coefficient, against rounding.
    """
    noise: Array = moments.weight * (64 * _EPS * moments.x_mean) ** 2
    return noise


def noise_of_squares(moments: Moments) -> Array:
    """Squares of columns up to which the moments cannot tell them from nothing."""
    noise: Array = np.maximum(moments.unit * moments.x_size, _noise_of_means(moments))
    return noise


def _frobenius(triangle: Array) -> float:
    """The Frobenius norm of a Fortran-ordered matrix."""
    entries = triangle.ravel(order="K")
    return math.sqrt(entries @ entries)


def factor_spectrum(moments: Moments, curvature: Array) -> NormalFactor:
    """The same on the directions that the Gram matrix determines beyond its rounding.

    For moments whose rows are gone. Eigenvalues of the scaled matrix below its rounding error are
    noise; the basis spans the others, chosen within the row space (least norm).
    """
    d = moments.n_features
    diagonal = moments.gram.diagonal() + curvature
    alive = diagonal > noise_of_squares(moments)
    scale = np.where(alive, power_of_two_scale(diagonal), 0.0)
    hessian = moments.gram * scale * scale[:, None]
    hessian.flat[:: d + 1] = diagonal * scale**2
    values, vectors = np.linalg.eigh(hessian)
    noise = moments.unit * float((moments.x_size * scale**2).sum()) + 4 * d * _EPS * d
    keep = values > 4 * noise
    basis = scale[:, None] * (vectors[:, keep] / np.sqrt(values[keep]))
    lowest = float(values[keep].min(initial=np.inf))
    # Columns below the noise may be constant or not: the moments cannot tell.
    left_out, space = 1.0, None
    if not keep.all():
        space = row_space(vectors[:, keep], values[keep], scale, 4 * noise)
        basis = project(basis, space)
        if not (diagonal[~alive] > 0).any():
            grown = left_out_growth(basis, scale, np.sqrt(values[keep]))
            left_out = min(1.0, float(np.sqrt(20 * noise * d)) * grown)
    return NormalFactor(
        basis=basis,
        coercivity=_coercivity(moments, hessian, scale, basis),
        scale=scale,
        diagonal_coercivity=lowest - 2 * noise if keep.all() else 0.0,
        condition=float(np.sqrt(values.max(initial=1.0) / lowest)) if keep.any() else 1.0,
        left_out=left_out,
        space=space,
    )


def left_out_growth(basis: Array, scale: Array, singular: Array) -> float:
    """How much larger than the dropped singular values the part outside of the basis may be.

    With X_c T = U diag(singular) V^T + (dropped), the basis T V / singular leaves out what was
    dropped. Projected, it leans into the dropped directions, and undoing that takes a multiple.
    """
    alive = scale > 0
    return 1.0 + float(np.linalg.norm(basis[alive] / scale[alive, None] * singular))


def are_alike(scale: Array) -> bool:
    """Whether columns have norms of one order of magnitude: scaling them changes little."""
    return bool(len(scale) and scale.max() <= _LIKE_UNITS * scale.min())


def row_space(vectors: Array, effects: Array, scale: Array, level: float) -> Array:
    """The row space in the units of the data, from orthonormal vectors of the scaled one.

    Undoing a scaling enlarges rounding errors along with what they sit on: an error of eps in a
    column that was scaled by 1e14 looks like a fact. So the space is written as dependences first,

        X_f = X_b C       r columns b that are independent, d - r columns f that follow from them,

    where entries of C that rounding explains can be told, and become exact zeros. Then C is scaled,
    and the space is the span of [1; C^T].

    Parameters
    ----------
    vectors : array of shape (d, r)
        V, orthonormal, of the columns X T; rows of zeros where T is zero.
    effects : array of shape (r,)
        What each direction does: singular values of X T or their squares.
    scale : array of shape (d,)
        T, powers of two.
    level : float
        Effects up to this size are rounding.

    Returns
    -------
    space : array of shape (d, r)
    """
    alive = np.flatnonzero(scale > 0)
    d, r = vectors.shape
    space = np.zeros((d, r))
    if r == 0:
        return space
    sizes = scale[alive]
    if are_alike(sizes):  # errors stay what they are
        space[alive] = vectors[alive] / sizes[:, None]
        return space
    triangle, order = qr(vectors[alive].T, mode="r", pivoting=True)
    basic, free = alive[order[:r]], alive[order[r:]]
    C = solve_triangular(triangle[:, :r], triangle[:, r:])
    images = effects[:, None] * vectors[basic].T
    # An error of the images turns into one of C through their inverse.
    bars = level * np.linalg.norm(np.linalg.inv(images), axis=1)
    doubtful = np.where(np.abs(C) <= bars[:, None], C, 0.0)
    # Near dependences make bars long. What is dropped together must have no effect together.
    drop = np.linalg.norm(images @ doubtful, axis=0) <= level
    C[:, drop] -= doubtful[:, drop]
    space[basic] = np.eye(r)
    space[free] = (C * scale[basic, None] / scale[free]).T
    return space


def project(vectors: Array, space: Array) -> Array:
    """Orthogonal projection of vectors onto the column space of a matrix.

    Rows of very different sizes keep their own relative accuracy if the largest come first and
    columns are pivoted (A. J. Cox, N. J. Higham, "Stability of Householder QR factorization for
    weighted least squares problems", 1998): columns of the data in different units do that.
    """
    if space.shape[1] == 0:
        return np.zeros_like(vectors)
    order, Q = _orthogonal(space, "economic")
    out = np.empty_like(vectors)
    out[order] = Q @ (Q.T @ vectors[order])
    return out


def independent_columns(space: Array, size: Array) -> NDArray[np.intp]:
    """As many columns of the design as the row space has dimensions, none following from others.

    Parameters
    ----------
    space : array of shape (d, r)
        Vectors that span the row space.
    size : array of shape (d,)
        Norms of the columns: those in large units are not to be kept for their units alone.
    """
    _, order = qr(space.T * np.where(size > 0, size, 1.0), mode="r", pivoting=True)
    return np.sort(order[: space.shape[1]])


def rank_note(space: Array, size: Array, dependent: Indices | None = None) -> str:
    """The sentence that says the rank, and which columns depend on others, if that is known."""
    d, rank = space.shape
    opened = (
        f"the data leave {counted(d - rank, 'direction')} open, and the coefficients are those of "
        "least norm (Moore-Penrose)"
    )
    if dependent is None and d > 2 * rank:  # most columns depend on others: their names say nothing
        return f"rank {rank} of {d}: {opened}"
    others = dependent
    if others is None:
        others = np.delete(np.arange(d), independent_columns(space, size))
    listed = ", ".join(str(j) for j in others[:_LISTED]) + (
        ", ..." if len(others) > _LISTED else ""
    )
    depend = f"column {listed} depends" if len(others) == 1 else f"columns {listed} depend"
    return f"rank {rank} of {d}: {depend} on the others; {opened}"


def orthogonal_complement(space: Array) -> Array:
    """An orthonormal basis of what is orthogonal to the columns, which must be independent.

    A space of the form [1; C^T] (:func:`row_space`) has the complement [-C; 1], whose zeros are as
    exact as those of C.
    """
    d, r = space.shape
    if r in (0, d):
        return np.eye(d)[:, r:]
    basic = _pivot_rows(space)
    if basic is None:
        order, Q = _orthogonal(space, "full")
        out = np.empty((d, d - r))
        out[order] = Q[:, r:]
        return out
    free = np.setdiff1d(np.arange(d), basic)
    complement = np.zeros((d, d - r))
    complement[free] = np.eye(d - r)
    complement[basic] = -(space[free] / space[basic, np.arange(r)]).T
    return _orthonormalised(complement)


def _orthonormalised(vectors: Array) -> Array:
    """An orthonormal basis of the span, each row of which is as accurate as the given one.

    Combinations V R^{-1} of the vectors, not the factor Q: that one errs by eps in every row, and
    rows of columns in small units are worth more than that. The second round makes up for what the
    condition of R costs the first in orthogonality.
    """
    for _ in range(2):
        order = np.argsort(-np.abs(vectors).max(axis=1), kind="stable")
        vectors = vectors / np.linalg.norm(vectors, axis=0)
        R, pivots = qr(vectors[order], mode="r", pivoting=True)
        r = vectors.shape[1]
        vectors = solve_triangular(R[:r], vectors[:, pivots].T, trans=1).T
    return np.ascontiguousarray(vectors)


def _pivot_rows(space: Array) -> NDArray[np.intp] | None:
    """For each column a row that has its only entry there; None if some column has none."""
    rows, columns = np.nonzero(space)
    alone = np.flatnonzero(np.count_nonzero(space, axis=1)[rows] == 1)
    found, first = np.unique(columns[alone], return_index=True)
    return rows[alone[first]] if len(found) == space.shape[1] else None


def _orthogonal(space: Array, mode: str) -> tuple[NDArray[np.intp], Array]:
    """An order of the rows, and the orthogonal factor of the rows in that order."""
    order = np.argsort(-np.abs(space).max(axis=1), kind="stable")
    sizes = np.linalg.norm(space, axis=0)
    Q, _, _ = qr(space[order] / sizes, mode=mode, pivoting=True)
    return order, Q


def _coercivity(moments: Moments, hessian: Array, scale: Array, basis: Array) -> float:
    """nu with M^T (G + A) M >= nu I, found from M as it came out and from T (G + A) T."""
    d, r = basis.shape
    if r == 0:
        return 1.0
    alive = scale > 0
    M = basis[alive] / scale[alive, None]
    H = hessian[np.ix_(alive, alive)]
    product = M.T @ H @ M
    reach = np.linalg.norm(M, axis=1)
    # Two products of d terms; and the rounding of the moments, of which M sees a part.
    own = (2 * d + 8) * _EPS * float(reach @ np.sqrt(H.diagonal())) ** 2
    given = moments.unit * float(reach @ (np.sqrt(moments.x_size[alive]) * scale[alive])) ** 2
    least = float(np.linalg.eigvalsh(product)[0]) - 4 * r * _EPS * float(np.trace(product))
    return max(0.0, least - own - given)


Indices = NDArray[np.intp]
#: Entries up to which a sparse matrix is factored as a dense one.
MOST_DENSE = 2e7
# Entries (times targets) up to which products in doubled precision take less than a second.
_FEW_ENTRIES = 2e6


def curvature_matrix(problem: Problem | MomentsProblem) -> Array:
    """The penalty's curvature for each coefficient and target, of shape (d, k)."""
    shape = (problem.n_features, problem.n_targets)
    curvature = problem.penalty.curvature
    if isinstance(curvature, float):
        return np.full(shape, curvature)
    return np.broadcast_to(np.asarray(curvature, dtype=np.float64), shape)


def same_strength_groups(curvature: Array) -> Iterator[tuple[Array, Indices]]:
    """Targets that share a curvature, as (curvature of shape (d,), indices of the targets)."""
    if curvature.shape[1] == 1 or (curvature == curvature[:, :1]).all():
        yield curvature[:, 0], np.arange(curvature.shape[1])
        return
    unique, group = np.unique(curvature, axis=1, return_inverse=True)
    group = group.ravel()
    for g in range(unique.shape[1]):
        yield unique[:, g], np.flatnonzero(group == g)


def evidence_from_moments(
    problem: Problem | MomentsProblem,
    moments: Moments,
    W: Array,
    b: Array,
    basis: Array,
    coercivity: float,
) -> Evidence:
    """Gradient, objective and their rounding from the moments, without reading the rows.

    The moments are about the mean with an intercept, about zero without. A nearly perfect fit
    cancels in the moments; then the rows, if there are any, are read once.
    """
    curvature = curvature_matrix(problem)
    gradient, rounding = moments.gradient(W)
    own_curvature = curvature * W
    gradient = gradient + own_curvature
    rounding = rounding + 4 * _EPS * np.abs(own_curvature)
    weight = moments.weight
    slope, slope_rounding = np.zeros_like(b), np.zeros_like(b)
    reach = np.abs(moments.x_mean) @ np.abs(W) + np.abs(moments.y_mean)
    spread = (np.sqrt(moments.x_size) @ np.abs(W) + np.sqrt(moments.y_size)) / np.sqrt(weight)
    if problem.fit_intercept:
        slope = weight * (b + moments.x_mean @ W - moments.y_mean)
        units = (len(W) + 8) * _EPS
        slope_rounding = weight * (units * (reach + np.abs(b)) + moments.unit * spread)
    square, square_rounding = moments.residual_square(W)
    penalty = problem.penalty.value_per_target(W)
    objective = 0.5 * square + penalty
    objective_rounding = 0.5 * square_rounding + (len(W) + 4) * _EPS * penalty
    if problem.fit_intercept:
        objective = objective + 0.5 * slope**2 / weight
        objective_rounding = objective_rounding + (np.abs(slope) + slope_rounding) * (
            slope_rounding / weight
        )
    if isinstance(problem, Problem) and (objective_rounding > 1e-7 * objective).any():
        objective, objective_rounding = objective_from_rows(problem, W, b, spread + reach)
    return Evidence(
        gradient=gradient,
        gradient_rounding=rounding,
        intercept_gradient=slope,
        intercept_rounding=slope_rounding,
        objective=objective,
        objective_rounding=objective_rounding,
        basis=basis,
        coercivity=coercivity,
    )


def objective_from_rows(problem: Problem, W: Array, b: Array, reach: Array) -> tuple[Array, Array]:
    """The objective by reading the rows; reach bounds the root mean square of abs(X) abs(W)."""
    objective = problem.objective_per_target(W, b)
    n, d = problem.design.shape
    # Each residual errs by (d + 4) eps times its reach; sums of squares pass that on.
    off = (d + 4) * _EPS * 2 * (reach + np.abs(b)) * np.sqrt(problem.total_weight)
    rounding = np.sqrt(2 * objective) * off + 0.5 * off**2
    return objective, rounding + (np.log2(n + 2) + 130) * _EPS * objective


def evidence_from_rows(
    problem: Problem, W: Array, b: Array, mean: Array, basis: Array, coercivity: float
) -> Evidence:
    """Gradient, objective and rounding by reading the rows in double precision."""
    curvature = curvature_matrix(problem)
    n, d = problem.design.shape
    scores = problem.scores(W, b)
    residual = scores - problem.target
    weighted = problem.weigh(residual)
    slope = weighted.sum(axis=0) if problem.fit_intercept else np.zeros_like(b)
    gradient = problem.design.rmatvec(weighted) - mean[:, None] * slope + curvature * W
    root = np.sqrt(problem.design.column_squares(problem.weights, None))
    y_root = np.sqrt(problem.weigh(problem.target**2).sum(axis=0))
    reach = root @ np.abs(W) + y_root + np.abs(b) * np.sqrt(problem.total_weight)
    r_root = np.sqrt((weighted * residual).sum(axis=0))
    # A product over n rows in blocks of at most 4096, and residuals that err by (d + 4) eps.
    off = (d + 4) * _EPS * reach + (min(n, 4096) + n / 4096 + 16) * _EPS * r_root
    rounding = root[:, None] * off + 4 * _EPS * np.abs(curvature * W)
    slope_rounding = np.zeros_like(b)
    if problem.fit_intercept:
        slope_rounding = np.sqrt(problem.total_weight) * off
        mean_root = root[:, None] / np.sqrt(problem.total_weight)
        units = (min(n, 4096) + n / 4096 + 16) * _EPS
        rounding = rounding + units * mean_root * (np.abs(slope) + slope_rounding)
        rounding = rounding + np.abs(mean)[:, None] * slope_rounding
    objective = 0.5 * (weighted * residual).sum(axis=0) + problem.penalty.value_per_target(W)
    objective_off = (d + 4) * _EPS * reach
    objective_rounding = np.sqrt(2 * objective) * objective_off + 0.5 * objective_off**2
    return Evidence(
        gradient=gradient,
        gradient_rounding=rounding,
        intercept_gradient=slope,
        intercept_rounding=slope_rounding,
        objective=objective,
        objective_rounding=objective_rounding + (np.log2(n + 2) + 130) * _EPS * objective,
        basis=basis,
        coercivity=coercivity,
    )


def evidence_at(problem: Problem, W: Array, b: Array, basis: Array, coercivity: float) -> Evidence:
    """Evidence about any point, evaluated exactly where that is affordable."""
    problem = as_dense(problem)
    mean = np.zeros(problem.n_features)
    if problem.fit_intercept:
        mean = problem.design.column_means(problem.weights)
    if not can_refine(problem):
        return evidence_from_rows(problem, W, b, mean, basis, coercivity)
    at = evaluate_exactly(problem, W, b, mean, curvature_matrix(problem))
    return evidence_from_refined(problem, at, basis, coercivity, True)


def as_dense(problem: Problem) -> Problem:
    """The problem with dense rows, if they are few enough to be evaluated exactly in no time."""
    n, d = problem.design.shape
    if not problem.design.is_sparse or n * d * problem.n_targets > _FEW_ENTRIES:
        return problem
    return replace(problem, design=DenseDesign(problem.design.toarray()))


def evidence_from_refined(
    problem: Problem,
    refined: Refined,
    basis: Array,
    coercivity: float,
    is_global: bool,
    left_out: float = 0.0,
) -> Evidence:
    """Evidence from exactly evaluated gradients."""
    penalty = problem.penalty.value_per_target(refined.coef)
    objective = 0.5 * refined.residual_square + penalty
    n, d = problem.design.shape
    off = refined.residual_rounding
    rounding = np.sqrt(refined.residual_square) * off + 0.5 * off**2
    return Evidence(
        gradient=refined.gradient,
        gradient_rounding=refined.gradient_rounding,
        intercept_gradient=refined.intercept_gradient,
        intercept_rounding=refined.intercept_rounding,
        objective=objective,
        objective_rounding=rounding + (np.log2(n + 2) + 32 + d) * _EPS * objective,
        basis=basis,
        coercivity=coercivity,
        is_global=is_global,
        left_out=left_out,
    )
