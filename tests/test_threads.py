"""The thread pool: order, limits, nesting, concurrency, forks."""

import os
import threading
import time
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from trueline.numerics import blas
from trueline.numerics.blas import (
    available_threads,
    one_strand,
    run_strands,
    single_threaded_blas,
)


def blas_threads():
    """The current limits of all loaded BLAS libraries."""
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads whatever the machine's environment says; limits must be back at the end."""
    available_threads()  # loads every BLAS, so that the limit reaches them all
    with threadpool_limits(2, user_api="blas"):
        yield
        assert blas_threads() == {2}


needs_two_cores = pytest.mark.skipif(
    hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < 2, reason="one core"
)


def test_results_come_in_the_given_order():
    def work(i):
        time.sleep(0.002 * (7 - i))  # the first strands take longest
        return i

    assert run_strands(work, range(7)) == list(range(7))


def test_no_strands_give_no_results():
    assert run_strands(lambda strand: strand, []) == []


@pytest.mark.parametrize("strands", [1, 2, 5])
def test_blas_is_single_threaded_inside(strands):
    assert run_strands(lambda _: blas_threads(), range(strands)) == [{1}] * strands


@needs_two_cores
def test_two_strands_run_at_the_same_time():
    meeting = threading.Barrier(2, timeout=10)
    assert sorted(run_strands(lambda _: meeting.wait(), [0, 1])) == [0, 1]


def test_a_limit_of_one_thread_is_respected():
    with threadpool_limits(1, user_api="blas"):
        assert available_threads() == 1
        names = run_strands(lambda _: threading.current_thread().name, range(4))
    assert set(names) == {threading.current_thread().name}


def test_available_threads_are_those_outside_of_our_own_limit():
    before = available_threads()
    with single_threaded_blas():
        assert available_threads() == before


def test_limits_nest():
    with single_threaded_blas():
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}


def test_limits_come_back_after_an_error():
    with pytest.raises(ZeroDivisionError):
        run_strands(lambda i: 1 / i, [1, 0, 2])
    assert blas_threads() == {2}


def test_nothing_runs_on_after_an_error():
    running = []

    def work(i):
        if i == 0:
            raise RuntimeError("the first strand fails")
        running.append(i)
        time.sleep(0.02)
        running.remove(i)

    with pytest.raises(RuntimeError, match="first strand"):
        run_strands(work, range(6))
    assert running == []


def test_strands_within_strands_do_not_wait_for_each_other():
    def outer(i):
        return sum(run_strands(lambda j: 10 * i + j, range(3)))

    results = []
    thread = threading.Thread(target=lambda: results.extend(run_strands(outer, range(4))))
    thread.daemon = True
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive(), "deadlock: inner strands wait for workers that wait for them"
    assert results == [sum(10 * i + j for j in range(3)) for i in range(4)]


def test_threads_of_the_caller_may_enter_at_once():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20))
    expected = X.T @ X
    wrong = []

    def caller():
        for _ in range(30):
            parts = run_strands(lambda rows: X[rows].T @ X[rows], [slice(0, 200), slice(200, 400)])
            if not np.allclose(parts[0] + parts[1], expected):
                wrong.append(parts)

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(timeout=60)
    assert not wrong
    assert not any(thread.is_alive() for thread in callers)
    assert blas_threads() == {2}


def test_strands_see_the_error_state_of_the_caller():
    def overflow(_):
        return np.array([1e200]) * 1e200

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        assert np.isinf(run_strands(overflow, range(4))).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        run_strands(overflow, range(4))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("inside", [False, True], ids=["", "while limited"])
def test_a_forked_child_computes_and_has_its_limits_back(inside):
    run_strands(lambda i: i, range(4))  # the parent's pool has threads that the child lacks

    def child():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            code = 1
            try:
                right = run_strands(lambda i: i * i, range(5)) == [0, 1, 4, 9, 16]
                code = 0 if right and blas_threads() == {2} else 2
            finally:
                os._exit(code)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        return "timeout"

    if inside:
        with single_threaded_blas():
            assert child() == 0
    else:
        assert child() == 0


def test_the_first_strands_error_is_raised():
    failed = threading.Event()

    def work(i):
        if i == 0:
            failed.wait(timeout=10)
            raise RuntimeError("the first strand, later")
        failed.set()
        raise ZeroDivisionError("the second strand, earlier")

    if available_threads() < 2:
        failed.set()
    with pytest.raises(RuntimeError, match="first strand"):
        run_strands(work, range(2))


@needs_two_cores
def test_strands_within_strands_are_shared_with_threads_that_became_idle():
    meeting = threading.Barrier(2)

    def outer(i):
        if i == 1:
            return None
        deadline = time.monotonic() + 20
        while (
            time.monotonic() < deadline
        ):  # until the other strand has ended and its thread is idle
            try:
                return sorted(run_strands(lambda _: meeting.wait(timeout=0.1), [0, 1]))
            except threading.BrokenBarrierError:
                meeting.reset()
        return None

    assert run_strands(outer, [0, 1]) == [[0, 1], None]


@needs_two_cores
def test_strands_within_one_strand_of_the_caller_stay_on_its_thread():
    with one_strand():
        names = run_strands(lambda _: threading.current_thread().name, range(4))
    assert set(names) == {threading.current_thread().name}


def test_nobody_is_counted_as_working_at_the_end():
    def outer(i):
        return run_strands(lambda j: i + j, range(3))

    run_strands(outer, range(5))
    with pytest.raises(ZeroDivisionError):
        run_strands(lambda i: 1 / i, [0, 0, 0])
    assert blas._limits.at_work == 0
