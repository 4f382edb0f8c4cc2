r"""Huber regression together with its scale.

Newton's method on the profile over the scale is in :mod:`trueline.solvers.newton.dense.scale`. The
scale falls to zero where a share of more than 1 - 1/epsilon^2 of the weight can be fitted exactly.
What is left then are absolute errors, 2 epsilon sum_i s_i |r_i| + alpha ||w||^2, solved exactly,
and the dual point decides whether zero is right: sum_i s_i u_i^2 / 4 <= sum_i s_i.

With more columns than rows, all rows can usually be fitted exactly. The w of least norm that does
so is X^T l, and l solves one linear system of n unknowns; s_i u_i = -2 alpha l_i then proves it.
Words of texts, ten thousand columns for a thousand rows, are such data.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from trueline.certificates.base import Certificate
from trueline.certificates.special.concomitant import Columns, certify_concomitant
from trueline.losses import Absolute
from trueline.penalties import L2, NoPenalty
from trueline.problem import ConcomitantProblem
from trueline.solution import Solution, Status
from trueline.solvers.base import (
    Cost,
    Facts,
    Iteration,
    Monitor,
    Options,
    Progress,
    run,
    seen_through,
)
from trueline.solvers.newton.cg.scale import products_cost, solve_by_products, takes_products
from trueline.solvers.newton.dense.rows import StandardRows
from trueline.solvers.newton.dense.scale import GramEquations, Profile, fit_exactly, least_squares
from trueline.solvers.newton.solver import Newton, require_ordinary
from trueline.solvers.piecewise_linear.interior_point.solver import InteriorPoint
from trueline.solvers.transformed import IndependentColumns, RowSpace
from trueline.trace import Trace
from trueline.wording import counted

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Residuals below such a share of the target's spread are those of rows to be fitted exactly.
_FITTED = (1e-9, 1e-5)
_PROVEN = 1e-7
# A scale below this share of the target's spread may be on its way to zero.
_DOUBTFUL = 1e-6
# Products of rows of a worse condition: rows depend on each other.
_REGULAR = 1e-10
# Products of sparse rows with each other are one matrix of so many rows without a thought.
_FEW_ROWS = 4000
# A proof costs more than a step, and steps are exact at the end: prove when nothing is left to do.
_NEGLIGIBLE = 1e-8


class _Prover:
    """Certificates of points; what the data alone decide is kept.

    Targets are counted from a level, so that large ones cost no digits.
    """

    def __init__(self, problem: ConcomitantProblem, rows: StandardRows, level: float) -> None:
        self.problem, self.rows, self.level = problem, rows, level
        spread = rows.scale * math.sqrt(rows.total_weight) * (1 + 1e-6)
        size = np.sqrt(rows.size) * (1 + 1e-6)
        self.columns = Columns(problem.parts, rows.mean, spread, size)
        #: The exact solution for absolute errors; it is dear, and the same for every profile.
        self.absolute: Certificate | None = None

    def coefficients(self, v: Array) -> tuple[Array, float]:
        w, b = self.rows.coefficients(v)
        return w, b + self.level

    def certify(self, w: Array, b: float, scale: float, u: Array) -> Certificate:
        return certify_concomitant(self.problem, w, b, scale, u, self.columns)


class _Iteration(Iteration):
    """A step of the loop is a step of Newton's method, or the exact answer for a scale of zero."""

    def __init__(
        self,
        profile: Profile,
        prover: _Prover,
        tol: float,
        target: float,
        is_watched: bool,
        is_warm: bool,
    ) -> None:
        self.profile, self._prover, self._tol, self._target = profile, prover, tol, target
        self._is_watched = is_watched
        self._least, self._idle, self._proven = math.inf, 0, math.inf
        self.certificate: Certificate | None = None
        self.proven_at: Array | None = None
        self.absolute: Certificate | None = None
        # A start of our own making is no answer yet: there is a step to be seen in any case.
        self._has_moved = is_warm
        self._is_doubted, self._is_at_rest = False, False
        self._expose()

    def _expose(self) -> None:
        w, b = self._prover.coefficients(self.profile.v)
        self.coef, self.intercept = w[:, None], np.array([b])
        self.scale = self.profile.scale

    def step(self) -> None:
        self._has_moved = True
        if self.profile.is_collapsed or (self.profile.is_on_floor and self._is_at_rest):
            found = solve_absolute(self._prover, self.profile)
            if _is_proven(found) or not self.profile.move_floor():
                self._take_absolute(found)
                return
        length = self.profile.step()
        self._expose()
        if self.profile.scale <= _DOUBTFUL * self.profile.size and not self._is_doubted:
            # On its way to zero the scale falls for dozens of steps: one look may spare them.
            self._is_doubted = True
            found = solve_absolute(self._prover, self.profile)
            if _is_proven(found):
                self._take_absolute(found)
                return
        decrease = self.profile.decrease
        # Steps that promise no more than the ones before are made of rounding.
        self._idle = self._idle + 1 if decrease >= 0.5 * self._least else 0
        self._least = min(self._least, decrease)
        self._is_at_rest = length == 0.0 or self._is_small(1.0)
        is_done = length == 0.0 or (self._is_at_rest and self._idle > 2)
        self.is_stalled = is_done and not self.profile.is_on_floor

    def _is_small(self, share: float) -> bool:
        """Whether a further step promises no more than a share of the tolerance."""
        objective = max(self.profile.objective, _EPS * self.profile.size)
        return self.profile.decrease <= share * self._tol * objective

    def _take_absolute(self, found: Certificate) -> None:
        """Absolute errors, exactly, and a scale of zero."""
        self.absolute = found
        self.coef, self.intercept = self.absolute.coef, self.absolute.intercept
        self.scale, self.is_stalled = 0.0, True

    def progress(self) -> Progress:
        profile = self.profile
        if self.absolute is not None:
            self.certificate, self.proven_at = self.absolute, profile.v
            return Progress(self.absolute.objective, self.absolute.gap)
        small = self._is_small(_NEGLIGIBLE)
        due = small or self._idle > 0
        if profile.is_collapsed or not (self._is_watched or due) or not self._has_moved:
            return Progress(profile.objective, math.inf)
        w, b = self.coef[:, 0], float(self.intercept[0])
        self.certificate = self._prover.certify(w, b, self.scale, profile.u)
        self.proven_at = profile.v
        gap = self.certificate.gap
        # The step is exact: what a proof does not show now, the next one will not either.
        if small and gap > 0.5 * self._proven and not profile.is_on_floor:
            self.is_stalled = True
        self._proven = min(gap, self._proven)
        # Whoever watches sees more proofs, and the same steps.
        return Progress(self.certificate.objective, gap if due else max(gap, 1.001 * self._target))


def solve_absolute(prover: _Prover, profile: Profile) -> Certificate:
    """The problem with a scale of zero, and its proof.

    The rows that the profile came to fit (almost) exactly usually are those of the answer; if not,
    those of the exact solution for absolute errors are.
    """
    best = _refitted(prover, profile, profile.v)
    if _is_proven(best):
        return best
    if prover.absolute is None:
        prover.absolute = _absolute_errors(prover, profile)
    return min(best, prover.absolute, key=lambda certificate: certificate.gap)


def _absolute_errors(prover: _Prover, profile: Profile) -> Certificate:
    """The exact solution for absolute errors, proven with a scale of zero."""
    problem = prover.problem
    strength = problem.alpha / problem.epsilon
    penalty = L2(strength) if strength > 0 else NoPenalty()
    absolute = replace(problem.parts, loss=Absolute(), penalty=penalty)
    solution = InteriorPoint().solve(absolute, Options(), Monitor(Trace()))
    assert solution.certificate is not None
    w, b = solution.coef[:, 0], float(solution.intercept[0])
    u = 2 * problem.epsilon * solution.certificate.witness["dual"][:, 0]
    v = profile.rows.standard(w, b - prover.level)
    found = prover.certify(w, b, 0.0, u), _refitted(prover, profile, v)
    return min(found, key=lambda certificate: certificate.gap)


def _is_proven(certificate: Certificate) -> bool:
    enough = _PROVEN * certificate.objective + 2 * certificate.objective_rounding
    return math.isfinite(enough) and certificate.gap <= enough


def _refitted(prover: _Prover, profile: Profile, v: Array) -> Certificate:
    """The best certificate after fitting exactly those rows that are close to it.

    With as many coefficients as rows all of them may be fitted, which is tried first.
    """
    residual = profile.rows.scores(v) - profile.y
    is_square = profile.rows.count >= len(residual)
    best: Certificate | None = None
    for near in (math.inf, *_FITTED) if is_square else _FITTED:
        fitted = np.abs(residual) <= near * profile.size
        exact, u = fit_exactly(profile, v, residual, fitted)
        w, b = prover.coefficients(exact)
        # Of a perfect fit without a penalty, zero is the best dual point.
        for dual in (u, np.zeros_like(u)):
            found = prover.certify(w, b, 0.0, dual)
            best = found if best is None or found.gap < best.gap else best
            if _is_proven(best):
                return best
    assert best is not None
    return best


def concomitant_cost(facts: Facts) -> Cost:
    """What :func:`solve_concomitant` is expected to cost."""
    if takes_products(facts):
        return products_cost(facts)
    if not facts.unpenalised and facts.n < facts.d:  # solved in the span of the rows
        facts = replace(facts, d=facts.n, nonzeros=facts.n * facts.n)
    return Newton().cost(facts)


def solve_concomitant(
    problem: ConcomitantProblem,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    start: tuple[Array, float] | None = None,
) -> Solution:
    """Minimise over coefficients, intercept and scale.

    Parameters
    ----------
    problem : ConcomitantProblem
    tol : float
        The gap to prove, relative to the objective.
    max_iter : int
    monitor : Monitor
    start : tuple, optional
        Coefficients and intercept to start from.

    Returns
    -------
    solution : Solution
        With the scale in ``extra["scale"]``.
    """
    parts = problem.parts
    require_ordinary(parts)
    is_wide = problem.alpha > 0 and parts.n_samples < parts.n_features
    has_products = takes_products(Facts.of(parts))
    if is_wide and start is None and max_iter > 0:
        is_small = parts.n_samples <= _FEW_ROWS or not has_products
        proof = _fit_all_rows(problem) if is_small else None
        if proof is not None and _is_proven(proof):
            return _all_rows_fitted(proof, monitor, max_iter, tol)
    if has_products:
        found = _judged(solve_by_products(problem, tol, max_iter, monitor, start), problem, tol)
        if found.status is not Status.STALLED:
            return found
    if is_wide:
        return _solve_in_row_space(problem, tol, max_iter, monitor, start)
    rows = StandardRows.of(parts.design, parts.weights, parts.fit_intercept)
    rows = rows.independent(problem.alpha > 0)
    quad = rows.strength(np.full(parts.n_features, 2 * problem.alpha), 2)
    level = float(rows.weights @ parts.target[:, 0]) / rows.total_weight
    level = level if parts.fit_intercept else 0.0
    y = parts.target[:, 0] - level
    if start is None:
        v = least_squares(rows, y, quad)
    else:
        v = rows.standard(start[0], start[1] - level)
    profile = Profile(rows, y, problem.epsilon, quad, v, GramEquations(rows, quad))
    prover = _Prover(problem, rows, level)
    target = tol * profile.objective
    is_watched, is_warm = monitor.is_watching, start is not None
    iteration = _Iteration(profile, prover, tol, target, is_watched, is_warm)
    status, count, _ = run(iteration, monitor, max_iter=max_iter, target_gap=target)
    certificate = iteration.certificate
    w, b = iteration.coef[:, 0], float(iteration.intercept[0])
    if certificate is None or iteration.proven_at is not profile.v:
        certificate = iteration.absolute or prover.certify(w, b, iteration.scale, profile.u)
    known = None if problem.alpha > 0 else IndependentColumns.of(parts)
    if known is not None and known.space is not None:
        W, levels = known.least_norm(certificate.coef, certificate.intercept)
        scale, u = float(certificate.witness["scale"][0]), certificate.witness["dual"][:, 0]
        certificate = prover.certify(W[:, 0], float(levels[0]), scale, u)
    scale = float(certificate.witness["scale"][0])
    notes = _notes(iteration)
    if known is not None and known.space is not None:
        notes.insert(1, known.note)
    found = monitor.solution(
        certificate,
        status,
        "newton",
        count,
        notes=notes,
        rank=None if known is None else known.rank,
        row_space=None if known is None else known.space,
        extra={"scale": scale},
    )
    return _judged(found, problem, tol)


def _judged(found: Solution, problem: ConcomitantProblem, tol: float) -> Solution:
    """The solution with the gap that is enough for it, and whether it is."""
    proof = found.certificate
    assert proof is not None
    enough = max(tol, _PROVEN) * abs(proof.objective) + 2 * proof.objective_rounding
    enough += _unseen(problem)
    is_proven = math.isfinite(enough) and proof.gap <= enough
    status = Status.CONVERGED if is_proven else found.status
    return replace(found, status=status, tolerance=enough)


def _notes(iteration: _Iteration) -> list[str]:
    """What a person would want to know about the steps."""
    equations = iteration.profile.equations
    assert isinstance(equations, GramEquations)
    gram = equations.gram
    notes = [
        f"Gram matrix formed {counted(1 + gram.formed, 'time')} from all rows, "
        f"{counted(gram.updated, 'time')} from those that changed"
    ]
    if iteration.absolute is not None:
        notes.append("scale zero: absolute errors, solved exactly")
    return notes


def _fit_all_rows(problem: ConcomitantProblem) -> Certificate | None:
    """The shortest w that fits all rows, with its proof; None where the rows depend on each other.

    With centred rows X_c, K = X_c X_c^T and the mean m of the target: K l = y - m, w = X_c^T l. The
    sums of the columns of K are zero, so that a constant added to it keeps sum_i l_i zero.
    """
    parts = problem.parts
    y, n, has_level = parts.target[:, 0], parts.n_samples, parts.fit_intercept
    s = np.ones(n) if parts.weights is None else parts.weights
    if not s.all():
        return None
    mean = parts.design.column_means(None) if has_level else None
    kernel = parts.design.kernel(None, mean)
    largest = float(kernel.diagonal().max())
    if has_level:
        kernel += largest / n
    factor, trouble = lapack.dpotrf(kernel, lower=1, clean=0)
    if trouble or lapack.dpocon(factor, np.linalg.norm(kernel, 1), uplo="L")[0] < _REGULAR:
        return None
    centre = np.zeros(parts.n_features) if mean is None else mean
    level = float(y.mean()) if has_level else 0.0
    multipliers, w, b = np.zeros(n), np.zeros(parts.n_features), level
    for _ in range(2):  # solved, and refined
        rest = y - parts.design.matvec(w) - b
        multipliers += lapack.dpotrs(factor, rest, lower=1)[0]
        w = parts.design.rmatvec(multipliers) - centre * multipliers.sum()
        b = level - float(centre @ w)
    u = -2 * problem.alpha * multipliers / s
    return certify_concomitant(problem, w, b, 0.0, u)


class _OneStep(Iteration):
    """An answer that is known, as the one step that led to it."""

    def __init__(self, proof: Certificate) -> None:
        self._proof, self._is_taken = proof, False
        self.coef, self.intercept = np.zeros_like(proof.coef), np.zeros_like(proof.intercept)

    def step(self) -> None:
        self._is_taken = True
        self.coef, self.intercept = self._proof.coef, self._proof.intercept

    def progress(self) -> Progress:
        return Progress(self._proof.objective, self._proof.gap if self._is_taken else math.inf)


def _all_rows_fitted(proof: Certificate, monitor: Monitor, max_iter: int, tol: float) -> Solution:
    """The solution that such a proof is about."""
    enough = max(tol, _PROVEN) * proof.objective + 2 * proof.objective_rounding
    status, count, _ = run(_OneStep(proof), monitor, max_iter=max_iter, target_gap=enough)
    notes = ["scale zero: all rows are fitted exactly, by one linear system of their products"]
    return monitor.solution(
        proof, status, "newton", count, notes=notes, tolerance=enough, extra={"scale": 0.0}
    )


def _solve_in_row_space(
    problem: ConcomitantProblem,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    start: tuple[Array, float] | None,
) -> Solution:
    """More columns than rows: one coefficient for each independent row, and a proof for all."""
    space = RowSpace.of(problem.parts)
    if start is not None:
        v, level = space.forth(start[0], np.array([start[1]]))
        assert level is not None
        start = v, float(level[0])
    inner = seen_through(monitor, space.back)
    found = solve_concomitant(ConcomitantProblem(space.problem), tol, max_iter, inner, start)
    W, b = space.back(found.coef, found.intercept)
    small = found.certificate
    assert small is not None
    scale = float(found.extra["scale"])
    # Multipliers belong to rows, which are the same ones.
    dual = small.witness["dual"][:, 0]
    proof = certify_concomitant(problem, W[:, 0], float(b[0]), scale, dual)
    notes = [*found.notes, space.note]
    return replace(found, coef=W, intercept=b, proof=proof, notes=notes)


def _unseen(problem: ConcomitantProblem) -> float:
    """Gaps that rounding of the target hides."""
    parts = problem.parts
    size = math.sqrt(parts.total_weight * float(parts.weigh(parts.target**2).sum()))
    return 1e-12 * size + 1e-280
