"""Linear classifiers of two classes that are fitted together: one set of problems.

One-vs-one on 26 classes is 325 problems of a millisecond each; checking, planning and stepping
through each by itself would take ten. Here X is checked once, and all binary problems are stated as
one :class:`~trueline.problem_set.ProblemSet`. Where the plan says that its solver shares work
between them, every part is left as if it had been fitted by itself, with a certificate of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from trueline.design import as_design
from trueline.estimators.multiclass.parts import Binary, is_ours
from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.classifier import LinearClassifierBase
from trueline.estimators.shared.precision import exponents_of
from trueline.plan import Plan
from trueline.planner import execute_set, make_set_plans, shares_work
from trueline.problem import Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solution import Solution

__all__ = ["fit_margins"]

Array = NDArray[np.float64]


def fit_margins(
    estimator: Any, X: Any, binaries: Sequence[Binary], fit_params: Mapping[str, Any]
) -> list[Any] | None:
    """Fit the problems as one set; None if that cannot be done here, or shares no work."""
    # Sparse rows are fitted one by one: coordinate descent on the dual takes half the time.
    if not _is_suited(estimator, fit_params) or sp.issparse(X) or not np.isfinite(X).all():
        return None  # what is missing is said by who fits the parts one by one
    is_watched = bool(getattr(estimator, "_skl_callbacks", None))
    estimator = clone(estimator)
    estimator._check_parameters()
    if is_watched or not estimator._can_be_in_a_set():
        return None
    weights = estimator._weights(fit_params.get("sample_weight"), X)
    members = [_member(estimator, binary, weights) for binary in binaries]
    stated = tuple(member for member in members if member is not None)
    design = as_design(X)
    shared: Problem = estimator._stated(design, np.ones((design.shape[0], 1)), None)
    # Classes without weight, and numbers whose squares overflow or vanish, need more care.
    if len(stated) < len(members) or exponents_of(shared) is not None:
        return None
    problems = ProblemSet(shared.design, shared.loss, stated, shared.fit_intercept)
    plans = make_set_plans(problems, estimator._solver_name())
    if not shares_work(problems, plans):
        return None
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        found = execute_set(problems, plans, estimator._options())
    estimator.n_features_in_ = X.shape[1]
    return [
        _part(estimator, problems[k], plans[k], found[k], binary, X.dtype)
        for k, binary in enumerate(binaries)
    ]


def _is_suited(estimator: Any, fit_params: Mapping[str, Any]) -> bool:
    """Whether a fit is what all linear classifiers do."""
    return (
        isinstance(estimator, LinearClassifierBase)
        and is_ours(estimator)
        and type(estimator).fit is LinearEstimator.fit
        and set(fit_params) <= {"sample_weight"}
    )


def _member(estimator: Any, binary: Binary, weights: Array | None) -> Member | None:
    """One problem, without the rows that have no weight; None where a class has none."""
    codes, rows = (binary.labels > binary.labels.min()).astype(np.intp), binary.rows
    own = weights if rows is None or weights is None else weights[rows]
    own = estimator._with_class_weights(_classes(binary), codes, own)
    if own is not None and not own.all():
        kept = np.flatnonzero(own)
        codes, own, rows = codes[kept], own[kept], kept if rows is None else rows[kept]
    if not 0 < codes.sum() < len(codes):
        return None
    return Member(estimator._target(codes, 2), estimator._penalty(), own, rows=rows)


def _classes(binary: Binary) -> NDArray[Any]:
    """Both labels."""
    return np.array([binary.labels.min(), binary.labels.max()])


def _part(
    estimator: Any, problem: Problem, plan: Plan, found: Solution, binary: Binary, dtype: np.dtype
) -> Any:
    """The estimator as it would be after a fit that found this solution."""
    part = copy(estimator)  # shallow: it was cloned, and holds parameters alone
    part.classes_, part._present = _classes(binary), np.arange(2)
    if not found.status.is_final:
        part._warn(found)
    # The proof of a kept model must not keep the data.
    assert found.certificate is not None
    facts = replace(plan.facts, n=problem.n_samples, nonzeros=problem.design.nonzeros)
    # Estimates are those of problems of the same size.
    candidates = plan.candidates if facts == plan.facts else ()
    part._store(problem, replace(plan, facts=facts, candidates=candidates), found, dtype, 1)
    return part
