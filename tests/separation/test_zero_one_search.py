"""The fewest errors: against brute force in integers, on grids full of ties."""

import math
import time

import numpy as np
import pytest
from fewest_errors import fewest_errors
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.separation.lifting import integer_rows
from trueline.separation.zero_one import local_search, state
from trueline.separation.zero_one.branch_and_bound import by_highs, search
from trueline.separation.zero_one.conflicts import evaluate
from trueline.separation.zero_one.enumeration import enumerate_circles
from trueline.separation.zero_one.exact import as_rows, exact_search, is_conflict, separate
from trueline.separation.zero_one.local_search import improve
from trueline.separation.zero_one.margin import widest
from trueline.separation.zero_one.proof import pack_root


@st.composite
def tiny_problems(draw):
    """Points of a small grid, many of them equal, contradictory, collinear or zero."""
    n, d = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    size = draw(st.integers(1, 3))
    X = draw(
        st.lists(st.lists(st.integers(-size, size), min_size=d, max_size=d), min_size=n, max_size=n)
    )
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    s = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return np.array(X, float), np.array(y, float), np.array(s, float), draw(st.booleans())


def signed_integers(X, y, fit_intercept):
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    return [[int(x) for x in row] for row in Z * y[:, None]]


def noisy(n, d, flipped=0.1, seed=0):
    generator = np.random.default_rng([seed, n, d])
    X = generator.standard_normal((n, d))
    y = np.where(X @ generator.standard_normal(d) + 0.3 > 0, 1.0, -1.0)
    y[generator.choice(n, int(flipped * n), replace=False)] *= -1
    return X, y


def errors(task, v):
    return evaluate(task.A, v, task.s, np.empty(len(task.s))) + task.constant


@settings(max_examples=250, deadline=None)
@given(tiny_problems())
def test_search_agrees_with_brute_force(problem):
    X, y, s, fit_intercept = problem
    best = fewest_errors(signed_integers(X, y, fit_intercept), [int(x) for x in s])
    task = state(X, y, s, fit_intercept)
    if len(task.s) == 0:
        assert task.constant == best
        return
    # From a poor hyperplane, so that the search has to find the best one.
    found = search(task, task.A[0])
    assert found.is_proven
    assert found.value + task.constant == found.lower_bound + task.constant == best
    assert errors(task, found.v) == best
    assert found.packing.bound + task.constant <= best


@pytest.mark.slow
@settings(max_examples=2500, deadline=None)
@given(tiny_problems())
def test_search_agrees_with_brute_force_again(problem):
    test_search_agrees_with_brute_force.hypothesis.inner_test(problem)


@settings(max_examples=100, deadline=None)
@given(tiny_problems())
def test_exact_search_agrees_with_brute_force(problem):
    X, y, s, fit_intercept = problem
    rows = signed_integers(X, y, fit_intercept)
    best = fewest_errors(rows, [int(x) for x in s])
    assert exact_search(np.array(rows, float), s.tolist())[0] == best


@settings(max_examples=100, deadline=None)
@given(tiny_problems())
def test_circles_bound_from_below(problem):
    X, y, s, fit_intercept = problem
    task = state(X, y, s, fit_intercept)
    if len(task.s) < 3 or task.A.shape[1] < 2:
        return
    found = enumerate_circles(task)
    best = fewest_errors(signed_integers(X, y, fit_intercept), [int(x) for x in s])
    assert found is None or found[0] + task.constant <= best


@pytest.mark.parametrize(("n", "d"), [(40, 1), (40, 2), (25, 3), (14, 4)])
@pytest.mark.parametrize("flipped", [0.1, 0.5])
def test_circles_find_the_minimum_in_general_position(n, d, flipped):
    X, y = noisy(n, d, flipped)
    task = state(X, y, None, True)
    found = search(task, local_search(task.A, task.s)[1])
    assert found.is_proven
    assert enumerate_circles(task)[0] == found.value


@pytest.mark.parametrize(("n", "d"), [(40, 2), (40, 3), (30, 5)])
def test_search_agrees_with_highs(n, d):
    task = state(*noisy(n, d), None, True)
    v, bound, _ = by_highs(task)
    found = search(task, task.A[0])
    assert found.is_proven
    assert found.value == errors(task, v) == pytest.approx(bound, abs=1e-6)


def test_weights_that_are_no_multiples_of_anything():
    X, y = noisy(60, 2)
    s = np.random.default_rng(5).uniform(0.1, 3.0, 60)
    task = state(X, y, s, True)
    found = search(task, local_search(task.A, task.s)[1])
    circles = enumerate_circles(task)
    assert found.is_proven
    assert not task.is_exact
    assert found.lower_bound <= found.value
    assert circles[0] == pytest.approx(found.value, rel=1e-12)


def test_a_weight_is_a_number_of_copies():
    X, y = noisy(40, 2)
    s = np.random.default_rng(1).integers(1, 4, 40).astype(float)
    weighted = state(X, y, s, True)
    repeated = state(np.repeat(X, s.astype(int), axis=0), np.repeat(y, s.astype(int)), None, True)
    assert np.array_equal(weighted.s, repeated.s)
    values = [search(task, task.A[0]).value for task in (weighted, repeated)]
    assert values[0] == values[1]


@pytest.mark.parametrize("power", [-300, -20, 0, 20, 300])
def test_units_do_not_matter(power):
    X, y = noisy(40, 2)
    task = state(np.ldexp(X, [power, -power]), y, None, True)
    assert search(task, local_search(task.A, task.s)[1]).value == 4


def test_dependent_columns_are_left_out():
    X, y = noisy(60, 2)
    wide = np.column_stack([X, X[:, 0] * 2, np.full(60, 7.0), X])
    task, plain = state(wide, y, None, True), state(X, y, None, True)
    assert task.A.shape[1] == 3
    assert search(task, task.A[0]).value == search(plain, plain.A[0]).value


def test_rows_far_apart_are_refused():
    X = np.array([[1e300], [1e-300], [1.0]])
    with pytest.raises(ValueError, match="so far apart"):
        state(X, np.array([1.0, -1.0, 1.0]), None, True)


def test_a_cell_too_thin_for_doubles_is_not_claimed_to_be_found():
    # Separable in exact arithmetic, by less than rounding; brute force says so.
    X = np.array(
        [[0.098, 6.1], [0.101, -2.9], [0.1, -5.9], [0.097, 6.1], [0.1, -8.9], [0.103, -8.9]]
    )
    y, s = np.array([1.0, -1, 1, 1, 1, 1]), np.array([2.0, 1, 3, 2, 1, 1])
    rows = integer_rows(np.column_stack([X, np.ones(6)]) * y[:, None])[0].astype(object).tolist()
    best = fewest_errors(rows, [int(x) for x in s])
    task = state(X, y, s, True)
    found = search(task, local_search(task.A, task.s)[1])
    assert found.lower_bound <= best <= found.value
    assert found.is_proven == (found.value == best)


def test_too_many_rows_for_fractions_leave_a_gap():
    assert exact_search(np.ones((301, 2)), [1.0] * 301) is None


def test_time_limit_leaves_an_honest_bound():
    X, y = noisy(60, 8, flipped=0.5)
    task = state(X, y, None, True)
    v = local_search(task.A, task.s)[1]
    short = search(task, v, time.perf_counter() + 0.05)
    none = search(task, v, -math.inf)
    assert short.reason == none.reason == "time limit"
    assert 0 < none.lower_bound <= short.lower_bound < short.value <= none.value
    assert short.packing.bound <= short.value


def test_interruption_keeps_the_best_hyperplane():
    X, y = noisy(60, 8, flipped=0.5)
    task = state(X, y, None, True)

    def interrupt(nodes, value, bound, v):
        raise KeyboardInterrupt

    found = search(task, local_search(task.A, task.s)[1], watch=interrupt)
    assert found.reason == "interrupted"
    assert errors(task, found.v) == found.value
    assert found.lower_bound < found.value


def test_local_search_is_no_worse_than_where_it_starts():
    X, y = noisy(100, 4)
    task = state(X, y, None, True)
    for v in np.random.default_rng(0).standard_normal((5, 5)):
        value, better = improve(task.A, task.s, errors(task, v), v)
        assert value <= errors(task, v)
        assert errors(task, better) == value


def test_the_widest_hyperplane_keeps_the_errors():
    X, y = noisy(80, 3)
    task = state(X, y, None, True)
    value, v = local_search(task.A, task.s)
    wide = widest(task, v)
    scores = task.A @ wide
    assert errors(task, wide) == value
    assert np.sort(scores[scores > 0])[0] >= 1e-6


def test_conflicts_of_a_packing_are_conflicts_and_disjoint():
    X, y = noisy(200, 3)
    task = state(X, y, None, True)
    packing = pack_root(task, local_search(task.A, task.s)[1])
    assert len(np.unique(packing.members)) == len(packing.members)
    for members in np.split(packing.members, packing.ends[:-1]):
        rows = task.A[members]
        assert is_conflict(rows)
        # None of them can be spared.
        assert all(not is_conflict(np.delete(rows, q, axis=0)) for q in range(len(rows)))


def test_separating_rows_in_fractions():
    v, conflict = separate(as_rows(np.array([[1.0, 2.0], [2.0, 1.0]])), [0, 1])
    assert conflict == []
    assert v[0] + 2 * v[1] > 0 < 2 * v[0] + v[1]
    rows = as_rows(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    assert sorted(separate(rows, [0, 1, 2])[1]) == [0, 1, 2]
