"""Changes of the data that change the answer in a known way, or not at all."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import trueline
from trueline import LinearRegression, LinearRegressor, PolynomialRegression, Ridge, RidgeCV

MODELS = {
    "least squares": LinearRegression(),
    "least squares without intercept": LinearRegression(fit_intercept=False),
    "nonnegative least squares": LinearRegression(positive=True),
    "least squares by QR": LinearRegression(solver="qr"),
    "ridge": Ridge(alpha=0.7),
    "ridge without intercept": Ridge(alpha=0.7, fit_intercept=False),
    "nonnegative ridge": Ridge(alpha=0.7, positive=True),
    "ridge by kernel": Ridge(alpha=0.7, solver="kernel"),
    "ridge by folds": RidgeCV([0.7], cv=2),
    "polynomial": PolynomialRegression(degree=2),
    "robust": LinearRegressor("huber", "l2", alpha=0.7, tol=1e-10),
    "elastic net": LinearRegressor("squared", "elastic_net", alpha=0.7, tol=1e-10),
}
DIRECT = {name: model for name, model in MODELS.items() if not isinstance(model, LinearRegressor)}
SHAPES = {"tall": (24, 4), "wide": (6, 10)}


def accuracy(model):
    """Direct solvers are compared at rounding; a gap of 1e-10 is an error of its root."""
    return 1e-5 if isinstance(model, LinearRegressor) else 1e-11


def room(model):
    """How far data are shifted: the rounding of large numbers hides a small gap from a proof."""
    return 2.0 if isinstance(model, LinearRegressor) else 100.0


def data(shape="tall", targets=1, seed=0):
    rng = np.random.default_rng(seed)
    n, d = SHAPES[shape]
    X = rng.standard_normal((n, d))
    Y = X @ rng.standard_normal((d, targets)) + rng.standard_normal((n, targets)) + 3.0
    return X, Y[:, 0] if targets == 1 else Y


def fitted(model, X, y, weights=None):
    """Coefficients with the intercepts as last column."""
    model.fit(X, y, sample_weight=weights)
    coef = np.atleast_2d(model.coef_)
    return np.column_stack([coef, np.broadcast_to(model.intercept_, len(coef))])


def assert_close(actual, expected, tolerance):
    assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# --- rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(name):
    model = MODELS[name]
    X, y = data()
    counts = np.tile([0, 1, 2, 3], 6)
    repeated = np.repeat(np.arange(len(y)), counts)
    if isinstance(model, RidgeCV):  # folds cut repeated rows apart
        model = Ridge(alpha=0.7)
    weighted = fitted(model, X, y, counts)
    assert_close(weighted, fitted(model, X[repeated], y[repeated]), accuracy(model))


@pytest.mark.parametrize("name", MODELS)
def test_rows_without_weight_do_not_count(name):
    model = MODELS[name]
    X, y = data()
    weights = np.tile([0.0, 1.5], 12)
    before = fitted(model, X, y, weights)
    X[::2], y[::2] = room(model) ** 3, -(room(model) ** 4)
    assert_close(fitted(model, X, y, weights), before, accuracy(model))


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_rows_does_not_matter(name):
    model = MODELS[name]
    X, y = data()
    order = np.random.default_rng(1).permutation(len(y))
    assert_close(fitted(model, X[order], y[order]), fitted(model, X, y), accuracy(model))


@pytest.mark.parametrize("name", ["ridge", "nonnegative ridge", "robust", "elastic net"])
def test_all_weights_and_the_strength_times_a_factor_is_the_same_problem(name):
    model = MODELS[name]
    X, y = data()
    before = fitted(model, X, y, np.ones(len(y)))
    stronger = trueline.__dict__[type(model).__name__](**{**model.get_params(), "alpha": 0.7 * 8})
    assert_close(fitted(stronger, X, y, np.full(len(y), 8.0)), before, accuracy(model))


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "polynomial"])
def test_coefficients_move_with_their_columns(name, shape):
    model = MODELS[name]
    if shape == "wide" and name == "nonnegative least squares":
        pytest.skip("the answer is not unique")
    X, y = data(shape)
    order = np.random.default_rng(1).permutation(X.shape[1])
    expected = fitted(model, X, y)[:, [*order, -1]]
    assert_close(fitted(model, X[:, order], y), expected, accuracy(model))


@pytest.mark.parametrize("solver", ["cholesky", "qr", "svd"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@given(powers=st.lists(st.integers(-40, 40), min_size=4, max_size=4))
@settings(max_examples=15, deadline=None)
def test_columns_times_powers_of_two_divide_the_coefficients_exactly(solver, fit_intercept, powers):
    X, y = data()
    scale = np.ldexp(1.0, powers)
    model = LinearRegression(solver=solver, fit_intercept=fit_intercept)
    before = fitted(model, X, y)
    after = fitted(model, X * scale, y)
    assert_array_equal(after[:, :-1] * scale, before[:, :-1])
    assert_array_equal(after[:, -1], before[:, -1])


@pytest.mark.parametrize("name", DIRECT)
@given(power=st.integers(-200, 200))
@settings(max_examples=8, deadline=None)
def test_the_target_times_a_power_of_two_multiplies_the_coefficients_exactly(name, power):
    X, y = data()
    before = fitted(DIRECT[name], X, y)
    assert_array_equal(fitted(DIRECT[name], X, np.ldexp(y, power)), np.ldexp(before, power))


@pytest.mark.parametrize("name", MODELS)
def test_shifting_the_target_shifts_the_intercept(name):
    model = MODELS[name]
    if not model.fit_intercept:
        pytest.skip("has no intercept")
    X, y = data()
    expected = fitted(model, X, y)
    shift = room(model)
    expected[:, -1] += shift
    assert_close(fitted(model, X, y + shift), expected, accuracy(model))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "polynomial"])
def test_shifting_the_columns_changes_the_intercept_alone(name, shape):
    model = MODELS[name]
    if not model.fit_intercept or (shape == "wide" and name == "nonnegative least squares"):
        pytest.skip("has no intercept, or no unique answer")
    X, y = data(shape)
    shift = np.linspace(-room(model), room(model), X.shape[1])
    expected = fitted(model, X, y)
    expected[:, -1] -= expected[:, :-1] @ shift
    assert_close(fitted(model, X + shift, y), expected, max(1e-9, accuracy(model)))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "polynomial"])
def test_a_column_of_zeros_gets_coefficient_zero(name):
    model = MODELS[name]
    X, y = data()
    expected = np.insert(fitted(model, X, y), 2, 0.0, axis=1)
    actual = fitted(model, np.insert(X, 2, 0.0, axis=1), y)
    assert_close(actual, expected, accuracy(model))
    assert actual[0, 2] == 0.0


@pytest.mark.parametrize("name", MODELS)
def test_targets_do_not_interact(name):
    model = MODELS[name]
    X, Y = data(targets=3)
    each = np.vstack([fitted(model, X, y) for y in Y.T])
    assert_close(fitted(model, X, Y), each, accuracy(model))


# --- storage ------------------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "polynomial"])
def test_sparse_is_dense(name, weighted, shape):
    model = MODELS[name]
    if shape == "wide" and name == "nonnegative least squares":
        pytest.skip("the answer is not unique")
    if "QR" in name:
        model = LinearRegression(solver="cholesky")
    X, y = data(shape)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0.0
    weights = np.linspace(0.5, 2.0, len(y)) if weighted else None
    expected = fitted(model, X, y, weights)
    for form in (sp.csr_array, sp.csc_array):
        assert_close(fitted(model, form(X), y, weights), expected, accuracy(model))


@pytest.mark.grid(1)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["C", "F", "sparse"])
def test_input_is_never_modified(name, form):
    model = MODELS[name]
    if form == "sparse" and name == "polynomial":
        pytest.skip("takes no sparse data")
    X, Y = data(targets=2)
    X *= 2.0**400 if name == "least squares" else 1.0  # this one is scaled inside
    X = sp.csr_array(X) if form == "sparse" else np.array(X, order=form)
    weights = np.linspace(0.0, 2.0, len(Y))
    numbers = X.data if form == "sparse" else X
    kept = [numbers, Y, weights]
    before = [array.copy() for array in kept]
    for array in kept:
        array.flags.writeable = False
    model.fit(X, Y, sample_weight=weights)
    model.predict(X)
    model.verify(X, Y, weights)
    for array, copy in zip(kept, before):
        assert_array_equal(array, copy)


def test_input_is_not_kept():
    X, y = data()
    model = LinearRegression().fit(X, y)
    before = model.coef_.copy(), model.moments_.gram.copy()
    X[:], y[:] = 0.0, 0.0
    assert_array_equal(model.coef_, before[0])
    assert_array_equal(model.moments_.gram, before[1])


BIG = {"tall": (3000, 200), "broad": (2000, 600), "wide": (300, 1000)}
THREADED = {
    "least squares": LinearRegression(),
    "least squares by QR": LinearRegression(solver="qr"),
    "ridge": Ridge(),
    "ridge by leave-one-out": RidgeCV([0.1, 10.0]),
    "ridge by folds": RidgeCV([0.1, 10.0], cv=2),
    "conjugate gradients": Ridge(solver="sparse_cg"),
}


@pytest.mark.grid(1)
@pytest.mark.parametrize("shape", BIG)
@pytest.mark.parametrize("name", THREADED)
def test_the_number_of_threads_does_not_change_a_bit(name, shape):
    if (name, shape) in {("least squares by QR", "broad"), ("ridge by folds", "broad")}:
        pytest.skip("takes long, and shows no more than the other shapes")
    n, d = BIG[shape]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X[:, 0] + rng.standard_normal(n)
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            answers.append(fitted(THREADED[name], X, y))
    assert_array_equal(*answers)


def _labels(X, rng):
    return np.argmax(X[:, :3] + rng.standard_normal((len(X), 3)), axis=1)


SHARED = {
    "logistic": (trueline.LogisticRegression(), lambda X, rng: _labels(X, rng) > 0),
    "softmax": (trueline.LogisticRegression(), _labels),
    "one-vs-rest": (
        trueline.OneVsRestClassifier(trueline.LogisticRegression(), n_jobs=-1),
        _labels,
    ),
    "folds": (
        trueline.LogisticRegressionCV(Cs=3, cv=3),
        lambda X, rng: _labels(X, rng) > 0,
    ),
    "Huber": (trueline.HuberRegressor(), lambda X, rng: X[:, 0] + rng.standard_t(2, len(X))),
    "perceptron": (trueline.Perceptron(max_iter=3, tol=None), _labels),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SHARED)
def test_the_number_of_threads_does_not_change_a_bit_of_shared_work(name, form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((36_000, 20)) * (rng.random((36_000, 20)) < 0.7)
    model, target = SHARED[name]
    y, answers = target(X, rng), []
    for threads in (1, 2):
        with threadpool_limits(threads):
            fit = clone(model).fit(form(X), y)
            scores = fit.predict if name == "Huber" else fit.decision_function
            answers.append(scores(X[:99]))
    assert_array_equal(*answers)


# --- batches ------------------------------------------------------------------------------------

INCREMENTAL = {
    name: model
    for name, model in MODELS.items()
    if isinstance(model, LinearRegression | Ridge) and model.solver == "auto"
}


def in_batches(model, X, y, cuts, weights=None):
    """partial_fit over the rows between the cuts, on a new model."""
    model = type(model)(**model.get_params())
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(y)}), len(y)]
    for start, stop in pairwise(bounds):
        part = None if weights is None else weights[start:stop]
        model.partial_fit(X[start:stop], y[start:stop], sample_weight=part)
    return model


def stacked(model):
    coef = np.atleast_2d(model.coef_)
    return np.column_stack([coef, np.broadcast_to(model.intercept_, len(coef))])


# After fewer rows than columns the moments prove nothing about nonnegative coefficients.
@pytest.mark.grid(1)
@pytest.mark.filterwarnings("ignore:LinearRegression stopped short of the optimum .proven within")
@pytest.mark.parametrize("name", INCREMENTAL)
@pytest.mark.parametrize("targets", [1, 2])
@given(cuts=st.lists(st.integers(1, 23), max_size=23), weighted=st.booleans())
@settings(max_examples=12, deadline=None)
def test_any_batches_give_the_answer_of_all_rows(name, targets, cuts, weighted):
    X, y = data(targets=targets)
    weights = np.linspace(0.5, 3.0, len(y)) if weighted else None
    whole = fitted(INCREMENTAL[name], X, y, weights)
    batched = in_batches(INCREMENTAL[name], X, y, cuts, weights)
    assert_close(stacked(batched), whole, 1e-11)
    assert batched.coef_.shape == INCREMENTAL[name].coef_.shape
    assert np.shape(batched.intercept_) == np.shape(INCREMENTAL[name].intercept_)


def test_single_rows_are_batches():
    X, y = data()
    single = in_batches(LinearRegression(), X, y, range(len(y)))
    assert_close(stacked(single), fitted(LinearRegression(), X, y), 1e-11)
    assert single.verify(X, y)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_batches_may_be_sparse(form):
    X, y = data()
    X[X < 0] = 0.0
    model = Ridge().partial_fit(form(X[:9]), y[:9]).partial_fit(X[9:], y[9:])
    assert_close(stacked(model), fitted(Ridge(), X, y), 1e-11)


def test_batches_go_on_from_a_fit_and_a_fit_starts_anew():
    X, y = data()
    model = Ridge().fit(X[:10], y[:10]).partial_fit(X[10:], y[10:])
    assert_close(stacked(model), fitted(Ridge(), X, y), 1e-11)
    assert_array_equal(fitted(model, X[:10], y[:10]), fitted(Ridge(), X[:10], y[:10]))


def test_batches_of_other_columns_are_refused():
    pd = pytest.importorskip("pandas")
    X, y = data()
    model = Ridge().partial_fit(pd.DataFrame(X, columns=list("abcd")), y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(pd.DataFrame(X, columns=list("abdc")), y)
    with pytest.raises(ValueError, match="X has 3 features, but Ridge is expecting 4"):
        Ridge().partial_fit(X, y).partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="y has 2 targets"):
        Ridge().partial_fit(X, y).partial_fit(X, np.column_stack([y, y]))
    assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("name", INCREMENTAL)
def test_merging_is_commutative_and_associative_and_gives_the_answer_of_all_rows(name):
    X, y = data(targets=2)
    parts = np.split(np.arange(len(y)), [8, 15])
    a, b, c = (in_batches(INCREMENTAL[name], X[p], y[p], []) for p in parts)
    whole = fitted(INCREMENTAL[name], X, y)
    before = stacked(a)
    orders = [a + b + c, a + (b + c), c + (b + a), b.merge(c).merge(a)]
    for merged in orders:
        assert_close(stacked(merged), whole, 1e-11)
        assert merged.verify(X, y)
    assert_close(stacked(a + b), stacked(b + a), 1e-13)
    assert_array_equal(stacked(a), before)  # merging makes a new model


def test_the_precision_of_a_merged_model_does_not_depend_on_the_order():
    X, y = data()
    single = Ridge().fit(X.astype(np.float32), y)
    double = Ridge().fit(X, y)
    assert (single + double).coef_.dtype == (double + single).coef_.dtype == np.float64
    assert (single + single).coef_.dtype == np.float32


def test_only_models_of_one_kind_can_be_merged():
    X, y = data()
    model = Ridge().fit(X, y)
    for other in (Ridge(2.0), LinearRegression()):
        with pytest.raises(ValueError, match="same class and parameters"):
            model.merge(other.fit(X, y))
    with pytest.raises(TypeError):
        model + 1
