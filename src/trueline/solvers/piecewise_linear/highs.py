r"""Piecewise linear losses as a linear program, solved by HiGHS.

    minimise  sum_i s_i (first z_i + sum_k jump_k e_ik) + sum_j linear_j (w+_j + w-_j)
    such that  z = X (w+ - w-) + b,   e_ik >= z_i - y_i - kink_k,   e, w+, w- >= 0

This shares nothing with the other solvers but the statement of the problem: an independent answer
to compare with. The multipliers of the inequalities are those of the kinks.

Q. Huangfu and J. A. J. Hall, "Parallelizing the dual revised simplex method", Math. Program.
Comput. 10 (2018) 119-142.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.duality import certify_dual, size_of_targets
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import CALL, Cost, Facts, Monitor, Options, Solver

Array = NDArray[np.float64]

# An answer whose proven gap is larger than this part of the objective is not called solved.
_CLOSE = 1e-6


class HiGHS(Solver):
    """The linear program, by a solver that is not ours."""

    name = "highs"
    title = "linear program, by HiGHS"
    needs_loss = frozenset({"piecewise_linear"})
    needs_penalty = frozenset({"polyhedral"})
    is_direct = True
    proof = "duality"
    is_textbook = True
    #: The method of :func:`scipy.optimize.linprog`.
    method = "highs"

    def cost(self, facts: Facts) -> Cost:
        # Measured: a few simplex steps for each row, each of which reads a part of the data.
        elements = float(facts.nonzeros + facts.n)
        seconds = CALL + 5e-3 + facts.k * elements * (2e-7 + 4e-11 * facts.n)
        return Cost(2 * elements * facts.n**0.5, facts.n**0.5, 60 * elements, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        columns = [_solve_target(problem, j, self.method) for j in range(problem.n_targets)]
        W = np.stack([w for w, *_ in columns], axis=1)
        b = np.array([level for _, level, *_ in columns])
        u = np.stack([dual for *_, dual, _ in columns], axis=1)
        certificate = certify_dual(problem, W, b, u)
        # A perfect fit leaves nothing to compare with but the targets, in the units of the proof.
        targets = size_of_targets(problem, certificate)
        size = abs(certificate.objective) + 1e-3 * problem.total_weight * targets
        close = certificate.gap <= _CLOSE * size + 1.1 * certificate.objective_rounding
        steps = sum(count for *_, count in columns)
        status = Status.SOLVED if close else Status.STALLED
        return monitor.solution(certificate, status, self.name, max(1, steps))


def _solve_target(problem: Problem, number: int, method: str) -> tuple[Array, float, Array, int]:
    """w, b, u and the number of iterations, for one target."""
    from scipy.optimize import linprog

    loss, y = problem.loss.of_target(number), problem.target[:, number]
    n, d = problem.design.shape
    s = np.ones(n) if problem.weights is None else problem.weights
    jumps, kinks = loss.row_jumps(y), np.array(loss.kinks)
    strength = np.broadcast_to(problem.penalty.linear, (d, problem.n_targets))[:, number]
    X = _rows(problem)
    slopes = loss.first_slopes(y)
    first = slopes * s
    slope = X.T @ first
    cost = [strength + slope, strength - slope, (jumps * s).ravel()]
    cost.insert(2, np.full(int(problem.fit_intercept), first.sum()))
    scores = sp.hstack([X, -X, np.ones((n, int(problem.fit_intercept)))])
    m = n * len(jumps)
    below = sp.hstack([sp.vstack([scores] * len(jumps)), -sp.eye_array(m)], format="csc")
    free = [(0, None)] * (2 * d) + [(None, None)] * problem.fit_intercept + [(0, None)] * m
    found = linprog(
        np.concatenate(cost),
        A_ub=below,
        b_ub=np.add.outer(kinks, y).ravel(),
        bounds=free,
        method=method,
    )
    if found.x is None:
        raise FloatingPointError(f"HiGHS found no answer: {found.message}")
    pi = -np.asarray(found.ineqlin.marginals).reshape(len(jumps), n).sum(axis=0)
    w = found.x[:d] - found.x[d : 2 * d]
    level = float(found.x[2 * d]) if problem.fit_intercept else 0.0
    return w, level, slopes + pi / s, int(found.nit)


def _rows(problem: Problem) -> Any:
    """The design as HiGHS stores it: sparse, column by column."""
    blocks = [sp.csr_array(block) for _, block in problem.design.blocks(4096)]
    return sp.vstack(blocks, format="csc") if blocks else sp.csc_array(problem.design.shape)
