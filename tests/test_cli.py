"""The command line: what each command prints, writes and returns."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import trueline
from trueline import LinearRegression, Ridge, load, save
from trueline.cli import app
from trueline.cli.families import FAMILIES
from trueline.persistence import read
from trueline.table import Encoding, read_table

RNG = np.random.default_rng(0)


def run(*arguments, code=0):
    """The output of a command, both streams, in a terminal of 100 columns."""
    words = [str(word) for word in arguments]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


def fails(*arguments):
    """The one line that a failing command prints."""
    lines = [line for line in run(*arguments, code=2).splitlines() if line.strip()]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.fixture
def houses(tmp_path, monkeypatch):
    """A table with every kind of column, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rows = [["id", "city", "garden", "size", "flat", "price"]]
    for i in range(120):
        city, garden = ("Oslo", "Paris", "Rome")[i % 3], ("no", "yes")[i % 7 > 3]
        size = round(float(RNG.uniform(30, 150)), 1)
        price = 50 + 2 * size + 30 * (city == "Paris") + 10 * (garden == "yes") + RNG.normal()
        rows.append([i + 1, city, garden, size if i else "", "same", round(float(price), 2)])
    path = tmp_path / "houses.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


# --- help ----------------------------------------------------------------------------------------


def test_help_names_every_command_and_model():
    text = run("--help")
    assert all(
        name in text for name in ("demo", "fit", "explain", "verify", "predict", "separability")
    )
    assert all(name in run("fit", "--help") for name in FAMILIES)
    assert run("--version").strip() == f"trueline {trueline.__version__}"


def test_help_does_not_import_what_it_does_not_need():
    code = (
        "import sys; from trueline.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- demo ----------------------------------------------------------------------------------------


def test_demo_proves_and_catches_the_forgery(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "demo.png"
    text = run("demo", "--picture", picture)
    assert "The proof holds." in text
    assert "Caught: the proof does not hold" in text
    assert "body mass index" in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_draws_text(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # an import now fails
    text = run("demo", "--picture", tmp_path / "demo.png")
    assert "actual progression" in text
    assert "pip install 'trueline[plot]'" in " ".join(text.split())
    assert not (tmp_path / "demo.png").exists()


# --- fit, verify, predict, explain ---------------------------------------------------------------


@pytest.mark.parametrize("family", ["auto", *FAMILIES])
def test_fit_verify_and_predict(houses, family):
    if family != "auto" and FAMILIES[family].task != "regression":
        pytest.skip("the target is a number")
    weak = ["--alpha", 0.01] if family != "auto" and "alpha" in FAMILIES[family].options else []
    asked = ("--target", "price", "--model", family, *weak)
    text = run("fit", "houses.csv", *asked, "--out", "m.trueline")
    assert "identifier" in text
    assert "always same" in text
    assert "values are missing, filled in and marked by columns: size 1" in text
    has_coefficients = family == "auto" or not FAMILIES[family].is_kernel
    assert ("city=Paris" in text) == has_coefficients
    assert "The proof holds." in run("verify", "m.trueline", "houses.csv")
    file = read("m.trueline")
    assert file.model.feature_names_in_.tolist() == [
        "city=Paris",
        "city=Rome",
        "garden=yes",
        "size",
        "size is missing",
    ]
    assert file.extra["rows"] == 120
    assert "120 predictions in p.csv" in run("predict", "m.trueline", "houses.csv", "-o", "p.csv")
    with open("p.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert rows[0]["price_predicted"]
    error = [float(row["price_predicted"]) - float(row["price"]) for row in rows[1:]]
    assert np.abs(error).max() < 10


def test_kernels_compare_standardised_columns_and_other_models_those_of_the_table(houses):
    run("fit", "houses.csv", "--target", "price", "--model", "svr")
    X = Encoding.from_dict(read("model.trueline").extra["encoding"]).apply(
        read_table("houses.csv")
    )[0]
    assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(X.std(axis=0), 1.0, rtol=1e-12)
    run("fit", "houses.csv", "--target", "price", "--model", "linear")
    assert not Encoding.from_dict(read("model.trueline").extra["encoding"]).spreads


def test_auto_says_why(houses):
    text = run("fit", "houses.csv", "-t", "price")
    assert "linear: 24 rows per column are plenty" in text
    assert isinstance(load("model.trueline"), LinearRegression)
    text = run("fit", "houses.csv", "-t", "price", "--category", "id")
    assert "ridge-cv" in text
    text = run("fit", "houses.csv", "-t", "price", "--alpha", "3")
    assert "ridge: --alpha was given" in text
    assert load("model.trueline").alpha == 3.0


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_explains_itself_before_and_after(houses, family):
    target = "price" if FAMILIES[family].task == "regression" else "garden"
    run("explain", "houses.csv", "--target", target, "--model", family)
    run("fit", "houses.csv", "--target", target, "--model", family)
    text = run("explain", "model.trueline")
    assert FAMILIES[family].estimator in text
    assert ("city=Paris" in text) != FAMILIES[family].is_kernel
    assert "Proof" in text


@pytest.mark.parametrize(
    ("options", "family", "parameters"),
    [
        ("--k 2", "best-subset", {"k": 2}),
        ("--l1-ratio 0.3", "elastic-net", {"l1_ratio": 0.3}),
        ("--alpha 0.1 --l1-ratio 0.3", "elastic-net", {"alpha": 0.1, "l1_ratio": 0.3}),
        ("--rule 1se", "lasso-cv", {"rule": "1se"}),
        ("--quantile 0.9", "quantile", {"quantile": 0.9, "alpha": 0.0}),
        ("--criterion aic --model stepwise", "stepwise", {"criterion": "aic"}),
        ("--criterion aic", "best-subset", {"criterion": "aic"}),
    ],
)
def test_options_ask_for_a_model_that_has_them(houses, options, family, parameters):
    text = run("fit", "houses.csv", "-t", "price", *options.split())
    assert f"{family}: " in text
    model = load("model.trueline")
    assert type(model).__name__ == FAMILIES[family].estimator
    assert parameters.items() <= model.get_params().items()


def test_columns_of_a_category_enter_a_stepwise_model_together(houses):
    text = run("fit", "houses.csv", "-t", "price", "--model", "stepwise")
    assert "about the chosen columns" in text
    model = load("model.trueline")
    assert model.groups == ["city", "city", "garden", "size", "size"]
    assert any(step["entered"] == [0, 1] for step in model.history_)
    assert "+ city=Paris, city=Rome" in run("explain", "model.trueline")
    run("fit", "houses.csv", "-t", "price", "--model", "stepwise", "--drop", "city,size")
    assert load("model.trueline").groups is None


def test_a_sparse_model_says_how_many_columns_it_uses(houses):
    text = run("fit", "houses.csv", "-t", "price", "--k", 1)
    assert "1 of 5 columns" in text
    assert np.count_nonzero(load("model.trueline").coef_) == 1
    text = run("fit", "houses.csv", "-t", "price", "--k", 9, code=2)
    assert "error: k must be between 0 and the number of columns, 5; got 9." in text


def test_columns_can_be_chosen(houses):
    run("fit", "houses.csv", "-t", "price", "--features", "size, city")
    assert read("model.trueline").model.feature_names_in_.tolist() == [
        "size",
        "size is missing",
        "city=Paris",
        "city=Rome",
    ]
    run("fit", "houses.csv", "-t", "price", "--drop", "city,garden", "--drop-missing")
    assert read("model.trueline").model.feature_names_in_.tolist() == ["size"]


def test_columns_can_be_standardised(houses):
    """A penalty then treats columns in all units alike, and predictions undo it."""
    data = "flats.csv"
    rows = [line.split(",") for line in houses.read_text().splitlines()]
    large = [[*row[:3], f"{1000 * float(row[3])}", *row[4:]] for row in rows[2:]]
    for name, body in (("small.csv", rows[2:]), (data, large)):
        Path(name).write_text("\n".join(",".join(row) for row in [rows[0], *body]))
    drawn = []
    for name in ("small.csv", data):
        text = run("fit", name, "-t", "price", "-m", "lasso", "--alpha", 5, "--standardize")
        assert "columns are standardised" in text
        assert "does NOT hold" not in run("verify", "model.trueline", name)
        run("predict", "model.trueline", name, "--out", "out.csv")
        drawn.append(
            [float(line.rsplit(",")[-1]) for line in Path("out.csv").read_text().splitlines()[1:]]
        )
    assert_allclose(drawn[0], drawn[1])
    assert "--standardize is for tables in memory" in fails(
        "fit", data, "-t", "price", "--memory", "1GB", "--standardize"
    )


def test_verify_fails_for_other_data_and_for_forged_models(houses):
    run("fit", "houses.csv", "-t", "price")
    lines = houses.read_text().splitlines()
    houses.with_name("fewer.csv").write_text("\n".join(lines[:-1]))
    text = run("verify", "model.trueline", "fewer.csv", code=1)
    assert "fitted to 120 rows" in text
    assert "FAILS" in text
    changed = [*lines[:-1], lines[-1].rpartition(",")[0] + ",1.0"]
    houses.with_name("changed.csv").write_text("\n".join(changed))
    assert "does NOT hold" in run("verify", "model.trueline", "changed.csv", code=1)
    file = read("model.trueline")
    file.model.coef_[0] *= 1.001
    save(file.model, "forged.trueline", file.extra)
    assert "does NOT hold" in run("verify", "forged.trueline", "houses.csv", code=1)


def test_explain_before_and_after(houses):
    before = run("explain", "houses.csv", "--target", "price", "--model", "ridge")
    assert "chosen" in before
    assert "alpha/2 ||w||^2" in before
    run("fit", "houses.csv", "-t", "price", "--model", "ridge")
    after = run("explain", "model.trueline")
    assert "happened" in after
    assert "fitted to 120 rows of houses.csv" in after
    assert "city=Paris" in after


def test_predict_to_the_terminal_is_plain_csv(houses, capsys):
    text = run("fit", "houses.csv", "-t", "price", "--drop-missing")
    assert "1 of 120 rows left out: values are missing (size 1)" in text
    # Not through the runner, which in some releases joins the two streams.
    app(["predict", "model.trueline", "houses.csv"], standalone_mode=False)
    written = capsys.readouterr()
    rows = list(csv.reader(written.out.splitlines()))
    assert len(rows) == 121
    assert rows[0][-1] == "price_predicted"
    assert "no prediction for 1 row with missing values" in written.err


def test_models_saved_in_python_work_too(houses):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv("houses.csv").dropna()
    save(Ridge().fit(frame[["size"]], frame["price"]), "python.trueline")
    assert "holds" in run("verify", "python.trueline", "houses.csv", "--target", "price")
    assert "target_predicted" in run("predict", "python.trueline", "houses.csv")
    run("explain", "python.trueline")
    assert "--target NAME" in fails("verify", "python.trueline", "houses.csv")
    save(Ridge().fit(frame[["size"]].to_numpy(), frame["price"]), "nameless.trueline")
    assert "names of its columns" in fails("predict", "nameless.trueline", "houses.csv")
    save(Ridge(), "unfitted.trueline")
    for command in ("explain m", "predict m houses.csv", "verify m houses.csv -t price"):
        assert "never fitted" in fails(*command.replace(" m", " unfitted.trueline").split())


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit house.csv -t price", "There is no file house.csv. Did you mean houses.csv?"),
        ("fit houses.csv -t prize", "no column 'prize'. Did you mean 'price'?"),
        ("fit houses.csv -t price --drop ctiy", "Did you mean 'city'?"),
        ("fit houses.csv -t price -m rigde", "--model rigde is not known"),
        (
            "fit houses.csv -t price -m linear --alpha 1",
            "--alpha has no meaning for --model linear",
        ),
        (
            "fit houses.csv -t price -m ridge --l1-ratio 1",
            "--l1-ratio has no meaning for --model ridge; it belongs to --model elastic-net or",
        ),
        ("fit houses.csv -t price --k 1 --alpha 2", "No model has --alpha and --k together"),
        ("fit houses.csv -t price --criterion r2", "'criterion' parameter of BestSubset must be"),
        ("fit houses.csv -t price --features flat", "no column to predict 'price' from"),
        ("fit houses.csv -t price -o nowhere/m", "There is no folder nowhere"),
        ("fit houses.csv -t city -m ridge", "'city' is not numeric: 'Oslo' in line 2"),
        ("explain houses.csv", "Say which column to predict: --target NAME"),
        ("explain nothing.csv -t y", "There is no file nothing.csv"),
        ("verify houses.csv houses.csv", "not a complete model file"),
        ("verify nothing.trueline houses.csv", "nothing.trueline: No such file"),
        ("predict nothing.trueline houses.csv", "nothing.trueline: No such file"),
    ],
)
def test_errors_are_one_line(houses, arguments, message):
    assert message in fails(*arguments.split())


def test_swapped_arguments_and_unknown_categories(houses):
    run("fit", "houses.csv", "-t", "price")
    assert "The model comes before the table" in fails("verify", "houses.csv", "model.trueline")
    houses.with_name("new.csv").write_text("city,garden,size\nLima,no,50\n")
    text = fails("predict", "model.trueline", "new.csv")
    assert "'city' holds 'Lima' (line 2), which the model has not seen" in text
    houses.with_name("new.csv").write_text("city,garden\nOslo,no\n")
    assert "no column 'size'" in fails("predict", "model.trueline", "new.csv")


def test_classes_are_recognised(houses):
    text = run("fit", "houses.csv", "-t", "garden")
    assert "logistic" in text
    assert "accuracy" in text
    assert "The proof holds." in run("verify", "model.trueline", "houses.csv")
    assert "garden" in run("predict", "model.trueline", "houses.csv")


def test_separability_shows_the_rows_that_exclude_it(tmp_path):
    path = tmp_path / "gates.csv"
    path.write_text("a,b,and,xor\n0,0,no,no\n0,1,no,yes\n1,0,no,yes\n1,1,yes,no\n")
    text = run("separability", path, "--target", "xor", "--drop", "and")
    assert "not separable" in text
    assert "The proof holds." in text
    lines = [line.split() for line in text.splitlines()]
    assert ["3", "5", "no", "0.5"] in lines
    text = run("separability", path, "--target", "and", "--drop", "xor")
    assert "a + 2 b - 3 is positive for every row of 'yes'" in text
    assert "through zero" not in text
    fails("separability", path)


def test_compare_shows_and_writes_a_table(tmp_path):
    path, out = tmp_path / "points.csv", tmp_path / "table.csv"
    rows = [f"{i},{(7 * i) % 11},{3 * i + (5 * i) % 7}" for i in range(40)]
    path.write_text("a,b,y\n" + "\n".join(rows) + "\n")
    text = run("compare", path, "--target", "y", "--models", "mean;ridge;least squares", "-o", out)
    assert "regression of y" in text
    assert "least squares" in text
    lines = out.read_text().splitlines()
    assert lines[0].startswith("model,score,standard_error")
    assert len(lines) == 4
    fails("compare", path)
    fails("compare", path, "--target", "y", "--folds", "50")
    copied = tmp_path / "copied.csv"
    copied.write_text("a,z,y\n" + "\n".join(f"{i % 7},{2 * i},{i}" for i in range(40)) + "\n")
    assert "z tells the target exactly" in run(
        "compare", copied, "--target", "y", "--models", "mean;ridge"
    )


def test_usage_errors_have_the_same_exit_code(houses):
    assert "Missing option" in run("fit", "houses.csv", code=2)
    assert "No such command" in run("fiit", code=2)


def test_debug_shows_where(houses):
    result = CliRunner().invoke(app, ["fit", "houses.csv", "-t", "prize", "--debug"])
    assert isinstance(result.exception, ValueError)


def test_unexpected_errors_are_one_line_too(houses, monkeypatch):
    def broken(path):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("trueline.cli.prepare.read_table", broken)
    text = fails("fit", "houses.csv", "-t", "price")
    assert "ZeroDivisionError: oops (unexpected; --debug shows where)" in text


# --- targets, leaks and ranks -------------------------------------------------------------------


@pytest.fixture
def cars(tmp_path, monkeypatch):
    """Prices with a currency, thousands with commas, dates, a name for each row."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [["name", "sold", "mileage", "metres", "age", "price", "state"]]
    for i in range(200):
        age, mileage = int(rng.integers(1, 20)), int(rng.integers(500, 150_000))
        price = 40_000 - 900 * age - mileage // 10 + int(rng.normal(0, 900))
        sold = np.datetime64("2023-01-01") + int(rng.integers(0, 700))
        state = ("old", "new")[age < 9]
        kilo = f"{mileage:,}"
        rows.append([f"car {i}", sold, kilo, mileage * 1000, age, f"${price:,}", state])
    with open("cars.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return rows


def test_prices_are_numbers(cars):
    text = run("fit", "cars.csv", "--target", "price", "--drop", "metres")
    assert "regression (price)" in text
    assert "sold: years since" in text
    model = load("model.trueline")
    prices = np.array([float(row[5][1:].replace(",", "")) for row in cars[1:]])
    assert model.intercept_ + 1e5 > prices.max() > prices.mean() > model.intercept_ / 10
    assert "The proof holds." in run("verify", "model.trueline", "cars.csv")
    predicted = list(csv.reader(run("predict", "model.trueline", "cars.csv").splitlines()))[1:]
    found = np.array([float(row[-1]) for row in predicted])
    assert np.corrcoef(found, prices)[0, 1] > 0.9


@pytest.mark.parametrize("command", ["fit", "explain", "compare", "separability"])
def test_targets_that_are_no_classes_are_refused(cars, command):
    line = fails(command, "cars.csv", "--target", "name")
    assert "'name' does not look like classes: every one of its 200 rows has a value" in line
    assert "--force" in line


def test_numbers_are_no_classes_either(cars):
    line = fails("fit", "cars.csv", "--target", "price", "--model", "logistic")
    assert "every one of its 200 rows has a value of its own. It holds numbers" in line


def test_hundreds_of_classes_of_a_few_rows_are_refused_unless_forced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 7},{i % 120}x" for i in range(360)]
    (tmp_path / "many.csv").write_text("\n".join(["size,code", *rows]))
    assert "120 different values in 360 rows, about 3 for each" in fails(
        "fit", "many.csv", "--target", "code"
    )
    text = run("fit", "many.csv", "--target", "code", "--force")
    assert "classification (code)" in text


def test_fit_says_what_a_person_should_know(cars):
    text = " ".join(run("fit", "cars.csv", "--target", "price").split())
    assert "1 column of 13 can be computed from the columns before: 'metres'" in text
    text = " ".join(run("fit", "cars.csv", "--target", "state", "--drop", "metres").split())
    assert "positive coefficients speak for old, negative for new" in text
    with open("cars.csv", newline="") as file:
        rows = list(csv.reader(file))
    with open("leak.csv", "w", newline="") as file:
        header, *rest = rows
        csv.writer(file).writerows([[*header, "paid"], *([*r, r[5] + ".00"] for r in rest)])
    for command in ("fit", "compare"):
        options = ("--models", "ridge") if command == "compare" else ()
        text = " ".join(run(command, "leak.csv", "--target", "price", *options).split())
        assert "paid tells the target exactly" in text


def test_a_target_that_is_a_sum_of_columns_is_a_leak(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{a + b}" for a, b in rng.integers(0, 90, (60, 2))]
    (tmp_path / "sum.csv").write_text("\n".join(["casual,registered,bikers", *rows]))
    for words in (("fit",), ("compare", "--models", "least squares;ridge")):
        text = " ".join(run(words[0], "sum.csv", "--target", "bikers", *words[1:]).split())
        assert "the columns together tell the target exactly" in text


def test_an_objective_of_nothing_has_no_share(tmp_path, monkeypatch):
    """A perfect fit: the gap, however small, is any multiple of the objective."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{2 * i}" for i in range(50)]
    (tmp_path / "line.csv").write_text("\n".join(["a,b", *rows]))
    for model in ("linear", "ridge-cv", "lasso-cv", "huber", "least-absolute-deviations"):
        text = run("fit", "line.csv", "--target", "b", "--model", model)
        numbers = [float(found) for found in re.findall(r"e\+(\d+)", text)]
        assert max(numbers, default=0) < 100


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("xgboost", None),
        ("random-forest", None),
        ("svm", None),
        ("ridg", "ridge"),
        ("elasticnet", "elastic-net"),
        ("linear_regression", "linear"),
        ("log", "logistic"),
    ],
)
def test_only_names_that_are_close_are_suggested(cars, name, hint):
    line = fails("fit", "cars.csv", "--target", "price", "--model", name)
    assert ("Did you mean" in line) == (hint is not None)
    if hint:
        assert f"Did you mean {hint!r}?" in line


def test_a_comparison_that_was_stopped_shows_what_is_finished(cars, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("trueline.Lasso.fit", stop)
    words = ("compare", "cars.csv", "--target", "price", "--models", "ridge;lasso")
    assert "stopped before these were finished: lasso" in run(*words, code=130)


def test_what_a_newcomer_gets_wrong_is_answered_in_a_line_or_two(tmp_path, monkeypatch):
    """A target with one value, one row, amounts asked for as classes, a value not seen before."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal():.3f},{'ABCDEFGHIJ'[i % 10]},1,{rng.normal():.1f}" for i in range(400)]
    Path("t.csv").write_text("\n".join(["x,city,one,amount", *rows]))
    assert "'one' is always 1: there is nothing to predict" in fails("fit", "t.csv", "-t", "one")
    error = fails("fit", "t.csv", "--target", "amount", "--model", "logistic")
    assert "different values, with decimals" in error
    Path("row.csv").write_text("\n".join(["x,city,one,amount", rows[0]]))
    assert "row.csv has one row" in fails("fit", "row.csv", "--target", "amount")
    run("fit", "t.csv", "--target", "amount", "--drop", "one")
    Path("new.csv").write_text("x,city\n0,Q\n")
    error = fails("predict", "model.trueline", "new.csv")
    assert "It knows 10 values: A, B, C, D, E, F, G, H and others. An empty cell stands" in error


def test_many_classes_are_shown_in_part_and_commands_on_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    columns = [f"column_{j}" for j in range(12)]
    rows = [",".join([*map(str, rng.integers(0, 9, 12)), "ABCDEFGHI"[i % 9]]) for i in range(180)]
    Path("t.csv").write_text("\n".join([",".join([*columns, "kind"]), *rows]))
    out = "a_name_that_does_not_fit_beside_the_others_in_eighty_columns.trueline"
    text = run("fit", "t.csv", "--target", "kind", "--out", out)
    assert text.count("Class  ") == 6
    assert "... and 3 more classes" in text
    assert "... and 7 smaller coefficients" in text
    assert f"trueline predict {out} t.csv\n" in text


def test_no_column_within_one_standard_error_says_what_to_try(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [",".join(f"{value:.3f}" for value in rng.normal(size=4)) for _ in range(120)]
    Path("t.csv").write_text("\n".join(["a,b,c,y", *rows]))
    text = run("fit", "t.csv", "--target", "y", "--model", "lasso-cv", "--rule", "1se")
    assert "uses no column: the mean alone predicts as well" in " ".join(text.split())
