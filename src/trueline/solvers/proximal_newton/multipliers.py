r"""Multipliers that fit the penalty to the last digits.

The derivatives u_i = l'(z_i) are the natural dual point, and -A^T S u should be where the penalty
has its slopes: at l_j sign(v_j) for coefficients that are not zero, within l_j for those that are.
Where scores are large and l small, the rounding of z alone keeps it from there. Moving u by
l''(z_i) a_i.x, as a small change x of the coefficients would, takes away what is missing to first
order, and leaves rows alone that do not bend.

A proof knows -A^T S u up to its rounding, and must not leave the penalty's interval even then: the
slopes asked for are smaller than l_j by that much, which costs the bound next to nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.duality import RADIUS, STRETCH
from trueline.solvers.newton.dense.rows import rowwise
from trueline.solvers.proximal_newton.gram import ProximalDescent

__all__ = ["settled_multipliers"]

Array = NDArray[np.float64]

_ROUNDS = 3
_EPS = float(np.finfo(np.float64).eps)


def settled_multipliers(descent: ProximalDescent, enough: float = 0.0) -> Array:
    """The derivatives of the losses, moved to where the penalty's slopes are.

    Parameters
    ----------
    descent : ProximalDescent
    enough : float
        What may be missing, relative to the slopes: a proof shrinks the multipliers by that much.
    """
    rows, loss, y, h = descent.rows, descent.loss, descent.y, descent.bends
    H = descent.gram.matrix
    best, u = descent.u, descent.u
    # Four times the terms of the sums of a proof, which adds stretches of rows pairwise.
    terms = 4 * (STRETCH + np.log2(len(y) + 2) + 16)
    size = float(np.sqrt(rows.total_weight * ((rows.weights * u) @ u)))
    linear = np.maximum(descent.terms.linear - terms * _EPS * size, 0.0)
    missing = _missing(descent, descent.gradient, linear)
    least = float(np.abs(missing).max(initial=0.0))
    # A slope in the intercept costs as much as the intercepts are large that a proof covers.
    level = 0.0
    if rows.fit_intercept:
        level = enough * descent.objective / (RADIUS * (1.0 + abs(float(descent.v[-1]))))
    allowed = np.append(enough * linear, np.full(len(missing) - len(linear), level))
    for _ in range(_ROUNDS):
        held = missing != 0
        if (np.abs(missing) <= allowed).all():
            break
        x = np.zeros(len(missing))
        x[held] = np.linalg.lstsq(H[np.ix_(held, held)], missing[held], rcond=1e-13)[0]
        u = rowwise(loss.project_dual, y, u + h * rows.scores(x))
        missing = _missing(descent, rows.total(rows.weights * u), linear)
        worst = float(np.abs(missing).max())
        if not worst < least:
            break
        best, least = u, worst
    return best


def _missing(descent: ProximalDescent, slope: Array, linear: Array) -> Array:
    """What A^T S u lacks, coordinate by coordinate."""
    terms, v = descent.terms, descent.v
    d = len(terms.linear)
    w, g = v[:d], slope[:d]
    at_zero = np.clip(g, -linear, linear)
    moved = -(linear * np.sign(w) + terms.bend * w)
    wanted = np.where(w == 0, at_zero, moved)
    # On a bound anything that pushes outward is right.
    wanted = np.where((w == terms.lower) & (w != 0), np.maximum(g, wanted), wanted)
    wanted = np.where((w == terms.upper) & (w != 0), np.minimum(g, wanted), wanted)
    return np.append(wanted, np.zeros(len(v) - d)) - slope
