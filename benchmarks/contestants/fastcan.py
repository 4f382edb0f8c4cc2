"""fastcan: forward selection by canonical correlation."""

from __future__ import annotations

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned
from benchmarks.objective import Data
from benchmarks.sparse.objective import Chosen


def _allow_first_numpy() -> None:
    """It calls ``numpy.astype``, which NumPy 1 has as a method of arrays only."""
    if not hasattr(np, "astype"):
        vars(np)["astype"] = lambda array, dtype, copy=True: array.astype(dtype, copy=copy)


def forward(data: Data, use_products: bool) -> Chosen:
    """FastCan, on the columns or (eta) on their products."""
    _allow_first_numpy()
    from fastcan import FastCan

    model = FastCan(data.choose, eta=use_products, verbose=0).fit(data.X, data.y[:, None])
    return Chosen(np.asarray(model.indices_))


CONTESTANTS = (
    Contestant(
        "fastcan",
        tuned={"forward": Tuned(forward, (False,))},
        package="fastcan",
        is_guest=True,
    ),
    Contestant(
        "fastcan (eta)",
        tuned={"forward": Tuned(forward, (True,))},
        package="fastcan",
        is_guest=True,
    ),
)
