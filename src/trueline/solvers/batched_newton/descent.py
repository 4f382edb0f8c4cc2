r"""Newton's method for many problems on the same rows: their steps share products with the rows.

    P_j(V) = sum_i s_ij l(y_ij, [x_i, 1].V) + a_j/2 ||W||^2,        j = 1 .. p

One matrix product gives the scores of all problems, where one after the other would read the data
as often as there are problems. Newton's equations H D = -G are solved by preconditioned conjugate
gradients, each problem with step lengths of its own, the more exactly the closer it is to its
minimum (R. S. Dembo, S. C. Eisenstat, T. Steihaug, "Inexact Newton methods", SIAM J. Numer. Anal.
19 (1982) 400-408). A step is halved until it lowers the objective. A problem is done, and costs
nothing more, when

    |G_w|^2 / (2 a) + G_b^2 / (2 B),        B the curvature in the intercept,

which no step can gain more than, is below its goal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.batched_newton.precondition import Preconditioner
from trueline.solvers.batched_newton.rows import Batch
from trueline.solvers.batched_newton.vectors import advance, turn

__all__ = ["Points", "minimise"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_MOST_STEPS, _MOST_INNER, _HALVINGS = 60, 120, 30
# A step is accepted if it lowers the objective by this share of what its slope promises.
_SUFFICIENT = 1e-4
# How exactly steps are found, as shares of the squared norm of the gradient: at least, at most.
_COARSEST, _FINEST = 1e-2, 1e-10
# What need not be better than the goal: this share of it is left by the last step.
_LEFT = 0.1
# Relative to the objective, what rounding may add to it.
_ROUNDING = 1e-13
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
    G : array of shape (d + 1, p, k)
        Gradients.
    objective : array of shape (p,)
    is_done : array of shape (p,)
        Whether each problem reached its goal.
    steps : array of shape (p,)
        Newton steps of each.
    """

    V: Array
    Z: Array
    G: Array
    objective: Array
    is_done: NDArray[np.bool_]
    steps: Integers

    @classmethod
    def at(cls, batch: Batch, V: Array) -> Points:
        """At the coefficients V."""
        p = V.shape[1]
        facts = np.full(p, np.inf), np.zeros(p, dtype=bool), np.zeros(p, dtype=np.intp)
        return cls(V.copy(), batch.scores(V), np.zeros_like(V), *facts)


def minimise(batch: Batch, at: Points, goals: Array, preconditioner: Preconditioner) -> None:
    """Take steps until every problem is done, or gets no further."""
    live = np.arange(len(goals))
    objective = batch.objective(at.V, at.Z)
    for _ in range(_MOST_STEPS):
        part, v, z = batch.take(live), at.V[:, live], at.Z[:, live]
        u, bending = part.derivatives(z)
        g = _gradient(part, v, u)
        left = _most(part, g, bending)
        going = left > goals[live]
        at.is_done[live] = ~going
        if not going.any():
            break
        if not going.all():
            keep = np.flatnonzero(going)
            live, part, left = live[keep], part.take(keep), left[keep]
            v, z, g, bending = (each[:, keep] for each in (v, z, g, bending))
        own = objective[live]
        # Conjugate gradients need not leave less than the last step has to reach.
        least = (_LEFT * goals[live] / left)[:, None]
        D = _direction(part, bending, g, preconditioner.prepared(part, bending), own, least)
        Q = part.scores(D)
        t, objective[live] = _lengths(part, own, v, z, g, D, Q)
        at.V[:, live], at.Z[:, live] = v + t * D, z + t * Q
        at.steps[live] += 1
        live = live[(t > 0).any(axis=1)]
        if not len(live):
            break
    at.objective[:] = objective.sum(axis=1)
    at.G[:] = _balance(batch, at)


def _balance(batch: Batch, at: Points) -> Array:
    """The best intercepts for these coefficients, for proofs want their slopes to vanish.

    The gradients there.
    """
    u, bending = batch.derivatives(at.Z)
    if batch.fit_intercept:
        slope, shift = u.sum(axis=0), np.zeros(at.V.shape[1:])
        curvature = batch.intercept_curvature(bending)
        for _ in range(_BALANCING):
            if (np.abs(slope) <= _BALANCED * np.abs(u).sum(axis=0)).all():
                break
            # The shift is so small that the curvature stays as it is.
            ahead = shift - np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
            u = batch.gradient(at.Z + ahead)
            after = u.sum(axis=0)
            better = (np.abs(after).max(axis=1) < 0.5 * np.abs(slope).max(axis=1))[:, None]
            shift, slope = np.where(better, ahead, shift), np.where(better, after, slope)
            if not better.all():
                u = batch.gradient(at.Z + shift)
            if not better.any():
                break
        at.V[-1] += shift
        at.Z += shift
    return _gradient(batch, at.V, u)


def _gradient(batch: Batch, v: Array, u: Array) -> Array:
    """Of the objectives, from the weighted derivatives of the losses."""
    g = batch.totals(u)
    g[:-1] += batch.strength[:, None] * v[:-1]
    return g


def _most(batch: Batch, g: Array, bending: Array) -> Array:
    """What no step of each problem can gain more than, nearby."""
    most = np.einsum("dpk,dpk->p", g[:-1], g[:-1]) / (2 * batch.strength)
    if batch.fit_intercept:
        level = batch.curvature(bending).sum(axis=0)
        most += (g[-1] ** 2 / (2 * np.where(level > 0, level, 1.0))).sum(axis=1)
    return most


def _direction(
    batch: Batch, bending: Array, g: Array, inverse: Preconditioner, objective: Array, least: Array
) -> Array:
    """D with H D = -g, but for a residual whose square is a share of that of g.

    The share is what the step promises to gain of the objective, and not below ``least``.
    """
    product = batch.hessian(bending)
    D, R = np.zeros_like(g), -g
    P = inverse.apply(batch, R)
    size = batch.dot(R, P)
    share = np.maximum(0.5 * size / np.maximum(objective, 1e-300), least)
    enough, steps = np.clip(share, _FINEST, _COARSEST) * size, 0
    while steps < _MOST_INNER and (size > enough).any():
        image = product(P)
        along = batch.dot(P, image)
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where((along > 0) & (size > 0), size / along, 0.0)
        if not a.any():
            break
        advance(a, P, image, D, R)
        M = inverse.apply(batch, R)
        before, size = size, batch.dot(R, M)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn(np.where(before > 0, size / before, 0.0), M, P)
        steps += 1
    inverse.judge(batch, steps)
    return D


def _lengths(
    batch: Batch, objective: Array, v: Array, z: Array, g: Array, D: Array, Q: Array
) -> tuple[Array, Array]:
    """How far each problem goes along D, of shape (p, k) or (p, 1), and its objective there.

    Zero where nothing lowers the objective.
    """
    slope, t = batch.dot(g, D), np.ones_like(objective)
    for _ in range(_HALVINGS):
        with np.errstate(over="ignore", invalid="ignore"):
            now = batch.objective(v + t * D, z + t * Q)
        good = now <= objective + _SUFFICIENT * t * slope + _ROUNDING * np.abs(objective)
        if good.all():
            return t, now
        t = np.where(good, t, 0.5 * t)
    return np.where(good, t, 0.0), np.where(good, now, objective)
