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

from trueline import (
    BestSubset,
    ElasticNetCV,
    Lasso,
    LassoCV,
    Ridge,
    RidgeCV,
    SequentialFeatureSelector,
    StepwiseRegression,
    lasso_path,
    regularization_path,
)
from trueline.errors import MissingExtraError
from trueline.plots import (
    CoefficientDisplay,
    CVCurveDisplay,
    FitDisplay,
    PathDisplay,
    StepsDisplay,
    SubsetDisplay,
    TraceDisplay,
    plot_path,
    plot_steps,
    plot_subsets,
    plot_trace,
)
from trueline.plots.path import spread
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
    display = CoefficientDisplay(["a", "b", "c"], [0.5, -2.0, 1.0]).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["b", "c", "a"]
    assert_allclose([bar.get_width() for bar in display.bars_], [-2.0, 1.0, 0.5])
    assert display.ax_.yaxis_inverted()


def test_coefficients_in_their_own_order_and_the_largest_only():
    display = CoefficientDisplay(["a", "b", "c"], [0.5, -2.0, 1.0]).plot(sort=False, top=2)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["b", "c"]
    assert "1 smaller" in display.ax_.get_xlabel()
    everything = CoefficientDisplay(["a", "b", "c"], [0.5, -2.0, 1.0]).plot(top=None)
    assert len(everything.bars_) == 3


def test_whiskers_end_where_the_intervals_do():
    display = CoefficientDisplay(["a", "b"], [1.0, 2.0], interval=[[0.5, 1.5], [1.0, 3.5]]).plot()
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
        CoefficientDisplay(["a", "b"], [1.0]).plot()
    with pytest.raises(ValueError, match="intervals"):
        CoefficientDisplay(["a"], [1.0], interval=[1.0]).plot()


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
    display = FitDisplay([1.0, 2.0, 3.0], [1.0, 2.0, 3.5], feature=[2.0, 1.0, 3.0], name="t").plot()
    x, y = display.ax_.lines[0].get_data()
    assert_allclose(x, [1.0, 2.0, 3.0])
    assert_allclose(y, [2.0, 1.0, 3.5])


def test_many_points_are_sampled_and_the_legend_says_so():
    y = np.arange(20_000.0)
    ax = FitDisplay(y, y).plot().ax_
    assert len(ax.collections[0].get_offsets()) == 5000
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "data (5,000 of 20,000 rows)" in texts


def test_a_constant_target_has_no_r_squared():
    assert FitDisplay([1.0, 1.0], [1.0, 1.0]).plot().ax_.get_legend().get_title().get_text() == ""


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="equally long"):
        FitDisplay([1.0, 2.0], [1.0]).plot()


# --- paths, errors of folds, subsets, steps ------------------------------------------------------

NAMES = ["age", "sex", "bmi", "bp"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, X @ [0.0, 3.0, -2.0, 0.3] + rng.normal(size=60)


@pytest.fixture(scope="module")
def frame(rows):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(rows[0], columns=NAMES)


def shown_counts(display):
    """The numbers on the upper axis, by the place where they stand."""
    labels = [int(label.get_text()) for label in display.top_.get_xticklabels()]
    return dict(zip(display.top_.get_xticks(), labels))


def vertical_lines(display):
    """Where the marked strengths stand, by name."""
    return {
        line.get_label(): line.get_xdata()[0]
        for line in display.ax_.get_lines()
        if len(line.get_xdata()) == 2 and line.get_xdata()[0] == line.get_xdata()[1]
    }


def test_a_path_shows_coefficients_names_and_counts(rows):
    path = regularization_path(*rows, alphas=30)
    display = plot_path(path, names=NAMES)
    assert list(display.lines_) == ["sex", "bmi", "bp", "age"]  # the largest first
    for name, line in display.lines_.items():
        assert_allclose(line.get_xdata(), path.alphas)
        assert_allclose(line.get_ydata(), path.coefs.toarray()[NAMES.index(name)])
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == list(display.lines_)
    for alpha, count in shown_counts(display).items():
        assert count == path.n_nonzero[np.argmin(np.abs(path.alphas - alpha))]
    assert min(shown_counts(display).values()) == 0
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.xaxis_inverted()  # weaker to the right


def test_a_path_against_the_norm_is_made_of_straight_lines(rows):
    path = regularization_path(*rows, alphas=30)
    display = plot_path(path, against="norm", marked={"chosen": path.alphas[7]})
    norms = np.abs(path.coefs.toarray()).sum(axis=0)
    assert_allclose(display.lines_["x1"].get_xdata(), norms)
    assert_allclose(vertical_lines(display)["chosen"], norms[7])
    assert display.ax_.get_xscale() == "linear"


def test_a_path_of_scikit_learns_form_in_any_order(rows):
    alphas, coefs, _ = lasso_path(*rows, alphas=20)
    display = plot_path((alphas[::-1], coefs[:, ::-1]))
    assert_allclose(display.lines_["x1"].get_xdata(), alphas)
    assert_allclose(display.lines_["x1"].get_ydata(), coefs[1])


def test_only_the_largest_coefficients_are_named(rows):
    path = regularization_path(*rows, alphas=20)
    display = plot_path(path, top=2)
    assert list(display.lines_) == ["x1", "x2"]
    assert len(display.ax_.texts) == 2
    drawn = [line for line in display.ax_.get_lines() if len(line.get_xdata()) == 20]
    assert len(drawn) == 4


def test_the_path_of_an_estimator_is_marked_where_it_chose(rows, frame):
    y = rows[1]
    model = LassoCV(alphas=25, cv=4).fit(frame, y)
    display = PathDisplay.from_estimator(model, frame, y)
    assert_allclose(display.lines_["bmi"].get_xdata(), model.alphas_)
    assert vertical_lines(display) == {
        "smallest error": model.alpha_min_,
        "one standard error": model.alpha_1se_,
    }
    at = np.argmin(np.abs(model.alphas_ - model.alpha_))
    assert_allclose(display.lines_["bmi"].get_ydata()[at], model.coef_[2], rtol=1e-6)
    fixed = PathDisplay.from_estimator(Lasso(alpha=0.2).fit(*rows), *rows)
    assert vertical_lines(fixed) == {"alpha": 0.2}


@pytest.mark.parametrize("make", [lambda: Ridge(20.0), lambda: RidgeCV(alphas=[2.0, 20.0])])
def test_the_path_of_a_ridge_regression_is_drawn_in_its_own_strengths(rows, make):
    X, y = rows
    model = make().fit(X, y)
    display = plot_path(model, X, y)
    strength = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    assert list(vertical_lines(display).values()) == [strength]
    line = display.lines_["x1"]
    at = np.argmin(np.abs(np.log(line.get_xdata() / strength)))
    alpha = line.get_xdata()[at]
    assert_allclose(line.get_ydata()[at], Ridge(alpha).fit(X, y).coef_[1], rtol=1e-9)
    assert display.top_.get_xlabel() == "degrees of freedom"
    with pytest.raises(ValueError, match="one target"):
        plot_path(Ridge().fit(X, np.c_[y, y]), X, np.c_[y, y])


def test_paths_that_cannot_be_drawn(rows):
    with pytest.raises(ValueError, match=r"shape \(d, 3\)"):
        plot_path(([1.0, 0.5, 0.1], np.zeros((2, 4))))
    with pytest.raises(ValueError, match="two positive strengths"):
        plot_path(([1.0, 0.0], np.zeros((2, 2))))
    with pytest.raises(ValueError, match="3 names for 4 columns"):
        plot_path(regularization_path(*rows, alphas=3), names=["a", "b", "c"])
    with pytest.raises(ValueError, match="against='lambda'"):
        plot_path(regularization_path(*rows, alphas=3), against="lambda")
    with pytest.raises(NotFittedError):
        PathDisplay.from_estimator(Lasso(), *rows)


@pytest.mark.parametrize("seed", range(5))
def test_names_are_moved_apart_no_further_than_needed(seed):
    scipy_optimize = pytest.importorskip("scipy.optimize")
    places = np.random.default_rng(seed).normal(size=6)
    moved = spread(places, gap=0.5, low=-2.0, high=2.0)
    order = np.argsort(places)
    assert np.diff(moved[order]).min() >= 0.5 - 1e-12
    assert moved.min() >= -2.0
    assert moved.max() <= 2.0 + 1e-12
    # The same as a quadratic program.
    apart = np.diff(np.eye(6)[order], axis=0)
    best = scipy_optimize.minimize(
        lambda t: np.sum((t - places) ** 2),
        np.linspace(-2, 2, 6)[np.argsort(order)],
        bounds=[(-2, 2)] * 6,
        constraints={"type": "ineq", "fun": lambda t: apart @ t - 0.5},
        options={"ftol": 1e-14},
    )
    assert_allclose(moved, best.x, atol=1e-5)


def test_a_curve_of_folds_shows_means_standard_errors_and_both_rules(rows):
    model = LassoCV(alphas=25, cv=4).fit(*rows)
    display = CVCurveDisplay.from_estimator(model, *rows)
    mean = model.mse_path_.mean(axis=1)
    error = model.mse_path_.std(axis=1, ddof=1) / 2  # the root of four folds
    points, _, (bars,) = display.errorbar_
    assert_allclose(points.get_xdata(), model.alphas_)
    assert_allclose(points.get_ydata(), mean)
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert_allclose(ends, np.column_stack([mean - error, mean + error]))
    assert (display.alpha_min_, display.alpha_1se_) == (model.alpha_min_, model.alpha_1se_)
    assert vertical_lines(display) == {
        "smallest error": model.alpha_min_,
        "one standard error": model.alpha_1se_,
    }
    counts = regularization_path(*rows, alphas=model.alphas_).n_nonzero
    for alpha, count in shown_counts(display).items():
        assert count == counts[np.argmin(np.abs(model.alphas_ - alpha))]


def test_a_curve_of_the_mixture_that_was_chosen(rows):
    model = ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=15, cv=3).fit(*rows)
    display = CVCurveDisplay.from_estimator(model)
    best = [0.2, 0.9].index(model.l1_ratio_)
    assert_allclose(display.errorbar_[0].get_xdata(), model.alphas_[best])
    assert_allclose(display.errorbar_[0].get_ydata(), model.mse_path_[best].mean(axis=1))
    assert display.alpha_min_ == model.alpha_
    assert display.top_ is None


def test_one_fold_has_no_standard_error():
    display = CVCurveDisplay([1.0, 0.5, 0.1], [[3.0], [1.0], [2.0]]).plot()
    assert display.alpha_min_ == display.alpha_1se_ == 0.5
    assert list(vertical_lines(display)) == ["smallest error"]


def test_the_best_strength_may_be_zero():
    display = CVCurveDisplay([1.0, 0.5, 0.1, 0.0], [[9.0, 8], [5, 6], [4, 3], [1, 1]]).plot()
    assert display.alpha_min_ == 0.0
    assert len(display.errorbar_[0].get_xdata()) == 3


def test_curves_that_cannot_be_drawn(rows):
    with pytest.raises(ValueError, match=r"shape \(2, folds\)"):
        CVCurveDisplay([1.0, 0.5], [[1.0, 2.0, 3.0]]).plot()
    with pytest.raises(ValueError, match="no errors of folds"):
        CVCurveDisplay.from_estimator(Lasso(0.1).fit(*rows))


def test_subsets_by_the_criterion_that_chose(rows):
    model = BestSubset(criterion="aic").fit(*rows)
    display = SubsetDisplay.from_estimator(model)
    assert_allclose(display.lines_["proven"].get_ydata(), model.path_.criteria["aic"])
    assert_allclose(display.lines_["proven"].get_xdata(), model.path_.k)
    assert display.lines_["chosen"].get_xdata() == [model.k_]
    assert "not proven" not in display.lines_
    assert display.ax_.get_ylabel() == "AIC"
    other = plot_subsets(model.path_, criterion="objective")
    assert_allclose(other.lines_["proven"].get_ydata(), model.path_.objective)


def test_what_is_not_proven_is_hollow_and_shows_its_bound():
    display = SubsetDisplay(
        [3, 1, 2], [2.0, 9.0, 4.0], [False, True, True], "objective", lower=[1.5, 9.0, 4.0]
    ).plot()
    assert_allclose(display.lines_["not proven"].get_xydata(), [[3.0, 2.0]])
    assert display.lines_["not proven"].get_markerfacecolor() == "white"
    assert_allclose(display.lines_["proven"].get_xydata(), [[1.0, 9.0], [2.0, 4.0]])
    (bounds,) = display.ax_.collections
    assert_allclose(bounds.get_segments(), [[[3.0, 1.5], [3.0, 2.0]]])


def test_subsets_that_cannot_be_drawn(rows):
    with pytest.raises(ValueError, match="equally long"):
        SubsetDisplay([1, 2], [1.0]).plot()
    with pytest.raises(ValueError, match="nothing to draw"):
        SubsetDisplay([1], [np.nan]).plot()
    with pytest.raises(ValueError, match="criterion='r2'"):
        plot_subsets(BestSubset(k=[1, 2]).fit(*rows).path_, criterion="r2")


def tick_labels(display):
    return [label.get_text() for label in display.ax_.get_xticklabels()]


def test_steps_show_what_came_and_went(rows, frame):
    model = StepwiseRegression(direction="backward", criterion="bic").fit(frame, rows[1])
    display = StepsDisplay.from_estimator(model)
    went = ["− " + NAMES[step["left"][0]] for step in model.history_[1:]]
    assert tick_labels(display) == ["start", *went]
    values = [step["criterion"] for step in model.history_]
    assert_allclose(display.lines_["left"].get_ydata(), values[1:])
    assert_allclose(display.lines_["start"].get_ydata(), values[:1])
    assert display.ax_.get_ylabel() == "BIC"


def test_steps_by_cross_validation_show_their_standard_error(rows):
    model = StepwiseRegression(criterion="cv").fit(*rows)
    display = plot_steps(model.history_, criterion="cv")
    assert tick_labels(display)[1] == f"+ x{model.history_[1]['entered'][0]}"
    segments = display.ax_.collections[0].get_segments()
    half = [(s[1, 1] - s[0, 1]) / 2 for s in segments]
    assert_allclose(half, [step["standard_error"] for step in model.history_])


@pytest.mark.parametrize(("direction", "sign"), [("forward", "+"), ("backward", "−")])
def test_steps_of_a_sequential_selector(rows, direction, sign):
    selector = SequentialFeatureSelector(Ridge(), n_features_to_select=2, direction=direction)
    display = StepsDisplay.from_estimator(selector.fit(*rows))
    assert tick_labels(display) == [f"{sign} x{step['feature']}" for step in selector.history_]


def test_many_steps_are_numbered_and_groups_are_cut_short():
    many = StepsDisplay(range(50), [["a"]] * 50, [[]] * 50).plot()
    assert many.ax_.get_xlabel() == "step"
    group = StepsDisplay([2.0, 1.0], [[], ["a", "b", "c"]], [[], []]).plot()
    assert tick_labels(group) == ["start", "+ a, b, ..."]


def test_steps_that_cannot_be_drawn(rows):
    with pytest.raises(ValueError, match="2 values"):
        StepsDisplay([1.0, 2.0], [[]], [[], []]).plot()
    with pytest.raises(ValueError, match="no history"):
        StepsDisplay.from_estimator(Lasso().fit(*rows))


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plot_trace(make_trace(), ax),
        lambda ax: CoefficientDisplay(["a"], [1.0]).plot(ax),
        lambda ax: FitDisplay([1.0, 2.0], [1.0, 2.0]).plot(ax),
        lambda ax: plot_path(([1.0, 0.1], [[0.0, 2.0]]), ax=ax),
        lambda ax: CVCurveDisplay([1.0, 0.1], [[2.0, 3.0], [1.0, 1.5]]).plot(ax),
        lambda ax: SubsetDisplay([1, 2], [3.0, 2.0]).plot(ax),
        lambda ax: StepsDisplay([3.0, 2.0], [[], ["a"]], [[], []]).plot(ax),
    ],
    ids=["trace", "coefficients", "fit", "path", "cv_curve", "subsets", "steps"],
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
