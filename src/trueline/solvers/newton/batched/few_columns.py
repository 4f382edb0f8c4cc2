"""Many problems of two classes on few columns, each solved by compiled Newton steps.

What is known of the classes gives the constant to start from and the bound that ends the steps;
proofs are made from sums over the rows, for all problems at once.

Newton's method for one problem,

    minimise over v     sum_i s_i l(y_i, a_i.v) + a/2 sum_{j < d} v_j^2,

is compiled as a whole. Rows are stored column by column, ``A[j, i] = a_ij``; a constant column, if
there is one, is the last, and is not penalised. A problem of 1,500 rows and 16 columns takes less
time here than calls of NumPy for its steps would.

Hessians are summed in single precision, of columns scaled to the same size, unless a pivot of the
Cholesky factor says that digits are missing: steps need few of them. Gradients are exact.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.tangent import PointSums, RowSums
from trueline.losses.logistic import derivatives
from trueline.numerics.blas import run_strands
from trueline.numerics.jit import kernel
from trueline.problem_set import ProblemSet
from trueline.solvers.base import Options
from trueline.solvers.pending import Answer

Array = NDArray[np.float64]

# Beyond so many columns Hessians are worth the tiles of :mod:`trueline.numerics.gram`.
_MOST_COLUMNS = 64
# Multiplications from which on loading compiled code, some tenths of a second, pays.
_LARGE_WORK = 100_000_000
_MOST_STEPS = 60
# Of the gap asked for, the part that is not left for what rounding adds to a proof. A step that
# passes no kink is exact: of losses with kinks less is left.
_SHARE, _SHARE_PAST_KINKS = 0.5, 1e-10
# Both labels, as a target.
_LABELS = np.array([[-1.0], [1.0]])


def has_few_columns(problems: ProblemSet) -> bool:
    """Whether the compiled steps know the loss, and are worth loading."""
    (n, d), members = problems.design.shape, problems.members
    if not problems.loss.compiled or problems.design.is_sparse or d > _MOST_COLUMNS:
        return False
    rows = sum(n if member.rows is None else len(member.rows) for member in members)
    return rows * (d + 1) * (d + 20) >= _LARGE_WORK


def solve_few_columns(problems: ProblemSet, options: Options) -> list[Answer]:
    """Answers to all members, along their paths of strengths."""
    solver, paths = _FewColumns(problems, options), problems.paths()
    run_strands(solver.solve, paths)
    return solver.answers()


class _FewColumns:
    """The rows, and what is known of each problem; all arrays begin with an axis of problems."""

    def __init__(self, problems: ProblemSet, options: Options) -> None:
        self.problems, self.options = problems, options
        X, count = problems.design.toarray(), len(problems)
        n, d = X.shape
        # About their means columns are far from being parallel to the intercept's.
        self.middle = X.mean(axis=0) if problems.fit_intercept else np.zeros(d)
        self.rows = np.ones((n, d + problems.fit_intercept))
        np.subtract(X, self.middle, out=self.rows[:, :d])
        # Of RowSums: weights, sums and squares of columns, the largest norm of a row; rows.
        self.shares, self.totals = np.empty((count, 2)), np.empty((count, 2, d))
        self.squares, self.farthest = np.empty((count, d)), np.empty(count)
        self.counts = np.empty(count, dtype=np.intp)
        # Of PointSums: points, gradients, losses, squares of their derivatives, and curvatures.
        q = self.rows.shape[1]
        self.V, self.G = np.zeros((count, q)), np.empty((count, q))
        self.losses, self.facts = np.empty(count), np.empty((count, 2))
        self.strengths = np.array([float(m.penalty.curvature) for m in problems.members])
        self.allowed, self.steps = np.empty(count), np.zeros(count, dtype=np.intp)

    def solve(self, path: list[int]) -> None:
        """Members that differ in the penalty alone, each from the solution of the one before."""
        problems, first = self.problems, path[0]
        y, s, A = self._rows(first)
        d, loss = len(self.middle), problems.loss
        self._sum(first, A[:d], y, s)
        constant = loss.constant(_LABELS, self.shares[first])
        assert constant is not None
        level = float(constant[0]) * problems.fit_intercept
        unit = float(self.shares[first] @ loss.value(_LABELS[:, 0], np.full(2, level)))
        v = np.zeros(len(A))
        v[d:] = level
        for number in path:
            for array in (self.shares, self.totals, self.squares, self.farthest, self.counts):
                array[number] = array[first]
            start = problems.members[number].start
            if start is not None:
                v[:d], v[d:] = start[0][:, 0], start[1] + self.middle @ start[0]
            self.V[number], self.allowed[number] = v, self.options.tol * unit
            v = self._descend(number, unit, A, y, s)

    @cached_property
    def columns(self) -> Array:
        """All rows, column by column."""
        return np.ascontiguousarray(self.rows.T)

    def _rows(self, number: int) -> tuple[Array, Array, Array]:
        """Labels, weights and columns of the rows that a member counts."""
        member = self.problems.members[number]
        y, weights, rows = member.target[:, 0], member.weights, member.rows
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            y, weights, rows = y[kept], weights[kept], kept if rows is None else rows[kept]
        s = np.ones(len(y)) if weights is None else np.ascontiguousarray(weights)
        if rows is None:
            return np.ascontiguousarray(y), s, self.columns
        return np.ascontiguousarray(y), s, np.ascontiguousarray(self.rows.take(rows, axis=0).T)

    def _sum(self, number: int, X: Array, y: Array, s: Array) -> None:
        sums = self.shares[number], self.totals[number], self.squares[number]
        self.farthest[number] = np.sqrt(sum_classes(X, y, s, *sums))
        self.counts[number] = len(y)

    def _descend(self, number: int, unit: float, A: Array, y: Array, s: Array) -> Array:
        """Steps for one member, from where it is to start; where they have led."""
        loss, strength, d = self.problems.loss, self.strengths[number], len(self.middle)
        shares, squares = self.shares[number], self.squares[number]
        weight = shares.sum()
        sizes = np.append(squares, weight)[: len(A)]
        centre, wide, reach = np.zeros(d), np.inf, 0.0
        if len(A) > d:
            centre = self.totals[number].sum(axis=0) / weight
            means = self.totals[number] / shares[:, None] - centre
            across = np.sqrt(2 * unit / strength * (means**2).sum(axis=1))
            margins = [abs(loss.least_margin(unit / share)) for share in shares.tolist()]
            reach = 2 * float((across + margins).max())
            if "self_concordant" in loss.capabilities:
                wide = loss.curvature_bound * float((squares - weight * centre**2).sum())
        farthest = float(self.farthest[number] + np.sqrt(centre @ centre))
        share = _SHARE_PAST_KINKS if loss.kinks else _SHARE
        scale = np.sqrt(weight / np.where(sizes > 0, sizes, weight))
        facts = strength, scale, centre, wide, farthest, reach, share * self.allowed[number]
        limit = min(_MOST_STEPS, self.options.max_iter or _MOST_STEPS)
        part, v, z = Part(loss.compiled, A, y, s, *facts), self.V[number], np.empty(len(y))
        self.steps[number] = descend(part, v, z, self.G[number], self.facts[number], limit)
        self.losses[number] = s @ loss.value(y, z)
        return v.copy()

    def answers(self) -> list[Answer]:
        """Of all members, with their proofs."""
        problems, d = self.problems, len(self.middle)
        arrays = self.shares, self.totals, self.squares, self.farthest, self.counts
        rows = RowSums.of(self.middle, problems.fit_intercept, *arrays)
        curvature, squares = self.facts.T
        W, slope = self.V[:, :d], self.G[:, d:].sum(axis=1)
        correlation = self.G[:, :d] - self.strengths[:, None] * W
        sums = self.losses, squares, slope, curvature, correlation, float(len(self.rows))
        at = PointSums(W, self.V[:, d:].sum(axis=1), *sums)
        penalties = [member.penalty for member in problems.members]
        proofs = rows.certify(at, problems.loss, penalties)
        facts = zip(proofs, self.steps.tolist(), self.allowed.tolist())
        limit = self.options.max_iter
        return [Answer.of(number, *fact, limit) for number, fact in enumerate(facts)]


Floats = NDArray[np.floating]

# Rows at a time: with their columns they stay in the first caches.
_CHUNK = 256
# A step is good that leaves this share of the slope; evaluations are cheap beside Hessians.
_LEFT, _LOOKS = 0.25, 20
# Pivots, relative to the diagonal, below which single precision is not enough; and double.
_SINGLE, _DOUBLE = 1e-4, 1e-13
# Steps in a row that do not halve what is left: rounding.
_IDLE = 6


class Part(NamedTuple):
    """A problem: its rows, its penalty, and what the bound on its gap needs.

    Attributes
    ----------
    loss : int
        Its number in :attr:`trueline.losses.Loss.compiled`.
    A : array of shape (q, n)
    y, s : arrays of shape (n,)
        Labels, and weights, which are positive.
    strength : float
        Of the squared penalty.
    scale : array of shape (q,)
        About the inverse sizes of the columns.
    centre : array of shape (d,)
        Means of the columns.
    wide, farthest, reach : float
        See :func:`_remaining`.
    goal : float
        The gap that is enough.
    """

    loss: int
    A: Array
    y: Array
    s: Array
    strength: float
    scale: Array
    centre: Array
    wide: float
    farthest: float
    reach: float
    goal: float


@kernel(reassociate=True)
def sum_classes(
    A: Array, y: Array, s: Array, shares: Array, totals: Array, squares: Array
) -> float:
    """sum_i s_i and sum_i s_i a_i of either label, sum_i s_i a_i^2; the largest |a_i|^2."""
    q, n = A.shape
    norms, each, above = np.zeros(n), np.empty(n), 0.0
    for i in range(n):
        each[i] = s[i] * (0.5 + 0.5 * y[i])
        above += each[i]
    shares[0], shares[1] = s.sum() - above, above
    for j in range(q):
        both, above, square, column = 0.0, 0.0, 0.0, A[j]
        for i in range(n):
            own = s[i] * column[i]
            both += own
            above += each[i] * column[i]
            square += own * column[i]
            norms[i] += column[i] * column[i]
        totals[0, j], totals[1, j], squares[j] = both - above, above, square
    return norms.max()


@kernel(reassociate=True)
def _evaluate(part: Part, v: Array, z: Array, h: Array, total: Array, facts: Array) -> None:
    """Scores and s_i l_i'' of all rows at v, and sums over them.

    ``total`` becomes sum_i s_i u_i a_i, ``facts`` sum_i s_i l_i'' and sum_i s_i u_i^2.
    """
    A = part.A
    q, n = A.shape
    total[:] = 0.0
    u, curvature, squares = np.empty(_CHUNK), 0.0, 0.0
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        own, curved, weights = z[start:stop], h[start:stop], part.s[start:stop]
        own[:] = 0.0
        for j in range(q):
            times, column = v[j], A[j, start:stop]
            for i in range(len(own)):
                own[i] += times * column[i]
        derivatives(part.loss, part.y[start:stop], own, weights, u, curved)
        for i in range(len(own)):
            curvature += curved[i]
            squares += u[i] * (u[i] / weights[i])
        for j in range(q):
            sum_j, column = 0.0, A[j, start:stop]
            for i in range(len(own)):
                sum_j += u[i] * column[i]
            total[j] += sum_j
    facts[0], facts[1] = curvature, squares


@kernel(reassociate=True)
def _scaled(A: Array, scale: Array, out: Any) -> Any:
    """The columns at the same size, in the precision of ``out``."""
    for j in range(len(A)):
        for i in range(A.shape[1]):
            out[j, i] = scale[j] * A[j, i]
    return out


@kernel(reassociate=True)
def _hessian(A: Floats, h: Array, part: Part, H: Array) -> None:
    """The lower triangle of the Hessian of scaled columns, in their precision by chunks of rows."""
    q, n = A.shape
    H[:] = 0.0
    weights, weighted = np.empty(_CHUNK, A.dtype), np.empty(_CHUNK, A.dtype)
    zero = A.dtype.type(0.0)
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        m = stop - start
        for i in range(m):
            weights[i] = h[start + i]
        for j in range(q):
            column = A[j, start:stop]
            for i in range(m):
                weighted[i] = weights[i] * column[i]
            for k in range(0, j + 1, 4):
                # Four at a time read the weighted column once; beyond the diagonal one is repeated.
                a, b = A[k, start:stop], A[min(k + 1, j), start:stop]
                c, d = A[min(k + 2, j), start:stop], A[min(k + 3, j), start:stop]
                e0 = e1 = e2 = e3 = zero
                for i in range(m):
                    e0 += weighted[i] * a[i]
                    e1 += weighted[i] * b[i]
                    e2 += weighted[i] * c[i]
                    e3 += weighted[i] * d[i]
                H[j, k] += e0
                H[j, k + 1] += e1
                H[j, k + 2] += e2
                H[j, k + 3] += e3
    for j in range(len(part.centre)):
        H[j, j] += part.strength * part.scale[j] ** 2


@kernel
def _factor(H: Array, q: int) -> float:
    """Overwrite the lower triangle by its Cholesky factor; the least pivot over its diagonal."""
    least = 1.0
    for j in range(q):
        before = H[j, j]
        if before == 0.0:  # no row has curvature: nothing is divided by zero
            before = H[j, j] = 1.0
        for k in range(j + 1):
            own = H[j, k]
            for m in range(k):
                own -= H[j, m] * H[k, m]
            if k < j:
                H[j, k] = own / H[k, k]
            elif own > _DOUBLE * before:
                H[j, j], least = math.sqrt(own), min(least, own / before)
            else:
                return 0.0
    return least


@kernel
def _solve(L: Array, scale: Array, g: Array, step: Array) -> None:
    """The step -H^-1 g, from the factor of the scaled H."""
    q = len(g)
    for j in range(q):
        own = -g[j] * scale[j]
        for m in range(j):
            own -= L[j, m] * step[m]
        step[j] = own / L[j, j]
    for j in range(q - 1, -1, -1):
        own = step[j]
        for m in range(j + 1, q):
            own -= L[m, j] * step[m]
        step[j] = own / L[j, j]
    for j in range(q):
        step[j] *= scale[j]


@kernel
def _remaining(g: Array, part: Part, curvature: float) -> float:
    """About the gap that will be proven, by either bound of :mod:`trueline.certificates.tangent`.

    ``part.reach`` is how far the best intercept may be. ``part.wide`` is D there, infinite if the
    loss is not self-concordant, and ``part.farthest`` the largest distance of a row from the
    centre.
    """
    d, square = len(part.centre), 0.0
    level = g[d] if len(g) > d else 0.0
    for j in range(d):
        own = g[j] - part.centre[j] * level
        square += own * own
    first = 0.5 * square / part.strength + part.reach * abs(level)
    if len(g) == d or not (curvature > 0.0 and part.wide < np.inf):
        return first
    length = math.sqrt(square) + math.sqrt(part.wide / curvature) * abs(level)
    second = 0.5 * length * length / part.strength + level * level / curvature
    far = part.farthest + math.sqrt(part.wide / curvature)
    far = far / math.sqrt(part.strength) + math.sqrt(2.0 / curvature)
    # Half of the curvature is left where scores change by less than log 2.
    return min(first, second) if 2.0 * math.sqrt(2.0 * second) * far <= 0.69 else first


@kernel
def _gradient(part: Part, v: Array, z: Array, h: Array, g: Array, facts: Array) -> float:
    """Evaluate at v, g becomes the gradient; about the gap that will be proven."""
    _evaluate(part, v, z, h, g, facts)
    for j in range(len(part.centre)):
        g[j] += part.strength * v[j]
    return _remaining(g, part, facts[0])


@kernel
def _search(
    part: Part, before: float, step: Array, v: Array, z: Array, h: Array, g: Array, facts: Array
) -> float:
    """Move v along the step, on which the slope is ``before``; about the gap there.

    The length of the step stays between the ends of a bracket of the slope's root.
    """
    left, trial = np.inf, v.copy()
    t, low, at_low, high, at_high = 1.0, 0.0, before, np.inf, np.inf
    for _ in range(_LOOKS):
        for j in range(len(v)):
            trial[j] = v[j] + t * step[j]
        left = _gradient(part, trial, z, h, g, facts)
        slope = float(g @ step)
        if left <= part.goal or abs(slope) <= _LEFT * abs(before):
            break
        # What is no number is beyond the root.
        if slope < 0.0:
            low, at_low = t, slope
        else:
            high, at_high = t, slope
        if high == np.inf:
            t = min(4.0 * t, t * before / (before - slope)) if slope > before else 4.0 * t
        else:
            share = at_low / (at_low - at_high) if at_high < np.inf else 0.1
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    for j in range(len(v)):
        v[j] = trial[j]
    return left


@kernel
def descend(part: Part, v: Array, z: Array, g: Array, facts: Array, limit: int) -> int:
    """Newton's steps from v to where they end; how many were made.

    In the end z are the scores, g is the gradient, and ``facts`` are those of :func:`_evaluate`.
    """
    q, n = part.A.shape
    H, step = np.empty((q, q + 3)), np.empty(q)
    h, formed = np.empty(n), np.full(n, -1.0)
    single = _scaled(part.A, part.scale, np.empty((q, n), np.float32))
    double = np.empty((0, 0))
    left = _gradient(part, v, z, h, g, facts)
    pivot, idle, least, count = 1.0, 0, left, 0
    while left > part.goal and count < limit and idle < _IDLE:
        # A step that has passed no kink has left the Hessian as it was.
        if not np.array_equal(h, formed):
            for i in range(n):
                formed[i] = h[i]
            if pivot >= _SINGLE:
                _hessian(single, h, part, H)
                pivot = _factor(H, q)
            if pivot < _SINGLE:
                if len(double) == 0:
                    double = _scaled(part.A, part.scale, np.empty((q, n)))
                _hessian(double, h, part, H)
                pivot = min(_factor(H, q), 0.5 * _SINGLE)
        if pivot == 0.0:
            break
        _solve(H, part.scale, g, step)
        before = float(g @ step)
        if not before < 0.0:
            break
        count += 1
        left = _search(part, before, step, v, z, h, g, facts)
        idle = 0 if left <= 0.5 * least else idle + 1
        least = min(least, left)
    return count
