"""Folds: any splitter of scikit-learn, looked at before anything is fitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _num_samples

from trueline.wording import counted

__all__ = ["Split", "is_leave_one_out", "make_splits", "test_shares"]

Index = NDArray[np.intp]


class Split(NamedTuple):
    """Rows to learn from, and rows to be scored on."""

    train: Index
    test: Index


def make_splits(
    cv: Any, X: Any, y: Any, *, groups: Any = None, is_classifier: bool = False
) -> list[Split]:
    """The folds of a splitter, as row numbers.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn: a number means that many folds (stratified for classes), None five.
    X : array-like with n rows
    y : array-like of shape (n,)
    groups : array-like of shape (n,), optional
        For splitters that keep groups together.
    is_classifier : bool, default=False
        Whether y holds classes, of which every training part needs two.

    Raises
    ------
    ValueError
        More folds than rows, a part without rows, or training rows of one class only.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.evaluation.splits import make_splits
    >>> [split.test.tolist() for split in make_splits(2, np.ones((4, 1)), np.arange(4))]
    [[0, 1], [2, 3]]
    >>> make_splits(5, np.ones((4, 1)), np.arange(4))
    Traceback (most recent call last):
        ...
    ValueError: 5 folds of 4 rows: some fold would have no row. Ask for at most 4 folds.
    """
    n = _num_samples(X)
    cv = 5 if cv is None else cv
    count = cv if isinstance(cv, Integral) else getattr(cv, "n_splits", None)
    is_repeated = hasattr(cv, "n_repeats") or hasattr(cv, "test_size")
    if isinstance(count, Integral) and count > n and not is_repeated:
        raise ValueError(
            f"{int(count)} folds of {counted(n, 'row')}: some fold would have no row. Ask for at "
            f"most {n} folds."
        )
    splitter = check_cv(cv, y, classifier=is_classifier)
    given = splitter.split(X, y, groups)
    splits = [Split(_as_index(train, n), _as_index(test, n)) for train, test in given]
    if not splits:
        raise ValueError(f"cv={cv!r} made no folds: there is nothing to validate on.")
    for number, split in enumerate(splits):
        for part, name in ((split.train, "training"), (split.test, "test")):
            if not len(part):
                raise ValueError(
                    f"Fold {number + 1} of {len(splits)} has no {name} rows: ask for fewer folds, "
                    "or for folds of another kind."
                )
    _say_overlap(splits, n)
    if is_classifier:
        _check_classes(splits, np.asarray(y))
    return splits


def _as_index(rows: Any, n: int) -> Index:
    index = np.asarray(rows)
    if index.dtype == bool:
        if index.shape != (n,):
            raise ValueError(f"A fold marks {counted(len(index), 'row')}, but there are {n}.")
        return np.flatnonzero(index)
    index = index.astype(np.intp, copy=False)
    if len(index) and not (-n <= index.min() and index.max() < n):
        raise ValueError(f"A fold names row {int(index.max())}, but there are {n} rows.")
    return np.where(index < 0, index + n, index)


def _say_overlap(splits: list[Split], n: int) -> None:
    """Rows that are learned from and scored on in the same fold are remembered, not predicted."""
    marks = np.zeros(n, dtype=bool)
    overlapping = 0
    for split in splits:
        marks[:] = False
        marks[split.train] = True
        overlapping += bool(marks[split.test].any())
    if overlapping:
        warnings.warn(
            f"In {counted(overlapping, 'fold')} some rows are both learned from and scored on: "
            "scores will be too good.",
            stacklevel=4,
        )


def _check_classes(splits: Iterable[Split], y: NDArray[Any]) -> None:
    """Every training part must hold two classes; classes it lacks are said."""
    if y.ndim != 1:
        return
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}: there is nothing to tell apart."
        )
    lacking = 0
    for number, split in enumerate(splits):
        here = np.bincount(codes[split.train], minlength=len(classes)) > 0
        if here.sum() < 2:
            raise ValueError(
                f"The training rows of fold {number + 1} hold one class only, "
                f"{classes[here].tolist()[0]!r}: no classifier can learn from them. Use folds with "
                "all classes (StratifiedKFold), or shuffle sorted data (KFold(shuffle=True))."
            )
        lacking += bool((~here[codes[split.test]]).any())
    if lacking:
        warnings.warn(
            f"In {counted(lacking, 'fold')} some test rows are of a class that no training row "
            "has: they cannot be predicted. Rare classes need fewer folds, or stratified ones.",
            stacklevel=4,
        )


def is_leave_one_out(splits: list[Split], n: int) -> bool:
    """Whether every row is predicted once from all others."""
    if len(splits) != n or any(len(s.test) != 1 or len(s.train) != n - 1 for s in splits):
        return False
    tested = np.concatenate([split.test for split in splits])
    if len(np.unique(tested)) < n:
        return False
    whole = n * (n - 1) // 2
    return all(int(s.train.sum()) + int(s.test[0]) == whole for s in splits)


def test_shares(splits: list[Split]) -> float:
    """Test rows for each training row, on average."""
    return float(np.mean([len(split.test) / len(split.train) for split in splits]))
