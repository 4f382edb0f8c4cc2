"""Polynomials that stay accurate at high degree, and products of columns, with names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, legendre
from numpy.typing import NDArray
from scipy import sparse

from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.features.base import FeatureMap

Array = NDArray[np.float64]

_LETTERS = {"data": "P", "legendre": "L", "chebyshev": "T"}
_FIXED = {"legendre": legendre.legvander, "chebyshev": chebyshev.chebvander}


def arnoldi(t: Array, degree: int) -> tuple[Array, Array]:
    """Polynomials orthonormal on the points t, and the recurrence that makes them.

    t p_k(t) = sum_{j <= k+1} H[j, k] p_j(t), with mean square one and p_0 = 1. In exact arithmetic
    H is tridiagonal (the three-term recurrence; G. Forsythe, Journal of SIAM 5, 1957). Rounding
    makes that recurrence lose orthogonality at high degree, so that all earlier polynomials are
    removed, twice ("twice is enough", Kahan and Parlett): Vandermonde with Arnoldi (P. Brubeck,
    Y. Nakatsukasa, L. N. Trefethen, SIAM Review 63, 2021).
    """
    n = len(t)
    P, H = np.ones((n, degree + 1)), np.zeros((degree + 1, degree))
    for k in range(degree):
        q = t * P[:, k]
        for _ in range(2):
            projection = P[:, : k + 1].T @ q / n
            H[: k + 1, k] += projection
            q = q - P[:, : k + 1] @ projection
        H[k + 1, k] = np.sqrt(q @ q / n)
        P[:, k + 1] = q / H[k + 1, k]
    return P, H


def evaluate(t: Array, H: Array) -> Array:
    """The same polynomials at other points, by the same recurrence."""
    degree = H.shape[1]
    P = np.ones((len(t), degree + 1))
    for k in range(degree):
        P[:, k + 1] = (t * P[:, k] - P[:, : k + 1] @ H[: k + 1, k]) / H[k + 1, k]
    return P


@parameters()
class OrthogonalPolynomialFeatures(FeatureMap):
    """Polynomials of each column in an orthogonal basis: phi(x) = (p_1(x_j), ..., p_m(x_j)).

    They span the same functions as the powers x, x^2, ..., x^m, but powers become dependent to
    working precision near degree 10, and these do not. What no basis can change: on n equally
    spaced points, polynomials of degree above about 2 sqrt(n) oscillate between the points.

    Parameters
    ----------
    degree : int, default=3
        Highest degree of each column; products of columns are not included.
    basis : {"data", "legendre", "chebyshev"}, default="data"
        Orthonormal on the rows seen by ``fit`` (columns of mean zero, mean square one and no
        correlation, like R's ``poly``), or the classical polynomials on the range of the data.
        On m different values there are m - 1 orthogonal polynomials; a column has no more.
    outside : {"extrapolate", "clip", "error"}, default="extrapolate"
        What happens to values outside the range seen by ``fit``, where polynomials grow fast:
        nothing, they are moved to the end of the range, or they are refused.

    Attributes
    ----------
    low_, high_ : arrays of shape (d,)
        The range of each column, which is mapped to [-1, 1].
    degrees_ : array of shape (d,)
        The highest degree of each column.
    recurrences_ : list of arrays of shape (m + 1, m)
        With ``basis="data"``: t p_k = sum_j H[j, k] p_j for each column.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import OrthogonalPolynomialFeatures
    >>> x = np.linspace(0.0, 10.0, 200)[:, None]
    >>> polynomials = OrthogonalPolynomialFeatures(degree=40)
    >>> P = polynomials.fit_transform(x)
    >>> bool(np.abs(P.T @ P / 200 - np.eye(40)).max() < 1e-13)
    True
    >>> polynomials.get_feature_names_out(["time"])[:2]
    array(['P1(time)', 'P2(time)'], dtype=object)
    """

    degree: int = given(3, "int [1, inf)")
    _: KW_ONLY
    basis: str = given("data", one_of(*_LETTERS))
    outside: str = given("extrapolate", one_of("extrapolate", "clip", "error"))

    def _learn(self, X: Any, y: Any) -> None:
        X = X.astype(np.float64, copy=False)
        self.low_, self.high_ = X.min(axis=0), X.max(axis=0)
        self.degrees_ = np.full(X.shape[1], self.degree)
        if self.basis == "data":
            different = np.array([len(np.unique(column)) for column in X.T])
            self.degrees_ = np.minimum(self.degree, different - 1)
            if not self.degrees_.any():
                raise ValueError(
                    f"Every column is constant (n_samples = {len(X)}): there is no polynomial of "
                    "degree 1 with mean zero. basis='legendre' does not depend on the rows."
                )
            columns = zip(self._unit(X).T, self.degrees_)
            self.recurrences_ = [arnoldi(t, degree)[1] for t, degree in columns]

    def _unit(self, X: Array) -> Array:
        """Columns mapped from their range to [-1, 1]; a column without range to 0."""
        half = 0.5 * (self.high_ - self.low_)
        with np.errstate(over="ignore"):
            half = np.where(np.isfinite(half), half, 0.5 * self.high_ - 0.5 * self.low_)
        middle = 0.5 * self.low_ + 0.5 * self.high_
        return (X - middle) / np.where(half > 0, half, 1.0)

    def _map(self, X: Any) -> Any:
        T = self._unit(self._inside(X.astype(np.float64, copy=False)))
        parts = []
        for j, t in enumerate(T.T):
            if self.basis == "data":
                values = evaluate(t, self.recurrences_[j])
            else:
                values = _FIXED[self.basis](t, self.degrees_[j])
            parts.append(values[:, 1:])
        return np.hstack(parts).astype(X.dtype, copy=False)

    def _inside(self, X: Array) -> Array:
        if self.outside == "clip":
            return np.clip(X, self.low_, self.high_)
        if self.outside == "error" and ((X < self.low_) | (X > self.high_)).any():
            j = int(np.argmax(((X < self.low_) | (X > self.high_)).any(axis=0)))
            raise ValueError(
                f"Column {j} holds values outside the range [{self.low_[j]:.6g}, "
                f"{self.high_[j]:.6g}] seen by fit. outside='clip' moves them to its ends."
            )
        return X

    def _names(self, inputs: Sequence[str]) -> list[str]:
        letter = _LETTERS[self.basis]
        return [
            f"{letter}{k}({name})"
            for name, degree in zip(inputs, self.degrees_)
            for k in range(1, degree + 1)
        ]

    def _details(self) -> list[str]:
        kind = "orthonormal on the rows" if self.basis == "data" else f"{self.basis} on the range"
        lines = [f"map        polynomials up to degree {self.degree}, {kind}"]
        short = int((self.degrees_ < self.degree).sum())
        if short:
            lines.append(f"           {short} with as many as they have values, less one")
        return lines


@parameters()
class Interactions(FeatureMap):
    """Products of different columns: phi(x) = (x_1, ..., x_d, x_1 x_2, x_1 x_3, ...).

    Parameters
    ----------
    degree : int, default=2
        Up to how many columns are multiplied; unused if ``products`` are given.
    products : list of tuples, optional
        The products wanted, each a tuple of names or positions of columns. A column may occur
        twice: ``("age", "age")`` is its square.
    keep : bool, default=True
        Whether the columns themselves come out, too, before the products.

    Attributes
    ----------
    products_ : list of tuples of int
        The positions of the columns that are multiplied.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from trueline import Interactions
    >>> products = Interactions().fit([[2.0, 3.0, 5.0]])
    >>> products.transform([[2.0, 3.0, 5.0]])
    array([[ 2.,  3.,  5.,  6., 10., 15.]])
    >>> list(products.get_feature_names_out(["age", "dose", "sex"]))[3:]
    ['age * dose', 'age * sex', 'dose * sex']
    """

    _takes_sparse = True
    degree: int = given(2, "int [1, inf)")
    _: KW_ONLY
    products: list[tuple[Any, ...]] | None = given(None, list, None)
    keep: bool = True

    def _learn(self, X: Any, y: Any) -> None:
        d = X.shape[1]
        if self.products is not None:
            self.products_ = [self._positions(product) for product in self.products]
        else:
            orders = range(2, min(self.degree, d) + 1)
            self.products_ = [p for order in orders for p in combinations(range(d), order)]
        if not self.keep and not self.products_:
            self.products_ = [(j,) for j in range(d)]  # a single column has no products

    def _positions(self, product: Any) -> tuple[int, ...]:
        names = list(getattr(self, "feature_names_in_", []))
        found = []
        for item in product:
            if isinstance(item, str):
                if item not in names:
                    known = ", ".join(map(str, names)) or "no names, as X is an array"
                    raise ValueError(f"There is no column {item!r} to multiply. X has: {known}.")
                found.append(names.index(item))
            elif isinstance(item, int | np.integer) and 0 <= item < self.n_features_in_:
                found.append(int(item))
            else:
                raise ValueError(
                    f"{item!r} is neither a name nor a position below {self.n_features_in_}."
                )
        if not found:
            raise ValueError("A product needs at least one column, got an empty tuple.")
        return tuple(found)

    def _map(self, X: Any) -> Any:
        parts = [X] if self.keep else []
        for order in sorted({len(product) for product in self.products_}):
            chosen = np.array([p for p in self.products_ if len(p) == order])
            parts.append(_multiply([X[:, columns] for columns in chosen.T]))
        if sparse.issparse(X):
            return sparse.hstack(parts, format="csr")[:, self._order()]
        return np.hstack(parts)[:, self._order()]

    def _order(self) -> Any:
        """Where each product stands after products were formed order by order."""
        lengths = np.array([len(product) for product in self.products_], dtype=np.intp)
        first = self.n_features_in_ if self.keep else 0
        rank = np.empty(len(lengths), dtype=np.intp)
        rank[np.argsort(lengths, kind="stable")] = np.arange(len(lengths))
        return np.concatenate([np.arange(first), first + rank])

    def _names(self, inputs: Sequence[str]) -> list[str]:
        names = [" * ".join(inputs[j] for j in product) for product in self.products_]
        return [*inputs, *names] if self.keep else names

    def _details(self) -> list[str]:
        return [f"map        {len(self.products_)} products of columns"]


def _multiply(factors: list[Any]) -> Any:
    product = factors[0]
    for factor in factors[1:]:
        product = product.multiply(factor) if sparse.issparse(product) else product * factor
    return product
