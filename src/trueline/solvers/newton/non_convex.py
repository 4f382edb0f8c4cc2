r"""Newton's method for losses that are not convex, with a quadratic penalty or none.

    minimise over v     P(v) = sum_i s_i l(y_i, a_i.v) + sum_j q_j / 2 v_j^2

    H = A^T S diag(l''(z)) A + Q     where that is positive definite, else
    H = A^T S diag(E l'') A + Q      Fisher's scoring (the expected curvature is never negative)

    v <- v - t H^-1 g,               t halved until P falls as far as Armijo's rule asks.

What is found is a minimum among its neighbours, and proven to be one
(:mod:`trueline.certificates.curvature`); whether a lower one exists elsewhere is not known.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.curvature import certify_local
from trueline.losses import LocalDeviance
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Iteration, Monitor, Options, Progress, run
from trueline.solvers.newton.dense.descent import Factor
from trueline.solvers.newton.dense.rows import StandardRows
from trueline.solvers.transformed import IndependentColumns

Array = NDArray[np.float64]

_LEAST_PIVOT = 1e-12
_ARMIJO, _HALVINGS = 1e-4, 60
# Steps are exact at the end: no reason to stop before rounding does.
_NEGLIGIBLE = 1e-20
_UNSEEN = 1e-9


def solve_locally(problem: Problem, options: Options, monitor: Monitor) -> Solution:
    """A local minimum; ``ValueError`` where no point to start from has a finite objective."""
    rows = StandardRows.of(problem.design, problem.weights, problem.fit_intercept)
    curvatures = np.broadcast_to(problem.penalty.curvature, (problem.n_features, 1))
    rows = rows.independent(bool((curvatures > 0).all()))
    quad = rows.strength(curvatures[:, 0], 2)
    assert isinstance(problem.loss, LocalDeviance)
    y = np.ascontiguousarray(problem.target[:, 0])
    if options.start is None:
        v = _first(rows, problem.loss, y)
    else:
        level = 0.0 if options.start_intercept is None else float(options.start_intercept[0])
        v = rows.standard(options.start[:, 0], level)
    walk = _Walk(rows, problem.loss, y, quad, v)
    unit = walk.objective
    if not np.isfinite(unit):
        raise ValueError(
            "No coefficients to start from give positive means for all rows, which link='identity' "
            "with this power needs. Fit with link='log', or with an intercept and positive targets."
        )
    status, count, _ = run(walk, monitor, max_iter=options.max_iter or 100, target_gap=0.0)
    w, b = rows.coefficients(walk.v)
    known = IndependentColumns.of(problem) if problem.is_open else None
    notes = ["the objective is not convex: the minimum is proven among its neighbours only"]
    if known is not None and known.space is not None:
        W, levels = known.least_norm(w[:, None], np.array([b]))
        w, b = W[:, 0], float(levels[0])
        notes.append(known.note)
    scale = np.ones(problem.n_features + problem.fit_intercept)
    root = np.sqrt(np.maximum(np.abs(walk.hessian.diagonal()), 1e-300))
    kept = len(rows.kept)
    scale[rows.kept] = 1.0 / (rows.scale[rows.kept] * root[:kept])
    scale[problem.n_features :] = 1.0 / root[kept:]
    alone = rows.left_out
    scale[alone] = 1.0 / np.sqrt(np.where(curvatures[alone, 0] > 0, curvatures[alone, 0], 1.0))
    certificate = certify_local(problem, w[:, None], np.array([b]), rows.mean, scale)
    enough = max(options.tol, 1e-12) * unit
    if certificate.gap <= enough:
        status = Status.CONVERGED
    elif status.is_final:
        status = Status.STALLED
    return monitor.solution(
        certificate,
        status,
        "newton",
        count,
        tolerance=enough,
        rank=None if known is None else known.rank,
        row_space=None if known is None else known.space,
        notes=notes,
    )


def _first(rows: StandardRows, loss: LocalDeviance, y: Array) -> Array:
    """The best constant; without an intercept zero or, for identities, the least-squares fit."""
    v = np.zeros(rows.count)
    if rows.fit_intercept:
        v[-1] = float(loss.constant(y, rows.weights))
    elif loss.link == "identity":
        gram = rows.gram + 1e-14 * np.diag(rows.gram.diagonal())
        v = Factor(gram).solve(rows.total(rows.weights * y))
    return v


class _Walk(Iteration):
    """A step of the loop is one of Newton's method or of Fisher's scoring."""

    def __init__(
        self, rows: StandardRows, loss: LocalDeviance, y: Array, quad: Array, v: Array
    ) -> None:
        self.rows, self.loss, self.y, self.quad, self.v = rows, loss, y, quad, v
        self.z = rows.scores(v)
        self.objective = self._value(v, self.z)
        self._evaluate()

    def _value(self, v: Array, z: Array) -> float:
        total = float(self.rows.weights @ self.loss.value(self.y, z) + 0.5 * self.quad @ v**2)
        return total if np.isfinite(total) else math.inf

    def _evaluate(self) -> None:
        rows, s = self.rows, self.rows.weights
        w, b = rows.coefficients(self.v)
        self.coef, self.intercept = w[:, None], np.array([b])
        g = rows.total(s * self.loss.gradient(self.y, self.z)) + self.quad * self.v
        h = s * self.loss.curvature(self.y, self.z)
        self.hessian = rows.gram_of(np.maximum(h, 0.0)) + np.diag(self.quad)
        if (h < 0).any():
            self.hessian = self.hessian - rows.gram_of(np.maximum(-h, 0.0))
        factor = Factor(self.hessian)
        if factor.least <= _LEAST_PIVOT:
            expected = rows.gram_of(s * self.loss.expected_curvature(self.z))
            factor = Factor(expected + np.diag(self.quad))
        self.direction = -factor.solve(g) if factor.least > 0 else -g
        self.slope = float(g @ self.direction)
        self.is_settled = -self.slope <= _NEGLIGIBLE * self.objective

    def step(self) -> None:
        if -self.slope <= _UNSEEN * self.objective:
            self._polish()
            return
        change = self.rows.scores(self.direction)
        t = 1.0
        for _ in range(_HALVINGS):
            v, z = self.v + t * self.direction, self.z + t * change
            value = self._value(v, z)
            if value <= self.objective + _ARMIJO * t * self.slope:
                self.v, self.z, self.objective = v, self.rows.scores(v), value
                self._evaluate()
                return
            t *= 0.5
        self.is_stalled = True

    def _polish(self) -> None:
        """A whole step whose promise is too small to be seen in P: the slope has to fall."""
        before = self.v, self.z, self.objective, self.slope
        self.v = self.v + self.direction
        self.z = self.rows.scores(self.v)
        self.objective = self._value(self.v, self.z)
        self._evaluate()
        if not -self.slope < 0.25 * -before[3]:
            self.v, self.z, self.objective, _ = before
            self._evaluate()
            self.is_stalled = True

    def progress(self) -> Progress:
        return Progress(self.objective, math.inf)
