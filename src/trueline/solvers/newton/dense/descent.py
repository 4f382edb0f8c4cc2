r"""Newton's method for one target: a convex loss with curvature, with a quadratic penalty or none.

    minimise over v     P(v) = sum_i s_i l(y_i, a_i.v) + sum_j q_j / 2 v_j^2

    g = A^T S u + Q v,   u_i = l'(z_i),      H = A^T S diag(l''(z)) A + Q,      v <- v - t H^-1 g

with t minimising P along the step, exactly for all that matters (one more evaluation of n losses
each time it is improved). Where the loss is made of parabolas and straight lines, as Huber's is, P
is quadratic on each cell of rows that keep their piece: the first step that stays in its cell ends
at the minimum (the semismooth Newton method; D. Sun, J. Han, SIAM J. Optim. 7 (1997) 463-480; for
Huber's loss K. Madsen, H. B. Nielsen, "Finite algorithms for robust linear regression", BIT 30
(1990) 682-699).

Where too few rows have curvature H is singular; far from the minimum it may predict too large a
decrease. Then mu B is added, with B = c A^T S A + Q, c the largest curvature of the loss: at mu = 1
the model lies above P and every step helps (where the loss has no largest curvature, that at the
start is taken). mu rises when steps had to be cut, and falls after whole ones.

A penalty on every column keeps H regular, and mu B would only hide the kinks of the loss, so that
undamped Newton steps are used. Near the hard margin (a squared hinge of large C on separable
classes) the cells of rows that keep their piece are so small that such steps are cut again and
again. After a few of them the method goes on with a stronger penalty, which is weakened tenfold as
soon as the predicted decrease is small: the minimum moves on a piecewise smooth path, on each piece
of which one step is exact (the regularisation path; T. Hastie, S. Rosset, R. Tibshirani, J. Zhu,
JMLR 5 (2004) 1391-1415, for the hinge).

The first point of long data comes from a sample of the rows: it leaves few rows on a wrong piece.

:func:`continuation` minimises smoothed losses first, less and less smoothed,
:func:`intercept_shifts` finds the best intercepts for given coefficients as exactly as double
precision allows, and :func:`better_by_curvature` proves a gap by the Hessian around any point.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from trueline.certificates.base import Certificate
from trueline.certificates.curvature import certify_curvature
from trueline.certificates.evaluation import level_hessian
from trueline.losses import Loss
from trueline.problem import Problem
from trueline.solvers.iterative import minimise_along
from trueline.solvers.newton.dense.rows import (
    FollowingGram,
    OnePass,
    StandardRows,
    derivatives,
    derivatives_along,
    rowwise,
)
from trueline.wording import counted

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_LEAST_PIVOT = 2e-14
_FIRST_MU, _LEAST_MU = 1e-8, 1e-9
_CUT, _WHOLE = 0.3, 0.9
# For data read from disk: if the slope at t = 1 is at most this share of that at t = 0, the whole
# step is taken without a line search, which would need another pass.
_WHOLE_SLOPE = 0.2
# Predicted decreases, relative to the objective, at which slopes along the step are rounding.
_UNSEEN = 1e-24
# Samples are this share of the rows; they must still be many for each coefficient.
_SHARE, _ROWS_EACH, _LONG = 16, 8, 20_000
_SAMPLE_DECREASE = 1e-6
# Steps that had to be cut until the penalty is strengthened; the factor by which it is weakened at
# a time, and the predicted decrease, as a share of the objective, at which that is done.
_MOST_CUTS, _STAGE_FACTOR, _STAGE_DECREASE = 3, 0.1, 1e-3
_INVERSE_STEPS = 6
# The last Hessian serves where its weights have changed by at most this share on average. A step
# with it takes as long as a new one of so many columns.
_MOST_CHANGE, _COLUMNS_A_STEP = 0.3, 60.0
# A step after which the predicted decrease is a larger share of the one before is not repeated.
_FALL_BY_OLD = 0.1
# At the end steps with it leave this share of the objective; so many of them at most.
_FINAL, _MOST_OF_OLD = 1e-22, 8
# Points where all rows are on their side are moved so many times as far from zero at the most.
_MOST_STRETCH = 100.0


class Factor:
    """Cholesky factor of a matrix, its diagonal brought to one.

    Attributes
    ----------
    least : float
        The smallest pivot, squared distance of a unit column from the others; 0 if there is none.
    """

    def __init__(self, matrix: Array) -> None:
        diagonal = matrix.diagonal()
        self.root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        self._unit = matrix / np.outer(self.root, self.root)
        self._L, info = lapack.dpotrf(self._unit, lower=1, clean=0)
        failed = info != 0 or (diagonal <= 0).any()
        self.least = 0.0 if failed else float((self._L.diagonal() ** 2).min(initial=1.0))

    def solve(self, right: Array) -> Array:
        """The matrix's inverse times a vector, or times the columns of a matrix."""
        if not len(right):
            return right
        if right.ndim > 1:
            return (
                lapack.dpotrs(self._L, right / self.root[:, None], lower=1)[0] / self.root[:, None]
            )
        # For one vector LAPACK copies blocks of the factor; this reads it as it is.
        half = blas.dtrsv(self._L, right / self.root, lower=1)
        return blas.dtrsv(self._L, half, lower=1, trans=1) / self.root

    def log_determinant(self) -> float:
        """The logarithm of the matrix's determinant."""
        return 2.0 * float(np.log(self._L.diagonal()).sum() + np.log(self.root).sum())

    def least_eigenvalue(self) -> float:
        """A lower bound on the smallest eigenvalue, the diagonal brought to one.

        Inverse iteration estimates it; that C - tau I has a Cholesky factor proves tau.
        """
        p = len(self.root)
        x = np.random.default_rng(0).standard_normal(p)
        for _ in range(_INVERSE_STEPS):
            x, _ = lapack.dpotrs(self._L, x / np.linalg.norm(x), lower=1)
        tau = 0.7 / float(np.linalg.norm(x))
        while tau > p * _EPS:
            if lapack.dpotrf(self._unit - tau * np.eye(p), lower=1)[1] == 0:
                return tau
            tau *= 0.25
        return 0.0


def curvature_basis(rows: StandardRows, factor: Factor, curvatures: Array) -> tuple[float, Array]:
    """A bound on the smallest eigenvalue of M H M, and M, which brings the diagonal to one.

    Parameters
    ----------
    rows : StandardRows
    factor : Factor
        Of the Hessian in their coordinates.
    curvatures : array of shape (d,)
        The penalty's curvature; constant columns have no other.
    """
    count, d = len(rows.kept), len(rows.mean)
    M = np.empty(d + rows.fit_intercept)
    M[rows.kept] = 1.0 / (rows.scale[rows.kept] * factor.root[:count])
    M[d:] = 1.0 / factor.root[count:]
    constant = rows.left_out
    M[constant] = 1.0 / np.sqrt(curvatures[constant])
    return (factor.least_eigenvalue() if factor.least > 0 else 0.0), M


class Descent:
    """The state of Newton's method.

    Attributes
    ----------
    v, z : arrays of shape (p,) and (n,)
        The point, and its scores.
    u : array of shape (n,)
        The loss's derivatives there.
    decrease : float
        The decrease that the model predicts for a further step, 1/2 g^T H^-1 g; near the minimum it
        is the gap.
    decrease_bound : float
        An upper bound on the predicted decrease, from the penalty's curvature alone; about the gap
        that the tangent proves.
    negligible : float
        A predicted decrease at which no Hessian is formed: 0 to begin with.
    enough : float
        A predicted decrease at which the minimum is reached: 0 to begin with.
    is_exact : bool
        Whether the last Hessian was undamped, without mu B.
    """

    def __init__(self, rows: StandardRows, loss: Loss, y: Array, quad: Array, start: Array) -> None:
        self.rows, self.loss, self.y, self.quad = rows, loss, y, quad
        self.mu, self.negligible, self.enough = 0.0, 0.0, 0.0
        self._asked_quad, self._cuts = quad, 0
        self._can_strengthen = bool((quad[: len(rows.kept)] > 0).all() and loss.kinks)
        self._one_pass: OnePass | None = None
        self.v, self.z, u, curvatures = self._evaluate_at(start)
        bound = loss.curvature_bound
        if not np.isfinite(bound):  # the largest curvature at the start, where there is no bound
            bound = float(curvatures.max(initial=0.0)) or 1.0
        self.gram = FollowingGram(rows, bound)
        self.is_exact, self.decrease = True, math.inf
        self._set_derivatives(u, curvatures)

    def _evaluate_at(self, v: Array, z: Array | None = None) -> tuple[Array, Array, Array, Array]:
        """A point, its scores and derivatives; for data read from disk, everything in one pass."""
        if self.rows.design.is_sequential:
            self._one_pass = self.rows.in_one_pass(v, self.loss, self.y)
            return self._one_pass[:4]
        z = self.rows.scores(v) if z is None else z
        return v, z, *derivatives(self.loss, self.y, z)

    @property
    def objective(self) -> float:
        losses = self.rows.weights @ rowwise(self.loss.value, self.y, self.z)
        return float(losses + 0.5 * self.quad @ self.v**2)

    def _set_derivatives(self, u: Array, curvatures: Array) -> None:
        """Set the derivatives at the current point: gradient, predicted decrease, next step."""
        rows, before = self.rows, self.decrease
        self.u = u
        self._curvatures = rows.weights * curvatures
        if self._one_pass is None:
            self.gradient = rows.total(rows.weights * u) + self.quad * self.v
        else:
            self.gradient = self._one_pass.total + self.quad * self.v
            self.gram.know(self._curvatures, self._one_pass.gram)
        # The curvatures of the penalty and in the intercept bound the predicted decrease: where it
        # is below ``negligible``, the Hessian is skipped.
        least_curvature = self.quad.copy()
        least_curvature[len(rows.kept) :] = self._curvatures.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(self.gradient != 0, self.gradient**2 / least_curvature, 0.0)
        self.decrease_bound = 0.5 * float(terms.sum())
        self.decrease, self._is_known = self.decrease_bound, False
        if self.decrease > self.negligible and not self._is_old_factor_enough(before):
            self._model()

    def _is_old_factor_enough(self, before: float) -> bool:
        """Whether steps by the last Hessian reach the minimum sooner than a new one is formed.

        Such a step leaves the share rho of the error that the Hessian has changed by, and rho^2 of
        the decrease (the chord method; C. T. Kelley, "Iterative Methods for Linear and Nonlinear
        Equations", SIAM (1995), section 5.4).
        """
        share = self._change_of_hessian()
        if not (0 < share < _MOST_CHANGE and self.enough > 0):
            return False
        self._step_by_factor()
        steps = math.log(max(self.decrease / self.enough, 1.0)) / (-2.0 * math.log(share))
        has_fallen = self.decrease < _FALL_BY_OLD * before
        return has_fallen and steps <= 1.0 + self.rows.count / _COLUMNS_A_STEP

    def _change_of_hessian(self) -> float:
        """By which share the weights of the last Hessian have changed; infinite if it is no use."""
        has_exact = self.gram.formed > 0 and self.is_exact and not self.mu
        # Without a penalty the rate of convergence tells whether there is a minimum at all.
        is_smooth = bool(self.quad.any()) and not self.loss.kinks
        if self._one_pass is not None or not (is_smooth and has_exact):
            return math.inf
        old = self.gram.h
        return float(np.abs(self._curvatures - old).sum()) / (float(old.sum()) or 1.0)

    def _step_by_factor(self) -> None:
        self._direction = -self._factor.solve(self.gradient)
        self.decrease = max(-0.5 * float(self.gradient @ self._direction), 0.0)
        self._is_known = True

    def _model(self) -> None:
        """The Hessian, and its Newton step."""
        self._hessian = self.gram.follow(self._curvatures) + np.diag(self.quad)
        while True:
            H = self._hessian
            if self.mu:
                H = H + self.mu * (self.gram.whole + np.diag(self.quad))
            factor = Factor(H)
            if factor.least > _LEAST_PIVOT or self.mu >= 1.0:
                break
            self.mu = min(max(100 * self.mu, _FIRST_MU), 1.0)
        self.is_exact, self._factor = self.mu == 0.0, factor
        self._direction = -factor.solve(self.gradient) if factor.least > 0 else -self.gradient
        self.decrease = max(-0.5 * float(self.gradient @ self._direction), 0.0)
        self._is_known = True

    def refresh(self) -> bool:
        """Form the Hessian at the current point; False if it is there already."""
        if self._is_known and np.array_equal(self.gram.h, self._curvatures):
            return False
        self._model()
        return True

    @property
    def direction(self) -> Array:
        if not self._is_known:
            self._model()
        return self._direction

    @property
    def exact_factor(self) -> Factor:
        """The factor of the undamped Hessian."""
        if not self._is_known:
            self._model()
        return self._factor if self.is_exact else Factor(self._hessian)

    def step(self) -> float:
        """Move; the length of the step, 0 if rounding allows for none."""
        first = float(self.gradient @ self.direction)
        if not first < 0 or not np.isfinite(first):
            return 0.0
        is_read = self.rows.design.is_sequential
        if is_read:
            # One pass gives the scores along the step and all sums at its end.
            ahead = self.rows.in_one_pass(self.v + self.direction, self.loss, self.y)
            change = ahead.z - self.z
        else:
            change = self.rows.scores(self.direction)
        penalty_slope = float(self.quad @ (self.v * self.direction))
        penalty_curvature = float(self.quad @ self.direction**2)

        evaluated: dict[float, tuple[Array, Array]] = {}

        def slope(t: float) -> tuple[float, float]:
            u, curvatures, loss_slope, curvature = derivatives_along(
                self.loss, self.y, self.z, change, t, self.rows.weights
            )
            evaluated.clear()
            evaluated[t] = u, curvatures
            return loss_slope + penalty_slope + t * penalty_curvature, curvature + penalty_curvature

        is_end = is_read and abs(slope(1.0)[0]) <= _WHOLE_SLOPE * abs(first)
        # A line search among slopes that are rounding would evaluate eighty points.
        is_whole = is_end or -first <= _UNSEEN * abs(self.objective)
        t = 1.0 if is_whole else minimise_along(slope, first)
        if is_end:
            self._one_pass = ahead
            self.v, self.z, new_derivatives = ahead.v, ahead.z, (ahead.u, ahead.h)
        else:
            self.v = self.v + t * self.direction
            self.z = self.z + t * change
            new_derivatives = evaluated.get(t) or derivatives(self.loss, self.y, self.z)
            new_derivatives = self._evaluate_at(self.v)[2:] if is_read else new_derivatives
        if t < _CUT and self._can_strengthen:
            self._cuts += 1
            if self._cuts == _MOST_CUTS:
                self._strengthen_penalty()
        elif t < _CUT:
            self.mu = min(max(self.mu, _LEAST_MU) * min(3.0 / np.sqrt(t), 1e3), 1.0)
        elif t >= _WHOLE:
            # A step that should have been longer shows that mu is far too large.
            self.mu = 0.1 * self.mu / np.sqrt(t) if self.mu > _LEAST_MU else 0.0
        self._set_derivatives(*new_derivatives)
        while self.is_overpenalised and self.decrease <= max(
            _STAGE_DECREASE * self.objective, self.enough
        ):
            self.quad = np.maximum(_STAGE_FACTOR * self.quad, self._asked_quad)
            self._set_derivatives(*derivatives(self.loss, self.y, self.z))
        return t

    def finish(self) -> None:
        """Take a whole step whose predicted decrease is negligible: it doubles the exact digits.

        No Hessian is formed for it: with an old one further steps bring the same digits.
        """
        if not 0 < self._change_of_hessian() < _MOST_CHANGE:
            self._move_on()
            return
        for _ in range(_MOST_OF_OLD):
            before = self.decrease
            self._step_by_factor()
            if not _FINAL * self.objective < self.decrease <= before:
                break
            self._move_on()
            self.gradient = self.rows.total(self.rows.weights * self.u) + self.quad * self.v

    def _move_on(self) -> None:
        self.v = self.v + self.direction
        if not self.rows.design.is_sequential:  # the proof reads them there
            self.z = self.z + self.rows.scores(self.direction)
            self.u, _ = derivatives(self.loss, self.y, self.z)

    def stretch(self, enough: float) -> None:
        """Move on from zero, if all rows are on their side, to where the losses are nearly gone.

        Without a penalty losses of margins vanish in that direction. A step of Newton's method
        divides them by a constant only.
        """
        least = float((self.y * self.z).min())
        if least <= 0:
            return
        share = enough / self.rows.total_weight
        factor = self.loss.least_margin(share) / least
        if 1.0 < factor <= _MOST_STRETCH:
            self.v, self.z = factor * self.v, factor * self.z
            self._set_derivatives(*derivatives(self.loss, self.y, self.z))

    @property
    def is_overpenalised(self) -> bool:
        """Whether the penalty is still stronger than the one asked for."""
        return self.quad is not self._asked_quad and bool((self.quad > self._asked_quad).any())

    def _strengthen_penalty(self) -> None:
        """Make the penalty as strong as the largest curvature of the losses, on average."""
        count = len(self.rows.kept)
        ratio = float((self.gram.whole.diagonal()[:count] / self._asked_quad[:count]).mean())
        self.quad = self._asked_quad * max(ratio, 1.0)

    def use(self, loss: Loss) -> None:
        """Go on with another loss."""
        self.loss = loss
        self.v, self.z, *new_derivatives = self._evaluate_at(self.v, self.z)
        self._set_derivatives(*new_derivatives)


def starting_point(rows: StandardRows, loss: Loss, y: Array, quad: Array, constant: float) -> Array:
    """The answer on a sample of the rows, the least-squares fit or a constant: what is best."""
    n, p = len(y), rows.count
    count = max(n // _SHARE, _ROWS_EACH * p)
    is_long = n >= _LONG or rows.design.is_sequential
    if not is_long or 2 * count > n or not is_sample_enough(loss, y, count / n, p):
        return _crude_start(rows, loss, y, quad, constant)
    some = rows.design.sample(count)
    part = rows.sample(some)
    crude = _crude_start(part, loss, y[some], quad, constant)
    descent = Descent(part, loss, y[some], quad, crude)
    continuation(descent, loss)
    run_steps(descent, _SAMPLE_DECREASE)
    return descent.v


def is_sample_enough(loss: Loss, y: Array, share: float, p: int) -> bool:
    """Whether a sample has enough rows of both classes, where there are classes."""
    if "margins" not in loss.capabilities:
        return True
    fewer = min(np.count_nonzero(y > 0), np.count_nonzero(y < 0))
    return bool(share * fewer > _ROWS_EACH * p)


def _crude_start(rows: StandardRows, loss: Loss, y: Array, quad: Array, constant: float) -> Array:
    """Least squares for the residuals of the constant, or the constant alone."""
    v = np.zeros(rows.count)
    if rows.fit_intercept:
        v[-1] = constant
    s = rows.weights
    constants = np.full_like(y, constant if rows.fit_intercept else 0.0)
    # For labels: a gradient step from the constant, as long as the largest curvature allows.
    bound = loss.curvature_bound
    if not np.isfinite(bound):  # for logarithms of means, that the curvature there allows
        bound = float(s @ loss.curvature(y, constants)) / rows.total_weight
    is_label = bool({"margins", "log_link"} & loss.capabilities)
    residual = -loss.gradient(y, constants) / bound if is_label else y - constants
    cross = rows.total(s * residual)
    factor = Factor(rows.gram + np.diag(quad / bound))
    if factor.least <= _EPS:
        return v
    fitted = v + factor.solve(cross)
    best, least = v, np.inf
    for point in (v, fitted):
        value = float((s * loss.value(y, rows.scores(point))).sum() + 0.5 * quad @ point**2)
        if value < least:
            best, least = point, value
    return best


# With fewer rows with curvature than this for each coefficient, smoothed losses come first.
_CURVED_EACH, _MOST_STAGES, _FALL, _SMOOTHED_DECREASE = 2, 60, 0.2, 1e-14
_MOST_STEPS = 30


class Steps(Protocol):
    """A method that goes on step by step, with any loss."""

    rows: StandardRows
    y: Array
    z: Array
    decrease: float

    @property
    def objective(self) -> float:
        """The objective at the current point."""

    def use(self, loss: Loss) -> None:
        """Go on with another loss."""

    def step(self) -> float:
        """Move; the length of the step."""


def continuation(descent: Steps, loss: Loss) -> int:
    """Continuation: where few rows have curvature, start with smoothed losses, less and less so.

    This is how Madsen and Nielsen solve for absolute errors: the answers for falling thresholds of
    Huber's loss lie on a piecewise linear path.

    Returns how many smoothed losses were minimised.
    """
    p = descent.rows.count
    if not loss.kinks:  # such a loss has curvature everywhere
        return 0
    if np.count_nonzero(loss.curvature(descent.y, descent.z)) > _CURVED_EACH * p:
        return 0
    size = float(np.median(np.abs(descent.z - descent.y)))
    count = 0
    for _ in range(_MOST_STAGES):
        smoothed = loss.eased(size)
        if smoothed == loss or size == 0.0:
            break
        descent.use(smoothed)
        run_steps(descent, _SMOOTHED_DECREASE)
        size *= _FALL
        count += 1
    descent.use(loss)
    return count


def continuation_notes(count: int) -> list[str]:
    """What to say of a continuation along so many smoothed losses."""
    return [f"continuation: {counted(count, 'step')} with a smoothed loss first"] if count else []


def run_steps(descent: Steps, enough: float) -> None:
    """Steps until the predicted decrease is too small."""
    for _ in range(_MOST_STEPS):
        if descent.decrease <= enough * descent.objective or descent.step() == 0.0:
            break


_STEPS = 6


def intercept_shifts(loss: Loss, target: Array, Z: Array, s: Array) -> Array:
    """What to add to the intercepts so that sum_i s_i l'_i vanishes: Newton's method.

    Parameters
    ----------
    loss : Loss
    target, Z : arrays of shape (n, k)
        Targets and scores; close to the minimum already.
    s : array of shape (n,)
        Weights.
    """
    shift = np.zeros(Z.shape[1])
    u = loss.gradient(target, Z)
    slope = s @ u
    for _ in range(_STEPS):
        if np.abs(slope).max() <= 4 * _EPS * float((s @ np.abs(u)).max()):
            break
        hessian_terms = loss.hessian_terms(target, Z + shift)
        H = level_hessian(loss, hessian_terms, s)
        ahead = shift - np.linalg.lstsq(H, slope, rcond=1e-12)[0]
        u = loss.gradient(target, Z + ahead)
        after = s @ u
        if not np.abs(after).max() < 0.5 * np.abs(slope).max():
            break
        shift, slope = ahead, after
    return shift


# Hessians of more columns cost more than their proofs are worth.
_MOST_COLUMNS = 500
# Gaps that need no second proof, relative to the objective.
_GOOD = 1e-9


def better_by_curvature(
    problem: Problem, found: Certificate, rows: StandardRows | None = None
) -> Certificate:
    """A certificate, or that of the same point by curvature, where this says more.

    It does not depend on the scale of the columns, but needs the Hessian of all of them.
    """
    loss = problem.loss.capabilities
    is_single = problem.n_targets == 1 or "coupled" not in loss
    if found.gap <= _GOOD * abs(found.objective) or not (is_single and "curvature" in loss):
        return found
    if problem.n_features > _MOST_COLUMNS or "elastic" not in problem.penalty.capabilities:
        return found
    W, b = found.coef, found.intercept
    rows = rows or StandardRows.of(problem.design, problem.weights, problem.fit_intercept)
    curvatures = np.broadcast_to(problem.penalty.curvature, W.shape)
    if not (np.delete(curvatures, rows.kept, axis=0) > 0).all():
        return found
    scores, pairs, curved = problem.scores(W, b), [], []
    diagonal = np.arange(len(rows.kept))
    for t in range(problem.n_targets):
        curved.append(problem.loss.of_target(t).curvature(problem.target[:, t], scores[:, t]))
        H = rows.gram_of(rows.weights * curved[t])
        H[diagonal, diagonal] += curvatures[rows.kept, t] / rows.scale[rows.kept] ** 2
        pairs.append(curvature_basis(rows, Factor(H), curvatures[:, t]))
    nu, basis = np.array([nu for nu, _ in pairs]), np.stack([M for _, M in pairs], axis=1)
    column_norms = rows.scale * math.sqrt(rows.total_weight) * (1 + 1e-6)
    curved_rows = np.stack(curved, axis=1)
    proof = certify_curvature(problem, W, b, rows.mean, basis, nu, column_norms, curved_rows)
    return proof if proof is not None and proof.gap < found.gap else found
