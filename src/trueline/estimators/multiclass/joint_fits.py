"""Binary problems that share their work: which of them, and how.

Least squares knows of its rows only the moments: the Gram matrix, which is the same for all targets
on the same rows, and the cross products. So one-vs-rest and dense output codes take one pass over
the rows and one factorisation, with all targets side by side. And the moments of a pair of classes
are the sum of the moments of each: one-vs-one takes one pass over the rows, sorted by class, where
separate fits would take one for each of the other classes.

Every part is left as if it had been fitted by itself, with a certificate of its own.

Linear classifiers of two classes that are fitted together: one set of problems.

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

from trueline.certificates.base import Certificate
from trueline.certificates.choose import Prover
from trueline.certificates.quadratic import certify_quadratic
from trueline.design import as_design
from trueline.estimators.classification.ridge_classifier import RidgeClassifier
from trueline.estimators.multiclass.parts import Binary, is_ours
from trueline.estimators.regression.incremental import plan_from_moments
from trueline.estimators.regression.linear_regression import LinearRegression
from trueline.estimators.regression.ridge import Ridge
from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.classifier import LinearClassifierBase
from trueline.estimators.shared.columns import StartsAnywhere
from trueline.estimators.shared.precision import exponents_of
from trueline.moments import Moments
from trueline.numerics.blas import run_strands
from trueline.plan import Plan
from trueline.planner import execute_set, make_set_plans, shares_work
from trueline.problem import Array, MomentsProblem, Problem
from trueline.problem_set import Member, ProblemSet
from trueline.solution import Proof, Solution
from trueline.solvers import PendingProof, evidence_from_moments, solve_from_moments
from trueline.solvers.base import Monitor

Codes = NDArray[np.intp]

# Targets side by side take rows x targets numbers.
_LARGEST_TARGETS = 50_000_000
# Up to this condition number the Gram matrix gives ten digits by itself, without the rows.
_GOOD_CONDITION = 1e3
# Beyond so many numbers (32 MB) parts keep no matrices, if the gap stays below this.
_MANY_NUMBERS = 4_000_000
_SMALL_GAP = 1e-10


def fit_all_rows(
    estimator: Any, X: Any, binaries: Sequence[Binary], fit_params: Mapping[str, Any]
) -> list[Any] | None:
    """Fit problems on the same rows by one factorisation; None if that cannot be done here."""
    estimator = clone(estimator)
    regression = _regression_behind(estimator, fit_params)
    size = len(binaries) * len(binaries[0].labels)
    if regression is None or size > _LARGEST_TARGETS:
        return None
    Y = np.column_stack([_numbers(estimator, binary.labels) for binary in binaries])
    problem, X, _ = regression._validated_problem(X, Y, fit_params.get("sample_weight"), True)
    plan, solution = regression._solve(problem, X, Monitor())
    if solution.proof is None or _is_rescaled(solution.proof):
        return None
    return [
        _part(estimator, regression, X, *_split(problem, solution, t), plan, binary)
        for t, binary in enumerate(binaries)
    ]


def fit_by_class(
    estimator: Any,
    X: Any,
    codes: Codes,
    book: NDArray[Any],
    binaries: Sequence[Binary],
    fit_params: Mapping[str, Any],
) -> list[Any] | None:
    """Fit problems on some of the classes from the moments of each class."""
    estimator = clone(estimator)
    regression = _regression_behind(estimator, fit_params)
    if regression is None or regression.solver not in ("auto", "cholesky"):
        return None
    weight = fit_params.get("sample_weight")
    sizes = np.bincount(codes, minlength=len(book))
    fewest = min(int(sizes[column != 0].sum()) for column in book.T)
    if sp.issparse(X) or fewest <= 2 * X.shape[1] or X.dtype != np.float64:
        return None  # separate plans are likely to do better than a dense Gram matrix
    weights = regression._weights(weight, X)
    classes = _moments_by_class(X, codes, sizes, weights)
    if not all(m.is_finite() and m.weight > 0 for m in classes) or not _in_range(X, classes):
        return None
    regression.n_features_in_ = X.shape[1]

    is_many = len(binaries) * X.shape[1] ** 2 > _MANY_NUMBERS

    def fit(k: int) -> Any:
        one = (book[:, k], binaries[k], is_many)
        return _fit_column(estimator, regression, X, weights, classes, *one)

    return run_strands(fit, range(len(binaries)))


def _fit_column(
    estimator: Any,
    regression: Any,
    X: Any,
    weights: Array | None,
    classes: Sequence[Moments],
    column: NDArray[Any],
    binary: Binary,
    is_many: bool,
) -> Any:
    """One problem, from the moments of its classes; from its rows where these lack digits."""
    low, high = _numbers(estimator, np.array([-1, 1]) if binary.labels.min() < 0 else np.arange(2))
    members = np.flatnonzero(column)
    values = [np.array([high if column[c] > 0 else low]) for c in members]
    moments = replace(classes[members[0]], y_mean=values[0])
    for c, value in zip(members[1:], values[1:]):
        moments = moments + replace(classes[c], y_mean=value)
    light = MomentsProblem(moments, regression._penalty(1), regression.fit_intercept)
    solution = solve_from_moments(light, moments)
    problem: Problem | MomentsProblem = light
    if not _is_accurate(solution.proof):
        assert binary.rows is not None
        Y = _numbers(estimator, binary.labels)[:, None]
        some = None if weights is None else weights[binary.rows]
        problem = regression._problem(X[binary.rows], Y, some)
        solution = solve_from_moments(problem, moments)
    elif is_many:
        solution = _lightened(light, solution)
    plan = plan_from_moments(light, solution.solver, "from the moments of each class, summed")
    return _part(estimator, regression, X, problem, solution, plan, binary)


def _lightened(problem: MomentsProblem, solution: Solution) -> Solution:
    """The solution without the matrices that its moments and its proof hold, if it can be.

    The penalty has the curvature alpha everywhere, which proves ||g||^2 / (2 alpha) without any
    factor (:mod:`trueline.certificates.quadratic`, with a diagonal M); g is rounding.
    """
    alpha, proof = float(np.min(problem.penalty.curvature)), solution.proof
    if not isinstance(proof, PendingProof) or alpha <= 0:
        return solution
    W, b = solution.coef, solution.intercept
    diagonal, curvature = np.ones(len(W)), alpha * (1 - 1e-14)
    evidence = evidence_from_moments(problem, proof.moments, W, b, diagonal, curvature)
    certificate = certify_quadratic(problem, W, b, evidence)
    if certificate.relative_gap > _SMALL_GAP:
        return solution
    return replace(solution, proof=certificate, moments=None)


def _regression_behind(estimator: Any, fit_params: Mapping[str, Any]) -> Any:
    """A regression by least squares that gives the estimator's answer, or None."""
    if not set(fit_params) <= {"sample_weight"} or getattr(estimator, "positive", True):
        return None
    if type(estimator) is LinearRegression:
        return clone(estimator)
    if type(estimator) not in (Ridge, RidgeClassifier) or np.size(estimator.alpha) != 1:
        return None
    if type(estimator) is Ridge:
        return clone(estimator)
    # Class weights would give every binary problem weights of its own.
    return None if estimator.class_weight else estimator._regressor()


def _numbers(estimator: Any, labels: NDArray[Any]) -> Array:
    """The labels as the regression is given them: themselves, or signs for a classifier."""
    if isinstance(estimator, RidgeClassifier):
        return np.where(labels > 0, 1.0, -1.0)
    return labels.astype(np.float64)


def _moments_by_class(
    X: Any, codes: Codes, sizes: NDArray[np.intp], weights: Array | None
) -> list[Moments]:
    """The moments of the rows of each class, whose target is left to be said."""
    if (np.diff(codes) < 0).any():
        order = np.argsort(codes, kind="stable")
        X, weights = X[order], None if weights is None else weights[order]
    ends = np.cumsum(sizes)
    found = []
    for start, end in zip(ends - sizes, ends):
        some = None if weights is None else weights[start:end]
        found.append(Moments.from_rows(as_design(X[start:end]), np.zeros((end - start, 1)), some))
    return found


def _in_range(X: Any, classes: Sequence[Moments]) -> bool:
    """Whether no square left the range of doubles; a column of zeros is in it."""
    size = np.sum([m.x_size for m in classes], axis=0)
    empty = size == 0
    if X[:, empty].any():
        return False
    return bool((size < 1e200).all() and (size[~empty] > 1e-200).all())


def _is_accurate(proof: Proof | None) -> bool:
    """Whether the moments alone have the digits that a fit on the rows would have."""
    if not isinstance(proof, PendingProof) or not proof.factor.condition <= _GOOD_CONDITION:
        return False
    square, rounding = proof.moments.residual_square(proof.coef)
    return proof.factor.coercivity > 0.5 and bool((rounding <= 1e-7 * square).all())


def _is_rescaled(proof: Proof | None) -> bool:
    return isinstance(proof, Certificate) and "column_exponent" in proof.witness


def _split(problem: Problem, solution: Solution, t: int) -> tuple[Problem, Solution]:
    """One target of a problem with several, and its part of the solution."""
    which = np.array([t])
    alone = replace(problem, target=problem.target[:, which])
    W, b = solution.coef[:, which], solution.intercept[which]
    proof: Any = solution.proof
    if isinstance(proof, PendingProof):
        about = proof.moments.targets(which)
        light = MomentsProblem(about, problem.penalty, problem.fit_intercept)
        proof = PendingProof(light, about, W, b, proof.factor)
    else:
        witness = proof.witness
        prover = Prover(
            alone,
            witness.get("basis"),
            float(witness.get("coercivity", 0.0)),
            left_out=float(witness.get("left_out", 0.0)),
        )
        proof = prover.certify(W, b)
    square = solution.residual_square
    return alone, replace(
        solution,
        coef=W,
        intercept=b,
        proof=proof,
        stages=[],  # each part is judged by itself
        allowed=float("nan"),
        moments=None if solution.moments is None else solution.moments.targets(which),
        residual_square=None if square is None else square[which],
    )


def _part(
    estimator: Any,
    regression: Any,
    X: Any,
    problem: Problem | MomentsProblem,
    solution: Solution,
    plan: Plan,
    binary: Binary,
) -> Any:
    """The estimator as it would be after a fit that found this solution."""
    is_classifier = isinstance(estimator, RidgeClassifier)
    # Shallow: it was cloned, and holds parameters alone.
    part = copy(estimator if is_classifier else regression)
    part.n_features_in_ = X.shape[1]
    if is_classifier:
        part.classes_ = np.array([binary.labels.min(), binary.labels.max()])
        part._is_multilabel = False
        if hasattr(regression, "feature_names_in_"):
            part.feature_names_in_ = regression.feature_names_in_
    # A classifier keeps its intercept as an array, a regression of one target does not.
    part._store(problem, plan, solution, X.dtype, 2 if is_classifier else 1)
    part._total_weight = problem.total_weight
    return part


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
    parts = []
    for k, binary in enumerate(binaries):
        part = _margin_part(estimator, problems[k], plans[k], found[k], binary, X.dtype)
        own = weights if weights is None or binary.rows is None else weights[binary.rows]
        part._keep_of_rows(X if binary.rows is None else X[binary.rows], binary.labels, own)
        parts.append(part)
    return parts


def _is_suited(estimator: Any, fit_params: Mapping[str, Any]) -> bool:
    """Whether a fit is what all linear classifiers do."""
    return (
        isinstance(estimator, LinearClassifierBase)
        and is_ours(estimator)
        and type(estimator).fit in (LinearEstimator.fit, StartsAnywhere.fit)
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


def _margin_part(
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


def fit_together(
    scheme: Any, X: Any, y: Any, binaries: Sequence[Binary], fit_params: Mapping[str, Any]
) -> tuple[list[Any] | None, str]:
    """Fit problems that share their work, and say what they share; None where nothing is shared."""
    if len(binaries) == 1 or any((one.labels == one.labels[0]).all() for one in binaries):
        return None, ""
    estimator, book = scheme.estimator, scheme._book()
    parts = fit_margins(estimator, X, binaries, fit_params)
    if parts is not None:
        return parts, "one set of binary problems on the same rows, solved together"
    if book.all():
        parts = fit_all_rows(estimator, X, binaries, fit_params)
        return parts, "" if parts is None else "one factorisation serves all binary problems"
    codes = np.searchsorted(scheme.classes_, y)
    parts = fit_by_class(estimator, X, codes, book, binaries, fit_params)
    return parts, "" if parts is None else "moments of each class, summed for each binary problem"
