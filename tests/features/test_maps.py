"""Maps from numbers to numbers: their formulas, their names, and scikit-learn's contract."""

import pickle
from itertools import combinations

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import trueline
from trueline import (
    ConstantFeature,
    FourierFeatures,
    Interactions,
    LinearRegression,
    OrthogonalPolynomialFeatures,
    RadialBasisFeatures,
    RandomFourierFeatures,
)

MAPS = [
    ConstantFeature(),
    ConstantFeature("last"),
    RadialBasisFeatures(n_centres=5, random_state=0),
    RadialBasisFeatures("data", width="maximum", n_centres=5, random_state=0),
    OrthogonalPolynomialFeatures(),
    OrthogonalPolynomialFeatures(basis="legendre"),
    OrthogonalPolynomialFeatures(basis="chebyshev", outside="clip"),
    FourierFeatures(period=2.5, harmonics=2),
    RandomFourierFeatures(10, random_state=0),
    RandomFourierFeatures(10, kernel="laplace", random_state=0),
    Interactions(),
    Interactions(degree=3, keep=False),
]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))


# One class for the base, and the others in the slow run.
@parametrize_with_checks([MAPS[2]])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([MAPS[i] for i in (0, 4, 6, 7, 8, 10)])
def test_contract_with_more_settings(estimator, check):
    check(estimator)


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
def test_frames_keep_names_and_single_precision_stays(feature_map):
    frame = pd.DataFrame(X, columns=["age", "dose", "time"])
    fitted = clone(feature_map).set_output(transform="pandas").fit(frame)
    out = fitted.transform(frame)
    assert list(out.columns) == list(fitted.get_feature_names_out())
    assert len(set(out.columns)) == out.shape[1]
    np.testing.assert_allclose(out, clone(feature_map).fit(X).transform(X), atol=1e-14)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(frame), out)
    assert f"{out.shape[1]} out" in fitted.explain()
    single = clone(feature_map).fit_transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, out, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(
    "feature_map", [m for m in MAPS if m.__sklearn_tags__().input_tags.sparse], ids=str
)
def test_sparse_rows_give_what_dense_rows_give(feature_map):
    S = np.where(X > 0.3, X, 0.0)
    dense = clone(feature_map).fit_transform(S)
    found = clone(feature_map).fit_transform(sparse.csr_array(S))
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, dense, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
def test_model_files_hold_them(feature_map, tmp_path):
    fitted = clone(feature_map).fit(X)
    trueline.save(fitted, tmp_path / "map.trueline")
    loaded = trueline.load(tmp_path / "map.trueline")
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))


def test_a_constant_is_an_intercept():
    y = 3.0 + X @ [1.0, 2.0, 0.0]
    model = make_pipeline(ConstantFeature(), LinearRegression(fit_intercept=False)).fit(X, y)
    np.testing.assert_allclose(model[-1].coef_, [3.0, 1.0, 2.0, 0.0], atol=1e-12)


# radial basis functions ------------------------------------------------------------------------


def test_bumps_follow_their_formula_far_from_the_origin():
    far = X + 1e6  # ||x||^2 - 2 x.c + ||c||^2 would keep four digits here
    centres = far[:7]
    found = RadialBasisFeatures(centres, width=0.7).fit_transform(far)
    np.testing.assert_allclose(found, np.exp(-(cdist(X, X[:7]) ** 2) / (2 * 0.7**2)), rtol=1e-8)


def test_centres_by_grid_data_and_clusters():
    grid = RadialBasisFeatures("grid", n_centres=30).fit(X)
    assert grid.centres_.shape == (27, 3)
    np.testing.assert_array_equal(grid.centres_.min(axis=0), X.min(axis=0))
    rows = RadialBasisFeatures("data", n_centres=100, random_state=0).fit(X)
    np.testing.assert_array_equal(rows.centres_, X)  # not more than there are
    blobs = np.repeat([[0.0, 0.0], [5.0, 5.0], [0.0, 9.0]], 10, axis=0)
    means = RadialBasisFeatures("kmeans", n_centres=8, random_state=0).fit(blobs)
    order = np.lexsort(means.centres_.round(6).T[::-1])
    np.testing.assert_allclose(means.centres_[order], np.unique(blobs, axis=0), atol=1e-12)


def test_widths_by_rule():
    centres = np.array([[0.0], [1.0], [3.0]])
    nearest = RadialBasisFeatures(centres, width="nearest").fit(X[:, :1])
    assert nearest.width_ == pytest.approx(np.mean([1, 3, 1, 2, 2, 3]))
    maximum = RadialBasisFeatures(centres, width="maximum").fit(X[:, :1])
    assert maximum.width_ == pytest.approx(3.0 / np.sqrt(6.0))


@pytest.mark.parametrize("labels", [False, True])
def test_width_by_validation_has_the_smallest_leave_one_out_error(labels):
    x = np.sort(RNG.uniform(-3, 3, 80))[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * RNG.standard_normal(80)
    y = np.where(y > 0, "up", "down") if labels else y
    bumps = RadialBasisFeatures("grid", n_centres=20, width="validation").fit(x, y)
    assert bumps.width_ == bumps.widths_[np.argmin(bumps.width_errors_)]
    targets = (y[:, None] == ["down", "up"]).astype(float) if labels else y
    # Leave-one-out of the chosen width, by leaving rows out.
    phi = bumps.transform(x)
    errors = []
    for alpha in np.geomspace(1e-8, 1e4, 25):
        squares = []
        for i in range(80):
            rest = np.arange(80) != i
            centred = phi[rest] - phi[rest].mean(axis=0)
            level = targets[rest].mean(axis=0)
            gram = centred.T @ centred + alpha * np.eye(phi.shape[1])
            w = np.linalg.solve(gram, centred.T @ (targets[rest] - level))
            squares.append((level + (phi[i] - phi[rest].mean(axis=0)) @ w - targets[i]) ** 2)
        errors.append(np.mean(squares))
    assert bumps.width_errors_.min() == pytest.approx(min(errors), rel=1e-6)


def test_bumps_refuse_what_they_cannot_do():
    with pytest.raises(ValueError, match="call fit"):
        RadialBasisFeatures(width="validation").fit(X)
    with pytest.raises(ValueError, match=r"2\^3 centres"):
        RadialBasisFeatures("grid", n_centres=7).fit(X)
    with pytest.raises(ValueError, match="3 columns"):
        RadialBasisFeatures([[1.0, 2.0]]).fit(X)


# orthogonal polynomials ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, 2000])
def test_polynomials_of_high_degree_stay_orthonormal(n):
    x = np.linspace(2.0, 9.0, n)[:, None]
    P = OrthogonalPolynomialFeatures(degree=60).fit_transform(x)
    assert np.abs(P.T @ P / n - np.eye(60)).max() < 1e-11
    assert np.abs(P.mean(axis=0)).max() < 1e-11


def test_a_fit_of_degree_thirty_agrees_with_fifty_digits():
    x = np.linspace(0.0, 1.0, 101)
    y = 1.0 / (1.0 + 25.0 * (2.0 * x - 1.0) ** 2)
    model = make_pipeline(OrthogonalPolynomialFeatures(30), LinearRegression()).fit(x[:, None], y)
    new = np.array([0.013, 0.37, 0.951])
    with mpmath.workdps(60):
        V = mpmath.matrix([[mpmath.mpf(a) ** k for k in range(31)] for a in x.tolist()])
        w = mpmath.lu_solve(V.T * V, V.T * mpmath.matrix(y.tolist()))
        exact = [float(sum(w[k] * mpmath.mpf(a) ** k for k in range(31))) for a in new.tolist()]
    np.testing.assert_allclose(model.predict(new[:, None]), exact, rtol=1e-12)


@pytest.mark.parametrize(
    ("basis", "vander"), [("legendre", "legvander"), ("chebyshev", "chebvander")]
)
def test_classical_polynomials_on_the_range(basis, vander):
    x = RNG.uniform(3.0, 7.0, 50)
    found = OrthogonalPolynomialFeatures(9, basis=basis).fit_transform(x[:, None])
    t = 2 * (x - x.min()) / (x.max() - x.min()) - 1
    expected = getattr(getattr(np.polynomial, basis), vander)(t, 9)[:, 1:]
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_values_outside_the_range():
    x = np.arange(10.0)[:, None]
    clipped = OrthogonalPolynomialFeatures(outside="clip").fit(x)
    np.testing.assert_array_equal(clipped.transform([[50.0]]), clipped.transform([[9.0]]))
    with pytest.raises(ValueError, match="outside the range"):
        OrthogonalPolynomialFeatures(outside="error").fit(x).transform([[-1.0]])
    cubic = make_pipeline(OrthogonalPolynomialFeatures(), LinearRegression()).fit(x, x[:, 0] ** 3)
    assert cubic.predict([[20.0]])[0] == pytest.approx(8000.0)


def test_columns_have_no_more_polynomials_than_values():
    frame = pd.DataFrame({"size": np.arange(6.0), "rooms": [1.0, 2.0, 3.0, 2.0, 1.0, 2.0]})
    fitted = OrthogonalPolynomialFeatures(4).fit(frame)
    assert list(fitted.get_feature_names_out()[4:]) == ["P1(rooms)", "P2(rooms)"]
    assert "1 with as many as they have values" in fitted.explain()
    with pytest.raises(ValueError, match="Every column is constant"):
        OrthogonalPolynomialFeatures().fit(np.ones((5, 2)))


# waves -----------------------------------------------------------------------------------------


def test_waves_keep_their_digits_after_a_million_periods():
    waves = FourierFeatures(period=7.0, harmonics=3)
    x = np.array([[1.25], [3.5]])
    near, far = waves.fit_transform(x), waves.fit_transform(x + 7.0 * 2**40)
    np.testing.assert_allclose(far, near, atol=1e-15 * 16)
    angle = 2 * np.pi * np.arange(1, 4) * 1.25 / 7.0
    expected = np.column_stack([np.sin(angle), np.cos(angle)]).ravel()
    np.testing.assert_allclose(near[0], expected, atol=1e-15)
    assert waves.get_feature_names_out(["day"])[2] == "sin(4pi day/7)"


def test_a_period_per_column():
    waves = FourierFeatures(period=[1.0, 2.0, 3.0]).fit(X)
    np.testing.assert_allclose(
        waves.transform(X + np.array([1.0, 2.0, 3.0])), waves.transform(X), atol=1e-14
    )
    with pytest.raises(ValueError, match="one per column"):
        FourierFeatures(period=[1.0, 2.0]).fit(X)
    with pytest.raises(ValueError, match="positive"):
        FourierFeatures(period=[1.0, 2.0, -1.0]).fit(X)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_random_waves_keep_within_their_bounds(kernel):
    metric = "sqeuclidean" if kernel == "gaussian" else "cityblock"
    K = np.exp(-0.5 * cdist(X, X, metric))
    exceeded, pair = 0, 0
    for seed in range(100):
        waves = RandomFourierFeatures(300, kernel=kernel, gamma=0.5, random_state=seed)
        Z = waves.fit_transform(X)
        error = np.abs(Z @ Z.T - K)
        exceeded += error.max() > waves.error_bound(0.8, "rows")
        pair += error[0, 1] > waves.error_bound(0.8, "pair")
    assert exceeded <= 0.2 * 100
    assert pair <= 0.2 * 100
    assert waves.error_bound(0.99, "rows") > waves.error_bound(0.8, "rows")


def test_the_bound_over_a_box_solves_its_equation():
    waves = RandomFourierFeatures(100_000, gamma=0.5, random_state=0).fit(X)
    e, d, D = waves.error_bound(0.9, "box"), 3, 200_000
    scale = np.sqrt(2 * 0.5 * d) * np.linalg.norm(np.ptp(X, axis=0))
    beta = ((d / 2) ** (-d / (d + 2)) + (d / 2) ** (2 / (d + 2))) * 2 ** ((6 * d + 2) / (d + 2))
    tail = beta * (scale / e) ** (2 / (1 + 2 / d)) * np.exp(-D * e**2 / (8 * (d + 2)))
    assert tail == pytest.approx(0.1, rel=1e-6)
    assert waves.error_bound_ == waves.error_bound(0.95, "rows")  # forty rows: the smaller bound
    with pytest.raises(ValueError, match="kink"):
        RandomFourierFeatures(kernel="laplace").fit(X).error_bound(over="box")


# products --------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_products_are_those_of_scikit_learn_with_better_names(degree, kind):
    ours = Interactions(degree).fit(kind(X))
    theirs = PolynomialFeatures(degree, interaction_only=True, include_bias=False).fit(X)
    found = ours.transform(kind(X))
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, theirs.transform(X), rtol=1e-14)
    names = [" * ".join(p) for k in (2, 3)[: degree - 1] for p in combinations("abc", k)]
    assert list(ours.get_feature_names_out(list("abc")))[3:] == names


def test_products_by_name_or_position():
    frame = pd.DataFrame(X, columns=["age", "dose", "time"])
    chosen = Interactions(products=[("age", "dose", "time"), ("dose", "dose"), (0, 2)], keep=False)
    found = chosen.fit_transform(frame)
    np.testing.assert_allclose(found, np.column_stack([X.prod(1), X[:, 1] ** 2, X[:, 0] * X[:, 2]]))
    assert list(chosen.get_feature_names_out()) == [
        "age * dose * time",
        "dose * dose",
        "age * time",
    ]
    with pytest.raises(ValueError, match="no column 'weight'.*age, dose, time"):
        Interactions(products=[("weight", "age")]).fit(frame)
    with pytest.raises(ValueError, match="neither a name nor a position"):
        Interactions(products=[(0, 9)]).fit(X)
