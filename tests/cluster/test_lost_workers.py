"""Workers that are killed, schedulers that go away, memory that runs out: nothing is lost."""

import logging
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from trueline import LogisticRegression, PoissonRegressor, Ridge
from trueline.errors import ClusterError

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


def _die(block, rows=0):
    import os

    os._exit(1)


@pytest.mark.slow
def test_blocks_that_no_worker_survives_are_told_of():
    """As when they are too large for its memory."""
    import dask

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    options = {"distributed.scheduler.allowed-failures": 0}
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        rows = ROWS.map_blocks(_die, dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(ClusterError, match=r"needs more memory than .*Make blocks smaller"):
            Ridge().fit(rows, da.from_array(SCORE, chunks=500))


def started(*words):
    """A process of the command line of Dask."""
    command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def command_line(tmp_path):
    """A scheduler and two workers, started as on machines of their own."""
    file = tmp_path / "scheduler.json"
    place = ["--scheduler-file", str(file)]
    scheduler = started("scheduler", *place, "--port", "0", "--dashboard-address", ":0")
    workers = [started("worker", *place, "--nthreads", "1", "--no-dashboard") for _ in range(2)]
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    yield file, scheduler
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.slow
def test_schedulers_and_workers_of_the_command_line(monkeypatch, command_line):
    file, scheduler = command_line
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    y = da.from_array(LABEL, chunks=500)
    with distributed.Client(scheduler_file=str(file), timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
        model = LogisticRegression().fit(ROWS, y)
        assert "4,000 rows x 30 columns in 8 blocks on 2 workers" in str(model.explain())
        np.testing.assert_allclose(model.coef_, LogisticRegression().fit(X, LABEL).coef_, rtol=1e-9)
        assert model.verify(ROWS, y)

        compute, count = type(client).compute, iter(range(1000))

        def compute_and_stop(self, tasks, *args, **kwargs):
            futures = compute(self, tasks, *args, **kwargs)
            if next(count) == 4:
                scheduler.kill()
            return futures

        monkeypatch.setattr(type(client), "compute", compute_and_stop)
        fitted = model.coef_.copy()
        with pytest.raises(ClusterError, match=r"scheduler cannot be reached any more\. Nothing"):
            model.fit(ROWS, y)
        assert (model.coef_ == fitted).all()
