"""The tableau prices every exchange of columns as if each model had been fitted on its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trueline.design import as_design
from trueline.losses import Squared
from trueline.moments import Moments
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.selection.stepwise.search import make_terms
from trueline.selection.stepwise.tableau import Tableau, about, fold_tableaux

N, D = 24, 6
TRAIN, TEST = np.arange(16), np.arange(16, N)


def data(seed, targets=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + 1.0
    return X, X @ rng.standard_normal((D, targets)) + rng.standard_normal((N, targets))


def fitted(X, Y, columns, strength, fit_intercept):
    """Squared errors of training and test rows, by least squares on the rows."""
    columns = sorted(columns)
    ones = np.full((N, 1), float(fit_intercept))
    A = np.hstack([X[:, columns], ones])
    ridge = np.sqrt(strength) * np.eye(len(columns), len(columns) + 1)
    target = np.vstack([Y[TRAIN], np.zeros((len(columns), Y.shape[1]))])
    w = np.linalg.lstsq(np.vstack([A[TRAIN], ridge]), target, rcond=None)[0]
    errors = (Y - A @ w) ** 2
    penalty = strength * np.sum(w[:-1] ** 2, axis=0)
    return errors[TRAIN].sum(axis=0) + penalty, errors[TEST].sum(axis=0)


def tableau_of(X, Y, strength=0.0, fit_intercept=True):
    parts = [Moments.from_rows(as_design(X[rows]), Y[rows]) for rows in (TRAIN, TEST)]
    return Tableau(*(about(part, fit_intercept) for part in parts), strength)


exchanges = st.lists(st.sets(st.integers(0, D - 1), min_size=1, max_size=3), max_size=6)


@settings(max_examples=40, deadline=None)
@given(
    exchanges,
    st.integers(0, 10),
    st.sampled_from([1, 2]),
    st.sampled_from([0.0, 0.7]),
    st.booleans(),
)
def test_any_sequence_of_exchanges_gives_the_fits_of_the_rows(
    sequence, seed, targets, strength, fit_intercept
):
    X, Y = data(seed, targets)
    tableau = tableau_of(X, Y, strength, fit_intercept)
    inside = set()
    for block in sequence:
        entering, leaving = sorted(block - inside), sorted(block & inside)
        tableau.enter(np.array(entering, dtype=int))
        tableau.leave(np.array(leaving, dtype=int))
        inside ^= block
        square, held = fitted(X, Y, inside, strength, fit_intercept)
        assert_allclose(tableau.square(), square, rtol=1e-10)
        assert_allclose(tableau.held_square(), held, rtol=1e-10)
    outlook = tableau.outlook()
    assert set(np.flatnonzero(tableau.inside)) == inside
    for j in range(D):
        square, held = fitted(X, Y, inside ^ {j}, strength, fit_intercept)
        assert_allclose(outlook.square[j], square, rtol=1e-10)
        assert_allclose(outlook.held_square[j], held, rtol=1e-10)
        assert outlook.change[j] == (-1 if j in inside else 1)


@pytest.mark.parametrize("leaves", [True, False])
def test_terms_are_priced_as_a_whole(leaves):
    X, Y = data(1)
    tableau = tableau_of(X, Y)
    inside = {0, 1, 2, 5} if leaves else {0}
    tableau.enter(np.array(sorted(inside)))
    terms = [np.array([1, 2]), np.array([5])]
    outlook = tableau.outlook_of(terms, np.array([leaves, leaves]))
    for term, square, held in zip(terms, outlook.square, outlook.held_square):
        expected = fitted(X, Y, inside ^ set(term.tolist()), 0.0, True)
        assert_allclose([square, held], expected, rtol=1e-10)
    assert outlook.change.tolist() == ([-2, -1] if leaves else [2, 1])


def test_coefficients_are_those_of_least_squares():
    X, Y = data(2)
    tableau = tableau_of(X, Y)
    tableau.enter(np.array([4, 1]))
    A = np.column_stack([np.ones(len(TRAIN)), X[TRAIN][:, [1, 4]]])
    w = np.linalg.lstsq(A, Y[TRAIN], rcond=None)[0]
    assert_allclose(tableau.coefficients()[[1, 4]], w[1:], rtol=1e-11)
    assert not tableau.coefficients()[[0, 2, 3, 5]].any()


@pytest.mark.parametrize("kind", ["copy", "sum", "constant", "zero"])
def test_dependent_columns_stay_outside(kind):
    X, Y = data(3)
    X[:, 5] = {
        "copy": X[:, 0],
        "sum": X[:, 0] + 1e3 * X[:, 1] - 7.0,
        "constant": 0.1,
        "zero": 0.0,
    }[kind]
    tableau = tableau_of(X, Y)
    tableau.enter(np.array([0, 1, 5]))
    assert np.flatnonzero(tableau.inside).tolist() == [0, 1]
    assert np.flatnonzero(tableau.stranded()).tolist() == [5]
    assert not tableau.free()[5]
    assert tableau.outlook().change[5] == 0


def test_a_stranded_column_comes_in_when_it_no_longer_depends():
    X, Y = data(4)
    X[:, 5] = X[:, 0] + X[:, 1]
    tableau = tableau_of(X, Y)
    tableau.enter(np.array([0, 1, 5]))
    # Priced as it will be: without column 1 the columns 0 and 5 are left.
    priced = tableau.outlook_of([np.array([1])], np.array([True]))
    expected = fitted(X, Y, {0, 5}, 0.0, True)
    assert_allclose([priced.square[0], priced.held_square[0]], expected, rtol=1e-9)
    assert priced.change.tolist() == [0]
    tableau.leave(np.array([1]))
    assert np.flatnonzero(tableau.inside).tolist() == [0, 5]
    assert_allclose(tableau.square(), expected[0], rtol=1e-9)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_folds_are_trained_on_the_other_rows(wide, weighted):
    rng = np.random.default_rng(0)
    n, d = (12, 15) if wide else (30, 5)
    X, y = rng.standard_normal((n, d)) + 3.0, rng.standard_normal((n, 1))
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    problem = Problem(as_design(X), y, Squared(), NoPenalty(), True, weights)
    rows = np.arange(n)
    splits = [(rows[rows % 3 != f], rows[rows % 3 == f]) for f in range(3)]
    splits.append((rows[: n // 2], rows[n // 2 : -2]))  # rows that are in neither part
    tableaux, helds, total = fold_tableaux(problem, splits)
    assert total.count == n
    root = np.sqrt(np.ones(n) if weights is None else weights)[:, None]
    for tableau, held, (train, test) in zip(tableaux, helds, splits):
        tableau.enter(np.array([0, 3]))
        A = np.column_stack([np.ones(n), X[:, [0, 3]]])
        w = np.linalg.lstsq((root * A)[train], (root * y)[train], rcond=None)[0]
        errors = (root * (y - A @ w)) ** 2
        assert_allclose(tableau.square(), errors[train].sum(), rtol=1e-9)
        assert_allclose(tableau.held_square(), errors[test].sum(), rtol=1e-9)
        assert held.count == len(test)


# --- terms --------------------------------------------------------------------------------------

NAMES = ["size", "city=Rome", "age", "city=Oslo"]


@pytest.mark.parametrize(
    ("groups", "terms"),
    [
        (None, [[0], [1], [2], [3]]),
        ("factors", [[0], [1, 3], [2]]),
        ([7, 8, 7, 9], [[0, 2], [1], [3]]),
        (np.array(["a", "b", "a", "b"]), [[0, 2], [1, 3]]),
        ([[3, 0]], [[0, 3], [1], [2]]),
        ([["city=Rome", "city=Oslo"], [2]], [[0], [1, 3], [2]]),
        ({"city": ["city=Rome", 3]}, [[0], [1, 3], [2]]),
    ],
)
def test_groups_may_be_given_in_many_ways(groups, terms):
    assert [term.tolist() for term in make_terms(groups, 4, NAMES)] == terms


@pytest.mark.parametrize(
    ("groups", "names", "message"),
    [
        ([1, 2], NAMES, "2 labels for 4 columns"),
        ([[0], []], NAMES, "Group 1 is empty"),
        ([[0, 1], [1]], NAMES, "Column 1 is twice in groups"),
        ([[4]], NAMES, "X has the columns 0 to 3"),
        ([[-1]], NAMES, "X has the columns 0 to 3"),
        ([["price"]], NAMES, "'price', which X does not have"),
        ([["size"]], None, "the columns of X have no names"),
        ([[0.5]], NAMES, "by number or name"),
        ([[True]], NAMES, "by number or name"),
        ([[0], 1], NAMES, "mixes labels and lists"),
        (["a", None, "b", "c"], NAMES, "label of column 1 in groups is missing"),
        ([1.0, np.nan, 2.0, 3.0], NAMES, "label of column 1 in groups is missing"),
        ("factors", None, "Give X as a DataFrame"),
        ("words", NAMES, "the only word is 'factors'"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups, names, message):
    with pytest.raises(ValueError, match=message):
        make_terms(groups, 4, names)
