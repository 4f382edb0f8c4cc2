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
