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

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.problem import Problem
from trueline.selection.spectrum import Spectrum

__all__ = ["fold_coefficients", "r2_from_moments"]

Array = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def fold_coefficients(
    problem: Problem,
    splits: Iterable[Split],
    alphas: Array,
    score: Callable[[Split, Array, Array, Moments | None], float],
) -> Array:
    """Scores of every fold and strength, of shape (folds, number of alphas).

    Parameters
    ----------
    problem : Problem
        Squared loss; the penalty is ignored.
    splits : iterable of (train rows, test rows)
    alphas : array
    score : callable
        Given a split, coefficients (d, k), intercepts (k,) and the moments of the test rows (None
        for wide data): the score of a fitted model.
    """
    n, d = problem.design.shape
    wide = d > n
    total = None if wide else _moments(problem)
    rows = []
    for train, test in splits:
        train, test = np.asarray(train), np.asarray(test)
        train, test = (np.flatnonzero(r) if r.dtype == bool else r for r in (train, test))
        part = _rows(problem, train)
        held, moments = None, None
        if not wide:
            held = _moments(_rows(problem, test))
            moments = _training_moments(problem, total, held, train, test)
        spectrum = Spectrum.of(part, moments, float(alphas.min()))
        scores = []
        for alpha in alphas:
            W, b = spectrum.coefficients(part, float(alpha))
            scores.append(score((train, test), W, b, held))
        rows.append(scores)
    return np.array(rows)


def _rows(problem: Problem, which: NDArray[np.intp]) -> Problem:
    return replace(
        problem,
        design=problem.design.take(which),
        target=problem.target[which],
        weights=None if problem.weights is None else problem.weights[which],
    )


def _training_moments(
    problem: Problem,
    total: Moments | None,
    held: Moments,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> Moments:
    """Total minus test if the two parts make up all rows; else a pass over the training rows."""
    n = problem.n_samples
    seen = np.zeros(n, dtype=np.intp)
    np.add.at(seen, train, 1)
    np.add.at(seen, test, 1)
    if total is not None and (seen == 1).all():
        if held.weight < total.weight:
            return total - held
    return _moments(_rows(problem, train))


def _moments(problem: Problem) -> Moments:
    return Moments.from_rows(problem.design, problem.target, problem.weights)


def r2_from_moments(held: Moments, W: Array, b: Array) -> float:
    """The coefficient of determination on the rows of these moments.

    As scikit-learn defines it: mean over targets; a constant target scores 1 if it is hit exactly
    and 0 otherwise; fewer than two rows give NaN.
    """
    if held.count < 2:
        return float("nan")
    residual = held.residual_square(W)[0]
    off = held.y_mean - held.x_mean @ W - b
    residual = residual + held.weight * off**2
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - residual / held.y_square
    constant = held.y_square == 0
    scores = np.where(constant, np.where(residual == 0, 1.0, 0.0), scores)
    return float(scores.mean())
