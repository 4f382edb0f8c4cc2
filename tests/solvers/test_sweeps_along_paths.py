"""Paths of multi-task penalties by sweeps alone: optimal, or left to other steps."""

import numpy as np
import pytest

from trueline.solvers.block_coordinate_descent.steps import descend_along


def swept(X, Y, linear, ridges, goal=1e-13, target=1e-6):
    """How many strengths are solved, and coefficients, gaps and sweeps of all of them."""
    d, k, m = X.shape[1], Y.shape[1], len(ridges)
    found = np.zeros((m, k, d)), np.full(m, np.inf), np.zeros(m, dtype=np.intp)
    terms = np.arange(d + 1), np.repeat(linear[:, None], d, axis=1), np.asarray(ridges)
    C, square = np.ascontiguousarray((X.T @ Y).T), float((Y**2).sum())
    count = descend_along(
        X.T @ X, C, square, *terms, goal * square, target * square, np.empty((k, d)), *found
    )
    return count, *found


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_conditions_of_a_minimum_hold_at_every_strength(share):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 7)), rng.standard_normal((60, 3))
    top = np.linalg.norm(X.T @ Y, axis=1).max()
    linear = top * np.geomspace(0.9, 0.01, 12)
    count, path, gaps, _ = swept(X, Y, linear, share * linear)
    assert count == len(linear)
    square = (Y**2).sum()
    for W, l, a, gap in zip(path, linear, share * linear, gaps, strict=True):
        R = Y - X @ W.T
        Q, norms = X.T @ R - a * W.T, np.linalg.norm(W, axis=0)
        inside = norms > 0
        np.testing.assert_allclose(
            Q[inside], l * (W / np.maximum(norms, 1e-300)).T[inside], atol=1e-4
        )
        assert (np.linalg.norm(Q, axis=1) <= l * (1 + 1e-6)).all()
        # The gap is that of the formula, at the dual point t R.
        pulls = np.linalg.norm(X.T @ R, axis=1)
        t = 1.0 if a else min(1.0, l / pulls.max())
        conjugate = (np.maximum(pulls - l, 0) ** 2).sum() / (2 * a) if a else 0.0
        primal = 0.5 * (R**2).sum() + l * norms.sum() + 0.5 * a * (W**2).sum()
        dual = t * (R * Y).sum() - 0.5 * t**2 * (R**2).sum() - conjugate
        assert gap == pytest.approx(primal - dual, abs=1e-12 * square)
        assert gap <= 1e-13 * square


def test_columns_nearly_the_same_are_left_to_other_steps():
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((60, 4)), rng.standard_normal((60, 2))
    X[:, 1] = X[:, 0] + 1e-5 * rng.standard_normal(60)
    linear = np.geomspace(10.0, 1e-6, 6)
    count, path, gaps, sweeps = swept(X, Y, linear, np.zeros(6))
    assert count < len(linear)
    assert (gaps[:count] <= 1e-13 * (Y**2).sum()).all()
    assert np.isfinite(path[count]).all()
    assert not sweeps[count + 1 :].any()
