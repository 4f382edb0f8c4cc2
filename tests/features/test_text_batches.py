"""Texts in batches have the features of the same texts in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import trueline
from trueline import LogisticRegression, OnlineLogisticRegression, Ridge, TextFeatures

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
RNG = np.random.default_rng(0)
WORDS = np.array(
    [
        "the",
        "a",
        "red",
        "blue",
        "car",
        "house",
        "runs",
        "sleeps",
        "3",
        "not",
        "Very",
        "never",
        "oft",
        "Once",
        "Zürich",
    ]
)
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(1, 9))) + "!" for _ in range(900)]
TEXTS[7], TEXTS[300] = "", "only here"
LABELS = np.array(["red" in text for text in TEXTS])


@pytest.fixture
def rows(tmp_path):
    """A file with missing texts in place of empty ones."""
    table = pa.table({"text": [text or None for text in TEXTS], "label": LABELS})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=200)
    return trueline.open(tmp_path, target="label", memory="20KB")


def _tag(text):
    return ["LONG" if len(word) > 3 else "SHORT" for word in text.split()]


@pytest.mark.parametrize(
    "features",
    [
        TextFeatures(),
        TextFeatures("counts", word_ngrams=(1, 2), min_count=3),
        TextFeatures("binary", max_features=6),
        TextFeatures("tfidf", max_features=5, min_count=2, characters=(2, 3)),
        TextFeatures("counts", max_features=4, lowercase=False, style=True),
        TextFeatures(n_hashed=16),
        TextFeatures("counts", n_hashed=8, characters=(3, 3)),
        TextFeatures(None, style=True, vocabulary=("the", "red")),
        TextFeatures(None, tags=_tag, word_ngrams=(2, 2)),
        TextFeatures("counts", characters=(2, 2), min_count=899, style=True),
    ],
)
def test_features_are_those_of_texts_in_memory(rows, features):
    whole, batched = clone(features), clone(features)
    expected = whole.fit_transform(TEXTS)
    expected = expected.toarray() if sp.issparse(expected) else expected
    design = batched.fit(rows).transform(rows)
    assert len(rows.starts) > 3
    assert batched.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    np.testing.assert_allclose(design.toarray(), expected, rtol=1e-14)
    again = clone(features).fit_transform(rows)
    np.testing.assert_array_equal(again.toarray(), design.toarray())


def test_words_are_learned_in_one_pass(rows):
    TextFeatures().fit(rows)
    assert rows.passes == 1


@pytest.mark.parametrize(
    "model", [Ridge(), LogisticRegression(), OnlineLogisticRegression(shuffle=False)]
)
def test_pipelines_learn_from_texts_in_batches(rows, tmp_path, model):
    batched = make_pipeline(TextFeatures(), clone(model)).fit(rows, rows.target)
    whole = make_pipeline(TextFeatures(), clone(model)).fit(TEXTS, LABELS)
    np.testing.assert_allclose(batched[-1].coef_, whole[-1].coef_, rtol=1e-6, atol=1e-9)
    new = trueline.open(tmp_path, columns=["text"])  # with a missing text
    np.testing.assert_allclose(batched.predict(new), whole.predict(TEXTS), rtol=1e-6)


def test_what_cannot_be_learned_says_why(rows, tmp_path):
    with pytest.raises(ValueError, match="No word is left"):
        TextFeatures(min_count=899).fit(rows)
    with pytest.raises(ValueError, match=r"One column of texts is needed, got 2: .*columns="):
        TextFeatures().fit(trueline.open(tmp_path))
    with pytest.raises(ValueError, match="Put it into a list"):
        TextFeatures().fit(TEXTS).transform("a text")
