"""What to say when a score is no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite

__all__ = ["raise_for_row"]


def raise_for_row(X: Any, row: int, name: str) -> None:
    """Raise for NaN and infinity in X, or else for the sizes that made products overflow."""
    with np.errstate(invalid="ignore", over="ignore"):
        assert_all_finite(X, input_name="X", estimator_name=name)
        x = X[[row]].toarray()[0] if sp.issparse(X) else X[row]
        largest = float(np.abs(x.astype(np.float64)).max(initial=0.0))
    raise ValueError(
        f"{name}: products of the weights with row {row} (largest number {largest:.3g}) leave the "
        f"range of {x.dtype}. Normalise the rows (normalize_rows=True, or "
        "sklearn.preprocessing.Normalizer) or scale the columns (StandardScaler)."
    )
