"""The perceptron as each textbook writes it, worked by hand or by a few lines of plain Python."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from online_reference import direct, perceptron
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import trueline as tl
from trueline import KernelPerceptron, Perceptron, separability
from trueline.online.passes import Order

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
AND, OR, XOR = np.array([0, 0, 0, 1]), np.array([0, 1, 1, 1]), np.array([0, 1, 1, 0])
#: Updates on AND when a score of zero counts as positive, worked by hand: row, w1, w2, b.
BY_HAND = [
    (0, 0, 0, -1),
    (3, 1, 1, 0),
    (0, 1, 1, -1),
    (1, 1, 0, -2),
    (3, 2, 1, -1),
    (1, 2, 0, -2),
    (2, 1, 0, -3),
    (3, 2, 1, -2),
    (2, 1, 1, -3),
    (3, 2, 2, -2),
    (1, 2, 1, -3),
]


def blobs(seed=0, n=40, d=3, k=2):
    """Rows of whole numbers around centres that are far apart."""
    random = np.random.default_rng(seed)
    codes = np.arange(n) % k
    centres = 12 * random.standard_normal((k, d))
    return np.rint(centres[codes] + random.standard_normal((n, d))), codes


def sign_at_zero(X, y, visits, zero):
    """Weights and intercept after each update: a mistake is sign(score) != y, sign(0) = zero."""
    w, b, history = np.zeros(X.shape[1]), 0.0, []
    for i in visits:
        score = sum(w * X[i]) + b
        if (np.sign(score) if score else zero) != y[i]:
            w, b = w + y[i] * X[i], b + y[i]
            history.append((i, w, b))
    return history


def message_of(model, X, y):
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    (one,) = caught
    assert one.filename == __file__  # the line that called fit
    return str(one.message)


def test_random_order_pass_after_pass_until_one_without_a_mistake():
    X, codes = blobs()
    model = Perceptron(variant="shuffled", record_updates=True).fit(X, codes)
    random = np.random.RandomState(0)
    random.randint(1, 2**31 - 1)
    order = Order(len(X), random.randint(2**31 - 1))
    visits = np.concatenate([order.next_pass().copy() for _ in range(model.n_iter_)])
    history = perceptron(X, 2.0 * codes - 1, visits)
    assert model.records_[0].rows.tolist() == [i for i, _, _ in history]
    np.testing.assert_array_equal(model.coef_[0], history[-1][1])
    *before, last = model.records_[0].mistakes_per_pass
    assert last == 0
    assert 0 not in before


def test_without_tol_the_first_pass_without_an_update_is_the_last():
    X, codes = blobs(1)
    ours = Perceptron(tol=None).fit(X, codes)
    theirs = sklearn.linear_model.Perceptron(tol=None).fit(X, codes)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.intercept_, theirs.intercept_)
    assert ours.n_iter_ < theirs.n_iter_ == 1000
    assert ours.records_[0].updates_per_pass[-1] == 0


def test_without_tol_a_penalty_goes_on():
    X, codes = blobs(1)
    setting = {"tol": None, "penalty": "l2", "alpha": 0.01, "max_iter": 40}
    ours = Perceptron(**setting).fit(X, codes)
    theirs = sklearn.linear_model.Perceptron(**setting).fit(X, codes)
    assert ours.n_iter_ == 40
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)


# --- sign(0) ------------------------------------------------------------------------------------


def test_a_score_of_zero_is_positive_if_asked_for():
    model = Perceptron(variant="textbook", sign_of_zero=1, record_updates=True).fit(CORNERS, AND)
    run = model.records_[0].weights_after_updates(CORNERS)
    assert [(row, *w, b) for row, w, b in run] == BY_HAND
    assert (model.predict(CORNERS) == AND).all()
    # The last row lies on the boundary, 2 + 1 - 3 = 0, and is right.
    assert (model.coef_[0].tolist(), model.intercept_[0]) == ([2.0, 1.0], -3.0)
    assert model.decision_function(CORNERS)[3] == 0


@pytest.mark.parametrize("zero", [-1, 1])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("labels", [AND, OR], ids=["and", "or"])
def test_sign_of_zero_in_passes(zero, sparse, labels):
    model = Perceptron(variant="cyclic", sign_of_zero=zero, record_updates=True)
    model.fit(sp.csr_matrix(CORNERS) if sparse else CORNERS, labels)
    visits = list(range(4)) * model.n_iter_
    history = sign_at_zero(CORNERS, 2 * labels - 1, visits, zero)
    assert model.records_[0].rows.tolist() == [i for i, _, _ in history]
    np.testing.assert_array_equal(model.coef_[0], history[-1][1])
    assert (model.predict(CORNERS) == labels).all()
    assert model.verify(CORNERS, labels)


@pytest.mark.parametrize("zero", [-1, 1])
def test_sign_of_zero_of_the_other_forms(zero):
    for variant in ("batch", "pocket", "shuffled"):
        model = Perceptron(variant=variant, sign_of_zero=zero).fit(CORNERS, AND)
        assert (model.predict(CORNERS) == AND).all()
    kernel = KernelPerceptron(kernel="linear", sign_of_zero=zero).fit(CORNERS, AND)
    cyclic = Perceptron(variant="cyclic", sign_of_zero=zero).fit(CORNERS, AND)
    np.testing.assert_array_equal(kernel.dual_coef_ @ kernel.support_vectors_, cyclic.coef_)
    assert (kernel.predict(CORNERS) == AND).all()


@pytest.mark.parametrize("zero", [-1, 0, 1])
def test_sign_of_zero_of_rows_that_come_one_by_one(zero):
    one = Perceptron(sign_of_zero=zero)
    for i in [0, 1, 2, 3] * 3:
        one.partial_fit(CORNERS[i : i + 1], AND[i : i + 1], classes=[0, 1])
    history = sign_at_zero(CORNERS, 2 * AND - 1, [0, 1, 2, 3] * 3, zero)
    np.testing.assert_array_equal(one.coef_[0], history[-1][1])
    assert one.intercept_[0] == history[-1][2]


def test_sign_of_zero_is_about_one_score():
    with pytest.raises(ValueError, match="multiclass='ovr'"):
        Perceptron(multiclass="direct", sign_of_zero=1).fit(CORNERS, AND)


# --- all classes at once ------------------------------------------------------------------------


def first_mistakes_of_classes(X, codes, k):
    """Correct the first row whose class does not have the one highest score, until none is left."""
    W, b, rows = np.zeros((k, X.shape[1])), np.zeros(k), []
    while True:
        for i in range(len(X)):
            scores = [sum(W[r] * X[i]) + b[r] for r in range(k)]
            rival = max((r for r in range(k) if r != codes[i]), key=lambda r: scores[r])
            if scores[codes[i]] <= scores[rival]:
                W[codes[i]] += X[i]
                W[rival] -= X[i]
                b[codes[i]] += 1
                b[rival] -= 1
                rows.append(i)
                break
        else:
            return W, b, rows


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_textbook_for_all_classes_at_once(k, sparse):
    X, codes = blobs(k, 30, 3, k)
    model = Perceptron(variant="textbook", multiclass="direct", record_updates=True)
    model.fit(sp.csr_matrix(X) if sparse else X, codes)
    W, b, rows = first_mistakes_of_classes(X, codes, k)
    np.testing.assert_array_equal(model.coef_, W)
    np.testing.assert_array_equal(model.intercept_, b)
    assert model.records_[0].rows.tolist() == rows
    assert model.certificate_.kind == "mistake bound"
    assert model.verify(X, codes)


def test_textbook_for_all_classes_stops_at_its_limit():
    model = Perceptron(variant="textbook", multiclass="direct", max_iter=7)
    with pytest.warns(ConvergenceWarning, match="max_iter=7"):
        model.fit(CORNERS, XOR)
    assert model.n_iter_ == 7
    assert model.records_[0].visits == 28


@pytest.mark.parametrize("seed", range(3))
def test_pocket_for_all_classes_at_once(seed):
    random = np.random.default_rng(seed)
    X, codes = random.integers(-3, 4, (40, 2)).astype(float), random.integers(0, 3, 40)

    def errors_of(W, b):
        scores = X @ np.transpose(W) + b
        right = scores[np.arange(40), codes].copy()
        scores[np.arange(40), codes] = -np.inf
        return int((right <= scores.max(axis=1)).sum())

    errors = []
    for passes in range(1, 9):
        model = Perceptron(variant="pocket", multiclass="direct", max_iter=passes, shuffle=False)
        model.set_params(trace=True).fit(X, codes)
        errors.append(errors_of(model.coef_, model.intercept_))
        assert model.certificate_.objective == errors[-1] == model.trace_["pocket"][-1]
        history = direct(X, codes, 3, list(range(40)) * passes)
        assert model.records_[0].rows.tolist() == [i for i, _, _ in history]
        # Never worse than the perceptron's own last weights, and one of those it went through.
        assert errors[-1] <= errors_of(*history[-1][1:])
        assert errors[-1] in {errors_of(W, b) for _, W, b in history}
    assert errors == sorted(errors, reverse=True)


# --- what is said -------------------------------------------------------------------------------


def test_rows_left_wrong_by_tol_are_told_with_what_is_known():
    said = message_of(Perceptron(), CORNERS, AND)
    assert "stopped on tol=0.001" in said
    assert "linearly separable (proven): variant='shuffled' ends without a mistake" in said
    assert (Perceptron(variant="shuffled").fit(CORNERS, AND).predict(CORNERS) == AND).all()


@pytest.mark.parametrize("variant", ["standard", "textbook", "cyclic", "shuffled", "batch"])
def test_of_inseparable_rows_no_further_passes_are_advised(variant):
    said = message_of(Perceptron(variant=variant, max_iter=50), CORNERS, XOR)
    assert "not linearly separable: proven, separability(X, y).certificate is the proof" in said
    assert "max_iter" not in said.split("not linearly")[1]
    assert separability(CORNERS, XOR).certificate.verify(CORNERS, XOR)


def test_the_kernel_perceptron_knows_of_its_linear_kernel():
    said = message_of(KernelPerceptron(kernel="linear", max_iter=9), CORNERS, XOR)
    assert "not linearly separable: proven" in said
    assert "linearly separable (proven): raise max_iter" in message_of(
        KernelPerceptron(kernel="linear", max_iter=2), CORNERS, AND
    )


def test_a_class_that_cannot_be_separated_from_the_rest_is_named():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    said = message_of(Perceptron(variant="cyclic", max_iter=300), X, list("aabbcc"))
    assert "separability(X, y == 'b').certificate" in said
    assert not separability(X, np.array(list("aabbcc")) == "b").is_separable


def test_of_many_rows_it_is_not_decided_in_passing():
    random = np.random.default_rng(0)
    X, codes = random.standard_normal((500, 8)), random.integers(0, 2, 500)
    said = message_of(Perceptron(), X, codes)
    assert "separability(X, y) decides" in said
    assert "proven" not in said


def test_passes_that_were_asked_for_are_not_commented():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Perceptron(tol=None, max_iter=5).fit(CORNERS, XOR)
        Perceptron(variant="pocket", max_iter=5).fit(CORNERS, XOR)
        Perceptron(variant="averaged").fit(CORNERS, XOR)
        Perceptron(early_stopping=True).fit(*blobs())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_bound_of_a_run_that_did_not_end():
    model = Perceptron(variant="cyclic", max_iter=2).fit(CORNERS, AND)
    made = model.records_[0].updates
    assert model.certificate_.kind == "training errors"
    # R^2 = 3 with the constant column; at most 3 / gamma^2 updates for any gamma there is.
    assert f"at most 3 / gamma^2 - {made} more" in str(model.explain())
    best = model.bound_mistakes(CORNERS, AND)
    assert best.witness["mistakes"].tolist() == [made]
    # The nearest rows to 2 x + 2 y - 3 = 0 have |score| = 1: gamma = 1 / |(2, 2, -3)|.
    assert best.witness["bound"][0] == pytest.approx(3 * 17)
    assert best.verify(CORNERS, AND)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_bound_for_rows_that_nothing_separates():
    model = Perceptron(variant="cyclic", max_iter=20).fit(CORNERS, XOR)
    assert model.bound_mistakes(CORNERS, XOR).kind == "training errors"


# --- step by step -------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["textbook", "cyclic", "shuffled", "standard"])
def test_the_trace_has_weights_and_errors_after_each_update(variant):
    X, codes = blobs(5)
    y = 2.0 * codes - 1
    model = Perceptron(variant=variant, tol=None, trace=True).fit(X, codes)
    run = list(model.records_[0].weights_after_updates(X))
    weights = [(np.zeros(3), 0.0)] + [(w, b) for _, w, b in run]
    trace = model.trace_
    np.testing.assert_array_equal(trace.coef, [w for w, _ in weights])
    np.testing.assert_array_equal(trace.intercept, [b for _, b in weights])
    assert trace["errors"].tolist() == [(y * (X @ w + b) <= 0).sum() for w, b in weights]
    assert trace["visits"].tolist() == [0, *model.records_[0].times]
    np.testing.assert_array_equal(trace.coef[-1], model.coef_[0])


def test_an_iteration_of_the_batch_form_adds_all_mistakes():
    X, codes = blobs(5)
    model = Perceptron(variant="batch", trace=True).fit(X, codes)
    assert model.trace_["iteration"].tolist() == list(range(model.n_iter_))
    assert model.trace_["errors"].tolist() == model.records_[0].mistakes_per_pass


def test_the_pocket_is_traced_beside_the_errors():
    random = np.random.default_rng(0)
    X, codes = random.standard_normal((30, 2)), random.integers(0, 2, 30)
    model = Perceptron(variant="pocket", max_iter=20, trace=True).fit(X, codes)
    pocket, errors = model.trace_["pocket"], model.trace_["errors"]
    assert pocket[-1] == model.certificate_.objective
    assert (np.diff(pocket) <= 0).all()
    # What is in the pocket was there before.
    assert all(value in errors[: at + 1] for at, value in enumerate(pocket[:-1].tolist()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_long_run_is_thinned_and_ends_with_its_last_weights():
    random = np.random.default_rng(0)
    X, codes = random.integers(-9, 10, (200, 2)).astype(float), random.integers(0, 2, 200)
    model = Perceptron(variant="cyclic", max_iter=40, trace=True).fit(X, codes)
    assert model.records_[0].updates > 2000
    assert len(model.trace_) <= 541
    np.testing.assert_array_equal(model.trace_.coef[-1], model.coef_[0])
    assert model.trace_["iteration"][-1] == model.records_[0].updates


def test_the_trace_follows_one_problem():
    X, codes = blobs(3, k=3)
    with pytest.raises(ValueError, match="multiclass='direct'"):
        Perceptron(trace=True).fit(X, codes)
    trace = Perceptron(trace=True, multiclass="direct", tol=None).fit(X, codes).trace_
    assert trace.coef.shape == (len(trace), 3, 3)


def test_a_trace_from_given_weights():
    start = [[5.0, -1.0]], [2.0]
    model = Perceptron(variant="textbook", trace=True).fit(CORNERS, AND, *start)
    assert model.trace_.coef[0].tolist() == [5.0, -1.0]
    assert model.trace_.intercept[0] == 2.0
    # (0, 0) scores 2, a mistake: the intercept goes down by one.
    assert model.trace_.coef[1].tolist() == [5.0, -1.0]
    assert model.trace_.intercept[1] == 1.0


@pytest.mark.parametrize(
    "model",
    [
        tl.LogisticRegression(),
        tl.LinearSVC(),
        tl.RidgeClassifier(),
        tl.RidgeClassifierCV(),
        tl.LeastSquaresClassifier(),
        tl.SVC(kernel="linear"),
    ],
    ids=repr,
)
def test_every_classifier_has_a_side_for_a_score_of_zero(model):
    """On XOR all of them end at zero coefficients, where every score is a tie."""
    X, y = np.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]]), np.array(["no", "yes", "yes", "no"])
    for side, label in ((0, "no"), (-1, "no"), (1, "yes")):
        fitted = clone(model).set_params(sign_of_zero=side).fit(X, y)
        np.testing.assert_array_equal(fitted.decision_function(X), 0.0)
        assert set(fitted.predict(X)) == {label}
        assert fitted.verify(X, y)
