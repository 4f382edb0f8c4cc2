"""Ridge regression on signs: classification by least squares."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from trueline.estimators.base import LinearEstimator
from trueline.estimators.labels import Codes, SignedTargets, class_signs, signed_targets
from trueline.estimators.report import Explanation
from trueline.estimators.ridge import RIDGE_SOLVERS, Ridge
from trueline.estimators.validation import validate_data
from trueline.problem import Problem
from trueline.solvers.base import Options

__all__ = ["RidgeClassifier", "SignRegressionClassifier"]

Array = NDArray[np.float64]

# What a classifier has of the regression on its signs.
_OF_THE_REGRESSION = ("coef_", "intercept_", "solver_", "n_iter_", "trace_", "n_features_in_")
_INSIDE = ("_plan", "_certificate", "_solution_facts")
_WHERE_THERE = (
    "feature_names_in_",
    "moments_",
    "alpha_",
    "best_score_",
    "cv_results_",
    "fold_scores_",
)


class SignRegressionClassifier(ClassifierMixin, LinearEstimator):
    """A classifier whose scores are a regression on -1 and +1, one target per class."""

    class_weight: Any
    classes_: NDArray[Any]
    _is_multilabel: bool = False

    @abstractmethod
    def _regressor(self, targets: SignedTargets | None = None) -> Any:
        """The regression that is fitted to the signs, with this classifier's parameters."""

    def _speaking(self, regressor: Any) -> Any:
        """The regression, with messages that name the classifier."""
        regressor._speaks_for = type(self).__name__
        return regressor

    def _check_parameters(self) -> None:
        """Raise for parameters that are out of range."""
        self._validate_params()

    def _fit_signs(self, X: Any, y: Any, sample_weight: Any, **params: Any) -> Self:
        self._check_parameters()
        targets = signed_targets(y, type(self).__name__)
        regressor = self._speaking(self._regressor(targets))
        weights = self._row_weights(targets, sample_weight)
        if callbacks := getattr(self, "_skl_callbacks", None):
            regressor._skl_callbacks = callbacks  # they watch the regression
        regressor.fit(X, targets.signs, weights, **params)
        self._adopt(regressor, targets.classes, targets.is_multilabel)
        return self

    def _adopt(self, regressor: Any, classes: NDArray[Any], is_multilabel: bool = False) -> None:
        """Become the classifier of a fitted regression."""
        fitted = vars(regressor)
        for name in _WHERE_THERE:  # of an earlier fit
            self.__dict__.pop(name, None)
        names = (*_OF_THE_REGRESSION, *_INSIDE, *(name for name in _WHERE_THERE if name in fitted))
        self.__dict__.update({name: fitted[name] for name in names})
        self.classes_, self._is_multilabel = classes, is_multilabel
        self._mark_fitted()

    def _row_weights(self, targets: SignedTargets, sample_weight: Any) -> Any:
        """Sample weights times class weights."""
        if not self.class_weight:
            return sample_weight
        weights = compute_sample_weight(self.class_weight, targets.labels)
        if sample_weight is None:
            return weights
        return weights * _check_sample_weight(sample_weight, targets.signs, dtype=np.float64)

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        return self._regressor()._problem(X, Y, weights)

    def _posed_on_all_rows(
        self, X: Any, codes: Codes, weights: Array, classes: NDArray[Any]
    ) -> Problem:
        self.classes_ = classes
        return self._problem(X, class_signs(codes, len(classes)), weights)

    def _can_be_in_a_set(self) -> bool:
        return self.class_weight is None and super()._can_be_in_a_set()

    def _solver_name(self) -> str:
        return self._regressor()._solver_name()

    def _options(self) -> Options:
        return self._regressor()._options()

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        coef = W[:, 0].copy() if W.shape[1] == 1 else np.ascontiguousarray(W.T)
        return {"coef_": coef, "intercept_": b if fit_intercept else 0.0}

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        targets = signed_targets(y, type(self).__name__)
        weights = self._row_weights(targets, sample_weight)
        regressor = self._speaking(self._regressor(targets))
        return regressor._validated_problem(X, targets.signs, weights, reset)

    def explain(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, all: bool = False
    ) -> Explanation:
        """Say what will be done with (X, y), or what was done in the last fit.

        Parameters
        ----------
        X : array-like or sparse matrix, optional
            With ``y``: plan a fit on these data without running it.
        y : array-like, optional
        sample_weight : array-like, optional
        all : bool, default=False
            List every solver with its reason, those for other losses and penalties too.

        Returns
        -------
        explanation : Explanation
            Prints as text; ``table()`` gives rows.
        """
        if X is None:
            return super().explain(all=all)
        self._check_parameters()
        targets = signed_targets(y, type(self).__name__)
        weights = self._row_weights(targets, sample_weight)
        regressor = self._speaking(self._regressor(targets))
        return regressor.explain(X, targets.signs, weights, all=all)

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        targets = signed_targets(y, type(self).__name__)
        if not np.array_equal(targets.classes, self.classes_):
            raise ValueError(
                f"y holds the classes {targets.classes[:10].tolist()}; the fit was on "
                f"{self.classes_[:10].tolist()}. Verify with the data that were fitted."
            )
        return X, targets.signs, self._row_weights(targets, sample_weight)

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
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            reset=False,
        )
        scores = X @ self.coef_.T
        if sp.issparse(scores):
            scores = scores.toarray()
        return np.asarray(scores) + self.intercept_

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
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class RidgeClassifier(SignRegressionClassifier):
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

    _is_its_problem = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "solver": [StrOptions(set(RIDGE_SOLVERS))],
        "positive": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state

    def _regressor(self, targets: SignedTargets | None = None) -> Ridge:
        return Ridge(**{name: getattr(self, name) for name in Ridge._parameter_constraints})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,), or array-like or sparse matrix of shape (n, k)
            Labels, or indicators of sets of labels.
        sample_weight : float or array-like of shape (n,), optional

        Returns
        -------
        self : object
        """
        return self._fit_signs(X, y, sample_weight)
