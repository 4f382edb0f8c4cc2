"""The one loop: how it ends, whom it tells, what it records."""

import math

import numpy as np
import pytest

from trueline.solution import Status
from trueline.solvers import base as loop
from trueline.solvers.base import Iteration, Monitor, Progress, run
from trueline.trace import Trace


class Scripted(Iteration):
    """Goes through a list of gaps, the last one for ever; the objective is 10 + gap."""

    def __init__(self, gaps, objective=None):
        self.gaps, self.objective = gaps, objective
        self.steps = self.checks = 0
        self.coef, self.intercept = np.zeros((2, 1)), np.zeros(1)

    def step(self):
        self.steps += 1

    def progress(self):
        self.checks += 1
        gap = self.gaps[min(self.steps, len(self.gaps) - 1)]
        return Progress(10.0 + gap if self.objective is None else self.objective(self.steps), gap)


HALVING = [2.0**-i for i in range(100)]


class Clock:
    """Time that passes by one second whenever somebody looks."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now


def test_it_converges_when_the_gap_is_proven_small_enough():
    status, n_iter, progress = run(Scripted(HALVING), Monitor(), max_iter=99, target_gap=2.0**-5)
    assert (status, n_iter, progress.gap) == (Status.CONVERGED, 5, 2.0**-5)
    assert status.is_final


def test_a_start_that_is_good_enough_takes_no_step():
    iteration = Scripted([0.0])
    assert run(iteration, Monitor(), max_iter=9, target_gap=0.0)[:2] == (Status.CONVERGED, 0)
    assert iteration.steps == 0


def test_it_ends_at_the_iteration_limit():
    iteration = Scripted(HALVING)
    status, n_iter, progress = run(iteration, Monitor(), max_iter=7, target_gap=0.0)
    assert (status, n_iter, iteration.steps) == (Status.MAX_ITER, 7, 7)
    assert progress.gap == 2.0**-7
    assert not status.is_final


def test_no_iterations_allowed_evaluates_the_start():
    status, n_iter, progress = run(Scripted([3.0]), Monitor(), max_iter=0, target_gap=0.0)
    assert (status, n_iter, progress) == (Status.MAX_ITER, 0, Progress(13.0, 3.0))


@pytest.mark.parametrize("every", [3, 4, 50])
def test_progress_is_evaluated_now_and_then_and_at_the_end(every):
    iteration = Scripted(HALVING)
    _, n_iter, progress = run(iteration, Monitor(), max_iter=10, target_gap=0.0, check_every=every)
    assert iteration.checks == 1 + len({*range(every, 11, every), 10})
    assert (n_iter, progress.gap) == (10, 2.0**-10)


def test_somebody_who_watches_sees_every_iteration():
    seen = []
    monitor = Monitor(callbacks=(lambda event: seen.append(event.iteration),))
    run(Scripted(HALVING), monitor, max_iter=6, target_gap=0.0, check_every=4)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_it_ends_at_the_time_limit(monkeypatch):
    monkeypatch.setattr(loop, "time", Clock())
    status, n_iter, progress = run(
        Scripted(HALVING), Monitor(time_limit=3.5), max_iter=99, target_gap=0.0, check_every=50
    )
    assert (status, n_iter) == (Status.TIME_LIMIT, 4)
    assert progress.gap == 2.0**-4  # the progress reported is that of the last iterate


def test_a_callback_can_stop_it():
    monitor = Monitor(callbacks=(lambda event: event.iteration == 3,))
    assert run(Scripted(HALVING), monitor, max_iter=9, target_gap=0.0)[:2] == (Status.STOPPED, 3)


@pytest.mark.parametrize("answer", [None, False, 0, 1, "yes", [True]])
def test_only_true_itself_stops(answer):
    monitor = Monitor(callbacks=(lambda event: answer,))
    assert run(Scripted(HALVING), monitor, max_iter=4, target_gap=0.0)[0] is Status.MAX_ITER


def test_every_callback_hears_of_the_event_that_stopped_it():
    heard = []
    monitor = Monitor(callbacks=(lambda event: True, lambda event: heard.append(event)))
    run(Scripted(HALVING), monitor, max_iter=9, target_gap=0.0)
    (event,) = heard
    assert (event.iteration, event.max_iter, event.objective, event.gap) == (1, 9, 10.5, 0.5)
    assert event.coef.shape == (2, 1)


def test_converging_wins_over_being_stopped():
    monitor = Monitor(callbacks=(lambda event: True,))
    assert run(Scripted([1.0, 0.0]), monitor, max_iter=9, target_gap=0.0)[0] is Status.CONVERGED


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_it_notices_divergence(bad):
    iteration = Scripted([1.0], objective=lambda steps: bad if steps >= 3 else 1.0)
    assert run(iteration, Monitor(), max_iter=9, target_gap=0.0)[:2] == (Status.DIVERGED, 3)


def test_it_stalls_when_the_gap_stops_shrinking():
    iteration = Scripted([1.0, 0.5, 0.25, 0.25, 0.3, 0.26])
    status, n_iter, _ = run(iteration, Monitor(), max_iter=99, target_gap=0.0, patience=4)
    assert (status, n_iter) == (Status.STALLED, 6)  # four iterations after the best, the second


def test_patience_starts_again_with_every_better_gap():
    gaps = [1.0, 1.0, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.0]
    assert run(Scripted(gaps), Monitor(), max_iter=99, target_gap=0.0, patience=2)[1] == 8


def test_without_patience_it_never_stalls():
    assert run(Scripted([1.0]), Monitor(), max_iter=50, target_gap=0.0)[0] is Status.MAX_ITER


def test_a_method_may_know_itself_that_it_is_stalled():
    iteration = Scripted(HALVING)
    iteration.is_stalled = True
    assert run(iteration, Monitor(), max_iter=9, target_gap=0.0)[:2] == (Status.STALLED, 1)


def test_the_trace_is_recorded_only_when_enabled():
    silent, watched = Monitor(), Monitor(trace=Trace(enabled=True))
    assert not silent.is_watching
    assert watched.is_watching
    for monitor in (silent, watched):
        run(Scripted(HALVING), monitor, max_iter=3, target_gap=0.0, check_every=2)
    assert len(silent.trace) == 0
    assert watched.trace["iteration"].tolist() == [0, 1, 2, 3]
    assert watched.trace["gap"].tolist() == [1.0, 0.5, 0.25, 0.125]
    assert watched.trace["objective"].tolist() == [11.0, 10.5, 10.25, 10.125]
    assert np.all(np.diff(watched.trace["seconds"]) >= 0)


@pytest.mark.parametrize("status", Status)
def test_every_status_explains_itself(status):
    assert len(status.value) > 20 or status is Status.STOPPED
    final = (Status.SOLVED, Status.CONVERGED, Status.SETTLED, Status.STATIONARY, Status.SMOOTHED)
    assert status.is_final == (status in final)
