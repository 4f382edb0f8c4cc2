"""Words, dates and missing values in batches: the designs and models of the table in memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import trueline
from trueline import LassoCV, LogisticRegression, Ridge, TableFeatures
from trueline.errors import TableError

N = 2000
RNG = np.random.default_rng(0)
SIZE = RNG.normal(80.0, 20.0, N)
CITY = RNG.choice(["Rome", "Oslo", "Bern", "Lima"], N, p=[0.5, 0.3, 0.19, 0.01])
TABLE = pd.DataFrame(
    {
        "size": np.where(RNG.random(N) < 0.05, np.nan, SIZE),
        "city": np.where(RNG.random(N) < 0.03, None, CITY),
        "lift": RNG.random(N) < 0.4,
        "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
        "rooms": RNG.integers(1, 6, N),
        "told": [f"number {i} has a {'garden' if i % 3 else 'view'} of trees" for i in range(N)],
        "price": 3.0 * SIZE + 40.0 * (CITY == "Rome") + RNG.normal(0.0, 5.0, N),
    }
)
TABLE["dear"] = np.where(TABLE["price"] + RNG.normal(0.0, 50.0, N) > 260.0, "yes", "no")
FEATURES = ["size", "city", "lift", "sold", "rooms"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("table")
    for k, part in enumerate(np.array_split(np.arange(N), [700])):
        TABLE.iloc[part].to_parquet(path / f"part{k}.parquet", row_group_size=300)
    return path


def batches():
    return (TABLE.iloc[start : start + 300] for start in range(0, N, 300))


@pytest.mark.parametrize("source", ["files", "frames"])
@pytest.mark.parametrize(
    "features",
    [
        TableFeatures(),
        TableFeatures(sparse_threshold=1.0, min_count=50, standardize=True, drop_first=True),
    ],
    ids=str,
)
def test_designs_are_those_of_the_table_in_memory(folder, source, features):
    given = folder if source == "files" else batches
    names = [*FEATURES, "told"]
    rows = trueline.open(given, target="price", columns=names, memory="64KB")
    batched, whole = clone(features), clone(features)
    design, X = batched.fit_transform(rows), whole.fit_transform(TABLE[names])
    assert batched.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    assert batched.explain() == whole.explain()
    assert design.shape == X.shape
    parts = [part for _, part in design.parts()]
    assert len(parts) == len(rows.starts) - 1 > 2
    np.testing.assert_array_equal(
        design.toarray(), X.toarray() if sparse.issparse(X) else X, strict=True
    )


@pytest.mark.parametrize(
    ("model", "target"),
    [(Ridge(), "price"), (LassoCV(cv=3), "price"), (LogisticRegression(), "dear")],
)
def test_pipelines_pass_batches_on(folder, model, target):
    rows = trueline.open(folder, target=target, columns=FEATURES, memory="64KB")
    pipe = make_pipeline(TableFeatures(standardize=True), model)
    batched = clone(pipe).fit(rows)
    whole = clone(pipe).fit(TABLE[FEATURES], TABLE[target])
    np.testing.assert_allclose(batched[-1].coef_, whole[-1].coef_, rtol=1e-6, atol=1e-9)
    assert "2,000 rows x 5 columns" in str(batched[0].transform(rows))
    assert batched[-1].verify(batched[0].transform(rows))
    predicted = batched.predict(rows)
    if target == "dear":
        np.testing.assert_array_equal(predicted, batched.predict(TABLE[FEATURES]))
    else:
        np.testing.assert_allclose(predicted, batched.predict(TABLE[FEATURES]), rtol=1e-12)


def test_least_squares_on_a_table_encodes_it_once(folder):
    rows = trueline.open(folder, target="price", columns=FEATURES, memory="64KB")
    make_pipeline(TableFeatures(), Ridge()).fit(rows)
    assert rows.passes == 1


def test_columns_that_give_the_target_away_are_found_in_batches(folder):
    table = TABLE.assign(copied=2.0 * TABLE["price"])
    rows = trueline.open(
        lambda: (table.iloc[start : start + 300] for start in range(0, N, 300)),
        target="price",
        columns=["size", "copied"],
    )
    with pytest.warns(UserWarning, match="'copied': it is the target, or a multiple of it"):
        TableFeatures().fit(rows)


def test_rows_without_words_and_rows_that_change(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2 3:4\n-1 2:1\n")
    with pytest.raises(TableError, match="holds numbers alone, which need no encoding"):
        TableFeatures().fit(trueline.open(tmp_path / "rows.svm"))
    sizes = iter([N, N, N, N - 1])
    rows = trueline.open(
        lambda: [pa.Table.from_pandas(TABLE[["lift", "price"]].iloc[: next(sizes)])], target="price"
    )
    with pytest.raises(TableError, match="other rows than when it was opened"):
        TableFeatures().fit(rows)
