"""Learning as rows come: batches, single rows, streams, bad rows, saved states."""

import copy
import itertools
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import (
    OnlineLogisticRegression,
    PassiveAggressiveClassifier,
    Perceptron,
    load,
    save,
)
from trueline.online.stream import hashed_rows

MODELS = [
    Perceptron(shuffle=False, max_iter=1, tol=None),
    Perceptron(shuffle=False, max_iter=1, tol=None, margin=0.5, eta0=0.3),
    Perceptron(shuffle=False, max_iter=1, tol=None, variant="averaged"),
    Perceptron(shuffle=False, max_iter=1, tol=None, multiclass="direct"),
    Perceptron(shuffle=False, max_iter=1, tol=None, multiclass="direct", variant="averaged"),
    Perceptron(shuffle=False, max_iter=1, tol=None, bias="constant_feature"),
    PassiveAggressiveClassifier(shuffle=False, max_iter=1, tol=None),
    PassiveAggressiveClassifier(shuffle=False, max_iter=1, tol=None, loss="squared_hinge"),
    PassiveAggressiveClassifier(shuffle=False, max_iter=1, tol=None, loss="hard", average=True),
    OnlineLogisticRegression(shuffle=False, max_iter=1, tol=None),
    OnlineLogisticRegression(shuffle=False, max_iter=1, tol=None, update="plain"),
]


def data(k=2, n=90, d=6, seed=0, kind="dense"):
    random = np.random.default_rng(seed)
    X = np.round(random.standard_normal((n, d)), 2) * (random.random((n, d)) < 0.6)
    y = (X @ random.standard_normal((d, k)) + random.standard_normal((n, k))).argmax(axis=1)
    X = {"dense": X, "sparse": sp.csr_matrix(X), "float32": X.astype(np.float32)}[kind]
    return X, np.array(["ham", "spam", "other", "more"])[y]


def state(model):
    """Everything a model has learned, as bytes."""
    kept = {k: v for k, v in vars(model).items() if k.startswith("_") or k.endswith("_")}
    kept.pop("_row_state", None)
    return pickle.dumps(sorted((k, pickle.dumps(v)) for k, v in kept.items() if k != "_seeds_of"))


@pytest.mark.grid(1)
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("k", [2, 3])
def test_rows_and_batches_give_what_one_pass_gives(model, kind, k):
    X, y = data(k, kind=kind)
    classes = np.unique(y)
    whole = copy.deepcopy(model).fit(X, y)
    for size in (1, 7, 90):
        parts = copy.deepcopy(model)
        for start in range(0, 90, size):
            batch = slice(start, start + size)
            parts.partial_fit(X[batch], y[batch], classes=classes if start == 0 else None)
        digits = 1e-6 if kind == "float32" else 1e-12
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=digits, atol=digits)
        np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=digits, atol=digits)
        if kind == "dense" and not model.get_params().get("average"):
            np.testing.assert_array_equal(parts.predict(X), whole.predict(X))


@pytest.mark.grid(2)
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("size", [1, 10])
def test_a_bad_batch_changes_nothing(model, kind, k, size):
    X, y = data(k, kind=kind)
    model = copy.deepcopy(model).partial_fit(X[:60], y[:60], classes=np.unique(y))
    model.partial_fit(X[60:61], y[60:61])
    before = state(model)
    bad = (X[60 : 60 + size].toarray() if kind == "sparse" else X[60 : 60 + size]).copy()

    def rejects(rows, labels, words):
        rows = sp.csr_matrix(rows) if kind == "sparse" else rows
        with pytest.raises(ValueError, match=words):
            model.partial_fit(rows, labels)
        assert state(model) == before

    rejects(bad[:, :-1], y[:size], "features")
    rejects(bad, np.full(size, "unknown"), "declared")
    for value, words in ((np.nan, "NaN"), (np.inf, "infinity")):
        worse = bad.copy()
        worse[-1, 0] = value
        rejects(worse, y[:size], words)
    rejects(bad, y[: size + 1], "inconsistent")
    model.partial_fit(X[61:70], y[61:70])
    assert state(model) != before


@pytest.mark.parametrize(
    "model", [Perceptron(), PassiveAggressiveClassifier(), Perceptron(multiclass="direct")], ids=str
)
@pytest.mark.parametrize("single", [False, True])
def test_huge_rows_are_refused_with_advice(model, single):
    X = np.array([[1e250, 1.0], [-1e250, 1.0], [1e250, -1.0], [1e252, 3.0]])
    y = np.array([1, 0, 0, 1])
    with pytest.raises(ValueError, match=r"[Nn]ormalise the rows"):
        model.fit(X, y)
    model = copy.deepcopy(model).partial_fit(np.eye(2), [0, 1], classes=[0, 1])
    before = state(model)
    rows = 1 if single else 4
    message = ""
    for start in range(0, 400, rows):
        batch = slice(start % 4, start % 4 + rows)
        before = state(model)
        try:
            model.partial_fit(X[batch], y[batch])
        except ValueError as error:
            message = str(error)
            break
    assert "ormalise the rows" in message
    assert state(model) == before
    assert np.isfinite(model.coef_).all()


@pytest.mark.grid(1)
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("k", [2, 3])
def test_a_saved_state_goes_on_bit_for_bit(model, k, tmp_path):
    X, y = data(k)
    model = copy.deepcopy(model)
    for i in range(40):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.unique(y) if i == 0 else None)
    again = load(save(model, tmp_path / "model.trueline"))
    copied = pickle.loads(pickle.dumps(model))
    for i in range(40, 90):
        for each in (model, again, copied):
            each.partial_fit(X[i : i + 1], y[i : i + 1])
    for each in (again, copied):
        np.testing.assert_array_equal(each.coef_, model.coef_)
        np.testing.assert_array_equal(each.intercept_, model.intercept_)


def test_a_fitted_model_is_saved_with_its_proof(tmp_path):
    X, y = data()
    model = Perceptron(tol=None, max_iter=20).fit(X, y)
    again = load(save(model, tmp_path / "model.trueline"))
    assert again.verify(X, y)
    assert again.certificate_.objective == model.certificate_.objective
    assert again.records_[0].mistakes_per_pass == model.records_[0].mistakes_per_pass


def test_changed_parameters_and_weights_are_heeded_by_single_rows():
    X, y = data()
    model = Perceptron().partial_fit(X[:2], ["ham", "spam"], classes=["ham", "spam"])
    model.partial_fit(X[2:3], y[2:3])
    model.set_params(eta0=100.0)
    model.coef_ = np.zeros((1, 6))
    model.intercept_ = np.zeros(1)
    model.partial_fit(X[3:4], y[3:4])
    np.testing.assert_array_equal(np.abs(model.coef_[0]), np.abs(100 * X[3]))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("multiclass", ["ovr", "direct"])
def test_progressive_validation_predicts_before_it_learns(k, multiclass):
    X, y = data(k, seed=3)
    model = Perceptron(multiclass=multiclass)
    model.fit_stream(zip(X, y), classes=np.unique(y))
    slow, mistakes = Perceptron(multiclass=multiclass, shuffle=False), 0
    for i in range(len(X)):
        if i:
            scores = slow.decision_function(X[i : i + 1])[0]
            if k == 2:
                sign = 1 if y[i] == slow.classes_[1] else -1
                mistakes += int(sign * scores <= 0)
            elif multiclass == "direct":
                gold = np.searchsorted(slow.classes_, y[i])
                mistakes += int(scores[gold] <= np.delete(scores, gold).max())
            else:
                mistakes += int(slow.predict(X[i : i + 1])[0] != y[i])
        else:
            mistakes += 1
        slow.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.unique(y))
    assert model.progress_.rows == len(X)
    assert model.progress_.mistakes == mistakes
    np.testing.assert_array_equal(model.coef_, slow.coef_)


def test_streams_of_batches_are_streams_of_rows():
    X, y = data(seed=4)
    rows = Perceptron().fit_stream(zip(X, y), classes=["ham", "spam"])
    batches = ((X[i : i + 20], y[i : i + 20]) for i in range(0, 90, 20))
    blocks = Perceptron().fit_stream(batches, classes=["ham", "spam"])
    np.testing.assert_array_equal(rows.coef_, blocks.coef_)
    assert rows.progress_.mistakes == blocks.progress_.mistakes


def test_an_infinite_stream_stopped_half_way_goes_on_later():
    X, y = data(seed=5)
    endless = itertools.cycle(zip(X, y))
    model = Perceptron().fit_stream(endless, classes=["ham", "spam"], limit=100)
    assert model.progress_.rows == 100
    model.fit_stream(endless, limit=80)
    once = Perceptron().fit_stream(zip(np.tile(X, (2, 1)), np.tile(y, 2)), classes=["ham", "spam"])
    np.testing.assert_array_equal(model.coef_, once.coef_)


def test_a_bad_row_in_a_stream_keeps_what_was_learned_before_it():
    X, y = data(seed=6)
    stream = [*zip(X[:50], y[:50]), (X[50, :3], y[50]), *zip(X[51:], y[51:])]
    stream = iter(stream)
    model = Perceptron()
    with pytest.raises(ValueError, match="features"):
        model.fit_stream(stream, classes=["ham", "spam"])
    assert model.progress_.rows == 50
    before = Perceptron().fit_stream(zip(X[:50], y[:50]), classes=["ham", "spam"])
    np.testing.assert_array_equal(model.coef_, before.coef_)
    model.fit_stream(stream)
    assert model.progress_.rows == 89


def test_named_features_are_hashed_to_the_same_columns_every_time():
    rows = [({"a": 1.0, "b": 2.0}, 1), ({"c": 1.0, "colour": "red"}, 0)] * 10
    one = OnlineLogisticRegression(hash_width=256).fit_stream(rows, classes=[0, 1])
    two = OnlineLogisticRegression(hash_width=256)
    for i, (x, y) in enumerate(rows):
        two.learn_one(x, y, classes=[0, 1] if i == 0 else None)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.n_features_in_ == 256
    assert one.predict_one({"a": 1.0, "b": 2.0}) == 1
    assert one.predict_one({"colour": "red"}) == 0


def test_single_named_rows_of_the_perceptron_learn_as_sparse_rows():
    random = np.random.default_rng(0)
    rows = [
        (
            {f"w{j}": float(v) for j, v in enumerate(random.integers(-2, 3, 5))},
            int(random.random() < 0.5),
        )
        for _ in range(40)
    ]
    fast = Perceptron().learn_one(*rows[0], classes=[0, 1])
    for x, y in rows[1:]:
        fast.learn_one(x, y)
    slow = Perceptron(shuffle=False)
    X = hashed_rows([x for x, _ in rows], fast.n_features_in_)
    slow.partial_fit(X, [y for _, y in rows], classes=[0, 1])
    np.testing.assert_array_equal(fast.coef_, slow.coef_)


def test_one_class_only_and_undeclared_classes():
    X, _ = data()
    with pytest.raises(ValueError, match="one class only"):
        Perceptron().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        Perceptron().partial_fit(X, np.arange(len(X)) % 2)
    with pytest.raises(ValueError, match="not the same as on last call"):
        Perceptron().partial_fit(X, np.arange(90) % 2, classes=[0, 1]).partial_fit(
            X, np.arange(90) % 2, classes=[0, 1, 2]
        )


def test_labels_of_several_types_are_named():
    X, _ = data()
    y = np.array(["a", 1] * 45, dtype=object)
    model = Perceptron().partial_fit(X, np.tile(["a", "b"], 45), classes=["a", "b"])
    before = model.coef_.copy()
    for learn in (Perceptron().fit, model.partial_fit):
        with pytest.raises(TypeError, match=r"several types \(int, str\).*one type"):
            learn(X, y)
    np.testing.assert_array_equal(model.coef_, before)


def test_certificates_of_rows_that_are_gone():
    X, y = data()
    model = Perceptron().partial_fit(X, y, classes=["ham", "spam"])
    with pytest.raises(AttributeError, match="certify"):
        _ = model.certificate_
    certificate = model.certify(X, y)
    assert certificate.verify(X, y)
    signs = np.where(y == "spam", 1.0, -1.0)
    scores = X @ model.coef_[0] + model.intercept_[0]
    assert certificate.objective == (signs * scores <= 0).sum()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_adaptive_updates_do_not_depend_on_the_units_of_columns(kind):
    X, y = data(n=200, seed=8)
    units = 10.0 ** np.arange(-3, 3)
    plain, scaled = (
        OnlineLogisticRegression(shuffle=False, max_iter=3, fit_intercept=False).fit(
            sp.csr_matrix(A) if kind == "sparse" else A, y
        )
        for A in (X, X * units)
    )
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, rtol=1e-9)


def test_probabilities():
    X, y = data(3, n=300)
    model = OnlineLogisticRegression(random_state=0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
    assert (model.predict(X) == y).mean() > 0.6


def test_variants_that_need_all_rows_have_no_partial_fit():
    for variant in ("pocket", "batch", "textbook", "voted"):
        assert not hasattr(Perceptron(variant=variant), "partial_fit")
    with pytest.raises(ValueError, match="penalty"):
        Perceptron(variant="pocket", penalty="l2").fit(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="multiclass"):
        Perceptron(variant="batch", multiclass="direct").fit(np.eye(2), [0, 1])


def test_explain_tells_the_story():
    X, y = np.array([[1.0, 2.0], [-1.0, -1.0]]), np.array([1, 0])
    text = str(Perceptron(variant="cyclic").fit(X, y).explain())
    assert "perceptron" in text
    assert "bound" in text


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_snapshots_stay_as_they_are_while_learning_goes_on(model):
    """Threads that predict see what the model was between two calls, and nothing in between."""
    X, y = data(2, n=110)
    classes = np.unique(y)
    learning = copy.deepcopy(model).partial_fit(X[:10], y[:10], classes)
    published, seen, wrong = [(copy.deepcopy(learning), learning.decision_function(X))], [], []
    is_over = threading.Event()

    def read():
        while not is_over.is_set():
            snapshot, expected = published[0]
            seen.append(snapshot)
            if not np.array_equal(snapshot.decision_function(X), expected):
                wrong.append(snapshot)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for start in range(10, 110, 10):
        for i in range(start, start + 10):
            learning.partial_fit(X[i : i + 1], y[i : i + 1])
        published[0] = copy.deepcopy(learning), learning.decision_function(X)
    is_over.set()
    for reader in readers:
        reader.join()
    assert seen
    assert not wrong
    whole = copy.deepcopy(model).partial_fit(X[:10], y[:10], classes)
    for i in range(10, 110):
        whole.partial_fit(X[i : i + 1], y[i : i + 1])
    assert state(learning) == state(whole)  # a snapshot changes nothing in what goes on
