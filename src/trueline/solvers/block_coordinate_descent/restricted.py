r"""The problem restricted to some blocks, solved from their Gram matrix.

Sweeps of exact block steps find out which blocks are zero; between them a Newton step on the others
closes in on the minimum (:mod:`trueline.solvers.block_coordinate_descent.newton`). Inside a block
of several columns the coordinates are those of the eigenvectors of its Gram matrix, w = U z, which
leave norms as they are and make the block's part of the matrix diagonal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.block_coordinate_descent.kernels import block_norms, descend
from trueline.solvers.block_coordinate_descent.newton import newton_step

__all__ = ["RestrictedBlocks", "dual_scale"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_MAX_ROUNDS = 1000
_SWEEPS = 4
# For so few columns a Newton step costs next to nothing; for more, the sweeps must first have
# settled which blocks are zero.
_FEW_COLUMNS = 128
# A block at zero is freed when it is pulled by more than rounding.
_SLACK = 1e-12
# So many rounds without a lower objective: rounding.
_POLISHING, _ROUNDING = 2, 1e-13
_PATIENCE = 3
# Newton steps in a row that bring blocks to zero.
_MOST_STEPS = 20


def dual_scale(norms: Array, linear: Array, bend: float) -> float:
    """The largest t <= 1 for which t Q is in the domain of the penalty's conjugate.

    Blocks without any penalty are left out: there Q is rounding at a solution.
    """
    if bend > 0:
        return 1.0
    counted = (norms > linear) & (linear > 0)
    return float(np.min(linear[counted] / norms[counted], initial=1.0))


class RestrictedBlocks:
    """Blocks that were let in, their Gram matrix and the coefficients, in rotated coordinates.

    Attributes
    ----------
    size : int
        How many columns there are.
    ids : array
        Which blocks, in the order of entry.
    start : array
        Where each block begins, and the end of the last.
    sweeps : int
        How often the blocks were gone through.
    """

    def __init__(self, square: float, n_targets: int) -> None:
        self.square, self.k = square, n_targets
        self.size = self.sweeps = 0
        self.ids = np.empty(0, dtype=np.intp)
        self.start = np.zeros(1, dtype=np.intp)
        self._G = np.empty((0, 0))
        self._W = self._Q = self._C = np.empty((n_targets, 0))
        self._alive = np.empty(0)
        self._rotations: list[Array | None] = []
        self._linear, self._bend = np.empty(0), 0.0
        # The part of G that was last worked on, and its columns.
        self._part: tuple[Integers, Array] = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def extend(self, ids: Integers, widths: Integers, products: Array, C: Array) -> None:
        """Let further blocks in, at zero.

        ``products`` has shape (new, size + new): of their columns with the present ones, in the
        order of entry, and among themselves; C, of shape (k, new), are those with the targets.
        """
        old, total = self.size, self.size + len(products)
        self._grow(total)
        self.ids = np.concatenate([self.ids, ids])
        self.start = np.concatenate([self.start, old + np.cumsum(widths)])
        self.size = total
        fresh = self._eigenvectors(products[:, old:], widths)
        self._rotations += fresh
        products = self._rotate(products, self._rotations, self.start)
        products = self._rotate(products.T, fresh, self.start[-len(ids) - 1 :] - old).T
        G = self._G
        G[old:total, :total] = products
        G[:old, old:total] = products[:, :old].T
        self._settle_blocks(old, widths)
        self._C[:, old:total] = self._alive[old:total] * self._rotate(
            C, fresh, self.start[-len(ids) - 1 :] - old
        )
        self._W[:, old:total] = 0.0
        self._Q[:, old:total] = self._C[:, old:total] - self._W[:, :total] @ G[:total, old:total]

    def _grow(self, size: int) -> None:
        if size <= len(self._G):
            return
        room, m = max(size, min(2 * len(self._G), len(self._G) + 1024), 32), self.size
        G = np.empty((room, room))
        G[:m, :m] = self._G[:m, :m]
        self._G = G
        for name in ("_W", "_Q", "_C"):
            wider = np.zeros((self.k, room))
            wider[:, :m] = getattr(self, name)[:, :m]
            setattr(self, name, wider)
        self._alive = np.append(self._alive[:m], np.ones(room - m))

    @staticmethod
    def _eigenvectors(gram: Array, widths: Integers) -> list[Array | None]:
        """Of the blocks on the diagonal; None for a single column."""
        ends = np.cumsum(widths)
        return [
            np.linalg.eigh(gram[end - width : end, end - width : end])[1] if width > 1 else None
            for end, width in zip(ends, widths, strict=True)
        ]

    @staticmethod
    def _rotate(V: Array, rotations: list[Array | None], start: Integers) -> Array:
        """Columns of V in the coordinates of the eigenvectors."""
        if all(U is None for U in rotations):
            return V
        V = V.copy()
        for U, first, last in zip(rotations, start[:-1], start[1:], strict=True):
            if U is not None:
                V[:, first:last] = V[:, first:last] @ U
        return V

    def _settle_blocks(self, old: int, widths: Integers) -> None:
        """The new blocks' own parts are diagonal; nothing moves where they vanish."""
        G, total = self._G, self.size
        for end, width in zip(old + np.cumsum(widths), widths, strict=True):
            inside = slice(end - width, end)
            own = np.maximum(G[inside, inside].diagonal(), 0.0)
            own[own <= 8 * width * _EPS * own.max()] = 0.0
            G[inside, inside] = np.diag(own)
            self._alive[inside] = own > 0
        dead = old + np.flatnonzero(self._alive[old:total] == 0)
        G[dead, :total] = 0.0
        G[:total, dead] = 0.0

    def coef(self) -> Array:
        """The coefficients of the columns in the order of entry, not rotated; shape (k, size)."""
        turned = [None if U is None else U.T for U in self._rotations]
        return self._rotate(self._W[:, : self.size].copy(), turned, self.start)

    def place(self, W: Array) -> None:
        """Go to a point; its correlations are to be restored."""
        self._W[:, : self.size] = self._rotate(W, self._rotations, self.start)

    def restore(self, correlation: Array) -> None:
        """Correlations of the columns, as computed from the data, replace those kept along."""
        turned = self._rotate(correlation, self._rotations, self.start)
        self._Q[:, : self.size] = turned * self._alive[: self.size]

    def set_terms(self, linear: Array, bend: float) -> None:
        """The penalty: the factor of every block's norm, by id, and of half the square."""
        self._linear, self._bend = linear[self.ids], bend

    def norms(self) -> Array:
        """||W_b|| for each block."""
        return block_norms(self._W[:, : self.size], self.start)

    def penalty(self) -> float:
        """The penalty at the present point."""
        W = self._W[:, : self.size]
        return float(self._linear @ self.norms()) + 0.5 * self._bend * float(np.vdot(W, W))

    def gap(self) -> float:
        """The duality gap of the restricted problem at the present point."""
        W, Q, C = (A[:, : self.size] for A in (self._W, self._Q, self._C))
        square = max(self.square - float(np.vdot(C + Q, W)), 0.0)
        return self.fenchel_gap(block_norms(Q, self.start), square)

    def fenchel_gap(self, norms: Array, square: float, t: float | None = None) -> float:
        """1/2 (1 - t)^2 ||R||^2 + sum_b p_b(W_b) + p_b*(t Q_b) - t <Q_b, W_b>.

        ``norms`` are those of Q, by block.
        """
        W, Q = self._W[:, : self.size], self._Q[:, : self.size]
        t = dual_scale(norms, self._linear, self._bend) if t is None else t
        pairs = np.add.reduceat((W * Q).sum(axis=0), self.start[:-1]) if self.size else np.zeros(0)
        sizes = self.norms()
        terms = (self._linear + 0.5 * self._bend * sizes) * sizes - t * pairs
        excess = np.maximum(t * norms - self._linear, 0.0)
        if self._bend > 0:
            terms += 0.5 * excess**2 / self._bend
        elif not self._linear.all():
            # Only blocks without a penalty: as far as their coefficients reach, or would go.
            own = np.maximum.reduceat(self._G.diagonal()[: self.size], self.start[:-1])
            away = np.divide(excess, own, out=np.zeros_like(excess), where=own > 0)
            terms += np.where(self._linear == 0, excess * (2 * sizes + away), 0.0)
        return 0.5 * (1 - t) ** 2 * square + float(np.maximum(terms, 0.0).sum())

    def objective(self) -> float:
        """The objective at the present point."""
        W, Q, C = (A[:, : self.size] for A in (self._W, self._Q, self._C))
        return 0.5 * (self.square - float(np.vdot(C + Q, W))) + self.penalty()

    def solve(self, target: float) -> None:
        """Minimise over all blocks that were let in, to a gap of at most ``target``."""
        least, idle, gap = math.inf, 0, math.inf
        for _ in range(_MAX_ROUNDS):
            objective, gap = self.objective(), self.gap()
            idle = 0 if objective < least - 2 * _EPS * self.square else idle + 1
            least = min(objective, least)
            if gap <= target or idle >= _PATIENCE:
                break
            self._round()
        # Near the minimum a Newton step doubles the digits. The gap is of second order in the
        # coefficients: what still pulls at them tells more about their digits than it does.
        for _ in range(_POLISHING):
            if not self._is_pulled():
                return
            self._round()

    def _is_pulled(self) -> bool:
        """Whether a block that is not zero would move by more than rounding."""
        W, Q, C = (A[:, : self.size] for A in (self._W, self._Q, self._C))
        norms = self.norms()
        share = np.divide(self._linear, norms, out=np.zeros_like(norms), where=norms > 0)
        descent = Q - W * (self._bend + np.repeat(share, np.diff(self.start)))
        descent = np.where(np.repeat(norms > 0, np.diff(self.start)), descent, 0.0)
        rounding = _ROUNDING * float(np.abs(C).max(initial=0.0))
        return bool(float(np.abs(descent).max(initial=0.0)) > rounding)

    def _round(self) -> None:
        """Sweeps over the blocks that move, then a Newton step on those that are not zero."""
        m = self.size
        pulled = block_norms(self._Q[:, :m], self.start) > (1 + _SLACK) * self._linear
        blocks = np.flatnonzero((self.norms() > 0) | pulled)
        columns, start = _columns_of(blocks, self.start)
        if not len(columns):
            return
        G = self._part_of(columns)
        before = self._W[:, columns]
        W, Q, linear = before.copy(), self._Q[:, columns], self._linear[blocks]
        descend(G, start, linear, self._bend, W, Q, _SWEEPS)
        self.sweeps += _SWEEPS
        norms = block_norms(W, start)
        changed = ((norms > 0) != (block_norms(before, start) > 0)).any()
        if len(columns) <= _FEW_COLUMNS or not changed:
            self._newton(G, start, linear, W, Q)
        self._W[:, columns] = W
        self._Q[:, columns] = Q
        if len(columns) < m:
            others = np.ones(m, dtype=bool)
            others[columns] = False
            self._Q[:, :m][:, others] -= (W - before) @ self._G[np.ix_(columns, others)]

    def _part_of(self, columns: Integers) -> Array:
        """The part of G that belongs to some columns."""
        if not np.array_equal(columns, self._part[0]):
            self._part = columns, np.ascontiguousarray(self._G[np.ix_(columns, columns)])
        return self._part[1]

    def _newton(self, G: Array, start: Integers, linear: Array, W: Array, Q: Array) -> None:
        """Newton steps on the blocks that are not zero; W and Q are changed in place.

        While a step brings blocks to zero there is another one, on those that are left: where
        columns are nearly the same, sweeps would take thousands of rounds to tell them apart.
        """
        for _ in range(_MOST_STEPS):
            free = np.flatnonzero(block_norms(W, start))
            if len(free) == len(linear):
                again = newton_step(G, start, linear, self._bend, W, Q)
            elif len(free):
                columns, inner = _columns_of(free, start)
                W_free, Q_free, before = W[:, columns], Q[:, columns], W[:, columns]
                again = newton_step(
                    G[np.ix_(columns, columns)], inner, linear[free], self._bend, W_free, Q_free
                )
                Q -= (W_free - before) @ G[columns]
                W[:, columns] = W_free
            else:
                again = False
            if not again:
                break


def _columns_of(blocks: Integers, start: Integers) -> tuple[Integers, Integers]:
    """The columns of some blocks, and where each of them begins among those."""
    widths = start[blocks + 1] - start[blocks]
    inner = np.concatenate([[0], np.cumsum(widths)])
    columns = np.repeat(start[blocks] - inner[:-1], widths) + np.arange(inner[-1])
    return columns, inner
