"""glum: generalised linear models by reweighted least squares, coordinates or L-BFGS."""

from __future__ import annotations

from functools import partial

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer


def fit(data: ClassData, tol: float, solver: str) -> Answer:
    """The binomial family; means over the rows."""
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(
        family="binomial",
        alpha=1 / len(data.y),
        l1_ratio=1.0 if data.penalty == "l1" else 0.0,
        fit_intercept=data.fit_intercept,
        solver=solver,
        gradient_tol=tol,
        max_iter=10_000,
    ).fit(data.X, (data.y > 0).astype(float))
    return Answer(model.coef_, model.intercept_)


_LADDER = half_decades(1, 10)


def _contestant(solver: str, task: str, cases: tuple[str, ...] = ()) -> Contestant:
    tuned = Tuned(partial(fit, solver=solver), _LADDER, 1e-4, cases=cases)
    return Contestant(f"glum {solver}", tuned={task: tuned}, package="glum")


# All but L-BFGS make a matrix of columns by columns, which 200,000 columns do not allow.
CONTESTANTS = (
    _contestant("irls-ls", "logistic", ("logistic_dense",)),
    _contestant("lbfgs", "logistic"),
    _contestant("irls-cd", "logistic_l1", ("l1_dense",)),
)
