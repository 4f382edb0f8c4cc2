"""The lower bound on the smallest eigenvalue, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from trueline.check.coercivity import coercivity
from trueline.check.rows import Rows
from trueline.check.verdict import Refused


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
    nu, M = coercivity(Rows(X, np.zeros(30), s))
    least = np.linalg.eigvalsh(exact_gram(X, s, np.diag(M)))[0]
    assert least * (1 - 1e-11) <= nu <= least


@pytest.mark.parametrize("centred", [True, False])
def test_a_given_basis_is_scaled_and_its_span_is_kept(centred):
    rng = np.random.default_rng(1)
    X, s = rng.normal(size=(40, 4)) + 3.0, np.ones(40)
    basis = rng.normal(size=(4, 2)) * [1e-90, 1e90]
    nu, M = coercivity(Rows(X, np.zeros(40)), basis=basis, centred=centred)
    ratio = M / basis
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-14)
    least = np.linalg.eigvalsh(exact_gram(X, s, M, centred))[0]
    assert least * (1 - 1e-9) <= nu <= least


def test_columns_weights_and_penalty():
    rng = np.random.default_rng(2)
    X, s = rng.normal(size=(50, 5)), rng.uniform(size=50)
    rows = Rows(X, np.zeros(50), s)
    some = np.array([0, 3])
    assert coercivity(rows, some)[0] == coercivity(rows, np.isin(np.arange(5), some))[0]
    sparse = Rows(sp.csr_array(X), np.zeros(50), s)
    assert coercivity(sparse, some)[0] == coercivity(rows, some)[0]
    lifted, M = coercivity(rows, some, weights=0 * s, curvature=4.0)
    np.testing.assert_allclose(lifted / M**2, 4.0, rtol=1e-12)


def test_dependent_columns_have_no_bound():
    X = np.random.default_rng(3).normal(size=(20, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    assert coercivity(Rows(X, np.zeros(20)))[0] == 0.0
    X[:, 2] = 7.0
    assert coercivity(Rows(X, np.zeros(20)))[0] == 0.0
    assert coercivity(Rows(X, np.zeros(20)), centred=False)[0] > 0.0


@pytest.mark.parametrize(
    "basis",
    [np.full(3, 1.6e-162), np.zeros((3, 1)), np.full((3, 1), 1e-310), np.full(3, 5e-324)],
    ids=["tiny", "zero", "subnormal", "smallest"],
)
def test_a_basis_out_of_range_is_refused(basis):
    rows = Rows(np.random.default_rng(4).normal(size=(20, 3)), np.zeros(20))
    with np.errstate(all="ignore"), pytest.raises(Refused):
        coercivity(rows, basis=basis)
