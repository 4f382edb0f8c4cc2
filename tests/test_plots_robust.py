"""Pictures of losses, of outliers and of quantiles: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from trueline import LeastAbsoluteDeviations, LinearRegression, QuantileRegressor
from trueline.losses import Absolute, EpsilonInsensitive, Huber, Quantile, Squared
from trueline.plots import (
    LossDisplay,
    OutlierDisplay,
    QuantileFanDisplay,
    plot_losses,
    plot_quantile_fan,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Squared(), Absolute(), Huber(0.7), Quantile(0.8)], ids=repr)
def test_a_loss_and_its_derivative_are_drawn(loss):
    display = plot_losses({"it": loss}, reach=2.0)
    values, slopes = display.ax_
    r, drawn = values.get_lines()[0].get_data()
    assert_allclose(drawn, loss.value(np.zeros_like(r), r))
    assert (r.min(), r.max()) == (-2.0, 2.0)
    r, drawn = slopes.get_lines()[0].get_data()
    known = ~np.isnan(drawn)
    assert_allclose(drawn[known], loss.gradient(np.zeros_like(r), r)[known])


@pytest.mark.parametrize(
    ("loss", "jumps"),
    [
        (Squared(), []),
        (Huber(0.5), []),
        (Absolute(), [0.0]),
        (EpsilonInsensitive(0.5), [-0.5, 0.5]),
    ],
    ids=repr,
)
def test_no_line_is_drawn_through_a_jump_of_the_derivative(loss, jumps):
    r, slope = plot_losses({"it": loss}).ax_[1].get_lines()[0].get_data()
    assert_array_equal(r[np.isnan(slope)], jumps)


def test_the_common_losses_are_drawn_by_default():
    display = LossDisplay().plot()
    labels = texts(display.ax_[0])
    assert len(labels) == 5
    assert labels[0] == "squared"
    assert display.figure_ is display.ax_[1].figure


def test_given_axes_are_used():
    figure, pair = plt.subplots(2, 1)
    display = plot_losses({"squared": Squared()}, pair)
    assert display.figure_ is figure
    assert display.ax_[0] is pair[0]


def test_a_reach_must_be_positive():
    with pytest.raises(ValueError, match="reach must be positive"):
        plot_losses(reach=0.0)


# --- outliers -----------------------------------------------------------------------------------


def with_outliers(n=40):
    random = np.random.default_rng(0)
    X = np.sort(random.uniform(0, 10, size=(n, 1)), axis=0)
    y = 2 * X[:, 0] + 1 + random.normal(size=n)
    y[-4:] -= 40
    return X, y


def test_each_model_draws_its_line_and_outliers_are_ringed():
    X, y = with_outliers()
    models = {"squares": LinearRegression(), "absolute": LeastAbsoluteDeviations()}
    display = OutlierDisplay.from_data(X, y, models=models)
    assert texts(display.ax_) == ["data", "outliers", "squares", "absolute"]
    for line, model in zip(display.ax_.get_lines(), models.values(), strict=True):
        assert_allclose(line.get_ydata(), model.fit(X, y).predict(X))
    ringed = display.ax_.collections[1].get_offsets()
    assert_allclose(ringed, np.column_stack([X[-4:, 0], y[-4:]]))


def test_four_losses_are_compared_by_default():
    X, y = with_outliers()
    display = OutlierDisplay.from_data(X, y)
    assert texts(display.ax_)[2:] == ["squared", "absolute", "Huber", "maximum error"]
    slopes = [np.polyfit(*line.get_data(), 1)[0] for line in display.ax_.get_lines()]
    assert abs(slopes[1] - 2) < 0.3
    assert abs(slopes[2] - 2) < 0.3
    assert abs(slopes[0] - 2) > 0.5


def test_data_without_outliers_have_no_rings():
    X = np.arange(20.0)[:, None]
    y = X[:, 0] + np.tile([0.0, 1.0], 10)
    display = OutlierDisplay.from_data(X, y, models={"fit": LinearRegression()})
    assert texts(display.ax_) == ["data", "fit"]


def test_names_of_features_are_on_the_axis():
    X, y = with_outliers()
    frame = pd.DataFrame(X, columns=["age"])
    assert (
        OutlierDisplay.from_data(frame, y, models={"fit": LinearRegression()}).ax_.get_xlabel()
        == "age"
    )


def test_only_one_feature_can_be_drawn_over():
    with pytest.raises(ValueError, match="one column"):
        OutlierDisplay.from_data(np.zeros((5, 2)), np.zeros(5))
    with pytest.raises(ValueError, match="equally long"):
        OutlierDisplay([0.0, 1.0], [0.0], {}).plot()


# --- quantiles ----------------------------------------------------------------------------------


def fan(d=1, quantile=(0.9, 0.1, 0.5, 0.25, 0.75)):
    random = np.random.default_rng(1)
    X = random.uniform(0, 10, size=(200, d))
    y = X.sum(axis=1) + X[:, 0] * random.normal(size=200)
    return QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y), X, y


def test_bands_lie_between_pairs_and_the_middle_is_strong():
    model, X, y = fan()
    display = plot_quantile_fan(model, X, y)
    assert texts(display.ax_) == ["data", "10% to 90%", "25% to 75%", "median"]
    lines = display.ax_.get_lines()
    assert len(lines) == 5
    widths = [line.get_linewidth() for line in lines]
    assert np.argmax(widths) == 2
    grid = lines[0].get_xdata()
    expected = model.predict(grid[:, None])[:, [1, 3, 2, 4, 0]]
    for j, line in enumerate(lines):
        assert_allclose(line.get_ydata(), expected[:, j])


def test_one_quantile_is_one_line():
    model, X, y = fan(quantile=0.3)
    display = plot_quantile_fan(model, X, y)
    assert texts(display.ax_) == ["data", "quantile 0.3"]


def test_other_features_rest_at_their_medians():
    model, X, y = fan(d=3)
    display = plot_quantile_fan(model, X, y, feature=1)
    line = display.ax_.get_lines()[2]
    rows = np.tile(np.median(X, axis=0), (200, 1))
    rows[:, 1] = line.get_xdata()
    assert_allclose(line.get_ydata(), model.predict(rows)[:, 2])
    assert display.ax_.get_xlabel() == "x1"


def test_features_by_name_and_sparse_data():
    model, X, y = fan(d=2)
    assert_allclose(
        plot_quantile_fan(model, sp.csr_array(X), y, feature=0).curves,
        plot_quantile_fan(model, X, y, feature=0).curves,
    )
    frame = pd.DataFrame(X, columns=["age", "size"])
    model.fit(frame, y)
    assert plot_quantile_fan(model, frame, y, feature="size").ax_.get_xlabel() == "size"
    with pytest.raises(ValueError, match="is not one of"):
        plot_quantile_fan(model, frame, y, feature="weight")


def test_what_cannot_be_drawn_is_refused():
    model, X, y = fan(d=2)
    with pytest.raises(ValueError, match="say over which"):
        plot_quantile_fan(model, X, y)
    with pytest.raises(ValueError, match="There is no column 2: X has 2"):
        plot_quantile_fan(model, X, y, feature=2)
    with pytest.raises(NotFittedError):
        plot_quantile_fan(QuantileRegressor(), X, y)
    with pytest.raises(ValueError, match="curves must have"):
        QuantileFanDisplay([0.0], [0.0], [0.0, 1.0], [[0.0, 1.0]], [0.5, 0.6]).plot()


def test_many_points_are_thinned():
    x = np.arange(6000.0)
    display = QuantileFanDisplay(x, x, [0.0, 1.0], [[0.0], [1.0]], [0.5]).plot()
    assert texts(display.ax_)[0] == "data (5,000 of 6,000 rows)"
