"""The harness of the benchmarks, on tiny data; nothing here looks at a clock."""

from __future__ import annotations

import json
import math
import sys
from copy import copy
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.__main__ import SUITES, main, suite_of
from benchmarks.bayes import cases as bayes_cases
from benchmarks.bayes import worker as bayes_worker
from benchmarks.bayes.objective import BayesData, Theta, plain_fit
from benchmarks.bayes.objective import objective as bayes_objective
from benchmarks.bayes.objective import suboptimality as bayes_suboptimality
from benchmarks.bayes.prepare import best_value
from benchmarks.bayes.prepare import prepare as bayes_prepare
from benchmarks.classification import cases as classification_cases
from benchmarks.classification import worker as classification_worker
from benchmarks.classification.objective import ClassData, bounds
from benchmarks.classification.objective import objectives as class_objectives
from benchmarks.classification.objective import suboptimality as class_suboptimality
from benchmarks.classification.prepare import bounds_of as class_bounds
from benchmarks.classification.prepare import prepare as classification_prepare
from benchmarks.contestants import CONTESTANTS
from benchmarks.contestants.base import Tuned, half_decades
from benchmarks.contestants.hardware import least_squares, ridge_folds
from benchmarks.digits import Puzzle, puzzles, read_strd
from benchmarks.digits import table as digits_table
from benchmarks.exact import MOST_DIGITS, correct_digits, solve_least_squares
from benchmarks.field.cases import MODELS
from benchmarks.field.files import names as field_names
from benchmarks.field.files import read as field_read
from benchmarks.field.objective import objective as field_objective
from benchmarks.field.worker import measure as field_measure
from benchmarks.fuzz import __main__ as fuzz
from benchmarks.fuzz.exact import LeastSquares
from benchmarks.fuzz.families import FAMILIES
from benchmarks.fuzz.frame import judge
from benchmarks.isolated import Outcome
from benchmarks.kernels import cases as kernel_cases
from benchmarks.kernels import worker as kernel_worker
from benchmarks.kernels.objective import KernelData, Machine, dual, label_errors
from benchmarks.kernels.objective import suboptimality as kernel_suboptimality
from benchmarks.kernels.prepare import facts_of as kernel_facts
from benchmarks.kernels.prepare import prepare as kernel_prepare
from benchmarks.objective import Answer, Data, relative_suboptimality
from benchmarks.problems import (
    clouds,
    dense_classes,
    flowers,
    images,
    kernel_classes,
    regression,
    ridge_grid,
    sparse_rows,
    text_classes,
    with_condition,
)
from benchmarks.report import Table, number, place, seconds_text
from benchmarks.robust import cases as robust_cases
from benchmarks.robust import worker as robust_worker
from benchmarks.robust.multipliers import multipliers
from benchmarks.robust.objective import KINDS, RobustData, lower_bound, objectives
from benchmarks.robust.objective import suboptimality as robust_suboptimality
from benchmarks.robust.prepare import bounds_of
from benchmarks.robust.prepare import load as robust_load
from benchmarks.robust.prepare import prepare as robust_prepare
from benchmarks.robust.problems import heavy_tails, words
from benchmarks.rows import CRITERION
from benchmarks.selection import Request
from benchmarks.separability import cases as separability_cases
from benchmarks.separability import worker as separability_worker
from benchmarks.separability.prepare import load as separability_load
from benchmarks.separability.prepare import prepare as separability_prepare
from benchmarks.sparse import worker as sparse_worker
from benchmarks.sparse.cases import CASES, all_cases
from benchmarks.sparse.exchange import good_columns, price_per_column
from benchmarks.sparse.ladder import loosest
from benchmarks.sparse.objective import (
    fold_error,
    lasso_bounds,
    lasso_objectives,
    residual_square,
    suboptimality,
)
from benchmarks.sparse.prepare import load, prepare
from benchmarks.sparse.problems import correlated, products, text
from benchmarks.sparse.tables import TARGETS
from benchmarks.store import Store
from benchmarks.suites import (
    bayes,
    classification,
    engines,
    field,
    kernels,
    regret,
    robust,
    separability,
    sparse,
    speed,
    tiny,
)
from benchmarks.tuned import _interpreter, taking_part
from scipy.stats import multivariate_normal

import trueline
from trueline.solvers.registry import SOLVERS


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


# --- the engines --------------------------------------------------------------------------------


def test_worth_is_the_time_without_an_engine_over_the_time_with_it():
    lines = [
        {"kind": "all", "seconds": 2.0, "engines": ["a", "b", "c"], "proven": True, "other": 0.0},
        {"kind": "start", "engine": "a"},
        {"kind": "without", "engine": "a", "seconds": 6.0, "status": "solved", "instead": ["b"]},
        {"kind": "start", "engine": "b"},
        {"kind": "without", "engine": "b", "seconds": 1.0, "status": "not proven", "instead": []},
        {"kind": "start", "engine": "c"},
    ]
    row = engines.judge(lines)
    worths = {engine: one["worth"] for engine, one in row["engines"].items()}
    assert worths == {"a": 3.0, "b": math.inf, "c": math.inf}


def test_a_fit_goes_on_without_the_engine_that_solved_it(capsys, tmp_path):
    before = list(SOLVERS)
    engines.measure("ridge / tiny", small=True)
    lines = [json.loads(line.split(" ", 1)[1]) for line in capsys.readouterr().out.splitlines()]
    [without] = [line for line in lines if line["kind"] == "without"]
    assert without["engine"] not in without["instead"]
    assert list(SOLVERS) == before
    store = Store("engines", tmp_path)
    store.put("cases", "ridge / tiny", engines.judge(lines))
    worths, choices = engines.tables(store)
    assert len(worths.rows) == len(choices.rows) == 1


def test_lines_of_code_are_those_that_hold_code(tmp_path):
    text = '"""Docstring."""\n\n# comment\nx = (\n    1\n)\n'
    text += '\ndef f():\n    """Of f."""\n    return x\n'
    (tmp_path / "one.py").write_text(text)
    assert engines.lines_of_code(tmp_path) == 5


# --- sparse regression ----------------------------------------------------------------------------


def sparse_data(task: str, **more) -> Data:
    X, y = correlated(80, 30, 4, seed=5)
    top = np.abs(X.T @ y).max() / len(y)
    if task in ("lasso_path", "lasso_cv"):
        more["alphas"] = tuple((top * np.geomspace(1, 1e-2, 10)).tolist())
    elif task == "lasso":
        more["alphas"] = (0.05 * top,)
    return Data(X, y, **more)


def exact_lasso(data: Data) -> Answer:
    """By scikit-learn, far beyond the criterion."""
    from sklearn.linear_model import Lasso

    models = [
        Lasso(alpha=a, fit_intercept=data.fit_intercept, tol=1e-14, max_iter=10**6).fit(
            data.X, data.y
        )
        for a in data.alphas
    ]
    coef = np.column_stack([model.coef_ for model in models])
    return Answer(coef, np.array([model.intercept_ for model in models]))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bounds_of_the_lasso_are_below_the_objective_and_near_it(fit_intercept):
    data = sparse_data("lasso_path", fit_intercept=fit_intercept)
    if fit_intercept:
        data = replace(data, X=data.X + 1.0, y=data.y + 2.0)
    alphas, exact = np.array(data.alphas), exact_lasso(data)
    values = lasso_objectives(data, exact, alphas)
    bounds = lasso_bounds(data, exact, alphas)
    assert (bounds <= values * (1 + 1e-14)).all()
    np.testing.assert_allclose(bounds, values, rtol=1e-9)
    # From a bad solution the bound is worse, never wrong.
    rough = lasso_bounds(data, Answer(exact.coef * 0.9, exact.intercept), alphas)
    assert (rough <= values * (1 + 1e-14)).all()


def test_lasso_suboptimality_is_the_worst_over_the_path():
    data = sparse_data("lasso_path")
    alphas, exact = np.array(data.alphas), exact_lasso(data)
    bounds = lasso_bounds(data, exact, alphas)
    assert suboptimality(data, exact, bounds) < 1e-9
    off = exact.coef.copy()
    off[:, 3] *= 1.1
    expected = lasso_objectives(data, Answer(off), alphas)[3] / bounds[3] - 1
    assert suboptimality(data, Answer(off), bounds) == pytest.approx(expected, rel=1e-6)
    as_sparse = Answer(sp.csc_array(off))
    assert suboptimality(data, as_sparse, bounds) == pytest.approx(expected, rel=1e-6)
    assert suboptimality(data, Answer(off[:, :4]), bounds) == math.inf
    assert suboptimality(data, Answer(np.full_like(off, np.nan)), bounds) == math.inf


def test_a_strength_that_nobody_asked_for_is_not_judged():
    data = sparse_data("lasso_cv", folds=5)
    bounds = lasso_bounds(data, exact_lasso(data), np.array(data.alphas))
    coef = exact_lasso(data).coef[:, 2]
    assert suboptimality(data, Answer(coef, 0.0, data.alphas[2]), bounds) < 1e-9
    assert suboptimality(data, Answer(coef, 0.0, 1.01 * data.alphas[2]), bounds) == math.inf


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (task, name)
        for task in ("lasso_path", "lasso")
        for name in (
            "trueline",
            "trueline regularization_path",
            "scikit-learn",
            "scikit-learn Gram",
        )
        if task in CONTESTANTS[name].tuned
    ],
)
def test_contestants_reach_the_criterion_of_the_lasso(task, name):
    data, tuned = sparse_data(task), CONTESTANTS[name].tuned[task]
    bounds = lasso_bounds(data, exact_lasso(data), np.array(data.alphas))
    assert suboptimality(data, tuned.fit(data, tuned.ladder[-1]), bounds) <= CRITERION


def test_contestants_choose_the_same_strength_of_the_lasso():
    data = sparse_data("lasso_cv", folds=5, fit_intercept=True)
    bounds = lasso_bounds(data, exact_lasso(data), np.array(data.alphas))
    ours, theirs = (
        CONTESTANTS[name].tuned["lasso_cv"].fit(data, 1e-8) for name in ("trueline", "scikit-learn")
    )
    assert ours.alpha == pytest.approx(theirs.alpha)
    assert max(suboptimality(data, answer, bounds) for answer in (ours, theirs)) <= CRITERION


def test_a_choice_that_the_common_folds_do_not_make_is_not_good():
    data = sparse_data("lasso_cv", folds=5)
    exact = exact_lasso(data)
    facts = {"bounds": lasso_bounds(data, exact, np.array(data.alphas)), "chosen": data.alphas[3]}

    def quality(index, **options):
        answer = Answer(exact.coef[:, index], 0.0, data.alphas[index])
        tuned = Tuned(lambda given, tol: answer, **options)
        return sparse_worker.judge(CASES["cv_wide"], tuned, data, facts, answer)["quality"]

    assert quality(3) <= CRITERION
    assert quality(4) == 1.0
    assert quality(4, has_own_folds=True) <= CRITERION


def test_forward_selections_find_the_same_columns():
    data = sparse_data("forward", choose=4, fit_intercept=True)
    plain = set(CONTESTANTS["trueline"].tuned["forward"].fit(data, None).columns)
    booked = CONTESTANTS["trueline StepwiseRegression"].tuned["forward"].fit(data, None)
    assert plain == set(booked.columns)
    folded = replace(data, choose=2, folds=5)
    with parallel_config("threading"):  # a pool of processes takes seconds to start
        ours, theirs = (
            CONTESTANTS[name].tuned["forward_folds"].fit(folded, None)
            for name in ("trueline", "scikit-learn")
        )
    assert set(ours.columns) == set(theirs.columns)


def test_the_error_over_folds_is_that_of_scikit_learn():
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_score

    data = sparse_data("forward", choose=3, folds=5)
    data = replace(data, X=data.X[:78], y=data.y[:78])  # folds of unequal sizes
    scores = cross_val_score(LinearRegression(), data.X[:, [1, 4, 7]], data.y, cv=5)
    assert fold_error(data, [1, 4, 7]) == pytest.approx(1 - scores.mean(), rel=1e-10)
    assert fold_error(data, [1, 4, 7, 8]) == math.inf


def test_residual_squares_are_those_of_least_squares():
    data = sparse_data("forward", choose=2, fit_intercept=True)
    A = np.column_stack([np.ones(len(data.y)), data.X[:, [3, 5]]])
    rest = data.y - A @ np.linalg.lstsq(A, data.y, rcond=None)[0]
    assert residual_square(data, [3, 5]) == pytest.approx(rest @ rest)
    assert residual_square(data, [3, 5, 6]) == math.inf


def test_exchanges_find_the_best_columns_and_a_price_that_keeps_them():
    X, y = correlated(60, 9, 3, rho=0.3, snr=20.0, are_equal=True, seed=8)
    data = Data(X, y, choose=9)
    squares = {
        columns: residual_square(data, columns)
        for size in (2, 3, 4)
        for columns in combinations(range(9), size)
    }
    triples = {columns: value for columns, value in squares.items() if len(columns) == 3}
    found = good_columns(X, y, 3)
    assert tuple(found) == min(triples, key=triples.get)
    price = price_per_column(X, y, found)
    priced = {columns: value / 2 + price * len(columns) for columns, value in squares.items()}
    assert min(priced, key=priced.get) == tuple(found)


def test_best_subsets_come_with_a_gap():
    X, y = correlated(60, 9, 3, rho=0.3, snr=2.0, are_equal=True, seed=8)
    data = Data(X, y, choose=3, known=tuple(good_columns(X, y, 3).tolist()))
    found = CONTESTANTS["trueline"].tuned["best_subset"].fit(data, 1e6)  # to the end
    assert (tuple(found.columns), found.is_proven) == (data.known, True)
    assert found.gap < 1e-6
    greedy = CONTESTANTS["scikit-learn OMP"].tuned["best_subset"].fit(data, None)
    assert residual_square(data, greedy.columns) >= residual_square(data, found.columns)


@pytest.mark.grid(1)
@pytest.mark.parametrize("start", range(7))
@pytest.mark.parametrize("first_good", range(8))
def test_the_loosest_good_rung_is_found_from_any_start(start, first_good):
    tried = []

    def reaches(rung):
        tried.append(rung)
        return rung >= first_good

    assert loosest(7, start, reaches) == (first_good if first_good < 7 else None)
    assert len(tried) == len(set(tried))


def test_a_search_for_a_rung_keeps_what_it_has_when_time_is_up():
    answers = iter([False, True, None])
    assert loosest(9, 3, lambda rung: next(answers)) == 4
    assert loosest(9, 3, lambda rung: None) is None


def test_ladders_go_from_loose_to_tight_and_begin_on_a_rung():
    cases = [*CASES, *robust_cases.CASES, *separability_cases.CASES, *bayes_cases.CASES]
    cases += [*classification_cases.CASES, *kernel_cases.CASES]
    assert half_decades(2, 4) == pytest.approx((1e-2, 3e-3, 1e-3, 3e-4, 1e-4))
    for contestant in CONTESTANTS.values():
        for tuned in contestant.tuned.values():
            if tuned.start is not None:
                assert list(tuned.ladder) == sorted(tuned.ladder, reverse=True)
                assert {tuned.start, *tuned.starts.values()} <= set(tuned.ladder)
                assert all(any(c.startswith(begin) for c in cases) for begin in tuned.starts)


def test_sparse_problems_have_the_properties_they_promise():
    X, y = correlated(4000, 6, 3, rho=0.7, seed=1)
    correlations = np.corrcoef(X.T)
    np.testing.assert_allclose(np.diag(correlations, 1), 0.7, atol=0.05)
    np.testing.assert_allclose(np.diag(correlations, 2), 0.49, atol=0.06)
    assert abs(y.mean()) < 1e-12
    T, _ = text(300, 2000, 0.01, 10)
    assert T.nnz / np.prod(T.shape) == pytest.approx(0.01, rel=0.15)
    np.testing.assert_allclose(T.multiply(T).sum(axis=1), 1.0)
    counts = np.sort(np.diff(T.indptr))[::-1]
    assert counts[:20].sum() > 20 * counts[200:220].sum() / 5


@pytest.mark.parametrize("name", ["diabetes", "star98"])
def test_shipped_sets_are_standardised(name):
    X, y = products(name)
    assert X.shape[1] > 60
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert abs(y.mean()) < 1e-9


def test_files_of_a_folder_are_cases(tmp_path):
    random = np.random.default_rng(0)
    A, b = random.standard_normal((12, 3)), random.standard_normal(12)
    np.savez(tmp_path / "one.npz", X=A, y=b)
    np.savetxt(
        tmp_path / "two.csv", np.column_stack([A, b]), delimiter=",", header="a,b,c,y", comments=""
    )
    (tmp_path / "three.svm").write_text("1.5 1:2.0 3:1.0\n-0.5 2:1.0\n")
    (tmp_path / "readme.txt").write_text("not data")
    cases, problems = all_cases(tmp_path)
    assert {"file_one_1e-3", "file_two_1e-3", "file_three_1e-3"} == cases.keys() - CASES.keys()
    first, second = (problems[f"file_{name}"].make(1.0) for name in ("one", "two"))
    np.testing.assert_allclose(first[0], second[0])
    X, y = problems["file_three"].make(1.0)
    assert X.shape == (2, 3)
    np.testing.assert_allclose(y, [1.0, -1.0])


def test_a_case_is_prepared_once_and_loaded_as_it_was_made(tmp_path):
    facts = prepare(tmp_path, "path_wide_1e-2", 0.002)
    assert facts["bounds_gap"] < 2e-7
    assert len(facts["bounds"]) == len(facts["alphas"]) == 100
    data, again = load(tmp_path, "path_wide_1e-2", CASES["path_wide_1e-2"], 0.002)
    assert again == json.loads(json.dumps(facts))
    assert data.X.flags.f_contiguous
    assert facts["alphas"][0] == pytest.approx(np.abs(data.X.T @ data.y).max() / len(data.y))
    with pytest.raises(FileNotFoundError, match="not prepared"):
        load(tmp_path, "path_wide_1e-2", CASES["path_wide_1e-2"], 0.003)


def lines_of(capsys) -> list[dict]:
    marked = capsys.readouterr().out.splitlines()
    return [json.loads(line.split(" ", 1)[1]) for line in marked]


def test_a_worker_reports_the_loosest_tolerance_that_is_good(capsys, monkeypatch):
    monkeypatch.setattr(sparse_worker, "_SECONDS", 0.0)
    data = sparse_data("lasso")
    exact = exact_lasso(data)
    facts = {"bounds": lasso_bounds(data, exact, np.array(data.alphas)).tolist()}
    # An answer whose suboptimality is the square of the tolerance, as exact as asked for.
    tuned = Tuned(lambda given, tol: Answer(exact.coef * (1 + tol)), half_decades(1, 6), 1e-2)
    sparse_worker.measure("single_wide", CASES["single_wide"], tuned, data, facts, 1.0)
    lines = lines_of(capsys)
    judged = {line["rung"]: line["quality"] for line in lines if "quality" in line}
    row = sparse.summarise(Outcome(lines, False, ""), 60.0)
    assert row["quality"] <= CRITERION
    looser = tuned.ladder[tuned.ladder.index(row["tolerance"]) - 1]
    assert judged[looser] > CRITERION


@pytest.mark.parametrize("case", ["path_wide_1e-2", "single_text", "cv_tall", "subset_d100_snr0.5"])
def test_the_first_call_is_on_a_small_part_of_the_same_kind(case, tmp_path):
    prepare(tmp_path, case, 0.002)
    data, _ = load(tmp_path, case, CASES[case], 0.002)
    part = sparse_worker._small_part(CASES[case], data)
    assert type(part.X) is type(data.X)
    assert part.X.shape <= (200, 40)
    assert len(part.alphas) == len(data.alphas)
    assert len(part.known) == part.choose == min(2, data.choose)
    assert sparse_worker.warm_up(CASES[case], CONTESTANTS["trueline"].tuned[CASES[case].task], data)


def test_looser_tolerances_are_tried_when_one_took_too_long(capsys, monkeypatch):
    tuned = Tuned(lambda given, tol: None, half_decades(1, 6), 1e-4)
    start = {"kind": "start", "rung": 1e-4}
    assert sparse.too_tight(Outcome([start], True, ""), tuned) == 1e-4
    assert sparse.too_tight(Outcome([start], False, ""), tuned) is None
    # The next looser one is known not to do: nothing is left to try.
    lines = [call(3e-4, 1.0, 1e-3), start]
    assert sparse.too_tight(Outcome(lines, True, ""), tuned) is None
    assert sparse.too_tight(Outcome([call(1e-3, 1.0, 1e-3), start], True, ""), tuned) == 1e-4

    monkeypatch.setattr(sparse_worker, "_SECONDS", 0.0)
    data = sparse_data("lasso")
    exact = exact_lasso(data)
    facts = {"bounds": lasso_bounds(data, exact, np.array(data.alphas)).tolist()}
    tuned = replace(tuned, fit=lambda given, tol: exact)
    sparse_worker.measure("single_wide", CASES["single_wide"], tuned, data, facts, 1.0, below=1e-4)
    tried = [line["rung"] for line in lines_of(capsys) if line["kind"] == "start"]
    assert tried[0] == 1e-3
    assert min(tried) > 1e-4


def test_the_certificate_is_timed_apart_from_the_fit(capsys):
    data = sparse_data("lasso")
    facts = {"bounds": lasso_bounds(data, exact_lasso(data), np.array(data.alphas)).tolist()}
    tuned = CONTESTANTS["trueline"].tuned["certificate"]
    sparse_worker.measure_certificate(tuned, data, facts)
    row = sparse.summarise(Outcome(lines_of(capsys), False, ""), 60.0)
    assert row["share"] == pytest.approx(row["proof"] / row["seconds"])
    assert row["quality"] <= CRITERION


def test_searches_take_the_seconds_of_the_case():
    tuned = CONTESTANTS["trueline"].tuned["best_subset"]
    assert sparse_worker.rungs(tuned, CASES["subset_d1000_snr5"], 1.0) == [25.0, 60.0]
    assert sparse_worker.rungs(tuned, CASES["subset_d100_snr0.1"], 1.0) == [25.0]
    assert sparse_worker.rungs(tuned, CASES["subset_d100_snr0.1"], 0.1) == [2.0]


def call(rung, seconds, quality=None, **more):
    line = {"kind": "call", "rung": rung, "seconds": seconds, "other": 0.0, **more}
    return line if quality is None else line | {"quality": quality}


def test_rows_of_ladders():
    lines = [
        {"kind": "ready", "first": 9.0, "version": "1.2", "numpy": "2.0"},
        call(1e-4, 4.0, 1e-5),
        call(1e-6, 3.0, 1e-9),
        call(1e-5, 2.0, 1e-7),
        call(1e-5, 1.0),
    ]
    row = sparse.summarise(Outcome(lines, False, ""), 20.0)
    assert (row["seconds"], row["tolerance"], row["quality"], row["first"]) == (1, 1e-5, 1e-7, 9)
    assert (row["calls"], row["version"]) == (2, "1.2")
    late = sparse.summarise(Outcome(lines[:2], True, ""), 20.0)
    assert (late["over"], late["quality"]) == (20.0, 1e-5)
    assert "seconds" not in late
    kept = sparse.summarise(Outcome(lines[:3], True, ""), 20.0)
    assert (kept["seconds"], "over" in kept) == (3.0, False)
    # The ladder ended: it cannot. The time ended: it would take longer than it did.
    missed = sparse.summarise(Outcome(lines[:2], False, ""), 20.0)
    assert (missed["quality"], missed["seconds"]) == (1e-5, 4.0)
    stopped = sparse.summarise(Outcome([*lines[:2], {"kind": "stopped"}], False, ""), 20.0)
    assert (stopped["over"], "seconds" in stopped) == (4.0, False)


def test_rows_of_searches_keep_the_gap_after_each_time():
    found = {"objective": 2.0, "proven": False, "columns": [1]}
    lines = [
        call(25.0, 25.0, gap=0.2, own_gap=0.1, **found),
        call(60.0, 40.0, gap=0.0, own_gap=0.0, **(found | {"proven": True})),
    ]
    row = sparse.summarise(Outcome(lines, False, ""), 90.0)
    assert row["gaps"] == {"25": 0.2, "60": 0.0}
    assert (row["seconds"], row["proven"]) == (40.0, True)


def sparse_store(tmp_path) -> Store:
    store = Store("sparse", tmp_path)
    good = {"first": 2.0, "calls": 3, "other": 0.0, "tolerance": 1e-5, "quality": 1e-8}
    store.put("path_wide_1e-2", "trueline", {"seconds": 2.0, **good})
    store.put("path_wide_1e-2", "adelie", {"seconds": 5.0, **good})
    store.put("path_wide_1e-2", "glmnet", {"seconds": 1.0, **good, "quality": 1e-3})
    store.put("path_wide_1e-2", "celer", {"over": 20.0})
    store.put("single_wide", "trueline", {"seconds": 2.0, **good})
    store.put("single_wide", "adelie", {"seconds": 1.0, **good})
    store.put("single_tall", "trueline", {"seconds": 2.0, **good})
    store.put("single_tall", "adelie", {"seconds": 4.0, **good})
    store.put("single_tall", "celer", {"over": 1.0, "quality": 1e-4})
    timed = {"first": 1.0, "calls": 1, "other": 0.0, "objective": 0.25, "tolerance": None}
    store.put("forward_folds_02", "trueline", {"seconds": 0.1, **timed})
    store.put("forward_folds_02", "scikit-learn", {"seconds": 10.0, **timed})
    store.put("forward_folds_20", "trueline", {"seconds": 0.1, **timed})
    search = {**timed, "own_gap": 0.1, "proven": False}
    store.put(
        "subset_d1000_snr5",
        "trueline",
        {
            "seconds": 30.0,
            **search,
            "gap": 0.0,
            "own_gap": 0.0,
            "proven": True,
            "gaps": {"25": 0.04, "60": 0.0},
        },
    )
    store.put("subset_d1000_snr5", "l0bnb", {"seconds": 25.0, **search, "gap": 0.3})
    store.put("certificate_tall", "trueline", {"seconds": 1.0, "proof": 0.1, "share": 0.1, **good})
    return store


def test_sparse_targets_say_reached_or_not(tmp_path):
    lines = str(sparse.tables(sparse_store(tmp_path))[0]).splitlines()

    def line(case, *words):
        (found,) = [
            text for text in lines if CASES[case].title in text and all(w in text for w in words)
        ]
        return [cell.strip() for cell in found.strip("|").split("|")]

    assert line("path_wide_1e-2")[1:] == ["adelie", "its time / ours at least 1.5", "2.50", "yes"]
    assert line("single_wide")[-2:] == ["0.50", "no"]
    assert line("single_tall")[-2:] == ["> 0.50", "not known: celer was ended early"]
    assert line("forward_folds_02")[-2:] == ["100", "no"]
    # 20 steps have 9,810 candidates, two have 999.
    assert line("forward_folds_20")[-2:] == [f"> {10 * 9810 / 999 / 0.1:.3g}", "yes"]
    assert line("subset_d1000_snr5", "proven within")[-2:] == ["30 s", "yes"]
    assert line("subset_d1000_snr5", "gap at most")[-2:] == ["0.04 / 0.1", "yes"]
    assert line("certificate_tall")[-2:] == ["10.0%", "no"]


def test_sparse_tables_mark_what_was_not_reached_and_what_was_estimated(tmp_path):
    text = "\n".join(str(table) for table in sparse.tables(sparse_store(tmp_path)))
    assert "| celer | over 20 s | > 10 |" in text
    assert "1.0e-03 (not reached)" in text
    assert "| scikit-learn (estimated) | > 98.2 s |" in text
    assert text.index("| adelie | 5 s") < text.index("| glmnet | 1 s")


def test_every_case_has_a_target_and_contestants():
    assert {target.case for target in TARGETS} == CASES.keys()
    taking_part = {name for name, _, _ in sparse.rows_of()}
    assert taking_part == CASES.keys()
    ours = {name for name, _, contestant in sparse.rows_of() if contestant.name == "trueline"}
    assert ours == CASES.keys()


def test_guests_run_in_the_interpreter_of_the_peers():
    request = Request(peer_python="peers", python={"celer": "own"})
    used = {
        name: _interpreter(request, CONTESTANTS[name])
        for name in ("trueline", "scikit-learn", "adelie", "celer")
    }
    assert used == {"trueline": None, "scikit-learn": None, "adelie": "peers", "celer": "own"}


# --- robust regression ----------------------------------------------------------------------------


def robust_data(kind: str, **more) -> RobustData:
    X, y = heavy_tails(90, 4, seed=3)
    if kind == "quantile":
        more.setdefault("quantiles", (0.3,))
    elif kind.startswith("huber"):
        more |= {"threshold": 1.2, "strength": 0.5}
    elif kind.startswith("svr"):
        more |= {"threshold": 0.2, "strength": 2.0}
    return RobustData(X, y, True, kind=kind, **more)


def exact_robust(data: RobustData) -> Answer:
    """By other libraries, far beyond the criterion."""
    from scipy.optimize import minimize, root
    from sklearn.linear_model import HuberRegressor

    if data.kind in ("quantile", "maximum"):
        tuned = CONTESTANTS["SciPy HiGHS (dual, simplex)"].tuned[data.kind]
        levels = [replace(data, quantiles=(q,)) for q in data.quantiles]
        answers = [tuned.fit(level, None) for level in levels]
        return Answer(
            np.column_stack([answer.coef for answer in answers]),
            np.array([answer.intercept for answer in answers]),
        )
    if data.kind == "huber_scale":
        model = HuberRegressor(epsilon=data.threshold, alpha=data.strength, tol=1e-9)
        model.fit(data.X, data.y)

        def slopes(v):
            w, b, s = v[:-2], v[-2], v[-1]
            u = np.clip(2 * (data.y - data.X @ w - b) / s, -2 * data.threshold, 2 * data.threshold)
            along = 2 * data.strength * w - data.X.T @ u
            return np.concatenate([along, [-u.sum(), len(u) - u @ u / 4]])

        # It stops early for small gains; from there the equations of the optimum can be solved.
        found = root(slopes, [*model.coef_, model.intercept_, model.scale_], tol=1e-14).x
        return Answer(found[:-2], found[-2], scale=found[-1])
    if data.kind == "huber":
        t, Z = data.threshold, np.column_stack([data.X, np.ones(len(data.y))])

        def value_and_slope(w):
            r = data.y - Z @ w
            near = np.clip(r, -t, t)
            return (near * (r - 0.5 * near)).sum(), -Z.T @ near

        found = minimize(value_and_slope, np.zeros(Z.shape[1]), jac=True, tol=1e-12).x
        return Answer(found[:-1], found[-1])
    return CONTESTANTS["scikit-learn LIBLINEAR (dual)"].tuned[data.kind].fit(data, 1e-10)


def by_hand(data: RobustData, answer: Answer) -> float:
    """The objective again, row by row, as the books write it."""
    w, b, total = np.ravel(answer.coef), float(np.ravel(answer.intercept)[0]), []
    for x, y in zip(data.X, data.y, strict=True):
        r, t, s = y - x @ w - b, data.threshold, answer.scale
        if data.kind == "quantile":
            total.append(data.quantiles[0] * r if r > 0 else (data.quantiles[0] - 1) * r)
        elif data.kind == "maximum":
            total.append(abs(r))
        elif data.kind == "huber":
            total.append(r * r / 2 if abs(r) <= t else t * abs(r) - t * t / 2)
        elif data.kind == "huber_scale":
            z = abs(r / s)
            total.append(s + s * (z * z if z <= t else 2 * t * z - t * t))
        else:
            total.append(data.strength * max(0.0, abs(r) - t) ** (1 if data.kind == "svr" else 2))
    if data.kind == "maximum":
        return max(total)
    penalty = {"huber_scale": data.strength * w @ w, "svr": 0.5 * (w @ w + b * b)}
    return sum(total) + penalty.get(data.kind.removesuffix("_squared"), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_robust_objectives_are_those_of_the_books(kind):
    data = robust_data(kind)
    answer = Answer(np.array([0.3, -0.2, 0.1, 0.0]), 2.0, scale=0.8)
    assert objectives(data, answer) == pytest.approx(by_hand(data, answer), rel=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "svr"])
def test_multipliers_of_a_solution_prove_it(kind):
    data = robust_data(kind)
    exact = exact_robust(data)
    (u,) = multipliers(data, exact)
    bound = lower_bound(data, u, data.quantiles[0])
    (value,) = objectives(data, exact)
    assert bound <= value * (1 + 1e-12)
    assert bound == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_no_multipliers_prove_too_much(kind, seed):
    """Whatever they are: far out of the domain, or only off the equations, which is refused."""
    data, random = robust_data(kind), np.random.default_rng(seed)
    (value,) = objectives(data, exact_robust(data))
    u = 3.0 * random.standard_normal(len(data.y))
    Z = np.column_stack([data.X, np.ones(len(data.y))])
    if kind in ("quantile", "maximum", "huber"):
        with pytest.raises(ValueError, match="miss their equations"):
            lower_bound(data, u, data.quantiles[0])
    # On the equations, and small enough that no box is left.
    u -= Z @ np.linalg.lstsq(Z, u, rcond=None)[0]
    u *= 0.01 if kind == "quantile" else 1.0
    assert lower_bound(data, u, data.quantiles[0]) <= value * (1 + 1e-9)


def test_robust_suboptimality_is_the_worst_of_the_quantiles():
    data = robust_data("quantile", quantiles=(0.2, 0.5, 0.9))
    exact = exact_robust(data)
    bounds = [
        lower_bound(data, u, q)
        for u, q in zip(multipliers(data, exact), data.quantiles, strict=True)
    ]
    assert abs(robust_suboptimality(data, exact, bounds)) < 1e-12
    off = exact.coef.copy()
    off[:, 1] += 0.1
    expected = objectives(data, Answer(off, exact.intercept))[1] / bounds[1] - 1
    found = robust_suboptimality(data, Answer(off, exact.intercept), bounds)
    assert found == pytest.approx(expected, rel=1e-9)
    for bad in (Answer(off[:, :1], 0.0), Answer(np.full_like(off, np.nan)), Answer(off[:-1])):
        assert robust_suboptimality(data, bad, bounds) == math.inf


def test_a_scale_that_is_not_positive_is_no_answer():
    data = robust_data("huber_scale")
    assert robust_suboptimality(data, Answer(np.zeros(4), scale=0.0), [1.0]) == math.inf


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (task, name)
        for task in KINDS
        for name, contestant in CONTESTANTS.items()
        if task in contestant.tuned and contestant.package in ("trueline", "scikit-learn", "scipy")
    ],
)
def test_contestants_reach_the_criterion_of_robust_regression(task, name):
    data, tuned = robust_data(task), CONTESTANTS[name].tuned[task]
    best = objectives(data, exact_robust(data))
    assert robust_suboptimality(data, tuned.fit(data, tuned.ladder[-1]), best) <= CRITERION


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_robust_regression_are_near(kind):
    data = robust_data(kind)
    facts = bounds_of(data)
    assert facts["bounds"] == pytest.approx(objectives(data, exact_robust(data)), rel=1e-8)
    assert abs(facts["bounds_gap"]) < 1e-7


def test_robust_problems_have_the_properties_they_promise():
    X, y = heavy_tails(20_000, 3, seed=1)
    np.testing.assert_array_equal(X[:5], heavy_tails(20_000, 3, seed=1)[0][:5])
    noise = y - X @ np.linalg.lstsq(np.column_stack([X, np.ones(len(y))]), y, rcond=None)[0][:-1]
    spread = np.subtract(*np.percentile(noise, [75, 25]))
    assert np.abs(noise - np.median(noise)).max() > 15 * spread
    T, target = words(200, 900, 0.02, 10)
    assert T.format == "csr"
    assert target.std() == pytest.approx(1.0)


def test_every_robust_case_has_a_target_and_contestants():
    cases = robust_cases.CASES
    assert {target.case for target in robust_cases.TARGETS} == cases.keys()
    assert {target.one for target in robust_cases.TARGETS if target.one} <= cases.keys()
    peers = {name: set() for name in cases}
    for name, _, contestant in taking_part(cases):
        peers[name].add(contestant.name)
    assert all("trueline" in names for names in peers.values())
    alone = {name for name, names in peers.items() if names == {"trueline"}}
    assert alone == {"nine_1e5x50", "absolute_1e6x20", "quantile90_1e6x20"}


@pytest.mark.parametrize("name", ["absolute_1e6x20", "svr_squared_text"])
def test_a_robust_case_is_prepared_measured_and_told(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sparse_worker, "_SECONDS", 0.0)
    robust_prepare(tmp_path, name, 1e-4)
    case = robust_cases.CASES[name]
    data, _ = robust_load(tmp_path, name, case, 1e-4)
    assert data.kind == case.kind
    robust_worker.main(name, "trueline", "1e-4", str(tmp_path), "20")
    row = robust.summarise(Outcome(lines_of(capsys), False, ""), 20.0)
    assert row["quality"] <= CRITERION
    assert row["first"] > 0
    assert ("growth" in row) == (case.measure == "memory")
    part = robust_worker._small_part(data)
    assert type(part.X) is type(data.X)
    store = Store("robust", tmp_path)
    store.put(name, "trueline", row)
    assert any(case.title in str(table) for table in robust.tables(store)[1:])


def test_robust_targets_say_reached_or_not(tmp_path):
    store = Store("robust", tmp_path)
    good = {"first": 2.0, "calls": 3, "other": 0.0, "tolerance": None, "quality": 1e-8}
    store.put("absolute_1e5x50", "trueline", {"seconds": 0.5, **good})
    store.put("absolute_1e5x50", "Clarabel (dual)", {"seconds": 15.0, **good})
    store.put("absolute_1e5x50", "ReHLine", {"seconds": 1.0, **good, "quality": 1e-3})
    store.put("absolute_1e5x50", "scikit-learn", {"over": 40.0})
    store.put("quantile90_1e5x50", "trueline", {"seconds": 0.4, **good})
    store.put("nine_1e5x50", "trueline", {"seconds": 1.8, **good})
    grown = {"growth": 1.25, "megabytes": 200.0}
    store.put("absolute_1e6x20", "trueline", {"seconds": 2.0, **good, **grown})
    store.put("quantile90_1e6x20", "trueline", {"seconds": 2.0, **good, "growth": 0.5})
    targets, *tables = robust.tables(store)

    def line(case, *words):
        title = robust_cases.CASES[case].title
        (found,) = [row for row in targets.rows if row[0] == title and set(words) <= set(row)]
        return tuple(found[1:])

    assert line("absolute_1e5x50") == (
        "Clarabel (dual)",
        "its time / ours at least 20",
        "30.00",
        "yes",
    )
    assert line("nine_1e5x50", "Absolute loss")[-2:] == ("3.60", "yes")
    assert line("nine_1e5x50", "Quantile 0.9")[-2:] == ("4.50", "no")
    assert line("absolute_1e6x20")[-2:] == ("1.25 in 2 s", "no")
    assert line("quantile90_1e6x20")[-2:] == ("0.50 in 2 s", "yes")
    text = "\n".join(str(table) for table in tables)
    assert "| scikit-learn | over 40 s | > 80 |" in text
    assert "1.0e-03 (not reached)" in text
    assert "| trueline | 2 s | 2 s | 1.25 | 200 |" in text


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


# --- separability ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in separability_cases.CASES if n.endswith("1e4x20")])
def test_contestants_agree_on_separability(name, tmp_path):
    separability_prepare(tmp_path, name, 0.02)
    data, facts = separability_load(tmp_path, name, 0.02)
    assert facts["separable"] == name.startswith(("wide", "barely"))
    answers = {
        contestant.name: contestant.tuned["separability"].fit(data, None)
        for _, _, contestant in taking_part({name: separability_cases.CASES[name]})
    }
    assert len(answers) == 5
    assert set(answers.values()) == {facts["separable"]}


def test_a_case_of_separability_is_prepared_measured_and_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sparse_worker, "_SECONDS", 0.0)
    name = "few_1e5x50"
    separability_prepare(tmp_path, name, 1e-3)
    separability_worker.main(name, "trueline", "1e-3", str(tmp_path), "20")
    row = separability.summarise(Outcome(lines_of(capsys), False, ""), 20.0)
    assert row["quality"] == 0.0
    store = Store("separability", tmp_path)
    store.put(name, "trueline", {**row, "seconds": 0.1})
    store.put(name, "SciPy HiGHS (primal, simplex)", {**row, "seconds": 3.0})
    store.put(name, "SciPy HiGHS (dual, simplex)", {**row, "seconds": 1.0, "quality": math.inf})
    targets, table = separability.tables(store)
    assert "30.00 | yes" in str(targets)
    assert "wrong" in str(table)
    assert separability_worker.judge(None, None, None, {"separable": True}, False) == {
        "quality": math.inf
    }


def test_the_multiclass_suite_measures_everyone_and_states_its_target(tmp_path, capsys):
    from benchmarks.multiclass.cases import CASES as SCHEMES
    from benchmarks.multiclass.cases import CONTESTANTS as WRAPPERS
    from benchmarks.multiclass.worker import measure
    from benchmarks.suites import multiclass

    store = Store("multiclass", tmp_path)
    name = "OneVsOne_digits"
    rows = measure(name, small=True, rounds=1)
    assert set(rows) == set(WRAPPERS)
    for who, row in rows.items():
        assert row["same"] > 0.99
        store.put(name, who, row)
    (table,) = multiclass.tables(store)
    assert table.title == SCHEMES[name].title
    assert "Target: 2 times" in str(table)
    assert len(SCHEMES) == 9


def test_the_suite_of_comparisons_measures_both_sides(tmp_path):
    from benchmarks.compare.worker import measure
    from benchmarks.suites import compare

    store = Store("compare", tmp_path)
    rows = compare.keep(store, "amounts", measure("amounts", small=True), 0.0)
    ours, theirs = (rows[who]["models"] for who in (compare.OURS, compare.THEIRS))
    assert all(abs(ours[who]["score"] - row["score"]) < 1e-3 for who, row in theirs.items())
    whole, single = compare.tables(store)
    assert "Regression, 20,000 x 13" in str(whole)
    assert "bayesian ridge" in str(single)


def test_a_search_that_takes_too_long_counts_as_at_least_its_limit(tmp_path):
    from benchmarks.suites import compare

    store = Store("compare", tmp_path)
    ours = {"contestant": compare.OURS, "seconds": 1.0}
    ours["models"] = {"ridge": {"seconds": 1.0, "score": 0.5, "setting": {}}}
    late = {"contestant": compare.THEIRS, "model": "ridge", "is_late": True, "seconds": 9.0}
    compare.keep(store, "amounts", [ours, late], 0.0)
    whole, _ = compare.tables(store)
    assert "> 9.0" in str(whole)


# --- evidence and processes -----------------------------------------------------------------------


def bayes_data(kind: str, by_column: bool = False) -> BayesData:
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(60, 3))
    return BayesData(X, np.sin(X[:, 0]) + 0.1 * generator.normal(size=60), kind, by_column)


@pytest.mark.parametrize("by_column", [False, True])
def test_the_likelihood_of_the_bayesian_suite_is_a_gaussian_density(by_column):
    data = bayes_data("process", by_column)
    theta = np.log([1.3, *([0.7, 1.1, 2.0] if by_column else [0.7]), 0.2])
    lengths = np.exp(theta[1:-1])
    distance = (((data.X[:, None] - data.X[None]) / lengths) ** 2).sum(axis=2)
    covariance = 1.3 * np.exp(-0.5 * distance) + 0.2 * np.eye(60)
    expected = multivariate_normal.logpdf(data.y, np.zeros(60), covariance)
    assert bayes_objective(data, theta) == pytest.approx(expected, rel=1e-10)
    best = best_value(data)
    assert bayes_suboptimality(data, plain_fit(data, 1e-12), best) == pytest.approx(0, abs=1e-6)
    assert bayes_suboptimality(data, Theta(theta), best) > 1e-3


@pytest.mark.parametrize("shape", [(50, 4), (8, 30)])
def test_the_evidence_of_the_bayesian_suite_is_a_gaussian_density(shape):
    generator = np.random.default_rng(1)
    X = generator.normal(size=shape)
    X -= X.mean(axis=0)
    y = generator.normal(size=shape[0])
    y -= y.mean()
    covariance = np.eye(shape[0]) / 0.7 + X @ X.T / 1.9
    expected = multivariate_normal.logpdf(y, np.zeros(shape[0]), covariance)
    found = bayes_objective(BayesData(X, y, "bayesian_ridge"), np.log([0.7, 1.9]))
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["process_ard_1000", "ridge_300x5000"])
@pytest.mark.parametrize("contestant", ["trueline", "scikit-learn"])
def test_a_bayesian_case_is_prepared_measured_and_told(
    name, contestant, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sparse_worker, "_SECONDS", 0.0)
    bayes_prepare(tmp_path, name, 0.05)
    bayes_worker.main(name, contestant, "0.05", str(tmp_path), "20")
    row = bayes.summarise(Outcome(lines_of(capsys), False, ""), 20.0)
    assert row["quality"] <= CRITERION
    store = Store("bayes", tmp_path)
    store.put(name, "trueline", row)
    store.put(name, "scikit-learn", row | {"seconds": 9 * row["seconds"]})
    told = [str(table) for table in bayes.tables(store)]
    assert "yes" in told[0]
    assert bayes_cases.CASES[name].title in told[1]


def test_every_bayesian_case_has_a_target_and_contestants():
    cases = bayes_cases.CASES
    assert {target.case for target in bayes_cases.TARGETS} == cases.keys()
    for target in bayes_cases.TARGETS:
        assert cases[target.case].task in CONTESTANTS[target.peer].tuned


# --- linear classifiers ---------------------------------------------------------------------------


def class_data(loss: str, penalty: str = "l2", scheme: str = "two", intercept: bool = False):
    if loss == "softmax" or scheme != "two":
        X, y = clouds(90, 4, 3, seed=2)
    else:
        X, y = dense_classes(90, 4, seed=2)
    return ClassData(X / X.std(), y, intercept, loss=loss, penalty=penalty, scheme=scheme)


@pytest.mark.parametrize(
    ("data", "name", "task"),
    [
        (class_data("logistic"), "scikit-learn newton-cholesky", "logistic"),
        (class_data("logistic", intercept=True), "scikit-learn newton-cg", "logistic_intercept"),
        (class_data("logistic", "l1"), "scikit-learn LIBLINEAR (primal)", "logistic_l1"),
        (class_data("hinge"), "scikit-learn LIBLINEAR (dual)", "hinge"),
        (class_data("squared_hinge"), "scikit-learn LIBLINEAR (primal)", "squared_hinge"),
        (class_data("softmax"), "scikit-learn lbfgs", "softmax"),
        (class_data("logistic", scheme="rest"), "scikit-learn newton-cholesky", "one_vs_rest"),
        (class_data("logistic", scheme="one"), "scikit-learn newton-cholesky", "one_vs_one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bounds_of_classifiers_hold_for_those_who_know_nothing_of_us(data, name, task):
    facts = class_bounds(data)
    assert abs(facts["bounds_gap"]) <= 1e-7
    theirs = CONTESTANTS[name].tuned[task].fit(data, 1e-9)
    quality = class_suboptimality(data, theirs, facts["bounds"])
    assert -1e-12 <= quality <= CRITERION
    off = Answer(1.1 * np.asarray(theirs.coef), theirs.intercept)
    expected = np.max(class_objectives(data, off) / facts["bounds"]) - 1
    assert class_suboptimality(data, off, facts["bounds"]) == pytest.approx(expected)
    if data.loss != "hinge":  # from a bad answer the bound is worse, never wrong
        assert (bounds(data, off) <= class_objectives(data, theirs) * (1 + 1e-12)).all()
    assert class_suboptimality(data, Answer(theirs.coef[:2]), facts["bounds"]) == math.inf
    nothing = Answer(np.full_like(theirs.coef, np.nan))
    assert class_suboptimality(data, nothing, facts["bounds"]) == math.inf


def test_the_objectives_of_classifiers_are_those_of_their_formulas():
    w = np.array([0.5, -1.0, 0.2, 0.1])
    data = class_data("logistic")
    m = data.y * (data.X @ w)
    expected = {
        "logistic": np.log1p(np.exp(-m)).sum(),
        "hinge": np.maximum(0, 1 - m).sum(),
        "squared_hinge": (np.maximum(0, 1 - m) ** 2).sum(),
    }
    for loss, fit in expected.items():
        value = class_objectives(class_data(loss), Answer(w))
        assert value == pytest.approx(fit + 0.5 * w @ w)
    value = class_objectives(class_data("logistic", "l1"), Answer(w))
    assert value == pytest.approx(expected["logistic"] + 1.8)


def test_problems_of_classes_have_the_properties_they_promise():
    X, y = text_classes(400, 3000, 30, seed=1)
    np.testing.assert_allclose(np.asarray(X.multiply(X).sum(axis=1)).ravel(), 1.0)
    assert X.nnz / 400 == pytest.approx(30, rel=0.15)
    assert set(y) == {-1.0, 1.0}
    assert abs(y.mean()) < 0.2
    I, digits = images(50, seed=1)
    assert I.shape == (50, 784)
    assert I.min() >= 0.0
    assert I.max() <= 1.0
    assert len(np.unique(digits)) > 5
    K, labels = kernel_classes(300, 20)
    np.testing.assert_allclose(K.std(axis=0), 1.0)
    assert set(labels) == {-1.0, 1.0}


@pytest.mark.parametrize("name", ["hinge_text", "one_letters"])
def test_a_case_of_classification_is_prepared_measured_and_told(
    name, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sparse_worker, "_SECONDS", 0.0)
    classification_prepare(tmp_path, name, 1e-3)
    classification_worker.main(name, "trueline", "1e-3", str(tmp_path), "20")
    row = classification.summarise(Outcome(lines_of(capsys), False, ""), 20.0)
    assert row["quality"] <= CRITERION
    store = Store("classification", tmp_path)
    store.put(name, "trueline", row)
    for peer in ("LIBLINEAR (dual)", "scikit-learn lbfgs"):
        store.put(name, peer, row | {"seconds": 9 * row["seconds"], "conversion": 0.25})
    told = [str(table) for table in classification.tables(store)]
    assert "| 9.00 | yes |" in told[0]
    assert "| 250 ms |" in told[1]


# --- machines with a kernel -----------------------------------------------------------------------


def test_the_bound_of_kernel_machines_holds_for_those_who_know_nothing_of_us():
    X, y = kernel_classes(160, 6)
    data = KernelData(X[:120], y[:120], X[120:], gamma=1 / 6)
    facts = kernel_facts(data)
    tuned = CONTESTANTS["scikit-learn"].tuned
    theirs = tuned["svc"].fit(data, 1e-6)
    assert -1e-12 <= kernel_suboptimality(data, theirs, facts["least"]) <= CRITERION
    loose = tuned["svc"].fit(data, 1e-1)
    assert kernel_suboptimality(data, loose, facts["least"]) > 1e-5
    # By the definition.
    distance = ((X[:120, None] - X[None, :120]) ** 2).sum(axis=2)
    a = np.zeros(120)
    a[theirs.support] = theirs.coef
    value = 0.5 * a @ np.exp(-distance / 6) @ a - np.abs(a).sum()
    assert dual(data, theirs) == pytest.approx(value)
    # Coefficients that are not admissible are no answer.
    assert dual(data, Machine(theirs.support, 2 * theirs.coef, 0.0)) == math.inf
    assert dual(data, Machine(theirs.support[1:], theirs.coef[1:], 0.0)) == math.inf
    labels = tuned["svc_predict"].fit(tuned["svc_predict"].convert(data), None)
    assert label_errors(labels, facts["decision"]) == 0.0
    assert label_errors(-labels, facts["decision"]) == 1.0


@pytest.mark.parametrize("name", ["rbf_10000", "predict_10000"])
def test_a_case_of_kernels_is_prepared_measured_and_told(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sparse_worker, "_SECONDS", 0.0)
    kernel_prepare(tmp_path, name, 0.02)
    kernel_worker.main(name, "trueline", "0.02", str(tmp_path), "20")
    row = kernels.summarise(Outcome(lines_of(capsys), False, ""), 20.0)
    assert row["quality"] <= CRITERION
    assert ("conversion" in row) == name.startswith("predict")
    store = Store("kernels", tmp_path)
    store.put(name, "trueline", row)
    store.put(name, "scikit-learn", {"over": 5 * row["seconds"]})
    told = [str(table) for table in kernels.tables(store)]
    assert "| > 5.00 | yes |" in told[0]
    assert kernel_cases.CASES[name].title in told[1]


@pytest.mark.parametrize("module", [classification_cases, kernel_cases])
def test_every_case_of_classifiers_has_a_target_and_contestants(module):
    cases = module.CASES
    assert {target.case for target in module.TARGETS} == cases.keys()
    peers = {name: set() for name in cases}
    for name, _, contestant in taking_part(cases):
        peers[name].add(contestant.name)
    assert all("trueline" in names and len(names) > 1 for names in peers.values())
    assert all(not t.peer or t.peer in peers[t.case] for t in module.TARGETS)


# --- random problems ------------------------------------------------------------------------------


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (5, 4), (9, 3)])
@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-3, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_exact_least_squares(shape, alpha, fit_intercept):
    """At its minimiser the gradient vanishes, to the rounding of the minimiser alone."""
    n, d = shape
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, d)) + 3.0, rng.standard_normal((n, 2))
    s = np.array([0.0, *rng.uniform(0.5, 2.0, n - 1)])
    problem = LeastSquares(X, Y, s, alpha, fit_intercept)
    W, b = problem.minimum()
    rest = X @ W + b - Y
    np.testing.assert_allclose(X.T @ (s[:, None] * rest) + alpha * W, 0.0, atol=1e-11)
    value = 0.5 * (s @ rest**2).sum() + 0.5 * alpha * (W**2).sum()
    assert problem.value(W, b) == pytest.approx(value, rel=1e-12, abs=1e-25)
    nudged = problem.value(W + 1e-3, b)
    assert problem.value(W, b) < nudged
    assert problem.value(W, b) <= problem.constant()


def test_problems_of_fuzzing_can_be_fitted_again():
    for generate in FAMILIES.values():
        one, other = (generate(np.random.default_rng([0, 5])) for _ in range(2))
        assert one.note == other.note
        np.testing.assert_array_equal(one.y, other.y)
        assert one.scale == other.scale > 0


@pytest.mark.parametrize("name", FAMILIES)
def test_fuzzing_finds_nothing_wrong(name, capsys):
    fuzz.main([name, "--fits", "15", "--seed", "1"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{name}: fits 15, ")
    assert "wrong 0, exception 0, hung 0" in last
    assert "false gap 0" in last


def test_fuzzing_adds_no_rounding_of_its_own_to_perfect_fits():
    """One row that counts, a gamma target: the deviance is the square of the last digit."""
    case = FAMILIES["counts"](np.random.default_rng([0, 400_282]))
    verdict = judge(case, verified=True)
    assert case.value(case.estimator) >= 0
    assert verdict.faults == ()


def test_fuzzing_adds_no_rounding_of_its_own_to_near_copies():
    """Coefficients of millions: the products cancel, and a gap of 1e-8 is claimed to ten digits."""
    case = FAMILIES["chebyshev"](np.random.default_rng([0, 701_101]))
    assert judge(case, verified=True).faults == ()
    w, b = case.estimator.coef_, case.estimator.intercept_
    assert np.abs(w).max() > 1e6
    factors = [Fraction(v) for v in (1.0, *(-w).tolist(), -float(b))]
    present = case.sample_weight > 0
    rows = np.column_stack([case.y, case.X, np.ones(len(case.y))]).astype(float)[present].tolist()
    errors = [sum(Fraction(v) * f for v, f in zip(row, factors, strict=True)) for row in rows]
    assert case.value(case.estimator) == pytest.approx(float(max(map(abs, errors))), rel=4e-16)


def test_fuzzing_sees_a_wrong_answer(monkeypatch):
    """A solver that returns zeros, and a certificate that claims them to be best."""
    case = next(
        case
        for number in range(100)
        if "LinearRegression(" in (case := least_squares_case(number)).note
        and case.value(fitted(case)) < 0.5 * case.scale
    )
    model = case.estimator
    proof = model.certificate_
    monkeypatch.setattr(type(model), "fit", lambda self, X, y, sample_weight=None: self)
    monkeypatch.setattr(type(model), "certificate_", proof)
    model.coef_ = np.zeros_like(model.coef_)
    model.intercept_ = np.zeros_like(model.intercept_)
    verdict = judge(case)
    assert {"wrong", "false gap"} <= set(verdict.faults)


def least_squares_case(number):
    return FAMILIES["least_squares"](np.random.default_rng([0, number]))


def fitted(case):
    weights = {} if case.sample_weight is None else {"sample_weight": case.sample_weight}
    return case.estimator.fit(case.X, case.y, **weights)


def test_fuzzing_of_an_unknown_family(capsys):
    assert fuzz.main(["nonsense"]) == 2
    assert "there are: least_squares" in capsys.readouterr().err


# --- data sets of a folder ----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """One data set of each format."""
    random = np.random.default_rng(0)
    size, colour = random.normal(10.0, 3.0, 60), random.choice(["red", "green"], 60)
    price = 2.0 * size + (colour == "red") + random.normal(size=60)
    rows = ["size,colour,code,price"]
    rows += [
        f"{a},{b},id{i},{c}" for i, (a, b, c) in enumerate(zip(size, colour, price, strict=True))
    ]
    rows.append(",red,id60,3.0")
    (tmp_path / "prices.csv").write_text("\n".join(rows))
    words = ["win a free prize now", "see you at the meeting", "free money now for you"]
    lines = [f"{'ham' if i % 3 == 1 else 'spam'},{words[i % 3]} {i}" for i in range(90)]
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "test.csv").write_text("label,text\nham,nothing")
    (tmp_path / "mail" / "train.csv").write_text("\n".join(["label,text", *lines]))
    X, y = random.normal(size=(40, 3)), random.integers(0, 3, 40)
    np.savez(tmp_path / "arrays.npz", X=X, y=y)
    (tmp_path / "rows.svm").write_text("\n".join(f"{i % 2} 1:{i} 3:1" for i in range(20)))
    (tmp_path / "notes.txt").write_text("not data")
    return tmp_path


def test_every_format_of_a_folder_is_read(folder):
    assert field_names(folder) == ["arrays.npz", "mail", "prices.csv", "rows.svm"]
    prices = field_read(folder, "prices.csv")
    assert prices.X.shape == (60, 3)  # the size and two colours; names of rows are left out
    assert not prices.is_classes
    np.testing.assert_allclose(prices.X[:, 0].std(), 1.0)
    mail = field_read(folder, "mail")
    assert sp.issparse(mail.X)
    assert (mail.X.shape[0], len(np.unique(mail.y))) == (90, 2)
    assert field_read(folder, "arrays.npz").text == "40 x 3 dense, 3 classes"
    assert field_read(folder, "rows.svm").text == "20 x 3 sparse, 2 classes"


def test_a_manifest_names_the_target(folder):
    known = {"prices.csv": {"target": "size", "task": "regression"}}
    (folder / "manifest.json").write_text(json.dumps(known))
    data = field_read(folder, "prices.csv")
    assert data.y[:3] == pytest.approx(
        np.random.default_rng(0).normal(10.0, 3.0, 60)[data_order(60)][:3]
    )


def data_order(n):
    return np.random.default_rng(0).permutation(n)


CONVEX = ["Ridge", "Lasso, alpha 0.01", "PoissonRegressor", "LinearSVR", "HuberRegressor"]
CLASSIFIERS = ["LogisticRegression", "LinearSVC", "LinearSVC, L1", "RidgeClassifier"]


@pytest.mark.parametrize(("name", "who"), [("prices.csv", m) for m in CONVEX])
@pytest.mark.parametrize("shift", [0.01, -0.01])
def test_no_other_coefficients_have_a_lower_objective_regression(folder, name, who, shift):
    assert_least(field_read(folder, name), who, shift)


@pytest.mark.parametrize("name", ["arrays.npz", "mail", "rows.svm"])
@pytest.mark.parametrize("who", CLASSIFIERS)
def test_no_other_coefficients_have_a_lower_objective_classes(folder, name, who):
    assert_least(field_read(folder, name), who, 0.01)


def assert_least(data, who, shift):
    """The objective of the suite is the one that the class minimises."""
    case = MODELS[who]
    model = getattr(trueline, case.kind)(**case.parameters).fit(data.X, data.y)
    least = field_objective(model, data.X, data.y)
    for j in range(np.atleast_2d(model.coef_).shape[1]):
        other = copy(model)
        other.coef_ = np.array(model.coef_, dtype=float)
        np.atleast_2d(other.coef_)[0, j] += shift
        assert field_objective(other, data.X, data.y) > least


def test_a_pair_is_measured_and_told(folder):
    data = field_read(folder, "prices.csv")
    lines = list(field_measure(data, ["Ridge", "LinearSVC"]))
    assert [line["model"] for line in lines] == ["Ridge", "Ridge"]
    row = lines[-1]
    assert row["verified"]
    assert row["objective"] == pytest.approx(row["objective_theirs"], rel=1e-9)
    assert row["agreement"] < 1e-8
    store = Store("field", folder / "results")
    store.put("prices.csv", "Ridge", {**row, "ours": 2.0, "theirs": 1.0, "verified": False})
    store.put("prices.csv", "Lasso", {"error": "over the limit"})
    text = "\n".join(str(table) for table in field.tables(store))
    assert "0.50" in text
    assert "not verified" in text
    assert "over the limit" in text


def test_tiny_fits_suit_every_model_and_are_told_slowest_first(tmp_path):
    names = tiny._write(tmp_path)
    sets = [field_read(tmp_path, name) for name in names]
    assert {data.X.shape for data in sets} == {(150, 4), (1000, 10)}
    assert all(any(case.suits(data) for data in sets) for case in MODELS.values())
    store = Store("tiny", tmp_path / "results")
    store.put(names[0], "Ridge", {"medians": [1.0, 2.0]})
    store.put(names[0], "Lasso", {"medians": [2.0, 1.0]})
    text = str(tiny.tables(store)[0])
    assert text.index("Lasso") < text.index("Ridge")
    assert "1 of 2 pairs are" in text
