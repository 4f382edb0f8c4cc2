"""The harness of the benchmarks, on tiny data; nothing here looks at a clock."""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.__main__ import SUITES, main, suite_of
from benchmarks.contestants import CONTESTANTS
from benchmarks.contestants.hardware import least_squares, ridge_folds
from benchmarks.digits import Puzzle, puzzles, read_strd
from benchmarks.digits import table as digits_table
from benchmarks.exact import MOST_DIGITS, correct_digits, solve_least_squares
from benchmarks.isolated import Outcome
from benchmarks.objective import Answer, Data, relative_suboptimality
from benchmarks.problems import flowers, regression, ridge_grid, sparse_rows, with_condition
from benchmarks.report import Table, number, place, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.suites import regret, speed


def objective(data: Data, answer: Answer) -> float:
    residual = data.y - data.X @ answer.coef - answer.intercept
    return 0.5 * residual @ residual + 0.5 * answer.alpha * answer.coef @ answer.coef


def best(data: Data, alpha: float) -> Answer:
    mean = data.X.mean(axis=0) if data.fit_intercept else 0.0
    level = data.y.mean() if data.fit_intercept else 0.0
    V = data.X - mean
    coef = np.linalg.solve(V.T @ V + alpha * np.eye(V.shape[1]), V.T @ (data.y - level))
    intercept = float(level - mean @ coef) if data.fit_intercept else 0.0
    return Answer(coef, intercept, alpha)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_suboptimality_is_the_difference_of_objectives(fit_intercept, alpha):
    data = regression(200, 5, fit_intercept=fit_intercept, seed=1)
    optimum = best(data, alpha)
    assert relative_suboptimality(data, optimum) < 1e-20
    level = optimum.intercept + (0.3 if fit_intercept else 0.0)
    off = Answer(optimum.coef + 0.1, level, alpha)
    expected = objective(data, off) / objective(data, optimum) - 1
    assert relative_suboptimality(data, off) == pytest.approx(expected, rel=1e-9)


def test_suboptimality_of_nonsense_is_infinite():
    data = regression(50, 3)
    assert relative_suboptimality(data, Answer(np.full(3, np.nan))) == math.inf
    assert relative_suboptimality(data, Answer(np.zeros(2))) == math.inf


@pytest.mark.parametrize("name", ["trueline", "scikit-learn", "numpy lstsq", "scipy lstsq (gelsy)"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_contestants_solve_least_squares(name, fit_intercept):
    data = regression(300, 4, fit_intercept=fit_intercept)
    answer = CONTESTANTS[name].fits["least_squares"](data)
    assert relative_suboptimality(data, answer) <= speed.CRITERION


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_yardstick_solves_least_squares(fit_intercept):
    data = regression(300, 4, fit_intercept=fit_intercept)
    assert relative_suboptimality(data, least_squares(data)) <= speed.CRITERION


@pytest.mark.parametrize("name", ["trueline", "scikit-learn", "Gram blocks + eigh"])
def test_contestants_choose_the_same_strength(name):
    data = ridge_grid(200, 5, folds=5, strengths=7)
    answer = CONTESTANTS[name].fits["ridge_folds"](data)
    assert relative_suboptimality(data, answer) <= speed.CRITERION
    assert answer.alpha == pytest.approx(ridge_folds(data).alpha)


@pytest.mark.parametrize("task", ["ridge", "ridge_cv"])
def test_contestants_agree_on_tiny_fits(task):
    data = flowers(task)
    ours = CONTESTANTS["trueline"].fits[task](data)
    theirs = CONTESTANTS["scikit-learn"].fits[task](data)
    assert ours.alpha == pytest.approx(theirs.alpha)
    np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-8)


def test_nothing_is_far_from_the_optimum():
    data = regression(300, 4)
    assert relative_suboptimality(data, CONTESTANTS["zero"].fits["least_squares"](data)) > 0.1


def test_problems_are_the_same_every_time():
    np.testing.assert_array_equal(regression(30, 3).X, regression(30, 3).X)
    np.testing.assert_array_equal(sparse_rows(40, 9, 0.3).data, sparse_rows(40, 9, 0.3).data)
    values = np.linalg.svd(with_condition(400, 6, 1e5), compute_uv=False)
    assert 1e4 < values[0] / values[-1] < 1e6


# --- what is reported ---------------------------------------------------------------------------


def test_a_table_is_markdown():
    text = str(Table("Title", ["", "a"], [["x|y", "1"]], ["A note."]))
    assert text.splitlines() == [
        "#### Title",
        "",
        "|  | a |",
        "| --- | ---: |",
        "| x\\|y | 1 |",
        "",
        "A note.",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.56e-5, "45.6 us"), (1e-8, "0.01 us"), (None, "")],
)
def test_seconds_have_a_unit(value, text):
    assert seconds_text(value) == text


def test_missing_numbers_are_blank():
    assert number(None, ".2f") == number(math.nan, ".2f") == ""
    assert number(1.234, ".2f") == "1.23"


def test_tables_go_between_markers():
    text = "a\n<!-- begin t -->\nold\n<!-- end t -->\nb"
    new = place(text, "t", r"\1 new")
    assert new == "a\n<!-- begin t -->\n\n\\1 new\n\n<!-- end t -->\nb"
    assert place(new, "t", r"\1 new") == new
    with pytest.raises(ValueError, match="no markers"):
        place(text, "other", "")


def test_the_store_keeps_rows(tmp_path):
    store = Store("s", tmp_path)
    store.put("case", "name", {"seconds": 1.0})
    again = Store("s", tmp_path)
    assert again.get("case", "name")["seconds"] == 1.0
    assert again.get("case", "other") is None
    assert again.machine["python"]


def test_requests_select_rows():
    row = {"seconds": 1.0, "other": 0.0}
    assert Request().wants("a", "b", None)
    assert not Request().wants("a", "b", row)
    assert Request(redo=True).wants("a", "b", row)
    assert not Request(only=("x",)).wants("a", "b", None)
    assert Request(only=("a / b",)).wants("a", "b", None)
    assert Request(redo_disturbed=True).wants("a", "b", {"other": 1.0})
    assert Request(redo_disturbed=True).wants("a", "b", {"error": "x"})
    assert not Request(redo_disturbed=True).wants("a", "b", row)


def test_the_best_call_counts_and_the_first_is_apart():
    lines = [
        {"kind": "first", "seconds": 3.0, "other": 0.0, "quality": 1e-20, "alpha": 0.0},
        {"kind": "call", "seconds": 2.0, "other": 0.1},
        {"kind": "call", "seconds": 1.0, "other": 0.2},
    ]
    row = speed.summarise(Outcome(lines, False, ""), 60.0)
    assert (row["seconds"], row["first"], row["other"], row["calls"]) == (1.0, 3.0, 0.2, 2)
    assert speed.summarise(Outcome([], True, ""), 60.0) == {"over": 60.0}
    assert speed.summarise(Outcome([], False, "no memory"), 60.0) == {"error": "no memory"}


def test_speed_tables_have_ratios_and_targets(tmp_path):
    store = Store("speed", tmp_path)
    row = {"first": 1.0, "calls": 3, "quality": 1e-16, "alpha": 1.0, "other": 0.0}
    store.put("ridge_cv_1e5x300", "trueline", {"seconds": 0.5, **row})
    store.put("ridge_cv_1e5x300", "scikit-learn", {"over": 60.0})
    store.put("ols_1e6x100", "trueline", {"seconds": 0.5, **row})
    store.put("ols_1e6x100", "scikit-learn", {"seconds": 5.0, **row})
    store.put("ols_1e6x100", "zero", {"seconds": 0.1, **row, "quality": 2.0})
    text = "\n".join(str(table) for table in speed.tables(store))
    assert "| scikit-learn | over 60 s | > 120 |" in text
    assert "| scikit-learn | 50 | > 120.00 | yes |" in text
    assert "| scikit-learn | 20 | 10.00 | no |" in text
    assert "(not solved)" in text


# --- the planner --------------------------------------------------------------------------------


def test_regret_is_chosen_over_best():
    lines = [
        {"kind": "plan", "chosen": "a"},
        {"kind": "start", "solver": "a", "estimate": 1.0},
        {"kind": "solver", "solver": "a", "estimate": 1.0, "seconds": 3.0, "status": "solved"},
        {"kind": "solver", "solver": "b", "estimate": 2.0, "seconds": 2.0, "status": "solved"},
        {"kind": "solver", "solver": "c", "estimate": 2.0, "seconds": 1.0, "status": "gap"},
        {"kind": "start", "solver": "d", "estimate": 4.0},
    ]
    row = regret.judge(lines)
    assert (row["best"], row["regret"]) == ("b", 1.5)
    assert row["solvers"]["d"]["status"] == "too slow"
    assert regret.judge([{"kind": "plan", "chosen": "z"}, *lines[2:4]])["regret"] == math.inf


def test_there_are_many_different_shapes():
    shapes = regret.SHAPES.values()
    assert len(shapes) >= 40
    assert any(shape.density < 1 for shape in shapes)
    assert any(shape.d > shape.n for shape in shapes)
    assert {shape.alpha > 0 for shape in shapes} == {True, False}


def test_a_shape_is_solved_by_its_solvers(capsys, tmp_path):
    regret.measure(regret.Shape(60, 3))
    lines = [json.loads(line.split(" ", 1)[1]) for line in capsys.readouterr().out.splitlines()]
    row = regret.judge(lines)
    assert row["solvers"][row["chosen"]]["status"] == "solved"
    store = Store("regret", tmp_path)
    store.put("shapes", next(iter(regret.SHAPES)), row)
    assert len(regret.tables(store)) == 3


# --- digits -------------------------------------------------------------------------------------


def test_rational_least_squares():
    X = [[Fraction(1), Fraction(x)] for x in (0, 1, 2, 3)]
    assert solve_least_squares(X, [Fraction(2 + 3 * x) for x in range(4)]) == [2, 3]
    with pytest.raises(ValueError, match="dependent"):
        solve_least_squares([[Fraction(1), Fraction(1)]] * 2, [Fraction(1)] * 2)


def test_digits_are_counted():
    exact = [Fraction(1), Fraction(10)]
    assert correct_digits([1.0, 10.0], exact) == MOST_DIGITS
    assert correct_digits([1.0, 10.01], exact) == pytest.approx(3.0)
    assert correct_digits([1e300, 10.0], exact) == 0.0
    assert correct_digits([math.nan, 10.0], exact) == 0.0
    assert correct_digits([1e-5], [Fraction(0)]) == pytest.approx(5.0)


def test_puzzles_are_solved_by_their_exact_answers():
    for case in puzzles():
        assert len(case.exact) == case.columns.shape[1] + case.fit_intercept
        exact = [float(value) for value in case.exact]
        assert correct_digits(exact, case.exact, case.most) == case.most


def test_certified_files_are_read(tmp_path):
    entry = {
        "rows": [["0.1", "0"], ["1.1", "1"], ["4.1", "2"], ["9.1", "3"]],
        "intercept": True,
        "model": "poly",
        "degree": 2,
        "coef": ["0.1", "0", "1"],
    }
    path = tmp_path / "certified.json"
    path.write_text(json.dumps({"Parabola": entry}))
    (case,) = read_strd(path)
    assert isinstance(case, Puzzle)
    assert case.exact == [Fraction(1, 10), 0, 1]
    path.write_text(json.dumps({"Parabola": {**entry, "coef": ["0.1", "0", "2"]}}))
    with pytest.raises(ValueError, match="not those of its data"):
        read_strd(path)


def test_a_failure_shows_in_the_table_of_digits():
    text = str(digits_table("T", {"p": {"trueline LinearRegression": 15.94, "numpy lstsq": -1.0}}))
    assert "15.9" in text
    assert "fails" in text


# --- the command --------------------------------------------------------------------------------


def test_the_command_lists_the_suites(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    for name in SUITES:
        assert suite_of(name).TITLE in text


def test_an_unknown_suite_is_named(capsys):
    assert main(["fast"]) == 2
    assert "unknown suite 'fast'" in capsys.readouterr().err
