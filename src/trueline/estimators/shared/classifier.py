"""What all linear classifiers share: labels, class weights, scores, decisions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from trueline.estimators.shared.base import Host, build_problem
from trueline.estimators.shared.labels import (
    encode_declared,
    encode_labels,
    holds_words,
    signs_of,
    weighted_classes,
)
from trueline.estimators.shared.validation import checked_rows, keep_columns_of
from trueline.losses import Loss
from trueline.penalties import Penalty
from trueline.problem import Problem

__all__ = ["LinearClassifierBase"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# Scores this far below all others: probabilities that are zero for every purpose.
_NEVER = 60.0


class LinearClassifierBase(ClassifierMixin, Host):
    """Classification: labels of any type; scores, one per class or one for the second of two."""

    coef_: Any
    classes_: NDArray[Any]
    _present: Codes
    _is_its_problem = True
    _strength_in_sum = "1/C"
    class_weight: Any
    fit_intercept: bool

    @abstractmethod
    def _loss(self, n_scores: int) -> Loss:
        """The loss for so many scores of a row: one for two classes, else one for each."""

    @abstractmethod
    def _penalty(self) -> Penalty:
        """The penalty, with its strength."""

    # --- the problem ----------------------------------------------------------------------------

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        if not _is_plain(X, y):
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
        if weights is not None and not weights.all():
            # What does not count is left out: a class without weight shows, and nothing else.
            counted = np.flatnonzero(weights)
            X = (X.tocsr() if sp.issparse(X) else X)[counted]
            codes, weights = codes[counted], weights[counted]
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

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
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

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        codes = encode_declared(y, self.classes_)
        weights = None
        if sample_weight is not None:
            given = np.asarray(sample_weight, dtype=np.float64)
            weights = np.broadcast_to(given, len(codes))
        weights = self._with_class_weights(self.classes_, codes, weights)
        target = self._target(codes, len(self.classes_))
        if self._lacks_classes:
            target = target[:, self._present]
        return self._verified_design(X), target, weights

    # --- prediction -----------------------------------------------------------------------------

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

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each new row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]


def _is_plain(X: Any, y: Any) -> bool:
    """Whether X and y are what every check would leave as they are: sparse rows and labels.

    The general checks take longer to find that out than a small fit has time for. Whether X is
    finite is left to the fit.
    """
    return bool(
        sp.issparse(X)
        and X.format in ("csr", "csc")
        and X.ndim == 2
        and X.dtype == np.float64
        and type(y) is np.ndarray
        and y.ndim == 1
        and X.shape[0] == len(y) >= 1
        and X.shape[1] >= 1
        and _is_labels(y)
    )


def _is_labels(y: NDArray[Any]) -> bool:
    """Whole or finite numbers, truth values or strings."""
    if y.dtype.kind == "f":
        return bool(np.isfinite(y).all())
    return y.dtype.kind in "iub" or holds_words(y)
