r"""More columns than rows: the same problem with as many coefficients as there are rows.

Where all coefficients of a target are penalised alike, the best ones lie in the span of the
(centred) rows. With the rows' orthonormal basis Q from X_c^T = Q R,

    w = Q v,      (x_i - m).w = r_i.v,      ||w|| = ||v||,

so that v is the answer for the rows r_i of R^T, as square as there are rows. Norms and objectives
are the same, and so is every gap. (The representer theorem: G. Kimeldorf, G. Wahba, "Some results
on Tchebycheffian spline functions", J. Math. Anal. Appl. 33 (1971) 82-95.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from trueline.certificates.choose import certify
from trueline.certificates.duality import certify_duality
from trueline.design import DenseDesign
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Facts, Options, Solver
from trueline.solvers.loop import Monitor, seen_through

__all__ = ["is_wide", "narrowed", "narrowing_seconds", "solve_in_row_space"]

Array = NDArray[np.float64]

# Rows for which matrices as square as they are many are no burden.
_MOST_ROWS = 2000
# Pivots below this may be rounding, and are after rows were exchanged.
_DOUBTFUL, _DEPENDENT = 1e-9, 1e-13


def is_wide(facts: Facts) -> bool:
    """Whether a problem has fewer rows than columns, all of them penalised alike."""
    is_alike = facts.strengths == 1 and not facts.unpenalised
    return is_alike and not facts.is_sparse and facts.n < facts.d and facts.n <= _MOST_ROWS


def narrowed(facts: Facts) -> Facts:
    """The facts of the problem with as many columns as rows."""
    return replace(facts, d=facts.n, nonzeros=facts.n * facts.n)


def narrowing_seconds(facts: Facts) -> float:
    """The basis, and the way back."""
    return 2e-10 * float(facts.n) ** 2 * facts.d + 2e-8 * facts.n * facts.d


def solve_in_row_space(
    solver: Solver, problem: Problem, options: Options, monitor: Monitor
) -> Solution:
    """Let a solver find v, and prove w."""
    d, k = problem.n_features, problem.n_targets
    X = np.asarray(problem.design.toarray(), dtype=np.float64)
    mean = problem.design.column_means(problem.weights) if problem.fit_intercept else np.zeros(d)
    Q, R = _factored((X - mean).T)
    bends = np.broadcast_to(problem.penalty.curvature, (d, k))[0]

    def back(v: Array, level: Array) -> tuple[Array, Array]:
        W = Q @ v
        return W, level - mean @ W if problem.fit_intercept else level

    start, level = options.start, options.start_intercept
    if start is not None:
        level = None if level is None else level + mean @ start
        options = replace(options, start=Q.T @ start, start_intercept=level)
    found = solver.solve(
        replace(
            problem,
            design=DenseDesign(np.ascontiguousarray(R.T)),
            penalty=L2(float(bends[0])) if k == 1 else L2(np.tile(bends, (len(R), 1))),
        ),
        options,
        seen_through(monitor, back),
    )
    W, b = back(found.coef, found.intercept)
    # Multipliers belong to rows, which are the same ones.
    small = found.certificate
    dual = None if small is None else small.witness.get("dual")
    proof = certify(problem, W, b) if dual is None else certify_duality(problem, W, b, dual)
    return replace(
        found,
        coef=W,
        intercept=b,
        proof=proof,
        notes=[*found.notes, f"in the span of the rows: {len(R)} coefficients in place of {d}"],
    )


def _factored(A: Array) -> tuple[Array, Array]:
    """A = Q R with orthonormal columns of Q, no more of them than A has independent ones."""
    Q, R = qr(A, mode="economic", check_finite=False)
    size = np.abs(R.diagonal())
    if size.min(initial=np.inf) > _DOUBTFUL * size.max(initial=0.0) or not np.isfinite(R).all():
        return Q, R
    Q, R, order = qr(A, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    rank = max(1, int(np.count_nonzero(size > _DEPENDENT * size.max(initial=0.0))))
    back = np.empty_like(R[:rank])
    back[:, order] = R[:rank]
    return np.ascontiguousarray(Q[:, :rank]), back
