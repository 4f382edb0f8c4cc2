"""Nested cross-validation, curves against complexity and against the number of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import linear_model
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, validation_curve
from sklearn.model_selection import learning_curve as reference_curve

import trueline as tl

ALPHAS = [0.001, 0.01, 0.1, 1.0]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def test_nested_scores_are_those_of_a_grid_search_in_folds(diabetes):
    X, y = diabetes
    found = tl.nested_cross_validate(tl.Ridge(), X, y, grid={"alpha": ALPHAS}, cv=4, inner_cv=3)
    search = GridSearchCV(linear_model.Ridge(), {"alpha": ALPHAS}, cv=3)
    assert_allclose(found.scores, cross_val_score(search, X, y, cv=4), rtol=1e-9)
    assert found.mean == pytest.approx(found.scores.mean())
    assert "optimism" in str(found)
    assert len(found.settings) == 4


def test_nested_models_by_name_bring_their_grid():
    X, y = load_iris(return_X_y=True)
    found = tl.nested_cross_validate("ridge classifier", X, y, cv=3, inner_cv=3)
    assert found.scorer == "accuracy"
    assert found.mean > 0.75


def test_noise_without_signal_shows_the_optimism():
    """The best of many useless settings looks good; the nested score does not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 60)), rng.integers(0, 2, 40)
    found = tl.nested_cross_validate("ridge classifier", X, y, cv=4, inner_cv=4)
    assert found.inner_scores.mean() > found.mean - 0.2
    assert abs(found.mean - 0.5) < 0.25


def test_curves_against_lambda_are_scikit_learns(diabetes):
    X, y = diabetes
    curve = tl.complexity_curve(X, y, "lambda", ALPHAS, cv=5, scoring="r2")
    train, test = validation_curve(
        linear_model.Ridge(), X, y, param_name="alpha", param_range=ALPHAS, cv=5
    )
    assert_allclose(curve.test, test, rtol=1e-9)
    assert_allclose(curve.train, train, rtol=1e-9)
    assert not curve.grows
    assert curve.best_1se >= curve.best
    single = tl.Ridge(ALPHAS[1]).fit(X, y)
    assert_allclose(curve.aic[1], single.aic())
    assert_allclose(curve.bic[1], single.bic())


@pytest.mark.parametrize(
    ("vary", "values"),
    [("degree", range(1, 8)), ("rbf", [1, 2, 4, 8, 16]), ("subset", range(1, 5))],
)
def test_training_errors_fall_with_complexity(vary, values):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-1, 1, 60))
    y = np.sin(3 * x) + 0.1 * rng.standard_normal(60)
    X = rng.standard_normal((60, 6)) if vary == "subset" else x[:, None]
    y = X @ [3.0, 1.0, 0, 0, 0, 0] + 0.1 * y if vary == "subset" else y
    cv = KFold(4, shuffle=True, random_state=0)
    curve = tl.complexity_curve(X, y, vary, values, cv=cv)
    train = curve.train.mean(axis=1)
    assert train[-1] > train[0]
    assert curve.test.shape == (len(list(values)), 4)
    assert len(curve.bic) == len(train)
    if vary != "rbf":
        assert np.all(np.diff(train) >= -1e-12)


def test_any_parameter_of_any_model(diabetes):
    X, y = diabetes
    curve = tl.complexity_curve(X, y, "l1_ratio", [0.1, 0.9], model=tl.ElasticNet(0.01), cv=3)
    assert curve.values.tolist() == [0.1, 0.9]
    with pytest.raises(ValueError, match="has no parameter 'depth'"):
        tl.complexity_curve(X, y, "depth", [1], model=tl.Ridge())
    with pytest.raises(ValueError, match="give the model"):
        tl.complexity_curve(X, y, "depth", [1])
    with pytest.raises(ValueError, match="values is empty"):
        tl.complexity_curve(X, y, "lambda", [])


def test_learning_curves_are_scikit_learns(diabetes):
    X, y = diabetes
    sizes = [50, 100, 300]
    curve = tl.learning_curve(tl.Ridge(0.1), X, y, sizes=sizes, cv=5)
    count, train, test = reference_curve(linear_model.Ridge(0.1), X, y, train_sizes=sizes, cv=5)
    assert curve.sizes.tolist() == count.tolist()
    assert_allclose(curve.test, test, rtol=1e-9)
    assert_allclose(curve.train, train, rtol=1e-9)


def test_learning_curves_of_sorted_classes_ask_for_shuffling():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="hold one class only.*shuffle=True"):
        tl.learning_curve(tl.RidgeClassifier(), X, y, sizes=[20])
    curve = tl.learning_curve(tl.RidgeClassifier(), X, y, sizes=[40, 100], shuffle=True)
    assert curve.test[-1].mean() > 0.7
    with pytest.raises(ValueError, match="asks for 500 rows"):
        tl.learning_curve(tl.RidgeClassifier(), X, y, sizes=[500])


def test_curves_draw_themselves_and_export(diabetes):
    import matplotlib.pyplot as plt

    X, y = diabetes
    curve = tl.complexity_curve(X, y, "lambda", ALPHAS, cv=3)
    display = curve.plot()
    assert display.twin_ is not None
    assert display.ax_.xaxis_inverted()
    assert list(curve.to_frame().columns) == ["test", "train", "aic", "bic"]
    learning = tl.learning_curve(tl.Ridge(0.1), X, y, cv=3)
    second = learning.plot()
    assert second.ax_.get_xlabel() == "rows to learn from"
    assert list(learning.to_frame().columns) == ["test", "train"]
    plt.close(display.figure_)
    plt.close(second.figure_)
