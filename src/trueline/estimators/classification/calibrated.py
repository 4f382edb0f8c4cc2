"""Any classifier with scores, and probabilities that agree with its predictions.

For two classes the probability of the second one is a rising function of the score s that passes
through one half where s changes its sign, so that the more likely class is the predicted one.

    sigmoid     P = 1 / (1 + exp(-A s)) for s > 0,  1 / (1 + exp(-B s)) for s < 0,     A, B >= 0
    isotonic    P >= 1/2 for s > 0, P <= 1/2 for s < 0, each of them the best rising steps

by maximum likelihood, the first with the targets of J. Platt, "Probabilistic outputs for support
vector machines" (1999), the second by least squares (B. Zadrozny, C. Elkan, "Transforming
classifier scores into accurate multiclass probability estimates", KDD 2002). With more classes each
score against the rest has a sigmoid A s + B or rising steps of its own; results are divided by
their sum, and where the largest one is not the predicted class, both exchange places.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from trueline.certificates.base import Certificate
from trueline.check import Verification
from trueline.estimators.classification.logistic import LogisticRegression
from trueline.estimators.shared.classifier import encode_labels
from trueline.estimators.shared.coupling import with_highest
from trueline.estimators.shared.parameters import (
    KW_ONLY,
    given,
    marked,
    named_by,
    one_of,
    parameters,
    tied,
)
from trueline.estimators.shared.validation import Array, new_rows, row_weights, validate_data
from trueline.estimators.svm.classifier import best_slopes
from trueline.estimators.svm.linear import LinearSVC


@parameters()
class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Probabilities for a classifier that has scores only, in agreement with ``predict``.

    The classifier is fitted to all rows, and once for every fold to the others: the scores of rows
    that it has not seen tell how sure it may be. For two classes the probability is one half
    exactly where the score changes its sign; with more classes the predicted one is the most
    likely. (scikit-learn's ``CalibratedClassifierCV`` moves the boundary instead.)

    With ``method="sigmoid"`` and two classes, P_i = 1 / (1 + exp(-A z_i)) for scores z_i > 0 (and
    with another slope for z_i < 0) where A >= 0 minimises, over rows left out on that side::

        -sum_i s_i (t_i log(P_i) + (1 - t_i) log(1 - P_i))

    with Platt's targets t_i = (n_1 + 1) / (n_1 + 2) or 1 / (n_0 + 2), n_k the weight of class k.

    Parameters
    ----------
    estimator : classifier with ``decision_function``, optional
        By default :class:`LinearSVC`.
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        Two slopes of the log-odds, or rising steps; the latter needs about a thousand rows.
    cv : int, splitter or iterable, default=5
        Folds, stratified by class if a number.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all rows; its ``certificate_``, ``coef_`` and ``intercept_`` are also here.
    classes_ : array of shape (k,)
    calibrators_ : list of dict
        The parameters of the functions from scores to probabilities.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from trueline import CalibratedClassifier, LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(LinearSVC(C=1e-4)).fit(X, y)
    >>> P = model.predict_proba(X)
    >>> bool((P.argmax(axis=1) == model.predict(X)).all()), bool(model.verify(X, y))
    (True, True)
    """

    estimator: Any = given(None, HasMethods(["fit", "predict"]), None)
    _: KW_ONLY
    method: str = given("sigmoid", one_of("sigmoid", "isotonic"))
    cv: Any = given(5, "cv_object")

    @property
    def _base(self) -> Any:
        return LinearSVC() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier, and the probabilities of its scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        self._validate_params()
        base = self._base
        if not hasattr(base, "decision_function"):
            raise ValueError(
                f"{type(base).__name__} has no decision_function: there are no scores to calibrate."
            )
        X, y = validate_data(self, X, y, accept_sparse=["csr", "csc"], dtype=None)
        self.classes_, codes = encode_labels(y, type(self).__name__)
        weights = None
        if sample_weight is not None:
            if not has_fit_parameter(base, "sample_weight"):
                raise ValueError(f"{type(base).__name__} takes no sample_weight.")
            weights = row_weights(sample_weight, X)
        scores, seen = self._left_out_scores(X, y, codes, weights)
        s = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
        used = seen & (s > 0)
        self.calibrators_ = fit_calibrators(scores[used], codes[used], s[used], self.method)
        self._as_fitted = marked(self._predicting())
        self.estimator_ = _fitted(base, X, y, weights)
        return self

    def _left_out_scores(
        self, X: Any, y: NDArray[Any], codes: NDArray[np.intp], weights: Any
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Scores of every row from a fit without it, and which rows were left out once."""
        counts = np.bincount(codes if weights is None else codes[weights > 0])
        cv = self.cv
        if isinstance(cv, int) or cv is None:
            cv = min(5 if cv is None else cv, int(counts.min()))
            if cv < 2:
                raise ValueError(
                    f"Calibration leaves rows out of every class, but a class has "
                    f"{counts.min()} row(s). Give every class at least two."
                )
        k = len(self.classes_)
        scores = np.zeros((len(codes), 1 if k == 2 else k))
        seen = np.zeros(len(codes), dtype=bool)
        for learned, left_out in check_cv(cv, y, classifier=True).split(X, y):
            part = None if weights is None else weights[learned]
            rows = _safe_indexing(X, learned), _safe_indexing(y, learned)
            model = _fitted(self._base, *rows, part)
            if len(model.classes_) < k:
                raise ValueError(
                    "A fold holds all rows of a class: give fewer folds, or stratified ones."
                )
            scores[left_out] = _scores(model, _safe_indexing(X, left_out), k)
            seen[left_out] = True
        return scores, seen

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        probabilities : array of shape (n, k)
            In the order of ``classes_``; every row adds up to one, and is largest for the class
            that ``predict`` gives.
        """
        X = new_rows(self, X, accept_sparse=["csr", "csc"], dtype=None)
        predicted = np.searchsorted(self.classes_, self.estimator_.predict(X))
        scores = _scores(self.estimator_, X, len(self.classes_))
        return probabilities_of(scores, self.calibrators_, predicted)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each new row, as the classifier says it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        X = new_rows(self, X, accept_sparse=["csr", "csc"], dtype=None)
        return np.asarray(self.estimator_.predict(X))

    def decision_function(self, X: Any) -> Array:
        """The scores of the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, k)
        """
        X = new_rows(self, X, accept_sparse=["csr", "csc"], dtype=None)
        return np.asarray(self.estimator_.decision_function(X))

    # --- of the classifier ----------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """What is proven about the classifier; probabilities are estimates."""
        check_is_fitted(self)
        return self.estimator_.certificate_

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verification:
        """Check the classifier's certificate against the data that were fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
        """
        check_is_fitted(self)
        now = self._predicting()
        return tied(self._as_fitted, now, lambda: self.estimator_.verify(X, y, sample_weight))

    def _predicting(self) -> dict[str, Any]:
        return {**named_by(self), "calibrators_": self.calibrators_}

    def explain(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, all: bool = False
    ) -> Any:
        """Say what was done in the classifier's fit, or what would be done with (X, y).

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            With ``y``: plan the classifier's fit on these data without running it.
        y : array-like, optional
        sample_weight : array-like, optional
        all : bool, default=False
            Whether every solver is listed, those for other losses and penalties too.

        Returns
        -------
        explanation : Explanation
        """
        if X is not None:
            return clone(self._base).explain(X, y, sample_weight, all=all)
        check_is_fitted(self)
        return self.estimator_.explain(all=all)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._base).input_tags.sparse
        return tags


def _fitted(base: Any, X: Any, y: Any, weights: Any) -> Any:
    return clone(base).fit(X, y) if weights is None else clone(base).fit(X, y, weights)


def _scores(model: Any, X: Any, k: int) -> Array:
    """Of shape (n, 1) for two classes, (n, k) for more."""
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    scores = scores.reshape(-1, 1) if scores.ndim == 1 else scores
    if scores.shape[1] != (1 if k == 2 else k):
        raise ValueError(
            f"{type(model).__name__} gives {scores.shape[1]} scores for {k} classes; calibration "
            "needs one for each (decision_function_shape='ovr')."
        )
    return scores


Index = NDArray[np.intp]

# No row is certain, and none of two classes is exactly between them.
_SURE, _TIE = 1e-7, 1e-9


def fit_calibrators(scores: Array, codes: Index, weights: Array, method: str) -> list[Any]:
    """One calibrator for two classes (scores of shape (n, 1)), one for each class of more."""
    if scores.shape[1] == 1:
        of_two = _two_slopes if method == "sigmoid" else _two_sides
        return [of_two(scores[:, 0], codes == 1, weights)]
    of_one = _sigmoid if method == "sigmoid" else _steps
    return [of_one(scores[:, k], codes == k, weights) for k in range(scores.shape[1])]


def probabilities_of(scores: Array, calibrators: list[Any], predicted: Index) -> Array:
    """Of all classes, in rows that add up to one; the largest is that of the predicted class."""
    if len(calibrators) == 1:
        second = np.clip(_apply(calibrators[0], scores[:, 0]), _SURE, 1 - _SURE)
        second = np.where(predicted == 1, np.maximum(second, 0.5 + _TIE), second)
        second = np.where(predicted == 0, np.minimum(second, 0.5 - _TIE), second)
        return np.column_stack([1 - second, second])
    each = np.stack([_apply(one, scores[:, k]) for k, one in enumerate(calibrators)], axis=1)
    each = np.clip(each, _SURE, 1.0)
    return with_highest(each / each.sum(axis=1, keepdims=True), predicted)


def _apply(calibrator: dict[str, Any], scores: Array) -> Array:
    kind = calibrator["kind"]
    if kind == "slopes":
        slope = np.where(scores > 0, calibrator["above"], calibrator["below"])
        return np.asarray(expit(slope * scores))
    if kind == "sigmoid":
        return np.asarray(expit(calibrator["slope"] * scores + calibrator["level"]))
    return np.interp(scores, calibrator["at"], calibrator["values"])


def _two_slopes(scores: Array, is_second: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    above, below = best_slopes(scores, is_second, weights)
    return {"kind": "slopes", "above": above, "below": below}


def _two_sides(scores: Array, is_second: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    """Steps on both sides of zero; between them, where no score was seen, a line."""
    at, values = [np.zeros(0)], [np.zeros(0)]
    for side, low, high in ((scores < 0, 0.0, 0.5), (scores > 0, 0.5, 1.0)):
        if side.any():
            part = _monotone(scores[side], is_second[side], weights[side], low, high)
            at.append(part[0])
            values.append(part[1])
    found = {"kind": "steps", "at": np.concatenate(at), "values": np.concatenate(values)}
    return found if len(found["at"]) else {"kind": "steps", "at": [0.0], "values": [0.5]}


def _steps(scores: Array, is_own: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    at, values = _monotone(scores, is_own, weights, 0.0, 1.0)
    return {"kind": "steps", "at": at, "values": values}


def _monotone(
    scores: Array, is_own: NDArray[np.bool_], weights: Array, low: float, high: float
) -> tuple[Array, Array]:
    model = IsotonicRegression(y_min=low, y_max=high, out_of_bounds="clip")
    model.fit(scores, is_own.astype(float), sample_weight=weights)
    return np.asarray(model.X_thresholds_, dtype=float), np.asarray(model.y_thresholds_)


def _sigmoid(scores: Array, is_own: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    """A s + B by logistic regression on both labels of each row, weighted by Platt's targets."""
    own, others = float(weights[is_own].sum()), float(weights[~is_own].sum())
    target = np.where(is_own, (own + 1) / (own + 2), 1 / (others + 2))
    size = float(np.abs(scores).max(initial=0.0)) or 1.0
    X = np.concatenate([scores, scores])[:, None] / size
    labels = np.repeat([1, 0], len(scores))
    shares = np.concatenate([weights * target, weights * (1 - target)])
    model = LogisticRegression(C=np.inf, tol=1e-6).fit(X, labels, shares)
    slope = float(model.coef_[0, 0]) / size
    if slope <= 0:  # scores that say nothing, or the contrary: the share of the class is left
        return {"kind": "sigmoid", "slope": 0.0, "level": float(np.log(own / others))}
    return {"kind": "sigmoid", "slope": slope, "level": float(model.intercept_[0])}
