r"""Grids of strengths that come from the data, and go on beyond their ends.

What a strength does depends on the units of the columns, on those of the target and on the number
of rows, so that no fixed list serves all data. Here s are the weights of the rows, and

    T = sum_i s_i ||x_i - mean||^2

is the sum of the eigenvalues of the centred Gram matrix.

===================  =============================================================================
penalty              the grid begins at the strength that
===================  =============================================================================
absolute values      is the least that leaves no column: max_j |sum_i s_i x_ij r_i|, with r the
                     residuals of the best constant
squares              shrinks every direction at least by half: T, for least squares; for losses of
                     classes the curvature of the loss times T / sqrt(min(n, d)), between the bounds
                     T and T / min(n, d) of the largest eigenvalue
===================  =============================================================================

A grid ends a few powers of ten below. That is a start only: where the best score is at an end, the
grid is continued there (:mod:`trueline.evaluation.grids.search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.evaluation.grids.fits import Setting
from trueline.evaluation.task import Task

__all__ = ["Axis", "Values", "absolute_alphas", "absolute_costs", "squared_alphas", "squared_costs"]

# A grid goes on by a factor of a hundred at a time.
_DECADES = 2.0
# Strengths for each power of ten, and the powers of ten that a grid has at first.
_ABSOLUTE = 20 / 3, 3.0
_SQUARED = 2.0, 8.0
_ABSOLUTE_COSTS = 2.0, 4.0
_SQUARED_COSTS = 1.0, 6.0
# The most strengths that a grid has at first.
_MOST = 40
# How often a grid is continued. Paths of least squares are cheap; fits of classes with next to no
# penalty are not.
_OFTEN, _SELDOM = 6, 2
# The curvature of the logistic loss where both classes are as likely; of the squared hinge loss.
_LOGISTIC, _SQUARED_HINGE = 0.25, 1.0


@dataclass(frozen=True)
class Axis:
    """The one parameter that varies in a grid of our own.

    Attributes
    ----------
    name : str
    factor : float
        From a value to the next, less simple one.
    extensions : int
        How often the grid may be continued at an end.
    leaves_nothing : bool
        Whether no column is left at the simple end, so that there is nothing beyond it.
    """

    name: str
    factor: float
    extensions: int
    leaves_nothing: bool = False

    def beyond(self, settings: Sequence[Setting], is_simple_end: bool) -> list[Setting]:
        """The settings that continue a grid at one end, the simplest first."""
        if is_simple_end and self.leaves_nothing:
            return []
        count = max(1, round(_DECADES / abs(np.log10(self.factor))))
        if is_simple_end:
            first, powers = settings[0], -np.arange(count, 0, -1)
        else:
            first, powers = settings[-1], np.arange(1, count + 1)
        values = float(first[self.name]) * self.factor ** powers.astype(float)
        return [{**first, self.name: float(v)} for v in values if 0 < v < np.inf]


@dataclass(frozen=True)
class Values:
    """A grid along one axis."""

    axis: Axis
    values: list[float]

    def behind(self, prefix: str) -> Values:
        """The same for a step of a pipeline."""
        axis = self.axis
        moved = Axis(prefix + axis.name, axis.factor, axis.extensions, axis.leaves_nothing)
        return Values(moved, self.values)

    @property
    def settings(self) -> list[Setting]:
        return [{self.axis.name: value} for value in self.values]


def absolute_alphas(task: Task, model: Any) -> Values:
    """From the least strength that leaves no column down to a thousandth of it.

    Of an elastic net, whose squares do not know the units of the target, down to where the squares
    are a thousandth of the mean eigenvalue of the Gram matrix if that is farther.
    """
    s, ratio = _weights(task), float(getattr(model, "l1_ratio", 1.0))
    y, total = task.targets[:, 0], float(s.sum())
    top = _largest_slope(task, (y - s @ y / total)[:, None], s) / total / ratio
    density, decades = _ABSOLUTE
    if ratio < 1.0:
        eigenvalue = _spread(task) / total / min(task.matrix.shape)
        bottom = 10.0**-decades * eigenvalue / (1.0 - ratio)
        decades = max(decades, float(np.log10(top) - np.log10(bottom)))
    count = min(round(density * decades), _MOST)
    # The first and the last value are part of the grid.
    axis = Axis("alpha", 10.0 ** (-decades / (count - 1)), _OFTEN, leaves_nothing=True)
    return _made(axis, top, count)


def absolute_costs(task: Task, model: Any) -> Values:
    """C = 1 / strength, from the largest that leaves no column."""
    s = _weights(task)
    classes, codes = task.labels
    member = (codes[:, None] == np.arange(len(classes))).astype(float)
    steepest = _largest_slope(task, member - s @ member / s.sum(), s)
    density, decades = _ABSOLUTE_COSTS
    axis = Axis("C", 10.0 ** (1 / density), _SELDOM, leaves_nothing=True)
    return _made(axis, 1.0 / steepest, round(density * decades) + 1)


def squared_alphas(task: Task, model: Any) -> Values:
    """Powers of ten and what is half-way between them."""
    density, decades = _SQUARED
    axis = Axis("alpha", 10.0 ** (-1 / density), _OFTEN)
    return _made(axis, _power_above(_spread(task)), round(density * decades) + 1)


def squared_costs(task: Task, model: Any) -> Values:
    """Powers of ten."""
    curvature = _LOGISTIC if hasattr(model, "l1_ratio") else _SQUARED_HINGE
    top = curvature * _spread(task) / np.sqrt(min(task.matrix.shape))
    density, decades = _SQUARED_COSTS
    axis = Axis("C", 10.0 ** (1 / density), _SELDOM)
    return _made(axis, 1.0 / _power_above(top), round(density * decades) + 1)


def _made(axis: Axis, first: float, count: int) -> Values:
    values = [float(value) for value in first * axis.factor ** np.arange(count, dtype=float)]
    return Values(axis, [value for value in values if 0 < value < np.inf] or [1.0])


def _weights(task: Task) -> Any:
    return np.ones(task.n_samples) if task.weights is None else task.weights


def _largest_slope(task: Task, residuals: Any, s: Any) -> float:
    """max |X^T (s r)|; one where no column has a slope."""
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = np.abs(np.asarray(task.matrix.T @ (s[:, None] * residuals)))
    return _ordinary(float(slopes.max(initial=0.0)))


def _spread(task: Task) -> float:
    """T; one where no column varies."""
    X, s = task.matrix, _weights(task)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(X.T @ s) / s.sum()
        if sp.issparse(X):
            total = float((X.multiply(X).T @ s).sum() - s.sum() * (mean @ mean))
        else:
            total = float(s @ ((X - mean) ** 2).sum(axis=1))
    return _ordinary(total)


def _ordinary(value: float) -> float:
    return value if 1e-250 < value < 1e250 else 1.0


def _power_above(value: float) -> float:
    return 10.0 ** int(np.ceil(np.log10(value)))
