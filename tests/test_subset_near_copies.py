"""Columns that nearly depend on each other: the best of all supports all the same.

The right-hand side is the best of all supports by exact rational arithmetic.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from exact import fractions, moments
from trueline import BestSubset, L0Regression
from trueline.best_subset.elimination import (
    best_few_doubled,
    centred_products,
    eliminate_doubled,
    is_positive,
)


def exact_sums(X, y, weights, fit_intercept):
    """Gram matrix, cross products and half the square of the target, without rounding."""
    if fit_intercept:
        found = moments(X, y[:, None], weights)
        return found["gram"], found["cross"][:, 0], found["y_square"][0] / 2
    X, y, s = fractions(X), fractions(y), fractions(np.ones(len(y)) if weights is None else weights)
    return (s[:, None] * X).T @ X, (s * y) @ X, (s * y) @ y / 2


def exact_gain(G, c, support):
    """1/2 c_S'G_SS^{-1}c_S, by elimination; columns that depend on others add nothing."""
    G, c, gain = G[np.ix_(support, support)].copy(), c[list(support)].copy(), Fraction(0)
    for i in range(len(c)):
        if G[i, i] == 0:
            continue
        gain += c[i] ** 2 / G[i, i] / 2
        for j in range(i + 1, len(c)):
            factor = G[j, i] / G[i, i]
            G[j] = G[j] - factor * G[i]
            c[j] = c[j] - factor * c[i]
    return gain


def exact_best(X, y, k, weights, fit_intercept, alpha=0.0):
    """The values of all supports of at most k columns, and the value without columns."""
    G, c, constant = exact_sums(X, y, weights, fit_intercept)
    supports = [s for size in range(k + 1) for s in itertools.combinations(range(X.shape[1]), size)]
    price = Fraction(alpha)
    return {s: constant - exact_gain(G, c, s) + price * len(s) for s in supports}, constant


def near_copies(apart, seed=0, n=14, d=5, offset=0.0, scales=1.0, constant=False):
    """The first two columns agree up to ``apart``, and the target lies along their difference."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    difference = rng.standard_normal(n)
    y = X[:, 0] + difference + 0.01 * rng.standard_normal(n)
    X[:, 1] = -2.5 * X[:, 0] + apart * difference
    if constant:
        X[:, -1] = 3.0
    return (X + offset) * scales, y


def check(model, X, y, k, weights=None, fit_intercept=True, alpha=0.0):
    """The support is the best one, the bound is below it, and the certificate verifies."""
    values, constant = exact_best(X, y, k, weights, fit_intercept, alpha)
    best = min(values, key=values.get)
    model.fit(X, y, sample_weight=weights)
    certificate = model.certificate_
    reached = values[tuple(model.support_.tolist())]
    assert float(reached - values[best]) <= 1e-11 * float(constant)  # ties, by the documentation
    assert certificate.kind == "search"
    assert Fraction(certificate.lower_bound) <= values[best]
    # The fit on that support, up to what predictions in double precision show of it.
    rounding = 2 * certificate.objective_rounding
    assert_allclose(certificate.objective, float(reached), rtol=1e-9, atol=rounding)
    assert certificate.gap <= 2e-9 * float(constant) + rounding
    assert model.proven_
    assert model.verify(X, y, sample_weight=weights)
    return model


@pytest.mark.grid(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("apart", [1e-3, 3e-6, 1e-7, 1e-9])
def test_the_best_support_may_hold_two_near_copies(apart, k, fit_intercept):
    X, y = near_copies(apart)
    model = check(BestSubset(k=k, fit_intercept=fit_intercept), X, y, k, None, fit_intercept)
    assert {0, 1} <= set(model.support_.tolist())


@pytest.mark.grid(2)
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("scales", [1.0, np.array([1e-6, 1e6, 1.0, 1e3, 1e-3])], ids=["1", "many"])
@pytest.mark.parametrize("apart", [1e-3, 1e-5])
def test_offsets_scales_weights_and_constants(apart, offset, scales):
    X, y = near_copies(apart, seed=1, offset=offset, scales=scales, constant=True)
    weights = np.random.default_rng(2).uniform(0.1, 3.0, len(y))
    check(BestSubset(k=3), X, y, 3, weights)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_a_price_per_column(alpha, offset):
    X, y = near_copies(1e-4, seed=3, offset=offset)
    check(L0Regression(alpha), X, y, 5, alpha=alpha)


@pytest.mark.parametrize("seed", range(8))
def test_columns_with_offsets(seed):
    """No two of them alike: the offset alone magnifies the rounding of sums."""
    rng = np.random.default_rng(seed)
    X = 1e6 + rng.standard_normal((12, 6)) * 10.0 ** rng.uniform(-2, 2, 6)
    y = (X[:, 0] - 1e6) / X[:, 0].std() + 0.1 * rng.standard_normal(12)
    check(BestSubset(k=3), X, y, 3)


def test_near_copies_among_many_columns_are_branched_on():
    """So many supports that they are not looked at one by one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 40))
    difference = rng.standard_normal(80)
    X[:, 21] = X[:, 20] + 1e-6 * difference
    y = X[:, :4].sum(axis=1) + X[:, 20] + difference + 0.1 * rng.standard_normal(80)
    model = BestSubset(k=6).fit(X, y)
    assert model.support_.tolist() == [0, 1, 2, 3, 20, 21]
    assert (model.certificate_.kind, model.proven_) == ("search", True)
    assert model.verify(X, y).holds  # if the search, which is not repeated, is right


def test_what_doubled_precision_cannot_tell_is_stated():
    """Columns that agree to the last digit but one: the claim is about all other supports."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    X[:, 1] = X[:, 0] * (1 + 4e-15 * rng.standard_normal(20))
    model = BestSubset(k=2).fit(X, rng.standard_normal(20))
    assert model.certificate_.kind == "conditioned search"
    assert "eigenvalues of" in str(model.explain())


def doubled_task(apart):
    X, y = near_copies(apart)
    Z = np.column_stack([X, y])
    _, _, G, low = centred_products(Z, np.ones(len(y)), Z.mean(axis=0), True)
    exact = exact_sums(X, y, None, True)
    return G[:5, :5].copy(), low[:5, :5].copy(), G[:5, 5].copy(), low[:5, 5].copy(), exact


def error(high, low, exact):
    return max(abs(float(Fraction(h) + Fraction(e) - x)) for h, e, x in zip(high, low, exact))


def test_columns_that_differ_by_a_rounded_constant_are_no_proof_for_all_supports():
    first = np.array([14.39288583788824, 15.715653005469042, 16.96979418140282])
    first = np.append(first, [15.20604050303259, 15.14919551281708])
    X = np.column_stack([first, first + 11.30995513401033])
    y = 1.706966868536135 * first - 28.68848358499957
    y = y + 1e-3 * np.array([1.0, -1.0, 0.5, 0.5, -1.0])
    model = BestSubset(k=2).fit(X, y)
    assert model.certificate_.kind == "conditioned search"
    assert model.verify(X, y).holds


def test_sums_have_twice_the_digits():
    G, low, c, c_low, (exact, cross, _) = doubled_task(1e-9)
    assert error(G.ravel(), low.ravel(), exact.ravel()) < 1e-29
    assert error(c, c_low, cross) < 1e-29


def test_elimination_in_doubled_precision():
    G, low, c, c_low, (exact, cross, _) = doubled_task(1e-9)
    inside, free = np.array([0]), np.array([1, 2])
    P, P_low, r, r_low, gain, counts = eliminate_doubled(G, low, c, c_low, inside, free)
    left = exact - np.outer(exact[0], exact[0]) / exact[0, 0]
    rest = cross - exact[0] / exact[0, 0] * cross[0]
    assert counts.all()
    assert error(P.ravel(), P_low.ravel(), left[1:3, 1:3].ravel()) < 1e-27
    assert error(r, r_low, rest[1:3]) < 1e-27
    assert_allclose(gain, float(exact_gain(exact, cross, (0,))), rtol=1e-15)


def test_the_best_few_and_their_least_determinant():
    G, low, c, c_low, (exact, cross, _) = doubled_task(1e-8)
    gain, chosen, volume = best_few_doubled(G, low, c, c_low, np.zeros(5), 3, 0.0)
    supports = list(itertools.combinations(range(5), 3))
    best = max(supports, key=lambda s: exact_gain(exact, cross, s))
    assert tuple(chosen) == best
    assert_allclose(gain, float(exact_gain(exact, cross, best)), rtol=1e-12)

    def determinant(support):
        A, out = exact[np.ix_(support, support)].copy(), Fraction(1)
        for i in range(3):
            out *= A[i, i] / exact[support[i], support[i]]
            for j in range(i + 1, 3):
                A[j] = A[j] - A[j, i] / A[i, i] * A[i]
        return float(out)

    assert_allclose(volume, min(determinant(s) for s in supports), rtol=1e-9)


def test_a_shifted_matrix_is_positive_below_its_least_eigenvalue():
    G, low, *_ = doubled_task(1e-6)
    scale = np.sqrt(G.diagonal())
    unit = np.diag(2.0 ** -np.round(np.log2(scale)))  # exact
    G, low = unit @ G @ unit, unit @ low @ unit
    assert is_positive(G, low, 1e-14)
    assert not is_positive(G, low, 1e-10)
