"""abess: best subsets by splicing, without proof."""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned
from benchmarks.objective import Data
from benchmarks.sparse.objective import Chosen


def best_subset(data: Data, _: None) -> Chosen:
    """Splicing at one size, where any of the columns may be exchanged for any other."""
    from abess import LinearRegression

    model = LinearRegression(
        support_size=[data.choose],
        fit_intercept=False,
        thread=0,
        exchange_num=data.choose,
        important_search=0,
        max_iter=100,
    )
    return Chosen(np.flatnonzero(model.fit(data.X, data.y).coef_))


CONTESTANTS = (
    Contestant(
        "abess",
        tuned={"best_subset": Tuned(best_subset)},
        package="abess",
        is_guest=True,
    ),
)
