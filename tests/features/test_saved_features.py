"""Tables and chains of classifiers in model files: what is loaded is what was saved."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from trueline import (
    ChainedClassifiers,
    FormulaFeatures,
    LinearSVC,
    LogisticRegression,
    TableFeatures,
    TextFeatures,
    TranslationFeatures,
    load,
    save,
)
from trueline.errors import ModelFileError


def table():
    return pd.DataFrame(
        {
            "size": [1.0, 2.5, np.nan, 4.0],
            "city": ["Rome", "Oslo", "Rome", None],
            "garden": [True, False, True, True],
            "built": pd.to_datetime(["2001-01-01", "2003-06-01", "1999-12-31", "2020-02-29"]),
        }
    )


@pytest.mark.parametrize(
    "features",
    [
        TableFeatures(),
        TableFeatures(dtype=np.float32, standardize=True, drop_first=True),
        TableFeatures(n_hashed=8, max_levels=1),
    ],
    ids=["plain", "single, standardised", "hashed"],
)
def test_a_table_is_turned_the_same_way(features, tmp_path):
    model = features.fit(table())
    again = load(save(model, tmp_path / "table.trueline"))
    expected, found = model.transform(table()), again.transform(table())
    assert found.dtype == expected.dtype
    if sparse.issparse(expected):
        expected, found = expected.toarray(), found.toarray()
    assert_array_equal(found, expected)
    assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())
    assert again.dtype is model.dtype


def test_a_chain_says_the_same(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.array(["no", "yes"])[(X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)]
    stages = [("line", LinearSVC()), ("second", LogisticRegression())]
    model = ChainedClassifiers(stages, cv=2).fit(X, y)
    again = load(save(model, tmp_path / "chain.trueline"))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.explain() == model.explain()


# A lone surrogate, a NUL, combining marks, an emoji of several code points, right-to-left.
TEXTS = [
    "The cat \ud800sat.",
    "a\x00b e\u0301t\u0301",
    "\U0001f468\u200d\U0001f469 wow!",
    "",
    "שלום 12,5",
]


def same(found, expected):
    found, expected = (M.toarray() if sparse.issparse(M) else M for M in (found, expected))
    assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "features",
    [
        TextFeatures(),
        TextFeatures("counts", word_ngrams=(1, 2), characters=(2, 3), style=True),
        TextFeatures("binary", vocabulary={"the", "cat"}, min_count=1, max_features=3),
        TextFeatures("binary", vocabulary=frozenset({"wow"}), lowercase=False),
        TextFeatures(n_hashed=16, characters=(1, 2)),
        TextFeatures(words=None, style=True),
    ],
    ids=["tfidf", "counts, characters", "spelling", "frozen", "hashed", "style only"],
)
def test_texts_are_counted_the_same_way(features, tmp_path):
    model = features.fit(TEXTS)
    again = load(save(model, tmp_path / "texts.trueline"))
    same(again.transform([*TEXTS, "new words"]), model.transform([*TEXTS, "new words"]))
    assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())
    assert again.explain() == model.explain()
    assert again.get_params() == model.get_params()


def test_a_table_with_texts_is_turned_the_same_way(tmp_path):
    texts = [f"message {i} of the {'long' * (i % 3)} series, no. {i * i}" for i in range(40)]
    frame = pd.DataFrame({"size": np.arange(40.0), "note": texts})
    model = TableFeatures(text=TextFeatures("counts"), columns={"note": "text"}).fit(frame)
    again = load(save(model, tmp_path / "table.trueline"))
    same(again.transform(frame), model.transform(frame))
    assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())


@pytest.mark.parametrize("text", [None, TextFeatures("counts")], ids=["numbers", "words"])
@pytest.mark.parametrize("lexicon", [None, {"cat": ["Katze"]}], ids=["learned", "given"])
def test_pairs_are_described_the_same_way(text, lexicon, tmp_path):
    pairs = [("the cat sat", "die Katze sass"), ("a dog", "ein Hund"), ("", "nichts")] * 3
    model = TranslationFeatures(lexicon=lexicon, target_text=text).fit(pairs)
    again = load(save(model, tmp_path / "pairs.trueline"))
    same(again.transform([*pairs, ("new", "neu")]), model.transform([*pairs, ("new", "neu")]))
    assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())
    assert again.explain() == model.explain()


def test_a_formula_is_not_saved_because_it_is_code(tmp_path):
    pytest.importorskip("formulaic")
    model = FormulaFeatures("~ np.log(size)").fit(pd.DataFrame({"size": [1.0, 2.0, 3.0]}))
    with pytest.raises(ModelFileError, match="which a model file cannot hold"):
        save(model, tmp_path / "formula.trueline")
