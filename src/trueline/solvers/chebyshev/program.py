r"""The smallest largest error as a linear program, solved by HiGHS.

    minimise h    such that    X w + b + h >= y,    X w + b - h <= y,    h >= 0

This shares nothing with the exchange of rows but the statement of the problem: an independent
answer to compare with. The multipliers of the two inequalities of a row are the two signs that its
own multiplier may have.

Q. Huangfu and J. A. J. Hall, "Parallelizing the dual revised simplex method", Math. Program.
Comput. 10 (2018) 119-142.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.special.maximum import certify_maximum
from trueline.design import Design
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import CALL, Cost, Facts, Monitor, Options, Solver
from trueline.solvers.chebyshev.rows import counted
from trueline.solvers.chebyshev.solver import is_close, joined

__all__ = ["MaximumProgram"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# An answer whose proven gap is larger than this part of the objective is not called solved.
_CLOSE = 1e-6
# The finest that HiGHS accepts.
_TOLERANCE = 1e-10


class MaximumProgram(Solver):
    """The linear program of the maximum error, by a solver that is not ours."""

    name = "highs_maximum"
    title = "linear program of the maximum error, by HiGHS"
    needs_loss = frozenset({"maximum"})
    needs_penalty = frozenset({"none"})
    is_direct = True
    is_textbook = True
    proof = "maximum error"

    def cost(self, facts: Facts) -> Cost:
        # Measured: the square root of the rows counts the steps, each of which reads the data.
        elements = 2.0 * (facts.nonzeros + facts.n)
        seconds = CALL + 5e-3 + facts.k * elements * (4e-7 + 6e-9 * facts.n**0.5)
        return Cost(2 * elements * facts.n**0.5, facts.n**0.5, 60 * elements, seconds)

    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        design, target, places = counted(problem)
        found = [_solve_target(design, y, problem.fit_intercept) for y in target.T]
        W = np.stack([w for w, *_ in found], axis=1)
        b = np.array([level for _, level, *_ in found])
        rows, u = joined([(own, multipliers) for *_, own, multipliers, _ in found])
        certificate = certify_maximum(problem, W, b, places[rows], u)
        return Solution(
            W,
            b,
            Status.SOLVED if is_close(problem, certificate, _CLOSE) else Status.STALLED,
            self.name,
            n_iter=max(1, sum(steps for *_, steps in found)),
            proof=certificate,
            trace=monitor.trace,
            extra={"rows": places[rows], "dual": u},
        )


def _solve_target(
    design: Design, y: Array, fit_intercept: bool
) -> tuple[Array, float, Indices, Array, int]:
    """w, b, the rows with multipliers, these, and the number of iterations."""
    from scipy.optimize import linprog

    n, d = design.shape
    # Units of powers of two change no digit; the tolerances of HiGHS are absolute.
    columns = _powers_of_two(design.column_largest())
    size = float(_powers_of_two(np.abs(y).max(keepdims=True, initial=0.0))[0])
    blocks = [sp.csr_array(block / columns) for _, block in design.blocks(4096)]
    scores = sp.hstack([sp.vstack(blocks), np.ones((n, int(fit_intercept)))])
    h = np.ones((n, 1))
    found = linprog(
        np.append(np.zeros(d + fit_intercept), 1.0),
        A_ub=sp.vstack([sp.hstack([-scores, -h]), sp.hstack([scores, -h])], format="csc"),
        b_ub=np.concatenate([-y, y]) / size,
        bounds=[(None, None)] * (d + fit_intercept) + [(0, None)],
        method="highs",
        options={
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
        },
    )
    if found.x is None:
        raise FloatingPointError(f"HiGHS found no answer: {found.message}")
    below, above = -np.asarray(found.ineqlin.marginals).reshape(2, n)
    u = below - above
    rows = np.flatnonzero(u)
    level = float(found.x[d]) * size if fit_intercept else 0.0
    return found.x[:d] * size / columns, level, rows, u[rows], int(found.nit)


def _powers_of_two(size: Array) -> Array:
    """The power of two above each magnitude; one where it is zero."""
    return np.where(size > 0, np.ldexp(1.0, np.frexp(size)[1]), 1.0)
