r"""Kernels by their formulas, with bounds on the rounding of every value.

A :class:`Ball` holds numbers and bounds on their errors; each operation adds what it rounds off.
NumPy's elementary functions are taken to err by at most eight units, sums of m terms by m units
(N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 3.1).

Positive semi-definite by formula (B. Schoelkopf, A. J. Smola, "Learning with Kernels", 2002,
chapter 13): linear, cosine, rbf, laplacian and chi2 with gamma >= 0, and (gamma x.z + coef0)^degree
with gamma >= 0, coef0 >= 0 and a whole degree >= 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, SMALLEST
from trueline.check.rows import as_doubles, as_matrix
from trueline.check.schema import Field, read
from trueline.check.verdict import Refused

__all__ = ["Ball", "PairwiseKernel", "as_recipe", "definite_shift", "squares"]

Array = NDArray[np.float64]

_UNITS = 8 * EPS
_VALUES = 1_000_000  # kernel values at a time


class Ball:
    """Numbers that are known up to an error: the true ones lie within ``rad`` of ``mid``."""

    def __init__(self, mid: Any, rad: Any = 0.0) -> None:
        self.mid, self.rad = mid, rad

    @classmethod
    def rounded(cls, mid: Any, rad: Any, units: float = EPS) -> Ball:
        """A result that was rounded, whose error was rounded too."""
        return cls(mid, (rad + units * np.abs(mid)) * (1 + _UNITS) + SMALLEST)

    def __add__(self, other: Any) -> Ball:
        other = other if isinstance(other, Ball) else Ball(other)
        return Ball.rounded(self.mid + other.mid, self.rad + other.rad)

    def __mul__(self, other: Any) -> Ball:
        other = other if isinstance(other, Ball) else Ball(other)
        rad = np.abs(self.mid) * other.rad + (np.abs(other.mid) + other.rad) * self.rad
        return Ball.rounded(self.mid * other.mid, rad)

    __radd__, __rmul__ = __add__, __mul__

    def exp(self) -> Ball:
        """|exp(m + r) - exp(m)| <= exp(m) (exp(r) - 1), and <= exp(m + r)."""
        mid, small = np.exp(self.mid), np.minimum(self.rad, 1.0)
        above = np.exp(self.mid + self.rad) * (1 + 1e-12)  # |m + r| <= 745 unless it is 0 or inf
        return Ball.rounded(mid, np.where(self.rad < 1, mid * np.expm1(small), above), _UNITS)

    def sqrt(self) -> Ball:
        """|sqrt(m + r) - sqrt(m)| <= r / sqrt(m), and <= sqrt(r)."""
        mid = np.sqrt(np.maximum(self.mid, 0.0))
        root = np.sqrt(self.rad)
        return Ball.rounded(mid, root * np.where(mid > root, root / np.where(mid > 0, mid, 1), 1.0))

    def smooth(self, function: Callable[[Array], Array]) -> Ball:
        """A function whose slope is at most 1: tanh, sin, cos."""
        return Ball.rounded(function(self.mid), self.rad, _UNITS)

    def log1p(self) -> Ball:
        """Of numbers >= 0: the slope is at most 1 / (1 + m - r)."""
        rad = self.rad / (1 + np.maximum(self.mid - self.rad, 0.0))
        return Ball.rounded(np.log1p(self.mid), rad, _UNITS)

    def power(self, p: float) -> Ball:
        """|(m + r)^p - m^p| <= p r (|m| + r)^(p - 1), for p >= 1; of m >= 0 unless p is whole."""
        if p == 0:
            return Ball(np.ones_like(self.mid))
        if p < 1 or (p != int(p) and (self.mid < 0).any()):
            raise Refused(f"powers of {p:g} are not evaluated here")
        rad = p * self.rad * (np.abs(self.mid) + self.rad) ** (p - 1) * (1 + p * EPS)
        return Ball.rounded(self.mid**p, rad, _UNITS)


def squares(A: Array, B: Array, lengths: Any = 1.0) -> Iterator[Array]:
    """((a_j - b_j) / l_j)^2 of all pairs of rows, column by column; each errs by 5 units."""
    scales = np.broadcast_to(lengths, A.shape[1])
    for j in range(A.shape[1]):
        yield ((A[:, j, None] - B[None, :, j]) / scales[j]) ** 2


def _terms(A: Any) -> int:
    """The largest number of terms in a product with a row."""
    return int(np.diff(A.indptr).max(initial=0)) if sp.issparse(A) else A.shape[1]


def _dense(M: Any) -> Array:
    return M.toarray() if sp.issparse(M) else M


def _squared_lengths(A: Any) -> Array:
    own = A.multiply(A).sum(axis=1) if sp.issparse(A) else np.einsum("ij,ij->i", A, A)
    return np.asarray(own).reshape(-1, 1)


def _products(A: Any, B: Any) -> Ball:
    """x.z of all pairs of rows."""
    P, size, m = _dense(A @ B.T), _dense(abs(A) @ abs(B).T), _terms(A)
    return Ball.rounded(P, (m + 2) * EPS * size + m * SMALLEST)


def _distances(A: Any, B: Any, gamma: float) -> Ball:
    """||x - z||^2: by products where that is accurate enough for gamma, or rows are sparse."""
    a, b, m = A, B, _terms(A)
    if not sp.issparse(A):
        # Any shift keeps distances; x - shift is rounded relative to itself.
        shift = B.mean(axis=0) if len(B) else 0.0
        a, b = A - shift, B - shift
    own, other = _squared_lengths(a), _squared_lengths(b)
    worst = own.max(initial=0.0) + other.max(initial=0.0)
    if not sp.issparse(A) and not gamma * (4 * m + 32) * EPS * worst < 1e-11:
        return _sum(squares(A, B), m)
    size = own + other.T
    rad = (2 * m + 16) * EPS * size + 4 * (m + 1) * SMALLEST
    return Ball.rounded(np.maximum(size - 2 * _dense(a @ b.T), 0.0), rad)


def _sum(columns: Iterator[Array], d: int) -> Ball:
    """The sum of terms >= 0, each within 8 units."""
    total = sum(columns)
    return Ball.rounded(total, (d + 8) * EPS * total + d * SMALLEST)


def as_recipe(kernel: Any) -> dict[str, Any]:
    """Name and parameters of a pairwise kernel, which may hold nothing else."""
    if not isinstance(kernel, Mapping) or "metric" not in kernel:
        raise Refused("the kernel is no mapping with a metric")
    if callable(kernel["metric"]):
        return dict(kernel)
    unknown = set(kernel) - {"metric", "gamma", "degree", "coef0"}
    if unknown:
        raise Refused(f"the kernel holds {', '.join(sorted(map(str, unknown)))}")
    fields = {
        "metric": Field(kind="text"),
        "gamma": Field(low=0.0, optional=True),
        "degree": Field(low=0.0, optional=True),
        "coef0": Field(optional=True),
    }
    return vars(read({**kernel, "witness": {}}, fields, {}, {}))


class PairwiseKernel:
    """Blocks of the matrix of one of the named kernels, a given matrix, or a function of two rows.

    Attributes
    ----------
    n : int
    is_definite : bool
        Whether the formula is known to be positive semi-definite.
    said : str
        How the statement names it.
    """

    def __init__(self, recipe: dict[str, Any], X: Any, keep: NDArray[np.bool_]) -> None:
        self.metric, self.recipe = recipe["metric"], recipe
        self.said = f"the kernel {self.metric!r}" if isinstance(self.metric, str) else ""
        if callable(self.metric):
            X = _called(self.metric, {k: v for k, v in recipe.items() if k != "metric"}, X)
            self.said = f"the kernel as the function {_name(self.metric)} itself computes it"
        X = as_matrix(X)
        if len(keep) != X.shape[0]:
            raise Refused(f"X has {X.shape[0]} rows, y {len(keep)}")
        self.given = callable(self.metric) or self.metric == "precomputed"
        if self.given:
            if X.shape[0] != X.shape[1]:
                raise Refused(f"a kernel matrix has the shape {X.shape}")
            X = _dense(X)[:, keep]
        self.X = X[keep]
        self.n, d = self.X.shape
        gamma = recipe.get("gamma")
        self.gamma = 1.0 / max(d, 1) if gamma is None else gamma
        self.degree, self.coef0 = recipe.get("degree") or 0.0, recipe.get("coef0") or 0.0
        poly = self.metric in ("poly", "polynomial")
        needs = ("degree", "coef0") if poly else ("coef0",) if self.metric == "sigmoid" else ()
        if not self.given and any(recipe.get(name) is None for name in needs):
            raise Refused("the kernel lacks a parameter")
        whole = poly and self.degree == int(self.degree) and self.coef0 >= 0
        self.is_definite = not callable(self.metric) and (
            whole or self.metric in ("linear", "cosine", "rbf", "laplacian", "chi2")
        )

    def block(self, rows: Any, columns: Any) -> Ball:
        """Values of some rows with others."""
        if self.given:
            return Ball(self.X[rows][:, columns])
        A, B = self.X[rows], self.X[columns]
        if self.metric == "rbf":
            return (_distances(A, B, self.gamma) * -self.gamma).exp()
        if self.metric in ("linear", "cosine", "poly", "polynomial", "sigmoid"):
            return self._of_products(A, B)
        if self.metric not in ("laplacian", "chi2", "additive_chi2"):
            raise Refused(f"the kernel {self.metric!r} is not known")
        A, B = _dense(A), _dense(B)
        if self.metric == "laplacian":
            return (_sum((np.sqrt(s) for s in squares(A, B)), A.shape[1]) * -self.gamma).exp()
        if (A < 0).any() or (B < 0).any():
            raise Refused("chi2 is for numbers that are not negative")
        terms = (
            s / np.where(s > 0, A[:, j, None] + B[None, :, j], 1.0)
            for j, s in enumerate(squares(A, B))
        )
        total = _sum(terms, A.shape[1]) * -1.0
        return total if self.metric == "additive_chi2" else (total * self.gamma).exp()

    def _of_products(self, A: Any, B: Any) -> Ball:
        if self.metric == "cosine":
            both = np.sqrt(_squared_lengths(A)) * np.sqrt(_squared_lengths(B)).T
            if ((both > 0) & ~((both > 1e-140) & (both < 1e140))).any():
                raise Refused("the lengths of rows leave the range of doubles")
            K = _products(A, B).mid / np.where(both > 0, both, 1.0)
            return Ball(K, (4 * _terms(A) + 16) * EPS * np.ones_like(K))
        products = _products(A, B)
        if self.metric == "linear":
            return products
        inner = products * self.gamma + self.coef0
        return inner.smooth(np.tanh) if self.metric == "sigmoid" else inner.power(self.degree)

    def whole(self) -> Ball:
        """The matrix."""
        step = max(1, _VALUES // max(1, self.n))
        parts = [self.block(slice(i, i + step), slice(None)) for i in range(0, self.n, step)]
        mid = np.concatenate([part.mid for part in parts])
        return Ball(mid, np.concatenate([np.broadcast_to(p.rad, p.mid.shape) for p in parts]))

    def scores(self, rows: Any, columns: Any, coef: Array) -> Ball:
        """K[rows, columns] @ coef: products of m terms err by m + 2 units of their magnitudes."""
        mid, rad, size = np.empty(len(rows)), np.empty(len(rows)), np.abs(coef)
        step = max(1, _VALUES // max(1, len(columns)))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            K = self.block(rows[some], columns)
            mid[some] = K.mid @ coef
            rad[some] = (K.rad + (len(coef) + 2) * EPS * np.abs(K.mid)) @ size
        return Ball(mid, rad * (1 + (len(coef) + 4) * EPS) + SMALLEST)


def _called(metric: Any, options: dict[str, Any], X: Any) -> Array:
    """A function of two rows at all pairs, as the function computes them; it is symmetric."""
    try:
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        rows = [X[[i], :] if sp.issparse(X) else X[i] for i in range(X.shape[0])]
        K = np.empty((len(rows), len(rows)))
        for i, x in enumerate(rows):
            for j in range(i + 1):
                K[i, j] = K[j, i] = np.asarray(metric(rows[j], x, **options)).item()
    except Exception as error:
        raise Refused(f"the kernel function fails: {error}") from None
    return as_doubles(K, "the kernel matrix")


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))[:80]


def definite_shift(K: Ball) -> float:
    """How much on the diagonal makes a symmetric matrix positive semi-definite, for certain.

    Eigenvalues err by at most 4 n eps ||K||_F and the norm of the error of K.
    """
    if not np.isfinite(K.mid).all():
        return np.inf
    rad = np.linalg.norm(np.broadcast_to(K.rad, K.mid.shape)) + np.linalg.norm(K.mid - K.mid.T)
    rad += 4 * len(K.mid) * EPS * np.linalg.norm(K.mid)
    lowest = np.linalg.eigvalsh(0.5 * (K.mid + K.mid.T))[0]
    return max(0.0, float(rad - lowest)) * (1 + _UNITS)
