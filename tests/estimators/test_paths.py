"""Paths of the lasso and the elastic net, and the choice of a strength by cross-validation."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

import trueline.solvers.coordinate_descent.path as engine
import trueline.solvers.coordinate_descent.source as source
from trueline import (
    AdaptiveLasso,
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LinearRegression,
    enet_path,
    lasso_path,
    regularization_path,
)

SHAPES = {"tall": (90, 15), "wide": (40, 120)}


def data(shape, seed=0):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.6 * X[:, :-1]
    y = X[:, :4] @ [2.0, -1.0, 0.5, 0.25] + 0.5 * rng.standard_normal(n) + 2.0
    return X, y, rng.integers(0, 3, n).astype(float)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csc_array])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_every_point_of_a_path_is_a_fit(shape, form, l1_ratio):
    X, y, s = data(shape)
    path = regularization_path(form(X), y, l1_ratio=l1_ratio, alphas=12, sample_weight=s)
    for i in (1, 5, 11):
        model = ElasticNet(path.alphas[i], l1_ratio=l1_ratio).fit(form(X), y, s)
        np.testing.assert_allclose(path.coef(path.alphas[i]), model.coef_, atol=1e-7)
        assert path.intercept(path.alphas[i]) == pytest.approx(model.intercept_, abs=1e-7)
        assert path.objectives[i] == pytest.approx(model.certificate_.objective / s.sum(), rel=1e-9)
    assert (path.gaps <= 1e-6 * path.objectives[0]).all()
    assert path.n_nonzero[0] == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positive", [False, True])
def test_the_functions_return_what_those_of_scikit_learn_return(shape, positive):
    X, y, _ = data(shape)
    settings = {"eps": 1e-2, "alphas": 20, "positive": positive}
    tight = {"tol": 1e-14, "max_iter": 1_000_000}
    for mine, theirs, extra in (
        (lasso_path, sklearn.linear_model.lasso_path, {}),
        (enet_path, sklearn.linear_model.enet_path, {"l1_ratio": 0.3}),
    ):
        alphas, coefs, gaps, counts = mine(X, y, return_n_iter=True, **settings, **extra)
        expected = theirs(X, y, **settings, **extra, **tight)
        np.testing.assert_allclose(alphas, expected[0], rtol=1e-12)
        np.testing.assert_allclose(coefs, expected[1], atol=1e-7)
        assert gaps.max() < 1e-6
        assert len(counts) == 20


def test_between_two_points_without_a_change_the_path_is_a_straight_line():
    X, y, _ = data("tall")
    path = regularization_path(X, y, alphas=[0.3, 0.2999])
    np.testing.assert_allclose(path.coef(0.29995), Lasso(0.29995).fit(X, y).coef_, atol=1e-9)
    np.testing.assert_allclose(
        path.predict(X, 0.29995), Lasso(0.29995).fit(X, y).predict(X), atol=1e-8
    )
    with pytest.raises(ValueError, match="not on the path"):
        path.coef(1.0)


def test_where_nothing_is_penalised_the_criteria_are_those_of_least_squares():
    X, y, _ = data("tall")
    path = regularization_path(X, y, alphas=[1e-12])
    model = LinearRegression().fit(X, y)
    assert path.degrees_of_freedom[0] == 16
    assert path.aic()[0] == pytest.approx(model.aic(), rel=1e-9)
    assert path.aicc()[0] == pytest.approx(model.aicc(), rel=1e-9)
    assert path.bic()[0] == pytest.approx(model.bic(), rel=1e-9)


def test_degrees_of_freedom_are_those_of_a_fit():
    X, y, _ = data("tall")
    path = regularization_path(X, y, l1_ratio=0.5, alphas=8)
    model = ElasticNet(path.alphas[5], l1_ratio=0.5).fit(X, y)
    assert path.degrees_of_freedom[5] == pytest.approx(model.degrees_of_freedom_, rel=1e-9)
    assert len(path.table()) == 8
    assert path.best("aic") >= path.best("bic")


def test_a_path_starts_where_the_unpenalised_features_leave_it():
    X, y, _ = data("wide")
    weights = np.ones(X.shape[1])
    weights[0] = 0.0
    path = regularization_path(X, y, feature_weights=weights, alphas=5)
    assert path.n_nonzero[0] == 1
    assert path.coefs[[0], [0]] != 0


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "kind",
    [{}, {"positive": True}, {"l1_ratio": 0.7}, {"bounds": (-0.1, 0.3)}, {"fit_intercept": False}],
    ids=str,
)
def test_without_a_gram_matrix_the_path_is_the_same(form, weighted, kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((120, 2500), density=0.05, rng=rng).toarray()
    y = X[:, :20].sum(axis=1) + 0.05 * rng.standard_normal(120) + 1.0
    s = rng.random(120) if weighted else None
    settings = {"alphas": 15, "eps": 0.05, "sample_weight": s, "tol": 1e-12} | kind
    for name in ("_SPARSE_GRAM", "_DENSE_GRAM"):
        monkeypatch.setattr(source, name, 2500)
    known = regularization_path(form(X), y, **settings)
    for name in ("_SPARSE_GRAM", "_DENSE_GRAM"):
        monkeypatch.setattr(source, name, 30)
    path = regularization_path(form(X), y, **settings)
    np.testing.assert_allclose(path.objectives, known.objectives, rtol=1e-9)
    np.testing.assert_allclose(path.coefs.toarray(), known.coefs.toarray(), atol=1e-5)
    assert (path.gaps <= 1e-9 * path.objectives[0]).all()


def test_an_interrupt_keeps_what_was_found(monkeypatch):
    X, y, _ = data("wide")
    advance, calls = engine.WorkingSetPath.advance, []

    def interrupted(walk):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return advance(walk)

    monkeypatch.setattr(engine.WorkingSetPath, "advance", interrupted)
    with pytest.warns(UserWarning, match="interrupted after"):
        # Without bounds the homotopy proposes all solutions, which are confirmed at once.
        path = regularization_path(X, y, alphas=50, positive=True)
    assert 1 <= len(path) < 50
    assert path.coefs.shape[1] == len(path.gaps) == len(path)


@pytest.mark.parametrize("alphas", [[], [-1.0], [np.nan], [np.inf, 1.0]])
def test_grids_that_make_no_sense_are_refused(alphas):
    X, y, _ = data("tall")
    with pytest.raises(ValueError, match="alphas"):
        regularization_path(X, y, alphas=alphas)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "cv", [3, KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0)], ids=str
)
def test_cross_validation_scores_as_scikit_learn_does(shape, weighted, cv):
    X, y, s = data(shape)
    weights = s + 0.5 if weighted else None
    mine = LassoCV(cv=cv, alphas=15, eps=1e-2, tol=1e-8).fit(X, y, weights)
    theirs = sklearn.linear_model.LassoCV(cv=cv, alphas=15, eps=1e-2, tol=1e-12, max_iter=10**6)
    theirs.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(mine.mse_path_, theirs.mse_path_, rtol=1e-6)
    assert mine.alpha_ == pytest.approx(theirs.alpha_, rel=1e-12)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-6)
    assert mine.verify(X, y, weights)


def test_several_mixtures():
    X, y, _ = data("tall")
    mine = ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=10, cv=3).fit(X, y)
    theirs = sklearn.linear_model.ElasticNetCV(
        l1_ratio=[0.2, 0.9], alphas=10, cv=3, tol=1e-12, max_iter=10**6
    ).fit(X, y)
    assert mine.mse_path_.shape == theirs.mse_path_.shape == (2, 10, 3)
    assert mine.alphas_.shape == (2, 10)
    assert mine.l1_ratio_ == theirs.l1_ratio_
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-6)


def test_the_rule_of_one_standard_error():
    X, y, _ = data("tall")
    least = LassoCV(cv=5).fit(X, y)
    sparse = LassoCV(cv=5, rule="1se").fit(X, y)
    mean = least.mse_path_.mean(axis=1)
    best = int(np.argmin(mean))
    limit = mean[best] + least.mse_path_[best].std(ddof=1) / np.sqrt(5)
    expected = least.alphas_[np.flatnonzero(mean <= limit)[0]]
    assert sparse.alpha_ == least.alpha_1se_ == pytest.approx(expected)
    assert least.alpha_ == sparse.alpha_min_ == pytest.approx(least.alphas_[best])
    assert np.count_nonzero(sparse.coef_) <= np.count_nonzero(least.coef_)


def test_groups_are_routed_to_the_splitter():
    import sklearn

    X, y, _ = data("tall")
    groups = np.arange(len(y)) % 4
    with sklearn.config_context(enable_metadata_routing=True):
        model = LassoCV(cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert model.mse_path_.shape[1] == 4


def test_sparse_folds_are_those_of_the_dense_data():
    X, y, _ = data("wide")
    X[np.abs(X) < 0.8] = 0.0
    dense = LassoCV(cv=3, alphas=10).fit(X, y)
    sparse = LassoCV(cv=3, alphas=10).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.mse_path_, dense.mse_path_, rtol=1e-6)
    assert sparse.verify(sp.csr_array(X), y)


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(6, 24), (40, 120), (90, 15)])
def test_a_fold_may_hold_none_of_the_signal(form, intercept, shape):
    # The rows that set the grid are left out: at many strengths in a row nothing but zero is best.
    rng = np.random.default_rng(1)
    X, fold = rng.standard_normal(shape), shape[0] // 3
    y = np.r_[50 * X[:fold, 0], 0.1 * rng.standard_normal(shape[0] - fold)]
    mine = LassoCV(cv=KFold(3), fit_intercept=intercept, tol=1e-8).fit(form(X), y)
    model = sklearn.linear_model.LassoCV(
        cv=KFold(3), fit_intercept=intercept, tol=1e-10, max_iter=10**5
    )
    theirs = model.fit(X, y)
    np.testing.assert_allclose(mine.mse_path_, theirs.mse_path_, rtol=1e-4)
    assert mine.alpha_ == pytest.approx(theirs.alpha_)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_adaptive_lasso_is_a_lasso_with_weights_of_a_first_fit(shape):
    X, y, _ = data(shape)
    model = AdaptiveLasso(0.05, gamma=2.0).fit(X, y)
    weights = np.abs(model.first_.coef_) ** -2.0
    np.testing.assert_allclose(
        model.coef_, Lasso(0.05, feature_weights=weights).fit(X, y).coef_, atol=1e-9
    )
    assert model.verify(X, y)


def test_what_the_first_fit_leaves_out_stays_out():
    X, y, _ = data("wide")
    model = AdaptiveLasso(1e-3, first=Lasso(0.2)).fit(X, y)
    out = model.first_.coef_ == 0
    assert out.any()
    assert not model.coef_[out].any()
    assert np.isinf(model.feature_weights_[out]).all()
    assert model.verify(X, y)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_ridge_path_is_the_formula_at_every_strength(shape, form, fit_intercept):
    """w = (X'SX + S alpha I)^-1 X'Sy on weighted, centred columns; its degrees of freedom too."""
    X, y, s = data(shape)
    path = regularization_path(
        form(X), y, l1_ratio=0, alphas=15, sample_weight=s, fit_intercept=fit_intercept
    )
    mean = s @ X / s.sum() if fit_intercept else np.zeros(X.shape[1])
    level = s @ y / s.sum() if fit_intercept else 0.0
    G = (X - mean).T @ (s[:, None] * (X - mean))
    for i, alpha in enumerate(path.alphas):
        H = G + s.sum() * alpha * np.eye(len(G))
        w = np.linalg.solve(H, (X - mean).T @ (s * (y - level)))
        np.testing.assert_allclose(path.coef(alpha), w, atol=1e-8)
        freedom = np.trace(np.linalg.solve(H, G)) + fit_intercept
        assert path.degrees_of_freedom[i] == pytest.approx(freedom, rel=1e-8)
    # From less than 1% of every direction to nearly all of the strongest.
    values = np.linalg.eigvalsh(G) / s.sum()
    assert path.alphas[0] >= 99 * values[-1]
    assert path.alphas[-1] == pytest.approx(1e-6 * path.alphas[0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        regularization_path(X, y, l1_ratio=-0.1)


@pytest.mark.parametrize("path", [lasso_path, enet_path])
def test_rows_and_targets_of_another_number_are_refused_in_words(path):
    X, y = data("tall")[:2]
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[90, 5\]"):
        path(X, y[:5])
