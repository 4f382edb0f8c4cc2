"""Class labels: any type in, numbers inside, the same labels out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from trueline.wording import counted

__all__ = ["encode_declared", "encode_labels", "signs_of", "weighted_classes"]

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
    >>> from trueline.estimators.labels import encode_labels
    >>> classes, codes = encode_labels(["spam", "ham", "spam"], "Perceptron")
    >>> classes.tolist(), codes.tolist()
    (['ham', 'spam'], [1, 0, 1])
    """
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{name} needs samples of at least two classes, but y has 1 class: {classes.tolist()}."
        )
    return classes, codes


def encode_declared(y: Any, classes: NDArray[Any]) -> Codes:
    """The position of each label among ``classes`` (sorted), which must hold all of them."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    found = np.unique(y)
    unknown = found[~np.isin(found, classes)]
    if len(unknown):
        raise ValueError(
            f"y holds {counted(len(unknown), 'label')} that were not declared: "
            f"{unknown[:5].tolist()}. Declared classes: {classes[:10].tolist()}."
        )
    return np.searchsorted(classes, y)


def signs_of(codes: Codes) -> Array:
    """-1 for the first of two classes, +1 for the second."""
    return np.where(codes == 1, 1.0, -1.0)


def weighted_classes(
    class_weight: Any, classes: NDArray[Any], codes: Codes, weights: Array | None
) -> Array | None:
    """Sample weights times the weights of the classes, as scikit-learn means them.

    "balanced" gives all classes the same total; a row of weight two counts twice.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.labels import weighted_classes
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
