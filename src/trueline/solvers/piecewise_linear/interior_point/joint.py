r"""Several quantiles in one program, with their order at chosen rows as further kinks.

The variables are one block v_j for each quantile, in ascending order, each with the rows and kinks
of a program of its own. That the score of row a under quantile j is not above that under the next
one is a kink of a slope so steep that it never pays to pass it:

    sum_j program_j(v_j) + sum_e c_e max(0, a_e.(v_j(e) - v_j(e)+1)).

With c_e above the multiplier of the constraint the minimum is that of the constrained problem
(exact penalties: D. P. Bertsekas, "Constrained Optimization and Lagrange Multiplier Methods", 1982,
proposition 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.gram import weighted_gram
from trueline.solvers.piecewise_linear.interior_point.program import Program

__all__ = ["JointProgram"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class JointProgram(Program):
    """Blocks of variables, coupled by the order of neighbours.

    Attributes
    ----------
    blocks : tuple of Program
        One for each quantile, all with the same number of variables.
    order_rows : array of shape (r, p)
        Rows at which two neighbours must be in order.
    pairs : array of int of shape (r,)
        The lower neighbour's number.
    """

    blocks: tuple[Program, ...]
    order_rows: Array
    pairs: Indices

    @classmethod
    def of(
        cls, blocks: tuple[Program, ...], order_rows: Array, pairs: Indices, steepness: float
    ) -> JointProgram:
        """The program whose constraints cost ``steepness`` for each unit they are broken by."""
        size = sum(len(block.ell) for block in blocks)
        typical = float(np.median(np.concatenate([block.c for block in blocks])))
        count = len(pairs)
        return cls(
            A=np.empty((0, size)),
            ell=np.concatenate([block.ell for block in blocks]),
            quad=np.concatenate([block.quad for block in blocks]),
            lasso=np.empty(0, dtype=np.intp),
            t=np.concatenate([*(block.t for block in blocks), np.zeros(count)]),
            c=np.concatenate([*(block.c for block in blocks), np.full(count, steepness)]),
            share=np.concatenate(
                [
                    *(np.broadcast_to(block.share, block.t.shape) for block in blocks),
                    np.full(count, 0.5 * min(1.0, typical / steepness)),
                ]
            ),
            blocks=blocks,
            order_rows=order_rows,
            pairs=pairs,
        )

    @property
    def is_plain(self) -> bool:
        return False

    @property
    def width(self) -> int:
        """Variables of a block."""
        return len(self.blocks[0].ell)

    @property
    def order(self) -> slice:
        """Which kinks are those of the order."""
        return slice(len(self.t) - len(self.pairs), None)

    def split(self, kinks: Array) -> list[Array]:
        """Numbers for all kinks, block by block; those of the order come last."""
        return np.split(kinks, np.cumsum([len(block.t) for block in self.blocks]))

    def scores(self, v: Array) -> Array:
        own = v.reshape(len(self.blocks), -1)
        parts = [block.scores(part) for block, part in zip(self.blocks, own, strict=True)]
        apart = own[self.pairs] - own[self.pairs + 1]
        return np.concatenate([*parts, np.einsum("ij,ij->i", self.order_rows, apart)])

    def rmatvec(self, weights: Array) -> Array:
        *parts, order = self.split(weights)
        out = np.stack(
            [block.rmatvec(part) for block, part in zip(self.blocks, parts, strict=True)]
        )
        pushed = order[:, None] * self.order_rows
        np.add.at(out, self.pairs, pushed)
        np.subtract.at(out, self.pairs + 1, pushed)
        return out.ravel()

    def gram(self, weights: Array) -> Array:
        *parts, order = self.split(weights)
        p, size = self.width, len(self.ell)
        out = np.zeros((size, size))
        for j, (block, part) in enumerate(zip(self.blocks, parts, strict=True)):
            own = slice(j * p, (j + 1) * p)
            out[own, own] = block.gram(part)
        for j in np.unique(self.pairs):
            ours = self.pairs == j
            coupled = weighted_gram(self.order_rows[ours], order[ours])
            low, high = slice(j * p, (j + 1) * p), slice((j + 1) * p, (j + 2) * p)
            out[low, low] += coupled
            out[high, high] += coupled
            out[low, high] -= coupled
            out[high, low] -= coupled
        return out

    def at_zero(self, kinks: Indices) -> Indices:
        parts = []
        ends = np.cumsum([len(block.t) for block in self.blocks])
        home = np.searchsorted(ends, kinks, side="right")
        for j, block in enumerate(self.blocks):
            start = ends[j] - len(block.t)
            parts.append(block.at_zero(kinks[home == j] - start) + j * self.width)
        return np.concatenate(parts)

    def row(self, kink: int) -> Array:
        return self.rows(np.array([kink]))[0]

    def rows(self, kinks: Indices) -> Array:
        p = self.width
        out = np.zeros((len(kinks), len(self.ell)))
        ends = np.cumsum([len(block.t) for block in self.blocks])
        home = np.searchsorted(ends, kinks, side="right")
        for j, block in enumerate(self.blocks):
            ours = np.flatnonzero(home == j)
            if len(ours):
                start = ends[j] - len(block.t)
                out[ours, j * p : (j + 1) * p] = block.rows(kinks[ours] - start)
        for place in np.flatnonzero(home == len(self.blocks)):
            number = kinks[place] - ends[-1]
            j, row = self.pairs[number], self.order_rows[number]
            out[place, j * p : (j + 1) * p] = row
            out[place, (j + 1) * p : (j + 2) * p] = -row
        return out
