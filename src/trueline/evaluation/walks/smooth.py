r"""Smooth losses with squares, for all strengths and all folds together.

Along increasing C every fold starts at its own solution of the C before, and all folds take their
Newton steps together, so that a product with the data serves all of them
(:mod:`trueline.evaluation.walks.batch`). The Hessian of the mean problem (every row with the share
of the folds that train on it) preconditions theirs. Test rows help to solve the equations of a fold
faster, never to state them or to start: what a fold learns, it learns from its training rows, also
when it stops early. The scores of all rows, test rows included, are known at the end and need no
further product.

Sparse rows of losses that are not coupled are read in compiled code
(:mod:`trueline.evaluation.walks.kernels`): a product reads those rows alone that bend.

Wide data are turned: with X^T = Q R the squares of the coefficients are those of Q^T w, so that n
columns are enough, X Q = R^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.evaluation.task import Task
from trueline.evaluation.walks.base import Setting
from trueline.evaluation.walks.batch import (
    Batch,
    Precondition,
    Rows,
    factor_hessian,
    solve_batch,
    solve_factors,
)
from trueline.evaluation.walks.curves import CURVES
from trueline.evaluation.walks.joint import (
    JointWalk,
    SolvedFolds,
    fold_weights,
    judge_decrease,
)
from trueline.evaluation.walks.lanes import LANES
from trueline.evaluation.walks.shifted import solve_shifted
from trueline.guard import Verdict
from trueline.wording import counted

__all__ = ["SmoothWalk"]

Array = NDArray[np.float64]

# Of the objective: for grids below what can move more than a label in a thousand of test rows; for
# one model alone as fine as rounding allows, so that scores of any kind keep their digits.
_TOL, _FINE = 1e-6, 1e-14
# The same for residuals of linear equations.
_RESIDUAL, _FINE_RESIDUAL = 1e-5, 1e-13
# Hessians of this many columns (times coupled scores) are cheaper to factor than to do without.
_MOST_COLUMNS = 700
# Losses that compiled code knows, by the number it knows them by; the limits of its loops.
KINDS = {"logistic": 0, "squared_hinge": 1}
_LIMITS = 60, 60, 30
# Scores that are kept at a time.
_MOST_SCORES = 2**25


class SmoothWalk(JointWalk):
    """Logistic regression, linear support vector machines or ridge regression on signs.

    Parameters
    ----------
    loss : str
        One of :data:`~trueline.evaluation.walks.curves.CURVES`.
    strengths : sequence of float
        Strength of the squares in each setting.
    """

    route = "all folds at once: Newton steps that share their products, along the strengths"

    def __init__(
        self, model: Any, settings: Sequence[Setting], loss: str, strengths: Sequence[float]
    ) -> None:
        super().__init__(model, settings)
        self.loss, self.strengths = loss, np.asarray(strengths, dtype=float)
        self.tol = _TOL if len(self.settings) > 1 else _FINE

    def solve(self, task: Task) -> SolvedFolds:
        if self.loss == "squared":
            return self._solve_squares(task)
        if self.loss in KINDS and sp.issparse(task.matrix):
            return self._solve_sparse(task)
        X, basis = _turned(task.matrix)
        intercept = bool(self.model.fit_intercept)
        rows = Rows(X, intercept)
        S = fold_weights(task)
        n, d = rows.n, rows.d
        folds, m = S.shape[1], len(self.strengths)
        Y = _target(task, self.loss)
        k = Y.shape[2]
        curve = CURVES[self.loss]
        W, b = np.empty((d, m, folds, k)), np.empty((m, folds, k))
        codes = np.empty((n, m, folds), dtype=np.int16)
        width = k * (d + 1) if curve.is_coupled else d + 1
        dense = not rows.is_sparse and width <= _MOST_COLUMNS
        V = np.zeros((d + 1, folds, k))
        judged: list[list[Verdict]] = [[] for _ in range(folds)]
        units = S.T @ curve.value(Y, np.zeros_like(Y))[:, 0].sum(axis=1)
        for number, i in enumerate(np.argsort(-self.strengths, kind="stable")):
            task.watch(f"strength {number + 1} of {m}, {counted(folds, 'fold')} at once")
            quad = np.full((d + 1, 1), self.strengths[i])
            quad[-1] = self._intercept_strength(self.strengths[i])
            precondition: Precondition | None = None
            if dense:
                centre = Batch(rows, curve, Y, S.mean(axis=1, keepdims=True), quad)
                middle = rows.scores(V.mean(axis=1, keepdims=True))
                precondition = _near(factor_hessian(centre, middle)[0], curve, intercept)
            every = Batch(rows, curve, Y, S, np.repeat(quad, folds, axis=1))
            V, Z, left = solve_batch(every, V, precondition, self.tol)
            for own, decrease, objective, unit in zip(judged, *left, units, strict=True):
                own.append(judge_decrease(decrease, objective, unit, self.tol))
            W[:, i], b[i] = V[:-1], V[-1]
            codes[:, i] = (Z[:, :, 0] > 0) if k == 1 else Z.argmax(axis=2)
        if basis is not None:
            W = np.tensordot(basis, W, axes=1)
        return SolvedFolds(W, b, codes, judged)

    def _solve_sparse(self, task: Task) -> SolvedFolds:
        """Scores that are not coupled, on sparse rows: in compiled code."""
        self.route = "Newton steps along the strengths, each fit starting at the one before"
        X: Any = sp.csr_array(task.matrix)
        S, Y = fold_weights(task), task.targets
        (n, d), folds, k, m = X.shape, S.shape[1], Y.shape[1], len(self.strengths)
        W, b = np.empty((d, m, folds, k)), np.empty((m, folds, k))
        codes = np.empty((n, m, folds), dtype=np.int16)
        # Folds go together, or the classes of a fold: their scores are compared.
        size = min(LANES, max(1, _MOST_SCORES // (m * n))) if k == 1 else 1
        weakest, judged = int(np.argmin(self.strengths)), list[list[Verdict]]()
        for start in range(0, folds, size):
            own = range(start, min(start + size, folds))
            targets = Y.T if k > 1 else np.repeat(Y.T, len(own), axis=0)
            weights = np.repeat(S[:, own].T, k, axis=0)
            V, Z = self._paths(X, targets, weights)
            for number, f in enumerate(own):
                part = slice(number * k, (number + 1) * k)
                W[:, :, f], b[:, f] = V[part, :, :-1].transpose(2, 1, 0), V[part, :, -1].T
                codes[:, :, f] = (Z[number] > 0).T if k == 1 else Z[part].argmax(axis=0).T
                # The last fit of the path, at which all others were on the way.
                ends = V[part, weakest], Z[part, weakest], targets[part], S[:, f]
                judged.append([self._judge(X, *ends, self.strengths[weakest])])
        return SolvedFolds(W, b, codes, judged)

    def _judge(self, X: Any, V: Array, Z: Array, Y: Array, s: Array, strength: float) -> Verdict:
        """By slopes and curvatures that are computed afresh."""
        curve, d = CURVES[self.loss], X.shape[1]
        y, z = Y.T[:, None, :], Z.T[:, None, :]
        U, state = curve.look(y, z)
        slopes, bends = s[:, None] * U[:, 0], s[:, None] * state[:, 0]
        constant = self._intercept_strength(strength)
        quad = np.append(np.full(d, strength), constant)
        g = np.vstack([X.T @ slopes, slopes.sum(axis=0)]) + quad[:, None] * V.T
        h = np.vstack([X.power(2).T @ bends, bends.sum(axis=0)]) + quad[:, None]
        if not self.model.fit_intercept:
            g[-1] = 0.0
        decrease = 0.5 * float((g**2 / np.where(h > 0, h, 1.0)).sum())
        losses = float((s[:, None] * curve.value(y, z)[:, 0]).sum())
        unit = float((s[:, None] * curve.value(y, np.zeros_like(z))[:, 0]).sum())
        squares = 0.5 * float((quad * V**2).sum())
        return judge_decrease(decrease, losses + squares, unit, self.tol)

    def _paths(self, X: Any, Y: Array, S: Array) -> tuple[Array, Array]:
        """Coefficients (p, m, d + 1) and scores (p, m, n) for targets and weights (p, n)."""
        from trueline.evaluation.walks.kernels import newton_paths

        (n, d), p, m = X.shape, len(Y), len(self.strengths)
        order = np.argsort(-self.strengths, kind="stable")
        strengths = self.strengths[order]
        constants = np.array([self._intercept_strength(a) for a in strengths])
        path = strengths, constants
        intercept = bool(self.model.fit_intercept)
        V, Z = np.empty((p, m, d + 1)), np.empty((p, m, n))
        for start in range(0, p, LANES):
            own = slice(start, start + LANES)
            problems = np.ascontiguousarray(Y[own]), np.ascontiguousarray(S[own])
            rows = X.data, X.indices, X.indptr, KINDS[self.loss]
            newton_paths(*rows, *problems, *path, intercept, self.tol, _LIMITS, V[own], Z[own])
        back = np.argsort(order)
        return V[:, back], Z[:, back]

    def _solve_squares(self, task: Task) -> SolvedFolds:
        """Least squares: all strengths from one Krylov space for each fold."""
        rows = Rows(task.matrix, bool(self.model.fit_intercept))
        tol = _RESIDUAL if len(self.settings) > 1 else _FINE_RESIDUAL
        W, b, verdicts = solve_shifted(rows, task.targets, fold_weights(task), self.strengths, tol)
        d, m, folds, k = W.shape
        codes = np.empty((rows.n, m, folds), dtype=np.int16)
        for i in range(m):
            Z = np.asarray(rows.X @ W[:, i].reshape(d, folds * k)).reshape(-1, folds, k) + b[i]
            codes[:, i] = (Z[:, :, 0] > 0) if k == 1 else Z.argmax(axis=2)
        return SolvedFolds(W, b, codes, [list(verdicts) for _ in range(folds)])

    def _intercept_strength(self, strength: float) -> float:
        """Of the intercept, where it is the coefficient of a constant column."""
        scaling = getattr(self.model, "intercept_scaling", None)
        is_penalised = type(self.model).__name__ == "LinearSVC" and scaling is not None
        return strength / float(scaling) ** 2 if is_penalised and scaling else 0.0


def _near(factors: list[Any], curve: Any, intercept: bool) -> Precondition:
    """The same factors for all problems."""
    return lambda R, live: solve_factors(factors, R, curve.is_coupled, intercept)


def _turned(X: Any) -> tuple[Any, Array | None]:
    """Wide dense rows in n columns, and the basis that turns coefficients back."""
    n, d = X.shape
    if sp.issparse(X) or d <= n:
        return X, None
    Q, R = np.linalg.qr(X.T)
    return np.ascontiguousarray(R.T), Q


def _target(task: Task, loss: str) -> Array:
    """Signs, by class if there are more than two, or one-hot rows; of shape (n, 1, k)."""
    if loss == "softmax":
        classes, codes = task.labels
        return np.eye(len(classes))[codes][:, None, :]
    return task.targets[:, None, :]
