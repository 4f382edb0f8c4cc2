r"""Columns that depend on others, where no penalty tells them apart: the answer of least norm.

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
from scipy.linalg import lapack

from trueline.certificates.base import Certificate
from trueline.certificates.choose import certify
from trueline.certificates.duality import certify_dual
from trueline.certificates.tangent import at_most_objective
from trueline.design import AugmentedDesign, DenseDesign, Design, SparseDesign
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Options
from trueline.solvers.least_squares.normal_equations import independent_columns, project, rank_note
from trueline.solvers.least_squares.orthogonal import centred_squares, factor_rows

__all__ = ["IndependentColumns", "is_open", "proof_at"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# A triangular factor of more columns takes longer than most fits.
_MOST_COLUMNS = 2000
# Pivots of a correlation matrix above this are no rounding: the columns are independent.
_CLEAR = 1e-9
# If so many rows per column show that columns are independent, nobody has to read the others.
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
        """None if there are too many columns to tell."""
        d = problem.n_features
        if d > _MOST_COLUMNS and problem.n_samples > _MOST_COLUMNS:
            return None
        every = np.arange(d)
        if _are_clearly_independent(problem):
            return cls(d, None, every, np.zeros(d))
        plain = replace(
            problem,
            target=np.zeros((problem.n_samples, 1)),
            loss=Squared(),
            penalty=NoPenalty(),
        )
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
        )

    def forth(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Coefficients of the columns that are kept, with the same scores."""
        assert self.space is not None
        if not self.rank:
            return np.zeros((1, W.shape[1])), b + self.mean @ W
        own = np.asarray(np.linalg.solve(self.space[self.kept].T, self.space.T @ W), np.float64)
        return own, b + self.mean @ W - self.mean[self.kept] @ own


def is_open(problem: Problem) -> bool:
    """Whether the scores alone decide: no penalty, and a loss that bends but is not quadratic."""
    known = problem.loss.capabilities
    curvatures = bool({"bend", "curvature"} & known) and "quadratic" not in known
    return curvatures and "none" in problem.penalty.capabilities


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
