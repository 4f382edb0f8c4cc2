"""Free text in a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from trueline.features.tables.assembly import Block, Entries
from trueline.features.tables.columns import TableColumn
from trueline.features.tables.encoders import Encoder, indicator

__all__ = ["Texts"]


@dataclass
class Texts(Encoder):
    """What a transformer of texts makes of them; a missing text is empty."""

    name: str
    transformer: Any
    per_row: float
    missing_share: float
    kind: str = "text"
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, column: TableColumn, transformer: Any) -> Texts:
        """Fit the transformer of texts."""
        fitted = clone(transformer)
        matrix = fitted.fit_transform(column.texts)
        entries = float(sparse.csr_array(matrix).nnz) / max(1, len(column))
        share = float(column.missing.mean())
        notes = [f"{share:.1%} missing, taken as empty"] if share else []
        return cls(column.name, fitted, entries, share, notes=notes)

    @property
    def names(self) -> list[str]:
        parts = self.transformer.get_feature_names_out()
        return [f"{self.name}: {part}" for part in parts] + [f"{self.name} is missing"] * (
            self.missing_share > 0
        )

    @property
    def entries(self) -> float:
        return self.per_row + self.missing_share

    def blocks(self, column: TableColumn) -> list[Block]:
        matrix = sparse.csr_matrix(self.transformer.transform(column.texts), dtype=np.float64)
        matrix.sort_indices()
        made: list[Block] = [Entries(matrix)]
        if self.missing_share > 0:
            made.append(indicator(column.missing))
        return made
