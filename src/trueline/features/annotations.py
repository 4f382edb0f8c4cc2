"""What programs from outside read in a text and in its translation, counted.

A program, such as a tagger or a parser, is a function from a text to a list of labels: the parts of
speech of its words, its dependency relations, the types of its entities, its phrases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDES = ("source", "target")
LECTURE = ("part of speech", "dependency", "entity", "phrase")
# Tags of words that carry meaning, in the universal, the Penn and the STTS sets of tags.
_CONTENT = ("NOUN", "PROPN", "NN", "NE", "VERB", "VB", "VV", "ADJ", "JJ", "ADV", "RB")
_MOST = 50  # labels of one kind with a column of their own: entities may all be different

Read = Callable[[str], Sequence[str]]


@dataclass
class Annotations:
    """The labels of one kind on both sides.

    Attributes
    ----------
    name : str
    read : tuple of callable or None
        For the source and for the target.
    labels : tuple of two lists of str
        With a column of their own, learned from the rows of ``fit``.
    """

    name: str
    read: tuple[Read | None, Read | None]
    labels: tuple[list[str], ...] = ([], [])

    @classmethod
    def checked(cls, given: Mapping[str, Any] | None) -> list[Annotations]:
        """Those that a user gives."""
        kinds = []
        for name, pair in (given or {}).items():
            if not isinstance(pair, tuple | list) or len(pair) != 2 or not any(map(callable, pair)):
                raise ValueError(
                    f"annotations[{name!r}] must be two functions, for the source and for the "
                    f"target, of which one may be None; got {pair!r}."
                )
            kinds.append(cls(str(name), (pair[0], pair[1])))
        return kinds

    def learn(self, texts: Sequence[Sequence[str]]) -> None:
        """The labels that occur, at most the fifty most frequent ones."""
        found = [
            Counter(x for row in self._rows(k, side) for x in row) for k, side in enumerate(texts)
        ]
        self.labels = tuple(sorted(x for x, _ in c.most_common(_MOST)) for c in found)

    def names(self) -> list[str]:
        """The names of the columns."""
        names = []
        for k, side in enumerate(SIDES):
            if self.read[k] is not None:
                names += [f"{side} {self.name}: {what}" for what in self._counted(k)]
        if None not in self.read:
            names += [f"target per source {self.name}: {what}" for what in self._totals]
        return names

    def columns(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """The columns of pairs of texts."""
        parts, totals = [np.zeros((len(texts[0]), 0))], []
        for k, side in enumerate(texts):
            if self.read[k] is not None:
                counts = [self._count(row, self.labels[k]) for row in self._rows(k, side)]
                parts.append(np.array(counts, dtype=np.float64).reshape(len(side), -1))
                totals.append(parts[-1][:, : len(self._totals)])
        if len(totals) == 2:
            parts.append(totals[1] / np.maximum(totals[0], 1.0))
        return np.hstack(parts)

    @property
    def _totals(self) -> list[str]:
        return ["all", "content words"] if self.name == "part of speech" else ["all"]

    def _counted(self, k: int) -> list[str]:
        return [*self._totals, *self.labels[k]]

    def _count(self, row: list[str], labels: Sequence[str]) -> list[int]:
        found = Counter(row)
        content = sum(n for x, n in found.items() if x.upper().startswith(_CONTENT))
        return [len(row), content][: len(self._totals)] + [found[x] for x in labels]

    def _rows(self, k: int, side: Sequence[str]) -> list[list[str]]:
        read = self.read[k]
        if read is None:
            return []
        rows = [list(read(text)) for text in side]
        for text, row in zip(side, rows):
            if not all(isinstance(label, str) for label in row):
                raise TypeError(
                    f"annotations[{self.name!r}] must give a list of str for the {SIDES[k]}; of "
                    f"{text[:40]!r} it gave {row!r}."
                )
        return rows
