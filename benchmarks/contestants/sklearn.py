"""scikit-learn."""

from __future__ import annotations

from benchmarks.contestants.base import Contestant
from benchmarks.objective import Answer, Data


def least_squares(data: Data) -> Answer:
    """LinearRegression with default parameters."""
    from sklearn.linear_model import LinearRegression

    model = LinearRegression(fit_intercept=data.fit_intercept).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def ridge(data: Data) -> Answer:
    """Ridge at one strength."""
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=data.alphas[0]).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, data.alphas[0])


def ridge_cv(data: Data) -> Answer:
    """RidgeCV, leave-one-out or folds."""
    from sklearn.linear_model import RidgeCV

    model = RidgeCV(alphas=data.alphas, cv=data.folds or None).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, model.alpha_)


def grid_search(data: Data) -> Answer:
    """GridSearchCV over Ridge, on all cores."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(Ridge(), {"alpha": data.alphas}, cv=data.folds, n_jobs=-1)
    model = search.fit(data.X, data.y).best_estimator_
    return Answer(model.coef_, model.intercept_, model.alpha)


CONTESTANTS = (
    Contestant(
        "scikit-learn",
        {
            "least_squares": least_squares,
            "ridge": ridge,
            "ridge_cv": ridge_cv,
            "ridge_folds": ridge_cv,
        },
    ),
    Contestant("scikit-learn GridSearchCV(Ridge)", {"ridge_folds": grid_search}),
)
