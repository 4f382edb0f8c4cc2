"""Certificates of classifiers read labels as they were given to the fit."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import trueline

CLASSIFIERS = [
    trueline.LogisticRegression(),
    trueline.LogisticRegression(class_weight="balanced", l1_ratio=1.0, C=0.5),
    trueline.LogisticRegressionCV(
        Cs=[0.1, 1.0], l1_ratios=(0,), use_legacy_attributes=False, scoring="accuracy"
    ),
    trueline.LinearSVC(),
    trueline.LinearSVC(intercept_scaling=2.0),
    trueline.LinearSVC(loss="hinge", class_weight={"no": 2.0}),
    trueline.LinearSVC(multi_class="crammer_singer"),
    trueline.RidgeClassifier(),
    trueline.RidgeClassifierCV(class_weight="balanced"),
    trueline.LeastSquaresClassifier(),
    trueline.Perceptron(),
    trueline.Perceptron(variant="averaged", max_iter=5, tol=None),
    trueline.PassiveAggressiveClassifier(),
    trueline.OnlineLogisticRegression(),
    trueline.KernelPerceptron(),
    trueline.SVC(),
    trueline.OneVsRestClassifier(trueline.LinearSVC()),
    trueline.OneVsOneClassifier(trueline.LogisticRegression()),
    trueline.OutputCodeClassifier(trueline.RidgeClassifier(), random_state=0),
]


def words(count):
    X, codes = make_blobs(60, centers=count, cluster_std=3.0, random_state=1)
    return X, np.array(["no", "yes", "maybe"], dtype=object)[codes]


@pytest.mark.grid(1)
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_words_are_verified_and_other_words_are_not(model, count):
    X, y = words(count)
    certificate = model.fit(X, y).certificate_
    assert certificate.verify(X, y)
    assert certificate.verify(X.tolist(), y.tolist())
    assert not certificate.verify(X, np.roll(y, 1))
    assert not certificate.verify(X, np.where(y == "no", "never", y))


@pytest.mark.parametrize(
    "labels", [(0, 1), (False, True), (-1.0, 1.0), ("a", "b"), (3, 7)], ids=str
)
def test_the_fewest_errors_of_any_two_labels(labels):
    X, y = words(2)
    y = np.where(y == "no", *labels)
    model = trueline.ZeroOneHalfspace().fit(X, y)
    assert model.certificate_.verify(X, y)
    assert not model.certificate_.verify(X, y[::-1])


@pytest.mark.grid(1)
@pytest.mark.parametrize("seed", [0, 6, 18, 42])
@pytest.mark.parametrize(
    "model",
    [
        trueline.LinearSVC(),
        trueline.LinearSVC(intercept_scaling=None),
        trueline.LogisticRegression(tol=1e-8),
        trueline.LogisticRegression(solver="liblinear"),
    ],
    ids=str,
)
def test_thousands_of_columns_leave_room_for_the_rounding_of_their_sum(model, seed):
    # Claims of gaps near 1e-14 of the objective: the checker adds up thousands of terms.
    random = np.random.default_rng(seed)
    n, d = int(random.integers(20, 120)), int(random.integers(2000, 5000))
    X, y = 0.2 * random.normal(size=(n, d)), random.integers(0, 2, size=n)
    model.fit(X, y)
    assert model.verify(X, y), model.verify(X, y)


def pictures(n, d, classes):
    """Neighbouring columns are alike, as pixels are, in whole numbers up to 255."""
    random = np.random.default_rng(0)
    smooth = np.exp(-0.5 * ((np.arange(d)[:, None] - np.arange(d)) / 3.0) ** 2)
    X = np.round(255 * np.clip(random.normal(size=(n, d)) @ smooth / 4, 0, 1))
    return X, np.arange(n) % classes


def test_penalties_of_many_classes_leave_room_for_the_rounding_of_their_sum():
    X, y = pictures(120, 400, 10)
    model = trueline.RidgeClassifier(alpha=1e-3).fit(X, y)
    assert model.verify(X, y), model.verify(X, y)


def test_separated_classes_of_many_columns_end_at_the_tolerance():
    # The optimum is a hard margin, which Newton's method would walk to along hundreds of kinks.
    X, y = pictures(80, 160, 2)
    X = 64.0 * X
    model = trueline.LinearSVC().fit(X, y)
    assert model.n_iter_ <= 60
    assert model.certificate_.gap <= 1.2e-6 * len(y)
    assert (model.predict(X) == y).all()
    assert model.verify(X, y)


def test_softmax_of_more_columns_than_rows_is_solved_in_the_span_of_the_rows():
    X, y = pictures(60, 300, 3)
    model = trueline.LogisticRegression(C=1e-3)
    assert "newton_cg" in str(model.explain(X, y)).split("considered")[0]
    model.fit(X, y)
    assert "in the span of the rows: " in str(model.explain())
    assert model.verify(X, y)
