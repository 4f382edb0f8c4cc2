"""Pictures of processes and posteriors show what they say."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from trueline import BayesianLinearRegression, GaussianProcessRegressor
from trueline.plots import (
    LengthScaleDisplay,
    PosteriorDisplay,
    ProcessDisplay,
    plot_length_scales,
    plot_posterior,
    plot_process,
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.fixture
def process():
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 6, size=(40, 2))
    y = np.sin(X[:, 0]) + 0.1 * generator.normal(size=40)
    kernel = 1.0 * RBF([1.0, 10.0]) + WhiteKernel(0.01)
    return GaussianProcessRegressor(kernel, optimizer=None).fit(X, y), X, y


def test_the_band_is_that_of_the_predictions(process):
    model, X, y = process
    display = plot_process(model, X, y, samples=3)
    rows = np.column_stack([display.grid, np.full(len(display.grid), np.median(X[:, 1]))])
    mean, std = model.predict(rows, return_std=True)
    lines = display.ax_.get_lines()
    np.testing.assert_allclose(lines[-1].get_ydata(), mean)
    assert len(lines) == 4
    band = display.ax_.collections[0].get_paths()[0].get_extents()
    assert band.y1 == pytest.approx((mean + 2 * std).max())
    assert display.ax_.get_xlabel() == "x0"


def test_process_display_checks_lengths():
    with pytest.raises(ValueError, match="equally long"):
        ProcessDisplay([0], [0], [0, 1], [0, 1], [1]).plot()


def test_length_scales_are_bars_with_the_shortest_on_top(process):
    display = plot_length_scales(process[0])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["x1", "x0"]
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, [0.1, 1.0])
    with pytest.raises(ValueError, match="positive"):
        LengthScaleDisplay([0.0]).plot()
    X = process[1]
    linear = GaussianProcessRegressor(DotProduct(), optimizer=None, alpha=1.0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="no length scales"):
        plot_length_scales(linear)


def test_the_posterior_is_updated_point_by_point():
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, size=12)
    y = 1.0 + 2.0 * x + 0.2 * generator.normal(size=12)
    display = plot_posterior(BayesianLinearRegression(0.1), x, y)
    assert [ax.get_title() for ax in display.axes_[0]] == [
        "2 points",
        "3 points",
        "5 points",
        "12 points",
    ]
    whole = BayesianLinearRegression(0.1).fit(x[:, None], y)
    centre = display.axes_[1, -1].get_lines()[-1]
    np.testing.assert_allclose(centre.get_xdata(), whole.intercept_, rtol=1e-9)
    np.testing.assert_allclose(centre.get_ydata(), whole.coef_, rtol=1e-9)


def test_the_ellipses_hold_their_share_of_the_posterior():
    generator = np.random.default_rng(2)
    x = generator.uniform(2, 3, size=8)
    y = x + 0.3 * generator.normal(size=8)
    display = PosteriorDisplay(BayesianLinearRegression(0.1), x, y, steps=[8]).plot()
    model = BayesianLinearRegression(0.1).fit(x[:, None], y)
    coef, intercept, _ = model.sample_posterior(40_000)
    points = np.column_stack([intercept, coef[:, 0]])
    for line, level in zip(display.axes_[1, 0].get_lines()[:2], (0.5, 0.95)):
        from matplotlib.path import Path

        inside = Path(np.column_stack(line.get_data())).contains_points(points).mean()
        assert inside == pytest.approx(level, abs=0.01)


@pytest.mark.parametrize("steps", [[], [0, 2], [3, 2], [2, 99]])
def test_bad_steps_are_refused(steps):
    with pytest.raises(ValueError, match="steps must be"):
        PosteriorDisplay(BayesianLinearRegression(), np.arange(5.0), np.arange(5.0), steps).plot()
