r"""The problem of a search, from the moments of the rows.

    minimise    1/2 sum_i s_i (y_i - x_i.w - b)^2 + l2/2 ||w||^2 + alpha ||w||_0,    ||w||_0 <= k

is a quadratic function of w once the best intercept is put in. Columns are scaled so that the
diagonal of the Gram matrix (with l2) is one: supports and values do not change, rounding does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.doubled import UNIT, centred_products, divided
from trueline.best_subset.node import Quadratic, correlation
from trueline.best_subset.rounding import is_doubtful
from trueline.moments import Moments
from trueline.numerics.precision import two_sum
from trueline.problem import Problem

__all__ = ["Statement", "state"]

Array = NDArray[np.float64]

# What is left of a copy of another column, relative to its norm: the rounding of its numbers, as
# where both are the same lengths in other units. What is more is a column in its own right.
_COPY = 4.5e-16
_ROWS = 4096
_EPS = float(np.finfo(np.float64).eps)
_MOST_COLUMNS = 20_000
# Up to so many, and so many products, doubled precision takes seconds at most; or no time.
_FEW_COLUMNS, _WORK, _LITTLE_WORK = 200, 1e9, 1e7


@dataclass(frozen=True)
class Statement:
    """A search to be made.

    Attributes
    ----------
    task : Quadratic
        In scaled columns.
    scale : array of shape (d,)
        Norms by which the columns were divided.
    columns : array of bool
        Columns that take part: not constant, and not the copy of one with a lower index.
    moments : Moments
        About the mean, or about zero without intercept.
    """

    task: Quadratic
    scale: Array
    columns: NDArray[np.bool_]
    moments: Moments


def state(problem: Problem, k: int, alpha: float) -> Statement:
    """Form the moments and scale them."""
    d = problem.n_features
    if d > _MOST_COLUMNS:
        raise ValueError(
            f"X has {d:,} columns: the search keeps all products of two columns, which takes "
            f"{8e-9 * d * d:.0f} GB. Choose at most {_MOST_COLUMNS:,} columns first, for instance "
            "those most correlated with the target."
        )
    moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    moments = moments if problem.fit_intercept else moments.about_zero()
    l2 = float(np.max(problem.penalty.curvature))
    columns = _columns(problem, moments, l2)
    gram = moments.gram + l2 * np.eye(d)
    scale = np.where(columns, np.sqrt(gram.diagonal()), 1.0)
    scale[scale == 0] = 1.0
    square = float(moments.y_square[0])
    if square <= 4 * moments.unit * float(moments.y_size[0]):
        square = 0.0  # a constant target, but for the rounding of its mean
    task = Quadratic(
        gram=np.ascontiguousarray(gram / scale[:, None] / scale),
        cross=np.ascontiguousarray(moments.cross[:, 0] / scale) * float(square > 0),
        constant=0.5 * square,
        k=k,
        alpha=alpha,
        rank=math.inf if l2 > 0 else moments.count - int(problem.fit_intercept),
        unit=_unit(moments, gram.diagonal()[columns], moments.x_size[columns], square),
    )
    work = float(problem.n_samples) * d * d
    if d <= _FEW_COLUMNS and work <= _WORK and is_doubtful(task, columns, work <= _LITTLE_WORK):
        task, scale, moments = _doubled(problem, task, columns, moments, l2)
    return Statement(task, scale, columns, moments)


def _doubled(
    problem: Problem, task: Quadratic, columns: NDArray[np.bool_], moments: Moments, l2: float
) -> tuple[Quadratic, Array, Moments]:
    """The same task, its sums taken in doubled precision."""
    d = problem.n_features
    s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    Z = np.ascontiguousarray(np.column_stack([problem.design.toarray(), problem.target]))
    shift = np.append(moments.x_mean, moments.y_mean) * float(problem.fit_intercept)
    rest, rest_low, G, low = centred_products(Z, s, shift, problem.fit_intercept)
    G[np.arange(d), np.arange(d)], carry = two_sum(G.diagonal()[:d], np.full(d, l2))
    low[np.arange(d), np.arange(d)] += carry
    scale = np.append(np.where(columns, np.sqrt(G.diagonal()[:d]), 1.0), 1.0)
    scale[scale == 0] = 1.0
    unit_gram, unit_low = divided(G, low, scale)
    square = float(G[d, d]) if task.constant > 0 else 0.0
    present = np.append(columns, square > 0)
    # What is left of the mean is small beside the spread, unless the shift was far from it.
    magnified = 1.0 + problem.total_weight * rest[present] ** 2 / G.diagonal()[present]
    doubled = replace(
        task,
        gram=np.ascontiguousarray(unit_gram[:d, :d]),
        gram_low=np.ascontiguousarray(unit_low[:d, :d]),
        cross=unit_gram[:d, d] * float(square > 0),
        cross_low=unit_low[:d, d] * float(square > 0),
        constant=0.5 * square,
        unit=(problem.n_samples + 32) * UNIT * float(magnified.max(initial=1.0)),
    )
    mean, mean_low = two_sum(shift, rest)
    mean_low += rest_low
    moments = replace(
        moments,
        x_mean=mean[:d],
        x_mean_low=mean_low[:d],
        y_mean=mean[d:],
        y_mean_low=mean_low[d:],
        gram=G[:d, :d] - l2 * np.eye(d),
        cross=G[:d, d:],
        y_square=G[d:, d],
    )
    return doubled, scale[:d], moments


def _unit(moments: Moments, squares: Array, sizes: Array, y_square: float) -> float:
    """The rounding of the moments, relative to the norms of the columns and of the target."""
    magnified = float(np.max(sizes / squares, initial=1.0))
    if y_square > 0:
        magnified = max(magnified, float(moments.y_size[0]) / y_square)
    return moments.unit * magnified + 8 * _EPS


def _columns(problem: Problem, moments: Moments, l2: float) -> NDArray[np.bool_]:
    """All but constant columns and, without l2 (which two copies share), copies."""
    square = moments.gram.diagonal()
    columns: NDArray[np.bool_] = square > 4 * moments.unit * moments.x_size
    if l2 > 0:
        return columns
    R = np.abs(np.tril(correlation(moments.gram), -1))
    pairs = [(int(i), int(j)) for j, i in np.argwhere(R > 1 - 1e-9) if columns[i] and columns[j]]
    if not pairs:
        return columns
    used = sorted({column for pair in pairs for column in pair})
    place = {column: index for index, column in enumerate(used)}
    mean = moments.x_mean[used] if problem.fit_intercept else np.zeros(len(used))
    values = np.concatenate([block[:, used] - mean for _, block in problem.design.blocks(_ROWS)])
    if problem.weights is not None:
        values *= np.sqrt(problem.weights)[:, None]
    for i, j in pairs:
        first, second = values[:, place[i]], values[:, place[j]]
        factor = (first @ second) / (first @ first)
        left = np.linalg.norm(second - factor * first)
        noise = _COPY * np.sqrt(moments.x_size[j])
        if columns[i] and left <= noise:
            columns[j] = False
    return columns
