"""The data sets of a folder, whatever they are: tables, arrays, sparse rows, texts, images.

A data set is a file, or a folder of files of which the training part is taken. What a file holds
follows from its ending and its content:

- ``.csv``, ``.csv.gz``: a table whose target is named in ``manifest.json``, or is called "target",
  "label", "class" or "y", or is the last column. A column of long strings beside it makes it a
  text: tf-idf weights of the words that occur twice. Other words become columns of zeros and ones
  (one for each category), rows with missing values are left out, numbers are standardised.
- ``.npz``: arrays ``X`` and ``y``, or the four arrays of a CSR matrix and ``y``.
- ``.svm``, ``.svmlight``, ``.libsvm``, each also with ``.gz``: svmlight rows.
- ``*-images-idx3-ubyte.gz`` beside ``*-labels-idx1-ubyte.gz``: images.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["DataSet", "names", "read"]

_TARGETS = ("target", "label", "class", "y")
_READABLE = (".csv", ".npz", ".svm", ".svmlight", ".libsvm", "images-idx3-ubyte")
# A category with more values names rows rather than describes them.
_MOST_LEVELS = 60
# Numbers in a dense matrix; of larger ones a random part of the rows is taken.
_MOST_NUMBERS = 10_000_000
# Whole numbers with at most so many values are classes, unless the manifest says otherwise.
_MOST_CLASSES = 20
_WORDS_OF_TEXT = 4


@dataclass(frozen=True)
class DataSet:
    """Rows and a target.

    Attributes
    ----------
    name : str
    X : array or CSR matrix
    y : array
    is_classes : bool
    """

    name: str
    X: Any
    y: Any
    is_classes: bool

    @cached_property
    def text(self) -> str:
        """The shape in words."""
        kind = "sparse" if sp.issparse(self.X) else "dense"
        classes = f", {len(np.unique(self.y))} classes" if self.is_classes else ""
        return f"{self.X.shape[0]:,} x {self.X.shape[1]:,} {kind}{classes}"


def names(folder: Path) -> list[str]:
    """What there is to read."""
    return sorted(path.name for path in folder.iterdir() if _file_of(path) is not None)


def read(folder: Path, name: str) -> DataSet:
    """One data set."""
    path = _file_of(folder / name)
    assert path is not None
    manifest = folder / "manifest.json"
    known = json.loads(manifest.read_text()).get(name, {}) if manifest.exists() else {}
    if ".csv" in path.name:
        X, y = _table(path, known.get("target"))
    elif path.suffix == ".npz":
        X, y = _arrays(path)
    elif "idx3" in path.name:
        X, y = _images(path)
    else:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(path))
    task = known.get("task", "")
    is_classes = _are_classes(y) if not task else "regression" not in task
    X, y = _part(X, y if not is_classes else np.unique(y, return_inverse=True)[1])
    return DataSet(name, X, y, is_classes)


def _file_of(path: Path) -> Path | None:
    """The training part of a folder, or the file itself."""
    if path.is_file():
        return path if any(ending in path.name for ending in _READABLE) else None
    files = [file for file in sorted(path.iterdir()) if _file_of(file)] if path.is_dir() else []
    files.sort(key=lambda file: ("train" not in file.name, -file.stat().st_size))
    return files[0] if files else None


def _table(path: Path, target: str | None) -> tuple[Any, Any]:
    import pandas as pd

    frame = pd.read_csv(path, low_memory=False)
    unnamed = str(frame.columns[0]).replace(".", "").lstrip("-").isdigit()
    if unnamed:
        frame = pd.read_csv(path, header=None)
    given = [name for name in (target, *_TARGETS) if name in frame.columns]
    goal = given[0] if given else frame.columns[-1]
    frame = frame.dropna(subset=[goal])
    y = frame.pop(goal).to_numpy()
    y = y if y.dtype.kind in "fiub" else y.astype(str)
    texts = [name for name in frame if _is_text(frame[name])]
    if texts:
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(min_df=2).fit_transform(frame[texts[-1]].astype(str)), y
    words = [name for name in frame if frame[name].dtype.kind not in "fiub"]
    frame = frame.drop(columns=[name for name in words if frame[name].nunique() > _MOST_LEVELS])
    kept = frame.notna().all(axis=1).to_numpy()
    frame, y = frame[kept], y[kept]
    numbers = frame.select_dtypes("number").to_numpy(dtype=float)
    words = [name for name in frame if frame[name].dtype.kind not in "fiub"]
    dummies = (
        pd.get_dummies(frame[words].astype(str)).to_numpy(dtype=float) if words else numbers[:, :0]
    )
    return np.hstack([_standardised(numbers), dummies]), y


def _is_text(column: Any) -> bool:
    if column.dtype.kind in "fiub" or column.nunique() <= _MOST_LEVELS:
        return False
    return column.astype(str).str.split().str.len().mean() >= _WORDS_OF_TEXT


def _arrays(path: Path) -> tuple[Any, Any]:
    with np.load(path) as arrays:
        if "indptr" in arrays:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            return sp.csr_matrix(parts, shape=tuple(arrays["shape"])), arrays["y"]
        return _standardised(arrays["X"].astype(float)), arrays["y"]


def _images(path: Path) -> tuple[Any, Any]:
    labels = path.with_name(path.name.replace("images-idx3", "labels-idx1"))
    pixels = np.frombuffer(gzip.open(path).read(), np.uint8, offset=16)
    y = np.frombuffer(gzip.open(labels).read(), np.uint8, offset=8)
    return pixels.reshape(len(y), -1) / 255.0, y


def _are_classes(y: Any) -> bool:
    if y.dtype.kind not in "fiu":
        return True
    values = np.unique(y)
    return len(values) <= _MOST_CLASSES and bool((values == np.round(values)).all())


def _part(X: Any, y: Any) -> tuple[Any, Any]:
    """At most so many numbers, with the rows in a random order."""
    n, d = X.shape
    most = n if sp.issparse(X) else max(_MOST_NUMBERS // d, 1)
    chosen = np.random.default_rng(0).permutation(n)[:most]
    return X[chosen], y[chosen]


def _standardised(X: Any) -> Any:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
