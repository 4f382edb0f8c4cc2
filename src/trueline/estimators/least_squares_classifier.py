"""Classification by regression: least squares on -1 and +1, then the sign."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.base import LinearEstimator, build_problem
from trueline.estimators.callbacks import Seen, fit_with_callbacks, watch
from trueline.estimators.labels import (
    Codes,
    class_signs,
    encode_declared,
    encode_labels,
    weighted_classes,
)
from trueline.estimators.validation import check_X_y, validate_data
from trueline.losses import Squared
from trueline.penalties import L2, NoPenalty
from trueline.problem import Problem
from trueline.trace import Trace

__all__ = ["LeastSquaresClassifier"]

Array = NDArray[np.float64]


class LeastSquaresClassifier(ClassifierMixin, LinearEstimator):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "solver": [str],
    }

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver

    _is_its_problem = True

    def _problem(self, X: Any, Y: Array, weights: Array | None) -> Problem:
        penalty = L2(float(self.alpha)) if self.alpha else NoPenalty()
        return build_problem(X, Y, weights, Squared(), penalty, self.fit_intercept)

    def _check_parameters(self) -> None:
        self._validate_params()

    def _targets_and_weights(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[NDArray[Any], Array, Array | None]:
        """The classes, +1 for the class of each row and -1 for the others, and the weights."""
        classes, codes = encode_labels(y, type(self).__name__)
        Y = class_signs(codes, len(classes))
        weights = self._weights(sample_weight, X)
        weights = weighted_classes(self.class_weight, classes, codes, weights)
        return classes, Y, weights

    def _validated_problem(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Problem, Any, NDArray[Any]]:
        arguments: dict[str, Any] = {"accept_sparse": ["csr", "csc", "coo"], "dtype": np.float64}
        if reset:
            X, y = validate_data(self, X, y, **arguments)
        else:
            X, y = check_X_y(X, y, estimator=self, **arguments)
        X = X.tocsr() if sp.issparse(X) else X
        classes, Y, weights = self._targets_and_weights(X, y, sample_weight)
        if weights is not None and not weights.all():
            present = np.flatnonzero(weights)
            return self._problem(X[present], Y[present], weights[present]), X[present], classes
        return self._problem(X, Y, weights), X, classes

    @fit_with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
            Labels of two or more classes.
        sample_weight : float or array-like of shape (n,), optional
            Weight 2 counts a row twice, weight 0 leaves it out.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem, X, classes = self._validated_problem(X, y, sample_weight, reset=True)
        with watch(self, Trace(), Seen(X, problem.target, None)) as monitor:
            plan, solution = self._solve(problem, X, monitor)
            self.classes_ = classes
            self._store(problem, plan, solution, X.dtype, 2)
        return self

    def _fitted_attributes(
        self, W: NDArray[Any], b: NDArray[Any], y_ndim: int, fit_intercept: bool
    ) -> dict[str, Any]:
        return {"coef_": np.ascontiguousarray(W.T), "intercept_": np.array(b)}

    def _posed_on_all_rows(
        self, X: Any, codes: Codes, weights: Array, classes: NDArray[Any]
    ) -> Problem:
        self.classes_ = classes
        return self._problem(X, class_signs(codes, len(classes)), weights)

    def _can_be_in_a_set(self) -> bool:
        return self.class_weight is None and super()._can_be_in_a_set()

    def _verified_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        encode_declared(y, self.classes_)  # labels of other names are told
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, estimator=self)
        _, Y, weights = self._targets_and_weights(X, y, sample_weight)
        return X, Y, weights

    def decision_function(self, X: Any) -> Array:
        """Scores: of the second class, or of each class if there are more than two.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,) or (n, number of classes)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
