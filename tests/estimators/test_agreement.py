"""The same numbers, shapes and types as scikit-learn's classes of the same names.

Both sides solve the same well-conditioned problem, so coefficients agree to the accuracy of the
other side (1e-10 relative to the largest coefficient, mostly far better).
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model
from sklearn.utils.fixes import parse_version

import trueline
from trueline.estimators.regression.ridge import RIDGE_SOLVERS

TIGHT = 1e-10
NEWEST = parse_version(sklearn.__version__) >= parse_version("1.9")
SHAPES = {"tall": (40, 5), "square": (6, 6), "wide": (6, 15), "one column": (20, 1)}


def data(shape="tall", targets=1, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    n, d = SHAPES[shape]
    X = rng.standard_normal((n, d))
    if sparse:
        X[rng.random((n, d)) < 0.6] = 0.0
    Y = X @ rng.standard_normal((d, targets)) + rng.standard_normal((n, targets)) + 3.0
    return X, Y


def target(Y, shape):
    return {"1-D": Y[:, 0], "(n, 1)": Y[:, :1], "(n, k)": Y}[shape]


def weights_of(kind, n):
    rng = np.random.default_rng(1)
    return {
        "none": None,
        "float": rng.uniform(0.2, 3.0, n),
        "integer": rng.integers(0, 3, n),
        "scalar": 2.5,
    }[kind]


def assert_same(ours, theirs, X, rtol=TIGHT):
    """Coefficients, intercepts and predictions: values, shapes, dtypes."""
    size = np.abs(theirs.coef_).max()
    assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=rtol * size)
    level = np.abs(theirs.intercept_).max() + size
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=rtol * level)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.coef_.dtype == theirs.coef_.dtype
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    assert np.ndim(ours.intercept_) > 0 or isinstance(ours.intercept_, (float, np.floating))
    assert ours.n_features_in_ == theirs.n_features_in_
    predicted, expected = ours.predict(X), theirs.predict(X)
    assert predicted.shape == expected.shape
    assert predicted.dtype == expected.dtype
    assert_allclose(predicted, expected, rtol=0, atol=10 * rtol * np.abs(expected).max())


def both(name, **parameters):
    return getattr(trueline, name)(**parameters), getattr(linear_model, name)(**parameters)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["none", "float", "integer", "scalar"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge"])
def test_shapes_weights_and_intercepts(name, fit_intercept, kind, shape):
    X, Y = data(shape)
    weights = weights_of(kind, len(X))
    for model in (pair := both(name, fit_intercept=fit_intercept)):
        model.fit(X, Y[:, 0], sample_weight=weights)
    assert_same(*pair, X)


@pytest.mark.parametrize("shape", ["1-D", "(n, 1)", "(n, k)"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV"])
def test_targets(name, fit_intercept, shape):
    X, Y = data(targets=3)
    y = target(Y, shape)
    for model in (pair := both(name, fit_intercept=fit_intercept)):
        model.fit(X, y)
    assert_same(*pair, X)


@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1.0, 1e8, [2.0], np.array([0.1, 1.0, 10.0])])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_strengths(alpha, fit_intercept):
    X, Y = data(targets=3)
    ours, theirs = both("Ridge", alpha=alpha, fit_intercept=fit_intercept)
    if isinstance(alpha, list):  # not all releases of scikit-learn take lists
        theirs.set_params(alpha=np.array(alpha))
    assert_same(ours.fit(X, Y), theirs.fit(X, Y), X)


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_positive(name, fit_intercept, weighted):
    X, Y = data()
    ours, theirs = both(name, fit_intercept=fit_intercept, positive=True)
    weights = weights_of("float", len(X)) if weighted else None
    if name == "Ridge":
        theirs.set_params(tol=1e-12)  # L-BFGS: as far as it goes
    ours.fit(X, Y[:, 0], sample_weight=weights)
    theirs.fit(X, Y[:, 0], sample_weight=weights)
    assert_same(ours, theirs, X, rtol=TIGHT if name == "LinearRegression" else 1e-7)
    assert (ours.coef_ == 0).any()
    assert (ours.coef_ >= 0).all()


SPARSE = {
    "CSR array": sp.csr_array,
    "CSC array": sp.csc_array,
    "COO array": sp.coo_array,
    "CSR matrix": sp.csr_matrix,
    "CSC matrix": sp.csc_matrix,
    "COO matrix": sp.coo_matrix,
}


@pytest.mark.grid(2)
@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV"])
def test_sparse_input_gives_the_dense_answer(name, weighted, fit_intercept, kind):
    X, Y = data(sparse=True, targets=2)
    weights = weights_of("float", len(X)) if weighted else None
    ours, theirs = both(name, fit_intercept=fit_intercept)
    ours.fit(SPARSE[kind](X), Y, sample_weight=weights)
    theirs.fit(X, Y, sample_weight=weights)
    assert_same(ours, theirs, X)
    assert_allclose(ours.predict(SPARSE[kind](X)), theirs.predict(X), rtol=1e-9)


DTYPES = ["float64", "float32", "int64", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV"])
def test_dtypes(name, dtype):
    if (name, dtype) == ("RidgeCV", "float32") and not NEWEST:
        pytest.skip("older releases of scikit-learn answer in double precision here")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if dtype == "bool" else 9, (40, 3)).astype(dtype)
    y = X.astype(float) @ [1.0, 2.0, -1.0] + rng.standard_normal(40)
    for model in (pair := both(name)):
        model.fit(X, y)
    # scikit-learn computes in single precision where the input has it.
    assert_same(*pair, X, rtol=1e-4 if dtype == "float32" else TIGHT)


def test_half_precision_is_taken_as_double():
    X, Y = data()
    half = X.astype(np.float16)
    ours = trueline.LinearRegression().fit(half, Y[:, 0])
    assert_array_equal(
        ours.coef_, trueline.LinearRegression().fit(half.astype(float), Y[:, 0]).coef_
    )
    assert ours.coef_.dtype == np.float64


def test_single_precision_is_the_double_answer_rounded():
    X, Y = data()
    X = X.astype(np.float32)
    exact = trueline.LinearRegression().fit(X.astype(float), Y[:, 0])
    single = trueline.LinearRegression().fit(X, Y[:, 0])
    assert_array_equal(single.coef_, exact.coef_.astype(np.float32))
    assert single.intercept_ == np.float32(exact.intercept_)


def memmapped(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "C": lambda X, _: np.ascontiguousarray(X),
    "Fortran": lambda X, _: np.asfortranarray(X),
    "every second row": lambda X, _: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X, _: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X, _: X[::-1].copy()[::-1],
    "read-only": lambda X, _: read_only(X),
    "memory-mapped": memmapped,
    "list": lambda X, _: X.tolist(),
    "byte-swapped": lambda X, _: X.astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV", "PolynomialRegression"])
def test_layout_in_memory_does_not_matter(name, layout, tmp_path):
    X, Y = data()
    model = getattr(trueline, name)()
    plain = model.fit(X, Y[:, 0]).coef_.copy()
    laid_out = model.fit(LAYOUTS[layout](X, tmp_path), Y[:, 0]).coef_
    assert_allclose(laid_out, plain, rtol=1e-13)


DIRECT = ["auto", "svd", "cholesky", "qr", "kernel"]
ITERATIVE = ["lsqr", "sparse_cg", "sag", "saga", "conjugate_gradient"]
TEXTBOOK = ["gradient_descent", "stochastic_gradient", "mini_batch"]


def test_every_solver_of_ridge_is_listed_here():
    assert {*DIRECT, *ITERATIVE, *TEXTBOOK, "lbfgs"} == set(RIDGE_SOLVERS)


@pytest.mark.grid(2)
@pytest.mark.parametrize("solver", DIRECT + ITERATIVE)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_solvers_of_ridge(solver, fit_intercept, sparse):
    X, Y = data(targets=2, sparse=sparse)
    expected = linear_model.Ridge(solver="cholesky", fit_intercept=fit_intercept).fit(X, Y)
    ours = trueline.Ridge(solver=solver, fit_intercept=fit_intercept, tol=1e-9)
    ours.fit(sp.csr_array(X) if sparse else X, Y)
    assert_same(ours, expected, X, rtol=TIGHT if solver in DIRECT else 1e-7)


@pytest.mark.parametrize("solver", TEXTBOOK)
def test_textbook_solvers_come_within_their_tolerance(solver):
    X, Y = data()
    expected = linear_model.Ridge().fit(X, Y[:, 0])
    ours = trueline.Ridge(solver=solver, random_state=0, max_iter=3000, tol=0.06).fit(X, Y[:, 0])
    assert_same(ours, expected, X, rtol=0.02)


def test_ridge_with_lbfgs_means_positive():
    X, Y = data()
    lbfgs = trueline.Ridge(solver="lbfgs", positive=True).fit(X, Y[:, 0])
    auto = trueline.Ridge(positive=True).fit(X, Y[:, 0])
    assert_array_equal(lbfgs.coef_, auto.coef_)


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV", "PolynomialRegression"])
def test_data_frames_give_names(name, frame):
    X, Y = data()
    names = [f"x{j}" for j in range(X.shape[1])]
    table = FRAMES[frame](dict(zip(names, X.T, strict=True)))
    model = getattr(trueline, name)().fit(table, Y[:, 0])
    assert_allclose(model.coef_, getattr(trueline, name)().fit(X, Y[:, 0]).coef_, rtol=1e-13)
    assert_array_equal(model.feature_names_in_, np.array(names, dtype=object))
    assert_allclose(model.predict(table), model.fit(X, Y[:, 0]).predict(X), rtol=1e-12)
    assert not hasattr(model, "feature_names_in_")  # the second fit had none


@pytest.mark.parametrize("frame", FRAMES)
def test_names_that_do_not_match_are_an_error(frame):
    X, Y = data()
    columns = dict(zip("abcde", X.T, strict=True))
    model = trueline.LinearRegression().fit(FRAMES[frame](columns), Y[:, 0])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(FRAMES[frame](dict(zip("edcba", X.T, strict=True))))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def test_series_as_target_and_weights():
    X, Y = data()
    series = pd.Series(Y[:, 0], name="price")
    weights = pd.Series(weights_of("float", len(X)))
    ours = trueline.Ridge().fit(X, series, sample_weight=weights)
    theirs = linear_model.Ridge().fit(X, series, sample_weight=weights)
    assert_same(ours, theirs, X)


CV = {
    "leave-one-out": {},
    "leave-one-out, one strength": {"alphas": [2.0]},
    "scalar": {"alphas": 2.0},
    "store": {"store_cv_results": True},
    "scoring": {"scoring": "neg_mean_absolute_error"},
    "scoring, store": {"scoring": "neg_mean_squared_error", "store_cv_results": True},
    "per target": {"alpha_per_target": True},
    "per target, scoring": {"alpha_per_target": True, "scoring": "r2"},
    "folds": {"cv": 5},
    "folds, scoring": {"cv": 5, "scoring": "neg_median_absolute_error"},
    "no intercept": {"fit_intercept": False, "store_cv_results": True},
    "svd": {"gcv_mode": "svd"},
}


@pytest.mark.grid(2)
@pytest.mark.parametrize("setting", CV)
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("weighted", [True, False])
def test_ridge_cv(setting, shape, targets, weighted):
    if shape == "wide" and "folds" in setting:
        pytest.skip("five folds of six rows leave tests of one row, whose R^2 does not exist")
    if targets == 1 and setting == "per target, scoring":
        pytest.skip("scikit-learn expects several targets here")
    X, Y = data(shape, targets)
    y = Y[:, 0] if targets == 1 else Y
    weights = weights_of("float", len(X)) if weighted else None
    parameters = {"alphas": [1e-2, 1.0, 1e2], **CV[setting]}
    ours, theirs = both("RidgeCV", **parameters)
    ours.fit(X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    assert_array_equal(ours.alpha_, theirs.alpha_)
    assert_same(ours, theirs, X)
    assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-9)
    assert np.shape(ours.alpha_) == np.shape(theirs.alpha_)
    if hasattr(theirs, "cv_results_"):
        assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-8, atol=1e-12)
    else:
        assert not hasattr(ours, "cv_results_")


def test_attributes_of_linear_regression():
    X, Y = data()
    for model in (pair := both("LinearRegression")):
        model.fit(X, Y[:, 0])
    ours, theirs = pair
    assert ours.rank_ == theirs.rank_
    assert_allclose(ours.singular_, theirs.singular_, rtol=1e-12)
    assert ours.score(X, Y[:, 0]) == pytest.approx(theirs.score(X, Y[:, 0]), rel=1e-12)


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "RidgeCV"])
def test_parameters_are_those_of_scikit_learn_and_more(name):
    ours, theirs = (model.get_params() for model in both(name))
    assert theirs.items() <= {key: value for key, value in ours.items() if key in theirs}.items()


@pytest.mark.parametrize("power", [-150, -60, 0, 60, 150])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_least_norm_whatever_the_unit(power, fit_intercept):
    """Wide data: multiplying X by 10^p divides the coefficients, also where squares overflow."""
    X, Y = data("wide")
    X[:, 0] *= 100.0  # least norm in other units than these would give another answer
    expected = linear_model.LinearRegression(fit_intercept=fit_intercept).fit(X, Y[:, 0])
    scale = 2.0 ** round(power / np.log10(2))
    ours = trueline.LinearRegression(fit_intercept=fit_intercept).fit(X * scale, Y[:, 0])
    assert_allclose(ours.coef_ * scale, expected.coef_, rtol=1e-9, atol=1e-12)
    assert ours.verify(X * scale, Y[:, 0])
