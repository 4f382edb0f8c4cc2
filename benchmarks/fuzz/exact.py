r"""Least squares in integer arithmetic: objectives and optima without any rounding.

Every double is an integer times a power of two, so that sums of squares and their minima,

    2 min P = y^T S y - c^T H^{-1} c,     H = [X 1]^T S [X 1] + diag(alpha, 0),   c = [X 1]^T S y,

are fractions. The right-hand side is what is left of the last diagonal entry of [[H, c], [c^T,
y^T S y]] after elimination of H, by steps that divide without remainder (E. H. Bareiss, "Sylvester's
identity and multistep integer-preserving Gaussian elimination", Math. Comp. 22 (1968) 565-578).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LeastSquares", "independent_columns"]

_PRIME = 2**31 - 1
# Unknowns up to which elimination takes milliseconds.
_FEW = 16


def _integers(values: Any) -> tuple[NDArray[Any], int]:
    """Integers and one exponent e with values = integers * 2^e."""
    values = np.asarray(values, dtype=np.float64)
    mantissa, exponent = np.frexp(values)
    exponent = np.where(values == 0, exponent.max(initial=0), exponent).astype(int) - 53
    least = int(exponent.min(initial=0))
    whole = (mantissa * 2.0**53).astype(np.int64)
    out = np.empty(values.shape, dtype=object)
    for place in np.ndindex(values.shape):
        out[place] = int(whole[place]) << int(exponent[place] - least)
    return out, least


def _scaled(value: int, exponent: int) -> Fraction:
    """value * 2^exponent."""
    return Fraction(value << exponent) if exponent >= 0 else Fraction(value, 1 << -exponent)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _eliminated(M: NDArray[Any], order: Sequence[int], wanted: Sequence[int]) -> list[Fraction]:
    """Diagonal entries of a symmetric matrix after elimination of others, zero pivots left out."""
    M = M.copy()
    last, left = 1, list(order)
    while True:
        pivot = next((i for i in left if M[i, i] != 0), None)
        if pivot is None:
            return [Fraction(M[i, i], last) for i in wanted]
        left.remove(pivot)
        keep = np.array([*left, *wanted])
        p = M[pivot, pivot]
        block = p * M[np.ix_(keep, keep)] - np.outer(M[keep, pivot], M[pivot, keep])
        M[np.ix_(keep, keep)] = block // last
        last = p


def independent_columns(B: NDArray[Any]) -> list[int]:
    """As many columns of a matrix of integers as are independent modulo a prime, hence at all."""
    M = np.array(B % _PRIME, dtype=np.int64)
    found: list[int] = []
    for j in range(M.shape[1]):
        row = len(found)
        below = np.flatnonzero(M[row:, j])
        if not len(below):
            continue
        M[[row, row + below[0]]] = M[[row + below[0], row]]
        M[row] = M[row] * pow(int(M[row, j]), -1, _PRIME) % _PRIME
        M[row + 1 :] = (M[row + 1 :] - M[row + 1 :, j : j + 1] * M[row]) % _PRIME
        found.append(j)
        if len(found) == len(M):
            break
    return found


class LeastSquares:
    """sum over targets of 1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (n, k)
    weights : array of shape (n,), optional
    alpha : float
    fit_intercept : bool
    """

    def __init__(
        self, X: Any, Y: Any, weights: Any = None, alpha: float = 0.0, fit_intercept: bool = True
    ) -> None:
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        present = weights > 0
        self.X = np.asarray(X, dtype=np.float64)[present]
        self.Y = np.asarray(Y, dtype=np.float64)[present]
        self.s, self.alpha, self.fit_intercept = weights[present], float(alpha), fit_intercept

    def value(self, W: Any, b: Any) -> float:
        """The objective at coefficients of shape (d, k) and intercepts of shape (k,)."""
        total = Fraction(0)
        X, x_e = _integers(self.X)
        s, s_e = _integers(self.s)
        for t in range(self.Y.shape[1]):
            w, w_e = _integers(W[:, t])
            y, y_e = _integers(self.Y[:, t])
            level, b_e = _integers(np.asarray(b, dtype=np.float64)[t : t + 1])
            e = min(x_e + w_e, y_e, b_e)
            fitted = (X @ w) * (1 << (x_e + w_e - e)) + level[0] * (1 << (b_e - e))
            residual = y * (1 << (y_e - e)) - fitted
            total += _scaled(int(s @ residual**2), s_e + 2 * e)
            total += Fraction(self.alpha) * _scaled(int(w @ w), 2 * w_e)
        return _float(total / 2)

    def constant(self) -> float:
        """The least objective without coefficients."""
        d, k = self.X.shape[1], self.Y.shape[1]
        level = np.zeros(k)
        if self.fit_intercept:
            # In units that sums do not overflow; the mean need not be exact.
            level = (self.s / self.s.max()) @ self.Y / (self.s / self.s.max()).sum()
        return self.value(np.zeros((d, k)), level)

    def least(self) -> float | None:
        """The minimum; None if that would take long."""
        n, d = self.X.shape
        X, _ = _integers(self.X)
        if self.alpha > 0:
            if min(n, d) > _FEW:
                return None
            return self._least_of_rows() if n < d else self._least_of_columns(range(d))
        ones = np.ones((n, 1), dtype=object)
        columns = independent_columns(np.hstack([ones, X]) if self.fit_intercept else X)
        if len(columns) == n:
            return 0.0
        if len(columns) > _FEW:
            return None
        own = [j - 1 for j in columns if j > 0] if self.fit_intercept else columns
        return self._least_of_columns(own)

    def _least_of_columns(self, columns: Sequence[int]) -> float:
        X, x_e = _integers(self.X[:, list(columns)])
        s, s_e = _integers(self.s)
        Y, y_e = _integers(self.Y)
        ones = np.ones((len(s), 1), dtype=object)
        # Units of a column are free: those of the intercept are 1, of the others 2^x_e.
        B = np.hstack([X, ones]) if self.fit_intercept else X
        M = np.hstack([B, Y])
        M = M.T @ (s[:, None] * M)
        alpha, a_e = _integers(np.array([self.alpha]))
        e = min(a_e - 2 * x_e, s_e) if self.alpha else s_e
        M = M * (1 << (s_e - e))
        if self.alpha:
            for j in range(len(columns)):
                M[j, j] += alpha[0] << (a_e - 2 * x_e - e)
        width = B.shape[1]
        left = _eliminated(M, range(width), range(width, width + Y.shape[1]))
        factor = _scaled(1, e + 2 * y_e)
        return float(sum((value * factor for value in left), Fraction(0)) / 2)

    def _least_of_rows(self) -> float:
        """alpha/2 u.y where (X X^T + alpha S^{-1}) u + b 1 = y, 1.u = 0, rows times s_i."""
        X, x_e = _integers(self.X)
        s, s_e = _integers(self.s)
        Y, y_e = _integers(self.Y)
        n, k = Y.shape
        alpha, a_e = _integers(np.array([self.alpha]))
        # S X X^T S in units 2^(2 x_e + 2 s_e), alpha S in 2^(a_e + s_e).
        e = min(2 * x_e + 2 * s_e, a_e + s_e)
        K = (s[:, None] * X) @ (s[:, None] * X).T * (1 << (2 * x_e + 2 * s_e - e))
        for i in range(n):
            K[i, i] += alpha[0] * s[i] << (a_e + s_e - e)
        total = Fraction(0)
        for t in range(k):
            beside = np.stack([s, s * Y[:, t]], axis=1)
            M = np.zeros((n + 2, n + 2), dtype=object)
            M[:n, :n], M[:n, n:], M[n:, :n] = K, beside, beside.T
            order = range(n + 1) if self.fit_intercept else range(n)
            total -= _eliminated(M, order, [n + 1])[0]
        # Beside: units of 2^s_e and 2^(s_e + y_e); (S y)^T (S A S)^{-1} (S y) in their ratio.
        return float(total * _scaled(alpha[0], a_e + 2 * s_e + 2 * y_e - e) / 2)
