"""Every loss of the registry obeys every law; a new loss is tested by being registered."""

import numpy as np
import pytest

from trueline.checks import LOSS_LAWS
from trueline.checks.losses import LossPoints
from trueline.losses import (
    LOSSES,
    EpsilonInsensitive,
    Gamma,
    Huber,
    OrderedQuantiles,
    Poisson,
    Quantile,
    Tweedie,
    as_loss,
)

# Beside the defaults: parameters that put kinks in awkward places.
PARTS = [
    *(cls() for cls in LOSSES.values()),
    *(Huber(delta) for delta in (0.1, 1.0, 1e6, 1e-6)),
    *(Quantile(q) for q in (0.03, 0.999)),
    OrderedQuantiles(0.3),
    *(Tweedie(power) for power in (1.01, 1.2, 1.99)),
]
# Targets beside the usual ones.
TARGETS = {
    Poisson: (0.0, 1e-3, 0.3, 1.0, 2.0, 70.0),
    Gamma: (1e-3, 0.3, 1.0, 70.0),
    Tweedie: (0.0, 1e-3, 0.3, 1.0, 70.0),
}


@pytest.mark.parametrize("loss", PARTS, ids=repr)
def test_laws(loss):
    assert LOSS_LAWS.check(loss, LossPoints.of(loss, TARGETS.get(type(loss))))


def test_a_loss_is_found_by_its_name():
    for name, cls in LOSSES.items():
        assert as_loss(name) == cls()
        assert as_loss(cls()) == cls()


@pytest.mark.parametrize("unknown", ["quartic", None, 3, LOSSES["squared"]])
def test_an_unknown_loss_is_refused_with_the_names_that_exist(unknown):
    with pytest.raises(ValueError, match=r"one of \['absolute', "):
        as_loss(unknown)


@pytest.mark.parametrize("delta", [0.0, -1.0, float("nan"), float("inf")])
def test_huber_refuses_thresholds_that_are_no_thresholds(delta):
    with pytest.raises(ValueError, match="positive finite"):
        Huber(delta)


def test_errors_that_are_not_forgiven_are_absolute_errors():
    """One kink of twice the jump, not two kinks at the same place."""
    wide, none = EpsilonInsensitive(epsilon=0.5), EpsilonInsensitive(epsilon=0.0)
    y, z = np.array([0.0, 1.0, -2.0]), np.array([0.5, 1.0, 3.0])
    np.testing.assert_array_equal(none.value(y, z), np.abs(z - y))
    assert (none.kinks, none.jumps) == ((0.0,), (2.0,))
    assert (wide.kinks, wide.jumps) == ((-0.5, 0.5), (1.0, 1.0))
