"""ReHLine: coordinate descent on the dual of piecewise linear-quadratic losses with a ridge.

It cannot do without the ridge, which costs exactness: for losses without a penalty its ladder is
one of ridges, 1 / (C n), that become smaller and make it slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer
from benchmarks.robust.objective import RobustData

# Tight enough for what the ridges of the ladder leave.
_TIGHT = 1e-6
_SWEEPS = 10_000_000


def _fit(data: RobustData, loss: dict[str, Any], C: float, tol: float) -> Answer:
    from rehline import plqERM_Ridge

    X = np.column_stack([data.X, np.ones(len(data.y))])
    model = plqERM_Ridge(loss=loss, C=C, tol=tol, max_iter=_SWEEPS, verbose=0)
    w = model.fit(X, data.y).coef_
    return Answer(w[:-1], float(w[-1]))


def quantile(data: RobustData, ridge: float) -> Answer:
    """Its check loss, with a small ridge."""
    C = 1 / (ridge * len(data.y))
    return _fit(data, {"name": "QR", "qt": data.quantiles[0]}, C, _TIGHT)


def svr(data: RobustData, tol: float) -> Answer:
    """Its loss of support vector regression."""
    return _fit(data, {"name": "SVR", "epsilon": data.threshold}, data.strength, tol)


_RIDGES = (1e-4, 5e-5, 3e-5, 2e-5, 1e-5, 5e-6, 3e-6, 2e-6, 1e-6)
_FEW = ("absolute_1e4", "absolute_1e5", "quantile90_1e4")

CONTESTANTS = (
    Contestant(
        "ReHLine",
        tuned={
            "quantile": Tuned(quantile, _RIDGES, 3e-5, cases=_FEW),
            "svr": Tuned(svr, half_decades(0, 8), 1e-2, cases=("svr_5e4",)),
        },
        package="rehline",
    ),
)
