r"""The model of a proximal Newton step on the working set, and its minimum by coordinate descent.

    minimise over D     G.D + 1/2 D.H D + sum_jt ( l_j abs(V + D)_jt + a_j/2 (V + D)_jt^2 )

One score: sweeps over the columns, and conjugate gradients once signs are settled. Coupled scores:
sweeps over the columns, or over H itself where it is small. H of m columns and k scores is a matrix
of (m k)^2 numbers: coordinate descent on it costs as many for a sweep, however many rows there are.
Of larger tables it comes from a sample of the rows (about ten for each of its columns: R. H. Byrd,
G. M. Chin, W. Neveitt, J. Nocedal, "On the use of stochastic Hessian information in optimization
methods for machine learning", SIAM J. Optim. 21 (2011) 977-995) and is kept while probabilities are
about the same; gradients are always those of all rows.

With the intercept, coordinate descent goes column by column on

    minimise over D, f    G.D + g f + 1/2 (X D + f)^T S (X D + f)
                          + sum_j ( l_j abs(V + D)_j + a_j/2 (V + D)_j^2 )

with S the curvatures h_i of the losses, G and g the slopes of coefficients and intercept. For given
D the best f is -g / sum_i h_i - m.D with m_j = sum_i h_i x_ij / sum_i h_i: after eliminating the
intercept the model is the same with columns centred about m, of slopes G - m g and curvatures
x_j.S x_j - m_j^2 sum_i h_i. So a sweep moves the intercept with every coefficient, at the price of
one product, where a column of ones would cost as much as all rows.

Columns are compressed, and scaled by the roots of h: one vector q = S^1/2 X D is read then, not
two. What belongs to a column is in one array of seven rows, V, D, G, the curvature, l, a and m.

(G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for L1-regularized logistic regression",
J. Mach. Learn. Res. 13 (2012) 1999-2030. For coupled scores the whole curvature of a row,
diag(p) - p p^T, is kept, by M_i = sum_t p_it Q_it beside Q = X D.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.coordinate_descent.kernels import descend, soft_threshold_step
from trueline.solvers.newton.batched.precondition import coupled_hessian

if TYPE_CHECKING:
    from trueline.solvers.proximal_newton.columns import ColumnDescent

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_SWEEPS, _MOST_SWEEPS, _WORK, _CONJUGATE = 4, 30, 2_000_000, 60
# Products of conjugate gradients in one step of coupled scores, on all faces together: with weak
# penalties 60 leave so much that steps go on for ever. Exact arithmetic needs as many as there are
# entries; at the level of rounding faces change again and again.
_COUPLED = 400
# The model is swept until this share of the violation is left, after _SWEEPS sweeps a smaller one.
# Conjugate gradients begin when so much is left of the first violation: signs are settled then.
_LEFT, _FINE, _SETTLED = 0.1, 0.01, 1e-3
# Roots of curvatures by which nothing is divided.
_FLAT = 1e-100
# Coordinate descent on a Hessian: most sweeps, and the share of the first decrease it leaves.
_GRAM_SWEEPS, _GRAM_LEFT = 300, 1e-6
_MOST_COLUMNS, _ROWS_EACH = 700, 10
# The Hessian is renewed when probabilities moved by this share of their variance; of small tables
# at every step, of all rows: so many multiplications take milliseconds, and save most of the steps.
_MOVED, _QUICK = 0.25, 2e7
# Steps that had to be cut say that the sample promises too much; whole ones that it does not.
_CUT, _HARDER, _SOFTER = 0.7, 1.5, 0.8
# Of the curvature that a row has by itself, what makes up for being certain of a wrong class.
_OWN = 4.0
_BISECTIONS = 60
# How often sweeps and conjugate gradients take turns in one step; and how many entries may become
# zero, one after the other, in a turn.
_ROUNDS, _FACES = 2, 20
# Of a coefficient, what rounding leaves where it comes to zero.
_ZERO = 1e-15


class Model(ABC):
    """How the model of a step is stored and minimised.

    Attributes
    ----------
    sweeps : int
        How often coordinate descent went through the columns in play.
    length : float
        How far the last step went.
    """

    sweeps, length = 0, 1.0

    @abstractmethod
    def solve(self, at: ColumnDescent) -> tuple[Array, Array, Array | None]:
        """The best step of the chosen columns (m, k) and of the intercepts (k,).

        And what it does to the scores, if that is known.
        """


def make_model(at: ColumnDescent) -> Model:
    """The model that suits the data."""
    if not at.is_coupled:
        return _SingleModel(at)
    n, size = len(at.s), at.V.size
    # Where the Hessian is small, and rows are more than coefficients.
    is_small = size <= _MOST_COLUMNS and n >= size and not at.design.is_sparse
    return CoupledHessian(at) if is_small else _CoupledColumns(at)


def _most_sweeps(indptr: Integers, columns: Integers, k: int) -> int:
    """Where sweeps cost nothing the model is solved as well as it can be."""
    work = k * int((indptr[columns + 1] - indptr[columns]).sum())
    return int(np.clip(_WORK / max(work, 1), _SWEEPS, _MOST_SWEEPS))


class _SingleModel(Model):
    """One score: the compressed columns, intercept eliminated."""

    def __init__(self, at: ColumnDescent) -> None:
        self._state = np.zeros((7, len(at.linear)))
        self._state[4:6] = at.linear, at.quad
        self._scaled = np.empty(len(at.entries[0]))

    def solve(self, at: ColumnDescent) -> tuple[Array, Array, Array | None]:
        state, chosen, h = self._state, at.chosen, at.curvature[:, 0]
        root, slope = np.sqrt(h), float(at.slope[0])
        total = float(h.sum()) if at.fit_intercept else 0.0
        state[0, chosen], state[1, chosen], state[2, chosen] = at.own[:, 0], 0.0, at.G[:, 0]
        scale_about_means(*at.entries, root, chosen, total, slope, state, self._scaled)
        q, columns = np.zeros(len(root)), (self._scaled, *at.entries[1:])
        most = _most_sweeps(at.entries[2], chosen, 1)
        enough = _LEFT * at.violation
        count, mean = solve_model(*columns, chosen.copy(), state, q, total, 0.0, most, enough)
        self.sweeps += count
        share = at.violation / at.first if at.first > 0 else 0.0
        if share <= _SETTLED:
            face = chosen[state[0, chosen] + state[1, chosen] != 0]
            left = max(share, 1e-6)
            _, mean = solve_face(*columns, face, state, q, total, mean, _CONJUGATE, left)
        shift = -slope / total - mean if total > 0 else 0.0
        change = (q / root + shift)[:, None] if root.min(initial=np.inf) > _FLAT else None
        return state[1, chosen][:, None], np.array([shift]), change


class _CoupledColumns(Model):
    """Coupled scores: the compressed columns, with one of ones for the intercepts."""

    def __init__(self, at: ColumnDescent) -> None:
        data, indices, indptr = at.entries
        if at.fit_intercept:
            n = len(at.s)
            data, indptr = np.append(data, np.ones(n)), np.append(indptr, indptr[-1] + n)
            indices = np.append(indices, np.arange(n, dtype=np.int32))
        self._parts, d = (data, indices, indptr), len(at.linear)
        if at.design.is_sparse:
            self._A: Any = sp.csc_array(self._parts, shape=(len(at.s), len(indptr) - 1))
        else:
            self._A = data.reshape(-1, len(at.s)).T
        self._state = np.zeros((4, d + 1, at.V.shape[1]))
        self._strengths = np.zeros((2, d + 1))
        self._strengths[:, :-1] = at.linear, at.quad

    def solve(self, at: ColumnDescent) -> tuple[Array, Array, Array | None]:
        state, chosen = self._state, at.chosen
        columns = np.append(chosen, len(at.linear)) if at.fit_intercept else chosen
        state[0, chosen], state[2, chosen] = at.own, at.G
        state[0, -1], state[2, -1], state[1] = at.V[-1], at.slope, 0.0
        is_settled = at.violation <= _SETTLED * at.first
        P = at.curvature if is_settled else _less_certain(at.curvature, at.target)
        P = np.ascontiguousarray(P)
        weighted = at.s[:, None] * (P * (1 - P))
        coupled_diagonal(*self._parts, columns, weighted, self._strengths[1], state[3])
        Q, M = np.zeros_like(at.Z), np.zeros(len(P))
        first, room = math.inf, _COUPLED
        # Conjugate gradients read the columns in play, often a small part of all.
        A = self._A[:, columns] if is_settled else None
        for number in range(_ROUNDS if is_settled else 1):
            before = self._sweep(at, columns, P, Q, M)
            first = before if number == 0 else first
            if number and before <= _FINE * first:
                break
            has_ended = is_settled
            for _ in range(_FACES):
                if not has_ended or room <= 0:
                    break
                change, has_ended, count = self._solve_face(at, A, columns, Q, room)
                Q, room = Q + change, room - count
            M = (P * Q).sum(axis=1)
        return state[1, chosen], state[1, -1].copy(), Q

    def _sweep(self, at: ColumnDescent, columns: Integers, P: Array, Q: Array, M: Array) -> float:
        """Sweeps until little is left of the violation of the model, which is returned."""
        columns, count, first = columns.copy(), len(columns), 0.0  # those at rest move to the end
        for number in range(_most_sweeps(self._parts[2], columns, P.shape[1])):
            count, total = sweep_coupled(
                *self._parts, columns, count, at.s, P, Q, M, self._state, self._strengths
            )
            self.sweeps += 1
            first = total if number == 0 else first
            if number and total <= (_LEFT if number < _SWEEPS else _FINE) * first:
                break
        return first

    def _solve_face(
        self, at: ColumnDescent, A: Any, columns: Integers, Q: Array, most: int
    ) -> tuple[Array, bool, int]:
        """Conjugate gradients on entries that are not zero, up to the first change of a sign.

        What the step adds to the scores Q is returned, whether an entry has become zero, and the
        number of products. A has the chosen columns.
        """
        (V, D, G, curvature), (linear, quad) = (
            self._state[:, columns],
            self._strengths[:, columns, None],
        )
        place = V + D
        free = place != 0
        if at.fit_intercept:
            free[-1] = True

        def image(p: Array, scores: Array) -> Array:
            T = at.s[:, None] * at.loss.hessian_product(at.curvature, scores)
            return np.where(free, A.T @ T + quad * p, 0.0)

        def room(x: Array, p: Array) -> float:
            """How far p leads before a sign changes."""
            here = place + x
            with np.errstate(divide="ignore", invalid="ignore"):
                until = np.where((p * here < 0) & (linear > 0), -here / p, np.inf)
            return float(until.min())

        scale, left = np.where(free, curvature, 1.0), max(at.violation / at.first, 1e-6)
        right = np.where(free, -(G + image(D, Q) + linear * np.sign(place)), 0.0)
        x, count = conjugate_gradients(
            lambda p: image(p, A @ p), right, lambda r: r / scale, most=most, enough=left, room=room
        )
        # Where a sign would have changed the coefficient is zero, without rounding.
        ends = free & (linear > 0) & ((place + x) * place <= _ZERO * place**2)
        self._state[1, columns] = np.where(ends, -V, D + x)
        return A @ x, bool(ends.any()), count


def _less_certain(P: Array, Y: Array) -> Array:
    """Probabilities for the model far from the minimum, where rows are certain of a wrong class.

    Such rows have a slope and no curvature, and nothing in the model keeps a step that they decide
    from going too far. The curvature of a line from here to where a row is right is its slope over
    the difference of the scores, -log p: what is missing of it is taken from equal probabilities.
    """
    own = (P * Y).sum(axis=1, keepdims=True)
    along = (1.0 - own) / (1.0 - np.log(np.maximum(own, 1e-300)))
    share = np.maximum(along - _OWN * own * (1.0 - own), 0.0)
    return P + share * (1.0 / P.shape[1] - P)


class CoupledHessian(Model):
    """Coupled scores, few of them on dense rows: the Hessian near the present point."""

    def __init__(self, at: ColumnDescent) -> None:
        n, size = len(at.s), at.V.size
        self._rows, self._is_quick = np.arange(n), n * size**2 <= _QUICK
        if _ROWS_EACH * size < n and not self._is_quick:
            some = np.random.default_rng(0).choice(n, _ROWS_EACH * size, False, shuffle=False)
            self._rows = np.sort(some)
        ones = np.full((len(self._rows), 1), float(at.fit_intercept))
        self._A = np.hstack([at.design.take(self._rows).toarray(), ones])
        s = at.s[self._rows]
        self._s = s * (at.s.sum() / max(float(s.sum()), 1e-300))
        self._P: Array | None = None
        self._hardness = 1.0

    def renew(self, P: Array) -> None:
        """The Hessian again, if probabilities P of all rows are others than they were."""
        P = P[self._rows]
        if self._P is not None and not self._is_quick:
            moved = float((self._s @ np.abs(P - self._P)).sum())
            if moved <= _MOVED * float((self._s @ (P * (1 - P))).sum()):
                return
        self._P, self.H = P, coupled_hessian(self._A, self._s, P)

    def solve(self, at: ColumnDescent) -> tuple[Array, Array, Array | None]:
        self.renew(at.curvature)
        self._hardness = max(self._hardness * (_HARDER if self.length < _CUT else _SOFTER), 1.0)
        k, m, last = at.V.shape[1], len(at.chosen), len(at.linear)
        columns = np.append(at.chosen, last) if at.fit_intercept else at.chosen
        V, G = np.vstack([at.own, at.V[-1:]]), np.vstack([at.G, at.slope[None]])
        linear, quad = (np.append(each[at.chosen], 0.0) for each in (at.linear, at.quad))
        where, count = (columns[:, None] * k + np.arange(k)).ravel(), len(columns)
        H = self._hardness * self.H[np.ix_(where, where)]
        diagonal = np.maximum(H.diagonal(), 0.0)
        # Where no row has curvature; and a trace that keeps shifts of all scores where they are.
        least = 1e-8 * max(float(diagonal.max(initial=0.0)), 1e-300)
        H[np.diag_indices(len(where))] = diagonal + np.repeat(quad[:count], k) + least
        D, sweeps = solve_gram(H, V[:count], G[:count], linear[:count])
        self.sweeps += sweeps
        return D[:m], D[m:].sum(axis=0), None


def solve_gram(H: Array, V: Array, G: Array, linear: Array) -> tuple[Array, int]:
    """Coordinate descent on the model by its Hessian, which has the squares: the step, and sweeps.

    V and G have shape (m, k), ``linear`` (m,).
    """
    state = np.zeros((7, V.size))
    state[0], state[1], state[2] = V.ravel(), -G.ravel(), np.repeat(linear, V.shape[1])
    state[4], state[5] = -np.inf, np.inf
    _, first = descend(H, state, V.size, 1, 0.0)
    sweeps, _ = descend(H, state, V.size, _GRAM_SWEEPS - 1, _GRAM_LEFT * first)
    return state[0].reshape(V.shape) - V, 1 + sweeps


def least_penalised(V: Array, linear: Array, quad: Array) -> Array:
    """Per row, the t that minimises sum_k (l abs(v_k - t) + a/2 (v_k - t)^2), of shape (m, 1).

    The same shift of all scores changes no coupled loss: only the penalty decides about it. For
    absolute values alone a median, the one nearest to zero; with squares the root of the slope, by
    bisection between the median and the mean.
    """
    k = V.shape[1]
    ranked = np.sort(V, axis=1)
    median = np.clip(0.0, ranked[:, (k - 1) // 2], ranked[:, k // 2])
    low, high = np.minimum(median, V.mean(axis=1)), np.maximum(median, V.mean(axis=1))
    for _ in range(_BISECTIONS if quad.any() else 0):
        middle = 0.5 * (low + high)
        rest = V - middle[:, None]
        rises = linear * np.sign(rest).sum(axis=1) + quad * rest.sum(axis=1) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    # Zero and the median leave entries at zero exactly: they are taken where nothing is lower.
    shifts = np.stack([np.zeros_like(median), median, 0.5 * (low + high)])
    rest = np.abs(V[None] - shifts[:, :, None])
    costs = (linear[:, None] * rest + 0.5 * quad[:, None] * rest**2).sum(axis=2)
    return shifts[costs.argmin(axis=0), np.arange(len(V))][:, None]


Indices = NDArray[np.int32]

_V, _D, _G, _CURVATURE, _LINEAR, _QUAD, _MEAN = range(7)


@kernel
def _violation(at: float, slope: float, linear: float) -> float:
    """The distance of zero from the slopes that are possible at a point."""
    if at > 0.0:
        return abs(slope + linear)
    if at < 0.0:
        return abs(slope - linear)
    return max(abs(slope) - linear, 0.0)


@kernel
def scale_about_means(
    data: Array,
    indices: Indices,
    indptr: Integers,
    root: Array,
    chosen: Integers,
    total: float,
    slope: float,
    state: Array,
    scaled: Array,
) -> None:
    """root_i x_ij of the chosen columns, their curvatures and slopes about the means m.

    ``total`` is sum_i h_i, or zero without an intercept, ``slope`` that of the intercept.
    """
    for j in chosen:
        square = along = 0.0
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            r = root[np.uint64(indices[e])]
            value = data[e] * r
            scaled[e] = value
            square += value * value
            along += value * r
        mean = along / total if total > 0.0 else 0.0
        state[_MEAN, j] = mean
        state[_G, j] -= mean * slope
        # What is left of a constant column is rounding: it is never divided by.
        curvature = max(square - mean * along, 1e-12 * square) + state[_QUAD, j]
        state[_CURVATURE, j] = curvature if curvature > 0.0 else 1.0


@kernel
def solve_model(
    scaled: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    state: Array,
    q: Array,
    total: float,
    mean: float,
    most: int,
    enough: float,
) -> tuple[int, float]:
    """Sweeps until the violations add up to no more than enough: their number, and m.D after them.

    Columns that stay at zero are left out of the sweeps that follow.
    """
    V, D, G, curvature = state[_V], state[_D], state[_G], state[_CURVATURE]
    linear, quad, means = state[_LINEAR], state[_QUAD], state[_MEAN]
    count = len(columns)
    for number in range(most):
        violation, kept = 0.0, 0
        for place in range(count):
            j = columns[place]
            at = V[j] + D[j]
            slope = column_dot(scaled, indices, indptr[j], indptr[j + 1], q)
            slope += G[j] + quad[j] * D[j] - means[j] * total * mean
            violation += _violation(at, slope, linear[j])
            correlation = curvature[j] * at - slope
            best = soft_threshold_step(correlation, linear[j], curvature[j], -np.inf, np.inf, at)
            change = best - at
            if change != 0.0 or best != 0.0:
                columns[kept], columns[place] = j, columns[kept]
                kept += 1
            if change != 0.0:
                D[j] = best - V[j]
                mean += change * means[j]
                for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                    q[np.uint64(indices[e])] += change * scaled[e]
        count = kept
        if violation <= enough:
            return number + 1, mean
    return most, mean


@kernel
def solve_face(
    scaled: Array,
    indices: Indices,
    indptr: Integers,
    face: Integers,
    state: Array,
    q: Array,
    total: float,
    mean: float,
    most: int,
    left: float,
) -> tuple[int, float]:
    """Conjugate gradients on the model for entries that are not zero: their number, and m.D.

    They end when the residual, squared and in the norm of the curvatures, is ``left`` of what it
    was, or where the first sign would change.
    """
    V, D, G, curvature = state[_V], state[_D], state[_G], state[_CURVATURE]
    linear, quad, means = state[_LINEAR], state[_QUAD], state[_MEAN]
    m = len(face)
    R, p, image, along = np.empty(m), np.empty(m), np.empty(m), np.empty(len(q))
    size = 0.0
    for k in range(m):
        j = face[k]
        slope = column_dot(scaled, indices, indptr[j], indptr[j + 1], q)
        slope += G[j] + quad[j] * D[j] - means[j] * total * mean
        R[k] = -slope - math.copysign(linear[j], V[j] + D[j])
        p[k] = R[k] / curvature[j]
        size += R[k] * p[k]
    first = size
    for number in range(most):
        if size <= left * first or size <= 0.0:
            return number, mean
        along[:] = 0.0
        aside = 0.0
        for k in range(m):
            j, step = face[k], p[k]
            aside += means[j] * step
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                along[np.uint64(indices[e])] += step * scaled[e]
        square, limit = 0.0, np.inf
        for k in range(m):
            j = face[k]
            dot = column_dot(scaled, indices, indptr[j], indptr[j + 1], along)
            image[k] = dot + quad[j] * p[k] - means[j] * total * aside
            square += p[k] * image[k]
            at = V[j] + D[j]
            if p[k] * at < 0.0:
                limit = min(limit, -at / p[k])
        if not square > 0.0:
            return number, mean
        step, before, size = min(size / square, limit), size, 0.0
        mean += step * aside
        q += step * along
        for k in range(m):
            j = face[k]
            is_over = step * p[k] * (V[j] + D[j]) < 0.0 and -(V[j] + D[j]) / p[k] <= step
            D[j] = -V[j] if is_over else D[j] + step * p[k]
            R[k] -= step * image[k]
            size += R[k] * R[k] / curvature[j]
        if step == limit:
            return number + 1, mean
        for k in range(m):
            p[k] = R[k] / curvature[face[k]] + (size / before) * p[k]
    return most, mean


@kernel
def coupled_diagonal(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    h: Array,
    quad: Array,
    out: Array,
) -> None:
    """sum_i h_it x_ij^2 + a_j for some columns j and all scores t; one where that is zero."""
    for j in columns:
        for t in range(h.shape[1]):
            out[j, t] = quad[j]
        for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i, square = np.uint64(indices[e]), data[e] * data[e]
            for t in range(h.shape[1]):
                out[j, t] += square * h[i, t]
        for t in range(h.shape[1]):
            if out[j, t] <= 0.0:
                out[j, t] = 1.0


@kernel
def sweep_coupled(
    data: Array,
    indices: Indices,
    indptr: Integers,
    columns: Integers,
    count: int,
    s: Array,
    P: Array,
    Q: Array,
    M: Array,
    state: Array,
    strengths: Array,
) -> tuple[int, float]:
    """One sweep for coupled scores with probabilities P.

    ``state`` holds V, D, G and the curvatures, ``strengths`` l and a. Columns that stay in play are
    put first; their number is returned, and the sum of violations.
    """
    V, D, G, curvature = state[_V], state[_D], state[_G], state[_CURVATURE]
    linear, quad = strengths[0], strengths[1]
    total, kept = 0.0, 0
    for place in range(count):
        j = columns[place]
        stays = False
        for t in range(P.shape[1]):
            slope = G[j, t] + quad[j] * D[j, t]
            for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                i = np.uint64(indices[e])
                slope += data[e] * (s[i] * P[i, t] * (Q[i, t] - M[i]))
            at = V[j, t] + D[j, t]
            total += _violation(at, slope, linear[j])
            correlation = curvature[j, t] * at - slope
            best = soft_threshold_step(correlation, linear[j], curvature[j, t], -np.inf, np.inf, at)
            change = best - at
            if change != 0.0 or best != 0.0:
                stays = True
            if change != 0.0:
                D[j, t] += change
                for e in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                    i = np.uint64(indices[e])
                    step = change * data[e]
                    Q[i, t] += step
                    M[i] += P[i, t] * step
        if stays:
            columns[kept], columns[place] = j, columns[kept]
            kept += 1
    return kept, total
