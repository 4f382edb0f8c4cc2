"""The commands on folders of Parquet: as on rows in memory, batch by batch."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from trueline import Ridge, load
from trueline.cli.app import app

N = 3000
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.standard_normal((N, 3)), columns=["a", "b", "c"])
TABLE["y"] = TABLE["a"] - 2 * TABLE["b"] + RNG.standard_normal(N)
TABLE["kind"] = np.where(TABLE["a"] + RNG.standard_normal(N) > 0, "yes", "no")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows")
    for k in range(3):
        TABLE.iloc[1000 * k : 1000 * (k + 1)].to_parquet(path / f"{k}.parquet")
    return path


def said(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_fit_verify_and_predict_read_a_folder(folder, tmp_path):
    model = tmp_path / "model.trueline"
    text = said("fit", folder, "-t", "y", "-m", "ridge", "-o", model, "--memory", "64KB")
    assert "12 batches of up to 333 rows" in text
    assert "kind left out: it holds no numbers" in text
    assert "1 pass," in text
    whole = Ridge().fit(TABLE[["a", "b", "c"]], TABLE["y"])
    np.testing.assert_allclose(load(model).coef_, whole.coef_, rtol=1e-9)
    assert "The proof holds" in said("verify", model, f"{folder}/*.parquet")
    predicted = tmp_path / "predicted.parquet"
    assert "3,000 predictions" in said("predict", model, folder, "-o", predicted)
    values = pd.read_parquet(predicted)["y_predicted"]
    np.testing.assert_allclose(values, whole.predict(TABLE[["a", "b", "c"]]), rtol=1e-9)
    assert said("predict", model, folder).startswith("y_predicted ")


def test_words_as_a_target_are_classes(folder, tmp_path):
    model = tmp_path / "model.trueline"
    assert "classification (kind)" in said("fit", folder, "-t", "kind", "--drop", "y", "-o", model)
    text = tmp_path / "predicted.csv"
    said("predict", model, folder, "-o", text)
    assert set(pd.read_csv(text)["kind_predicted"]) == {"yes", "no"}


def test_a_table_is_read_in_batches_where_memory_is_named(tmp_path):
    TABLE.drop(columns="kind").to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "model.trueline"
    text = said("fit", tmp_path / "rows.csv", "-t", "y", "-o", model, "--memory", "64KB")
    assert "batches of up to 333 rows" in text


def test_models_are_compared_from_the_moments_of_folds(folder):
    text = said("compare", folder, "-t", "y")
    for name in ("linear", "ridge", "lasso", "elastic-net"):
        assert f"{name} mean squared error" in text
    assert "must be numbers" in said("compare", folder, "-t", "kind", code=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-t", "z"], "has no column 'z'"),
        (["-t", "y", "--drop", "z"], "has no column 'z'"),
        (["-t", "y", "--category", "a"], "--category is for tables in memory"),
    ],
)
def test_what_cannot_be_read_is_told(folder, tmp_path, words, message):
    assert message in said("fit", folder, *words, "-o", tmp_path / "model.trueline", code=2)


def test_predictions_are_whole_or_not_there(folder, tmp_path):
    model, out = tmp_path / "model.trueline", tmp_path / "predicted.csv"
    said("fit", folder, "-t", "y", "-o", model)
    (tmp_path / "bad").mkdir()
    TABLE.assign(a=np.where(TABLE.index == 2999, np.nan, TABLE["a"])).to_parquet(
        tmp_path / "bad" / "0.parquet", row_group_size=100
    )
    assert "misses" in said("predict", model, tmp_path / "bad", "-o", out, code=2)
    assert [path.name for path in tmp_path.iterdir() if "predicted" in path.name] == []
