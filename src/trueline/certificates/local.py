r"""Proof that a point is a local minimum, for losses that are not convex.

The bound is that of :mod:`trueline.certificates.curvature` within its distance rho; beyond, nothing
is said. See :mod:`trueline.certificates.local_check`, whose sums are those that are claimed here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Rows, objective_of
from trueline.certificates.curvature_check import steepness
from trueline.certificates.local_check import local_coercivity, local_gap
from trueline.problem import Problem

__all__ = ["certify_local"]

Array = NDArray[np.float64]

# Of what the curvature is at the point itself, so much is claimed within the distance.
_KEPT = 0.5


def certify_local(problem: Problem, W: Array, b: Array, centre: Array, basis: Array) -> Certificate:
    """The certificate of a point with one target; its gap is infinite where nothing is proven.

    Parameters
    ----------
    problem : Problem
        Whose penalty is quadratic, or none.
    W, b : arrays of shape (d, 1) and (1,)
    centre : array of shape (d,)
        Zero without an intercept.
    basis : array of shape (p,)
        The diagonal of M, the intercept's entry last.
    """
    claim = Certificate(
        kind="local",
        objective=0.0,
        objective_rounding=0.0,
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
    rows = Rows(X, problem.target, problem.weights, claim)
    rows.problems(claim)  # which counts the terms of its sums, too
    objective, rounding = objective_of(claim, rows)
    claim = replace(claim, objective=objective, objective_rounding=2 * rounding)
    here = local_coercivity(claim, rows, centre, basis, 0.0)
    steep = float(steepness(claim, rows, centre, basis[:, None])[0]) * (1 + 1e-9)
    if not (here > 0 and np.isfinite(steep)):
        return claim
    nu = _KEPT * here
    reach = 2.001 * steep / nu
    if not local_coercivity(claim, rows, centre, basis, reach) >= nu:
        return claim
    witness = {
        "about": centre,
        "diagonal": basis[:, None],
        "coercivity": np.array([nu]),
        "reach": np.array([reach]),
    }
    gap = local_gap(steep, nu, rows.n) * (1 + 1e-9)
    return replace(claim, gap=gap, witness=witness)
