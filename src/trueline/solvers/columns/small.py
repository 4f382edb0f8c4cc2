r"""Proximal Newton steps over all columns of small sparse data.

What :class:`~trueline.solvers.columns.descent.ColumnDescent` does with working sets, without them:
where a pass over the data takes less than a millisecond the slopes of all columns are looked at
before every step, and a step is a handful of calls. Losses are nowhere steeper than L: a column
with L sum_i s_i abs(x_ij) <= l_j, as most rare words are, has no coefficient at any minimum and is
not looked at. The model of a step is swept a few times
(G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression",
J. Mach. Learn. Res. 13 (2012) 1999-2030). Once little is wrong, signs are settled and sweeps are
slow: conjugate gradients on the entries that are not zero go on then, as exactly as the step is
worth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.design import SparseDesign
from trueline.design.sparse import LARGE
from trueline.problem import Problem
from trueline.solvers.curved.levels import best_levels

__all__ = ["SmallDescent", "is_small"]

Array = NDArray[np.float64]

_SWEEPS, _CONJUGATE = 4, 60
# The model is swept until this share of the violation is left; conjugate gradients begin when so
# much is left of the first violation.
_MODEL_LEFT, _SETTLED = 0.1, 1e-3
_SUFFICIENT, _HALVINGS = 0.01, 30
# Roots of curvatures by which nothing is divided.
_FLAT = 1e-100
_ROUNDING = 1e-13
# Steps in a row that do not halve the violation: then working sets are better.
_PATIENCE = 6


def is_small(problem: Problem) -> bool:
    """Whether this is made for the problem: few entries, one score, curvature, absolute values."""
    design, loss = problem.design, problem.loss.capabilities
    return (
        isinstance(design, SparseDesign)
        and 0 < design.nonzeros < LARGE
        and problem.n_targets == 1
        and "self_concordant" in loss
        and float(np.min(problem.penalty.linear)) > 0
    )


class SmallDescent:
    """The state of the method.

    Parameters
    ----------
    problem : Problem
        One for which :func:`is_small`.
    linear, quad : arrays of shape (d,)
        Strengths of absolute values and of squares.
    V : array of shape (d + 1, 1)
        Where to start, the intercept last.

    Attributes
    ----------
    V : array of shape (d + 1,)
    about : float
        The gap, but for rounding.
    steps, sweeps : int
        How many there were.
    """

    def __init__(self, problem: Problem, linear: Array, quad: Array, V: Array) -> None:
        assert isinstance(problem.design, SparseDesign)
        X = problem.design.by_columns
        self._parts = X.data, X.indices.astype(np.int32, copy=False), X.indptr
        self._problem = problem
        n, d = problem.design.shape
        self.V = V[:, 0].copy()
        self._y = problem.target[:, 0]
        self._s = np.ones(n) if problem.weights is None else problem.weights
        self._z = (X @ self.V[:-1] if self.V[:-1].any() else np.zeros(n)) + self.V[-1]
        self._G, self._bends, self._means = np.empty(d), np.empty(d), np.empty(d)
        self._active, self._scaled = np.empty(d, np.int64), np.empty(len(X.data))
        self._steepest = self._slope_bounds()
        self._losses = self._value(self._z)
        self.steps = self.sweeps = 0
        self.use(linear, quad)

    def use(self, linear: Array, quad: Array) -> None:
        """Go on with other strengths."""
        self._linear, self._quad = linear, quad
        # The columns that may have a coefficient, at a minimum or here.
        self._candidates = np.flatnonzero((self._steepest > linear) | (self.V[:-1] != 0))
        self._first = 0.0
        self.look()

    @property
    def strengths(self) -> tuple[Array, Array]:
        """Of absolute values and of squares."""
        return self._linear, self._quad

    def _slope_bounds(self) -> Array:
        """How steep the losses can be along each column."""
        from trueline.solvers.columns.small_kernels import find_reaches

        reach = np.empty(self._problem.n_features)
        find_reaches(*self._parts, self._s, reach)
        return reach * (self._problem.loss.slope_bound * (1 + 1e-9))

    def _value(self, z: Array) -> float:
        return float(self._s @ self._problem.loss.value(self._y, z))

    def _penalty(self, own: Array) -> float:
        """Of the columns in play, whose coefficients these are."""
        linear, quad = self._linear[self._chosen], self._quad[self._chosen]
        return float(linear @ np.abs(own) + 0.5 * (quad @ own**2))

    def look(self) -> None:
        """Slopes and curvatures at the present point."""
        from trueline.solvers.columns.small_kernels import find_slopes

        u, h = self._problem.loss.derivatives(self._y, self._z)
        u, self._h = self._s * u, self._s * h
        self._level = 0.0, 0.0
        if self._problem.fit_intercept:
            self._level = float(self._h.sum()), float(u.sum())
        own, strengths = self.V[:-1], (self._linear, self._quad)
        count, self.violation, (gap, excess, squares) = find_slopes(
            *self._parts, self._candidates, u, own, *strengths, self._G, self._active
        )
        self._chosen = self._active[:count].copy()
        self.objective = self._losses + self._penalty(own[self._chosen])
        self._first = max(self._first, self.violation)
        self.about = gap + min(excess * self.objective, squares)

    def approach(self, target: float, most: int) -> bool:
        """Steps until the gap is about as small as the target; False if that would not pay."""
        least, idle = self.violation, 0
        while not self.about <= target:
            if self.steps >= most or idle > _PATIENCE or not self.step():
                return False
            idle = 0 if self.violation < 0.5 * least else idle + 1
            least = min(least, self.violation)
        self._balance()
        return True

    def _balance(self) -> None:
        """The best intercept for these coefficients: proofs want it as exact as can be."""
        if self._problem.fit_intercept:
            z = self._problem.design.matvec(self.V[:-1]) + self.V[-1]
            self.V[-1] += best_levels(
                self._problem.loss, self._problem.target, z[:, None], self._s
            )[0]

    def step(self) -> bool:
        """One step; False if rounding leaves none to be made."""
        from trueline.solvers.columns.small_kernels import (
            scale_about_means,
            solve_face,
            solve_model,
        )

        V, chosen, (total, slope) = self.V[:-1], self._chosen, self._level
        root = np.sqrt(self._h)
        slopes = self._G[chosen]
        sides = self._quad, self._G, self._scaled, self._bends, self._means
        scale_about_means(*self._parts, root, chosen, self._level, *sides)
        D, q = np.zeros(len(V)), np.zeros(len(root))
        columns = self._scaled, *self._parts[1:]
        rest = q, V, D, self._G, self._bends, self._linear, self._quad
        enough = _MODEL_LEFT * self.violation
        count, mean = solve_model(
            *columns, chosen.copy(), total, self._means, 0.0, *rest, _SWEEPS, enough
        )
        self.sweeps += count
        share = self.violation / self._first
        if share <= _SETTLED:
            face = chosen[V[chosen] + D[chosen] != 0]
            left = max(share, 1e-6)
            _, mean = solve_face(*columns, face, total, self._means, mean, *rest, _CONJUGATE, left)
        self.steps += 1
        shift = -slope / total - mean if total > 0 else 0.0
        change = q / root if root.min() > _FLAT else self._problem.design.matvec(D)
        return self._move(D, shift, change + shift, float(slopes @ D[chosen]) + slope * shift)

    def _move(self, D: Array, shift: float, change: Array, promise: float) -> bool:
        """Along the step, half as far as long as it promises too much."""
        chosen = self._chosen
        V, D = self.V[chosen], D[chosen]
        penalty = self._penalty(V)
        promise += float(self._linear[chosen] @ (np.abs(V + D) - np.abs(V)))
        if not promise < 0:
            return False
        t, slack = 1.0, _ROUNDING * self.objective
        for _ in range(_HALVINGS):
            z = self._z + t * change
            losses = self._value(z)
            rise = losses - self._losses + self._penalty(V + t * D) - penalty
            if rise <= _SUFFICIENT * t * promise + slack:
                self.V = self.V.copy()
                self.V[chosen] += t * D
                self.V[-1] += t * shift
                self._z, self._losses = z, losses
                self.look()
                return True
            t *= 0.5
        return False
