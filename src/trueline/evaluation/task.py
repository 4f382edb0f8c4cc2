"""Data, folds, weights and scorers of an evaluation, with what several models can share.

Folds come from any splitter of scikit-learn, and are looked at before anything is fitted; scorers
are scikit-learn's, by name.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, indexable
from sklearn.utils.validation import _num_samples

from trueline.design import as_design
from trueline.estimators.shared.classifier import class_signs
from trueline.estimators.shared.validation import row_weights
from trueline.evaluation.leakage import column_names, missing
from trueline.losses import Squared
from trueline.moments import SharedMoments
from trueline.penalties import L2
from trueline.problem import Problem
from trueline.selection.cross_validation import fold_weights
from trueline.wording import counted

Scorers = dict[str, Any]


def as_scorers(model: Any, scoring: Any) -> Scorers:
    """The scorers by name; a single one is called "score", as scikit-learn does.

    Parameters
    ----------
    model : estimator
    scoring : str, callable, list, dict or None
        None means what the model itself calls its score: R^2 or accuracy for most.
    """
    if scoring is None:
        # Methods that take the path of files are wrapped.
        own = inspect.unwrap(type(model).score) if hasattr(type(model), "score") else None
        if own is RegressorMixin.score:
            return {"score": get_scorer("r2")}
        if own is ClassifierMixin.score:
            return {"score": get_scorer("accuracy")}
        return {"score": check_scoring(model, scoring=None)}
    if isinstance(scoring, str):
        return {"score": get_scorer(scoring)}
    if callable(scoring):
        return {"score": check_scoring(model, scoring=scoring)}
    if isinstance(scoring, Mapping):
        return {name: check_scoring(model, scoring=value) for name, value in scoring.items()}
    names = list(scoring)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            "scoring must be the name of a scorer, a callable, several names, or a dict of "
            f"scorers; got {scoring!r}."
        )
    return {name: get_scorer(name) for name in names}


def scorer_name(scorer: Any) -> str:
    """What a scorer measures, in a word or two."""
    function = getattr(scorer, "_score_func", None)
    if function is None:
        return getattr(scorer, "__name__", "score")
    sign = "" if getattr(scorer, "_sign", 1) == 1 else "neg "
    name = function.__name__.removesuffix("_score").replace("_", " ")
    return sign + {"r2": "R2"}.get(name, name)


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer can weigh the rows."""
    accepts = getattr(scorer, "_accept_sample_weight", None)
    return bool(accepts()) if accepts is not None else False


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
    >>> from trueline.evaluation.task import make_splits
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


Array = NDArray[np.float64]

# Folds whose targets differ so much, and by so much more than chance, are different tasks.
_OWN_LEVELS, _BY_CHANCE = 0.3, 0.05


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
        """Of the target, or of +1 and -1 for the classes; formed when they are asked for."""
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
        weights = row_weights(sample_weight, shape)
    splits = make_splits(cv, X, y, groups=groups, is_classifier=is_classifier)
    return Task(X, y, weights, splits, is_classifier, matrix)


def is_in_order(task: Task) -> bool:
    """Whether the test rows of the folds have targets of their own, as sorted rows do."""
    if task.is_classifier or task.y.ndim > 1 or len(task.splits) > _BY_CHANCE * task.n_samples:
        return False
    y = task.y.astype(np.float64)
    apart = sum(len(s.test) * (y[s.test].mean() - y.mean()) ** 2 for s in task.splits)
    return bool(apart > _OWN_LEVELS * np.square(y - y.mean()).sum())


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
    dtypes = getattr(X, "dtypes", ())
    kinds = [_kind(dtype) for dtype in (dtypes if np.iterable(dtypes) else [dtypes])]
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
