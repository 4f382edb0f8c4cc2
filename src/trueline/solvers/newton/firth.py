r"""Logistic regression with Firth's correction.

Half the log-determinant of the information I(v) = A^T S diag(h) A is added to the likelihood
(Jeffreys' prior):

    minimise over v    F(v) = sum_i s_i log(1 + exp(-y_i a_i.v)) - 1/2 log det I(v)
    g = A^T (s l' - q (1/2 - p)),     q_i = s_i h_i a_i^T I^-1 a_i,      v <- v - t I^-1 g

This removes the first-order bias of maximum likelihood, and has finite answers also for classes
that a hyperplane separates (D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika
80 (1993) 27-38; G. Heinze, M. Schemper, "A solution to the problem of separation in logistic
regression", Statist. Med. 21 (2002) 2409-2419; I. Kosmidis, D. Firth, "Jeffreys-prior penalty,
finiteness and shrinkage in binomial-response generalized linear models", Biometrika 108 (2021)
71-82). The information is the Hessian of the likelihood alone: steps end quickly where rows are
many for each coefficient, and t is halved until F falls.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.curvature import certify_firth
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Iteration, Monitor, Options, Progress, run
from trueline.solvers.newton.dense.descent import Factor
from trueline.solvers.newton.dense.rows import StandardRows
from trueline.wording import counted

Array = NDArray[np.float64]

_ARMIJO, _HALVINGS = 1e-4, 60
# Steps are taken until rounding is all that is left.
_NEGLIGIBLE, _UNSEEN = 1e-24, 1e-10
# Rounding of so much of the objective leaves nothing to be said of the coefficients.
_UNKNOWN = 1e-3
_MAX_ITER = 1000
_BLOCK = 4096


def solve_firth(problem: Problem, options: Options, monitor: Monitor) -> Solution:
    """The fit; ``FloatingPointError`` where squares of the data leave the range of doubles."""
    rows = StandardRows.of(problem.design, problem.weights, problem.fit_intercept).independent(
        False
    )
    y = np.ascontiguousarray(problem.target[:, 0])
    v = np.zeros(rows.count)
    if options.start is not None:
        level = 0.0 if options.start_intercept is None else float(options.start_intercept[0])
        v = rows.standard(options.start[:, 0], level)
    walk = _Walk(rows, problem, y, v)
    status, count, _ = run(walk, monitor, max_iter=_MAX_ITER, target_gap=0.0)
    certificate = certify_firth(problem, walk.coef, walk.intercept, rows.kept)
    if not certificate.objective_rounding <= _UNKNOWN * (1.0 + abs(certificate.objective)):
        raise ValueError(
            "The information of these columns is singular to rounding: some nearly depend on "
            "others, or their offsets are far larger than their spread. Standardise the columns, "
            "or leave out those that depend on others."
        )
    enough = max(options.tol, 1e-13) * (1.0 + abs(walk.objective))
    if walk.decrease <= enough:
        status = Status.STATIONARY if status is not Status.STOPPED else status
    notes = []
    left = problem.n_features - len(rows.kept)
    if left:
        notes.append(f"{counted(left, 'column')} without information left out")
    return monitor.solution(certificate, status, "firth", count, notes=notes, tolerance=enough)


class _Walk(Iteration):
    """A step of the loop is one of modified scoring."""

    def __init__(self, rows: StandardRows, problem: Problem, y: Array, v: Array) -> None:
        self.rows, self.loss, self.y, self.v = rows, problem.loss, y, v
        self.z = rows.scores(v)
        self._evaluate()
        self._take_derivatives()

    def _evaluate(self) -> None:
        """F and the information, at the present point."""
        s = self.rows.weights
        self.h = s * self.loss.curvature(self.y, self.z)
        information = self.rows.gram_of(self.h)
        self.factor = Factor(information)
        if not self.factor.least > 0:
            self.objective = math.inf
            return
        self.determinant = self.factor.log_determinant()
        self.objective = float(s @ self.loss.value(self.y, self.z)) - 0.5 * self.determinant

    def _leverages(self) -> Array:
        """q_i, a few thousand rows at a time."""
        out = np.empty(len(self.y))
        for start in range(0, len(out), _BLOCK):
            part = slice(start, start + _BLOCK)
            A = self.rows.gather(part)
            out[part] = self.h[part] * (A * self.factor.solve(A.T).T).sum(axis=1)
        return out

    def _take_derivatives(self) -> None:
        """The slope, and the next step."""
        w, b = self.rows.coefficients(self.v)
        self.coef, self.intercept = w[:, None], np.array([b])
        u = self.rows.weights * self.loss.gradient(self.y, self.z)
        # 1/2 - p = tanh(-z / 2) / 2, without cancellation.
        g = self.rows.total(u - self._leverages() * 0.5 * np.tanh(-0.5 * self.z))
        self.direction = -self.factor.solve(g)
        self.slope = float(g @ self.direction)
        self.decrease = -0.5 * self.slope
        self.is_settled = self.decrease <= _NEGLIGIBLE * (1.0 + abs(self.objective))

    def _move(self, t: float, change: Array) -> None:
        self.v, self.z = self.v + t * self.direction, self.z + t * change
        self._evaluate()

    def step(self) -> None:
        change = self.rows.scores(self.direction)
        before = self.v, self.z, self.objective, self.slope
        direction, seen = self.direction, -self.slope > _UNSEEN * (1.0 + abs(self.objective))
        t = 1.0
        for _ in range(_HALVINGS if seen else 1):
            self._move(t, change)
            if self.objective <= before[2] + _ARMIJO * t * before[3] or not seen:
                self.z = self.rows.scores(self.v)
                self._take_derivatives()
                break
            self.v, self.z, self.direction = before[0], before[1], direction
            t *= 0.5
        # What cannot be seen in F shows in its slope: it has to fall.
        if not (math.isfinite(self.objective) and (seen or -self.slope < 0.9 * -before[3])):
            self.v, self.z = before[:2]
            self._evaluate()
            self._take_derivatives()
            self.is_stalled = True

    def progress(self) -> Progress:
        return Progress(self.objective, math.inf)
