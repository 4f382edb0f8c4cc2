"""The multiclass schemes: scikit-learn's answers around any classifier, shared work, proofs."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.multiclass
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    make_multilabel_classification,
)
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import trueline
from trueline import (
    LinearRegression,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
)
from trueline.estimators.multiclass.parts import planes_of

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIGITS = tuple(part[:600] for part in load_digits(return_X_y=True))
LABELS = make_multilabel_classification(n_samples=80, n_features=6, random_state=0)
NAMES = ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier")
SCHEMES = [OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier]


def settings(name):
    return {"random_state": 1} if name == "OutputCodeClassifier" else {}


def both(name, base):
    ours, theirs = getattr(trueline, name), getattr(sklearn.multiclass, name)
    return ours(clone(base), **settings(name)), theirs(clone(base), **settings(name))


class Middle(ClassifierMixin, BaseEstimator):
    """A foreign classifier that knows nothing but predict and decision_function."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.normal_ = X[y == self.classes_[1]].mean(axis=0) - X[y == self.classes_[0]].mean(axis=0)
        self.level_ = X.mean(axis=0) @ self.normal_
        return self

    def decision_function(self, X):
        return X @ self.normal_ - self.level_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


FOREIGN = [
    LogisticRegression(max_iter=300),
    LinearSVC(random_state=0),
    Perceptron(shuffle=False),
    GaussianNB(),
    KNeighborsClassifier(),
    SVC(),
    Middle(),
    make_pipeline(StandardScaler(), LogisticRegression()),
]


# --- scikit-learn's answers -----------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
@pytest.mark.parametrize("base", FOREIGN, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("name", NAMES)
def test_around_any_classifier_the_answers_are_those_of_scikit_learn(name, base, data):
    X, y = data[0][::2] / data[0].std(axis=0), np.array(["a", "b", "c"])[data[1][::2]]
    ours, theirs = both(name, base)
    ours.fit(X, y), theirs.fit(X, y)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_array_equal(ours.classes_, theirs.classes_)
    assert len(ours.estimators_) == len(theirs.estimators_)
    assert getattr(ours, "n_features_in_", None) == getattr(theirs, "n_features_in_", None)
    for method in ("decision_function", "predict_proba"):
        if hasattr(theirs, method):
            expected = getattr(theirs, method)(X)
            assert_allclose(getattr(ours, method)(X), expected, rtol=1e-9, atol=1e-9)
        elif name == "OneVsRestClassifier":
            assert not hasattr(ours, method)


@pytest.mark.grid(2)
@pytest.mark.parametrize("data", [IRIS, DIGITS, CANCER], ids=["iris", "digits", "two classes"])
@pytest.mark.parametrize("kind", ["Ridge", "RidgeClassifier", "LinearRegression"])
@pytest.mark.parametrize("name", NAMES)
def test_around_our_classifiers_the_answers_are_those_of_scikit_learns(name, kind, data):
    if name == "OutputCodeClassifier" and kind != "RidgeClassifier":
        pytest.skip("output codes want classifiers")
    if kind == "LinearRegression" and data is DIGITS:
        pytest.skip("columns of zeros leave least squares undetermined")
    X, y = data
    ours = both(name, getattr(trueline, kind)())[0].fit(X, y)
    theirs = both(name, getattr(sklearn.linear_model, kind)())[1].fit(X, y)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    for mine, other in zip(ours.estimators_, theirs.estimators_, strict=True):
        if hasattr(other, "coef_"):
            assert_allclose(mine.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    if hasattr(theirs, "decision_function"):
        assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), rtol=1e-7, atol=1e-7
        )
    assert ours.verify(X, y)


@pytest.mark.grid(1)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix, sp.lil_array])
@pytest.mark.parametrize("base", [MultinomialNB(), RidgeClassifier(), Ridge()], ids=str)
def test_sets_of_labels(base, container):
    X, Y = LABELS
    ours, theirs = both("OneVsRestClassifier", base)
    ours.fit(X, container(Y)), theirs.fit(X, container(Y))
    assert ours.multilabel_
    assert sp.issparse(ours.predict(X)) == sp.issparse(theirs.predict(X))
    dense = [p.toarray() if sp.issparse(p) else p for p in (ours.predict(X), theirs.predict(X))]
    assert_array_equal(*dense)
    if hasattr(theirs, "predict_proba"):
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    if not isinstance(base, MultinomialNB):
        assert ours.verify(X, container(Y))
    binarizer, other = ours.label_binarizer_, theirs.label_binarizer_
    assert binarizer.y_type_ == other.y_type_
    assert_array_equal(binarizer.classes_, other.classes_)


@pytest.mark.parametrize("scheme", [OneVsRestClassifier, OneVsOneClassifier])
def test_batches(scheme):
    X, y = IRIS
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    base = SGDClassifier(random_state=0, shuffle=False)
    ours, theirs = both(scheme.__name__, base)
    for rows in (slice(0, 60), slice(60, 90), slice(90, 150)):
        classes = np.unique(y) if rows.start == 0 else None
        ours.partial_fit(X[rows], y[rows], classes)
        theirs.partial_fit(X[rows], y[rows], classes)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match="subset of"):
        ours.partial_fit(X, y + 5)
    assert not hasattr(scheme(SVC()), "partial_fit")


@pytest.mark.parametrize("scheme", [OneVsRestClassifier, OneVsOneClassifier])
def test_batches_of_a_regression(scheme):
    X, y = IRIS
    whole = scheme(Ridge()).fit(X, y)
    parts = scheme(Ridge()).partial_fit(X[::2], y[::2], [0, 1, 2]).partial_fit(X[1::2], y[1::2])
    assert_allclose(
        [part.coef_ for part in parts.estimators_], [part.coef_ for part in whole.estimators_]
    )
    order = np.r_[np.arange(0, 150, 2), np.arange(1, 150, 2)]
    assert parts.verify(X[order], y[order])


@pytest.mark.parametrize("ours", [False, True], ids=["foreign", "ours"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_are_routed(scheme, ours):
    X, y = IRIS
    weights = np.random.default_rng(0).uniform(0.1, 2, len(y))
    with config_context(enable_metadata_routing=True):
        base = RidgeClassifier() if ours else sklearn.linear_model.RidgeClassifier()
        base.set_fit_request(sample_weight=True)
        model, theirs = both(scheme.__name__, base)
        model.fit(X, y, sample_weight=weights)
        other = sklearn.linear_model.RidgeClassifier().set_fit_request(sample_weight=True)
        theirs = theirs.set_params(estimator=other).fit(X, y, sample_weight=weights)
    for mine, part in zip(model.estimators_, theirs.estimators_):
        if hasattr(part, "coef_"):
            assert_allclose(mine.coef_, part.coef_, rtol=1e-7, atol=1e-10)
    if ours:
        assert model.verify(X, y, weights)
        assert not model.verify(X, y)


def test_weights_without_routing_are_refused():
    with pytest.raises(ValueError, match="only supported if enable_metadata_routing"):
        OneVsRestClassifier(RidgeClassifier()).fit(*IRIS, sample_weight=np.ones(150))


@pytest.mark.parametrize(
    "base",
    [RidgeClassifier(class_weight="balanced"), pytest.param(Perceptron(), marks=pytest.mark.slow)],
    ids=str,
)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_number_of_jobs_does_not_change_the_answer(scheme, base):
    X, y = IRIS
    kind = settings(scheme.__name__)
    alone = scheme(base, n_jobs=1, **kind).fit(X, y)
    together = scheme(base, n_jobs=2, **kind).fit(X, y)
    assert_array_equal(alone.decision_function(X), together.decision_function(X))


def test_progress_is_printed_on_demand(capsys):
    OneVsRestClassifier(LogisticRegression(max_iter=500), verbose=100).fit(*IRIS)
    assert "3 out of   3" in "".join(capsys.readouterr())


# --- two classes are the binary model -------------------------------------------------------------


@pytest.mark.parametrize("base", [RidgeClassifier(), RidgeClassifierCV(), LinearSVC()], ids=str)
@pytest.mark.parametrize(
    "scheme",
    [
        OneVsRestClassifier,
        OneVsOneClassifier,
        lambda base: OutputCodeClassifier(base, code="dense"),
        lambda base: OutputCodeClassifier(base, code="hadamard"),
    ],
    ids=["one-vs-rest", "one-vs-one", "dense code", "hadamard code"],
)
def test_two_classes_are_the_binary_model_itself(scheme, base):
    X, y = CANCER
    names = np.array(["benign", "malign"])[y]
    binary = clone(base)
    if isinstance(base, LinearSVC):
        X = X / X.max(axis=0)
        binary.set_params(random_state=0)
        base = clone(binary)
    binary.fit(X, names)
    model = scheme(base).fit(X, names)
    (part,) = model.estimators_
    assert_array_equal(np.ravel(part.coef_), np.ravel(binary.coef_))
    assert_array_equal(part.intercept_, binary.intercept_)
    assert_array_equal(model.predict(X), binary.predict(X))
    if scheme is OneVsRestClassifier:
        assert_array_equal(model.decision_function(X), binary.decision_function(X))


def test_two_classes_have_the_binary_probabilities():
    X, y = CANCER
    binary = GaussianNB().fit(X, y).predict_proba(X)
    for scheme in (OneVsRestClassifier, OneVsOneClassifier):
        assert_allclose(scheme(GaussianNB()).fit(X, y).predict_proba(X), binary, atol=1e-12)
    code = OutputCodeClassifier(GaussianNB(), code="dense").fit(X, y)
    assert_allclose(code.predict_proba(X), binary, atol=1e-9)


# --- shared work ----------------------------------------------------------------------------------

SHARED = {
    "one-vs-rest": OneVsRestClassifier,
    "one-vs-one": OneVsOneClassifier,
    "dense code": lambda base: OutputCodeClassifier(base, code="dense", random_state=0),
    "sparse code": lambda base: OutputCodeClassifier(base, code="sparse", random_state=0),
}


@pytest.mark.grid(1)
@pytest.mark.parametrize("base", [Ridge(0.3), RidgeClassifier(2.0), LinearRegression()], ids=str)
@pytest.mark.parametrize("name", SHARED)
def test_shared_fits_are_the_separate_ones(name, base):
    if name.endswith("code") and not hasattr(base, "decision_function"):
        pytest.skip("output codes want classifiers")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 3000)
    X = rng.normal(size=(3000, 8)) + rng.normal(size=(5, 8))[y] + 3
    model = SHARED[name](base).fit(X, y)
    assert model._shared
    for binary, part in zip(model._binaries(y), model.estimators_, strict=True):
        rows = slice(None) if binary.rows is None else binary.rows
        alone = clone(base).fit(X[rows], binary.labels)
        assert_allclose(part.coef_, alone.coef_, rtol=1e-9, atol=1e-12)
        assert_allclose(part.intercept_, alone.intercept_, rtol=1e-9, atol=1e-12)
        assert np.shape(part.intercept_) == np.shape(alone.intercept_)
        assert set(vars(alone)) == set(vars(part))
        assert_allclose(part.certificate_.objective, alone.certificate_.objective, rtol=1e-9)
        assert part.certificate_.relative_gap < 1e-10
        assert part.verify(X[rows], binary.labels)


def test_many_pairs_of_many_columns_keep_no_matrices(monkeypatch):
    from trueline.estimators.multiclass import joint_fits

    monkeypatch.setattr(joint_fits, "_MANY_NUMBERS", 10)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 6)) + y[:, None]
    light, alone = OneVsOneClassifier(Ridge()).fit(X, y), OneVsOneClassifier(Ridge(1e-30))
    for part in light.estimators_:
        assert not hasattr(part, "moments_")
        assert part.certificate_.witness["basis"].ndim == 1
        assert part.certificate_.relative_gap < 1e-10
    assert light.verify(X, y)
    assert light.estimators_[0].explain()
    # So weak a penalty proves nothing by itself: the factor is kept.
    assert alone.fit(X, y).estimators_[0].certificate_.witness["basis"].ndim == 2


def test_badly_conditioned_pairs_are_fitted_from_their_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 4)) + y[:, None]
    X[:, 3] = X[:, 2] + 1e-5 * rng.normal(size=600)
    model = OneVsOneClassifier(Ridge(1e-12)).fit(X, y)
    for binary, part in zip(model._binaries(y), model.estimators_):
        alone = Ridge(1e-12, solver="svd").fit(X[binary.rows], binary.labels)
        assert_allclose(part.coef_, alone.coef_, rtol=1e-6)
    assert model.verify(X, y)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_numbers_whose_squares_leave_the_range(scheme, scale):
    X, y = IRIS
    X = X * np.array([1.0, scale, 1.0, 1.0])
    model = scheme(RidgeClassifier(), **settings(scheme.__name__)).fit(X, y)
    assert model.score(X, y) > 0.5
    assert model.verify(X, y)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sparse_rows_and_single_precision(scheme):
    X, y = DIGITS[0][:300, ::2], DIGITS[1][:300]
    model = scheme(RidgeClassifier(), **settings(scheme.__name__))
    expected = clone(model).fit(X, y).predict(X)
    for given in (sp.csr_array(X), sp.csc_array(X), X.astype(np.float32), X.tolist()):
        again = clone(model).fit(given, y)
        assert np.mean(again.predict(given) == expected) > 0.998
        assert again.verify(given, y)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_names_of_columns_are_kept(scheme):
    pandas = pytest.importorskip("pandas")
    X, y = IRIS
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = scheme(RidgeClassifier(), **settings(scheme.__name__)).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.verify(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_planes_are_recognised_by_the_method_that_scores():
    X, y = IRIS
    theirs = OneVsOneClassifier(LinearSVC(random_state=0)).fit(X, y)
    assert planes_of(theirs.estimators_).coef.shape == (4, 3)
    assert planes_of(OneVsOneClassifier(Middle()).fit(X, y).estimators_) is None
    sparse = LogisticRegression().fit(X, y == 0).sparsify()
    assert planes_of([sparse, sparse]) is None


# --- probabilities --------------------------------------------------------------------------------


@pytest.mark.grid(1)
@pytest.mark.parametrize("base", [GaussianNB(), LogisticRegression(max_iter=1000)], ids=str)
@pytest.mark.parametrize(
    "scheme",
    [
        OneVsOneClassifier,
        lambda base: OneVsOneClassifier(base, coupling="likelihood"),
        lambda base: OutputCodeClassifier(base, random_state=0),
        lambda base: OutputCodeClassifier(base, code="sparse", random_state=0),
        lambda base: OutputCodeClassifier(base, code="hadamard", decoding="hamming"),
    ],
    ids=["least squares", "likelihood", "random", "sparse", "hadamard"],
)
def test_probabilities_agree_with_predictions(scheme, base):
    X, y = IRIS
    model = scheme(base).fit(X, y)
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)
    assert (p >= 0).all()
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


def test_probabilities_of_a_known_mixture_are_found():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
    y = rng.integers(0, 3, 6000)
    X = centres[y] + rng.normal(size=(6000, 2))
    truth = np.exp(-0.5 * ((X[:, None] - centres) ** 2).sum(axis=2))
    truth /= truth.sum(axis=1, keepdims=True)
    # Pairs of Gaussians of equal spread are logistic: only one-vs-one has the right model.
    pairs = OneVsOneClassifier(LogisticRegression()).fit(X, y)
    assert np.abs(pairs.predict_proba(X) - truth).max() < 0.05


def test_probabilities_need_parts_that_have_them():
    for scheme in SCHEMES:
        model = scheme(RidgeClassifier(), **settings(scheme.__name__))
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model.fit(*IRIS), "predict_proba")


# --- codes ----------------------------------------------------------------------------------------


def test_a_code_of_ones_own():
    X, y = IRIS
    book = 2 * np.eye(3) - 1
    code = OutputCodeClassifier(RidgeClassifier(), code=book).fit(X, y)
    rest = OneVsRestClassifier(RidgeClassifier()).fit(X, y)
    assert_array_equal(code.code_book_, book)
    assert code.code_distance_ == 2
    for mine, other in zip(code.estimators_, rest.estimators_):
        assert_array_equal(mine.coef_, other.coef_)
    assert code.verify(X, y)
    # The nearest row of one-vs-rest is that of the highest score.
    assert_array_equal(code.predict(X), rest.predict(X))


def test_decoding_agrees_with_scores():
    X, y = DIGITS
    for decoding in ("euclidean", "hamming", "hinge", "squared", "logistic", "linear"):
        model = OutputCodeClassifier(RidgeClassifier(), code="hadamard", decoding=decoding)
        scores = model.fit(X, y).decision_function(X)
        assert scores.shape == (len(y), 10)
        assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
        assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"code": "golay"}, "'code' parameter"),
        ({"code": [[1], [-1]]}, "one row for each of the 3 classes"),
        ({"decoding": "soft"}, "'decoding' parameter"),
        ({"code_size": 0.2}, "leaves no bit for 3 classes"),
        ({"code_size": "auto"}, "needs a number"),
        ({"code_size": -1.0}, "'code_size' parameter"),
    ],
    ids=str,
)
def test_codes_that_cannot_be_are_refused(parameters, says):
    with pytest.raises(ValueError, match=says):
        OutputCodeClassifier(RidgeClassifier(), **parameters).fit(*IRIS)


# --- proofs and explanations ----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_certificate_is_the_sum_of_its_parts(scheme):
    X, y = IRIS
    model = scheme(RidgeClassifier(), **settings(scheme.__name__)).fit(X, y)
    certificate = model.certificate_
    parts = [p.certificate_ for p in model.estimators_ if hasattr(p, "certificate_")]
    assert len(certificate.parts) == len(parts)
    assert_allclose(certificate.objective, sum(part.objective for part in parts))
    assert certificate.gap >= sum(part.gap for part in parts)
    assert certificate.lower_bound <= sum(part.lower_bound for part in parts)
    assert certificate.verify(X, y)
    assert "binary fit" in str(certificate)


def test_a_scheme_within_a_scheme():
    X, Y = LABELS
    model = OneVsRestClassifier(OneVsOneClassifier(RidgeClassifier())).fit(X, Y)
    plain = OneVsRestClassifier(RidgeClassifier()).fit(X, Y)
    assert_array_equal(model.predict(X), plain.predict(X))
    assert_allclose(model.certificate_.objective, plain.certificate_.objective)
    assert model.verify(X, Y)
    assert "quadratic" in str(model.explain())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tampering_is_noticed(scheme):
    X, y = IRIS
    model = scheme(RidgeClassifier(), **settings(scheme.__name__)).fit(X, y)
    assert not model.verify(X, np.roll(y, 7))
    assert not model.verify(X * 1.001, y)
    part = next(part for part in model.estimators_ if hasattr(part, "coef_"))
    part.coef_ = part.coef_ * 1.01
    found = model.verify(X, y)
    assert not found
    assert "FAILS" in str(found)
    with pytest.raises(ValueError, match="not declared"):
        model.verify(X, y + 1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_without_certificates_of_the_parts_there_is_none(scheme):
    model = scheme(LogisticRegression(max_iter=500), **settings(scheme.__name__)).fit(*IRIS)
    assert not hasattr(model, "certificate_")
    with pytest.raises(AttributeError, match="sklearn's LogisticRegression brings none"):
        model.certificate_
    with pytest.raises(AttributeError, match="brings none"):
        model.verify(*IRIS)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_explanations(scheme):
    X, y = IRIS
    model = scheme(RidgeClassifier(), **settings(scheme.__name__))
    before = str(model.explain(X, y))
    assert "binary problems for RidgeClassifier" in before
    assert not hasattr(model, "estimators_")
    after = model.fit(X, y).explain()
    assert "proof" in str(after)
    assert len(after.table()) == len(model.estimators_)
    foreign = scheme(Middle(), **settings(scheme.__name__)).fit(X, y)
    assert str(foreign.explain()).startswith("scheme")


# --- what is odd ----------------------------------------------------------------------------------


def test_one_class():
    X, y = np.ones((6, 2)), np.full(6, "only")
    model = OneVsRestClassifier(RidgeClassifier()).fit(X, y)
    assert_array_equal(model.predict(X), y)
    with pytest.raises(ValueError, match="when only one class is present"):
        OneVsOneClassifier(RidgeClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="one class only: 'only'"):
        OutputCodeClassifier(RidgeClassifier(), code="dense").fit(X, y)


def test_labels_that_are_always_there_or_never():
    X, Y = LABELS
    Y = np.column_stack([Y[:, 0], np.ones(len(Y), int), np.zeros(len(Y), int)])
    with pytest.warns(UserWarning, match="is present in all training examples"):
        model = OneVsRestClassifier(RidgeClassifier()).fit(X, Y)
    assert_array_equal(model.predict(X)[:, 1:], Y[:, 1:])
    assert len(model.certificate_.parts) == 1
    assert model.verify(X, Y)
    assert not model.verify(X, Y[:, [0, 2, 1]])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bad_input_is_refused(scheme):
    X, y = IRIS
    model = scheme(RidgeClassifier(), **settings(scheme.__name__))
    broken = X.copy()
    broken[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(broken, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, y).predict(broken)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, X[:, 0])
    for code in ("random", "sparse") if scheme is OutputCodeClassifier else (None,):
        model.set_params(**({} if code is None else {"code": code}))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X, y[1:])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X[1:], y)
    with pytest.raises(ValueError, match="features"):
        model.fit(X, y).predict(X[:, :2])


def test_rows_in_any_order_and_classes_of_one_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.r_[np.zeros(15, int), np.ones(14, int), 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scheme in (OneVsRestClassifier, OneVsOneClassifier):
            order = rng.permutation(30)
            sorted_, mixed = (scheme(RidgeClassifier()).fit(X[i], y[i]) for i in (range(30), order))
            assert_array_equal(sorted_.predict(X), mixed.predict(X))
            assert mixed.verify(X[order], y[order])
