"""Which words translate which: given, or learned from pairs of texts.

Model 1 of P. Brown, S. Della Pietra, V. Della Pietra and R. Mercer (Computational Linguistics 19,
1993): each target word comes from one source word of the pair, or from none, all equally likely,

    p(t | s_1 .. s_l) = 1 / (l + 1) sum_j p(t | s_j),      s_0 = no word,

and expectation-maximisation finds p(t | s). All links of all pairs are held in arrays. A pair of
texts is left out by taking its own expected counts out of the last maximisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.features.translation.corpus import Corpus, Vocabulary

__all__ = ["Lexicon", "Links", "Scores", "given_lexicon", "learn_lexicon"]

Array = NDArray[np.float64]
Scores = tuple[Array, Array]

_FLOOR = 1e-7  # the probability of a pair of words that never met


class Links:
    """Every source word (0: none) with every target word of the same pair."""

    def __init__(self, source: Corpus, target: Corpus) -> None:
        lengths, with_none = target.lengths, source.lengths + 1
        self.n_tokens = len(target.ids)
        # Target token by target token, the source words of its pair one after the other.
        fan = np.repeat(with_none, lengths)
        self.token = np.repeat(np.arange(self.n_tokens), fan)
        begin = np.repeat(source.starts[:-1] - 1, lengths)
        offset = np.arange(len(self.token)) - np.repeat(np.cumsum(fan) - fan, fan)
        place = np.repeat(begin, fan) + offset
        padded = source.ids if len(source.ids) else np.zeros(1, dtype=np.int64)
        self.source = np.where(offset == 0, 0, padded[np.maximum(place, 0)])
        self.target = target.ids[self.token]
        self.fan = fan
        self.row = target.owners[self.token]

    def scores(self, probabilities: Array) -> Scores:
        """Per target token: log p(t | source text), and p(t | s) of the best source word."""
        found = np.maximum(probabilities, _FLOOR)
        total = np.bincount(self.token, found, minlength=self.n_tokens)
        if not self.n_tokens:
            return np.zeros(0), np.zeros(0)
        # Links come token by token, the link to no word first.
        first = np.cumsum(self.fan) - self.fan
        words = np.where(self.source > 0, found, _FLOOR)
        return np.log(total / self.fan), np.maximum.reduceat(words, first)


@dataclass(frozen=True)
class Lexicon:
    """Probabilities p(target word | source word).

    Attributes
    ----------
    keys : array of int, sorted
        source * size + target.
    probabilities : array
    size : int
        The number of target words.
    """

    keys: NDArray[np.int64]
    probabilities: Array
    size: int

    def look_up(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> Array:
        """The probabilities of pairs of words."""
        keys = source * self.size + target
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.probabilities[place], 0.0)

    def translations(self, threshold: float, n_words: int) -> Array:
        """For each source word how many target words are more probable than a threshold."""
        likely = self.keys[self.probabilities > threshold] // self.size
        return np.bincount(likely, minlength=n_words).astype(np.float64)

    def scores(self, source: Corpus, target: Corpus) -> Scores:
        """The scores of each target token, for pairs that were not learned from."""
        links = Links(source, target)
        return links.scores(self.look_up(links.source, links.target))


def learn_lexicon(source: Corpus, target: Corpus, size: int, rounds: int) -> tuple[Lexicon, Scores]:
    """Model 1 by expectation-maximisation, and the scores of each pair when it is left out."""
    links = Links(source, target)
    if not links.n_tokens:
        empty = Lexicon(np.zeros(1, dtype=np.int64), np.zeros(1), size)
        return empty, links.scores(np.zeros(0))
    keys, pair = np.unique(links.source * size + links.target, return_inverse=True)
    word = keys // size
    p = np.ones(len(keys))
    for _ in range(rounds):
        posterior = p[pair]
        total = np.bincount(links.token, posterior, minlength=links.n_tokens)
        posterior /= total[links.token]
        counts = np.bincount(pair, posterior, minlength=len(keys))
        totals = np.bincount(word, counts)
        p = counts / totals[word]
    others = counts[pair] - _sums(links.row * len(keys) + pair, posterior)
    all_others = totals[links.source] - _sums(links.row * len(totals) + links.source, posterior)
    # What rounding leaves of a difference of equal counts is not a count.
    seen = all_others > 1e-9
    left_out = np.where(seen, others / np.where(seen, all_others, 1.0), 0.0)
    return Lexicon(keys, p, size), links.scores(left_out)


def _sums(groups: NDArray[np.int64], values: Array) -> Array:
    """For each value the sum over its group."""
    place = np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(place, values).astype(np.float64)
    return sums[place]


def given_lexicon(entries: Mapping[str, Any], source: Vocabulary, target: Vocabulary) -> Lexicon:
    """A lexicon from a mapping: word -> translations, or translation -> probability."""
    size = len(target)
    found: dict[int, float] = {}
    for word, translations in entries.items():
        s = source.number.get(word.lower())
        if s is None:
            continue
        if not isinstance(translations, Mapping):
            translations = [translations] if isinstance(translations, str) else list(translations)
            translations = dict.fromkeys(translations, 1.0 / max(1, len(translations)))
        for translation, probability in translations.items():
            t = target.number.get(translation.lower())
            if t is not None:
                found[s * size + t] = float(probability)
    keys = np.array(sorted(found) or [0], dtype=np.int64)
    return Lexicon(keys, np.array([found.get(int(key), 0.0) for key in keys]), size)
