"""What fits claim of hard data, the checker must be able to prove; and they must claim enough."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from trueline import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LinearRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
)
from trueline.losses import SquaredEpsilonInsensitive
from trueline.penalties import L1


def test_absolute_values_alone_may_hold_coefficients_better_than_squares():
    """Columns of very different sizes: slopes beyond the strength, of coefficients near zero."""
    columns = [
        [2.2e3, -1.6e3, -2.7e1, 1.6e3],
        [-9.7e8, 2.7e8, 2.0e7, 1.6e9],
        [-8.2e5, -8.0e4, 1.6e5, -1.3e5],
        [1.7e8, 8.8e10, 1.0e12, -7.5e9],
    ]
    X, y, weight = np.transpose(columns), [0, 0, 1, 1], np.array([0.21, 0.24, 0.12, 0.025])
    model = LogisticRegression(C=0.45, l1_ratio=0.5, solver="saga", max_iter=10_000)
    model.fit(X, y, sample_weight=weight)
    assert model.verify(X, y, weight)


def test_quantiles_of_near_copies_have_no_gap_to_speak_of():
    """As many columns as rows, one of them nearly a multiple of another, all far from zero.

    Who fits no worse has residuals that are no larger: that bounds what a rest of V may hide.
    """
    bits = ["11101", "11110", "01001", "00111", "10101", "01001", "00010"]
    ones = np.array([[int(bit) for bit in row] for row in bits], dtype=float)
    copy = [49.999962, 50.500011, 49.999969, 50.500099, 50.0, 50.000053, 50.500061]
    X = np.column_stack([100.0 + ones, np.full(7, -7e5), copy]).astype(np.float32)
    y = np.array([0.301, 2.235, -1.896, -0.159, 0.153, -1.876, -0.284])
    weight = np.array([1.275, 1.0, 0.761, 0.462, 2.878, 0.319, 1.82])
    model = QuantileRegressor(alpha=0.0).fit(X, y, sample_weight=weight)
    constant = min(0.5 * weight @ np.abs(y - level) for level in y)
    assert model.certificate_.gap <= 1e-7 * constant
    assert model.verify(X, y, weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_perfect_fit_of_counts_proves_itself(dtype):
    """No deviance is negative: an objective of zero is the least there is."""
    X = np.array([[388.0, 404.0], [408.0, 404.0], [408.0, 416.0], [416.0, 400.0]])
    X = np.hstack([np.zeros((4, 2)), np.full((4, 1), 0.1), np.zeros((4, 1)), X]).astype(dtype)
    y, weight = np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.8, 1.0, 0.0, 2.2])
    model = PoissonRegressor(alpha=1e-6).fit(X, y, sample_weight=weight)
    certificate = model.certificate_
    assert certificate.gap <= certificate.objective + 4 * certificate.objective_rounding + 1e-280
    assert model.verify(X, y, weight)


@pytest.mark.parametrize("size", [1e15, 1e30, 1e60])
def test_a_penalty_that_is_lost_in_rounding_holds_nothing(size):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(15, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=15)
    model = ElasticNet().fit(X * size, y)
    assert model.certificate_.gap <= 1e-7 * model.certificate_.objective
    assert model.verify(X * size, y)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-120, 1e120, 1e200])
def test_columns_whose_squares_vanish_give_no_answer_in_silence(size):
    """Whichever solver takes over: squares that underflow would make the columns constant."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(15, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=15)
    with pytest.raises(ValueError, match="power of ten"):
        Lasso(alpha=0.1 * size).fit(X * size, y)


def test_coefficients_at_a_bound_leave_the_checker_its_own_rounding():
    """There the gap is linear in the rounding of the gradient, and so is what is claimed."""
    X = np.array(
        [
            [-0.10260281711816788, 0.4490271210670471, 1.068650484085083],
            [-0.023427613079547882, -0.9778615832328796, 1.8565187454223633],
            [-0.751338005065918, 0.14588645100593567, -1.4140937328338623],
            [0.9177119731903076, 1.397464394569397, 0.882390022277832],
        ],
        dtype=np.float32,
    )
    y = np.float32([0.5389317274, -1.4365712404, 1.4884815216, 1.7642606497])
    model = LinearRegression(positive=True).fit(X, y)
    assert model.certificate_.relative_gap < 1e-12
    assert model.verify(X, y)


@pytest.mark.parametrize("model", [Ridge(), RidgeClassifier()], ids=str)
def test_sparse_rows_stay_sparse_in_the_check_of_squared_losses(model, monkeypatch):
    """Ten thousand words of many texts, made dense, take minutes."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 80), density=0.05, format="csr", random_state=rng)
    y = rng.integers(0, 2, 300)
    fitted = model.fit(X, y)

    def made_dense(self, *arguments, **named):
        raise AssertionError("rows were made dense")

    monkeypatch.setattr(sp.csr_array, "toarray", made_dense)
    monkeypatch.setattr(sp.csr_matrix, "toarray", made_dense)
    assert fitted.verify(X, y)


def test_multipliers_of_one_side_alone_are_a_proof():
    """Of the first target every row but one is within epsilon, and that one by next to nothing."""
    x = [-0.6608113386093067, 0.09103668016665674, 1.8278194890440818, -1.201723063970077]
    x = np.array([*x, 0.4056375602494543, 0.0, 0.4595958855750977, 0.0, -0.17547161798270555])
    near = [1.0233129306420348, 0.7467975426714613, 0.47780107741277983, 0.4431559470039574]
    near = [*near, 0.6923906592330565, 0.6948167554387825, 0.5649566974724849]
    far = [1.0327335991298714, 0.823306359840714, -0.993459348266599, 1.9528965519205939]
    far = [*far, 0.6374592422659777, 0.8744648799971291, 0.193257950017662]
    y = np.array([[*near, 0.7447999319450721, 0.9130068562612674]])
    y = np.vstack([y, [*far, 0.6795411954647395, 1.0986789320332058]]).T
    X = np.column_stack([x, x])
    loss, penalty = SquaredEpsilonInsensitive(0.34211123840759167), L1(0.008081945568470831)
    assert LinearRegressor(loss, penalty).fit(X, y).verify(X, y)
