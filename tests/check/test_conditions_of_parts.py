"""A model that is made of parts is proven under every condition that one of its parts is."""

import numpy as np
import pytest

from trueline import (
    ChainedClassifiers,
    LogisticRegression,
    OneVsOneClassifier,
    OneVsRestClassifier,
)
from trueline.check import Verdict

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(40, 2))
# The third column depends on the others up to rounding: proofs are conditional.
DEPENDENT = np.column_stack([PLAIN, 0.1 * PLAIN[:, 0] + PLAIN[:, 1]])
Y = np.arange(40) % 3
FIRTH = LogisticRegression(penalty="firth")
MODELS = {
    "one against the rest": (OneVsRestClassifier(FIRTH), 3),
    "one against one": (OneVsOneClassifier(FIRTH), 3),
    "scheme in a scheme": (OneVsRestClassifier(OneVsRestClassifier(FIRTH)), 3),
    "chain": (ChainedClassifiers([("first", FIRTH)], cv=2), 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_conditions_of_parts_are_conditions_of_the_whole(name):
    model, parts = MODELS[name]
    y = Y if parts > 1 else Y % 2
    outcome = model.fit(DEPENDENT, y).verify(DEPENDENT, y)
    assert outcome.verdict is Verdict.CONDITIONAL
    assert not outcome
    assert len(outcome.conditions) == parts
    assert all("depend on the others" in condition for condition in outcome.conditions)
    assert outcome.statement.count("the slope of the penalised likelihood") == parts


@pytest.mark.parametrize("name", MODELS)
def test_parts_without_a_condition_are_proven(name):
    model, parts = MODELS[name]
    y = Y if parts > 1 else Y % 2
    assert model.fit(PLAIN, y).verify(PLAIN, y).verdict is Verdict.PROVEN
