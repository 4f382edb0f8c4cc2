"""The inequalities behind a classification, one row each.

Two classes, with y = -1 or 1 and the constant 1 as a last feature if there is an intercept::

    y_i (x_i.w + b) > 0                          z_i = y_i (x_i, 1),       unknowns (w, b)

More classes, each with a score x.w_c + b_c, the own one to be the largest::

    (x_i, 1).(w_own - w_c) > 0  for all c        z_ic = +(x_i, 1) in the block of the own class,
                                                        -(x_i, 1) in the block of class c

(C. Kesler's construction; N. J. Nilsson, "Learning Machines", 1965). Adding a vector to all w_c
changes nothing, so that the last class has w = 0 and no block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.numerics.blas import svd
from trueline.separation.lifting import Integers, integer_rows

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Columns whose largest magnitude is outside are measured in other units while searching.
_SMALL, _LARGE = 2.0**-100, 2.0**100
# Wider ones are not made round before the search.
_WIDEST = 1000


class Rows(ABC):
    """Rows z_i of inequalities z_i.b > 0, for searching (rounded) and for proofs (exact).

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
        float64, finite.
    fit_intercept : bool

    Attributes
    ----------
    count : int
        Number of inequalities.
    size : int
        Number of unknowns.
    exponent : array of shape (size,)
        The search has its unknowns in units 2^-exponent.
    """

    count: int
    size: int

    def __init__(self, X: Any, fit_intercept: bool) -> None:
        self.X, self.fit_intercept = X, fit_intercept
        self.n, self.d = X.shape
        self.width = self.d + int(fit_intercept)
        if sp.issparse(X):
            largest = abs(X).max(axis=0).toarray().ravel() if self.n else np.zeros(self.d)
        else:
            largest = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
        power = np.zeros(self.d, dtype=np.int64)
        far = (largest > 0) & ((largest < _SMALL) | (largest > _LARGE))
        power[far] = -np.frexp(largest[far])[1]
        self.scaled = X if not far.any() else _in_units(X, power)
        ones = np.ones(int(fit_intercept))
        self.largest = np.concatenate([np.ldexp(largest, power), ones])
        self.power = np.concatenate([power, np.zeros(len(ones), dtype=np.int64)])

    def _block(self, rows: Indices, exact: bool) -> Array:
        """Rows of data as they are, or in the units of the search, with the constant feature."""
        part = (self.X if exact else self.scaled)[rows]
        part = part.toarray() if sp.issparse(part) else part
        return np.hstack([part, np.ones((len(rows), 1))]) if self.fit_intercept else part

    def _scores(self, B: Array) -> Array:
        """(x, 1) B for all rows of data."""
        scores = np.asarray(self.scaled @ B[: self.d])
        return scores + B[self.d] if self.fit_intercept else scores

    def _second_moments(self) -> Array:
        """sum (x, 1) (x, 1)^T."""
        A = self.scaled
        G = np.empty((self.width, self.width))
        gram = A.T @ A
        G[: self.d, : self.d] = gram.toarray() if sp.issparse(gram) else gram
        if self.fit_intercept:
            G[self.d, : self.d] = G[: self.d, self.d] = np.asarray(A.sum(axis=0)).ravel()
            G[self.d, self.d] = self.n
        return G

    def _round(self) -> Array | None:
        """A basis of features in which the rows are spread alike; None if there are too many."""
        if self.width > _WIDEST:
            return None
        if self.n * self.width <= 200_000:
            Z = self._block(np.arange(self.n), exact=False)
            scale = np.sqrt((Z**2).sum(axis=0))
            scale[scale == 0] = 1.0
            _, singular, V = svd(Z / scale)
            keep = singular > 1e-13 * singular.max(initial=0.0)
            return V[keep].T / singular[keep] / scale[:, None]
        G = self._second_moments()
        scale = np.sqrt(G.diagonal())
        scale[scale == 0] = 1.0
        values, vectors = np.linalg.eigh(G / np.outer(scale, scale))
        keep = values > 1e-14 * values[-1]
        return vectors[:, keep] / np.sqrt(values[keep]) / scale[:, None]

    def reach(self, b: Array) -> float:
        """A bound on the rounding error of every entry of ``margins(b)``."""
        weight = np.abs(b.reshape(-1, self.width)).sum(axis=0)
        return float((self.width + 8) * _EPS * (self.largest @ weight) + 1e-280)

    @abstractmethod
    def margins(self, b: Array) -> Array:
        """z_i.b for all rows, rounded, in the units of the search."""

    @abstractmethod
    def total(self, b: Array) -> Array:
        """sum_i b_i z_i, rounded, in the units of the search."""

    @abstractmethod
    def take(self, ids: Indices) -> Array:
        """Some rows, in the units of the search."""

    @abstractmethod
    def exact(self, ids: Indices) -> Array:
        """Some rows without any rounding, in the units of the data."""

    def integers(self, ids: Indices) -> tuple[Integers, NDArray[np.int64]]:
        """Some rows as integers and exponents, exactly, in the units of the data."""
        return integer_rows(self.exact(ids))

    @abstractmethod
    def basis(self) -> Array | None:
        """A basis of the unknowns in which the rows are spread alike, as columns."""

    @property
    def exponent(self) -> NDArray[np.int64]:
        return np.tile(self.power, self.size // self.width)


def _in_units(X: Any, power: NDArray[np.int64]) -> Any:
    """Columns times powers of two; tiny entries may vanish."""
    if sp.issparse(X):
        out = X.copy()
        out.data = np.ldexp(out.data, power[out.indices])
        return out
    return np.ldexp(X, power)


class SignedRows(Rows):
    """y_i (x_i, 1), for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.inequalities import SignedRows
    >>> rows = SignedRows(np.array([[1.0], [2.0]]), np.array([-1.0, 1.0]), fit_intercept=True)
    >>> rows.take(np.array([0, 1]))
    array([[-1., -1.],
           [ 2.,  1.]])
    """

    def __init__(self, X: Any, signs: Array, fit_intercept: bool) -> None:
        super().__init__(X, fit_intercept)
        self.signs = signs
        self.count, self.size = self.n, self.width

    def margins(self, b: Array) -> Array:
        return self.signs * self._scores(b)

    def total(self, b: Array) -> Array:
        weighted = self.signs * b
        out = np.asarray(weighted @ self.scaled)
        return np.append(out, weighted.sum()) if self.fit_intercept else out

    def take(self, ids: Indices) -> Array:
        return self._block(ids, exact=False) * self.signs[ids, None]

    def exact(self, ids: Indices) -> Array:
        return self._block(ids, exact=True) * self.signs[ids, None]

    def basis(self) -> Array | None:
        return self._round()


class ContrastRows(Rows):
    """Contrasts of the own class with each other one, in order, for several classes.

    Inequality ``i (k - 1) + t`` is that of row i against the t-th of the other k - 1 classes.
    """

    def __init__(self, X: Any, codes: Indices, classes: int, fit_intercept: bool) -> None:
        super().__init__(X, fit_intercept)
        self.codes, self.k = codes, classes
        self.count, self.size = self.n * (classes - 1), self.width * (classes - 1)

    def pair(self, ids: Indices) -> tuple[Indices, Indices, Indices]:
        """Row, own class and other class of each inequality."""
        row, t = np.divmod(ids, self.k - 1)
        own = self.codes[row]
        return row, own, t + (t >= own)

    def margins(self, b: Array) -> Array:
        scores = np.zeros((self.n, self.k))
        scores[:, :-1] = self._scores(b.reshape(self.k - 1, self.width).T)
        own = scores[np.arange(self.n), self.codes]
        others = np.ones(scores.shape, dtype=bool)
        others[np.arange(self.n), self.codes] = False
        return (own[:, None] - scores)[others]

    def total(self, b: Array) -> Array:
        weight = np.zeros((self.n, self.k))
        others = np.ones(weight.shape, dtype=bool)
        others[np.arange(self.n), self.codes] = False
        weight[others] = -b
        weight[np.arange(self.n), self.codes] = b.reshape(self.n, -1).sum(axis=1)
        weight = weight[:, :-1]
        out = np.zeros((self.k - 1, self.width))
        out[:, : self.d] = np.asarray(self.scaled.T @ weight).T
        if self.fit_intercept:
            out[:, self.d] = weight.sum(axis=0)
        return out.ravel()

    def _contrasts(self, part: Array, own: Indices, other: Indices) -> Array:
        out = np.zeros((len(part), self.k, self.width))
        every = np.arange(len(part))
        out[every, own] = part
        out[every, other] = -part
        return out[:, :-1].reshape(len(part), -1)

    def take(self, ids: Indices) -> Array:
        row, own, other = self.pair(ids)
        return self._contrasts(self._block(row, exact=False), own, other)

    def exact(self, ids: Indices) -> Array:
        row, own, other = self.pair(ids)
        return self._contrasts(self._block(row, exact=True), own, other)

    def basis(self) -> Array | None:
        T = None if self.size > _WIDEST else self._round()
        return None if T is None else np.asarray(np.kron(np.eye(self.k - 1), T), dtype=np.float64)
