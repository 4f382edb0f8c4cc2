r"""Problems that are solved as other problems: fewer columns, columns alike, targets one by one.

**More columns than rows**: the same problem with as many coefficients as there are rows.

Where all coefficients of a target are penalised alike, the best ones lie in the span of the
(centred) rows. With the rows' orthonormal basis Q from X_c^T = Q R,

    w = Q v,      (x_i - m).w = r_i.v,      ||w|| = ||v||,

so that v is the answer for the rows r_i of R^T, as square as there are rows. Norms and objectives
are the same, and so is every gap. (The representer theorem: G. Kimeldorf, G. Wahba, "Some results
on Tchebycheffian spline functions", J. Math. Anal. Appl. 33 (1971) 82-95.)

**Columns of very different size**: the same problem with columns alike.

With the means m_j of the columns and their sizes t_j about them,

    v_j = t_j w_j,      x_ij w_j + ... + b = (x_ij - m_j)/t_j v_j + ... + (b + m.w),

and a penalty a_j |w_j| + c_j/2 w_j^2 is (a_j/t_j) |v_j| + (c_j/t_j^2)/2 v_j^2. Objectives and gaps
are the same; what differs is how many digits steps and stopping rules see. Sparse columns are not
centred, which would cost them their zeros.

**Targets that have nothing to do with each other** are solved one after the other.

**Columns that depend on others**, where no penalty tells them apart: the answer of least norm.

Without a penalty the objective knows the scores X w + b alone. Where the (centred) columns are
dependent, many coefficients have the same scores, and the one of least norm ||w|| is returned, as
least squares does (the Moore-Penrose answer; the intercept is not part of the norm). With vectors R
that span the row space of X_c, the problem is solved for r columns B that are independent, and

    w = projection on R of the answer for B,      b = b_B + mean.(w_B - w),

which has the same scores. Solvers so never meet a singular Hessian, whose null space they would
fill with rounding. Losses that are quadratic have solvers of their own that do the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack, qr
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpstrf, dtrtri

from trueline.certificates.base import Certificate
from trueline.certificates.choose import certify
from trueline.certificates.duality import certify_dual, certify_duality
from trueline.certificates.tangent import at_most_objective
from trueline.design import AugmentedDesign, DenseDesign, Design, SparseDesign
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.numerics.blas import run_strands
from trueline.penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Facts, Monitor, Options, Solver, seen_through
from trueline.solvers.least_squares.normal_equations import independent_columns, project, rank_note
from trueline.solvers.least_squares.orthogonal import (
    centred_squares,
    factor_dependent,
    factor_rows,
)

Array = NDArray[np.float64]

# Rows for which matrices as square as they are many are no burden.
_MOST_ROWS = 2000
# Pivots below this may be rounding, and are after rows were exchanged.
_DOUBTFUL, _DEPENDENT = 1e-9, 1e-13
# Squared pivots, the columns brought to one, that leave ten digits of orthogonality; and one that
# may be made of rounding.
_INDEPENDENT, _LAST = 1e-5, 1e-9


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
    """A = Q R with orthonormal columns of Q, no more of them than A has independent ones.

    Columns that are clearly independent are orthonormalised by the Cholesky factor of their
    products, in a fraction of the time. Columns that add up to zero are as many less one.
    """
    found = _by_products(A)
    if found is not None:
        return found
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


def _by_products(A: Array) -> tuple[Array, Array] | None:
    """The same by (A^T A) = R^T R, Q = A R^-1, or None where that would cost digits.

    Q^T Q differs from one by rounding divided by the least pivot (N. J. Higham, "Accuracy and
    Stability of Numerical Algorithms", 2nd ed. (2002), section 10.1).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        products = A.T @ A
    size = products.diagonal()
    if not (np.isfinite(products).all() and size.min(initial=np.inf) > 0):
        return None
    unit = np.sqrt(size)
    count = len(size)
    L, trouble = dpotrf(products / np.outer(unit, unit), lower=1, clean=1)
    pivots = L.diagonal() ** 2
    if trouble == count or not pivots[-1] > _LAST:  # the others determine the last one
        count -= 1
    if trouble not in (0, len(size)) or not (pivots[:count] > _INDEPENDENT).all() or count < 1:
        return None
    R = np.zeros((count, len(size)))
    R[:, :count] = (L[:count, :count] * unit[:count, None]).T
    Q = dtrsm(1.0, R[:, :count], A[:, :count], side=1, lower=0)
    R[:, count:] = Q.T @ A[:, count:]
    left = A[:, count:] - Q @ R[:, count:]
    return (Q, R) if np.linalg.norm(left) <= _DEPENDENT * unit.max() else None


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


# Sizes within this factor of each other, and means within so many sizes of zero, do no harm.
_ALIKE, _FAR = 100.0, 30.0
# Larger matrices are not copied for this.
_MOST_ENTRIES = 5e7


def _sizes(problem: Problem) -> tuple[Array, Array]:
    """Means, zero where they stay, and sizes about them, one for columns without any."""
    design, weights = problem.design, problem.weights
    mean = np.zeros(problem.n_features)
    if problem.fit_intercept and not design.is_sparse:
        mean = design.column_means(weights)
    total = float(problem.n_samples if weights is None else weights.sum())
    size = np.sqrt(design.column_squares(weights, mean if mean.any() else None) / total)
    is_flat = size <= 1e-12 * np.abs(mean)
    return mean, np.where((size > 0) & np.isfinite(size) & ~is_flat, size, 1.0)


def is_unbalanced(problem: Problem) -> bool:
    """Whether columns differ so much that steps would lose digits."""
    if problem.design.is_sparse and not isinstance(problem.design, SparseDesign):
        return False
    if problem.design.nonzeros > _MOST_ENTRIES or "elastic" not in problem.penalty.capabilities:
        return False
    mean, size = _sizes(problem)
    if not size.size:
        return False
    return bool(size.max() > _ALIKE * size.min() or (np.abs(mean) > _FAR * size).any())


def solve_balanced(
    solver: Solver, problem: Problem, options: Options, monitor: Monitor
) -> Solution:
    """Let a solver find v, and prove w."""
    mean, size = _sizes(problem)

    def back(v: Array, level: Array) -> tuple[Array, Array]:
        W = v / size[:, None]
        return W, level - mean @ W if problem.fit_intercept else level

    start, level = options.start, options.start_intercept
    if start is not None:
        level = None if level is None else level + mean @ start
        options = replace(options, start=size[:, None] * start, start_intercept=level)
    inner = replace(
        problem,
        design=_balanced(problem.design, mean, size),
        penalty=_scaled(problem, size),
    )
    found = solver.solve(inner, options, seen_through(monitor, back))
    W, b = back(found.coef, found.intercept)
    note = "columns of very different size: solved with all columns scaled alike"
    proof = certify(problem, W, b)
    return replace(found, coef=W, intercept=b, proof=proof, notes=[*found.notes, note])


def _balanced(design: Design, mean: Array, size: Array) -> Design:
    if isinstance(design, SparseDesign):
        return SparseDesign(design.X @ sparse.diags_array(1 / size))

    def scaled(part: Design) -> Design:
        return DenseDesign((np.asarray(part.toarray(), dtype=np.float64) - mean) / size)

    return design.mapped(scaled, design.shape[1])


def _scaled(problem: Problem, size: Array) -> Penalty:
    """The penalty of v."""
    shape = problem.n_features, problem.n_targets
    linear = np.broadcast_to(problem.penalty.linear, shape) / size[:, None]
    curvature = np.broadcast_to(problem.penalty.curvature, shape) / size[:, None] ** 2
    if not linear.any():
        return L2(curvature) if curvature.any() else NoPenalty()
    return (
        L1(linear)
        if not curvature.any()
        else ElasticNet(linear + curvature, linear / (linear + curvature))
    )


def is_separable(problem: Problem) -> bool:
    """Whether a problem is several problems of one target each."""
    return problem.n_targets > 1 and "coupled" not in problem.loss.capabilities


def solve_one_by_one(
    solver: Solver, problem: Problem, options: Options, monitor: Monitor
) -> Solution:
    """Solve for each target alone, and prove all of it together."""

    def solve_for(t: int) -> Solution:
        return solver.solve(only(problem, t), options_for(options, t), monitor)

    # Who watches sees one after the other.
    strand = map if monitor.is_watching else run_strands
    found = list(strand(solve_for, range(problem.n_targets)))
    W = np.hstack([solution.coef for solution in found])
    b = np.concatenate([solution.intercept for solution in found])
    statuses = [solution.status for solution in found]
    worst = next((status for status in statuses if not status.is_final), statuses[0])
    # Multipliers that the targets were proven with prove them together.
    parts = [solution.certificate for solution in found]
    duals = [part.witness.get("dual") for part in parts if part is not None]
    known = [dual for dual in duals if dual is not None]
    if len(known) == problem.n_targets:
        proof = certify_duality(problem, W, b, np.hstack(known))
    else:
        proof = certify(problem, W, b)
    notes = [
        f"{problem.n_targets} targets, each by itself",
        *(f"target {t}: {note}" for t, s in enumerate(found) for note in s.notes),
    ]
    steps = max(solution.n_iter for solution in found)
    return monitor.solution(proof, worst, solver.name, steps, notes=notes)


def only(problem: Problem, t: int) -> Problem:
    """The problem of one target."""
    target = np.ascontiguousarray(problem.target[:, [t]])
    return replace(problem, target=target, loss=problem.loss.of_target(t))


def options_for(options: Options, t: int) -> Options:
    """With the start of one target."""
    start, level = options.start, options.start_intercept
    return replace(
        options,
        start=None if start is None else np.ascontiguousarray(start[:, [t]]),
        start_intercept=None if level is None else level[[t]],
    )


Indices = NDArray[np.intp]

# Gram matrices of more columns, and factorisations of the rows that take more multiplications, take
# longer than most fits.
_MOST_COLUMNS, _MOST_WORK = 2000, 2e10
# Pivots of a correlation matrix above this are no rounding: the columns are independent.
_CLEAR = 1e-9
# If so many rows per column show that columns are independent, the others are not read.
_ROWS_EACH, _FEW_ROWS = 4, 64


@dataclass(frozen=True)
class IndependentColumns:
    """What is known of the columns of a problem.

    Attributes
    ----------
    rank : int
        Of the (centred, weighted) design.
    space : array of shape (d, rank), optional
        Vectors that span the row space, if that is not everything.
    kept : array of int
        Columns that are independent, as many as the rank.
    mean : array of shape (d,)
        Weighted means of the columns; zero without an intercept.
    note : str
        What there is to say.
    """

    rank: int
    space: Array | None
    kept: Indices
    mean: Array
    note: str = ""

    @classmethod
    def of(cls, problem: Problem) -> IndependentColumns | None:
        """None if there are too many columns to find out."""
        n, d = problem.design.shape
        if min(n, d) > _MOST_COLUMNS:
            return None
        every = np.arange(d)
        if _are_clearly_independent(problem):
            return cls(d, None, every, np.zeros(d))
        if n * d * min(n, d) > _MOST_WORK:
            return None
        plain = replace(
            problem,
            target=np.zeros((problem.n_samples, 1)),
            loss=Squared(),
            penalty=NoPenalty(),
        )
        moments = Moments.from_rows(problem.design, plain.target, problem.weights)
        if not problem.fit_intercept:
            moments = moments.about_zero()
        told = factor_dependent(plain, moments)
        if told is not None and told.space is not None and told.dependent is not None:
            size, kept = np.sqrt(moments.gram.diagonal()), np.delete(every, told.dependent)
            note = rank_note(told.space, size, told.dependent)
            return cls(len(kept), told.space, kept, moments.x_mean, note)
        mean = problem.design.column_means(problem.weights) if problem.fit_intercept else None
        factor = factor_rows(plain, mean, np.zeros(d))
        centre = np.zeros(d) if mean is None else mean
        if factor.space is None:
            return cls(d, None, every, centre)
        space = factor.space
        size = np.sqrt(centred_squares(problem, mean))
        kept = independent_columns(space, size)
        if not len(kept):  # no column varies: any of them makes a problem, and zero its answer
            kept = every[:1]
        return cls(space.shape[1], space, kept, centre, rank_note(space, size))

    def part(self, problem: Problem) -> Problem:
        """The problem of the columns that are kept."""
        return replace(problem, design=_columns(problem.design, self.kept))

    def back(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Coefficients of all columns, of least norm, from those of the columns that are kept."""
        full = np.zeros((len(self.mean), W.shape[1]))
        full[self.kept] = W
        return self.least_norm(full, b)

    def least_norm(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Coefficients of least norm with the same scores."""
        assert self.space is not None
        least = project(W, self.space)
        return least, b + self.mean @ (W - least)

    def options(self, options: Options) -> Options:
        """The same options, for the columns that are kept."""
        if options.start is None:
            return options
        level = options.start_intercept
        level = np.zeros(options.start.shape[1]) if level is None else level
        start, level = self.forth(options.start, level)
        return replace(options, start=start, start_intercept=level)

    def lifted(self, problem: Problem, found: Solution) -> Solution:
        """The solution of all columns, of least norm, from one of the columns that are kept."""
        W, b = self.back(found.coef, found.intercept)
        return replace(
            found,
            coef=W,
            intercept=b,
            proof=proof_at(problem, W, b),
            rank=self.rank,
            row_space=self.space,
            notes=[*found.notes, self.note],
            extra={**found.extra, "part": found.proof},
        )

    def forth(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Coefficients of the columns that are kept, with the same scores."""
        assert self.space is not None
        if not self.rank:
            return np.zeros((1, W.shape[1])), b + self.mean @ W
        own = np.asarray(np.linalg.solve(self.space[self.kept].T, self.space.T @ W), np.float64)
        return own, b + self.mean @ W - self.mean[self.kept] @ own


def proof_at(problem: Problem, W: Array, b: Array) -> Certificate:
    """A proof for a point of a problem without a penalty, about the means of the columns."""
    known = problem.loss.capabilities
    if "conjugate" not in known or "coupled" in known:
        return certify(problem, W, b)
    u = problem.loss.gradient(problem.target, problem.scores(W, b))
    return at_most_objective(problem, certify_dual(problem, W, b, u))


def _are_clearly_independent(problem: Problem) -> bool:
    """Whether rounding cannot be what makes the columns look independent.

    If they are on some of the rows, they are on all of them.
    """
    n, d = problem.design.shape
    if n - problem.fit_intercept < d:
        return False
    count = _ROWS_EACH * d + _FEW_ROWS
    samples = [np.arange(n)]
    if 2 * count < n:
        samples = [np.linspace(0, n - 1, count).astype(np.intp), *samples]
    for rows in samples:
        weights = None if problem.weights is None else problem.weights[rows]
        if weights is not None and not weights.any():
            continue
        design = problem.design if len(rows) == n else problem.design.take(rows)
        moments = Moments.from_rows(design, np.empty((len(rows), 0)), weights)
        if not problem.fit_intercept:
            moments = moments.about_zero()
        root = np.sqrt(moments.gram.diagonal())
        if not (root**2 > _CLEAR * moments.x_size).all() or not np.isfinite(root).all():
            continue
        unit = moments.gram / np.outer(root, root)
        if lapack.dpstrf(unit, tol=_CLEAR)[2] == d:
            return True
    return False


def _columns(design: Design, kept: Indices) -> Design:
    """The design of some of the columns."""
    if isinstance(design, AugmentedDesign):
        design = design.materialised()
    if isinstance(design, SparseDesign):
        return SparseDesign(design.X.tocsc()[:, kept].tocsr())
    return DenseDesign(np.ascontiguousarray(design.toarray()[:, kept]))
