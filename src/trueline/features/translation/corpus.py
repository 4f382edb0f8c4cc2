"""Texts as one array of numbers: token after token, with where each text begins.

What can be seen of a pair without understanding it: lengths, punctuation, numbers, copies.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from trueline.features.style import tokens

__all__ = ["SURFACE", "Corpus", "Vocabulary", "surface"]


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
    different = sum(((marks_s - marks_t) + (marks_t - marks_s)).values())
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
        different / max(ns, nt),
        len(numbers) / ns,
        sum(there.values()) / nt,
        lacking / (len(numbers) or 1),
        sum(word in words and word[0].isalpha() for word in t) / nt,
        sum(name.lower() not in lower for name in names) / (len(names) or 1),
    )


def _is_mark(token: str) -> bool:
    return unicodedata.category(token[0])[0] in "PS"
