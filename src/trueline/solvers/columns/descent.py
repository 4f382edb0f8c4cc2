r"""Proximal Newton steps restricted to a working set of columns.

The working set holds the columns with a coefficient and those whose slope asks for one. It is
solved until what is left of it is small against what was wrong at first, then all columns are
looked at again. Steps that promise too much are cut as in
:mod:`trueline.solvers.curved.proximal`: the losses along the step plus the chord of the penalty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design import DenseDesign, Design, SparseDesign
from trueline.design.sparse import LARGE
from trueline.design.sparse_columns import cuts
from trueline.design.sparse_products import threaded_product
from trueline.design.sparse_slices import ColumnsOfRows
from trueline.losses import Loss
from trueline.solvers.columns.coupled import CoupledModel, suits_hessian
from trueline.solvers.curved.descent import Factor
from trueline.solvers.curved.levels import best_levels
from trueline.solvers.curved.search import minimise_along
from trueline.threads import run_strands

__all__ = ["ColumnDescent"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_SWEEPS, _MOST_SWEEPS, _WORK = 4, 30, 2_000_000
# Steps of conjugate gradients, the share of the residual (squared) they may leave, longest step.
_POLISH_STEPS, _POLISH_LEFT, _FARTHEST = 25, 1e-3, 4.0
# They may leave more as long as this share of the first violation is left: the columns in play
# are going to be others.
_ROUGH, _ROUGH_LEFT = 1e-2, 5e-2
# H of m columns is formed if m^2 is at most so many times their entries, and factored up to m.
_GRAM, _EXACT, _LEAST_PIVOT, _TRACE = 10, 250, 1e-13, 1e-12
# Wider ones leave the cache; rows with more entries than this cost more than the steps it saves.
_WIDEST, _FULLEST = 1000, 8
_GRAM_STEPS, _GRAM_LEFT = 100, 1e-4
# A model is solved until this share of its first violation is left.
_MODEL_LEFT, _MODEL_FINE = 0.1, 0.01
# The working set is solved until this share of the violation is left, and its size grows so.
_SET_LEFT, _GROWTH, _FIRST = 0.1, 2, 1000
_SET_STEPS = 8
_STRANDS = 8
# Roots of curvatures by which nothing is divided.
_FLAT = 1e-100
_SUFFICIENT = 0.01
_BISECTIONS = 60


class ColumnDescent:
    """The state of the method.

    Attributes
    ----------
    V, Z : arrays of shape (d + 1, k) and (n, k)
        Coefficients with intercepts last, and scores.
    G : array of shape (d + 1, k)
        The gradient of the losses and the squares.
    violation : float
        Sum of the distances of zero from the slopes.
    """

    def __init__(
        self,
        design: Design,
        loss: Loss,
        target: Array,
        weights: Array,
        linear: Array,
        quad: Array,
        V: Array,
        fit_intercept: bool,
    ) -> None:
        self.design, self.loss, self.target = design, loss, target
        self.s, self.linear, self.quad = weights, linear, quad
        self.fit_intercept = fit_intercept
        self.is_coupled = "coupled" in loss.capabilities
        self.columns, self.centre = _columns(design, fit_intercept)
        n, d = design.shape
        self.model: CoupledModel | None = None
        if self.is_coupled and not design.is_sparse and suits_hessian(n, d, V.shape[1]):
            self.columns = self.columns.toarray(order="F")
            self.model = CoupledModel(self.columns, weights, fit_intercept, V.shape[1])
        self.V = V.copy()
        self.V[-1] += self.centre @ V[:-1]
        self.Z = self._scores()
        self.sweeps, self.steps = 0, 0
        self.look()
        self._first = self.violation

    def _scores(self) -> Array:
        return _times(self.columns, self.V[:-1]) + self.V[-1]

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients, and intercepts of columns that are not centred."""
        W = np.ascontiguousarray(self.V[:-1])
        b = self.V[-1] - self.centre @ W
        # Coupled scores may all be shifted by the same: intercepts are those that add up to zero.
        return W, b - b.mean() if self.is_coupled else b

    def balance(self) -> None:
        """The best intercepts for these coefficients, and scores afresh."""
        self.Z = self._scores()
        if self.fit_intercept:
            shift = best_levels(self.loss, self.target, self.Z, self.s)
            self.V = self.V.copy()
            self.V[-1] += shift
            self.Z = self.Z + shift
        self.look()

    def penalty(self, V: Array) -> float:
        return float(
            (self.linear[:, None] * np.abs(V)).sum() + 0.5 * (self.quad[:, None] * V**2).sum()
        )

    def look(self) -> None:
        """Everything at the present point, for all columns."""
        values = self.s[:, None] * self.loss.value(self.target, self.Z)
        self.objective = float(values.sum()) + self.penalty(self.V)
        u = self.s[:, None] * self.loss.gradient(self.target, self.Z)
        self.G = np.empty_like(self.V)
        self.G[:-1] = _times(self.columns, u, is_transposed=True)
        self.G[-1] = u.sum(axis=0) if self.fit_intercept else 0.0
        self.G += self.quad[:, None] * self.V
        self.away = self._away(self.V, self.G, self.linear)
        self.violation = float(self.away.sum())

    def _away(self, V: Array, G: Array, linear: Array) -> Array:
        """How far each entry is from optimal."""
        strength = linear[:, None]
        resting = np.maximum(np.abs(G) - strength, 0.0)
        return np.where(V != 0, np.abs(G + strength * np.sign(V)), resting)

    def use(self, linear: Array, quad: Array) -> None:
        """Go on with other strengths."""
        self.linear, self.quad = linear, quad
        self.look()
        self._first = self.violation

    @property
    def polish_left(self) -> float:
        """The share of the residual, squared, that conjugate gradients may leave."""
        is_rough = not self.is_coupled and self.violation > _ROUGH * self._first
        return _ROUGH_LEFT if is_rough else _POLISH_LEFT

    def about(self) -> float:
        """The gap but for rounding and the intercept, from what is known already."""
        V, G = self.V[:-1], self.G[:-1] - self.quad[:-1, None] * self.V[:-1]
        linear, quad = self.linear[:-1, None], self.quad[:-1, None]
        excess = np.maximum(np.abs(G) - linear, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_level = float(np.where(excess > 0, excess / linear, 0.0).max(initial=0.0))
            by_squares = np.where(excess > 0, excess * (0.5 * excess / quad), 0.0).sum()
        own = float((linear * np.abs(V) + 0.5 * quad * V**2 + G * V).sum())
        return own + min(by_level * self.objective, float(by_squares))

    def round(self) -> None:
        """Solve a working set, and look at all columns again."""
        part = _WorkingSet(self)
        for _ in range(_SET_STEPS):
            self.steps += 1
            if part.step() <= _SET_LEFT * self.violation:
                break
        self.sweeps += part.sweeps
        self.look()


class _WorkingSet:
    """The columns in play, compressed, with the intercept as a last column of ones."""

    def __init__(self, whole: ColumnDescent) -> None:
        self.whole = whole
        chosen = self._choose()
        n = len(whole.s)
        few = _some(whole.columns, chosen)
        self.chosen = np.append(chosen, len(whole.V) - 1) if whole.fit_intercept else chosen
        self.few, self.sweeps = few, 0
        self.linear, self.quad = whole.linear[self.chosen], whole.quad[self.chosen]
        self._G = whole.G[self.chosen]
        if whole.model is not None:
            return
        data, indices = few.data, few.indices
        indptr = few.indptr.astype(np.int64)
        if whole.fit_intercept:
            data = np.append(data, np.ones(n))
            indices = np.append(indices, np.arange(n))
            indptr = np.append(indptr, indptr[-1] + n)
        self.parts = data, indices.astype(np.int32, copy=False), indptr

    def _choose(self) -> NDArray[np.intp]:
        whole = self.whole
        worst = whole.away[:-1].max(axis=1)
        used = (whole.V[:-1] != 0).any(axis=1)
        wrong = np.flatnonzero((worst > 0) & ~used)
        room = max(_FIRST, _GROWTH * int(used.sum()))
        if len(wrong) > room:
            wrong = wrong[np.argpartition(-worst[wrong], room)[:room]]
        used[wrong] = True
        return np.flatnonzero(used)

    def gradient(self) -> Array:
        """G of the columns in play."""
        whole = self.whole
        u = whole.s[:, None] * whole.loss.gradient(whole.target, whole.Z)
        G = np.empty((len(self.chosen), u.shape[1]))
        count = self.few.shape[1]
        G[:count] = _times(self.few, u, is_transposed=True)
        G[count:] = u.sum(axis=0)
        return G + self.quad[:, None] * whole.V[self.chosen]

    def step(self) -> float:
        """One proximal Newton step; the violation after it, of coupled scores before it."""
        whole = self.whole
        V, G = np.ascontiguousarray(whole.V[self.chosen]), self._G
        left = float(whole._away(V, G, self.linear).sum())
        if left == 0.0:
            return 0.0
        if whole.model is None:
            D, Q = self._model(V, G)
            self._move(V, G, D, Q)
            self._polish()
        else:
            whole.model.look(whole.loss.bending(whole.target, whole.Z))
            D = whole.model.solve(self.chosen, V, G, self.linear, self.quad)
            whole.model.learn(self._move(V, G, D, self._products(D)))
        self._G = self.gradient()
        if whole.is_coupled:
            return left
        return float(whole._away(whole.V[self.chosen], self._G, self.linear).sum())

    def _products(self, D: Array) -> Array:
        """What a step does to the scores."""
        count = self.few.shape[1]
        return _times(self.few, D[:count]) + D[count:].sum(axis=0)

    def _polish(self) -> None:
        """A Newton step for the coefficients that are not zero, whose signs are taken as settled.

        Coordinate descent finds out which those are and is slow at the rest. The step comes from
        conjugate gradients and ends where the first sign would change, if it does (R. H. Byrd,
        G. M. Chin, J. Nocedal, F. Oztoprak, "A family of second-order methods for convex
        L1-regularized optimization", Math. Program. 159 (2016) 435-467).
        """
        whole, loss, y = self.whole, self.whole.loss, self.whole.target
        V = whole.V[self.chosen]
        count, s = self.few.shape[1], whole.s[:, None]
        free = V != 0
        free[count:] = True
        signs = np.where(free, np.sign(V), 0.0) * self.linear[:, None]
        slope = np.where(free, self.gradient() + signs, 0.0)
        quad = np.broadcast_to(self.quad[:, None], V.shape)
        solve = self._conjugate if whole.is_coupled else self._newton_single
        D, change = solve(free, slope)
        start = float((slope * D).sum())
        if not start < 0:
            return
        # As far as the first sign that would change.
        with np.errstate(divide="ignore", invalid="ignore"):
            until = np.where(free & (V * D < 0), -V / D, np.inf)
        until[count:] = np.inf
        limit = float(until.min(initial=np.inf))
        weighted = s * change
        own, across = float((quad * V * D + signs * D).sum()), float((quad * D**2).sum())

        def along_step(t: float) -> tuple[float, float]:
            Z = whole.Z + t * change
            bent = loss.bend(loss.bending(y, Z), change)
            at = float((weighted * loss.gradient(y, Z)).sum()) + own + t * across
            return at, float((weighted * bent).sum()) + across

        t = minimise_along(along_step, start, min(limit, _FARTHEST))
        new, Z = V + t * D, whole.Z + t * change
        new[until <= t] = 0.0
        if limit < 1:
            # Signs are still changing: a whole step that leaves out those that would.
            other = np.where(until < 1, 0.0, V + D)
            ahead = whole.Z + self._products(other - V)
            if self._value(other, ahead) < self._value(new, Z):
                new, Z = other, ahead
        whole.V = whole.V.copy()
        whole.V[self.chosen] = new
        whole.Z = Z

    def _newton_single(self, free: NDArray[np.bool_], slope: Array) -> tuple[Array, Array]:
        """Newton's step for the free entries, and what it does to the scores.

        From a factor of H where few columns are left, by conjugate gradients on H where it is still
        cheaper to have than to do without, else on the columns.
        """
        whole = self.whole
        used = np.flatnonzero(free[:, 0])
        h = whole.s * whole.loss.curvature(whole.target, whole.Z)[:, 0]
        D = np.zeros_like(slope)
        entries = int(np.diff(self.parts[2])[used].sum())
        small = len(used) <= _WIDEST and entries <= _FULLEST * len(h)
        if small and len(used) ** 2 <= _GRAM * entries:
            D[used, 0] = self._by_gram(used, h, slope[used, 0])
            return D, self._products(D)
        if entries >= LARGE:  # on all threads
            return self._conjugate(free, slope)
        from trueline.solvers.columns.kernels import conjugate_steps

        few, change = np.zeros(len(used)), np.zeros(len(h))
        rest = self.quad, self._bends[:, 0].copy(), slope[used, 0]
        limits = _POLISH_STEPS, _POLISH_LEFT
        conjugate_steps(*self.parts, used, h, *rest, *limits, few, change)
        D[used, 0] = few
        return D, change[:, None]

    def _by_gram(self, used: NDArray[np.intp], h: Array, slope: Array) -> Array:
        """-H^-1 slope of some columns."""
        from trueline.solvers.columns.kernels import gram_steps, support_gram

        m = len(used)
        H = np.zeros((m, m))
        support_gram(*self.parts, used, h, H)
        diagonal = np.maximum(H.diagonal() + self.quad[used], self._bends[used, 0])
        H[np.diag_indices(m)] = diagonal
        if m > _EXACT:
            D = np.zeros(m)
            gram_steps(H, slope, _GRAM_STEPS, _GRAM_LEFT, D)
            return D
        trace = 0.0
        while True:
            factor = Factor(H)
            if factor.least > _LEAST_PIVOT or trace > 1:
                return -factor.solve(slope)
            # Columns that say the same on these rows: a trace more of each tells them apart.
            trace = max(100 * trace, _TRACE)
            H[np.diag_indices(m)] = diagonal * (1 + trace)

    def _conjugate(self, free: NDArray[np.bool_], slope: Array) -> tuple[Array, Array]:
        """The same by conjugate gradients, of any number of scores."""
        whole, loss = self.whole, self.whole.loss
        count, s = self.few.shape[1], whole.s[:, None]
        bending = loss.bending(whole.target, whole.Z)
        scale = np.where(free & (self._bends > 0), self._bends, 1.0)

        def image(p: Array, scores: Array) -> Array:
            T = s * loss.bend(bending, scores)
            out = np.empty_like(p)
            out[:count] = _times(self.few, T, is_transposed=True)
            out[count:] = T.sum(axis=0)
            return np.where(free, out + self.quad[:, None] * p, 0.0)

        D, R = np.zeros_like(slope), -slope
        p, change = R / scale, np.zeros_like(whole.Z)
        size = first = float((R * p).sum())
        for _ in range(_POLISH_STEPS):
            if size <= whole.polish_left * first or size <= 0:
                break
            scores = self._products(p)
            along = image(p, scores)
            bend = float((p * along).sum())
            if not bend > 0:
                break
            a = size / bend
            D, R, change = D + a * p, R - a * along, change + a * scores
            Q = R / scale
            before, size = size, float((R * Q).sum())
            p = Q + (size / before) * p
        return D, change

    def _value(self, V: Array, Z: Array) -> float:
        """The objective, but for columns that are not in play."""
        whole = self.whole
        losses = whole.s[:, None] * whole.loss.value(whole.target, Z)
        squares = 0.5 * (self.quad[:, None] * V**2).sum()
        return float(losses.sum() + (self.linear[:, None] * np.abs(V)).sum() + squares)

    def _model(self, V: Array, G: Array) -> tuple[Array, Array]:
        """The minimum of the model, and what it does to the scores."""
        from trueline.solvers.columns.kernels import diagonal, sweep_coupled

        whole, loss = self.whole, self.whole.loss
        curvature = whole.s[:, None] * loss.curvature(whole.target, whole.Z)
        # Where sweeps cost nothing the model is solved as well as it can be.
        work = len(self.parts[0]) * V.shape[1]
        most = int(np.clip(_WORK / max(work, 1), _SWEEPS, _MOST_SWEEPS))
        if not whole.is_coupled:
            return self._model_single(V[:, 0], G[:, 0], curvature[:, 0], most)
        bends = np.empty_like(V)
        diagonal(*self.parts, curvature, bends)
        self._bends = self._divisible(bends)
        D, Q = np.zeros_like(V), np.zeros_like(whole.Z)
        columns = np.arange(len(self.chosen))
        rest = V, D, G, bends, self.linear, self.quad
        P = np.ascontiguousarray(loss.bending(whole.target, whole.Z))
        M = np.zeros(len(P))
        count, first = len(columns), 0.0
        for number in range(most):
            count, total = sweep_coupled(*self.parts, columns, count, whole.s, P, Q, M, *rest)
            self.sweeps += 1
            first = total if number == 0 else first
            if number and total <= (_MODEL_LEFT if number < _SWEEPS else _MODEL_FINE) * first:
                break
        return D, Q

    def _divisible(self, bends: Array) -> Array:
        """The curvatures with those of the squares; never zero."""
        bends += self.quad[:, None]
        # A column on which no row bends any more: of no use, and never divided by.
        bends[bends <= 0] = _EPS * max(float(bends.max(initial=0.0)), 1e-300)
        return bends

    def _model_single(self, V: Array, G: Array, h: Array, most: int) -> tuple[Array, Array]:
        """The same for one target."""
        from trueline.solvers.columns.kernels import scale_columns, solve_single

        data, indices, indptr = self.parts
        scaled, bends, root = np.empty(len(data)), np.empty(len(V)), np.sqrt(h)
        run_strands(
            lambda strand: scale_columns(data, indices, indptr, root, scaled, bends, *strand),
            cuts(indptr, _STRANDS),
        )
        self._bends = self._divisible(bends[:, None])
        D, Q = np.zeros(len(V)), np.zeros(len(h))
        self.sweeps += solve_single(
            scaled,
            indices,
            indptr,
            np.arange(len(V)),
            Q,
            np.ascontiguousarray(V),
            D,
            np.ascontiguousarray(G),
            self._bends[:, 0].copy(),
            self.linear,
            self.quad,
            _SWEEPS,
            most,
            _MODEL_LEFT,
            _MODEL_FINE,
        )
        if root.min(initial=np.inf) > _FLAT:
            return D[:, None], (Q / root)[:, None]
        return D[:, None], self._products(D[:, None])

    def _move(self, V: Array, G: Array, D: Array, Q: Array) -> float:
        """Along the step, as far as it helps; how far that is."""
        whole, loss, y = self.whole, self.whole.loss, self.whole.target
        s = whole.s[:, None]
        strength = self.linear[:, None]
        chord = float((strength * (np.abs(V + D) - np.abs(V))).sum())
        promise = float((G * D).sum()) + chord
        if not promise < 0:
            return 0.0
        weighted = s * Q
        across = float((self.quad[:, None] * D**2).sum())
        own = float((self.quad[:, None] * V * D).sum())

        def slope(t: float) -> tuple[float, float]:
            Z = whole.Z + t * Q
            bent = loss.bend(loss.bending(y, Z), Q)
            at = float((weighted * loss.gradient(y, Z)).sum()) + own + t * across + chord
            return at, float((weighted * bent).sum()) + across

        before = float((s * loss.value(y, whole.Z)).sum())
        after = float((s * loss.value(y, whole.Z + Q)).sum())
        change = after - before + own + 0.5 * across + chord
        t = 1.0 if change <= _SUFFICIENT * promise else minimise_along(slope, promise, 1.0)
        new = V + D if t == 1.0 else V + t * D
        whole.Z = whole.Z + t * Q
        if whole.is_coupled:
            # The same shift of all scores changes no loss: only the penalty decides about it.
            held = self.chosen < len(whole.V) - 1
            shift = least_penalised(new[held], self.linear[held], self.quad[held])
            new[held] -= shift
            whole.Z = whole.Z - _times(self.few, shift)
        whole.V = whole.V.copy()
        whole.V[self.chosen] = new
        return t


def least_penalised(V: Array, linear: Array, quad: Array) -> Array:
    """Per row, the t that minimises sum_k (l abs(v_k - t) + a/2 (v_k - t)^2), of shape (m, 1).

    For absolute values alone a median, the one nearest to zero; with squares the root of the slope,
    by bisection between the median and the mean.
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


def _times(X: Any, V: Array, is_transposed: bool = False) -> Array:
    """X V or X^T V; on all threads where one vector meets many entries."""
    X = X.rows if isinstance(X, ColumnsOfRows) else X
    if sp.issparse(X) and V.shape[1] == 1 and X.nnz >= LARGE:
        return threaded_product(X, V[:, 0], is_transposed)[:, None]
    return np.asarray((X.T if is_transposed else X) @ V)


def _some(columns: Any, chosen: NDArray[np.intp]) -> Any:
    """Some columns, or all of them."""
    if isinstance(columns, ColumnsOfRows):
        return columns.take(chosen)
    return columns[:, chosen] if len(chosen) < columns.shape[1] else columns


def _columns(design: Design, fit_intercept: bool) -> tuple[Any, Array]:
    """Compressed columns, and what was subtracted from them: the means, of dense ones."""
    centre = np.zeros(design.shape[1])
    if isinstance(design, SparseDesign):
        is_transposed = design.X.format == "csc" or "by_columns" in vars(design)
        if is_transposed or design.nonzeros < LARGE:
            return design.by_columns, centre
        return ColumnsOfRows(design.by_rows), centre
    X = np.asarray(design.X if isinstance(design, DenseDesign) else design.toarray())
    X = X.astype(np.float64, copy=False)
    if fit_intercept:
        centre = X.mean(axis=0)
        X = X - centre
    return sp.csc_array(X), centre
