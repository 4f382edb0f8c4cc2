"""Logistic regression with absolute values along a path of strengths, each fit from the last.

The strengths decrease, so that few columns are in play at first, and each working set starts with
the columns of the solution before. A fit of a fold is there to be scored: its gap is a millionth of
the objective of the zero model, far below what moves a score of test rows. Where the model itself
would take working sets of columns, one descent goes along all strengths, without their proofs, and
ends where the gap is at most a thousandth of the objective. (That is a bound; the objective itself
is nearer: a violation e of the slopes costs about e in the bound and e^2 in the objective.)
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from trueline.estimators.logistic import penalty_of
from trueline.estimators.scaling import exponents_of
from trueline.evaluation.task import FoldRows
from trueline.evaluation.walks.base import Fits, Walk
from trueline.guard import Verdict, verdict_of
from trueline.problem import Problem
from trueline.solvers.columns.descent import ColumnDescent
from trueline.solvers.columns.small import SmallDescent, is_small
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.loop import Monitor
from trueline.solvers.working_set_newton import WorkingSetNewton, per_column

__all__ = ["SparseLogisticWalk"]

Array = NDArray[np.float64]

# Its square is the gap asked for, relative to the objective of the zero model.
_TOL = 1e-3
_ROUNDS, _STEPS = 30, 150
# Steps over all columns also end when two in a row lower the objective by no more than this share.
_GAIN = 1e-7
# Strengths that differ by more than this factor have one between them, for a few steps.
_FAR, _ON_THE_WAY = 4.0, 10
# Of the objective at hand, where one descent serves all strengths.
_SHARE = 1e-3
# The gap relative to the objective that is worth a word: ten times that, as steps also end where
# nothing is gained any more.
_ENOUGH = 1e-2


class SparseLogisticWalk(Walk):
    """Fits for increasing C, each warm-started."""

    route = "along the strengths, each fit starting at the one before"

    def fit(self, fold: FoldRows) -> Fits:
        task = fold.task
        classes, codes = task.labels
        X, weights = fold.matrix("train"), fold.weights("train")
        own = clone(self.model)
        own.classes_, own.n_features_in_ = classes, X.shape[1]
        own.tol, own.warm_start = max(float(own.tol), _TOL), False
        costs = np.array([float(C) for C in self.values("C")])
        own.C = float(costs.min())
        problem, own._present = own._posed(X, classes, codes[fold.split.train], weights)
        is_chosen = own._plan_for(problem).chosen == WorkingSetNewton.name
        if is_chosen and exponents_of(problem) is None:
            return self.as_linear(fold, *self._descend(problem, costs, own.tol**2))
        k = 1 if len(classes) == 2 else len(classes)
        W, b = np.empty((X.shape[1], len(costs), k)), np.empty((len(costs), k))
        judged: list[Verdict] = []
        for i in np.argsort(costs, kind="stable"):
            own.C = float(costs[i])
            problem, own._present = own._posed(X, classes, codes[fold.split.train], weights)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                plan, solution = own._solve(problem, X, Monitor())
                own._store(problem, plan, solution, X.dtype, 1)
            judged.append(verdict_of(solution))
            own.warm_start = True
            W[:, i], b[i] = own.coef_.T, own.intercept_
        return self.as_linear(fold, W, b, judged)

    def _descend(
        self, problem: Problem, costs: Array, tol: float
    ) -> tuple[Array, Array, list[Verdict]]:
        """Coefficients (d, settings, k) and intercepts (settings, k), by one descent."""
        d, k = problem.n_features, problem.n_targets
        V = np.zeros((d + 1, k))
        if problem.fit_intercept:
            V[-1] = best_constant(problem)
        follow = _Following(problem, V, target_gap(problem, tol))
        W, b = np.empty((d, len(costs), k)), np.empty((len(costs), k))
        for i in np.argsort(costs, kind="stable"):
            penalty = penalty_of(self.model, float(costs[i]))
            W[:, i], b[i] = follow.to(
                per_column(penalty.linear, d), per_column(penalty.curvature, d)
            )
        return W, b, follow.verdicts


class _Following:
    """Minima along strengths: on small data by steps over all columns, as long as these get on.

    Parameters
    ----------
    problem : Problem
    V : array of shape (d + 1, k)
        Where to start.
    target : float
        The gap that is small enough for any strength.
    """

    def __init__(self, problem: Problem, V: Array, target: float) -> None:
        self._problem, self._V, self._target = problem, V, target
        self._takes_small = is_small(problem)
        self._small: SmallDescent | None = None
        self._sets: ColumnDescent | None = None
        self.verdicts: list[Verdict] = []

    def _judge(self, gap: float, objective: float) -> None:
        """Write down whether the gap is small enough, or as good as a few more steps make it."""
        allowed = max(self._target, _ENOUGH * objective)
        self.verdicts.append(Verdict(bool(gap <= allowed), float(gap), allowed))

    def to(self, linear: Array, quad: Array) -> tuple[Array, Array]:
        """Coefficients (d, k) and intercepts for strengths of shape (d + 1,)."""
        if self._takes_small:
            small = self._small
            if small is None:
                small = SmallDescent(self._problem, linear[:-1], quad[:-1], self._V)
                self._small = small
            else:
                self._near(small, linear[:-1], quad[:-1])
            if self._goes_on(small):
                self._judge(small.about, small.objective)
                return small.V[:-1, None], small.V[-1:]
            self._takes_small, self._V = False, small.V[:, None]
        return self._with_working_sets(linear, quad)

    def _near(self, small: SmallDescent, linear: Array, quad: Array) -> None:
        """Use other strengths; if they are far from those before, come some way first.

        Rows that are far from bending at the start make steps of a long way that lead nowhere.
        """
        before, below = small.strengths
        if before.max() > _FAR * linear.max():
            small.use(np.sqrt(before * linear), np.sqrt(below * quad))
            for _ in range(_ON_THE_WAY):
                if small.about <= small.objective or not small.step():
                    break
        small.use(linear, quad)

    def _goes_on(self, small: SmallDescent) -> bool:
        """Step until the gap is small enough, or nothing is gained; whether it came to that."""
        idle, before = 0, small.objective
        for _ in range(_STEPS):
            if idle == 2 or small.about <= max(self._target, _SHARE * small.objective):
                return True
            if not small.step():
                return False
            gain, before = before - small.objective, small.objective
            idle = idle + 1 if gain <= _GAIN * before else 0
        return False

    def _with_working_sets(self, linear: Array, quad: Array) -> tuple[Array, Array]:
        if self._sets is None:
            own = self._problem
            s = np.ones(own.n_samples) if own.weights is None else own.weights
            data = own.design, own.loss, own.target, s
            self._sets = ColumnDescent(*data, linear, quad, self._V, own.fit_intercept)
        else:
            self._sets.use(linear, quad)
        for _ in range(_ROUNDS):
            if self._sets.about() <= max(self._target, _SHARE * self._sets.objective):
                break
            self._sets.round()
        self._judge(self._sets.about(), self._sets.objective)
        return self._sets.coefficients()
