r"""Sums and products in twice the digits of double precision, and doubles as rational numbers.

With eps the spacing of doubles at 1:

    exact sum        a + b = s + e            without error (Knuth 1969)
    exact product    a b = p + e              without error (Dekker 1971), within the range
    sum of m terms   error <= m (log2 m + 3) / 2 eps^2 sum |terms|    by a tree of exact additions

The last bound: each of the log2 m levels of the tree leaves errors of at most eps/2 times the sum
of the magnitudes, and those, at most m of them, are added up in double precision. Ordinary sums of
m products err by at most m eps times the sum of the magnitudes, in any order (N. J. Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd ed., section 3.1).

Every double is an integer times a power of two; multiplied by one common power, whole tables are
integers, and Python's integers do not round.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EPS", "ROWS", "SMALLEST", "as_integers", "eliminated", "exact_dot", "exact_product"]
__all__ += ["exact_sum", "null_space", "residual_doubled", "sum_units", "tree_sum", "two_sum"]

Array = NDArray[np.float64]
Integers = NDArray[np.object_]

EPS = float(np.finfo(np.float64).eps)
#: Rows of a block.
ROWS = 2048
#: A product that underflows errs by a few of the smallest numbers there are.
SMALLEST = 1e-321


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b = s + e, exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b = p + e, exactly, if nothing overflows or underflows."""
    p = a * b
    t = 134217729.0 * a
    a1 = t - (t - a)
    a2 = a - a1
    t = 134217729.0 * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def tree_sum(terms: Array) -> tuple[Array, Array]:
    """Sum over the first axis, as a sum and the sum of its rounding errors."""
    error = np.zeros(terms.shape[1:])
    if len(terms) == 0:
        return error, error
    while len(terms) > 1:
        half = len(terms) // 2
        sums, errors = two_sum(terms[:half], terms[half : 2 * half])
        error = error + errors.sum(axis=0)
        terms = np.concatenate([sums, terms[2 * half :]]) if len(terms) % 2 else sums
    return two_sum(terms[0], error)


def sum_units(m: int) -> float:
    """The bound on the relative error of :func:`tree_sum`."""
    return m * (math.ceil(math.log2(m + 1)) + 3) / 2 * EPS**2


def residual_doubled(block: Array, w: Array, b: float, y: Array) -> tuple[Array, Array]:
    """X w + b - y as doubled numbers, with relative error ``sum_units(d + 2)`` of the terms."""
    terms = np.empty((len(w) + 2, len(block)))
    terms[:-2], errors = exact_product(block.T, w[:, None])
    terms[-2], terms[-1] = b, -y
    high, low = tree_sum(terms)
    return two_sum(high, low + errors.sum(axis=0))


def exact_sum(numbers: Any) -> Fraction:
    """The sum of doubles as it is."""
    total = Fraction(0)
    numbers = [float(number) for number in np.asarray(numbers).ravel()]
    while numbers:
        rounded = math.fsum(numbers)
        if rounded == 0.0 or not math.isfinite(rounded):
            break
        total += Fraction(rounded)
        numbers.append(-rounded)
    return total


def exact_dot(x: Array, g: Any) -> Fraction:
    """x.g as it is, for doubles x and integers, doubles or fractions g."""
    pairs = zip(x.tolist(), g, strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs if a and b), Fraction(0))


def as_integers(numbers: Array) -> tuple[Integers, int]:
    """Integers and one power q with ``numbers = integers * 2**q``, exactly; q is the largest."""
    mantissa, exponent = np.frexp(numbers)
    whole = (mantissa * 2.0**53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # at the end of each, in binary
    whole >>= np.maximum(zeros, 0)
    power = np.where(whole != 0, exponent.astype(np.int64) - 53 + zeros, 1100)
    lowest = int(power.min(initial=1100))
    shift = np.where(whole != 0, power - lowest, 0)
    out = np.empty(whole.size, dtype=object)
    out[:] = [v << q for v, q in zip(whole.ravel().tolist(), shift.ravel().tolist(), strict=True)]
    return out.reshape(numbers.shape), lowest


def eliminated(table: NDArray[Any], modulo: int = 0) -> tuple[NDArray[Any], list[int], Any]:
    """A table after elimination, the columns of its pivots, and the last pivot.

    Every division is exact: entries are minors of the table (E. H. Bareiss, Mathematics of
    Computation 22 (1968) 565-578). Modulo a prime nothing is divided, and the pivots are at most as
    many as without: a minor that is not zero modulo a prime is not zero.
    """
    pivots: list[int] = []
    table, previous = table.copy(), 1
    for c in range(table.shape[1]):
        rank = len(pivots)
        places = rank + np.flatnonzero(table[rank:, c])
        if len(places) == 0:
            continue
        table[[rank, places[0]]] = table[[places[0], rank]]
        pivot, others = table[rank, c], np.arange(len(table)) != rank
        cleared = pivot * table[others] - table[others, c][:, None] * table[rank]
        table[others] = cleared % modulo if modulo else cleared // previous
        previous = pivot
        pivots.append(c)
    return table, pivots, previous


def null_space(matrix: Integers) -> list[Integers]:
    """Integer vectors that span all v with matrix v = 0."""
    table, pivots, last = eliminated(matrix)
    out = []
    for free in sorted(set(range(matrix.shape[1])) - set(pivots)):
        v = np.zeros(matrix.shape[1], dtype=object)
        v[free], v[pivots] = last, -table[: len(pivots), free]
        out.append(v)
    return out
