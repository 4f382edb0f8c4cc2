"""Minima of convex functions of a few variables, by methods that are no part of trueline."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

__all__ = ["least_linear", "newton"]

Array = NDArray[np.float64]
Derivatives = Callable[[Array], tuple[float, Array, Array]]


def newton(function: Derivatives, start: Array, steps: int = 200) -> Array:
    """Damped Newton steps on value, gradient and Hessian; the best point that was met."""
    x = start
    value, gradient, hessian = function(x)
    damping = 1e-12
    for _ in range(steps):
        size = np.abs(hessian.diagonal()).max(initial=1e-300)
        try:
            step = np.linalg.solve(hessian + damping * size * np.eye(len(x)), -gradient)
        except np.linalg.LinAlgError:
            damping = max(10 * damping, 1e-12)
            continue
        t = 1.0
        while t > 1e-10:
            with np.errstate(over="ignore", invalid="ignore"):
                found = function(x + t * step)
            if found[0] < value:
                break
            t /= 2
        else:
            if damping > 1e3:
                break
            damping = max(100 * damping, 1e-12)
            continue
        damping = max(damping / 10, 1e-14)
        x = x + t * step
        value, gradient, hessian = found
    return x


def least_linear(cost: Array, A: Array, bound: Array, lower: Array) -> Array | None:
    """The x of least cost.x with A x <= bound, x >= lower, by HiGHS; None if it gives up."""
    bounds = [(None if np.isinf(low) else float(low), None) for low in lower]
    found = linprog(cost, A_ub=A, b_ub=bound, bounds=bounds, method="highs")
    return found.x if found.status == 0 else None
