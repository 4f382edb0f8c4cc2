"""Measure one case: python -m benchmarks.compare.worker CASE full|small."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

from benchmarks.compare.cases import CASES, models_of
from benchmarks.isolated import emit

__all__ = ["measure"]


def measure(name: str, small: bool) -> dict[str, dict[str, Any]]:
    """Seconds, winner and best score of both sides, and of every model."""
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

    from trueline import compare

    case = CASES[name]
    X, y = case.make(small)
    cv = (StratifiedKFold if case.is_classes else KFold)(5)
    scoring = "accuracy" if case.is_classes else "r2"
    few = CASES[name].make(True)
    compare(*few, models_of(case, *few, "trueline"), cv=2)  # compiles
    out: dict[str, dict[str, Any]] = {}
    start = time.process_time()
    ours = compare(X, y, models_of(case, X, y, "trueline"), cv=cv, scoring=scoring)
    out["trueline.compare"] = {
        "seconds": time.process_time() - start,
        "winner": ours.entries[0].name,
        "score": ours.entries[0].score,
    }
    start, scores = time.process_time(), {}
    for who, (model, grid) in models_of(case, X, y, "scikit-learn").items():
        search = GridSearchCV(model, grid, cv=cv, scoring=scoring, return_train_score=True)
        scores[who] = float(search.fit(X, y).best_score_)
    winner = max(scores, key=lambda who: scores[who])
    out["scikit-learn, GridSearchCV"] = {
        "seconds": time.process_time() - start,
        "winner": winner,
        "score": scores[winner],
        "difference": max(abs(scores[who] - ours[who].score) for who in scores),
    }
    return out


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for contestant, row in measure(sys.argv[1], sys.argv[2] == "small").items():
            emit(contestant=contestant, **row)
