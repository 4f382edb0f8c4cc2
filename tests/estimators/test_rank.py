"""When the columns do not determine the coefficients: the Moore-Penrose answer, and what is told.

    coefficients     of least norm among all that fit best        against mpmath, 60 digits
    rank_            of the centred design
    null_space_      orthonormal, X_c null_space_ = 0
    singular_        of the centred design, zeros included
    certificate      "row space": nothing better along what the data determine

The intercept is not part of the norm.
"""

import warnings
from contextlib import nullcontext

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose
from rational import Quadratic, column, solve
from sklearn.exceptions import ConvergenceWarning

from trueline import LinearRegression, PolynomialRegression, Ridge, pseudo_inverse
from trueline.estimators.regression.ridge import DESCENTS

EPS = np.finfo(float).eps


def moore_penrose(X, y, weights=None, fit_intercept=True, rank=None):
    """Coefficients, intercept and singular values with 60 digits.

    Columns that are dependent up to the rounding of the data are taken as dependent: the rank is
    given, and the smaller singular values count as zeros.
    """
    with mpmath.workdps(60):
        n, d = X.shape
        s = [mpmath.mpf(1)] * n if weights is None else [mpmath.mpf(float(v)) for v in weights]
        A = mpmath.matrix(X.tolist())
        b = mpmath.matrix(y.tolist())
        total = sum(s)
        x_mean = [sum(s[i] * A[i, j] for i in range(n)) / total for j in range(d)]
        y_mean = sum(s[i] * b[i] for i in range(n)) / total
        if not fit_intercept:
            x_mean, y_mean = [mpmath.mpf(0)] * d, mpmath.mpf(0)
        for i in range(n):
            root = mpmath.sqrt(s[i])
            b[i] = root * (b[i] - y_mean)
            for j in range(d):
                A[i, j] = root * (A[i, j] - x_mean[j])
        # mpmath's decomposition does not take columns of zeros.
        varying = [j for j in range(d) if any(abs(A[i, j]) > 1e-50 for i in range(n))]
        B = mpmath.matrix(n, len(varying))
        for i in range(n):
            for place, j in enumerate(varying):
                B[i, place] = A[i, j]
        U, S, V = mpmath.svd_r(B, full_matrices=False)
        S = [*S, *[mpmath.mpf(0)] * (min(n, d) - len(S))]
        w = [mpmath.mpf(0)] * d
        for m in range(rank or 0):
            along = sum(U[i, m] * b[i] for i in range(n)) / S[m]
            for place, j in enumerate(varying):
                w[j] += along * V[m, place]
        level = y_mean - sum(x_mean[j] * w[j] for j in range(d))
        return np.array([float(v) for v in w]), float(level), np.array([float(v) for v in S])


def generic(rng, n=20, d=4):
    return rng.standard_normal((n, d))


def duplicated(rng):
    X = generic(rng)
    return X[:, [0, 1, 2, 3, 1, 1]], 4


def constant(rng):
    return np.column_stack([generic(rng), np.full(20, 7.0), np.full(20, 0.1)]), 4


def one_hot(rng):
    """All levels of a category: with an intercept they add up to a constant."""
    level = rng.permutation(np.arange(20) % 4)
    return np.column_stack([np.eye(4)[level], rng.standard_normal(20)]), 4


def combination(rng):
    X = np.round(4 * generic(rng))
    return np.column_stack([X, X @ [1.0, -2.0, 0.0, 3.0]]), 4


def wide(rng):
    return generic(rng, 6, 15), 5


def wide_and_deficient(rng):
    X = np.round(4 * generic(rng, 7, 5))
    return np.column_stack([X[:, :3], X[:, :3] + X[:, 1:4], 2 * X[:, :3]]), 4


def square(rng):
    return generic(rng, 5, 5), 4


def zero_columns(rng):
    return np.column_stack([np.zeros(20), generic(rng), np.zeros(20)]), 4


def units_apart(rng):
    X = generic(rng) * [1e-2, 1.0, 10.0, 1e3]
    return np.column_stack([X, 4 * X[:, 1], 2 * X[:, 3]]), 4


def two_rows(rng):
    return generic(rng, 2, 3), 1


CASES = {
    "duplicated columns": duplicated,
    "constant columns": constant,
    "one-hot trap": one_hot,
    "linear combination": combination,
    "wide": wide,
    "wide and deficient": wide_and_deficient,
    "as many columns as rows": square,
    "columns of zeros": zero_columns,
    "units far apart": units_apart,
    "two rows": two_rows,
}


def case(name, fit_intercept=True):
    """Design, target and rank; without an intercept only where the dependence is exact."""
    rng = np.random.default_rng(0)
    X, rank = CASES[name](rng)
    y = X[:, :2].sum(axis=1) + rng.standard_normal(len(X)) + 3.0
    if not fit_intercept:
        rank = int(np.linalg.matrix_rank(X / np.maximum(np.linalg.norm(X, axis=0), 1e-300)))
    return X, y, rank


@pytest.mark.grid(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "qr", "svd"])
def test_the_answer_is_the_one_of_least_norm(name, fit_intercept, solver):
    X, y, rank = case(name, fit_intercept)
    model = LinearRegression(fit_intercept=fit_intercept, solver=solver).fit(X, y)
    w, b, singular = moore_penrose(X, y, None, fit_intercept, rank)
    assert model.rank_ == rank
    # Directions are told apart from the rest to the rounding of the columns: cond(X) eps.
    rtol = 100 * EPS * max(singular[0] / singular[rank - 1], 10.0)
    assert_allclose(model.coef_, w, rtol=0, atol=rtol * np.abs(w).max())
    assert_allclose(model.intercept_, b, rtol=0, atol=rtol * (np.abs(y).max() + abs(b)))
    verification = model.verify(X, y)
    assert verification, str(verification)
    assert model.certificate_.kind == ("quadratic" if rank == X.shape[1] else "row space")


@pytest.mark.parametrize("name", CASES)
def test_weights_and_rows_of_weight_zero(name):
    X, y, rank = case(name)
    rng = np.random.default_rng(1)
    weights = rng.choice([0.5, 1.0, 3.0], len(y))
    if len(y) > 10:
        weights[:4] = 0.0
    model = LinearRegression().fit(X, y, sample_weight=weights)
    w, b, singular = moore_penrose(X, y, weights, True, rank)
    assert model.rank_ == rank
    rtol = 100 * EPS * max(singular[0] / singular[rank - 1], 10.0)
    assert_allclose(model.coef_, w, rtol=0, atol=rtol * np.abs(w).max())
    assert_allclose(model.intercept_, b, rtol=0, atol=rtol * (np.abs(y).max() + abs(b)))
    assert model.verify(X, y, weights)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_null_space(name, fit_intercept):
    X, y, rank = case(name, fit_intercept)
    model = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    N = model.null_space_
    d = X.shape[1]
    assert N.shape == (d, d - rank)
    assert_allclose(N.T @ N, np.eye(d - rank), atol=1e-12)
    V = X - X.mean(axis=0) if fit_intercept else X
    reach = np.linalg.norm(X, axis=0) @ np.abs(N)
    assert (np.linalg.norm(V @ N, axis=0) <= 1e-11 * reach).all()
    assert np.abs(model.coef_ @ N).max(initial=0.0) <= 1e-9 * np.linalg.norm(model.coef_)


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_singular_values(name, fit_intercept):
    X, y, _ = case(name, fit_intercept)
    model = LinearRegression(fit_intercept=fit_intercept, solver="svd").fit(X, y)
    singular = moore_penrose(X, y, None, fit_intercept)[2]
    assert model.singular_.shape == (min(X.shape),)
    assert (np.diff(model.singular_) <= 0).all()
    assert_allclose(model.singular_, singular, rtol=1e-9, atol=1e-13 * singular[0])


def test_adding_what_the_data_do_not_determine_changes_no_prediction():
    X, y, _ = case("duplicated columns")
    model = LinearRegression().fit(X, y)
    other = model.coef_ + model.null_space_ @ np.array([3.0, -5.0])
    assert_allclose(X @ other + model.intercept_, model.predict(X), rtol=0, atol=1e-12)
    assert np.linalg.norm(other) > np.linalg.norm(model.coef_)


def test_duplicates_share_their_coefficient():
    X, y, _ = case("duplicated columns")
    single = LinearRegression().fit(X[:, :4], y)
    model = LinearRegression().fit(X, y)
    assert_allclose(model.coef_[[1, 4, 5]], single.coef_[1] / 3, rtol=1e-13)
    assert_allclose(model.coef_[[0, 2, 3]], single.coef_[[0, 2, 3]], rtol=1e-13)


@pytest.mark.parametrize("distance", [1e-2, 1e-3, 1e-4])
def test_dummies_beside_columns_that_nearly_repeat_each_other(distance):
    """Dependences that hold exactly are told from those that nearly hold, by the Gram matrix."""
    rng = np.random.default_rng(5)
    n = 1500
    regions, plans = np.eye(6)[rng.integers(0, 6, n)], np.eye(2)[rng.integers(0, 2, n)]
    minutes = rng.standard_normal((n, 3))
    charges = minutes + distance * rng.standard_normal((n, 3))
    X = np.hstack([regions, minutes, plans, charges])
    y = minutes @ [1.0, -2.0, 0.5] + 0.3 * plans[:, 0] + rng.standard_normal(n)
    centred = X - X.mean(axis=0)
    expected = scipy.linalg.lstsq(centred, y - y.mean(), cond=1e-9)[0]
    model = LinearRegression().fit(X, y)
    assert model.solver_ == "cholesky"
    assert model.rank_ == X.shape[1] - 2
    # Errors of lstsq grow with the square of the condition number where residuals are large.
    assert_allclose(model.coef_, expected, atol=1e-14 / distance**2 + 1e-12)
    assert model.verify(X, y)


def test_levels_of_a_category_are_their_means():
    X, y, _ = case("one-hot trap")
    levels = X[:, :4]
    model = LinearRegression().fit(levels, y)
    means = levels.T @ y / levels.sum(axis=0)
    assert_allclose(model.predict(np.eye(4)), means, rtol=1e-13)
    assert_allclose(model.coef_.sum(), 0.0, atol=1e-13)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e12])
@pytest.mark.parametrize("solver", ["auto", "qr", "svd"])
def test_columns_that_do_not_vary_leave_the_mean(value, solver):
    X, y = np.full((9, 3), value), np.arange(9.0)
    model = LinearRegression(solver=solver).fit(X, y)
    assert_allclose(model.coef_, 0.0, atol=0)
    assert model.intercept_ == 4.0
    assert model.rank_ == 0
    assert_allclose(model.null_space_ @ model.null_space_.T, np.eye(3), atol=1e-14)
    assert_allclose(model.singular_, 0.0, atol=1e-15 * abs(value))
    assert model.certificate_.kind == "row space"
    assert model.verify(X, y)


def test_zeros_without_an_intercept():
    X, y = np.zeros((4, 2)), np.arange(4.0)
    model = LinearRegression(fit_intercept=False).fit(X, y)
    assert (model.coef_ == 0).all()
    assert model.intercept_ == 0.0
    assert model.rank_ == 0
    assert model.verify(X, y)


def test_a_column_that_barely_varies_is_not_constant():
    """Steps of one unit in the last place at 1e6 are information."""
    X = (1e6 + np.spacing(1e6) * np.arange(10))[:, None]
    y = np.arange(10.0) * 2
    model = LinearRegression().fit(X, y)
    assert model.rank_ == 1
    assert_allclose(model.coef_, 2 / np.spacing(1e6), rtol=1e-14)
    assert model.verify(X, y)


def test_ridge_of_strength_zero_is_the_same_answer():
    X, y, _ = case("duplicated columns")
    assert_allclose(Ridge(alpha=0).fit(X, y).coef_, LinearRegression().fit(X, y).coef_, rtol=1e-12)


def test_several_targets():
    X, y, rank = case("linear combination")
    Y = np.column_stack([y, -2 * y, np.ones_like(y)])
    model = LinearRegression().fit(X, Y)
    for t in range(3):
        w, b, _ = moore_penrose(X, Y[:, t], rank=rank)
        assert_allclose(model.coef_[t], w, rtol=0, atol=1e-12 * np.abs(w).max() + 1e-12)
        assert_allclose(model.intercept_[t], b, rtol=1e-12)
    assert model.verify(X, Y)


def test_a_polynomial_through_too_few_points():
    x, y = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, -1.0, 2.0])
    model = PolynomialRegression(degree=4).fit(x, y)
    w, _, _ = moore_penrose(x ** np.arange(1, 5), y, rank=2)
    assert model.rank_ == 2
    assert_allclose(model.coef_, w, rtol=1e-12)
    assert_allclose(model.predict(x), y, rtol=1e-13)
    assert model.verify(x, y)


def test_batches_find_the_same_answer():
    X, y, rank = case("linear combination")
    model = LinearRegression().partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    w, _, _ = moore_penrose(X, y, rank=rank)
    assert model.rank_ == rank
    assert_allclose(model.coef_, w, rtol=0, atol=1e-9 * np.abs(w).max())
    assert model.verify(X, y)


# --- columns in units that differ by many powers of ten -------------------------------------------
#
# Undoing the scaling of the columns must not turn rounding into coefficients. All numbers are
# integers times powers of two, so that dependences are exact and the answer is a fraction.

UNITS = 2.0 ** np.array([-20, 0, 10, 26])

# Columns beside the four independent ones: integer combinations of these, and their unit.
BESIDE = {
    "multiples": ([[0, 4, 0, 0], [0, 0, 0, 2]], [1.0, UNITS[3]]),
    "multiples in other units": ([[1, 0, 0, 0], [0, 0, 0, -1]], [2.0**30, 2.0**-30]),
    "sums across units": ([[1, 2, 3, 4], [0, 0, 1, -1]], [2.0**-15, 2.0**18]),
    "the same sum twice": ([[0, 1, 1, 0], [0, 1, 1, 0]], [2.0**25, 2.0**-25]),
    "smaller than all": ([[0, 0, 1, 1]], [2.0**-60]),
}


def far_apart(name):
    """Design, target and null space (columns that are not orthonormal, exact)."""
    rng = np.random.default_rng(0)
    Z = np.round(64 * rng.standard_normal((20, 4)))
    combinations, units = (np.array(part, dtype=float) for part in BESIDE[name])
    X = np.column_stack([Z * UNITS, (Z @ combinations.T) * units])
    null = np.vstack([-(combinations * units[:, None] / UNITS).T, np.eye(len(units))])
    return X, np.round(100 * rng.standard_normal(20)), null


def least_norm_exactly(X, y, null):
    """w - N (N^T N)^{-1} N^T w in fractions, for any w that fits best."""
    w, _ = Quadratic(X, y).minimum()
    N = [column(row) for row in null]
    across = [column_of(N, j) for j in range(len(N[0]))]
    gram = [[dot(a, b) for b in across] for a in across]
    t, _ = solve(gram, [dot(a, w[: len(N)]) for a in across])
    return np.array([float(v - dot(row, t)) for v, row in zip(w, N, strict=False)])


def column_of(rows, j):
    return [row[j] for row in rows]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("solver", ["auto", "qr", "svd"])
def test_least_norm_across_units(name, solver):
    X, y, null = far_apart(name)
    model = LinearRegression(solver=solver).fit(X, y)
    assert model.rank_ == 4
    # Every coefficient to its own digits, not to those of the largest.
    assert_allclose(model.coef_, least_norm_exactly(X, y, null), rtol=1e-10)
    assert model.verify(X, y)


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_the_null_space_across_units(name, fit):
    X, y, null = far_apart(name)
    # Sums of columns in far apart units lose the digits of the small ones in the moments.
    is_lost = (fit, name) == ("partial_fit", "sums across units")
    said = pytest.warns(ConvergenceWarning, match="proven within") if is_lost else nullcontext()
    with said:
        N = getattr(LinearRegression(), fit)(X, y).null_space_
    assert_allclose(N.T @ N, np.eye(null.shape[1]), atol=1e-14)
    V = X - X.mean(axis=0)
    reach = np.linalg.norm(X, axis=0) @ np.abs(N)
    assert (np.linalg.norm(V @ N, axis=0) <= 1e-13 * reach).all()


def test_batches_across_units():
    X, y, null = far_apart("multiples")
    model = LinearRegression().partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    assert_allclose(model.coef_, least_norm_exactly(X, y, null), rtol=1e-9)
    assert model.verify(X, y)


@pytest.mark.parametrize("shape", [(40, 6), (12, 30)], ids=["tall", "wide"])
def test_a_decomposition_that_gives_up_is_replaced(monkeypatch, shape):
    # LAPACK's divide and conquer does not converge on some tables of zeros and ones.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, shape)[:, rng.integers(0, shape[1], 2 * shape[1])].astype(float)
    y = rng.standard_normal(len(X))
    expected = LinearRegression().fit(X, y)

    def gives_up(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", gives_up)
    model = LinearRegression().fit(X, y)
    assert model.rank_ == expected.rank_
    assert_allclose(model.coef_, expected.coef_, atol=1e-12)
    assert model.verify(X, y)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "qr", "svd", *sorted(DESCENTS)])
def test_the_rank_is_told_whatever_the_solver(solver, make):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    X = np.hstack([X, X[:, :1] - X[:, 1:2]])
    y = rng.normal(size=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # textbook methods stop early
        model = LinearRegression(solver=solver).fit(make(X), y)
    assert model.rank_ == 3
    null = np.array([1.0, -1.0, 0.0, -1.0]) / np.sqrt(3)
    assert_allclose(np.abs(model.null_space_.T @ null), [1.0], rtol=1e-9)


@pytest.mark.parametrize(
    ("n", "d", "rank"), [(8, 5, 5), (8, 5, 3), (4, 9, 4), (6, 6, 1), (3, 3, 0)]
)
def test_the_generalised_inverse_satisfies_the_four_conditions_of_penrose(n, d, rank):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    found = pseudo_inverse(X)
    P = found.matrix
    assert found.rank == rank
    assert_allclose(X @ P @ X, X, atol=1e-12)
    assert_allclose(P @ X @ P, P, atol=1e-12)
    assert_allclose(X @ P, (X @ P).T, atol=1e-12)
    assert_allclose(P @ X, (P @ X).T, atol=1e-12)
    assert_allclose(P, np.linalg.pinv(X, rcond=1e-10), atol=1e-10)
    y = rng.normal(size=n)
    model = LinearRegression(fit_intercept=False).fit(X, y)
    assert_allclose(found @ y, model.coef_, atol=1e-10)
    assert f"rank {rank}" in str(found)


def test_the_tolerance_of_the_generalised_inverse_is_told_and_can_be_given():
    X = np.diag([4.0, 1.0, 1e-3])
    assert pseudo_inverse(X).tolerance == pytest.approx(16 * np.sqrt(3) * EPS * 4.0)
    few = pseudo_inverse(sp.csr_array(X), tolerance=0.01)
    assert (few.rank, few.tolerance) == (2, 0.01)
    assert_allclose(few.matrix, np.diag([0.25, 1.0, 0.0]))
    with pytest.raises(ValueError, match="not be negative"):
        pseudo_inverse(X, tolerance=-1.0)
    with pytest.raises(ValueError, match="matrix of finite numbers"):
        pseudo_inverse([[1.0, np.nan]])
