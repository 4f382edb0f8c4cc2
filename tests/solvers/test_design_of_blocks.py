"""A design that has products and blocks of rows alone, as data on a disk or a cluster would.

Every solver asks a design for its operations, never for its type: on this one each finds the same
answer as on a dense one.
"""

from __future__ import annotations

import numpy as np
import pytest

from trueline.design import Design, as_design
from trueline.design.base import Accuracy, SecondMoments
from trueline.losses import as_loss
from trueline.penalties import as_penalty
from trueline.problem import Problem
from trueline.solvers.base import Facts, Monitor, Options
from trueline.solvers.registry import SOLVERS, missing


class BlockDesign(Design):
    """Rows that are only ever seen a block at a time."""

    is_sparse = False
    dtype = np.dtype(np.float64)

    def __init__(self, parts):
        self.parts = parts
        self.starts = np.cumsum([0, *map(len, parts)])
        self.shape = (int(self.starts[-1]), parts[0].shape[1])
        self.nonzeros = self.shape[0] * self.shape[1]

    def blocks(self, rows):
        for start, part in zip(self.starts, self.parts):
            for first in range(0, len(part), rows):
                block = part[first : first + rows]
                yield slice(start + first, start + first + len(block)), np.array(block)

    def by_rows(self, weights, shift):
        for where, block in self.blocks(64):
            s = np.ones(len(block)) if weights is None else weights[where]
            yield where, s, block if shift is None else block - shift

    def matvec(self, W):
        return np.concatenate([block @ W for _, block in self.blocks(64)])

    def rmatvec(self, U):
        return sum(block.T @ U[where] for where, block in self.blocks(64))

    def second_moments(self, Y, weights, shift):
        d = self.shape[1]
        total, gram, cross = np.zeros(d), np.zeros((d, d)), np.zeros((d, Y.shape[1]))
        for where, s, v in self.by_rows(weights, shift):
            total += s @ v
            gram += (s[:, None] * v).T @ v
            cross += (s[:, None] * v).T @ Y[where]
        return SecondMoments(total, gram, cross, np.diag(gram).copy(), self.shape[0])

    def kernel(self, weights, shift):
        V = np.vstack([np.sqrt(s)[:, None] * v for _, s, v in self.by_rows(weights, shift)])
        return V @ V.T

    def column_means(self, weights):
        total = sum(s @ v for _, s, v in self.by_rows(weights, None))
        return total / (self.shape[0] if weights is None else weights.sum())

    def column_largest(self):
        return np.max([np.abs(block).max(axis=0) for _, block in self.blocks(64)], axis=0)

    def column_squares(self, weights, shift):
        return sum(s @ v**2 for _, s, v in self.by_rows(weights, shift))

    def row_squares(self, shift):
        return np.concatenate([(v**2).sum(axis=1) for _, _, v in self.by_rows(None, shift)])

    def accuracy(self, weights, magnitude=None):
        n, d = self.shape
        if magnitude is None:
            magnitude = np.sqrt(self.column_squares(weights, None))
        return Accuracy(d + 2.0, n + 2.0, magnitude)

    def take(self, rows):
        picked = np.arange(self.shape[0])[rows]
        return BlockDesign([np.array([self.row(i) for i in picked]).reshape(-1, self.shape[1])])

    def row(self, i):
        part = int(np.searchsorted(self.starts, i, side="right")) - 1
        return np.array(self.parts[part][i - self.starts[part]])


LOSSES = (
    "squared",
    "absolute",
    "quantile",
    "huber",
    "logistic",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "maximum_error",
    "hinge",
    "squared_hinge",
    "poisson",
    "gamma",
)
PENALTIES = ("none", "l2", "l1", "elastic_net", "group")


def problem_on(blocks, loss, penalty, shape):
    rng = np.random.default_rng(0)
    n, d = shape
    X = rng.normal(size=shape) * np.linspace(0.5, 2.0, d)
    score = X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)
    loss = as_loss(loss)
    if "margins" in loss.capabilities:
        score = np.where(score > 0, 1.0, -1.0)
    elif "log_link" in loss.capabilities:
        score = rng.poisson(np.exp(0.3 * score)) + 1.0
    design = BlockDesign(np.array_split(X, 3)) if blocks else as_design(X)
    return Problem(design, score[:, None], loss, as_penalty(penalty), fit_intercept=n > d)


CASES = [
    pytest.param(name, loss, penalty, shape, id=f"{name}-{loss}-{penalty}-{shape[0]}x{shape[1]}")
    for name, solver in SOLVERS.items()
    if not solver.is_textbook
    for loss in LOSSES
    for penalty in PENALTIES
    if missing(solver, as_loss(loss), as_penalty(penalty)) is None
    for shape in ((90, 5), (12, 20))
    if solver.refuses(Facts.of(problem_on(True, loss, penalty, shape))) is None
]


def test_every_solver_takes_part():
    names = {case.values[0] for case in CASES}
    # For other penalties or losses than those above, or for sparse rows.
    special = {"active_set", "non_crossing", "dual_class_descent", "class_interior_point"}
    special |= {"entropy_dual_descent"}
    assert names >= {name for name, s in SOLVERS.items() if not s.is_textbook} - special


@pytest.mark.parametrize(("name", "loss", "penalty", "shape"), CASES)
def test_blocks_of_rows_are_enough_for_a_solver(name, loss, penalty, shape):
    found = []
    for blocks in (True, False):
        problem = problem_on(blocks, loss, penalty, shape)
        solution = SOLVERS[name].solve(problem, Options(tol=1e-9, max_iter=2000), Monitor())
        found.append(problem.objective(solution.coef, solution.intercept))
    assert found[0] == pytest.approx(found[1], rel=1e-6, abs=1e-9)
