r"""Proximal Newton from a Gram matrix: absolute values, squares and bounds on coefficients.

    minimise over v     sum_i s_i l(y_i, a_i.v) + p(v),
                        p(v) = sum_j l_j |v_j| + q_j/2 v_j^2,      v within bounds

    step = argmin over e of    g.e + 1/2 e^T H e + p(v + e),       H = A^T S diag(l''(z)) A + mu B

(J. D. Lee, Y. Sun, M. A. Saunders, "Proximal Newton-type methods for minimizing composite
functions", SIAM J. Optim. 24 (2014) 1420-1443). The intercept, which is not penalised, is
eliminated from the model; what remains is a lasso in terms of a Gram matrix, solved by
:class:`~trueline.solvers.coordinate_descent.gram.RestrictedGram`. Where a whole step lowers
the objective less than predicted, the loss along the step plus the chord of p is minimised: p is
convex and lies below its chord.

The proof needs multipliers that are optimal to the last digits. The derivatives u_i = l'(z_i) are
the natural dual point, and -A^T S u should be a subgradient of the penalty: l_j sign(v_j) for
coefficients that are not zero, within l_j for those that are. Where scores are large and l small,
the rounding of z alone prevents this. Moving u by l''(z_i) a_i.x, as a small change x of the
coefficients would, corrects it to first order, and does not change rows without curvature.

A proof knows -A^T S u up to its rounding, and must stay within l_j even then: the slopes aimed at
are smaller than l_j by that much, which hardly changes the bound.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.choose import certify
from trueline.certificates.duality import RADIUS, STRETCH, certify_dual
from trueline.losses import Loss, Squared
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import (
    CALL,
    Cost,
    Facts,
    Iteration,
    Monitor,
    Options,
    Progress,
    Solver,
    gram_seconds,
    iteration_seconds,
    run,
)
from trueline.solvers.coordinate_descent.gram import RestrictedGram
from trueline.solvers.coordinate_descent.source import Terms, penalty_terms
from trueline.solvers.iterative import minimise_along
from trueline.solvers.newton.dense.descent import (
    better_by_curvature,
    continuation,
    continuation_notes,
)
from trueline.solvers.newton.dense.rows import (
    FollowingGram,
    StandardRows,
    derivatives,
    derivatives_along,
    rowwise,
)
from trueline.solvers.newton.solver import constant_model, require_ordinary
from trueline.solvers.proximal_newton.few_columns import solve_few_columns
from trueline.wording import counted

Array = NDArray[np.float64]

# Multiples mu of B in the model: with dependent columns, or rows without curvature, H is singular.
_LEAST_MU, _MOST_MU = 1e-8, 1.0
_CUT, _WHOLE, _SUFFICIENT = 0.3, 0.9, 0.1
_MODEL = 1e-12


def standard_terms(rows: StandardRows, terms: Terms) -> Terms:
    """The penalty in standard coordinates, of the kept columns."""
    scale = rows.scale[rows.kept]
    linear, curvature, lower, upper = terms.at(rows.kept)
    return Terms.of(linear / scale, curvature / scale**2, lower * scale, upper * scale)


class ProximalDescent:
    """The state of the method.

    Attributes
    ----------
    v, z, u, curvatures : arrays of shape (p,), (n,), (n,) and (n,)
        The point, its scores, and the loss's derivatives, first and second.
    decrease : float
        The decrease that the model predicts for a further step.
    """

    def __init__(self, rows: StandardRows, loss: Loss, y: Array, terms: Terms, v: Array) -> None:
        self.rows, self.loss, self.y, self.terms = rows, loss, y, terms
        self.gram = FollowingGram(rows, loss.curvature_bound)
        self.mu, self.sweeps = _LEAST_MU, 0
        self.v = v.copy()
        self.v[: len(terms.linear)] = np.clip(v[: len(terms.linear)], terms.lower, terms.upper)
        self.z = rows.scores(self.v)
        self._evaluate()

    def penalty(self, v: Array) -> float:
        w = v[: len(self.terms.linear)]
        return float(self.terms.linear @ np.abs(w) + 0.5 * self.terms.curvature @ w**2)

    def _losses(self, z: Array) -> float:
        return float((self.rows.weights * rowwise(self.loss.value, self.y, z)).sum())

    def _evaluate(self, losses: float | None = None) -> None:
        """Derivatives at the current point, and the next step; ``losses`` is the sum, if known."""
        rows, loss = self.rows, self.loss
        self.u, self.curvatures = derivatives(loss, self.y, self.z)
        weighted = rows.weights * self.u
        self.gradient = rows.total(weighted)
        H = self.gram.follow(rows.weights * self.curvatures)
        H = H + self.mu * self.gram.whole
        losses = self._losses(self.z) if losses is None else losses
        self.objective = losses + self.penalty(self.v)
        self.direction = self._model_step(H, float(weighted @ self.u))
        ahead = self.penalty(self.v + self.direction) - self.penalty(self.v)
        self.predicted_change = float(self.gradient @ self.direction) + ahead
        self.decrease = max(-self.predicted_change, 0.0)

    def use(self, loss: Loss) -> None:
        """Go on with another loss."""
        self.loss = loss
        self._evaluate()

    def _model_step(self, H: Array, size: float) -> Array:
        """The minimum of the model, from the Gram matrix of centred columns."""
        d, g = len(self.terms.linear), self.gradient
        G, q = H[:d, :d], -g[:d]
        if self.rows.fit_intercept:
            across = H[:d, d]
            G = G - np.outer(across, across / H[d, d])
            q = q + across * (g[d] / H[d, d])
        step = np.zeros(len(self.v))
        if d:
            w = self.v[:d]
            model = RestrictedGram(0.0)
            model.extend(np.arange(d), np.ascontiguousarray(G), w, q)
            model.scale = 0.5 * (float((2 * q + G @ w) @ w) + size)
            model.set_terms(self.terms)
            model.restore(w, q)
            model.solve(_MODEL * max(self.objective, 1e-300))
            step[model.columns] = model.coef - w[model.columns]
            self.sweeps += model.sweeps
        if self.rows.fit_intercept:
            step[d] = -(g[d] + H[d, :d] @ step[:d]) / H[d, d]
        return step

    def step(self) -> float:
        """Move; the length of the step, 0 if rounding allows for none."""
        if not self.predicted_change < 0 or not np.isfinite(self.predicted_change):
            return 0.0
        change = self.rows.scores(self.direction)
        ahead = self.v + self.direction
        chord = self.penalty(ahead) - self.penalty(self.v)

        def slope(t: float) -> tuple[float, float]:
            weights = self.rows.weights
            _, _, rise, curvature = derivatives_along(self.loss, self.y, self.z, change, t, weights)
            return rise + chord, curvature

        t, z = 1.0, self.z + change
        losses = self._losses(z)
        if losses + self.penalty(ahead) > self.objective + _SUFFICIENT * self.predicted_change:
            t = minimise_along(slope, self.predicted_change, 1.0)
            z = self.z + t * change
        # After a whole step, what the model set to zero or to a bound is there exactly.
        self.v = ahead if t == 1.0 else self.v + t * self.direction
        self.z = z
        if t < _CUT:
            self.mu = min(self.mu * min(3.0 / np.sqrt(t), 1e3), _MOST_MU)
        elif t >= _WHOLE:
            self.mu = max(0.1 * self.mu, _LEAST_MU)
        self._evaluate(losses if t == 1.0 else None)
        return t


def proximal_start(
    rows: StandardRows, loss: Loss, y: Array, terms: Terms, constant: float
) -> Array:
    """The lasso for squared errors, or the constant alone: what costs less."""
    v = np.zeros(rows.count)
    if rows.fit_intercept:
        v[-1] = constant
    if "margins" in loss.capabilities:  # labels are no numbers to fit: the first step is as good
        return v
    share = 1.0 / loss.curvature_bound
    squares = ProximalDescent(rows, Squared(), y, terms.scaled(share, share), v)
    squares.step()
    s = rows.weights

    def value(point: Array) -> float:
        w = point[: len(terms.linear)]
        penalty = float(terms.linear @ np.abs(w) + 0.5 * terms.curvature @ w**2)
        return float((s * loss.value(y, rows.scores(point))).sum()) + penalty

    start = ProximalDescent(rows, Squared(), y, terms, v).v
    return squares.v if value(squares.v) < value(start) else start


_ROUNDS = 3
_EPS = float(np.finfo(np.float64).eps)


def adjusted_multipliers(descent: ProximalDescent, enough: float = 0.0) -> Array:
    """The derivatives of the losses, moved so that they give a subgradient of the penalty.

    Parameters
    ----------
    descent : ProximalDescent
    enough : float
        The error allowed, relative to the slopes: a proof shrinks the multipliers by that much.
    """
    rows, loss, y, h = descent.rows, descent.loss, descent.y, descent.curvatures
    H = descent.gram.matrix
    best, u = descent.u, descent.u
    # Four times the terms of the sums of a proof, which adds stretches of rows pairwise.
    terms = 4 * (STRETCH + np.log2(len(y) + 2) + 16)
    size = float(np.sqrt(rows.total_weight * ((rows.weights * u) @ u)))
    linear = np.maximum(descent.terms.linear - terms * _EPS * size, 0.0)
    correction = _correction(descent, descent.gradient, linear)
    least = float(np.abs(correction).max(initial=0.0))
    # A slope in the intercept costs the bound its product with the largest intercept covered.
    slack = 0.0
    if rows.fit_intercept:
        slack = enough * descent.objective / (RADIUS * (1.0 + abs(float(descent.v[-1]))))
    allowed = np.append(enough * linear, np.full(len(correction) - len(linear), slack))
    for _ in range(_ROUNDS):
        wrong = correction != 0
        if (np.abs(correction) <= allowed).all():
            break
        x = np.zeros(len(correction))
        x[wrong] = np.linalg.lstsq(H[np.ix_(wrong, wrong)], correction[wrong], rcond=1e-13)[0]
        u = rowwise(loss.project_dual, y, u + h * rows.scores(x))
        correction = _correction(descent, rows.total(rows.weights * u), linear)
        worst = float(np.abs(correction).max())
        if not worst < least:
            break
        best, least = u, worst
    return best


def _correction(descent: ProximalDescent, slope: Array, linear: Array) -> Array:
    """What must be added to A^T S u to make minus it a subgradient of the penalty."""
    terms, v = descent.terms, descent.v
    d = len(terms.linear)
    w, g = v[:d], slope[:d]
    at_zero = np.clip(g, -linear, linear)
    moved = -(linear * np.sign(w) + terms.curvature * w)
    wanted = np.where(w == 0, at_zero, moved)
    # At a bound any slope that points outward is optimal.
    wanted = np.where((w == terms.lower) & (w != 0), np.maximum(g, wanted), wanted)
    wanted = np.where((w == terms.upper) & (w != 0), np.minimum(g, wanted), wanted)
    return np.append(wanted, np.zeros(len(v) - d)) - slope


_MOST_COLUMNS, _MOST_WIDE_COLUMNS = 2000, 500
_STEPS = 6.0
# So much is asked for in any case, unless the tolerance asks for few digits.
_FINE, _COARSE = 1e-10, 1e-6
_MAX_ITER = 200
_UNSEEN = 1e-10
# A proof costs as much as a step, and near the minimum steps are exact: it is made when the
# predicted decrease is at most this share of the gap.
_NEGLIGIBLE = 1e-4
# Where few digits are asked for: the share of the gap that the predicted decrease may take, and
# errors of the multipliers; and of a predicted decrease at which a proof failed, for the next one.
_PROOF_SHARE, _RETRY_SHARE = 0.2, 0.1
# Columns whose means are this many standard deviations from zero cost digits unless centred.
_FAR = 10.0
# Gaps that need no second proof, relative to the objective.
_GOOD = 1e-9


class ProximalNewton(Solver):
    """Newton steps whose model is a lasso, solved by coordinate descent on its Gram matrix."""

    name = "proximal_newton"
    shows_nonfinite = True
    title = "proximal Newton, each step a lasso on a weighted Gram matrix"
    needs_loss = frozenset({"smooth", "curvature", "conjugate"})
    needs_penalty = frozenset({"coordinates"})
    accepts_penalty = frozenset({"nonnegative"})
    is_direct = False
    proof = "duality or curvature"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > _MOST_COLUMNS:
            return f"forms Gram matrices of all columns, too large for {facts.d}"
        if facts.d > max(facts.n, _MOST_WIDE_COLUMNS):
            return "forms Gram matrices of all columns: not for more columns than rows"
        return None

    def cost(self, facts: Facts) -> Cost:
        n, d = facts.n, facts.d
        # Products of sparse rows with new weights cost as much as the first ones.
        once = (8.0 if facts.is_sparse else 2.0) * gram_seconds(facts)
        each = 2.0 * iteration_seconds(facts) + 5e-8 * n + 1e-8 * d * d + 1e-3
        seconds = 5 * CALL + once + facts.k * (_STEPS + 2) * each
        flops = 2.0 * n * d * d + facts.k * _STEPS * (4.0 * facts.nonzeros + 10.0 * d * d)
        return Cost(flops, 2 + 2 * _STEPS * facts.k, 8.0 * (4.0 * d * d + 12 * n), seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        require_ordinary(problem)
        found = solve_few_columns(problem, options, monitor, self.name)
        if found is not None:
            return found
        rows = StandardRows.of(problem.design, problem.weights, problem.fit_intercept)
        constants, unit = constant_model(problem)
        asked = options.tol * unit
        d, k = problem.n_features, problem.n_targets
        # Of losses with kinks the last step is exact: leaving it out gains nothing.
        is_coarse = options.tol >= _COARSE and k == 1 and not problem.loss.kinks
        is_coarse = is_coarse and "elastic" in problem.penalty.capabilities
        fine = min(asked, _FINE * unit) / k
        target = asked if is_coarse else fine
        prover = _Prover(problem, rows, target, is_coarse)
        W, b, U = np.zeros((d, k)), np.zeros(k), np.zeros(problem.target.shape)
        worst, iterations, sweeps, formed, smoothed = Status.CONVERGED, 0, 0, 0, 0
        descents: list[ProximalDescent] = []
        for t in range(k):
            y, loss = np.ascontiguousarray(problem.target[:, t]), problem.loss.of_target(t)
            terms = penalty_terms(problem.penalty, d, k, t)
            standard = standard_terms(rows, terms)
            if options.start is None:
                v = proximal_start(rows, loss, y, standard, float(constants[t]))
            else:
                given_b = options.start_intercept
                b_start = float((constants if given_b is None else given_b)[t])
                v = rows.standard(options.start[:, t], b_start)
            descent = ProximalDescent(rows, loss, y, standard, v)
            smoothed += continuation(descent, loss)
            iteration = _Iteration(prover, descent, terms, fine, monitor.is_watching)
            limit = options.max_iter or _MAX_ITER
            status, count, _ = run(iteration, monitor, max_iter=limit, target_gap=target)
            worst = worst if status.is_final else status
            iterations = max(iterations, count)
            sweeps, formed = sweeps + descent.sweeps, formed + descent.gram.formed
            W[:, t], b[t], U[:, t] = iteration.coef[:, 0], iteration.intercept[0], descent.u
            descents.append(descent)
        certificate = prover.certify(W, b, descents)
        # Far from zero, targets leave rounding in the sum of the dual point, at the price of the
        # largest intercept that is covered.
        reach = float(problem.weigh(np.abs(U)).sum()) * float(
            np.abs(problem.target).max(initial=0.0)
        )
        close = asked + 2 * certificate.objective_rounding + _UNSEEN * reach
        if not worst.is_final and certificate.gap <= close:
            worst = Status.CONVERGED
        notes = [
            f"{counted(sweeps, 'sweep')} of coordinate descent, Gram matrix formed "
            f"{counted(1 + formed, 'time')} from all rows",
            *continuation_notes(smoothed),
        ]
        return monitor.solution(certificate, worst, self.name, iterations, notes=notes)


class _Prover:
    """Certificates of the current points of descents; the last one is kept.

    Parameters
    ----------
    problem : Problem
    rows : StandardRows
    enough : float
        A gap that needs no better proof.
    is_coarse : bool
        Whether few digits are asked for: adjusted multipliers prove them far from the minimum,
        where the derivatives themselves prove nothing.
    """

    def __init__(
        self, problem: Problem, rows: StandardRows, enough: float, is_coarse: bool
    ) -> None:
        self.problem, self.rows, self.enough, self.is_coarse = problem, rows, enough, is_coarse
        self._scale = rows.scale * math.sqrt(rows.total_weight) * (1 + 1e-6)
        self._points: list[Array] = []
        self._certificate: Certificate

    def certify(self, W: Array, b: Array, descents: list[ProximalDescent]) -> Certificate:
        points = [descent.v for descent in descents]
        if len(points) != len(self._points) or any(
            new is not old for new, old in zip(points, self._points)
        ):
            self._points, self._certificate = points, self._proof(W, b, descents)
        return self._certificate

    def _proof(self, W: Array, b: Array, descents: list[ProximalDescent]) -> Certificate:
        """By the derivatives as dual point; about the columns' means where that is better."""
        problem, rows = self.problem, self.rows
        if self.is_coarse:
            share = _PROOF_SHARE * self.enough / max(descents[0].objective, 1e-300)
            U = adjusted_multipliers(descents[0], share)[:, None]
            found = certify_dual(problem, W, b, U, rows.mean, self._scale)
            if found.gap <= self.enough:
                return found
        found = certify(problem, W, b)
        # Whoever checks adds the losses in another order.
        room = found.objective_rounding
        gap = (found.gap + room) * (1 + 1e-9)
        found = replace(found, objective_rounding=2 * room, gap=gap)
        far = (np.abs(rows.mean[rows.kept]) > _FAR * rows.scale[rows.kept]).any()
        good = not far and found.gap <= _GOOD * abs(found.objective)
        if good or "elastic" not in problem.penalty.capabilities:
            return found
        return self._about_means(W, b, descents, found)

    def _about_means(
        self, W: Array, b: Array, descents: list[ProximalDescent], found: Certificate
    ) -> Certificate:
        """The better one of a certificate and those by adjusted multipliers."""
        problem, mean = self.problem, self.rows.mean
        U = np.stack([adjusted_multipliers(descent) for descent in descents], axis=1)
        about = certify_dual(problem, W, b, U, mean, self._scale)
        if about.gap <= min(self.enough, found.gap):
            return about
        # No penalty is negative: a bound without it is one with it. It serves where a penalty is
        # so small that rounding alone would leave the domain of its conjugate.
        bare = certify_dual(replace(problem, penalty=NoPenalty()), W, b, U, mean, self._scale)
        price = problem.penalty.value(W)
        slack = (len(W) + 16) * _EPS * (price + abs(bare.objective))
        bare = replace(
            bare,
            penalty=problem.penalty,
            objective=bare.objective + price,
            objective_rounding=bare.objective_rounding + slack,
            gap=(bare.gap + price + 2 * slack) * (1 + 1e-12),
        )
        best = min((found, about, bare), key=lambda certificate: certificate.gap)
        return best if best.gap <= self.enough else better_by_curvature(problem, best, self.rows)


class _Iteration(Iteration):
    """One target; a step of the loop is a proximal Newton step."""

    def __init__(
        self,
        prover: _Prover,
        descent: ProximalDescent,
        terms: Terms,
        fine: float,
        is_watched: bool,
    ) -> None:
        self._prover, self._rows, self._descent = prover, prover.rows, descent
        self._terms, self._target, self._is_watched = terms, prover.enough, is_watched
        self._proves = prover.problem.n_targets == 1
        # Predicted decreases at which the minimum is reached, and at which a proof is made.
        self._negligible = _NEGLIGIBLE * fine
        self._proof_decrease = _PROOF_SHARE * self._target if prover.is_coarse else self._negligible
        self._least, self._idle, self._proven = math.inf, 0, math.inf
        self._has_moved = False
        self._expose()

    def _expose(self) -> None:
        rows = self._rows
        w, b = rows.coefficients(self._descent.v)
        # Constant columns have coefficients as close to zero as their bounds allow; and scaling may
        # violate a bound by its last digit.
        within = np.clip(w, self._terms.lower, self._terms.upper)
        if rows.fit_intercept:
            b -= float(rows.mean @ (within - w))
        w = within
        self.coef, self.intercept = w[:, None], np.array([b])

    def step(self) -> None:
        self._has_moved = True
        length = self._descent.step()
        self._expose()
        decrease = self._descent.decrease
        self._idle = self._idle + 1 if decrease >= 0.5 * self._least else 0
        self._least = min(self._least, decrease)
        self.is_stalled = length == 0.0 or (decrease <= self._target and self._idle > 2)

    def progress(self) -> Progress:
        descent = self._descent
        small = descent.decrease <= self._negligible
        if not self._has_moved:  # the starting point is never the answer
            return Progress(descent.objective, math.inf)
        if not self._proves:
            self.is_stalled = self.is_stalled or small
            return Progress(descent.objective, math.inf)
        due = small or self._idle or descent.decrease <= self._proof_decrease
        if not (self._is_watched or due):
            return Progress(descent.objective, math.inf)
        gap = self._prover.certify(self.coef, self.intercept, [descent]).gap
        self.is_stalled = self.is_stalled or (small and gap > 0.5 * self._proven)
        self._proven = min(gap, self._proven)
        if due:  # a proof that failed is tried again when the predicted decrease is much smaller
            self._proof_decrease = min(self._proof_decrease, _RETRY_SHARE * descent.decrease)
        # A trace or callbacks ask for more proofs, but the steps are the same.
        return Progress(descent.objective, gap if due else max(gap, 1.001 * self._target))
