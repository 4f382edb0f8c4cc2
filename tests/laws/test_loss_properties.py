"""What a loss says of itself (convex, strictly convex, differentiable, Lipschitz, above the 0-1
loss) is what its values say on a grid."""

from __future__ import annotations

import numpy as np
import pytest

from trueline import Perceptron
from trueline.checks import check_loss
from trueline.losses import (
    Absolute,
    EpsilonInsensitive,
    Gamma,
    HardMargin,
    Hinge,
    Huber,
    Logistic,
    LogSumExp,
    Loss,
    PerceptronLoss,
    Poisson,
    Quantile,
    Smoothed,
    Softmax,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    Tweedie,
    ZeroOne,
)

MARGINS = [Hinge(), SquaredHinge(), Logistic(), Hinge(positive=3.0), SquaredHinge(positive=0.5)]
MARGINS += [PerceptronLoss()]
RESIDUALS = [
    Squared(),
    Absolute(),
    Quantile(0.3),
    Huber(1.2),
    EpsilonInsensitive(0.5),
    SquaredEpsilonInsensitive(0.5),
    Smoothed(Absolute(), 0.5),
    LogSumExp(4.0),
]
COUNTS = [Poisson(), Gamma(), Tweedie(1.5)]
# Multiples of 1/16, so that the kinks at whole and half numbers are on the grid.
GRID = np.arange(-160, 161) / 16.0


def named(loss: Loss) -> str:
    return repr(loss)


def curve(loss: Loss, y: float, z: np.ndarray = GRID) -> np.ndarray:
    return loss.value(np.full_like(z, y), z)


def targets(loss: Loss) -> tuple[float, ...]:
    return (-1.0, 1.0) if loss in [*MARGINS, ZeroOne()] else (1.0, 2.0)


@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS, *COUNTS, ZeroOne()], ids=named)
def test_convex_functions_are_below_their_chords(loss):
    for y in targets(loss):
        values = curve(loss, y)
        above = (values[:-2] + values[2:]) / 2 - values[1:-1]
        size = np.abs(values).max()
        assert loss.properties.is_convex == (above >= -1e-12 * size).all()
        if loss.properties.is_strictly_convex:
            near = np.abs(GRID[1:-1]) < 4  # farther away a logistic loss is straight to rounding
            assert (above[near] > 0).all()
        elif loss.properties.is_convex:
            assert (np.abs(above) <= 1e-12 * size).any()


@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS, *COUNTS], ids=named)
def test_differentiable_functions_have_no_corner(loss):
    h = 2.0**-20
    corners = []
    for y in targets(loss):
        right = (curve(loss, y, GRID + h) - curve(loss, y, GRID)) / h
        left = (curve(loss, y, GRID) - curve(loss, y, GRID - h)) / h
        corners.append(np.abs(right - left) > 1e-3 * (1 + np.abs(right)))
    assert loss.properties.is_differentiable == (not np.any(corners))


@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS, *COUNTS], ids=named)
def test_the_lipschitz_constant_is_the_steepest_slope(loss):
    far = 2.0 ** np.arange(10)
    z = np.concatenate([-far[::-1], far])
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = [np.abs(np.diff(curve(loss, y, z)) / np.diff(z)) for y in targets(loss)]
    steepest = np.nanmax(slopes)
    stated = loss.properties.lipschitz
    if np.isfinite(stated):
        np.testing.assert_allclose(steepest, stated, rtol=2e-2)
        assert steepest <= stated * (1 + 1e-12)
    else:
        assert steepest > 100


@pytest.mark.parametrize("loss", [*MARGINS, HardMargin(), ZeroOne()], ids=named)
def test_the_least_multiple_that_is_above_the_mistakes(loss):
    on_wrong_side = np.concatenate([curve(loss, y, -y * GRID[GRID >= 0]) for y in (-1.0, 1.0)])
    # c l >= 1 for all mistakes, with the least such c: 1 / min l.
    with np.errstate(divide="ignore"):
        assert loss.properties.mistake_factor == 1 / on_wrong_side.min()


def test_of_several_classes_a_tie_is_the_least_mistake():
    y, tie = np.array([[1.0, 0.0, 0.0]]), np.array([[2.0, 2.0, -90.0]])
    np.testing.assert_allclose(
        1 / Softmax().value(y, tie).sum(), Softmax().properties.mistake_factor
    )


@pytest.mark.parametrize("loss", RESIDUALS, ids=named)
def test_losses_of_residuals_know_no_mistakes(loss):
    assert loss.properties.mistake_factor == np.inf


def test_the_perceptron_loss_obeys_the_laws_of_losses():
    assert check_loss(PerceptronLoss())


def test_the_subgradient_of_the_perceptron_loss_is_the_perceptron():
    random = np.random.default_rng(0)
    X, y = random.integers(-3, 4, (30, 2)).astype(float), np.where(np.arange(30) % 3, 1.0, -1.0)
    model = Perceptron(shuffle=False, max_iter=2, tol=None, eta0=0.5).fit(X, y)
    w, b, loss = np.zeros(2), 0.0, PerceptronLoss()
    for i in [*range(30), *range(30)]:
        u = loss.gradient(y[i : i + 1], X[i : i + 1] @ w + b)[0]
        w, b = w - 0.5 * u * X[i], b - 0.5 * u
    np.testing.assert_array_equal(model.coef_[0], w)
    assert model.intercept_[0] == b


def test_the_perceptron_loss_by_hand():
    loss, y = PerceptronLoss(), np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    z = np.array([2.0, 0.0, -3.0, 4.0, -1.0])
    assert loss.value(y, z).tolist() == [0.0, 0.0, 3.0, 4.0, 0.0]
    assert loss.gradient(y, z).tolist() == [0.0, -1.0, -1.0, 1.0, 0.0]
    own = loss.properties
    assert (own.is_convex, own.is_strictly_convex, own.is_differentiable) == (True, False, False)
    assert (own.lipschitz, own.mistake_factor) == (1.0, np.inf)
