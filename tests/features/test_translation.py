"""Pairs of texts: probabilities, quartiles and lexicons against their definitions."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from trueline import Ridge, TextFeatures, TranslationFeatures
from trueline.features.text import tokens
from trueline.features.translation_models import LanguageModel, Vocabulary, learn_lexicon

PAIRS = [
    ("the house", "das Haus"),
    ("the house is old", "das Haus ist alt"),
    ("the book", "das Buch"),
    ("a book", "ein Buch"),
    ("a house , a book", "ein Haus , ein Buch"),
    ("", ""),
]
SOURCES = [pair[0] for pair in PAIRS]


def model(order=2):
    vocabulary = Vocabulary.learn(SOURCES)
    corpus = vocabulary.read(SOURCES)
    return vocabulary, corpus, LanguageModel.learn(corpus, len(vocabulary), order)


def probability(word, before, texts, weights, size):
    """The formula of the language model, from lists of words."""
    words = [token for text in texts for token in tokens(text)]
    single = words.count(word) / len(words) if words else 1.0 / size
    pairs = [p for text in texts for p in zip(["<s>", *tokens(text)], tokens(text))]
    history = sum(first == before for first, _ in pairs)
    double = pairs.count((before, word)) / history if history else single
    return weights @ [1.0 / size, single, double]


@pytest.mark.parametrize("leave_out", [False, True])
def test_probabilities_follow_their_formula(leave_out):
    vocabulary, corpus, lm = model()
    found = lm.log_probabilities(corpus, leave_out)
    expected = []
    for i, text in enumerate(SOURCES):
        others = SOURCES[:i] + SOURCES[i + 1 :] if leave_out else SOURCES
        for before, word in zip(["<s>", *tokens(text)], tokens(text)):
            expected.append(np.log(probability(word, before, others, lm.weights, len(vocabulary))))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_words_never_seen_are_not_the_beginning_of_a_text():
    vocabulary, _, lm = model()
    strange = lm.log_probabilities(vocabulary.read(["zebra house"]))
    expected = probability("house", "zebra", SOURCES, lm.weights, len(vocabulary))
    assert strange[1] == pytest.approx(np.log(expected))
    assert strange[0] == pytest.approx(np.log(lm.weights[0] / len(vocabulary)))


def test_probabilities_of_all_words_sum_to_one():
    vocabulary, _, lm = model(3)
    total = 0.0
    for word in [*vocabulary.number, "zebra", "zebra"]:  # none and unknown share what is left
        total += np.exp(lm.log_probabilities(vocabulary.read([f"a house {word}"]))[-1])
    assert total == pytest.approx(1.0)


def test_quartiles_split_the_running_text():
    vocabulary, corpus, lm = model(1)
    shares = lm.quartile_shares(corpus)
    np.testing.assert_allclose(shares[:-1].sum(axis=1), 1.0)
    assert (shares[-1] == 0).all()  # no run in an empty text
    counts = Counter(token for text in SOURCES for token in tokens(text))
    rare = [np.mean([counts[t] <= lm.quartiles[0][0] for t in tokens(s)]) for s in SOURCES[:-1]]
    np.testing.assert_allclose(shares[:-1, 0], rare)
    unseen = lm.quartile_shares(vocabulary.read(["zebra house"]))
    assert unseen[0, 4] == 0.5


def test_the_lexicon_is_that_of_model_one():
    source, target = Vocabulary.learn(SOURCES), Vocabulary.learn([pair[1] for pair in PAIRS])
    read = source.read(SOURCES), target.read([pair[1] for pair in PAIRS])
    lexicon, _ = learn_lexicon(*read, len(target), rounds=4)
    # The same iteration with dictionaries.
    split = [(["<none>", *tokens(s)], tokens(t)) for s, t in PAIRS]
    table = Counter({(s, t): 1.0 for ss, tt in split for s in ss for t in tt})
    for _ in range(4):
        counts, totals = Counter(), Counter()
        for ss, tt in split:
            for t in tt:
                total = sum(table[s, t] for s in ss)
                for s in ss:
                    counts[s, t] += table[s, t] / total
                    totals[s] += table[s, t] / total
        table = Counter({(s, t): counts[s, t] / totals[s] for s, t in counts})
    for (s, t), expected in table.items():
        number = 0 if s == "<none>" else source.number[s]
        found = lexicon.look_up(np.array([number]), np.array([target.number[t]]))[0]
        assert found == pytest.approx(expected, rel=1e-10)
    assert table["house", "haus"] > 0.5


def test_rows_of_fit_do_not_see_themselves():
    pairs = [*PAIRS, ("zebra", "Zebra")]
    features = TranslationFeatures(standardize=False)
    learned = features.fit_transform(pairs)
    names = list(features.get_feature_names_out())
    later = features.transform(pairs)
    column = names.index("target runs of 1: unseen")
    assert learned[-1, column] == 1.0  # no other row has this word
    assert later[-1, column] == 0.0
    for name in ("log p(target | source) per token", "target log probability per token"):
        assert learned[-1, names.index(name)] < later[-1, names.index(name)] - 0.5
    assert learned[-1, names.index("translations per source word (p > 0.2)")] == 0.0


def test_surface_by_hand():
    features = TranslationFeatures(standardize=False).fit(PAIRS)
    pair = ("In 1934 Ortega met 2 friends .", "1934 traf Ortega Freunde !")
    row = dict(zip(features.get_feature_names_out(), features.transform([pair])[0]))
    assert row["source tokens"] == 7
    assert row["target tokens"] == 5
    assert row["target tokens per source token"] == 5 / 7
    assert row["difference of punctuation per token"] == 2 / 7
    assert row["share of source numbers that the target lacks"] == 0.5
    assert row["share of target tokens copied from the source"] == 1 / 5  # Ortega
    assert row["source punctuation per token"] == 1 / 7


def test_a_given_lexicon_and_given_texts():
    lexicon = {"house": ["Haus", "Gebäude", "Heim"], "the": {"das": 0.6, "die": 0.4}}
    features = TranslationFeatures(
        lexicon=lexicon, source_corpus=["the old house"] * 3, standardize=False
    ).fit(PAIRS)
    row = dict(zip(features.get_feature_names_out(), features.transform(PAIRS)[0]))
    assert row["translations per source word (p > 0.2)"] == (3 + 2) / 2
    expected = np.mean([np.log((0.6 + 2e-7) / 3), np.log((1 / 3 + 2e-7) / 3)])
    assert row["log p(target | source) per token"] == pytest.approx(expected)
    assert "from the given texts" in features.explain()
    assert "given" in features.explain().splitlines()[-1]


KINDS = [
    list,
    np.array,
    lambda pairs: pd.DataFrame(pairs, columns=["s", "t"]),
    lambda pairs: pl.DataFrame(pairs, schema=["s", "t"], orient="row"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_tables_pickles_and_words(kind):
    features = TranslationFeatures(target_text=TextFeatures(), source_text=TextFeatures("counts"))
    X = clone(features).fit_transform(kind(PAIRS))
    assert sparse.issparse(X)
    fitted = features.fit(kind(PAIRS))
    names = fitted.get_feature_names_out()
    assert X.shape == (6, len(names))
    assert "target: word 'haus'" in names
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        again.transform(PAIRS).toarray(), fitted.transform(kind(PAIRS)).toarray()
    )
    assert np.isfinite(X.toarray()).all()


def test_numbers_that_come_with_the_pairs():
    frame = pd.DataFrame(PAIRS, columns=["s", "t"]).assign(score=np.arange(6.0))
    features = TranslationFeatures(standardize=False)
    X = features.fit_transform(frame)
    assert features.get_feature_names_out()[-1] == "score"
    np.testing.assert_array_equal(X[:, -1], np.arange(6.0))
    with pytest.raises(ValueError, match="fit saw the columns"):
        features.transform(PAIRS)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "no pairs"),
        (["one", "two"], "Pairs"),
        (pd.DataFrame({"s": ["a"]}), "one column"),
        (pd.DataFrame({"s": ["a"], "t": ["b"], "x": [np.nan]}), "finite"),
        ([("a", 3)], "not a text"),
    ],
)
def test_bad_pairs(pairs, message):
    with pytest.raises(ValueError, match=message):
        TranslationFeatures().fit(pairs)


def test_garbled_translations_are_found():
    rng = np.random.default_rng(0)
    lexicon = {f"s{i}": f"t{i}" for i in range(40)}
    pairs, quality = [], []
    for _ in range(300):
        words = [f"s{i}" for i in rng.integers(0, 40, rng.integers(4, 12))]
        wrong = rng.random() < 0.5
        translated = [
            f"t{rng.integers(0, 40)}" if wrong and rng.random() < 0.6 else lexicon[w] for w in words
        ]
        quality.append(np.mean([lexicon[w] == t for w, t in zip(words, translated)]))
        pairs.append((" ".join(words), " ".join(translated)))
    features = TranslationFeatures()
    ridge = Ridge(1.0).fit(features.fit_transform(pairs[:200]), quality[:200])
    predicted = ridge.predict(features.transform(pairs[200:]))
    assert np.corrcoef(predicted, quality[200:])[0, 1] > 0.9


# --- programs from outside, brackets, columns of the translating system ---------------------------


def tags(text):
    return ["DET" if word in ("the", "a", "das", "ein") else "NOUN" for word in text.split()]


def entities(text):
    return [word for word in text.split() if word[0].isupper()]


def named(features, pairs):
    X = features.fit_transform(pairs)
    return dict(zip(features.get_feature_names_out().tolist(), X.T.tolist()))


def test_annotations_are_counted_on_both_sides():
    annotations = {"part of speech": (tags, tags), "entity": (None, entities)}
    found = named(TranslationFeatures(annotations=annotations, standardize=False), PAIRS)
    assert found["source part of speech: DET"] == [1, 1, 1, 1, 2, 0]
    assert found["source part of speech: all"] == [2, 4, 2, 2, 5, 0]
    assert found["source part of speech: content words"] == [1, 3, 1, 1, 3, 0]
    assert found["target part of speech: NOUN"] == [1, 3, 1, 1, 3, 0]
    assert found["target per source part of speech: all"] == [1, 1, 1, 1, 1, 0]
    assert found["target entity: all"] == [1, 1, 1, 1, 2, 0]
    assert found["target entity: Buch"] == [0, 0, 1, 1, 1, 0]
    assert not any(name.startswith("source entity") for name in found)


def test_new_pairs_have_the_columns_that_were_learned():
    features = TranslationFeatures(annotations={"entity": (entities, entities)}, standardize=False)
    features.fit(PAIRS)
    X = features.transform([("Anna", "Anna Haus")])
    found = dict(zip(features.get_feature_names_out().tolist(), X[0].tolist()))
    assert found["source entity: all"] == 1
    assert found["target entity: Haus"] == 1
    assert found["target per source entity: all"] == 2
    assert "target entity: Anna" not in found


def test_only_the_most_frequent_labels_have_columns():
    pairs = [(f"N{i} N0", "x") for i in range(80)]
    found = named(TranslationFeatures(annotations={"entity": (entities, None)}), pairs)
    labels = [name for name in found if name.startswith("source entity: N")]
    assert len(labels) == 50
    assert "source entity: N0" in labels


def test_brackets_that_one_side_lacks():
    pairs = [("a (b) c", "a (b) c"), ("a (b) c", "a b c"), ("a", "[a]")]
    found = named(TranslationFeatures(standardize=False), pairs)
    expected = [0, 2 / max(len(tokens("a (b) c")), 3), 2 / len(tokens("[a]"))]
    np.testing.assert_allclose(found["difference of brackets per token"], expected)


def test_missing_inputs_are_said():
    table = pd.DataFrame(PAIRS, columns=["source", "target"]).assign(score=1.0, pruned_nodes=2.0)
    features = TranslationFeatures(annotations={"dependency": (tags, None)}).fit(table)
    assert features.explain().splitlines()[-2:] == [
        "not given as annotations: part of speech, entity, phrase",
        "not given as columns of the table: n-best size, phrases, recombined nodes",
    ]


@pytest.mark.parametrize(
    ("annotations", "error", "message"),
    [
        ({"entity": entities}, ValueError, r"annotations\['entity'\] must be two functions"),
        ({"entity": (None, None)}, ValueError, "must be two functions"),
        ({"entity": (len, None)}, TypeError, "not iterable"),
        ({"entity": (lambda t: [1], None)}, TypeError, "must give a list of str for the source"),
    ],
)
def test_annotations_that_cannot_be_read(annotations, error, message):
    with pytest.raises(error, match=message):
        TranslationFeatures(annotations=annotations).fit(PAIRS)
