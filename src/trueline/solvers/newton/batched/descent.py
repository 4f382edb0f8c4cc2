r"""Newton's method for many problems at once: their steps share products with the rows.

    P_j(V) = sum_i s_ij l(y_ij, [x_i, 1].V) + a_j/2 ||W||^2,        j = 1 .. p

One matrix product gives the scores of all problems, where one after the other would read the data
as often as there are problems. Newton's equations H D = -G are solved by conjugate
gradients (:mod:`trueline.solvers.newton.batched.precondition`). The length of a step is near the
root of the slope along it: the derivatives that are evaluated there are those of the next step. A
problem is done, and costs nothing more, when

    |G_w|^2 / (2 a) + G_b^2 / (2 B),        B the curvature in the intercept,

which no step can gain more than, is below its goal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.tangent import PointSums
from trueline.solvers.newton.batched.precondition import Preconditioner
from trueline.solvers.newton.batched.rows import Batch

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# A step is good where it leaves this share of the slope; a share that rises may have gained less.
_FALLING, _RISING, _LOOKS = 0.25, 0.1, 20
# Of the goal, what the last step has to leave.
_LEFT = 0.1
# Newton's method for the intercepts alone: most steps, and the share of the slopes' terms at which
# nothing is left that a proof would feel.
_BALANCING, _BALANCED = 6, 1e-13


@dataclass
class Points:
    """Where the problems are.

    Attributes
    ----------
    V : array of shape (d + 1, p, k)
        Coefficients, intercepts last.
    Z : array of shape (n, p, k)
        Scores.
    U, B : arrays of shape (n, p, k)
        Weighted derivatives of the losses there, and what second ones are made of.
    G : array of shape (d + 1, p, k)
        Gradients.
    is_done : array of shape (p,)
        Whether each problem reached its goal.
    steps : array of shape (p,)
        Newton steps of each.
    """

    V: Array
    Z: Array
    U: Array
    B: Array
    G: Array
    is_done: NDArray[np.bool_] = field(init=False)
    steps: Integers = field(init=False)

    def __post_init__(self) -> None:
        p = self.V.shape[1]
        self.is_done, self.steps = np.zeros(p, dtype=bool), np.zeros(p, dtype=np.intp)

    @classmethod
    def at(cls, batch: Batch, V: Array) -> Points:
        """At the coefficients V."""
        Z = batch.scores(V)
        U, B = batch.derivatives(Z)
        return cls(V, Z, U, B, batch.gradients(V, U))

    def sums(self, batch: Batch) -> PointSums:
        """Sums over the rows, of problems with one score."""
        U, s = self.U[:, :, 0], batch.S
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.where(s > 0, U * (U / s), 0.0).sum(axis=0)
        W, correlation = self.V[:-1, :, 0].T, (self.G - batch.strength[:, None] * self.V)[:-1, :, 0]
        return PointSums(
            W=W,
            levels=self.V[-1, :, 0],
            losses=batch.losses(self.Z)[:, 0],
            squares=squares,
            slope=U.sum(axis=0),
            curvature=batch.curvature(self.B).sum(axis=(0, 2)),
            correlation=correlation.T,
            chain=batch.rows.terms,
        )

    def take(self, which: Integers) -> Points:
        """Some of the problems."""
        arrays = (self.V, self.Z, self.U, self.B, self.G)
        out = Points(*(array[:, which] for array in arrays))
        out.is_done, out.steps = self.is_done[which], self.steps[which]
        return out

    def put(self, which: Integers, other: Points) -> None:
        """The other points in place of some of these."""
        for name in ("V", "Z", "U", "B", "G"):
            getattr(self, name)[:, which] = getattr(other, name)
        self.is_done[which], self.steps[which] = other.is_done, other.steps


def minimise(batch: Batch, at: Points, goals: Array, model: Preconditioner, limit: int) -> None:
    """Take steps until every problem is done, gets no further or has taken so many."""
    live, part, now = np.arange(len(goals)), batch, at
    moved: NDArray[np.bool_] = np.ones(len(goals), dtype=bool)
    for count in range(limit + 1):
        left = _most(part, now)
        now.is_done[:] = left <= goals[live]
        going = (left > goals[live]) & moved
        if count == limit or not going.any():
            break
        if not going.all():
            keep, ended = np.flatnonzero(going), np.flatnonzero(~going)
            if now is not at:
                at.put(live[ended], now.take(ended))
            live, part, now, left = live[keep], part.take(keep), now.take(keep), left[keep]
        # Conjugate gradients need not leave less than the last step has to reach.
        D = model.direction(part, now.B, now.G, live, _LEFT * goals[live] / left)
        moved = np.asarray((_move(part, now, D) > 0).any(axis=1))
        now.G = part.gradients(now.V, now.U)
        now.steps += 1
    if now is not at:
        at.put(live, now)


def _most(batch: Batch, at: Points) -> Array:
    """What no step of each problem can gain more than, nearby."""
    G = at.G
    most = np.einsum("dpk,dpk->p", G[:-1], G[:-1]) / (2 * batch.strength)
    if batch.fit_intercept:
        level = batch.curvature(at.B).sum(axis=0)
        most += (G[-1] ** 2 / (2 * np.where(level > 0, level, 1.0))).sum(axis=1)
    return most


def _move(batch: Batch, at: Points, D: Array) -> Array:
    """Go along D to where the slope has almost vanished; the lengths, of shape (p, k) or (p, 1).

    The lengths stay between the ends of a bracket of the slope's root. Zero where D does not
    descend, or where rounding is all that is left.
    """
    Q = batch.scores(D)
    first = batch.dot(at.G, D)
    own, across = batch.squares(at.V, D), batch.squares(D, D)
    t, low, high = (first < 0).astype(float), np.zeros_like(first), np.full_like(first, np.inf)
    at_low, at_high = first.copy(), np.full_like(first, np.inf)
    open_ones, part, Z, q = np.arange(len(first)), batch, at.Z, Q
    for _ in range(_LOOKS):
        o = open_ones
        with np.errstate(over="ignore", invalid="ignore"):
            u, hessian_terms = part.derivatives(Z + t[o] * q)
            slope = part.summed(np.einsum("npk,npk->pk", u, q)) + own[o] + t[o] * across[o]
        if len(o) == len(first):
            at.U, at.B = u, hessian_terms
        else:
            at.U[:, o], at.B[:, o] = u, hessian_terms
        share = np.where(slope < 0, _FALLING, _RISING)
        bad = ~(np.abs(slope) <= share * np.abs(first[o])) & (first[o] < 0)
        if not bad.any():
            break
        # What is no number is beyond the root.
        falls, rises = bad & (slope < 0), bad & ~(slope < 0)
        low[o], at_low[o] = np.where(falls, t[o], low[o]), np.where(falls, slope, at_low[o])
        high[o], at_high[o] = np.where(rises, t[o], high[o]), np.where(rises, slope, at_high[o])
        ahead = _ahead(t[o], low[o], at_low[o], high[o], at_high[o], first[o])
        t[o] = np.where(bad, ahead, t[o])
        keep = bad.any(axis=1)
        if not keep.all():
            some = np.flatnonzero(keep)
            open_ones, part, Z, q = o[keep], part.take(some), Z[:, some], q[:, some]
    else:
        t[open_ones] = low[open_ones]  # nothing has risen on the way there
        u, hessian_terms = part.derivatives(Z + t[open_ones] * q)
        at.U[:, open_ones], at.B[:, open_ones] = u, hessian_terms
    at.V, at.Z = at.V + t * D, at.Z + t * Q
    return t


def _ahead(t: Array, low: Array, at_low: Array, high: Array, at_high: Array, first: Array) -> Array:
    """The next length to look at: by the slopes at both ends, or longer if there is but one."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        longer = np.where(at_low > first, t * first / (first - at_low), np.inf)
        longer = np.fmin(longer, 4.0 * t)
        share = np.clip(at_low / (at_low - at_high), 0.1, 0.9)
        between = low + (high - low) * np.where(np.isnan(share), 0.1, share)
    return np.where(np.isinf(high), longer, between)


def balance(batch: Batch, at: Points) -> None:
    """Move to the best intercepts for these coefficients: proofs want their slopes to vanish."""
    slope, shift = at.U.sum(axis=0), np.zeros(at.V.shape[1:])
    curvature = batch.intercept_curvature(at.B)
    for _ in range(_BALANCING):
        if (np.abs(slope) <= _BALANCED * np.abs(at.U).sum(axis=0)).all():
            break
        # The shift is so small that the curvature stays as it is.
        ahead = shift - np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        after = batch.gradient(at.Z + ahead).sum(axis=0)
        better = (np.abs(after).max(axis=1) < 0.5 * np.abs(slope).max(axis=1))[:, None]
        shift, slope = np.where(better, ahead, shift), np.where(better, after, slope)
        if not better.any():
            break
    at.V[-1] += shift
    at.Z += shift
    at.U, at.B = batch.derivatives(at.Z)
    at.G = batch.gradients(at.V, at.U)
