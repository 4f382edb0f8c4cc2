r"""Least squares in integer arithmetic: objectives and minimisers without any rounding.

Every double is an integer times a power of two, so that sums of squares are integers and the
normal equations a system of them, which elimination solves by divisions without remainder (E. H.
Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination", Math. Comp.
22 (1968) 565-578). Only the answer is rounded.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LeastSquares", "independent_columns", "scores"]

Array = NDArray[np.float64]

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


def scores(X: Array, w: Any, b: float) -> NDArray[np.longdouble]:
    """X w + b, rounded once to the longest numbers of the machine.

    Columns that nearly depend on each other have coefficients of millions, whose products cancel.
    """
    x, x_e = _integers(X)
    v, w_e = _integers(w)
    level, b_e = _integers([b])
    e = min(x_e + w_e, b_e)
    whole = (x @ v) * (1 << (x_e + w_e - e)) + level[0] * (1 << (b_e - e))
    exact = [_scaled(int(value), e) for value in whole]
    high = [_float(value) for value in exact]
    low = [_float(value - Fraction(near)) for value, near in zip(exact, high, strict=True)]
    return np.asarray(high, dtype=np.longdouble) + np.asarray(low, dtype=np.longdouble)


def _solved(A: NDArray[Any], B: NDArray[Any]) -> tuple[list[int], list[list[Fraction]]]:
    """A X = B for a positive semidefinite A of integers, columns without a pivot left at zero.

    Returns the columns with a pivot and their rows of X.
    """
    width, k = B.shape
    M = np.hstack([A, B])
    last, done = 1, []
    for j in range(width):
        p = M[j, j]
        if p == 0:  # semidefinite: the whole row is zero by now
            continue
        rows = np.array([i for i in range(width) if i != j])
        if len(rows):
            block = p * M[rows] - np.outer(M[rows, j], M[j])
            M[rows] = block // last
        last = p
        done.append(j)
    X = [[Fraction(int(M[j, width + t]), int(last)) for t in range(k)] for j in done]
    return done, X


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

    def minimum(self) -> tuple[Array, Array] | None:
        """A minimiser, rounded to doubles; None if that would take long."""
        n, d = self.X.shape
        if self.alpha > 0:
            if min(n, d) > _FEW:
                return None
            return self._from_rows() if n < d else self._from_columns(list(range(d)))
        X, _ = _integers(self.X)
        ones = np.ones((n, 1), dtype=object)
        columns = independent_columns(np.hstack([ones, X]) if self.fit_intercept else X)
        if len(columns) > _FEW:
            return None
        first = int(self.fit_intercept)
        return self._from_columns([j - first for j in columns if j >= first])

    def _from_columns(self, columns: list[int]) -> tuple[Array, Array]:
        """(X_c^T S X_c + alpha) w = X_c^T S y for independent columns; the others are zero.

        Times the total weight: then centring needs no division.
        """
        X, x_e = _integers(self.X[:, columns])
        s, s_e = _integers(self.s)
        Y, y_e = _integers(self.Y)
        weighted, total = s[:, None] * X, s.sum()
        H, c = weighted.T @ X, weighted.T @ Y
        if self.fit_intercept:
            x_sum, y_sum = weighted.sum(axis=0), (s[:, None] * Y).sum(axis=0)
            H = total * H - np.outer(x_sum, x_sum)
            c = total * c - np.outer(x_sum, y_sum)
        # H in units of 2^(2 x_e + s_e) and once more 2^s_e with an intercept, alpha likewise.
        alpha, a_e = _integers(np.array([self.alpha]))
        shift = a_e - 2 * x_e - s_e
        up = max(0, -shift) if self.alpha else 0
        H, c = H * (1 << up), c * (1 << up)
        if self.alpha:
            for j in range(len(columns)):
                H[j, j] += alpha[0] * (total if self.fit_intercept else 1) << (shift + up)
        done, solved = _solved(H, c)
        d, k = self.X.shape[1], Y.shape[1]
        W, level = np.zeros((d, k)), np.zeros(k)
        for t in range(k):
            exact = [row[t] * _scaled(1, y_e - x_e) for row in solved]
            for j, value in zip(done, exact, strict=True):
                W[columns[j], t] = _float(value)
            if self.fit_intercept:
                level[t] = self._level(X, x_e, s, Y[:, t], y_e, dict(zip(done, exact, strict=True)))
        return W, level

    def _level(self, X: Any, x_e: int, s: Any, y: Any, y_e: int, w: dict[int, Fraction]) -> float:
        """The best intercept for exact coefficients."""
        left = _scaled(int(s @ y), y_e)
        left -= sum((_scaled(int(s @ X[:, j]), x_e) * v for j, v in w.items()), Fraction(0))
        return _float(left / int(s.sum()))

    def _from_rows(self) -> tuple[Array, Array]:
        """(X X^T + alpha S^{-1}) u + b 1 = y, 1.u = 0, w = X^T u, with rows and columns times s."""
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
        _, solved = _solved(K, np.hstack([s[:, None], s[:, None] * Y]))
        V = np.array(solved, dtype=object)  # of 1 and of y, in units of 2^(s_e - e) and y's
        W, level = np.zeros((X.shape[1], k)), np.zeros(k)
        for t in range(k):
            u, b = V[:, 1 + t], Fraction(0)
            if self.fit_intercept:
                b = (s @ u) / (s @ V[:, 0])
                u = u - b * V[:, 0]
                level[t] = _float(b * _scaled(1, y_e))
            W[:, t] = [
                _float(value * _scaled(1, 2 * s_e + x_e + y_e - e)) for value in X.T @ (s * u)
            ]
        return W, level
