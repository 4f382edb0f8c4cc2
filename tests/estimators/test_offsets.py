"""Least squares of columns far from zero, with fewer rows than columns, as many, or more.

    objective       P(w, b) - min P                 against fractions, no rounding at all
    coefficients    the minimiser of least norm     against fractions
    certificate     verified; P - min P <= gap <= a trifle of the objective of the best constant

Centring leaves n - 1 dimensions of n rows, whatever rounding does to the means. The reference is
the least-norm answer w = X_c^T u of K S K u = K S y_c, K = X_c X_c^T, over the rows with a weight.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from rational import Quadratic, solve

from trueline import (
    LinearRegression,
    LinearRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
)

# Offsets of 1e8 times the spread leave gaps that some fits say; answers are compared all the same.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fractions(array):
    """Every double is a fraction; this is the exact one."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=float))


def doubles(array):
    """Fractions rounded to double, correctly."""
    return np.vectorize(float, otypes=[float])(array)


EPS = float(np.finfo(float).eps)
D = 6
SHAPES = {"n < d": 4, "n = d": D, "n = d + 1": D + 1, "n > d": 11}
OFFSETS = [0.0, 1e2, 1e5, 1e8]
VARIANTS = ["plain", "weights", "zero weights", "targets", "csr", "csc", "float32"]
DIRECT = ["auto", "cholesky", "qr", "svd"]


@cache
def data(shape, offset, variant):
    """Design as it is given, its numbers, targets and weights."""
    rng = np.random.default_rng([list(SHAPES).index(shape), VARIANTS.index(variant)])
    n = SHAPES[shape] + 2 * (variant == "zero weights")
    X = rng.standard_normal((n, D)) * [1.0, 0.5, 3.0, 1.0, 0.2, 1.0]
    if variant == "float32":
        X = X * max(1.0, 1e-4 * offset)
    X = X + offset
    if variant == "float32":
        X = X.astype(np.float32)
    Y = rng.standard_normal((n, 3 if variant == "targets" else 1)) + 2.0
    weights = None
    if "weights" in variant:
        weights = rng.choice([0.25, 1.0, 3.0], n)
    if variant == "zero weights":
        weights[[0, n // 2]] = 0.0
    held = {"csr": sp.csr_array, "csc": sp.csc_array}.get(variant, np.asarray)(X)
    return held, np.asarray(X, dtype=float), Y, weights


@cache
def least_norm(shape, offset, variant, alpha=0.0, fit_intercept=True):
    """Exact coefficients (d, k), intercepts (k,) and objectives (k,) of the answer."""
    _, X, Y, weights = data(shape, offset, variant)
    s = np.ones(len(X)) if weights is None else weights
    present = s > 0
    X, Y, s = fractions(X[present]), fractions(Y[present]), fractions(s[present])
    x_mean, y_mean = (s @ X / s.sum(), s @ Y / s.sum()) if fit_intercept else (0 * X[0], 0 * Y[0])
    V, R = X - x_mean, Y - y_mean
    K = V @ V.T
    A, C = K @ (s[:, None] * K), K @ (s[:, None] * R)
    if alpha:  # (K S + alpha) u = y_c, with the same u
        A = K * s + Fraction(alpha) * fractions(np.eye(len(K)))
        C = R
    W, b, values = [], [], []
    for t in range(Y.shape[1]):
        u = np.array(solve(A.tolist(), C[:, t].tolist())[0], dtype=object)
        w = V.T @ (s * u if alpha else u)
        rest = R[:, t] - V @ w
        W.append(w)
        b.append(y_mean[t] - x_mean @ w)
        values.append((s @ rest**2 + Fraction(alpha) * (w @ w)) / 2)
    return doubles(np.array(W).T), doubles(np.array(b)), np.array(values, dtype=object)


def assert_is_answer(model, shape, offset, variant, alpha=0.0, fit_intercept=True, digits=1e-12):
    """What the module's text says of objective, coefficients and certificate."""
    held, X, Y, weights = data(shape, offset, variant)
    W, b, values = least_norm(shape, offset, variant, alpha, fit_intercept)
    found, level = model._coefficients()
    problems = [Quadratic(X, y, weights, alpha, fit_intercept) for y in Y.T]
    constants = fitted_constants(Y, weights, fit_intercept)
    unit = float(sum(constants))
    distance = sum(
        problem.value(problem.point(found[:, t], level[t])) - values[t]
        for t, problem in enumerate(problems)
    )
    # Doubles hold scores to eps times their terms.
    s = np.ones(len(X)) if weights is None else weights
    held_to = 2 * EPS * (np.abs(X) @ np.abs(W) + np.abs(b))
    assert 0 <= distance <= digits * unit + float((s @ held_to**2).sum())
    # Coefficients are as far from the exact ones as their rounding and the condition allow.
    atol = (1e-5 if found_in_single(model) else 1e-10) * np.abs(W).max()
    assert_allclose(found, W, rtol=0, atol=atol)
    assert_allclose(level, b, rtol=0, atol=2 * atol * (np.abs(X).max() * D + 1) * 1e-3 + 1e-9)
    certificate = model.certificate_
    assert distance <= Fraction(certificate.gap)
    assert certificate.gap <= 1e3 * digits * unit
    y = Y if variant == "targets" else Y[:, 0]
    verification = model.verify(held, y, weights)
    assert verification, str(verification)


def found_in_single(model):
    return model.coef_.dtype == np.float32


def fitted_constants(Y, weights, fit_intercept):
    """The objectives of the best constants."""
    s = np.ones(len(Y)) if weights is None else weights
    level = s @ Y / s.sum() if fit_intercept else 0.0
    return 0.5 * s @ (Y - level) ** 2


def fit(model, shape, offset, variant):
    held, _, Y, weights = data(shape, offset, variant)
    return model.fit(held, Y if variant == "targets" else Y[:, 0], sample_weight=weights)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("solver", DIRECT)
def test_least_squares(request, solver, variant, offset, shape):
    if (solver, variant, offset, shape) == ("auto", "csc", 1e8, "n = d + 1"):
        # No factor is proven, and the iterations that take over end at 1e-8; both are said.
        request.applymarker(pytest.mark.xfail(reason="proven to 5e-8 only, with a warning"))
    model = fit(LinearRegression(solver=solver), shape, offset, variant)
    n = SHAPES[shape]
    if hasattr(model, "rank_"):  # iterations, which take over where no factor is proven, have none
        assert model.rank_ == min(n - 1, D)
    digits = 1e-6 if variant == "float32" else 1e-12
    assert_is_answer(model, shape, offset, variant, digits=digits)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("solver", ["conjugate_gradient"])
def test_iterative_solvers(solver, variant, shape):
    """Offsets of a hundred spreads are as much as their products in double precision can prove."""
    model = fit(LinearRegression(solver=solver, tol=1e-5), shape, 1e2, variant)
    _, _, Y, weights = data(shape, 1e2, variant)
    unit = float(sum(fitted_constants(Y, weights, True)))
    assert model.certificate_.gap <= 1e-6 * unit
    held = data(shape, 1e2, variant)[0]
    assert model.verify(held, Y if variant == "targets" else Y[:, 0], weights)
    W = least_norm(shape, 1e2, variant)[0]
    found, _ = model._coefficients()
    assert_allclose(found, W, rtol=0, atol=1e-3 * np.abs(W).max())


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variant", ["plain", "zero weights", "csr"])
@pytest.mark.parametrize("solver", DIRECT)
def test_without_an_intercept(solver, variant, shape):
    model = fit(LinearRegression(solver=solver, fit_intercept=False), shape, 1e2, variant)
    assert model.rank_ == min(SHAPES[shape], D)
    assert_is_answer(model, shape, 1e2, variant, fit_intercept=False)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("offset", [1e2, 1e8])
@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e-14, 1e-8, 1.0])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "qr", "svd", "kernel"])
def test_ridge(solver, alpha, offset, shape):
    model = fit(Ridge(alpha, solver=solver), shape, offset, "weights")
    assert_is_answer(model, shape, offset, "weights", alpha=alpha)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variant", ["plain", "targets", "csr", "float32"])
@pytest.mark.parametrize("alpha", [1e-30, 1e-8])
def test_ridge_of_other_data(alpha, variant, shape):
    model = fit(Ridge(alpha), shape, 1e5, variant)
    digits = 1e-6 if variant == "float32" else 1e-12
    assert_is_answer(model, shape, 1e5, variant, alpha=alpha, digits=digits)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variant", ["plain", "csr"])
def test_any_loss_and_penalty_by_name(variant, shape):
    model = fit(LinearRegressor("squared", "none"), shape, 1e5, variant)
    assert_is_answer(model, shape, 1e5, variant)


@pytest.mark.grid(1)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variant", ["plain", "weights", "csr", "csc"])
def test_a_chosen_strength(variant, shape):
    model = fit(RidgeCV([1e-8, 1e-4, 1.0]), shape, 1e5, variant)
    assert_is_answer(model, shape, 1e5, variant, alpha=model.alpha_)


@pytest.mark.grid(2)
@pytest.mark.parametrize("held", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("shape", [(8, 20), (10, 10), (11, 10), (30, 5)])
@pytest.mark.parametrize("offset", [0.0, 1e2, 1e6])
def test_leave_one_out_is_what_refitting_gives(offset, shape, held):
    n, d = shape
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, d))
    X, y = Z + offset, Z[:, 0] + rng.standard_normal(n)
    Z = X - offset  # as the rounded numbers have it, exactly
    alphas = [1e-3, 1.0, 10.0]
    model = RidgeCV(alphas, store_cv_results=True).fit(held(X), y)
    for i in range(n):
        keep = np.arange(n) != i
        V, level = Z[keep] - Z[keep].mean(axis=0), y[keep].mean()
        for a, alpha in enumerate(alphas):
            w = V.T @ np.linalg.solve(V @ V.T + alpha * np.eye(n - 1), y[keep] - level)
            error = y[i] - level - (Z[i] - Z[keep].mean(axis=0)) @ w
            assert_allclose(model.cv_results_[i, a], error**2, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_classes(shape):
    held, X, _, _ = data(shape, 1e5, "plain")
    labels = np.arange(len(X)) % 2
    model = RidgeClassifier(1e-8).fit(held, labels)
    problem = Quadratic(X, 2.0 * labels - 1, None, 1e-8)
    distance = problem.gap(model.coef_, model.intercept_)
    assert distance <= 1e-12 * len(X)
    assert distance <= Fraction(model.certificate_.gap)
    assert model.certificate_.gap <= 1e-9 * len(X)
    assert model.verify(held, labels)


@pytest.mark.grid(2)
@pytest.mark.parametrize("n", [3, 4, 5, 9])
@pytest.mark.parametrize("offset", [0.0, 1e2, 1e5, 1e8])
@pytest.mark.parametrize("alpha", [0.0, 1e-8])
@pytest.mark.parametrize("held", [np.asarray, sp.csr_array])
def test_nonnegative_coefficients(held, alpha, offset, n):
    """Against every set of free coefficients, in fractions."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 4)) + offset
    y = rng.standard_normal(n) + 1.0
    model = Ridge(alpha, positive=True).fit(held(X), y)
    problem = Quadratic(X, y, None, alpha)
    best = problem.nonnegative_minimum()[0]
    found = problem.value(problem.point(model.coef_, model.intercept_))
    assert (model.coef_ >= 0).all()
    assert 0 <= found - best <= 1e-12 * n
    assert found - best <= Fraction(model.certificate_.gap)
    assert model.verify(held(X), y)


# --- columns that do not vary, in units of any size ---------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -7e5, 1e8])
@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-100, 1e-20, 1.0])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "qr", "svd"])
def test_columns_that_do_not_vary_have_no_coefficient(solver, alpha, value):
    """However small the penalty that alone holds it: rounding of the mean is not information."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 3)) + 1e4
    y = rng.standard_normal(9)
    plain = Ridge(alpha).fit(X, y)
    X = np.column_stack([X, np.full(9, value)])
    model = Ridge(alpha, solver=solver).fit(X, y)
    assert_allclose(model.coef_[:3], plain.coef_, rtol=1e-12)
    assert abs(model.coef_[3] * value) <= 1e-12
    assert Quadratic(X, y, None, alpha).gap(model.coef_, model.intercept_) <= 1e-12


@pytest.mark.grid(1)
@pytest.mark.parametrize("power", [-8, -3, 3, 8])
@pytest.mark.parametrize("solver", DIRECT)
def test_units_of_columns(solver, power):
    """Columns in units of ten to powers up to this one, 12 x 15 and 15 x 12, offset by ten."""
    for n, d in ((12, 15), (15, 12)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-abs(power), power, size=d) + 10.0
        y = rng.standard_normal(n)
        model = LinearRegression(solver=solver).fit(X, y)
        left = float(Quadratic(X, y).gap(model.coef_, model.intercept_))
        unit = 0.5 * float(((y - y.mean()) ** 2).sum())
        assert left <= max(1e-12 * unit, model.certificate_.gap)
        assert model.certificate_.gap <= 1e-6 * unit


# --- single precision ---------------------------------------------------------------------------


def test_coefficients_stay_in_double_where_single_would_change_the_fit():
    rng = np.random.default_rng(0)
    near = rng.standard_normal((30, 3)).astype(np.float32)
    far = (1e6 + 10 * rng.standard_normal((30, 3))).astype(np.float32)
    y = rng.standard_normal(30)
    assert LinearRegression().fit(near, y).coef_.dtype == np.float32
    model = LinearRegression().fit(far, y)
    assert model.coef_.dtype == np.float64
    distance = Quadratic(far.astype(float), y).gap(model.coef_, model.intercept_)
    assert distance <= 1e-12
    assert model.verify(far, y)


# --- weights of very different sizes ------------------------------------------------------------


@pytest.mark.grid(1)
@pytest.mark.parametrize("n", [5, 8, 9, 20])
@pytest.mark.parametrize("solver", DIRECT)
def test_weights_over_sixteen_powers_of_ten(solver, n):
    rng = np.random.default_rng(n)
    X, y = rng.standard_normal((n, 8)) + 100.0, rng.standard_normal(n)
    weights = 10.0 ** rng.uniform(-8, 8, n)
    model = LinearRegression(solver=solver).fit(X, y, sample_weight=weights)
    problem = Quadratic(X, y, weights)
    unit = float(fitted_constants(y[:, None], weights, True)[0])
    distance = problem.gap(model.coef_, model.intercept_)
    assert distance <= 1e-10 * unit
    assert distance <= Fraction(model.certificate_.gap)
    assert model.certificate_.gap <= 1e-6 * unit
    assert model.verify(X, y, weights)
