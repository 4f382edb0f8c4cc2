"""Sparse columns without any entry: their coefficients are zero, and the rest is solved alone.

Words that do not occur pull at nothing: with a penalty a/2 w_j^2 the best w_j is zero, and V_j = 0
adds nothing to the dual. Objective and gap are those of the other columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import SparseDesign
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Options
from trueline.solvers.loop import Monitor, seen_through
from trueline.wording import counted

__all__ = ["occurring_columns", "solve_on_columns"]

Array = NDArray[np.float64]

# It pays to leave columns out if no more than this share of them occurs.
_SHARE = 0.6


def occurring_columns(problem: Problem) -> NDArray[np.intp] | None:
    """The columns with entries; None where leaving out the others would not pay."""
    design = problem.design
    is_alike = isinstance(problem.penalty.curvature, float) and problem.penalty.curvature > 0
    if not (isinstance(design, SparseDesign) and is_alike):
        return None
    d = problem.n_features
    if d < 1000 or design.nonzeros > 20 * d:  # likely that nearly all occur
        return None
    occurs = np.zeros(d, dtype=bool)
    occurs[design.rows_as_given.indices] = True
    found = np.flatnonzero(occurs)
    return found if len(found) <= _SHARE * d else None


def solve_on_columns(
    solve: Callable[[Problem, Options, Monitor], Solution],
    problem: Problem,
    columns: NDArray[np.intp],
    options: Options,
    monitor: Monitor,
) -> Solution:
    """Solve for the coefficients of these columns; all others are zero."""
    d = problem.n_features
    place = np.zeros(d, dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    assert isinstance(problem.design, SparseDesign)
    X = problem.design.rows_as_given
    few = sp.csr_array((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(columns)))

    def back(W: Array, b: Array) -> tuple[Array, Array]:
        whole = np.zeros((d, W.shape[1]))
        whole[columns] = W
        return whole, b

    if options.start is not None:
        options = replace(options, start=options.start[columns])
    smaller = replace(problem, design=SparseDesign(few))
    found = solve(smaller, options, seen_through(monitor, back))
    W, _ = back(found.coef, found.intercept)
    note = f"{counted(d - len(columns), 'column')} without entries left out: coefficients of zero"
    proof = _of_all(problem, found.certificate, W, found.coef)
    return replace(found, coef=W, proof=proof, notes=[*found.notes, note])


def _of_all(
    problem: Problem, proof: Certificate | None, W: Array, own: Array
) -> Certificate | None:
    """The proof of some coefficients, for all of them."""
    if proof is None:
        return None
    # Whoever checks it sums up all coefficients, and allows a unit of rounding for each.
    units = 1.01 * (problem.n_features - len(own)) * float(np.finfo(np.float64).eps)
    more = units * abs(problem.penalty.value(own))
    return replace(
        proof,
        coef=W,
        objective_rounding=proof.objective_rounding + more,
        gap=proof.gap + more,
    )
