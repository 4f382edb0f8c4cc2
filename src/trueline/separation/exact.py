r"""What the search proposes, made exact, or decided by exact steps where the search was wrong.

Rows z_s, s in S, are *held*: z_s.b = 0 for every b with z_i.b >= 0 for all i, and a combination of
them (with others of their span) with positive multipliers vanishes. A round asks for b with

    z_s.b = 0  (s held),    z_i.b > 0  (all rows i outside the span of the held ones)

or for multipliers t_i >= 0, not all zero, and u_s of any sign with sum t_i z_i + sum u_s z_s = 0.
Exactly one of the two exists (Gordan's theorem in the quotient space).

The exact steps are those of a dual simplex method. Basic rows have z.b = 1, which gives b; a row
that is not positive enters. If its coefficients in the basis are all <= 0, they are the
multipliers. Otherwise the row leaves whose own multiplier in a fixed sum of rows vanishes first;
smallest indices break ties in the end, which makes it finite (R. G. Bland, Math. Oper. Res. 2
(1977) 103-107).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from trueline.separation.inequalities import Rows
from trueline.separation.lifting import (
    PRIMES,
    Integers,
    as_integers,
    exact_products,
    independent,
    integer_rows,
    primitive,
    solve_integers,
    solve_several,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rows of this many entries are multiplied at a time in whole numbers.
_CHUNK = 1 << 20
# The steepest row enters so many times; then the first one, which cannot cycle.
_STEEPEST = 100


@dataclass(frozen=True)
class Dependence:
    """sum_i multipliers_i z_i + sum_s held_s z_s = 0 with multipliers > 0, by number of row."""

    multipliers: dict[int, Fraction]
    held: dict[int, Fraction]


def in_floats(rows: Rows, g: Integers) -> Array:
    """Integers as doubles in the units of the search, the largest about one."""
    bits = [int(v).bit_length() - int(e) for v, e in zip(g, rows.exponent, strict=True) if v]
    top = max(bits, default=0)
    shifts = [int(e) + top for e in rows.exponent]
    # The quotient of two integers is rounded once, however large they are.
    parts = (
        int(v) / (1 << k) if k > 0 else float(int(v) << -k) for v, k in zip(g, shifts, strict=True)
    )
    return np.fromiter(parts, dtype=np.float64, count=len(shifts))


def _power(k: int) -> Fraction:
    return Fraction(2**k) if k >= 0 else Fraction(1, 2**-k)


def not_positive(rows: Rows, g: Integers, alive: NDArray[np.bool_]) -> Indices:
    """The rows among those alive with z_i.g <= 0, exactly, in order of their value.

    Double precision decides where its error bound allows; the rest is multiplied out.
    """
    b = in_floats(rows, g)
    margins = rows.margins(b)
    doubtful = np.flatnonzero((margins <= 2 * rows.reach(b)) & alive)
    wrong = np.zeros(len(doubtful), dtype=bool)
    step = max(1, _CHUNK // max(1, rows.size))
    for start in range(0, len(doubtful), step):
        ids = doubtful[start : start + step]
        wrong[start : start + step] = _products(rows.exact(ids), g) <= 0
    found = doubtful[wrong]
    return found[np.argsort(margins[found], kind="stable")]


def _whole(b: Array, exponent: Indices) -> Integers:
    """The smallest integers that are a positive multiple of the numbers b_j 2^exponent_j."""
    part, power = np.frexp(b)
    digits = np.ldexp(part, 53).astype(np.int64)
    power = power.astype(np.int64) - 53 + exponent
    used = digits != 0
    least = int(power[used].min())
    whole = [int(v) << int(k - least) if v else 0 for v, k in zip(digits, power, strict=True)]
    common = gcd(*whole)
    return np.array([v // common for v in whole], dtype=object)


def direction_from(rows: Rows, held: Indices, b: Array, digits: int | None) -> Integers | None:
    """Integers near a multiple of b, with z.g = 0 exactly for the rows that are held.

    Parameters
    ----------
    b : array of shape (D,)
        In the units of the search.
    digits : int, optional
        Round to fractions with denominators up to this, for numbers that are pleasant to read.
    """
    scale = float(np.abs(b).max())
    if not scale > 0 or not np.isfinite(scale):
        return None
    if digits is None:
        g = _whole(b, rows.exponent)
    else:
        exact = [Fraction(float(v)) * _power(int(e)) for v, e in zip(b, rows.exponent, strict=True)]
        largest = max(abs(v) for v in exact)
        g = as_integers([(v / largest).limit_denominator(digits) for v in exact])
    if len(held) == 0:
        # Fractions are of use only if doubles can stand for them.
        return None if any(abs(int(v)) >= 2**53 for v in g) and digits else g
    N, _ = rows.integers(held)
    # Columns that the equations are solved for: the best conditioned ones.
    fixed = np.sort(qr(rows.take(held), mode="r", pivoting=True)[1][: len(held)])
    others = np.setdiff1d(np.arange(rows.size), fixed)
    right = -exact_products(N[:, others], g[others]).astype(object)
    solved = solve_integers(N[:, fixed], right)
    if solved is None:
        return None
    x, q = solved
    out = np.empty(rows.size, dtype=object)
    out[others], out[fixed] = q * g[others], x
    return primitive(out)


def dependence_of(rows: Rows, held: Indices, corral: Indices) -> Dependence | None:
    """A vanishing combination of rows of the corral with multipliers >= 0, and of those held."""
    ids = np.concatenate([held, corral])
    N, exponent = rows.integers(ids)
    chosen, columns = independent(N)
    if len(chosen) < len(held) or not (chosen[: len(held)] == np.arange(len(held))).all():
        return None
    for i in np.setdiff1d(np.arange(len(ids)), chosen):
        solved = solve_integers(N[np.ix_(chosen, columns)].T, -N[i, columns].astype(object))
        if solved is None:
            continue
        found = _combination(N, ids, exponent, len(held), (int(i), chosen, *solved))
        if found is not None:
            return found
    return None


def _combination(
    N: Integers,
    ids: Indices,
    exponent: NDArray[np.int64],
    n_held: int,
    relation: tuple[int, Indices, Integers, int],
) -> Dependence | None:
    """q z_i + sum_k x_k z_k = 0 in the units of the data, if it holds and has the right signs."""
    i, places, x, q = relation
    free = places < n_held
    if any(v < 0 for v in x[~free]):
        return None
    missing = exact_products(N[places].T, x) + q * N[i].astype(object)
    if missing.any():
        return None
    values = {int(p): Fraction(int(v), q) for p, v in zip(places, x, strict=True) if v}
    values[i] = Fraction(1)
    scaled = {p: v / _power(int(exponent[p])) for p, v in values.items()}
    return Dependence(
        {int(ids[p]): v for p, v in scaled.items() if p >= n_held},
        {int(ids[p]): v for p, v in scaled.items() if p < n_held},
    )


def exchange(rows: Rows, held: Indices, working: Indices) -> Integers | Dependence:
    """Decide for the rows of the working set by exact steps.

    Returns
    -------
    decided : array of integers, or Dependence
        b with z_i.b > 0 for the working set, in the units of the data, or why there is none.
    """
    for prime in PRIMES:
        found = _exchange(rows, held, working, prime)
        if found is not None:
            return found
    raise ArithmeticError("Every prime divides a minor of these rows; please report this.")


def _exchange(
    rows: Rows, held: Indices, working: Indices, prime: int
) -> Integers | Dependence | None:
    ids = np.concatenate([held, working])
    N, exponent = rows.integers(ids)
    basis, columns = independent(N, prime)
    h = len(held)
    if len(basis) < h or not (basis[:h] == np.arange(h)).all():
        return None
    M = N[:, columns].astype(object)
    levels = np.array([0] * h + [1] * (len(basis) - h), dtype=object)
    goal = levels @ M[basis]
    steps = 0
    while True:
        solved = solve_integers(M[basis], levels)
        if solved is None:
            return None
        x = solved[0]
        values = exact_products(M[h:], x)
        wrong = np.flatnonzero(values <= 0)
        if len(wrong) == 0:
            out = np.zeros(rows.size, dtype=object)
            out[columns] = x
            return primitive(out)
        steps += 1
        steepest = wrong[int(np.argmin(values[wrong]))] if steps <= _STEEPEST else wrong[0]
        i = h + int(steepest)
        entering, leaving = solve_integers(M[basis].T, M[i]), solve_integers(M[basis].T, goal)
        if entering is None or leaving is None:
            return None
        alpha, multipliers = entering[0], leaving[0]
        rising = [k for k in range(h, len(basis)) if alpha[k] > 0]
        if not rising:
            return _combination(N, ids, exponent, h, (i, basis, -alpha, entering[1]))
        ratio = {k: Fraction(int(multipliers[k]), int(alpha[k])) for k in rising}
        least = min(ratio.values())
        basis[min((k for k in rising if ratio[k] == least), key=lambda k: basis[k])] = i


def in_span(rows: Rows, held: Indices, candidates: Indices) -> NDArray[np.bool_]:
    """Which of the candidates are combinations of the held rows, exactly."""
    N, _ = rows.integers(held)
    _, columns = independent(N)
    others = np.setdiff1d(np.arange(rows.size), columns)
    if len(candidates) < len(others):
        return _are_combinations(rows, N, columns, candidates)
    inside = np.ones(len(candidates), dtype=bool)
    solved = solve_several(N[:, columns], [-N[:, j].astype(object) for j in others])
    if solved is None:
        raise ArithmeticError("The rows that are held are not independent; please report this.")
    normals = []
    for j, (x, q) in zip(others, solved, strict=True):
        normal = np.zeros(rows.size, dtype=object)
        normal[columns], normal[j] = x, q
        normals.append(primitive(normal))
    step = max(1, _CHUNK // max(1, rows.size))
    for start in range(0, len(candidates), step):
        where = np.arange(start, min(start + step, len(candidates)))
        block = rows.exact(candidates[where])
        for normal in normals:
            zero = _products(block[inside[where]], normal) == 0
            inside[where[inside[where]][~zero]] = False
    return inside


def _are_combinations(
    rows: Rows, N: Integers, columns: Indices, candidates: Indices
) -> NDArray[np.bool_]:
    """Which rows are combinations of the rows N, whose minor at the columns is not zero."""
    wanted = rows.integers(candidates)[0].astype(object)
    solved = solve_several(N[:, columns].T, list(wanted[:, columns]))
    if solved is None:
        return np.zeros(len(candidates), dtype=bool)
    pairs = zip(wanted, solved, strict=True)
    return np.array([not (exact_products(N.T, x) - q * row).any() for row, (x, q) in pairs], bool)


def _products(block: Array, g: Integers) -> Integers:
    """A positive multiple of each z_i.g; columns with g = 0 do not cost anything."""
    used = np.flatnonzero(g)
    return exact_products(integer_rows(block[:, used])[0], g[used])
