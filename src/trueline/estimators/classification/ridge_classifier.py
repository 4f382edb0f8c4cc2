"""Classification by least squares on -1 and +1, without a penalty, with one, or with the best."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer_names
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metadata_routing import _raise_for_params

from trueline.cluster import blockwise
from trueline.estimators.regression.ridge import RIDGE_SOLVERS, Ridge, as_given
from trueline.estimators.regression.ridge_cv import DEFAULT_ALPHAS, StrengthSearch
from trueline.estimators.shared.base import (
    Attributes,
    Host,
    LinearEstimator,
    Stated,
    fit_with_callbacks,
)
from trueline.estimators.shared.classifier import (
    Codes,
    LinearClassifierBase,
    SignedTargets,
    SparseCoefficients,
    TieRule,
    chosen_by_scores,
    class_signs,
    signed_targets,
)
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import real_problem
from trueline.estimators.shared.validation import row_weights, takes_batches
from trueline.losses import Loss, Squared
from trueline.penalties import L2, NoPenalty, Penalty
from trueline.problem import Array, Problem
from trueline.solution import Solution
from trueline.solvers.base import Options


class SignRegressionClassifier(TieRule, ClassifierMixin, Host):
    """A classifier whose scores are a regression on -1 and +1, one target per class."""

    class_weight: Any
    classes_: NDArray[Any]
    _is_multilabel = False
    _targets = "any"
    _leaves_out_idle_rows = False

    def _signed(self, y: Any, sample_weight: Any, reset: bool) -> tuple[SignedTargets, Any]:
        """The targets of the regression, and the weights of the rows."""
        targets = signed_targets(y, type(self).__name__)
        if reset:
            self.classes_, self._is_multilabel = targets.classes, targets.is_multilabel
        return targets, self._row_weights(targets, sample_weight)

    def _validated_problem(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Stated:
        targets, weights = self._signed(y, sample_weight, reset)
        return real_problem(self, X, targets.signs, weights, reset)

    def _row_weights(self, targets: SignedTargets, sample_weight: Any) -> Any:
        """Sample weights times class weights."""
        if not self.class_weight:
            return sample_weight
        weights = compute_sample_weight(self.class_weight, targets.labels)
        if sample_weight is None:
            return weights
        return weights * row_weights(sample_weight, targets.signs)

    def _posed_on_all_rows(
        self, X: Any, codes: Codes, weights: Array, classes: NDArray[Any]
    ) -> Problem:
        self.classes_ = classes
        return self._problem(X, class_signs(codes, len(classes)), weights)

    def _can_be_in_a_set(self) -> bool:
        return self.class_weight is None and super()._can_be_in_a_set()

    def _fitted_attributes(self, W: Any, b: Any, y_ndim: int, fit_intercept: bool) -> Attributes:
        coef = W[:, 0].copy() if W.shape[1] == 1 else np.ascontiguousarray(W.T)
        return {"coef_": coef, "intercept_": b if fit_intercept else 0.0}

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        targets = signed_targets(y, type(self).__name__)
        if not np.array_equal(targets.classes, self.classes_):
            raise ValueError(
                f"y holds the classes {targets.classes[:10].tolist()}; the fit was on "
                f"{self.classes_[:10].tolist()}. Verify with the data that were fitted."
            )
        return X, targets.signs, self._row_weights(targets, sample_weight)

    @blockwise
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores: how far each row is on the side of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, k)
            For two classes one number, positive for ``classes_[1]``.
        """
        return self._scores(X)

    @blockwise
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row (the one of the highest score), or its labels (positive scores).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,) or, for sets of labels, (n, k)
        """
        scores = self.decision_function(X)
        if self._is_multilabel:
            return (scores > 0).astype(np.int64)
        best = chosen_by_scores(scores, self.sign_of_zero)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@parameters()
class RidgeClassifier(SignRegressionClassifier, LinearEstimator):
    """Classification by ridge regression on -1 and +1, with a proof.

    With two classes y_i is -1 for the first and +1 for the second; with more, each class c has a
    target of its own, y_ic = +1 in the class and -1 outside. Minimised over w and b, for every
    class at once, is::

        1/2 sum_i s_i sum_c (y_ic - x_i.w_c - b_c)^2 + alpha/2 ||w||^2

    with s_i the sample weight times the class weight. The prediction is the class of the highest
    score x.w_c + b_c. An indicator matrix as y fits sets of labels.

    A drop-in for ``sklearn.linear_model.RidgeClassifier``.

    Parameters
    ----------
    alpha : float or array of shape (k,), default=1.0
        Strength; an array gives one strength per class.
    fit_intercept : bool, default=True
    copy_X : bool, default=True
        Accepted for compatibility: X is never modified.
    max_iter : int, optional
        Limit for iterative solvers.
    tol : float, default=1e-4
        For iterative solvers, see :class:`Ridge`.
    class_weight : dict, "balanced" or None
        Weights of the classes, ``{label: weight}``; "balanced" gives every class the same total
        weight.
    solver : str, default="auto"
        As in :class:`Ridge`.
    positive : bool, default=False
        Keep all coefficients at or above zero.
    random_state : int, RandomState or None
        For stochastic solvers.

    Attributes
    ----------
    coef_ : array of shape (d,) or (k, d)
    intercept_ : float or array of shape (k,)
    classes_ : array of shape (k,)
    certificate_ : Certificate
        About the regression on the signs; :meth:`verify` takes labels.
    moments_ : Moments
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trueline import RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> round(model.score(X, y), 4), bool(model.verify(X, y))
    (0.8533, True)
    """

    _leave_one_out = "least squares"
    _is_its_problem = True

    alpha: Any = given(1.0, "[0, inf)", "array-like")
    _: KW_ONLY
    fit_intercept: bool = True
    copy_X: bool = True
    max_iter: int | None = given(None, "int [1, inf)", None)
    tol: float = given(1e-4, "[0, inf)")
    class_weight: Any = given(None, "class_weight")
    solver: str = given("auto", one_of(*RIDGE_SOLVERS))
    positive: bool = False
    random_state: Any = given(None, "random_state")

    def _regressor(self) -> Ridge:
        """The regression that is fitted to the signs."""
        return Ridge(**{name: getattr(self, name) for name in Ridge._parameter_constraints})

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return self._regressor()._problem(X, Y, weights)

    def _solver_name(self) -> str:
        return self._regressor()._solver_name()

    def _options(self) -> Options:
        return self._regressor()._options()

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        self.solver_ = as_given(self.solver, self.solver_)


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
    @takes_batches
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
            X, targets.signs, weights, params, AsLabels(targets)
        )
        self._solve_and_store(problem, X, signs, sample_weight, moments)
        return self


class AsLabels(ClassifierMixin, BaseEstimator):
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

    @blockwise
    def decision_function(self, X: Any) -> Array:
        scores = X if self.W is None else X @ self.W + self.b
        return scores[:, 0] if scores.shape[1] == 1 and not self.targets.is_multilabel else scores

    @blockwise
    def predict(self, X: Any) -> NDArray[Any]:
        scores = self.decision_function(X)
        if self.targets.is_multilabel:
            return (scores > 0).astype(self.targets.labels.dtype)
        best = chosen_by_scores(scores)
        return self.classes_[best]

    def __sklearn_is_fitted__(self) -> bool:
        return True


@parameters()
class LeastSquaresClassifier(SparseCoefficients, LinearClassifierBase, TieRule, LinearEstimator):
    r"""Least squares on the labels -1 and +1; the sign of the fit is the class.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha/2 ||w||^2          y_i in {-1, +1}

    with sample weights s_i (one by default), and predicts the second class where x.w + b > 0. With
    more than two classes, each is fitted against the rest and the largest score wins.

    It is quick and its answer is exact, and it has a fault: the loss knows no "right and far from
    the boundary". Rows that are *too* right, with x.w + b far beyond their label, are charged as
    errors, and pull the boundary towards themselves; separable data may be fitted with errors. Of
    three classes in a row the middle one may never win. :class:`ZeroOneHalfspace` minimises the
    errors themselves.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the squared penalty.
    fit_intercept : bool, default=True
        Whether to fit b; it is 0 otherwise.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; they multiply the sample weights.
    solver : str, default="auto"
        "auto" plans (see :meth:`explain`); or the name of a solver of least squares.

    Attributes
    ----------
    coef_ : array of shape (1, d) or (number of classes, d)
        In double precision.
    intercept_ : array of shape (1,) or (number of classes,)
    classes_ : array of labels
    certificate_ : Certificate
        How far the squared loss of the coefficients can be from its minimum. It says nothing about
        the number of errors.
    solver_ : str
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Examples
    --------
    A row that is right and far away makes another one wrong:

    >>> import numpy as np
    >>> from trueline import LeastSquaresClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> LeastSquaresClassifier().fit(X, [0, 0, 1, 1]).predict(X)
    array([0, 0, 1, 1])
    >>> far = np.append(X, [[40.0]], axis=0)
    >>> LeastSquaresClassifier().fit(far, [0, 0, 1, 1, 1]).predict(far)
    array([0, 0, 0, 1, 1])
    """

    _leave_one_out = "least squares"
    _strength_in_sum = "alpha"

    alpha: float = given(0.0, "[0, inf)")
    _: KW_ONLY
    fit_intercept: bool = True
    class_weight: Any = given(None, "class_weight")
    solver: str = given("auto", str)

    def _loss(self, n_scores: int) -> Loss:
        return Squared()

    def _penalty(self) -> Penalty:
        return L2(float(self.alpha)) if self.alpha else NoPenalty()

    def _target(self, codes: NDArray[np.intp], count: int) -> NDArray[np.float64]:
        """+1 for the class of each row and -1 for the others."""
        return class_signs(codes, count)

    def _can_be_in_a_set(self) -> bool:
        return self.class_weight is None and super()._can_be_in_a_set()
