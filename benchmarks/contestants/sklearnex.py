"""scikit-learn-intelex: the same classes on Intel's oneDAL."""

from __future__ import annotations

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.contestants.sklearn_classifiers import kernel_tasks
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


def logistic(data: ClassData, tol: float) -> Answer:
    """LogisticRegression by L-BFGS, the solver that it has itself."""
    from sklearnex.linear_model import LogisticRegression

    model = LogisticRegression(fit_intercept=data.fit_intercept, tol=tol, max_iter=100_000)
    model.fit(data.X, data.y)
    return Answer(model.coef_.T, model.intercept_)


_LADDER = half_decades(0, 9)

CONTESTANTS = (
    Contestant(
        "scikit-learn-intelex",
        {"least_squares": least_squares, "ridge": ridge},
        {
            "logistic": Tuned(logistic, _LADDER, 1e-4),
            "logistic_intercept": Tuned(logistic, _LADDER, 1e-4),
            "softmax": Tuned(logistic, _LADDER, 1e-4),
            **kernel_tasks("sklearnex"),
        },
        package="scikit-learn-intelex",
    ),
)
