"""The laws of the softmax loss, whose scores are coupled: rows, not numbers, are its arguments."""

import numpy as np
import pytest
from scipy.special import logsumexp

from trueline.losses import Logistic, Softmax

LOSS = Softmax()
SIZES = (1e-3, 0.5, 3.0, 40.0, 900.0)


def rows(size: float, n: int = 40, k: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return np.eye(k)[random.integers(0, k, n)], size * random.normal(size=(n, k))


@pytest.mark.parametrize("size", SIZES)
def test_the_value_is_minus_the_log_probability_of_the_class(size):
    y, z = rows(size)
    expected = logsumexp(z, axis=1) - (y * z).sum(axis=1)
    np.testing.assert_allclose(LOSS.value(y, z).sum(axis=1), expected, rtol=1e-13, atol=1e-13)
    assert (LOSS.value(y, z) >= 0).all()


@pytest.mark.parametrize("size", SIZES[:3])
def test_the_gradient_is_the_slope_of_the_value_and_the_bend_that_of_the_gradient(size):
    y, z = rows(size)
    step = 1e-5 * np.random.default_rng(1).normal(size=z.shape)
    rise = (LOSS.value(y, z + step) - LOSS.value(y, z - step)).sum(axis=1)
    np.testing.assert_allclose(rise, 2 * (LOSS.gradient(y, z) * step).sum(axis=1), atol=1e-13)
    turn = LOSS.gradient(y, z + step) - LOSS.gradient(y, z - step)
    np.testing.assert_allclose(
        turn, 2 * LOSS.hessian_product(LOSS.hessian_terms(y, z), step), atol=1e-13
    )


@pytest.mark.parametrize("size", SIZES)
def test_rows_of_the_gradient_add_up_to_zero_and_keep_the_digits_of_small_numbers(size):
    y, z = rows(size)
    u = LOSS.gradient(y, z)
    np.testing.assert_allclose(u.sum(axis=1), 0.0, atol=1e-15)
    # For a row that is all but certain: p_y - 1 to full relative precision.
    sure = LOSS.gradient(np.array([[1.0, 0.0]]), np.array([[50.0, 0.0]]))
    assert sure[0, 0] == pytest.approx(-np.exp(-50.0) / (1 + np.exp(-50.0)), rel=1e-14)


@pytest.mark.parametrize("size", SIZES[:3])
def test_conjugates_obey_fenchel_and_young_with_equality_at_the_gradient(size):
    y, z = rows(size)
    u = LOSS.gradient(y, z)
    value, conjugate = LOSS.value(y, z).sum(axis=1), LOSS.conjugate(y, u).sum(axis=1)
    np.testing.assert_allclose(value + conjugate, (u * z).sum(axis=1), atol=1e-12 * max(1, size))
    other = LOSS.project_dual(y, np.random.default_rng(2).normal(size=z.shape))
    bound = value + LOSS.conjugate(y, other).sum(axis=1)
    assert (bound >= (other * z).sum(axis=1) - 1e-12 * max(1, size)).all()


def test_projection_lands_in_the_simplex_and_nothing_of_it_is_nearer():
    y, u = rows(1.0)
    inside = LOSS.project_dual(y, u)
    p = inside + y
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    away = np.linalg.norm(inside - u, axis=1)
    for corner in np.eye(y.shape[1]):
        other = 0.999 * inside + 0.001 * (corner - y)
        assert (np.linalg.norm(other - u, axis=1) >= away - 1e-12).all()
    np.testing.assert_allclose(LOSS.project_dual(y, inside), inside, atol=1e-15)


def test_outside_of_the_simplex_the_conjugate_is_infinite():
    y = np.eye(2)
    assert np.isinf(LOSS.conjugate(y, np.array([[0.2, 0.2], [0.1, -0.2]]))).all()


@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_the_curvature_keeps_the_factor_that_self_concordance_promises(size):
    y, z = rows(1.0)
    random = np.random.default_rng(3)
    for _ in range(20):
        change, along = size * random.normal(size=z.shape), random.normal(size=z.shape)
        before = (along * LOSS.hessian_product(LOSS.hessian_terms(y, z), along)).sum(axis=1)
        after = (along * LOSS.hessian_product(LOSS.hessian_terms(y, z + change), along)).sum(axis=1)
        assert (after >= np.exp(-np.ptp(change, axis=1)) * before * (1 - 1e-12)).all()


@pytest.mark.parametrize("size", SIZES)
def test_two_classes_are_the_logistic_loss_of_the_difference(size):
    y, z = rows(size, k=2)
    sign, score = y[:, 1] - y[:, 0], z[:, 1] - z[:, 0]
    logistic = Logistic()
    np.testing.assert_allclose(
        LOSS.value(y, z).sum(axis=1), logistic.value(sign, score), rtol=1e-13, atol=1e-300
    )
    np.testing.assert_allclose(
        LOSS.gradient(y, z)[:, 1], logistic.gradient(sign, score), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("level", [1e-8, 0.1, 0.69, 5.0, 800.0])
@pytest.mark.parametrize("loss", [Logistic(), LOSS], ids=repr)
def test_the_least_margin_has_the_loss_it_was_asked_for(loss, level):
    margin = loss.least_margin(level)
    found = Logistic().value(np.array([1.0]), np.array([margin]))
    assert found[0] == pytest.approx(level, rel=1e-12)


def test_the_best_constant_leaves_no_slope():
    y, _ = rows(1.0, n=30)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    constant = LOSS.constant(y, weights)
    assert constant is not None
    slope = weights @ LOSS.gradient(y, np.broadcast_to(constant, y.shape))
    np.testing.assert_allclose(slope, 0.0, atol=1e-13)


@pytest.mark.parametrize("wrong", [[[1.0, 1.0]], [[0.5, 0.5]], [[0.0, 0.0]]])
def test_targets_that_are_not_one_hot_are_refused(wrong):
    with pytest.raises(ValueError, match="one-hot"):
        LOSS.check_target(np.array(wrong))
