r"""The last step with a quadratic term: the equations of the face that holds the optimum.

Near the optimum the interior point tells which kinks the answer lies on (set h) and on which side
it is of all the others. On that face the function is quadratic, and its minimum solves

    quad v + ell + sum_{e beside} pi_e a_e + A_h^T pi_h = 0,      A_h v = t_h.

It is the answer if 0 <= pi_h <= c_h and no kink beside has changed its side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.piecewise.interior import Interior
from trueline.solvers.piecewise.program import Program

__all__ = ["minimum_on_face"]

Array = NDArray[np.float64]

_ROUNDS = 12
_SLACK = 1e-9


def minimum_on_face(program: Program, near: Interior) -> tuple[Array, Array] | None:
    """Coefficients and multipliers of the exact minimum; None if the face is not yet clear."""
    c, p = program.c, len(program.ell)
    share = near.multipliers / c
    offset = program.offsets(near.v)
    # On a kink the offset vanishes faster than the room of the multiplier.
    size = max(float(np.abs(offset).mean()), 1e-300)
    on = np.minimum(share, 1 - share) > np.abs(offset) / size
    is_above = offset > 0
    for _ in range(_ROUNDS):
        held = np.flatnonzero(on)
        if len(held) > p:
            return None
        pi = np.where(is_above, c, 0.0)
        pi[held] = 0.0
        rows = program.rows(held)
        K = np.zeros((p + len(held),) * 2)
        K[:p, :p] = np.diag(program.quad)
        K[:p, p:], K[p:, :p] = rows.T, rows
        right = np.concatenate([-(program.ell + program.pull(pi)), program.t[held]])
        try:
            solved = np.linalg.solve(K, right)
            solved += np.linalg.solve(K, right - K @ solved)
        except np.linalg.LinAlgError:
            return None
        v, own = solved[:p], solved[p:]
        slack = _SLACK * c[held]
        below, beyond = own < -slack, own > c[held] + slack
        offset = program.offsets(v)
        noise = 1e-11 * (size + np.abs(program.t))
        changed = ~on & (np.where(is_above, -offset, offset) > noise)
        if not (below.any() or beyond.any() or changed.any()):
            pi[held] = np.clip(own, 0.0, c[held])
            return v, pi
        on[held[below | beyond]] = False
        is_above[held[below]], is_above[held[beyond]] = False, True
        on |= changed
    return None
