"""The smooth functions near losses with kinks: Huber's function and the log-sum-exp."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import logsumexp

from trueline import LinearRegressor
from trueline.checks import LOSS_LAWS
from trueline.checks.losses import LossPoints
from trueline.losses import (
    Absolute,
    EpsilonInsensitive,
    LogSumExp,
    MaximumError,
    Quantile,
    Smoothed,
    Squared,
    smoothed,
)

ZERO = np.zeros(5)
R = np.array([-3.0, -0.5, 0.0, 0.25, 2.0])


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("base", [Absolute(), Quantile(0.3), EpsilonInsensitive(0.5)], ids=repr)
def test_smoothed_losses_obey_the_laws_and_stay_within_the_distance(base, mu):
    loss = Smoothed(base, mu)
    # At targets where y + kink is exact.
    assert LOSS_LAWS.check(
        loss, LossPoints.of(loss, (0.0, 1.0) if len(base.kinks) == 1 else (0.0,))
    )
    lost = base.value(ZERO, R) - loss.value(ZERO, R)
    assert (lost >= -1e-12).all()
    assert (lost <= mu / 2 * base.slope_bound**2 + 1e-12).all()


def test_the_smoothed_absolute_error_is_hubers_function_worked_by_hand():
    loss = smoothed(Absolute(), 0.5)
    assert_allclose(loss.value(ZERO, R), [2.75, 0.25, 0.0, 0.0625, 1.75], atol=1e-15)
    assert_allclose(loss.gradient(ZERO, R), [-1.0, -1.0, 0.0, 0.5, 1.0])
    assert loss.formula == "r^2/(2 mu) if |r| <= mu else |r| - mu/2, r = z - y"
    assert set(loss.kinks) == {-0.5, 0.5}


@pytest.mark.parametrize("mu", [0.05, 0.5, 5.0])
def test_log_sum_exp_is_above_the_maximum_by_at_most_mu_log_2n(mu):
    loss, z, y = LogSumExp(mu), R[:, None], ZERO[:, None]
    # Differences over 1e-5 (1 + abs(z)) cannot tell the slope of a curve that bends within less.
    assert LOSS_LAWS.check(loss, LossPoints.of(loss, (0.0, 1.0)))
    total = loss.total(loss.value(y, z), None)
    assert_allclose(total, mu * logsumexp(np.concatenate([R, -R]) / mu), rtol=1e-14)
    assert 3.0 <= total[0] <= 3.0 + mu * np.log(10)
    slope = approx_fprime(R, lambda r: mu * logsumexp(np.concatenate([r, -r]) / mu), 1e-7)
    assert_allclose(loss.total_gradient(y, z, None)[:, 0], slope, atol=1e-6)


def test_rows_without_weight_have_no_part_in_the_smooth_maximum():
    loss, z, y = LogSumExp(0.1), R[:, None], ZERO[:, None]
    weights = np.array([0.0, 1.0, 5.0, 1.0, 1.0])
    values = loss.value(y, z)
    assert_allclose(loss.total(values, weights), loss.total(values[1:], None))
    assert_allclose(loss.total_gradient(y, z, weights)[0], 0.0)
    largest = MaximumError().total_gradient(y, z, weights)
    assert_allclose(largest[:, 0], [0, 0, 0, 0, 1])


def test_what_cannot_be_smoothed_is_refused():
    with pytest.raises(ValueError, match="not made of straight lines"):
        smoothed(Squared(), 0.1)
    for mu in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="positive finite"):
            LogSumExp(mu)


@pytest.mark.parametrize("penalty", [None, "l2", "l1"])
@pytest.mark.parametrize("base", [Absolute(), Quantile(0.8)], ids=repr)
def test_fits_of_smoothed_losses_are_proven(base, penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.standard_t(2, 80)
    model = LinearRegressor(loss=Smoothed(base, 0.3), penalty=penalty, alpha=0.1).fit(X, y)
    assert model.verify(X, y)
    other = LinearRegressor(loss=Smoothed(base, 0.31), penalty=penalty, alpha=0.1).fit(X, y)
    assert not replace(model.certificate_, loss=other.certificate_.loss).verify(X, y)
