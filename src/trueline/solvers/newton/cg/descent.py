r"""Steps of Newton's method, each found by conjugate gradients as exactly as it is worth.

    minimise over V    P(V) = sum_i s_i l(y_i, [x_i, 1].V) + sum a/2 V^2
    H D = -G,          V <- V + t D

The residual of the linear equations is brought down to min(0.1, (|G| / |G_0|)^1/2) of what it was,
in the norm of the preconditioner: convergence is faster than linear (R. S. Dembo, S. C. Eisenstat,
T. Steihaug, "Inexact Newton methods", SIAM J. Numer. Anal. 19 (1982) 400-408). t minimises P along
the step. The preconditioner is renewed when conjugate gradients took longer than they should.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.line_search import minimise_along
from trueline.solvers.newton.cg.precondition import Preconditioner, sampled_rows
from trueline.solvers.newton.cg.rows import Rows
from trueline.solvers.newton.dense.levels import best_levels

__all__ = ["TruncatedDescent"]

Array = NDArray[np.float64]

_COARSE, _FINEST = 0.1, 1e-4
_MOST_INNER = 250
# From this many inner steps on another factor costs less than it saves.
_SLOW = 8


class TruncatedDescent:
    """The state of the method.

    Attributes
    ----------
    V, Z : arrays of shape (d + 1, k) and (n, k)
        Coefficients with intercepts last, and scores.
    G : array of shape (d + 1, k)
        The gradient.
    decrease : float
        What the last step promised, 1/2 G.H^-1 G there.
    products : int
        Hessian-vector products so far.
    """

    def __init__(
        self, rows: Rows, loss: Loss, target: Array, curvatures: Array, V: Array, is_alike: bool
    ) -> None:
        self.rows, self.loss, self.bends = rows, loss, curvatures
        self.target = rows.arranged(target)
        self.is_alike = is_alike
        self.V = V - V.mean(axis=1, keepdims=True) if is_alike else V
        at_zero = rows.arranged(np.broadcast_to(self.V[-1], target.shape))
        self.Z = rows.scores(self.V) if self.V[:-1].any() else at_zero
        self.products, self.decrease = 0, np.inf
        self._sample = sampled_rows(rows, V.shape[1])
        self._preconditioner: Preconditioner | None = None
        self._evaluate()
        self._first = float(np.linalg.norm(self.G)) or 1.0

    def _evaluate(self) -> None:
        """Value and gradient at the present point."""
        s, y, Z = self.rows.weights[:, None], self.target, self.Z
        U = np.empty_like(Z)

        def work(where: slice) -> Array:
            U[where] = s[where] * self.loss.gradient(y[where], Z[where])
            return np.sum(s[where] * self.loss.value(y[where], Z[where]), keepdims=True)

        losses = float(self.rows.over_rows(Z.shape[1], work)[0, 0])
        self.objective = losses + 0.5 * float((self.bends * self.V**2).sum())
        self.G = self.rows.total(U) + self.bends * self.V

    def _renew(self) -> None:
        h = self.rows.weights[:, None] * self.loss.curvature(self.target, self.Z)
        self._preconditioner = Preconditioner(
            self._sample, self.rows, h, self.bends, self.is_alike, not self.V[:-1].any()
        )

    def step(self) -> float:
        """Move; the length of the step, 0 if rounding allows for none."""
        D = self._direction()
        first = float((self.G * D).sum())
        self.decrease = max(-0.5 * first, 0.0)
        if not first < 0 or not np.isfinite(first):
            return 0.0
        change = self.rows.scores(D)
        s, loss, y = self.rows.weights[:, None], self.loss, self.target
        own, across = float((self.bends * self.V * D).sum()), float((self.bends * D**2).sum())

        def slope(t: float) -> tuple[float, float]:
            def work(where: slice) -> Array:
                along = change[where]
                Z, weighted = self.Z[where] + t * along, s[where] * along
                bent = loss.bend(loss.bending(y[where], Z), along)
                return np.array(
                    [(weighted * loss.gradient(y[where], Z)).sum(), (weighted * bent).sum()]
                )

            first, second = self.rows.over_rows(change.shape[1], work)
            return float(first) + own + t * across, float(second) + across

        t = minimise_along(slope, first)
        self.V = self.V + t * D
        self.Z = self.Z + t * change
        before = self.objective
        self._evaluate()
        # Where rounding decides, a step back to where it was lower ends the descent.
        return t if self.objective <= before + 1e-12 * abs(before) else 0.0

    def balance(self) -> None:
        """The best intercepts for these coefficients: proofs want them as exact as can be."""
        if self.rows.fit_intercept:
            # Scores afresh: those of many steps have gathered rounding.
            self.Z = self.rows.scores(self.V)
            shift = best_levels(self.loss, self.target, self.Z, self.rows.weights)
            self.V = self.V.copy()
            self.V[-1] += shift
            self.Z = self.Z + shift
            self._evaluate()

    def _direction(self) -> Array:
        """Conjugate gradients for H D = -G."""
        product = self.rows.hessian(self.loss, self.loss.bending(self.target, self.Z))
        if self._preconditioner is None:
            self._renew()
        assert self._preconditioner is not None
        ratio = float(np.linalg.norm(self.G)) / self._first
        enough = max(min(_COARSE, np.sqrt(ratio)), _FINEST) ** 2
        D, count = conjugate_gradients(
            lambda p: product(p) + self.bends * p,
            -self.G,
            self._preconditioner.apply,
            most=_MOST_INNER,
            enough=enough,
        )
        self.products += count
        if not count:
            return self._preconditioner.apply(-self.G)
        if count >= _SLOW:
            self._preconditioner = None
        return D
