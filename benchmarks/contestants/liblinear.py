"""LIBLINEAR, as its authors distribute it: trust regions on the primal, sweeps over the dual."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.classification.objective import ClassData
from benchmarks.contestants.base import Contestant, Tuned, half_decades
from benchmarks.objective import Answer


def _problem(data: ClassData) -> Any:
    from liblinear.liblinearutil import problem

    return problem(data.y, data.X)


def fit(problem: Any, tol: float, solver: int) -> Answer:
    """One of its solvers, without an intercept."""
    from liblinear.liblinearutil import train

    model = train(problem, f"-s {solver} -c 1 -e {tol} -q")
    # Its own accessors read one number at a time.
    w = np.ctypeslib.as_array(model.w, (model.nr_feature,)).copy()
    # Coefficients speak for the class that occurs first.
    return Answer(w if model.get_labels()[0] == 1 else -w)


_LADDER = half_decades(0, 8)


def _tuned(solver: int, start: float) -> Tuned:
    return Tuned(partial(fit, solver=solver), _LADDER, start, convert=_problem)


CONTESTANTS = (
    Contestant(
        "LIBLINEAR (primal)",
        tuned={
            "logistic": _tuned(0, 1e-3),
            "logistic_l1": _tuned(6, 1e-3),
            "squared_hinge": _tuned(2, 1e-4),
        },
        package="liblinear-official",
    ),
    Contestant(
        "LIBLINEAR (dual)",
        tuned={
            "logistic": _tuned(7, 1e-2),
            "hinge": _tuned(3, 1e-2),
            "squared_hinge": _tuned(1, 1e-2),
        },
        package="liblinear-official",
    ),
)
