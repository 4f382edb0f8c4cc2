"""All rows on the boundary at once, from a fit on its way to infinity.

Where classes are separated but for rows on the boundary, the logistic likelihood rises for ever
along the directions of separation, and on the boundary it has a maximum. Near it, with
t_i = 1 / (1 + exp(z_i.b)), the step of Newton's method from b,

    (sum_i t_i (1 - t_i) z_i z_i^T) d = sum_i t_i z_i,

has z_i.d = 0 on the boundary, up to rounding, and about one for the rows that are separated. And
the t_i are, on the boundary, multipliers that vanish, sum t_i z_i = 0: the gradient there. They are
made exact for independent rows, given rounded ones for the others; a guess that was wrong does not
survive that.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import expit

from trueline.separation.inequalities import Rows
from trueline.separation.lifting import exact_products, independent, solve_integers

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Steps z_i.d on the boundary are below the first number, those of other rows above the second.
_ZERO, _MOVES = 0.01, 0.1
# Newton's method converges quadratically: two further steps tell what three do.
_STEPS = 3
# Eigenvalues relative to the largest that are rounding.
_FLAT = 1e-14
# What the multipliers may change by, relatively, for their combination to vanish; rounds for it.
_CLOSE, _ROUNDS = 0.5, 2
# Rounded multipliers are multiples of 2^-40 of the largest.
_BITS = 40
# More numbers than this are not looked at.
_MOST = 2_000_000


def boundary_of(rows: Rows, basis: Array | None, start: Array) -> dict[int, Fraction] | None:
    """Multipliers > 0 with sum t_i z_i = 0, of at most twice as many rows as there are unknowns.

    Parameters
    ----------
    rows : Rows
    basis : array of shape (D, q), optional
        In which the rows are spread alike.
    start : array of shape (D,)
        Where a fit has ended, in the units of the search.

    Returns
    -------
    multipliers : dict of int to Fraction, or None
        Exact; None if this is not near enough to such a maximum.
    """
    if basis is None or rows.count * rows.size > _MOST:
        return None
    P = rows.take(np.arange(rows.count)) @ basis
    margins = rows.margins(start)
    for _ in range(_STEPS):
        t = expit(-margins)
        moves = _moves(P, t)
        is_near = np.abs(moves) < _ZERO
        if (is_near | (moves > _MOVES)).all():
            break
        margins = margins + moves  # a fit that is not as near as it could be
    else:
        return None
    boundary = np.flatnonzero(is_near)
    if len(boundary) in (0, rows.count):
        return None
    weights = _balanced(P[boundary], t[boundary])
    if weights is None:
        return None
    order = np.argsort(-weights, kind="stable")
    return _made_exact(rows, P, boundary[order], weights[order])


def _moves(P: Array, t: Array) -> Array:
    """z_i.d for the step of Newton's method."""
    values, vectors = np.linalg.eigh((P * (t * (1.0 - t))[:, None]).T @ P)
    kept = values > _FLAT * values[-1]
    along = vectors[:, kept]
    return np.asarray(P @ (along @ (along.T @ (t @ P) / values[kept])))


def _balanced(P: Array, t: Array) -> Array | None:
    """Multipliers close to those given, relatively, whose combination vanishes to rounding."""
    for _ in range(_ROUNDS):
        A = (P * t[:, None]).T
        change = np.linalg.lstsq(A, A.sum(axis=1), rcond=1e-10)[0]
        if not (np.abs(change) < _CLOSE).all():
            return None
        t = t * (1.0 - change)
    return t


def _made_exact(rows: Rows, P: Array, ids: Indices, weights: Array) -> dict[int, Fraction] | None:
    """The multipliers of independent rows made exact, given rounded ones of the others."""
    N, exponent = rows.integers(ids)
    chosen, columns = independent(N)
    free = np.setdiff1d(np.arange(len(ids)), chosen)
    given = weights[free]
    if len(ids) > 2 * rows.size:  # few of them have the same sum
        given = nnls(P[ids[free]].T, given @ P[ids[free]])[0]
        free, given = free[given > 0], given[given > 0]
    if len(free) == 0:
        return None
    rounded = np.maximum(np.rint(np.ldexp(given / given.max(), _BITS)), 1.0).astype(np.int64)
    lowest = int(exponent[free].min())
    whole = np.array(
        [a << int(e) - lowest for a, e in zip(rounded.tolist(), exponent[free], strict=True)],
        dtype=object,
    )
    right = whole @ N[free].astype(object)
    solved = solve_integers(N[np.ix_(chosen, columns)].T, -right[columns])
    if solved is None:
        return None
    x, q = solved
    if not (x > 0).all() or (exact_products(N[chosen].T, x) + q * right).any():
        return None
    found = {int(ids[j]): q * a / _power(lowest) for j, a in zip(free, rounded.tolist())}
    units = zip(chosen, x, strict=True)
    return found | {int(ids[i]): Fraction(int(v)) / _power(int(exponent[i])) for i, v in units}


def _power(k: int) -> Fraction:
    return Fraction(2) ** k
