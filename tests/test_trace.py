"""The trace: nothing unless asked for, then one record per iteration."""

import math
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from trueline.errors import MissingExtraError
from trueline.trace import Trace


def filled():
    trace = Trace(enabled=True)
    trace.record(iteration=0, objective=4.0)
    trace.record(iteration=1, objective=2.0, gap=0.5)
    return trace


def test_a_trace_that_nobody_asked_for_stays_empty():
    trace = Trace()
    trace.record(iteration=1, objective=2.0)
    assert len(trace) == 0
    assert trace.columns() == {}


def test_records_are_kept_in_order():
    trace = filled()
    assert len(trace) == 2
    assert_array_equal(trace["objective"], [4.0, 2.0])
    assert trace["iteration"].dtype == np.float64


def test_what_was_not_recorded_everywhere_is_nan_where_it_is_missing():
    assert_array_equal(filled()["gap"], [math.nan, 0.5])


def test_columns_come_in_the_order_of_their_first_appearance():
    assert list(filled().columns()) == ["iteration", "objective", "gap"]


def test_an_unknown_column_is_refused_with_the_names_that_exist():
    with pytest.raises(KeyError, match=r"'mistakes' was not recorded.*\['gap', 'iteration'"):
        filled()["mistakes"]


def test_every_column_of_an_empty_trace_is_empty():
    assert Trace(enabled=True)["gap"].shape == (0,)


def test_a_frame_holds_the_columns():
    frame = filled().to_frame()
    assert list(frame.columns) == ["iteration", "objective", "gap"]
    assert frame["objective"].tolist() == [4.0, 2.0]


def test_a_missing_pandas_is_named_together_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pandas is needed.*trueline\[tables\]"):
        filled().to_frame()


def test_traces_do_not_share_their_records():
    first, second = Trace(enabled=True), Trace(enabled=True)
    first.record(gap=1.0)
    assert len(second) == 0


@pytest.mark.parametrize("count", [1, 5, 1000, 1001, 1002, 4321])
def test_many_weights_are_thinned_evenly_and_end_with_the_last(count):
    trace = Trace(enabled=True)
    for t in range(count):
        trace.keep(t, np.array([[float(t)], [2.0 * t]]), np.array([-float(t)]))
    at = trace.at
    assert len(at) <= 1001
    assert at[0] == 0
    assert at[-1] == count - 1
    assert len(set(np.diff(at[:-1]))) <= 1  # all steps but the last one are alike
    assert_array_equal(trace.coef, np.column_stack([at, 2 * at]))
    assert_array_equal(trace.intercept, -at)


def test_weights_of_several_targets_have_a_row_each():
    trace = Trace(enabled=True)
    trace.keep(0, np.arange(6.0).reshape(2, 3), np.zeros(3))
    assert trace.coef.tolist() == [[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]]
    assert trace.intercept.shape == (1, 3)


def test_weights_are_copied_and_only_kept_when_asked_for():
    trace, W = Trace(enabled=True), np.ones((2, 1))
    trace.keep(0, W, np.zeros(1))
    W += 1
    assert trace.coef.tolist() == [[1.0, 1.0]]
    quiet = Trace()
    quiet.keep(0, W, np.zeros(1))
    assert quiet.points == []
