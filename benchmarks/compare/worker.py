"""Measure one case: python -m benchmarks.compare.worker CASE full|small SECONDS [FOLDER].

Our side is one call of ``compare``, the other one search for each model, of which a line is
reported at a time. A search that takes longer than the limit is ended, and its seconds are the
least that it would have taken.
"""

from __future__ import annotations

import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compare.cases import CASES, Case, models_of
from benchmarks.compare.files import FILES, read
from benchmarks.isolated import emit

__all__ = ["OURS", "THEIRS", "measure"]

OURS, THEIRS = "trueline.compare", "scikit-learn, GridSearchCV"
# Rows that let kernels compile: some of every class, or some at all.
_OF_A_CLASS, _FEW = 20, 300


def _case(name: str, small: bool, folder: Path | None) -> tuple[Case, Any, Any]:
    if name in CASES:
        return CASES[name], *CASES[name].make(small)
    assert folder is not None
    X, y = read(name, folder)
    file = FILES[name]
    return Case(file.title, lambda small: (X, y), file.is_classes), X, y


def _few(y: Any, is_classes: bool) -> Any:
    if not is_classes:
        return np.arange(min(len(y), _FEW))
    parts = [np.flatnonzero(y == value)[:_OF_A_CLASS] for value in np.unique(y)]
    return np.sort(np.concatenate(parts))


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of processor time, between two fits."""

    def ring(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def measure(
    name: str, small: bool, limit: float = 600.0, folder: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Our side as one row with the seconds and scores of all models; theirs, model by model."""
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

    from trueline import compare

    case, X, y = _case(name, small, folder)
    cv = (StratifiedKFold if case.is_classes else KFold)(5)
    scoring = "accuracy" if case.is_classes else "r2"
    few = _few(y, case.is_classes)
    compare(X[few], y[few], models_of(case, X[few], y[few], "trueline"), cv=2)  # compiles
    start = time.process_time()
    ours = compare(X, y, models_of(case, X, y, "trueline"), cv=cv, scoring=scoring)
    yield {
        "contestant": OURS,
        "seconds": time.process_time() - start,
        "models": {
            entry.name: {
                "seconds": entry.search_seconds + entry.fit_seconds,
                "score": entry.score,
                "setting": {key: float(value) for key, value in entry.setting.items()},
            }
            for entry in ours.entries
        },
    }
    for who, (model, grid) in models_of(case, X, y, "scikit-learn").items():
        options = {"cv": cv, "scoring": scoring, "return_train_score": True}
        search = GridSearchCV(model, grid, error_score="raise", **options)
        start, row = time.process_time(), {"contestant": THEIRS, "model": who}
        try:
            with _at_most(limit):
                search.fit(X, y)
            row["score"] = float(search.best_score_)
            row["setting"] = {key: float(value) for key, value in search.best_params_.items()}
        except TimeoutError:
            row["is_late"] = True
        yield {**row, "seconds": time.process_time() - start}


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = Path(sys.argv[4]) if len(sys.argv) > 4 else None
        for line in measure(sys.argv[1], sys.argv[2] == "small", float(sys.argv[3]), data):
            emit(**line)
