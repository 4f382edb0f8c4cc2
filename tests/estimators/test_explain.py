"""Explanations: the plan before a fit, what happened and the proof after it."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import LeaveOneGroupOut
from threadpoolctl import threadpool_limits

from trueline import (
    SVC,
    SVR,
    AdaptiveLasso,
    CalibratedClassifier,
    ElasticNet,
    ElasticNetCV,
    GaussianProcessRegressor,
    GroupLasso,
    KernelPerceptron,
    KernelRidge,
    Lasso,
    LassoCV,
    LinearRegression,
    LinearRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MultiTaskElasticNetCV,
    MultiTaskLassoCV,
    NuSVR,
    PoissonRegressor,
    PolynomialRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifierCV,
    RidgeCV,
    SparseGaussianProcessRegressor,
)
from trueline.errors import PairingError
from trueline.numerics.blas import available_threads
from trueline.solvers.registry import SOLVERS

MODELS = [
    LinearRegression(),
    LinearRegression(positive=True),
    Ridge(),
    RidgeCV(),
    PolynomialRegression(degree=3),
    LinearRegressor("huber", "elastic_net"),
]
COLUMNS = ["solver", "flops", "passes", "memory", "seconds", "verdict"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    return X, X @ [1.0, -2.0, 0.5] + rng.standard_normal(50)


def chosen(explanation):
    """The solver that the table marks; there must be exactly one."""
    (row,) = [row for row in explanation.table() if row["verdict"] == "chosen"]
    return row["solver"]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_plan_before_a_fit_is_the_one_that_is_carried_out(model, rows):
    before = model.explain(*rows)
    after = model.fit(*rows).explain()
    assert chosen(before) == chosen(after) == model.solver_
    assert before.table() == after.table()
    if not isinstance(model, RidgeCV):  # its strength is not known before
        assert before.plan == after.plan
        assert str(after).startswith(str(before))


@pytest.mark.parametrize("is_fitted", [False, True])
@pytest.mark.parametrize(
    "model",
    [Ridge(), RidgeCV(), Lasso(), LassoCV(), LogisticRegression(), PoissonRegressor()],
    ids=repr,
)
def test_solvers_for_other_losses_are_listed_on_demand(model, is_fitted, rows):
    X, y = rows
    y = (y > 0).astype(float)
    data = () if is_fitted else (X, y)
    model = model.fit(X, y) if is_fitted else model
    some, every = str(model.explain(*data)), str(model.explain(*data, all=True))
    for row in model.explain(*data).table():
        line = f" {row['solver']:<20} "
        assert line in every
        if row["seconds"] is not None:
            assert line in some
        else:
            assert f"{line}{row['verdict']}" in every
    assert " exchange " not in some  # it is for the largest error alone


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_planning_is_not_fitting(model, rows):
    fresh = clone(model)
    before = dict(vars(fresh))
    fresh.explain(*rows)
    assert vars(fresh) == before
    with pytest.raises(NotFittedError):
        fresh.explain()


def test_planning_leaves_a_fitted_model_as_it_is(rows):
    X, y = rows
    model = Ridge().fit(X, y)
    coef = model.coef_
    model.explain(np.ones((9, 7)), np.ones(9))
    assert model.coef_ is coef
    assert model.n_features_in_ == 3


def test_the_text_before_a_fit(rows):
    X, y = rows
    lines = str(Ridge(2.0).explain(X, y)).splitlines()
    assert lines[0] == (
        "minimise   sum_i [1/2 (z - y)^2] + alpha/2 ||w||^2,  z_i = x_i.w + b,  alpha = 2"
    )
    assert lines[1] == "data       50 rows x 3 columns, dense, 1 target"
    assert lines[2].startswith("solver     cholesky: ")
    assert re.fullmatch(
        r"cost       \d+ pass(es)? over the data, [\d.]+ \w+ each; twice the rows take "
        r"[\d.]+ times as long, twice the columns [\d.]+ times",
        lines[3],
    )
    assert lines[4] == (
        "fallback   qr, then conjugate_gradient, if the answer is not proven to the tolerance"
    )
    table = Ridge(2.0).explain(X, y).table()
    able = [row for row in table if row["seconds"] is not None]
    able.sort(key=lambda row: row["seconds"])
    assert lines[5].startswith("considered ")
    assert [line[11:].split()[0] for line in lines[5:-3]] == [row["solver"] for row in able]
    others = [row for row in table if row not in able]
    assert lines[-3].endswith("for other losses or penalties: all=True")
    assert lines[-2].startswith("by hand    normal equations")
    assert all("needs" in row["verdict"] for row in others)
    assert [row["solver"] for row in table] == list(SOLVERS)


def test_the_text_after_a_fit(rows):
    model = Ridge(2.0).fit(*rows)
    text = str(model.explain())
    assert "happened   cholesky, 1 iteration, " in text
    assert "refined in doubled precision (1 step)" in text
    assert "solved directly, to rounding" in text
    assert "proof      " in text
    assert model.certificate_.statement in text
    assert repr(model.explain()) == text


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LinearRegression(fit_intercept=False), "z_i = x_i.w,"),
        (LinearRegression(positive=True), "w >= 0"),
        (Ridge(3.0), "alpha = 3"),
        (LinearRegressor("huber"), "delta = "),
    ],
    ids=repr,
)
def test_the_objective_names_what_was_asked_for(model, words, rows):
    assert words in str(model.explain(*rows)).splitlines()[0] + ","


@pytest.mark.parametrize(
    ("model", "objective", "numbers"),
    [
        (Ridge(0.2), "+ alpha/2 ||w||^2,", "alpha = 0.2"),
        (Lasso(0.2), "+ n alpha ||w||_1,", "alpha = 0.2,  n alpha = 10"),
        (Lasso(0.2, positive=True), "+ n alpha ||w||_1, w >= 0", "alpha = 0.2,  n alpha = 10"),
        (
            ElasticNet(0.2, l1_ratio=0.5),
            "+ n alpha (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2),",
            "alpha = 0.2,  n alpha = 10,  l1_ratio = 0.5",
        ),
        (PoissonRegressor(alpha=0.2), "+ n alpha/2 ||w||^2,", "alpha = 0.2,  n alpha = 10"),
        (QuantileRegressor(alpha=0.2), "+ n alpha ||w||_1,", "alpha = 0.2,  n alpha = 10"),
        (
            GroupLasso(0.2, groups=[0, 0, 1], l2=0.1),
            "+ n alpha sum_g weight_g ||w_g|| + n l2/2 ||w||^2,",
            "alpha = 0.2,  n alpha = 10,  l2 = 0.1",
        ),
        (AdaptiveLasso(0.2), "+ n alpha ||w||_1,", "alpha = 0.2, times the weight of a column"),
        (LogisticRegression(C=4.0), "+ 1/(2 C) ||w||^2,", "C = 4,  1/C = 0.25"),
        (LogisticRegression(C=4.0, l1_ratio=1.0), "+ 1/C ||w||_1,", "C = 4,  1/C = 0.25"),
        (LinearSVC(C=7.0), "+ 1/(2 C) ||w||^2,", "C = 7,  1/C = 0.142857"),
        (LinearSVR(C=3.0), "+ 1/2 ||w||^2,", "s_i = C times the weight of row i,  C = 3"),
        (KernelRidge(alpha=0.2), "+ alpha/2 ||f||^2,", "alpha = 0.2"),
        (SVC(C=4.0), "+ C sum_i s_i max(0,", "C = 4"),
    ],
    ids=repr,
)
def test_the_strength_that_was_given_comes_first_then_what_it_is_in_the_sum(
    model, objective, numbers, rows
):
    X, y = rows
    y = (y > np.median(y)).astype(int) if is_classifier(model) else np.abs(y)
    for text in (str(model.explain(X, y)), str(model.fit(X, y).explain())):
        first = text.splitlines()[0]
        assert objective in first
        assert first.endswith(f",  {numbers}")


def test_with_weights_the_sum_of_the_weights_takes_the_place_of_the_rows(rows):
    X, y = rows
    weights = np.full(50, 3.0)
    model = Lasso(0.2).fit(X, y, sample_weight=weights)
    for explanation in (model.explain(), model.explain(X, y, weights)):
        first = str(explanation).splitlines()[0]
        assert "sum_i s_i [1/2 (z - y)^2] + sum(s) alpha ||w||_1" in first
        assert first.endswith("alpha = 0.2,  sum(s) alpha = 30")


@pytest.mark.parametrize("model", [Lasso(0.2), ElasticNet(0.2), LogisticRegression(C=4.0)])
def test_the_objective_that_is_shown_is_the_one_that_is_minimised(model, rows):
    X, y = rows
    if isinstance(model, LogisticRegression):
        y = np.where(y > np.median(y), 1, -1)
    model.fit(X, y)
    w, z = model.coef_.ravel(), X @ model.coef_.ravel() + model.intercept_
    if isinstance(model, LogisticRegression):
        value = np.sum(np.log1p(np.exp(-y * z))) + 1 / (2 * 4.0) * w @ w
    else:
        ratio = model.get_params().get("l1_ratio", 1.0)
        penalty = ratio * np.abs(w).sum() + (1 - ratio) / 2 * w @ w
        value = np.sum(0.5 * (z - y) ** 2) + 50 * 0.2 * penalty
    assert_allclose(model.certificate_.objective, value, rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (RidgeCV(), "alpha the best of 0.1, 1, 10 by leave-one-out"),
        (RidgeCV(2.0), "alpha the best of 2 by leave-one-out"),
        (
            RidgeCV(np.logspace(-3, 2, 50)),
            "alpha the best of 50 from 0.001 to 100 by leave-one-out",
        ),
        (RidgeCV([1.0, 5.0], cv=3), "alpha the best of 1, 5 by folds"),
    ],
    ids=["three", "one", "many", "folds"],
)
def test_before_a_choice_the_strengths_that_are_searched_are_named(model, words, rows):
    for _ in range(2):  # a fit on other data says nothing about this one
        assert str(model.explain(*rows)).splitlines()[0].endswith(f"z_i = x_i.w + b,  {words}")
        model.fit(*rows)
    assert str(model.explain()).splitlines()[0].endswith(f",  alpha = {model.alpha_:g}")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            LassoCV(),
            [
                "100 strengths, from the smallest that leaves all",
                "0.001 of it",
                "5 folds, 500 fits",
            ],
        ),
        (LassoCV(alphas=[0.5, 0.1], cv=3), ["strength 0.5, 0.1", "3 folds, 6 fits"]),
        (LassoCV(alphas=np.linspace(1, 2, 9)), ["9 times strength, from 2 to 1"]),
        (
            ElasticNetCV(l1_ratio=[0.5, 1.0], alphas=7, rule="1se"),
            ["7 strengths", "l1_ratio 0.5, 1", "70 fits", "within one standard error"],
        ),
        (LassoCV(cv=[([0, 1, 2], [3, 4]), ([3, 4], [0, 1])]), ["2 folds, 200 fits"]),
        (LassoCV(cv=iter([([0, 1, 2], [3, 4])])), ["the given folds"]),
        (LassoCV(cv=LeaveOneGroupOut()), ["the given folds"]),
    ],
    ids=["default", "given", "many", "mixtures", "folds", "iterator", "groups"],
)
def test_before_a_search_the_search_is_told_and_no_strength_made_up(model, words, rows):
    text = str(model.explain(*rows))
    assert text.splitlines()[0].endswith("alpha is chosen by the search,  n = 50")
    assert "from the moments of the folds" in text
    for word in words:
        assert word in text
    # A fit on other data says nothing about this one.
    model.alpha_ = 7.5
    assert str(model.explain(*rows)) == text


def test_a_search_on_wide_data_works_on_columns():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3000)), rng.standard_normal(20)
    assert "from the columns, a warm-started path per fold" in str(LassoCV().explain(X, y))
    Y = np.column_stack([y, y])
    assert "from the columns, a warm-started path per fold" in str(MultiTaskLassoCV().explain(X, Y))


@pytest.mark.parametrize(
    "model",
    [LassoCV(alphas=5, cv=3), LassoCV(alphas=[0.1], cv=3), LassoCV(alphas=5, cv=[([0, 1], [2])])],
    ids=["path", "one strength", "one fold"],
)
def test_after_a_search_what_it_chose_is_told(model, rows):
    model.fit(*rows)
    text = str(model.explain())
    assert f"{len(model.alphas_)} strength" in text
    folds = 1 if isinstance(model.cv, list) else 3
    assert f"; {folds} fold{'s' * (folds > 1)}\n" in text
    assert f"mean squared error is taken: alpha = {model.alpha_:g}\n" in text
    assert text.splitlines()[0].endswith(
        f"alpha = {model.alpha_:g},  n alpha = {50 * model.alpha_:g}"
    )


def test_weights_count_in_the_strength_of_a_search(rows):
    text = str(LassoCV().explain(*rows, sample_weight=np.full(50, 3.0)))
    assert "+ sum(s) alpha ||w||_1" in text
    assert "alpha is chosen by the search,  sum(s) = 150" in text


def test_planning_a_search_checks_the_strengths(rows):
    with pytest.raises(ValueError, match=r"alphas\[1\] == -1.0"):
        RidgeCV([1.0, -1.0]).explain(*rows)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 1), "1 row x 1 column, dense, 1 target"),
        ((3, 2), "3 rows x 2 columns, dense, 2 targets"),
        ((1200, 2), "1,200 rows x 2 columns, dense, 2 targets"),
    ],
)
def test_one_of_a_kind_is_singular(shape, words):
    X, y = np.ones(shape), np.ones(shape)
    assert words in str(Ridge().explain(X, y))


def test_the_data_are_described():
    X = sp.csr_array(np.where(np.arange(6000).reshape(200, 30) % 10 == 0, 1.0, 0.0))
    text = str(Ridge().explain(X, np.ones((200, 2)), np.ones(200)))
    assert "200 rows x 30 columns, sparse (0.1 filled), 2 targets" in text
    assert "s_i [" in text


def test_the_table_has_a_row_per_solver_with_estimates_or_a_reason(rows):
    table = LinearRegressor(penalty="l1").explain(*rows).table()
    assert [row["solver"] for row in table] == list(SOLVERS)
    for row in table:
        assert list(row) == COLUMNS
        if row["seconds"] is None:
            assert row["verdict"].startswith("needs ")
        else:
            assert row["flops"] > 0
            assert row["memory"] > 0
            assert row["verdict"] in ("chosen", "possible", "by name only")
    assert next(r for r in table if r["solver"] == "cholesky")["verdict"] == (
        "needs a quadratic penalty or none"
    )


def test_automatic_choice_is_the_cheapest_of_those_not_for_the_textbook(rows):
    table = LinearRegression().explain(*rows).table()
    open_ones = [row for row in table if row["verdict"] in ("chosen", "possible")]
    assert min(open_ones, key=lambda row: row["seconds"])["verdict"] == "chosen"


@pytest.mark.parametrize(
    "solver", ["cholesky", "qr", "svd", "conjugate_gradient", "gradient_descent"]
)
def test_a_solver_asked_for_by_name_is_taken(solver, rows):
    model = LinearRegressor(solver=solver, penalty="l2")
    before = model.explain(*rows)
    assert f"solver     {solver}: asked for by name" in str(before)
    assert chosen(before) == model.fit(*rows).solver_ == solver
    iterations = "1 iteration" if model.n_iter_ == 1 else f"{model.n_iter_:,} iterations"
    assert f"happened   {solver}, {iterations}, " in str(model.explain())


@pytest.mark.parametrize("allowed", [1, 2])
def test_it_says_how_many_threads_were_used_and_what_bounds_them(allowed):
    X = np.random.default_rng(0).standard_normal((100_000, 20))
    with threadpool_limits(allowed):
        used = available_threads()
        text = str(LinearRegressor(loss="squared").fit(X, X[:, 0]).explain())
    (line,) = [line for line in text.splitlines() if line.startswith("threads")]
    assert line.startswith(f"threads    {used} of {used} thread")
    assert re.search(r"of the time went into work cut into up to \d+ parts", line)
    assert ("no more are allowed" in line) == (used == 1)
    few = str(LinearRegressor(loss="squared").fit(X[:50], X[:50, 0]).explain())
    assert "no part of the work was worth sharing" in few


def test_names_of_scikit_learn_are_translated(rows):
    assert chosen(Ridge(solver="lsqr").explain(*rows)) == "conjugate_gradient"
    assert chosen(Ridge(solver="sag").explain(*rows)) == "conjugate_gradient"


@pytest.mark.parametrize(
    ("parameters", "lacks", "works"),
    [
        (
            {"penalty": "l1", "solver": "cholesky"},
            "cannot minimise the squared loss with the l1 penalty: it needs a quadratic penalty",
            "proximal_gradient",
        ),
        (
            {"loss": "huber", "solver": "qr"},
            "cannot minimise the huber loss with the l2 penalty: it needs squared loss",
            "gradient_descent",
        ),
        (
            {"positive": True, "solver": "svd"},
            "it needs coefficients of either sign",
            "active_set",
        ),
        (
            {"solver": "active_set"},
            "it needs nonnegative coefficients (positive=True)",
            "cholesky",
        ),
        (
            {"loss": "huber", "penalty": "l1", "solver": "qr"},
            "it needs squared loss and a quadratic penalty or none",
            "proximal_gradient",
        ),
    ],
)
def test_a_solver_that_cannot_says_what_is_missing_and_what_works(parameters, lacks, works, rows):
    model = LinearRegressor(**parameters)
    messages = []
    for ask in (model.explain, model.fit):
        with pytest.raises(PairingError) as caught:
            ask(*rows)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert lacks in messages[0]
    able = messages[0].partition("Solvers that can: ")[2].rstrip(".").split(", ")
    assert works in able
    for solver in able:
        model.set_params(solver=solver).explain(*rows)  # what is recommended is accepted


@pytest.mark.parametrize("model", [LinearRegression, Ridge, LinearRegressor])
def test_a_solver_that_nobody_knows_is_refused_before_and_in_a_fit(model, rows):
    for ask in (model(solver="magic").explain, model(solver="magic").fit):
        with pytest.raises(ValueError, match="'solver' parameter .* Got 'magic' instead"):
            ask(*rows)


def test_a_plan_needs_a_target(rows):
    with pytest.raises(ValueError, match=r"explain\(X, y\) needs the target y"):
        Ridge().explain(rows[0])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_plans_are_deterministic(model, rows):
    X, y = rows
    plans = {str(model.explain(X, y)) for _ in range(3)}
    assert len(plans) == 1
    other = np.random.default_rng(9).standard_normal(X.shape)
    assert str(model.explain(other, y + 1.0)) in plans  # sizes decide, not the numbers


def test_what_happened_to_dependent_columns_is_told(rows):
    X, y = rows
    model = LinearRegression().fit(np.hstack([X, X]), y)
    assert model.rank_ == 3
    assert "rank 3" in str(model.explain())


def test_batches_are_explained(rows):
    X, y = rows
    model = LinearRegression().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    text = str(model.explain())
    assert "50 rows x 3 columns" in text
    assert "from the moments of all batches" in text


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SVR(kernel="linear"),
        NuSVR(),
        SVC(solver="textbook_smo"),
        SVC(cache_size=1e-3),
        KernelRidge(),
        KernelPerceptron(),
        GaussianProcessRegressor(),
        GaussianProcessRegressor(optimizer=None),
        SparseGaussianProcessRegressor(),
    ],
    ids=lambda model: str(model),
)
def test_kernel_machines_say_what_they_would_do(model):
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = (X[:, 0] > 0).astype(int)
    text = str(model.explain(X, y))
    assert "data       40 rows x 3 columns, dense" in text
    assert "solver     " in text or "visits     " in text
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="needs the target y"):
        model.explain(X)


def test_a_calibrated_classifier_plans_the_classifier_inside():
    X = np.random.default_rng(0).standard_normal((40, 3))
    text = str(CalibratedClassifier(LinearSVC()).explain(X, (X[:, 0] > 0).astype(int)))
    assert text.startswith("minimise   sum_i [max(0, 1 - y_i z_i)^2]")


# --- a chosen strength at an end of its grid ------------------------------------------------------

GRID_SEARCHES = {
    "RidgeCV": (RidgeCV, {}),
    "RidgeCV-folds": (RidgeCV, {"cv": 3}),
    "RidgeClassifierCV": (RidgeClassifierCV, {}),
    "LassoCV": (LassoCV, {}),
    "ElasticNetCV": (ElasticNetCV, {"l1_ratio": [0.5, 0.9]}),
    "MultiTaskLassoCV": (MultiTaskLassoCV, {}),
    "MultiTaskElasticNetCV": (MultiTaskElasticNetCV, {}),
}


def grid_data(name):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 12))
    y = X[:, :4] @ [2.0, -1.0, 1.0, 0.5] + 2.0 * rng.standard_normal(80)
    if "Classifier" in name:
        return X, (y > 0).astype(int)
    return X, np.column_stack([y, y[::-1]]) if "Multi" in name else y


@pytest.mark.parametrize("name", GRID_SEARCHES)
def test_a_strength_at_an_end_of_its_grid_is_said(name):
    cls, options = GRID_SEARCHES[name]
    X, y = grid_data(name)
    grid = np.geomspace(1e-4, 1e4, 81)
    inside = cls(alphas=grid, **options).fit(X, y)
    assert grid[0] < inside.alpha_ < grid[-1]
    assert "that were tried" not in str(inside.explain())
    below, above = grid[grid < inside.alpha_][-3:], grid[grid > inside.alpha_][:3]
    said = f"alpha = {below[-1]:g} is the largest of the 3 that were tried; a larger one may do"
    assert said in str(cls(alphas=below, **options).fit(X, y).explain())
    said = f"alpha = {above[0]:g} is the smallest of the 3 that were tried; a smaller one may do"
    assert said in str(cls(alphas=above, **options).fit(X, y).explain())


@pytest.mark.parametrize("name", [name for name in GRID_SEARCHES if "Ridge" not in name])
def test_a_strength_that_leaves_nothing_is_said(name):
    cls, options = GRID_SEARCHES[name]
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    y = np.column_stack([y, y]) if "Multi" in name else y
    for alphas in (100, [1.0, 10.0, 100.0]):
        model = cls(alphas=alphas, **options).fit(X, y)
        assert not np.any(model.coef_)
        text = str(model.explain())
        assert f"alpha = {model.alpha_:g} leaves all coefficients zero, and none of" in text
        assert "is the largest" not in text


def test_every_target_has_its_own_end_and_zero_is_none():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    Y = np.column_stack([X[:, 0], rng.standard_normal(50), rng.standard_normal(50)])
    model = RidgeCV(alphas=[0.1, 1.0, 10.0], alpha_per_target=True).fit(X, Y)
    assert model.alpha_.tolist() == [0.1, 10.0, 10.0]
    text = str(model.explain())
    assert "alpha = 0.1 is the smallest of the 3 that were tried, for 1 of 3 choices" in text
    assert "alpha = 10 is the largest of the 3 that were tried, for 2 of 3 choices" in text
    exact = RidgeCV(alphas=[0.0, 1.0, 10.0], cv=3).fit(X, Y[:, 0])
    assert exact.alpha_ == 0.0
    assert "that were tried" not in str(exact.explain())


def test_the_normal_equations_are_counted_as_in_a_lecture():
    """n d^2 + n d + d^3/3 + d^2 by hand for n = 100, d = 6: 3600 + 600 + 72 + 36 = 4308."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 6)), rng.normal(size=100)
    first, second = Ridge().explain(X, y).by_hand
    for part in ("X'X: n d^2 = 3,600", "X'y: n d = 600", "factor: d^3/3 = 72", "solve: d^2 = 36"):
        assert part in first
    # A step is 2 n d = 1200: three of them are 3600, four are more than 4308.
    assert second == (
        "4,308 in all; a step of gradient descent takes 2 n d = 1,200: gradient descent costs "
        "less where 3 steps or fewer are enough"
    )
    assert second in str(LinearRegression().explain(X, y))
    two = LinearRegression().explain(X[:4], np.c_[y, y][:4]).by_hand
    assert "X'y: n d k = 48" in two[0]
    assert two[1].endswith("with so few rows X'X has no inverse")
    one = Ridge().explain(X[:, :1], y).by_hand[1]
    assert one.endswith("gradient descent costs less where a single step is enough")
    # Elsewhere nobody solves these equations.
    assert not Lasso().explain(X, y).by_hand
    assert not Ridge().explain(sp.csr_array(X), y).by_hand
