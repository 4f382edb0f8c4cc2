r"""Softmax regression on dense rows of few columns, for all strengths and all folds.

    P(V) = sum_i s_i (log sum_c exp(a_i.v_c) - a_i.v_yi) + sum_jc ( l |v_jc| + q/2 v_jc^2 )

a_i = [x_i - mean, 1]. The Hessian has (d + 1) k columns: to form it costs as much as ten or twenty
gradients. So it is kept: the folds share most of their rows, and their solutions are close. A step
goes to the minimum of

    G.D + 1/2 D.H D + penalty(V + D),

with G of the training rows of the fold, always, and H of whichever fold and point it was made at;
it is made again where the steps that are left, at the rate at which they shrink, would cost more
than that (Shamanskii's variant of Newton's method: C. T. Kelley, "Iterative Methods for Linear and
Nonlinear Equations", SIAM 1995, section 5.4). Rows of a fold's test part that are in H change the
way to the answer, not the answer. A fold starts at its own solution of the strength before.

A fold is done when the decrease that the model promises is below ``tol`` times the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from trueline._jit import kernel
from trueline.evaluation.walks.joint import judge_decrease
from trueline.guard import Verdict
from trueline.solvers.columns.descent import least_penalised

__all__ = ["solve_coupled", "suits_coupled"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Wider Hessians are dear to factor.
_MOST_COLUMNS = 700
# Squares alone: a Hessian of w columns is factored for each fold, w^3 / 3 operations. Conjugate
# gradients with one preconditioner for all folds need some dozen products with the rows instead,
# 2 n w operations each, and do not mind hard data; measured, w^2 = 30 n is where they draw level.
_ROWS_PER_SQUARE = 30
# Absolute values: with fewer rows for each coefficient the Hessians of the folds differ too much to
# be shared, and each step would need its own.
_ROWS_PER_COLUMN = 3
_STEPS, _HALVINGS, _SUFFICIENT = 100, 30, 1e-4
# A new Hessian must save so many steps; fewer in the first fold, as the others will use it too.
_PATIENCE, _FIRST_PATIENCE = 12, 5
# Rows at a time, so that what they are multiplied by stays in the cache.
_BLOCK = 1024
# Products of pairs of columns are formed once for all classes where they fit into the cache.
_FEW_COLUMNS = 16
# Of the diagonal: shifts of all scores by the same, which no loss feels, stay where they are.
_TRACE = 1e-9
# Coordinate descent on the model: most sweeps, and the share of the first violation it leaves.
_SWEEPS, _LEFT = 300, 1e-3


def suits_coupled(n: int, d: int, k: int, has_absolute_values: bool) -> bool:
    """Whether sharing a Hessian is expected to be faster than the other ways."""
    w = (d + 1) * k
    if w > _MOST_COLUMNS:
        return False
    return n >= _ROWS_PER_COLUMN * w if has_absolute_values else w**2 <= _ROWS_PER_SQUARE * n


@kernel
def softmax_slopes(Z: Array, codes: Integers, s: Array, U: Array) -> float:
    """The weighted losses' sum; their slopes go to U. Rows without weight are not read."""
    value = 0.0
    k = Z.shape[1]
    for i in range(len(s)):
        if s[i] == 0.0:
            U[i, :] = 0.0
            continue
        own, top = codes[i], Z[i, 0]
        for c in range(1, k):
            top = max(top, Z[i, c])
        others = 0.0
        for c in range(k):
            U[i, c] = np.exp(Z[i, c] - top)
            if c != own:
                others += U[i, c]
        total = others + U[i, own]
        # From the others alone: rows that are well classified keep their digits.
        is_top = Z[i, own] == top
        value += s[i] * (np.log1p(others) if is_top else np.log(total) + top - Z[i, own])
        share = s[i] / total
        for c in range(k):
            U[i, c] *= share
        U[i, own] = -others * share
    return value


@dataclass
class _Point:
    """Where a fold is: coefficients (m, k), scores (n, k), the loss and its slopes."""

    V: Array
    Z: Array
    U: Array
    loss: float
    G: Array


class _Rows:
    """Dense rows with a column of ones, centred for it."""

    def __init__(self, X: Array, codes: Integers, k: int, fit_intercept: bool) -> None:
        self.centre = X.mean(axis=0) if fit_intercept else np.zeros(X.shape[1])
        last = np.full((len(X), 1), float(fit_intercept))
        self.A = np.hstack([X - self.centre, last])
        self.codes, self.k = codes.astype(np.int64), k

    def look(self, V: Array, s: Array) -> _Point:
        """Everything at V."""
        Z = self.A @ V
        U = np.empty_like(Z)
        loss = softmax_slopes(Z, self.codes, s, U)
        return _Point(V, Z, U, loss, self.A.T @ U)

    def hessian(self, at: _Point, s: Array) -> Array:
        """sum_i s_i (diag(p_i) - p_i p_i^T) kron a_i a_i^T, ordered by column."""
        m, k = self.A.shape[1], self.k
        H = np.zeros((m * k, m * k))
        diagonal = np.zeros((k, m, m))
        used = np.flatnonzero(s)
        for start in range(0, len(used), _BLOCK):
            some = used[start : start + _BLOCK]
            A, w = self.A[some], s[some]
            Q = at.U[some]
            Q[np.arange(len(some)), self.codes[some]] += w  # s p
            B = (A[:, :, None] * (Q / np.sqrt(w)[:, None])[:, None, :]).reshape(len(some), m * k)
            H -= B.T @ B
            if m <= _FEW_COLUMNS:
                pairs = (A[:, :, None] * A[:, None, :]).reshape(len(some), m * m)
                diagonal += (Q.T @ pairs).reshape(k, m, m)
            else:
                for c in range(k):
                    diagonal[c] += A.T @ (A * Q[:, c, None])
        for c in range(k):
            H[c::k, c::k] += diagonal[c]
        return H


class _Model:
    """The Hessian for a unit of weight, kept for all folds until it is made again."""

    def __init__(self) -> None:
        self.H = np.empty((0, 0))
        self.version = 0
        self._factor: tuple[object, Any] = (None, None)

    def renew(self, H: Array, weight: float) -> None:
        diagonal = np.maximum(H.diagonal(), 0.0)
        # Where no row bends nothing is divided by zero.
        flat = float(diagonal.max(initial=0.0)) or 1.0
        H[np.diag_indices(len(H))] = np.where(diagonal > 0, diagonal * (1 + _TRACE), flat)
        self.H = H / weight
        self.version += 1

    def step(self, V: Array, G: Array, linear: Array, quad: Array, weight: float) -> Array:
        """The best step, G of the losses and the squares."""
        k = V.shape[1]
        if not linear.any():
            key = self.version, weight, float(quad[0])
            if self._factor[0] != key:
                H = weight * self.H
                H[np.diag_indices(len(H))] += np.repeat(quad, k)
                self._factor = key, cho_factor(H, lower=True, overwrite_a=True)
            return -cho_solve(self._factor[1], G.ravel()).reshape(V.shape)
        from trueline.solvers.columns.kernels import solve_gram

        H = weight * self.H
        H[np.diag_indices(len(H))] += np.repeat(quad, k)
        D = np.zeros(V.size)
        solve_gram(H, V.ravel(), G.ravel().copy(), np.repeat(linear, k), _SWEEPS, _LEFT, D)
        return D.reshape(V.shape)


class _Descent:
    """The steps of all folds."""

    def __init__(self, rows: _Rows, linear: Array, quad: Array, tol: float) -> None:
        self.rows, self.linear, self.quad, self.tol = rows, linear, quad, tol

    def penalty(self, V: Array) -> float:
        linear, quad = self.linear[:, None], self.quad[:, None]
        return float((linear * np.abs(V)).sum() + 0.5 * (quad * V * V).sum())

    def run(
        self, V: Array, s: Array, model: _Model, patience: float
    ) -> tuple[_Point, float, float]:
        """Minimise for the weights s, from V; a new Hessian must save ``patience`` steps.

        The point, the decrease that was promised at the end, and the objective.
        """
        rows, weight = self.rows, float(s.sum())
        at = rows.look(V, s)
        objective = at.loss + self.penalty(at.V)
        before, is_new, promise = np.inf, False, np.inf
        for _ in range(_STEPS):
            if not model.version:
                model.renew(rows.hessian(at, s), weight)
                is_new = True
            G = at.G + self.quad[:, None] * at.V
            D = model.step(at.V, G, self.linear, self.quad, weight)
            promise = 0.5 * self._promise(at.V, G, D)
            if promise <= self.tol * objective:
                break
            if not is_new and self._is_slow(promise, before, objective, patience):
                model.renew(rows.hessian(at, s), weight)
                is_new = True
                continue
            at, objective, t = self._move(at, objective, D, promise, s)
            if t == 0.0:
                if is_new:
                    break
                model.renew(rows.hessian(at, s), weight)
                is_new = True
                continue
            before, is_new = promise, False
        return at, promise, objective

    def _is_slow(self, promise: float, before: float, objective: float, patience: float) -> bool:
        """Whether the steps that are left cost more than a Hessian."""
        if promise >= before:
            return True
        left = np.log(promise / (self.tol * objective))
        return bool(left > patience * np.log(before / promise))

    def _promise(self, V: Array, G: Array, D: Array) -> float:
        """By how much the slope says that the step is going to decrease the objective."""
        rise = (self.linear[:, None] * (np.abs(V + D) - np.abs(V))).sum()
        return -float((G * D).sum() + rise)

    def _move(
        self, at: _Point, objective: float, D: Array, promise: float, s: Array
    ) -> tuple[_Point, float, float]:
        """Along D as far as it helps: the point, its objective, and how far that is."""
        t = 1.0
        for _ in range(_HALVINGS):
            V = at.V + t * D
            if self.linear.any():
                # The same shift of all scores changes no loss: only the penalty decides about it.
                V[:-1] -= least_penalised(V[:-1], self.linear[:-1], self.quad[:-1])
            new = self.rows.look(V, s)
            value = new.loss + self.penalty(V)
            if value <= objective - _SUFFICIENT * t * promise + 1e-13 * objective:
                return new, value, t
            t *= 0.5
        return at, objective, 0.0


def solve_coupled(
    X: Array,
    codes: NDArray[np.intp],
    k: int,
    S: Array,
    strengths: list[tuple[float, float]],
    fit_intercept: bool,
    tol: float,
    start: tuple[Array, Array] | None = None,
    watch: Callable[[str], None] = lambda what: None,
) -> tuple[Array, Array, NDArray[np.int16], list[list[Verdict]]]:
    """All strengths for all folds.

    Parameters
    ----------
    X : array of shape (n, d)
    codes : array of shape (n,)
        Positions of the classes.
    k : int
        How many classes there are.
    S : array of shape (n, folds)
        Weights of the rows in each fold, none for rows not trained on.
    strengths : list of pairs
        Of absolute values and of squares.
    fit_intercept : bool
    tol : float
        The decrease left, relative to the objective.
    start : pair of arrays of shape (d, k) and (k,), optional
        Coefficients and intercepts at which all folds start; zero if there are none.
    watch : callable
        Called with what is being fitted.

    Returns
    -------
    W : array of shape (d, m, folds, k)
    b : array of shape (m, folds, k)
    labels : array of shape (n, m, folds)
        Positions of the classes predicted for all rows.
    verdicts : list of lists of Verdict
        For each fold.
    """
    rows = _Rows(X, codes, k, fit_intercept)
    d, m, folds = X.shape[1], len(strengths), S.shape[1]
    W, b = np.empty((d, m, folds, k)), np.empty((m, folds, k))
    labels = np.empty((len(X), m, folds), dtype=np.int16)
    V = np.zeros((folds, d + 1, k))
    if start is not None:
        V[:, :-1], V[:, -1] = start[0], start[1] + rows.centre @ start[0]
    weights = np.ascontiguousarray(S.T)
    model = _Model()
    judged: list[list[Verdict]] = [[] for _ in range(folds)]
    units = weights.sum(axis=1) * np.log(k)
    for number, i in enumerate(sorted(range(m), key=lambda i: -sum(strengths[i]))):
        linear, quad = (np.append(np.full(d, strength), 0.0) for strength in strengths[i])
        descent = _Descent(rows, linear, quad, tol)
        for f in range(folds):
            watch(f"strength {number + 1} of {m}, fold {f + 1} of {folds}")
            patience = _PATIENCE if f else _FIRST_PATIENCE
            at, decrease, objective = descent.run(V[f], weights[f], model, patience)
            judged[f].append(judge_decrease(decrease, objective, units[f], tol))
            V[f] = at.V
            level = at.V[-1] - rows.centre @ at.V[:-1] if fit_intercept else np.zeros(k)
            W[:, i, f], b[i, f] = at.V[:-1], level - level.mean()
            labels[:, i, f] = at.Z.argmax(axis=1)
    return W, b, labels, judged
