"""Linear support vector classification: LIBLINEAR's objective, exactly, and proven."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as Liblinear
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import LinearSVC, load, save
from trueline.errors import PairingError

LOSSES = ("hinge", "squared_hinge")


def noisy(n: int = 200, d: int = 5, seed: int = 0, classes: int = 2):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, classes)) + random.normal(size=(n, classes)) + 0.3
    return X, np.array(["ash", "elm", "oak", "fir"])[scores.argmax(axis=1)]


def objective(model, X, y, weights=1.0):
    """As the docstring states it, summed over the problems of one class against the rest."""
    total = 0.0
    rows = [model.classes_[1]] if len(model.classes_) == 2 else model.classes_
    for name, w, b in zip(rows, model.coef_, model.intercept_, strict=True):
        short = np.maximum(0.0, 1 - np.where(y == name, 1.0, -1.0) * (X @ w + b))
        losses = short if model.loss == "hinge" else short**2
        total += np.abs(w).sum() if model.penalty == "l1" else 0.5 * w @ w
        total += model.C * np.sum(weights * losses)
        if model.fit_intercept and model.intercept_scaling is not None:
            total += 0.5 * (b / model.intercept_scaling) ** 2
    return float(total)


def liblinear(X, y, weights=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Liblinear(tol=1e-10, max_iter=100_000, random_state=0, **options)
        return model.fit(X, y, weights)


@parametrize_with_checks([LinearSVC()])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        LinearSVC(loss="hinge"),
        LinearSVC(penalty="l1"),
        LinearSVC(intercept_scaling=None),
    ]
)
def test_contract_with_more_settings(estimator, check):
    check(estimator)


@pytest.mark.grid(2)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_it_reaches_the_minimum_that_liblinear_approaches(loss, C, classes, kind):
    X, y = noisy(classes=classes)
    options = {"C": C, "loss": loss, "intercept_scaling": 2.0}
    data = sp.csr_array(X) if kind == "sparse" else X
    ours = LinearSVC(**options, tol=1e-6).fit(data, y)
    other = liblinear(X, y, **options)
    best, reference = objective(ours, X, y), objective(other, X, y)
    assert best <= reference * (1 + 1e-9)
    assert best == pytest.approx(reference, rel=1e-5)
    assert C * ours.certificate_.objective == pytest.approx(best, rel=1e-10)
    assert ours.certificate_.relative_gap <= 1e-7
    assert ours.verify(data, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weight", ["balanced", {"ash": 3.0}])
def test_weights_of_classes_mean_what_they_mean_in_liblinear(loss, classes, weight):
    X, y = noisy(classes=classes)
    options = {"loss": loss, "class_weight": weight, "intercept_scaling": 1.0, "C": 0.1}
    ours, other = LinearSVC(**options, tol=1e-8).fit(X, y), liblinear(X, y, **options)
    assert_allclose(ours.coef_, other.coef_, atol=1e-5)
    assert_allclose(ours.intercept_, other.intercept_, atol=1e-5)
    assert ours.verify(X, y)


@pytest.mark.grid(2)
@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"penalty": "l1"}], ids=str)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_defaults_are_those_of_scikit_learn(options, classes, kind):
    # Far from the origin it matters that the intercept is penalised.
    X, y = noisy(classes=classes)
    X = X + 3.0
    data = sp.csr_array(X) if kind == "sparse" else X
    ours, other = LinearSVC(**options, tol=1e-6).fit(data, y), liblinear(X, y, **options)
    assert_allclose(ours.coef_, other.coef_, atol=2e-4 * np.abs(other.coef_).max())
    assert_allclose(ours.intercept_, other.intercept_, atol=2e-4 * np.abs(other.intercept_).max())
    # Rows exactly on the margins of two classes have equal scores: rounding chooses.
    scores = np.sort(np.atleast_2d(other.decision_function(X).T), axis=0)
    lead = np.abs(scores[0]) if classes == 2 else scores[-1] - scores[-2]
    assert_array_equal(ours.predict(X)[lead > 0.01], other.predict(X)[lead > 0.01])
    assert ours.verify(data, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_intercept_is_free_without_a_scaling(loss, kind):
    X, y = noisy()
    data = sp.csr_array(X) if kind == "sparse" else X
    free = LinearSVC(loss=loss, tol=1e-8, intercept_scaling=None).fit(data, y)
    # A constant column of huge size is hardly penalised.
    almost = LinearSVC(loss=loss, intercept_scaling=1e4, tol=1e-10).fit(data, y)
    assert objective(free, X, y) <= objective(almost, X, y)
    assert_allclose(free.coef_, almost.coef_, atol=1e-4)
    assert_allclose(free.intercept_, almost.intercept_, atol=1e-4)
    assert free.verify(data, y)


def test_without_a_penalty_worth_speaking_of_the_hinge_is_a_linear_program():
    X, y = noisy(n=60, d=2)
    signs = np.where(y == "elm", 1.0, -1.0)
    n, d = X.shape
    # min sum e + c sum |w|, y (x.w + b) >= 1 - e: with c -> 0 the hinge alone decides.
    A = -np.hstack([signs[:, None] * X, signs[:, None], np.eye(n)])
    cost = np.r_[np.zeros(d + 1), np.ones(n)]
    bounds = [(None, None)] * (d + 1) + [(0, None)] * n
    best = linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=bounds).fun
    model = LinearSVC(loss="hinge", C=1e8).fit(X, y)
    hinge = np.maximum(0, 1 - signs * model.decision_function(X)).sum()
    assert hinge == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_a_row_twice(loss):
    X, y = noisy(n=80)
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), weights.astype(int))
    model = LinearSVC(loss=loss, tol=1e-9).fit(X, y, weights)
    twice = LinearSVC(loss=loss, tol=1e-9).fit(X[again], y[again])
    assert_allclose(model.coef_, twice.coef_, atol=1e-6)
    assert model.verify(X, y, weights)


def test_l1_leaves_columns_out():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = LinearSVC(penalty="l1", C=0.01, tol=1e-6, intercept_scaling=1.0).fit(X, y)
    # LIBLINEAR penalises the constant by its absolute value too.
    other = liblinear(X, y, penalty="l1", C=0.01, dual=False)
    assert 0 < np.count_nonzero(ours.coef_) < 20
    assert_allclose(ours.coef_, other.coef_, atol=2e-4)
    assert ours.verify(X, y)


def crammer_singer(model, X, y):
    scores = X @ model.coef_.T + model.intercept_
    at = np.arange(len(y)), np.searchsorted(model.classes_, y)
    own = scores[at]
    others = scores + 1.0
    others[at] -= 1.0
    level = 0.0 if model.intercept_scaling is None else model.intercept_ / model.intercept_scaling
    squares = np.sum(model.coef_**2) + np.sum(np.square(level))
    return float(0.5 * squares + model.C * (others.max(axis=1) - own).sum())


@pytest.mark.parametrize("C", [0.01, 0.3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_all_classes_in_one_problem(C, kind):
    X, y = noisy(classes=4)
    data = sp.csr_array(X) if kind == "sparse" else X
    options = {"multi_class": "crammer_singer", "C": C, "max_iter": 100_000}
    ours = LinearSVC(**options, intercept_scaling=1.0, tol=1e-5).fit(data, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = Liblinear(**options, tol=1e-10, random_state=0).fit(X, y)
    best = crammer_singer(ours, X, y)
    assert best == pytest.approx(crammer_singer(other, X, y), rel=1e-5)
    assert C * ours.certificate_.objective == pytest.approx(best, rel=1e-10)
    assert ours.verify(data, y)
    free = LinearSVC(**options, intercept_scaling=None, tol=1e-5).fit(data, y)
    assert crammer_singer(free, X, y) <= best
    assert free.certificate_.gap <= 1e-6 * len(y)
    assert free.verify(data, y)
    free.coef_ = free.coef_ * 1.01
    assert not free.verify(data, y)


def test_two_classes_in_one_problem_are_one_support_vector_machine():
    # With w_2 = -w_1 = w the loss is the hinge of 2 x.w, and the penalties add up.
    X, y = noisy()
    both = LinearSVC(multi_class="crammer_singer", C=0.5, tol=1e-6, max_iter=100_000).fit(X, y)
    one = LinearSVC(loss="hinge", C=1.0).fit(X, y)
    assert_allclose(both.coef_, one.coef_, atol=1e-3)
    assert both.verify(X, y)
    assert_array_equal(both.predict(X), one.predict(X))


def test_only_support_vectors_matter():
    X, y = noisy(n=300)
    model = LinearSVC(loss="hinge").fit(X, y)
    assert len(model.support_) < len(y)
    again = LinearSVC(loss="hinge").fit(X[model.support_], y[model.support_])
    assert_allclose(again.coef_, model.coef_, atol=1e-7)
    inside = np.where(y == "elm", 1, -1) * model.decision_function(X) <= 1 + 1e-8
    assert_array_equal(np.flatnonzero(inside), model.support_)


def test_the_margin_is_the_distance_of_the_nearest_rows_where_classes_are_apart():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    model = LinearSVC(loss="hinge", C=1e4).fit(X, y)
    distance = np.abs(model.decision_function(X)) / np.linalg.norm(model.coef_)
    assert distance.min() == pytest.approx(model.margin_[0], rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_stays_single(loss):
    X, y = noisy()
    model = LinearSVC(loss=loss).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    assert model.verify(X.astype(np.float32), y)


@pytest.mark.parametrize("loss", LOSSES)
def test_changed_coefficients_are_found_out(loss):
    X, y = noisy()
    model = LinearSVC(loss=loss).fit(X, y)
    model.coef_ = model.coef_ * 1.01
    assert not model.verify(X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_models_are_kept_in_files(tmp_path, loss):
    X, y = noisy(classes=3)
    model = LinearSVC(loss=loss).fit(X, y)
    save(model, tmp_path / "model.trueline")
    back = load(tmp_path / "model.trueline")
    assert_array_equal(back.predict(X), model.predict(X))
    assert back.verify(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "l1", "loss": "hinge"},
        {"penalty": "l1", "dual": True},
        {"loss": "hinge", "dual": False},
        {"C": 0.0},
        {"C": -1.0},
        {"intercept_scaling": 0.0},
        {"class_weight": {"ash": -1.0}},
    ],
)
def test_contradictory_parameters_are_refused(options):
    X, y = noisy(n=20)
    with pytest.raises(ValueError):
        LinearSVC(**options).fit(X, y)


def test_columns_on_wild_scales():
    X, y = noisy()
    scale = 10.0 ** np.array([-6, -3, 0, 3, 6])
    model = LinearSVC(loss="hinge", C=1.0).fit(X * scale, y)
    assert model.certificate_.relative_gap < 1e-6
    assert model.verify(X * scale, y)


@pytest.mark.grid(2)
@pytest.mark.parametrize("scaling", [None, 1.0])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_expressions_of_thousands_of_genes(loss, classes, scaling):
    # Few rows, many skewed columns: every row can be fitted, and the way passes all kinks.
    random = np.random.default_rng(0)
    y = np.arange(60) % classes
    shift = 0.3 * random.normal(size=(classes, 2100))
    X = np.exp(0.8 * random.normal(size=(60, 2100)) + shift[y])
    options = {"loss": loss, "intercept_scaling": scaling}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearSVC(**options).fit(X, y)
    assert model.verify(X, y)
    asked = 1e-6 * len(y) * classes  # of what all coefficients at zero cost
    assert model.certificate_.gap <= asked
    if scaling is not None:
        reference = objective(liblinear(X, y, **options), X, y)
        assert abs(objective(model, X, y) - reference) <= asked


@pytest.mark.parametrize("loss", LOSSES)
def test_one_in_a_thousand(loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 3))
    y = np.zeros(3000, dtype=int)
    y[:3] = 1
    X[:3] += 4.0
    model = LinearSVC(loss=loss, class_weight="balanced").fit(X, y)
    assert (model.predict(X[:3]) == 1).all()
    assert model.verify(X, y)


# --- the hard margin ----------------------------------------------------------------------------


def apart(n=60, d=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    w = random.normal(size=d)
    y = np.where(X @ w + 0.2 > 0, "up", "down")
    return X + 0.3 * np.outer(np.where(y == "up", 1, -1), w / np.linalg.norm(w)), y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse", "single"])
def test_the_hard_margin_is_the_limit_of_the_hinge(fit_intercept, kind):
    X, y = apart()
    if not fit_intercept:
        X = np.abs(X) * np.where(y == "up", 1, -1)[:, None]
    data = {"dense": X, "sparse": sp.csr_array(X), "single": X.astype(np.float32)}[kind]
    hard = LinearSVC(C=np.inf, fit_intercept=fit_intercept).fit(data, y)
    free = {"fit_intercept": fit_intercept, "intercept_scaling": None}
    soft = LinearSVC(loss="hinge", C=1e7, **free).fit(X, y)
    assert_allclose(hard.coef_, soft.coef_, rtol=1e-4)
    assert_array_equal(hard.support_, soft.support_)
    signs = np.where(y == "up", 1, -1)
    assert (signs * (X @ hard.coef_[0] + hard.intercept_[0]))[hard.support_] == pytest.approx(1.0)
    assert hard.certificate_.relative_gap < 1e-10
    assert hard.verify(data, y)
    hard.coef_ = hard.coef_ * 0.999
    assert not hard.verify(data, y)


def test_without_a_hard_margin_the_rows_that_exclude_it_are_named():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(
        ValueError, match="no hard margin.*rows 2 and 3 of 'odd'.*rows 0 and 1 of 'even'"
    ):
        LinearSVC(C=np.inf).fit(X, ["even", "even", "odd", "odd"])


def test_hard_margins_of_several_classes():
    X, y = load_iris(return_X_y=True)
    centres = 10.0 * np.eye(4)[:, :3].T
    X = X - X.mean(axis=0) + centres[y]
    model = LinearSVC(C=np.inf).fit(X, y)
    assert (model.predict(X) == y).all()
    assert model.verify(X, y)


def test_a_hard_margin_has_a_free_intercept():
    X, y = apart()
    models = [LinearSVC(C=np.inf, intercept_scaling=size).fit(X + 5, y) for size in (None, 0.1, 1)]
    for model in models:
        assert_array_equal(model.coef_, models[0].coef_)
        assert_array_equal(model.intercept_, models[0].intercept_)


@pytest.mark.parametrize("options", [{"penalty": "l1"}, {"multi_class": "crammer_singer"}])
def test_what_a_hard_margin_does_not_go_with(options):
    X, y = apart()
    with pytest.raises(ValueError, match=r"C=np\.inf"):
        LinearSVC(C=np.inf, **options).fit(X, y)


@pytest.mark.parametrize("seed", range(60))
def test_hard_margins_of_offsets_copies_and_single_precision_verify(seed):
    draw = np.random.default_rng(seed)
    n, d = int(draw.integers(4, 40)), int(draw.integers(1, 10))
    w, X = draw.normal(size=d), draw.normal(size=(n, d))
    signs = np.where(np.arange(n) % 2 == 0, 1, -1)
    # Every row to its side, by at least a tenth.
    X += np.outer(signs * (np.abs(X @ w) + 0.1) - X @ w, w) / (w @ w)
    X = X * 10.0 ** draw.uniform(-6, 6) + 10.0 ** draw.uniform(-3, 3) * draw.normal(size=d)
    if seed % 3 == 0:
        X = X.astype(np.float32)
    twice = draw.integers(n, size=n)
    X, signs = np.vstack([X, X[twice]]), np.append(signs, signs[twice])
    weights = draw.integers(3, size=len(signs)).astype(float) if seed % 2 else None
    if weights is not None:
        weights[:4] = 1.0
    try:
        model = LinearSVC(C=np.inf).fit(X, signs, weights)
    except ConvergenceWarning as warning:  # beside a large offset fewer digits can be proven
        assert "proven within" in str(warning)  # noqa: PT017
        return
    assert model.verify(X, signs, weights)
    assert model.certificate_.gap <= 1e-6 * model.certificate_.objective


def test_the_method_of_multipliers_refuses_a_free_intercept():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    model = LinearSVC(loss="hinge", intercept_scaling=None, solver="multipliers")
    with pytest.raises(PairingError, match="needs every coefficient penalised"):
        model.fit(X, X[:, 0] > 0.5)
