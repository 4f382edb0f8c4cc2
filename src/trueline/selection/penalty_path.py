r"""Solutions of the elastic net over a grid of strengths, for all rows and for folds.

    P(alpha):  minimise  1/2 sum_i s_i (y_i - x_i.w - b)^2
                         + S alpha sum_j v_j (r abs(w_j) + (1 - r)/2 w_j^2)

with S the sum of the weights s and v the weights of the features. From moments where there are
many more rows than columns: after one pass over the data neither the grid nor the folds depend on
the number of rows. Otherwise from the columns; a fold is then a set of weights that vanish on its
test rows, so that the data are never copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.guard import Verdict
from trueline.moments import Moments
from trueline.planner import make_plan
from trueline.problem import Problem
from trueline.solvers.coordinate.path import PathPoint, PathWalk, follow_path
from trueline.solvers.coordinate.solver import GramDescent
from trueline.solvers.coordinate.source import MomentsSource, RowsSource, Source
from trueline.solvers.coordinate.terms import Terms
from trueline.threads import single_threaded_blas

__all__ = [
    "Grid",
    "alpha_max",
    "coefficient_matrix",
    "dense_coefficients",
    "solve_grid",
    "source_of",
    "verdicts",
]

Array = NDArray[np.float64]

# Gaps of this share of the target's square are rounding.
_ROUNDING, _UNDERFLOW = 1e-13, 1e-280


@dataclass(frozen=True)
class Grid:
    """Strengths, decreasing, and what they multiply.

    Attributes
    ----------
    alphas : array
        Decreasing.
    unit : Terms
        The penalty at strength one for a sum of weights of one, and the bounds.
    tol : float
        Gap asked for, relative to half the squared norm of the target.
    """

    alphas: Array
    unit: Terms
    tol: float

    def terms(self, total_weight: float) -> list[Terms]:
        """The penalties of all strengths for rows of that total weight."""
        return [self.unit.scaled(factor, factor) for factor in self.alphas * total_weight]


def source_of(problem: Problem, moments: Moments | None = None) -> Source:
    """Where correlations come from: moments if the planner would take them."""
    if moments is None and make_plan(problem).chosen == GramDescent.name:
        moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    if moments is not None:
        if not moments.is_finite():
            raise FloatingPointError("the sums of squares of the data are not finite")
        return MomentsSource(moments, problem.fit_intercept)
    y = problem.target[:, 0]
    return RowsSource(problem.design, y, problem.weights, problem.fit_intercept)


def alpha_max(source: Source, unit: Terms, total_weight: float) -> float:
    """The smallest strength at which all penalised coefficients rest at zero (if they may).

    Columns without a penalty are fitted first.
    """
    free = (unit.linear == 0) & (unit.bend == 0)
    q = source.at(np.zeros((1, 0))).correlation[0]
    if free.any():
        lower, upper = np.where(free, unit.lower, 0.0), np.where(free, unit.upper, 0.0)
        nothing = Terms.of(unit.linear, unit.bend, lower, upper)
        walk = PathWalk(source, [nothing], [1.0], [1e-8])
        while not walk.is_done:
            walk.advance()
        q = np.where(free, 0.0, walk.correlation)
    pull = np.where((q > 0) & (unit.upper <= 0) | (q < 0) & (unit.lower >= 0), 0.0, np.abs(q))
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(unit.linear > 0, pull / unit.linear, 0.0)
    return float(needed.max(initial=0.0)) / total_weight


def solve_grid(
    source: Source,
    grid: Grid,
    total_weight: float,
    start: Array | None = None,
    on_point: Callable[[int, PathPoint], bool] | None = None,
) -> list[PathPoint]:
    """The solutions for all strengths; fewer if ``on_point`` returned True."""
    with single_threaded_blas():
        terms = grid.terms(total_weight)
        return follow_path(source, terms, list(grid.alphas), grid.tol, start, on_point)


def verdicts(points: Sequence[PathPoint], source: Source, grid: Grid) -> list[Verdict]:
    """Whether the gap of each solution is what was asked for, or rounding."""
    allowed = (grid.tol + _ROUNDING) * source.scale + _UNDERFLOW
    return [Verdict(bool(point.gap <= allowed), point.gap, allowed) for point in points]


def coefficient_matrix(points: Sequence[PathPoint], n_features: int) -> sp.csc_array:
    """Coefficients of all points, of shape (d, points)."""
    counts = [len(point.columns) for point in points]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = np.concatenate([point.columns for point in points])
    values = np.concatenate([point.values for point in points])
    return sp.csc_array((values, rows, indptr), shape=(n_features, len(points)))


def dense_coefficients(points: Sequence[PathPoint], n_features: int, dtype: Any) -> NDArray[Any]:
    """Coefficients of all points as an array of shape (d, points).

    One point after the other in memory: pages without a coefficient are never written.
    """
    out = np.zeros((len(points), n_features), dtype=dtype)
    for row, point in zip(out, points, strict=True):
        row[point.columns] = point.values
    return out.T
