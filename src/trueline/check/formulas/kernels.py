r"""Kernels by their formulas, with bounds on the rounding of every value.

A :class:`Ball` holds numbers and bounds on their errors; each operation adds what it rounds off.
NumPy's elementary functions are taken to err by at most eight units, sums of m terms by m units
(N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 3.1).

    linear           x.z                              poly       (gamma x.z + coef0)^degree
    cosine           x.z / (|x| |z|)                  sigmoid    tanh(gamma x.z + coef0)
    rbf              exp(-gamma |x - z|^2)            laplacian  exp(-gamma sum_j |x_j - z_j|)
    additive_chi2    -sum_j (x_j - z_j)^2 / (x_j + z_j)     chi2 exp(gamma additive_chi2)

gamma is 1 / (number of columns) if it is absent. Positive semi-definite by formula (B. Schoelkopf,
A. J. Smola, "Learning with Kernels", 2002, chapter 13): linear, cosine, rbf, laplacian and chi2
with gamma >= 0, and poly with gamma >= 0, coef0 >= 0 and a whole degree >= 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.numbers.arithmetic import EPS, SMALLEST
from trueline.check.numbers.rows import as_doubles, as_matrix, length
from trueline.check.schema import Field, parameters, read
from trueline.check.verdict import Refused, told

__all__ = ["Ball", "PairwiseKernel", "definite_shift", "differences", "products", "total"]

Array = NDArray[np.float64]

_UNITS = 8 * EPS
_VALUES = 1_000_000  # kernel values at a time
_DEFINITE = ("linear", "cosine", "rbf", "laplacian", "chi2")
_FIELDS = {
    "name": Field(kind="text"),
    "gamma": Field(low=0.0, optional=True),
    "degree": Field(low=0.0, high=1000.0, optional=True),
    "coef0": Field(optional=True),
}


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


def differences(A: Array, B: Array) -> Iterable[Array]:
    """x_j - z_j of all pairs of rows, column by column; each errs by half a unit."""
    return (A[:, j, None] - B[None, :, j] for j in range(A.shape[1]))


def total(terms: Iterable[Array], m: int) -> Ball:
    """The sum of m terms >= 0, each of which errs by at most 6 units."""
    added = sum(terms)
    return Ball.rounded(added, (m + 8) * EPS * added + m * SMALLEST)


def _terms(A: Any, B: Any) -> int:
    """The largest number of terms in a row."""
    counts = (np.diff(M.indptr).max(initial=0) if sp.issparse(M) else M.shape[1] for M in (A, B))
    return int(max(counts))


def _dense(M: Any) -> Any:
    return M.toarray() if sp.issparse(M) else M


def _squared_lengths(A: Any) -> Array:
    return np.asarray((A * A).sum(axis=1)).reshape(-1, 1)


def products(A: Any, B: Any) -> Ball:
    """x.z of all pairs of rows."""
    P, size, m = _dense(A @ B.T), _dense(abs(A) @ abs(B).T), _terms(A, B)
    return Ball.rounded(P, (m + 2) * EPS * size + m * SMALLEST)


def _distances(A: Any, B: Any, gamma: float) -> Ball:
    """|x - z|^2: by products where that is accurate enough for gamma, or rows are sparse."""
    a, b, m = A, B, _terms(A, B)
    if not sp.issparse(A):
        # Any shift keeps distances; x - shift is rounded relative to itself.
        shift = B.mean(axis=0) if len(B) else 0.0
        a, b = A - shift, B - shift
    own, other = _squared_lengths(a), _squared_lengths(b)
    worst = own.max(initial=0.0) + other.max(initial=0.0)
    if not sp.issparse(A) and not gamma * (4 * m + 32) * EPS * worst < 1e-11:
        return total((d**2 for d in differences(A, B)), m)
    size = own + other.T
    rad = (2 * m + 16) * EPS * size + 4 * (m + 1) * SMALLEST
    return Ball.rounded(np.maximum(size - 2 * _dense(a @ b.T), 0.0), rad)


class PairwiseKernel:
    """Blocks of the matrix of one of the named kernels, a given matrix, or a function.

    Parameters
    ----------
    kernel : object with the attributes, or mapping with the keys, name or metric, gamma, degree,
        coef0; mapping with a function of two rows as its metric, and its options; or a function of
        two matrices
    X : array-like or sparse matrix
        Rows, or their kernel matrix ("precomputed").

    Attributes
    ----------
    n : int
    is_definite : bool
        Whether the formula is known to be positive semi-definite.
    said : str
        How the statement names it.
    """

    def __init__(self, kernel: Any, X: Any) -> None:
        given = {"name": None} if callable(kernel) else parameters(kernel)
        metric = given.pop("metric", given["name"])
        if callable(kernel) or callable(metric):
            rows, said = _called(kernel, metric, given, X)
            self.name, self.said = "precomputed", f"the kernel as {said} itself computes it"
        else:
            if set(given) - set(_FIELDS):
                raise Refused("the kernel holds what is no name, gamma, degree or coef0")
            self.own, rows = read({**given, "name": metric}, _FIELDS, {}, {}), as_matrix(X)
            self.name, self.said = self.own.name, f"the kernel {self.own.name!r}"
        self.X: Any = rows
        self.n, self.K, self.is_definite = length(X), None, False
        if self.name == "precomputed":
            if rows.shape != (self.n, self.n):
                raise Refused(f"the kernel matrix of {self.n} rows has the shape {rows.shape}")
            self.K = Ball.symmetric(_dense(rows))
            return
        if sp.issparse(rows):  # entries may be stored as sums of several
            self.X = rows.copy()
            self.X.sum_duplicates()
        own, is_power = self.own, self.name in ("poly", "polynomial")
        own.gamma = 1.0 / max(self.X.shape[1], 1) if own.gamma is None else own.gamma
        if (is_power or self.name == "sigmoid") and None in (own.coef0, own.degree):
            raise Refused("the kernel lacks a parameter")
        whole = is_power and own.degree == int(own.degree) and own.coef0 >= 0
        self.is_definite = whole or self.name in _DEFINITE

    def block(self, rows: Any, columns: Any) -> Ball:
        """Values of some rows with others."""
        if self.K is not None:
            return self.K[rows][:, columns]
        A, B, name, gamma = self.X[rows], self.X[columns], self.name, self.own.gamma
        if name == "linear":
            return products(A, B)
        if name == "cosine":
            return _cosine(A, B)
        if name in ("poly", "polynomial", "sigmoid"):
            inner = products(A, B) * gamma + self.own.coef0
            return inner.smooth(np.tanh) if name == "sigmoid" else inner.power(self.own.degree)
        if name == "rbf":
            away = _distances(A, B, gamma)
        elif name == "laplacian":
            away = total(map(np.abs, differences(_dense(A), _dense(B))), A.shape[1])
        elif name in ("chi2", "additive_chi2"):
            away = _chi2(_dense(A), _dense(B))
        else:
            raise Refused(f"the kernel {name!r} is not known")
        return -away if name == "additive_chi2" else (away * -gamma).exp()

    def whole(self) -> Ball:
        """The matrix."""
        step = max(1, _VALUES // max(1, self.n))
        every = range(0, self.n, step)
        return Ball.stack(self.block(slice(i, i + step), slice(None)) for i in every)

    def scores(self, rows: Any, columns: Any, coef: Array) -> Ball:
        """K[rows, columns] @ coef."""
        step = max(1, _VALUES // max(1, len(columns)))
        every = range(0, max(len(rows), 1), step)
        return Ball.stack(self.block(rows[i : i + step], columns).dot(coef) for i in every)


def _chi2(A: Array, B: Array) -> Ball:
    if (A < 0).any() or (B < 0).any():
        raise Refused("chi2 is for numbers that are not negative")
    both = (A[:, j, None] + B[None, :, j] for j in range(A.shape[1]))
    pairs = zip(map(np.abs, differences(A, B)), both)
    return total((d * (d / np.where(d > 0, sums, 1.0)) for d, sums in pairs), A.shape[1])


def _cosine(A: Any, B: Any) -> Ball:
    sizes = [_dense(abs(M).max(axis=1)).reshape(-1, 1) for M in (A, B)]
    if any(((size > 0) & ~((size > 1e-140) & (size < 1e140))).any() for size in sizes):
        raise Refused("rows whose squares leave the range of doubles")
    both = np.sqrt(_squared_lengths(A)) * np.sqrt(_squared_lengths(B)).T
    K = products(A, B).mid / np.where(both > 0, both, 1.0)
    return Ball(K, (4 * _terms(A, B) + 16) * EPS)


def _called(kernel: Any, metric: Any, options: dict[str, Any], X: Any) -> tuple[Array, str]:
    """The matrix of a function of two matrices, or of two rows, as it computes it; its name."""
    options = {key: value for key, value in options.items() if key != "name"}
    try:
        function = kernel if callable(kernel) else metric
        said = f"the function {getattr(function, '__name__', type(function).__name__)!s:.80}"
        if function is kernel:
            return as_matrix(_dense(kernel(X, X))), said
        X = as_matrix(X)
        rows = [X[[i], :] if sp.issparse(X) else X[i] for i in range(X.shape[0])]
        K = np.empty((len(rows), len(rows)))
        for i, x in enumerate(rows):
            for j in range(i + 1):  # it is symmetric
                K[i, j] = K[j, i] = np.asarray(metric(rows[j], x, **options)).item()
        return as_doubles(K, "the kernel matrix"), said
    except Exception as error:
        raise Refused(f"the kernel function fails: {told(error)}") from None


def definite_shift(K: Ball) -> float:
    """How much on the diagonal makes a symmetric matrix positive semi-definite, for certain.

    Eigenvalues err by at most 4 n eps ||K||_F and the norm of the error of K.
    """
    if not np.isfinite(K.mid).all():
        return np.inf
    rad = np.linalg.norm(K.rad) + 4 * len(K.mid) * EPS * np.linalg.norm(K.mid)
    return max(0.0, float(rad - np.linalg.eigvalsh(K.mid)[0])) * (1 + _UNITS)
