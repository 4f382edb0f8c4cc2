"""Certificates of fits with Firth's correction: their claims, with room for rounding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Rows
from trueline.certificates.firth_check import firth_facts
from trueline.problem import Problem

__all__ = ["certify_firth"]

Array = NDArray[np.float64]


def certify_firth(problem: Problem, W: Array, b: Array, columns: NDArray[Any]) -> Certificate:
    """What holds at a point, see :mod:`trueline.certificates.firth_check`."""
    claim = Certificate(
        kind="stationary",
        objective=0.0,
        objective_rounding=np.inf,
        gap=np.inf,
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness={},
    )
    design: Any = problem.design
    X = design.by_rows if hasattr(design, "by_rows") else design.toarray()
    columns = columns.astype(np.intp)
    found = firth_facts(claim, Rows(X, problem.target, problem.weights, claim), columns)
    rounding = 2 * found.rounding
    return replace(
        claim,
        objective=found.objective,
        objective_rounding=rounding,
        gap=(found.objective + rounding - found.bound + 2 * rounding) * (1 + 1e-12),
        witness={"slope": np.array(1.25 * found.slope + 1e-12), "columns": columns},
    )
