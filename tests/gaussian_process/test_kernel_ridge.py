"""Kernel ridge regression: scikit-learn's answers, leave-one-out by definition, proofs."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.kernel_ridge as peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from trueline import KernelPerceptron, KernelRidge, Ridge, load, save
from trueline.errors import MemoryNeededError
from trueline.estimators.kernel import kernel_function

KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.7, "alpha": 1e-3},
    {"kernel": "laplacian"},
    {"kernel": "polynomial", "degree": 2},
    {"kernel": "sigmoid", "gamma": 0.1, "alpha": 5.0},
]


def rows(n=60, d=3, targets=1, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    Y = np.sin(X @ generator.normal(size=(d, targets))) + 0.1 * generator.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y


@pytest.mark.parametrize("settings", KERNELS, ids=lambda s: s["kernel"])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_answers_are_those_of_scikit_learn(settings, targets, weighted):
    X, Y = rows(targets=targets)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, size=60) if weighted else None
    ours = KernelRidge(**settings).fit(X, Y, weights)
    theirs = peer.KernelRidge(**settings).fit(X, Y, weights)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-7, atol=1e-9)
    new = rows(9, seed=2)[0]
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-7, atol=1e-9)
    assert ours.verify(X, Y, weights)


def test_a_linear_kernel_is_ridge():
    X, y = rows()
    ours = KernelRidge(0.7).fit(X, y)
    ridge = Ridge(0.7, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(X.T @ ours.dual_coef_, ridge.coef_, rtol=1e-9)
    assert ours.certificate_.objective == pytest.approx(ridge.certificate_.objective, rel=1e-9)


def test_a_linear_kernel_of_few_columns_needs_no_kernel_matrix(monkeypatch):
    X, Y = rows(200, targets=2)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, size=200)
    alpha = np.array([1e-3, 2.0])
    K = X @ X.T
    monkeypatch.setattr(kernel_function, "available_bytes", lambda: 1000)
    model = KernelRidge(alpha).fit(X, Y, weights)
    for t in range(2):
        c = np.linalg.solve(K + np.diag(alpha[t] / weights), Y[:, t])
        np.testing.assert_allclose(model.dual_coef_[:, t], c, rtol=1e-6, atol=1e-6 * abs(c).max())
    assert model.verify(X, Y, weights)
    with pytest.raises(MemoryNeededError):
        model.leave_one_out()


def test_every_target_may_have_a_strength_of_its_own():
    X, Y = rows(targets=2)
    both = KernelRidge([0.1, 5.0], kernel="rbf").fit(X, Y)
    for t, alpha in enumerate((0.1, 5.0)):
        one = KernelRidge(alpha, kernel="rbf").fit(X, Y[:, t])
        np.testing.assert_allclose(both.dual_coef_[:, t], one.dual_coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(both.leave_one_out()[:, t], one.leave_one_out(), rtol=1e-8)
    assert both.verify(X, Y)


@pytest.mark.parametrize("settings", KERNELS[:4], ids=lambda s: s["kernel"])
def test_leave_one_out_is_refitting_without_the_row(settings):
    X, y = rows(25)
    weights = np.random.default_rng(1).integers(0, 3, size=25).astype(float)
    left_out = KernelRidge(**settings).fit(X, y, weights).leave_one_out()
    for i in range(25):
        rest = np.arange(25) != i
        again = KernelRidge(**settings).fit(X[rest], y[rest], weights[rest])
        assert left_out[i] == pytest.approx(again.predict(X[[i]])[0], rel=1e-7, abs=1e-9)


def test_a_path_is_one_fit_for_each_strength():
    X, Y = rows(40, targets=2)
    weights = np.random.default_rng(1).integers(0, 3, size=40).astype(float)
    alphas = [1e-3, 0.1, 10.0]
    path = KernelRidge(kernel="rbf").path(X, Y, alphas, weights)
    for number, alpha in enumerate(alphas):
        model = KernelRidge(alpha, kernel="rbf").fit(X, Y, weights)
        np.testing.assert_allclose(path.dual_coef[number], model.dual_coef_, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(path.loo_predictions[number], model.leave_one_out(), rtol=1e-7)
        error = np.average((model.leave_one_out() - Y) ** 2, axis=0, weights=weights)
        np.testing.assert_allclose(path.loo_errors[number], error, rtol=1e-8)
    best = np.argmin(path.loo_errors, axis=0)
    np.testing.assert_array_equal(path.best_alpha, np.array(alphas)[best])


def test_kernels_may_be_functions_or_matrices():
    X, y = rows(20)
    K = rbf_kernel(X, gamma=0.5)
    given = KernelRidge(kernel="precomputed").fit(K, y)
    named = KernelRidge(kernel="rbf", gamma=0.5).fit(X, y)
    called = KernelRidge(kernel=lambda a, b: np.exp(-0.5 * ((a - b) ** 2).sum())).fit(X, y)
    np.testing.assert_allclose(given.dual_coef_, named.dual_coef_, rtol=1e-9)
    np.testing.assert_allclose(called.dual_coef_, named.dual_coef_, rtol=1e-9)
    assert given.verify(K, y)
    assert called.verify(X, y)
    with pytest.raises(ValueError, match="as many columns"):
        KernelRidge(kernel="precomputed").fit(K[:, :5], y)


def test_certificates_verify_and_tampering_is_found(tmp_path):
    X, y = rows()
    sparse = sp.csr_array(X)
    assert KernelRidge(kernel="rbf").fit(sparse, y).verify(sparse, y)
    model = KernelRidge(0.1, kernel="rbf").fit(X, y)
    certificate = model.certificate_
    assert certificate.gap < 1e-20
    again = load(save(model, tmp_path / "kernel.trueline"))
    assert again.verify(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not certificate.verify(X, y + 1e-3)
    assert not replace(certificate, objective=certificate.objective * (1 - 1e-6)).verify(X, y)
    assert not replace(certificate, gap=0.0).verify(X, y)
    assert "positive semi-definite" in model.explain()
    model.dual_coef_ = model.dual_coef_ * (1 + 1e-6)
    assert not model.verify(X, y)


def test_singular_and_indefinite_systems_are_solved_as_far_as_they_go():
    X, y = rows(30, 2)
    with pytest.warns(ConvergenceWarning, match="the gap is"):  # the proof needs a strength
        model = KernelRidge(0.0).fit(X, y)
    least_squares = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), X @ least_squares, rtol=1e-8)
    assert "singular" in model.solver_
    K = -rbf_kernel(X)
    model = KernelRidge(0.3, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose((K + 0.3 * np.eye(30)) @ model.dual_coef_, y, atol=1e-8)
    assert "indefinite" in model.solver_


def test_hostile_input(monkeypatch):
    X, y = rows(20)
    with pytest.raises(ValueError, match="do not correspond"):
        KernelRidge([1.0, 2.0]).fit(X, y)
    with pytest.raises(ValueError, match="zero"):
        KernelRidge().fit(X, y, np.zeros(20))
    with pytest.raises(ValueError, match="not negative"):
        KernelRidge().path(X, y, [-1.0])
    for alpha in (1e-300, 1e300):
        model = KernelRidge(alpha, kernel="rbf").fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        assert model.verify(X, y)
    monkeypatch.setattr(kernel_function, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryNeededError, match="9,600 bytes"):
        KernelRidge(kernel="rbf").fit(X, y)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.ones(3), r"an array of shape \(3,\)"),
        (np.ones((2, 2)), r"an array of shape \(2, 2\)"),
        ("near", "'near'"),
        (None, "None"),
        (1j, "1j"),
    ],
    ids=["vector", "matrix", "word", "nothing", "complex"],
)
@pytest.mark.parametrize("estimator", [KernelRidge, KernelPerceptron])
def test_kernel_functions_that_return_no_number_are_told_so(estimator, returned, said):
    X, y = np.arange(6.0).reshape(3, 2), [0, 1, 0]
    expected = f"{estimator.__name__}: a kernel function takes two rows and returns one number.*"
    with pytest.raises(ValueError, match=expected + said + ".*kernel='precomputed'"):
        estimator(kernel=lambda x, z: returned).fit(X, y)


@pytest.mark.parametrize("estimator", [KernelRidge, KernelPerceptron])
def test_kernel_functions_that_are_not_finite_are_told_where(estimator):
    X, y = np.arange(6.0).reshape(3, 2), [0, 1, 0]
    with pytest.raises(ValueError, match="returned inf for rows 0 and 2"):
        estimator(kernel=lambda x, z: np.inf if abs(x - z).max() > 3 else 1.0).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_columns_of_very_different_scales_are_never_unproven_without_a_word(kernel):
    """Products of columns of size 1e5 round by more than alpha: what is not known is said."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) * 10 ** np.linspace(-3, 5, 6)
    y = X[:, 0] / X[:, 0].std() + X[:, -1] / X[:, -1].std() + 0.1 * rng.standard_normal(80)
    with pytest.warns(ConvergenceWarning, match="standardise the columns, or raise alpha"):
        KernelRidge(kernel=kernel).fit(X, y)
    scaled = KernelRidge(kernel=kernel).fit(X / X.std(axis=0), y)
    assert scaled.certificate_.relative_gap < 1e-12
