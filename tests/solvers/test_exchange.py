"""Exchange of rows: the largest error is the smallest possible, against linear programming."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from trueline.design import as_design
from trueline.losses import MaximumError
from trueline.penalties import NoPenalty
from trueline.problem import Problem
from trueline.solvers.base import Monitor, Options
from trueline.solvers.chebyshev.reference import Reference, Rows
from trueline.solvers.chebyshev.smoothed import smooth_multipliers
from trueline.solvers.registry import SOLVERS


def solve(X, y, fit_intercept=True, solver="exchange", **options):
    y = np.asarray(y, dtype=float).reshape(len(y), -1)
    problem = Problem(as_design(X), y, MaximumError(), NoPenalty(), fit_intercept)
    return SOLVERS[solver].solve(problem, Options(**options), Monitor())


def least_largest_error(X, y, fit_intercept=True):
    """By linear programming: min h with -h <= y - A v <= h."""
    n = len(X)
    A = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    h = np.ones((n, 1))
    found = linprog(
        np.append(np.zeros(A.shape[1]), 1.0),
        A_ub=np.block([[A, -h], [-A, -h]]),
        b_ub=np.concatenate([y, -y]),
        bounds=[(None, None)] * A.shape[1] + [(0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return found.fun


def check(X, y, fit_intercept=True):
    """Optimal against HiGHS, and what the reference promises."""
    solution = solve(X, y, fit_intercept)
    certificate = solution.certificate
    size = np.abs(y).max() or 1.0
    assert_allclose(
        certificate.objective, least_largest_error(X, y, fit_intercept), rtol=0, atol=1e-9 * size
    )
    error = y - X @ solution.coef[:, 0] - solution.intercept[0]
    assert_allclose(np.abs(error).max(), certificate.objective, rtol=0, atol=1e-13 * size)
    assert solution.status.is_final
    assert certificate.gap <= 1e-12 * size
    assert certificate.verify(X, y)
    rows, u = solution.extra["rows"], solution.extra["dual"][:, 0]
    assert len(rows) <= X.shape[1] + 1 + fit_intercept
    if len(rows):
        # Rows that carry the solution are on the edge of the band on the side of their sign.
        assert_allclose(error[rows], np.sign(u) * certificate.objective, atol=1e-11 * size)
        assert_allclose(X[rows].T @ u, 0.0, atol=1e-12 * np.abs(X).max(initial=1.0))
        assert_allclose(np.abs(u).sum(), 1.0)
        if fit_intercept:
            assert_allclose(u.sum(), 0.0, atol=1e-12)
    return solution


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data(), fit_intercept=st.booleans(), values=st.sampled_from([2, 3, 5]))
def test_integer_data_full_of_ties(data, fit_intercept, values):
    n, d = data.draw(st.integers(1, 14)), data.draw(st.integers(1, 4))
    numbers = st.integers(0, values - 1)
    X = np.array(data.draw(st.lists(numbers, min_size=n * d, max_size=n * d)), float)
    y = np.array(data.draw(st.lists(numbers, min_size=n, max_size=n)), float)
    check(X.reshape(n, d) - values // 2, y - values // 2, fit_intercept)


@pytest.mark.grid(1)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_random_data(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 60), rng.integers(1, 8)
    scales = 10.0 ** rng.integers(-3, 4, d)
    X = (rng.standard_normal((n, d)) + rng.integers(-3, 4, d)) * scales
    check(X, rng.standard_normal(n) + X @ rng.standard_normal(d), fit_intercept)


@pytest.mark.parametrize("seed", range(20))
def test_repeated_rows_that_contradict_each_other(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (8, 3)).astype(float)[rng.integers(0, 8, 40)]
    check(X, rng.standard_normal(40))


@pytest.mark.parametrize("side", [3, 5, 12])
def test_grids_with_symmetric_targets(side):
    grid = np.stack(np.meshgrid(*[np.arange(side) - side // 2] * 2), axis=-1).reshape(-1, 2)
    X = grid.astype(float)
    check(X, np.abs(X).sum(axis=1))
    check(X, X[:, 0] * X[:, 1])
    check(np.column_stack([X, X**2, X[:, :1] * X[:, 1:]]), np.abs(X).max(axis=1))


def test_indicators_of_categories():
    """Each category is fitted by the middle of its targets, the widest one decides."""
    rng = np.random.default_rng(0)
    category, y = rng.integers(0, 20, 500), rng.standard_normal(500)
    solution = check(np.eye(20)[category], y)
    widest = max(np.ptp(y[category == k]) for k in range(20)) / 2
    assert_allclose(solution.certificate.objective, widest, rtol=1e-13)


@pytest.mark.parametrize(("n", "d", "density"), [(300, 20, 0.05), (1500, 50, 0.04)])
def test_sparse_rows_most_of_whose_multipliers_vanish(n, d, density):
    """Rows without entries decide together with the intercept; everything else is tied."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    solution = check(X, rng.standard_normal(n))
    assert len(solution.extra["rows"]) < d


def test_a_constant_is_the_middle_of_the_targets():
    y = np.array([3.0, -1.0, 8.0, 0.5])
    solution = solve(np.zeros((4, 1)), y)
    assert solution.intercept == [3.5]
    assert solution.certificate.objective == 4.5
    assert solution.extra["rows"].tolist() == [1, 2]
    assert_allclose(solution.extra["dual"][:, 0], [-0.5, 0.5], rtol=1e-14)


@pytest.mark.parametrize("rows", [300, 5000])
def test_more_rows_than_are_worked_on(rows):
    """Rows beside the working ones join until none errs more."""
    rng = np.random.default_rng(rows)
    X = rng.standard_normal((rows, 12))
    y = X @ rng.standard_normal(12) + rng.standard_cauchy(rows)
    solution = check(X, y)
    assert f"of {rows} treated one by one" in solution.notes[1]


def test_errors_that_least_squares_does_not_foresee():
    """The rows that decide err little in least squares: several rounds are needed."""
    rng = np.random.default_rng(3)
    x = np.linspace(-1, 1, 20_000)
    X = np.column_stack([x**k for k in range(1, 9)])
    solution = check(X, np.exp(np.sin(4 * x)) + 1e-3 * rng.uniform(-1, 1, len(x)))
    assert "1 round" not in solution.notes[0]


def test_levels_rise_with_every_exchange():
    rng = np.random.default_rng(0)
    Q, r = rng.standard_normal((80, 5)), rng.standard_normal(80)
    reference = Reference(Q, r, np.arange(6))
    levels = [reference.level]
    while not reference.optimise(1e-14, 1):
        levels.append(reference.level)
    assert len(levels) > 3
    assert (np.diff(levels) > -1e-14).all()
    assert_allclose(reference.level, np.abs(r - Q @ reference.v).max(), rtol=1e-12)
    assert_allclose(reference.signs * reference.multipliers @ Q[reference.rows], 0, atol=1e-14)


def test_a_limit_of_exchanges_is_told():
    rng = np.random.default_rng(0)
    Q, r = rng.standard_normal((80, 5)), rng.standard_normal(80)
    assert not Reference(Q, r, np.arange(6)).optimise(1e-14, 2)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coordinates_make_least_squares_trivial(fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4)) * [1, 1e5, 1e-5, 1] + [0, 1e7, 0, 3]
    X[:, 3] = X[:, 0] + 1e-6 * X[:, 3]
    y = rng.standard_normal(50)
    rows = Rows.of(as_design(X), y, fit_intercept)
    Q = rows.gather(slice(None))
    assert_allclose(Q.T @ Q / 50, np.eye(rows.size), atol=1e-6)
    v = rng.standard_normal(rows.size)
    assert_allclose(rows.errors(v), rows.residual - Q @ v, atol=1e-9)
    w, b = rows.coefficients(v)
    assert_allclose(y - X @ w - b, rows.errors(v), atol=1e-7)
    assert_allclose(rows.products(np.eye(rows.size)), Q, atol=1e-9)


def test_several_targets_are_solved_side_by_side():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 3)), rng.standard_normal((60, 2))
    both = solve(X, Y)
    single = [solve(X, y) for y in Y.T]
    assert_allclose(both.coef[:, 0], single[0].coef[:, 0], rtol=1e-12)
    assert_allclose(both.coef[:, 1], single[1].coef[:, 0], rtol=1e-12)
    assert_allclose(
        both.certificate.objective, sum(one.certificate.objective for one in single), rtol=1e-14
    )
    assert both.certificate.verify(X, Y)


def test_smooth_multipliers_are_the_gradient_of_the_smooth_maximum():
    rng = np.random.default_rng(0)
    r, mu, step = rng.standard_normal(9), 0.3, 1e-6

    def smooth(r):
        return mu * np.log(np.sum(2 * np.cosh(r / mu)))

    slopes = [(smooth(r + step * e) - smooth(r - step * e)) / (2 * step) for e in np.eye(9)]
    assert_allclose(smooth_multipliers(r, mu), slopes, atol=1e-9)
    assert np.abs(smooth_multipliers(r, 1e-5)).sum() == 1.0  # nothing overflows


@pytest.mark.parametrize("smoothing", [1e-2, 1e-3])
def test_the_smoothed_form_approaches_the_exact_answer(smoothing):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 3)), rng.standard_normal(100)
    exact = solve(X, y).certificate.objective
    smooth = solve(X, y, solver="smoothed_maximum", smoothing=smoothing).certificate
    assert smooth.gap <= smoothing * np.log(200) * 1.001
    assert exact - 1e-12 <= smooth.objective <= exact + smooth.gap
    assert smooth.verify(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_larger_random_data(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 15)) * (rng.random((2000, 15)) < 0.3)
    check(X, rng.standard_normal(2000))
