"""The rows of a design as the kernels of this package take them, and products with some of them.

:class:`DualIteration` is what coordinate descent on the dual shares, whatever the conjugate: rows,
centre, stopping.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import AugmentedDesign, DenseDesign, Design, SparseDesign
from trueline.numerics.blas import run_strands
from trueline.numerics.gram import fold
from trueline.problem import Problem
from trueline.solvers.base import Iteration, Options
from trueline.solvers.dual_coordinate_descent import kernels
from trueline.solvers.iterative import target_gap

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Products of so many numbers are worth a second strand.
_MANY = 200_000
# So many strands, if each has as many numbers, and of sums so many for each that it clears.
_STRANDS, _WORK_OF_STRAND, _SCATTERED = 32, 50_000, 4


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
        """One sweep of coordinate descent."""
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
        """One sweep of coordinate descent on the multipliers of several classes."""
        return kernels.class_sweep(self.compressed, self.constant, *state)

    def is_short(self, count: int) -> bool:
        """Whether the products of so many rows cost less than what calls them."""
        return len(self._parts) > 1 and len(self._strands(count)) == 1

    def scores(self, rows: Integers, w: Array, constant: float | None = None) -> Array:
        """x_i.w of some rows; those may end with another constant."""
        out, constant = np.empty(len(rows)), self.constant if constant is None else constant

        def work(strand: slice) -> None:
            self._score(*self._parts, rows[strand], w, constant, out[strand])

        run_strands(work, self._strands(len(rows)))
        return out

    def weighted_sum(self, rows: Integers, weights: Array) -> Array:
        """sum_i weights_i x_i over some rows."""

        def work(strand: slice) -> Array:
            out = np.zeros(self.size)
            self._pull(*self._parts, rows[strand], weights[strand], self.constant, out)
            return out

        # Each strand clears and adds sums of its own.
        most = len(rows) * self._density / (_SCATTERED * self.size)
        return fold(run_strands(work, self._strands(len(rows), most)))

    def _strands(self, count: int, most: float = _STRANDS) -> list[slice]:
        """Two parts or more if they are long."""
        parts = min(most, _STRANDS, count * self._density // _WORK_OF_STRAND)
        if count * self._density < _MANY:
            return [slice(0, count)]
        cuts = np.linspace(0, count, max(2, int(parts)) + 1).astype(int)
        return [slice(int(first), int(last)) for first, last in pairwise(cuts)]


class SharedRows(NamedTuple):
    """What all targets of a problem have in common: rows, and what was subtracted from columns."""

    rows: Rows
    mean: Array

    @classmethod
    def of(cls, problem: Problem) -> SharedRows:
        design, mean = with_constant(problem)
        return cls(Rows(design), mean)


def _doubles(design: Design) -> Array:
    if design.dtype == np.float64 and hasattr(design, "X"):
        return np.asarray(design.X)
    return design.toarray()


# Curvature of the dual by the constant column, relative to the most that all losses have.
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

    def __init__(
        self, problem: Problem, options: Options, is_watched: bool, shared: SharedRows
    ) -> None:
        self.problem, self.is_watched = problem, is_watched
        self.has_fallback = options.has_fallback
        self.target = self.enough = target_gap(problem, options.tol)
        self.strength = float(np.max(problem.penalty.curvature))
        n = problem.n_samples
        self.weights = np.ones(n) if problem.weights is None else problem.weights
        self.rows, self.mean = shared
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

    def begin(self, max_iter: int) -> int:
        """Sweeps that nobody watches, in one call; how many. ``is_settled`` if they were enough."""
        return 0

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
        """What the dual variables prove about the current point."""


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

    The centre converges the faster the larger the norm of the column is; but with a large one it
    changes with every row that moves. Its entries are as large as the rows, or as the curvature
    along all of them allows. The means are
    what was subtracted from the columns. Sparse rows are left as they are.
    """
    design, mean = problem.design, np.zeros(problem.n_features)
    if not problem.fit_intercept:
        return design, mean
    if not design.is_sparse:
        mean = design.column_means(problem.weights)
        design = DenseDesign(design.toarray() - mean)
    size = float(np.sqrt(np.mean(design.row_squares(None))))
    weight_over_strength = problem.total_weight / float(np.max(problem.penalty.curvature))
    size = min(size, np.sqrt(_STIFF / weight_over_strength)) if size > 0 else 1.0
    return AugmentedDesign(design, size), mean


def balanced(beta: Array) -> Array:
    """With a sum of zero: the entries of the sign with the larger sum are scaled down."""
    up, down = float(np.maximum(beta, 0).sum()), float(np.maximum(-beta, 0).sum())
    if up > down:
        return np.where(beta > 0, beta * (down / up), beta)
    return beta if up == down else np.where(beta < 0, beta * (up / down), beta)
