"""Measure one case, all contestants taking turns: python -m benchmarks.multiclass.worker CASE."""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from benchmarks.isolated import emit
from benchmarks.multiclass.cases import CASES, CONTESTANTS, US, data_of

__all__ = ["measure"]

_ROUNDS = 5


def measure(name: str, small: bool, rounds: int = _ROUNDS) -> dict[str, dict[str, float]]:
    """Best seconds of fit and predict per contestant, and how its predictions compare to ours."""
    case = CASES[name]
    X, y = data_of(case, small)
    models = {who: contestant.build(case) for who, contestant in CONTESTANTS.items()}
    best = {who: {"fit": np.inf, "predict": np.inf} for who in models}
    answers: dict[str, np.ndarray] = {}
    for model in models.values():
        model.fit(X, y)  # compiles, and loads what is loaded late
    for _ in range(rounds):  # in turns: a disturbance hits everyone
        for who, model in models.items():
            start = time.perf_counter()
            model.fit(X, y)
            middle = time.perf_counter()
            answers[who] = model.predict(X)
            end = time.perf_counter()
            best[who]["fit"] = min(best[who]["fit"], middle - start)
            best[who]["predict"] = min(best[who]["predict"], end - middle)
    for who, answer in answers.items():
        best[who]["same"] = float(np.mean(answer == answers[US]))
        best[who]["accuracy"] = float(np.mean(answer == y))
    return best


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for contestant, row in measure(sys.argv[1], sys.argv[2] == "small").items():
            emit(contestant=contestant, **row)
