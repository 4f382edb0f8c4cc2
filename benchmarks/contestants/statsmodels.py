"""statsmodels: OLS by pseudo-inverse (its default) and by QR; quantiles, robust linear models."""

from __future__ import annotations

from functools import partial

from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer, Data
from benchmarks.robust.cases import COMPARED
from benchmarks.robust.objective import RobustData


def least_squares(data: Data, method: str) -> Answer:
    """OLS; the column of ones is part of the work, as it is for its users."""
    import statsmodels.api as sm

    X = sm.add_constant(data.X, has_constant="add") if data.fit_intercept else data.X
    params = sm.OLS(data.y, X).fit(method=method).params
    return Answer(params[1:], params[0]) if data.fit_intercept else Answer(params)


def quantile(data: RobustData, tol: float) -> Answer:
    """QuantReg, by iteratively reweighted least squares."""
    import statsmodels.api as sm

    X = sm.add_constant(data.X, has_constant="add")
    params = sm.QuantReg(data.y, X).fit(q=data.quantiles[0], p_tol=tol, max_iter=_ROUNDS).params
    return Answer(params[1:], params[0])


def huber(data: RobustData, tol: float) -> Answer:
    """RLM with the scale held at one, so that the threshold is the one given."""
    import statsmodels.api as sm

    X = sm.add_constant(data.X, has_constant="add")
    model = sm.RLM(data.y, X, M=sm.robust.norms.HuberT(t=data.threshold))
    params = model.fit(
        start_scale=1.0, update_scale=False, tol=tol, maxiter=_ROUNDS, conv="coefs"
    ).params
    return Answer(params[1:], params[0])


# Rounds of weights: enough never to be what stops it.
_ROUNDS = 20_000
_LADDER = half_decades(1, 9)

CONTESTANTS = (
    *(
        Contestant(
            f"statsmodels OLS ({method})", {"least_squares": partial(least_squares, method=method)}
        )
        for method in ("pinv", "qr")
    ),
    Contestant(
        "statsmodels QuantReg",
        tuned={"quantile": Tuned(quantile, _LADDER, 1e-4, cases=COMPARED)},
        package="statsmodels",
    ),
    Contestant(
        "statsmodels RLM", tuned={"huber": Tuned(huber, _LADDER, 1e-2)}, package="statsmodels"
    ),
)
