"""Texts that are read in batches: terms are learned in one pass, rows are counted in every pass."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from trueline.features.tables.batches import EncodedRows
from trueline.streams import Batches


class Terms:
    """In how many texts each term of some batches occurs, and how often: all that is learned.

    Every different term is held until the end. Terms that are hashed are not kept: then it is one
    number for each column.

    Parameters
    ----------
    counter : trueline.features.text.Counter
        Whose terms and weights are to be found.
    """

    def __init__(self, counter: Any) -> None:
        self._counter = counter
        self._texts = 0
        self._documents: defaultdict[Any, int] = defaultdict(int)
        self._occurrences: defaultdict[Any, float] = defaultdict(float)

    def add(self, texts: list[str]) -> None:
        """Count the terms of a batch."""
        self._texts += len(texts)
        X, terms = self._counter.counted(texts)
        documents = np.bincount(X.indices, minlength=X.shape[1])
        occurrences = np.bincount(X.indices, weights=X.data, minlength=X.shape[1])
        present = np.flatnonzero(documents).tolist()
        keys = present if terms is None else [terms[j] for j in present]
        for key, many, often in zip(keys, documents[present], occurrences[present]):
            self._documents[key] += int(many)
            self._occurrences[key] += float(often)

    def finish(self) -> bool:
        """Let the counter know; whether any term is left."""
        own = self._counter
        if own.n_hashed is None:
            own.terms = self._chosen(own.min_count, own.max_features)
        keys = range(own.n_hashed) if own.n_hashed is not None else own.terms
        if own.weights == "tfidf":
            documents = np.array([self._documents[key] for key in keys], dtype=np.float64)
            own.idf = np.log((self._texts + 1) / (documents + 1)) + 1.0
        return len(keys) > 0

    def _chosen(self, least: int, most: int | None) -> list[str]:
        """The terms that are kept, in the order of the alphabet: those scikit-learn would keep."""
        terms = sorted(term for term, many in self._documents.items() if many >= least)
        if most is None or len(terms) <= most:
            return terms
        # Of terms that occur equally often the same ones stay as in memory: the sort is the same.
        often = np.array([self._occurrences[term] for term in terms])
        return [terms[j] for j in np.sort((-often).argsort()[:most])]


def texts_of(rows: Batches) -> Any:
    """The texts of each batch."""
    if len(rows.columns) != 1:
        raise ValueError(
            f"One column of texts is needed, got {len(rows.columns)}: open the rows with "
            "columns=['text']. TableFeatures takes tables with several."
        )
    for _, table in rows.tables():
        yield table[rows.columns[0]]


def counted_rows(rows: Batches, model: Any) -> EncodedRows:
    """The features of batches of texts, made in every pass anew."""
    name = rows.columns[0]
    width = len(model.get_feature_names_out())
    return EncodedRows(rows, lambda table: model.transform(table[name]), width, np.float64)
