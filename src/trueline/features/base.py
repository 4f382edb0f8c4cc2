"""What maps share: reading X, naming columns, saying what they do; and the design they make.

A DesignMatrix is what a table or a formula becomes.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from trueline.estimators.shared.parameters import given, one_of, parameters
from trueline.estimators.shared.validation import validate_data
from trueline.wording import Readable, counted, shown_as_text


class FeatureMap(TransformerMixin, BaseEstimator):
    """A transformer from numbers to numbers.

    A subclass learns from the rows in :meth:`_learn`, maps rows in :meth:`_map` and names what
    comes out in :meth:`_names`. Single precision in, single precision out.
    """

    #: Whether sparse rows are taken as they are.
    _takes_sparse = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the map needs to know of the data.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, k), optional
            Looked at only where the documentation of a parameter says so.

        Returns
        -------
        self : object
        """
        self._validate_params()
        X = self._read(X, reset=True)
        self._learn(X, y)
        return self

    def transform(self, X: Any) -> Any:
        """Map rows.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        features : array or sparse matrix of shape (n, m)
        """
        check_is_fitted(self)
        return self._map(self._read(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The name of every column that comes out.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns that go in; otherwise those seen by ``fit``, or x0, x1, ...

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self, "n_features_in_")
        names = _check_feature_names_in(self, input_features)
        return np.asarray(self._names([str(name) for name in names]), dtype=object)

    @shown_as_text
    def explain(self) -> str:
        """What the fitted map does, in words."""
        check_is_fitted(self, "n_features_in_")
        names = self.get_feature_names_out()
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        taken = counted(self.n_features_in_, "column")
        head = f"{type(self).__name__}: {taken} in, {len(names)} out"
        return "\n".join([head, *self._details(), f"columns    {shown}"])

    def _read(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            accept_sparse="csr" if self._takes_sparse else False,
        )

    @abstractmethod
    def _learn(self, X: Any, y: Any) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _map(self, X: Any) -> Any:
        """The features of rows that were checked."""

    @abstractmethod
    def _names(self, inputs: Sequence[str]) -> list[str]:
        """The names of the features, from those of the columns that go in."""

    def _details(self) -> list[str]:
        """Lines of :meth:`explain` between the first and the last."""
        return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@parameters()
class ConstantFeature(FeatureMap):
    """Put a column of ones beside the features: phi(x) = (1, x).

    The coefficient of the constant is an intercept that is penalised like any other coefficient,
    and that methods without an intercept of their own (a kernel, a perceptron of the textbook)
    can learn. Estimators with ``fit_intercept=True`` do not need it.

    Parameters
    ----------
    position : {"first", "last"}, default="first"
        On which side of the features the constant stands.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from trueline import ConstantFeature
    >>> constant = ConstantFeature()
    >>> constant.fit_transform([[2.0], [3.0]])
    array([[1., 2.],
           [1., 3.]])
    >>> list(constant.get_feature_names_out(["size"]))
    ['constant', 'size']
    """

    _takes_sparse = True
    position: str = given("first", one_of("first", "last"))

    def _learn(self, X: Any, y: Any) -> None:
        pass  # there is nothing to learn of a constant

    def _map(self, X: Any) -> Any:
        ones = np.ones((X.shape[0], 1), dtype=X.dtype)
        parts = [ones, X] if self.position == "first" else [X, ones]
        return sparse.hstack(parts, format="csr") if sparse.issparse(X) else np.hstack(parts)

    def _names(self, inputs: Sequence[str]) -> list[str]:
        return ["constant", *inputs] if self.position == "first" else [*inputs, "constant"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


_SHOWN = 12  # lines about columns that a design prints


@dataclass(frozen=True, repr=False)
class DesignMatrix(Readable):
    """A design, its target, and where every column comes from.

    Made by :func:`~trueline.design_matrix` and :func:`~trueline.formula`. It unpacks into
    ``X, y, names``.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, m)
    y : array of shape (n,) or None
    names : array of str
        Of the columns of X.
    sources : array of str
        The columns of the table, or the terms of the formula, that they come from.
    features : TableFeatures or FormulaFeatures
        Makes the design of another table in the same way.
    """

    X: Any
    y: NDArray[Any] | None
    names: NDArray[np.object_]
    sources: NDArray[np.object_]
    features: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.names))

    def __str__(self) -> str:
        kind = "sparse" if hasattr(self.X, "tocsr") else "dense"
        rows, columns = self.X.shape
        target = "no target" if self.y is None else f"target of shape {self.y.shape}"
        head = f"DesignMatrix: {counted(rows, 'row')} x {counted(columns, 'column')}, {kind}; "
        lines = self.features.explain().splitlines()
        if len(lines) > _SHOWN + 1:
            more = f"and {len(lines) - _SHOWN} more lines: features.explain() has them all"
            lines = [*lines[:_SHOWN], more]
        return "\n".join([head + target, *lines])

    @property
    def design(self) -> Any:
        """X, by its earlier name."""
        return self._earlier("design", "X")

    @property
    def target(self) -> Any:
        """y, by its earlier name."""
        return self._earlier("target", "y")

    def _earlier(self, old: str, new: str) -> Any:
        message = f"{old} of a DesignMatrix is deprecated: it is {new} now."
        warnings.warn(message, FutureWarning, stacklevel=3)
        return getattr(self, new)


def grouped_by_source(
    names: NDArray[np.object_], sources: NDArray[np.object_], coefficients: Any
) -> dict[str, dict[str, float]]:
    """Coefficients by the column of the table (or the term) that they belong to, then by name."""
    values = np.asarray(coefficients, dtype=np.float64).ravel()
    if len(values) != len(names):
        raise ValueError(f"The design has {len(names)} columns, got {len(values)} coefficients.")
    groups: dict[str, dict[str, float]] = {}
    for source, name, value in zip(sources, names, values):
        groups.setdefault(source, {})[name] = float(value)
    return groups
