"""Comparisons equal those written with ``GridSearchCV``, and say what they know."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import ttest_rel
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import trueline as tl
from trueline import compare
from trueline.evaluation.candidates import known_candidates
from trueline.evaluation.grid_fits import choose_fits, same_settings
from trueline.evaluation.grid_search import evaluate_grid
from trueline.evaluation.report import holm, paired_test
from trueline.evaluation.task import as_scorers, make_task

CS = np.logspace(-2, 1, 4)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def compared(diabetes):
    return tl.compare(*diabetes)


def test_all_suitable_regressions_are_compared(compared):
    names = {entry.name for entry in compared.entries}
    assert {"mean", "least squares", "ridge", "lasso", "elastic net", "huber"} <= names
    assert compared.entries == sorted(compared.entries, key=lambda e: -e.score)
    assert compared.best is compared.entries[0]


def test_fits_to_all_rows_are_proven(compared, diabetes):
    for entry in compared.entries:
        if entry.name != "mean":
            assert entry.gap < 1e-6
            assert entry.model.verify(*diabetes)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs", "grid"),
    [
        (tl.Ridge(), linear_model.Ridge(), {"alpha": [0.01, 0.1, 1.0]}),
        (
            tl.ElasticNet(tol=1e-12),
            linear_model.ElasticNet(tol=1e-12, max_iter=100_000),
            {"alpha": [0.001, 0.01], "l1_ratio": [0.2, 0.9]},
        ),
        (
            tl.Lasso(tol=1e-12),
            linear_model.Lasso(tol=1e-12, max_iter=100_000),
            {"alpha": [0.01, 0.1, 1.0]},
        ),
    ],
    ids=lambda m: type(m).__name__,
)
def test_same_scores_and_choice_as_grid_search(ours, theirs, grid, weighted, diabetes):
    X, y = diabetes
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    entry = tl.compare(X, y, [(ours, grid)], sample_weight=weights).entries[0]
    search = GridSearchCV(theirs, grid, scoring="r2", return_train_score=True)
    search.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    for setting, mean in zip(entry.grid.settings, entry.grid.test["score"].mean(axis=0)):
        place = search.cv_results_["params"].index(setting)
        assert_allclose(mean, search.cv_results_["mean_test_score"][place], rtol=1e-9)
    assert entry.setting == search.best_params_
    place = search.best_index_
    assert_allclose(entry.train_score, search.cv_results_["mean_train_score"][place], rtol=1e-9)
    assert_allclose(entry.model.coef_, search.best_estimator_.coef_, rtol=1e-6)


@pytest.mark.grid(1)
@pytest.mark.parametrize("kind", ["two", "sparse", "three", "wide"])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_grids_of_logistic_regression_score_as_single_fits_do(kind, l1_ratio):
    if kind == "wide":
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((40, 90)), rng.integers(0, 2, 40)
    else:
        X, y = (
            load_iris(return_X_y=True) if kind == "three" else load_breast_cancer(return_X_y=True)
        )
        X = scale(X)
    X = sp.csr_array(X) if kind == "sparse" else X
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    model = tl.LogisticRegression(l1_ratio=l1_ratio)
    entry = tl.compare(X, y, [(model, {"C": CS})], cv=cv).entries[0]
    for i, setting in enumerate(entry.grid.settings):
        single = tl.LogisticRegression(l1_ratio=l1_ratio, **setting)
        expected = tl.cross_validate(single, X, y, cv=cv, shortcuts="none")
        assert_allclose(entry.grid.test["score"][:, i], expected["test_score"])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("folds", [3, 7])  # less and more than go side by side
def test_fits_of_folds_reach_the_minimum(kind, folds):
    """The objective of a fold's fit is that of a fit of its own, to many digits."""
    X, y = load_breast_cancer(return_X_y=True)
    X = kind(scale(X))
    cv = StratifiedKFold(folds)
    for model in (tl.LogisticRegression(C=0.3), tl.LinearSVC(C=0.1, intercept_scaling=1.0)):
        found = tl.cross_validate(model, X, y, cv=cv, return_estimator=True)
        assert "problems on the same rows" in found.route
        for fitted, (train, _) in zip(found["estimator"], cv.split(X, y)):
            own = type(model)(**model.get_params()).fit(X[train], y[train])
            problem = own._validated_problem(X[train], y[train], None, reset=False)[0]
            least = own.certificate_.objective - own.certificate_.gap
            assert problem.objective(*fitted._coefficients()) <= least * (1 + 1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_folds_of_several_classes_reach_their_own_minimum(l1_ratio, weighted):
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float) if weighted else None
    task = make_task(X, y, cv=StratifiedKFold(3), sample_weight=weights, is_classifier=True)
    way = choose_fits(tl.LogisticRegression(l1_ratio=l1_ratio), [{"C": C} for C in CS], task)
    assert "problems on the same rows" in way.route
    for fold in task.folds:
        fits, (rows, classes, some) = way.fit(fold), fold.part("train")
        for i, C in enumerate(CS):
            own = tl.LogisticRegression(C=C, l1_ratio=l1_ratio).fit(rows, classes, some)
            problem = own._validated_problem(rows, classes, some, reset=False)[0]
            least = own.certificate_.objective - own.certificate_.gap
            assert problem.objective(*fits.estimator(i)._coefficients()) <= least * (1 + 1e-6)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_the_fit_to_all_rows_may_start_from_the_folds(l1_ratio):
    """It is that of the model alone, proven, and no warm start is left behind."""
    X, y = load_iris(return_X_y=True)
    model = tl.LogisticRegression(l1_ratio=l1_ratio)
    best = tl.compare(X, y, [(model, {"C": CS})]).best
    alone = tl.LogisticRegression(l1_ratio=l1_ratio, **best.setting).fit(X, y)
    assert best.model.get_params() == alone.get_params()
    assert bool(best.model.verify(X, y))
    assert_allclose(best.model.certificate_.objective, alone.certificate_.objective, rtol=1e-6)
    assert (best.model.predict(X) == alone.predict(X)).all()


def test_classes_are_recognised_and_compared():
    X, y = load_iris(return_X_y=True)
    compared = tl.compare(X, np.array(["a", "b", "c"])[y], cv=3)
    names = {entry.name for entry in compared.entries}
    assert {"majority", "ridge classifier", "logistic, L2", "logistic, L1", "linear SVM"} == names
    assert compared.scorer == "accuracy"
    assert compared["majority"].score == pytest.approx(1 / 3, abs=0.02)


def test_scikit_learns_models_can_take_part(diabetes):
    X, y = diabetes
    models = {"theirs": linear_model.Ridge(0.1), "ours": tl.Ridge(0.1)}
    compared = tl.compare(X, y, models)
    assert_allclose(compared["theirs"].fold_scores, compared["ours"].fold_scores, rtol=1e-9)
    assert compared["theirs"].gap is None


def test_columns_are_standardised_on_request(diabetes):
    X, y = diabetes
    units = 10.0 ** np.arange(-5, 5)
    same = [tl.compare(X * u, y, ["ridge", "lasso"], scale=True) for u in (1.0, units)]
    assert_allclose(same[0]["ridge"].score, same[1]["ridge"].score, rtol=1e-6)
    assert_allclose(same[0]["lasso"].score, same[1]["lasso"].score, rtol=1e-4)


def test_one_standard_error_takes_what_is_simpler(diabetes):
    X, y = diabetes
    least, simple = (tl.compare(X, y, ["lasso"], rule=rule).best for rule in ("min", "1se"))
    assert simple.setting["alpha"] > least.setting["alpha"]
    assert simple.nonzeros <= least.nonzeros
    limit = least.score - least.standard_error
    assert simple.score >= limit


def test_the_test_of_differences_is_nadeau_and_bengios():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.8, 0.02, 10), rng.normal(0.78, 0.02, 10)
    d = a - b
    t = d.mean() / np.sqrt((1 / 10 + 1 / 9) * d.var(ddof=1))
    found = paired_test(a, b, 1 / 9)
    assert_allclose(found.difference / found.standard_error, t)
    assert_allclose(paired_test(a, b, 0.0).p_value, ttest_rel(a, b).pvalue)
    assert found.p_value > ttest_rel(a, b).pvalue
    assert paired_test(a, a, 0.2).p_value == 1.0
    assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])


def test_the_result_prints_draws_and_exports(compared):
    import matplotlib.pyplot as plt

    text = str(compared)
    assert all(word in text for word in ("ridge", "Holm", "± se"))
    frame = compared.to_frame()
    assert list(frame.index) == [entry.name for entry in compared.entries]
    assert {"score", "standard_error", "p_adjusted", "gap", "nonzeros"} <= set(frame.columns)
    display = compared.plot()
    assert len(display.ax_.get_yticks()) == len(compared)
    plt.close(display.figure_)
    with pytest.raises(KeyError, match="was not compared"):
        compared["lassso"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["lassso"], "'lassso' is not known for regression. Known: mean, least squares"),
        ([], "models is empty"),
        ("ridge", "models must be a list or a dict"),
        ([3], "neither a model"),
    ],
)
def test_models_that_cannot_be(models, message, diabetes):
    with pytest.raises(ValueError, match=message):
        tl.compare(*diabetes, models)


def test_other_bad_requests(diabetes):
    X, y = diabetes
    with pytest.raises(ValueError, match="rule='best'"):
        tl.compare(X, y, rule="best")
    with pytest.raises(ValueError, match="one scorer"):
        tl.compare(X, y, ["ridge"], scoring=["r2"])
    with pytest.raises(ValueError, match="more than finite numbers"):
        tl.compare(np.where(X > 0.1, np.nan, X), y)
    with pytest.warns(tl.LeakageWarning):
        leaky = tl.compare(np.column_stack([X, y]), y, ["ridge"])
    assert "LEAKAGE: x10" in str(leaky)


def test_what_a_fold_has_not_seen_does_not_help_it():
    """Labels unrelated to the rows: wide data are fitted perfectly, test rows are not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 200)), rng.integers(0, 2, 60)
    models = {
        "logistic": (tl.LogisticRegression(), {"C": [1.0, 1e4, 1e8]}),
        "svm": (tl.LinearSVC(), {"C": [1.0, 1e4, 1e8]}),
        "ridge": (tl.RidgeClassifier(), {"alpha": [1e-8, 1e-4, 1.0]}),
    }
    for kind in (np.asarray, sp.csr_array):
        compared = tl.compare(kind(X), y, models, cv=4)
        for entry in compared.entries:
            assert entry.grid.train["score"].mean(axis=0).max() > 0.95
            assert entry.grid.test["score"].mean(axis=0).max() < 0.75
    y = rng.integers(0, 4, 60)  # where folds share a Hessian
    model, settings = tl.LogisticRegression(), [{"C": C} for C in (1.0, 1e4, 1e8)]
    task = make_task(X[:, :14], y, cv=4, is_classifier=True)
    grid = evaluate_grid(model, settings, task, as_scorers(model, "accuracy"), train=True)
    assert grid.train["score"].mean(axis=0).max() > 0.8
    assert grid.test["score"].mean(axis=0).max() < 0.5


def test_no_grid_is_taken_for_another():
    """Grids come and go while a task stays: memory, and with it identity, is used again."""
    rng = np.random.default_rng(0)
    X, y = sp.random_array((40, 5), density=0.5, rng=rng, format="csr"), np.arange(40) % 2
    task = make_task(X, y, cv=2, is_classifier=True)
    for _ in range(20):
        for count in (3, 2):
            settings = [{"alpha": 10.0**-i} for i in range(count)]
            fits = choose_fits(tl.RidgeClassifier(), settings, task).fit(task.folds[0])
            assert fits.predictions(task.folds[0], "test").shape == (20, count)


def test_steps_before_a_model_are_shared_only_if_they_are_the_same():
    long = [f"word{i}" for i in range(500)]
    vectorizers = [CountVectorizer(vocabulary=[*long[:250], w, *long[250:]]) for w in "ab"]
    assert repr(vectorizers[0]) == repr(vectorizers[1])  # as scikit-learn shortens it
    assert not same_settings(*vectorizers)
    assert same_settings(clone(vectorizers[0]), vectorizers[0])
    assert same_settings(StandardScaler(), StandardScaler())
    assert not same_settings(StandardScaler(), StandardScaler(with_mean=False))


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_scores_of_classes_as_numbers_are_those_of_their_values(scoring):
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5]) ** 3  # 0, 1, 8
    grid = {"alpha": [1.0, 10.0]}
    ours = tl.compare(X, y, {"ridge": (tl.RidgeClassifier(), grid)}, cv=3, scoring=scoring)
    theirs = GridSearchCV(linear_model.RidgeClassifier(), grid, cv=3, scoring=scoring).fit(X, y)
    assert_allclose(ours.best.score, theirs.best_score_)


#: What a lecture says of methods, by the names that compare knows.
TOLD = {
    "ridge": ("probabilistic", "1/2 (z - y)^2", "mean", "quadratic"),
    "least absolute deviations": ("probabilistic", "|z - y|", "median", "duality"),
    "maximum error": ("probabilistic", "|z - y|", "middle of the range", "maximum error"),
    "linear SVR": (
        "deterministic",
        "max(0, |z - y| - epsilon)",
        "centre, within a tube",
        "duality",
    ),
    "hinge SVM": ("deterministic", "max(0, 1 - y_i z_i)", "class, by a score", "duality"),
    "logistic, L2": (
        "probabilistic",
        "log(1 + exp(-y_i z_i))",
        "probability of each class",
        "tangent",
    ),
    "averaged perceptron": (
        "deterministic",
        "max(0, -y z), in passes over the rows",
        "class, by a score",
        "training errors",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_methods_are_known_by_name_and_told_apart_as_in_a_lecture(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + rng.normal(size=40)
    if name in known_candidates(True):
        y = np.where(y > 0, "yes", "no")
    comparison = compare(X, y, models=[name], cv=3, progress=False)
    entry = comparison[name]
    assert entry.method == TOLD[name]
    assert entry.method.proof == entry.model.certificate_.kind
    row = comparison.rows()[0]
    assert (row["view"], row["loss"], row["estimates"], row["proof"]) == TOLD[name]
    header, _, told = str(comparison.methods()).splitlines()
    assert header.split() == ["model", "view", "loss", "estimates", "proof"]
    assert told.startswith(name)


def test_the_perceptron_family_is_known_and_not_compared_unless_it_is_named():
    known = known_candidates(True)
    family = [name for name in known if "perceptron" in name or name == "pocket"]
    assert len(family) == 9
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the standard one stops early
        found = compare(X, y, models=family, cv=3, progress=False)
    assert len(found) == 9
    assert {entry.method.view for entry in found.entries} == {"deterministic"}
    usual = [entry.name for entry in compare(X, y, cv=3, progress=False).entries]
    assert not set(usual) & set(family)
    with pytest.raises(ValueError, match="averaged perceptron"):
        compare(X, y, models=["percepton"], cv=3)


def test_a_column_of_texts_is_compared_through_text_features():
    texts = pytest.importorskip("pandas").Series(
        ["cheap pills", "at noon", "buy pills", "noon"] * 10
    )
    kinds = ["spam", "mail", "spam", "mail"] * 10
    with pytest.raises(ValueError, match=r"TextFeatures.*LogisticRegression"):
        tl.compare(texts, kinds)
    pipe = make_pipeline(tl.TextFeatures(), tl.LogisticRegression())
    assert tl.compare(texts, kinds, [pipe]).best.score == 1.0


def test_a_regression_among_classifiers_is_refused_by_name():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"'Ridge' predicts numbers.*task='regression'"):
        tl.compare(X, y, [tl.Ridge()])


def test_folds_of_sorted_rows_are_pointed_out(diabetes):
    X, y = diabetes
    order = np.argsort(y)
    in_order = tl.compare(X[order], y[order], ["ridge"])
    assert in_order.in_order
    assert "shuffle=True" in str(in_order)
    assert not tl.compare(X, y, ["ridge"]).in_order
    assert not tl.compare(X[order], y[order], ["ridge"], cv=KFold(5, shuffle=True)).in_order
