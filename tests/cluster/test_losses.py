"""Workers that are killed, schedulers that go away, memory that runs out: nothing is lost."""

import logging
import os
import signal

import numpy as np
import pytest

from trueline import LogisticRegression, PoissonRegressor

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, D = 4000, 30
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
SCORE = X @ RNG.standard_normal(D) / 4
LABEL = SCORE + RNG.standard_normal(N) > 0
COUNT = RNG.poisson(np.exp(0.2 * SCORE))
ROWS = da.from_array(X, chunks=(500, D))


@pytest.fixture
def processes():
    """A client of two workers that are processes of their own."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    logging.getLogger("distributed").setLevel(logging.NOTSET)


def kill_at(monkeypatch, client, passes):
    """Kill a worker in the middle of these passes, when its work has been handed out."""
    count, killed = iter(range(1000)), []
    compute = type(client).compute

    def compute_and_kill(self, tasks, *args, **kwargs):
        futures = compute(self, tasks, *args, **kwargs)
        if next(count) in passes:
            pid = next(iter(self.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return futures

    monkeypatch.setattr(type(client), "compute", compute_and_kill)
    return killed


def test_a_killed_worker_changes_nothing(monkeypatch, processes):
    y = da.from_array(LABEL, chunks=500)
    before = LogisticRegression().fit(ROWS, y)
    killed = kill_at(monkeypatch, processes, {6})
    after = LogisticRegression().fit(ROWS, y)
    assert len(killed) == 1
    assert after.coef_.tolist() == before.coef_.tolist()
    assert after.verify(X, LABEL)


@pytest.mark.slow
@pytest.mark.parametrize("passes", [{0}, {1}, {3}, {2, 8}, {4, 5}])
@pytest.mark.parametrize("sent_ahead", [False, True])
def test_workers_may_be_killed_at_any_time(monkeypatch, processes, passes, sent_ahead):
    if sent_ahead:  # what is lost with the worker then, and no other has
        monkeypatch.setattr("trueline.cluster.running._SMALL", 0)
    y = da.from_array(COUNT, chunks=500)
    before = PoissonRegressor(alpha=1e-3).fit(ROWS, y)
    killed = kill_at(monkeypatch, processes, passes)
    after = PoissonRegressor(alpha=1e-3).fit(ROWS, y)
    assert len(killed) == len(passes)
    assert after.coef_.tolist() == before.coef_.tolist()
    assert after.verify(X, COUNT)
