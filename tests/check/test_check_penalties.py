"""The excess of blocks in the checker: what it bounds, and that scaling leaves it finite."""

import numpy as np
import pytest

from trueline import GroupLasso
from trueline.check.penalties import penalty_of
from trueline.penalties import Group, MultiTask, NonNegative

SHAPE = (6, 2)
PENALTIES = {
    "groups": Group(1.0, np.array([0, 0, 1, 1, 1, 2])),
    "tasks": MultiTask(1.0),
    "not negative": NonNegative(Group(1.0, np.array([0, 0, 1, 1, 1, 2]))),
}


@pytest.fixture(autouse=True)
def as_in_verify():
    """Verification is run with all floating-point errors ignored."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("seed", range(5))
def test_a_scaled_slope_has_a_finite_excess_that_bounds_that_of_all_slopes_within_its_error(
    name, seed
):
    rng = np.random.default_rng(seed)
    penalty, free = penalty_of(PENALTIES[name], SHAPE), np.zeros(SHAPE, dtype=bool)
    W = np.abs(rng.standard_normal(SHAPE))
    q, error = 5.0 * rng.standard_normal(SHAPE), 0.1 * rng.uniform(size=SHAPE)
    t = penalty.scale(q, error)
    assert (t < 1).any()
    bound = penalty.excess(W, t * q, t * error, free)
    assert np.isfinite(bound)
    for _ in range(50):
        slope = t * (q + error * rng.uniform(-1, 1, SHAPE))
        # p* is zero in its domain, which holds minus this slope.
        assert (PENALTIES[name].dual_scale(-slope) == 1).all()
        assert PENALTIES[name].value(W) + (slope * W).sum() <= bound


@pytest.mark.parametrize("seed", range(3, 7))
def test_a_group_without_a_penalty_beside_one_whose_columns_round_differently(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 6)) * np.array([1.0, 1e2, 1e-2, 1.0, 1e2, 1e-1]) + 10.0
    y = rng.standard_normal(60) + 3.0
    model = GroupLasso(1e-3, [0, 0, 1, 1, 1, 1], weights=[0.0, 1.0]).fit(X, y)
    assert model.verify(X, y)


def test_a_group_of_which_some_columns_alone_are_lost_in_rounding():
    penalty, free = penalty_of(PENALTIES["groups"], SHAPE), np.zeros(SHAPE, dtype=bool)
    W, q = np.ones(SHAPE), np.full(SHAPE, 0.5)
    q[2], free[2] = 10.0, True  # its slope counts as zero
    q[:2] = 0.0
    bound = penalty.excess(W, q, np.zeros(SHAPE), free)
    linear = PENALTIES["groups"].value(W)
    assert bound == pytest.approx(linear + np.where(free, 0.0, q).sum(), rel=1e-11)
