"""ReHLine: coordinate descent on the dual of piecewise linear-quadratic losses with a ridge.

It cannot do without the ridge: for losses without a penalty a large C makes that one small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer
from benchmarks.robust.objective import RobustData

# C times the rows, against a ridge of 1/2 ||w||^2: large enough for 1e-6 (what the ridge costs
# falls with its square), and no larger, since that would slow it down.
_WITHOUT_PENALTY = 2e5
_SWEEPS = 10_000_000


def _fit(data: RobustData, loss: dict[str, Any], C: float, tol: float) -> Answer:
    from rehline import plqERM_Ridge

    X = np.column_stack([data.X, np.ones(len(data.y))])
    model = plqERM_Ridge(loss=loss, C=C, tol=tol, max_iter=_SWEEPS, verbose=0)
    w = model.fit(X, data.y).coef_
    return Answer(w[:-1], float(w[-1]))


def quantile(data: RobustData, tol: float) -> Answer:
    """Its check loss."""
    C = _WITHOUT_PENALTY / len(data.y)
    return _fit(data, {"name": "QR", "qt": data.quantiles[0]}, C, tol)


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
