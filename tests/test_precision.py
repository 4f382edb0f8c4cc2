"""Doubled precision against exact fractions."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import fractions
from trueline.numerics.precision import (
    SlicedRows,
    residual_doubled,
    sum_doubled,
    transposed_product_doubled,
    two_product,
    two_sum,
)

anything = st.floats(-1e300, 1e300)
# Products whose errors are neither below the smallest nor above the largest double.
factors = st.floats(-1e140, 1e140).filter(lambda x: x == 0 or abs(x) > 1e-130)


@given(anything, anything)
@settings(deadline=None, max_examples=300)
def test_two_sum_is_exact(a, b):
    s, e = two_sum(a, b)
    assert s == a + b
    assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)


@given(factors, factors)
@settings(deadline=None, max_examples=300)
def test_two_product_is_exact(a, b):
    p, e = two_product(a, b)
    assert p == a * b
    assert Fraction(p) + Fraction(e) == Fraction(a) * Fraction(b)


@given(st.lists(st.floats(-1e100, 1e100), max_size=40))
@settings(deadline=None, max_examples=200)
def test_sum_doubled_is_accurate_to_doubled_precision(terms):
    hi, lo = sum_doubled(np.array(terms))
    exact = sum(map(Fraction, terms), Fraction(0))
    size = sum(abs(Fraction(term)) for term in terms)
    unit = Fraction(sys.float_info.epsilon)
    # Ogita, Rump and Oishi, prop. 4.5, as a tree: n^2 u^2 of the magnitudes at worst.
    assert abs(Fraction(float(hi)) + Fraction(float(lo)) - exact) <= (
        (len(terms) + 2) ** 2 * unit**2 * size + Fraction(sys.float_info.min)
    )


def test_sum_doubled_survives_total_cancellation():
    hi, lo = sum_doubled(np.array([1e100, 1.0, -1e100, 1e-30]))
    assert float(hi) + float(lo) == 1.0


def test_sum_of_nothing_is_zero():
    hi, lo = sum_doubled(np.empty((0, 3)))
    assert hi.tolist() == lo.tolist() == [0.0, 0.0, 0.0]


def relative_error(hi, lo, exact, size):
    return max(
        float(abs(Fraction(h) + Fraction(low) - value) / magnitude)
        for h, low, value, magnitude in zip(hi.tolist(), lo.tolist(), exact, size, strict=True)
    )


def data(n, d, kind):
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-8, 9, (n, d))
    if kind == "vandermonde":
        X = np.vander(np.linspace(1.0, 2.0, n), d)
    w, b = rng.standard_normal(d), 0.3
    return X, w, b, rng.standard_normal(n)


@pytest.mark.parametrize("kind", ["random", "vandermonde"])
@pytest.mark.parametrize("shape", [(50, 8), (1, 1), (7, 40)])
def test_residual_has_thirty_digits(kind, shape):
    X, w, b, y = data(*shape, kind)
    y = X @ w + b  # the residual is rounding alone: plain arithmetic has no digit of it
    hi, lo = residual_doubled(X, w, b, y)
    exact = fractions(y) - fractions(X) @ fractions(w) - Fraction(b)
    size = abs(fractions(y)) + abs(fractions(X)) @ abs(fractions(w)) + abs(Fraction(b))
    assert relative_error(hi, lo, exact, size) < 1e-30
    assert np.all(hi == hi + lo)


def test_residual_of_a_matrix_given_in_two_parts():
    X, w, b, y = data(30, 6, "random")
    low = 1e-17 * X * np.random.default_rng(0).uniform(-1, 1, X.shape)
    hi, lo = residual_doubled(X, w, b, y, low)
    matrix = fractions(X) + fractions(low)
    exact = fractions(y) - matrix @ fractions(w) - Fraction(b)
    size = abs(fractions(y)) + abs(matrix) @ abs(fractions(w)) + abs(Fraction(b))
    assert relative_error(hi, lo, exact, size) < 1e-30


@pytest.mark.grid(2)
@pytest.mark.parametrize("kind", ["random", "vandermonde"])
@pytest.mark.parametrize("shape", [(50, 8), (1, 1), (2500, 7)])
@pytest.mark.parametrize("two_parts", [False, True])
def test_transposed_product_has_thirty_digits(kind, shape, two_parts):
    X, _, _, hi = data(*shape, kind)
    lo = 1e-17 * hi
    low = 1e-17 * X if two_parts else None
    got = transposed_product_doubled(X, hi, lo, low)
    vector = fractions(hi) + fractions(lo)
    matrix = fractions(X) if low is None else fractions(X) + fractions(low)
    matrix = np.column_stack([matrix, fractions(np.ones(len(X)))])  # the plain sum comes along
    size = abs(matrix).T @ abs(vector)
    assert relative_error(*got, matrix.T @ vector, size) < 1e-29


def test_blocks_of_rows_do_not_show_in_the_residual():
    # More rows than one block holds; each row stands alone.
    X, w, b, y = data(9000, 5, "random")
    hi, lo = residual_doubled(X, w, b, y)
    for rows in (slice(0, 1), slice(3270, 3290), slice(8990, 9000)):
        alone = residual_doubled(X[rows], w, b, y[rows])
        assert np.array_equal(hi[rows], alone[0])
        assert np.array_equal(lo[rows], alone[1])


def test_single_precision_matrices_are_widened_first():
    X, w, b, y = data(20, 4, "random")
    X = X.astype(np.float32)
    assert np.array_equal(residual_doubled(X, w, b, y), residual_doubled(X.astype(float), w, b, y))


def test_inputs_are_not_modified():
    X, w, b, y = data(20, 4, "random")
    before = [array.copy() for array in (X, w, y)]
    residual_doubled(X, w, b, y)
    transposed_product_doubled(X, y, y)
    for array, copy in zip((X, w, y), before, strict=True):
        assert np.array_equal(array, copy)


def exact_gradient(X, s, w, b, y):
    """[X, 1]^T S r and r^T S r in fractions, for X, w and b that are fractions."""
    A = np.column_stack([X, fractions(np.ones(len(X)))])
    r = fractions(y) - A @ np.append(w, b)
    weighted = fractions(s) * r
    return A.T @ weighted, weighted @ r


@pytest.mark.grid(2)
@pytest.mark.parametrize("shape", [(50, 8), (1, 1), (2500, 3), (7, 40)])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("two_parts", [False, True])
def test_gradient_by_slices_has_thirty_digits(shape, is_weighted, two_parts):
    n, d = shape
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-8, 9, d)
    w, b = rng.standard_normal(d) / np.abs(X).max(axis=0), 0.3
    s = 10.0 ** rng.integers(-6, 7, n) * rng.uniform(1, 2, n) if is_weighted else np.ones(n)
    s[1:2] = 0.0 if is_weighted else 1.0
    low = 1e-17 * X * rng.uniform(-1, 1, X.shape) if two_parts else None
    y = X @ w + b  # the residual is rounding alone
    norms = np.sqrt(np.append(s @ X**2, s.sum()))
    rows = SlicedRows(X, s if is_weighted else None, norms, low)
    high, rest, square = rows.gradient(w, b, y, slice(0, n), None, 0.0)
    matrix = fractions(X) if low is None else fractions(X) + fractions(low)
    exact, exact_square = exact_gradient(matrix, s, fractions(w), Fraction(b), y)
    reach = Fraction(float(norms @ np.append(np.abs(w), b) + np.sqrt(s @ y**2)))
    assert relative_error(high, rest, exact, fractions(norms) * reach) < 1e-30
    assert square == pytest.approx(float(exact_square), rel=1e-12)


def test_low_parts_of_coefficients_count():
    X, w, b, y = data(30, 6, "vandermonde")
    norms = np.sqrt(np.append(np.sum(X**2, axis=0), len(X)))
    got = SlicedRows(X, None, norms).gradient(w, b, y, slice(0, 30), 1e-17 * w, 1e-17)
    doubled = fractions(w) + fractions(1e-17 * w), Fraction(b) + Fraction(1e-17)
    exact, _ = exact_gradient(fractions(X), np.ones(30), *doubled, y)
    size = fractions(norms) * Fraction(float(norms @ np.append(np.abs(w), b) + np.linalg.norm(y)))
    assert relative_error(*got[:2], exact, size) < 1e-30
