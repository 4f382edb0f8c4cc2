"""Output codes: classes as codewords, one binary problem per bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.multiclass.base import BinaryReduction, parts_have
from trueline.estimators.multiclass.code_books import (
    DECODINGS,
    DESIGNS,
    check_book,
    class_scores,
    design_book,
    least_distance,
)
from trueline.estimators.multiclass.coupling import agreeing, couple_likelihood
from trueline.estimators.multiclass.parts import Binary, fit_parts, is_ours
from trueline.estimators.multiclass.sharing import fit_together
from trueline.estimators.shared.classifier import check_labels, encode_declared
from trueline.estimators.shared.parameters import KW_ONLY, REQUIRED, given, one_of, parameters
from trueline.estimators.shared.validation import validate_data

__all__ = ["OutputCodeClassifier"]

Array = NDArray[np.float64]


@parameters()
class OutputCodeClassifier(BinaryReduction):
    """Classes as codewords of -1 and +1, one binary problem per bit; the nearest one is predicted.

    The part of bit l is fitted to the rows of the classes that have one (0 in a code book leaves a
    class out), with the class's bit as label; with the package's own linear models it minimises::

        sum_i s_i loss(m_(c_i) l, x_i.w_l + b_l) + penalty(w_l)

    where m_(c_i) l is the bit of the class of row i. More bits than classes need let decoding mend
    the mistakes of some parts.

    A drop-in for ``sklearn.multiclass.OutputCodeClassifier``, with designed codes, scores and
    probabilities.

    Parameters
    ----------
    estimator : estimator
        Any classifier with scores or probabilities.
    code_size : float or "auto", default=1.5
        Bits per class, for random, dense and sparse codes. "auto" is 10 log2 k bits for dense and
        15 log2 k for sparse ones.
    random_state : int, RandomState or None
        For the code; with a number the same code every time.
    n_jobs : int, optional
        Parts fitted at a time. None means one, and for estimators of this package as many as the
        BLAS library may use threads.
    code : {"random", "dense", "sparse", "exhaustive", "hadamard"} or array, default="random"
        "random" flips a coin for every bit, as scikit-learn does; the others make the distance
        between codewords large: "dense" by search among codes of -1 and +1, "sparse" among codes
        half of which are 0, "exhaustive" has all 2^(k-1) - 1 ways to take the classes apart, and
        "hadamard" the largest distance that so few bits allow. An array of shape (k, bits) is used
        as it is.
    decoding : str, default="euclidean"
        The distance between the scores and a codeword: "euclidean", "hamming" (bits that differ) or
        the loss of the parts: "hinge", "squared", "logistic", "exponential", "linear".

    Attributes
    ----------
    estimators_ : list of estimators
    classes_ : array of shape (k,)
    n_classes_ : int
    code_book_ : array of shape (k, bits)
        -1, 0 and +1. A random code for an estimator without scores holds 0 and 1.
    code_distance_ : float
        The least distance between two codewords; zeros count half a bit.
    certificate_ : CombinedCertificate
        Of the parts, if they have certificates.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from trueline import OutputCodeClassifier, RidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OutputCodeClassifier(RidgeClassifier(), code="hadamard").fit(X, y)
    >>> model.code_book_.shape, model.code_distance_
    ((10, 15), 8.0)
    """

    estimator: Any = given(
        REQUIRED, HasMethods(["fit", "decision_function"]), HasMethods(["fit", "predict_proba"])
    )
    _: KW_ONLY
    code_size: Any = given(1.5, "(0, inf)", one_of("auto"))
    random_state: Any = given(None, "random_state")
    code: Any = given("random", one_of(*DESIGNS), "array-like")
    decoding: str = given("euclidean", one_of(*DECODINGS))
    _routed = ("fit",)

    # --- labels ---------------------------------------------------------------------------------

    def _learn_classes(self, y: Any) -> Sequence[Binary]:
        check_labels(y, type(self).__name__)
        self.classes_ = np.unique(column_or_1d(y, warn=False))
        self.code_book_ = self._make_book()
        return self._binaries(y)

    def _make_book(self) -> Array:
        k, state = len(self.classes_), check_random_state(self.random_state)
        if k == 0:
            raise ValueError("OutputCodeClassifier can not be fit when no class is present.")
        if not isinstance(self.code, str):
            return check_book(self.code, k)
        if self.code != "random":
            if k == 1:
                raise ValueError(
                    "OutputCodeClassifier needs samples of at least two classes, but y holds one "
                    f"class only: {self.classes_.tolist()[0]!r}."
                )
            return design_book(self.code, k, self.code_size, state)
        if self.code_size == "auto":
            raise ValueError(
                "code_size='auto' is for designed codes; code='random' needs a number."
            )
        bits = int(k * self.code_size)
        if bits == 0:
            raise ValueError(
                f"code_size={self.code_size!r} leaves no bit for {k} classes: give at least "
                f"{1 / k:.3g}."
            )
        # Drawn as scikit-learn draws it: the same seed gives the same code.
        low = -1.0 if hasattr(self.estimator, "decision_function") else 0.0
        return np.where(state.uniform(size=(k, bits)) > 0.5, 1.0, low)

    def _book(self) -> Array:
        """The code in -1, 0 and +1."""
        book = self.code_book_
        is_zero_one = isinstance(self.code, str) and self.code == "random"
        return np.where(book > 0, 1.0, -1.0) if is_zero_one else book

    def _binaries(self, y: Any) -> Sequence[Binary]:
        codes = encode_declared(y, self.classes_)
        low = -1 if hasattr(self.estimator, "decision_function") else 0
        found = []
        for name, column in zip(self._part_names(), self._book().T):
            bits = column[codes]
            rows = None if column.all() else np.flatnonzero(bits)
            labels = np.where((bits if rows is None else bits[rows]) > 0, 1, low)
            found.append(Binary(name, labels, rows))
        return found

    def _part_names(self) -> list[str]:
        return [f"bit {k}" for k in range(self.code_book_.shape[1])]

    def _scheme(self) -> str:
        kind = self.code if isinstance(self.code, str) else "given"
        return f"output code ({kind}, least distance {self.code_distance_:g})"

    @property
    def code_distance_(self) -> float:
        """The least distance between two codewords."""
        return least_distance(self._book()) if self.n_classes_ > 1 else float("inf")

    # --- fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit one part per bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        **fit_params
            Routed to the parts, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        self._validate_params()
        params = self._routed_params("fit", fit_params)
        y = validate_data(self, X="no_validation", y=y)
        binaries = self._learn_classes(y)
        X = self._validated_once(X, y)
        parts, self._shared = self._fit_shared(X, y, binaries, params)
        self.estimators_ = parts or fit_parts(self.estimator, X, binaries, params, self.n_jobs)
        self._take_over()
        return self

    def _fit_shared(
        self, X: Any, y: Any, binaries: Sequence[Binary], params: dict[str, Any]
    ) -> tuple[list[Any] | None, str]:
        book = self._book()
        two_sided = (book > 0).any(axis=0) & (book < 0).any(axis=0)
        if len(binaries) == 1 or not is_ours(self.estimator) or not two_sided.all():
            return None, ""
        codes = np.searchsorted(self.classes_, y)
        return fit_together(self.estimator, X, codes, book, binaries, params)

    # --- predictions ----------------------------------------------------------------------------

    def _class_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        scores = self._part_scores(X).astype(np.float64, copy=False)
        if not hasattr(self.estimator, "decision_function"):
            scores = 2 * scores - 1  # a probability as a score between -1 and 1
        return class_scores(scores, self._book(), self.decoding)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose codeword is nearest to the scores of the bits.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        best = self._class_scores(X).argmax(axis=1)
        return self.classes_[best]

    def decision_function(self, X: Any) -> Array:
        """Minus the distance between the scores of the bits and each codeword.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, k)
            For two classes one number, positive for ``classes_[1]``.
        """
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if self.n_classes_ == 2 else scores

    @available_if(parts_have("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes that make those of the bits most likely.

        By the generalised Bradley-Terry model of Huang, Weng and Lin (2006). Where bits contradict
        each other, the nearest codeword and the likeliest class can differ; such rows get the
        nearest probabilities among which the predicted class has the highest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        probabilities : array of shape (n, k)
            Rows sum to one.
        """
        check_is_fitted(self)
        likely = np.column_stack([part.predict_proba(X)[:, 1] for part in self.estimators_])
        coupled = couple_likelihood(likely, self._book())
        return agreeing(coupled, self._class_scores(X).argmax(axis=1))
