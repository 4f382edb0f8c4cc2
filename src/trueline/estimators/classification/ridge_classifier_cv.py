"""The ridge classifier that chooses its strength by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, _raise_for_params, _routing_enabled

from trueline.estimators.classification.ridge_classifier import SignRegressionClassifier
from trueline.estimators.regression.ridge_cv import RidgeCV
from trueline.estimators.shared.labels import SignedTargets
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters

__all__ = ["RidgeClassifierCV"]

Array = NDArray[np.float64]


@parameters()
class RidgeClassifierCV(SignRegressionClassifier):
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

    alphas: Any = given((0.1, 1.0, 10.0), "array-like", "(0, inf)")
    _: KW_ONLY
    fit_intercept: bool = True
    scoring: Any = given(None, one_of(*get_scorer_names()), callable, None)
    cv: Any = given(None, "cv_object")
    class_weight: Any = given(None, "class_weight")
    store_cv_results: bool = False

    def _search(self) -> _SignSearch:
        parameters = self.get_params(deep=False)
        del parameters["class_weight"]
        return _SignSearch(**parameters)

    def _regressor(self, targets: SignedTargets | None = None) -> _SignSearch:
        search = self._search()
        if targets is not None:
            search.of_signs = targets
        return search

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._search()._strengths()

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
        return self._fit_signs(X, y, sample_weight, **params)

    def _explained_fit(self) -> Any:
        search = self._search()
        search.alpha_ = self.alpha_
        return replace(super()._explained_fit(), search=search._search_done())

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata go to the scorer and to the splitter."""
        search = self._search()
        if request := getattr(self, "_metadata_request", None):
            search._metadata_request = request
        return search.get_metadata_routing()


class _SignSearch(RidgeCV):
    """The search for the strength, which scores labels where regression would score numbers."""

    _scores_from_moments = False

    of_signs: SignedTargets

    def _as_predicted(self) -> Any:
        return _AsScored(self.of_signs)

    def _model(self, W: Array, b: Array, y_ndim: int) -> Any:
        return _AsScored(self.of_signs, W, b)

    def _scored_target(self, y: NDArray[Any]) -> NDArray[Any]:
        return self.of_signs.labels

    def _splitter(self, y: NDArray[Any]) -> Any:
        return check_cv(self.cv, y, classifier=True)

    def _routed_scorer(self) -> Any:
        if self.scoring is None and _routing_enabled():
            return get_scorer("accuracy").set_score_request(sample_weight=True)
        return check_scoring(estimator=self, scoring=self.scoring, allow_none=True)


class _AsScored(ClassifierMixin, BaseEstimator):
    """Scores given in place of X, or coefficients that make them, as a classifier for scorers."""

    def __init__(self, targets: SignedTargets, W: Array | None = None, b: Any = 0.0) -> None:
        self.targets, self.W, self.b = targets, W, b
        self.classes_ = targets.classes

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
