"""One versus one: a machine for each pair of classes, in LIBSVM's order, signs and layout.

Pairs are (0, 1), (0, 2), ..., (1, 2), ...; the first class of a pair is the positive one. A support
vector of class a has its coefficient against class b in row b - 1 if a < b, and in row b otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.kernels import KernelSource, MatrixSource
from trueline.kernels.scores import mirror
from trueline.numerics.blas import run_strands
from trueline.solvers.smo.engine import WHOLE
from trueline.solvers.smo.program import DualSolution

__all__ = ["Pair", "layout", "pairs_of", "solve_pairwise", "votes"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def pairs_of(k: int) -> Iterator[tuple[int, int]]:
    """(0, 1), (0, 2), ..., (1, 2), ..."""
    for a in range(k):
        for b in range(a + 1, k):
            yield a, b


class Pair(NamedTuple):
    """Two classes: rows of the first one before those of the second, and what a machine needs."""

    X: Any
    rows: Index
    signs: Index
    box: Array
    source: KernelSource
    #: Of the second class and of the first.
    names: NDArray[Any]


class ClassBlocks:
    """Kernel matrices of pairs of classes, put together from blocks.

    The matrix of a class with itself is part of all its pairs and computed once; that of two
    classes with each other belongs to one pair alone, and the other half of it is its transpose.
    """

    def __init__(self, source: KernelSource, members: list[Index]) -> None:
        self.source, self.members = source, members
        self.own = [self._block(rows, rows) for rows in members]

    @staticmethod
    def fits(source: KernelSource, members: list[Index], cache_bytes: float) -> bool:
        """Whether all blocks, and the matrices of two pairs at a time, fit into so many bytes."""
        sizes = sorted(len(rows) for rows in members)
        largest = sizes[-1] + sizes[-2]
        values = sum(m * m for m in sizes) + 2 * largest**2
        small = largest <= WHOLE and not isinstance(source, MatrixSource)
        return small and values * np.dtype(source.dtype).itemsize <= cache_bytes

    def pair(self, a: int, b: int) -> MatrixSource:
        """The matrix of the rows of class a, then those of class b."""
        m, n = len(self.members[a]), len(self.members[b])
        K = np.empty((m + n, m + n), dtype=self.source.dtype)
        K[:m, :m], K[m:, m:] = self.own[a], self.own[b]
        self.source.block(self.members[b], self.members[a], K[m:, :m])
        mirror(K, m)
        return MatrixSource(K)

    def _block(self, rows: Index, columns: Index) -> NDArray[Any]:
        out = np.empty((len(rows), len(columns)), dtype=self.source.dtype)
        self.source.block(rows, columns, out)
        return out


def solve_pairwise(
    source: KernelSource,
    codes: Index,
    k: int,
    solve: Callable[[Index, Index, KernelSource], DualSolution],
    cache_bytes: float,
) -> list[tuple[Index, DualSolution]]:
    """Rows and solution of each pair; rows are in the order of their classes.

    ``solve`` takes the rows of a pair, those of the first class before those of the second, their
    signs, and their kernel values.
    """
    members = [np.flatnonzero(codes == code) for code in range(k)]
    blocks = None
    if k > 2 and ClassBlocks.fits(source, members, cache_bytes):
        blocks = ClassBlocks(source, members)

    def one(pair: tuple[int, int]) -> tuple[Index, DualSolution]:
        a, b = pair
        rows = np.concatenate([members[a], members[b]])
        signs = np.repeat([1, -1], [len(members[a]), len(members[b])])
        if k == 2:  # rows are in the order of their classes: two classes are the whole source
            part = source
        else:
            part = source.subset(rows) if blocks is None else blocks.pair(a, b)
        return rows, solve(rows, signs, part)

    pairs = list(pairs_of(k))
    if len(pairs) == 1:
        return [one(pairs[0])]
    halves = [pairs[0::2], pairs[1::2]]
    done = run_strands(lambda some: [one(pair) for pair in some], halves)
    found: list[Any] = [None] * len(pairs)
    found[0::2], found[1::2] = done[0], done[1]
    return found


def layout(
    betas: list[tuple[Index, Array]], codes: Index, k: int
) -> tuple[Index, Array, NDArray[np.int32]]:
    """Support vectors by class, their coefficients of shape (k - 1, m), and how many each has."""
    n = len(codes)
    table = np.zeros((k - 1, n))
    for (a, b), (rows, beta) in zip(pairs_of(k), betas):
        first = codes[rows] == a
        table[b - 1, rows[first]] = beta[first]
        table[a, rows[~first]] = beta[~first]
    used = (table != 0).any(axis=0)
    support = np.concatenate([np.flatnonzero(used & (codes == code)) for code in range(k)])
    counts = np.array([int((used & (codes == code)).sum()) for code in range(k)], dtype=np.int32)
    return support, table[:, support], counts


def votes(scores: Array, k: int) -> Index:
    """How many pairs each class wins; a score above zero is a vote for the first of a pair."""
    won = np.zeros((len(scores), k), dtype=np.intp)
    for number, (a, b) in enumerate(pairs_of(k)):
        positive = scores[:, number] > 0
        won[:, a] += positive
        won[:, b] += ~positive
    return won
