r"""Absolute, quantile and epsilon-insensitive losses, exactly.

An interior-point method on the rows that matter, then the vertex: see
:mod:`trueline.solvers.piecewise_linear.interior_point`. Margins of many sparse rows are solved to
the tolerance instead, by rounding their kinks less and less
(:mod:`trueline.solvers.piecewise_linear.interior_point.sparse_rows`). The multipliers of the kinks
are the dual point: a row off its kinks has the slope of its straight piece, u_i = l'(z_i), and a
row on a kink a slope in between.

Quantiles that do not cross: each by itself, then together with the order where it was broken.

See :mod:`trueline.solvers.piecewise_linear.interior_point.ordered`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import certify_dual, certify_ordered, size_of_targets
from trueline.design import AugmentedDesign
from trueline.numerics.blas import single_threaded_blas
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import CALL, GRAM_RATE, Cost, Facts, Monitor, Options, Solver
from trueline.solvers.newton.solver import require_ordinary
from trueline.solvers.piecewise_linear.interior_point.interior import solve_constant
from trueline.solvers.piecewise_linear.interior_point.ordered import solve_ordered
from trueline.solvers.piecewise_linear.interior_point.source import Source
from trueline.solvers.piecewise_linear.interior_point.sparse_rows import (
    is_for_levels,
    solve_by_levels,
)
from trueline.solvers.piecewise_linear.interior_point.targets import (
    Answer,
    solve_targets,
    worked_rows,
)
from trueline.solvers.transformed import is_wide, solve_in_row_space
from trueline.wording import counted

Array = NDArray[np.float64]

# Gram matrices of more columns than this are too many numbers.
_MOST_COLUMNS = 30_000
_STEPS = 20
# How much longer it takes where rows are chosen badly.
_MISJUDGED = 10.0
# The gap, relative to objective and targets, up to which an answer counts as solved: one that is no
# vertex, and one that is.
_CLOSE, _BELIEVED = 1e-9, 1e-4


class InteriorPoint(Solver):
    """Interior point and vertex, for losses made of straight lines."""

    name = "interior_point"
    shows_nonfinite = True
    title = "interior point, one weighted Gram matrix per step, then the exact vertex"
    needs_loss = frozenset({"piecewise_linear"})
    needs_penalty = frozenset({"elastic"})
    is_direct = True
    proof = "duality"

    def refuses(self, facts: Facts) -> str | None:
        if facts.d > _MOST_COLUMNS and not is_wide(facts):
            return f"a Gram matrix of {facts.d} x {facts.d} would take {facts.d**2 * 8e-9:.0f} GB"
        return None

    def cost(self, facts: Facts) -> Cost:
        n, p = facts.n, facts.d + facts.fit_intercept
        rows = worked_rows(n, p)
        flops = _STEPS * (2.0 * rows * p * p + p**3 / 3) * facts.k
        passes = 8.0 + 4.0 * facts.k
        seconds = CALL + 2 * flops / GRAM_RATE + passes * 1.5e-9 * facts.nonzeros
        seconds += facts.k * _STEPS * (3e-4 + 2.5e-7 * rows)
        if facts.has_margins and rows < n:
            seconds *= _MISJUDGED  # least squares do not show which rows are near their margins
        return Cost(flops, passes, 8.0 * rows * (p + 12), seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        require_ordinary(problem)
        is_round = not np.any(problem.penalty.linear)
        if is_round and is_wide(Facts.of(problem)):
            return solve_in_row_space(self, problem, options, monitor)
        written = problem
        if isinstance(problem.design, AugmentedDesign) and problem.design.is_sparse:
            written = replace(problem, design=problem.design.materialised())
        if (constant := solve_constant(problem, monitor, self.name)) is not None:
            return constant
        if is_for_levels(written):
            found = solve_by_levels(written, options.tol, monitor, self.name)
            if found is not None:
                return found
        with single_threaded_blas():  # once for all the small products
            answers = solve_targets(Source.of(problem))
            return _solution(problem, answers, monitor, self.name)


def _solution(problem: Problem, answers: list[Answer], monitor: Monitor, name: str) -> Solution:
    found = [answer.source.coefficients(answer.v) for answer in answers]
    W = np.stack([w for w, _ in found], axis=1)
    b = np.array([level for _, level in found])
    # Targets one after the other in memory, as they are read.
    u = np.stack([answer.u for answer in answers]).T
    source = answers[0].source
    scale = source.scale * np.sqrt(problem.total_weight) * (1 + 1e-6)
    known = [answer.scores for answer in answers if answer.scores is not None]
    scores = np.stack(known).T if len(known) == len(answers) else None
    certificate = certify_dual(problem, W, b, u, source.mean, scale, scores)
    # A perfect fit leaves nothing to compare with but the targets, in the units of the proof.
    targets = size_of_targets(problem, certificate)
    size = abs(certificate.objective) + problem.total_weight * targets
    # Nor is a vertex believed to be optimal against its own proof.
    share = _BELIEVED if all(answer.is_exact for answer in answers) else _CLOSE
    close = certificate.gap <= share * size + 1.1 * certificate.objective_rounding
    steps = sum(answer.steps for answer in answers)
    exchanges = sum(answer.exchanges for answer in answers)
    rows = max(answer.rows for answer in answers)
    notes = [
        f"{counted(steps, 'step')}, {counted(exchanges, 'exchange')} of rows",
        f"{counted(rows, 'row')} of {problem.n_samples} treated one by one",
    ]
    status = Status.SOLVED if close else Status.STALLED
    extra = {"interpolated": [answer.on_kinks for answer in answers]}
    return monitor.solution(certificate, status, name, max(1, steps), notes=notes, extra=extra)


class NonCrossing(Solver):
    """All quantiles together, in order at every row."""

    name = "non_crossing"
    title = "interior point and vertex, with constraints where quantiles would cross"
    needs_loss = frozenset({"ordered"})
    needs_penalty = frozenset({"elastic"})
    is_direct = True
    proof = "ordered duality"

    def refuses(self, facts: Facts) -> str | None:
        return InteriorPoint().refuses(facts)

    def cost(self, facts: Facts) -> Cost:
        # The separate fits, and about as much again for each of a few rounds with constraints.
        apart = InteriorPoint().cost(facts)
        return Cost(4 * apart.flops, 4 * apart.passes, facts.k * apart.memory, 4 * apart.seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        answer = solve_ordered(problem, problem.loss.ranks)  # type: ignore[attr-defined]
        certificate = certify_ordered(problem, answer.W, answer.b, answer.u, answer.order)
        # A perfect fit leaves nothing to compare with but the targets, in the units of the proof.
        targets = size_of_targets(problem, certificate)
        size = abs(certificate.objective) + problem.total_weight * targets
        # Nor is a vertex believed to be optimal against its own proof.
        share = _BELIEVED if answer.is_exact else _CLOSE
        close = certificate.gap <= share * size + 1.1 * certificate.objective_rounding
        notes = [
            f"{counted(answer.steps, 'step')}, {counted(answer.exchanges, 'exchange')} of rows",
            f"{counted(answer.rows, 'row')} of {problem.n_samples} treated one by one",
        ]
        if answer.constraints:
            notes.append(
                f"order asked for at {counted(answer.constraints, 'row')} of pairs of neighbours, "
                f"in {counted(answer.rounds, 'round')}"
            )
        else:
            notes.append("the quantiles do not cross when they are fitted one by one")
        status = Status.SOLVED if close else Status.STALLED
        return monitor.solution(certificate, status, self.name, max(1, answer.steps), notes=notes)
