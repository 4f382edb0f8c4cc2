r"""Working sets of blocks: which blocks enter, their restricted problem, and the gap of all.

    minimise over W, b   1/2 sum_i s_i ||y_i - W x_i - b||^2 + sum_b l_b ||W_b|| + a/2 ||W||^2

Block b stays at zero in a solution if and only if ||Q_b|| <= l_b, Q = X^T R being the correlations
of its columns with the residuals. The restricted problem is solved, the correlations of all columns
are computed from the data, and the blocks outside that violate this condition enter the working
set, the largest violations first (M. Massias, A. Gramfort, J. Salmon, "Celer: a fast solver for the
lasso with dual extrapolation", ICML 2018, section 4). With t <= 1 such that t Q is in the domain of
the conjugate p*,

    gap = 1/2 (1 - t)^2 ||R||^2 + sum_b (p_b(W_b) + p_b*(t Q_b) - t <Q_b, W_b>).

The restricted problem is solved from the Gram matrix of its blocks. Sweeps of exact block steps
find out which blocks are zero; between them a Newton step on the others closes in on the minimum
(:mod:`trueline.solvers.block_coordinate_descent.steps`). Inside a block of several columns the
coordinates are those of the eigenvectors of its Gram matrix, w = U z, which leave norms as they are
and make the block's part of the matrix diagonal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.block_coordinate_descent.steps import block_norms, descend, newton_step
from trueline.solvers.coordinate_descent.source import Source

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_FEW_BLOCKS = 64
# Along a path, blocks this close to their threshold enter the working set before they are needed.
_NEAR = 0.95
# A violation by less than this share of the tolerance is tolerated: the gap is what counts.
_TOLERATED = 0.01
# The restricted problem is solved to this share of the gap that is asked for, and at least to the
# next one: its last digits are cheap. If it is large, it is solved no better than it is worth
# while columns are missing.
_SHARE, _FINE = 0.1, 1e-12
_FINEST = 1e-15
_LARGE, _WORTH = 256, 0.03
# Penalties this many times weaker than the correlation of a block are approached in strides.
_FAR, _STRIDE, _INTERMEDIATE_GAP = 50.0, 5.0, 0.01
_FARTHEST = 1e300


class BlockState:
    """A point that moves from penalty to penalty.

    Parameters
    ----------
    source : Source
    labels : array of shape (d,)
        To which block each column belongs, 0, 1, ...

    Attributes
    ----------
    objective, gap : float
        At the present point.
    scale : float
        Half the squared norm of the targets.
    has_single_columns : bool
        Block j is column j.
    is_stuck : bool
        In the last step no block entered, and the gap did not fall: rounding.
    """

    def __init__(self, source: Source, labels: Integers) -> None:
        self.source, self._labels = source, labels
        self._members = np.argsort(labels, kind="stable")
        self._widths = np.bincount(labels)
        self._first = np.cumsum(self._widths) - self._widths
        self.has_single_columns = np.array_equal(labels, np.arange(source.n_features))
        self.scale = source.scale
        self.restricted = RestrictedBlocks(2 * source.scale, source.n_targets)
        self._outside = np.ones(len(self._widths), dtype=bool)
        self._columns = np.empty(0, dtype=np.intp)
        self._evaluate()
        self._cross = self._correlation
        self._share = _SHARE
        self.is_stuck = False
        self.objective = self.gap = np.inf

    def _block_norms(self) -> Array:
        """||Q_b|| of all blocks."""
        squares = np.einsum("tj,tj->j", self._correlation, self._correlation)
        if self.has_single_columns:
            return np.sqrt(squares)
        return np.sqrt(np.add.reduceat(squares[self._members], self._first))

    def start_at(self, W: Array) -> None:
        """Begin at coefficients of shape (k, d) instead of zero; before the first penalty."""
        used = np.bincount(self._labels, weights=np.abs(W).sum(axis=0)) > 0
        if used.any():
            self._add_blocks(np.flatnonzero(used & self._outside))
            self.restricted.place(W[:, self._columns])
            self._evaluate()

    def _evaluate(self) -> None:
        """Correlations of all columns with the residuals of the present point."""
        at = self.source.at(self.restricted.coef())
        self._correlation, self._square = at.correlation, float(at.residual_square.sum())
        self._norms = self._block_norms()
        self.restricted.restore(self._correlation[:, self._columns])

    def set_terms(self, linear: Array, ridge: float) -> None:
        """Go on with another penalty: the factor of every block's norm, and of half the square."""
        self._linear, self._ridge = np.ascontiguousarray(linear), ridge
        self._share, self.is_stuck = _SHARE, False
        self._is_complete = self.source.takes_all_columns
        if self.source.takes_all_columns:
            near = self._outside
        else:
            near = self._outside & ((self._norms > _NEAR * linear) | (linear == 0))
        self._add_blocks(self._top_blocks(near))
        self.restricted.set_terms(self._linear, ridge)
        self._judge()

    def approach(self, linear: Array, ridge: float) -> None:
        """Go on with another penalty, by way of stronger ones if it is far from the present point.

        Near interpolation Newton's method finds its way from near a solution only: blocks would
        have to pass through zero.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            far = float(np.max(np.where(linear > 0, self._norms / linear, 0.0), initial=0.0))
        # A penalty of nearly nothing: as far as numbers go.
        far = min(far, _FARTHEST)
        factor = far / _STRIDE
        while far > _FAR and factor > 1.0:
            self.set_terms(factor * linear, factor * ridge)
            self.step(_INTERMEDIATE_GAP * self.scale * factor / far)
            factor /= _STRIDE
        self.set_terms(linear, ridge)

    def _top_blocks(self, wanted: NDArray[np.bool_]) -> Integers:
        """The wanted blocks, or those with the largest violations if there are many."""
        blocks = np.flatnonzero(wanted)
        most = max(_FEW_BLOCKS, 2 * int(np.count_nonzero(self.restricted.norms())))
        if self.source.takes_all_columns or len(blocks) <= most:
            return blocks
        with np.errstate(divide="ignore"):
            ratio = self._norms[blocks] / self._linear[blocks]
        # Blocks without a norm of their own are never left out.
        most = max(most, int(np.count_nonzero(np.isinf(ratio))))
        return np.sort(blocks[np.argpartition(ratio, -most)[-most:]])

    def _add_blocks(self, blocks: Integers) -> None:
        if not len(blocks):
            return
        widths, first = self._widths[blocks], self._first[blocks]
        places = np.concatenate([[0], np.cumsum(widths)])
        columns = self._members[np.repeat(first - places[:-1], widths) + np.arange(places[-1])]
        products = self.source.gather(columns)
        self.restricted.extend(blocks, widths, products, self._cross[:, columns])
        self._columns = np.append(self._columns, columns)
        self._outside[blocks] = False

    def step(self, target: float) -> None:
        """Solve the restricted problem, check all columns, and let the missed blocks enter.

        ``target`` is the gap that is asked for. Where it is reached while blocks are still missing
        these enter at once: the answer is then better than was asked for, at little cost.
        """
        before = self.gap
        tolerance = target / (self.scale or 1.0)
        slack = min(_TOLERATED * tolerance, 1e-6)
        fine = min(self._share * tolerance, _FINE * self._share / _SHARE)
        missing = True
        while missing:
            aim = max(fine, _FINEST) * self.scale
            if self.restricted.size > _LARGE and not self._is_complete:
                aim = max(aim, _WORTH * min(self.gap, before))
            self.restricted.solve(aim)
            self._evaluate()
            self._judge()
            missed = self._outside & (self._norms > (1 + slack) * self._linear)
            was_complete, self._is_complete = self._is_complete, not missed.any()
            if missed.any():
                self._add_blocks(self._top_blocks(missed))
                self.restricted.set_terms(self._linear, self._ridge)
            missing = bool(missed.any()) and self.gap <= target
        settled = self._is_complete and (was_complete or self.restricted.size <= _LARGE)
        if settled and self.gap > target:  # what is left to gain is in the last digits
            self.is_stuck = self._share < 1e-4 and self.gap > 0.5 * before
            self._share *= 0.1

    def _judge(self) -> None:
        """Objective and gap of the whole problem at the present point."""
        t = dual_scale(self._norms, self._linear, self._ridge)
        gap = self.restricted.fenchel_gap(self._norms[self.restricted.ids], self._square, t)
        if self._ridge > 0:
            excess = t * self._norms[self._outside] - self._linear[self._outside]
            gap += 0.5 * float((np.maximum(excess, 0.0) ** 2).sum()) / self._ridge
        self.objective = 0.5 * self._square + self.restricted.penalty()
        self.gap = gap

    def coef(self) -> Array:
        """The coefficients, of shape (k, d)."""
        W = np.zeros((self.source.n_targets, self.source.n_features))
        W[:, self._columns] = self.restricted.coef()
        return W

    def intercept(self, W: Array) -> Array:
        """The best intercepts for these coefficients, zero if there are none."""
        return self.source.y_mean - W @ self.source.x_mean


_EPS = float(np.finfo(np.float64).eps)
_MAX_ROUNDS = 1000
_SWEEPS = 4
# For so few columns a Newton step costs next to nothing; for more, the sweeps must first have
# settled which blocks are zero.
_FEW_COLUMNS = 128
# A block at zero is freed when its correlation exceeds the threshold by more than rounding.
_SLACK = 1e-12
# So many rounds without a lower objective: rounding.
_POLISHING, _ROUNDING = 2, 1e-13
_PATIENCE = 3
# No objective is negative: so much of the targets' square below zero is no rounding of a sum.
_IMPOSSIBLE = -1e-6
# Newton steps in a row that bring blocks to zero.
_MOST_STEPS = 20


def dual_scale(norms: Array, linear: Array, ridge: float) -> float:
    """The largest t <= 1 for which t Q is in the domain of the penalty's conjugate.

    Blocks without any penalty are left out: there Q is rounding at a solution.
    """
    if ridge > 0:
        return 1.0
    counted = (norms > linear) & (linear > 0)
    return float(np.min(linear[counted] / norms[counted], initial=1.0))


class RestrictedBlocks:
    """The blocks of the working set, their Gram matrix and coefficients, in rotated coordinates.

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
        self._linear, self._ridge = np.empty(0), 0.0
        # The part of G that was last worked on, and its columns.
        self._part: tuple[Integers, Array] = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def extend(self, ids: Integers, widths: Integers, products: Array, C: Array) -> None:
        """Let blocks enter the working set, at zero.

        ``products`` has shape (new, size + new): of their columns with those that are there, in the
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

    def set_terms(self, linear: Array, ridge: float) -> None:
        """The penalty: the factor of every block's norm, by id, and of half the square."""
        self._linear, self._ridge = linear[self.ids], ridge

    def norms(self) -> Array:
        """||W_b|| for each block."""
        return block_norms(self._W[:, : self.size], self.start)

    def penalty(self) -> float:
        """The penalty at the present point."""
        W = self._W[:, : self.size]
        return float(self._linear @ self.norms()) + 0.5 * self._ridge * float(np.vdot(W, W))

    def objective_and_gap(self) -> tuple[float, float]:
        """The objective and the duality gap of the restricted problem at the present point."""
        W, Q, C = (A[:, : self.size] for A in (self._W, self._Q, self._C))
        square = self.square - float(np.vdot(C + Q, W))
        objective = 0.5 * square + self.penalty()
        return objective, self.fenchel_gap(block_norms(Q, self.start), max(square, 0.0))

    def fenchel_gap(self, norms: Array, square: float, t: float | None = None) -> float:
        """1/2 (1 - t)^2 ||R||^2 + sum_b p_b(W_b) + p_b*(t Q_b) - t <Q_b, W_b>.

        ``norms`` are those of Q, by block.
        """
        W, Q = self._W[:, : self.size], self._Q[:, : self.size]
        t = dual_scale(norms, self._linear, self._ridge) if t is None else t
        pairs = np.add.reduceat((W * Q).sum(axis=0), self.start[:-1]) if self.size else np.zeros(0)
        sizes = self.norms()
        terms = (self._linear + 0.5 * self._ridge * sizes) * sizes - t * pairs
        excess = np.maximum(t * norms - self._linear, 0.0)
        if self._ridge > 0:
            terms += 0.5 * excess**2 / self._ridge
        elif not self._linear.all():
            # Only blocks without a penalty: as far as their coefficients reach, or would go.
            own = np.maximum.reduceat(self._G.diagonal()[: self.size], self.start[:-1])
            away = np.divide(excess, own, out=np.zeros_like(excess), where=own > 0)
            terms += np.where(self._linear == 0, excess * (2 * sizes + away), 0.0)
        return 0.5 * (1 - t) ** 2 * square + float(np.maximum(terms, 0.0).sum())

    def solve(self, target: float) -> None:
        """Minimise over the working set, to a gap of at most ``target``."""
        least, idle, gap = math.inf, 0, math.inf
        for _ in range(_MAX_ROUNDS):
            objective, gap = self._round_in_bounds()
            idle = 0 if objective < least - 2 * _EPS * self.square else idle + 1
            least = min(objective, least)
            if gap <= target or idle >= _PATIENCE:
                break
        # Near the minimum a Newton step doubles the digits. The gap is of second order in the
        # coefficients: their gradient says more about their digits.
        for _ in range(_POLISHING):
            if not self._violates():
                return
            self._round_in_bounds()

    def _round_in_bounds(self) -> tuple[float, float]:
        """A round, undone if it ends where no objective can be; the objective and the gap.

        Products of nearly the same columns far from zero may have a negative eigenvalue, by
        rounding: along it the sum of squares falls below zero, without end.
        """
        W, Q = self._W.copy(), self._Q.copy()
        self._round()
        objective, gap = self.objective_and_gap()
        if objective >= _IMPOSSIBLE * self.square:
            return objective, gap
        self._W, self._Q = W, Q
        return self.objective_and_gap()

    def _violates(self) -> bool:
        """Whether a block that is not zero would move by more than rounding."""
        W, Q, C = (A[:, : self.size] for A in (self._W, self._Q, self._C))
        norms = self.norms()
        widths, moves = np.diff(self.start), norms > 0
        share = np.divide(self._linear, norms, out=np.zeros_like(norms), where=moves)
        descent = Q - W * (self._ridge + np.repeat(share, widths))
        descent = np.where(np.repeat(moves, widths), descent, 0.0)
        rounding = _ROUNDING * float(np.abs(C).max(initial=0.0))
        return bool(float(np.abs(descent).max(initial=0.0)) > rounding)

    def _round(self) -> None:
        """Sweeps over the blocks that move, then a Newton step on those that are not zero."""
        m = self.size
        violating = block_norms(self._Q[:, :m], self.start) > (1 + _SLACK) * self._linear
        moved = self.norms() > 0
        blocks = np.flatnonzero(moved | violating)
        columns, start = _columns_of(blocks, self.start)
        if not len(columns):
            return
        G = self._part_of(columns)
        before, Q = (A.take(columns, axis=1) for A in (self._W, self._Q))
        W, linear = before.copy(), self._linear[blocks]
        descend(G, start, linear, self._ridge, W, Q, _SWEEPS)
        self.sweeps += _SWEEPS
        changed = ((block_norms(W, start) > 0) != moved[blocks]).any()
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
        columns are nearly the same, sweeps would take thousands of rounds to separate them.
        """
        for _ in range(_MOST_STEPS):
            free = np.flatnonzero(block_norms(W, start))
            if len(free) == len(linear):
                again = newton_step(G, start, linear, self._ridge, W, Q)
            elif len(free):
                columns, inner = _columns_of(free, start)
                W_free, Q_free, before = W[:, columns], Q[:, columns], W[:, columns]
                again = newton_step(
                    G[np.ix_(columns, columns)], inner, linear[free], self._ridge, W_free, Q_free
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
