"""Columns of two numbers are zeros and ones in other units, and depend on each other as they do."""

from __future__ import annotations

import numpy as np
import pytest

from trueline import LinearRegression
from trueline.check.rows import Rows, centre, independent_columns


def dummies(n: int = 900) -> np.ndarray:
    """Indicators of two variables, both with all of their levels."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 5, n), rng.integers(0, 4, n)
    return np.hstack([(c[:, None] == np.arange(c.max() + 1)).astype(float) for c in levels])


def is_exact(X: np.ndarray, constant: bool) -> bool:
    rows = Rows(X, np.zeros(len(X)))
    return independent_columns(rows, np.arange(rows.d), centre(rows, constant), constant)[2]


def test_standardised_dummies_depend_exactly() -> None:
    D = dummies()
    X = (D - D.mean(axis=0)) / D.std(axis=0)
    assert is_exact(X, constant=True)
    y = np.random.default_rng(1).standard_normal(len(X))
    verification = LinearRegression().fit(X, y).verify(X, y)
    assert bool(verification)
    assert not verification.conditions


def test_scaled_dummies_depend_exactly_without_a_constant() -> None:
    assert is_exact(dummies() * np.linspace(0.1, 0.7, 9), constant=False)


def test_shifted_dummies_do_not_without_a_constant() -> None:
    """The constants are the combination's own then, and rounding decides whether it is one."""
    D = dummies()
    X = np.column_stack([D[:, 0] + 0.1, D[:, 1:5].sum(axis=1) * 0.3 + 0.7, np.full(len(D), 1 / 3)])
    assert not is_exact(X, constant=False)


@pytest.mark.parametrize("constant", [True, False])
def test_one_row_that_differs_is_no_dependence(constant: bool) -> None:
    D = dummies() * (np.linspace(0.1, 0.7, 9))
    D[np.argmax(D[:, 2]), 2] += 1e-16  # of a third number: not a dummy any more
    assert len(np.unique(D[:, 2])) == 3
    assert not is_exact(D, constant)
