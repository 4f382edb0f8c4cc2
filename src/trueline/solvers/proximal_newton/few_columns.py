r"""Proximal Newton steps on few dense columns, compiled as a whole.

    minimise over v     sum_i s_i l(y_i, a_i.v) + sum_j ( l_j abs(v_j) + q_j/2 v_j^2 )

The steps are those of :mod:`trueline.solvers.proximal_newton.gram`: small tables spend their time
between the steps there, in the interpreter. The model

    minimise over w     g.(w - v) + 1/2 (w - v)^T H (w - v) + sum_j ( l_j abs(w_j) + q_j/2 w_j^2 )

is swept by coordinate descent; Cholesky's factor of the coefficients that are not zero then leads
to its minimum, unless one of them changes its sign on the way: that one is zero, and so on. A step
goes as far as the losses along it plus the chord of the penalty fall.

Its answer is proven as any other, or not taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.duality import RADIUS
from trueline.certificates.tangent import is_held
from trueline.design import DenseDesign
from trueline.losses.logistic import derivatives
from trueline.numerics.blas import single_threaded_blas
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solution import Solution, Status
from trueline.solvers.base import Monitor, Options
from trueline.solvers.coordinate_descent.kernels import descend
from trueline.solvers.newton.batched.steps import add, factor, form_gram, solve_factored
from trueline.solvers.pending import KEPT, PendingDual
from trueline.solvers.piecewise_linear.ramps import scores
from trueline.wording import counted

Array = NDArray[np.float64]

# Columns and numbers beyond which working sets, or threads, are faster.
_MOST_COLUMNS, _MOST_NUMBERS = 200, 4_000_000
# The share of the gap asked for at which steps end: the proof has rounding of its own.
_ENOUGH = 0.01
_MOST_STEPS, _IDLE = 200, 15
# Of the diagonal, in the model: columns may depend on each other.
_RIDGE = 1e-9
# Sweeps of a round, and what they leave of the decrease; rounds, of which one mostly suffices.
_SWEEPS, _LEFT, _ROUNDS = 10, 1e-4, 40
# A coefficient at zero is freed when its slope exceeds its strength by this share.
_SLACK = 1e-11
# Part of the slope at the start that may be left at the end of a step; looks for it.
_REST, _TRIALS = 0.25, 30
# Both labels, as a target; the spread of a column below which it is constant, to rounding.
_LABELS, _FLAT = np.array([[-1.0], [1.0]]), 1e-14


class Table(NamedTuple):
    """A problem of one target.

    Attributes
    ----------
    loss : int
        Its number in :attr:`trueline.losses.Loss.compiled`.
    A : array of shape (q, n)
        Columns of about the same size.
    y, s : arrays of shape (n,)
    linear, quad : arrays of shape (q,)
        Zero for an intercept, which is the last.
    goal, ceiling : float
        The gap that is enough, and an objective that is reached.
    radius : float
        How many times its size a coefficient without a penalty may change, in the proof.
    """

    loss: int
    A: Array
    y: Array
    s: Array
    linear: Array
    quad: Array
    goal: float
    ceiling: float
    radius: float


def _total_whole(A: Array, u: Array, g: Array) -> None:
    g[:] = A @ u


@kernel(reassociate=True, whole=_total_whole)
def _total(A: Array, u: Array, g: Array) -> None:
    """g = sum_i u_i a_i."""
    for j in range(len(g)):
        own, column = 0.0, A[j]
        for i in range(len(u)):
            own += u[i] * column[i]
        g[j] = own


@kernel
def _gap(table: Table, v: Array, g: Array) -> float:
    """About the gap that will be proven, by the slopes g of the losses."""
    gap, ratio, squares = 0.0, 0.0, 0.0
    for j in range(len(v)):
        linear, quad = table.linear[j], table.quad[j]
        if linear + quad == 0.0:
            gap += abs(g[j]) * table.radius * (1.0 + abs(v[j]))
            continue
        gap += linear * abs(v[j]) + (0.5 * quad * v[j] + g[j]) * v[j]
        excess = abs(g[j]) - linear
        if excess > 0.0:
            ratio = max(ratio, excess / linear if linear > 0.0 else np.inf)
            squares += 0.5 * excess * excess / quad if quad > 0.0 else np.inf
    return gap + min(ratio * table.ceiling, squares)


@kernel
def _on_face(H: Array, state: Array, room: Array) -> bool:
    """Go to the minimum over the coefficients that are not zero; False where one has become zero.

    The rows of ``state`` are w, q, the strengths of absolute values and of squares.
    """
    w, q, linear, quad = state[0], state[1], state[2], state[3]
    own, m = np.empty(len(w), dtype=np.intp), 0
    for j in range(len(w)):
        if w[j] != 0.0 or linear[j] == 0.0:
            own[m] = j
            m += 1
    if m == 0:
        return True
    L, fall, step = np.empty((m, m + 3)), np.empty(m), np.empty(m)
    for a in range(m):
        j = own[a]
        for b in range(a + 1):
            L[a, b] = H[j, own[b]]
        L[a, a] += quad[j]
        room[a] = 1.0 / np.sqrt(L[a, a])
        sign = 1.0 if w[j] > 0.0 else -1.0
        fall[a] = quad[j] * w[j] - q[j] + (linear[j] * sign if linear[j] > 0.0 else 0.0)
    for a in range(m):
        for b in range(a + 1):
            L[a, b] *= room[a] * room[b]
    if factor(L, m) == 0.0:
        return True
    solve_factored(L, room[:m], fall, step)
    t, last = 1.0, -1
    for a in range(m):
        j = own[a]
        if linear[j] > 0.0 and w[j] * (w[j] + t * step[a]) < 0.0:
            t, last = -w[j] / step[a], a
    for a in range(m):
        j = own[a]
        change = -w[j] if a == last else t * step[a]
        w[j] = 0.0 if a == last else w[j] + change
        for k in range(len(q)):
            q[k] -= change * H[j, k]
    return last < 0


@kernel
def minimise_model(H: Array, state: Array, room: Array) -> int:
    """Sweeps and faces in turn until no coefficient at zero asks for more; the sweeps."""
    q, sweeps = len(room), 0
    for _ in range(_ROUNDS):
        count, _ = descend(H, state, q, _SWEEPS, 0.0)
        sweeps += count
        for _ in range(q):
            if _on_face(H, state, room):
                break
        is_done = True
        for j in range(q):
            if state[0, j] == 0.0 and abs(state[1, j]) > state[2, j] * (1.0 + _SLACK):
                is_done = False
        if is_done:
            break
    return sweeps


def _minimise_whole(*arguments: Any) -> tuple[int, int, float]:
    """The loop as it is: all that goes over rows in it has a form for whole arrays."""
    return minimise.py_func(*arguments)  # type: ignore[attr-defined]


@kernel(whole=_minimise_whole)
def minimise(table: Table, v: Array, z: Array, limit: int) -> tuple[int, int, float]:
    """Steps from v, until the gap is small enough or rounding ends them: steps, sweeps, gap.

    In the end z are the scores.
    """
    q, n = table.A.shape
    H, square, state = np.empty((q, q + 3)), np.empty((q, q)), np.empty((7, q))
    u, h, dz, ahead = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    g, step, room = np.empty(q), np.empty(q), np.empty(q)
    for j in range(q):
        state[2, j], state[3, j] = table.linear[j], table.quad[j]
        state[4, j], state[5, j] = -np.inf, np.inf
    least, idle, steps, sweeps = np.inf, 0, 0, 0
    scores(table.A, v, z)
    derivatives(table.loss, table.y, z, table.s, u, h)
    while True:
        _total(table.A, u, g)
        gap = _gap(table, v, g)
        idle = 0 if gap <= 0.5 * least else idle + 1
        least = min(least, gap)
        if gap <= table.goal or steps == limit or idle > _IDLE:
            return steps, sweeps, gap
        form_gram(table.A, h, H)
        for j in range(q):
            H[j, j] = H[j, j] * (1.0 + _RIDGE) if H[j, j] > 0.0 else 1.0
            for k in range(j + 1):
                square[j, k] = square[k, j] = H[j, k]
        add(v, 0.0, v, state[0])
        for j in range(q):
            state[1, j] = -g[j]
        sweeps += minimise_model(square, state, room)
        chord, own, across, before = 0.0, 0.0, 0.0, 0.0
        for j in range(q):
            step[j] = state[0, j] - v[j]
            chord += table.linear[j] * (abs(state[0, j]) - abs(v[j]))
            own += table.quad[j] * v[j] * step[j]
            across += table.quad[j] * step[j] * step[j]
            before += g[j] * step[j]
        before += chord + own
        if not before < 0.0:
            return steps, sweeps, gap
        scores(table.A, step, dz)
        t, low, at_low, high, at_high = 1.0, 0.0, before, np.inf, np.inf
        for _ in range(_TRIALS):
            add(z, t, dz, ahead)
            derivatives(table.loss, table.y, ahead, table.s, u, h)
            slope = float(u @ dz) + own + t * across + chord
            if abs(slope) <= _REST * abs(before) or (slope < 0.0 and t == 1.0):
                break
            if slope < 0.0:
                low, at_low = t, slope
            else:
                high, at_high = t, slope
            share = at_low / (at_low - at_high) if at_high < np.inf else 0.1
            t = low + (high - low) * min(max(share, 0.1), 0.9)
        if t == 1.0:
            add(state[0], 0.0, v, v)
        else:
            add(v, t, step, v)
        add(ahead, 0.0, z, z)
        steps += 1


def suits(problem: Problem) -> bool:
    """Whether a problem is small, and of the kind that these steps are for."""
    n, d = problem.design.shape
    design, penalty, y = problem.design, problem.penalty, problem.target
    return bool(
        problem.loss.compiled
        and not (design.is_sparse or design.is_sequential)
        and d <= min(_MOST_COLUMNS, n)
        and n * (d + 1) <= _MOST_NUMBERS
        and is_held(penalty, (d, problem.n_targets))
        and "nonnegative" not in penalty.capabilities
        and (problem.weights is None or problem.weights.all())
        and ((y.min(axis=0) < 0) & (y.max(axis=0) > 0)).all()
    )


def solve_few_columns(
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
    if monitor.is_watching or monitor.keep is not None or not suits(problem):
        return None
    X, k = problem.design.toarray(), problem.n_targets
    columns = StandardColumns(problem, X)
    W, b, Z = np.empty((problem.n_features, k)), np.zeros(k), np.empty(problem.target.shape)
    steps, sweeps, unit, gap = 0, 0, 0.0, 0.0
    with single_threaded_blas():
        for t in range(k):
            found = columns.solve(t, options, W, b, Z)
            steps, sweeps = max(steps, found[0]), sweeps + found[1]
            gap, unit = gap + found[2], unit + found[3]
    own = replace(problem, design=DenseDesign(X.copy()), target=problem.target.copy())
    point = W, b, problem.loss.gradient(problem.target, Z)
    proof: PendingDual | Certificate
    proof = PendingDual(own, *point, columns.middle, columns.spread, gap, unit)
    if X.size > KEPT or proof.bound() > options.tol * unit:
        with single_threaded_blas():
            proof = proof.certificate()
        if not proof.gap <= options.tol * unit:
            return None
    notes = [
        f"{counted(steps, 'proximal Newton step')}, {counted(sweeps, 'sweep')} of coordinate "
        "descent, compiled as a whole"
    ]
    extra = {"scores": Z}
    return monitor.solution(proof, Status.CONVERGED, name, steps, notes=notes, extra=extra)


class StandardColumns:
    """The columns, about their means if there is an intercept, and of the same size."""

    def __init__(self, problem: Problem, X: Array) -> None:
        (n, d), self.problem = X.shape, problem
        self.s = np.ones(n) if problem.weights is None else problem.weights
        self.middle = X.mean(axis=0) if problem.fit_intercept else np.zeros(d)
        self.A = np.ones((d + problem.fit_intercept, n))
        own = self.A[:d]
        np.subtract(X.T, self.middle[:, None], out=own)
        squares = np.square(own) @ self.s
        #: At least sqrt(sum_i s_i (x_ij - middle_j)^2).
        self.spread = np.sqrt(squares) * (1 + 1e-6)
        size = np.sqrt(squares / self.s.sum())
        if not np.isfinite(size).all():
            raise FloatingPointError("the squares of the data are not finite")
        is_flat = size <= _FLAT * np.abs(self.middle)
        self.size = np.where(is_flat | (size < 1e-100), 1.0, size)
        own /= self.size[:, None]
        own[is_flat] = 0.0

    def solve(
        self, t: int, options: Options, W: Array, b: Array, Z: Array
    ) -> tuple[int, int, float, float]:
        """One target: what was found is put into W, b and Z; steps, sweeps, gap and unit."""
        problem, size, d = self.problem, self.size, len(self.size)
        y, loss = np.ascontiguousarray(problem.target[:, t]), problem.loss
        above = float(self.s @ (y > 0))
        shares = np.array([float(self.s.sum()) - above, above])
        level = 0.0
        if problem.fit_intercept:
            constant = loss.constant(_LABELS, shares)
            assert constant is not None
            level = float(constant[0])
        unit = float(shares @ loss.value(_LABELS[:, 0], np.full(2, level)))
        linear, quad = np.zeros(len(self.A)), np.zeros(len(self.A))
        shape = problem.n_features, problem.n_targets
        linear[:d] = np.broadcast_to(problem.penalty.linear, shape)[:, t] / size
        quad[:d] = np.broadcast_to(problem.penalty.curvature, shape)[:, t] / size**2
        v, z = np.zeros(len(self.A)), np.empty(len(y))
        v[d:] = level
        if options.start is not None:
            v[:d] = options.start[:, t] * size
            given = options.start_intercept
            v[d:] = (level if given is None else given[t]) + self.middle @ options.start[:, t]
        limit = min(_MOST_STEPS, options.max_iter or _MOST_STEPS)
        goal = _ENOUGH * options.tol * unit
        table = Table(loss.compiled, self.A, y, self.s, linear, quad, goal, unit, RADIUS)
        steps, sweeps, gap = minimise(table, v, z, limit)
        W[:, t], Z[:, t] = v[:d] / size, z
        if problem.fit_intercept:
            b[t] = v[d] - self.middle @ W[:, t]
        return steps, sweeps, gap, unit
