"""Problems on disk with the bounds that answers are compared with.

``python -m benchmarks.robust.prepare CASE SCALE CACHE`` makes what a case needs.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import benchmarks.problems
import benchmarks.sparse.problems
from benchmarks.cache import key, stored_rows
from benchmarks.isolated import emit
from benchmarks.objective import Answer
from benchmarks.robust import cases, multipliers, objective, problems
from benchmarks.robust.cases import CASES, PROBLEMS, Case, data_of
from benchmarks.robust.objective import RobustData, lower_bound, suboptimality

__all__ = ["load", "prepare"]

# What the bounds must be worth.
_WORTH = 1e-7
_MAKERS = (cases, problems, benchmarks.problems, benchmarks.sparse.problems)


def _facts_path(cache: Path, name: str, scale: float) -> Path:
    recipe = (Path(__file__), Path(multipliers.__file__), Path(objective.__file__))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in recipe)).hexdigest()[:6]
    return cache / f"{key(name, scale, _MAKERS)}-{digest}.json"


def load(cache: Path, name: str, case: Case, scale: float) -> tuple[RobustData, dict[str, Any]]:
    """The data of a prepared case, and what its answers are compared with."""
    X, y = stored_rows(cache, key(case.problem, scale, _MAKERS))
    return data_of(case, X, y), json.loads(_facts_path(cache, name, scale).read_text())


def prepare(cache: Path, name: str, scale: float) -> dict[str, Any]:
    """Make what a case needs, if it is not there."""
    case = CASES[name]
    cache.mkdir(parents=True, exist_ok=True)
    path = _facts_path(cache, name, scale)
    stem = key(case.problem, scale, _MAKERS)
    X, y = stored_rows(cache, stem, lambda: PROBLEMS[case.problem](scale))
    if path.exists():
        return json.loads(path.read_text())
    facts = {"shape": X.shape, **bounds_of(data_of(case, X, y))}
    path.write_text(json.dumps(facts))
    return facts


def bounds_of(data: RobustData) -> dict[str, Any]:
    """Proven lower bounds, and how far the solutions that gave them are above.

    Raises
    ------
    ValueError
        If they are too far apart to judge by.
    """
    answer, found = _solution(data)
    bounds = [lower_bound(data, u, q) for u, q in zip(found, data.quantiles, strict=True)]
    gap = suboptimality(data, answer, bounds)
    if not abs(gap) <= _WORTH:
        raise ValueError(f"The bounds are {gap:.1e} from the objectives: too far to judge by.")
    return {"bounds": bounds, "bounds_gap": gap}


def _solution(data: RobustData) -> tuple[Answer, list[Any]]:
    """A solution of high accuracy, and multipliers."""
    from benchmarks.contestants import trueline

    if data.kind == "svr":
        model = trueline.support_vectors(data, 1e-9)
        answer = Answer(model.coef_, model.intercept_)
        return answer, [-data.strength * model.certificate_.witness["dual"][:, 0]]
    choices: dict[str, tuple[Any, Any]] = {
        "quantile": (trueline.quantiles, None),
        "maximum": (trueline.maximum, None),
        "huber": (trueline.huber, 1e-11),
        "huber_scale": (trueline.huber_scale, 1e-5),
        "svr_squared": (trueline.svr, 1e-11),
    }
    fit, tol = choices[data.kind]
    answer = fit(data, tol)
    return answer, multipliers.multipliers(data, answer)


def main(name: str, scale: str, cache: str, folder: str = "") -> None:
    """Prepare one case."""
    facts = prepare(Path(cache), name, float(scale))
    emit(kind="prepared", shape=facts["shape"], bounds_gap=facts["bounds_gap"])


if __name__ == "__main__":
    main(*sys.argv[1:])
