"""Blocks of rows on the workers of a cluster, as one design."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.cluster.running import Running
from trueline.design import DenseDesign, Design
from trueline.design.base import Array
from trueline.design.stacked import StackedDesign
from trueline.wording import Readable, counted


class Facts(NamedTuple):
    """What is known of a block."""

    n: int
    d: int
    nonzeros: int
    dtype: str


class ClusterRows(StackedDesign, Readable):
    """Rows in blocks that the workers of a cluster hold; target and weights are here.

    For each pass the coefficients go to the blocks, and a number for each row where a sum weighs
    rows; sums of the size of the coefficients come back, and where scores are asked for a number
    for each row. The rows themselves do not travel.

    Attributes
    ----------
    shape : tuple of int
    columns : list of str, or None
    target, weights : array of shape (n,), or None
    """

    def __init__(
        self,
        running: Running,
        facts: list[Facts],
        columns: list[str] | None,
        target: Any = None,
        weights: Any = None,
    ) -> None:
        widths = {fact.d for fact in facts}
        if len(widths) != 1:
            raise ValueError(
                f"The blocks of X have different numbers of columns: {sorted(widths)}."
            )
        # Blocks without rows take no part.
        kept = [i for i, fact in enumerate(facts) if fact.n]
        running.blocks = [running.blocks[i] for i in kept]
        sizes = [facts[i].n for i in kept]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        is_single = all(fact.dtype == "float32" for fact in facts)
        kind = np.dtype(np.float32 if is_single else np.float64)
        super().__init__((int(self._starts[-1]), widths.pop()), kind)
        self.nonzeros = sum(fact.nonzeros for fact in facts)
        self._running, self.columns, self.target, self.weights = running, columns, target, weights

    @property
    def whereabouts(self) -> str:  # type: ignore[override]
        running = self._running
        told = f"{self}, {counted(running.passes, 'pass', 'passes')}"
        return told + f" ({running.repeated} repeated after losses)" * (running.repeated > 0)

    def _cut(self, values: Array | None) -> list[Array] | None:
        """An array by row, in parts as the blocks are."""
        if values is None:
            return None
        return [values[a:b] for a, b in pairwise(self._starts)]

    def each(self, make: Callable[..., Any], *by_row: Array | None) -> Iterator[Any]:
        yield from self._running.each(make, [self._cut(values) for values in by_row])

    def summed(
        self,
        make: Callable[..., Any],
        *by_row: Array | None,
        add: Callable[[Any, Any], Any] = operator.add,
    ) -> Any:
        return self._running.summed(make, [self._cut(values) for values in by_row], add)

    def parts(self) -> Iterator[tuple[slice, Design]]:
        """The blocks, brought here one after the other; for what cannot be done where they are."""
        for number, (start, stop) in enumerate(pairwise(self._starts)):
            (block,) = self._running.each(_itself, (), [number])
            yield slice(int(start), int(stop)), block

    def take(self, rows: NDArray[np.intp] | slice) -> Design:
        """Some rows, brought here."""
        wanted = np.arange(self.shape[0])[rows]
        order = np.argsort(wanted, kind="stable")
        cuts = np.searchsorted(wanted[order], self._starts)
        own = [order[a:b] for a, b in pairwise(cuts)]
        places = [wanted[part] - start for part, start in zip(own, self._starts)]
        numbers = [i for i, part in enumerate(own) if len(part)]
        found = np.empty((len(wanted), self.shape[1]), self.dtype)
        for i, block in zip(numbers, self._running.each(_taken, [places], numbers)):
            found[own[i]] = block
        return DenseDesign(found)

    def glance(self, count: int) -> Array:
        """Rows from all over."""
        return Design.glance(self, count)

    def of_rows(self, rows: NDArray[np.intp]) -> ClusterRows:
        """Some rows in ascending order, which the workers keep beside all of them."""
        cuts = np.searchsorted(rows, self._starts)
        places = [rows[a:b] - start for a, b, start in zip(cuts[:-1], cuts[1:], self._starts)]
        running = self._running.mapped(_part, [places])
        facts = [
            Facts(len(own), self.shape[1], len(own) * self.shape[1], str(self.dtype))
            for own in places
        ]
        return ClusterRows(running, facts, self.columns)

    def __str__(self) -> str:
        n, d = self.shape
        blocks, workers = len(self._starts) - 1, self._running.workers
        return (
            f"{counted(n, 'row')} x {counted(d, 'column')} in {counted(blocks, 'block')} on "
            f"{counted(workers, 'worker')}"
        )


def _itself(block: Design) -> Design:
    return block


def _taken(block: Design, rows: NDArray[np.intp]) -> Array:
    return block.take(rows).toarray()


def _part(block: Design, rows: NDArray[np.intp]) -> Design:
    return block.take(rows)
