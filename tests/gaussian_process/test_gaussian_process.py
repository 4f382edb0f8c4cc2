"""Gaussian processes: scikit-learn's answers, textbook formulas, proofs, and clear refusals."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn.gaussian_process as peer
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from trueline import (
    GaussianProcessRegressor,
    KernelRidge,
    SparseGaussianProcessRegressor,
    load,
    save,
)
from trueline.errors import MemoryNeededError
from trueline.estimators.kernel import kernel_function
from trueline.gaussian_process import search
from trueline.gaussian_process.covariance import covariance, cross_covariance, recognise
from trueline.gaussian_process.likelihood import Likelihood, generic_likelihood
from trueline.gaussian_process.proof import certify_process
from trueline.gaussian_process.search import climb, maximise, walk

KNOWN = [
    1.3 * RBF(0.7) + WhiteKernel(0.1),
    2.0 * RBF([1.0, 2.0, 3.0]) + WhiteKernel(0.2),
    RBF([1.0, 2.0, 3.0]),
    2.0 * Matern(1.5, nu=0.5) + WhiteKernel(0.1) + ConstantKernel(0.3),
    Matern([1.0, 2.0, 3.0], nu=1.5) * 2.0 + WhiteKernel(0.1),
    ConstantKernel(3.0) * Matern([1.0, 2.0, 3.0], nu=2.5) * ConstantKernel(0.5) + WhiteKernel(0.1),
    Matern(1.0, nu=np.inf) + WhiteKernel(0.1),
    RationalQuadratic(1.2, 0.7) + WhiteKernel(0.1),
    1.0 * RBF(0.5) + 2.0 * RationalQuadratic(2.0, 1.5) + ConstantKernel(2.0) * WhiteKernel(0.1),
    2.0 * RBF([1.0, 2.0, 3.0], "fixed") + WhiteKernel(0.2),
    ConstantKernel(2.0, "fixed") * RationalQuadratic(1.0, 0.5, alpha_bounds="fixed"),
]
UNKNOWN = [
    DotProduct() + WhiteKernel(),
    1.0 * RBF() * RBF(),
    ConstantKernel() * (RBF() + WhiteKernel()),
    RBF() ** 2,
    Matern(nu=0.7),
    ExpSineSquared() + WhiteKernel(),
]


def rows(n=120, d=3, seed=0, noise=0.1):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + np.cos(1.5 * X[:, -1])
    return X, y + noise * generator.normal(size=n)


# --- the parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KNOWN, ids=str)
def test_covariances_are_those_of_the_kernel(kernel):
    X = rows(37)[0]
    new = rows(11, seed=1)[0]
    structure = recognise(kernel, X)
    K = np.zeros((37, 37))
    covariance(structure, kernel.theta, X, np.zeros(37), K)
    np.testing.assert_allclose(np.tril(K), np.tril(kernel(X)), rtol=1e-12, atol=1e-15)
    crossed = cross_covariance(structure, kernel.theta, new, X)
    np.testing.assert_allclose(crossed, kernel(new, X), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kernel", KNOWN, ids=str)
@pytest.mark.parametrize("targets", [1, 2])
def test_likelihood_and_gradient_are_those_of_the_kernel(kernel, targets):
    X, y = rows(60)
    Y = np.column_stack([y, y**2])[:, :targets]
    noise = np.linspace(0.01, 0.1, 60)
    theta = kernel.theta + 0.1
    likelihood = Likelihood(recognise(kernel, X), X, Y, noise)
    value, gradient = likelihood.value_and_gradient(theta)
    moved = kernel.clone_with_theta(theta)
    densities = [
        multivariate_normal.logpdf(t, np.zeros(60), moved(X) + np.diag(noise)) for t in Y.T
    ]
    assert value == pytest.approx(sum(densities), rel=1e-10)
    expected = generic_likelihood(moved, X, Y, noise, True)
    assert value == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-9)
    step = 1e-5 * np.eye(len(theta))
    numeric = [(likelihood.value(theta + e) - likelihood.value(theta - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KNOWN, ids=str)
def test_average_information_is_its_definition(kernel):
    X, y = rows(50)
    likelihood = Likelihood(recognise(kernel, X), X, y[:, None], 0.05)
    likelihood.value(kernel.theta)
    gradient, information = likelihood.slope(with_information=True)
    K, dK = kernel(X, eval_gradient=True)
    K[np.diag_indices(50)] += 0.05
    q = np.einsum("ijk,j->ik", dK, np.linalg.solve(K, y))
    expected = 0.5 * q.T @ np.linalg.solve(K, q)
    np.testing.assert_allclose(information, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        gradient, likelihood.value_and_gradient(kernel.theta)[1], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kernel", UNKNOWN, ids=str)
def test_other_kernels_go_by_themselves(kernel):
    X, y = rows(8)
    assert recognise(kernel, X) is None
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.1).fit(X, y)
    theirs = peer.GaussianProcessRegressor(kernel, optimizer=None, alpha=0.1).fit(X, y)
    for theta in (kernel.theta, kernel.theta + 0.2):
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        expected = theirs.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == pytest.approx(expected[0], rel=1e-9)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-7, atol=1e-8)


class Doubled(RBF):
    """A kernel that is not what its base class says."""

    def __call__(self, X, Y=None, eval_gradient=False):
        result = super().__call__(X, Y, eval_gradient)
        return tuple(2 * part for part in result) if eval_gradient else 2 * result


def test_subclasses_are_not_taken_for_what_they_are_derived_from():
    assert recognise(Doubled() + WhiteKernel(), rows(5)[0]) is None


# --- the search ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        1.0 * RBF(1.0) + WhiteKernel(1.0),
        1.0 * RBF([1.0, 1.0, 1.0]) + WhiteKernel(1.0),
        1.0 * Matern(1.0, nu=2.5) + WhiteKernel(1.0),
        1.0 * RationalQuadratic() + WhiteKernel(1.0),
    ],
    ids=str,
)
def test_few_rows_first_ends_as_high_as_all_rows_from_the_start(kernel):
    X, y = rows(600)
    likelihood = Likelihood(recognise(kernel, X), X, y[:, None], 1e-10)
    plain = climb(likelihood, kernel.theta, kernel.bounds)
    staged = maximise(likelihood, [kernel.theta], kernel.bounds)
    assert staged.value >= plain.value - 1e-6 * abs(plain.value)
    assert staged.evaluations < plain.evaluations
    gradient = likelihood.value_and_gradient(staged.theta)[1]
    free = (staged.theta > kernel.bounds[:, 0]) & (staged.theta < kernel.bounds[:, 1])
    np.testing.assert_allclose(gradient[free], 0.0, atol=0.05)


@pytest.mark.slow
def test_a_wave_too_short_for_few_rows_is_found_by_all():
    """250 of 900 rows are too far apart for it: they must not have the last word."""
    x = np.linspace(0, 60, 900)
    y = np.sin(2 * np.pi * x) + 0.1 * np.random.default_rng(0).normal(size=900)
    kernel = 1.0 * RBF(0.3) + WhiteKernel(0.1)
    likelihood = Likelihood(recognise(kernel, x[:, None]), x[:, None], y[:, None], 1e-10)
    plain = climb(likelihood, kernel.theta, kernel.bounds)
    staged = maximise(likelihood, [kernel.theta], kernel.bounds)
    assert staged.value >= plain.value - 1e-6 * abs(plain.value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 5])
def test_what_few_rows_take_for_noise_is_found_by_all(seed):
    """A product of waves that a hundred rows do not resolve, beside one column that they do."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-3, 3, size=(450, 3))
    y = np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1]) + np.cos(1.5 * X[:, 2])
    y = y - y.mean() + 0.02 * generator.normal(size=450)
    kernel = 1.0 * RBF([1.0, 1.0, 1.0]) + WhiteKernel(1.0)
    likelihood = Likelihood(recognise(kernel, X), X, y[:, None], 1e-10)
    plain = climb(likelihood, kernel.theta, kernel.bounds)
    staged = maximise(likelihood, [kernel.theta], kernel.bounds)
    assert staged.value >= plain.value - 1e-6 * abs(plain.value)


def test_newton_steps_respect_bounds():
    X, y = rows(300)
    kernel = 1.0 * RBF([1.0] * 3, (1e-2, 3.0)) + WhiteKernel(1.0, (0.05, 1.0))
    likelihood = Likelihood(recognise(kernel, X), X, y[:, None], 1e-10)
    found = walk(likelihood, kernel.theta, kernel.bounds)
    assert (found.theta >= kernel.bounds[:, 0]).all()
    assert (found.theta <= kernel.bounds[:, 1]).all()
    assert found.settled
    assert found.value == pytest.approx(
        climb(likelihood, kernel.theta, kernel.bounds).value, rel=1e-6
    )


@pytest.mark.filterwarnings("ignore:The optimal value found")
def test_restarts_never_end_lower():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(450, 2))
    y = np.sin(3 * X).sum(axis=1) + 0.1 * generator.normal(size=450)
    kernel = 1.0 * RBF([50.0, 50.0], (1e-2, 1e2)) + WhiteKernel(1.0, (1e-5, 1e2))
    values = [
        GaussianProcessRegressor(kernel, n_restarts_optimizer=count, random_state=0)
        .fit(X, y)
        .log_marginal_likelihood_value_
        for count in (0, 3)
    ]
    assert values[1] >= values[0] - 1e-6


# --- the estimator ------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("n", [60, 130])
def test_fits_and_predictions_are_those_of_scikit_learn(n, normalize_y):
    X, y = rows(n)
    kernel = 1.0 * RBF([1.0, 1.0, 1.0], (1e-2, 1e2)) + WhiteKernel(0.1)
    ours = GaussianProcessRegressor(kernel, normalize_y=normalize_y).fit(X, y)
    theirs = peer.GaussianProcessRegressor(kernel, normalize_y=normalize_y).fit(X, y)
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=1e-3)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-8
    )
    ours.kernel_.theta = theirs.kernel_.theta
    ours = GaussianProcessRegressor(ours.kernel_, normalize_y=normalize_y, optimizer=None).fit(X, y)
    new = rows(20, seed=3)[0]
    np.testing.assert_allclose(ours.L_, theirs.L_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-6, atol=1e-8)
    for choice in ({"return_std": True}, {"return_cov": True}):
        for a, b in zip(ours.predict(new, **choice), theirs.predict(new, **choice)):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    samples = ours.sample_y(new, 3, random_state=1)
    assert samples.shape == (20, 3)


def test_noise_for_each_row():
    X, y = rows(110)
    noise = np.random.default_rng(2).uniform(0.01, 0.3, size=110)
    kernel = ConstantKernel(1.0) * RBF(1.0)
    ours = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)
    K = kernel(X)
    expected = kernel(X[:5], X) @ np.linalg.solve(K + np.diag(noise), y)
    np.testing.assert_allclose(ours.predict(X[:5]), expected, rtol=1e-9)
    assert ours.verify(X, y)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("normalize_y", [True, False])
def test_leave_one_out_is_refitting_without_the_row(targets, normalize_y):
    X, y = rows(30)
    Y = y if targets == 1 else np.column_stack([y, 3 * y**2])
    kernel = 1.0 * RBF(1.0) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=normalize_y).fit(X, Y)
    mean, std = model.leave_one_out()
    scale, level = model._y_train_std, model._y_train_mean
    for i in (0, 7, 29):
        rest = np.arange(30) != i
        again = GaussianProcessRegressor(kernel, optimizer=None)
        again.fit(X[rest], (Y[rest] - level) / scale)
        at, spread = again.predict(X[[i]], return_std=True)
        np.testing.assert_allclose(mean[i], (at * scale + level).ravel(), rtol=1e-8)
        np.testing.assert_allclose(std[i], (spread * scale).ravel(), rtol=1e-6)


def test_a_callable_optimizer_is_used():
    X, y = rows(120)
    kernel = 1.0 * RBF(1.0) + WhiteKernel(0.1)

    def stay(minus, theta, bounds):
        value, gradient = minus(theta)
        assert gradient.shape == theta.shape
        assert minus(theta, eval_gradient=False) == pytest.approx(value)
        return theta, value

    model = GaussianProcessRegressor(kernel, optimizer=stay).fit(X, y)
    np.testing.assert_array_equal(model.kernel_.theta, kernel.theta)


# --- proofs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [50, 450])
def test_certificates_verify_and_tampering_is_found(n, tmp_path):
    X, y = rows(n)
    model = GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1), normalize_y=True).fit(X, y)
    certificate = model.certificate_
    assert certificate.kind == "stationary point"
    assert "local" in certificate.statement
    assert certificate.gap == np.inf
    assert certificate.slope < 0.1
    assert certificate.residual < 1e-8
    assert certificate.verify(X, y)
    again = load(save(model, tmp_path / "process.trueline"))
    assert again.verify(X, y)
    for a, b in zip(again.predict(X[:9], return_std=True), model.predict(X[:9], return_std=True)):
        np.testing.assert_array_equal(a, b)
    assert not certificate.verify(X, y + 0.01)
    assert not certificate.verify(X * 1.01, y)
    assert not certificate.verify(X[:-1], y[:-1])
    assert "log marginal likelihood" in str(model.explain())
    for changes in (
        {"objective": certificate.objective - 1e-3},
        {"slope": 0.5 * certificate.slope - 1e-9},
        {"coef": certificate.coef * (1 + 1e-6)},
        {"kernel": certificate.kernel.clone_with_theta(certificate.kernel.theta + 0.1)},
    ):
        assert not replace(certificate, **changes).verify(X, y), changes


def test_given_parameters_are_not_called_a_maximum():
    X, y = rows(40)
    model = GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None).fit(X, y)
    assert model.certificate_.kind == "given parameters"
    assert model.verify(X, y)


# --- hostile input ------------------------------------------------------------------------------


class Indefinite(Kernel):
    """Not a covariance at all."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        K = -(np.asarray(X) @ np.asarray(Y).T)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return -np.einsum("ij,ij->i", X, X)

    def is_stationary(self):
        return False


def test_a_kernel_that_is_not_positive_definite_is_said():
    X, y = rows(20)
    with pytest.raises(np.linalg.LinAlgError, match="not returning a positive definite matrix"):
        GaussianProcessRegressor(Indefinite()).fit(X, y)


def test_repeated_rows_without_noise_are_said():
    X, y = rows(20)
    X, y = np.vstack([X, X]), np.concatenate([y, y + 1])
    with pytest.raises(np.linalg.LinAlgError, match="20 of 40 rows of X repeat others"):
        GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=0.0).fit(X, y)
    model = GaussianProcessRegressor(RBF(1.0, "fixed") + WhiteKernel(1.0)).fit(X, y)
    assert model.verify(X, y)


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.filterwarnings("ignore:The optimal value found")
def test_constant_targets(normalize_y):
    X, _ = rows(120)
    kernel = ConstantKernel(1.0, "fixed") * RBF(1.0) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=normalize_y).fit(X, np.full(120, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, atol=1e-2)


def test_more_rows_than_memory_is_said_before_anything_is_allocated(monkeypatch):
    monkeypatch.setattr(kernel_function, "available_bytes", lambda: 10_000_000)
    X, y = rows(2000)
    with pytest.raises(MemoryNeededError, match=r"128,000,000 bytes .* SparseGaussianProcess"):
        GaussianProcessRegressor(RBF() + WhiteKernel()).fit(X, y)


def test_bad_numbers_are_refused():
    X, y = rows(20)
    for huge in ((1e200 * X, y), (X, 1e200 * y)):
        for model in (
            GaussianProcessRegressor(normalize_y=True),
            SparseGaussianProcessRegressor(),
            KernelRidge(),
        ):
            with pytest.raises(ValueError, match="overflow in double precision"):
                model.fit(*huge)
    bad = X.copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GaussianProcessRegressor().fit(bad, y)
    with pytest.raises(ValueError, match="alpha must be a scalar or an array"):
        GaussianProcessRegressor(alpha=np.ones(3)).fit(X, y)
    with pytest.raises(ValueError, match="variances"):
        GaussianProcessRegressor(alpha=-np.ones(20)).fit(X, y)
    with pytest.raises(ValueError):
        GaussianProcessRegressor(RBF([1.0, 2.0])).fit(*rows(120))


def test_an_unfinished_search_says_how_steep_it_is(monkeypatch):
    X, y = rows(450)
    monkeypatch.setattr(search, "_STEPS", 1)
    found = search.Found(np.zeros(1), -1.0, 3, False)
    with pytest.warns(ConvergenceWarning, match="largest slope in theta is 2"):
        search.warn_unsettled(found, np.array([2.0]))
    # A walk that ends early is finished by the other method.
    model = GaussianProcessRegressor(1.0 * RBF() + WhiteKernel()).fit(X, y)
    assert model.certificate_.slope < 0.1


def test_equal_rows_that_contradict_each_other_are_named():
    X, y = rows(20)
    X[7], y[7] = X[3], y[3] + 2.0
    with pytest.warns(ConvergenceWarning, match="Rows 3 and 7 of X are equal.* differ by 2,.*Add"):
        GaussianProcessRegressor(RBF(1.0, "fixed"), normalize_y=True).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        GaussianProcessRegressor(RBF(1.0, "fixed") + WhiteKernel(0.1, "fixed")).fit(X, y)
        GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=0.1).fit(X, y)
        y[7] = y[3]
        GaussianProcessRegressor(RBF(1.0, "fixed")).fit(X, y)


def in_units(n=120, noise=0.1, seed=0):
    """A smooth function of columns in the hundreds, far from zero, and its values around 20."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [100.0, 20.0, 3.0] + [1000.0, 0.0, 5.0]
    y = 20.0 + 4.0 * np.sin(X[:, 0] / 80.0) + 0.1 * X[:, 1]
    return X, y + noise * rng.normal(size=n)


@pytest.mark.grid(2)
@pytest.mark.parametrize("n", [60, 120, 450])
@pytest.mark.parametrize(
    "kernel", [None, RBF() + WhiteKernel(), 1.0 * Matern(nu=1.5) + WhiteKernel()], ids=str
)
@pytest.mark.parametrize("normalize_y", [False, True])
def test_the_search_leaves_its_start_whatever_the_units(n, kernel, normalize_y):
    # A step to the bounds has no likelihood; a length of one sees nothing between the rows.
    X, y = in_units(n, noise=0.1 if kernel else 0.0)  # the default kernel has none
    model = GaussianProcessRegressor(kernel, normalize_y=normalize_y)
    with warnings.catch_warnings():  # parameters may end at their bounds, which is said
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    centred = (y - y.mean()) / y.std() if normalize_y else y
    noise = -0.5 * n * (np.log(2 * np.pi * np.mean(centred**2)) + 1)
    value = model.log_marginal_likelihood_value_
    assert value > noise + 0.01 * n
    theta, bounds = model.kernel_.theta, model.kernel_.bounds
    slope = model.log_marginal_likelihood(theta, eval_gradient=True)[1]
    inside = (theta > bounds[:, 0]) & (theta < bounds[:, 1])
    assert (np.abs(slope[inside]) < 1e-2 * max(1.0, abs(value))).all()
    assert model.verify(X, y)


@pytest.mark.parametrize("n", [40, 150])
def test_it_is_said_that_nothing_was_learned(n):
    rng = np.random.default_rng(0)
    X, y = np.arange(float(n)).reshape(-1, 1), rng.normal(size=n)
    # Lengths that see no other row, and may not grow.
    kernel = 1.0 * RBF(1e-4, (1e-5, 1e-3))
    with pytest.warns(ConvergenceWarning, match="learned nothing"):
        model = GaussianProcessRegressor(kernel).fit(X, y)
    np.testing.assert_allclose(model.predict(X + 0.5), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.kernel_.theta[0]), np.mean(y**2), rtol=1e-4)


def test_parameters_that_are_not_searched_for_need_no_warning():
    X, y = np.arange(40.0).reshape(-1, 1), np.random.default_rng(0).normal(size=40)
    for model in (
        GaussianProcessRegressor(RBF(1e-4), optimizer=None),
        GaussianProcessRegressor(RBF(1e-4, "fixed")),
    ):
        model.fit(X, y)
        np.testing.assert_allclose(model.predict(X + 0.5), 0.0, atol=1e-12)


def test_values_that_do_not_exist_do_not_end_a_search():
    # The first step of L-BFGS-B goes to the bounds, where the matrix is singular to rounding.
    X, y = in_units(noise=0.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    start = GaussianProcessRegressor(optimizer=None).fit(X, y).log_marginal_likelihood_value_
    model = GaussianProcessRegressor().fit(X, y)
    assert model.n_iter_ > 5
    assert model.log_marginal_likelihood_value_ > start + 1000


def test_matrices_that_are_definite_only_up_to_rounding_have_a_certificate():
    """Nothing is known of the determinant then, and the certificate says so."""
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    Y = np.array([[1.0], [1.0], [3.0], [2.0]])
    coef = np.zeros((4, 1))
    coef[1:] = np.linalg.solve(RBF()(X[1:]), Y[1:])
    proof = certify_process(
        RBF(), X, Y, np.zeros(4), coef, 0.0, True, level=np.zeros(1), scale=np.ones(1)
    )
    assert proof.objective_rounding == proof.slope == np.inf
    assert 0 <= proof.residual < 1e-12


@pytest.mark.filterwarnings("ignore:The optimal value found")
@pytest.mark.parametrize("seed", range(2))
def test_one_more_restart_is_never_worse(seed):
    rng = np.random.default_rng(seed)
    X = 2 * rng.standard_normal((25, 2))
    y = np.sin(X).sum(axis=1) + np.sin(3 * X).sum(axis=1) + 0.1 * rng.standard_normal(25)
    lengths = RBF([1.0, 1.0], [(1e-4, 1e2)] * 2)
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * lengths + WhiteKernel(1e-5, (1e-5, 1e1))
    likelihoods = []
    for restarts in range(4):
        model = GaussianProcessRegressor(kernel, n_restarts_optimizer=restarts, random_state=seed)
        likelihoods.append(model.fit(X, y).log_marginal_likelihood_value_)
    # Ends of two searches at the same maximum differ by where they stop.
    assert np.all(np.diff(likelihoods) > -1e-7)
