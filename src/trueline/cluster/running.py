"""Work on the blocks where they are: sent there, added up in a tree, and repeated after losses.

A pass over the rows is a function of numbers that are here and of blocks that Dask can make again,
so that it can be repeated: whatever a worker held that dies, nothing is lost. The tree of a sum is
that of the blocks, not of the workers: the last digit does not depend on who does the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from trueline.design import DenseDesign, SparseDesign
from trueline.design.stacked import added_in_pairs
from trueline.errors import ClusterError, require
from trueline.numerics.blas import one_strand

# Blocks whose sums one task adds; a power of two, so that the tree is one of pairs.
ADDED = 8
# Rows of arrays of fewer bytes than this travel with the tasks, others ahead of them.
_SMALL = 1_000_000
_ATTEMPTS = 5
_LOOK_SECONDS, _PATIENCE_SECONDS = 2.0, 60.0


class Running:
    """Blocks that Dask holds, and work on them.

    Attributes
    ----------
    passes : int
        How often all blocks were worked on.
    repeated : int
        How many of these passes had to be started again, since a worker was lost.
    """

    def __init__(self, blocks: list[Any]) -> None:
        self.blocks, self.passes, self.repeated = blocks, 0, 0
        self._client = _client()

    @property
    def workers(self) -> int:
        """How many workers there are; 1 where Dask works in this process."""
        return 1 if self._client is None else len(_workers(self._client))

    def each(
        self, make: Callable[..., Any], by_row: Sequence[Any], numbers: Sequence[int] | None = None
    ) -> list[Any]:
        """``make(block, *own)`` of every block, or of some of them.

        ``by_row`` are arrays in as many parts as there are blocks, or None.
        """
        chosen = range(len(self.blocks)) if numbers is None else numbers
        self.passes += numbers is None
        return list(self._computed(lambda: self._tasks(make, by_row, chosen)))

    def summed(
        self, make: Callable[..., Any], by_row: Sequence[Any], add: Callable[[Any, Any], Any]
    ) -> Any:
        """The sum of what is made, added up by the workers."""
        self.passes += 1

        def tree() -> list[Any]:
            level = self._tasks(make, by_row, range(len(self.blocks)))
            while len(level) > 1:
                groups = (level[i : i + ADDED] for i in range(0, len(level), ADDED))
                level = [self._delayed(_added)(add, group) for group in groups]
            return level

        return self._computed(tree)[0]

    def mapped(self, make: Callable[..., Any], by_row: Sequence[Any]) -> Running:
        """Other blocks, made of these and kept by the workers too."""
        dask = require("dask", "dask")
        tasks = self._tasks(make, by_row, range(len(self.blocks)), is_kept=True)
        return Running(list(dask.persist(*tasks, optimize_graph=False)))

    def brought(self, collections: Sequence[Any]) -> list[Any]:
        """The values of Dask collections."""
        return list(self._computed(lambda: list(collections))) if collections else []

    # --- tasks ----------------------------------------------------------------------------------

    def _delayed(self, function: Callable[..., Any]) -> Any:
        return require("dask", "dask").delayed(function, pure=False, traverse=True)

    def _tasks(
        self,
        make: Callable[..., Any],
        by_row: Sequence[Any],
        chosen: Sequence[int],
        is_kept: bool = False,
    ) -> list[Any]:
        run = self._delayed(_run)
        # What is sent ahead is lost with its worker: kept blocks must bring it along.
        columns = [
            None if parts is None else (parts if is_kept else self._sent(parts)) for parts in by_row
        ]
        return [
            run(make, self.blocks[i], *(None if parts is None else parts[i] for parts in columns))
            for i in chosen
        ]

    def _sent(self, parts: Sequence[Any]) -> Sequence[Any]:
        """Parts of an array by row, sent to the workers that hold the blocks."""
        if self._client is None or sum(part.nbytes for part in parts) < _SMALL:
            return parts
        holders = self._holders()
        sent: list[Any] = list(parts)
        for worker in sorted(set(holders)):
            own = [i for i, holder in enumerate(holders) if holder == worker]
            futures = self._client.scatter(
                [parts[i] for i in own], workers=[worker] if worker else None, hash=False
            )
            for i, future in zip(own, futures):
                sent[i] = future
        return sent

    def _holders(self) -> list[str]:
        """The worker that holds each block; empty where it has to be made again."""
        keys = [block.key for block in self.blocks]
        held = self._client.who_has(keys)
        return [min(held.get(key) or [""]) for key in keys]

    # --- losses ---------------------------------------------------------------------------------

    def _computed(self, make: Callable[[], list[Any]]) -> Sequence[Any]:
        """The values of some tasks, which are made anew after every loss."""
        if self._client is None:
            return require("dask", "dask").compute(*make(), optimize_graph=False)
        for _ in range(_ATTEMPTS):
            try:
                return _gathered(self._client, make)
            except _lost() as error:
                self._explain(error)
                self.repeated += 1
        raise ClusterError(
            f"Workers were lost in {_ATTEMPTS} attempts at one pass over the rows. {_NOTHING_LOST}"
        )

    def _explain(self, error: BaseException) -> None:
        """An error in words, where it makes no sense to try again."""
        distributed = sys.modules["distributed"]
        if isinstance(error, distributed.scheduler.KilledWorker):
            raise ClusterError(
                f"A block killed every worker that took it, {error.last_worker.address} at last: "
                "most likely it needs more memory than a worker has. " + _NOTHING_LOST + " Make "
                "blocks smaller (X.rechunk, df.repartition), or give workers more memory."
            ) from error
        if self._client.status != "running":
            raise ClusterError(
                f"The scheduler cannot be reached any more. {_NOTHING_LOST}"
            ) from error


_NOTHING_LOST = (
    "Nothing is lost: the model is as it was before the fit, and the rows are where they come "
    "from. Connect to a cluster (dask.distributed.Client) and fit again."
)


def _run(make: Callable[..., Any], block: Any, *own: Any) -> Any:
    """A task. It is one strand: Dask has a thread for each task, and work inside opens no more."""
    with one_strand():
        return make(*[aligned(value) for value in (block, *own)])


def aligned(value: Any) -> Any:
    """The same numbers at addresses that are multiples of their size.

    What comes over a network lies anywhere; NumPy adds such numbers in other groups, and slowly.
    """
    if isinstance(value, np.ndarray):
        return np.require(value, requirements="A")
    if isinstance(value, DenseDesign) and not value.X.flags.aligned:
        return DenseDesign(aligned(value.X))
    if isinstance(value, SparseDesign) and not value.X.data.flags.aligned:
        X = value.X
        parts = (aligned(X.data), aligned(X.indices), aligned(X.indptr))
        return SparseDesign(type(X)(parts, shape=X.shape))
    return value


def _added(add: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    return added_in_pairs(parts, add)


def _client() -> Any:
    """The client that is connected to a cluster, if there is one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _workers(client: Any) -> dict[str, Any]:
    return dict(client.scheduler_info(n_workers=-1)["workers"])


def _lost() -> tuple[type[BaseException], ...]:
    """What is raised where a worker or the scheduler is gone."""
    distributed = sys.modules["distributed"]
    return (
        CancelledError,
        distributed.scheduler.KilledWorker,
        distributed.CancelledError,
        distributed.comm.CommClosedError,
        TimeoutError,
    )


def _gathered(client: Any, make: Callable[[], list[Any]]) -> list[Any]:
    """Values from the cluster; an error where no worker can compute them."""
    distributed = sys.modules["distributed"]
    futures = client.compute(make(), optimize_graph=False)
    waited = 0.0
    while True:
        try:
            distributed.wait(futures, timeout=_LOOK_SECONDS)
            return list(client.gather(futures))
        except TimeoutError:
            if client.status != "running":
                raise
            waited = 0.0 if _workers(client) else waited + _LOOK_SECONDS
            if waited >= _PATIENCE_SECONDS:
                raise ClusterError(
                    f"The cluster has had no worker for {waited:.0f} seconds. {_NOTHING_LOST}"
                ) from None
