"""Ridge regression on signs, with sparse rows: all folds and strengths as one set of problems.

A Gram matrix of that many columns would be dense.
"""

from __future__ import annotations

import numpy as np

from trueline.design import as_design
from trueline.estimators.fold_sets import fold_weights
from trueline.evaluation.task import FoldRows, Task
from trueline.evaluation.walks.base import Fits, Walk
from trueline.guard import Verdict, verdict_of
from trueline.losses import Squared
from trueline.penalties import L2
from trueline.planner import execute_set, make_set_plans
from trueline.problem_set import Member, ProblemSet
from trueline.solution import Solution
from trueline.solvers.base import Options

__all__ = ["SparseRidgeWalk"]

# Of the objective of the best constant: far below what moves a label of test rows.
_TOL = 1e-9


class SparseRidgeWalk(Walk):
    """All settings and all folds are planned and solved together, once."""

    route = "all folds and settings at once, as problems on the same rows that share their work"
    _solved: tuple[Task, list[Solution]] | None = None

    def _solutions(self, task: Task) -> list[Solution]:
        """By fold, then by setting."""
        if self._solved is None or self._solved[0] is not task:
            rows = fold_weights(task.n_samples, [s.train for s in task.splits], task.weights)
            penalties = [L2(float(alpha)) for alpha in self.values("alpha")]
            members = tuple(Member(task.targets, one, s) for s in rows for one in penalties)
            intercept = bool(self.model.fit_intercept)
            problems = ProblemSet(as_design(task.matrix), Squared(), members, intercept)
            plans = make_set_plans(problems)
            self._solved = task, execute_set(problems, plans, Options(tol=_TOL))
        return self._solved[1]

    def fit(self, fold: FoldRows) -> Fits:
        count = len(self.settings)
        own = self._solutions(fold.task)[fold.number * count : (fold.number + 1) * count]
        judged: list[Verdict] = [verdict_of(solution) for solution in own]
        W = np.stack([solution.coef for solution in own], axis=1)
        return self.as_linear(fold, W, np.stack([solution.intercept for solution in own]), judged)
