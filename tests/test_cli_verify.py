"""``trueline verify``: exit code 0 if, and only if, it is proven for these data."""

import csv
import io
import json
import os
import re
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from trueline import (
    SVC,
    CalibratedClassifier,
    KernelPerceptron,
    KernelRidge,
    LogisticRegression,
    OneClassSVM,
    OneVsRestClassifier,
    Ridge,
    RidgeClassifier,
    SequentialFeatureSelector,
    TweedieRegressor,
    load,
    save,
)
from trueline.cli import app
from trueline.cli.families import FAMILIES

PROVEN, REFUTED, ERROR, CONDITIONAL = 0, 1, 2, 3


def run(*arguments):
    """Exit code and output of a command; no error of its own ever gets out."""
    words = [str(word) for word in arguments]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "120", "NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, " ".join(result.output.split())


def made_rows():
    rng = np.random.default_rng(0)
    rows = [["city", "garden", "size", "age", "price"]]
    for i in range(60):
        city, garden = ("Oslo", "Paris", "Rome")[i % 3], ("no", "yes")[int(rng.uniform() < 0.5)]
        size, age = round(float(rng.uniform(30, 150)), 1), int(rng.integers(0, 90))
        price = 50 + 2 * size + 30 * (city == "Paris") - 0.1 * age + 5 * rng.normal()
        rows.append([city, garden, size, age, round(float(price), 2)])
    return rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("houses.csv", made_rows())
    return tmp_path


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def target_of(family):
    return "price" if FAMILIES[family].task == "regression" else "garden"


def fit(family, data="houses.csv"):
    # The search for the fewest errors is exhaustive: one column will do.
    few = ["--features", "size"] if family == "zero-one" else []
    code, text = run("fit", data, "-t", target_of(family), "-m", family, *few)
    assert code == 0, text


def edited(source, result, change):
    """The same model file with its header or arrays changed, and every checksum right."""
    with zipfile.ZipFile(source) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(entries.pop("model.json"))
    arrays = {name: np.load(io.BytesIO(data)) for name, data in entries.items()}
    change(header, arrays)
    with zipfile.ZipFile(result, "w") as archive:
        archive.writestr("model.json", json.dumps(header))
        for name, array in arrays.items():
            out = io.BytesIO()
            np.lib.format.write_array(out, np.asarray(array))
            archive.writestr(name, out.getvalue())
    return result


def nudge(attribute, factor):
    """Changes a number or an array that the model predicts with."""

    def change(header, arrays):
        fitted = header["model"]["fitted"]
        node = fitted[attribute]
        if isinstance(node, dict) and node["$"] == "array":
            name = f"arrays/{node['index']}.npy"
            arrays[name] = arrays[name] * factor
        elif isinstance(node, dict):
            node["value"] *= factor
        else:
            fitted[attribute] *= factor

    return change


# --- what is proven ------------------------------------------------------------------------------

PREDICTS_WITH = [
    (family, attribute)
    for family in FAMILIES
    for attribute in (
        ["alpha_"]
        if family == "gaussian-process"
        else [
            "dual_coef_" if FAMILIES[family].is_kernel else "coef_",
            "intercept_",
        ]
    )
]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fit_is_proven_and_the_statement_is_printed(folder, family):
    fit(family)
    code, text = run("verify", "model.trueline", "houses.csv")
    assert code == PROVEN, text
    number = f"{abs(load('model.trueline').certificate_.objective):.10g}"
    ending = text.partition("The proof holds. Proven: ")[2]
    assert ending.endswith(".")
    assert number in ending


def test_what_a_proof_presupposes_is_printed(folder):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv("houses.csv")
    model = TweedieRegressor(power=3, alpha=0.1, tol=1e-9).fit(table[["age"]] / 90, table["price"])
    condition = model.verify(table[["age"]] / 90, table["price"]).conditions[0]
    save(model, "model.trueline")
    table.assign(age=table["age"] / 90).to_csv("scaled.csv", index=False)
    code, text = run("verify", "model.trueline", "scaled.csv", "--target", "price")
    assert code == CONDITIONAL, text
    assert f"The proof holds if {condition}. Proven: " in text
    table.assign(age=table["age"] / 89).to_csv("other.csv", index=False)
    code, text = run("verify", "model.trueline", "other.csv", "--target", "price")
    assert code == REFUTED, text
    assert "Proven" not in text


@pytest.mark.grid(1)
@pytest.mark.parametrize(("family", "attribute"), PREDICTS_WITH)
def test_a_number_that_was_changed_in_the_file_is_not_proven(folder, family, attribute):
    fit(family)
    # Fewest errors are a matter of rows on either side: a small step may pass between them.
    factor = -1.0 if family == "zero-one" else 1.01
    edited("model.trueline", "forged.trueline", nudge(attribute, factor))
    code, text = run("verify", "forged.trueline", "houses.csv")
    assert code == REFUTED, text
    assert "does NOT hold" in text
    assert "Proven" not in text


@pytest.mark.grid(1)
@pytest.mark.parametrize("family", ["linear", "ridge", "lasso", "logistic", "huber", "svr"])
@pytest.mark.parametrize(
    "change",
    ["another target", "a row less", "rows twice", "another size", "a missing size"],
)
def test_other_data_are_not_proven(folder, family, change):
    fit(family)
    rows = made_rows()
    match change:
        case "another target":
            rows[7][1], rows[7][4] = {"yes": "no", "no": "yes"}[rows[7][1]], rows[7][4] - 50
        case "a row less":
            rows = rows[:-1]
        case "rows twice":
            rows += rows[1:20]
        case "another size":
            rows[7][2] += 30
        case "a missing size":
            rows[7][2] = "nan"
    write("other.csv", rows)
    code, text = run("verify", "model.trueline", "other.csv")
    assert code == REFUTED, text
    assert "does NOT hold" in text
    if change in ("a row less", "rows twice", "a missing size"):
        assert "the model was fitted to 60 rows: not the same data" in text
    assert ("1 row of 60 left out: values are missing" in text) == (change == "a missing size")


def test_rows_in_another_order_and_columns_in_another_order_are_the_same_data(folder):
    run("fit", "houses.csv", "-t", "price", "-m", "lasso")
    rows = made_rows()
    write("other.csv", [row[::-1] for row in [rows[0], *rows[:0:-1]]])
    assert run("verify", "model.trueline", "other.csv")[0] == PROVEN


def test_rows_that_were_incomplete_at_the_fit_are_left_out_again(folder):
    rows = made_rows()
    rows[3][2], rows[4][4] = "", "nan"
    write("holes.csv", rows)
    run("fit", "holes.csv", "-t", "price", "--drop-missing")
    code, text = run("verify", "model.trueline", "holes.csv")
    assert code == PROVEN
    assert "2 rows of 60 left out: values are missing" in text


# --- what cannot be checked ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [row[:-1] for row in rows], "has no column 'price'"),
        (lambda rows: [row[1:] for row in rows], "has no column 'city'"),
        (lambda rows: rows[:1], "a header but no rows"),
        (
            lambda rows: [rows[0], *([*row[:-1], "nan"] for row in rows[1:])],
            "No row of other.csv is complete",
        ),
        (lambda rows: [*rows, ["Oslo", "no", 50, 3, "inf"]], "'price' is infinite in line 62"),
        (lambda rows: [*rows, ["Oslo", "no", "inf", 3, 9]], "'size' is infinite in line 62"),
        (lambda rows: [*rows, ["Oslo", "no", 50, 3, "much"]], "'price' is not numeric: 'much'"),
        (lambda rows: [*rows, ["Lima", "no", 50, 3, 9]], "holds 'Lima'"),
    ],
)
def test_tables_that_do_not_fit_are_errors(folder, change, message):
    run("fit", "houses.csv", "-t", "price")
    write("other.csv", change(made_rows()))
    code, text = run("verify", "model.trueline", "other.csv")
    assert code == ERROR
    assert message in text


def test_another_target_than_the_models_is_an_error(folder):
    run("fit", "houses.csv", "-t", "price")
    code, text = run("verify", "model.trueline", "houses.csv", "--target", "size")
    assert (code, "predicts 'price', not 'size'" in text) == (ERROR, True)
    assert run("verify", "model.trueline", "houses.csv", "--target", "price")[0] == PROVEN


@pytest.mark.parametrize(
    "encoding",
    [
        {"$": "dict", "items": [["target", "price"]]},
        {"$": "dict", "items": [["target", "price"], ["task", "regression"], ["sources", [1]]]},
        {"$": "dict", "items": [["target", "price"], ["task", "regression"], ["sources", 1]]},
    ],
)
def test_a_file_whose_description_of_the_table_makes_no_sense_is_an_error(folder, encoding):
    run("fit", "houses.csv", "-t", "price")

    def change(header, arrays):
        header["extra"]["items"] = [["encoding", encoding], ["rows", "many"]]

    edited("model.trueline", "forged.trueline", change)
    code, text = run("verify", "forged.trueline", "houses.csv")
    assert code == ERROR
    assert "columns of its table does not make sense" in text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX systems")
def test_a_pipe_in_place_of_the_model_does_not_wait(folder):
    run("fit", "houses.csv", "-t", "price")
    os.mkfifo("pipe")
    for data in ("houses.csv", "model.trueline"):
        code, text = run("verify", "pipe", data)
        assert code == ERROR
        assert re.search("a named pipe|The model comes before the table", text)


# --- models saved in Python ----------------------------------------------------------------------

SAVED = [
    (Ridge(), "price"),
    (KernelRidge(), "price"),
    (OneClassSVM(), "price"),
    (SVC(), "city"),
    (LogisticRegression(), "city"),
    (OneVsRestClassifier(RidgeClassifier()), "city"),
    (CalibratedClassifier(RidgeClassifier()), "garden"),
    (KernelPerceptron(), "garden"),
    (LogisticRegression(), "code"),
]


@pytest.mark.parametrize(("model", "target"), SAVED, ids=str)
def test_models_saved_in_python(folder, model, target):
    pandas = pytest.importorskip("pandas")
    rows = made_rows()
    write("codes.csv", [[*rows[0], "code"], *([*row, int(row[3] > 40)] for row in rows[1:])])
    table = pandas.read_csv("codes.csv")
    save(model.fit(table[["size", "age"]], table[target]), "saved.trueline")
    code, text = run("verify", "saved.trueline", "codes.csv", "--target", target)
    assert code == PROVEN, text
    assert "Proven: " in text
    if not isinstance(model, OneClassSVM):  # which looks at no target
        table[target] = np.roll(table[target].to_numpy(), 1)
        table.to_csv("other.csv", index=False)
        assert run("verify", "saved.trueline", "other.csv", "--target", target)[0] == REFUTED


def test_what_claims_nothing_is_an_error(folder):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv("houses.csv")
    selector = SequentialFeatureSelector(Ridge(), n_features_to_select=1)
    save(selector.fit(table[["size", "age"]], table["price"]), "saved.trueline")
    code, text = run("verify", "saved.trueline", "houses.csv", "--target", "price")
    assert code == ERROR
    assert "claims nothing that can be verified" in text
