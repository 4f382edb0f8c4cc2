r"""How much of a Gram matrix can be moved to the diagonal.

Any D >= 0 with P - diag(D) positive semidefinite gives a perspective relaxation, and so a lower
bound; the best D gives that of a semidefinite program (H. Dong, K. Chen, J. Linderoth,
"Regularization vs. relaxation: a conic optimization perspective of statistical variable
selection", arXiv:1510.06083 (2015)). The bound f(D) is concave, being a minimum over (w, z) of
functions linear in D, and at the minimiser

    df/dD_j  =  g_j  =  1/2 w_j^2 (1/z_j - 1).

It is climbed with a logarithmic barrier, f(D) + mu (log det(P - D) + e sum_j log D_j), by damped
Newton steps in which the curvature of f is taken to be g_j / D_j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.subset.relaxation import relax

__all__ = ["DEPENDENT_COLUMNS", "Relaxed", "climb", "uniform_diagonal"]

Array = NDArray[np.float64]

# The weight e of the barrier that keeps D away from zero.
_FLOOR = 0.01
# P - D stays positive by this part of the diagonal of P, far above the rounding of P.
_MARGIN = 1e-9
#: Columns with less of themselves outside the span of the others count as dependent.
DEPENDENT_COLUMNS = 1e-7


class Relaxed(NamedTuple):
    """A lower bound: its value, the diagonal D, v, h and z of the relaxation, and the price."""

    bound: float
    D: Array
    v: Array
    h: Array
    z: Array
    level: float


def _is_positive(P: Array, D: Array) -> bool:
    """Whether P - diag(D) is positive definite, with a margin."""
    try:
        np.linalg.cholesky(P - np.diag(D + _MARGIN * P.diagonal()))
    except np.linalg.LinAlgError:
        return False
    return True


def uniform_diagonal(P: Array) -> Array | None:
    """Half of what can be moved to the diagonal in equal parts; None if P is singular."""
    size = P.diagonal()
    if not _is_positive(P, DEPENDENT_COLUMNS * size):
        return None
    scale = 1.0 / np.sqrt(size)
    least = float(np.linalg.eigvalsh(P * scale[:, None] * scale)[0])
    D: Array = max(0.5 * least, DEPENDENT_COLUMNS) * size
    return D


def climb(
    P: Array,
    D: Array,
    c: Array,
    q: int,
    alpha: float,
    v: Array,
    level: float,
    enough: float,
    tol: float,
    steps: int,
    mu: float,
) -> Relaxed:
    """Improve D by Newton steps, until the bound exceeds ``enough`` or they are used up."""
    best: Relaxed | None = None
    for turn in range(steps + 1):
        Q = P - np.diag(D)
        bound, v, h, z, level = relax(Q, D, c, q, alpha, v, level, enough, tol)
        found = Relaxed(bound, D, v, h, z, level)
        if best is None or found.bound > best.bound:
            best = found
        if found.bound > enough or turn == steps:
            break
        further = _newton(P, Q, D, v, level, mu)
        if further is None:
            break
        D = further
    assert best is not None
    return best


def _newton(P: Array, Q: Array, D: Array, v: Array, level: float, mu: float) -> Array | None:
    """The diagonal after one damped step; None if there is none."""
    try:
        inverse = np.linalg.inv(Q)
        share = np.minimum(1.0, np.abs(v) * np.sqrt(D / (2.0 * level)))
        g = np.divide(0.5 * v**2 * (1.0 - share), share, out=np.zeros_like(v), where=share > 0)
        slope = g - mu * inverse.diagonal() + _FLOOR * mu / D
        curvature = mu * inverse**2
        curvature[np.diag_indices(len(D))] += _FLOOR * mu / D**2 + g / D
        return _advanced(P, D, np.linalg.solve(curvature, slope))
    except np.linalg.LinAlgError:
        return None


def _advanced(P: Array, D: Array, step: Array) -> Array | None:
    """D + t step, for the largest t = 1, 1/2, 1/4 ... that stays well inside."""
    for halvings in range(12):
        move = 0.5**halvings * step
        # Beyond the step by a tenth: the next one needs room.
        if _is_positive(P, np.maximum(D + 1.1 * move, 0.2 * D)):
            further: Array = np.maximum(D + move, 0.2 * D)
            return further
    return None
