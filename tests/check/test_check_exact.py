"""Integers, null spaces and dot products without rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueline.check.arithmetic import as_integers, exact_dot, null_space

doubles = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(doubles, min_size=1, max_size=6))
def test_integers_are_the_numbers(values):
    whole, power = as_integers(np.array(values))
    assert [Fraction(int(v)) * Fraction(2) ** power for v in whole] == [Fraction(v) for v in values]


@given(st.lists(doubles, min_size=2, max_size=5), st.lists(doubles, min_size=2, max_size=5))
def test_a_dot_product_is_exact(x, g):
    size = min(len(x), len(g))
    expected = sum((Fraction(a) * Fraction(b) for a, b in zip(x[:size], g[:size])), Fraction(0))
    assert exact_dot(np.array(x[:size]), g[:size]) == expected


@given(st.integers(0, 2**30), st.integers(1, 6), st.integers(1, 6), st.integers(0, 3))
def test_a_null_space_is_one_and_is_complete(seed, m, n, shared):
    rng = np.random.default_rng(seed)
    A = rng.integers(-4, 5, (m, n))
    A[:, : min(shared, n)] = A[:, :1]
    vectors = null_space(A.astype(object))
    assert len(vectors) == n - np.linalg.matrix_rank(A)
    for v in vectors:
        assert (A.astype(object) @ v == 0).all()
    if vectors:
        assert np.linalg.matrix_rank(np.array(vectors, dtype=float)) == len(vectors)


def test_without_rows_everything_is_null():
    assert len(null_space(np.zeros((0, 3), dtype=object))) == 3


@pytest.mark.parametrize("values", [[0.0, 0.0], [5e-324, 1.7e308]])
def test_extremes(values):
    whole, power = as_integers(np.array(values))
    assert [Fraction(int(v)) * Fraction(2) ** power for v in whole] == [Fraction(v) for v in values]
