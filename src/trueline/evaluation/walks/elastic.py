"""Lasso and elastic net along a path of strengths, from fold moments where rows are many."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from trueline.design import as_design
from trueline.evaluation.task import FoldRows
from trueline.evaluation.walks.base import Fits, Walk
from trueline.guard import Verdict
from trueline.losses import Squared
from trueline.planner import make_plan
from trueline.problem import Problem
from trueline.selection.penalty_path import Grid, coefficient_matrix, solve_grid, verdicts
from trueline.solvers.coordinate.solver import GramDescent, penalty_terms
from trueline.solvers.coordinate.source import MomentsSource, RowsSource, Source

__all__ = ["ElasticWalk"]

Array = NDArray[np.float64]


class ElasticWalk(Walk):
    """Each mixture is a path of decreasing strengths; solutions start at the one before."""

    route = "exact from fold moments or columns: a path of strengths, each starting at the last"

    def fit(self, fold: FoldRows) -> Fits:
        source, weight = self._source(fold)
        d = fold.task.matrix.shape[1]
        W, judged = np.zeros((d, len(self.settings), 1)), list[Verdict]()
        for ratio, members in self._paths().items():
            own = type(self.model)(**{**self.model.get_params(deep=False), **_mixture(self, ratio)})
            unit = penalty_terms(own.set_params(alpha=1.0)._scaled_penalty(1.0, d), d, 1)
            alphas = np.array([self.values("alpha")[i] for i in members], dtype=float)
            grid = Grid(alphas, unit, self.model.tol / 100)
            points = solve_grid(source, grid, weight)
            judged += verdicts(points, source, grid)
            W[:, members, 0] = coefficient_matrix(points, d).toarray()
        b = np.zeros((len(self.settings), 1))
        if self.model.fit_intercept:
            b = (source.y_mean - source.x_mean @ W[:, :, 0])[:, None]
        return self.as_linear(fold, W, b, judged)

    def _paths(self) -> dict[float, list[int]]:
        """For each mixture the settings, by decreasing strength."""
        ratios = self.values("l1_ratio") if hasattr(self.model, "l1_ratio") else [1.0]
        ratios = ratios if len(ratios) > 1 else ratios * len(self.settings)
        paths: dict[float, list[int]] = defaultdict(list)
        alphas = self.values("alpha")
        for i in sorted(range(len(alphas)), key=lambda i: -alphas[i]):
            paths[float(ratios[i])].append(i)
        return paths

    def _source(self, fold: FoldRows) -> tuple[Source, float]:
        """Where correlations come from, and the weight of the training rows."""
        task, intercept = fold.task, bool(self.model.fit_intercept)
        penalty = self.model._scaled_penalty(1.0, task.matrix.shape[1])
        whole = Problem(
            as_design(task.matrix), task.targets, Squared(), penalty, intercept, task.weights
        )
        if make_plan(whole).chosen == GramDescent.name:
            moments = task.moment_folds(intercept)
            if moments.total is not None:
                train = moments.folds[fold.number].training_moments(moments.total)
                return MomentsSource(train, intercept), train.weight
        n = task.n_samples
        counts = np.bincount(fold.split.train, minlength=n).astype(float)
        weights = counts if task.weights is None else counts * task.weights
        source = RowsSource(whole.design, task.targets[:, 0], weights, intercept)
        return source, float(weights.sum())


def _mixture(walk: Walk, ratio: float) -> dict[str, float]:
    return {"l1_ratio": ratio} if "l1_ratio" in walk.model.get_params(deep=False) else {}
