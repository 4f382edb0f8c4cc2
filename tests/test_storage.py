"""Dense dummies are stored as sparse rows, small sparse data as a dense array."""

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import LinearRegression, LinearSVC, LogisticRegression
from trueline.design import as_suitable_design


def dummies(n=1500, groups=12, levels=7, order="C"):
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, levels, (n, groups))
    X = np.hstack([np.eye(levels)[column] for column in chosen.T])
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(n) > 0
    return np.asarray(X, order=order), y


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_are_the_same(order, dtype):
    X = dummies(order=order)[0].astype(dtype)
    X[3, 5], X[7, 11] = -2.5, np.nan
    design = as_suitable_design(X)
    assert design.is_sparse
    assert design.is_converted
    assert design.dtype == dtype
    np.testing.assert_array_equal(design.toarray(), X)
    np.testing.assert_array_equal(design.X.toarray(), X)


def test_rows_between_others_are_copied_once():
    X = np.repeat(dummies()[0], 2, axis=0)[::2, ::-1]
    np.testing.assert_array_equal(as_suitable_design(X).toarray(), X)


def test_full_arrays_and_large_sparse_matrices_stay():
    full = np.random.default_rng(0).standard_normal((2000, 60))
    assert not as_suitable_design(full).is_sparse
    # The rows of a glance are empty, the others full.
    full[:: -(-2000 // 64)] = 0.0
    assert not as_suitable_design(full).is_sparse
    for density, stays in ((0.4, True), (0.9, False)):  # of indices and numbers, numbers are less
        large = sp.random_array((2000, 60), density=density, rng=0, format="csr")
        assert as_suitable_design(large).is_sparse == stays


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(loss="hinge"), LogisticRegression()])
def test_explain_tells_of_it_and_the_proof_is_about_the_array(model):
    X, y = dummies()
    assert "dense, treated as sparse (0.1" in str(model.fit(X, y).explain())
    assert model.verify(X, y)
    few = sp.csr_array(X[:200])
    assert "sparse, treated as dense" in str(model.fit(few, y[:200]).explain())
    assert model.verify(few, y[:200])


def test_not_a_number_is_refused_in_the_words_of_dense_data():
    X, y = dummies()
    X[5, 5] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        LogisticRegression().fit(X, y)


def test_least_squares_keeps_dense_rows():
    X, y = dummies()
    assert "dense" in str(LinearRegression().explain(X, y.astype(float))).splitlines()[1]
    assert "treated" not in str(LinearRegression().explain(X, y.astype(float)))
