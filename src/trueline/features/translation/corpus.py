"""Texts as one array of numbers: token after token, with where each text begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from trueline.features.style import tokens

__all__ = ["Corpus", "Vocabulary"]


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
