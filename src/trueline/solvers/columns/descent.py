r"""Proximal Newton steps restricted to a working set of columns.

The working set holds the columns with a coefficient and those whose slope asks for one. It is
solved until what is left of it is small against what was wrong at first, then all columns are
looked at again. Steps that promise too much are cut as in
:mod:`trueline.solvers.curved.proximal`: the losses along the step plus the chord of the penalty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.losses import Loss
from trueline.solvers.columns.coupled import CoupledModel, suits_hessian
from trueline.solvers.columns.polish import POLISH_LEFT
from trueline.solvers.columns.products import compressed, times
from trueline.solvers.columns.shift import least_penalised
from trueline.solvers.columns.working_set import WorkingSet
from trueline.solvers.curved.levels import best_levels

__all__ = ["ColumnDescent", "least_penalised"]

Array = NDArray[np.float64]

# Conjugate gradients may leave more of the residual as long as this share of the first violation
# is left: the columns in play are going to be others.
_ROUGH, _ROUGH_LEFT = 1e-2, 5e-2
# The working set is solved until this share of the violation is left, in at most so many steps.
_SET_LEFT, _SET_STEPS = 0.1, 8


class ColumnDescent:
    """The state of the method.

    Attributes
    ----------
    V, Z : arrays of shape (d + 1, k) and (n, k)
        Coefficients with intercepts last, and scores.
    G : array of shape (d + 1, k)
        The gradient of the losses and the squares.
    violation : float
        Sum of the distances of zero from the slopes.
    """

    def __init__(
        self,
        design: Design,
        loss: Loss,
        target: Array,
        weights: Array,
        linear: Array,
        quad: Array,
        V: Array,
        fit_intercept: bool,
    ) -> None:
        self.design, self.loss, self.target = design, loss, target
        self.s, self.linear, self.quad = weights, linear, quad
        self.fit_intercept = fit_intercept
        self.is_coupled = "coupled" in loss.capabilities
        self.columns, self.centre = compressed(design, fit_intercept)
        n, d = design.shape
        self.model: CoupledModel | None = None
        if self.is_coupled and not design.is_sparse and suits_hessian(n, d, V.shape[1]):
            self.columns = self.columns.toarray(order="F")
            self.model = CoupledModel(self.columns, weights, fit_intercept, V.shape[1])
        self.V = V.copy()
        self.V[-1] += self.centre @ V[:-1]
        self.Z = self._scores()
        self.sweeps, self.steps = 0, 0
        self.look()
        self._first = self.violation

    def _scores(self) -> Array:
        return times(self.columns, self.V[:-1]) + self.V[-1]

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients, and intercepts of columns that are not centred."""
        W = np.ascontiguousarray(self.V[:-1])
        b = self.V[-1] - self.centre @ W
        # Coupled scores may all be shifted by the same: intercepts are those that add up to zero.
        return W, b - b.mean() if self.is_coupled else b

    def balance(self) -> None:
        """The best intercepts for these coefficients, and scores afresh."""
        self.Z = self._scores()
        if self.fit_intercept:
            shift = best_levels(self.loss, self.target, self.Z, self.s)
            self.V = self.V.copy()
            self.V[-1] += shift
            self.Z = self.Z + shift
        self.look()

    def penalty(self, V: Array) -> float:
        return float(
            (self.linear[:, None] * np.abs(V)).sum() + 0.5 * (self.quad[:, None] * V**2).sum()
        )

    def look(self) -> None:
        """Everything at the present point, for all columns."""
        values = self.s[:, None] * self.loss.value(self.target, self.Z)
        self.objective = float(values.sum()) + self.penalty(self.V)
        u = self.s[:, None] * self.loss.gradient(self.target, self.Z)
        self.G = np.empty_like(self.V)
        self.G[:-1] = times(self.columns, u, is_transposed=True)
        self.G[-1] = u.sum(axis=0) if self.fit_intercept else 0.0
        self.G += self.quad[:, None] * self.V
        self.away = self.distances(self.V, self.G, self.linear)
        self.violation = float(self.away.sum())

    def distances(self, V: Array, G: Array, linear: Array) -> Array:
        """How far each entry is from optimal."""
        strength = linear[:, None]
        resting = np.maximum(np.abs(G) - strength, 0.0)
        return np.where(V != 0, np.abs(G + strength * np.sign(V)), resting)

    def use(self, linear: Array, quad: Array) -> None:
        """Go on with other strengths."""
        self.linear, self.quad = linear, quad
        self.look()
        self._first = self.violation

    @property
    def polish_left(self) -> float:
        """The share of the residual, squared, that conjugate gradients may leave."""
        is_rough = not self.is_coupled and self.violation > _ROUGH * self._first
        return _ROUGH_LEFT if is_rough else POLISH_LEFT

    def about(self) -> float:
        """The gap but for rounding and the intercept, from what is known already."""
        V, G = self.V[:-1], self.G[:-1] - self.quad[:-1, None] * self.V[:-1]
        linear, quad = self.linear[:-1, None], self.quad[:-1, None]
        excess = np.maximum(np.abs(G) - linear, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_level = float(np.where(excess > 0, excess / linear, 0.0).max(initial=0.0))
            by_squares = np.where(excess > 0, excess * (0.5 * excess / quad), 0.0).sum()
        own = float((linear * np.abs(V) + 0.5 * quad * V**2 + G * V).sum())
        return own + min(by_level * self.objective, float(by_squares))

    def round(self) -> None:
        """Solve a working set, and look at all columns again."""
        part = WorkingSet(self)
        for _ in range(_SET_STEPS):
            self.steps += 1
            if part.step() <= _SET_LEFT * self.violation:
                break
        self.sweeps += part.sweeps
        self.look()
