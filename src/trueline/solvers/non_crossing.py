r"""Quantiles that do not cross: each by itself, then together with the order where it was broken.

See :mod:`trueline.solvers.piecewise.ordered`.
"""

from __future__ import annotations

from trueline.certificates.duality import size_of_targets
from trueline.certificates.ordered import certify_ordered
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Cost, Facts, Options, Solver
from trueline.solvers.interior_point import InteriorPoint
from trueline.solvers.loop import Monitor
from trueline.solvers.piecewise.ordered import solve_ordered
from trueline.wording import counted

__all__ = ["NonCrossing"]

# The gap, relative to objective and targets, up to which an answer counts as solved: one that is no
# vertex, and one that is.
_CLOSE, _BELIEVED = 1e-9, 1e-4


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
        return Solution(
            answer.W,
            answer.b,
            Status.SOLVED if close else Status.STALLED,
            self.name,
            n_iter=max(1, answer.steps),
            proof=certificate,
            trace=monitor.trace,
            notes=notes,
        )
