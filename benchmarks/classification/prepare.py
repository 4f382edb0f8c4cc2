"""Problems on disk with the bounds that answers are compared with.

``python -m benchmarks.classification.prepare CASE SCALE CACHE`` makes what a case needs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit

import benchmarks.problems
from benchmarks.classification import cases, objective
from benchmarks.classification.cases import CASES, PROBLEMS, TARGETS, data_of
from benchmarks.classification.objective import ClassData, bounds, suboptimality
from benchmarks.isolated import emit
from benchmarks.judged import Suite
from benchmarks.objective import Answer

__all__ = ["SUITE", "bounds_of", "prepare"]

# What the bounds must be worth.
_WORTH = 1e-7
_STEPS = 4
# Rows and columns of the problem of the first call.
_PART = (400, 60)


def _solution(data: ClassData) -> tuple[Answer, Any]:
    """A solution of high accuracy, and multipliers where they do not follow from it."""
    from benchmarks.contestants import trueline_classifiers as ours

    if data.scheme != "two":
        return ours.scheme(data, 1e-6), None
    if data.loss in ("logistic", "softmax"):
        return ours.logistic(data, 1e-6), None
    model = ours.machine(data, 1e-7)
    answer = Answer(model.coef_.ravel(), model.intercept_)
    if data.loss == "squared_hinge":
        return answer, None
    return answer, -data.y * model.certificate_.witness["dual"][:, 0]


def _polished(data: ClassData, answer: Answer) -> Answer:
    """A solution with the l1 penalty after Newton's steps on the coefficients that are not zero.

    The bound of such a penalty loses what the gradient exceeds 1 by: it wants small gradients.
    """
    w = np.array(answer.coef, dtype=np.float64).ravel()
    used = np.flatnonzero(w)
    X, signs = data.X[:, used], np.sign(w[used])
    for _ in range(_STEPS):
        u = expit(-data.y * (X @ w[used]))
        curvature = u * (1.0 - u)
        gradient = signs - X.T @ (data.y * u)
        hessian = LinearOperator(
            (len(used), len(used)), lambda v, h=curvature: X.T @ (h * (X @ v)), dtype=np.float64
        )
        w[used] -= cg(hessian, gradient, rtol=1e-8)[0]
    return Answer(w)


def bounds_of(data: ClassData) -> dict[str, Any]:
    """Proven lower bounds, and how far the solutions that gave them are above.

    Raises
    ------
    ValueError
        If they are too far apart to judge by.
    """
    answer, multipliers = _solution(data)
    emit(kind="solved")
    found = bounds(data, answer, multipliers)
    if data.penalty == "l1":  # each is a bound: the higher one counts
        found = np.maximum(found, bounds(data, _polished(data, answer)))
    gap = suboptimality(data, answer, found)
    if not abs(gap) <= _WORTH:
        raise ValueError(f"The bounds are {gap:.1e} from the objectives: too far to judge by.")
    return {"bounds": found.tolist(), "bounds_gap": gap}


def _part(data: ClassData) -> ClassData:
    """Some rows of the columns with the most entries, in the same kind of storage."""
    X: Any = data.X[: _PART[0]]
    entries = np.asarray((X != 0).sum(axis=0)).ravel()
    columns = np.sort(np.argsort(-entries, kind="stable")[: _PART[1]])
    X = X[:, columns]
    return replace(data, X=X if sp.issparse(X) else np.ascontiguousarray(X), y=data.y[: _PART[0]])


def _quality(data: ClassData, answer: Any, facts: dict[str, Any]) -> float:
    return suboptimality(data, answer, facts["bounds"])


SUITE = Suite(
    name="classification",
    cases=CASES,
    problems=PROBLEMS,
    targets=TARGETS,
    data_of=data_of,
    facts_of=bounds_of,
    quality=_quality,
    part_of=_part,
    makers=(cases, benchmarks.problems),
    recipes=(objective, sys.modules[__name__]),
)
prepare = SUITE.prepare


def main(name: str, scale: str, cache: str, folder: str = "") -> None:
    """Prepare one case."""
    facts = prepare(Path(cache), name, float(scale))
    emit(kind="prepared", shape=facts["shape"], bounds_gap=facts["bounds_gap"])


if __name__ == "__main__":
    main(*sys.argv[1:])
