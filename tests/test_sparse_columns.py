"""Products with the columns of a sparse design are those of the dense one, centred and weighted."""

import numpy as np
import pytest
import scipy.sparse as sp

from trueline.design import as_design
from trueline.design import sparse_columns as module
from trueline.design.columns import columns_of
from trueline.design.sparse_products import gram_of_rows


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def weights(request):
    return np.random.default_rng(1).integers(0, 3, 60).astype(float) if request.param else None


@pytest.fixture(params=[False, True], ids=["as it is", "centred"])
def both(request, weights, monkeypatch):
    """A sparse design, and the columns sqrt(s) (x - m) as a dense array."""
    # Small data are not cut into strands; here they are.
    monkeypatch.setattr(module, "_SMALL_WORK", 10)
    X = sp.random_array((60, 90), density=0.1, rng=np.random.default_rng(0), format="csc")
    dense = X.toarray()
    mean = np.average(dense, axis=0, weights=weights) if request.param else np.zeros(90)
    root = np.ones(60) if weights is None else np.sqrt(weights)
    return columns_of(as_design(X), weights, mean), root[:, None] * (dense - mean)


def test_correlations_with_all_columns(both):
    columns, V = both
    R = np.random.default_rng(2).standard_normal((3, 60))
    np.testing.assert_allclose(columns.correlations(R), R @ V, atol=1e-12)


def test_correlations_below_the_level_may_be_left_out_and_no_others(both):
    columns, V = both
    r = V[:, :5].sum(axis=1)  # orthogonal to the roots of the weights if V is centred
    known, level = V.T @ r, 0.5 * np.abs(V.T @ r).max()
    found = columns.correlations(r[None], level)[0]
    computed = np.isclose(found, known, atol=1e-12)
    assert computed[np.abs(known) >= level].all()
    assert (found[~computed] == 0).all()
    assert not computed.all()


def test_gathered_columns(both):
    columns, V = both
    first, second = np.array([7, 3, 50]), np.array([11, 80])
    np.testing.assert_allclose(columns.gather(first), V[:, first].T @ V[:, first], atol=1e-12)
    both_sets = np.concatenate([first, second])
    np.testing.assert_allclose(columns.gather(second), V[:, second].T @ V[:, both_sets], atol=1e-12)
    W = np.random.default_rng(3).standard_normal((2, 5))
    np.testing.assert_allclose(columns.combine(W), W @ V[:, both_sets].T, atol=1e-12)
    squares = columns.take_in(second)
    np.testing.assert_allclose(squares, (V[:, second] ** 2).sum(axis=0), atol=1e-12)


def test_gathered_columns_by_rows(both, weights):
    columns, V = both
    chosen = np.array([7, 3, 50, 11, 80])
    columns.take_in(chosen)
    root = np.ones(60) if weights is None else np.sqrt(weights)
    U = V[:, chosen] + root[:, None] * columns.mean[chosen]  # not centred
    x, r = np.random.default_rng(4).standard_normal(5), np.random.default_rng(5).standard_normal(60)
    rows = columns.by_rows
    np.testing.assert_allclose(rows.scores(x), U @ x, atol=1e-12)
    np.testing.assert_allclose(rows.sums(r), U.T @ r, atol=1e-12)
    scores, sums = rows.both(x)
    np.testing.assert_allclose(scores, U @ x, atol=1e-12)
    np.testing.assert_allclose(sums, U.T @ (U @ x), atol=1e-12)


def test_while_a_residual_moves_no_column_that_matters_is_left_out(both):
    columns, V = both
    random = np.random.default_rng(6)
    r = V[:, :5].sum(axis=1)
    left_out = 0
    for _ in range(20):
        r = r + 0.03 * V @ random.standard_normal(V.shape[1])
        known, level = V.T @ r, 0.4 * np.abs(V.T @ r).max()
        found = columns.correlations(r[None], level)[0]
        computed = np.isclose(found, known, atol=1e-12)
        assert computed[np.abs(known) >= level].all()
        left_out += (~computed).sum()
    assert left_out > 0


@pytest.mark.parametrize("count", range(2, 7))
def test_residuals_that_move_together_share_readings(both, count):
    columns, V = both
    random = np.random.default_rng(7)
    r = V[:, :5].sum(axis=1)
    for _ in range(10):
        steps = 0.03 * V @ random.standard_normal((V.shape[1], count))
        R = r + np.cumsum(steps.T, axis=0)
        r = R[-1]
        level = 0.4 * np.abs(R @ V).max()
        found = columns.correlations(R, level)
        computed = np.isclose(found, R @ V, atol=1e-12)
        assert computed[np.abs(R @ V) >= level].all()


def test_correlations_of_gathered_columns_can_be_given(both):
    columns, V = both
    chosen = np.array([7, 3, 50, 11, 80])
    columns.take_in(chosen)
    r = V[:, :5].sum(axis=1)
    given = columns.correlations_outside(r[None], (V[:, chosen].T @ r)[None], 0.0)[0]
    np.testing.assert_allclose(given, V.T @ r, atol=1e-12)
    # Those that were given once are computed from the rows when they are not.
    np.testing.assert_allclose(columns.correlations(r[None])[0], V.T @ r, atol=1e-12)


def test_gram_matrices_row_by_row(weights):
    random = np.random.default_rng(0)
    X = sp.random_array((60, 20), density=0.15, format="csr", random_state=random)
    A = X.toarray()
    expected = A.T @ (A if weights is None else weights[:, None] * A)
    found = gram_of_rows(X, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_products_with_several_vectors_are_those_of_the_dense_design(kind):
    # Enough entries for the compiled products.
    X = sp.random_array((400, 300), density=0.25, rng=np.random.default_rng(5), format=kind)
    design, dense = as_design(X), X.toarray()
    random = np.random.default_rng(6)
    W, U = random.standard_normal((300, 7)), np.asfortranarray(random.standard_normal((400, 7)))
    np.testing.assert_allclose(design.matvec(W), dense @ W, atol=1e-12)
    np.testing.assert_allclose(design.rmatvec(U), dense.T @ U, atol=1e-12)
    np.testing.assert_allclose(design.matvec(W[::-1]), dense @ W[::-1], atol=1e-12)
