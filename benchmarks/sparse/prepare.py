"""Problems on disk, made once, so that every interpreter reads the same numbers.

``python -m benchmarks.sparse.prepare CASE SCALE CACHE [FOLDER]`` makes what a case needs: the
rows, the strengths, and the bounds (or good columns) that answers are compared with.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import benchmarks.problems
from benchmarks.cache import key, stored_rows
from benchmarks.isolated import emit
from benchmarks.objective import Answer, Data
from benchmarks.sparse import cases, exchange, problems
from benchmarks.sparse.cases import FOLDS, Case, all_cases
from benchmarks.sparse.objective import lasso_bounds, lasso_objectives

__all__ = ["load", "prepare"]

# Tolerance of the solutions behind the bounds, and what the bounds must be worth.
_EXACT = 1e-11
_WORTH = 2e-7


_MAKERS = (cases, problems, benchmarks.problems)


def _facts_path(cache: Path, name: str, scale: float) -> Path:
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:6]
    return cache / f"{key(name, scale, _MAKERS)}-{recipe}.json"


def load(cache: Path, name: str, case: Case, scale: float) -> tuple[Data, dict[str, Any]]:
    """The data of a prepared case, and what its answers are compared with."""
    X, y = stored_rows(cache, key(case.problem, scale, _MAKERS))
    if case.task.startswith("forward"):
        X = np.ascontiguousarray(X)
    facts = json.loads(_facts_path(cache, name, scale).read_text())
    data = Data(
        X,
        y,
        fit_intercept=_has_intercept(case),
        alphas=tuple(facts.get("alphas", ())),
        folds=FOLDS if case.task in ("lasso_cv", "forward_folds") else 0,
        choose=case.choose,
        known=tuple(facts.get("known", ())),
    )
    return data, facts


def _has_intercept(case: Case) -> bool:
    return case.task in ("lasso_cv", "forward", "forward_folds")


def prepare(cache: Path, name: str, scale: float, folder: Path | None = None) -> dict[str, Any]:
    """Make what a case needs, if it is not there."""
    known_cases, known_problems = all_cases(folder)
    case = known_cases[name]
    cache.mkdir(parents=True, exist_ok=True)
    path = _facts_path(cache, name, scale)
    make = known_problems[case.problem].make
    X, y = stored_rows(cache, key(case.problem, scale, _MAKERS), lambda: make(scale))
    if path.exists():
        return json.loads(path.read_text())
    facts: dict[str, Any] = {"shape": X.shape}
    if case.strengths:
        facts |= _bounds(X, y, case)
    if case.task == "best_subset":
        facts["known"] = exchange.good_columns(X, y, case.choose).tolist()
    if case.task == "lasso_cv":
        facts["chosen"] = _chosen(X, y, facts["alphas"])
    path.write_text(json.dumps(facts))
    return facts


def _bounds(X: Any, y: Any, case: Case) -> dict[str, Any]:
    """Strengths, and for each a proven lower bound on the objective."""
    from trueline import regularization_path

    top = float(np.abs(X.T @ (y - y.mean() * _has_intercept(case))).max()) / len(y)
    alphas = np.geomspace(top, case.ratio * top, case.strengths)
    if case.strengths == 1:
        alphas = np.array([case.ratio * top])
    data = Data(X, y, _has_intercept(case), tuple(alphas.tolist()))
    # Steps towards a small strength are quicker than one jump.
    steps = alphas if case.strengths > 1 else np.geomspace(top, alphas[0], 20)
    path = regularization_path(X, y, alphas=steps, fit_intercept=data.fit_intercept, tol=_EXACT)
    kept = slice(-len(alphas), None)
    best = Answer(sp.csc_matrix(path.coefs)[:, kept], path.intercepts[kept])
    values = lasso_objectives(data, best, alphas)
    bounds = lasso_bounds(data, best, alphas)
    gap = float(np.max((values - bounds) / bounds))
    if not gap <= _WORTH:
        raise ValueError(f"The bounds are {gap:.1e} from the objectives: too far to judge by.")
    return {"alphas": data.alphas, "bounds": bounds.tolist(), "bounds_gap": gap}


def _chosen(X: Any, y: Any, alphas: Any) -> float:
    """The strength with the least error over consecutive folds, from solutions of high accuracy."""
    from sklearn.model_selection import KFold

    from trueline import regularization_path

    by_rows, errors = sp.csr_matrix(X) if sp.issparse(X) else X, np.zeros(len(alphas))
    for train, test in KFold(FOLDS).split(by_rows):
        path = regularization_path(by_rows[train], y[train], alphas=alphas, tol=_EXACT)
        rest = y[test][:, None] - by_rows[test] @ path.coefs.toarray() - path.intercepts
        errors += np.mean(rest**2, axis=0)
    return float(alphas[int(np.argmin(errors))])


def main(name: str, scale: str, cache: str, folder: str = "") -> None:
    """Prepare one case."""
    facts = prepare(Path(cache), name, float(scale), Path(folder) if folder else None)
    emit(kind="prepared", shape=facts["shape"], bounds_gap=facts.get("bounds_gap"))


if __name__ == "__main__":
    main(*sys.argv[1:])
