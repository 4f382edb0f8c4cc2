"""Small dense problems of straight lines with a squared penalty: support vector machines mostly.

The method is :mod:`trueline.solvers.piecewise_linear.ramps`. The multipliers that it ends with are
the dual point of the proof.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import DenseDesign
from trueline.errors import PairingError
from trueline.numerics.blas import run_strands, single_threaded_blas
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import CALL, Cost, Facts, Monitor, Options, Solver
from trueline.solvers.iterative import target_gap
from trueline.solvers.newton.solver import require_ordinary
from trueline.solvers.pending import KEPT, PendingDual
from trueline.solvers.piecewise_linear.ramps import FIRST_RAMP, Ramps, minimise
from trueline.wording import counted

Array = NDArray[np.float64]

# Columns and numbers, beyond which other solvers gain by blocks, by threads or by fewer rows.
_MOST_COLUMNS, _MOST_NUMBERS = 128, 2_000_000
# Numbers that a cache holds: more of them are read from memory in every step.
_CACHED = 1_000_000
# Steps that a target takes, and products from which on several of them are worth their threads.
_STEPS, _STRANDS_WORK = 25, 5_000_000
_FREE = "needs every coefficient penalised, the intercept too"
# The gap, relative to the objective, beyond which rounds go on only while they help; of an answer.
_GOAL, _CLOSE = 1e-13, 1e-9


class Multipliers(Solver):
    """The proximal method of multipliers, target by target."""

    name = "multipliers"
    shows_nonfinite = True
    title = "method of multipliers, Newton's steps on the rows at their kinks"
    needs_loss = frozenset({"piecewise_linear"})
    needs_penalty = frozenset({"quadratic"})
    is_direct = True
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if facts.is_sparse:
            return "needs dense rows"
        if facts.fit_intercept or facts.unpenalised:
            return _FREE
        if facts.d > _MOST_COLUMNS or facts.n * facts.d > _MOST_NUMBERS:
            return "is for few columns of few rows"
        return None

    def cost(self, facts: Facts) -> Cost:
        n, d = facts.n, facts.d
        product = (2.5e-9 if n * d <= _CACHED else 5e-9) * n * d
        each = 5e-6 + product + 2e-8 * n + 4e-10 * d**3
        seconds = CALL + facts.k * _STEPS * each
        flops = facts.k * _STEPS * (4.0 * n * d + d**3)
        return Cost(flops, 2.0 * facts.k * _STEPS, 24.0 * n * d, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        if problem.fit_intercept or not np.all(problem.penalty.curvature):
            # Asked for by name: without the intercept it would be another problem.
            raise PairingError(f"solver='{self.name}' {_FREE}; solver='auto' picks another one.")
        require_ordinary(problem)
        rows = np.ascontiguousarray(problem.design.toarray().T, dtype=np.float64)
        targets = list(range(problem.n_targets))
        solver = _Targets(replace(problem, design=DenseDesign(rows.T)), rows)
        if rows.size * len(targets) * _STEPS >= _STRANDS_WORK:
            run_strands(solver.solve, targets)
        else:
            with single_threaded_blas():
                for target in targets:
                    solver.solve(target)
        return solver.solution(monitor, self.name, options.tol)


class _Targets:
    """What was found for each target."""

    def __init__(self, problem: Problem, rows: Array) -> None:
        self.problem, self.rows = problem, rows
        (q, n), k = rows.shape, problem.n_targets
        strengths = np.broadcast_to(problem.penalty.curvature, (q, k))
        self.strengths = np.ascontiguousarray(strengths.T)
        self.s = np.ones(n) if problem.weights is None else problem.weights
        squares = np.einsum("ji,ji->j", rows, rows)
        if not (np.isfinite(squares) & ((squares > 1e-200) | (squares == 0))).all():
            raise FloatingPointError("the squares of the data are not finite, or vanish")
        sizes = np.sqrt((rows**2) @ self.s / self.s.sum())
        self.scale = 1.0 / np.where(sizes > 0, sizes, 1.0)
        self.V, self.U, self.Z = np.zeros((k, q)), np.empty((k, n)), np.zeros((k, n))
        self.on_kinks: list[NDArray[np.intp]] = [np.empty(0, dtype=np.intp)] * k
        self.steps, self.gaps, self.sizes = np.zeros(k, dtype=np.intp), np.empty(k), np.empty(k)

    def solve(self, number: int) -> None:
        problem, s, v = self.problem, self.s, self.V[number]
        loss, y = problem.loss.of_target(number), np.ascontiguousarray(problem.target[:, number])
        a, z, u = self.strengths[number], self.Z[number], self.U[number]
        first, jumps = loss.first_slopes(y) * s, loss.row_jumps(y) * s
        places = np.add.outer(np.array(loss.kinks), y)
        centres = np.clip(-first / jumps.sum(axis=0), 0.0, 1.0)
        share = np.array(np.broadcast_to(centres, places.shape), order="C")
        ramps = Ramps(self.rows, first, jumps, places, share, a, self.scale)
        gamma = FIRST_RAMP * float(np.abs(places).mean()) or 1.0
        size = float(s @ loss.value(y, z))
        for _ in range(2):  # the size of the objective shows in the end
            steps, gap, gamma = minimise(ramps, v, z, u, gamma, _GOAL * size)
            self.steps[number] += steps
            size = float(s @ loss.value(y, z) + 0.5 * (a * v) @ v)
            if gap <= _CLOSE * size:
                break
        u /= s
        self.gaps[number], self.sizes[number] = gap, size
        self.on_kinks[number] = np.flatnonzero(((share > 0) & (share < 1)).any(axis=0))

    def solution(self, monitor: Monitor, name: str, tol: float) -> Solution:
        problem, W = self.problem, np.ascontiguousarray(self.V.T)
        scale = np.sqrt(self.s.sum()) / self.scale * (1 + 1e-6)
        proof: PendingDual | Certificate
        own = replace(problem, target=problem.target.copy())  # callers may change theirs
        point = W, np.zeros(W.shape[1]), self.U.T
        gap, size = float(self.gaps.sum()), float(self.sizes.sum())
        proof = PendingDual(own, *point, np.zeros(len(W)), scale, gap, size, self.Z.T)
        steps, is_close = int(self.steps.sum()), True
        if self.rows.size > KEPT or proof.bound() > _CLOSE * size:
            proof = proof.certificate()
            enough = max(_CLOSE * abs(proof.objective), target_gap(problem, tol))
            is_close = proof.gap <= enough + 1.1 * proof.objective_rounding
        status = Status.SOLVED if is_close else Status.STALLED
        extra = {"interpolated": self.on_kinks, "scores": self.Z.T}
        notes = [counted(steps, "Newton step")]
        return monitor.solution(proof, status, name, max(1, steps), notes=notes, extra=extra)
