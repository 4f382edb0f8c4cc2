"""Numbers about a text: how long it is, how it is punctuated and spelled."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["MISSPELLING", "STYLE", "misspelling", "style", "tokens"]

STYLE = (
    "characters",
    "words",
    "sentences",
    "mean word length",
    "share of punctuation",
    "share of digits",
    "share of capitals",
    "share of different words",
    "numbers",
    "exclamation marks",
    "question marks",
)
MISSPELLING = ("misspelled words", "share of misspelled words")

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE_END = re.compile(r"[.!?…。！？]+(?=\s|$)")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_][^\W_]*(?:['’-][^\W\d_]+)*|[^\w\s]|_")


def tokens(text: str) -> list[str]:
    """Words, numbers and signs of punctuation, in lower case, in any script.

    Examples
    --------
    >>> from trueline.features.style import tokens
    >>> tokens("Don't pay 3,50 € for mp3!")
    ["don't", 'pay', '3,50', '€', 'for', 'mp3', '!']
    """
    return _TOKEN.findall(text.lower())


@lru_cache(maxsize=4096)
def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def style(texts: Sequence[str]) -> NDArray[np.float64]:
    """The columns of STYLE. Shares of an empty text are zero."""
    return np.array([_style(text) for text in texts], dtype=np.float64).reshape(-1, len(STYLE))


def _style(text: str) -> tuple[float, ...]:
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    length = len(text) or 1
    characters = Counter(text).items()  # a text has few different ones: look at each once
    count = len(words) or 1
    return (
        len(text),
        len(words),
        max(len(_SENTENCE_END.findall(text)), int(bool(words))),
        letters / count,
        sum(k for c, k in characters if _is_punctuation(c)) / length,
        sum(k for c, k in characters if c.isdigit()) / length,
        sum(k for c, k in characters if c.isupper()) / length,
        len({word.lower() for word in words}) / count,
        len(_NUMBER.findall(text)),
        text.count("!"),
        text.count("?"),
    )


def misspelling(texts: Sequence[str], vocabulary: Iterable[str]) -> NDArray[np.float64]:
    """The columns of MISSPELLING: words that a vocabulary does not have, without their case."""
    known = {word.lower() for word in vocabulary}
    rows = []
    for text in texts:
        words = [word.lower() for word in _WORD.findall(text)]
        unknown = sum(word not in known for word in words)
        rows.append((unknown, unknown / (len(words) or 1)))
    return np.array(rows, dtype=np.float64).reshape(-1, len(MISSPELLING))
