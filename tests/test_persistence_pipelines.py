"""Pipelines of scikit-learn's transformers and our models are saved, loaded and verified."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import preprocessing as pre
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression as Theirs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from typer.testing import CliRunner

import trueline as tl
from trueline.cli import app
from trueline.errors import ModelFileError
from trueline.persistence.registry import SCHEMAS, transformer_classes


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(1, 9, n),
            "age": np.where(np.arange(n) % 7 == 3, np.nan, rng.integers(1, 40, n)),
            "city": rng.choice(["Oslo", "Rome", "Paris"], n).astype(object),
        }
    )
    y = 3 * frame["size"] - frame["age"].fillna(20) / 10 + (frame["city"] == "Rome")
    return frame, (y + 0.1 * rng.standard_normal(n)).to_numpy()


NUMBERS = [
    pre.StandardScaler(),
    pre.StandardScaler(with_mean=False, with_std=False),
    pre.MinMaxScaler(feature_range=(-1, 1)),
    pre.MaxAbsScaler(),
    pre.RobustScaler(),
    pre.PolynomialFeatures(2, include_bias=False),
    pre.FunctionTransformer(),
    SimpleImputer(),
    SimpleImputer(strategy="median", add_indicator=True),
    "passthrough",
]
WORDS = [
    pre.OneHotEncoder(),
    pre.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=21, drop="first"),
    pre.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    make_pipeline(SimpleImputer(strategy="most_frequent"), pre.OneHotEncoder(sparse_output=False)),
    tl.TableFeatures(),
]
TEXTS = [
    CountVectorizer(),
    CountVectorizer(max_features=3, binary=True, stop_words=["is"]),
    TfidfVectorizer(ngram_range=(1, 2)),
]


def again(model, tmp_path):
    return tl.load(tl.save(model, tmp_path / "model.trueline"))


def assert_same(model, X, y, tmp_path):
    loaded = again(model, tmp_path)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert tl.verify(loaded, X, y)
    forged = again(model, tmp_path)
    forged[-1].coef_ = forged[-1].coef_ + 0.5
    assert not tl.verify(forged, X, y)


@pytest.mark.parametrize("step", NUMBERS, ids=str)
def test_steps_of_numbers(step, tmp_path):
    frame, y = table()
    imputes = isinstance(step, SimpleImputer)
    X = frame[["size", "age"]] if imputes else frame[["size"]]
    assert_same(make_pipeline(step, tl.Ridge()).fit(X, y), X, y, tmp_path)


@pytest.mark.parametrize("step", WORDS, ids=lambda step: type(step).__name__)
def test_steps_of_categories(step, tmp_path):
    frame, y = table()
    assert_same(
        make_pipeline(step, tl.Ridge()).fit(frame[["city"]], y), frame[["city"]], y, tmp_path
    )


@pytest.mark.parametrize("step", TEXTS, ids=lambda step: type(step).__name__)
def test_steps_of_texts(step, tmp_path):
    texts = [f"house {i % 5} is {('old', 'new', 'very new')[i % 3]}" for i in range(40)]
    y = np.array(["low", "high"])[np.arange(40) % 3 // 2]
    model = make_pipeline(step, tl.LogisticRegression()).fit(texts, y)
    assert_same(model, texts, y, tmp_path)
    assert_array_equal(again(model, tmp_path).predict_proba(texts), model.predict_proba(texts))


def columns(model=None, remainder="drop"):
    numbers = make_pipeline(SimpleImputer(), pre.StandardScaler())
    parts = [("numbers", numbers, ["size", "age"]), ("words", pre.OneHotEncoder(), ["city"])]
    return Pipeline([("columns", ColumnTransformer(parts, remainder=remainder)), ("model", model)])


@pytest.mark.parametrize("remainder", ["drop", "passthrough", pre.MinMaxScaler()], ids=str)
def test_columns_by_name(remainder, tmp_path):
    frame, y = table()
    frame["more"] = np.arange(len(y), dtype=float)
    model = columns(tl.Ridge(), remainder).fit(frame, y)
    assert_same(model, frame, y, tmp_path)
    loaded = again(model, tmp_path)
    names = loaded[:-1].get_feature_names_out()
    assert_array_equal(names, model[:-1].get_feature_names_out())


def test_a_pipeline_that_was_never_fitted_can_be_saved(tmp_path):
    frame, y = table()
    loaded = again(columns(tl.Lasso(0.1)), tmp_path)
    expected = columns(tl.Lasso(0.1)).fit(frame, y).predict(frame)
    assert_array_equal(loaded.fit(frame, y).predict(frame), expected)


def test_every_schema_is_that_of_a_class():
    assert transformer_classes().keys() == SCHEMAS.keys()


def test_the_folder_of_a_cache_stays_where_it_is(tmp_path):
    frame, y = table()
    model = make_pipeline(pre.StandardScaler(), tl.Ridge(), memory=str(tmp_path))
    assert again(model.fit(frame[["size"]], y), tmp_path).memory is None


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (make_pipeline(KNNImputer(), tl.Ridge()), "sklearn.impute._knn.KNNImputer"),
        (make_pipeline(pre.StandardScaler(), Theirs()), "LinearRegression"),
        (make_pipeline(pre.FunctionTransformer(np.log1p), tl.Ridge()), "FunctionTransformer.func"),
        (make_pipeline(CountVectorizer(tokenizer=str.split), tl.Ridge()), "tokenizer"),
        (
            make_pipeline(
                ColumnTransformer([("all", pre.StandardScaler(), make_column_selector())]),
                tl.Ridge(),
            ),
            "make_column_selector",
        ),
    ],
)
def test_what_cannot_be_saved_is_named(model, name, tmp_path):
    with pytest.raises(ModelFileError, match=name):
        tl.save(model, tmp_path / "model.trueline")


def hostile(path, edit):
    """The same file with an edited header."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(parts["model.json"])
    edit(header["model"]["params"]["steps"][0]["items"][1], header["model"])
    parts["model.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda step, model: step["fitted"].update(extra_=1), "extra_ of sklearn.StandardScaler"),
        (lambda step, model: step["fitted"].update(mean_="far"), "mean_ cannot be of type str"),
        (lambda step, model: step["params"].update(copy="yes"), "parameter copy"),
        (lambda step, model: step["fitted"].update(transform=1), "not a name for a fitted"),
        (lambda step, model: model["params"].update(memory="/tmp/x"), "a folder of a machine"),
        (lambda step, model: step.update({"class": "sklearn.Unknown"}), "sklearn.Unknown"),
        (
            lambda step, model: step["fitted"].update(scale_={"$": "dtype", "name": "O,O"}),
            "a type of number",
        ),
        (
            lambda step, model: step["fitted"].update(scale_={"$": "slice", "items": ["a", 1, 2]}),
            "a slice is not made of",
        ),
    ],
)
def test_files_from_strangers_are_refused(edit, message, tmp_path):
    frame, y = table()
    model = make_pipeline(pre.StandardScaler(), tl.Ridge()).fit(frame[["size"]], y)
    path = hostile(tl.save(model, tmp_path / "model.trueline"), edit)
    with pytest.raises(ModelFileError, match=message):
        tl.load(path)


def test_verify_takes_models_pipelines_and_searches():
    frame, y = table()
    X = frame[["size"]]
    weights = np.arange(len(y)) % 3 + 1.0
    assert tl.verify(tl.Ridge().fit(X, y, weights), X, y, weights)
    search = GridSearchCV(make_pipeline(pre.StandardScaler(), tl.Ridge()), {"ridge__alpha": [1, 2]})
    assert tl.verify(search.fit(X, y), X, y)
    assert not tl.verify(search, X, y + 1.0 * np.arange(len(y)))
    with pytest.raises(TypeError, match="StandardScaler claims nothing that can be verified"):
        tl.verify(make_pipeline(pre.StandardScaler()).fit(X), X, y)


def test_the_command_line_verifies_and_predicts_with_pipelines(tmp_path):
    frame, y = table()
    model = columns(tl.Ridge()).fit(frame, y)
    path, data = tmp_path / "model.trueline", tmp_path / "data.csv"
    tl.save(model, path)
    frame.assign(price=y).to_csv(data, index=False)

    def run(*words):
        return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})

    found = run("verify", path, data)
    assert found.exit_code == 0, found.output
    assert "Ridge, its last step" in found.output
    frame.assign(price=y + np.arange(len(y))).to_csv(data, index=False)
    assert run("verify", path, data).exit_code == 1
    frame.assign(price=y, other=1).to_csv(data, index=False)
    assert "--target NAME (price, other" in run("verify", path, data).output
    assert run("verify", path, data, "--target", "price").exit_code == 0
    lines = run("predict", path, data).output.splitlines()
    predicted = [float(line.rsplit(",", 1)[1]) for line in lines[1:]]
    np.testing.assert_allclose(predicted, model.predict(frame), rtol=1e-12)
