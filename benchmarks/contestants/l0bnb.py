"""l0bnb: best subsets with a price per column, by branch and bound.

It minimises 1/2 ||y - X w||^2 + price ||w||_0 over |w_j| <= M. It is given the good columns that
are known as a start, half as much again as their largest coefficient for M, and (where there is
one) a price at which neither one column more nor one less pays. Its lower bound L then proves, for
k columns (as long as M is large enough), that no residual square is below 2 (L - k price).
"""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned
from benchmarks.objective import Data
from benchmarks.sparse.cases import SEARCH_SECONDS
from benchmarks.sparse.exchange import price_per_column
from benchmarks.sparse.objective import Chosen, residual_square

_PROVEN = 1e-4


def best_subset(data: Data, seconds: float) -> Chosen:
    """One search, with a limit on its time."""
    from l0bnb import BNBTree

    columns = list(data.known)
    price = price_per_column(data.X, data.y, columns)
    start = np.zeros(data.X.shape[1])
    start[columns] = np.linalg.lstsq(data.X[:, columns], data.y, rcond=None)[0]
    tree = BNBTree(np.ascontiguousarray(data.X), data.y)
    found = tree.solve(
        l0=price,
        l2=0.0,
        m=1.5 * float(np.abs(start).max()),
        gap_tol=_PROVEN,
        warm_start=start,
        time_limit=seconds,
    )
    support = np.flatnonzero(np.abs(found.beta) > 1e-8)
    # Above 1 stands for no bound yet; a tree without open nodes is a proof whatever gap it says.
    own = float(np.clip(found.gap, 0.0, 1.0))
    if tree.bfs_queue.empty() and tree.dfs_queue.empty() and found.sol_time < seconds:
        own = 0.0
    # Its optimum at this price may have another number of columns: the start then stands.
    is_asked = len(support) == data.choose
    taken = support if is_asked else np.array(columns)
    least = 2 * (float(found.cost) * (1 - own) - price * data.choose)
    gap = float(np.clip(1 - least / residual_square(data, taken), 0.0, 1.0))
    return Chosen(taken, gap, own, is_asked and own <= _PROVEN)


CONTESTANTS = (
    Contestant(
        "l0bnb",
        tuned={"best_subset": Tuned(best_subset, (SEARCH_SECONDS,))},
        package="l0bnb",
        is_guest=True,
    ),
)
