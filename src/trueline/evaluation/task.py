"""Data, folds and weights of an evaluation, with what several models can share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, indexable
from sklearn.utils.validation import _check_sample_weight, _num_samples

from trueline.design import as_design
from trueline.estimators.shared.classifier import class_signs
from trueline.evaluation.leakage import column_names, missing
from trueline.evaluation.splits import Split, make_splits
from trueline.losses import Squared
from trueline.moments import SharedMoments
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.selection.folds import fold_weights
from trueline.wording import counted

__all__ = ["FoldRows", "Task", "make_task"]

Array = NDArray[np.float64]


@dataclass
class Task:
    """What is evaluated on: rows, target, weights, folds.

    Attributes
    ----------
    X : array, sparse matrix or DataFrame
        As given.
    y : array of shape (n,) or (n, k)
    weights : array of shape (n,), optional
    splits : list of Split
    is_classifier : bool
    matrix : array or sparse matrix, optional
        X as numbers in double precision; None if it is not made of numbers.
    watch : callable
        Called with what is being fitted, for those who wait.
    """

    X: Any
    y: NDArray[Any]
    weights: Array | None
    splits: list[Split]
    is_classifier: bool
    matrix: Any
    watch: Callable[[str], None] = field(default=lambda what: None, repr=False)
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def n_samples(self) -> int:
        return len(self.y)

    @cached_property
    def labels(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The classes, sorted, and the position of each row's class."""
        classes, codes = np.unique(self.y, return_inverse=True)
        return classes, codes

    @cached_property
    def names(self) -> NDArray[Any] | None:
        """The names of the columns, if they have any."""
        columns = column_names(self.X)
        return None if columns is None else np.asarray(columns, dtype=object)

    @cached_property
    def folds(self) -> list[FoldRows]:
        return [FoldRows(self, number, split) for number, split in enumerate(self.splits)]

    def shared(self, key: Any, make: Callable[[], Any]) -> Any:
        """What ``make`` returns, made once for all models."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    @cached_property
    def fold_weights(self) -> list[Array]:
        """The weights of all rows in each fold."""
        return fold_weights(self.n_samples, [split.train for split in self.splits], self.weights)

    @cached_property
    def moments(self) -> SharedMoments:
        """Of the target, or of +1 and -1 for the classes; formed when somebody asks for them."""
        return SharedMoments(as_design(self.matrix), self.targets, self.weights, self.fold_weights)

    def least_squares(self, fit_intercept: bool) -> Problem:
        """Least squares on all rows."""
        design = as_design(self.matrix)
        return Problem(design, self.targets, Squared(), L2(1.0), fit_intercept, self.weights)

    @cached_property
    def all_classes_everywhere(self) -> bool:
        """Whether the training rows of every fold hold all classes, with weight."""
        classes, codes = self.labels
        counted = codes if self.weights is None else np.where(self.weights > 0, codes, len(classes))
        return all(
            (np.bincount(counted[s.train], minlength=len(classes) + 1)[: len(classes)] > 0).all()
            for s in self.splits
        )

    @cached_property
    def targets(self) -> Array:
        """What least squares fits, of shape (n, k)."""
        if not self.is_classifier:
            return self.y.reshape(len(self.y), -1).astype(np.float64)
        return class_signs(self.labels[1], len(self.labels[0]))


@dataclass
class FoldRows:
    """The rows of one fold."""

    task: Task
    number: int
    split: Split

    def part(self, which: str) -> tuple[Any, NDArray[Any], Array | None]:
        """Rows, target and weights of "train" or "test"."""
        task, index = self.task, getattr(self.split, which)
        weights = None if task.weights is None else task.weights[index]
        return _safe_indexing(task.X, index), task.y[index], weights

    def matrix(self, which: str) -> Any:
        """The rows of a part as numbers, kept while the fold is worked on."""
        key = ("rows", self.number, which)
        index = getattr(self.split, which)
        return self.task.shared(key, lambda: self.task.matrix[index])

    def codes(self, which: str) -> NDArray[np.intp]:
        """The classes of a part, as numbers."""
        return self.task.labels[1][getattr(self.split, which)]

    def weights(self, which: str) -> Array | None:
        task = self.task
        return None if task.weights is None else task.weights[getattr(self.split, which)]

    def forget(self) -> None:
        """Free what was kept of this fold."""
        for key in [key for key in self.task._kept if key[0] == "rows" and key[1] == self.number]:
            del self.task._kept[key]


def make_task(
    X: Any, y: Any, *, cv: Any, groups: Any = None, sample_weight: Any = None, is_classifier: bool
) -> Task:
    """Check the data, and make the folds."""
    X, y = indexable(X, y)
    if y is None:
        raise ValueError("A target y is needed: there is nothing to compare predictions with.")
    check_consistent_length(X, y)
    y = checked_target(y)
    if _num_samples(X) < 2:
        raise ValueError(f"{_num_samples(X)} rows: at least two are needed, one to be predicted.")
    if getattr(X, "shape", (0, 1))[1:] == (0,):
        raise ValueError("X has no columns: there is nothing to learn from.")
    matrix = _as_numbers(X)
    weights = None
    if sample_weight is not None:
        shape = matrix if matrix is not None else np.empty((len(y), 1))
        weights = _check_sample_weight(
            sample_weight, shape, dtype=np.float64, ensure_non_negative=True
        )
    splits = make_splits(cv, X, y, groups=groups, is_classifier=is_classifier)
    return Task(X, y, weights, splits, is_classifier, matrix)


def checked_target(y: Any) -> NDArray[Any]:
    """The target as an array, without missing values and of one kind."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if not y.size:
        raise ValueError("y is empty: there is nothing to learn from.")
    lost = int(missing(y).sum())
    if y.dtype.kind == "f":
        lost += int(np.isinf(y).sum())
    if lost:
        raise ValueError(
            f"y has {counted(lost, 'missing or infinite value')}: such rows can neither be learned "
            "from nor be scored. Leave them out."
        )
    kinds = sorted({type(value).__name__ for value in y.flat}) if y.dtype.kind == "O" else []
    if len(kinds) > 1 and "str" in kinds:
        raise ValueError(f"y mixes values of {', '.join(kinds)}: convert them to one kind.")
    return y


def _as_numbers(X: Any) -> Any:
    """X in double precision, rows first; None if it holds anything else, or what is not finite."""
    dtypes = getattr(X, "dtypes", None)
    kinds = [_kind(dtype) for dtype in dtypes] if dtypes is not None else []
    if any(kind not in "fiub" for kind in kinds):
        return None
    try:
        matrix = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=True)
    except (TypeError, ValueError):
        return None  # the models themselves say what they cannot take
    return sp.csr_array(matrix) if sp.issparse(matrix) else matrix


def _kind(dtype: Any) -> str:
    """NumPy's letter for the kind of a column of pandas or polars; "O" for what is no number."""
    if hasattr(dtype, "is_numeric"):  # polars
        return "f" if dtype.is_numeric() else "O"
    return str(getattr(dtype, "kind", "O"))
