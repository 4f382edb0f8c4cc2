"""This library."""

from __future__ import annotations

from benchmarks.contestants.base import Contestant
from benchmarks.objective import Answer, Data


def least_squares(data: Data) -> Answer:
    """LinearRegression with default parameters."""
    from trueline import LinearRegression

    model = LinearRegression(fit_intercept=data.fit_intercept).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def ridge(data: Data) -> Answer:
    """Ridge at one strength."""
    from trueline import Ridge

    model = Ridge(alpha=data.alphas[0]).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, data.alphas[0])


def ridge_cv(data: Data) -> Answer:
    """RidgeCV, leave-one-out or folds."""
    from trueline import RidgeCV

    model = RidgeCV(alphas=data.alphas, cv=data.folds or None).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, model.alpha_)


CONTESTANTS = (
    Contestant(
        "trueline",
        {
            "least_squares": least_squares,
            "ridge": ridge,
            "ridge_cv": ridge_cv,
            "ridge_folds": ridge_cv,
        },
    ),
)
