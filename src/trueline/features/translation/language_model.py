"""Probabilities of texts from counts of runs of words.

    p(w | h) = sum_k a_k f_k(w | last k - 1 words of h) + a_0 / V,     f_k = count(h w) / count(h)

with f_k = f_{k-1} where the history was never seen. The weights a are those of deleted
interpolation (F. Jelinek and R. Mercer, Interpolated estimation of Markov source parameters, 1980):
they maximise the probability of each training text under the counts of all other texts. Leaving a
text out of counts is subtraction, so that training texts can be scored as texts never seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.features.translation.corpus import Corpus

__all__ = ["LanguageModel"]

Array = NDArray[np.float64]
Keys = NDArray[np.int64]

_ROUNDS = 20  # of expectation-maximisation; the weights have settled to three digits by then


@dataclass
class LanguageModel:
    """Counts of runs of up to ``order`` tokens.

    Attributes
    ----------
    n_words : int
        The size of the vocabulary.
    order : int
    total : int
        Tokens that were counted.
    tables : list of (numbers of runs, sorted; counts)
        For each length of run.
    quartiles : list of arrays
        Frequencies that split the running text into quarters.
    weights : array of shape (order + 1,)
        The a of the mixture.
    """

    n_words: int
    order: int
    total: int = 0
    tables: list[Any] = field(default_factory=list)
    quartiles: list[NDArray[Any]] = field(default_factory=list)
    weights: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def learn(cls, corpus: Corpus, n_words: int, order: int) -> LanguageModel:
        """Count the runs of a corpus, and learn the weights."""
        if n_words**order >= 2**62:
            raise ValueError(
                f"Runs of {order} words of a vocabulary of {n_words:,} cannot be numbered in 64 "
                "bits: lower the order."
            )
        model = cls(n_words, order, len(corpus.ids))
        model.tables = [np.unique(keys, return_counts=True) for keys in model._all_keys(corpus)]
        model.quartiles = [model._quartiles(counts) for _, counts in model.tables]
        model.weights = np.full(order + 1, 1.0 / (order + 1))
        model._learn_weights(model._fractions(corpus, leave_out=True))
        return model

    def _all_keys(self, corpus: Corpus) -> list[Keys]:
        """For each length of run, the number of the run that ends at each token.

        Runs that would begin before the text begin with 0, no word.
        """
        position = np.arange(len(corpus.ids)) - np.repeat(corpus.starts[:-1], corpus.lengths)
        keys = [corpus.ids]
        for k in range(1, self.order):
            earlier = np.zeros_like(corpus.ids)
            earlier[k:] = corpus.ids[:-k] if k < len(corpus.ids) else 0
            earlier[position < k] = 0
            keys.append(keys[-1] + earlier * self.n_words**k)
        return keys

    @staticmethod
    def _quartiles(counts: NDArray[np.int64]) -> Array:
        """Frequencies that split the running text of the corpus into quarters."""
        order = np.argsort(counts)
        share = np.cumsum(counts[order]) / max(1, counts.sum())
        return np.array([counts[order][np.searchsorted(share, q)] for q in (0.25, 0.5, 0.75)])

    def counts(self, corpus: Corpus, leave_out: bool) -> list[Array]:
        """For each length, how often the run that ends at each token occurs (elsewhere)."""
        return [
            _look_up(keys, table) - (_own(keys, corpus) if leave_out else 0.0)
            for keys, table in zip(self._all_keys(corpus), self.tables)
        ]

    def _fractions(self, corpus: Corpus, leave_out: bool) -> Array:
        """f_0, f_1, ... at each token, one column each."""
        columns = [np.full(len(corpus.ids), 1.0 / self.n_words)]
        keys = self._all_keys(corpus)
        for k, count in enumerate(self.counts(corpus, leave_out)):
            if k == 0:
                total = self.total - (corpus.lengths[corpus.owners] if leave_out else 0)
                history = np.asarray(total, dtype=np.float64)
            else:
                history = self._history_counts(k, keys[k], corpus, leave_out)
            seen = history > 0
            safe = np.where(seen, history, 1.0)
            columns.append(np.where(seen, count / safe, columns[-1]))
        return np.column_stack(columns)

    def _history_counts(self, k: int, keys: Keys, corpus: Corpus, leave_out: bool) -> Array:
        """How often the first k tokens of the runs of k + 1 tokens occur as such."""
        runs, counts = self.tables[k]
        before, place = np.unique(runs // self.n_words, return_inverse=True)
        sums = np.bincount(place, counts, minlength=len(before))
        history = keys // self.n_words
        own = _own(history, corpus) if leave_out else 0.0
        return _look_up(history, (before, sums)) - own

    def _learn_weights(self, fractions: Array) -> None:
        for _ in range(_ROUNDS if len(fractions) else 0):
            parts = fractions * self.weights
            parts /= parts.sum(axis=1, keepdims=True)
            self.weights = parts.mean(axis=0)
        # Some weight for words never seen, also if every word of the corpus occurs twice.
        self.weights = 0.999 * self.weights + 0.001 / len(self.weights)

    def log_probabilities(self, corpus: Corpus, leave_out: bool = False) -> Array:
        """The logarithm of the probability of each token after those before it."""
        return np.log(self._fractions(corpus, leave_out) @ self.weights)

    def quartile_shares(self, corpus: Corpus, leave_out: bool = False) -> Array:
        """Per text and length of run: shares in the four quarters of frequency, and unseen."""
        columns = []
        for count, borders in zip(self.counts(corpus, leave_out), self.quartiles):
            quarter = np.searchsorted(borders, count, side="left")
            quarter = np.where(count <= 0, 4, quarter)
            columns += [corpus.mean((quarter == q).astype(np.float64)) for q in range(5)]
        return np.column_stack(columns)


def _look_up(keys: Keys, table: tuple[Keys, NDArray[np.int64]]) -> Array:
    known, counts = table
    if not len(known):
        return np.zeros(len(keys))
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, counts[place], 0).astype(np.float64)


def _own(keys: Keys, corpus: Corpus) -> Array:
    """How often the text of each token has the same key."""
    order = np.lexsort((keys, corpus.owners))
    sorted_keys, owners = keys[order], corpus.owners[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (sorted_keys[1:] != sorted_keys[:-1]) | (owners[1:] != owners[:-1])
    group = np.cumsum(new) - 1
    own = np.empty(len(keys))
    own[order] = np.bincount(group, minlength=1)[group] if len(keys) else 0.0
    return own
