"""The columns in play: a model of the objective on them, and a step along its minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueline.design.sparse_columns import cuts
from trueline.solvers.columns.polish import polish
from trueline.solvers.columns.products import some_columns, times
from trueline.solvers.columns.shift import least_penalised
from trueline.solvers.curved.search import minimise_along
from trueline.threads import run_strands

if TYPE_CHECKING:
    from trueline.solvers.columns.descent import ColumnDescent

__all__ = ["WorkingSet"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_SWEEPS, _MOST_SWEEPS, _WORK = 4, 30, 2_000_000
# A model is solved until this share of its first violation is left.
_MODEL_LEFT, _MODEL_FINE = 0.1, 0.01
# The size of the set grows so.
_GROWTH, _FIRST = 2, 1000
_STRANDS = 8
# Roots of curvatures by which nothing is divided.
_FLAT = 1e-100
_SUFFICIENT = 0.01


class WorkingSet:
    """The columns in play, compressed, with the intercept as a last column of ones."""

    def __init__(self, whole: ColumnDescent) -> None:
        self.whole = whole
        chosen = self._choose()
        n = len(whole.s)
        few = some_columns(whole.columns, chosen)
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
        G[:count] = times(self.few, u, is_transposed=True)
        G[count:] = u.sum(axis=0)
        return G + self.quad[:, None] * whole.V[self.chosen]

    def step(self) -> float:
        """One proximal Newton step; the violation after it, of coupled scores before it."""
        whole = self.whole
        V, G = np.ascontiguousarray(whole.V[self.chosen]), self._G
        left = float(whole.distances(V, G, self.linear).sum())
        if left == 0.0:
            return 0.0
        if whole.model is None:
            D, Q = self._model(V, G)
            self._move(V, G, D, Q)
            polish(self)
        else:
            whole.model.look(whole.loss.bending(whole.target, whole.Z))
            D = whole.model.solve(self.chosen, V, G, self.linear, self.quad)
            whole.model.learn(self._move(V, G, D, self.products(D)))
        self._G = self.gradient()
        if whole.is_coupled:
            return left
        return float(whole.distances(whole.V[self.chosen], self._G, self.linear).sum())

    def products(self, D: Array) -> Array:
        """What a step does to the scores."""
        count = self.few.shape[1]
        return times(self.few, D[:count]) + D[count:].sum(axis=0)

    def value(self, V: Array, Z: Array) -> float:
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
        self.bends = self._divisible(bends)
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
        self.bends = self._divisible(bends[:, None])
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
            self.bends[:, 0].copy(),
            self.linear,
            self.quad,
            _SWEEPS,
            most,
            _MODEL_LEFT,
            _MODEL_FINE,
        )
        if root.min(initial=np.inf) > _FLAT:
            return D[:, None], (Q / root)[:, None]
        return D[:, None], self.products(D[:, None])

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
            whole.Z = whole.Z - times(self.few, shift)
        whole.V = whole.V.copy()
        whole.V[self.chosen] = new
        return t
