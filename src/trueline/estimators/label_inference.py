"""Standard errors of logistic regression, by its Fisher information."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.inference import CoefficientTable, fisher_covariance

__all__ = ["LabelInference"]


class LabelInference:
    """Adds ``standard_errors`` to a logistic regression of two classes."""

    classes_: NDArray[Any]

    def standard_errors(self, X: Any, y: Any, sample_weight: Any = None) -> CoefficientTable:
        """How far the coefficients may be from the truth, in large samples.

        The covariance is the inverse of the Fisher information, and intervals are those of the
        normal distribution. For two classes, without a penalty or with Firth's correction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted.
        y : array-like of shape (n,)
        sample_weight : float or array-like of shape (n,), optional
            As in ``fit``: weight 2 counts a row twice.

        Returns
        -------
        table : CoefficientTable
            With ``standard_errors``, ``t_values``, ``p_values`` and
            ``confidence_intervals(level)``; the intercept comes first.

        Examples
        --------
        >>> import numpy as np
        >>> from trueline import LogisticRegression
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> y = np.array([0, 0, 1, 0, 1, 1])
        >>> model = LogisticRegression(C=np.inf).fit(X, y)
        >>> model.standard_errors(X, y).standard_errors.round(3)
        array([2.546, 0.913])
        """
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Standard errors are for two classes, and there are {len(self.classes_)}. Compare "
                "each with a class of reference."
            )
        problem = self._validated_problem(X, y, sample_weight, reset=False)[0]  # type: ignore[attr-defined]
        if "none" not in problem.penalty.capabilities:
            raise ValueError(
                f"Standard errors are for fits without a penalty, and this one has C={self.C!r}: "  # type: ignore[attr-defined]
                "shrunken coefficients are biased by an amount that the data do not tell. Fit with "
                "C=np.inf, or with penalty='firth'."
            )
        W, b = self._coefficients()  # type: ignore[attr-defined]
        h = problem.loss.curvature(problem.target, problem.scores(W, b))[:, 0]
        h = h if problem.weights is None else h * problem.weights
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(W))])
        coefficients = W[:, 0]
        if problem.fit_intercept:
            coefficients, names = np.append(b[0], coefficients), ["intercept", *names]
        return CoefficientTable(
            names=tuple(str(name) for name in names),
            sets=(),
            coefficients=coefficients,
            covariance=fisher_covariance(problem.design, h, problem.fit_intercept),
            degrees_of_freedom=np.inf,
            method="Fisher information",
            details={},
        )
