"""statsmodels: OLS by pseudo-inverse (its default) and by QR."""

from __future__ import annotations

from functools import partial

from benchmarks.contestants.base import Contestant
from benchmarks.objective import Answer, Data


def least_squares(data: Data, method: str) -> Answer:
    """OLS; the column of ones is part of the work, as it is for its users."""
    import statsmodels.api as sm

    X = sm.add_constant(data.X, has_constant="add") if data.fit_intercept else data.X
    params = sm.OLS(data.y, X).fit(method=method).params
    return Answer(params[1:], params[0]) if data.fit_intercept else Answer(params)


CONTESTANTS = tuple(
    Contestant(
        f"statsmodels OLS ({method})", {"least_squares": partial(least_squares, method=method)}
    )
    for method in ("pinv", "qr")
)
