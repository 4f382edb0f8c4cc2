"""ReHLine: coordinate descent on the dual of piecewise linear-quadratic losses with a ridge.

It cannot do without the ridge: for losses without a penalty a large C makes that one small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer
from benchmarks.robust.objective import RobustData

# Against a ridge of 1/2 ||w||^2: small enough for 1e-6 on all sizes.
_WITHOUT_PENALTY = 10.0
_SWEEPS = 10_000_000


def _fit(data: RobustData, loss: dict[str, Any], C: float, tol: float) -> Answer:
    from rehline import plqERM_Ridge

    X = np.column_stack([data.X, np.ones(len(data.y))])
    model = plqERM_Ridge(loss=loss, C=C, tol=tol, max_iter=_SWEEPS, verbose=0)
    w = model.fit(X, data.y).coef_
    return Answer(w[:-1], float(w[-1]))


def quantile(data: RobustData, tol: float) -> Answer:
    """Its check loss."""
    return _fit(data, {"name": "QR", "qt": data.quantiles[0]}, _WITHOUT_PENALTY, tol)


def svr(data: RobustData, tol: float) -> Answer:
    """Its loss of support vector regression."""
    return _fit(data, {"name": "SVR", "epsilon": data.threshold}, data.strength, tol)


_LADDER = half_decades(0, 8)

CONTESTANTS = (
    Contestant(
        "ReHLine",
        tuned={
            "quantile": Tuned(
                quantile, _LADDER, 1e-2, cases=("absolute_1e4", "absolute_1e5", "quantile90_1e4")
            ),
            "svr": Tuned(svr, _LADDER, 1e-2, cases=("svr_5e4",)),
        },
        package="rehline",
    ),
)
