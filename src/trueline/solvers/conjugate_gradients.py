r"""Conjugate gradients for H x = b, with H symmetric, positive semidefinite and known by products.

G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., algorithm 11.5.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def conjugate_gradients(
    product: Callable[[Array], Array],
    right: Array,
    precondition: Callable[[Array], Array],
    *,
    most: int,
    enough: float = 0.0,
    is_enough: Callable[[Array], bool] = lambda residual: False,
    flat: Callable[[Array], float] = lambda direction: 0.0,
    room: Callable[[Array, Array], float] = lambda x, direction: np.inf,
) -> tuple[Array, int]:
    """About H^-1 ``right``, and how many products it took.

    Parameters
    ----------
    product : callable
        A direction, an array of any shape, to H times it.
    right : array
    precondition : callable
        A residual to about H^-1 times it.
    most : int
        The largest number of products.
    enough : float, optional
        The share of the first residual, squared and in the norm of the preconditioner, that may be
        left.
    is_enough : callable, optional
        Whether a residual may be left.
    flat : callable, optional
        Steps end where the curvature along a direction is at most this.
    room : callable, optional
        How far a step may go from x along a direction. A step that goes as far is the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.conjugate_gradients import conjugate_gradients
    >>> H = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> x, count = conjugate_gradients(
    ...     lambda p: H @ p, np.array([3.0, 4.0]), lambda r: r, most=10, enough=1e-20
    ... )
    >>> x.round(12), count
    (array([1., 1.]), 2)
    """
    x, residual = np.zeros_like(right), right.copy()
    conditioned = precondition(residual)
    direction, size = conditioned.copy(), float(np.vdot(residual, conditioned))
    first, count = size, 0
    while count < most and size > enough * first and size > 0 and not is_enough(residual):
        image = product(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > flat(direction):
            break
        step, limit, count = size / curvature, room(x, direction), count + 1
        x += min(step, limit) * direction
        if limit <= step:
            break
        residual -= step * image
        conditioned = precondition(residual)
        before, size = size, float(np.vdot(residual, conditioned))
        direction *= size / before
        direction += conditioned
    return x, count
