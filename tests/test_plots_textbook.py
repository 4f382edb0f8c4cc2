"""Pictures of textbooks: balls and contours, hulls, bumps, degrees, samples without noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import trueline as tl
from trueline import plots
from trueline.plots.textbook.balls import touching_point

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

RNG = np.random.default_rng(1)
PLANE = RNG.normal(size=(60, 2)) @ [[1.0, 0.6], [0.0, 1.0]]
TARGET = PLANE @ [1.6, 0.5] + 0.7 * RNG.normal(size=60)
SIGNS = np.where(PLANE @ [1.0, -0.7] > 0, "yes", "no")
APART = np.abs(PLANE @ [1.0, -0.7]) > 0.2
LINE = np.linspace(0.0, 6.0, 30)[:, None]
WAVE = np.sin(1.5 * LINE.ravel()) + 0.2 * RNG.normal(size=30)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("order", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("seed", range(5))
def test_the_contour_touches_the_ball_at_its_best_point(order, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 2))
    H, centre = root @ root.T + 0.1 * np.eye(2), rng.normal(size=2)
    radius = 0.5 * np.linalg.norm(centre, order)
    best = touching_point(centre, H, order, radius)
    assert np.linalg.norm(best, order) == pytest.approx(radius)

    # No point is better, of a fine net on the boundary; the best of these is next to it.
    angle = np.linspace(0, 2 * np.pi, 200_001)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    around *= radius / np.linalg.norm(around, order, axis=1)[:, None]
    errors = np.einsum("ni,ij,nj->n", around - centre, H, around - centre)
    assert (best - centre) @ H @ (best - centre) <= errors.min() + 1e-14
    assert_allclose(best, around[errors.argmin()], atol=1e-4 * radius)


def test_a_ball_that_holds_the_least_squares_solution_is_touched_nowhere():
    centre = np.array([1.0, 0.5])
    assert touching_point(centre, np.eye(2), 2.0, 3.0) is centre
    display = plots.BallDisplay(centre, np.eye(2), share=1.0).plot()
    assert_allclose(display.touching_[2.0], centre)


def test_the_balls_show_least_squares_and_the_lasso_and_the_ridge_of_the_same_norm():
    model = tl.LinearRegression().fit(PLANE, TARGET)
    display = plots.plot_balls(model, PLANE, TARGET)
    assert_allclose(display.centre, model.coef_)
    assert [ax.get_title() for ax in display.ax_] == [
        "$\\|w\\|_1 \\leq t$", "$\\|w\\|_2 \\leq t$", "$\\|w\\|_\\infty \\leq t$",
    ]  # fmt: skip
    # Of the same norm: the ridge and the lasso at some strength.
    ridge = display.touching_[2.0]
    G = np.asarray(display.curvature)
    alpha = (G @ (model.coef_ - ridge) / ridge).mean()
    assert_allclose(tl.Ridge(alpha).fit(PLANE, TARGET).coef_, ridge, rtol=1e-6)
    lasso = display.touching_[1.0]
    slope = G @ (model.coef_ - lasso)
    strength = np.abs(slope).max() / len(TARGET)
    assert_allclose(tl.Lasso(strength).fit(PLANE, TARGET).coef_, lasso, atol=1e-6)


def test_balls_that_cannot_be_drawn():
    model = tl.LinearRegression().fit(LINE, WAVE)
    with pytest.raises(ValueError, match="two columns"):
        plots.plot_balls(model, LINE, WAVE)
    with pytest.raises(ValueError, match="not both zero"):
        plots.BallDisplay([0.0, 0.0], np.eye(2)).plot()
    with pytest.raises(ValueError, match="share"):
        plots.BallDisplay([1.0, 0.0], np.eye(2), share=2.0).plot()


def test_hulls_of_separable_classes_lie_on_both_sides_of_the_line():
    X, y = PLANE[APART], SIGNS[APART]
    for given in (tl.separability(X, y), tl.LinearSVC(C=np.inf).fit(X, y)):
        display = plots.plot_hulls(given, X, y)
        scores = X @ np.asarray(display.coef) + display.intercept
        assert set(y[scores > 0]) == {"yes"}
        assert set(y[scores < 0]) == {"no"}
        (line,) = [line for line in display.ax_.get_lines() if line.get_label() == "line"]
        ends = np.array(line.get_data()).T
        assert_allclose(ends @ np.asarray(display.coef) + display.intercept, 0.0, atol=1e-9)
        assert display.common_point is None


def test_hulls_of_other_classes_share_the_point_that_is_drawn():
    y = SIGNS.copy()
    y[:8] = SIGNS[8:16]
    answer = tl.separability(PLANE, y)
    assert not answer.is_separable
    display = plots.plot_hulls(answer, PLANE, y)
    assert_allclose(display.common_point, answer.common_point)
    for label in ("yes", "no"):
        own = answer.rows[y[answer.rows] == label]
        weights = answer.weights[y[answer.rows] == label]
        assert_allclose(weights @ PLANE[own], display.common_point, atol=1e-12)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[-1] == "in both hulls"
    model = tl.LogisticRegression().fit(PLANE, y)
    assert_allclose(plots.plot_hulls(model, PLANE, y).coef, model.coef_[0])
    with pytest.raises(ValueError, match="two columns and two classes"):
        plots.plot_hulls(tl.separability(LINE, np.arange(30) > 9), LINE, np.arange(30) > 9)


def test_bumps_and_intercept_add_up_to_the_predictions():
    model = make_pipeline(tl.RadialBasisFeatures("grid", n_centres=6), tl.Ridge(0.1))
    display = plots.plot_bumps(model.fit(LINE, WAVE), LINE, WAVE)
    total = display.intercept + np.asarray(display.bumps).sum(axis=1)
    assert_allclose(total, model.predict(np.asarray(display.grid)[:, None]), rtol=1e-12)
    assert np.asarray(display.bumps).shape[1] == 6
    drawn = [line.get_ydata() for line in display.ax_.get_lines() if line.get_label() == "sum"]
    assert_allclose(drawn[0], total)
    with pytest.raises(ValueError, match="RadialBasisFeatures"):
        plots.plot_bumps(tl.Ridge().fit(LINE, WAVE), LINE, WAVE)


def test_degrees_are_drawn_within_the_limits_of_the_data():
    few = slice(None, None, 2)
    x, y = LINE[few], WAVE[few]
    display = plots.plot_degrees(tl.PolynomialRegression().fit(x, y), x, y)
    assert list(display.curves) == [1, 2, 9, 12]
    for ax, (degree, curve) in zip(display.ax_, display.curves.items(), strict=True):
        model = tl.PolynomialRegression(degree).fit(x, y)
        assert_allclose(curve, model.predict(np.asarray(display.grid)[:, None]))
        assert ax.get_ylim() == display.ax_[0].get_ylim()
        error = np.sqrt(np.mean((model.predict(x) - y) ** 2))
        assert ax.get_title() == f"degree {degree}, RMSE {error:.3g}"
    low, high = display.ax_[0].get_ylim()
    assert low < y.min()
    assert high > y.max()
    assert high - low <= 1.5001 * np.ptp(y)
    # A pipeline with the parameter of a step.
    pipe = make_pipeline(PolynomialFeatures(2, include_bias=False), tl.LinearRegression())
    display = plots.plot_degrees(pipe.fit(x, y), x, y, degrees=[1, 3, 5, 7, 9])
    assert len(display.ax_) == 5
    with pytest.raises(ValueError, match="no parameter degree"):
        plots.plot_degrees(tl.Ridge().fit(x, y), x, y)
    with pytest.raises(ValueError, match="one column"):
        plots.plot_degrees(tl.PolynomialRegression().fit(PLANE, TARGET), PLANE, TARGET)


@pytest.mark.parametrize("is_fitted", [True, False])
def test_samples_of_a_process_are_drawn_without_the_noise(is_fitted):
    """The mean and the covariance of many samples: that of the functions, not of new targets."""
    model = tl.GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), optimizer=None)
    noise = 0.1
    if is_fitted:
        model = model.set_params(normalize_y=True).fit(LINE, WAVE)
        noise *= WAVE.std() ** 2
    at = np.linspace(0, 6, 7)[:, None]
    cov = model.predict(at, return_cov=True)[1]
    smooth = model.sample_y(at, 40_000, noise=False)
    assert_allclose(np.cov(smooth), cov - noise * np.eye(7), atol=0.03)
    rough = model.sample_y(at, 40_000)
    assert_allclose(np.cov(rough), cov, atol=0.03)
    if is_fitted:
        display = plots.plot_process(model, LINE, WAVE, samples=3)
        # Noise would show as jumps of about sqrt(2 noise) from one point of the grid to the next.
        assert np.abs(np.diff(display.samples, axis=0)).max() < 0.2
