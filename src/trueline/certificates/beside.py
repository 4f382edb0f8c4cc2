r"""Proof for coefficients w beside others v that are proven.

    P(w) - P*  =  [P(w) - P(v)] + [P(v) - P*]  <=  P(w) - P(v) + gap(v)

Coefficients are rounded to single precision where the data have no more digits. A proof by the
slopes at w is of first order in that rounding, while what it costs is of second order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Rounding, evaluate_objective
from trueline.problem import Problem

__all__ = ["BESIDE", "certify_beside"]

Array = NDArray[np.float64]

#: The kinds of proof that go with other coefficients than their own.
BESIDE = frozenset({"fenchel", "duality", "tangent", "bounded", "curvature"})


def certify_beside(problem: Problem, proven: Certificate, W: Array, b: Array) -> Certificate:
    """The certificate of coefficients close to others that have one."""
    value, error = evaluate_objective(problem, Rounding.of(problem).confirmable(), W, b)
    objective, rounding = float(value.sum()), 2 * float(error.sum())
    rise = objective - proven.objective + rounding + proven.objective_rounding
    slack = 1e-14 * (abs(objective) + abs(proven.objective))
    return replace(
        proven,
        objective=objective,
        objective_rounding=rounding,
        gap=(max(rise, 0.0) + proven.gap) * (1 + 1e-12) + slack,
        coef=W,
        intercept=b,
        witness={
            **proven.witness,
            "proven_coef": proven.coef,
            "proven_intercept": proven.intercept,
            "proven_objective": proven.objective,
            "proven_rounding": proven.objective_rounding,
            "proven_gap": proven.gap,
        },
    )
