"""scipy.linalg.lstsq and numpy.linalg.lstsq, with LAPACK's drivers; processes with plain SciPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.bayes.objective import plain_fit
from benchmarks.contestants.base import Contestant, Tuned
from benchmarks.objective import Answer, Array, Data


def least_squares(data: Data, solve: Callable[[Array, Array], Array]) -> Answer:
    """Centre if there is an intercept, then solve."""
    if not data.fit_intercept:
        return Answer(solve(data.X, data.y))
    x_mean, y_mean = data.X.mean(axis=0), data.y.mean()
    coef = solve(data.X - x_mean, data.y - y_mean)
    return Answer(coef, y_mean - x_mean @ coef)


def scipy_solve(X: Array, y: Array, driver: str) -> Array:
    """Without the test for finite values, as the fastest documented use."""
    from scipy.linalg import lstsq

    return lstsq(X, y, lapack_driver=driver, check_finite=False)[0]


def numpy_solve(X: Array, y: Array) -> Array:
    """Singular values, LAPACK's gelsd."""
    return np.linalg.lstsq(X, y, rcond=None)[0]


_SOLVES = {
    "scipy lstsq (gelsd)": partial(scipy_solve, driver="gelsd"),
    "scipy lstsq (gelsy)": partial(scipy_solve, driver="gelsy"),
    "numpy lstsq": numpy_solve,
}
CONTESTANTS = (
    *(
        Contestant(name, {"least_squares": partial(least_squares, solve=solve)})
        for name, solve in _SOLVES.items()
    ),
    Contestant("SciPy L-BFGS-B", tuned={"process": Tuned(plain_fit, (2.2e-9, 1e-11))}),
)
