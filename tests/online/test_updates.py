"""The weights after each update are those of ten lines of plain Python, in every form."""

import numpy as np
import pytest
import scipy.sparse as sp
from online_reference import direct, passive_aggressive, perceptron, textbook

from trueline import KernelPerceptron, PassiveAggressiveClassifier, Perceptron
from trueline.online.passes import Order

PASSES = 3


def whole_numbers(n=40, d=5, seed=0, k=2):
    """Rows of whole numbers: sums are exact in any order, and scores of zero do occur."""
    random = np.random.default_rng(seed)
    return random.integers(-3, 4, (n, d)).astype(float), random.integers(0, k, n)


def separable(n=60, d=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    y = np.where(X @ random.standard_normal(d) + 0.3 > 0, 1, 0)
    keep = np.abs(X @ np.ones(d)) > 0.05
    return X[keep], y[keep]


def rows_of(n, seed, shuffled, passes=PASSES):
    order = Order(n, seed if shuffled else None)
    return np.concatenate([order.next_pass().copy() for _ in range(passes)])


def same_history(model, X, history, step=1.0):
    record = model.records_[0]
    assert record.rows.tolist() == [i for i, _, _ in history]
    run = record.weights_after_updates(X, intercept_step=step * model.fit_intercept)
    for (row, w, b), (i, expected, level) in zip(run, history, strict=True):
        assert row == i
        np.testing.assert_array_equal(w, expected)
        assert b == level
    assert record.updates == len(history)


@pytest.mark.grid(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_passes_in_the_given_order(seed, sparse, intercept, weighted, rate):
    X, codes = whole_numbers(seed=seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(X)) / 2 if weighted else None
    y = 2.0 * codes - 1
    model = Perceptron(
        max_iter=PASSES,
        tol=None,
        shuffle=False,
        eta0=rate,
        fit_intercept=intercept,
        record_updates=True,
        intercept_step=1.0,
    )
    model.fit(sp.csr_matrix(X) if sparse else X, codes, sample_weight=weights)
    order = rows_of(len(X), 0, False)
    history = perceptron(X, y, order, rate, weights, intercept)
    history = [item for item in history if weights is None or weights[item[0]] > 0]
    same_history(model, X, history)
    np.testing.assert_array_equal(model.coef_[0], history[-1][1])
    assert model.intercept_[0] == history[-1][2]


@pytest.mark.parametrize("margin", [0.0, 2.5])
def test_shuffled_passes_with_a_margin(margin):
    X, codes = whole_numbers(seed=7)
    model = Perceptron(max_iter=PASSES, tol=None, margin=margin, record_updates=True).fit(X, codes)
    random = np.random.RandomState(0)
    random.randint(1, 2**31 - 1)
    order = rows_of(len(X), random.randint(2**31 - 1), True)
    same_history(model, X, perceptron(X, 2.0 * codes - 1, order, margin=margin))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_textbook(seed, sparse):
    X, codes = separable(seed=seed)
    model = Perceptron(variant="textbook", record_updates=True)
    model.fit(sp.csr_matrix(X) if sparse else X, codes)
    same_history(model, X, textbook(X, 2.0 * codes - 1))
    assert (model.predict(X) == codes).all()


def test_cyclic_goes_round_until_all_rows_are_right():
    X, codes = separable(seed=3)
    model = Perceptron(variant="cyclic", record_updates=True).fit(X, codes)
    order = rows_of(len(X), 0, False, model.n_iter_)
    same_history(model, X, perceptron(X, 2.0 * codes - 1, order))
    assert model.records_[0].updates_per_pass[-1] == 0
    assert (model.predict(X) == codes).all()


def test_batch_adds_all_mistakes_at_once():
    X, codes = separable(seed=4)
    y = 2.0 * codes - 1
    model = Perceptron(variant="batch", record_updates=True).fit(X, codes)
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(model.n_iter_ - 1):
        wrong = y * (X @ w + b) <= 0
        w, b = w + y[wrong] @ X[wrong], b + y[wrong].sum()
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-13)
    assert model.intercept_[0] == b
    assert (model.predict(X) == codes).all()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [True, False])
def test_averaged_is_the_mean_over_all_visits(sparse, intercept):
    X, codes = whole_numbers(seed=2)
    model = Perceptron(
        variant="averaged", max_iter=PASSES, tol=None, shuffle=False, fit_intercept=intercept
    )
    model.fit(sp.csr_matrix(X) if sparse else X, codes)
    w, b, W, B = np.zeros(X.shape[1]), 0.0, [], []
    for i in rows_of(len(X), 0, False):
        y = 2.0 * codes[i] - 1
        if y * (w @ X[i] + b) <= 0:
            w, b = w + y * X[i], b + y * intercept
        W.append(w)
        B.append(b)
    np.testing.assert_allclose(model.coef_[0], np.mean(W, axis=0), rtol=1e-12, atol=1e-13)
    assert model.intercept_[0] == pytest.approx(np.mean(B), abs=1e-12)


def test_votes_are_counted_one_by_one():
    X, codes = whole_numbers(seed=5)
    model = Perceptron(variant="voted", max_iter=PASSES, tol=None, shuffle=False).fit(X, codes)
    order = rows_of(len(X), 0, False)
    y = 2.0 * codes - 1
    w, b, votes = np.zeros(X.shape[1]), 0.0, np.zeros(len(X))
    for i in order:
        if y[i] * (w @ X[i] + b) <= 0:
            w, b = w + y[i] * X[i], b + y[i]
        if w.any() or b:
            votes += np.sign(X @ w + b)
    np.testing.assert_allclose(
        model.decision_function(X) * model.votes_[0].sum(), votes, rtol=1e-12, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_pocket_keeps_the_weights_with_the_fewest_errors(seed, sparse):
    X, codes = whole_numbers(60, 2, seed)
    y = 2.0 * codes - 1
    model = Perceptron(variant="pocket", max_iter=30, shuffle=False, record_updates=True)
    model.fit(sp.csr_matrix(X) if sparse else X, codes)
    errors = int((y * (X @ model.coef_[0] + model.intercept_[0]) <= 0).sum())
    assert model.certificate_.objective == errors
    # Never worse than the zero weights it began with, and than the perceptron's own last weights.
    assert errors <= len(X)
    *_, (_, last, level) = perceptron(X, y, rows_of(len(X), 0, False, model.n_iter_))
    assert errors <= int((y * (X @ last + level) <= 0).sum())


def test_the_errors_in_the_pocket_never_grow():
    X, codes = whole_numbers(80, 3, 11)
    errors = [
        Perceptron(variant="pocket", max_iter=m, random_state=1)
        .fit(X, codes)
        .certificate_.objective
        for m in range(1, 12)
    ]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_direct_multiclass(k, sparse):
    X, codes = whole_numbers(60, 4, k, k)
    model = Perceptron(multiclass="direct", max_iter=PASSES, tol=None, shuffle=False)
    model.set_params(record_updates=True).fit(sp.csr_matrix(X) if sparse else X, codes)
    history = direct(X, codes, k, rows_of(len(X), 0, False))
    assert model.records_[0].rows.tolist() == [i for i, _, _ in history]
    np.testing.assert_array_equal(model.coef_, history[-1][1])
    np.testing.assert_array_equal(model.intercept_, history[-1][2])


def test_direct_for_two_classes_is_the_perceptron_twice():
    X, codes = whole_numbers(seed=9)
    setting = {"max_iter": PASSES, "tol": None, "shuffle": False}
    plain = Perceptron(**setting).fit(X, codes)
    both = Perceptron(multiclass="direct", **setting).fit(X, codes)
    np.testing.assert_array_equal(both.coef_[1] - both.coef_[0], 2 * plain.coef_[0])
    np.testing.assert_array_equal(both.predict(X), plain.predict(X))


@pytest.mark.parametrize(
    ("loss", "form"), [("hard", "PA"), ("hinge", "PA-I"), ("squared_hinge", "PA-II")]
)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_passive_aggressive(loss, form, sparse, C):
    X, codes = whole_numbers(seed=1)
    model = PassiveAggressiveClassifier(
        loss=loss, C=C, fit_intercept=False, max_iter=PASSES, tol=None, shuffle=False
    )
    model.fit(sp.csr_matrix(X) if sparse else X, codes)
    history = passive_aggressive(X, 2.0 * codes - 1, rows_of(len(X), 0, False), form, C)
    np.testing.assert_allclose(model.coef_[0], history[-1][1], rtol=1e-12, atol=1e-14)
    assert model.records_[0].updates == len(history)


@pytest.mark.parametrize("model", [Perceptron, PassiveAggressiveClassifier])
def test_bias_as_constant_feature_is_the_separate_bias(model):
    X, codes = whole_numbers(seed=6)
    setting = {"max_iter": PASSES, "tol": None, "shuffle": False}
    extended = np.hstack([X, np.ones((len(X), 1))])
    constant = model(bias="constant_feature", **setting).fit(X, codes)
    by_hand = model(fit_intercept=False, **setting).fit(extended, codes)
    np.testing.assert_array_equal(np.append(constant.coef_, constant.intercept_), by_hand.coef_[0])
    if model is Perceptron:  # the passive-aggressive norm counts the constant only as a feature
        separate = model(**setting).fit(X, codes)
        np.testing.assert_array_equal(separate.coef_, constant.coef_)
        np.testing.assert_array_equal(separate.intercept_, constant.intercept_)
    assert constant.verify(X, codes)


@pytest.mark.parametrize("k", [2, 3])
def test_linear_kernel_is_the_perceptron(k):
    X, codes = whole_numbers(30, 4, 3, k)
    setting = {"max_iter": PASSES, "shuffle": False}
    with pytest.warns(Warning, match="max_iter"):
        dual = KernelPerceptron(kernel="linear", **setting).fit(X, codes)
    primal = Perceptron(tol=None, **setting).fit(X, codes)
    np.testing.assert_array_equal(dual.dual_coef_ @ dual.support_vectors_, primal.coef_)
    np.testing.assert_array_equal(dual.intercept_, primal.intercept_)
    assert dual.verify(X, codes)


def test_normalised_rows_are_divided_by_their_norms():
    X, codes = separable(seed=8)
    X = np.vstack([X * 1e200, np.zeros(X.shape[1])])
    codes = np.append(codes, 0)
    norm = np.linalg.norm(X / 1e200, axis=1, keepdims=True) * 1e200
    by_hand = X / np.where(norm == 0, 1, norm)
    model = Perceptron(normalize_rows=True, max_iter=5, tol=None).fit(X, codes)
    plain = Perceptron(max_iter=5, tol=None).fit(by_hand, codes)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)
    assert (model.predict(X) == plain.predict(by_hand)).all()
    assert model.verify(X, codes)
