"""Pictures: what is drawn, from estimators and from plain numbers, and what is refused."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from trueline.errors import MissingExtraError
from trueline.plots import (
    CoefficientDisplay,
    FitDisplay,
    TraceDisplay,
    plot_coefficients,
    plot_fit,
    plot_trace,
)
from trueline.trace import Trace

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def make_trace(rate=0.1, steps=5):
    trace = Trace(enabled=True)
    for t in range(steps):
        trace.record(iteration=t, objective=2.0 + rate**t, gap=3 * rate**t, seconds=0.5 * t)
    return trace


class Traced(LinearRegression):
    """A fitted estimator with a trace, as ours have."""

    def fit(self, X, y):
        super().fit(X, y)
        self.trace_, self.solver_ = make_trace(), "descent"
        return self


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, -2.0, 0.0] + 0.1 * rng.normal(size=30)
    return Traced().fit(X, y), X, y


@pytest.mark.parametrize("against", ["iteration", "seconds"])
def test_a_trace_shows_gap_and_objective(against):
    trace = make_trace()
    display = plot_trace(trace, against=against, show="gap")
    (line,) = display.lines_
    assert_allclose(line.get_xdata(), trace[against])
    assert_allclose(line.get_ydata(), trace["gap"])
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_xlabel() == against
    assert display.figure_ is display.ax_.figure


def test_objectives_are_measured_from_the_lowest_of_all():
    fast, slow = make_trace(0.1), make_trace(0.5)
    display = plot_trace({"fast": fast, "slow": slow}, show="objective")
    lowest = fast["objective"].min()
    # The lowest point itself has no logarithm.
    assert_allclose(display.lines_[0].get_ydata(), fast["objective"][:-1] - lowest)
    assert_allclose(display.lines_[1].get_ydata(), slow["objective"] - lowest)
    assert [line.get_label() for line in display.lines_] == ["fast", "slow"]


def test_both_lines_share_a_colour_and_the_legend_explains_them():
    display = plot_trace({"fast": make_trace(0.1), "slow": make_trace(0.5)})
    colours = [line.get_color() for line in display.lines_]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["fast", "slow", "objective above the lowest", "proven gap"]


def test_unknown_gaps_are_left_out():
    trace = make_trace()
    trace.record(iteration=5, objective=2.0, gap=np.inf, seconds=3.0)
    (line,) = plot_trace(trace, show="gap").lines_
    assert len(line.get_ydata()) == 5


def test_trace_of_estimators(fitted):
    model, _, _ = fitted
    assert TraceDisplay.from_estimator(model).lines_[0].get_label() == "descent"
    assert TraceDisplay.from_estimator(model, label="mine").lines_[0].get_label() == "mine"
    both = TraceDisplay.from_estimator({"one": model, "two": model}, show="gap")
    assert len(both.lines_) == 2


def test_traces_that_cannot_be_drawn(fitted):
    _, X, y = fitted
    with pytest.raises(ValueError, match="trace=True"):
        plot_trace(Trace())
    with pytest.raises(ValueError, match="trace=True"):
        TraceDisplay.from_estimator(LinearRegression().fit(X, y))
    with pytest.raises(NotFittedError):
        TraceDisplay.from_estimator(Traced())
    with pytest.raises(ValueError, match="against='time'"):
        plot_trace(make_trace(), against="time")
    with pytest.raises(ValueError, match="show='all'"):
        plot_trace(make_trace(), show="all")


def test_coefficients_are_ordered_by_magnitude():
    display = plot_coefficients(["a", "b", "c"], [0.5, -2.0, 1.0])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["b", "c", "a"]
    assert_allclose([bar.get_width() for bar in display.bars_], [-2.0, 1.0, 0.5])
    assert display.ax_.yaxis_inverted()


def test_coefficients_in_their_own_order_and_the_largest_only():
    display = plot_coefficients(["a", "b", "c"], [0.5, -2.0, 1.0], sort=False, top=2)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["b", "c"]
    assert "1 smaller" in display.ax_.get_xlabel()
    everything = plot_coefficients(["a", "b", "c"], [0.5, -2.0, 1.0], top=None)
    assert len(everything.bars_) == 3


def test_whiskers_end_where_the_intervals_do():
    display = plot_coefficients(["a", "b"], [1.0, 2.0], interval=[[0.5, 1.5], [1.0, 3.5]])
    (segments,) = [lines.get_segments() for lines in display.bars_.errorbar.lines[2]]
    assert_allclose([s[:, 0] for s in segments], [[1.0, 3.5], [0.5, 1.5]])


def test_coefficients_of_estimators(fitted):
    model, X, y = fitted
    labels = CoefficientDisplay.from_estimator(model).ax_.get_yticklabels()
    assert [label.get_text() for label in labels] == ["x1", "x0", "x2"]
    several = LinearRegression().fit(X, np.column_stack([y, 3 * y]))
    widths = [bar.get_width() for bar in CoefficientDisplay.from_estimator(several, target=1).bars_]
    assert_allclose(sorted(widths), sorted(several.coef_[1]))
    with pytest.raises(ValueError, match="target=2"):
        CoefficientDisplay.from_estimator(several, target=2)


def test_names_and_coefficients_must_fit():
    with pytest.raises(ValueError, match="2 names"):
        plot_coefficients(["a", "b"], [1.0])
    with pytest.raises(ValueError, match="intervals"):
        plot_coefficients(["a"], [1.0], interval=[1.0])


def test_predictions_against_the_truth(fitted):
    model, X, y = fitted
    ax = FitDisplay.from_estimator(model, X, y).ax_
    (points,) = ax.collections
    assert_allclose(points.get_offsets(), np.column_stack([model.predict(X), y]))
    low, high = ax.lines[0].get_xdata()
    assert low <= min(y)
    assert high >= max(y)
    assert f"{model.score(X, y):.3f}" in ax.get_legend().get_title().get_text()


def test_one_feature_shows_the_line(fitted):
    _, X, y = fitted
    model = LinearRegression().fit(X[:, :1], y)
    display = FitDisplay.from_estimator(model, X[:, :1], y)
    x, line = display.ax_.lines[0].get_data()
    assert_allclose(line, model.predict(x[:, None]))
    (points,) = display.ax_.collections
    assert_allclose(points.get_offsets(), np.column_stack([X[:, 0], y]))


def test_one_named_feature(fitted):
    pandas = pytest.importorskip("pandas")
    _, X, y = fitted
    frame = pandas.DataFrame({"height": X[:, 0]})
    display = FitDisplay.from_estimator(LinearRegression().fit(frame, y), frame, y)
    assert display.ax_.get_xlabel() == "height"


def test_sparse_rows_are_drawn_against_the_truth(fitted):
    _, X, y = fitted
    S = sp.csr_array(X[:, :1])
    assert (
        FitDisplay.from_estimator(LinearRegression().fit(S, y), S, y).ax_.get_xlabel()
        == "predicted"
    )


def test_a_line_from_plain_numbers():
    display = plot_fit([1.0, 2.0, 3.0], [1.0, 2.0, 3.5], feature=[2.0, 1.0, 3.0], name="t")
    x, y = display.ax_.lines[0].get_data()
    assert_allclose(x, [1.0, 2.0, 3.0])
    assert_allclose(y, [2.0, 1.0, 3.5])


def test_many_points_are_sampled_and_the_legend_says_so():
    y = np.arange(20_000.0)
    ax = plot_fit(y, y).ax_
    assert len(ax.collections[0].get_offsets()) == 5000
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "data (5,000 of 20,000 rows)" in texts


def test_a_constant_target_has_no_r_squared():
    assert plot_fit([1.0, 1.0], [1.0, 1.0]).ax_.get_legend().get_title().get_text() == ""


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="equally long"):
        plot_fit([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plot_trace(make_trace(), ax),
        lambda ax: plot_coefficients(["a"], [1.0], ax),
        lambda ax: plot_fit([1.0, 2.0], [1.0, 2.0], ax),
    ],
    ids=["trace", "coefficients", "fit"],
)
def test_given_axes_are_used(draw):
    figure, ax = plt.subplots()
    display = draw(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"trueline\[plot\]"):
        plot_trace(make_trace())
