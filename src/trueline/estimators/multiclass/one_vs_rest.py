"""One-vs-rest: each class against all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.multiclass.base import LearnsBatches, parts_have, speaker_of
from trueline.estimators.multiclass.parts import Binary, threshold_of
from trueline.estimators.shared.classifier import check_labels, encode_declared
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.shared.validation import Array, refuse_missing


@parameters()
class OneVsRestClassifier(MultiOutputMixin, LearnsBatches):
    """One binary problem per class: the class against all others.

    The part of class c is fitted to labels 1 in the class and 0 outside; with the package's own
    linear models it minimises::

        sum_i s_i loss(y_ic, x_i.w_c + b_c) + penalty(w_c)

    The prediction is the class of the highest score. With two classes there is one part, which is
    the binary model itself. An indicator matrix as y fits sets of labels, one part per label.

    Parts of this package run in threads and share their work where they can: least squares and
    ridge regression on any number of classes take one factorisation.

    A drop-in for ``sklearn.multiclass.OneVsRestClassifier``.

    Parameters
    ----------
    estimator : estimator
        Any classifier, or a regression that is given 0 and 1.
    n_jobs : int, optional
        Parts fitted at a time. None means one, and for estimators of this package as many as the
        BLAS library may use threads.
    verbose : int, default=0
        Above zero joblib prints progress.

    Attributes
    ----------
    estimators_ : list of estimators
    classes_ : array of shape (k,)
    n_classes_ : int
    label_binarizer_ : LabelBinarizer
    multilabel_ : bool
    certificate_ : CombinedCertificate
        Of the parts, if they have certificates.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trueline import OneVsRestClassifier, RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestClassifier(RidgeClassifier()).fit(X, y)
    >>> len(model.estimators_), bool(model.verify(X, y))
    (3, True)
    """

    _: KW_ONLY
    verbose: int = given(0, "verbose")

    # --- labels ---------------------------------------------------------------------------------

    def _learn_classes(self, y: Any) -> Sequence[Binary]:
        refuse_missing(y, type(self).__name__)
        if isinstance(y, np.ndarray):
            assert_all_finite(y, input_name="y")
        kind = type_of_target(y, input_name="y")
        if "multioutput" in kind:
            raise ValueError(
                "Multioutput target data is not supported with label binarization: y has several "
                "columns of classes. Fit one classifier per column, or give 0/1 indicators."
            )
        self._indicators = "no"
        if kind.startswith("multilabel"):
            indicators = check_array(y, input_name="y", accept_sparse=True, dtype=None)
            self._indicators = "sparse" if sp.issparse(indicators) else "dense"
            self.classes_ = np.arange(indicators.shape[1])
        else:
            check_labels(y, type(self).__name__)
            labels = column_or_1d(y, warn=False)
            if not len(labels):
                raise ValueError("y has 0 samples: there is nothing to fit.")
            self.classes_ = np.unique(labels)
        return self._binaries(y)

    def _binaries(self, y: Any) -> Sequence[Binary]:
        if self.multilabel_:
            indicators = y.toarray() if sp.issparse(y) else np.asarray(y)
            columns = list(np.ascontiguousarray(indicators.T))
        else:
            codes = self._codes(y)
            first = 1 if len(self.classes_) == 2 else 0
            columns = [(codes == k).astype(np.int64) for k in range(first, len(self.classes_))]
            if len(self.classes_) == 1:  # nothing to stand against: never positive
                columns[0][:] = 0
        names = self._part_names()
        sides: list[Any] = [(f"not {which}", str(which)) for which in self._positive()]
        if len(self.classes_) == 1 and not self.multilabel_:
            sides = [None]  # that class is always right
        return [Binary(*row[:2], None, row[2]) for row in zip(names, columns, sides, strict=True)]

    def _codes(self, y: Any) -> NDArray[np.intp]:
        """The numbers of the classes of labels, which are no sets."""
        return encode_declared(column_or_1d(y, warn=False), self.classes_)

    def _positive(self) -> NDArray[Any]:
        """The class of each part."""
        is_binary = len(self.classes_) == 2 and not self.multilabel_
        return self.classes_[1:] if is_binary else self.classes_

    def _part_names(self) -> list[str]:
        if self.multilabel_:
            return [f"label {which}" for which in self.classes_]
        if len(self.classes_) == 2:
            return [f"{self.classes_[1]} against {self.classes_[0]}"]
        return [f"{which} against the rest" for which in self.classes_]

    def _book(self) -> Array:
        return 2 * np.eye(len(self.classes_)) - 1

    def _check_batch(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        return X, y

    def _scheme(self) -> str:
        return "one label at a time" if self.multilabel_ else "one-vs-rest"

    @property
    def multilabel_(self) -> bool:
        """Whether rows have sets of labels."""
        return self._indicators != "no"

    @property
    def label_binarizer_(self) -> LabelBinarizer:
        """Scikit-learn's encoder of the same labels."""
        binarizer = LabelBinarizer(sparse_output=True)
        if not self.multilabel_:
            return binarizer.fit(self.classes_)
        each = np.eye(len(self.classes_), dtype=int)
        return binarizer.fit(sp.csr_matrix(each) if self._indicators == "sparse" else each)

    # --- predictions ----------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The class of the highest score, or the labels whose score is high enough.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,), or array or sparse matrix of shape (n, k)
        """
        check_is_fitted(self)
        scores = self._part_scores(X)
        if not self.multilabel_ and len(self.classes_) > 2:
            return self.classes_[scores.argmax(axis=1)]
        chosen = scores > threshold_of(speaker_of(self.estimators_))
        if not self.multilabel_:
            return self.classes_[chosen[:, 0].astype(np.intp) * (len(self.classes_) - 1)]
        indicators = chosen.astype(np.int64)
        return sp.csr_matrix(indicators) if self._indicators == "sparse" else indicators

    @available_if(parts_have("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes: those of the parts, divided by their sum.

        The highest one is that of the predicted class wherever a part's probability grows with its
        score, as it does for logistic regression. For sets of labels each probability stands for
        itself.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        probabilities : array of shape (n, k)
        """
        check_is_fitted(self)
        likely = np.column_stack([part.predict_proba(X)[:, 1] for part in self.estimators_])
        if len(self.estimators_) == 1:
            likely = np.concatenate([1 - likely, likely], axis=1)
        if not self.multilabel_:
            total = likely.sum(axis=1, keepdims=True)
            likely = np.divide(likely, total, out=likely, where=total != 0)
        return likely

    @available_if(parts_have("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores of the parts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, k)
            For two classes one number, positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        if len(self.estimators_) == 1:
            return self.estimators_[0].decision_function(X)
        return self._part_scores(X)
