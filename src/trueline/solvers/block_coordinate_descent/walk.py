r"""From the restricted problem to the whole: which blocks are let in, and the gap of all of them.

    minimise over W, b   1/2 sum_i s_i ||y_i - W x_i - b||^2 + sum_b l_b ||W_b|| + a/2 ||W||^2

Block b stays at zero in a solution if and only if ||Q_b|| <= l_b, Q = X^T R being the correlations
of its columns with the residuals. The restricted problem is solved, the correlations of all columns
are computed from the data, and the blocks that should not have been left out are let in, those
pulled most first (working sets; M. Massias, A. Gramfort, J. Salmon, "Celer: a fast solver for the
lasso with dual extrapolation", ICML 2018, section 4). With t <= 1 such that t Q is in the domain of
the conjugate p*,

    gap = 1/2 (1 - t)^2 ||R||^2 + sum_b (p_b(W_b) + p_b*(t Q_b) - t <Q_b, W_b>).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.block_coordinate_descent.restricted import RestrictedBlocks, dual_scale
from trueline.solvers.coordinate_descent.source import Source

__all__ = ["BlockWalk"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_FEW_BLOCKS = 64
# Along a path, blocks this close to their threshold are let in before they are needed.
_NEAR = 0.95
# A violation by less than this share of the tolerance is left alone: the gap tells.
_TOLERATED = 0.01
# The restricted problem is solved to this share of the gap that is asked for, and at least to the
# next one: its last digits are cheap. If it is large, it is solved no better than it is worth
# while columns are missing.
_SHARE, _FINE = 0.1, 1e-12
_FINEST = 1e-15
_LARGE, _WORTH = 256, 0.03
# Penalties this many times weaker than the correlation of a block are approached in strides.
_FAR, _STRIDE, _ON_THE_WAY = 50.0, 5.0, 0.01
_FARTHEST = 1e300


class BlockWalk:
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
    largest_pull : float
        The largest ||Q_b|| at zero.
    is_stuck : bool
        The last step let nothing in and did not lower the gap: rounding.
    """

    def __init__(self, source: Source, labels: Integers) -> None:
        self.source, self._labels = source, labels
        self._members = np.argsort(labels, kind="stable")
        self._widths = np.bincount(labels)
        self._first = np.cumsum(self._widths) - self._widths
        self._is_plain = bool((self._widths == 1).all())
        self.scale = source.scale
        self.restricted = RestrictedBlocks(2 * source.scale, source.n_targets)
        self._outside = np.ones(len(self._widths), dtype=bool)
        self._columns = np.empty(0, dtype=np.intp)
        self._evaluate()
        self._cross = self._correlation
        self.largest_pull = float(self._norms.max(initial=0.0))
        self._share = _SHARE
        self.is_stuck = False
        self.objective = self.gap = np.inf

    def _block_norms(self) -> Array:
        """||Q_b|| of all blocks."""
        squares = np.einsum("tj,tj->j", self._correlation, self._correlation)
        if self._is_plain:
            return np.sqrt(squares)[self._members]
        return np.sqrt(np.add.reduceat(squares[self._members], self._first))

    def start_at(self, W: Array) -> None:
        """Begin at coefficients of shape (k, d) instead of zero; before the first penalty."""
        used = np.bincount(self._labels, weights=np.abs(W).sum(axis=0)) > 0
        if used.any():
            self._let_in(np.flatnonzero(used & self._outside))
            self.restricted.place(W[:, self._columns])
            self._evaluate()

    def _evaluate(self) -> None:
        """Correlations of all columns with the residuals of the present point."""
        at = self.source.at(self.restricted.coef())
        self._correlation, self._square = at.correlation, float(at.residual_square.sum())
        self._norms = self._block_norms()
        self.restricted.restore(self._correlation[:, self._columns])

    def set_terms(self, linear: Array, bend: float) -> None:
        """Go on with another penalty: the factor of every block's norm, and of half the square."""
        self._linear, self._bend = np.ascontiguousarray(linear), bend
        self._share, self.is_stuck = _SHARE, False
        self._is_complete = self.source.gathers_all
        if self.source.gathers_all:
            near = self._outside
        else:
            near = self._outside & ((self._norms > _NEAR * linear) | (linear == 0))
        self._let_in(self._foremost(near))
        self.restricted.set_terms(self._linear, bend)
        self._judge()

    def approach(self, linear: Array, bend: float) -> None:
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
            self.set_terms(factor * linear, factor * bend)
            self.step(_ON_THE_WAY * self.scale * factor / far)
            factor /= _STRIDE
        self.set_terms(linear, bend)

    def _foremost(self, wanted: NDArray[np.bool_]) -> Integers:
        """The wanted blocks, or those of them that are pulled most if there are many."""
        blocks = np.flatnonzero(wanted)
        most = max(_FEW_BLOCKS, 2 * int(np.count_nonzero(self.restricted.norms())))
        if self.source.gathers_all or len(blocks) <= most:
            return blocks
        with np.errstate(divide="ignore"):
            ratio = self._norms[blocks] / self._linear[blocks]
        # Blocks without a norm of their own are never left out.
        most = max(most, int(np.count_nonzero(np.isinf(ratio))))
        return np.sort(blocks[np.argpartition(ratio, -most)[-most:]])

    def _let_in(self, blocks: Integers) -> None:
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
        """Solve the restricted problem, look at all columns, let in what was missed.

        ``target`` is the gap that is asked for. Where it is reached while blocks are still missing
        these are let in at once: the answer is then better than was asked for, at little cost.
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
                self._let_in(self._foremost(missed))
                self.restricted.set_terms(self._linear, self._bend)
            missing = bool(missed.any()) and self.gap <= target
        settled = self._is_complete and (was_complete or self.restricted.size <= _LARGE)
        if settled and self.gap > target:  # what is left to gain is in the last digits
            self.is_stuck = self._share < 1e-4 and self.gap > 0.5 * before
            self._share *= 0.1

    def _judge(self) -> None:
        """Objective and gap of the whole problem at the present point."""
        t = dual_scale(self._norms, self._linear, self._bend)
        gap = self.restricted.fenchel_gap(self._norms[self.restricted.ids], self._square, t)
        if self._bend > 0:
            excess = t * self._norms[self._outside] - self._linear[self._outside]
            gap += 0.5 * float((np.maximum(excess, 0.0) ** 2).sum()) / self._bend
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
