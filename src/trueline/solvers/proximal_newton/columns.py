r"""Proximal Newton steps on the columns in play: those with a coefficient, or that ask for one.

    P(V) = sum_i s_i l(y_i, x_i.V + b) + sum_jt ( l_j abs(V_jt) + a_j/2 V_jt^2 )

The slopes of all columns are looked at before every step; most columns are at zero and stay there.
A step goes along the minimum of a quadratic model of the columns in play
(:mod:`trueline.solvers.proximal_newton.models`). Where a whole step promises too much, the losses
along it plus the chord of the penalty are minimised: the penalty is convex, below its chord.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.design import DenseDesign
from trueline.problem import Problem
from trueline.solvers.line_search import minimise_along
from trueline.solvers.newton.dense.descent import best_levels
from trueline.solvers.proximal_newton.models import least_penalised, make_model

__all__ = ["ColumnDescent"]

Array = NDArray[np.float64]

_SUFFICIENT = 0.01


class ColumnDescent:
    """The state of the method.

    Parameters
    ----------
    problem : Problem
        With one score, or coupled ones.
    linear, quad : arrays of shape (d,)
        Strengths of absolute values and of squares.
    V : array of shape (d + 1, k)
        Where to start, intercepts last.

    Attributes
    ----------
    V, Z : arrays of shape (d + 1, k) and (n, k)
        Coefficients with intercepts last, and scores.
    chosen : array of shape (m,)
        The columns in play; ``own`` and ``G`` are their coefficients and the slopes of losses and
        squares, of shape (m, k), and ``slope`` those of the intercepts.
    curvature : array of shape (n, k)
        s_i l'', or the probabilities of coupled scores.
    violation, first : float
        Sum of the distances of zero from the slopes, and the largest there was.
    gap : float
        The gap but for rounding and the intercept.
    """

    def __init__(self, problem: Problem, linear: Array, quad: Array, V: Array) -> None:
        self._problem, self.linear, self.quad = problem, linear, quad
        self.fit_intercept = problem.fit_intercept
        self.loss = problem.loss
        self.is_coupled = "coupled" in problem.loss.capabilities
        n, d = problem.n_samples, problem.n_features
        self.s = np.ones(n) if problem.weights is None else problem.weights
        self.design, self._centre = problem.design, np.zeros(d)
        if self.design.is_sparse:
            X = self.design.by_columns
            indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
            self.entries = X.data, indices, indptr
        else:
            A = np.array(self.design.toarray(), dtype=np.float64, order="F")
            if self.fit_intercept:
                self._centre = A.mean(axis=0)
                A -= self._centre
            self.design = DenseDesign(A)
            places = np.tile(np.arange(n, dtype=np.int32), d)
            self.entries = A.ravel(order="K"), places, n * np.arange(d + 1)
        self.V, self.first, self.steps = V.copy(), 0.0, 0
        self.V[-1] += self._centre @ V[:-1]
        self.Z = self._scores()
        self._model = make_model(self)
        self.evaluate()

    @property
    def sweeps(self) -> int:
        """How often coordinate descent went through the columns in play."""
        return self._model.sweeps

    def _scores(self) -> Array:
        return self.design.matvec(self.V[:-1]) + self.V[-1]

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients, and intercepts of columns that are not centred."""
        W = self.V[:-1].copy()
        b = self.V[-1] - self._centre @ W
        # Coupled scores may all be shifted by the same: intercepts are those that add up to zero.
        return W, b - b.mean() if self.is_coupled else b

    def balance(self) -> None:
        """The best intercepts for these coefficients, and scores afresh."""
        self.Z = self._scores()
        if self.fit_intercept:
            shift = best_levels(self.loss, self._problem.target, self.Z, self.s)
            self.V = self.V.copy()
            self.V[-1] += shift
            self.Z = self.Z + shift
        self.evaluate()

    def evaluate(self) -> None:
        """Slopes and curvatures at the present point, and who is in play."""
        loss, y, s = self.loss, self._problem.target, self.s[:, None]
        if self.is_coupled:
            u, self.curvature = s * loss.gradient(y, self.Z), loss.bending(y, self.Z)
        else:
            first, second = loss.derivatives(y, self.Z)
            u, self.curvature = s * first, s * second
        G, V = self.design.rmatvec(u), self.V[:-1]
        beyond = np.abs(G) - self.linear[:, None]
        chosen = np.flatnonzero(((V != 0) | (beyond > 0)).any(axis=1))
        self.chosen, self.own, G = chosen, V[chosen], G[chosen]
        linear, quad = self.linear[chosen, None], self.quad[chosen, None]
        excess = np.maximum(beyond[chosen], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.where(excess > 0, excess / linear, 0.0).max(initial=0.0))
            squares = float(np.where(excess > 0, excess * (0.5 * excess / quad), 0.0).sum())
        penalty = self._penalty(self.own)
        self.objective = float((s * loss.value(y, self.Z)).sum()) + penalty
        self.gap = penalty + float((G * self.own).sum()) + min(ratio * self.objective, squares)
        self.G = G + quad * self.own
        self.slope = u.sum(axis=0) if self.fit_intercept else np.zeros(u.shape[1])
        away = np.abs(self.G + linear * np.sign(self.own))
        self.violation = float(np.where(self.own != 0, away, excess).sum())
        self.first = max(self.first, self.violation)

    def _penalty(self, own: Array) -> float:
        """Of the columns in play, whose coefficients these are."""
        linear, quad = self.linear[self.chosen, None], self.quad[self.chosen, None]
        return float((linear * np.abs(own) + 0.5 * quad * own**2).sum())

    def step(self) -> bool:
        """One step; False if rounding leaves none to be made."""
        D, shift, change = self._model.solve(self)
        if change is None:
            whole = np.zeros_like(self.V[:-1])
            whole[self.chosen] = D
            change = self.design.matvec(whole) + shift
        self.steps += 1
        t = self._model.length = self._length(D, shift, change)
        if t == 0.0:
            return False
        self.V, self.Z = self.V.copy(), self.Z + t * change
        self.V[self.chosen] = self.own + D if t == 1.0 else self.own + t * D
        self.V[-1] += t * shift
        if self.is_coupled:
            # The same shift of all scores changes no loss: only the penalty decides about it.
            aside, strengths = np.zeros((len(self.V) - 1, 1)), (self.linear, self.quad)
            own = (strength[self.chosen] for strength in strengths)
            aside[self.chosen] = least_penalised(self.V[self.chosen], *own)
            if aside.any():
                self.V[:-1] -= aside
                self.Z = self.Z - self.design.matvec(aside)
        self.evaluate()
        return True

    def _length(self, D: Array, shift: Array, change: Array) -> float:
        """How far along a step, which is as far as it helps."""
        loss, y, s = self.loss, self._problem.target, self.s[:, None]
        linear, quad = self.linear[self.chosen, None], self.quad[self.chosen, None]
        # Where no sign changes, the difference of absolute values is known without rounding.
        ahead, signs = self.own + D, np.sign(self.own)
        rises = np.where(ahead * signs > 0, signs * D, np.abs(ahead) - np.abs(self.own))
        chord = float((linear * rises).sum())
        promise = float((self.G * D).sum() + self.slope @ shift) + chord
        if not promise < 0:
            return 0.0
        own, across = float((quad * self.own * D).sum()), float((quad * D**2).sum())
        weighted = s * change

        def slope(t: float) -> tuple[float, float]:
            Z = self.Z + t * change
            bent = loss.bend(loss.bending(y, Z), change)
            at = float((weighted * loss.gradient(y, Z)).sum()) + own + t * across + chord
            return at, float((weighted * bent).sum()) + across

        after = float((s * (loss.value(y, self.Z + change) - loss.value(y, self.Z))).sum())
        rise = after + own + 0.5 * across + chord
        is_good = rise <= _SUFFICIENT * promise
        return 1.0 if is_good else minimise_along(slope, promise, 1.0)
