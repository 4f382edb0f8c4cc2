"""Pictures of what happened step by step: the lines have the numbers of the steps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trueline import SVC, LinearRegression, LinearRegressor, LogisticRegression, Perceptron
from trueline.losses import Absolute, Hinge, Logistic, PerceptronLoss, Quantile, Squared, ZeroOne
from trueline.plots import plot_boundary, plot_descent, plot_losses, plot_mistakes, plot_trace

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
AND, XOR = np.array([0, 0, 0, 1]), np.array([0, 1, 1, 0])
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((40, 2))
Y = X @ [1.0, -1.5] + 0.3 + 0.2 * RANDOM.standard_normal(40)
SIGNS = np.where(Y > 0, 1, -1)
DESCENT = {"solver": "gradient_descent", "trace": True}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def labels_of(ax):
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


# --- traces -------------------------------------------------------------------------------------


def test_the_pocket_is_drawn_over_the_errors_of_all_weights():
    model = Perceptron(variant="pocket", max_iter=20, trace=True).fit(CORNERS, XOR)
    display = plot_trace(model)
    now, pocket = display.lines_
    assert_array_equal(now.get_ydata(), model.trace_["errors"])
    assert_array_equal(pocket.get_ydata(), model.trace_["pocket"])
    assert labels_of(display.ax_) == ["present weights", "pocket"]


@pytest.mark.parametrize("against", ["iteration", "visits"])
def test_the_errors_of_a_perceptron(against):
    model = Perceptron(variant="textbook", trace=True).fit(CORNERS, AND)
    (line,) = plot_trace(model, against=against).lines_
    assert_array_equal(line.get_xdata(), model.trace_[against])
    assert line.get_ydata()[-1] == 0


def test_smo_has_the_violation_of_the_conditions_beside_the_objective():
    model = SVC(kernel="linear", solver="textbook_smo", trace=True).fit(X, SIGNS)
    display = plot_trace(model)
    _, violation = display.lines_
    shown = model.trace_["violation"]
    assert_array_equal(violation.get_ydata(), shown[shown > 0])
    assert "largest violation of the KKT conditions" in labels_of(display.ax_)


def test_what_a_trace_does_not_have_is_refused_with_what_it_has():
    model = Perceptron(variant="textbook", trace=True).fit(CORNERS, AND)
    with pytest.raises(ValueError, match=r"against='seconds' is not one of .*'visits'"):
        plot_trace(model, against="seconds")


# --- descents -----------------------------------------------------------------------------------


def test_the_way_of_a_descent_over_its_objective():
    setting = {"penalty": None, "trace": True, "max_iter": 5}
    models = {
        "batch": LinearRegressor(solver="gradient_descent", **setting),
        "stochastic": LinearRegressor(solver="stochastic_gradient", random_state=0, **setting),
    }
    for model in models.values():
        model.fit(X, Y, coef_init=[-1.0, 1.0])
    display = plot_descent(models, X, Y)
    best = np.linalg.lstsq(np.column_stack([X, np.ones(40)]), Y, rcond=None)[0]
    assert_allclose(display.minimum, best[:2], atol=1e-6)
    for ax, (label, model) in zip(display.ax_, models.items(), strict=True):
        assert ax.get_title() == label
        assert_array_equal(ax.get_lines()[0].get_xydata(), model.trace_.coef)
    # 1/2 ||X w + b - y||^2 with b where it is at the minimum.
    at = np.array([[0.5, -0.5], [2.0, 0.0]])
    expected = [0.5 * np.sum((X @ w + best[2] - Y) ** 2) for w in at]
    assert_allclose(display.objective(at), expected, rtol=1e-6)


def test_a_descent_at_the_end_of_a_pipeline_is_over_its_own_columns():
    model = make_pipeline(StandardScaler(), LinearRegressor(penalty=None, **DESCENT)).fit(X, Y)
    display = plot_descent(model, X, Y)
    assert_allclose(
        display.minimum, LinearRegression().fit(StandardScaler().fit_transform(X), Y).coef_
    )
    assert display.names == ("weight of x0", "weight of x1")


def test_one_column_is_drawn_with_the_intercept():
    model = LogisticRegression(solver="gradient_descent", eta0=0.05, trace=True, max_iter=1)
    model.fit(X[:, :1], SIGNS, coef_init=[[2.0]], intercept_init=[1.0])
    display = plot_descent(model, X[:, :1], SIGNS)
    assert display.names == ("$w_{1}$", "$b$")
    path = display.ax_[0].get_lines()[0].get_xydata()
    assert_array_equal(path[0], [2.0, 1.0])
    assert_array_equal(path[-1], [model.coef_[0, 0], model.intercept_[0]])


def test_descents_that_cannot_be_drawn():
    model = LinearRegressor(solver="gradient_descent", trace=True, max_iter=3).fit(X, Y)
    with pytest.raises(ValueError, match="two different numbers from 0 to 2"):
        plot_descent(model, X, Y, features=(1, 1))
    with pytest.raises(ValueError, match="1 paths to draw on 2 axes"):
        plot_descent(model, X, Y, ax=plt.subplots(1, 2)[1])
    with pytest.raises(ValueError, match="does not minimise an objective of its weights"):
        plot_descent(Perceptron(variant="cyclic", trace=True).fit(X, SIGNS), X, SIGNS)


# --- mistakes -----------------------------------------------------------------------------------


def test_rows_that_are_wrong_after_each_pass_beside_the_mistakes_in_it():
    model = Perceptron(variant="shuffled", trace=True, random_state=3).fit(X, SIGNS)
    made, left = plot_mistakes(model, show="epochs").ax_.get_lines()
    assert_array_equal(made.get_ydata(), model.records_[0].mistakes_per_pass)
    after = []
    for passes in range(1, model.n_iter_ + 1):
        part = Perceptron(max_iter=passes, tol=None, random_state=3).fit(X, SIGNS)
        score = X @ part.coef_[0] + part.intercept_[0]
        after.append(int((SIGNS * score <= 0).sum()))
    assert_array_equal(left.get_ydata(), after)


def test_the_textbook_form_draws_its_mistakes_without_being_asked():
    model = Perceptron(variant="textbook").fit(CORNERS, AND)
    display = plot_mistakes(model)
    assert_array_equal(display.positions, model.records_[0].times)
    assert display.ax_.get_lines()[0].get_ydata()[-1] == model.records_[0].mistakes > 0
    with pytest.raises(ValueError, match="plot_trace"):
        display.plot(show="epochs")


def test_mistakes_of_a_stream():
    stream = [(X[i : i + 4], SIGNS[i : i + 4]) for i in range(0, 40, 4)]
    model = Perceptron().fit_stream(stream, classes=[-1, 1])
    display = plot_mistakes(model)
    rows, counts = display.ax_.get_lines()[0].get_data()
    assert (rows[-1], counts[-1]) == (40, model.progress_.mistakes)
    for seen, mistakes in model.progress_.blocks:
        assert counts[rows <= seen].max() == mistakes


# --- losses -------------------------------------------------------------------------------------


def test_the_legend_answers_what_a_lecture_asks_of_a_loss():
    display = plot_losses(
        {"p": PerceptronLoss(), "h": Hinge(), "l": Logistic(), "z": ZeroOne()}, properties=True
    )
    assert labels_of(display.ax_[0]) == [
        "p: convex, corner, Lipschitz 1",
        "h: convex, corner, Lipschitz 1, l above 0-1",
        "l: strictly convex, differentiable, Lipschitz 1, 1.44 l above 0-1",  # 1 / log 2
        "z: not convex, not Lipschitz, l above 0-1",
    ]


def test_at_a_corner_all_subgradients_are_drawn():
    slopes = plot_losses({"q": Quantile(0.8), "p": Absolute()}).ax_[1]
    dotted = [
        line.get_xydata().tolist() for line in slopes.get_lines() if line.get_linestyle() == ":"
    ]
    # Of z - y: 0.2 above zero and -0.8 below; the absolute error 1 and -1.
    assert_allclose(dotted, [[[0, -0.8], [0, 0.2]], [[0, -1], [0, 1]]])


def test_losses_of_labels_are_drawn_against_the_margin():
    value, slope = plot_losses({"p": PerceptronLoss(), "h": Hinge()}).ax_
    assert value.get_xlabel() == slope.get_xlabel() == "margin $y z$"
    margin, height = value.get_lines()[0].get_data()
    seen = np.isfinite(height)
    assert_allclose(height[seen], np.maximum(0, -margin[seen]), atol=1e-8)
    assert "0-1" in labels_of(value)
    with pytest.raises(ValueError, match="not drawn in one picture"):
        plot_losses({"h": Hinge(), "s": Squared()})


# --- titles and few rows ------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("layout", ["constrained", None])
def test_a_title_of_ones_own_is_not_printed_over(before, layout):
    _, ax = plt.subplots(layout=layout)
    if before:
        ax.set_title("AND")
    plot_boundary(Perceptron(variant="cyclic").fit(CORNERS, AND), CORNERS, AND, ax=ax)
    ax.set_title("AND")
    ax.figure.canvas.draw()
    legend, title = (part.get_window_extent() for part in (ax.get_legend(), ax.title))
    assert not legend.overlaps(title)
    assert title.y1 <= ax.figure.bbox.y1
    assert legend.y0 >= ax.figure.bbox.y0


def test_few_rows_are_drawn_large():
    few = plot_boundary(Perceptron(variant="cyclic").fit(CORNERS, AND), CORNERS, AND)
    many = plot_boundary(LogisticRegression().fit(X, SIGNS), X, SIGNS)

    def size(display):
        scatters = [part for part in display.ax_.collections if hasattr(part, "get_sizes")]
        return min(part.get_sizes()[0] for part in scatters if len(part.get_sizes()))

    assert size(few) > 2 * size(many)
