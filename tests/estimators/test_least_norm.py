"""Without a penalty, where columns are dependent: the answer of least norm, and what is told of it.

    scores           those of the optimum                  scikit-learn on independent columns
    coefficients     of least norm with these scores       Moore-Penrose, by NumPy's pinv
    rank_            of the centred design                 NumPy's matrix_rank
    null_space_      orthonormal, X_c null_space_ = 0, and orthogonal to the coefficients

The intercept is not part of the norm. Least squares is tested by test_rank.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model

from trueline import (
    GammaRegressor,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
    load,
    save,
)

rng = np.random.default_rng(0)
N = 300
BASE = rng.standard_normal((N, 4))
GROUP = rng.integers(4, size=N)
SCORE = BASE @ [1.0, -1.0, 0.5, 0.3] + 0.3

# Columns, and as many of them that are independent (beside the intercept).
DESIGNS = {
    "a copy": (np.column_stack([BASE, BASE[:, 1]]), [0, 1, 2, 3]),
    "sums and multiples": (
        np.column_stack([BASE, BASE[:, 0] + BASE[:, 1], 2 * BASE[:, 2]]),
        [0, 1, 2, 3],
    ),
    "every level of a category": (
        np.column_stack([BASE[:, :2], np.eye(4)[GROUP]]),
        [0, 1, 2, 3, 4],
    ),
    "a constant column": (np.column_stack([BASE, np.full(N, 3.0)]), [0, 1, 2, 3]),
    "far from zero, in other units": (
        np.column_stack([1e3 * BASE + 1e4, 1e-3 * (BASE[:, 0] - BASE[:, 3])]),
        [0, 1, 2, 3],
    ),
}
OFTEN = {"tol": 1e-12, "max_iter": 10_000}
MODELS = {
    "logistic": (
        LogisticRegression(C=np.inf),
        linear_model.LogisticRegression(C=np.inf, solver="newton-cholesky", **OFTEN),
        (SCORE + rng.logistic(size=N) > 0).astype(int),
    ),
    "softmax": (
        LogisticRegression(C=np.inf),
        linear_model.LogisticRegression(C=np.inf, **OFTEN),
        np.argmax(np.outer(SCORE, [0.5, 0.0, -0.5]) + rng.gumbel(size=(N, 3)), axis=1),
    ),
    "poisson": (
        PoissonRegressor(alpha=0.0),
        linear_model.PoissonRegressor(alpha=0.0, solver="newton-cholesky", **OFTEN),
        rng.poisson(np.exp(0.4 * SCORE)),
    ),
    "gamma": (
        GammaRegressor(alpha=0.0),
        linear_model.GammaRegressor(alpha=0.0, solver="newton-cholesky", **OFTEN),
        rng.gamma(2.0, np.exp(0.4 * SCORE) / 2),
    ),
    "tweedie": (
        TweedieRegressor(power=1.5, alpha=0.0),
        linear_model.TweedieRegressor(power=1.5, alpha=0.0, solver="newton-cholesky", **OFTEN),
        rng.gamma(2.0, np.exp(0.4 * SCORE) / 2),
    ),
    "normal": (
        TweedieRegressor(power=0, alpha=0.0),
        linear_model.LinearRegression(),
        SCORE + rng.standard_normal(N),
    ),
}


def least_norm(X, scores):
    """Coefficients of least norm whose scores are these, up to a constant."""
    centred = X - X.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    rank = np.linalg.matrix_rank(centred / np.where(size > 0, size, 1.0), rtol=1e-10)
    # In the units of the data: the dependences are exact up to rounding, the units far apart.
    return np.linalg.pinv(centred, rcond=1e-13) @ (scores - scores.mean(axis=0)), rank


def scores_of(model, X):
    coef = np.atleast_2d(model.coef_)
    return X @ coef.T + model.intercept_


@pytest.mark.grid(1)
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", MODELS)
def test_coefficients_of_least_norm(name, design):
    (ours, theirs, y), (X, kept) = MODELS[name], DESIGNS[design]
    model = ours.fit(X, y)
    # Standardised for the other's sake; without a penalty the scores are the same.
    few = X[:, kept]
    few = (few - few.mean(axis=0)) / few.std(axis=0)
    expected = scores_of(theirs.fit(few, y), few)
    found = scores_of(model, X)
    assert_allclose(
        found - found.mean(axis=1, keepdims=True) * (name == "softmax"), expected, atol=2e-5
    )
    w, rank = least_norm(X, found)
    scale = X.std(axis=0) + 1e-300
    assert_allclose(np.atleast_2d(model.coef_) * scale, w.T * scale, atol=1e-8)
    assert model.rank_ == rank == len(kept)
    null = model.null_space_
    assert_allclose(null.T @ null, np.eye(X.shape[1] - rank), atol=1e-10)
    assert_allclose((X - X.mean(axis=0)) @ null, 0.0, atol=1e-9 * np.abs(X).max())
    assert_allclose(np.atleast_2d(model.coef_) @ null, 0.0, atol=1e-9 * np.abs(model.coef_).max())
    assert f"rank {rank} of {X.shape[1]}: column" in str(model.explain())
    checked = model.verify(X, y)
    assert "FAILS" not in str(checked), checked


@pytest.mark.parametrize("name", ["logistic", "softmax", "poisson", "gamma", "tweedie"])
def test_coefficients_are_those_of_scikit_learn(name):
    # Its search starts at zero and stays in the span of the rows.
    (ours, theirs, y), (X, _) = MODELS[name], DESIGNS["sums and multiples"]
    their = type(theirs)(**{**theirs.get_params(), "solver": "lbfgs"}).fit(X, y)
    model = ours.fit(X, y)
    assert_allclose(np.linalg.norm(model.coef_), np.linalg.norm(their.coef_), rtol=1e-5)
    assert_allclose(model.coef_, their.coef_, atol=2e-5)
    assert_allclose(model.intercept_, their.intercept_, atol=2e-5)


@pytest.mark.parametrize("design", DESIGNS)
def test_huber_without_a_penalty(design):
    X, kept = DESIGNS[design]
    y = SCORE + np.random.default_rng(1).standard_t(2, size=N)
    model = HuberRegressor(alpha=0.0).fit(X, y)
    found = scores_of(model, X)
    assert_allclose(
        found, scores_of(HuberRegressor(alpha=0.0).fit(X[:, kept], y), X[:, kept]), atol=1e-7
    )
    w, rank = least_norm(X, found)
    scale = X.std(axis=0) + 1e-300
    assert_allclose(model.coef_ * scale, w[:, 0] * scale, atol=1e-8)
    assert model.rank_ == rank
    assert "FAILS" not in str(model.verify(X, y))


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", ["logistic", "softmax", "poisson"])
@pytest.mark.parametrize("kind", ["sparse", "single", "weighted", "no intercept", "warm", "traced"])
def test_in_other_forms(name, kind):
    (ours, _, y), (X, _) = MODELS[name], DESIGNS["every level of a category"]
    X = np.round(8 * X) / 8  # single precision holds these
    model = type(ours)(**ours.get_params())
    if kind in ("sparse", "single"):
        plain = model.fit(X, y).coef_
        data = sp.csr_array(X) if kind == "sparse" else X.astype(np.float32)
        assert_allclose(model.fit(data, y).coef_, plain, atol=1e-6)
    elif kind == "weighted":
        weights = np.random.default_rng(2).integers(0, 3, N)
        often = np.repeat(np.arange(N), weights)
        plain = model.fit(X[often], y[often]).coef_
        assert_allclose(model.fit(X, y, weights.astype(float)).coef_, plain, atol=1e-6)
    elif kind == "no intercept":
        model.set_params(fit_intercept=False).fit(X, y)
        assert model.rank_ == np.linalg.matrix_rank(X)
        copies = type(ours)(**model.get_params()).fit(X[:, [*range(6), 0, 0]], y)
        assert copies.rank_ == model.rank_
        # A third of the coefficient for each of three copies has the least norm.
        coef = np.atleast_2d(copies.coef_)
        assert_allclose(coef[:, 6:], coef[:, [0, 0]], atol=1e-9)
        assert_allclose(3 * coef[:, 0], np.atleast_2d(model.coef_)[:, 0], atol=1e-6)
    else:
        plain = model.fit(X, y).coef_
        model.set_params(**({"warm_start": True} if kind == "warm" else {"trace": True}))
        assert_allclose(model.fit(X, y).coef_, plain, atol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "poisson", "normal"])
def test_columns_beyond_squaring(name):
    (ours, _, y), (X, _) = MODELS[name], DESIGNS["a copy"]
    scale = 2.0 ** np.array([0, 400, 0, 0, 400])
    model = type(ours)(**ours.get_params()).fit(X * scale, y)
    assert_allclose(model.coef_ * scale, ours.fit(X, y).coef_, atol=1e-7)
    assert model.rank_ == 4


def test_no_column_varies():
    X, y = np.full((40, 3), 2.0), np.arange(40) % 3 == 0
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.rank_ == 0
    assert_array_equal(model.coef_, 0.0)
    assert_allclose(model.intercept_, np.log(y.mean() / (1 - y.mean())), rtol=1e-6)
    assert_allclose(model.null_space_.T @ model.null_space_, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_the_rank_belongs_to_fits_without_a_penalty(name, tmp_path):
    ours, _, y = MODELS[name]
    model = type(ours)(**ours.get_params()).fit(BASE, y)
    assert model.rank_ == 4
    assert model.null_space_.shape == (4, 0)
    assert "depend" not in str(model.explain())
    X = DESIGNS["a copy"][0]
    save(model.fit(X, y), tmp_path / "model.tl")
    assert_array_equal(load(tmp_path / "model.tl").null_space_, model.null_space_)
    model.set_params(**({"C": 1.0} if name == "logistic" else {"alpha": 1.0})).fit(X, y)
    assert not hasattr(model, "rank_")
    with pytest.raises(AttributeError, match="a penalty"):
        _ = model.null_space_


def test_least_squares_names_the_columns_too():
    X, _ = DESIGNS["sums and multiples"]
    text = str(LinearRegression().fit(X, SCORE).explain())
    assert "rank 4 of 6: columns " in text
    assert "depend on the others; the data leave 2 directions open" in text


def test_there_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ours, _, y in MODELS.values():
            for X, _ in DESIGNS.values():
                type(ours)(**ours.get_params()).fit(X, y)
