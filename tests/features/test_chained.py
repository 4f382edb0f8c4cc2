"""Chains of classifiers: no target leaks into its own features, at any depth."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from trueline import ChainedClassifiers, LogisticRegression, RidgeClassifier, TextFeatures

X, Y = make_classification(90, 6, n_informative=4, n_classes=3, random_state=0)
THREE = [("a", LogisticRegression()), ("b", RidgeClassifier()), ("c", LogisticRegression())]
FOLDS = KFold(5, shuffle=True, random_state=1)


class Parrot(ClassifierMixin, BaseEstimator):
    """Remembers the label of every row it has learned: the worst leak there is."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = {row[:6].tobytes(): label for row, label in zip(X, y)}
        return self

    def predict_proba(self, X):
        share = np.full((len(X), len(self.classes_)), 1.0 / len(self.classes_))
        for i, row in enumerate(X):
            if row[:6].tobytes() in self.known_:
                share[i] = self.classes_ == self.known_[row[:6].tobytes()]
        return share

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@parametrize_with_checks([ChainedClassifiers(cv=3)])
def test_contract(estimator, check):
    check(estimator)


def test_a_stage_that_remembers_everything_says_nothing():
    chain = ChainedClassifiers([("a", Parrot()), ("b", Parrot()), ("c", LogisticRegression())])
    chain.fit(X, Y)
    np.testing.assert_allclose(chain.out_of_fold_, 1.0 / 3.0)


@pytest.mark.parametrize("fold", range(5))
def test_targets_of_a_fold_do_not_touch_its_features(fold):
    rows = list(FOLDS.split(X))[fold][1]
    changed = Y.copy()
    changed[rows] = (changed[rows] + 1) % 3
    before = ChainedClassifiers(THREE, cv=FOLDS).fit(X, Y).out_of_fold_[rows]
    after = ChainedClassifiers(THREE, cv=FOLDS).fit(X, changed).out_of_fold_[rows]
    np.testing.assert_array_equal(after, before)


def test_the_first_outputs_are_those_of_cross_validation():
    chain = ChainedClassifiers(THREE, cv=FOLDS).fit(X, Y)
    expected = cross_val_predict(LogisticRegression(), X, Y, cv=FOLDS, method="predict_proba")
    np.testing.assert_allclose(chain.out_of_fold_[:, :3], expected, atol=1e-12)
    assert chain.n_fits_ == (1 + 5 + 10) + (1 + 5) + 1


def test_the_second_outputs_are_those_of_chains_that_never_saw_the_fold():
    chain = ChainedClassifiers(THREE, cv=FOLDS).fit(X, Y)
    fold = np.empty(90, dtype=int)
    for k, (_, test) in enumerate(FOLDS.split(X)):
        fold[test] = k
    train, test = fold != 0, fold == 0
    splits = [
        (np.flatnonzero(fold[train] != k), np.flatnonzero(fold[train] == k)) for k in range(1, 5)
    ]
    shorter = ChainedClassifiers(THREE[:2], cv=splits).fit(X[train], Y[train])
    expected = shorter.decision_function(X[test])
    np.testing.assert_allclose(chain.out_of_fold_[test, 3:], expected, atol=1e-10)


def test_new_rows_go_through_all_stages():
    chain = ChainedClassifiers(THREE, cv=FOLDS).fit(X, Y)
    first = clone(THREE[0][1]).fit(X, Y)
    np.testing.assert_allclose(chain.stage_outputs(X)[:, :3], first.predict_proba(X), atol=1e-12)
    assert chain.predict_proba(X).shape == (90, 3)
    assert list(chain.stage_output_names()[:2]) == ["a says 0", "a says 1"]
    assert "c: LogisticRegression on X, what a says, what b says" in chain.explain()
    np.testing.assert_array_equal(
        ChainedClassifiers(THREE, cv=FOLDS).fit(sparse.csr_array(X), Y).predict(X), chain.predict(X)
    )
    alone = ChainedClassifiers(THREE, passthrough=False).fit(X, Y)
    assert alone.stages_[-1].classifier.n_features_in_ == 6


def test_stages_read_texts_and_columns():
    words = np.array(["cheap pills now", "meeting at noon", "win money", "lunch with anna"])
    table = pd.DataFrame({"text": np.tile(words, 15), "hour": np.arange(60.0) % 24})
    labels = np.tile(["spam", "ham", "spam", "ham"], 15)
    texts = make_column_transformer((TextFeatures(), "text"))
    hours = make_column_transformer(("passthrough", ["hour"]))
    chain = ChainedClassifiers(
        [
            ("words", make_pipeline(texts, RidgeClassifier())),
            ("all", make_pipeline(hours, LogisticRegression())),
        ]
    )
    chain.fit(table, labels)
    assert (chain.predict(table) == labels).all()
    assert list(chain.stage_output_names()) == ["words says spam"]
    assert (
        chain.set_params(all__logisticregression__C=0.5).get_params()["all__logisticregression__C"]
        == 0.5
    )


def test_groups_stay_together():
    groups = np.repeat(np.arange(18), 5)
    chain = ChainedClassifiers([("a", Parrot()), ("b", LogisticRegression())], cv=GroupKFold(3))
    twin = np.repeat(X[::5], 5, axis=0)  # all rows of a group are alike
    np.testing.assert_allclose(
        chain.fit(twin, np.repeat(Y[::5], 5), groups).out_of_fold_, 1.0 / 3.0
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cv": ShuffleSplit(5, random_state=0)}, "disjoint parts"),
        ({"cv": 2}, "at least 3 folds"),
        ({"classifiers": []}, "at least one"),
        ({"classifiers": [("a", 3)]}, "no classifier"),
        ({"outputs": "probabilities"}, "'b', RidgeClassifier, has no probabilities"),
    ],
)
def test_bad_chains(change, message):
    with pytest.raises(ValueError, match=message):
        ChainedClassifiers(**{"classifiers": THREE, **change}).fit(X, Y)


def test_folds_that_leave_no_row_of_a_class():
    with pytest.raises(ValueError, match="no row of class 1 is left"):
        ChainedClassifiers(THREE, cv=KFold(3)).fit(X[:30], np.repeat([0, 1, 0], 10))
    with pytest.raises(ValueError, match="has one row"):
        ChainedClassifiers(THREE).fit(X, np.r_[7, np.repeat([0, 1], [45, 44])])


# --- proof -------------------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("passthrough", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("outputs", ["auto", "decision", "labels"])
def test_every_stage_is_proven_on_what_it_saw(outputs, container, passthrough):
    rows = container(X)
    chain = ChainedClassifiers(THREE, cv=FOLDS, outputs=outputs, passthrough=passthrough)
    certificate = chain.fit(rows, Y).certificate_
    assert certificate.names == ("a", "b", "c")
    assert certificate.relative_gap < 1e-8
    assert chain.verify(rows, Y)
    assert certificate.verify(rows, Y)
    assert "proven within" in chain.explain()
    assert "3 stages" in chain.explain()


def test_stages_with_first_steps_of_their_own_are_proven():
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["said"] = [f"word{i % 3} more" for i in range(len(Y))]
    text = make_pipeline(
        make_column_transformer((TextFeatures("counts"), "said")), LogisticRegression()
    )
    numbers = make_pipeline(
        make_column_transformer(("passthrough", list("abcdef"))), RidgeClassifier()
    )
    chain = ChainedClassifiers([("text", text), ("numbers", numbers)]).fit(table, Y)
    assert chain.verify(table, Y)


@pytest.mark.parametrize("classes", [2, 3])
def test_other_data_are_not_what_is_proven(classes):
    y = Y % classes
    chain = ChainedClassifiers(THREE[:2], cv=3).fit(X, y)
    assert chain.verify(X, y)
    assert not chain.verify(X + 0.1, y)
    assert not chain.verify(X, np.roll(y, 1))
    assert not chain.verify(X[:-1], y[:-1])
    chain.out_of_fold_ = 1.5 * chain.out_of_fold_
    assert not chain.verify(X, y)


def test_classifiers_without_a_proof_make_chains_without_one():
    chain = ChainedClassifiers([("a", Parrot()), ("b", LogisticRegression())]).fit(X, Y)
    with pytest.raises(AttributeError, match="Parrot brings none"):
        _ = chain.certificate_
    assert "proof" not in chain.explain()


def test_weights_of_rows_reach_every_stage():
    """Weights of one and zero: each stage learns from the rows of its folds that count."""
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((90, 3)), np.arange(90) % 3 + 0.5
    y = (X[:, 0] + rng.standard_normal(90) > 0).astype(int)
    fold = np.arange(90) % 3
    cv = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    chain = ChainedClassifiers(cv=cv).fit(X, y, sample_weight=weights)
    outside = np.empty((90, 1))
    for train, test in cv:
        first = LogisticRegression().fit(X[train], y[train], weights[train])
        outside[test, 0] = first.predict_proba(X[test])[:, 1]
    np.testing.assert_allclose(chain.out_of_fold_, outside, rtol=1e-6)
    second = LogisticRegression().fit(np.hstack([X, outside]), y, weights)
    np.testing.assert_allclose(chain.stages_[1].classifier.coef_, second.coef_, rtol=1e-5)
    assert chain.verify(X, y, weights)
    assert not chain.verify(X, y)


def test_a_stage_that_takes_no_weights_is_named():
    from sklearn.neighbors import KNeighborsClassifier

    X, y = np.random.default_rng(0).standard_normal((30, 2)), np.arange(30) % 2
    chain = ChainedClassifiers([("near", KNeighborsClassifier()), ("fine", LogisticRegression())])
    with pytest.raises(ValueError, match="Stage 'near', KNeighborsClassifier, takes no sample"):
        chain.fit(X, y, sample_weight=np.ones(30))


# --- stages with targets of their own -------------------------------------------------------------

TAGS = np.where(X[:, 0] + X[:, 1] > 0, "up", np.where(X[:, 2] > 0.5, "side", "down"))
TWO = [("tagger", LogisticRegression()), ("task", LogisticRegression())]


def tagged(**given):
    return ChainedClassifiers(TWO, cv=FOLDS).fit(X, Y, targets={"tagger": TAGS}, **given)


def test_a_stage_with_a_target_of_its_own_tells_the_next_one_out_of_fold():
    chain = tagged()
    tags = cross_val_predict(LogisticRegression(), X, TAGS, cv=FOLDS, method="predict_proba")
    np.testing.assert_allclose(chain.out_of_fold_, tags, atol=1e-12)
    task = LogisticRegression().fit(np.hstack([X, tags]), Y)
    np.testing.assert_allclose(chain.stages_[1].classifier.coef_, task.coef_, atol=1e-7)
    now = LogisticRegression().fit(X, TAGS).predict_proba(X)
    np.testing.assert_array_equal(chain.predict(X), task.predict(np.hstack([X, now])))
    assert chain.stage_output_names().tolist() == [f"tagger says {t}" for t in sorted(set(TAGS))]
    assert "tagger: learns its own target," in chain.explain()
    np.testing.assert_array_equal(chain.classes_, np.unique(Y))


def test_stages_are_scored_one_by_one():
    chain = tagged()
    weights = np.arange(1.0, 91.0)
    scores = chain.stage_scores(X, Y, weights, {"tagger": TAGS})
    right = LogisticRegression().fit(X, TAGS).predict(X) == TAGS
    assert scores["tagger"] == pytest.approx(weights[right].sum() / weights.sum())
    assert scores["task"] == pytest.approx(chain.score(X, Y, weights))
    assert list(chain.stage_predictions(X)) == ["tagger", "task"]


def test_weights_teach_every_stage_with_its_own_target():
    weights = np.where(np.arange(90) % 4, 1.0, 2.0)
    chain = tagged(sample_weight=weights)
    first = LogisticRegression().fit(X, TAGS, sample_weight=weights)
    np.testing.assert_allclose(chain.stages_[0].classifier.coef_, first.coef_, atol=1e-7)


def test_the_proof_is_about_the_targets_of_all_stages():
    chain = tagged()
    assert chain.verify(X, Y, targets={"tagger": TAGS})
    other = np.where(np.arange(90) == 3, "side", TAGS)
    assert other[3] != TAGS[3]
    assert not chain.verify(X, Y, targets={"tagger": other})
    assert not chain.verify(X, (Y + 1) % 3, targets={"tagger": TAGS})
    with pytest.raises(ValueError, match="'tagger' learned a target of its own: give targets"):
        chain.stage_scores(X, Y)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({"task": TAGS}, "'task', which is no stage before the last one: 'tagger'"),
        ({"tag": TAGS}, "'tag', which is no stage"),
        ({"tagger": TAGS[:5]}, "has 5 rows, but y has 90"),
        ({"tagger": ["up"] * 90}, "holds one class only: 'up'"),
    ],
)
def test_wrong_targets_are_named(targets, message):
    with pytest.raises(ValueError, match=message):
        ChainedClassifiers(TWO, cv=FOLDS).fit(X, Y, targets=targets)
