r"""Proximal Newton steps for the softmax on small dense tables, by their whole Hessian.

    minimise over V     suri s_i (log surt exp(z_it) - z_i,y_i)
                        + surjt ( l_j abs(V_jt) + q_j/2 V_jt^2 ),          z_i = a_i.V

The counterpart of :mod:`trueline.solvers.proximal_newton.few_columns`, whose model it minimises,
for scores that are coupled: with few coefficients the whole Hessian

    H_(t,u) = A^T diag(s_i p_it ([t = u] - p_iu)) A

costs less than the calls of NumPy for conjugate gradients. With squares alone a step is Newton's.

The same shift of all scores changes no loss: H is singular along it, and a ridge that is small
beside the diagonal keeps the intercepts where they are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.tangent import is_tangent, reach_of_classes
from trueline.design import DenseDesign
from trueline.numerics.blas import single_threaded_blas
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Monitor, Options
from trueline.solvers.iterative import best_constant, target_gap
from trueline.solvers.newton.batched.steps import add, form_gram
from trueline.solvers.pending import KEPT, PendingTangent
from trueline.solvers.proximal_newton.few_columns import StandardColumns, minimise_model
from trueline.wording import counted

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
Integers = NDArray[np.intp]

# Coefficients, and multiplications for a Hessian, beyond which conjugate gradients are faster; and
# beyond which working sets are, where there are absolute values.
_MOST_COEFFICIENTS, _MOST_WORK = (200, 500), (200_000_000, 600_000_000)
# The share of the gap asked for at which steps end: the proof has rounding of its own.
_ENOUGH = 0.01
_MOST_STEPS, _IDLE = 200, 15
# Of the diagonal, in the model, whose sums are in single precision.
_RIDGE = 1e-6
# Of the objective, what the rounding of scores and the reach of intercepts hide from a proof.
_UNSEEN = 1e-6
# Part of the slope at the start that may be left at the end of a step; looks for it.
_REST, _TRIALS = 0.25, 30


class Table(NamedTuple):
    """A problem.

    Attributes
    ----------
    A : array of shape (q, n)
        Columns of about the same size.
    y : array of shape (n,)
        The number of the class.
    s : array of shape (n,)
    linear, quad : arrays of shape (q,)
        Zero for an intercept, which is the last.
    goal, ceiling : float
        The gap that is enough, and an objective that is reached.
    reach : float
        How far intercepts may be from each other, beside how far these are.
    """

    A: Array
    y: Integers
    s: Array
    linear: Array
    quad: Array
    goal: float
    ceiling: float
    reach: float


def _derivatives_whole(table: Table, Z: Array, P: Array, U: Array) -> None:
    np.exp(Z - Z.max(axis=0), out=P)
    own = np.arange(len(Z))[:, None] == table.y
    others, whole = np.where(own, 0.0, P), P.sum(axis=0)
    U[:] = np.where(own, -others.sum(axis=0), others) * (table.s / whole)
    P /= whole


@kernel(reassociate=True, whole=_derivatives_whole)
def _derivatives(table: Table, Z: Array, P: Array, U: Array) -> None:
    """The probabilities p_it, and the derivatives s_i (p_it - [t = y_i]) without cancellation."""
    k, n = Z.shape
    most, total, others = Z[0].copy(), np.zeros(n), np.zeros(n)
    for t in range(1, k):
        for i in range(n):
            most[i] = max(most[i], Z[t, i])
    for t in range(k):
        for i in range(n):
            small = math.exp(Z[t, i] - most[i])
            P[t, i] = small
            total[i] += small
            others[i] += small if t != table.y[i] else 0.0
    for t in range(k):
        for i in range(n):
            own = P[t, i] / total[i]
            P[t, i] = own
            U[t, i] = table.s[i] * (own if t != table.y[i] else -others[i] / total[i])


def _hessian_whole(A: Floats, s: Array, P: Array, H: Array) -> None:
    q = len(A)
    for t in range(len(P)):
        for r in range(t + 1):
            h = (s * P[t] * (float(t == r) - P[r])).astype(A.dtype)
            block = (A * h) @ A.T
            H[t * q : t * q + q, r * q : r * q + q] = block
            H[r * q : r * q + q, t * q : t * q + q] = block


@kernel(reassociate=True, whole=_hessian_whole)
def _hessian(A: Floats, s: Array, P: Array, H: Array) -> None:
    """The Hessian of the losses, class by class."""
    q, n = A.shape
    h, block = np.empty(n), np.empty((q, q + 3))
    for t in range(len(P)):
        for r in range(t + 1):
            same = 1.0 if t == r else 0.0
            for i in range(n):
                h[i] = s[i] * P[t, i] * (same - P[r, i])
            form_gram(A, h, block)
            for j in range(q):
                for m in range(j + 1):
                    H[t * q + j, r * q + m] = H[t * q + m, r * q + j] = block[j, m]
                    H[r * q + j, t * q + m] = H[r * q + m, t * q + j] = block[j, m]


@kernel
def _gap(table: Table, V: Array, G: Array) -> float:
    """About the gap that will be proven, by the slopes G of the losses."""
    gap, ratio, squares, steep, low, high = 0.0, 0.0, 0.0, 0.0, np.inf, -np.inf
    for t in range(len(V)):
        for j in range(V.shape[1]):
            linear, quad, v, g = table.linear[j], table.quad[j], V[t, j], G[t, j]
            excess = max(abs(g) - linear, 0.0)
            if linear + quad == 0.0:
                steep, low, high = steep + abs(g), min(low, v), max(high, v)
            elif linear == 0.0:
                gap += 0.5 * (quad * v + g) ** 2 / quad
            else:
                gap += linear * abs(v) + (0.5 * quad * v + g) * v
                ratio = max(ratio, excess / linear)
                squares += 0.5 * excess * excess / quad if quad > 0.0 else np.inf
    if steep > 0.0:
        gap += 0.5 * steep * (table.reach + high - low)
    return gap + min(ratio * table.ceiling, squares)


@kernel
def _step(H: Array, state: Array, V: Array, G: Array) -> int:
    """The first row of ``state`` becomes the minimum of the model; the sweeps it took.

    The other rows are q, the strengths of absolute values and of squares, and bounds.
    """
    v, g = V.ravel(), G.ravel()
    for a in range(len(v)):
        H[a, a] = H[a, a] * (1.0 + _RIDGE) if H[a, a] > 0.0 else 1.0
    if state[2].any():
        for a in range(len(v)):
            state[0, a], state[1, a] = v[a], -g[a]
        return minimise_model(H, state, np.empty(len(v)))
    for a in range(len(v)):
        H[a, a] += state[3, a]
        state[1, a] = -(g[a] + state[3, a] * v[a])
    step = np.linalg.solve(H, state[1])
    for a in range(len(v)):
        state[0, a] = v[a] + step[a]
    return 0


def _minimise_whole(*arguments: Any) -> tuple[int, int, float]:
    """The loop as it is: all that goes over rows in it has a form for whole arrays."""
    return minimise.py_func(*arguments)  # type: ignore[attr-defined]


@kernel(whole=_minimise_whole)
def minimise(table: Table, V: Array, limit: int) -> tuple[int, int, float]:
    """Steps from V, of shape (k, q), until the gap is small enough or rounding ends them.

    Returns steps, sweeps and the gap.
    """
    (k, q), n = V.shape, len(table.y)
    single, H, state = table.A.astype(np.float32), np.empty((k * q, k * q)), np.zeros((7, k * q))
    P, U, ahead, D = np.empty((k, n)), np.empty((k, n)), np.empty((k, n)), np.empty((k, q))
    for t in range(k):
        for j in range(q):
            state[2, t * q + j], state[3, t * q + j] = table.linear[j], table.quad[j]
            state[4, t * q + j], state[5, t * q + j] = -np.inf, np.inf
    least, idle, steps, sweeps = np.inf, 0, 0, 0
    Z = V @ table.A
    _derivatives(table, Z, P, U)
    while True:
        G = U @ table.A.T
        gap = _gap(table, V, G)
        idle = 0 if gap <= 0.5 * least else idle + 1
        least = min(least, gap)
        if gap <= table.goal or steps == limit or idle > _IDLE:
            return steps, sweeps, gap
        _hessian(single, table.s, P, H)
        sweeps += _step(H, state, V, G)
        chord, own, across, before = 0.0, 0.0, 0.0, 0.0
        for t in range(k):
            for j in range(q):
                v, w = V[t, j], state[0, t * q + j]
                D[t, j] = w - v
                chord += table.linear[j] * (abs(w) - abs(v))
                own += table.quad[j] * v * D[t, j]
                across += table.quad[j] * D[t, j] ** 2
                before += G[t, j] * D[t, j]
        before += chord + own
        if not before < 0.0:
            return steps, sweeps, gap
        dZ = D @ table.A
        length, low, at_low, high, at_high = 1.0, 0.0, before, np.inf, np.inf
        for _ in range(_TRIALS):
            add(Z.ravel(), length, dZ.ravel(), ahead.ravel())
            _derivatives(table, ahead, P, U)
            slope = float(U.ravel() @ dZ.ravel()) + own + length * across + chord
            if abs(slope) <= _REST * abs(before) or (slope < 0.0 and length == 1.0):
                break
            if slope < 0.0:
                low, at_low = length, slope
            else:
                high, at_high = length, slope
            share = at_low / (at_low - at_high) if at_high < np.inf else 0.1
            length = low + (high - low) * min(max(share, 0.1), 0.9)
        for t in range(k):
            for j in range(q):
                # After a whole step, what the model set to zero is there exactly.
                w = state[0, t * q + j]
                V[t, j] = w if length == 1.0 else V[t, j] + length * D[t, j]
        add(ahead.ravel(), 0.0, Z.ravel(), Z.ravel())
        steps += 1


def suits(problem: Problem) -> bool:
    """Whether a problem is small, and of the kind that these steps are for."""
    (n, d), k, loss = problem.design.shape, problem.n_targets, problem.loss.capabilities
    size, has_linear = k * (d + 1), bool(np.any(problem.penalty.linear))
    return bool(
        {"coupled", "multinomial"} <= loss
        and not (problem.design.is_sparse or problem.design.is_sequential)
        and size <= _MOST_COEFFICIENTS[has_linear]
        and n * size**2 <= _MOST_WORK[has_linear]
        and np.ndim(problem.penalty.linear) == 0
        and np.ndim(problem.penalty.curvature) == 0
        and "nonnegative" not in problem.penalty.capabilities
        and (problem.weights is None or problem.weights.all())
        and is_tangent(problem)
    )


def solve_few_classes(
    problem: Problem, options: Options, monitor: Monitor, name: str
) -> Solution | None:
    """The solution of a problem that suits; None where that was not proven.

    Parameters
    ----------
    problem : Problem
    options : Options
    monitor : Monitor
    name : str
        The solver that asks.
    """
    is_free = options.start is None and monitor.keep is None and not monitor.is_watching
    if not (is_free and suits(problem)):
        return None
    X, Y, d, penalty = problem.design.toarray(), problem.target, problem.n_features, problem.penalty
    columns = StandardColumns(problem, X)
    A, s, size = columns.A, columns.s, columns.size
    unit, level = target_gap(problem, 1.0), best_constant(problem)
    linear, quad = np.zeros(len(A)), np.zeros(len(A))
    linear[:d], quad[:d] = penalty.linear / size, penalty.curvature / size**2
    reach = 0.0
    if problem.fit_intercept:
        members = s[:, None] * Y
        shares = members.sum(axis=0)
        means = np.abs(members.T @ A[:d].T) / shares[:, None]
        strengths = linear[:d, None], quad[:d, None]
        reach = max(float(reach_of_classes(problem.loss, *strengths, unit, shares, means).max()), 0)
    table = Table(A, Y.argmax(axis=1), s, linear, quad, _ENOUGH * options.tol * unit, unit, reach)
    V = np.zeros((len(level), len(A)))
    V[:, d:] = level[:, None]
    limit = min(_MOST_STEPS, options.max_iter or _MOST_STEPS)
    with single_threaded_blas():
        steps, sweeps, gap = minimise(table, V, limit)
    W = np.ascontiguousarray((V[:, :d] / size).T)
    b = np.zeros(len(level))
    if problem.fit_intercept:
        b = V[:, d] - columns.middle @ W
        b -= b.mean()  # the same shift of all scores changes no loss
    far = reach + float(np.ptp(V[:, d:])) if problem.fit_intercept else 0.0
    kept = replace(problem, design=DenseDesign(X.copy()), target=Y.copy())
    proof: PendingTangent | Certificate
    proof = PendingTangent(kept, W, b, columns.middle, columns.spread, gap, unit, far)
    if X.size > KEPT or proof.bound() > options.tol * unit:
        with single_threaded_blas():
            proof = proof.certificate()
        # More than that is not for rounding to hide: whoever asked goes on by other steps.
        if not (gap <= table.goal and proof.gap <= options.tol * unit + _UNSEEN * proof.objective):
            return None
    notes = [
        f"{counted(steps, 'proximal Newton step')} with the whole Hessian, "
        f"{counted(sweeps, 'sweep')} of coordinate descent, compiled as a whole"
    ]
    return monitor.solution(proof, Status.CONVERGED, name, steps, notes=notes)
