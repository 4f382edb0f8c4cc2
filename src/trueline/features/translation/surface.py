"""What can be seen of a pair without understanding it: lengths, punctuation, numbers, copies."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trueline.features.style import tokens

__all__ = ["SURFACE", "surface"]

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
