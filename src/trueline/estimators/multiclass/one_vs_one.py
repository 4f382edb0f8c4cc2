"""One-vs-one: each class against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.multiclass.base import LearnsBatches, parts_have
from trueline.estimators.multiclass.parts import (
    Binary,
    is_ours,
    planes_of,
    scores_of,
    threshold_of,
)
from trueline.estimators.shared.classifier import check_labels, encode_declared
from trueline.estimators.shared.coupling import agreeing, couple_least_squares, couple_likelihood
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.validation import Array, validate_data

_BLOCK = 1 << 19  # scores held at a time


@parameters()
class OneVsOneClassifier(LearnsBatches):
    """One binary problem per pair of classes; the class that wins most of its pairs is predicted.

    The part of the pair i < j is fitted to the rows of these two classes, with labels 0 for i and 1
    for j; with the package's own linear models it minimises, over those rows::

        sum_i s_i loss(y_i, x_i.w + b) + penalty(w)

    Each part gives its vote to one class; the sums of the parts' scores decide between classes of
    equal votes. With two classes there is one part, which is the binary model itself.

    Parts of this package run in threads and share their work where they can: ridge regression adds
    up the moments of each class, which are formed in one pass over the rows.

    A drop-in for ``sklearn.multiclass.OneVsOneClassifier``, with probabilities.

    Parameters
    ----------
    estimator : estimator
        Any classifier, or a regression that is given 0 and 1.
    n_jobs : int, optional
        Parts fitted at a time. None means one, and for estimators of this package as many as the
        BLAS library may use threads.
    coupling : {"least_squares", "likelihood"}, default="least_squares"
        How :meth:`predict_proba` makes probabilities of the classes from those of the pairs: by the
        linear equations of Wu, Lin and Weng (2004), or by maximum likelihood as Hastie and
        Tibshirani (1998).

    Attributes
    ----------
    estimators_ : list of estimators
        In the order of the pairs (0, 1), (0, 2), ..., (1, 2), ...
    classes_ : array of shape (k,)
    n_classes_ : int
    pairwise_indices_ : list of arrays, or None
        The rows of each part, where the estimator takes kernels.
    certificate_ : CombinedCertificate
        Of the parts, if they have certificates.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trueline import OneVsOneClassifier, RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsOneClassifier(RidgeClassifier()).fit(X, y)
    >>> round(model.score(X, y), 4), bool(model.verify(X, y))
    (0.98, True)
    """

    _: KW_ONLY
    coupling: str = given("least_squares", one_of("least_squares", "likelihood"))

    _must_be_known = "it"

    # --- labels ---------------------------------------------------------------------------------

    def _learn_classes(self, y: Any) -> Sequence[Binary]:
        check_labels(y, type(self).__name__)
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError(
                "OneVsOneClassifier can not be fit when only one class is present: all labels are "
                f"{self.classes_.tolist()[0]!r}."
            )
        return self._binaries(y)

    def _binaries(self, y: Any) -> Sequence[Binary]:
        codes = encode_declared(y, self.classes_)
        if len(self.classes_) == 2:
            return [Binary(self._part_names()[0], codes.astype(np.int64))]
        order = np.argsort(codes, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(codes, minlength=self.n_classes_))[:-1])
        found = []
        for name, (i, j) in zip(self._part_names(), self._pairs()):
            rows = np.sort(np.concatenate([members[i], members[j]]))  # in the order of the data
            sides = (str(self.classes_[i]), str(self.classes_[j]))
            found.append(Binary(name, (codes[rows] == j).astype(np.int64), rows, sides))
        return found

    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.n_classes_), 2))

    def _book(self) -> Array:
        """-1 for the first class of a pair, +1 for the second."""
        pairs = self._pairs()
        book = np.zeros((self.n_classes_, len(pairs)))
        for k, (i, j) in enumerate(pairs):
            book[i, k], book[j, k] = -1.0, 1.0
        return book

    def _part_names(self) -> list[str]:
        return [f"{self.classes_[j]} against {self.classes_[i]}" for i, j in self._pairs()]

    def _scheme(self) -> str:
        return "one-vs-one"

    # --- fitting --------------------------------------------------------------------------------

    def _stated(self, X: Any, y: Any) -> tuple[Any, Any, Sequence[Binary]]:
        X, y = self._check_batch(X, y, first=True)
        return X, y, self._learn_classes(y)

    def _check_batch(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        kinds: Any = [np.float64, np.float32] if is_ours(self.estimator) else "numeric"
        formats = ["csr", "csc"]
        return validate_data(
            self, X, y, accept_sparse=formats, dtype=kinds, ensure_all_finite=False, reset=first
        )

    def _take_over(self, binaries: Sequence[Binary]) -> None:
        """Of a kernel matrix every part sees the columns of its own rows."""
        self.pairwise_indices_: list[Any] | None = None
        if get_tags(self.estimator).input_tags.pairwise and binaries:
            self.pairwise_indices_ = [
                np.arange(len(b.labels)) if b.rows is None else b.rows for b in binaries
            ]

    def _seen(self, X: Any) -> Iterator[tuple[Any, Any]]:
        """The parts, each with the columns that it sees."""
        views = self.pairwise_indices_ or [None] * len(self.estimators_)
        for part, view in zip(self.estimators_, views):
            yield part, X if view is None else X[:, view]

    # --- predictions ----------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the highest score of :meth:`decision_function`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        scores = self.decision_function(X)
        if self.n_classes_ == 2:
            return self.classes_[(scores > threshold_of(self.estimators_[0])).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def decision_function(self, X: Any) -> Array:
        """Votes of the parts, and less than half a vote by the sum of their scores.

        With v_c the votes for class c and s_c the sum of the scores in its favour, the score is
        ``v_c + s_c / (3 (|s_c| + 1))``: scores decide between classes of equal votes alone.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, k)
            For two classes one number, for ``classes_[1]``.
        """
        scores = self._scores(self._given(X))
        return scores[:, 1] if self.n_classes_ == 2 else scores

    def _scores(self, X: Any) -> Array:
        """Votes and sums of scores, of shape (n, k)."""
        planes = planes_of(self.estimators_) if self.pairwise_indices_ is None else None
        if planes is None:
            wins, confidence = self._asked(X)
            return _tally(wins == 0, wins == 1, confidence, self._book())
        book, scores = self._book(), np.empty((X.shape[0], self.n_classes_))
        step = max(1, _BLOCK // len(self.estimators_))
        for start in range(0, len(scores), step):
            block = slice(start, start + step)
            confidence = planes.scores(X if step >= len(scores) else X[block])
            if is_regressor(self.estimators_[0]):  # it votes by exactly 0 or 1
                lost, won = confidence == 0, confidence == 1
            else:
                lost, won = None, confidence > 0
            scores[block] = _tally(lost, won, confidence, book)
        return scores

    def _given(self, X: Any) -> Any:
        check_is_fitted(self)
        kinds: Any = [np.float64, np.float32] if is_ours(self.estimator) else "numeric"
        finite = planes_of(self.estimators_) is not None
        formats = ["csr", "csc"] if finite else True
        return validate_data(
            self, X, accept_sparse=formats, dtype=kinds, ensure_all_finite=finite, reset=False
        )

    def _asked(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predictions and scores of the parts, of shape (n, L)."""
        wins = [part.predict(given) for part, given in self._seen(X)]
        scores = [scores_of(part, given) for part, given in self._seen(X)]
        return np.column_stack(wins), np.column_stack(scores)

    @available_if(parts_have("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, coupled from those of the pairs.

        They agree with :meth:`predict`. Where the pairs agree with each other they do so by
        themselves: a class that is more probable than each other one in its pair has all its votes.
        A cycle (a beats b, b beats c, c beats a) has no such class, and the most probable class may
        not be the one that votes and scores decide for; such rows get the nearest probabilities
        among which the predicted class has the highest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        probabilities : array of shape (n, k)
            Rows sum to one.
        """
        X = self._given(X)
        likely = np.column_stack([part.predict_proba(given)[:, 1] for part, given in self._seen(X)])
        if self.n_classes_ == 2:
            return np.concatenate([1 - likely, likely], axis=1)
        if self.coupling == "likelihood":
            coupled = couple_likelihood(likely, self._book())
        else:
            coupled = couple_least_squares(likely, self.n_classes_)
        return agreeing(coupled, self._scores(X).argmax(axis=1))


def _tally(
    lost: NDArray[np.bool_] | None, won: NDArray[np.bool_], confidence: NDArray[Any], book: Array
) -> Array:
    """Votes, and less than half a vote by the sum of the scores; None: what is not won is lost."""
    total = confidence @ book.T
    if lost is None:
        votes = won.astype(np.float64) @ book.T + (book < 0).sum(axis=1)
    else:
        votes = won @ np.maximum(book, 0.0).T + lost @ np.maximum(-book, 0.0).T
    return votes + total / (3 * (np.abs(total) + 1))
