r"""Looking for a direction that separates, in double precision, on few rows at a time.

Most rows never matter. The rows that a first guess gets most wrong make a working set; Wolfe's
method either finds the origin in its convex hull, and then no direction separates any set of rows
with these in it, or a direction that separates the working set, and then the rows that it gets most
wrong are added. Nothing here is a proof: what is found is handed on to exact arithmetic.

A quick try at a separating direction, for many unknowns: squared hinge loss, by L-BFGS.

    minimise  sum_i max(0, 1 - z_i.b)^2

is zero exactly if the rows are separable, and it is enough to come near: the first b with
z_i.b > 0 for all rows ends it. It reads the rows twice per step, whatever the number of unknowns,
where Wolfe's method needs about as many steps as there are unknowns, each as long as their square.
If it does not end, nothing is proven, and the rows it gets wrong are a good working set.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.separation.nearest import NearestPoint
from trueline.separation.rows import Rows

__all__ = ["Proposal", "descend", "search"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# With more unknowns a descent is tried first.
_MANY = 100


@dataclass(frozen=True)
class Proposal:
    """What the search believes.

    Attributes
    ----------
    direction : array of shape (D,) or None
        It seems to separate all rows, in the units of the search.
    corral : indices
        Rows that direction rests on; if there is none, rows whose convex hull seems to hold the
        origin.
    working : indices
        All rows that were looked at closely, in the order of their coming.
    """

    direction: Array | None
    corral: Indices
    working: Indices


def search(rows: Rows, basis: Array | None, alive: NDArray[np.bool_]) -> Proposal:
    """Look for b in the span of the basis with z_i.b > 0 for all rows that are alive.

    Parameters
    ----------
    rows : Rows
    basis : array of shape (D, q), optional
        Its columns span the directions that are possible; all directions if not given.
    alive : boolean array of shape (count,)
    """
    none = np.zeros(0, dtype=np.intp)
    if basis is not None and basis.shape[1] == 0:
        first = np.flatnonzero(alive)[:1]
        return Proposal(None, first, first)
    b = rows.total(alive.astype(np.float64))
    b = b if basis is None else basis @ (basis.T @ b)
    wrong = _wrong(rows, b, alive, none)
    if wrong is None:
        return Proposal(b, none, none)
    if rows.size > _MANY:
        b, separates = descend(rows, basis, alive)
        if separates:
            return Proposal(b, none, none)
        again = _wrong(rows, b, alive, none)
        wrong = wrong if again is None else again
    working, points = wrong, None
    while True:
        fresh = _points(rows, basis, working if points is None else wrong)
        if points is None:
            points = NearestPoint(fresh)
        else:
            points.add(fresh)
        separates = points.improve(enough=0.5)
        corral = working[points.corral]
        if not separates:
            return Proposal(None, corral, working)
        b = points.x if basis is None else basis @ points.x
        wrong = _wrong(rows, b, alive, working)
        if wrong is None:
            return Proposal(b, corral, working)
        if len(wrong) == 0:
            return Proposal(None, corral, working)
        working = np.concatenate([working, wrong])


def _points(rows: Rows, basis: Array | None, ids: Indices) -> Array:
    """Rows in the basis, of length one."""
    P = rows.take(ids) if basis is None else rows.take(ids) @ basis
    length = np.sqrt((P**2).sum(axis=1, keepdims=True))
    return P / np.where(length > 0, length, 1.0)


def _wrong(rows: Rows, b: Array, alive: NDArray[np.bool_], working: Indices) -> Indices | None:
    """The rows that b gets most wrong and that are not in the working set; None if all are right.

    Rows that are only right by less than rounding are wrong.
    """
    margins = rows.margins(b)
    wrong = np.flatnonzero((margins <= rows.reach(b)) & alive)
    if len(wrong) == 0:
        return None
    wrong = wrong[~np.isin(wrong, working)]
    most = max(40, rows.size + 1)
    if len(wrong) > most:
        wrong = wrong[np.argpartition(margins[wrong], most)[:most]]
    return wrong


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
