"""What all linear classifiers share: labels, class weights, scores, decisions.

Labels of any type come in, numbers are used inside, and the same labels come out.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_y, check_is_fitted

from trueline.cluster import blockwise
from trueline.estimators.shared.base import Attributes, Host, Stated, build_problem
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.validation import (
    are_labels,
    checked_rows,
    holds_words,
    is_plain,
    keep_columns_of,
    refuse_missing,
    weights_of,
    with_weight,
)
from trueline.losses import Loss
from trueline.penalties import Penalty
from trueline.problem import Array, Problem
from trueline.wording import counted

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
    >>> from trueline.estimators.shared.classifier import encode_labels
    >>> classes, codes = encode_labels(["spam", "ham", "spam"], "Perceptron")
    >>> classes.tolist(), codes.tolist()
    (['ham', 'spam'], [1, 0, 1])
    """
    # Labels that need no conversion are the rule; asking what else they might be takes longer.
    if not (type(y) is np.ndarray and y.ndim == 1):
        y = column_or_1d(y, warn=True)
    if (found := _few_numbers(y) or _few_words(y)) is not None:
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


def _few_numbers(y: NDArray[Any]) -> tuple[NDArray[Any], Codes] | None:
    """The same by counting, if y holds a few whole numbers near to each other."""
    if y.dtype.kind not in "iuf" or len(y) == 0:
        return None
    low, high = y.min(), y.max()
    if not (0 < float(high) - float(low) <= len(y) and float(low).is_integer()):
        return None
    # Differences of short integers may be no short integers.
    wide = y.astype(np.int64, copy=False) if y.dtype.kind == "i" else y
    places = (wide - low).astype(np.intp, copy=False)
    if y.dtype.kind == "f" and (places + low != y).any():
        return None
    is_there = np.bincount(places) > 0
    classes = np.flatnonzero(is_there)
    # Where every other row has a label of its own, the general way has something to say about it.
    if not 2 <= len(classes) <= max(2, len(y) // 2):
        return None
    codes = places if is_there.all() else (np.cumsum(is_there) - 1)[places]
    return (classes + low).astype(y.dtype), codes


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


def signs_of(codes: Codes) -> Array:
    """-1 for the first of two classes, +1 for the second."""
    return np.where(codes == 1, 1.0, -1.0)


def chosen_by_scores(scores: Array, sign_of_zero: int = 0) -> Codes:
    """The class that scores choose: of two by the sign of one score, of more by the highest.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.estimators.shared.classifier import chosen_by_scores
    >>> scores = np.array([-2.0, 0.0, 3.0])
    >>> chosen_by_scores(scores).tolist(), chosen_by_scores(scores, sign_of_zero=1).tolist()
    ([0, 0, 1], [0, 1, 1])
    """
    if scores.ndim > 1:
        return scores.argmax(axis=1)
    return (scores >= 0 if sign_of_zero > 0 else scores > 0).astype(np.intp)


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
    >>> from trueline.estimators.shared.classifier import weighted_classes
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
    >>> from trueline.estimators.shared.classifier import signed_targets
    >>> signed_targets(["ham", "spam", "eggs"], "RidgeClassifier").signs.astype(int).tolist()
    [[-1, 1, -1], [-1, -1, 1], [1, -1, -1]]
    """
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    kind = "labels"
    if not (type(y) is np.ndarray and y.ndim == 1 and are_labels(y)):
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


# Scores this far below all others: probabilities that are zero for every purpose.
_NEVER = 60.0


@parameters()
class TieRule:
    """Which side a score of zero is on.

    Parameters
    ----------
    sign_of_zero : {-1, 0, 1}, default=0
        With 1, ``predict`` says ``classes_[1]`` where the score of two classes is zero; otherwise
        ``classes_[0]``, as scikit-learn does.
    """

    _: KW_ONLY
    sign_of_zero: int = given(0, "int [-1, 1]")


class LinearClassifierBase(ClassifierMixin, Host):
    """Classification: labels of any type; scores, one per class or one for the second of two."""

    coef_: Any
    classes_: NDArray[Any]
    _present: Codes
    _is_its_problem = True
    _strength_in_sum = "1/C"
    class_weight: Any
    fit_intercept: bool
    sign_of_zero: int

    @abstractmethod
    def _loss(self, n_scores: int) -> Loss:
        """The loss for so many scores of a row: one for two classes, else one for each."""

    @abstractmethod
    def _penalty(self) -> Penalty:
        """The penalty, with its strength."""

    # --- the problem ----------------------------------------------------------------------------

    def _validated_problem(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
        if not is_plain(X, y, of_labels=True):
            X, y = checked_rows(self, X, y, reset)
        elif reset:
            keep_columns_of(self, X)
        classes, codes = encode_labels(y, type(self).__name__)
        problem, present = self._posed(X, classes, codes, self._weights(sample_weight, X))
        if reset:
            self.classes_, self._present = classes, present
        return problem, X, y

    def _posed(
        self, X: Any, classes: NDArray[Any], codes: Codes, weights: Array | None
    ) -> tuple[Problem, Codes]:
        """The problem of checked data, and the classes that it is about."""
        weights = self._with_class_weights(classes, codes, weights)
        # What does not count is left out: a class without weight shows, and nothing else.
        X, weights, codes = with_weight(X, weights, codes)
        present = self._present_classes(classes, codes)
        target = self._target(codes, len(classes))
        if len(present) < len(classes):
            target = np.ascontiguousarray(target[:, present])
        return self._stated(X, target, weights), present

    def _posed_on_all_rows(
        self, X: Any, codes: Codes, weights: Array, classes: NDArray[Any]
    ) -> Problem:
        """The same with all rows in their place: those without weight stay, and do not count.

        Problems of a set share their rows, so that none can be left out.
        """
        counted = np.flatnonzero(weights)
        own = self._with_class_weights(classes, codes[counted], weights[counted])
        every = np.zeros(len(codes))
        every[counted] = own
        is_used = every > 0
        self.classes_, self._present = classes, self._present_classes(classes, codes[is_used])
        target = self._target(codes, len(classes))
        if len(self._present) < len(classes):
            target = np.ascontiguousarray(target[:, self._present])
            target[~is_used] = target[np.argmax(is_used)]  # any target that there is
        return self._stated(X, target, every)

    def _stated(self, X: Any, target: Array, weights: Array | None) -> Problem:
        """The problem, for checked data."""
        loss = self._loss(target.shape[1])
        return build_problem(X, target, weights, loss, self._penalty(), self.fit_intercept)

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return self._stated(X, Y, weights)

    def _target(self, codes: Codes, count: int) -> Array:
        """Signs for two classes, one-hot rows for more."""
        if count == 2:
            return signs_of(codes)[:, None]
        target = np.zeros((len(codes), count))
        target[np.arange(len(codes)), codes] = 1.0
        return target

    def _present_classes(self, classes: NDArray[Any], codes: Codes) -> Codes:
        """The classes that the problem is about.

        With an intercept, one that has no weight at all would be pushed to probability zero, its
        intercept to minus infinity: the others are fitted without it.
        """
        present = np.flatnonzero(np.bincount(codes, minlength=len(classes)))
        if not self.fit_intercept or len(present) == len(classes):
            return np.arange(len(classes))
        if len(present) < 2:
            raise ValueError(
                f"{type(self).__name__} with an intercept needs samples with weight of at least "
                f"two classes, but only {classes.tolist()[present[0]]!r} has any. Give other rows "
                "weight."
            )
        return present

    def _with_class_weights(
        self, classes: NDArray[Any], codes: Codes, weights: Array | None
    ) -> Array | None:
        """Sample weights times the weights of the classes."""
        if self.class_weight is None:
            return weights
        combined = weighted_classes(self.class_weight, classes, codes, weights)
        assert combined is not None
        if not (np.isfinite(combined).all() and (combined >= 0).all()):
            raise ValueError(
                f"class_weight={self.class_weight!r} gives weights that are negative or not "
                "finite. Give every class a weight of at least zero."
            )
        if not combined.any():
            raise ValueError("All weights are zero: no row is left to fit.")
        return combined

    # --- what was found -------------------------------------------------------------------------

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        level = b if fit_intercept else np.zeros_like(b)
        coef, count = np.ascontiguousarray(W.T), len(self.classes_)
        if len(self._present) < count:
            few, coef = coef, np.zeros((count, W.shape[0]), dtype=W.dtype)
            coef[self._present] = few
            own, level = level, np.full(count, level.min() - _NEVER, dtype=b.dtype)
            level[self._present] = own
        return {"coef_": coef, "intercept_": np.ascontiguousarray(level)}

    @property
    def _lacks_classes(self) -> bool:
        """Whether some classes had no row with weight; files of old versions may not tell."""
        return len(self.__dict__.get("_present", self.classes_)) < len(self.classes_)

    def _coefficients(self) -> tuple[Array, Array]:
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        W = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
        b = np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), W.shape[1])
        if self._lacks_classes:
            return W[:, self._present], b[self._present]
        return W, b

    # --- what is known afterwards ---------------------------------------------------------------

    def _gradient_of_given(self, G: Array, g: Array) -> tuple[Array, Array]:
        if not self._lacks_classes:
            return G, g
        every = np.zeros((len(G), len(self.classes_))), np.zeros(len(self.classes_))
        every[0][:, self._present], every[1][self._present] = G, g
        return every

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        codes = encode_declared(y, self.classes_)
        weights = None if sample_weight is None else weights_of(sample_weight, len(codes))
        weights = self._with_class_weights(self.classes_, codes, weights)
        target = self._target(codes, len(self.classes_))
        if self._lacks_classes:
            target = target[:, self._present]
        return self._verified_design(X), target, weights

    # --- prediction -----------------------------------------------------------------------------

    @blockwise
    def decision_function(self, X: Any) -> NDArray[Any]:
        """The scores of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, k)
            For two classes the score of ``classes_[1]``, predicted where it is positive.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @blockwise
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each new row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        codes = chosen_by_scores(self.decision_function(X), self.sign_of_zero)
        return self.classes_[codes]
