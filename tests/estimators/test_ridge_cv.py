"""RidgeCV scores as if every model had been fitted on its own.

Leave-one-out is compared with leaving each row out in turn, folds with a grid search over
scikit-learn's Ridge: all scores, not only the choice.
"""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    make_scorer,
    mean_absolute_error,
    median_absolute_error,
    r2_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from trueline import RidgeCV

ALPHAS = np.array([1e-3, 1.0, 1e3])
SHAPES = {"tall": (20, 4), "square": (9, 9), "wide": (9, 25)}


def data(shape="tall", targets=1, seed=0):
    rng = np.random.default_rng(seed)
    n, d = SHAPES[shape]
    X = rng.standard_normal((n, d)) + 1.0
    Y = X @ rng.standard_normal((d, targets)) + 2.0 * rng.standard_normal((n, targets)) + 5.0
    return X, Y[:, 0] if targets == 1 else Y


def weights_of(kind, n):
    rng = np.random.default_rng(1)
    return {
        "none": None,
        "float": rng.uniform(0.2, 3.0, n),
        "counts": rng.integers(0, 3, n).astype(float),
    }[kind]


def taken(weights, rows):
    return None if weights is None else weights[rows]


def relative(actual, expected, tolerance):
    """Equal to a tolerance relative to the largest of the expected values."""
    expected = np.asarray(expected)
    assert np.shape(actual) == expected.shape
    assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# --- leave-one-out ------------------------------------------------------------------------------


def ridge(X, y, weights, alpha, fit_intercept):
    """Ridge regression as plain least squares: sqrt(alpha) times unit rows, with target zero."""
    (n, d), k = X.shape, y[0].size
    root = np.sqrt(np.ones(n) if weights is None else weights)[:, None]
    top = np.hstack([X, np.full((n, 1), float(fit_intercept))])
    stacked = np.vstack([root * top, np.sqrt(alpha) * np.eye(d, d + 1)])
    target = np.vstack([root * y.reshape(n, k), np.zeros((d, k))])
    coef = np.linalg.lstsq(stacked, target, rcond=None)[0]
    return coef[:d], coef[d]


def predictions_without_each_row(X, y, weights, fit_intercept=True):
    """Row i predicted by a model that has not seen it: shape (n, ..., number of alphas)."""
    rows = np.arange(len(X))
    predictions = np.empty((*y.shape, len(ALPHAS)))
    for i in rows:
        others = rows != i
        for a, alpha in enumerate(ALPHAS):
            W, b = ridge(X[others], y[others], taken(weights, others), alpha, fit_intercept)
            predictions[i, ..., a] = np.reshape(X[i] @ W + b, y[0].shape)
    return predictions


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("kind", ["none", "float", "counts"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_errors_are_those_of_leaving_each_row_out(shape, targets, kind, fit_intercept):
    X, y = data(shape, targets)
    weights = weights_of(kind, len(X))
    predictions = predictions_without_each_row(X, y, weights, fit_intercept)
    squares = (y[..., None] - predictions) ** 2
    if weights is not None:
        squares *= weights.reshape(-1, *[1] * y.ndim)
    model = RidgeCV(ALPHAS, fit_intercept=fit_intercept, store_cv_results=True)
    model.fit(X, y, sample_weight=weights)
    relative(model.cv_results_, squares, 1e-10)
    scores = -squares.reshape(-1, len(ALPHAS)).mean(axis=0)
    assert model.alpha_ == ALPHAS[scores.argmax()]
    assert model.best_score_ == pytest.approx(scores.max(), rel=1e-10)


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kind", ["none", "counts"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_few_strengths_of_wide_data_are_scored_as_among_many(as_rows, kind, fit_intercept):
    """Inverses of the kernel for few strengths, its eigenvectors for many: the same errors."""
    X, y = data("wide", 2)
    weights, few, many = weights_of(kind, len(X)), ALPHAS, np.geomspace(1e-3, 1e3, 9)
    found = [
        RidgeCV(alphas, fit_intercept=fit_intercept, store_cv_results=True)
        .fit(as_rows(X), y, sample_weight=weights)
        .cv_results_
        for alphas in (few, many)
    ]
    relative(found[0], found[1][..., [0, 4, 8]], 1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["none", "float", "counts"])
def test_scores_do_not_depend_on_whether_the_errors_are_kept(shape, kind):
    X, y = data(shape, targets=2)
    weights = weights_of(kind, len(X))
    kept = RidgeCV(ALPHAS, store_cv_results=True).fit(X, y, sample_weight=weights)
    dropped = RidgeCV(ALPHAS).fit(X, y, sample_weight=weights)
    assert kept.alpha_ == dropped.alpha_
    assert kept.best_score_ == pytest.approx(dropped.best_score_, rel=1e-12)
    assert not hasattr(dropped, "cv_results_")


@pytest.mark.parametrize("shape", SHAPES)
def test_each_target_can_have_a_strength_of_its_own(shape):
    X, y = data(shape, targets=3)
    y[:, 1] = np.random.default_rng(2).standard_normal(len(X))  # noise: shrink it all
    y[:, 2] = X[:, 0]  # no noise: shrink nothing
    scores = -((y[..., None] - predictions_without_each_row(X, y, None)) ** 2).mean(axis=0)
    model = RidgeCV(ALPHAS, alpha_per_target=True).fit(X, y)
    assert_array_equal(model.alpha_, ALPHAS[scores.argmax(axis=1)])
    assert len(set(model.alpha_)) > 1
    relative(model.best_score_, scores.max(axis=1), 1e-10)
    separate = np.array([Ridge(a).fit(X, t).coef_ for a, t in zip(model.alpha_, y.T)])
    relative(model.coef_, separate, 1e-9)


def lower_quartile_of_agreement(y_true, y_pred):
    return -float(np.quantile(np.abs(y_true - y_pred), 0.75))


SCORERS = {
    "by name": ("neg_median_absolute_error", lambda y, p: -median_absolute_error(y, p)),
    "made of a metric": (make_scorer(r2_score), r2_score),
    "of one's own": (make_scorer(lower_quartile_of_agreement), lower_quartile_of_agreement),
}


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("targets", [1, 2])
def test_a_scorer_sees_the_predictions_without_each_row(scorer, shape, targets):
    X, y = data(shape, targets)
    scoring, metric = SCORERS[scorer]
    predictions = predictions_without_each_row(X, y, None)
    scores = [metric(y, predictions[..., a]) for a in range(len(ALPHAS))]
    model = RidgeCV(ALPHAS, scoring=scoring, store_cv_results=True).fit(X, y)
    assert model.alpha_ == ALPHAS[np.argmax(scores)]
    assert model.best_score_ == pytest.approx(max(scores), rel=1e-10)
    relative(model.cv_results_, predictions, 1e-10)


@pytest.mark.parametrize("kind", ["float", "counts"])
def test_a_scorer_is_given_the_weights(kind):
    X, y = data()
    weights = weights_of(kind, len(X))
    predictions = predictions_without_each_row(X, y, weights)
    scores = [-mean_absolute_error(y, p, sample_weight=weights) for p in predictions.T]
    model = RidgeCV(ALPHAS, scoring="neg_mean_absolute_error").fit(X, y, sample_weight=weights)
    assert model.best_score_ == pytest.approx(max(scores), rel=1e-10)


def test_sparse_rows_are_left_out_like_dense_ones():
    X, y = data()
    X[np.random.default_rng(3).random(X.shape) < 0.5] = 0.0
    dense = RidgeCV(ALPHAS, store_cv_results=True).fit(X, y)
    sparse = RidgeCV(ALPHAS, store_cv_results=True).fit(sp.csr_array(X), y)
    relative(sparse.cv_results_, dense.cv_results_, 1e-12)


@pytest.mark.parametrize("alpha", [1e-14, 1e-10])
def test_strengths_below_rounding_keep_their_errors(alpha):
    X, y = data("wide")
    stored = RidgeCV([alpha], store_cv_results=True).fit(X, y).cv_results_[:, 0]
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        centre = X[others].mean(axis=0)
        coef, *_ = np.linalg.lstsq(X[others] - centre, y[others] - y[others].mean(), rcond=None)
        expected = (y[i] - y[others].mean() - (X[i] - centre) @ coef) ** 2
        assert stored[i] == pytest.approx(expected, rel=1e-7)


# --- folds --------------------------------------------------------------------------------------


def grid_scores(search):
    """Scores of a fitted grid search, of shape (folds, number of alphas)."""
    results = search.cv_results_
    return np.array([results[f"split{i}_test_score"] for i in range(search.n_splits_)])


def assert_same_as_grid_search(ours, X, y, cv, scoring=None, tolerance=1e-9):
    dense = X.toarray() if sp.issparse(X) else X
    fit_intercept = ours.fit_intercept
    theirs = GridSearchCV(
        Ridge(solver="svd", fit_intercept=fit_intercept), {"alpha": ALPHAS}, cv=cv, scoring=scoring
    ).fit(dense, y)
    relative(ours.fold_scores_, grid_scores(theirs), tolerance)
    assert ours.alpha_ == theirs.best_params_["alpha"]
    assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)
    relative(ours.coef_, theirs.best_estimator_.coef_, 1e-9)


SPLITTERS = {
    "a number": 3,
    "folds": KFold(4),
    "shuffled folds": KFold(3, shuffle=True, random_state=0),
    "random parts": ShuffleSplit(4, test_size=0.3, random_state=0),
    "parts that leave rows out": ShuffleSplit(3, test_size=0.3, train_size=0.5, random_state=0),
    "repeated folds": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "time series": TimeSeriesSplit(3, test_size=2),
    "given folds": None,
}


@pytest.mark.grid(2)
@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_splitters(splitter, shape, fit_intercept):
    X, y = data(shape)
    cv = SPLITTERS[splitter]
    if splitter == "given folds":
        cv = PredefinedSplit(np.arange(len(X)) % 4 - 1)  # a quarter is in no test part
    model = RidgeCV(ALPHAS, cv=cv, fit_intercept=fit_intercept).fit(X, y)
    assert_same_as_grid_search(model, X, y, cv)


def as_masks(splits, n):
    return [tuple(np.isin(np.arange(n), part) for part in split) for split in splits]


@pytest.mark.grid(1)
@pytest.mark.parametrize("form", ["lists of numbers", "masks", "with repetitions", "generator"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_splits_can_be_given(form, shape):
    X, y = data(shape)
    splits = list(KFold(3).split(X))
    cv = {
        "lists of numbers": [(train.tolist(), test.tolist()) for train, test in splits],
        "masks": as_masks(splits, len(X)),
        "with repetitions": [(np.append(train, train[:3]), test) for train, test in splits],
        "generator": splits,
    }[form]
    model = RidgeCV(ALPHAS, cv=(s for s in cv) if form == "generator" else cv).fit(X, y)
    assert_same_as_grid_search(model, X, y, cv)


def test_a_generator_of_splits_survives_metadata_routing():
    X, y = data()
    splits = list(KFold(3).split(X))
    with config_context(enable_metadata_routing=True):
        model = RidgeCV(ALPHAS, cv=(split for split in splits))
        model.fit(X, y, sample_weight=np.ones(len(X)))
    assert_same_as_grid_search(model, X, y, splits)


def test_groups_reach_the_splitter_through_metadata_routing():
    X, y = data()
    groups = np.arange(len(X)) % 5
    with config_context(enable_metadata_routing=True):
        model = RidgeCV(ALPHAS, cv=GroupKFold(5)).fit(X, y, groups=groups)
    assert_same_as_grid_search(model, X, y, list(GroupKFold(5).split(X, y, groups)))


def test_groups_without_routing_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        RidgeCV(ALPHAS, cv=GroupKFold(5)).fit(X, y, groups=np.arange(len(X)) % 5)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("scorer", [None, *SCORERS])
def test_scorers_and_targets(shape, targets, scorer):
    X, y = data(shape, targets)
    scoring = SCORERS[scorer][0] if scorer else None
    model = RidgeCV(ALPHAS, cv=KFold(3), scoring=scoring).fit(X, y)
    assert_same_as_grid_search(model, X, y, KFold(3), scoring)


@pytest.mark.grid(2)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("scorer", [None, "by name"])
def test_sparse_data(form, shape, scorer):
    X, y = data(shape)
    X[np.random.default_rng(3).random(X.shape) < 0.5] = 0.0
    scoring = SCORERS[scorer][0] if scorer else None
    model = RidgeCV(ALPHAS, cv=KFold(3), scoring=scoring).fit(form(X), y)
    assert_same_as_grid_search(model, form(X), y, KFold(3), scoring)


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("kind", ["float", "counts"])
@pytest.mark.parametrize("metric", ["r2", "neg_mean_absolute_error"])
def test_weights_count_in_fits_and_scores(shape, kind, metric):
    X, y = data(shape)
    weights = weights_of(kind, len(X))
    score = {
        "r2": r2_score,
        "neg_mean_absolute_error": lambda *a, **k: -mean_absolute_error(*a, **k),
    }
    expected = [
        [
            score[metric](
                y[test],
                Ridge(alpha).fit(X[train], y[train], sample_weight=weights[train]).predict(X[test]),
                sample_weight=weights[test],
            )
            for alpha in ALPHAS
        ]
        for train, test in KFold(3).split(X)
    ]
    scoring = None if metric == "r2" else metric
    model = RidgeCV(ALPHAS, cv=KFold(3), scoring=scoring).fit(X, y, sample_weight=weights)
    relative(model.fold_scores_, expected, 1e-9)
    assert model.alpha_ == ALPHAS[np.mean(expected, axis=0).argmax()]


def test_a_scorer_without_weights_still_fits_with_them():
    X, y = data()
    weights = weights_of("float", len(X))

    def scorer(estimator, X, y):
        return -float(np.abs(estimator.predict(X) - y).max())

    model = RidgeCV(ALPHAS, cv=KFold(3), scoring=scorer).fit(X, y, sample_weight=weights)
    for (train, test), scores in zip(KFold(3).split(X), model.fold_scores_):
        fits = [Ridge(a).fit(X[train], y[train], sample_weight=weights[train]) for a in ALPHAS]
        relative(scores, [scorer(fit, X[test], y[test]) for fit in fits], 1e-9)


def test_strength_zero_is_allowed_with_folds_and_refused_without():
    X, y = data()
    model = RidgeCV([0.0, 1e9], cv=3).fit(X, y)
    assert model.alpha_ == 0.0
    assert model.fold_scores_.shape == (3, 2)
    with pytest.raises(ValueError, match=r"alphas\[0\] == 0.0, must be > 0.0"):
        RidgeCV([0.0, 1e9]).fit(X, y)


def test_scores_of_folds_belong_to_the_last_fit():
    X, y = data()
    model = RidgeCV(ALPHAS, cv=3).fit(X, y)
    assert model.fold_scores_.shape == (3, len(ALPHAS))
    model.set_params(cv=None, store_cv_results=True).fit(X, y)
    assert not hasattr(model, "fold_scores_")
    assert model.cv_results_.shape == (len(X), len(ALPHAS))


@pytest.mark.parametrize("cv", [None, 3])
def test_the_refit_is_certified(cv):
    X, y = data(targets=2)
    model = RidgeCV(ALPHAS, cv=cv).fit(X, y)
    assert model.verify(X, y)


def test_more_shrinkage_never_fits_the_training_rows_better():
    X, y = data()
    fits = [RidgeCV([alpha]).fit(X, y).score(X, y) for alpha in ALPHAS]
    assert all(a > b for a, b in pairwise(fits))


@pytest.mark.parametrize("parameter", ["store_cv_results", "alpha_per_target"])
def test_what_only_leave_one_out_can_do_is_refused_with_folds(parameter):
    X, y = data(targets=2)
    with pytest.raises(ValueError, match=f"{parameter}=True are incompatible"):
        RidgeCV(ALPHAS, cv=3, **{parameter: True}).fit(X, y)
