"""One table in, one design out: pandas, polars and Arrow, every kind of column, bad input."""

import pickle
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from trueline import LogisticRegression, Ridge, TableFeatures, TextFeatures, design_matrix
from trueline.errors import MissingExtraError, TableError
from trueline.table import Column

RNG = np.random.default_rng(0)
N = 60
COLUMNS = {
    "size": [None if i % 7 == 3 else float(i) for i in range(N)],
    "rooms": [int(i) for i in RNG.integers(1, 6, N)],
    "city": [None if i % 11 == 5 else f"city {i % 4}" for i in range(N)],
    "lift": [bool(i % 3) for i in range(N)],
    "sold": [datetime(2020 + i % 3, 1 + i % 12, 1 + i % 28, i % 24) for i in range(N)],
    "told": [f"house number {i} with a {'garden' if i % 2 else 'view'}" for i in range(N)],
}
FRAMES = {
    "pandas": lambda c: pd.DataFrame(c),
    "pandas-object": lambda c: pd.DataFrame(c).astype({"city": object, "told": object}),
    "polars": lambda c: pl.DataFrame(c),
    "lazy": lambda c: pl.LazyFrame(c),
    "arrow": lambda c: pa.table(c),
    "dict": lambda c: c,
}


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


@pytest.mark.grid(1)
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_every_kind_of_table_gives_the_same_design(make, threshold):
    features = TableFeatures(sparse_threshold=threshold)
    X = features.fit_transform(make(COLUMNS))
    assert sparse.issparse(X) == (threshold == 1.0)
    reference = TableFeatures(sparse_threshold=0.0).fit(pa.table(COLUMNS))
    np.testing.assert_allclose(dense(X), reference.transform(COLUMNS), rtol=1e-15)
    assert features.kinds_ == dict(
        zip(COLUMNS, ["number", "number", "category", "boolean", "date", "text"])
    )
    assert list(features.get_feature_names_out()) == list(reference.get_feature_names_out())
    assert len(features.sources_) == X.shape[1]
    assert set(features.sources_) == set(COLUMNS)
    for name, source in zip(features.get_feature_names_out(), features.sources_):
        assert name.startswith(source)


def test_columns_against_their_formulas():
    design = design_matrix({name: COLUMNS[name] for name in ("size", "city", "lift", "sold")})
    X = pd.DataFrame(dense(design.X), columns=design.names)
    size = np.array(COLUMNS["size"], dtype=float)
    np.testing.assert_array_equal(X["size"], np.where(np.isnan(size), np.nanmean(size), size))
    np.testing.assert_array_equal(X["size is missing"], np.isnan(size))
    for level in ("city 0", "city 3"):
        np.testing.assert_array_equal(X[f"city={level}"], [c == level for c in COLUMNS["city"]])
    np.testing.assert_array_equal(X["city=(missing)"], [c is None for c in COLUMNS["city"]])
    np.testing.assert_array_equal(X["lift"], COLUMNS["lift"])
    sold = pd.Series(COLUMNS["sold"])
    np.testing.assert_array_equal(X["sold: Sunday"], [day.weekday() == 6 for day in sold])
    years = (sold - sold.min()) / pd.Timedelta(days=365.2425)
    np.testing.assert_allclose(X["sold: years since 2020-01-01"], years, atol=1e-12)
    hour = 2 * np.pi * sold.dt.hour / 24
    np.testing.assert_allclose(X["sold: cos(day)"], np.cos(hour), atol=1e-9)


def test_the_design_is_that_of_a_column_transformer():
    frame = pd.DataFrame(COLUMNS)[["size", "rooms", "city"]]
    theirs = make_column_transformer(
        (SimpleImputer(add_indicator=True), ["size"]), ("passthrough", ["rooms"]),
        (OneHotEncoder(sparse_output=False), ["city"]),
    )  # fmt: skip
    ours = TableFeatures(sparse_threshold=0.0).fit_transform(frame)
    np.testing.assert_allclose(ours, theirs.fit_transform(frame))
    scaled = TableFeatures(standardize=True).fit_transform(frame[["rooms"]])
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(frame[["rooms"]]))


def test_it_works_in_pipelines_and_is_copied_and_pickled():
    frame = pl.DataFrame(COLUMNS)
    y = np.arange(N) % 2
    model = make_pipeline(clone(TableFeatures()), LogisticRegression()).fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    table = TableFeatures(sparse_threshold=1.0).set_output(transform="pandas").fit(frame)
    assert list(table.transform(frame).columns) == list(table.get_feature_names_out())
    assert TableFeatures(dtype=np.float32).fit_transform(frame).dtype == np.float32


def test_coefficients_trace_back_to_the_table():
    frame = pd.DataFrame(COLUMNS)
    design = design_matrix(frame, target="rooms")
    model = Ridge().fit(design.X, design.y)
    groups = design.features.by_source(model.coef_)
    assert list(groups) == ["size", "city", "lift", "sold", "told"]
    assert sum(len(group) for group in groups.values()) == design.X.shape[1]
    assert groups["lift"]["lift"] == model.coef_[list(design.names).index("lift")]
    with pytest.raises(ValueError, match="coefficients"):
        design.features.by_source([1.0])
    assert "city: category, 5 columns; " in str(design)


# categories ------------------------------------------------------------------------------------


def test_many_levels_do_not_blow_up():
    codes = np.concatenate([np.arange(3000), RNG.integers(0, 50, 7000)])
    column = {"zip": [f"{c:05d}" for c in codes]}
    few = TableFeatures(max_levels=50).fit(column)
    assert few.transform(column).shape == (10_000, 51)
    assert few.get_feature_names_out()[-1] == "zip=(other)"
    X = TableFeatures(min_count=3).fit_transform(column)
    assert X.nnz == 10_000
    hashed = TableFeatures(max_levels=50, n_hashed=8).fit(column)
    H = hashed.transform({"zip": ["00001", "02999", "not seen"]})
    assert H.shape == (3, 58)
    np.testing.assert_array_equal(np.asarray(H.sum(axis=1)).ravel(), 1.0)
    assert (H[1:].indices >= 50).all()


def test_unknown_levels():
    column = {"city": ["Rome", "Oslo", "Rome", "Bonn"]}
    features = TableFeatures().fit(column)
    np.testing.assert_array_equal(
        dense(features.transform({"city": ["Oslo", "Lima", None]})), [[0, 1, 0], [0] * 3, [0] * 3]
    )
    shared = TableFeatures(min_count=2).fit(column)
    np.testing.assert_array_equal(dense(shared.transform({"city": ["Lima"]})), [[0, 1]])
    with pytest.raises(TableError, match="'city' holds 'Lima', which fit has not seen"):
        TableFeatures(unknown="error").fit(column).transform({"city": ["Lima"]})


def test_the_first_level_can_be_left_out():
    features = TableFeatures(drop_first=True).fit({"city": ["Rome", "Oslo", "Bonn"]})
    assert list(features.get_feature_names_out()) == ["city=Oslo", "city=Rome"]
    assert "compared to 'Bonn'" in features.explain()


def test_categories_of_numbers_and_of_pandas_and_mixed_values():
    frame = pd.DataFrame({"zip": [10, 20, 10], "day": pd.Categorical(["b", "a", None])})
    features = TableFeatures({"zip": "category"}).fit(frame)
    names = ["zip=10", "zip=20", "day=a", "day=b", "day=(missing)"]
    assert list(features.get_feature_names_out()) == names
    mixed = TableFeatures().fit({"what": [1, "one", None, 2.5]})
    assert set(mixed.get_feature_names_out()) >= {"what=1", "what=one", "what=2.5"}


# what cannot be used ---------------------------------------------------------------------------


AMOUNTS = {
    "price": (["$4,733", "$12", "-$7.50", None], [4733.0, 12.0, -7.5, np.nan], "$"),
    "share": (["12.5 %", "3%", "NA", "100%"], [12.5, 3.0, np.nan, 100.0], "%"),
    "people": (["1,234,567", "12", "?", "999"], [1234567.0, 12.0, np.nan, 999.0], ""),
    "owed": (["(250)", "30.5", "(1,250)", "4"], [-250.0, 30.5, -1250.0, 4.0], ""),
    "tiny": (["1e-3", "2.5", "7", ""], [1e-3, 2.5, 7.0, np.nan], ""),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts_in_texts_are_the_numbers_that_the_command_line_reads(name, make):
    texts, numbers, unit = AMOUNTS[name]
    table = {name: texts, "city": list("abab"), "told": list("abba")}
    features = TableFeatures()
    X = dense(features.fit_transform(make(table)))
    assert features.kinds_[name] == "number"
    missing = np.isnan(numbers)
    assert_allclose(X[:, 0], np.where(missing, np.nanmean(numbers), numbers), rtol=1e-15)
    if missing.any():
        assert_allclose(X[:, 1], missing)
    assert (f"read as numbers of {unit}" in features.explain()) == bool(unit)
    column = Column(name, [text or "" for text in texts])
    assert column.unit == unit
    assert_allclose(column.numbers, numbers)


@pytest.mark.parametrize(
    "texts",
    [
        ["02134", "94110", "02134", "10001"],  # codes of towns
        ["$5", "€5", "$7", "€5"],
        ["12%", "0.12", "12%", "0.12"],
        ["1.2.3", "1.2.4", "1.2.3", "2.0"],
        ["1_000", "2_000", "1_000", "2_000"],
        ["5 rooms", "6", "5 rooms", "6"],
    ],
    ids=["codes", "currencies", "percents", "versions", "names", "words"],
)
def test_texts_that_are_no_amounts_stay_categories(texts):
    assert TableFeatures().fit({"x": texts}).kinds_ == {"x": "category"}


def test_codes_are_read_as_numbers_on_request():
    table = {"power": ["130", "?", "165", "150"]}
    assert (
        "columns={'power': 'number'} reads them as numbers" in TableFeatures().fit(table).explain()
    )
    X = TableFeatures({"power": "number"}).fit_transform(table)
    assert_allclose(X, [[130, 0], [445 / 3, 1], [165, 0], [150, 0]])
    X = TableFeatures({"lift": "boolean"}).fit_transform({"lift": ["1", "NA", "0", "1"]})
    assert_allclose(X, [[1, 0], [0, 1], [0, 0], [1, 0]])


def test_amounts_keep_their_unit():
    features = TableFeatures().fit({"price": ["$1,000", "$2.50", "$7"]})
    assert_allclose(features.transform({"price": [5.0, 6.0]}), [[5.0], [6.0]])
    assert_allclose(features.transform({"price": ["5", "6,000"]}), [[5.0], [6000.0]])
    with pytest.raises(TableError, match="'price' holds numbers of €, and held numbers of \\$"):
        features.transform({"price": ["€5", "€6"]})
    with pytest.raises(TableError, match="'price' cannot be read as numbers: row 1 holds 'six'"):
        features.transform({"price": ["$5", "six"]})
    with pytest.raises(TableError, match="'price' cannot be read as numbers: .* several units"):
        features.transform({"price": ["$5", "€6"]})


def test_amounts_are_targets():
    table = {"size": [1.0, 2.0, 4.0], "price": ["$1,000", "$2,000", "$4,000"]}
    assert_allclose(design_matrix(table, target="price").y, [1000.0, 2000.0, 4000.0])
    table["price"][1] = "NA"
    with pytest.raises(TableError, match="'price' is missing in 1 row "):
        design_matrix(table, target="price")


def test_useless_columns_are_left_out_and_said():
    table = {
        "empty": [None] * N,
        "nan": [float("nan")] * N,
        "same": ["x"] * N,
        "zero": [0.0] * N,
        "name": [f"person{i}" for i in range(N)],
        "list": [[1, 2]] * N,
        "size": list(range(N)),
        "secret": list(range(N)),
    }
    features = TableFeatures({"secret": "drop"}).fit(table)
    assert features.kinds_ == {"size": "number"}
    assert features.dropped_["empty"] == features.dropped_["nan"] == "no value at all"
    assert features.dropped_["same"] == features.dropped_["zero"] == "one value only"
    assert "identifier" in features.dropped_["name"]
    assert "list" in features.dropped_["list"]
    assert "empty: left out, no value at all" in features.explain()
    asked = TableFeatures({"name": "category"}).fit(table)
    assert asked.kinds_["name"] == "category"
    with pytest.raises(TableError, match=r"No column of the table can be used. empty: no value"):
        TableFeatures().fit({"empty": [None, None]})


def test_a_column_that_is_missing_only_later():
    features = TableFeatures().fit({"size": [1.0, 3.0], "lift": [True, False]})
    np.testing.assert_array_equal(
        dense(features.transform({"lift": [None, None], "size": [None, 5.0], "more": [1, 2]})),
        [[2.0, 0.0], [5.0, 0.0]],
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1.0, float("inf")]}, "'a' holds an infinite value"),
        ({"a": []}, "no rows"),
        ({}, "no columns"),
        ({"a": [1, 2], "b": [1]}, "one length"),
        (np.ones(3), "two dimensions"),
        (7, "A table is needed"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' more than once|duplicate|unique"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(ValueError, match=message):
        TableFeatures().fit(table)


def test_missing_columns_are_named():
    features = TableFeatures().fit({"size": [1.0, 2.0]})
    with pytest.raises(TableError, match="no column 'size'. Did you mean 'sizes'"):
        features.transform({"sizes": [1.0]})
    with pytest.raises(TableError, match="no target 'prize'. Did you mean 'price'"):
        design_matrix({"price": [1.0, 2.0], "a": [1, 2]}, target="prize")
    with pytest.raises(TableError, match="missing in 1 row "):
        design_matrix({"price": [1.0, None], "a": [1, 2]}, target="price")
    with pytest.raises(ValueError, match="kind of column 'a'"):
        TableFeatures({"a": "colour"}).fit({"a": [1, 2]})


def test_targets_keep_their_type():
    table = {"a": [1.0, 2.0, 4.0], "y": ["no", "yes", "no"], "b": [True, False, True]}
    assert list(design_matrix(table, "y").y) == ["no", "yes", "no"]
    assert design_matrix(table, "b").y.dtype == bool
    assert design_matrix(table).y is None


@pytest.mark.grid(1)
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize(
    "values", [list, np.array, pd.Series, pa.array, lambda y: pl.Series("y", y)]
)
def test_a_target_may_be_given_by_its_values(frame, values):
    y = RNG.standard_normal(N).tolist()
    given, named = design_matrix(frame(COLUMNS), values(y)), design_matrix({**COLUMNS, "y": y}, "y")
    np.testing.assert_array_equal(given.y, y)
    np.testing.assert_array_equal(dense(given.X), dense(named.X))


@pytest.mark.parametrize("wrong", [[1.0, 2.0], np.ones((3, 2))], ids=["short", "table"])
def test_targets_of_another_shape_are_refused(wrong):
    with pytest.raises(TableError, match="the name of a column, or one value for each of the 3"):
        design_matrix({"a": [1.0, 2.0, 4.0]}, wrong)


def test_columns_named_by_numbers_are_found():
    table = pd.DataFrame([[1.0, 5.0], [2.0, 7.0], [4.0, 6.0]])
    np.testing.assert_array_equal(design_matrix(table, target=1).y, [5.0, 7.0, 6.0])


def test_categories_of_polars_are_categories():
    labels = ["x", None, "y"] * 4
    texts = TableFeatures().fit({"a": labels})
    for kind in (pl.Categorical, pl.Enum(["x", "y"])):
        table = pl.DataFrame({"a": pl.Series(labels, dtype=kind)})
        features = TableFeatures().fit(table)
        assert list(features.get_feature_names_out()) == ["a=x", "a=y", "a=(missing)"]
        np.testing.assert_array_equal(
            dense(features.transform(table)), dense(texts.transform({"a": labels}))
        )


@pytest.mark.parametrize("values", [[np.inf] * 4, [1.0, -np.inf, 2.0, 3.0]], ids=["all", "one"])
def test_infinite_values_are_refused(values):
    with pytest.raises(TableError, match="'a' holds an infinite value"):
        TableFeatures().fit({"a": values, "b": [1, 2, 3, 4]})


def test_the_largest_numbers_stay_finite():
    table = {"a": [1e308, -1e308, 1e308, None] * 10}
    features = TableFeatures(standardize=True, sparse_threshold=0.0)
    X = features.fit_transform(table, np.linspace(-1e300, 1e300, 40))
    mean, spread = 1 / 3, np.sqrt(8) / 3  # of 1, -1, 1
    assert_allclose(X[:4, 0], [(1 - mean) / spread, (-1 - mean) / spread, (1 - mean) / spread, 0])


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("labels", [["a", "b"], [1.0, 2.0]], ids=["texts", "numbers"])
def test_missing_targets_are_left_to_the_model_to_refuse(labels, missing):
    y = [missing, *labels] * 10
    model = make_pipeline(TableFeatures(), LogisticRegression())
    with pytest.raises(ValueError, match="NaN"):
        model.fit({"a": list(range(30))}, np.array(y, dtype=object))


# dates -----------------------------------------------------------------------------------------


def test_dates_out_of_range_and_dates_in_texts():
    train = {"day": [date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)]}
    new = {"day": [date(2030, 6, 1), None, date(2021, 1, 1)]}
    clip = TableFeatures().fit(train)
    with pytest.warns(UserWarning, match="1 dates of column 'day' lie outside.*2020-01-01 to 2022"):
        X = dense(clip.transform(new))
    np.testing.assert_allclose(
        X[:, 0], [731 / 365.2425, 1.0 * 365.5 / 365.2425, 366 / 365.2425], rtol=2e-3
    )
    extrapolated = TableFeatures(dates_outside="extrapolate").fit(train).transform(new)
    assert dense(extrapolated)[0, 0] == pytest.approx(10.41, abs=0.01)
    with pytest.raises(TableError, match="outside the range"):
        TableFeatures(dates_outside="error").fit(train).transform(new)
    texts = TableFeatures().fit({"day": ["2020-01-01", "2021-01-01", "2022-01-01"]})
    np.testing.assert_array_equal(dense(texts.transform(train)), dense(clip.transform(train)))
    with pytest.warns(UserWarning, match="outside"):
        strange = dense(texts.transform({"day": ["0001-01-01", "9999-12-31", "2021-02-30"]}))
    assert np.isfinite(strange).all()
    with pytest.raises(TableError, match="no date that can be read"):
        TableFeatures({"day": "date"}).fit({"day": ["soon", "later"]})


def test_dates_far_from_today_and_with_zones():
    zoned = pd.DataFrame(
        {
            "t": pd.to_datetime(["2024-07-01 22:00", "2024-07-03 01:00"])
            .tz_localize("UTC")
            .tz_convert("Asia/Tokyo")
        }
    )
    X = pd.DataFrame(
        dense(TableFeatures().fit_transform(zoned)),
        columns=TableFeatures().fit(zoned).get_feature_names_out(),
    )
    assert X["t: Tuesday"][0] == 1.0  # already the next day in Tokyo
    far = pl.DataFrame({"t": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)]})
    assert np.isfinite(dense(TableFeatures().fit_transform(far))).all()


# texts -----------------------------------------------------------------------------------------


def test_texts_are_what_their_transformer_says():
    table = {"told": [*COLUMNS["told"], None]}
    features = TableFeatures(text=TextFeatures("counts", style=True)).fit(table)
    names = list(features.get_feature_names_out())
    X = dense(features.transform({"told": ["garden garden!", None]}))
    assert X[0, names.index("told: word 'garden'")] == 2.0
    assert X[0, names.index("told: exclamation marks")] == 1.0
    assert X[1, names.index("told is missing")] == 1.0


# leakage ---------------------------------------------------------------------------------------


def test_a_target_among_the_features_is_detected_and_said():
    y = RNG.standard_normal(N)
    table = {"size": RNG.standard_normal(N), "copy": 3 * y + 1, "log": np.exp(y), "y": y}
    with pytest.warns(UserWarning, match="give the target away: 'copy'.*'log'"):
        design = design_matrix(table, target="y")
    assert set(design.features.leaks_) == {"copy", "log"}
    assert "copy: gives the target away, it is the target" in str(design)
    dropped = design_matrix(table, target="y", leakage="drop")
    assert list(dropped.names) == ["size"]
    with pytest.raises(TableError, match="Take them out"):
        TableFeatures(leakage="error").fit(table, y)
    assert TableFeatures(leakage="ignore").fit(table, y).leaks_ == {}


def test_categories_that_tell_the_class():
    labels = np.array(["ham", "spam"])[RNG.integers(0, 2, N)]
    table = {
        "folder": np.where(labels == "spam", "junk", "inbox"),
        "rank": (labels == "spam") * 2.5 + RNG.uniform(size=N),
        "size": RNG.uniform(size=N),
    }
    with pytest.warns(UserWarning, match="away"):
        features = TableFeatures().fit(table, labels)
    assert features.leaks_ == {
        "folder": "within each of its values the target never varies",
        "rank": "it splits the classes without a mistake",
    }


def test_honest_columns_are_not_suspected():
    x = RNG.standard_normal((500, 3))
    y = x @ [5.0, 1.0, 0.0] + 0.1 * RNG.standard_normal(500)
    assert TableFeatures().fit(x, y).leaks_ == {}
    table = {"x": x[:, 0].round(), "z": [f"l{i % 100}" for i in range(500)]}
    assert TableFeatures().fit(table, y > 0).leaks_ == {}


def test_the_extra_is_named(monkeypatch):
    import trueline.errors as errors

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(errors.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"trueline\[tables\]"):
        TableFeatures().fit({"a": [1, 2]})


def test_values_that_arrow_cannot_hold():
    table = {
        "half": np.array(["\ud800", "\udfff", "b"] * 4, dtype=object),
        "huge": [2**70, 1, None] * 4,
        "span": np.array([1, 2_000_000_001, 3], dtype="timedelta64[ns]").repeat(4),
    }
    features = TableFeatures().fit(table)
    names = list(features.get_feature_names_out())
    assert names[:3] == ["half=\\ud800", "half=\\udfff", "half=b"]
    design = features.transform(table)
    design = design.toarray() if sparse.issparse(design) else design
    assert_allclose(design[0, names.index("huge")], 2.0**70)
    assert_allclose(design[4, names.index("span")], 2.0, rtol=1e-6)


def test_columns_with_one_name():
    table = pd.DataFrame(np.ones((4, 2)), columns=["a", "a"])
    with pytest.raises(TableError, match="twice"):
        TableFeatures().fit(table)
