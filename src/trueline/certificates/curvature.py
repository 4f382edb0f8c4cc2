r"""Proof by curvature around the answer, for losses with curvature and elastic penalties or none.

Scores are written about a centre m of the columns, z_i = a_i.v with a_i = (x_i - m, 1) and v = (w,
b + m.w). With a diagonal matrix M, steps are measured by ||e|| = |M^-1 e|. Suppose that around v

    P(v + e) >= P(v) + g.e + nu/2 ||e||^2      for all ||e|| <= rho,        rho >= 2 |M g| / nu.

Within that distance P can fall by |M g|^2 / (2 nu) at most. On its edge P is no lower than P(v),
and by convexity it is so beyond. Thus

    gap <= |M g|^2 / (2 nu)      for all coefficients whatsoever.

Rows have the least curvature c_i that the loss takes at scores within rho sum_j |a_ij| M_j of z_i,
and nu is a lower bound on the smallest eigenvalue of M (sum_i s_i c_i a_i a_i^T + A) M, A the
penalty's curvature. Of Huber's loss all rows count that are on the parabola and stay there.

Losses that are not convex: c_i is of either sign, and beyond rho nothing is said; the point is then
proven to be a local minimum.

Of a penalty by absolute values, a_j |w_j|, g has a_j sign(w_j). Where w_j = 0 every slope up to a_j
is that of a tangent, and g has what is more.

*Firth's correction* is not convex: its slope is claimed, and a bound on all objectives. With rows
a_i = (x_i, 1), the information I(v) = sum_i s_i h_i a_i a_i^T and q_i = s_i h_i a_i^T I^-1 a_i,
claimed are F(v) = sum_i s_i l_i - 1/2 log det I(v), the slope |diag(I)^-1/2 g| with g = sum_i (s_i
l'_i - q_i (1/2 - p_i)) a_i, and that no v has F below -1/2 log det(sum_i s_i a_i a_i^T / 4): losses
are not negative, and h <= 1/4. Columns that depend on others are left out of the determinant; their
coefficients are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate
from trueline.design import Design
from trueline.problem import Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 2048
_UNDERFLOW = 1e-290
# Rows that may leave their piece of the loss within rho: more of them are not looked at singly.
_FEW = 0.02
# The share of their curvature that rows must keep within rho.
_KEPT = 0.9
# Of what the curvature is at a local minimum, so much is claimed within the distance.
_LOCALLY = 0.5
# Columns whose means are so many spreads away from zero are centred before they are summed.
_FAR = 10.0


def certify_curvature(
    problem: Problem,
    W: Array,
    b: Array,
    centre: Array,
    basis: Array,
    coercivity: Array,
    spread: Array,
    curvatures: Array,
    rounding: Rounding | None = None,
) -> Certificate | None:
    """The certificate of a point; None where the curvature does not suffice.

    Parameters
    ----------
    problem : Problem
        Whose penalty is elastic (quadratic, of absolute values, both), or none.
    W, b : arrays of shape (d, k) and (k,)
    centre : array of shape (d,)
        Zero without an intercept.
    basis : array of shape (p, k)
        The diagonal of M for each target, the intercept's entry last.
    coercivity : array of shape (k,)
        Per target, a lower bound on the smallest eigenvalue of M (sum_i s_i h_i a_i a_i^T + A) M.
    spread : array of shape (d,)
        At least sqrt(sum_i s_i (x_ij - centre_j)^2).
    curvatures : array of shape (n, k)
        The curvatures h that the coercivity is about, those of the rows at this point or close by.
    rounding : Rounding, optional
        The data's constants, if they are already known.
    """
    rounding = (rounding or Rounding.of(problem)).confirmable()
    at = evaluate(problem, rounding, W, b)
    about = sums_about(problem, rounding, at, centre, spread)
    steep = _steepness(problem, at, W, about, basis)
    if not ((coercivity > 0) & np.isfinite(coercivity) & np.isfinite(steep)).all():
        return None
    s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    nu = coercivity.copy()
    reach = np.zeros_like(nu)
    # Error of one score: the sum over its row is at most the norm over all of them.
    heavy = 1.0 / np.sqrt(s.min())
    error = 2 * rounding.scores(W, b) * heavy
    wide = np.append(spread, np.sqrt(rounding.weight)) if problem.fit_intercept else spread
    for t in range(len(nu)):
        # Half of the curvature is left for the rows on the edge and for rounding.
        reach[t] = 2.001 * steep[t] / (0.5 * nu[t])
        # |a_ij| sqrt(s_i) is at most the norm of the whole column.
        row = float(wide @ basis[:, t]) * heavy
        room = reach[t] * row * (1 + 1e-9) + error[t]
        y, z = problem.target[:, t], at.scores[:, t]
        loss = problem.loss.of_target(t)
        # Losses without kinks have a little less curvature, others none but on their edges.
        keep = 1.0 if loss.kinks else _KEPT
        lost = keep * curvatures[:, t] - loss.least_curvature(y, z, np.full_like(z, room))
        edge = np.flatnonzero(lost > 0)
        if len(edge) > _FEW * len(z) + 1:
            return None
        nu[t] *= keep
        if len(edge):
            rows = problem.design.take(edge).toarray() - centre
            square = ((rows * basis[: rows.shape[1], t]) ** 2).sum(axis=1)
            square += basis[-1, t] ** 2 if problem.fit_intercept else 0.0
            nu[t] -= float((s[edge] * lost[edge]) @ square)
    terms = min(problem.n_samples, _BLOCK_ROWS) + problem.n_samples / _BLOCK_ROWS
    # Of a matrix whose diagonal is one: M is made so.
    unsure = 8 * (terms + 4 * len(basis) + 16) * _EPS * len(basis)
    if (nu - unsure < 0.5 * coercivity).any():
        return None
    nu = 0.5 * coercivity
    gap = float((steep**2 / (2 * nu)).sum()) * (1 + 1e-9) + _UNDERFLOW * problem.n_samples
    # Of fits that are exact nothing is left to compare with but the rounding of scores.
    scores = np.square(1 + np.abs(at.scores)) * (1 + np.abs(problem.target))
    unseen = 1e-6 * at.objective_rounding.sum() + 1e-28 * problem.weigh(scores).sum()
    gap = checkable(gap + float(unseen), at.objective.sum(), 1e-22)
    witness = {"about": centre, "diagonal": basis, "coercivity": nu, "reach": reach}
    rounding_twice = 2 * at.objective_rounding
    return Certificate.about(problem, "curvature", W, b, at.objective, rounding_twice, gap, witness)


def shifted_sums(at: Evaluation, centre: Array) -> tuple[Array, Array]:
    """X_c^T S u from finished sums, and a bound on its error."""
    m = centre[:, None]
    error = at.correlation_rounding + np.abs(m) * at.slope_rounding
    return at.correlation - m * at.slope, error + 4 * _EPS * (
        np.abs(at.correlation) + np.abs(m * at.slope)
    )


def sums_about(
    problem: Problem, rounding: Rounding, at: Evaluation, centre: Array, spread: Array
) -> tuple[Array, Array]:
    """The same, from centred rows where columns are far from zero: it costs no digits."""
    is_far = bool((rounding.accuracy.magnitude > _FAR * spread).any()) and problem.fit_intercept
    if not (is_far and centre.any()):
        return shifted_sums(at, centre)

    def pulled(part: Design, weighted: Array) -> Array:
        blocks = part.blocks(_BLOCK_ROWS)
        return np.asarray(sum((block - centre).T @ weighted[where] for where, block in blocks))

    total = problem.design.summed(pulled, problem.weigh(at.u))
    each = at.row_error + (rounding.accuracy.column_terms + 8) * _EPS * at.size
    return total, spread[:, None] * each


def _steepness(
    problem: Problem, at: Evaluation, W: Array, about: tuple[Array, Array], basis: Array
) -> Array:
    """|M g| per target, at its worst."""
    curvature, linear = (
        problem.penalty.curvature * W,
        np.broadcast_to(problem.penalty.linear, W.shape),
    )
    # Once for these sums, once for those of whoever checks them, and once for what they differ by.
    size = np.abs(about[0] + curvature + linear * np.sign(W)) + 3 * about[1]
    size = size + 16 * _EPS * (np.abs(curvature) + linear)
    size = np.maximum(size - np.where(W == 0, linear, 0.0), 0.0)
    square = ((basis[: len(W)] * size) ** 2).sum(axis=0)
    if problem.fit_intercept:
        square = square + (basis[-1] * (np.abs(at.slope) + 3 * at.slope_rounding)) ** 2
    return np.asarray(np.sqrt(square) * (1 + 1e-9))


def certify_local(problem: Problem, W: Array, b: Array, centre: Array, basis: Array) -> Certificate:
    """The certificate of a point with one target; its gap is infinite where nothing is proven.

    Parameters
    ----------
    problem : Problem
        Whose penalty is quadratic, or none.
    W, b : arrays of shape (d, 1) and (1,)
    centre : array of shape (d,)
        Zero without an intercept.
    basis : array of shape (p,)
        The diagonal of M, the intercept's entry last.
    """
    rounding = Rounding.of(problem).confirmable()
    at = evaluate(problem, rounding, W, b)
    objective = float(at.objective.sum())
    steep = float(_steepness(problem, at, W, shifted_sums(at, centre), basis[:, None])[0])
    gap, witness = np.inf, {}
    here = _least_eigenvalue(problem, at, centre, basis, 0.0)
    if here > 0 and np.isfinite(steep):
        reach = 2.5 * steep / (_LOCALLY * here)
        if _least_eigenvalue(problem, at, centre, basis, reach) >= _LOCALLY * here:
            unseen = 1e-6 * float(at.objective_rounding.sum())
            gap = checkable(steep**2 / (2 * _LOCALLY * here) + unseen, objective, 1e-22)
            witness = {"about": centre, "diagonal": basis[:, None], "reach": np.array([reach])}
    rounded = 4 * float(at.objective_rounding.sum()) + 64 * _EPS * abs(objective)
    return Certificate.about(problem, "local", W, b, objective, rounded, gap, witness)


def _least_eigenvalue(
    problem: Problem, at: Evaluation, centre: Array, basis: Array, reach: float
) -> float:
    """Of M (sum_i s_i c_i a_i a_i^T + A) M, on the safe side; minus infinity if it is not known."""
    d, level = problem.n_features, int(problem.fit_intercept)
    gram, size = np.zeros((d + level, d + level)), 0.0
    for rows, block in problem.design.blocks(_BLOCK_ROWS):
        y, z = problem.target[rows], at.scores[rows]
        scaled = np.hstack([block - centre, np.ones((len(block), level))]) * basis
        far = reach * np.abs(scaled).sum(axis=1, keepdims=True) * (1 + 1e-6)
        far = far + 1e-11 * (np.abs(z) + 1)  # more than the scores round by
        c = problem.weigh(problem.loss.least_curvature(y, z, far), rows)
        gram += (c * scaled).T @ scaled
        size += float((np.abs(c) * scaled**2).sum())
    lift = np.broadcast_to(problem.penalty.curvature, (d, 1))[:, 0] * basis[:d] ** 2
    gram[np.arange(d), np.arange(d)] += lift
    if not np.isfinite(gram).all():
        return -np.inf
    n = problem.n_samples
    units = 4 * (min(n, _BLOCK_ROWS) + n / _BLOCK_ROWS + 16 * len(gram) + 64) * _EPS
    return float(np.linalg.eigvalsh(gram)[0]) - units * (size + float(lift.sum()))


_ROWS = 2048


class _Facts(NamedTuple):
    """The objective, the slope, a bound on all objectives, and what rounding may do to them."""

    objective: float
    slope: float
    bound: float
    rounding: float
    slope_rounding: float


def certify_firth(
    problem: Problem, W: Array, b: Array, columns: NDArray[np.integer]
) -> Certificate:
    """What holds at a point, for the information of these columns."""
    found = _facts(problem, W, b, np.sort(columns).astype(np.intp))
    gap = (found.objective - found.bound + 4 * found.rounding) * (1 + 1e-12)
    slope = np.array(1.25 * found.slope + found.slope_rounding)
    witness = {"slope": slope, "columns": np.sort(columns).astype(np.intp)}
    # Whoever checks rounds as much once more.
    rounded = 2 * found.rounding
    return Certificate.about(problem, "stationary", W, b, found.objective, rounded, gap, witness)


def _facts(problem: Problem, W: Array, b: Array, columns: NDArray[np.intp]) -> _Facts:
    """Everything that is claimed, from one look at the rows (two for the slope)."""
    design, y = problem.design, problem.target[:, 0]
    n, level = problem.n_samples, int(problem.fit_intercept)
    s = np.ones(n) if problem.weights is None else problem.weights
    # About the means, whose choice no determinant feels: columns far from zero keep their digits.
    mean = design.column_means(problem.weights)[columns] * level
    z = design.matvec(W[:, 0]) + b[0]
    reach = np.zeros(n)
    p = len(columns) + level
    small = np.exp(-np.abs(z))
    h, margin = small / (1 + small) ** 2, y * z
    losses = s * (np.maximum(-margin, 0.0) + np.log1p(small))
    squares = np.zeros(p)
    for where, block in design.blocks(_ROWS):
        A = np.hstack([block[:, columns] - mean, np.ones((len(block), level))])
        squares += (s * h)[where] @ A**2
        reach[where] = np.abs(block) @ np.abs(W[:, 0]) + abs(b[0])
    reach *= (design.shape[1] + 8) * _EPS
    inner, outer = (_root(problem, columns, mean, weights) for weights in (s * h, s))
    if inner is None or outer is None:
        return _Facts(np.inf, np.inf, -np.inf, np.inf, np.inf)
    inverse, root = np.linalg.inv(inner), np.sqrt(squares)
    determinant, largest = (2 * float(np.log(np.abs(R.diagonal())).sum()) for R in (inner, outer))
    # One share for all sums over rows; what the factors and their inverses magnify rounding by.
    share = float(reach.max()) + (min(n, _ROWS) + n / _ROWS + 32 + 8 * p) * _EPS
    magnified = sum(
        float(np.linalg.norm(np.abs(np.linalg.inv(R)).T @ np.abs(R).T)) for R in (inner, outer)
    )
    apart = 4 * p * (p * share + (p + 8) * _EPS * magnified * np.sqrt(p))
    total = float(losses.sum())
    size = total + p + abs(determinant) + abs(largest)
    rounding = 2 * float((s * reach).sum()) + 64 * p * _EPS * size + apart
    g, g_error = np.zeros(p), np.zeros(p)
    slope = -y * np.where(margin >= 0, small, 1.0) / (1 + small)
    for where, block in design.blocks(_ROWS):
        A = np.hstack([block[:, columns] - mean, np.ones((len(block), level))])
        leverage = (s * h)[where] * np.square(A @ inverse).sum(axis=1)
        t = s[where] * slope[where] - leverage * 0.5 * np.tanh(-0.5 * z[where])
        g += A.T @ t
        spread = np.linalg.norm(np.abs(A) @ np.abs(inverse), axis=1) * np.sqrt((s * h)[where])
        off = leverage * apart + (p + 8) * _EPS * spread * (
            np.sqrt(leverage) + (p + 8) * _EPS * spread
        )
        off += (s[where] + leverage) * reach[where] + share * (np.abs(t) + leverage)
        g_error += np.abs(A).T @ off
    steep, room = float(np.linalg.norm(g / root)), float(np.linalg.norm(g_error / root))
    bound = -0.5 * (largest - p * np.log(4.0))
    return _Facts(total - 0.5 * determinant, steep, bound, rounding, 4 * room + 1e-15)


def _root(problem: Problem, columns: NDArray[np.intp], mean: Array, weights: Array) -> Array | None:
    """A triangular R with R^T R = sum_i weights_i a_i a_i^T; None if it is singular."""
    level = int(problem.fit_intercept)
    R = np.zeros((0, len(columns) + level))
    for where, block in problem.design.blocks(_ROWS):
        A = np.hstack([block[:, columns] - mean, np.ones((len(block), level))])
        rows = np.vstack([R, np.sqrt(weights[where])[:, None] * A])
        R = np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)
    return R if len(R) == R.shape[1] and R.diagonal().all() and np.isfinite(R).all() else None
