"""The alarm for drift: rare where nothing changes, soon where mistakes become more."""

import numpy as np
import pytest

from trueline import OnlineLogisticRegression
from trueline.online.stream import DriftAlarm


def test_false_alarms_are_as_rare_as_stated():
    """Over streams whose mistakes are at the level, the mean wait is at least what is stated."""
    random, waits = np.random.default_rng(0), []
    for _ in range(200):
        alarm = DriftAlarm(level=0.2, mean_wait=20)
        while not alarm.add(10, int(random.binomial(10, 0.2))) and alarm.batches < 2000:
            pass
        waits.append(alarm.batches)
    spread = np.std(waits) / np.sqrt(len(waits))
    assert np.mean(waits) + 3 * spread >= 20


def test_a_batch_multiplies_stakes_by_one_on_average():
    alarm, n, p = DriftAlarm(level=0.3), 4, 0.3
    from math import comb

    from trueline.online.stream import _BETS

    total = np.zeros(len(_BETS))
    for m in range(n + 1):
        alarm.reset()
        alarm.add(n, m)
        total += comb(n, m) * p**m * (1 - p) ** (n - m) * np.exp(alarm._log)
    np.testing.assert_allclose(total, 1.0)


def test_learning_stops_where_labels_turn_and_goes_on():
    random = np.random.default_rng(0)

    def stream():
        for number in range(400):
            X = random.standard_normal((20, 3))
            sign = 1 if number < 200 else -1
            yield X, (sign * X[:, 0] > 0).astype(int)

    rows, alarm = stream(), DriftAlarm(level=0.1)
    model = OnlineLogisticRegression().fit_stream(rows, classes=[0, 1], alarm=alarm)
    assert alarm.is_ringing
    assert 200 * 20 < model.progress_.rows < 210 * 20
    alarm.reset()
    model.fit_stream(rows, alarm=DriftAlarm(level=0.9))
    assert model.progress_.rows == 400 * 20


def test_a_level_is_a_share():
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 1"):
        DriftAlarm(level=1)
