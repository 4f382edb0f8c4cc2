"""The rows of a design as the kernels of this package take them, and products with some of them.

:class:`DualIteration` is what coordinate ascent on the dual shares, whatever the conjugate: rows,
centre, stopping.

Sparse columns without any entry are left out (:func:`solve_on_columns`). Words that do not occur
have no gradient: with a penalty a/2 w_j^2 the best w_j is zero, and V_j = 0 adds nothing to the
dual. Objective and gap are those of the other columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import AugmentedDesign, DenseDesign, Design, SparseDesign
from trueline.numerics.blas import run_strands
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Iteration, Monitor, Options, seen_through
from trueline.solvers.dual_coordinate_ascent import kernels
from trueline.solvers.iterative import target_gap
from trueline.wording import counted

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Products of so many numbers are worth a second strand.
_MANY = 200_000
# If the largest number is between this and its inverse, squares may be summed in single precision.
_RANGE = 1e12


class Rows:
    """Dense or compressed rows, and the constant that each of them ends with.

    Attributes
    ----------
    size : int
        Number of coefficients, that of the constant included.
    constant : float
    squares : array of shape (n,)
        x_i.x_i
    """

    def __init__(self, design: Design) -> None:
        self.constant = 0.0
        if isinstance(design, AugmentedDesign):
            self.constant = design.constant
            design = design.base
        self.size = design.shape[1] + 1
        self.squares = design.row_squares(None) + self.constant**2
        self._density = design.nonzeros / max(1, design.shape[0])
        self._parts: tuple[Any, ...]
        self._score: Callable[..., None]
        self._pull: Callable[..., None]
        self._sweep: Callable[..., tuple[int, float, float]]
        if isinstance(design, SparseDesign):
            X = design.rows_as_given
            indices, starts = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
            self._parts = X.data, indices, starts
            self._score, self._pull = kernels.score_sparse, kernels.pull_sparse
            self._sweep = kernels.sweep_sparse
        else:
            self._parts = (np.ascontiguousarray(_doubles(design)),)
            self._score, self._pull = kernels.score_dense, kernels.pull_dense
            self._sweep = kernels.sweep_dense

    def sweep(self, *state: Any) -> tuple[int, float, float]:
        """One sweep of coordinate ascent."""
        return self._sweep(*self._parts, self.constant, *state)

    @property
    def compressed(self) -> tuple[Array, NDArray[np.int32], Integers]:
        """Entries, columns and starts of the rows, of dense ones too."""
        if len(self._parts) == 1:
            n, d = self._parts[0].shape
            columns = np.tile(np.arange(d, dtype=np.int32), n)
            self._parts = self._parts[0].ravel(), columns, np.arange(n + 1) * d
            self._score, self._pull = kernels.score_sparse, kernels.pull_sparse
            self._sweep = kernels.sweep_sparse
        data, indices, starts = self._parts
        return data, indices, starts

    def class_sweep(self, *state: Any) -> tuple[int, float]:
        """One sweep of coordinate ascent on the multipliers of several classes."""
        is_dense = len(self._parts) == 1
        sweep: Callable[..., tuple[int, float]] = kernels.class_sweep_sparse
        if is_dense:
            sweep = kernels.class_sweep_dense
        return sweep(self._parts, self.constant, *state)

    def is_short(self, count: int) -> bool:
        """Whether the products of so many rows cost less than what calls them."""
        return len(self._parts) > 1 and len(self._strands(count)) == 1

    def scores(self, rows: Integers, w: Array, constant: float | None = None) -> Array:
        """x_i.w of some rows; those may end with another constant."""
        return self._scores(self._parts, rows, w, self.constant if constant is None else constant)

    def weighted_sum(self, rows: Integers, weights: Array) -> Array:
        """sum_i weights_i x_i over some rows."""
        return self._pulled(self._parts, rows, weights, self.constant)

    def roughly_there_and_back(self, rows: Integers, weights: Array) -> Array:
        """X (X^T weights) for some rows; compressed ones in single precision, in half the time."""
        size = float(np.abs(weights).max(initial=0.0))
        if self._single is None or not size > 0:
            return self.scores(rows, self.weighted_sum(rows, weights))
        pulled = self._pulled(self._single, rows, (weights / size).astype(np.float32), 0.0)
        there = self._scores(self._single, rows, pulled, 0.0).astype(np.float64) * size
        return there + self.constant**2 * weights.sum()

    @cached_property
    def _single(self) -> tuple[Any, ...] | None:
        """Compressed rows in single precision, if their squares are within its range."""
        if len(self._parts) == 1:
            return None
        data, *places = self._parts
        size = max(data.max(initial=0.0), -data.min(initial=0.0))
        if not 1 / _RANGE < size < _RANGE:
            return None
        return data.astype(np.float32), *places

    def _scores(
        self, parts: tuple[Any, ...], rows: Integers, w: NDArray[Any], constant: float
    ) -> NDArray[Any]:
        out = np.empty(len(rows), dtype=w.dtype)

        def work(strand: slice) -> None:
            self._score(*parts, rows[strand], w, constant, out[strand])

        strands = self._strands(len(rows))
        if len(strands) == 1:
            work(strands[0])  # threads would cost more
        else:
            run_strands(work, strands)
        return out

    def _pulled(
        self, parts: tuple[Any, ...], rows: Integers, weights: NDArray[Any], constant: float
    ) -> NDArray[Any]:
        def work(strand: slice) -> NDArray[Any]:
            out = np.zeros(self.size, dtype=weights.dtype)
            self._pull(*parts, rows[strand], weights[strand], constant, out)
            return out

        strands = self._strands(len(rows))
        if len(strands) == 1:
            return work(strands[0])
        first, *others = run_strands(work, strands)
        for other in others:
            first += other
        return first

    def _strands(self, count: int) -> list[slice]:
        """Two halves if they are long."""
        if count * self._density < _MANY:
            return [slice(0, count)]
        return [slice(0, count // 2), slice(count // 2, count)]


def _doubles(design: Design) -> Array:
    if design.dtype == np.float64 and hasattr(design, "X"):
        return np.asarray(design.X)
    return design.toarray()


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


# How much the constant column bends the dual, relative to what the losses of all rows do at most.
_STIFF = 300.0


class DualIteration(Iteration):
    """w = sum_i beta_i x_i and the centre of the intercept; a step is a sweep over the rows.

    Attributes
    ----------
    target : float
        The gap that is asked for.
    enough : float
        Where the loop stops; zero for a method that says so itself.
    """

    def __init__(self, problem: Problem, options: Options, is_watched: bool) -> None:
        self.problem, self.is_watched = problem, is_watched
        self.has_fallback = options.has_fallback
        self.target = self.enough = target_gap(problem, options.tol)
        self.strength = float(np.max(problem.penalty.curvature))
        n = problem.n_samples
        self.weights = np.ones(n) if problem.weights is None else problem.weights
        design, self.mean = with_constant(problem)
        self.rows = Rows(design)
        self.w, self.centre = np.zeros(self.rows.size), 0.0
        self.state = random_start(options)
        self.sweeps, self.evaluated = 0, 0

    def expose(self) -> None:
        """Coefficients and intercept as of now."""
        has_constant = isinstance(self.problem.design, AugmentedDesign)
        self.coef = (self.w if has_constant else self.w[:-1]).reshape(-1, 1)
        self.intercept = np.zeros(1)
        if self.problem.fit_intercept:
            # Where the sweep left it: the centre has followed, and more would be too far.
            self.intercept = self.centre - self.mean @ self.coef

    def move_centre(self) -> None:
        """The multiplier of the intercept follows after each sweep."""
        if self.problem.fit_intercept:
            self.centre += self.rows.constant * float(self.w[-1])

    def refine(self) -> None:
        """More digits than asked for, where they cost hardly anything."""

    def choose(self) -> None:
        """The best of the points seen, where the sweeps end before they have converged."""

    def known_scores(self) -> Array | None:
        """The scores of the coefficients as they are, if they are known."""
        return None

    @abstractmethod
    def dual(self) -> Array:
        """The derivatives u of the losses that the dual variables stand for, of shape (n, 1)."""

    @abstractmethod
    def certify(self) -> Certificate:
        """What the dual variables prove about the present point."""


def random_start(options: Options) -> NDArray[np.uint64]:
    """The state of the random numbers that the kernels draw."""
    seed = 0 if options.random_state is None else options.random_state
    first = _draw(seed) if isinstance(seed, np.random.RandomState) else _drawn(seed)
    return np.array([first], dtype=np.uint64)


@lru_cache(maxsize=64)
def _drawn(seed: int) -> int:
    """What a new generator draws first: to make one takes as long as a sweep over short data."""
    return _draw(np.random.RandomState(seed))


def _draw(generator: np.random.RandomState) -> int:
    return int(generator.randint(1, 2**31 - 1))


def with_constant(problem: Problem) -> tuple[Design, Array]:
    """If there is an intercept: with a constant column, and centred.

    The centre comes the faster the longer the column is; but a long one sways with every row that
    moves. It is as long as the rows, or as the curvature along all of them asks for. The means are
    what was taken off the columns. Sparse rows are left as they are.
    """
    design, mean = problem.design, np.zeros(problem.n_features)
    if not problem.fit_intercept:
        return design, mean
    if not design.is_sparse:
        mean = design.column_means(problem.weights)
        design = DenseDesign(design.toarray() - mean)
    size = float(np.sqrt(np.mean(design.row_squares(None))))
    heaviness = problem.total_weight / float(np.max(problem.penalty.curvature))
    size = min(size, np.sqrt(_STIFF / heaviness)) if size > 0 else 1.0
    return AugmentedDesign(design, size), mean


def balanced(beta: Array) -> Array:
    """With vanishing sum, the heavier of the two signs made lighter."""
    up, down = float(np.maximum(beta, 0).sum()), float(np.maximum(-beta, 0).sum())
    if up > down:
        return np.where(beta > 0, beta * (down / up), beta)
    return beta if up == down else np.where(beta < 0, beta * (up / down), beta)
