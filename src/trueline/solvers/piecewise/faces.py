r"""The last step with a quadratic term: the equations of the face that holds the optimum.

Near the optimum the multipliers tell which kinks the answer lies on (set h) and on which side
it is of all the others. On that face the function is quadratic, and its minimum solves

    quad v + ell + sum_{e beside} pi_e a_e + A_h^T pi_h = 0,      A_h v = t_h.

It is the answer if 0 <= pi_h <= c_h and no kink beside has changed its side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.piecewise.program import Program

__all__ = ["minimum_on_face"]

Array = NDArray[np.float64]

_ROUNDS = 12
_SLACK = 1e-9
# Held kinks beyond the number of coefficients, as repeated rows bring them.
_MOST_REPEATED = 500


def minimum_on_face(program: Program, v: Array, near: Array) -> tuple[Array, Array] | None:
    """Coefficients and multipliers of the exact minimum; None if the face is not yet clear.

    Parameters
    ----------
    program : Program
    v, near : arrays
        Coefficients and multipliers close to it.
    """
    c, p = program.c, len(program.ell)
    share = near / c
    offset = program.offsets(v)
    # On a kink the offset vanishes faster than the room of the multiplier.
    size = max(float(np.abs(offset).mean()), 1e-300)
    on = np.minimum(share, 1 - share) > np.abs(offset) / size
    is_above = offset > 0
    noise = 1e-11 * (size + np.abs(program.t))
    for _ in range(_ROUNDS):
        held = np.flatnonzero(on)
        if len(held) > p + _MOST_REPEATED:
            return None
        pi = np.where(is_above, c, 0.0)
        pi[held] = 0.0
        found = _solve(program, held, pi, near[held])
        if found is None:
            return None
        v, own = found
        offset = program.offsets(v)
        if (np.abs(offset[held]) > noise[held]).any():
            return None  # no point lies on all of them
        slack = _SLACK * c[held]
        below, beyond = own < -slack, own > c[held] + slack
        changed = ~on & (np.where(is_above, -offset, offset) > noise)
        if not (below.any() or beyond.any() or changed.any()):
            pi[held] = np.clip(own, 0.0, c[held])
            v[program.at_zero(held)] = 0.0  # exactly
            return v, pi
        on[held[below | beyond]] = False
        is_above[held[below]], is_above[held[beyond]] = False, True
        on |= changed
    return None


def _solve(
    program: Program, held: NDArray[np.intp], beside: Array, near: Array
) -> tuple[Array, Array] | None:
    """The minimum on the face, and multipliers of its kinks as near as can be to given ones.

    Where more kinks meet than there are coefficients many multipliers will do; those of the
    point nearby are inside of their bounds, and so is what is closest to them.
    """
    p = len(program.ell)
    rows = program.rows(held)
    K = np.zeros((p + len(held),) * 2)
    K[:p, :p] = np.diag(program.quad)
    K[:p, p:], K[p:, :p] = rows.T, rows
    rest = program.ell + program.pull(beside)
    right = np.concatenate([-rest, program.t[held]])
    try:
        v = _least_squares(K, right)[:p]
        pull = -(rest + program.quad * v)
        return v, near + _least_squares(rows.T, pull - rows.T @ near)
    except np.linalg.LinAlgError:
        return None


def _least_squares(M: Array, right: Array) -> Array:
    """The shortest solution, refined once."""
    solved = np.linalg.lstsq(M, right, rcond=1e-12)[0]
    return solved + np.linalg.lstsq(M, right - M @ solved, rcond=1e-12)[0]
