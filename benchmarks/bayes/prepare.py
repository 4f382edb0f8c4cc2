"""Problems on disk with the values that answers are compared with.

``python -m benchmarks.bayes.prepare CASE SCALE CACHE`` makes what a case needs.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

import benchmarks.problems
from benchmarks.bayes import cases, objective
from benchmarks.bayes.cases import CASES, PROBLEMS, Case, data_of
from benchmarks.bayes.objective import BayesData, plain_fit
from benchmarks.cache import key, stored_rows
from benchmarks.isolated import emit

__all__ = ["best_value", "load", "prepare"]

_MAKERS = (cases, objective, benchmarks.problems)


def _facts_path(cache: Path, name: str, scale: float) -> Path:
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:6]
    return cache / f"{key(name, scale, _MAKERS)}-{digest}.json"


def load(cache: Path, name: str, case: Case, scale: float) -> tuple[BayesData, dict[str, Any]]:
    """The data of a prepared case, and what its answers are compared with."""
    X, y = stored_rows(cache, key(case.problem, scale, _MAKERS))
    return data_of(case, X, y), json.loads(_facts_path(cache, name, scale).read_text())


def best_value(data: BayesData) -> float:
    """The highest value that plain optimisers of SciPy find."""
    if data.kind == "process":
        part = BayesData(data.X[::4], data.y[::4], data.kind, data.by_column)
        start = plain_fit(part).theta
        return objective.objective(data, plain_fit(data, 1e-13, start).theta)
    first = np.array([-np.log(np.var(data.y)), 0.0])
    found = optimize.minimize(
        lambda theta: -objective.objective(data, theta),
        first,
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-9, "maxfev": 400},
    )
    return -float(found.fun)


def prepare(cache: Path, name: str, scale: float) -> dict[str, Any]:
    """Make what a case needs, if it is not there."""
    case = CASES[name]
    cache.mkdir(parents=True, exist_ok=True)
    path = _facts_path(cache, name, scale)
    stem = key(case.problem, scale, _MAKERS)
    X, y = stored_rows(cache, stem, lambda: PROBLEMS[case.problem](scale))
    if path.exists():
        return json.loads(path.read_text())
    facts = {"shape": X.shape, "best": best_value(data_of(case, X, y))}
    path.write_text(json.dumps(facts))
    return facts


def main(name: str, scale: str, cache: str, folder: str = "") -> None:
    """Prepare one case."""
    facts = prepare(Path(cache), name, float(scale))
    emit(kind="prepared", shape=facts["shape"], best=facts["best"])


if __name__ == "__main__":
    main(*sys.argv[1:])
