r"""Exact solution of linear systems of integers, digit by digit.

With the inverse C of A modulo a prime p, the solution of A x = b is found in base p::

    x_k = C r_k mod p,     r_{k+1} = (r_k - A x_k) / p,     r_0 = b,

(J. D. Dixon, "Exact solution of linear equations using p-adic expansions", Numer. Math. 40 (1982)
137-141), and the fractions are read off the digits by Euclid's algorithm (P. S. Wang 1981). The
residuals stay small, so each digit costs two products of double precision, free of rounding
because all sums stay below 2^53. What comes out is multiplied back in whole numbers before it is
returned: nothing depends on luck with the prime.

Doubles as integers: every finite double is an integer times a power of two.

A row may be multiplied by any positive number without changing on which side of a hyperplane it
lies, so each row is scaled by a power of two of its own until all its entries are integers. From
there on arithmetic is exact.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Indices = NDArray[np.intp]

# Primes below 2^21: a sum of 2047 products of residues stays below 2^53. Several, since one of them
# may divide a determinant.
#: The primes, in order of use.
PRIMES = (2097143, 2097133, 2097131)
_LIMB = 22
#: So many equations are solved, at most.
MOST_EQUATIONS = 1000
# Up to so many, plain elimination takes less time than the set-up of anything else.
_FEW_EQUATIONS = 12


def residues(N: Integers, p: int) -> Words:
    """Integers modulo p, as words."""
    return np.asarray(N % p).astype(np.int64)


def independent(N: Integers, p: int = PRIMES[0]) -> tuple[Indices, Indices]:
    """Rows and columns of a largest minor that is not zero modulo p (so not zero at all).

    Rows are taken in order, as many of the first ones as possible; so are columns.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.lifting import independent
    >>> rows, columns = independent(np.array([[0, 1, 2], [0, 2, 4], [3, 0, 0]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 2], [1, 0])
    """
    M = residues(N, p)
    rows, columns = [], []
    reduced = M.copy()
    for i in range(len(M)):
        place = np.flatnonzero(reduced[i])
        if len(place) == 0:
            continue
        c = int(place[0])
        pivot = reduced[i] * pow(int(reduced[i, c]), -1, p) % p
        below = reduced[i + 1 :]
        touched = np.flatnonzero(below[:, c])
        below[touched] = (below[touched] - np.outer(below[touched, c], pivot)) % p
        rows.append(i)
        columns.append(c)
        if len(rows) == M.shape[1]:
            break
    return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)


def _inverse(A: Integers, p: int) -> Words | None:
    """The inverse modulo p, or None."""
    m = len(A)
    M = np.concatenate([residues(A, p), np.eye(m, dtype=np.int64)], axis=1)
    for k in range(m):
        place = np.flatnonzero(M[k:, k])
        if len(place) == 0:
            return None
        if place[0]:
            M[[k, k + place[0]]] = M[[k + place[0], k]]
        M[k] = M[k] * pow(int(M[k, k]), -1, p) % p
        touched = np.flatnonzero(M[:, k])
        touched = touched[touched != k]
        M[touched] = (M[touched] - np.outer(M[touched, k], M[k])) % p
    return M[:, m:]


def _limbs(A: Integers) -> list[NDArray[np.float64]]:
    """A as a sum of limbs 2^(22 l), each a matrix of small doubles."""
    sign, rest = np.sign(A.astype(object)).astype(np.int64), np.abs(A).astype(object)
    out = []
    while (rest != 0).any():
        out.append((sign * (rest & ((1 << _LIMB) - 1)).astype(np.int64)).astype(np.float64))
        rest = rest >> _LIMB
    return out


def solve_integers(A: Integers, b: Integers) -> tuple[Integers, int] | None:
    """Integers x and q > 0 with A x = q b, exactly; None if A is singular.

    Parameters
    ----------
    A : array of shape (m, m)
        Integers.
    b : array of shape (m,)
        Integers.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.lifting import solve_integers
    >>> x, q = solve_integers(np.array([[2, 1], [0, 3]]), np.array([1, 1]))
    >>> x.tolist(), q
    ([2, 2], 6)
    """
    solved = solve_several(A, [b])
    return None if solved is None else solved[0]


def solve_several(A: Integers, right: list[Integers]) -> list[tuple[Integers, int]] | None:
    """The same for several right-hand sides, which share the inverse modulo a prime."""
    m = len(A)
    if m == 0:
        return [(np.empty(0, dtype=object), 1) for _ in right]
    if m > MOST_EQUATIONS:
        raise ValueError(
            f"This needs the exact solution of {m:,} linear equations, and at most "
            f"{MOST_EQUATIONS:,} are solved: the rows seem not to be separable, with too many "
            "columns (times classes less one) to prove it. Ask about fewer columns."
        )
    if m <= _FEW_EQUATIONS:
        found = [_eliminated(A.tolist(), b.tolist()) for b in right]
        return [one for one in found if one is not None] if None not in found else None
    for p in PRIMES:
        C = _inverse(A, p)
        if C is not None:
            limbs = _limbs(A)
            return [_lift(A, limbs, b.astype(object), C, p) for b in right]
    return None


def _eliminated(A: list[list[int]], b: list[int]) -> tuple[Integers, int] | None:
    """Elimination without fractions: divided by the pivot before, all stay whole (E. Bareiss)."""
    rows, last = [[*row, v] for row, v in zip(A, b, strict=True)], 1
    for k in range(len(rows)):
        place = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if place is None:
            return None
        rows[k], rows[place] = pivot, _ = rows[place], rows[k]
        for i, row in enumerate(rows):
            if i != k:
                rows[i] = [(pivot[k] * v - row[k] * w) // last for v, w in zip(row, pivot)]
        last = pivot[k]
    sign = 1 if last > 0 else -1
    return np.array([sign * row[-1] for row in rows], dtype=object), sign * last


def _lift(
    A: Integers, limbs: list[NDArray[np.float64]], b: Integers, C: Words, p: int
) -> tuple[Integers, int]:
    """Digits until the fractions that they stand for solve the system."""
    inverse = C.astype(np.float64)
    digits: list[Words] = []
    r, attempt = b, 8  # small systems and simple answers need few digits
    while True:
        digit = (inverse @ residues(r, p).astype(np.float64)) % p
        product = (limbs[0] @ digit).astype(np.int64).astype(object)
        for place, limb in enumerate(limbs[1:], 1):
            product = product + ((limb @ digit).astype(np.int64).astype(object) << (_LIMB * place))
        r = (r - product) // p
        digits.append(digit.astype(np.int64))
        if len(digits) == attempt:
            found = _fractions(digits, p)
            if found is not None:
                x, q = found
                if (exact_products(A, x) == q * b).all():
                    return x, q
            attempt += max(8, attempt // 4)


def _fractions(digits: list[Words], p: int) -> tuple[Integers, int] | None:
    """One denominator for all fractions whose digits these are; None if there are too few."""
    values, modulus = _assembled(digits, p)
    reach = isqrt(modulus // 2)
    q, out = 1, np.empty(len(values), dtype=object)
    for j, value in enumerate(values):
        share = value * q % modulus
        if min(share, modulus - share) > reach:
            factor = _denominator(share, modulus, reach)
            q *= factor
            if factor == 0 or q > reach:
                return None
        out[j] = value
    for j, value in enumerate(values):
        share = value * q % modulus
        out[j] = share if share <= modulus // 2 else share - modulus
    return out, q


def _assembled(digits: list[Words], p: int) -> tuple[list[int], int]:
    """sum_k digit_k p^k by halves, and p to the number of digits."""
    parts, base = [digit.astype(object) for digit in digits], p
    modulus = p ** len(digits)
    while len(parts) > 1:
        if len(parts) % 2:
            parts.append(np.zeros_like(parts[0]))
        parts = [low + high * base for low, high in zip(parts[::2], parts[1::2], strict=True)]
        base *= base
    return [int(v) for v in parts[0]], modulus


def _denominator(value: int, modulus: int, reach: int) -> int:
    """The denominator of the fraction that is ``value`` modulo ``modulus``."""
    r0, r1, t0, t1 = modulus, value, 0, 1
    while r1 > reach:
        k = r0 // r1
        r0, r1, t0, t1 = r1, r0 - k * r1, t1, t0 - k * t1
    return abs(t1)


Array = NDArray[np.float64]
Integers = NDArray[Any]  # of Python integers

# Sums of products below this are exact in int64.
_WORD = 2**62


def integer_rows(Z: Array) -> tuple[Integers, NDArray[np.int64]]:
    """Integers N and exponents e with ``Z[i] = N[i] 2^e[i]``, exactly.

    Returns
    -------
    N : array of shape (m, D)
        Of int64 where everything fits, of Python integers otherwise.
    e : array of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.lifting import integer_rows
    >>> N, e = integer_rows(np.array([[0.5, 3.0], [1e300, 0.0]]))
    >>> [[int(v) for v in row] for row in N][0], int(e[0])
    ([1, 6], -1)
    """
    mantissa, exponent = np.frexp(Z)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    # The trailing zeros of each mantissa go into its exponent.
    lowest = whole & -whole
    zeros = np.where(whole == 0, 0, np.frexp(lowest.astype(np.float64))[1] - 1)
    whole >>= zeros
    place = exponent.astype(np.int64) - 53 + zeros
    far = np.iinfo(np.int64).max
    least = np.where(whole == 0, far, place).min(axis=1, initial=far)
    least[least == far] = 0
    shift = np.where(whole == 0, 0, place - least[:, None])
    bits = np.frexp(np.abs(whole).astype(np.float64))[1] + shift
    if bits.size == 0 or bits.max() <= 62:
        return whole << shift, least
    wide = whole.astype(object)
    many = shift > 0
    wide[many] = [int(a) << int(b) for a, b in zip(whole[many], shift[many])]
    return wide, least


def as_integers(values: Any) -> Integers:
    """The smallest integers that are a positive multiple of the given numbers.

    Parameters
    ----------
    values : sequence of float, int or Fraction

    Examples
    --------
    >>> from trueline.separation.lifting import as_integers
    >>> as_integers([0.5, -1.5, 0]).tolist()
    [1, -3, 0]
    """
    parts = [v if isinstance(v, Fraction) else Fraction(v) for v in values]
    common = 1
    for part in parts:
        common = common * part.denominator // gcd(common, part.denominator)
    out = np.empty(len(parts), dtype=object)
    out[:] = [int(part.numerator * (common // part.denominator)) for part in parts]
    return primitive(out)


def primitive(values: Integers) -> Integers:
    """Integers divided by their greatest common divisor."""
    numbers = [int(v) for v in values]
    common = gcd(*numbers) if numbers else 0
    out = np.empty(len(numbers), dtype=object)
    out[:] = numbers if common in (0, 1) else [v // common for v in numbers]
    return out


def product_bound(N: Integers, g: Integers) -> int:
    """No entry, and no sum of products of a row of N with g, is larger than this."""
    if N.size == 0 or g.size == 0:
        return 0
    largest = [int(v) for v in np.abs(N).max(axis=0)]
    total = sum(a * abs(int(b)) for a, b in zip(largest, g, strict=True))
    return max(total, *largest, *(abs(int(b)) for b in g))


def exact_products(N: Integers, g: Integers) -> Integers:
    """N @ g without rounding: in words of 64 bits where they suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.lifting import exact_products
    >>> exact_products(np.array([[1, 2]]), np.array([10**30, 1], dtype=object)).tolist()
    [1000000000000000000000000000002]
    """
    if product_bound(N, g) < _WORD:
        return N.astype(np.int64) @ g.astype(np.int64)
    return N.astype(object) @ g.astype(object)
