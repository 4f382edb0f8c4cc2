"""Ridge regression that chooses its strength by cross-validation."""

from __future__ import annotations

from typing import Any, Self

from sklearn.metrics import get_scorer_names
from sklearn.utils.metadata_routing import _raise_for_params

from trueline.estimators.regression.gaussian import GaussianLikelihood
from trueline.estimators.regression.ridge_cv_scores import DEFAULT_ALPHAS, StrengthSearch
from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.callbacks import fit_with_callbacks
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import LinearRegressorBase

__all__ = ["RidgeCV"]


@parameters()
class RidgeCV(StrengthSearch, GaussianLikelihood, LinearRegressorBase, LinearEstimator):
    """Ridge regression with the strength chosen by cross-validation, for the cost of a few fits.

    For each strength in ``alphas`` the objective of :class:`Ridge`::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2

    is scored by leave-one-out (``cv=None``, in closed form) or by any splitter (from the moments
    of the folds), and the best one is refitted on all rows, with a certificate.

    A drop-in for ``sklearn.linear_model.RidgeCV``.

    Parameters
    ----------
    alphas : float or array-like, default=(0.1, 1.0, 10.0)
        Strengths to try; positive for leave-one-out.
    fit_intercept : bool, default=True
    scoring : str, callable or None
        None means the negative mean squared error for leave-one-out and R^2 for folds.
    cv : int, splitter, iterable or None
        None means leave-one-out.
    gcv_mode : {"auto", "svd", "eigen"} or None
        Accepted for compatibility: the decomposition is chosen by shape and conditioning.
    store_cv_results : bool, default=False
        Keep the leave-one-out errors (``cv=None`` only).
    alpha_per_target : bool, default=False
        Choose one strength per target (``cv=None`` only).

    Attributes
    ----------
    alpha_ : float or array of shape (k,)
        The chosen strength.
    best_score_ : float or array of shape (k,)
    cv_results_ : array of shape (n, number of alphas) or (n, k, number of alphas)
        Squared leave-one-out errors (times the weights), or predictions if ``scoring`` is given.
    fold_scores_ : array of shape (folds, number of alphas)
        Scores of every fold and strength (``cv`` given).
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    certificate_ : Certificate
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1.0]).fit(X, y)
    >>> float(model.alpha_)
    0.01
    """

    _keeps_single_target = False

    alphas: Any = given(DEFAULT_ALPHAS, "array-like", "(0, inf)")
    _: KW_ONLY
    fit_intercept: bool = True
    scoring: Any = given(None, one_of(*get_scorer_names()), callable, None)
    cv: Any = given(None, "cv_object")
    gcv_mode: str | None = given(None, one_of("auto", "svd", "eigen"), None)
    store_cv_results: bool = False
    alpha_per_target: bool = False

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the strength and fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
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
        problem, X, y, moments = self._search(X, y, sample_weight, params)
        self._solve_and_store(problem, X, y, sample_weight, moments)
        return self
