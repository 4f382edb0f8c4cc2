"""scikit-learn-intelex: the same classes on Intel's oneDAL."""

from __future__ import annotations

from benchmarks.contestants.base import Contestant
from benchmarks.objective import Answer, Data


def least_squares(data: Data) -> Answer:
    """LinearRegression with default parameters."""
    from sklearnex.linear_model import LinearRegression

    model = LinearRegression(fit_intercept=data.fit_intercept).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_)


def ridge(data: Data) -> Answer:
    """Ridge at one strength."""
    from sklearnex.linear_model import Ridge

    model = Ridge(alpha=data.alphas[0]).fit(data.X, data.y)
    return Answer(model.coef_, model.intercept_, data.alphas[0])


CONTESTANTS = (
    Contestant("scikit-learn-intelex", {"least_squares": least_squares, "ridge": ridge}),
)
