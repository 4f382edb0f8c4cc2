r"""k-fold cross-validation of ridge regression from fold moments.

The moments of the training rows are those of all rows minus those of the test rows; the score on
the test rows follows from their own moments,

    sum over the fold of (y - prediction)^2 = residual square about the fold's means
                                              + (rows of the fold) (mean error)^2,

so that after one pass over the data nothing depends on the number of rows. Wide data use blocks of
one kernel matrix instead. Any splitter will do: rows that are in neither part, or in several test
parts, only cost a pass of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.problem import Problem
from trueline.solvers.spectrum import Spectrum

__all__ = ["Fold", "fold_scores", "make_folds", "r2_from_moments"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp] | slice


class Fold:
    """Training and test rows, and the moments of the test rows (none for wide data)."""

    def __init__(self, problem: Problem, train: Any, test: Any) -> None:
        n, d = problem.design.shape
        self.problem = problem
        self.train, self.test = _as_rows(train), _as_rows(test)
        self.held = _moments(_take(problem, self.test)) if n > d else None

    def counts(self) -> NDArray[np.intp]:
        """How often each row stands in either part."""
        seen = np.zeros(self.problem.n_samples, dtype=np.intp)
        for rows in (self.train, self.test):
            index = np.arange(self.problem.n_samples)[rows]
            seen += np.bincount(index, minlength=len(seen))
        return seen

    def training_moments(self, total: Moments) -> Moments:
        """Total minus test if the two parts make up all rows; else a pass of its own."""
        assert self.held is not None
        if (self.counts() == 1).all() and self.held.weight < total.weight:
            return total - self.held
        return _moments(_take(self.problem, self.train))

    def coefficients(self, total: Moments | None, alphas: Array) -> tuple[Array, Array]:
        """Coefficients and intercepts for every strength, from the training rows."""
        smallest = float(alphas.min())
        if total is None:
            part = _take(self.problem, self.train)
            return Spectrum.of(part, None, smallest).coefficients(part, alphas)
        moments = self.training_moments(total)
        spectrum = Spectrum.from_moments(moments, self.problem.fit_intercept)
        if not spectrum.resolves(smallest):
            spectrum = Spectrum.of(_take(self.problem, self.train), moments, smallest)
        return spectrum.coefficients(self.problem, alphas)


def make_folds(
    problem: Problem, splits: Sequence[tuple[Any, Any]]
) -> tuple[list[Fold], Moments | None]:
    """The folds, and the moments of all rows (merged from the folds if these make up all rows)."""
    folds = [Fold(problem, train, test) for train, test in splits]
    n, d = problem.design.shape
    if n <= d or not folds:
        return folds, None
    tested = sum(np.bincount(np.arange(n)[fold.test], minlength=n) for fold in folds)
    if np.all(np.asarray(tested) == 1):
        return folds, reduce(add, [fold.held for fold in folds if fold.held is not None])
    return folds, _moments(problem)


def fold_scores(
    folds: Sequence[Fold],
    total: Moments | None,
    alphas: Array,
    score: Callable[[Fold, Array, Array], Array],
) -> Array:
    """Scores of every fold and strength, of shape (folds, number of alphas).

    Parameters
    ----------
    folds : sequence of Fold
    total : Moments, optional
        Of all rows; None for wide data.
    alphas : array
    score : callable
        Given a fold, coefficients (d, k, number of alphas) and intercepts (k, number of alphas):
        the scores of all strengths.
    """
    return np.array([score(fold, *fold.coefficients(total, alphas)) for fold in folds])


def _as_rows(which: Any) -> Rows:
    """Row numbers, or a slice where they are consecutive, which needs no copy."""
    index = np.asarray(which)
    index = np.flatnonzero(index) if index.dtype == bool else index
    if len(index) and index[-1] - index[0] == len(index) - 1 and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def _take(problem: Problem, which: Rows) -> Problem:
    return replace(
        problem,
        design=problem.design.take(which),
        target=problem.target[which],
        weights=None if problem.weights is None else problem.weights[which],
    )


def _moments(problem: Problem) -> Moments:
    return Moments.from_rows(problem.design, problem.target, problem.weights)


def r2_from_moments(held: Moments, W: Array, b: Array) -> Array:
    """The coefficient of determination on the rows of these moments, for every strength.

    W has shape (d, k, number of alphas), b (k, number of alphas). As scikit-learn defines it: mean
    over targets; a constant target scores 1 if it is hit exactly and 0 otherwise; fewer than two
    rows give NaN.
    """
    k, count = b.shape
    if held.count < 2:
        return np.full(count, np.nan)
    each = np.repeat(np.arange(k), count)
    flat = W.reshape(len(W), -1)
    residual = held.targets(each).residual_square(flat)[0].reshape(k, count)
    off = held.y_mean[:, None] - (held.x_mean @ flat).reshape(k, count) - b
    residual = residual + held.weight * off**2
    spread = held.y_square[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - residual / spread
    hit = np.where(residual == 0, 1.0, 0.0)
    return np.where(spread == 0, hit, scores).mean(axis=0)
