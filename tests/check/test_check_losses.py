"""The checker's losses against those of the library, their excess against a numerical supremum."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from trueline import LogisticRegression, TweedieRegressor, losses
from trueline.check import verify
from trueline.check.losses import loss_of
from trueline.check.verdict import Refused

RESIDUALS = [
    losses.Squared(),
    losses.Absolute(),
    losses.Quantile(0.3),
    losses.Huber(0.7),
    losses.EpsilonInsensitive(0.4),
    losses.SquaredEpsilonInsensitive(0.4),
]
LABELS = [losses.Hinge(2.0), losses.SquaredHinge(0.5), losses.Logistic()]
POSITIVE = [losses.Poisson(), losses.Gamma(), losses.Tweedie(1.5), losses.Tweedie(1.1)]


@pytest.fixture(autouse=True)
def as_in_verify():
    with np.errstate(all="ignore"):  # what is not finite proves nothing
        yield


def targets(loss, rng, n):
    if loss in LABELS:
        return np.sign(rng.normal(size=n))
    return np.exp(rng.normal(size=n)) if loss in POSITIVE else 3.0 * rng.normal(size=n)


def own(loss, y, z):
    """The checker's loss, with target and score as it is given them."""
    found = loss_of(loss, 1)
    return (found, 0.0 * y, z - y) if found.is_residual else (found, y, z)


@pytest.mark.parametrize("loss", RESIDUALS + LABELS + POSITIVE, ids=repr)
def test_values_and_slopes_are_those_of_the_library(loss):
    rng = np.random.default_rng(0)
    y, z = targets(loss, rng, 500), 2.0 * rng.normal(size=500)
    found, target, score = own(loss, y, z)
    np.testing.assert_allclose(
        found.value(target, score), loss.value(y[:, None], z[:, None])[:, 0], rtol=1e-9, atol=1e-14
    )
    np.testing.assert_allclose(
        found.slope(target, score), loss.gradient(y[:, None], z[:, None])[:, 0], rtol=1e-9,
        atol=1e-13,
    )  # fmt: skip


@pytest.mark.parametrize("loss", RESIDUALS + LABELS + POSITIVE, ids=repr)
def test_the_excess_is_what_fenchel_and_young_leave(loss):
    rng = np.random.default_rng(1)
    y, z = targets(loss, rng, 40), 2.0 * rng.normal(size=40)
    found, target, score = own(loss, y, z)
    # Slopes elsewhere are in the domain of the conjugate.
    u = found.slope(target, score + rng.normal(size=40)) * rng.uniform(0.2, 1.0, 40)
    for i in range(40):
        one = target[i : i + 1]
        value = lambda t, one=one: float(found.value(one, np.array([t]))[0])  # noqa: E731
        far = minimize_scalar(
            lambda t, i=i, value=value: value(t) - u[i] * t, bounds=(-40.0, 40.0), method="bounded",
            options={"xatol": 1e-12},
        )  # fmt: skip
        expected = value(score[i]) - u[i] * score[i] - far.fun
        excess = float(found.excess(one, score[i : i + 1], u[i : i + 1])[0])
        assert excess == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("loss", "y", "u"),
    [
        (losses.Absolute(), 0.0, 1.0 + 1e-15),
        (losses.Quantile(0.3), 0.0, -0.3 - 1e-15),
        (losses.Huber(0.7), 0.0, -0.8),
        (losses.EpsilonInsensitive(0.4), 0.0, 1.1),
        (losses.Hinge(2.0), 1.0, 1e-15),
        (losses.Hinge(2.0), 1.0, -2.1),
        (losses.SquaredHinge(2.0), -1.0, -1e-15),
        (losses.Logistic(), 1.0, -1.0 - 1e-15),
        (losses.Poisson(), 2.0, -2.1),
        (losses.Tweedie(1.5), 0.0, -0.1),
    ],
)  # fmt: skip
def test_outside_the_domain_of_the_conjugate_nothing_is_proven(loss, y, u):
    found = loss_of(loss, 1).excess(np.array([y]), np.array([0.5]), np.array([u]))
    assert np.isinf(found).all()


@pytest.mark.parametrize("loss", RESIDUALS, ids=repr)
def test_residuals_are_no_larger_than_their_losses_allow(loss):
    rng = np.random.default_rng(2)
    found, s = loss_of(loss, 1), rng.uniform(0.5, 2.0, 300)
    r, t = 3.0 * rng.normal(size=300), rng.normal(size=300)
    total = float(s @ found.value(0.0 * r, r))
    norm, largest = float(np.sqrt(s @ t**2)), float(np.abs(t).max())
    assert float(s @ (t * r)) <= found.most_residual(total, float(s.sum()), norm, largest)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "quantile", "q": 1.0},
        {"name": "quantile", "q": [0.1, 0.2]},
        {"name": "huber", "delta": 0.0},
        {"name": "tweedie", "power": 0.5},
        {"name": "deviance", "power": 0.5, "link": "log"},
        {"name": "deviance", "power": 3.0, "link": "logit"},
        {"name": "unknown"},
    ],
    ids=lambda given: given["name"],
)
def test_losses_that_are_none_are_refused(given):
    with pytest.raises(Refused):
        loss_of(given, 1)


def test_slopes_that_are_infinite_in_both_directions_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 2)), rng.gamma(2.0, size=9)
    certificate = TweedieRegressor(power=1.5, alpha=0.1).fit(X, y).certificate_
    for size in (1e2, 1e3, 1e4, 1e300):
        forged = replace(certificate, coef=size * np.ones((2, 1)))
        verification = verify(forged, X, y)
        assert not verification.holds
        assert "not computable" not in str(verification)


class SharpSoftmax(losses.Softmax):
    """Softmax of three times the scores, whose curvature is not that of softmax."""

    def value(self, y, z):
        return super().value(y, 3.0 * z)

    def gradient(self, y, z):
        return 3.0 * super().gradient(y, 3.0 * z)


def test_intercepts_beside_a_coupled_loss_that_is_not_built_in_prove_nothing():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    model = LogisticRegression().fit(X, y)
    assert model.verify(X, y)
    certificate = replace(model.certificate_, loss=SharpSoftmax())
    verification = verify(certificate, X, np.eye(3)[y])
    assert not verification
    assert "not built in" in str(verification)
