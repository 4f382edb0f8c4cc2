r"""Solutions with coupled targets over a grid of strengths, for all rows and for folds.

    minimise  1/2 sum_i s_i ||y_i - W^T x_i - b||^2
              + S alpha (r sum_j ||W_j|| + (1 - r)/2 ||W||^2),     S the sum of the weights s

From moments where there are many more rows than columns: after one pass over the data neither the
grid nor the folds depend on the number of rows. Otherwise from the columns; a fold is then a set of
weights that vanish on its test rows, so that the data are never copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.design.columns import submatrix
from trueline.guard import Verdict
from trueline.moments import Moments
from trueline.problem import Problem
from trueline.selection.folds import Fold, make_folds
from trueline.solvers.block_descent import prefers_moments, walks_for
from trueline.solvers.blocks.walk import BlockWalk
from trueline.threads import run_strands, single_threaded_blas

__all__ = ["Mixture", "MixturePoint", "alpha_max", "fold_errors", "follow_mixture", "walk_of"]

Array = NDArray[np.float64]

_MAX_STEPS = 200
# Gaps of this share of the targets' square are rounding.
_ROUNDING, _UNDERFLOW = 1e-13, 1e-280


class Mixture(NamedTuple):
    """Strengths, decreasing, the share of the norms, and the gap asked for.

    The gap is relative to half the squared norm of the targets.
    """

    alphas: Array
    l1_ratio: float
    tol: float


class MixturePoint(NamedTuple):
    """A solution: coefficients of shape (k, d), intercepts, the gap, the one allowed, looks."""

    coef: Array
    intercept: Array
    gap: float
    allowed: float
    steps: int

    @property
    def verdict(self) -> Verdict:
        """Whether the gap is what was asked for, or rounding."""
        return Verdict(bool(self.gap <= self.allowed), self.gap, self.allowed)


def walk_of(problem: Problem, moments: Moments | None = None) -> BlockWalk:
    """A walk along the path of a problem with coupled targets; moments are centred if given."""
    n, d = problem.design.shape
    if moments is None and prefers_moments(n, d, problem.n_targets, problem.design.is_sparse):
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    if moments is not None and not problem.fit_intercept:
        moments = moments.about_zero()
    return walks_for(problem, moments)[0]


def alpha_max(walk: BlockWalk, l1_ratio: float, total_weight: float) -> float:
    """The smallest strength at which all coefficients are zero; the walk has not begun."""
    return walk.largest_pull / (total_weight * l1_ratio)


def follow_mixture(
    walk: BlockWalk, mixture: Mixture, total_weight: float
) -> Iterator[MixturePoint]:
    """The solutions for all strengths, one after the other."""
    target = mixture.tol * walk.scale
    d = walk.source.shape[1]
    for strength in mixture.alphas * total_weight:
        linear = np.full(d, strength * mixture.l1_ratio)
        walk.approach(linear, float(strength * (1.0 - mixture.l1_ratio)))
        walk.step(target)  # also if the point before would do: the last digits are cheap
        steps = 1
        while walk.gap > target and not walk.is_stuck and steps < _MAX_STEPS:
            walk.step(target)
            steps += 1
        W = walk.coef()
        allowed = target + _ROUNDING * walk.scale + _UNDERFLOW
        yield MixturePoint(W, walk.intercept(W), walk.gap, allowed, steps)


def fold_errors(
    problem: Problem, splits: Sequence[tuple[Any, Any]], mixtures: Sequence[Mixture]
) -> tuple[Array, list[Verdict]]:
    """Mean squared errors on the test rows, and what is proven of the fits.

    The errors have the shape (mixtures, folds, strengths); the mean is over rows, weighted if they
    are, and over targets.
    """
    n, d = problem.design.shape
    folds: list[Fold] = []
    total: Moments | None = None
    if prefers_moments(n, d, problem.n_targets, problem.design.is_sparse):
        folds, total = make_folds(problem, splits)

    def errors(task: tuple[Mixture, int]) -> tuple[Array, list[Verdict]]:
        mixture, number = task
        train, test = splits[number]
        index = np.arange(n)
        if total is not None:
            moments = folds[number].training_moments(total)
            walk, weight = walk_of(problem, moments), moments.weight
        else:
            counts = np.bincount(index[train], minlength=n).astype(float)
            weights = counts if problem.weights is None else counts * problem.weights
            part = replace(problem, weights=weights)
            walk, weight = walks_for(part, None)[0], float(weights.sum())
        points = list(follow_mixture(walk, mixture, weight))
        return _test_errors(problem, index[test], points), [point.verdict for point in points]

    with single_threaded_blas():
        tasks = [(mixture, i) for mixture in mixtures for i in range(len(splits))]
        results = run_strands(errors, tasks)
    found = np.reshape([own for own, _ in results], (len(mixtures), len(splits), -1))
    return found, [verdict for _, judged in results for verdict in judged]


def _test_errors(problem: Problem, test: Any, found: list[MixturePoint]) -> Array:
    """Mean squared errors of all points on some rows."""
    Y = problem.target[test]
    weights = None if problem.weights is None else problem.weights[test]
    used = np.flatnonzero(np.any([point.coef.any(axis=0) for point in found], axis=0))
    X = submatrix(problem.design, test, used)
    errors = []
    for point in found:
        scores = X @ point.coef[:, used].T + (point.intercept if problem.fit_intercept else 0.0)
        errors.append(np.average((Y - scores) ** 2, axis=0, weights=weights).mean())
    return np.array(errors)
