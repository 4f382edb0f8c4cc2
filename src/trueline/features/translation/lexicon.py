"""Which words translate which: given, or learned from pairs of texts.

Model 1 of P. Brown, S. Della Pietra, V. Della Pietra and R. Mercer (Computational Linguistics 19,
1993): each target word comes from one source word of the pair, or from none, all equally likely,

    p(t | s_1 .. s_l) = 1 / (l + 1) sum_j p(t | s_j),      s_0 = no word,

and expectation-maximisation finds p(t | s). All links of all pairs are held in arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.features.translation.corpus import Corpus, Vocabulary

__all__ = ["Lexicon", "Links", "given_lexicon", "learn_lexicon"]

Array = NDArray[np.float64]

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
        # Number 0 is a word that the vocabulary does not have; shifted, so that 0 is no word.
        padded = source.ids if len(source.ids) else np.zeros(1, dtype=np.int64)
        self.source = np.where(offset == 0, 0, padded[np.maximum(place, 0)] + 1)
        self.target = target.ids[self.token]
        self.fan = fan


class Lexicon:
    """Probabilities p(target word | source word).

    Parameters
    ----------
    keys : array of int, sorted
        source * size + target.
    probabilities : array
    size : int
        The number of target words.
    """

    def __init__(self, keys: NDArray[np.int64], probabilities: Array, size: int) -> None:
        self.keys, self.probabilities, self.size = keys, probabilities, size

    def look_up(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> Array:
        """The probabilities of pairs of words."""
        keys = source * self.size + target
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.probabilities[place], 0.0)

    def translations(self, threshold: float, n_words: int) -> Array:
        """For each source word how many target words are more probable than a threshold."""
        likely = self.keys[self.probabilities > threshold] // self.size
        return np.bincount(likely, minlength=n_words + 1).astype(np.float64)[1 : n_words + 1]

    def scores(self, source: Corpus, target: Corpus) -> tuple[Array, Array]:
        """Per target token: log p(t | source text), and p(t | s) of the best source word."""
        links = Links(source, target)
        found = np.maximum(self.look_up(links.source, links.target), _FLOOR)
        total = np.bincount(links.token, found, minlength=links.n_tokens)
        best = np.full(links.n_tokens, _FLOOR)
        words = links.source > 0
        np.maximum.at(best, links.token[words], found[words])
        return np.log(total / np.maximum(links.fan, 1)), best


def learn_lexicon(source: Corpus, target: Corpus, size: int, rounds: int) -> Lexicon:
    """Model 1 by expectation-maximisation."""
    links = Links(source, target)
    keys, pair = np.unique(links.source * size + links.target, return_inverse=True)
    word = keys // size
    p = np.ones(len(keys))
    for _ in range(rounds):
        linked = p[pair]
        total = np.bincount(links.token, linked, minlength=links.n_tokens)
        counts = np.bincount(pair, linked / total[links.token], minlength=len(keys))
        p = counts / np.bincount(word, counts)[word]
    if not len(keys):
        keys, p = np.zeros(1, dtype=np.int64), np.zeros(1)
    return Lexicon(keys, p, size)


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
                found[(s + 1) * size + t] = float(probability)
    keys = np.array(sorted(found) or [0], dtype=np.int64)
    return Lexicon(keys, np.array([found.get(int(key), 0.0) for key in keys]), size)
