"""Classification by regression: least squares on -1 and +1, then the sign."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.shared.base import LinearEstimator
from trueline.estimators.shared.classifier import (
    LinearClassifierBase,
    SparseCoefficients,
    class_signs,
)
from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.losses import Loss, Squared
from trueline.penalties import L2, NoPenalty, Penalty

__all__ = ["LeastSquaresClassifier"]


@parameters()
class LeastSquaresClassifier(SparseCoefficients, LinearClassifierBase, LinearEstimator):
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
