"""Columns that were chosen out of an array, a sparse matrix, or a DataFrame with categories."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from trueline.estimators.shared.validation import is_word, new_rows
from trueline.selection.stepwise import make_terms
from trueline.table.columns import MISSING, Column
from trueline.table.encoding import Source

__all__ = ["ChosenColumns", "design_of", "names_of", "places_of", "sources_of"]

Array = NDArray[np.float64]


class ChosenColumns(TransformerMixin):
    """What a regressor on chosen columns knows about them.

    Columns of a DataFrame that are categories become several; ``coef_``, ``support_`` and all other
    numbers are about those, which ``encoded_names_`` names.
    """

    support_: NDArray[np.bool_]
    coef_: NDArray[Any]
    groups: Any
    # Name, kind and levels of each column of a DataFrame with categories; None otherwise.
    _sources: list[tuple[str, str, tuple[str, ...]]] | None = None

    # --- categories -----------------------------------------------------------------------------

    def _learn_categories(self, X: Any) -> None:
        sources = sources_of(X)
        self._sources = None
        if sources is not None:
            self._sources = [(source.name, source.kind, source.levels) for source in sources]

    def _read_sources(self) -> list[Source]:
        return [Source(*source) for source in self._sources or ()]

    def _as_numbers(self, X: Any) -> Any:
        """X, categories encoded."""
        return X if self._sources is None else design_of(X, self._read_sources())

    def _restore_names(self) -> None:
        """After the encoded columns have been validated: what was given is the DataFrame."""
        if self._sources is not None:
            names = [name for name, _, _ in self._sources]
            self.n_features_in_ = len(names)
            self.feature_names_in_ = np.array(names, dtype=object)

    def _names(self) -> list[str] | None:
        """Of the columns, categories encoded."""
        if self._sources is not None:
            return names_of(self._read_sources())
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _terms(self, d: int, names: list[str] | None) -> list[NDArray[np.intp]]:
        """Columns that enter and leave together; those of a category always do."""
        if self._sources is None:
            return make_terms(self.groups, d, names)
        sources = self._read_sources()
        places = places_of(sources)
        given = make_terms(self.groups, len(sources), [source.name for source in sources])
        terms = [np.concatenate([places[j] for j in term]) for term in given]
        return [term for term in terms if len(term)]  # a category with one level has no column

    @property
    def encoded_names_(self) -> NDArray[Any]:
        """Names of the columns that ``coef_`` is about: categories have one for each level."""
        check_is_fitted(self)
        if self._sources is not None:
            return np.array(self._names(), dtype=object)
        return np.asarray(_check_feature_names_in(self))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target for new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        check_is_fitted(self)
        if self._sources is None:
            return np.asarray(super().predict(X))
        return np.asarray(self._checked(X) @ self.coef_ + self.intercept_)

    def _checked(self, X: Any) -> NDArray[Any]:
        """New rows of a DataFrame with categories, as numbers that are finite."""
        from trueline.estimators.shared.validation import check_array

        return np.asarray(check_array(self._as_numbers(X), estimator=self))

    # --- what was chosen ------------------------------------------------------------------------

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """The chosen columns.

        Parameters
        ----------
        indices : bool, default=False
            Their numbers instead of a mask.

        Returns
        -------
        support : array
        """
        check_is_fitted(self)
        return np.flatnonzero(self.support_) if indices else self.support_

    def transform(self, X: Any) -> Any:
        """X with the chosen columns alone.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        X : array or sparse matrix of shape (n, number of chosen columns)
        """
        check_is_fitted(self)
        if self._sources is not None:
            return self._checked(X)[:, self.support_]
        rows = new_rows(self, X, accept_sparse=["csr", "csc"])
        return rows[:, np.flatnonzero(self.support_)]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the chosen columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all columns; by default those seen in ``fit``, or x0, x1, ...

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.asarray(names if self._sources is None else self.encoded_names_)[self.support_]

    def _coefficients(self) -> tuple[Array, Array]:
        """Those of the chosen columns: what the certificate and the moments are about."""
        if self.coef_[~self.support_].any():
            raise ValueError(
                "coef_ was changed for columns that were not chosen: the certificate is about the "
                "chosen columns alone."
            )
        W = np.asarray(self.coef_[self.support_], dtype=np.float64).reshape(-1, 1)
        W = W if len(W) else np.zeros((1, 1))
        return W, np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), 1)

    def _verified_design(self, X: Any) -> Any:
        X = self._as_numbers(X)
        X = X if sp.issparse(X) else np.asarray(X)
        if X.shape[1] != len(self.support_):
            raise ValueError(
                f"X has {X.shape[1]} features; the model was fitted with {len(self.support_)}."
            )
        return self._chosen(X)

    def _chosen(self, X: Any) -> Any:
        """The chosen columns of X; none at all are one column of zeros."""
        if not self.support_.any():
            return np.zeros((X.shape[0], 1), dtype=X.dtype)
        if sp.issparse(X):
            return X.tocsc()[:, np.flatnonzero(self.support_)]
        return X[:, self.support_]


def sources_of(X: Any) -> list[Source] | None:
    """What the columns of a DataFrame are; None if X is none, or all of them are numbers.

    Categories are columns declared as such, and those that hold text. Their levels are in the
    order that was declared, otherwise in alphabetical order.

    Examples
    --------
    >>> import pandas as pd
    >>> from trueline.estimators.column_selection.stepwise_columns import names_of, sources_of
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 4.0], "city": ["Rome", "Oslo", "Rome"]})
    >>> names_of(sources_of(frame))
    ['size', 'city=Rome']
    """
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        return None
    names = list(X.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    sources = [_source(name, X[name]) for name in names]
    return None if all(source.kind == "number" for source in sources) else sources


def _source(name: str, column: Any) -> Source:
    declared = _declared(column)
    values = None if declared is not None else np.asarray(column)
    if values is not None and (values.dtype.kind not in "OUST" or not any(map(is_word, values))):
        return Source(name, "number")
    present = set(_cells(column))
    levels = sorted(present) if not declared else [level for level in declared if level in present]
    return Source(name, "category", tuple(level for level in levels if level))


def _declared(column: Any) -> list[str] | None:
    """The levels of a column that is declared as a category; empty if it does not order them."""
    if not str(getattr(column, "dtype", "")).lower().startswith(("categor", "enum")):
        return None
    levels = getattr(getattr(column, "cat", None), "categories", None)
    return [] if levels is None else [str(level) for level in levels]


def _cells(column: Any) -> list[str]:
    """The values as text, empty where one is missing."""
    values = np.asarray(column, dtype=object)
    cells = ["" if value is None or value != value else str(value).strip() for value in values]
    return ["" if cell in MISSING else cell for cell in cells]


def names_of(sources: Sequence[Source]) -> list[str]:
    """The names of the columns that the sources become."""
    return [name for source in sources for name in source.names]


def places_of(sources: Sequence[Source]) -> list[NDArray[np.intp]]:
    """For each source, the numbers of the columns it becomes."""
    stops = np.cumsum([0, *(len(source.names) for source in sources)])
    return [np.arange(first, last) for first, last in pairwise(stops)]


def design_of(X: Any, sources: Sequence[Source]) -> Array:
    """The columns as numbers; NaN and infinity among numbers are left to be complained about."""
    names = [source.name for source in sources]
    if not hasattr(X, "columns"):
        raise ValueError(
            f"The model was fitted on a DataFrame with categories; give one with the columns "
            f"{', '.join(names)}, not a {type(X).__name__}."
        )
    if list(X.columns) != names:
        missing = [name for name in names if name not in set(X.columns)]
        what = f"it has no column {missing[0]!r}" if missing else "they are others, or in disorder"
        raise ValueError(
            f"The columns of X do not match those the model was fitted on ({', '.join(names)}): "
            f"{what}."
        )
    return np.column_stack([_columns(X[source.name], source) for source in sources])


def _columns(column: Any, source: Source) -> Array:
    if source.kind == "number":
        return np.asarray(column, dtype=np.float64)[:, None]
    cells = _cells(column)
    if "" in cells:
        raise ValueError(
            f"The category {source.name!r} has no value in row {cells.index('') + 1}: leave the "
            "row out, or give missing values a level of their own."
        )
    return source.columns(Column(source.name, cells))
