"""One rule for every plot function: the fitted object first, then X and y, then the axes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import trueline as tl
from trueline import plots

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

X, y = load_diabetes(return_X_y=True, as_frame=True)
BMI = X[["bmi"]]
IRIS, SPECIES = load_iris(return_X_y=True, as_frame=True)
TWO = IRIS.iloc[:100, [0, 2]], SPECIES[:100]
PROCESS = tl.GaussianProcessRegressor(RBF(0.1) + WhiteKernel(0.5), normalize_y=True, optimizer=None)

#: Of each function: the model, the rows it is fitted to, and whether the picture needs them.
FORMS = {
    "plot_alternation": (tl.ChebyshevRegressor(), BMI, y, True),
    "plot_balls": (tl.Ridge(), X[["bmi", "bp"]], y, True),
    "plot_boundary": (tl.LogisticRegression(), *TWO, True),
    "plot_bumps": (make_pipeline(tl.RadialBasisFeatures("grid"), tl.Ridge()), BMI, y, True),
    "plot_class_coefficients": (tl.LogisticRegression(), IRIS, SPECIES, False),
    "plot_coefficients": (tl.Lasso(alpha=1.0), X, y, False),
    "plot_confusion": (tl.LogisticRegression(), IRIS, SPECIES, True),
    "plot_cv_curve": (tl.LassoCV(), X, y, False),
    "plot_degrees": (tl.PolynomialRegression(), BMI, y, True),
    "plot_descent": (
        tl.LinearRegressor(alpha=0.1, solver="gradient_descent", trace=True),
        BMI,
        y,
        True,
    ),
    "plot_fit": (tl.Ridge(), X, y, True),
    "plot_hulls": (tl.LogisticRegression(), *TWO, True),
    "plot_length_scales": (PROCESS, X[:60], y[:60], False),
    "plot_losses": (tl.QuantileRegressor(alpha=0.0), BMI, y, False),
    "plot_margin_losses": (tl.LogisticRegression(), *TWO, False),
    "plot_mistakes": (tl.Perceptron(record_updates=True), *TWO, False),
    "plot_outliers": (tl.LinearRegression(), BMI, y, True),
    "plot_path": (tl.LassoCV(), X, y, True),
    "plot_posterior": (tl.BayesianLinearRegression(), BMI[:30], y[:30], True),
    "plot_process": (PROCESS, BMI[:60], y[:60], True),
    "plot_quantile_fan": (tl.QuantileRegressor(quantile=[0.1, 0.5, 0.9], alpha=0.0), BMI, y, True),
    "plot_steps": (tl.StepwiseRegression(), X, y, False),
    "plot_subsets": (tl.BestSubset(k=[1, 2, 3]), X, y, False),
    "plot_trace": (tl.LinearRegressor("squared", "l1", 10.0, trace=True), X, y, False),
}
PUBLIC = sorted(name for name in plots.__all__ if name.startswith("plot_"))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def given(name):
    """The arguments of a call: the fitted model, and the rows where the picture needs them."""
    model, features, target, needs_rows = FORMS[name]
    model = clone(model).fit(features, target)
    return (model, features, target) if needs_rows else (model,)


def axes_of(display):
    """All axes of a display, in one list."""
    drawn = getattr(display, "ax_", None)
    return list(np.ravel(display.axes_ if drawn is None else drawn))


def test_every_public_function_is_here():
    assert sorted(FORMS) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_the_fitted_object_comes_first_and_a_display_comes_back(name):
    display = getattr(plots, name)(*given(name))
    assert type(display).__name__ in plots.__all__
    assert display.figure_ is not None
    for ax in axes_of(display):
        assert ax.get_xlabel() or [text for text in ax.get_xticklabels() if text.get_text()]
    assert any(ax.get_ylabel() or ax.get_yticklabels() for ax in axes_of(display))
    display.figure_.canvas.draw()


@pytest.mark.parametrize("name", ["plot_posterior", "plot_process", "plot_quantile_fan"])
def test_a_single_feature_is_named_on_the_axis(name):
    display = getattr(plots, name)(*given(name))
    assert axes_of(display)[0].get_xlabel() == "bmi"


def test_the_legend_of_a_comparison_covers_no_model():
    display = tl.compare(X, y, models=["ridge", "lasso", "least squares"]).plot()
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y1 <= display.ax_.get_window_extent().y0  # below, where no title can meet it


@pytest.mark.parametrize("name", PUBLIC)
def test_a_display_prints_as_a_few_lines_without_arrays(name):
    display = getattr(plots, name)(*given(name))
    assert repr(display).startswith(type(display).__name__ + "(")
    assert "array(" not in repr(display)
    assert len(repr(display)) < 500
    assert "<pre>" in display._repr_html_()


@pytest.mark.parametrize("name", PUBLIC)
def test_the_first_parameter_is_the_fitted_object_and_the_axes_follow_the_rows(name):
    parameters = list(inspect.signature(getattr(plots, name)).parameters)
    assert parameters[0] == ("path" if name == "plot_path" else "estimator")
    rows = [p for p in parameters if p in ("X", "y")]
    assert rows in ([], ["X", "y"])
    if name != "plot_posterior":  # a grid of its own
        assert parameters.index("ax") == 1 + len(rows)


#: A posterior is fitted point by point, and a process without data is its prior.
NEED_NO_FIT = {"plot_posterior", "plot_process"}


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - NEED_NO_FIT))
def test_models_that_are_not_fitted_are_refused(name):
    model, features, target, needs_rows = FORMS[name]
    fresh = clone(model)
    with pytest.raises((NotFittedError, ValueError), match=r"not fitted|does not keep its rows"):
        getattr(plots, name)(*((fresh, features, target) if needs_rows else (fresh,)))


# --- pipelines and searches -----------------------------------------------------------------------


def piped(model):
    return make_pipeline(StandardScaler(), model).fit(X, y)


def test_the_last_step_of_a_pipeline_is_drawn_with_the_names_of_its_columns():
    display = plots.plot_coefficients(piped(tl.Lasso(alpha=1.0)), top=2)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["bmi", "s5"]


def test_the_path_of_a_pipeline_is_that_of_the_transformed_rows():
    display = plots.plot_path(piped(tl.LassoCV()), X, y, top=None)
    scaled = StandardScaler().fit_transform(X)
    direct = plots.plot_path(tl.LassoCV().fit(scaled, y), scaled, y)
    assert set(display.lines_) == set(X.columns)
    np.testing.assert_allclose(display.alphas, direct.alphas, rtol=1e-10)


def test_the_curve_of_a_pipeline_and_the_best_model_of_a_search():
    pipeline = piped(tl.LassoCV())
    assert plots.plot_cv_curve(pipeline, X, y).alpha_min_ == pipeline[-1].alpha_
    search = GridSearchCV(tl.Ridge(), {"alpha": [0.01, 1.0]}).fit(X, y)
    display = plots.plot_coefficients(search, top=None, sort=False)
    np.testing.assert_array_equal(display.coef, search.best_estimator_.coef_)


# --- plain numbers --------------------------------------------------------------------------------

NUMBERS = {
    "plot_coefficients": (["a", "b"],),
    "plot_confusion": ([0, 1, 1], X, y),
    "plot_cv_curve": ([1.0, 0.1],),
    "plot_fit": ([1.0, 2.0], X, y),
    "plot_outliers": (BMI, BMI, y),
}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_plain_numbers_are_drawn_by_the_displays(name):
    with pytest.raises(TypeError, match=r"takes the fitted object first, got \w+\. Plain numbers"):
        getattr(plots, name)(*NUMBERS[name])


def test_pictures_that_a_model_does_not_have():
    ridge = tl.Ridge().fit(X, y)
    with pytest.raises(ValueError, match="plot_path\\(model, X, y\\)"):
        plots.plot_path(tl.LassoCV().fit(X, y))
    with pytest.raises(ValueError, match="Ridge has no errors of folds"):
        plots.plot_cv_curve(ridge)
    with pytest.raises(ValueError, match="Ridge has no path of subsets"):
        plots.plot_subsets(ridge)
    with pytest.raises(ValueError, match="has no path to draw"):
        plots.plot_path(tl.LinearSVR().fit(X, y), X, y)
    with pytest.raises(ValueError, match="plot_confusion or plot_boundary"):
        plots.plot_fit(tl.LogisticRegression().fit(IRIS, SPECIES), IRIS, SPECIES)
    with pytest.raises(ValueError, match="plot_coefficients draws regressors"):
        plots.plot_class_coefficients(ridge)
    with pytest.raises(ValueError, match="KernelRidge has no coefficients"):
        plots.plot_coefficients(tl.KernelRidge().fit(X, y))
