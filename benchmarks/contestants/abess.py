"""abess: best subsets by splicing, without proof."""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned
from benchmarks.objective import Data
from benchmarks.sparse.objective import Chosen


def best_subset(data: Data, is_thorough: bool) -> Chosen:
    """Splicing at one size: as it comes, or exchanging all columns among all."""
    from abess import LinearRegression

    options = {}
    if is_thorough:
        options = {"exchange_num": data.choose, "important_search": 0, "max_iter": 100}
    model = LinearRegression(support_size=[data.choose], fit_intercept=False, thread=0, **options)
    return Chosen(np.flatnonzero(model.fit(data.X, data.y).coef_))


CONTESTANTS = (
    Contestant(
        "abess",
        tuned={"best_subset": Tuned(best_subset, (False,))},
        package="abess",
        is_guest=True,
    ),
    Contestant(
        "abess (all exchanges)",
        tuned={"best_subset": Tuned(best_subset, (True,))},
        package="abess",
        is_guest=True,
    ),
)
