"""What is learned of texts and their translations: counts of words, probabilities, a lexicon.

Texts are one array of numbers, token after token, with where each text begins. Lengths,
punctuation, numbers and copies can be seen of a pair without understanding it.

Probabilities of texts come from counts of runs of words:

    p(w | h) = sum_k a_k f_k(w | last k - 1 words of h) + a_0 / V,     f_k = count(h w) / count(h)

with f_k = f_{k-1} where the history was never seen. The weights a are those of deleted
interpolation (F. Jelinek and R. Mercer, Interpolated estimation of Markov source parameters, 1980):
they maximise the probability of each training text under the counts of all other texts. Leaving a
text out of counts is subtraction, so that training texts can be scored as texts never seen.

Which words translate which is given, or learned from pairs of texts by Model 1 of P. Brown, S.
Della Pietra, V. Della Pietra and R. Mercer (Computational Linguistics 19, 1993): each target word
comes from one source word of the pair, or from none, all equally likely,

    p(t | s_1 .. s_l) = 1 / (l + 1) sum_j p(t | s_j),      s_0 = no word,

and expectation-maximisation finds p(t | s). All links of all pairs are held in arrays. A pair of
texts is left out by taking its own expected counts out of the last maximisation.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.features.text import tokens


@dataclass(frozen=True)
class Corpus:
    """Numbers of tokens.

    Attributes
    ----------
    ids : array of int
        Token after token. 0 is no token (before the beginning of a text), 1 is a token that the
        vocabulary does not have.
    starts : array of int
        Where each text begins, and the end.
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each text."""
        return np.diff(self.starts)

    @property
    def owners(self) -> NDArray[np.int64]:
        """The text of each token."""
        return np.repeat(np.arange(len(self.starts) - 1), self.lengths)

    def mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means over the tokens of each text; zero for an empty one."""
        total = np.bincount(self.owners, values, minlength=len(self.lengths))
        return total / np.maximum(self.lengths, 1)


@dataclass(frozen=True)
class Vocabulary:
    """Words, numbered from two."""

    words: list[str]

    @classmethod
    def learn(cls, texts: Sequence[str]) -> Vocabulary:
        """The words of some texts, in the order of their first occurrence."""
        return cls(list(dict.fromkeys(chain.from_iterable(tokens(text) for text in texts))))

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each word."""
        return {word: i for i, word in enumerate(self.words, 2)}

    def __len__(self) -> int:
        return len(self.number) + 2

    def read(self, texts: Sequence[str]) -> Corpus:
        """The tokens of texts as numbers."""
        split = [tokens(text) for text in texts]
        starts = np.zeros(len(split) + 1, dtype=np.int64)
        np.cumsum([len(words) for words in split], out=starts[1:])
        find = self.number.get
        ids = np.fromiter(
            (find(word, 1) for word in chain.from_iterable(split)), np.int64, starts[-1]
        )
        return Corpus(ids, starts)


SURFACE = (
    "source tokens",
    "target tokens",
    "target tokens per source token",
    "target characters per source character",
    "source characters per token",
    "target characters per token",
    "target tokens per different target token",
    "source punctuation per token",
    "target punctuation per token",
    "difference of punctuation per token",
    "source numbers per token",
    "target numbers per token",
    "share of source numbers that the target lacks",
    "share of target tokens copied from the source",
    "share of capitalised source tokens that the target lacks",
    "difference of brackets per token",
)

_DIGITS = re.compile(r"\d+")
_CAPITALISED = re.compile(r"(?<!^)\b[^\W\d_a-zß-ÿ]\w+")


def surface(sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float64]:
    """The columns of SURFACE. Ratios to an empty text are to a text of one token."""
    rows = [_row(source, target) for source, target in zip(sources, targets)]
    return np.array(rows, dtype=np.float64).reshape(-1, len(SURFACE))


def _row(source: str, target: str) -> tuple[float, ...]:
    s, t = tokens(source), tokens(target)
    ns, nt = len(s) or 1, len(t) or 1
    marks_s, marks_t = Counter(filter(_is_mark, s)), Counter(filter(_is_mark, t))
    numbers = _DIGITS.findall(source)
    there = Counter(_DIGITS.findall(target))
    lacking = sum((Counter(numbers) - there).values())
    words = set(s)
    names = _CAPITALISED.findall(source)
    lower = target.lower()
    return (
        len(s),
        len(t),
        len(t) / ns,
        len(target) / (len(source) or 1),
        len(source) / ns,
        len(target) / nt,
        len(t) / (len(set(t)) or 1),
        sum(marks_s.values()) / ns,
        sum(marks_t.values()) / nt,
        _difference(marks_s, marks_t) / max(ns, nt),
        len(numbers) / ns,
        sum(there.values()) / nt,
        lacking / (len(numbers) or 1),
        sum(word in words and word[0].isalpha() for word in t) / nt,
        sum(name.lower() not in lower for name in names) / (len(names) or 1),
        _difference(_brackets(source), _brackets(target)) / max(ns, nt),
    )


def _difference(one: Counter[str], other: Counter[str]) -> int:
    """How many there are on one side only."""
    return sum(((one - other) + (other - one)).values())


def _brackets(text: str) -> Counter[str]:
    return Counter(c for c in text if unicodedata.category(c) in ("Ps", "Pe"))


def _is_mark(token: str) -> bool:
    return unicodedata.category(token[0])[0] in "PS"


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
