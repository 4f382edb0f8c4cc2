"""Snap ML: coordinate descent on the primal or the dual, with threads."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.contestants.formats import cores
from benchmarks.objective import Answer

_ROUNDS = 100_000


def logistic(data: ClassData, tol: float, dual: bool) -> Answer:
    """LogisticRegression."""
    from snapml import LogisticRegression

    model = LogisticRegression(
        penalty=data.penalty,
        dual=dual,
        regularizer=1.0,
        fit_intercept=False,
        n_jobs=cores(),
        tol=tol,
        max_iter=_ROUNDS,
    )
    return Answer(np.asarray(model.fit(data.X, data.y).coef_).ravel())


def linear(data: ClassData, tol: float) -> Answer:
    """SupportVectorMachine, which works on the dual."""
    from snapml import SupportVectorMachine

    model = SupportVectorMachine(
        loss=data.loss,
        regularizer=1.0,
        fit_intercept=False,
        n_jobs=cores(),
        tol=tol,
        max_iter=_ROUNDS,
    )
    return Answer(np.asarray(model.fit(data.X, data.y).coef_).ravel())


_LADDER = half_decades(1, 13)

CONTESTANTS = (
    Contestant(
        "snapml (dual)",
        tuned={
            "logistic": Tuned(partial(logistic, dual=True), _LADDER, 1e-5),
            "hinge": Tuned(linear, _LADDER, 1e-7),
            "squared_hinge": Tuned(linear, _LADDER, 1e-5),
        },
        package="snapml",
        is_guest=True,
    ),
    Contestant(
        "snapml (primal)",
        tuned={
            "logistic": Tuned(partial(logistic, dual=False), _LADDER, 1e-5),
            "logistic_l1": Tuned(partial(logistic, dual=False), _LADDER, 1e-5),
        },
        package="snapml",
        is_guest=True,
    ),
)
