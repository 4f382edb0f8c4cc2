"""Words where numbers are needed: the error names the column, and what to do."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import LinearRegression as Theirs
from sklearn.pipeline import make_pipeline

import trueline as tl
from trueline.estimators.shared.validation import no_number

RNG = np.random.default_rng(0)
N = 30
CITIES = RNG.choice(["Oslo", "Rome"], N)
TABLE = pd.DataFrame({"size": RNG.random(N), "age": RNG.random(N), "city": CITIES})
SIZES, AMOUNTS = TABLE[["size", "age"]], RNG.random(N)
CLASSES = np.arange(N) % 2


def models():
    """All estimators that can be made without arguments and take a table of numbers."""
    for name in tl.__all__:
        cls = getattr(tl, name)
        if isinstance(cls, type) and hasattr(cls, "predict") and hasattr(cls, "fit"):
            needed = [
                p
                for p in list(inspect.signature(cls.__init__).parameters.values())[1:]
                if p.default is p.empty and p.kind is not p.VAR_KEYWORD
            ]
            if not needed:
                yield cls()


# These take words: categories are encoded, or texts read.
TAKE_WORDS = {"StepwiseRegression", "CalibratedClassifier"}
MODELS = [model for model in models() if type(model).__name__ not in TAKE_WORDS]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_column_is_named(model):
    y = CLASSES if is_classifier(model) else AMOUNTS
    with pytest.raises(ValueError, match="Column 'city' of X holds text") as caught:
        model.fit(TABLE, y)
    assert "TableFeatures" in str(caught.value)


@pytest.mark.parametrize(
    "model", [m for m in MODELS if is_regressor(m)], ids=lambda model: type(model).__name__
)
def test_targets_of_words_are_named(model):
    with pytest.raises(ValueError, match=r"predicts (numbers|counts).*, but y\[0\] is 'low'"):
        model.fit(SIZES, np.array(["low", "high"])[CLASSES])


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (TABLE, "Column 'city' of X holds text ("),
        (TABLE.astype({"city": "category"}), "Column 'city' of X holds text ("),
        (pl.DataFrame({"a": [1.0], "b": ["x"]}), "Column 'b' of X holds text ('x' in row 0)"),
        ([[1.0, 2.0], [3.0, "x" * 50]], "Column 1 of X holds text ('xxxxxxxxxxx"),
        (np.array([["1", "2"], ["3", "four"]]), "Column 1 of X holds text ('four' in row 1)"),
        (pd.DataFrame({"when": pd.to_datetime(["2024-05-31"])}), "Column 'when' of X holds dates"),
        (np.array([["1", "2"]]), None),
        (np.eye(2), None),
        ([[1.0], [2.0, 3.0]], None),
        ("text", None),
    ],
)
def test_what_holds_no_number(X, said):
    found = no_number(X)
    assert found is None if said is None else found.startswith(said)


@pytest.mark.parametrize("estimator", [tl.Ridge(), Theirs()], ids=["ours", "theirs"])
def test_sequential_selection_says_what_is_wrong(estimator):
    selector = tl.SequentialFeatureSelector(estimator)
    with pytest.raises(ValueError, match="Column 'city' of X holds text"):
        selector.fit(TABLE, AMOUNTS)
    words = np.array(["low", "high"])[CLASSES]
    with (
        pytest.raises(ValueError, match="predicts numbers, but y.0. is 'low'"),
        np.errstate(all="ignore"),
    ):
        selector.fit(SIZES, words)


@pytest.mark.parametrize("models", [None, ["ridge"]])
def test_comparisons_say_what_is_wrong(models):
    with pytest.raises(ValueError, match="Column 'city' of X holds text.*TableFeatures"):
        tl.compare(TABLE, AMOUNTS, models)
    compared = tl.compare(TABLE, AMOUNTS, [make_pipeline(tl.TableFeatures(), tl.Ridge())])
    assert np.isfinite(compared.best.score)


def test_nested_folds_say_what_is_wrong():
    with pytest.raises(ValueError, match="Column 'city' of X holds text"):
        tl.nested_cross_validate("ridge", TABLE, AMOUNTS)


def test_texts_that_are_no_classes_are_not_compared_as_such():
    prices = [f"${1000 + i:,}" for i in range(N)]
    with pytest.raises(ValueError, match="every one of its 30 rows has a value of its own"):
        tl.compare(SIZES, prices)


@pytest.mark.parametrize("texts", [list, np.array, pd.Series], ids=["list", "array", "Series"])
@pytest.mark.parametrize("model", [tl.Ridge(), tl.LogisticRegression(), tl.SVC()], ids=str)
def test_texts_without_a_step_that_reads_them_are_told_of_it(model, texts):
    rows = texts(["cheap pills", "a meeting"])
    with pytest.raises(ValueError, match=r"'cheap pills'.*make_pipeline\(TextFeatures\(\)"):
        model.fit(rows, [0, 1])


def test_a_model_that_is_given_by_its_name_is_refused_in_words():
    with pytest.raises(ValueError, match="'estimator' parameter .* implementing 'fit'"):
        tl.SequentialFeatureSelector("ridge").fit(SIZES, AMOUNTS)
