"""The certificate guards the answer: a solver that returns a wrong point is found out.

Every solver that a fit uses is spoilt in turn: it returns zeros, or the solution for a permuted
target, and says that all went well. The fit must then be right all the same, because another solver
took over, or say in a warning how far from the optimum it may be.
"""

import inspect
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import trueline
from trueline import (
    SVC,
    SVR,
    AdaptiveLasso,
    ARDRegression,
    BayesianLinearRegression,
    BayesianRidge,
    BestSubset,
    CalibratedClassifier,
    ChebyshevRegressor,
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    GaussianProcessRegressor,
    GroupLasso,
    HuberRegressor,
    KernelRidge,
    L0Regression,
    Lasso,
    LassoCV,
    LeastAbsoluteDeviations,
    LeastSquaresClassifier,
    LinearRegression,
    LinearRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
    PoissonRegressor,
    PolynomialRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    TweedieRegressor,
    compare,
    cross_validate,
    enet_path,
    planner,
    regularization_path,
)
from trueline.design import as_design
from trueline.estimators.bayesian import evidence
from trueline.estimators.classification import logistic
from trueline.estimators.column_selection import best_subset
from trueline.estimators.kernel import gaussian_process, kernel_ridge
from trueline.estimators.multiclass import joint_fits
from trueline.estimators.regression import glm, incremental, polynomial
from trueline.estimators.robust import huber
from trueline.estimators.svm import base as support_vectors
from trueline.estimators.svm import linear as linear_svm
from trueline.guard import judge
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.penalties import L2, NoPenalty
from trueline.planner import execute, make_plan
from trueline.problem import Problem
from trueline.solution import Status
from trueline.solvers.base import Monitor, Options
from trueline.solvers.coordinate_descent import solver as sets
from trueline.solvers.least_squares.cholesky import PendingProof
from trueline.solvers.newton.cg import solver as newton_cg
from trueline.solvers.registry import SOLVERS

GAP = re.compile(r"(within|gap is|violation is) [0-9.]+(e[+-][0-9]+)?|nothing proven|gap is inf")

rng = np.random.default_rng(0)
ROWS = rng.standard_normal((90, 4))
TARGET = ROWS @ [2.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(90)
DATA = {
    "numbers": TARGET,
    "positive": np.exp(0.3 * TARGET),
    "targets": np.column_stack([TARGET, TARGET[::-1]]),
    "classes": np.digitize(TARGET, [-1.0, 1.0]),
    "two classes": (TARGET + rng.standard_normal(90) > 0).astype(int),
}

PLANNED = [
    (LinearRegression(), "numbers"),
    (LinearRegression(positive=True), "numbers"),
    (LinearRegression(), "targets"),
    (Ridge(), "numbers"),
    (Ridge(alpha=[1.0, 2.0]), "targets"),
    (RidgeCV(), "numbers"),
    (Lasso(0.1), "numbers"),
    (ElasticNet(0.1), "numbers"),
    (AdaptiveLasso(0.1), "numbers"),
    (LassoCV(alphas=10), "numbers"),
    (ElasticNetCV(alphas=10), "numbers"),
    (MultiTaskLasso(0.1), "targets"),
    (MultiTaskElasticNet(0.1), "targets"),
    (MultiTaskLassoCV(alphas=5), "targets"),
    (MultiTaskElasticNetCV(alphas=5), "targets"),
    (GroupLasso(alpha=0.1), "numbers"),
    (LinearRegressor(), "numbers"),
    (LinearRegressor("huber", "elastic_net"), "numbers"),
    (QuantileRegressor(alpha=0.01), "numbers"),
    (QuantileRegressor(alpha=0.01, quantile=[0.2, 0.3], non_crossing=True), "numbers"),
    (LeastAbsoluteDeviations(), "numbers"),
    (ChebyshevRegressor(), "numbers"),
    (PoissonRegressor(), "positive"),
    (GammaRegressor(), "positive"),
    (TweedieRegressor(power=1.5), "positive"),
    (BayesianLinearRegression(), "numbers"),
    (RidgeClassifier(), "classes"),
    (RidgeClassifierCV(), "classes"),
    (LeastSquaresClassifier(), "classes"),
    (LogisticRegression(), "two classes"),
    (LogisticRegression(), "classes"),
    (LogisticRegression(l1_ratio=1.0), "classes"),
    (
        LogisticRegressionCV(Cs=3, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False),
        "two classes",
    ),
    (LinearSVC(), "classes"),
    (LinearSVC(loss="hinge"), "two classes"),
    (LinearSVR(), "numbers"),
    (OneVsRestClassifier(LogisticRegression()), "classes"),
    (OneVsRestClassifier(RidgeClassifier()), "classes"),
    (OneVsOneClassifier(LinearSVC()), "classes"),
    (OutputCodeClassifier(LogisticRegression(), random_state=0), "classes"),
    (CalibratedClassifier(LogisticRegression(), cv=2), "two classes"),
]


def zeros(solution, again):
    return np.zeros_like(solution.coef), np.zeros_like(solution.intercept)


def stale(solution, again):
    other = again()
    return other.coef, other.intercept


SPOILT = [zeros, stale]


def spoil(monkeypatch, names, how):
    """Let solvers return another point than the one that they found and have proven."""
    for name in names:
        cls = type(SOLVERS[name])

        def solve(self, problem, options, monitor, honest=cls.solve):
            def again():
                permuted = replace(problem, target=np.roll(problem.target, 7, axis=0))
                return honest(self, permuted, replace(options, start=None), Monitor())

            solution = honest(self, problem, options, monitor)
            W, b = how(solution, again)
            return replace(solution, coef=W, intercept=b)

        monkeypatch.setattr(cls, "solve", solve)

        if "solve_from_moments" in vars(cls):

            def from_moments(self, *arguments, honest=cls.solve_from_moments):
                solution = honest(self, *arguments)
                return replace(solution, coef=np.zeros_like(solution.coef))

            monkeypatch.setattr(cls, "solve_from_moments", from_moments)


def solvers_of(monkeypatch, model, X, y):
    """The names of the solvers that an honest fit chooses."""
    chosen = set()
    honest = planner.judge

    def judge_and_note(problem, solution, tol):
        chosen.add(solution.solver)
        return honest(problem, solution, tol)

    with monkeypatch.context() as patch:
        patch.setattr(planner, "judge", judge_and_note)
        fitted = clone(model).fit(X, y)
    # A solver may fall back on another one, whose name it then bears.
    chosen |= {"cholesky", "svd", "kernel"} if "qr" in chosen or "svd" in chosen else set()
    return fitted, chosen


def heard(call):
    """What a call returns, and the warnings about convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return found, [str(w.message) for w in caught if w.category is ConvergenceWarning]


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def is_right(model, honest, X):
    """Whether two fits agree as far as their tolerances let them."""
    try:
        expected = scores(honest, X)
        assert_allclose(scores(model, X), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    except AssertionError:
        return False
    return True


@pytest.mark.grid(1)
@pytest.mark.parametrize("how", SPOILT, ids=lambda how: how.__name__)
@pytest.mark.parametrize(("model", "kind"), PLANNED, ids=lambda part: str(part))
def test_a_wrong_point_is_replaced_or_said(model, kind, how, monkeypatch):
    y = DATA[kind]
    honest, names = solvers_of(monkeypatch, model, ROWS, y)
    spoil(monkeypatch, names & set(SOLVERS), how)
    spoilt, said = heard(lambda: clone(model).fit(ROWS, y))
    if said:
        assert all(GAP.search(text) for text in said)
    else:
        assert is_right(spoilt, honest, ROWS)


def test_another_solver_takes_over_and_the_explanation_says_so(monkeypatch):
    honest = Ridge().fit(ROWS, TARGET)
    spoil(monkeypatch, ["cholesky"], zeros)
    model = Ridge().fit(ROWS, TARGET)
    assert_allclose(model.coef_, honest.coef_, rtol=1e-12)
    assert model.solver_ == "qr"
    text = str(model.explain())
    assert "fallback   qr, then conjugate_gradient, if the answer is not proven" in text
    assert "stages     1. cholesky, 1 iteration" in text
    assert "           2. qr, 1 iteration" in text
    assert "qr took over" in text
    assert model.verify(ROWS, TARGET)


def test_a_solver_asked_for_by_name_is_not_replaced(monkeypatch):
    spoil(monkeypatch, ["cholesky"], zeros)
    with pytest.warns(ConvergenceWarning, match=r"proven within [0-9.]+ of it"):
        model = Ridge(solver="cholesky").fit(ROWS, TARGET)
    assert model.solver_ == "cholesky"
    assert not model.coef_.any()
    assert len(model._solution_facts["stages"]) == 1


def test_a_limit_that_was_asked_for_is_kept():
    """No other solver goes on after the last iteration that was allowed."""
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        model = LogisticRegression(max_iter=1).fit(ROWS, DATA["classes"])
    assert len(model._solution_facts["stages"]) == 1


@pytest.mark.parametrize("shape", [(60, 100), (5, 6), (30, 30)])
def test_interpolation_of_offset_columns_is_right_or_said(shape):
    """More columns than rows, far from zero: the rank of the centred rows is one below theirs."""
    for seed in range(10):
        own = np.random.default_rng(seed)
        X, y = own.standard_normal(shape) + 100.0, own.standard_normal(shape[0])
        model, said = heard(lambda X=X, y=y: LinearRegression().fit(X, y))
        square = float(((model.predict(X) - y) ** 2).sum())
        assert said or square <= 1e-10 * float(((y - y.mean()) ** 2).sum())


# --- answers that come from elsewhere -----------------------------------------------------------


def without_coefficients(function):
    """A function that returns a Solution, as it would be with all coefficients zero."""

    def spoilt(*arguments, **options):
        found = function(*arguments, **options)
        one = found[1] if isinstance(found, tuple) else found
        wrong = replace(one, coef=np.zeros_like(one.coef))
        return (found[0], wrong) if isinstance(found, tuple) else wrong

    return spoilt


def without_multipliers(function):
    def spoilt(*arguments, **options):
        found = function(*arguments, **options)
        return replace(found, beta=np.zeros_like(found.beta))

    return spoilt


def halved_first(function):
    """A function that returns an array, or a tuple that starts with one."""

    def spoilt(*arguments, **options):
        found = function(*arguments, **options)
        return (0.5 * found[0], *found[1:]) if isinstance(found, tuple) else 0.5 * found

    return spoilt


def other_columns(function):
    """The search for the best columns, which returns others and says that they are the best."""

    def spoilt(*arguments, **options):
        return [
            replace(one, found=replace(one.found, support=np.array([3])))
            for one in function(*arguments, **options)
        ]

    return spoilt


NOISY = RBF() + WhiteKernel()
ELSEWHERE = [
    (HuberRegressor(), "numbers", huber, "solve_concomitant", without_coefficients),
    (TweedieRegressor(power=3, link="log"), "positive", glm, "solve_locally", without_coefficients),
    (PolynomialRegression(2), "numbers", polynomial, "solve_by_rows", without_coefficients),
    (BayesianRidge(), "numbers", evidence, "proven", without_coefficients),
    (ARDRegression(), "numbers", evidence, "proven", without_coefficients),
    (SVC(), "classes", support_vectors, "solve_dual", without_multipliers),
    (NuSVC(), "two classes", support_vectors, "solve_dual", without_multipliers),
    (SVR(), "numbers", support_vectors, "solve_dual", without_multipliers),
    (NuSVR(), "numbers", support_vectors, "solve_dual", without_multipliers),
    (OneClassSVM(), "numbers", support_vectors, "solve_dual", without_multipliers),
    (KernelRidge(), "numbers", kernel_ridge, "solve_equations", halved_first),
    (GaussianProcessRegressor(NOISY), "numbers", gaussian_process, "cho_solve", halved_first),
    (BestSubset(k=1), "numbers", best_subset, "best_subsets", other_columns),
    (L0Regression(alpha=1.0), "numbers", best_subset, "best_subsets", other_columns),
]


@pytest.mark.filterwarnings("ignore:The optimal value found for dimension")
@pytest.mark.parametrize(
    ("model", "kind", "home", "name", "how"),
    ELSEWHERE,
    ids=[f"{type(row[0]).__name__}-{row[3]}" for row in ELSEWHERE],
)
def test_a_wrong_answer_from_elsewhere_is_said(model, kind, home, name, how, monkeypatch):
    clone(model).fit(ROWS, DATA[kind])  # without a warning
    monkeypatch.setattr(home, name, how(getattr(home, name)))
    _, said = heard(lambda: clone(model).fit(ROWS, DATA[kind]))
    assert said
    assert all(GAP.search(text) for text in said)


def test_a_wrong_answer_with_a_bias_reduction_is_said(monkeypatch):
    model = LogisticRegression(penalty="firth")
    monkeypatch.setattr(logistic, "solve_firth", without_coefficients(logistic.solve_firth))
    with pytest.warns(ConvergenceWarning, match="nothing proven"):
        model.fit(ROWS, DATA["two classes"])


def test_a_wrong_hard_margin_is_said(monkeypatch):
    X, y = ROWS, (ROWS @ [1.0, 2.0, 0.0, 0.0] > 0).astype(int)
    spoilt = without_coefficients(linear_svm.solve_hard_margin)
    monkeypatch.setattr(linear_svm, "solve_hard_margin", spoilt)
    with pytest.warns(ConvergenceWarning, match="nothing proven"):
        LinearSVC(C=np.inf).fit(X, y)


def test_a_wrong_answer_from_batches_is_said(monkeypatch):
    spoilt = without_coefficients(incremental.solve_from_moments)
    monkeypatch.setattr(incremental, "solve_from_moments", spoilt)
    with pytest.warns(ConvergenceWarning, match="nothing proven"):
        Ridge().partial_fit(ROWS, TARGET)


def test_wrong_pairs_of_classes_are_fitted_again(monkeypatch):
    own = np.random.default_rng(1)
    X, y = own.standard_normal((600, 5)), own.integers(0, 12, 600)
    model = OneVsOneClassifier(LogisticRegression())
    honest = clone(model).fit(X, y)

    def solve_batch(*arguments, honest=newton_cg.solve_batch):
        return [replace(one, coef=0.0 * one.coef) for one in honest(*arguments)]

    monkeypatch.setattr(newton_cg, "solve_batch", solve_batch)
    model.fit(X, y)
    assert_allclose(model.decision_function(X), honest.decision_function(X), atol=1e-4)


def test_wrong_moments_of_classes_are_said(monkeypatch):
    own = np.random.default_rng(1)
    X, y = own.standard_normal((300, 4)), own.integers(0, 3, 300)
    spoilt = without_coefficients(joint_fits.solve_from_moments)
    monkeypatch.setattr(joint_fits, "solve_from_moments", spoilt)
    _, said = heard(lambda: OneVsOneClassifier(RidgeClassifier()).fit(X, y))
    assert said


# --- many fits: one warning ---------------------------------------------------------------------


def with_gap(function):
    """Paths without coefficients, whose points have a gap as large as their objective."""

    def spoilt(*arguments):
        points = function(*arguments)
        return [replace(one, gap=one.objective, values=0.0 * one.values) for one in points]

    return spoilt


def test_folds_that_are_not_proven_are_counted_once(monkeypatch):
    monkeypatch.setattr(sets, "follow_path", with_gap(sets.follow_path))
    with pytest.warns(ConvergenceWarning, match="LassoCV: 50 of 50 fits") as caught:
        LassoCV(alphas=10).fit(ROWS, TARGET)
    assert len(caught) == 1
    assert GAP.search(str(caught[0].message))


def test_paths_that_are_not_proven_are_said(monkeypatch):
    monkeypatch.setattr(sets, "follow_path", with_gap(sets.follow_path))
    with pytest.warns(ConvergenceWarning, match="enet_path: 5 of 5 fits"):
        enet_path(ROWS, TARGET, alphas=5)


@pytest.mark.parametrize(
    "model", [LogisticRegression(max_iter=1), LogisticRegression(solver="newton_cg")]
)
def test_cross_validation_counts_the_fits_that_are_not_proven(model, monkeypatch):
    if model.max_iter > 1:
        spoil(monkeypatch, ["newton_cg"], zeros)
    with pytest.warns(ConvergenceWarning, match="5 of 5 fits") as caught:
        cross_validate(model, ROWS, DATA["classes"], cv=5, shortcuts="none")
    assert len(caught) == 1


def test_comparisons_count_the_fits_that_are_not_proven(monkeypatch):
    monkeypatch.setattr(sets, "follow_path", with_gap(sets.follow_path))
    compare(ROWS, TARGET, models=["lasso", "ridge"])  # solved again, one by one
    spoil(monkeypatch, ["gram_descent", "coordinate_descent", "proximal_newton"], zeros)
    with pytest.warns(ConvergenceWarning, match="compare: .* of .* fits") as caught:
        compare(ROWS, TARGET, models=["lasso", "ridge"])
    assert len(caught) == 1


# --- what is proven, and how --------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("penalty", [NoPenalty(), L2(1e-3), L2(10.0)], ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("targets", [1, 3])
def test_the_cheap_bound_is_at_least_the_gap(penalty, fit_intercept, offset, targets):
    for seed in range(20):
        own = np.random.default_rng(seed)
        n, d = int(own.integers(20, 200)), int(own.integers(1, 12))
        X = own.standard_normal((n, d)) * 10.0 ** own.uniform(-3, 3, d) + offset
        Y = own.standard_normal((n, targets)) + offset
        problem = Problem(as_design(X), Y, Squared(), penalty, fit_intercept)
        solution = SOLVERS["cholesky"].solve(problem, Options(tol=1e-12), Monitor())
        if isinstance(solution.proof, PendingProof):
            pending = solution.proof
            for shift in (0.0, 1e-8, 1e-2, 1.0):  # also at points that are not the answer
                moved = replace(pending, coef=pending.coef + shift)
                certificate = moved.certificate()
                # Below 1e-20 of the objective, or of its rounding, certificates claim nothing.
                unsaid = 1.1e-20 * certificate.objective + 1e-289
                assert moved.bound() * 1.03 >= certificate.gap - unsaid


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", [1, 3])
def test_the_cheap_bound_is_at_least_the_gap_where_columns_depend_on_others(fit_intercept, targets):
    seen = 0
    for seed in range(20):
        own = np.random.default_rng(seed)
        n, kinds = int(own.integers(40, 200)), int(own.integers(2, 6))
        numbers = own.standard_normal((n, 3)) * 10.0 ** own.uniform(-2, 2, 3)
        X = np.hstack([numbers, *(np.eye(kinds)[own.integers(0, kinds, n)] for _ in range(2))])
        problem = Problem(as_design(X), own.standard_normal((n, targets)), Squared(), NoPenalty())
        problem = replace(problem, fit_intercept=fit_intercept)
        solution = SOLVERS["cholesky"].solve(problem, Options(tol=1e-12), Monitor())
        if isinstance(solution.proof, PendingProof):
            seen += 1
            for shift in (0.0, 1e-8, 1e-2, 1.0):
                moved = replace(solution.proof, coef=solution.proof.coef + shift)
                assert moved.bound() * 1.03 >= moved.certificate().gap
                if not shift:  # the answer, which is proven by this bound
                    constant = problem.objective(0 * moved.coef, np.zeros(targets))
                    assert moved.bound() <= 1e-12 * constant
    assert seen > 10


def test_a_proof_about_another_point_is_no_proof():
    problem = Problem(as_design(ROWS), TARGET[:, None], Squared(), L2(1.0))
    solution = SOLVERS["cholesky"].solve(problem, Options(), Monitor())
    assert judge(problem, solution, 1e-12).is_proven
    moved = replace(solution, coef=solution.coef + 1e-3)
    verdict = judge(problem, moved, 1e-12)
    assert not verdict.is_proven
    exact = problem.objective(moved.coef, moved.intercept) - problem.objective(
        solution.coef, solution.intercept
    )
    assert exact <= verdict.gap <= 200 * exact


def test_moments_alone_are_judged_too():
    moments = Moments.from_rows(as_design(ROWS), TARGET[:, None])
    model = Ridge().partial_fit(ROWS, TARGET)
    assert len(model._solution_facts["stages"]) == 1
    assert model._solution_facts["is_final"]
    assert model.moments_.weight == moments.weight


def test_the_plan_names_fallbacks_of_that_work_otherwise():
    problem = Problem(as_design(ROWS), TARGET[:, None], Squared(), NoPenalty())
    plan = make_plan(problem)
    assert plan.chosen == "cholesky"
    assert [SOLVERS[name].is_direct for name in plan.fallbacks] == [True, False]
    assert not any(SOLVERS[name].is_textbook for name in plan.fallbacks)
    assert make_plan(problem, "cholesky").fallbacks == ()


def test_the_best_point_is_kept_if_nobody_proves_it(monkeypatch):
    problem = Problem(as_design(ROWS), TARGET[:, None], Squared(), L2(1.0))
    plan = make_plan(problem)
    for name in (plan.chosen, *plan.fallbacks):
        cls = type(SOLVERS[name])
        off = 1.0 if name == plan.fallbacks[0] else 2.0

        def solve(self, problem, options, monitor, honest=cls.solve, off=off):
            found = honest(self, problem, options, monitor)
            return replace(found, coef=found.coef + off)

        monkeypatch.setattr(cls, "solve", solve)
    solution = execute(problem, plan, Options(tol=1e-12), Monitor())
    assert solution.solver == plan.fallbacks[0]
    assert solution.status is Status.UNPROVEN
    assert [stage.solver for stage in solution.stages] == [plan.chosen, *plan.fallbacks]


def test_regularization_path_is_silent_where_all_is_proven():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regularization_path(ROWS, TARGET)


# Learners that go through the rows one by one claim no optimum; searches over half-spaces and
# bounds on the evidence state what they have proven, whatever it is; features are no fits.
CLAIM_NO_OPTIMUM = {
    "KernelPerceptron",
    "OnlineLogisticRegression",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "SparseGaussianProcessRegressor",
    "ZeroOneHalfspace",
}


def test_no_estimator_is_left_out():
    def is_model(cls):
        is_estimator = inspect.isclass(cls) and issubclass(cls, BaseEstimator)
        return is_estimator and hasattr(cls, "fit") and hasattr(cls, "predict")

    public = {name for name in trueline.__all__ if is_model(getattr(trueline, name))}
    tried = {type(row[0]).__name__ for row in [*PLANNED, *ELSEWHERE]}
    # These fit models of the kinds above to the columns that they choose.
    tried |= {"ChainedClassifiers", "SequentialFeatureSelector", "StepwiseRegression"}
    assert public - tried == CLAIM_NO_OPTIMUM
