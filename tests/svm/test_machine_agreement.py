"""The same answers as scikit-learn, and the optimum that other methods find."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from machines import MACHINES, data_for, labelled, smooth
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import trueline
from trueline import SVC, SVR, NuSVC, OneClassSVM

KERNELS = {
    "linear": lambda X: linear_kernel(X),
    "rbf": lambda X: rbf_kernel(X, gamma=0.4),
    "poly": lambda X: polynomial_kernel(X, gamma=0.4, degree=2, coef0=1.0),
}
SETTINGS = {"gamma": 0.4, "degree": 2, "coef0": 1.0}


def dual_objective(model, K, y=None, weights=None):
    """1/2 b'Kb - t'b + eps |b| of the fitted multipliers; t is 0, the signs, or the target."""
    b = np.zeros(len(K))
    coef = model.dual_coef_
    b[model.support_] = (coef.toarray() if sp.issparse(coef) else coef)[0]
    name = type(model).__name__
    if name == "NuSVC":  # stored divided by rho; before that, the multipliers add up to nu s
        b *= model.nu * np.sum(weights) / np.abs(b).sum()
    if name in ("OneClassSVM", "NuSVC"):
        return 0.5 * b @ K @ b
    t = np.where(y == model.classes_[1], 1.0, -1.0) if name == "SVC" else y
    epsilon = model.epsilon if name == "SVR" else 0.0
    return 0.5 * b @ K @ b - t @ b + epsilon * np.abs(b).sum()


@pytest.mark.grid(2)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_answers_are_those_of_scikit_learn(name, kernel, weighted):
    X, y = data_for(name)
    w = np.random.default_rng(1).uniform(0.3, 2.0, len(X)) if weighted else None
    ours = MACHINES[name](kernel=kernel, **SETTINGS).fit(X, y, w)
    own = ("solver", "trace", "tol", "sign_of_zero")
    theirs = getattr(sklearn.svm, name)(
        **{k: v for k, v in ours.get_params().items() if k not in own}, tol=1e-6
    ).fit(X, y, w)
    K = KERNELS[kernel](X)
    s = np.ones(len(X)) if w is None else w
    values = [dual_objective(model, K, y, s) for model in (ours, theirs)]
    assert_allclose(*values, rtol=1e-6, atol=1e-12)
    scores = "decision_function" if hasattr(theirs, "decision_function") else "predict"
    assert_allclose(getattr(ours, scores)(X), getattr(theirs, scores)(X), atol=2e-5)
    if (name, kernel) != ("OneClassSVM", "linear"):  # there f = 0, by many multipliers
        assert_array_equal(ours.support_, theirs.support_)
        assert_array_equal(ours.n_support_, theirs.n_support_)
        assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert ours.support_.dtype == theirs.support_.dtype
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == theirs.fit_status_ == 0
    if kernel == "linear":
        assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
@pytest.mark.parametrize("sparse", [False, True])
def test_several_classes_have_the_order_and_signs_of_scikit_learn(name, shape, sparse):
    X, y = labelled(90, 4, 4)
    y[:80] = np.arange(80) % 4
    X[:80] += 2.0 * np.eye(4)[y[:80]]
    labels = np.array(["d", "a", "c", "b"])[y]
    given = sp.csr_matrix(X) if sparse else X
    ours = getattr(trueline, name)(decision_function_shape=shape, class_weight={"a": 2.0})
    theirs = getattr(sklearn.svm, name)(
        decision_function_shape=shape, tol=1e-7, class_weight={"a": 2.0}
    )
    if name == "NuSVC":
        ours.set_params(nu=0.5)
        theirs.set_params(nu=0.5)
    ours.fit(given, labels)
    theirs.fit(given, labels)
    assert_array_equal(ours.support_, theirs.support_)
    assert sp.issparse(ours.dual_coef_) == sparse
    assert_allclose(ours._dense_coef(), np.asarray(theirs.dual_coef_.todense()
                    if sparse else theirs.dual_coef_), atol=1e-4)  # fmt: skip
    # LIBSVM keeps kernel values in single precision.
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert_allclose(ours.decision_function(given), theirs.decision_function(given), atol=1e-4)
    assert_array_equal(ours.predict(given), theirs.predict(given))
    assert_array_equal(ours.class_weight_, theirs.class_weight_)
    assert_array_equal(ours.n_support_, theirs.n_support_)


@pytest.mark.parametrize("n", [200, 3100])
def test_a_margin_below_the_tolerance_is_found(n):
    """The machine is divided by its margin, and so are violations of the multipliers."""
    g = np.random.default_rng(0)
    X = g.standard_normal((n, 6))
    y = X[:, 0] + 0.3 * g.standard_normal(n) > 0
    model, fine = (NuSVC(nu=0.25, gamma=1e-5, tol=tol).fit(X, y) for tol in (1e-3, 1e-9))
    assert model.certificate_.witness["scale"][0] < model.tol
    scores = fine.decision_function(X)
    assert_allclose(model.decision_function(X), scores, atol=model.tol * np.abs(scores).max())


def test_a_margin_of_zero_ends_with_a_warning_or_an_error():
    """Where labels are noise, half of them are on the wrong side of every smooth function."""
    g = np.random.default_rng(0)
    X, y = g.standard_normal((200, 2)), g.integers(2, size=200)
    with pytest.warns(ConvergenceWarning, match=r"Standardise the columns, or raise nu"):
        model = NuSVC(nu=0.5).fit(X, y)
    assert model.fit_status_ == 1
    with pytest.warns(ConvergenceWarning, match=r"after 10 steps .*Raise max_iter"):
        NuSVC(nu=0.5, max_iter=10).fit(X, y)
    with pytest.raises(ValueError, match="widest margin of a pair of classes is zero"):
        NuSVC(nu=0.5, kernel="linear").fit(X, y)


@pytest.mark.parametrize("seed", range(4))
def test_a_general_solver_finds_the_same_optimum(seed):
    X, y = labelled(10, 2, 2, seed)
    t, K, C = np.where(y == 1, 1.0, -1.0), rbf_kernel(X, gamma=0.7), 1.5
    box = [(min(0.0, v * C), max(0.0, v * C)) for v in t]
    found = minimize(
        lambda b: 0.5 * b @ K @ b - t @ b,
        np.zeros(10),
        jac=lambda b: K @ b - t,
        bounds=box,
        constraints={"type": "eq", "fun": np.sum, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    model = SVC(C=C, gamma=0.7).fit(X, y)
    assert_allclose(dual_objective(model, K, y), found.fun, rtol=1e-9)
    assert_allclose(model.certificate_.objective, -found.fun, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_regression_has_the_optimum_of_a_general_solver(seed):
    X, y = smooth(9, 2, seed)
    K, C, epsilon = rbf_kernel(X, gamma=0.7), 2.0, 0.1
    n = len(y)
    sign = np.repeat([1.0, -1.0], n)

    def value(a):
        b = a[:n] - a[n:]
        return 0.5 * b @ K @ b - y @ b + epsilon * a.sum()

    def slope(a):
        return np.tile(K @ (a[:n] - a[n:]) - y, 2) * sign + epsilon

    found = minimize(
        value, np.zeros(2 * n), jac=slope, bounds=[(0, C)] * (2 * n), method="SLSQP",
        constraints={"type": "eq", "fun": lambda a: sign @ a, "jac": lambda a: sign},
        options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    model = SVR(C=C, epsilon=epsilon, gamma=0.7).fit(X, y)
    assert_allclose(dual_objective(model, K, y), found.fun, rtol=1e-8)


@pytest.mark.parametrize("name", MACHINES)
def test_working_sets_and_the_textbook_find_what_the_whole_matrix_gives(name, monkeypatch):
    from trueline.solvers.smo import engine

    X, y = data_for(name, n=150)
    whole = MACHINES[name](tol=1e-5).fit(X, y)
    monkeypatch.setattr(engine, "WHOLE", 0)
    monkeypatch.setattr(engine, "WORKING_SET", 16)
    sets = MACHINES[name](tol=1e-5).fit(X, y)
    assert "working sets of 16" in sets.explain()
    # 8 bytes x 150 x 20 rows: rows are computed again and again.
    few = MACHINES[name](tol=1e-5, cache_size=8 * 150 * 20 / 1e6).fit(X, y)
    monkeypatch.setattr(engine, "_NEARLY_ALL", 0.1)
    monkeypatch.setattr(engine, "_LONG", 0)
    joined = MACHINES[name](tol=1e-5).fit(X, y)
    assert "working sets of 16 multipliers, then all of them" in joined.explain()
    models = [sets, few, joined]
    if "Nu" not in name:
        models.append(MACHINES[name](tol=1e-5, solver="textbook_smo").fit(X, y))
    for model in models:
        assert_allclose(model.certificate_.objective, whole.certificate_.objective, rtol=1e-6)
        assert model.verify(X, y)
        assert model.certificate_.violation <= 1e-5 * (1 + 1e-5)


def test_single_precision_rows_reach_the_same_optimum():
    X, y = labelled(3200, 5)
    ours = SVC(gamma=0.2).fit(X, y)
    theirs = sklearn.svm.SVC(gamma=0.2, tol=1e-4).fit(X, y)
    K = rbf_kernel(X, gamma=0.2)
    assert_allclose(dual_objective(ours, K, y), dual_objective(theirs, K, y), rtol=1e-6)
    assert ours.verify(X, y)
    assert ours.certificate_.relative_gap < 1e-3


def test_warming_meets_kernel_values_in_single_precision():
    from trueline.cli.warming import larger_fits
    from trueline.estimators.svm.multipliers import gamma_of, precision_of
    from trueline.kernels import KernelFunction

    machines = [fit for fit in larger_fits() if isinstance(fit[0], SVC)]
    assert any(
        precision_of(X, KernelFunction("rbf", gamma_of("rbf", "scale", X)), 1.0, model.tol)
        == np.float32
        for model, X, _, _ in machines
    )


def test_given_matrices_and_functions_are_the_kernel_itself():
    X, y = labelled(50, 3, 3)
    by_name = SVC(gamma=0.5).fit(X, y)
    by_matrix = SVC(kernel="precomputed").fit(rbf_kernel(X, gamma=0.5), y)
    by_function = SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5)).fit(X, y)
    new = X[:7] + 0.1
    expected = by_name.decision_function(new)
    assert_allclose(by_matrix.decision_function(rbf_kernel(new, X, gamma=0.5)), expected, atol=1e-9)
    assert_allclose(by_function.decision_function(new), expected, atol=1e-9)


def test_the_sigmoid_kernel_is_said_to_be_local():
    X, y = labelled(60, 3)
    model = SVC(kernel="sigmoid", gamma=0.5, coef0=-1.0).fit(X, y)
    theirs = sklearn.svm.SVC(kernel="sigmoid", gamma=0.5, coef0=-1.0).fit(X, y)
    certificate = model.certificate_
    assert certificate.kind == "kernel stationarity"
    assert certificate.gap == np.inf
    assert certificate.violation <= model.tol
    assert model.verify(X, y)
    ours, others = (dual_objective(m, sigmoid_kernel(X, gamma=0.5, coef0=-1.0), y)
                    for m in (model, theirs))  # fmt: skip
    assert np.isfinite(ours)
    assert np.isfinite(others)


def test_probabilities_agree_with_predictions():
    for k in (2, 4):
        X, y = labelled(120, 4, k)
        with pytest.warns(FutureWarning, match="probability"):
            model = SVC(probability=True, random_state=0).fit(X, y)
        p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert (p > 0).all()
        assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
        assert_allclose(model.predict_log_proba(X), np.log(p))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            again = SVC(probability=True, random_state=0).fit(X, y)
        assert_array_equal(again.predict_proba(X), p)


def test_probabilities_are_calibrated():
    """Among rows said to be of a class with probability p, about p are."""
    g = np.random.default_rng(0)
    X = g.standard_normal((3000, 2))
    truth = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (g.random(3000) < truth).astype(int)
    with pytest.warns(FutureWarning):
        model = SVC(probability=True, C=0.1, random_state=0).fit(X[:1000], y[:1000])
    p = model.predict_proba(X[1000:])[:, 1]
    assert np.abs(p - truth[1000:]).mean() < 0.06


@pytest.mark.slow  # SVC, of the same base, is in the fast run
@parametrize_with_checks(
    [NuSVC(gamma="auto", nu=0.2)],
    expected_failed_checks=lambda model: {
        "check_class_weight_classifiers": (
            "LIBSVM and scikit-learn leave class weights out of NuSVC, and a drop-in must too"
        )
    },
)
def test_nu_classification_keeps_the_contract(estimator, check):
    check(estimator)


def test_outliers_are_those_of_scikit_learn():
    X, _ = smooth(80)
    ours = OneClassSVM(nu=0.2, gamma=0.5).fit(X)
    theirs = sklearn.svm.OneClassSVM(nu=0.2, gamma=0.5, tol=1e-10).fit(X)
    far = np.abs(theirs.decision_function(X)) > 1e-6  # the others are on the boundary
    assert_array_equal(ours.predict(X)[far], theirs.predict(X)[far])
    assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-6)
    assert_allclose(ours.offset_, -ours.intercept_)
    assert_array_equal(ours.fit_predict(X), ours.predict(X))
