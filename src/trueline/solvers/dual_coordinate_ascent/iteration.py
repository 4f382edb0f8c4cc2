"""What coordinate descent on the dual shares, whatever the conjugate: rows, centre, stopping."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import AugmentedDesign, DenseDesign, Design
from trueline.problem import Problem
from trueline.solvers.base import Options
from trueline.solvers.dual_coordinate_ascent.rows import Rows
from trueline.solvers.iterative import target_gap
from trueline.solvers.loop import Iteration

__all__ = ["DualIteration", "balanced", "random_start", "with_constant"]

Array = NDArray[np.float64]

# How much the constant column bends the dual, relative to what the losses of all rows do at most.
_STIFF = 300.0


class DualIteration(Iteration):
    """w = sum_i beta_i x_i and the centre of the intercept; a step is a sweep over the rows.

    Attributes
    ----------
    target : float
        The gap that is asked for.
    """

    def __init__(self, problem: Problem, options: Options, is_watched: bool) -> None:
        self.problem, self.is_watched = problem, is_watched
        self.has_successor = options.has_successor
        self.target = target_gap(problem, options.tol)
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

    def known_scores(self) -> Array | None:
        """The scores of the coefficients as they are, if they are known."""
        return None

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
