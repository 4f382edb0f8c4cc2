"""Ridge regression on signs: classification by least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from trueline.estimators.regression.ridge import RIDGE_SOLVERS, Ridge, as_given
from trueline.estimators.shared.base import Host, LinearEstimator
from trueline.estimators.shared.classifier import Codes, SignedTargets, class_signs, signed_targets
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.estimators.shared.regressor import real_problem
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Options

__all__ = ["RidgeClassifier", "SignRegressionClassifier"]

Array = NDArray[np.float64]


class SignRegressionClassifier(ClassifierMixin, Host):
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

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        targets, weights = self._signed(y, sample_weight, reset)
        return real_problem(self, X, targets.signs, weights, reset)

    def _row_weights(self, targets: SignedTargets, sample_weight: Any) -> Any:
        """Sample weights times class weights."""
        if not self.class_weight:
            return sample_weight
        weights = compute_sample_weight(self.class_weight, targets.labels)
        if sample_weight is None:
            return weights
        return weights * _check_sample_weight(sample_weight, targets.signs, dtype=np.float64)

    def _posed_on_all_rows(
        self, X: Any, codes: Codes, weights: Array, classes: NDArray[Any]
    ) -> Problem:
        self.classes_ = classes
        return self._problem(X, class_signs(codes, len(classes)), weights)

    def _can_be_in_a_set(self) -> bool:
        return self.class_weight is None and super()._can_be_in_a_set()

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
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
