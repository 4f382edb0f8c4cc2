r"""A quick try at a separating direction, for many unknowns: squared hinge loss, by L-BFGS.

    minimise  sum_i max(0, 1 - z_i.b)^2

is zero exactly if the rows are separable, and it is enough to come near: the first b with
z_i.b > 0 for all rows ends it. It reads the rows twice per step, whatever the number of unknowns,
where Wolfe's method needs about as many steps as there are unknowns, each as long as their square.
If it does not end, nothing is proven, and the rows it gets wrong are a good working set.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from trueline.halfspaces.rows import Rows

__all__ = ["descend"]

Array = NDArray[np.float64]

_STEPS = 300


# Where the slope is so small beside the losses, they are about the multipliers that exclude a
# separation. In a basis in which the rows are spread alike, one is the most it can be.
_HOPELESS = 0.02


class _Ended(Exception):
    """There is no need to go on."""


def descend(rows: Rows, basis: Array | None, alive: NDArray[np.bool_]) -> tuple[Array, bool]:
    """The direction reached, and whether it separates all rows that are alive."""
    from scipy.optimize import minimize

    best: list[Array] = []

    def value(x: Array) -> tuple[float, Array]:
        b = x if basis is None else basis @ x
        margins = rows.margins(b)
        best[:] = [b]
        if (margins[alive] > rows.reach(b)).all():
            raise _Ended
        short = np.where(alive, np.maximum(0.0, 1.0 - margins), 0.0)
        slope = -2.0 * rows.total(short)
        loss = float(short @ short)
        if basis is not None:
            slope = basis.T @ slope
            if slope @ slope <= 4 * _HOPELESS**2 * loss:
                raise _Ended
        return loss, slope

    size = rows.size if basis is None else basis.shape[1]
    options = {"maxiter": _STEPS, "maxcor": 20}
    with suppress(_Ended):
        minimize(value, np.zeros(size), jac=True, method="L-BFGS-B", options=options)
    b = best[0]
    return b, bool((rows.margins(b)[alive] > rows.reach(b)).all())
