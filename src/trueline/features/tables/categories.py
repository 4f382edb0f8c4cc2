"""Categories: a column per level, as many as pay."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TableError
from trueline.features.tables.assembly import Block, Codes
from trueline.features.tables.columns import TableColumn, are_codes
from trueline.features.tables.encoders import Encoder

__all__ = ["Categories"]


@dataclass
class Categories(Encoder):
    """One column per level that is frequent enough; the rest shares one column, or hashed ones.

    Attributes
    ----------
    levels : list of str
        Those with a column of their own, in alphabetical order.
    other : int
        Number of columns that the remaining levels share: none, one, or as many as hashes.
    """

    name: str
    levels: list[str]
    other: int
    hashed: bool
    has_missing: bool
    unknown: str
    share: float
    kind: str = "category"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(
        cls,
        column: TableColumn,
        *,
        min_count: int,
        max_levels: int,
        n_hashed: int,
        unknown: str,
        drop_first: bool,
    ) -> Categories:
        """Which levels have a column."""
        codes, texts = column.coded
        counts = np.bincount(codes[codes >= 0], minlength=len(texts))
        # The most frequent ones, of equals the first in the alphabet; stable between runs.
        order = sorted(np.flatnonzero(counts), key=lambda i: (-counts[i], texts[i]))
        kept = [i for i in order if counts[i] >= min_count][:max_levels]
        levels = sorted(texts[i] for i in kept)
        shared, has_missing = len(order) - len(kept), bool((codes < 0).any())
        notes = [] if not shared else [f"{shared:,} rare levels share {n_hashed or 1} columns"]
        if drop_first and len(levels) > 1:
            notes.append(f"compared to {levels.pop(0)!r}")
        other = n_hashed or int(shared > 0)
        if are_codes(texts):
            notes.append(
                f"digits in texts are taken as codes, columns={{{column.name!r}: 'number'}} reads "
                "them as numbers"
            )
        if has_missing:
            notes.append(f"{(codes < 0).mean():.1%} missing")
        covered = float(np.isin(codes, kept).mean()) if drop_first else 1.0
        return cls(
            column.name, levels, other, n_hashed > 0, has_missing, unknown, covered, notes=notes
        )

    @property
    def names(self) -> list[str]:
        names = [f"{self.name}={level}" for level in self.levels]
        if self.hashed:
            names += [f"{self.name}=(other, hash {k})" for k in range(self.other)]
        elif self.other:
            names.append(f"{self.name}=(other)")
        return names + [f"{self.name}=(missing)"] * self.has_missing

    @property
    def entries(self) -> float:
        return self.share

    def blocks(self, column: TableColumn) -> list[Block]:
        codes, texts = column.coded
        place = np.array([*self._places(texts), self._missing_place], dtype=np.int32)
        return [Codes(place[codes], len(self.levels) + self.other + self.has_missing)]

    @property
    def _missing_place(self) -> int:
        return len(self.levels) + self.other if self.has_missing else -1

    def _places(self, texts: list[str]) -> NDArray[np.int32]:
        """The column of each text."""
        known = {level: i for i, level in enumerate(self.levels)}
        places = np.array([known.get(text, -1) for text in texts], dtype=np.int32)
        strange = np.flatnonzero(places < 0)
        if self.unknown == "error" and len(strange) and not self.other:
            raise TableError(
                f"Column {self.name!r} holds {texts[strange[0]]!r}, which fit has not seen. It "
                f"knows {len(self.levels):,} levels: {', '.join(self.levels[:8])}. "
                "unknown='ignore' leaves all of their columns at zero."
            )
        if self.hashed:
            from sklearn.utils import murmurhash3_32  # stable between processes, unlike hash()

            for i in strange:
                bucket = murmurhash3_32(texts[i], positive=True) % self.other
                places[i] = len(self.levels) + bucket
        elif self.other:
            places[strange] = len(self.levels)
        return places
