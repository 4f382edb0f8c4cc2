"""Kernels with a second form, of whole arrays, until they are compiled: both are the same."""

import numpy as np
import pytest

from trueline.gaussian_process import covariance
from trueline.solvers.smo import inner


def as_written(kernel):
    return getattr(kernel, "py_func", kernel)


@pytest.mark.parametrize("triangle", [True, False])
@pytest.mark.parametrize("family", range(5))
@pytest.mark.parametrize("rows", [(0, 13), (4, 9)])
def test_covariances_and_their_derivatives(family, triangle, rows):
    rng = np.random.default_rng(family)
    A = rng.standard_normal((13, 3))
    A[3] = A[5]
    B = np.ascontiguousarray(A.T) if triangle else rng.standard_normal((3, 11))
    weight = rng.standard_normal((13, B.shape[1]))
    if triangle:
        weight[np.triu_indices(13, 1)] = np.nan  # not to be read
    vector = rng.standard_normal(13 if triangle else 0)
    terms = A, B, family, 1.3
    for by_column in (True, False):
        k = 5 if by_column else 3
        found = []
        for fill, contract in (
            (covariance.add_covariance, covariance.contract),
            (covariance._add_whole, covariance._contract_whole),
        ):
            out, total = np.ones((13, B.shape[1])), np.zeros(k)
            product = np.zeros((k if triangle else 0, 13))
            as_written(fill)(*terms, 0.7, triangle, *rows, out)
            given = (*terms, by_column, weight, vector, triangle, *rows, total, product)
            as_written(contract)(*given)
            found.append((out, total, product))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("split", [0, 9])
def test_steps_with_two_multipliers(epsilon, split):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 3))
    Q, t = X @ X.T + np.eye(20), rng.standard_normal(20)
    found = []
    for solve in (inner.solve_pairs, inner._solve_pairs_whole):
        room, beta = t.copy(), np.zeros(20)
        low, high = np.full(20, -1.0), np.full(20, 0.5)
        box = low, high, epsilon, split
        steps, worst = as_written(solve)(Q, Q.diagonal(), room, beta, *box, 1e-9, 10_000)
        np.testing.assert_allclose(room, t - Q @ beta, atol=1e-12)
        assert worst <= 1e-9
        assert steps > 0
        found.append(beta)
    np.testing.assert_allclose(*found, atol=1e-8)
