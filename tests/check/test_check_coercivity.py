"""The lower bound on the smallest eigenvalue, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from trueline.check.rows import Rows, Table, centre, coercivity, inverse_basis


def about_means(X, s=None, columns=None):
    rows = Rows(X, np.zeros(X.shape[0]), s)
    return Table(rows, centre(rows, True), columns)


def exact_gram(X, s, M, centred=True):
    """M^T X_c^T S X_c M, each entry correctly rounded."""
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    weights = [Fraction(v) for v in s.tolist()]
    total = sum(weights)
    d, r = M.shape
    mean = [Fraction(0)] * d
    if centred:
        mean = [sum(w * x[j] for w, x in zip(weights, rows)) / total for j in range(d)]
    basis = [[Fraction(v) for v in row] for row in M.tolist()]
    Z = [[sum((x[j] - mean[j]) * basis[j][k] for j in range(d)) for k in range(r)] for x in rows]
    entries = [
        [float(sum(w * z[a] * z[b] for w, z in zip(weights, Z))) for b in range(r)]
        for a in range(r)
    ]
    return np.array(entries)


@pytest.mark.grid(2)
@pytest.mark.parametrize("scale", [1e-170, 1e-8, 1.0, 1e8, 1e140])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("weight", [1e-100, 1.0, 1e100])
def test_the_bound_is_below_the_eigenvalue_and_close_to_it(scale, offset, weight):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30, 3)) + offset) * scale * np.array([1.0, 1e-5, 1e5])
    s = rng.uniform(0.5, 2.0, 30) * weight
    M = 1.0 / np.ptp(X, axis=0) / np.sqrt(weight)
    nu, longest = coercivity(about_means(X, s), M, True)
    gram = exact_gram(X, s, np.diag(M))
    least = np.linalg.eigvalsh(gram)[0]
    assert least * (1 - 1e-11) <= nu <= least
    rows = np.linalg.norm((X - np.average(X, axis=0, weights=s)) * M, axis=1)
    assert rows.max() <= longest <= 1.5 * rows.max()


@pytest.mark.parametrize("centred", [True, False])
def test_the_basis_may_be_any_matrix(centred):
    rng = np.random.default_rng(1)
    X, s = rng.normal(size=(40, 4)) + 3.0, np.ones(40)
    M = rng.normal(size=(4, 2)) * [0.1, 10.0]
    table = about_means(X) if centred else Table(Rows(X, np.zeros(40)), np.zeros(4))
    least = np.linalg.eigvalsh(exact_gram(X, s, M, centred))[0]
    assert least * (1 - 1e-8) <= coercivity(table, M, centred)[0] <= least


@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e140])
def test_the_inverse_of_a_factor_makes_the_matrix_the_identity(scale):
    X = np.random.default_rng(5).normal(size=(40, 4)) * scale
    nu, longest, M = inverse_basis(about_means(X), True)
    least = np.linalg.eigvalsh(exact_gram(X, np.ones(40), M))[0]
    assert 1 - 1e-11 <= nu <= least
    rows = np.linalg.norm((X - X.mean(axis=0)) @ M, axis=1)
    assert rows.max() <= longest <= 1.5 * rows.max()


def test_columns_weights_and_penalty():
    rng = np.random.default_rng(2)
    X, s = rng.normal(size=(50, 5)), rng.uniform(size=50)
    M, some = np.array([0.2, 0.3]), np.array([0, 3])
    nu = coercivity(about_means(X, s, some), M, True)[0]
    least = np.linalg.eigvalsh(exact_gram(X[:, some], s, np.diag(M)))[0]
    assert least * (1 - 1e-11) <= nu <= least
    assert coercivity(about_means(sp.csr_array(X), s, some), M, True)[0] == nu
    lifted = coercivity(about_means(0 * X, s, some), M, True, np.full(2, 4.0))[0]
    assert lifted == pytest.approx(4.0 * 0.2**2, rel=1e-12)


def test_dependent_columns_have_no_bound():
    X = np.random.default_rng(3).normal(size=(20, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    assert coercivity(about_means(X), np.ones(3), True)[0] == 0.0
    X[:, 2] = 7.0
    assert coercivity(about_means(X), np.ones(3), True)[0] == 0.0
    as_they_are = Table(Rows(X, np.zeros(20)), np.zeros(3))
    assert coercivity(as_they_are, np.ones(3), False)[0] > 0.0


@pytest.mark.parametrize(
    "M",
    [np.full(3, 1.6e-162), np.zeros((3, 1)), np.full((3, 1), 1e-310), np.full(3, 5e-324)],
    ids=["tiny", "zero", "subnormal", "smallest"],
)
def test_a_basis_out_of_range_has_no_bound(M):
    with np.errstate(all="ignore"):
        table = about_means(np.random.default_rng(4).normal(size=(20, 3)))
        assert coercivity(table, M, True)[0] == 0.0
