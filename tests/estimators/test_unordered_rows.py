"""Compressed rows whose entries are in any order, or stored in pieces, are the same data."""

import numpy as np
import pytest
import scipy.sparse as sp

import trueline
from trueline.design import SparseDesign

N, D = 1500, 120


def ordered():
    """More entries than are put in order without being asked for."""
    rng = np.random.default_rng(0)
    X = sp.random_array((N, D), density=0.15, format="csr", rng=rng)
    X.data = rng.standard_normal(X.nnz)
    y = X @ rng.standard_normal(D) + 0.3 * rng.standard_normal(N)
    return X, y


def shuffled(X, in_pieces):
    """The same matrix, every row in another order, and some entries as sums of two."""
    rng, X = np.random.default_rng(1), X.tocoo()
    row, column, value = X.row, X.col, X.data
    if in_pieces:
        some = rng.random(len(value)) < 0.2
        part = np.where(some, 0.25, 1.0)
        row, column = np.append(row, row[some]), np.append(column, column[some])
        value = np.append(value * part, 0.75 * value[some])
    order = np.lexsort((rng.random(len(value)), row))
    ends = np.append(0, np.cumsum(np.bincount(row, minlength=N)))
    parts = value[order], column[order].astype(np.int32), ends.astype(np.int32)
    return sp.csr_array(parts, shape=X.shape)


REGRESSORS = [
    trueline.Ridge(),
    trueline.Ridge(solver="conjugate_gradient", tol=1e-8),
    trueline.RidgeCV(),
    trueline.Lasso(alpha=0.01, tol=1e-8),
    trueline.LassoCV(alphas=8, cv=3, tol=1e-8),
    trueline.ElasticNet(alpha=0.01, tol=1e-8),
    trueline.HuberRegressor(tol=1e-8),
    trueline.LinearSVR(tol=1e-6),
    trueline.KernelRidge(),
]
CLASSIFIERS = [
    trueline.LogisticRegression(tol=1e-6),
    trueline.LogisticRegression(l1_ratio=1.0, tol=1e-6),
    trueline.LogisticRegression(l1_ratio=0.5, tol=1e-6),
    trueline.LinearSVC(tol=1e-6),
    trueline.LinearSVC(loss="hinge", tol=1e-6),
    trueline.LinearSVC(penalty="l1", tol=1e-6),
    trueline.RidgeClassifier(),
    trueline.Perceptron(max_iter=20, tol=None),
    trueline.OneVsRestClassifier(trueline.LogisticRegression(tol=1e-6)),
    trueline.SVC(kernel="linear", tol=1e-6),
]


@pytest.mark.grid(1)
@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("model", REGRESSORS + CLASSIFIERS, ids=repr)
def test_the_order_of_the_entries_does_not_matter(model, in_pieces):
    X, y = ordered()
    if any(model is one for one in CLASSIFIERS):
        y = np.digitize(y, [-1.0, 1.0]) if "Rest" in repr(model) else np.where(y > 0, "yes", "no")
    other = shuffled(X, in_pieces)
    before = [part.copy() for part in (other.data, other.indices, other.indptr)]
    scores = []
    for form in (X, other):
        model.fit(form, y)
        if hasattr(model, "certificate_"):
            assert model.verify(form, y)
        score = getattr(model, "decision_function", model.predict)
        scores.append(score(X))
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-4 * np.abs(scores[0]).max())
    for part, kept in zip((other.data, other.indices, other.indptr), before):
        np.testing.assert_array_equal(part, kept)


@pytest.mark.parametrize("in_pieces", [False, True])
def test_products_and_squares_are_those_of_the_dense_matrix(in_pieces):
    X, _ = ordered()
    design, dense = SparseDesign(shuffled(X, in_pieces)), X.toarray()
    rng = np.random.default_rng(2)
    w, u, s = rng.standard_normal(D), rng.standard_normal(N), rng.random(N)
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(design.matvec(w), dense @ w, **near)
    np.testing.assert_allclose(design.rmatvec(u), dense.T @ u, **near)
    np.testing.assert_allclose(design.row_squares(None), (dense**2).sum(axis=1), **near)
    np.testing.assert_allclose(design.column_squares(s, None), s @ dense**2, **near)
    np.testing.assert_array_equal(design.by_rows.toarray(), design.by_columns.toarray())
    for form in (design.by_rows, design.by_columns):
        assert form.has_sorted_indices
