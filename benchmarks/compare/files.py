"""Data sets of a folder: comma-separated tables, texts and arrays, by name.

A data set is a folder with ``*.csv.gz`` or ``data.npz`` in it. The target is a column of a table,
the column "label" of texts, the array ``y`` of arrays. Words in tables become columns of zeros and
ones, rows with missing values are left out, and columns are standardised; texts become tf-idf
weights of words that occur in two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FILES", "DataFile", "read"]


@dataclass(frozen=True)
class DataFile:
    """Where the target is, and what it holds."""

    title: str
    target: str
    is_classes: bool


FILES = {
    "california_housing": DataFile("California housing prices", "median_house_value", False),
    "adult": DataFile("Adult incomes, two classes", "income-per-year", True),
    "sms_spam": DataFile("SMS spam, tf-idf, sparse", "label", True),
    "letter": DataFile("Letters, 26 classes", "y", True),
    "gene_khan": DataFile("Genes (Khan), four classes", "y", True),
}


def read(name: str, folder: Path) -> tuple[Any, Any]:
    """Rows and target."""
    import pandas as pd

    target, home = FILES[name].target, folder / name
    if (home / "data.npz").exists():
        with np.load(home / "data.npz") as arrays:
            return _standardised(arrays["X"].astype(float)), arrays["y"]
    frame = pd.read_csv(next(home.glob("*.csv.gz")), low_memory=False, keep_default_na=True)
    if name == "sms_spam":
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = frame["text"].fillna("").astype(str)
        return TfidfVectorizer(min_df=2).fit_transform(texts), frame[target].to_numpy(dtype=str)
    frame = frame.dropna()
    y = frame[target].to_numpy()
    X = pd.get_dummies(frame.drop(columns=target)).to_numpy(dtype=float)
    return _standardised(X), y if y.dtype.kind in "fiu" else y.astype(str)


def _standardised(X: Any) -> Any:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
