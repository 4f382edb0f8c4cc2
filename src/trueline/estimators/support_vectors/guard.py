r"""A look at the multipliers that a solver returns, before they become a model.

The certificate of a support vector machine costs as much as predicting the training rows, and is
worked out when somebody looks. What implies a small gap costs little: with f = K beta at the rows,

- the multipliers lie in their box and keep the sums of their groups;
- no two of them can be moved against each other with a gain above the tolerance;
- f is K beta, at some rows that are computed afresh.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueline.kernels.source import KernelSource
from trueline.solvers.smo.program import DualProgram, DualSolution, by_row, levels

__all__ = ["judged"]

# Rows whose scores are computed afresh.
_SOME = 4
# Violations that the last digits of recomputed scores explain: of the tolerance, and of the scores.
_TIMES, _DIGITS = 2.0, 1e-6


def judged(
    program: DualProgram, source: KernelSource, solution: DualSolution, tol: float
) -> DualSolution:
    """The solution, called unsolved if it is not what it claims to be."""
    if not solution.is_solved:
        return solution
    beta, scores = solution.beta, solution.scores
    violation = levels(program, beta, scores)[1]
    size = 1.0 + float(np.abs(scores).max(initial=0.0)) + float(np.abs(program.target).max())
    off = _off_feasible(program, beta) * size + _off_scores(program, source, beta, scores)
    excess = max(violation, 0.0) + off
    if excess <= _TIMES * tol + _DIGITS * size:
        return solution
    return replace(solution, is_solved=False, violation=excess)


def _off_feasible(program: DualProgram, beta: np.ndarray) -> float:
    """How far the multipliers are outside of their box or off their sums, relative to the box."""
    room = float((program.high - program.low).max(initial=0.0)) or 1.0
    off = float(np.maximum(program.low - beta, beta - program.high).max(initial=0.0))
    for group in program.groups:
        total = float(np.abs(beta[group]).sum() + np.abs(program.start[group]).sum())
        moved = abs(float(beta[group].sum() - program.start[group].sum()))
        off = max(off, moved - 1e-9 * total)
    return max(off, 0.0) / room


def _off_scores(
    program: DualProgram, source: KernelSource, beta: np.ndarray, scores: np.ndarray
) -> float:
    """How far the scores are from K beta at a few rows, beyond the rounding of their sums."""
    index = np.unique(np.linspace(0, source.n - 1, _SOME).astype(np.intp))
    rows = np.empty((len(index), source.n), dtype=source.dtype)
    source.rows(index, rows)
    own = by_row(program, beta, source.n)
    digits = 64 * float(np.finfo(source.dtype).eps)
    rounding = digits * (np.abs(rows) @ np.abs(own))
    return float(np.maximum(np.abs(rows @ own - scores[index]) - rounding, 0.0).max(initial=0.0))
