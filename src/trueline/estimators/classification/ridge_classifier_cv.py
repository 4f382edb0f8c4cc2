"""The ridge classifier that chooses its strength by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer_names
from sklearn.utils.metadata_routing import _raise_for_params

from trueline.estimators.classification.ridge_classifier import SignRegressionClassifier
from trueline.estimators.regression.ridge_cv import DEFAULT_ALPHAS, StrengthSearch
from trueline.estimators.shared.base import LinearEstimator, fit_with_callbacks
from trueline.estimators.shared.classifier import SignedTargets
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters

__all__ = ["RidgeClassifierCV"]

Array = NDArray[np.float64]


@parameters()
class RidgeClassifierCV(SignRegressionClassifier, StrengthSearch, LinearEstimator):
    """The ridge classifier with its strength chosen by cross-validation.

    For each strength in ``alphas`` the objective of :class:`RidgeClassifier`::

        1/2 sum_i s_i sum_c (y_ic - x_i.w_c - b_c)^2 + alpha/2 ||w||^2

    is scored by leave-one-out (``cv=None``, in closed form) or by any splitter (from the moments
    of the folds), and the best one is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.RidgeClassifierCV``.

    Parameters
    ----------
    alphas : float or array-like, default=(0.1, 1.0, 10.0)
        Strengths to try; positive for leave-one-out.
    fit_intercept : bool, default=True
    scoring : str, callable or None
        None means the negative mean squared error of the signs for leave-one-out and accuracy for
        folds. Scorers are given labels and predicted labels, or scores.
    cv : int, splitter, iterable or None
        None means leave-one-out; a number means stratified folds.
    class_weight : dict, "balanced" or None
        As in :class:`RidgeClassifier`.
    store_cv_results : bool, default=False
        Keep the leave-one-out errors (``cv=None`` only).

    Attributes
    ----------
    alpha_ : float
        The chosen strength.
    best_score_ : float
    cv_results_ : array of shape (n, k, number of alphas)
        Squared leave-one-out errors (times the weights), or scores if ``scoring`` is given.
    fold_scores_ : array of shape (folds, number of alphas)
        Scores of every fold and strength (``cv`` given).
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    classes_ : array of shape (k,)
    certificate_ : Certificate
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from trueline import RidgeClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifierCV(alphas=[1e-3, 1e-2, 1e-1, 1.0]).fit(X, y)
    >>> float(model.alpha_), round(model.score(X, y), 4)
    (0.01, 0.9631)
    """

    alphas: Any = given(DEFAULT_ALPHAS, "array-like", "(0, inf)")
    _: KW_ONLY
    fit_intercept: bool = True
    scoring: Any = given(None, one_of(*get_scorer_names()), callable, None)
    cv: Any = given(None, "cv_object")
    class_weight: Any = given(None, "class_weight")
    store_cv_results: bool = False

    _default_scoring = "accuracy"

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the strength and fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,), or array-like or sparse matrix of shape (n, k)
            Labels, or indicators of sets of labels.
        sample_weight : float or array-like of shape (n,), optional
            Used in the fits and, where the scorer takes weights, in the scores.
        **params
            Routed to the scorer and the splitter, if metadata routing is enabled.

        Returns
        -------
        self : object
        """
        _raise_for_params(params, self, "fit")
        self._check_parameters()
        targets, weights = self._signed(y, sample_weight, reset=True)
        problem, X, signs, moments = self._search(
            X, targets.signs, weights, params, _AsLabels(targets)
        )
        self._solve_and_store(problem, X, signs, sample_weight, moments)
        return self


class _AsLabels(ClassifierMixin, BaseEstimator):
    """Scores given in place of X, or coefficients that make them, as a classifier for scorers."""

    from_moments = False

    def __init__(self, targets: SignedTargets, W: Array | None = None, b: Any = 0.0) -> None:
        self.targets, self.W, self.b = targets, W, b
        self.classes_, self.target = targets.classes, targets.labels

    def at(self, W: Array, b: Array) -> Self:
        """The same for given coefficients."""
        return type(self)(self.targets, W, b)

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def decision_function(self, X: Any) -> Array:
        scores = X if self.W is None else X @ self.W + self.b
        return scores[:, 0] if scores.shape[1] == 1 and not self.targets.is_multilabel else scores

    def predict(self, X: Any) -> NDArray[Any]:
        scores = self.decision_function(X)
        if self.targets.is_multilabel:
            return (scores > 0).astype(self.targets.labels.dtype)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def __sklearn_is_fitted__(self) -> bool:
        return True
