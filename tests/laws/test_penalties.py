"""Every penalty of the registry obeys every law; a new penalty is tested by being registered."""

import numpy as np
import pytest

from trueline.checks import PENALTY_LAWS
from trueline.checks.penalties import PenaltyPoints
from trueline.penalties import (
    L1,
    L2,
    PENALTIES,
    Bounded,
    ElasticNet,
    Group,
    MultiTask,
    NonNegative,
    NoPenalty,
    as_penalty,
)

DEFAULTS = [cls() for cls in PENALTIES.values()]
PARTS = [
    *DEFAULTS,
    *(
        NonNegative(part)
        for part in DEFAULTS
        if not isinstance(part, NonNegative | NoPenalty | Bounded)
    ),
    L2(0.0),
    L1(0.0),
    L1(1e-8),
    L2(1e8),
    ElasticNet(0.3, 0.0),
    ElasticNet(0.3, 1.0),
    ElasticNet(2.0, 0.01),
    L2(np.array([0.5, 0.0, 3.0])),
    L1(np.array([0.5, 0.0, 3.0])),
    L1(np.array([[0.5], [0.0], [3.0]])),
    NonNegative(ElasticNet(np.array([0.5, 2.0]), 0.25)),
    Bounded(L1(0.5), 0.0, 2.0),
    Bounded(L2(0.5), -np.inf, 1.0),
    Bounded(ElasticNet(2.0, 0.5), -1.0, np.inf),
    Bounded(L1(np.array([[0.5], [0.0], [3.0]])), np.array([[-1.0], [-np.inf], [-2.0]]), 0.0),
    Group(0.7, np.array([0, 1, 0, 1, 1, 2])),
    Group(0.7, np.array([0, 1, 0, 1, 1, 2]), l2=0.4),
    Group(1.5, np.array([1, 0, 0, 1]), np.array([0.0, 2.0])),
    Group(np.array([0.5, 0.0, 3.0]), np.array([0, 0, 0, 0])),
    NonNegative(Group(0.7, np.array([0, 1, 0, 1, 1, 2]))),
    MultiTask(0.0),
    MultiTask(0.3, 0.0),
    MultiTask(2.0, 0.5),
]


@pytest.mark.parametrize(
    "bounds", [(1.0, 0.0), (np.nan, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)]
)
def test_bounds_that_leave_no_room_are_refused(bounds):
    with pytest.raises(ValueError, match="no room|NaN"):
        Bounded(L1(1.0), *bounds)


@pytest.mark.parametrize("penalty", PARTS, ids=lambda part: repr(part).replace("\n", ""))
def test_laws(penalty):
    assert PENALTY_LAWS.check(penalty, PenaltyPoints.of(penalty))


def test_a_penalty_is_found_by_its_name():
    assert as_penalty("l2", 3.0) == L2(3.0)
    assert as_penalty("elastic_net", 3.0, l1_ratio=0.25) == ElasticNet(3.0, 0.25)
    assert as_penalty(None) == NoPenalty()
    assert as_penalty(L1(2.0), 5.0) == L1(2.0)


@pytest.mark.parametrize("unknown", ["l3", 2, L1])
def test_an_unknown_penalty_is_refused_with_the_names_that_exist(unknown):
    with pytest.raises(ValueError, match=r"one of \[.*'elastic_net', .*'l1', 'l2'"):
        as_penalty(unknown)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_elastic_net_refuses_ratios_that_are_no_shares(ratio):
    with pytest.raises(ValueError, match="between 0 and 1"):
        ElasticNet(1.0, ratio)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, [1.0, -1.0], []])
@pytest.mark.parametrize("cls", [L1, L2, ElasticNet])
def test_strengths_are_finite_and_not_negative(cls, alpha):
    with pytest.raises(ValueError, match="finite and not negative"):
        cls(alpha)
