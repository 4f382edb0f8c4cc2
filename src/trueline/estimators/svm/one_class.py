"""The support vector machine of one class: where most of the rows are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.svm.base import SupportVectorMachine
from trueline.estimators.svm.guard import normalised
from trueline.estimators.svm.svr import SingleMachine
from trueline.kernels import KernelSource
from trueline.solvers.smo.program import DualProgram, DualSolution, filled

__all__ = ["OneClassSVM"]

Array = NDArray[np.float64]

# Relative to the level: a few times what the sum of kernel values errs by.
_ROUNDING = 1e-12


@parameters()
class OneClassSVM(OutlierMixin, SingleMachine, SupportVectorMachine):
    r"""A region that holds all but about a share nu of the rows.

    Minimises over functions f of the kernel's space and levels rho::

        1/2 ||f||^2 - nu sum_i s_i rho + sum_i s_i max(0, rho - f(x_i))

    and calls rows with f(x) < rho outliers. A drop-in for ``sklearn.svm.OneClassSVM``.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows is outside, at least this share supports.
    solver : {"auto", "working_set", "textbook_smo"}, default="auto"
    trace : bool, default=False
        With "textbook_smo": keep every step in ``trace_``.

    Attributes
    ----------
    n_support_ : array of shape (1,)
    dual_coef_ : array of shape (1, m)
    intercept_ : array of shape (1,)
        Minus rho.
    offset_ : array of shape (1,)
        rho.
    coef_ : array of shape (1, d)
        For the linear kernel.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import OneClassSVM
    >>> X = np.array([[0.0], [0.44], [0.45], [0.46], [1.0]])
    >>> model = OneClassSVM(gamma="auto").fit(X)
    >>> model.predict(X).tolist(), bool(model.verify(X))
    ([-1, 1, 1, 1, -1], True)
    """

    _machine = "one_class"
    _objective_text = "1/2 ||f||^2 - nu sum_i s_i rho + sum_i s_i max(0, rho - f(x_i))"

    _: KW_ONLY
    nu: float = given(0.5, "(0, 1]")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the region.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,), optional
            Rows of weight zero or less are left out.

        Returns
        -------
        self : object
        """
        super().fit(X, np.ones(_num_samples(X)), sample_weight)
        self.offset_ = -self.intercept_
        self._mark_fitted()
        return self

    def _predicting(self) -> dict[str, Any]:
        level = self.__dict__.get("offset_", -self.intercept_)
        return {**super()._predicting(), "offset_": level}

    def _boxes(self, weights: Array) -> Array:
        return weights

    def _solve(self, program: DualProgram, source: KernelSource) -> DualSolution:
        """Multipliers and level grow with the weights: they are solved for in units."""
        box, size = normalised(program.high, source)
        found = super()._solve(self._program(program.target, box), source)
        return found.times(size)

    def _program(self, target: Array, box: Array) -> DualProgram:
        zeros = np.zeros(len(box))
        return DualProgram(zeros, zeros, box, filled(box, float(self.nu) * float(box.sum())))

    def _parameters(self) -> Mapping[str, float]:
        return {"nu": float(self.nu)}

    def decision_function(self, X: Any) -> Array:
        """f(x) - rho: negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,)
            Zero where it is smaller than its rounding: support vectors are on the boundary.
        """
        scores = self._scores(X)
        level = abs(float(self.intercept_[0]))
        return np.where(np.abs(scores) <= _ROUNDING * level, 0.0, scores)

    def score_samples(self, X: Any) -> Array:
        """f(x).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        scores : array of shape (n,)
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> NDArray[np.intp]:
        """+1 for rows inside or on the boundary, -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        y : array of shape (n,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
