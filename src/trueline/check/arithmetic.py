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

A :class:`Ball` holds numbers and bounds on their errors; each operation adds what it rounds off.
NumPy's elementary functions are taken to err by at most eight units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.verdict import Refused

Array = NDArray[np.float64]
Integers = NDArray[np.object_]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]

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


def fsum(numbers: Any) -> float:
    """The sum of all numbers, rounded once."""
    try:
        return math.fsum(np.ravel(numbers).tolist())
    except (OverflowError, ValueError):  # of infinities of both signs
        raise Refused("sums leave the range of doubles") from None


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


_UNITS = 8 * EPS


class Ball:
    """Numbers that are known up to an error: the true ones lie within ``rad`` of ``mid``."""

    __array_ufunc__ = None  # arrays leave sums and products with a ball to the ball

    def __init__(self, mid: Any, rad: Any = 0.0) -> None:
        self.mid = mid
        self.rad = rad if np.shape(rad) == np.shape(mid) else np.broadcast_to(rad, np.shape(mid))

    @classmethod
    def rounded(cls, mid: Any, rad: Any, units: float = EPS) -> Ball:
        """A result that was rounded, whose error was rounded too."""
        return cls(mid, (rad + units * np.abs(mid)) * (1 + _UNITS) + SMALLEST)

    @classmethod
    def stack(cls, parts: Iterable[Ball]) -> Ball:
        """Rows one below the other."""
        return cls(*map(np.concatenate, zip(*((part.mid, part.rad) for part in parts))))

    @classmethod
    def symmetric(cls, K: Array) -> Ball:
        """A matrix that should be symmetric, up to what it differs from its transpose by."""
        return cls(0.5 * (K + K.T), np.abs(K - K.T))

    def __add__(self, other: Any) -> Ball:
        other = other if isinstance(other, Ball) else Ball(other)
        return Ball.rounded(self.mid + other.mid, self.rad + other.rad)

    def __mul__(self, other: Any) -> Ball:
        other = other if isinstance(other, Ball) else Ball(other)
        rad = np.abs(self.mid) * other.rad + (np.abs(other.mid) + other.rad) * self.rad
        return Ball.rounded(self.mid * other.mid, rad)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __sub__(self, other: Any) -> Ball:
        return self + -other

    def __abs__(self) -> Ball:
        return Ball(np.abs(self.mid), self.rad)

    def __getitem__(self, where: Any) -> Ball:
        return Ball(self.mid[where], self.rad[where])

    @property
    def high(self) -> Any:
        """What the numbers are at most."""
        return (self.mid + self.rad) + EPS * np.abs(self.mid)

    def dot(self, w: Array) -> Ball:
        """Sums of products with exact numbers along the last axis."""
        m, size = len(w), np.abs(w)
        rad = (self.rad + (m + 2) * EPS * np.abs(self.mid) + SMALLEST) @ size
        return Ball.rounded(self.mid @ w, rad * (1 + m * EPS) + m * SMALLEST)

    def sum(self) -> Ball:
        """The sum of all numbers."""
        units = (np.size(self.mid) + 8) * EPS
        rad = float((self.rad + units * np.abs(self.mid)).sum()) * (1 + units)
        return Ball.rounded(float(np.sum(self.mid)), rad)

    def exp(self) -> Ball:
        """|exp(m + r) - exp(m)| <= exp(m) (exp(r) - 1), and <= exp(m + r)."""
        mid, small = np.exp(self.mid), np.minimum(self.rad, 1.0)
        above = np.exp(self.mid + self.rad) * (1 + 1e-12)  # |m + r| <= 745 unless it is 0 or inf
        return Ball.rounded(mid, np.where(self.rad < 1, mid * np.expm1(small), above), _UNITS)

    def sqrt(self) -> Ball:
        """|sqrt(m + r) - sqrt(m)| <= r / sqrt(m), and <= sqrt(r)."""
        mid, root = np.sqrt(np.maximum(self.mid, 0.0)), np.sqrt(self.rad)
        return Ball.rounded(mid, root * np.where(mid > root, root / np.where(mid > 0, mid, 1), 1.0))

    def log1p(self) -> Ball:
        """Of numbers >= 0: the slope is at most 1 / (1 + m - r)."""
        rad = self.rad / (1 + np.maximum(self.mid - self.rad, 0.0))
        return Ball.rounded(np.log1p(self.mid), rad, _UNITS)

    def smooth(self, function: Callable[[Array], Array]) -> Ball:
        """A function whose slope is at most 1: tanh, sin, cos."""
        return Ball.rounded(function(self.mid), self.rad, _UNITS)

    def power(self, p: float) -> Ball:
        """|(m + r)^p - m^p| <= p r (|m| + r)^(p - 1), for p >= 1; of m >= 0 unless p is whole."""
        if p == 0:
            return Ball(np.ones_like(self.mid))
        if p < 1 or (p != int(p) and (self.mid < 0).any()):
            raise Refused(f"powers of {p:g} are not evaluated here")
        rad = p * self.rad * (np.abs(self.mid) + self.rad) ** (p - 1) * (1 + p * EPS)
        return Ball.rounded(self.mid**p, rad, _UNITS)
