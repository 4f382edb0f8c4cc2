r"""Doubles as integers: every finite double is an integer times a power of two.

A row may be multiplied by any positive number without changing on which side of a hyperplane it
lies, so each row is scaled by a power of two of its own until all its entries are integers. From
there on arithmetic is exact.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_integers", "exact_products", "integer_rows", "primitive", "product_bound"]

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
    >>> from trueline.halfspaces.integers import integer_rows
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
    >>> from trueline.halfspaces.integers import as_integers
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
    >>> from trueline.halfspaces.integers import exact_products
    >>> exact_products(np.array([[1, 2]]), np.array([10**30, 1], dtype=object)).tolist()
    [1000000000000000000000000000002]
    """
    if product_bound(N, g) < _WORD:
        return N.astype(np.int64) @ g.astype(np.int64)
    return N.astype(object) @ g.astype(object)
