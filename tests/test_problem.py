"""The problem: the one place where the objective is written down."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from trueline.design import as_design
from trueline.losses import Huber, Squared
from trueline.penalties import L1, L2, ElasticNet, NonNegative, NoPenalty
from trueline.problem import Problem

rng = np.random.default_rng(0)
n, d, k = 12, 3, 2
X, Y, S = rng.standard_normal((n, d)), rng.standard_normal((n, k)), rng.uniform(0.5, 2.0, n)
W, b = rng.standard_normal((d, k)), rng.standard_normal(k)


def problem(loss=None, penalty=None, weights=None, design=X):
    loss, penalty = loss or Squared(), penalty or NoPenalty()
    return Problem(as_design(design), Y, loss, penalty, True, weights)


def test_the_objective_is_a_sum_over_rows_and_targets_plus_the_penalty():
    got = problem(penalty=L2(3.0), weights=S).objective(W, b)
    expected = sum(
        S[i] * 0.5 * (X[i] @ W[:, t] + b[t] - Y[i, t]) ** 2 for i in range(n) for t in range(k)
    )
    assert got == pytest.approx(expected + 3.0 / 2 * np.sum(W**2), rel=1e-14)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.7)])
@pytest.mark.parametrize("penalty", [NoPenalty(), L1(2.0), ElasticNet(1.0, 0.3)])
def test_the_objective_splits_by_target(loss, penalty):
    whole = problem(loss, penalty, S)
    parts = whole.objective_per_target(W, b)
    assert parts.shape == (k,)
    assert whole.objective(W, b) == pytest.approx(parts.sum(), rel=1e-15)
    for t in range(k):
        alone = Problem(as_design(X), Y[:, [t]], loss, penalty, True, S)
        assert alone.objective(W[:, [t]], b[[t]]) == pytest.approx(parts[t], rel=1e-14)


def test_weight_two_is_the_row_twice_and_weight_zero_no_row():
    repeats = np.arange(n) % 3
    weighted = problem(weights=repeats.astype(float))
    rows = np.repeat(np.arange(n), repeats)
    repeated = Problem(as_design(X[rows]), Y[rows], Squared(), NoPenalty())
    assert weighted.objective(W, b) == pytest.approx(repeated.objective(W, b), rel=1e-14)
    assert weighted.total_weight == repeated.total_weight == len(rows)


def test_no_weights_are_weights_of_one():
    ones = problem(weights=np.ones(n))
    assert problem().objective(W, b) == ones.objective(W, b)
    assert problem().total_weight == ones.total_weight == n


def test_the_intercept_is_not_penalised():
    first, second = problem(penalty=L2(5.0)), problem(penalty=NoPenalty())
    shift = np.array([100.0, -3.0])
    change = first.objective(W, b + shift) - first.objective(W, b)
    assert change == pytest.approx(
        second.objective(W, b + shift) - second.objective(W, b), rel=1e-9
    )


def test_outside_of_the_domain_the_objective_is_infinite():
    assert problem(penalty=NonNegative()).objective(-np.abs(W), b) == np.inf
    assert np.isfinite(problem(penalty=NonNegative()).objective(np.abs(W), b))


@pytest.mark.parametrize("loss", [Squared(), Huber(0.7)])
@pytest.mark.parametrize("weights", [None, S], ids=["", "weighted"])
def test_the_gradient_is_the_slope_of_the_objective(loss, weights):
    here = problem(loss, NoPenalty(), weights)
    in_W, in_b, u = here.loss_gradient(W, b)
    assert u.shape == (n, k)
    h = 1e-6
    for j in range(d):
        for t in range(k):
            E = np.zeros((d, k))
            E[j, t] = h
            slope = (here.objective(W + E, b) - here.objective(W - E, b)) / (2 * h)
            assert in_W[j, t] == pytest.approx(slope, rel=1e-6, abs=1e-7)
    for t in range(k):
        e = h * np.eye(k)[t]
        slope = (here.objective(W, b + e) - here.objective(W, b - e)) / (2 * h)
        assert in_b[t] == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_scores_are_the_model():
    assert_allclose(problem().scores(W, b), X @ W + b, rtol=1e-15, atol=1e-15)


def test_storage_does_not_matter():
    dense, sparse = problem(weights=S), problem(weights=S, design=sp.csc_array(X))
    assert dense.objective(W, b) == pytest.approx(sparse.objective(W, b), rel=1e-14)


def test_the_formula_reads_as_the_objective():
    assert problem(Squared(), L2(1.0), S).formula == (
        "sum_i s_i [1/2 (z - y)^2] + alpha/2 ||w||^2,  z_i = x_i.w + b,  alpha = 1"
    )
    without = Problem(as_design(X), Y, Squared(), NoPenalty(), fit_intercept=False)
    assert without.formula == "sum_i [1/2 (z - y)^2],  z_i = x_i.w"


def test_sizes_are_those_of_the_data():
    here = problem()
    assert (here.n_samples, here.n_features, here.n_targets) == (n, d, k)


def test_a_problem_cannot_be_changed():
    with pytest.raises(AttributeError):
        problem().penalty = L1(1.0)
