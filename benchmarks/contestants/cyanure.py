"""Cyanure: variance-reduced stochastic gradients with acceleration (its solver "auto")."""

from __future__ import annotations

import numpy as np

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.contestants.formats import cores
from benchmarks.objective import Answer

_LOSSES = {"logistic": "logistic", "squared_hinge": "sqhinge", "softmax": "multiclass-logistic"}


def fit(data: ClassData, tol: float) -> Answer:
    """Classifier; means over the rows, and half of the squared hinge loss."""
    from cyanure.estimators import Classifier

    half = 0.5 if data.loss == "squared_hinge" else 1.0
    model = Classifier(
        loss=_LOSSES[data.loss],
        penalty=data.penalty,
        lambda_1=half / len(data.y),
        fit_intercept=False,
        multi_class="multinomial" if data.loss == "softmax" else "auto",
        tol=tol,
        max_iter=10_000,
        verbose=False,
        n_threads=cores(),
    )
    model.fit(data.X, data.y)
    W = np.asarray(model.get_weights())
    return Answer(W if len(W) == data.X.shape[1] else W.T)


_LADDER = half_decades(2, 9)

CONTESTANTS = (
    Contestant(
        "Cyanure",
        tuned={
            task: Tuned(fit, _LADDER, 1e-5)
            for task in ("logistic", "logistic_l1", "squared_hinge", "softmax")
        },
        package="cyanure",
        is_guest=True,
    ),
)
