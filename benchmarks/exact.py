"""Least squares in rational arithmetic: the exact answer, to compare digits with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

__all__ = ["MOST_DIGITS", "correct_digits", "solve_least_squares"]

#: A correctly rounded double has at least 15.95 digits: more cannot be asked of anybody.
MOST_DIGITS = 15.9

Row = Sequence[Fraction]


def solve_least_squares(X: Sequence[Row], y: Row) -> list[Fraction]:
    """The solution of X^T X w = X^T y, exactly; X has full column rank.

    Examples
    --------
    >>> from fractions import Fraction
    >>> rows = [[Fraction(1), Fraction(x)] for x in (0, 1, 2)]
    >>> solve_least_squares(rows, [Fraction(v) for v in (0, 1, 1)])
    [Fraction(1, 6), Fraction(1, 2)]
    """
    d = len(X[0])
    system = [
        [sum((row[i] * row[j] for row in X), Fraction(0)) for j in range(d)]
        + [sum((row[i] * target for row, target in zip(X, y, strict=True)), Fraction(0))]
        for i in range(d)
    ]
    # Gauss and Jordan; the matrix is positive definite, so that no pivot is zero.
    for i in range(d):
        pivot = system[i][i]
        if pivot == 0:
            raise ValueError("The columns are linearly dependent: the answer is not unique.")
        system[i] = [value / pivot for value in system[i]]
        for other in range(d):
            factor = system[other][i]
            if other != i and factor:
                system[other] = [
                    a - factor * b for a, b in zip(system[other], system[i], strict=True)
                ]
    return [row[d] for row in system]


def correct_digits(
    found: Sequence[float], exact: Sequence[Fraction], most: float = MOST_DIGITS
) -> float:
    """The least over all coefficients of -log10 of the relative error, between 0 and ``most``.

    Where the exact value is zero the error is taken absolutely.
    """
    least = most
    for value, truth in zip(found, exact, strict=True):
        if not math.isfinite(value):
            return 0.0
        error = abs(Fraction(float(value)) - truth)
        if truth:
            error /= abs(truth)
        if error:
            # Numerators and denominators may not fit a double: take their logarithms apart.
            least = min(least, math.log10(error.denominator) - math.log10(error.numerator))
    return max(0.0, least)
