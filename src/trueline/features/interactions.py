"""Products of columns, with names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.features.base import FeatureMap

__all__ = ["Interactions"]


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
