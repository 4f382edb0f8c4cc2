"""Class labels: any type in, numbers inside, the same labels out."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_y, check_is_fitted

from trueline.estimators.shared.validation import refuse_missing
from trueline.wording import counted

__all__ = [
    "Codes",
    "SignedTargets",
    "SparseCoefficients",
    "check_labels",
    "class_signs",
    "encode_declared",
    "encode_labels",
    "holds_words",
    "signed_targets",
    "signs_of",
    "weighted_classes",
]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


def encode_labels(y: Any, name: str) -> tuple[NDArray[Any], Codes]:
    """The labels that occur, sorted, and the position of each row's label among them.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any type that can be sorted.
    name : str
        The estimator, for messages.

    Examples
    --------
    >>> from trueline.estimators.shared.labels import encode_labels
    >>> classes, codes = encode_labels(["spam", "ham", "spam"], "Perceptron")
    >>> classes.tolist(), codes.tolist()
    (['ham', 'spam'], [1, 0, 1])
    """
    # Labels that need no conversion are the rule; asking what else they might be takes longer.
    if not (type(y) is np.ndarray and y.ndim == 1):
        y = column_or_1d(y, warn=True)
    if (found := _two_numbers(y) or _few_words(y)) is not None:
        return found
    check_labels(y, name)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{name} needs samples of at least two classes, but y holds one class only: "
            f"{classes.tolist()[0]!r}."
        )
    return classes, codes


def encode_declared(y: Any, classes: NDArray[Any]) -> Codes:
    """The position of each label among ``classes`` (sorted), which must hold all of them."""
    y = column_or_1d(y, warn=True)
    check_labels(y, "The model")
    found = np.unique(y)
    unknown = found[~np.isin(found, classes)]
    if len(unknown):
        raise ValueError(
            f"y holds {counted(len(unknown), 'label')} that were not declared: "
            f"{unknown[:5].tolist()}. Declared classes: {classes[:10].tolist()}."
        )
    return np.searchsorted(classes, y)


def check_labels(y: Any, name: str) -> None:
    """Raise if these are no labels, some are missing, or they cannot be put in order."""
    refuse_missing(y, name)
    try:
        check_classification_targets(y)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in np.ravel(y)})
        if len(kinds) < 2:
            raise
        raise TypeError(
            f"y holds labels of several types ({', '.join(kinds)}), which cannot be sorted. "
            "Convert them to one type, for example with [str(label) for label in y]."
        ) from error


def _two_numbers(y: NDArray[Any]) -> tuple[NDArray[Any], Codes] | None:
    """The same without sorting, if y holds two whole numbers; None if it does not."""
    if y.dtype.kind not in "iuf" or len(y) == 0:
        return None
    low, high = y.min(), y.max()
    if not (low < high and float(low).is_integer() and float(high).is_integer()):
        return None
    codes = (y == high).astype(np.intp)
    if np.count_nonzero(y == low) + np.count_nonzero(codes) != len(y):
        return None
    return np.array([low, high]), codes


def _few_words(y: NDArray[Any]) -> tuple[NDArray[Any], Codes] | None:
    """The same by hashing, if y holds a few different strings; None if it does not."""
    if not holds_words(y):
        return None
    words = y.tolist()
    classes = sorted(set(words))
    # Where every other row has a label of its own, the general way has something to say about it.
    if not 2 <= len(classes) <= max(2, len(words) // 2):
        return None
    position = {word: place for place, word in enumerate(classes)}
    codes = np.fromiter(map(position.__getitem__, words), np.intp, len(words))
    return np.array(classes, dtype=y.dtype), codes


def holds_words(y: NDArray[Any]) -> bool:
    """Whether y holds strings and nothing else."""
    return y.dtype.kind == "U" or (y.dtype == object and set(map(type, y.tolist())) == {str})


def signs_of(codes: Codes) -> Array:
    """-1 for the first of two classes, +1 for the second."""
    return np.where(codes == 1, 1.0, -1.0)


def class_signs(codes: Codes, count: int) -> Array:
    """+1 for the class of each row and -1 for the others; of two classes the second alone."""
    signs = np.where(codes[:, None] == np.arange(count), 1.0, -1.0)
    return np.ascontiguousarray(signs[:, 1:]) if count == 2 else signs


def weighted_classes(
    class_weight: Any, classes: NDArray[Any], codes: Codes, weights: Array | None
) -> Array | None:
    """Sample weights times the weights of the classes, as scikit-learn means them.

    "balanced" gives all classes the same total; a row of weight two counts twice.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.shared.labels import weighted_classes
    >>> weighted_classes("balanced", np.array([0, 1]), np.array([0, 1, 1]), None).tolist()
    [1.5, 0.75, 0.75]
    """
    if class_weight is None:
        return weights
    s = np.ones(len(codes)) if weights is None else weights
    if isinstance(class_weight, str):
        total = np.bincount(codes, weights=s, minlength=len(classes))
        # A class without weight has no row to give it to.
        of_class = s.sum() / (len(classes) * np.where(total > 0, total, 1.0))
    else:
        of_class = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    return np.asarray(of_class[codes] * s)


class SignedTargets(NamedTuple):
    """Labels as regression sees them.

    ``signs`` is +1 where a row has the class and -1 where it does not: one column for two classes
    (+1 is the second), one per class for more, one per label for sets of labels. ``labels`` are the
    labels as scorers compare them.
    """

    classes: NDArray[Any]
    signs: Array
    labels: NDArray[Any]
    is_multilabel: bool


def signed_targets(y: Any, name: str) -> SignedTargets:
    """Classes, or sets of labels given as an indicator matrix, as columns of signs.

    Parameters
    ----------
    y : array-like of shape (n,), or array-like or sparse matrix of shape (n, k)
        One label per row of any type that can be sorted, or 1 where a row has a label and 0 where
        it has not.
    name : str
        The estimator, for messages.

    Examples
    --------
    >>> from trueline.estimators.shared.labels import signed_targets
    >>> signed_targets(["ham", "spam", "eggs"], "RidgeClassifier").signs.astype(int).tolist()
    [[-1, 1, -1], [-1, -1, 1], [1, -1, -1]]
    """
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    refuse_missing(y, name)
    y = _check_y(y, multi_output=True, y_numeric=False, estimator=name)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind.startswith("multilabel"):
        indicators = y.toarray() if sp.issparse(y) else y
        # Indicators of -1 and 1 are what they should become; zero is the other way to say "no".
        signs = np.where(indicators == 0, -1.0, indicators.astype(np.float64))
        return SignedTargets(np.arange(y.shape[1]), signs, indicators, True)
    if "multioutput" in kind:
        raise ValueError(
            "Multioutput target data is not supported with label binarization: y has several "
            "columns of classes. Fit one classifier per column, or give 0/1 indicators."
        )
    classes, codes = encode_labels(y, name)
    return SignedTargets(classes, class_signs(codes, len(classes)), classes[codes], False)


class SparseCoefficients:
    """Adds ``sparsify`` and ``densify`` to a linear classifier."""

    coef_: Any

    def densify(self) -> Self:
        """Keep ``coef_`` as an array, the default.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def sparsify(self) -> Self:
        """Keep ``coef_`` as a sparse matrix, which pays where most coefficients are zero.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self
