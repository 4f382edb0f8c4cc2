"""Data and parameters that nobody should have given: a right answer, or an error that helps.

Never a wrong number, never a warning from the depths. Errors are matched on the part that tells
what to do.
"""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from rational import Quadratic
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from trueline import (
    ElasticNetCV,
    Lasso,
    LassoCV,
    LinearRegression,
    LinearRegressor,
    MultiTaskLassoCV,
    PolynomialRegression,
    Ridge,
    RidgeCV,
    regularization_path,
)

MODELS = {
    "least squares": LinearRegression(),
    "nonnegative": LinearRegression(positive=True),
    "QR": LinearRegression(solver="qr"),
    "conjugate gradients": LinearRegression(solver="conjugate_gradient"),
    "ridge": Ridge(),
    "ridge, kernel": Ridge(solver="kernel"),
    "ridge, conjugate gradients": Ridge(solver="conjugate_gradient"),
    "chosen by leave-one-out": RidgeCV(),
    "chosen by folds": RidgeCV(cv=3),
    "lasso": LinearRegressor(penalty="l1", alpha=0.1),
    "Huber": LinearRegressor(loss="huber"),
    "polynomial": PolynomialRegression(1),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))


def line(n=12, d=2, seed=0):
    """Data on a plane: coefficients 1, 2, ... and intercept 3."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, X @ np.arange(1.0, d + 1) + 3.0


def refuses(model, *data, says, error=ValueError, **keywords):
    with pytest.raises(error, match=re.compile(says, re.DOTALL)):
        clone(model).fit(*data, **keywords)


# --- numbers that are none ----------------------------------------------------------------------


@every_model
@pytest.mark.parametrize(("bad", "says"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_and_infinity(model, bad, says):
    for where, name in enumerate(("X", "y", "sample_weight")):
        X, y = line()
        weights = np.ones(12)
        (X[:, 0], y, weights)[where][5] = bad
        refuses(model, X, y, sample_weight=weights, says=f"Input {name} contains {says}")


@pytest.mark.grid(2)
@pytest.mark.parametrize("where", ["X", "y", "weights"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), RidgeCV()], ids=str)
def test_one_bad_number_in_a_large_array(model, where, bad):
    """Large arrays are not searched beforehand: the sums tell."""
    X, y = line(260_000)
    weights = np.ones(len(y))
    {"X": X[:, 0], "y": y, "weights": weights}[where][-1] = bad
    says = "sample_weight" if where == "weights" else f"Input {where} contains"
    refuses(model, X, y, sample_weight=weights, says=says)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_without_weight_must_be_numbers_too(bad):
    X, y = line()
    X[3, 0] = bad
    refuses(LinearRegression(), X, y, sample_weight=np.arange(12) != 3, says="Input X contains")


def test_infinities_that_cancel_in_a_sum():
    X, y = line()
    X[2, 0], X[3, 0] = np.inf, -np.inf
    refuses(LinearRegression(), X, y, says="Input X contains infinity")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_bad_numbers_in_sparse_matrices(storage, bad):
    X, y = line()
    X[2, 0] = bad
    refuses(LinearRegression(), storage(X), y, says="contains")


@every_model
def test_predictions_of_bad_rows_are_refused(model):
    fitted = clone(model).fit(*line())
    with pytest.raises(ValueError, match="contains NaN"):
        fitted.predict([[np.nan, 1.0]])


# --- shapes -------------------------------------------------------------------------------------


@every_model
def test_shapes(model):
    X, y = line()
    refuses(model, X[:0], y[:0], says="0 sample.*minimum of 1 is required")
    refuses(model, X[:, :0], y, says="0 feature.*minimum of 1 is required")
    refuses(model, y, y, says="Expected 2D array, got 1D array.*[Rr]eshape")
    refuses(model, X[:, :, None], y, says="dim 3|3 dim")
    refuses(model, X, y[:, None, None], says="dim 3|3 dim")
    refuses(model, X, y[:-1], says=r"inconsistent numbers of samples: \[12, 11\]")
    refuses(model, X, y, sample_weight=np.ones(11), says=r"expected \(12,\)")
    refuses(model, X, y, sample_weight=np.ones((12, 1)), says="1D array or scalar")
    with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 2"):
        clone(model).fit(X, y).predict(np.ones((2, 3)))


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), RidgeCV(), PolynomialRegression()])
def test_one_row_is_its_own_mean(model):
    model = clone(model).fit([[1.0, 2.0]], [3.0])
    assert_array_equal(model.predict([[1.0, 2.0]]), [3.0])
    assert not model.coef_.any()
    assert model.verify([[1.0, 2.0]], [3.0])


def test_one_row_without_an_intercept_is_met_by_the_shortest_coefficients():
    model = LinearRegression(fit_intercept=False).fit([[3.0, 4.0]], [5.0])
    assert_allclose(model.coef_, [0.6, 0.8], rtol=1e-15)


@every_model
def test_one_column(model):
    X, y = line(12, 1)
    model = clone(model).fit(X, y)
    assert model.coef_.shape == (1,)
    assert model.verify(X, y)


@every_model
def test_fitted_again_on_another_shape(model):
    model = clone(model).fit(*line(12, 2))
    X, y = line(15, 3, seed=1)
    model.fit(X, y)
    assert model.n_features_in_ == 3
    assert_array_equal(model.coef_, clone(model).fit(X, y).coef_)
    assert model.verify(X, y)


@every_model
def test_a_constant_target(model):
    X, _ = line()
    model = clone(model).fit(X, np.full(12, 0.1))
    assert_allclose(model.coef_, 0.0, atol=1e-16)
    assert_allclose(model.intercept_, 0.1, rtol=1e-15)
    assert model.verify(X, np.full(12, 0.1))


# --- scales -------------------------------------------------------------------------------------

SCALES = [1e-300, 1e-160, 1e-100, 1e-50, 1e50, 1e100, 1e160, 1e300]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("solver", ["auto", "qr", "svd", "cholesky"])
def test_scales_of_the_columns(scale, solver):
    X, y = line()
    X = X * [scale, 1.0]
    model = LinearRegression(solver=solver).fit(X, y)
    assert_allclose(model.coef_, [1 / scale, 2.0], rtol=1e-14)
    assert_allclose(model.intercept_, 3.0, rtol=1e-14)
    assert model.verify(X, y)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("model", [LinearRegression(), LinearRegression(positive=True), Ridge(0.0)])
def test_scales_of_the_target(scale, model):
    X, y = line()
    model = clone(model).fit(X, y * scale)
    assert_allclose(model.coef_, [scale, 2 * scale], rtol=1e-14)
    assert_allclose(model.intercept_, 3 * scale, rtol=1e-14)
    assert model.verify(X, y * scale)


def test_every_column_in_its_own_extreme():
    X, y = line(20, 5)
    scales = np.array([1e-300, 1e300, 1.0, 1e-200, 1e200])
    model = LinearRegression().fit(X * scales, y)
    assert_allclose(model.coef_ * scales, np.arange(1, 6), rtol=1e-14)
    assert model.verify(X * scales, y)


@pytest.mark.grid(2)
@pytest.mark.parametrize(
    "scales", [(1e-300, 1e300), (1e-200, 1.0), (1e-300, 1e-300), (1e-140, 1e5)]
)
@pytest.mark.parametrize("alpha", [1e-280, 1e-50, 1.0])
@pytest.mark.parametrize("solver", ["auto", "qr", "svd", "cholesky"])
def test_penalised_columns_in_extreme_units(scales, alpha, solver):
    """A column that the penalty holds down keeps its small coefficient, to all digits."""
    X, y = line()
    X = X * scales
    model = Ridge(alpha, solver=solver).fit(X, y)
    exact = Quadratic(X, y, alpha=alpha).minimum()[0]
    assert_allclose(model.coef_, [float(value) for value in exact[:2]], rtol=1e-9)
    assert model.verify(X, y)


def test_penalised_coefficients_below_all_doubles_are_zero():
    X, y = line()
    X = X * [1e-300, 1.0]
    model = Ridge(1e50).fit(X, y)  # the first would be about 1e-350, without any effect
    exact = Quadratic(X, y, alpha=1e50).minimum()[0]
    assert model.coef_[0] == float(exact[0]) == 0.0
    assert_allclose(model.coef_[1], float(exact[1]), rtol=1e-13)
    assert model.verify(X, y)


def test_coefficients_that_no_double_can_hold():
    X, y = line()
    refuses(LinearRegression(), X * 1e-300, y * 1e100, says="power of ten and fit again")
    refuses(LinearRegression(), X * 1e300, y * 1e-100, says="power of ten and fit again")
    refuses(LinearRegression(), X * 1e-310, y, says="power of ten and fit again")


def test_subnormal_numbers():
    X, _ = line()
    X = X * 1e-310
    y = X @ [1.0, 2.0]
    model = LinearRegression().fit(X, y)
    # Subnormals themselves have 13 digits here, and so has the plane that they lie on.
    assert_allclose(model.coef_, [1.0, 2.0], rtol=1e-12)
    assert model.verify(X, y)


@pytest.mark.grid(2)
@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("of", ["X", "y"])
@every_model
def test_beyond_squares_the_answer_is_right_or_refused(model, scale, of):
    X, y = line()
    X_given, y_given = (X * scale, y) if of == "X" else (X, y * scale)
    try:
        fitted = clone(model).fit(X_given, y_given)
    except ValueError as error:
        assert "power of ten" in str(error)  # noqa: PT017 - either is right
        return
    assert np.isfinite(fitted.coef_).all()
    assert fitted.verify(X_given, y_given)
    if isinstance(model, LinearRegression):
        factor = 1 / scale if of == "X" else scale
        assert_allclose(fitted.coef_, np.array([1.0, 2.0]) * factor, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-60, 1e60, 1e-200, 1e200])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge()], ids=str)
def test_coefficients_beyond_single_precision_stay_in_double(model, scale):
    X, y = line()
    X = X.astype(np.float32)
    fitted = model.fit(X, y * scale)
    assert fitted.coef_.dtype == np.float64
    assert_allclose(fitted.coef_, clone(model).fit(X.astype(float), y * scale).coef_, rtol=1e-12)
    assert fitted.verify(X, y * scale)


def test_batches_beyond_squares():
    X, y = line()
    with pytest.raises(ValueError, match="power of ten before partial_fit"):
        LinearRegression().partial_fit(X * 1e200, y)


# --- weights ------------------------------------------------------------------------------------


@every_model
def test_weights(model):
    X, y = line()
    refuses(model, X, y, sample_weight=np.zeros(12), says="zero")
    refuses(model, X, y, sample_weight=-np.ones(12), says="Negative values.*sample_weight")
    refuses(model, X, y, sample_weight=np.full(12, 1e-200), says="Multiply all weights")
    refuses(model, X, y, sample_weight=np.full(12, 1e200), says="Multiply all weights")
    refuses(model, X, y, sample_weight="heavy", says="could not convert string")


@pytest.mark.grid(2)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("large", [1e20, 1e90, 1e250])
@every_model
def test_rows_without_weight_may_hold_anything_finite(model, storage, large):
    if isinstance(model, PolynomialRegression):
        pytest.skip("powers are formed of all rows")
    if isinstance(model, RidgeCV) and model.cv:
        pytest.skip("leaving rows out moves the folds")
    X, y = line()
    kept = np.arange(12) != 3
    expected = clone(model).fit(storage(X[kept]), y[kept])
    X[3], y[3] = [large, -1e50 * large], large
    given = X.copy()
    fitted = clone(model).fit(storage(X), y, sample_weight=kept.astype(float))
    assert_allclose(fitted.coef_, expected.coef_, rtol=1e-7)
    assert_allclose(fitted.intercept_, expected.intercept_, rtol=1e-7)
    assert fitted.verify(storage(X), y, kept.astype(float))
    # Nor do they loosen what is proven: steps and bounds are those of the other rows.
    assert fitted.certificate_.gap <= 1.5 * expected.certificate_.gap + 1e-20
    assert_array_equal(X, given)


@pytest.mark.parametrize("solver", ["conjugate_gradient"])
def test_rows_without_weight_do_not_widen_a_bounded_proof(solver):
    rng = np.random.default_rng(0)
    X = sp.csr_array(np.where(rng.random((700, 520)) < 0.02, rng.standard_normal((700, 520)), 0.0))
    y = rng.standard_normal(700)
    weights = np.ones(700)
    weights[3] = 0.0
    model = LinearRegression(solver=solver)
    with pytest.warns(ConvergenceWarning, match="proven within"):
        gap = model.fit(X, y, weights).certificate_.gap
    y[3] = 1e90
    with pytest.warns(ConvergenceWarning, match="proven within"):
        assert model.fit(X, y, weights).certificate_.gap == gap
    assert model.certificate_.kind == "bounded"
    assert model.verify(X, y, weights)


# --- types --------------------------------------------------------------------------------------


def test_integers_beyond_the_doubles_are_rounded_as_doubles_are():
    X = np.array([[2**53 + 1], [2**53 + 3], [2**60 + 7], [5]])
    y = np.arange(4)
    model = LinearRegression().fit(X, y)
    assert_array_equal(model.coef_, LinearRegression().fit(X.astype(float), y.astype(float)).coef_)


def test_booleans_and_small_integers_count_exactly():
    X, y = np.array([[True], [False], [True], [False]]), np.array([True, False, True, True])
    model = LinearRegression().fit(X, y)
    assert_allclose([model.coef_[0], model.intercept_], [0.5, 0.5], rtol=1e-15)
    small = np.array([[100], [127], [-128]], dtype=np.int8)
    model = LinearRegression().fit(small, small[:, 0])
    assert_allclose(model.coef_, [1.0], rtol=1e-15)


def test_objects_that_are_numbers():
    X, y = line()
    model = LinearRegression().fit(X.astype(object), y.astype(object))
    assert_array_equal(model.coef_, LinearRegression().fit(X, y).coef_)


@every_model
def test_what_is_not_a_number(model):
    X, y = line()
    refuses(model, [["a", "b"], ["c", "d"]], [1, 2], says="Column 0 of X holds text")
    refuses(model, X, ["a"] * 12, says="predicts numbers, but y|could not convert string to float")
    refuses(model, X.astype(complex), y, says="Complex data not supported")
    refuses(model, X, y.astype(complex), says="Complex data not supported")
    refuses(model, X, None, says="requires y to be passed|y cannot be None")


# --- sparse storage -----------------------------------------------------------------------------


def untidy_sparse(X):
    """The same matrix with explicit zeros, halves that add up, unsorted 64-bit indices."""
    n, d = X.shape
    columns = np.tile(np.r_[np.arange(d)[::-1], 0, np.arange(d)], n)
    data = np.column_stack([X[:, ::-1] / 2, np.zeros(n), X / 2]).ravel()
    starts = np.arange(n + 1) * (2 * d + 1)
    return sp.csr_array((data, columns.astype(np.int64), starts.astype(np.int64)), shape=(n, d))


@pytest.mark.grid(1)
@pytest.mark.parametrize("convert", ["csr", "csc", "coo"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "polynomial"])
def test_untidy_sparse_matrices(name, convert):
    X, y = line()
    X[X < -0.5] = 0.0
    untidy = untidy_sparse(X).asformat(convert)
    kept = untidy.copy()
    expected = clone(MODELS[name]).fit(sp.csr_array(X), y)
    try:
        model = clone(MODELS[name]).fit(untidy, y)
    except ValueError as error:  # scikit-learn's own limit for some of its formats
        assert "int64 indices" in str(error)  # noqa: PT017
        return
    assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert model.verify(untidy, y)
    assert_allclose(model.predict(untidy), expected.predict(X), rtol=1e-12)
    assert_array_equal(untidy.data, kept.data)


def test_sparse_polynomials_are_refused():
    X, y = line()
    refuses(PolynomialRegression(), sp.csr_array(X), y, says="[Ss]parse.*dense", error=TypeError)


def test_sparse_matrices_without_entries():
    model = LinearRegression().fit(sp.csr_array((5, 3)), np.arange(5.0))
    assert not model.coef_.any()
    assert model.intercept_ == 2.0


# --- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "strong", None])
@pytest.mark.parametrize(
    "make",
    [Ridge, lambda a: LinearRegressor(alpha=a), lambda a: RidgeCV(alphas=a)],
    ids=["Ridge", "LinearRegressor", "RidgeCV"],
)
def test_strengths_out_of_range(make, alpha):
    refuses(make(alpha), *line(), says="'alphas?' parameter .* must be .*in the range")


@pytest.mark.parametrize("alpha", [[-1.0], [np.nan], [np.inf]])
def test_strengths_out_of_range_in_arrays(alpha):
    refuses(Ridge(alpha), *line(), says="must be finite and not negative")
    refuses(LinearRegressor(alpha=alpha), *line(), says="must be finite and not negative")
    refuses(RidgeCV(alphas=[1.0, *alpha]), *line(), says="must be > 0|must be finite")


@pytest.mark.parametrize("alpha", [[1.0, 2.0, 3.0], []])
def test_strengths_of_the_wrong_length(alpha):
    refuses(Ridge(alpha), *line(), says="Number of targets and number of penalties")
    for penalty in ("l2", "l1", "elastic_net"):
        model = LinearRegressor(penalty=penalty, alpha=alpha)
        refuses(model, *line(), says=r"one per target \(shape \(1,\)\), one per coefficient")


def test_no_strength_to_try():
    refuses(RidgeCV(alphas=[]), *line(), says="give at least one strength")


def test_unknown_names():
    refuses(LinearRegression(solver="magic"), *line(), says="'solver' parameter .* must be a str")
    refuses(LinearRegressor(loss="magic"), *line(), says="'loss' parameter")
    refuses(PolynomialRegression(0), *line(), says="'degree' parameter")


# --- objects ------------------------------------------------------------------------------------


@every_model
def test_pickles_and_clones(model):
    X, y = line()
    fitted = clone(model).fit(X, y)
    for kept in (pickle.loads(pickle.dumps(fitted)), fitted):
        assert_array_equal(kept.predict(X), fitted.predict(X))
        assert kept.verify(X, y)
    unfitted = pickle.loads(pickle.dumps(model))
    assert unfitted.get_params().keys() == model.get_params().keys()
    assert not hasattr(clone(fitted), "coef_")


@pytest.mark.parametrize("solver", ["qr", "svd", "conjugate_gradient"])
def test_rows_cannot_be_added_where_none_were_kept(solver):
    X, y = line()
    model = Ridge(solver=solver).fit(X, y)
    with pytest.raises(ValueError, match="Fit with solver='cholesky', or start with partial_fit"):
        model.partial_fit(X, y)


def test_rows_can_be_added_to_a_fit_that_kept_its_moments():
    X, y = line()
    model = LinearRegression(solver="cholesky").fit(X[:6], y[:6]).partial_fit(X[6:], y[6:])
    assert_allclose(model.coef_, [1.0, 2.0], rtol=1e-13)
    with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 2"):
        model.partial_fit(np.ones((4, 3)), np.ones(4))
    with pytest.raises(ValueError, match="y has 2 targets; the batches before had 1"):
        model.partial_fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "search",
    [RidgeCV(cv=[]), LassoCV(cv=[]), ElasticNetCV(cv=[]), MultiTaskLassoCV(cv=[])],
    ids=lambda search: type(search).__name__,
)
def test_no_folds_at_all(search):
    X, y = line()
    y = np.column_stack([y, y]) if "Multi" in type(search).__name__ else y
    refuses(search, X, y, says="cv gives no folds: let it be a number of folds")


def test_no_mixtures_at_all():
    refuses(ElasticNetCV(l1_ratio=[]), *line(), says="l1_ratio is empty: give at least one mixture")


def test_weights_of_columns_that_are_none():
    X, y = line()
    refuses(Lasso(feature_weights=[1.0, -2.0]), X, y, says="got -2 for column 1")
    refuses(Lasso(feature_weights=[1.0]), X, y, says=r"got shape \(1,\)")


def test_a_path_that_ends_nowhere():
    with pytest.raises(ValueError, match="eps must be positive"):
        regularization_path(*line(), eps=0)


@pytest.mark.parametrize("search", [LassoCV(), ElasticNetCV(), MultiTaskLassoCV()], ids=str)
def test_searches_among_numbers_beyond_all_measure(search):
    X, y = line(30)
    y = np.column_stack([y, y]) if "Multi" in type(search).__name__ else y
    refuses(search, X * 1e200, y, says="leave the range of double precision.*power of ten")


def test_infinity_is_located_and_a_missing_target_left_out():
    X, y = line()
    X[2, 0] = np.inf
    refuses(LinearRegression(), X, y, says="column 0 in 1 row. Correct these values")
    X, y = line()
    y[5] = np.nan
    refuses(LinearRegression(), X, y, says="Leave out the rows without a target")
