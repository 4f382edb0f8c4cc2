r"""More columns than rows: the same problem with as many coefficients as there are rows.

Where all coefficients of a target are penalised alike, the best ones lie in the span of the
(centred) rows. With the rows' orthonormal basis Q from X_c^T = Q R,

    w = Q v,      (x_i - m).w = r_i.v,      ||w|| = ||v||,

so that v is the answer for the rows r_i of R^T, as square as there are rows. Norms and objectives
are the same, and so is every gap. (The representer theorem: G. Kimeldorf, G. Wahba, "Some results
on Tchebycheffian spline functions", J. Math. Anal. Appl. 33 (1971) 82-95.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.linalg.lapack import dpstrf, dtrtri

from trueline.certificates.choose import certify
from trueline.certificates.duality import certify_duality
from trueline.design import DenseDesign
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Facts, Options, Solver
from trueline.solvers.loop import Monitor, seen_through

__all__ = ["RowSpace", "is_wide", "narrowed", "narrowing_seconds", "solve_in_row_space"]

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


@dataclass(frozen=True)
class RowSpace:
    """The problem in the span of its rows, and the way between its coefficients and all of them.

    Attributes
    ----------
    problem : Problem
        With one coefficient for each independent row.
    """

    problem: Problem
    _whole: Problem
    _mean: Array
    _basis: Array

    @classmethod
    def of(cls, problem: Problem) -> RowSpace:
        """Factor the rows, centred if there is an intercept; of sparse ones their products."""
        d, k = problem.n_features, problem.n_targets
        has_level = problem.fit_intercept
        mean = problem.design.column_means(problem.weights) if has_level else np.zeros(d)
        if problem.design.is_sparse:
            basis, R = _decomposed(problem.design.kernel(None, mean if has_level else None))
        else:
            X = np.asarray(problem.design.toarray(), dtype=np.float64)
            basis, R = _factored((X - mean).T)
        curvatures = np.broadcast_to(problem.penalty.curvature, (d, k))[0]
        narrow = replace(
            problem,
            design=DenseDesign(np.ascontiguousarray(R.T)),
            penalty=L2(float(curvatures[0])) if k == 1 else L2(np.tile(curvatures, (len(R), 1))),
        )
        return cls(narrow, problem, mean, basis)

    def back(self, v: Array, level: Array) -> tuple[Array, Array]:
        """All coefficients, and the intercepts that belong to them."""
        W = self._basis @ v
        if self._whole.design.is_sparse:
            W = self._whole.design.rmatvec(W) - np.outer(self._mean, W.sum(axis=0))
        return W, level - self._mean @ W if self.problem.fit_intercept else level

    def forth(self, W: Array, level: Array | None) -> tuple[Array, Array | None]:
        """The coefficients in the span of the rows closest to given ones."""
        shift = self._mean @ W
        v = self._whole.design.matvec(W) - shift if self._whole.design.is_sparse else W
        return self._basis.T @ v, None if level is None else level + shift

    @property
    def note(self) -> str:
        """What was done, for the report."""
        narrow, whole = self.problem.n_features, self._whole.n_features
        return f"in the span of the rows: {narrow} coefficients in place of {whole}"


def solve_in_row_space(
    solver: Solver, problem: Problem, options: Options, monitor: Monitor
) -> Solution:
    """Let a solver find v, and prove w."""
    space = RowSpace.of(problem)
    if options.start is not None:
        start, level = space.forth(options.start, options.start_intercept)
        options = replace(options, start=start, start_intercept=level)
    found = solver.solve(space.problem, options, seen_through(monitor, space.back))
    W, b = space.back(found.coef, found.intercept)
    # Multipliers belong to rows, which are the same ones.
    small = found.certificate
    dual = None if small is None else small.witness.get("dual")
    proof = certify(problem, W, b) if dual is None else certify_duality(problem, W, b, dual)
    return replace(found, coef=W, intercept=b, proof=proof, notes=[*found.notes, space.note])


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


def _decomposed(kernel: Array) -> tuple[Array, Array]:
    """The same from A A^T = L L^T: R = L^T, and the M with Q = A^T M.

    Sparse rows of many columns would have a dense Q. Cholesky's factorisation with pivoting takes
    independent rows first; with L_1 their part of L, M is L_1^-T in those rows and zero elsewhere.
    Directions are lost whose share in the rows is below the root of rounding. (N. J. Higham,
    "Accuracy and Stability of Numerical Algorithms", 2nd ed. (2002), section 10.3.)
    """
    largest = float(kernel.diagonal().max(initial=0.0))
    factor, order, rank, _ = dpstrf(kernel, lower=1, tol=_DEPENDENT * largest)
    rank, order = max(1, int(rank)), order - 1
    L = np.empty((len(kernel), rank))
    L[order] = np.tril(factor)[:, :rank]
    inverse, _ = dtrtri(factor[:rank, :rank], lower=1)
    M = np.zeros_like(L)
    M[order[:rank]] = np.tril(inverse).T
    return M, L.T
