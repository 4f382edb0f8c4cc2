"""Texts: words, pieces of words, style and spelling, in any script."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from trueline import Ridge, TextFeatures
from trueline.features.text import STYLE, misspelling, style, tokens

TEXTS = ["The cat sat on the mat.", "A dog! Two dogs?", "Cats & dogs: 3,5 or 12 of them", ""]
WORD = r"(?u)\b\w+\b"
SETTINGS = [
    TextFeatures(),
    TextFeatures("binary", word_ngrams=(1, 2), min_count=1),
    TextFeatures(None, characters=(2, 3)),
    TextFeatures("counts", n_hashed=16, style=True),
    TextFeatures(None, style=True, vocabulary=["cat", "dog"]),
]


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (TextFeatures(), TfidfVectorizer(token_pattern=WORD)),
        (TextFeatures("counts"), CountVectorizer(token_pattern=WORD)),
        (
            TextFeatures("binary", lowercase=False),
            CountVectorizer(token_pattern=WORD, binary=True, lowercase=False),
        ),
        (
            TextFeatures("counts", word_ngrams=(1, 3), min_count=2),
            CountVectorizer(token_pattern=WORD, ngram_range=(1, 3), min_df=2),
        ),
        (
            TextFeatures(None, characters=(2, 4)),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
        ),
    ],
)
def test_words_are_those_of_scikit_learn(ours, theirs):
    np.testing.assert_allclose(dense(ours.fit_transform(TEXTS)), dense(theirs.fit_transform(TEXTS)))
    names = [name.split(" ", 1)[1] for name in ours.get_feature_names_out()]
    assert names == [repr(str(name)) for name in theirs.get_feature_names_out()]


@pytest.mark.grid(1)
@pytest.mark.parametrize("features", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, pl.Series, lambda t: pd.DataFrame({"t": t})]
)
def test_any_sequence_of_texts(features, kind):
    fitted = clone(features).fit(kind(TEXTS))
    X = dense(fitted.transform(kind(TEXTS)))
    np.testing.assert_allclose(X, dense(clone(features).fit_transform(TEXTS)), rtol=1e-14)
    assert X.shape[1] == len(fitted.get_feature_names_out())
    assert len(set(fitted.get_feature_names_out())) == X.shape[1]
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(dense(again.transform(TEXTS)), X)
    frame = clone(features).set_output(transform="pandas").fit_transform(TEXTS)
    assert list(frame.columns) == list(fitted.get_feature_names_out())
    assert f"{X.shape[1]} columns" in fitted.explain()


def test_style_by_hand():
    found = dict(zip(STYLE, style(["Stop! 3,5 is NO number?"])[0]))
    assert found == {
        "characters": 23, "words": 4, "sentences": 2, "mean word length": 14 / 4,
        "share of punctuation": 3 / 23, "share of digits": 2 / 23, "share of capitals": 3 / 23,
        "share of different words": 1.0, "numbers": 1, "exclamation marks": 1, "question marks": 1,
    }  # fmt: skip
    np.testing.assert_array_equal(style([""]), np.zeros((1, len(STYLE))))


def test_misspelled_words_are_counted():
    found = misspelling(["The catt sat", "DON'T", ""], ["the", "sat", "don't"])
    np.testing.assert_allclose(found, [[1, 1 / 3], [0, 0], [0, 0]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=5))
def test_any_unicode(texts):
    features = TextFeatures("counts", characters=(1, 2), style=True, vocabulary=["a"])
    X = dense(features.fit(["a word", *texts]).transform(texts))
    assert np.isfinite(X).all()
    assert all(token for text in texts for token in tokens(text))


def test_missing_texts_are_empty():
    X = TextFeatures("counts").fit_transform(pd.Series(["a b", None, float("nan"), pd.NA]))
    np.testing.assert_array_equal(dense(X), [[1, 1], [0, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("features", "texts", "message"),
    [
        (TextFeatures(), "one text", "Put it into a list"),
        (TextFeatures(), ["a", 3], "Row 1 is not a text but int"),
        (TextFeatures(), [], "no texts"),
        (TextFeatures(), ["", "!"], "No word is left"),
        (TextFeatures(None), ["a"], "No feature is asked for"),
        (TextFeatures(word_ngrams=(2, 1)), ["a"], "word_ngrams must be"),
        (TextFeatures(), pd.DataFrame({"a": ["x"], "b": ["y"]}), "TableFeatures takes"),
    ],
)
def test_bad_texts(features, texts, message):
    with pytest.raises(ValueError, match=message):
        features.fit(texts)


def test_the_length_of_a_text_predicts_its_reading_time():
    texts = [("word " * k).strip() for k in range(1, 40)]
    seconds = np.arange(1, 40) / 4.0
    features = TextFeatures(None, style=True)
    model = Ridge(1e-6).fit(features.fit_transform(texts), seconds)
    np.testing.assert_allclose(model.predict(features.transform(texts)), seconds, rtol=1e-4)


# --- words, lemmas and tags from outside ---------------------------------------------------------


def split(text):
    return text.replace(".", " .").split()


def lemmas(text):
    return [word.rstrip("s") for word in split(text)]


def tags(text):
    return ["NAME" if word[0].isupper() else "WORD" for word in split(text)]


SENTENCES = ["Anna sees cats .", "cats see Bob .", ""]


def test_a_tokenizer_lemmas_and_tags_are_any_functions():
    features = TextFeatures("counts", tokenizer=split, lemmas=lemmas, tags=tags)
    X = dense(features.fit_transform(SENTENCES))
    found = dict(zip(features.get_feature_names_out().tolist(), X.T.tolist()))
    assert found["word 'cats'"] == [1, 1, 0]
    assert found["word '.'"] == [1, 1, 0]
    assert found["lemma 'cat'"] == [1, 1, 0]
    assert found["lemma 'see'"] == [1, 1, 0]
    assert found["tag 'NAME'"] == [1, 1, 0]  # read from the text as it was written
    assert found["tag 'WORD'"] == [3, 3, 0]
    assert len(found) == 6 + 5 + 2
    np.testing.assert_array_equal(dense(clone(features).fit(SENTENCES).transform(SENTENCES)), X)


def test_runs_of_tags_are_those_of_scikit_learn():
    ours = TextFeatures(None, tags=tags, word_ngrams=(1, 3))
    theirs = TfidfVectorizer(
        tokenizer=tags, token_pattern=None, ngram_range=(1, 3), lowercase=False
    )
    np.testing.assert_allclose(
        dense(ours.fit_transform(SENTENCES)), dense(theirs.fit_transform(SENTENCES))
    )


def test_a_function_that_gives_no_list_of_words_is_named():
    with pytest.raises(TypeError, match="reads each tag must give a list of str; of 'Anna sees"):
        TextFeatures(None, tags=lambda text: "NAME").fit(SENTENCES)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_matrix_of_numbers_is_refused_in_words(form):
    with pytest.raises(ValueError, match=r"sequence of texts is needed, got .* of shape \(3, 2\)"):
        TextFeatures().fit(form(np.ones((3, 2))))
