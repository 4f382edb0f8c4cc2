r"""What coefficients without a penalty could gain, where a dual point misses their condition.

Such coefficients need V = -X_c^T (s u) = 0, and rounding leaves a little. Another point w' gains at
most V.(w' - w) by it. What is nearly as good as w has scores nearby, ||X_c (w' - w)||_s <= C, so
that with the singular values X_c = U diag(sigma) R^T, columns in units of their own size,

    V.(w' - w)  <=  C || diag(1 / sigma) R^T V ||.

Columns that are nearly copies of others have a tiny sigma: there a small V may hide a large gain,
and the bound says so. Where sigma is rounding, the columns depend on each other as far as anybody
can tell: moving along that direction changes no score, and gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.problem import MomentsProblem, Problem

__all__ = ["Directions", "Free", "is_free", "open_directions", "unpenalised"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Scores whose norm differs by this many times that of the targets are still covered.
_RADIUS = 300.0
# Coefficients so many times larger are covered, where they are taken one by one.
_ONE_BY_ONE = 1000.0
# Eigenvalues of a correlation matrix above this are no rounding.
_CLEAR = 1e-9
# Singular values of the rows themselves are found for so many numbers; there is no bound otherwise.
_MOST_NUMBERS, _MOST_COLUMNS = 4_000_000, 4000


@dataclass(frozen=True)
class Directions:
    """Directions of the coefficients in which the scores change, with how much they do.

    Attributes
    ----------
    columns : array of int
        Those of m coefficients without a penalty.
    target_size, spread : arrays of shape (k,)
        Norms of the (weighted) targets, and about their means if there is an intercept.
    scale : array of shape (m,)
        Norms of the (centred, weighted) columns; one for a column that is constant.
    R : array of shape (m, r)
        The directions, in units of the columns.
    sigma : array of shape (r,)
        How much the scores change along them.
    is_known : bool
        Whether they could be told from rounding.
    """

    columns: NDArray[np.intp]
    target_size: Array
    spread: Array
    scale: Array
    R: Array
    sigma: Array
    is_known: bool = True

    @classmethod
    def of(cls, problem: Problem, free: NDArray[np.bool_]) -> Directions | None:
        """From the correlations of the columns; from the rows if columns are nearly dependent.

        None if no coefficient of shape (d, k) is free.
        """
        columns = np.flatnonzero(free.any(axis=1))
        design, m = problem.design, len(columns)
        if not m:
            return None
        sizes = columns, *_target_sizes(problem)
        nothing = cls(*sizes, np.ones(m), np.zeros((m, 0)), np.zeros(0), is_known=False)
        if m > _MOST_COLUMNS:
            return nothing
        moments = Moments.from_rows(design, np.empty((problem.n_samples, 0)), problem.weights)
        if not problem.fit_intercept:
            moments = moments.about_zero()
        gram, size = moments.gram[np.ix_(columns, columns)], moments.x_size[columns]
        squares = gram.diagonal()
        if not np.isfinite(gram).all():
            return nothing
        if (squares > _CLEAR * size).all():
            scale = np.sqrt(squares)
            values, R = np.linalg.eigh(gram / scale / scale[:, None])
            if values[0] > _CLEAR * m:
                return cls(*sizes, scale, R, np.sqrt(values))
        if design.shape[0] * design.shape[1] > _MOST_NUMBERS:
            return nothing
        return cls._of_rows(problem, columns, np.sqrt(size))

    @classmethod
    def _of_rows(cls, problem: Problem, columns: NDArray[np.intp], size: Array) -> Directions:
        """The same from rows about the means, for columns of given norms before that."""
        X = problem.design.toarray()[:, columns]
        if problem.fit_intercept:
            X = X - X[:1]
            X = X - np.average(X, axis=0, weights=problem.weights)
        if problem.weights is not None:
            X = X * np.sqrt(problem.weights)[:, None]
        scale = np.linalg.norm(X, axis=0)
        varies = scale > 4 * _EPS * size
        scale = np.where(varies, scale, 1.0)
        _, sigma, Rt = np.linalg.svd(np.where(varies, X, 0.0) / scale, full_matrices=False)
        # Entries are known up to the rounding of the columns before they were centred.
        lost = float(np.max(size / scale, initial=1.0, where=varies))
        kept = sigma > 8 * max(X.shape) ** 0.5 * _EPS * lost
        return cls(columns, *_target_sizes(problem), scale, Rt[kept].T, sigma[kept])

    def gain(self, V: Array, error: Array, W: Array) -> Array:
        """The bound of the module's text per target, for V up to an error; inf if unknown.

        Whoever checks it may have to take coefficients one by one: the bound allows for that, up to
        some times the present ones W and those with which a column alone would fit the target.
        """
        V, error, W = V[self.columns], error[self.columns], W[self.columns]
        if not self.is_known:
            return np.where((np.abs(V) + error).any(axis=0), np.inf, 0.0)
        unit, unsure = V / self.scale[:, None], error / self.scale[:, None]
        along = np.abs(self.R.T @ unit) + np.abs(self.R).T @ unsure
        norms = np.sqrt(np.sum((along / self.sigma[:, None]) ** 2, axis=0))
        scores = self.sigma[:, None] * (self.R.T @ (W * self.scale[:, None]))
        covered = _RADIUS * (self.spread + np.sqrt(np.sum(scores**2, axis=0)))
        reach = np.abs(W) + self.target_size / self.scale[:, None]
        one_by_one = np.sum((np.abs(V) + error) * reach, axis=0)
        return np.maximum(covered * norms, _ONE_BY_ONE * one_by_one)


def _target_sizes(problem: Problem) -> tuple[Array, Array]:
    """||y||_s per target, and about the mean if there is an intercept."""
    y = problem.target
    size = np.sqrt(problem.weigh(y**2).sum(axis=0))
    if not problem.fit_intercept:
        return size, size
    mean = problem.weigh(y).sum(axis=0) / problem.total_weight
    return size, np.sqrt(problem.weigh((y - mean) ** 2).sum(axis=0))


class Free(NamedTuple):
    """Coefficients at a point, and which of them no penalty holds.

    Attributes
    ----------
    mask : array of shape (d, k)
    directions : Directions, optional
        Of their columns, if there are any.
    W : array of shape (d, k)
        All coefficients.
    """

    mask: NDArray[np.bool_]
    directions: Directions | None
    W: Array

    @classmethod
    def of(cls, problem: Problem, mask: NDArray[np.bool_], W: Array) -> Free:
        """With the directions, which cost a pass over the data."""
        return cls(mask, Directions.of(problem, mask), W)

    def gain(self, V: Array, error: Array) -> Array:
        """What they could gain per target, as their V does not vanish."""
        if self.directions is None:
            return np.zeros(V.shape[1])
        V, error = np.where(self.mask, V, 0.0), np.where(self.mask, error, 0.0)
        return self.directions.gain(V, error, self.W)


def open_directions(problem: Problem) -> Directions | None:
    """The directions of all columns, if there is no penalty at all."""
    shape = (problem.n_features, problem.n_targets)
    return Directions.of(problem, np.full(shape, "none" in problem.penalty.capabilities))


def unpenalised(problem: Problem | MomentsProblem) -> NDArray[np.bool_]:
    """Which coefficients are free of any penalty, of shape (d, k): their V must vanish."""
    shape = (problem.n_features, problem.n_targets)
    penalty = problem.penalty
    if "coordinates" not in penalty.capabilities:
        return np.zeros(shape, dtype=bool)
    endless = np.isinf(penalty.lower) & np.isinf(penalty.upper)
    free = (np.asarray(penalty.linear) == 0) & (np.asarray(penalty.curvature) == 0) & endless
    return np.broadcast_to(free, shape)


def is_free(problem: Problem, error: Array) -> NDArray[np.bool_]:
    """Coefficients whose condition is V = 0: no penalty holds them, or one lost in rounding.

    An absolute value of strength l keeps V within [-l, l]; where V itself is known no better than
    that, it holds nothing.
    """
    shape = (problem.n_features, problem.n_targets)
    linear = np.broadcast_to(problem.penalty.linear, shape)
    curvature = np.broadcast_to(problem.penalty.curvature, shape)
    return (curvature == 0) & (linear <= 2 * error)
