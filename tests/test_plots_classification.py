"""Pictures of classifiers: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from trueline import LinearSVC
from trueline.plots import (
    ConfusionDisplay,
    MistakeDisplay,
    UpdateAnimation,
    plot_boundary,
    plot_class_coefficients,
    plot_coefficients,
    plot_margin_losses,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

IRIS = load_iris(as_frame=True)
CANCER = load_breast_cancer()
SCALED = (CANCER.data - CANCER.data.mean(axis=0)) / CANCER.data.std(axis=0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def two_classes(columns):
    X, y = IRIS.data.iloc[50:, columns], IRIS.target[50:]
    return LogisticRegression(C=10.0, max_iter=1000).fit(X, y), X, y


# --- boundaries ---------------------------------------------------------------------------------


def test_the_regions_are_the_predictions():
    model, X, y = two_classes([2, 3])
    display = plot_boundary(model, X, y, resolution=30)
    x0, x1 = np.meshgrid(*display.grid)
    grid = X.iloc[:1].reindex(range(x0.size)).assign(**{X.columns[0]: x0.ravel()})
    grid[X.columns[1]] = x1.ravel()
    assert_array_equal(model.classes_[display.regions].ravel(), model.predict(grid))
    assert_allclose(display.scores.ravel(), model.decision_function(grid))
    assert display.ax_.get_xlabel() == "petal length (cm)"


def test_mistakes_are_ringed_and_counted():
    model, X, y = two_classes([2, 3])
    display = plot_boundary(model, X, y)
    wrong = model.predict(X) != y
    assert_array_equal(display.mistaken, wrong)
    assert f"{wrong.sum()} mistakes" in texts(display.ax_)


def test_the_margin_is_the_smallest_score_of_separated_rows():
    X, y = IRIS.data.iloc[:100, [0, 2]], IRIS.target[:100]
    model = LogisticRegression(C=100.0).fit(X, y)
    display = plot_boundary(model, X, y)
    assert display.margin == np.abs(model.decision_function(X)).min()
    assert "margin" in texts(display.ax_)
    assert plot_boundary(model, X, y, margin=None).margin is None
    assert plot_boundary(model, X, y, margin=1.0).margin == 1.0


def test_no_margin_is_shown_where_rows_are_misclassified():
    display = plot_boundary(*two_classes([2, 3]))
    assert display.margin is None
    assert "margin" not in texts(display.ax_)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_many_columns_are_projected_with_every_row_on_its_true_side(container):
    model = LogisticRegression(max_iter=1000).fit(SCALED, CANCER.target)
    display = plot_boundary(model, container(SCALED), CANCER.target)
    distance = model.decision_function(SCALED) / np.linalg.norm(model.coef_)
    assert_allclose(display.points[:, 0], distance)
    right = (display.points[:, 0] > 0) == (display.labels == 1)
    assert_array_equal(right, ~display.mistaken)


def test_the_second_axis_of_a_projection_lies_in_the_boundary():
    model = LogisticRegression(max_iter=1000).fit(SCALED, CANCER.target)
    display = plot_boundary(model, SCALED, CANCER.target)
    # Moving rows along w changes the distance alone.
    moved = SCALED + 3.0 * model.coef_ / np.linalg.norm(model.coef_)
    other = plot_boundary(model, moved, CANCER.target)
    assert_allclose(other.points[:, 0] - display.points[:, 0], 3.0, rtol=1e-9)
    assert_allclose(np.abs(other.points[:, 1]), np.abs(display.points[:, 1]), atol=1e-8)


def test_a_plane_through_named_columns_holds_the_others():
    model = LogisticRegression(max_iter=1000).fit(IRIS.data, IRIS.target)
    names = ("sepal width (cm)", "petal width (cm)")
    display = plot_boundary(model, IRIS.data, IRIS.target, features=names, at=[5.0, 3.0, 4.0, 1.0])
    assert display.names == names
    assert_array_equal(display.points, IRIS.data[list(names)].to_numpy())
    corner = np.array([[5.0, display.grid[0][0], 4.0, display.grid[1][0]]])
    expected = model.predict(
        IRIS.data.iloc[:1]
        .set_axis(IRIS.data.columns, axis=1)
        .assign(**dict(zip(IRIS.data.columns, corner[0], strict=True)))
    )
    assert model.classes_[display.regions[0, 0]] == expected[0]


def test_more_than_two_classes_have_regions_and_no_score():
    model = LogisticRegression(max_iter=1000).fit(IRIS.data, IRIS.target)
    display = plot_boundary(model, IRIS.data, IRIS.target)
    assert display.scores is None
    assert len(np.unique(display.regions)) == 3


def test_a_feature_map_bends_the_boundary():
    X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), [0, 1, 1, 0]
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(C=1e4)).fit(X, y)
    display = plot_boundary(model, X, y)
    assert not display.mistaken.any()
    assert display.normal is None


def test_one_column_is_drawn_with_its_score():
    model, X, y = two_classes([3])
    display = plot_boundary(model, X, y)
    assert len(display.grid) == 1
    edge = display.grid[0][np.flatnonzero(np.diff(display.regions))[0]]
    assert_allclose(edge, -model.intercept_ / model.coef_[0], rtol=0.02)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["1", "2"]


def test_of_many_rows_an_even_selection_is_drawn():
    model, X, y = two_classes([2, 3])
    assert 30 <= len(plot_boundary(model, X, y, max_points=40).points) <= 40


def test_given_axes_are_used():
    figure, ax = plt.subplots()
    display = plot_boundary(*two_classes([2, 3]), ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_boundaries_that_cannot_be_drawn_are_refused():
    model, X, y = two_classes([2, 3])
    with pytest.raises(NotFittedError):
        plot_boundary(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="needs a classifier"):
        plot_boundary(LinearRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="labels that the classifier does not know"):
        plot_boundary(model, X, y + 7)
    with pytest.raises(ValueError, match="feature='size' is not one of"):
        plot_boundary(model, X, y, features=("size", "weight"))
    with pytest.raises(ValueError, match="one or two columns"):
        plot_boundary(model, X, y, features=(0, 1, 0))
    with pytest.raises(ValueError, match="no column 9"):
        plot_boundary(model, X, y, features=(0, 9))
    with pytest.raises(ValueError, match="view='sideways'"):
        plot_boundary(model, X, y, view="sideways")
    neighbours = KNeighborsClassifier().fit(IRIS.data, IRIS.target)
    with pytest.raises(ValueError, match="Name the two to draw"):
        plot_boundary(neighbours, IRIS.data, IRIS.target)
    with pytest.raises(ValueError, match="needs a linear model"):
        plot_boundary(neighbours, IRIS.data, IRIS.target, view="projection")


# --- mistakes -----------------------------------------------------------------------------------


def test_cumulative_mistakes_step_up_where_they_were_made():
    display = MistakeDisplay([1, 2, 5], 8, bound=4.0).plot()
    rows, counts = display.ax_.get_lines()[0].get_data()
    assert_array_equal(rows, [0, 1, 2, 5, 8])
    assert_array_equal(counts, [0, 1, 2, 3, 3])
    assert_array_equal(display.ax_.get_lines()[1].get_ydata(), [4.0, 4.0])


def test_a_bound_far_above_is_said_and_not_drawn():
    display = MistakeDisplay([1, 2, 5], 8, bound=1e6).plot()
    assert any("above the picture" in text for text in texts(display.ax_))
    assert display.ax_.get_ylim()[1] < 10


def test_mistakes_per_pass():
    display = MistakeDisplay([1, 2, 5], 8, epochs=[2, 1, 0]).plot(show="epochs")
    passes, counts = display.ax_.get_lines()[0].get_data()
    assert_array_equal(passes, [1, 2, 3])
    assert_array_equal(counts, [2, 1, 0])
    with pytest.raises(ValueError, match="no counts per pass"):
        MistakeDisplay([1], 2).plot(show="epochs")
    with pytest.raises(ValueError, match="show='all'"):
        MistakeDisplay([1], 2).plot(show="all")


# --- animation ----------------------------------------------------------------------------------

ROWS = np.array([[0.0, 1.0], [1.0, 0.0]])
WEIGHTS = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [-1.0, 1.0, 0.0]])


def test_each_frame_shows_the_boundary_after_a_correction():
    animation = UpdateAnimation(ROWS, [1.0, -1.0], WEIGHTS, [0, 1])
    _, ax = plt.subplots()
    animation.draw(ax, 2)
    assert ax.get_title() == "after 2 corrections: 0 mistakes left"
    x, y = ax.get_lines()[-1].get_data()
    assert_allclose(-x + y, 0.0, atol=1e-12)
    animation.draw(ax, 0)
    assert ax.get_title() == "after 0 corrections: 2 mistakes left"


def test_long_runs_are_thinned_and_keep_both_ends():
    m = 500
    animation = UpdateAnimation(
        ROWS, [1.0, -1.0], np.ones((m + 1, 3)), np.zeros(m, int), max_frames=40
    )
    frames = animation.frames
    assert len(frames) <= 40
    assert (frames[0], frames[1], frames[-1]) == (0, 1, m)


@pytest.mark.parametrize("ending", ["gif", "html"])
def test_animations_are_written(tmp_path, ending):
    path = tmp_path / f"learning.{ending}"
    UpdateAnimation(ROWS, [1.0, -1.0], WEIGHTS, [0, 1]).save(path)
    start = path.read_bytes()[:6]
    assert start == b"GIF89a" if ending == "gif" else len(path.read_text()) > 1000


def test_animations_that_cannot_be_drawn_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two columns"):
        UpdateAnimation(np.ones((2, 3)), [1.0, -1.0], WEIGHTS, [0, 1])
    with pytest.raises(ValueError, match="weights must have shape"):
        UpdateAnimation(ROWS, [1.0, -1.0], WEIGHTS, [0])
    with pytest.raises(ValueError, match=r"\.gif or an \.html"):
        UpdateAnimation(ROWS, [1.0, -1.0], WEIGHTS, [0, 1]).save(tmp_path / "a.mp4")


# --- probabilities, support vectors, losses, confusion, coefficients of classes -------------------


def test_regions_are_shaded_by_the_probabilities():
    model, X, y = two_classes([2, 3])
    display = plot_boundary(model, X, y, shade="probabilities", resolution=20)
    x0, x1 = np.meshgrid(*display.grid)
    at = X.iloc[:1].reindex(range(x0.size)).assign(**{X.columns[0]: x0.ravel()})
    at[X.columns[1]] = x1.ravel()
    assert_allclose(display.probabilities.reshape(-1, 2), model.predict_proba(at))
    three = LogisticRegression().fit(IRIS.data.iloc[:, [0, 2]], IRIS.target)
    display = plot_boundary(three, IRIS.data.iloc[:, [0, 2]], IRIS.target, shade="probabilities")
    assert display.probabilities.shape[-1] == 3


def test_probabilities_that_do_not_exist_are_not_drawn():
    X, y = IRIS.data.iloc[:100, [0, 2]], IRIS.target[:100]
    with pytest.raises(ValueError, match="has no predict_proba"):
        plot_boundary(LinearSVC().fit(X, y), X, y, shade="probabilities")
    model, X, y = two_classes([2])
    with pytest.raises(ValueError, match="two coordinates"):
        plot_boundary(model, X, y, shade="probabilities")


def test_support_vectors_are_marked_and_the_margin_is_at_one():
    X, y = IRIS.data.iloc[50:, [2, 3]], IRIS.target[50:]
    model = LinearSVC(loss="hinge").fit(X, y)
    display = plot_boundary(model, X, y, support=True)
    assert_array_equal(np.flatnonzero(display.support), model.support_)
    assert display.margin == 1.0
    assert f"{len(model.support_)} support vectors" in texts(display.ax_)
    with pytest.raises(ValueError, match="support vector machine"):
        plot_boundary(LogisticRegression().fit(X, y), X, y, support=True)


def test_the_sigmoid_and_the_losses_of_the_margin():
    display = plot_margin_losses(reach=2.0)
    sigmoid, losses = display.ax_
    z, p = sigmoid.get_lines()[-1].get_data()
    assert_allclose(p, 1 / (1 + np.exp(-z)))
    assert texts(losses) == ["0-1", "logistic", "hinge", "squared hinge"]
    drawn = {line.get_label(): line for line in losses.get_lines()}
    margin, hinge = drawn["hinge"].get_data()
    assert_allclose(hinge, np.maximum(0, 1 - margin))
    assert np.isnan(drawn["0-1"].get_ydata()).any()
    with pytest.raises(ValueError, match="reach"):
        plot_margin_losses(reach=0.0)


@pytest.mark.parametrize("numbers", ["counts", "percent", "none"])
def test_the_confusion_matrix_counts_rows(numbers):
    truth, said = ["b", "a", "b", "c"], ["b", "b", "b", "a"]
    display = ConfusionDisplay.from_predictions(truth, said, numbers=numbers)
    assert_array_equal(display.counts, [[0, 1, 0], [0, 2, 0], [1, 0, 0]])
    assert "2 of 4 rows mistaken" in display.ax_.get_title()
    written = {text.get_text() for text in display.ax_.texts}
    assert written == {"counts": {"1", "2"}, "percent": {"100%"}, "none": set()}[numbers]
    turned = ConfusionDisplay.from_predictions(
        truth, said, classes=["c", "b", "a"], sample_weight=[2, 1, 1, 3]
    )
    assert_array_equal(turned.counts, [[0, 0, 3], [0, 3, 0], [0, 1, 0]])


def test_confusion_of_unknown_classes_is_refused():
    with pytest.raises(ValueError, match="lacks"):
        ConfusionDisplay.from_predictions([0, 1], [0, 2], classes=[0, 1])
    with pytest.raises(ValueError, match="one length"):
        ConfusionDisplay.from_predictions([0, 1], [0])


def test_coefficients_of_classes_are_a_map_or_images():
    three = LogisticRegression(max_iter=1000).fit(IRIS.data, IRIS.target)
    display = plot_class_coefficients(three, top=2)
    assert_allclose(display.coef, three.coef_)
    assert len(display.ax_.get_xticks()) == 2
    assert "2 columns" in display.ax_.get_xlabel()
    images = plot_class_coefficients(three, shape=(2, 2))
    assert [ax.get_title() for ax in images.ax_.ravel()] == ["0", "1", "2"]
    model, *_ = two_classes([2, 3])
    both = plot_class_coefficients(model)
    assert_allclose(both.coef, [-model.coef_[0], model.coef_[0]])
    with pytest.raises(ValueError, match="not that of 4 columns"):
        plot_class_coefficients(three, shape=(2, 3))


@pytest.mark.parametrize(("classes", "target", "own"), [(2, 0, "b"), (3, 0, "a"), (3, 2, "c")])
def test_bars_say_which_class_they_speak_for(classes, target, own):
    rng = np.random.default_rng(0)
    y = np.array(list("abc"))[np.arange(60) % classes]
    model = LogisticRegression().fit(rng.normal(size=(60, 3)), y)
    display = plot_coefficients(model, target=target)
    assert display.ax_.get_title() == f"positive coefficients speak for {own}"


def test_bars_of_all_classes_stand_side_by_side_and_more_than_colours_say_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = LogisticRegression().fit(X, np.array(list("abc"))[np.arange(60) % 3])
    display = plot_coefficients(model, sort=False)
    drawn = [[bar.get_width() for bar in bars] for bars in display.bars_]
    assert_allclose(drawn, model.coef_)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b", "c"]
    many = LogisticRegression().fit(X, np.arange(60) % 9)
    title = plot_coefficients(many).ax_.get_title()
    assert title == "positive coefficients speak for 0, the first of 9 classes"
