"""Counts of words or of runs of characters, by scikit-learn's vectorisers.

What a vectoriser learns is a list of terms and the inverse document frequencies. They are kept as
such, so that they can be saved without saving code; the vectoriser is made from them when needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counter"]


@dataclass
class Counter:
    """Terms of one kind, counted and weighed.

    Attributes
    ----------
    analyzer : {"word", "char_wb"}
    shortest, longest : int
        Lengths of the runs that are terms.
    weights : {"tfidf", "counts", "binary"}
    lowercase : bool
    min_count : int
    max_features, n_hashed : int, optional
    terms : list of str, optional
        In the order of their columns; None before the fit, and where they are hashed.
    idf : array, optional
        Inverse document frequencies, of "tfidf".
    """

    analyzer: str
    shortest: int
    longest: int
    weights: str
    lowercase: bool
    min_count: int
    max_features: int | None
    n_hashed: int | None
    terms: list[str] | None = None
    idf: NDArray[np.float64] | None = None

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """The vectoriser and the weighting, with what was learned."""
        from sklearn.feature_extraction.text import (
            CountVectorizer,
            HashingVectorizer,
            TfidfTransformer,
        )

        common = {
            "analyzer": self.analyzer,
            "ngram_range": (self.shortest, self.longest),
            "lowercase": self.lowercase,
            "binary": self.weights == "binary",
            # Single letters are words, too; scikit-learn's default leaves them out.
            "token_pattern": r"(?u)\b\w+\b" if self.analyzer == "word" else None,
            "dtype": np.float64,
        }
        if self.n_hashed is not None:
            count = HashingVectorizer(
                n_features=self.n_hashed, norm=None, alternate_sign=False, **common
            )
        else:
            most = self.max_features
            count = CountVectorizer(min_df=self.min_count, max_features=most, **common)
            if self.terms is not None:
                count.vocabulary_ = {term: j for j, term in enumerate(self.terms)}
        weigh = TfidfTransformer() if self.weights == "tfidf" else None
        if weigh is not None and self.idf is not None:
            weigh.idf_, weigh.n_features_in_ = self.idf, len(self.idf)
        return count, weigh

    def fit_transform(self, texts: list[str]) -> Any:
        """Learn the terms, and count them."""
        count, weigh = self._parts
        X = count.fit_transform(self._hashable(texts))
        if self.n_hashed is None:
            self.terms = count.get_feature_names_out().tolist()
        if weigh is not None:
            X = weigh.fit_transform(X)
            self.idf = np.asarray(weigh.idf_)
        return X

    def transform(self, texts: list[str]) -> Any:
        """Count the terms that were learned."""
        count, weigh = self._parts
        X = count.transform(self._hashable(texts))
        return X if weigh is None else weigh.transform(X)

    def _hashable(self, texts: list[str]) -> list[str]:
        """Halves of pairs of surrogates have no bytes to be hashed: they become question marks."""
        if self.n_hashed is None:
            return texts
        return [text.encode(errors="replace").decode() for text in texts]

    def names(self, kind: str) -> list[str]:
        """The names of the columns."""
        if self.n_hashed is not None:
            return [f"{kind} hash {k}" for k in range(self.n_hashed)]
        return [f"{kind} {term!r}" for term in self.terms or []]

    def explain(self, kind: str) -> str:
        """A line about the columns."""
        count = self.n_hashed or len(self.terms or [])
        hashed = ", hashed" if self.n_hashed else ""
        return f"{kind}: {count:,} columns, runs of {self.shortest} to {self.longest}{hashed}"
