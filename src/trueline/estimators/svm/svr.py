"""Kernel machines of one program: support vector regression, and one class.

Errors below a width cost nothing; the machine of one class finds where most of the rows are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.utils.validation import _num_samples

from trueline.estimators.shared.parameters import KW_ONLY, given, parameters
from trueline.estimators.svm.base import Host, SupportVectorMachine
from trueline.estimators.svm.multipliers import normalised, priced
from trueline.kernels import Array, KernelSource
from trueline.solvers import DualProgram, DualSolution, filled


class SingleMachine(Host):
    """One program, one intercept."""

    n_iter_: int

    @abstractmethod
    def _boxes(self, weights: Array) -> Array:
        """The largest multiplier of each row."""

    @abstractmethod
    def _program(self, target: Array, box: Array) -> DualProgram:
        """The program of checked rows."""

    def _answer(self, solution: DualSolution) -> tuple[Array, float]:
        """Dual coefficients of the rows, and the intercept."""
        return solution.beta, float(solution.level[0])

    def _fit_checked(self, X: Any, target: Array, weights: Array) -> None:
        rows = np.flatnonzero(weights > 0)
        box = self._boxes(weights[rows])
        source = self._source(X, rows, float(box.max()))
        solution = self._solve(self._program(target[rows], box), source)
        beta, intercept = self._answer(solution)
        used = np.flatnonzero(beta)
        self._keep_support(X, rows[used])
        self._n_support = np.array([len(used)], dtype=np.int32)
        self.dual_coef_ = self._stored_coef(beta[None, used])
        self.intercept_ = np.array([intercept]) + 0.0
        self.n_iter_ = solution.n_iter
        self.fit_status_ = int(not solution.is_solved)
        self._violation = solution.violation
        self._notes = solution.notes
        self.trace_ = solution.trace
        self.solver_ = "textbook_smo" if self.solver == "textbook_smo" else "working_set"

    def _scores(self, X: Any) -> Array:
        """Scores of new rows."""
        return self._sums(self._checked_rows(X), self._dense_coef().T)[:, 0] + self.intercept_[0]


@parameters()
class _Regressor(RegressorMixin, SingleMachine):
    _: KW_ONLY
    C: float = given(1.0, "(0, inf]")

    def _boxes(self, weights: Array) -> Array:
        return priced(float(self.C), np.ones(len(weights)), weights)

    def predict(self, X: Any) -> Array:
        """Predict the target of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Kernels with the training rows, of shape (n, m), if they are precomputed.

        Returns
        -------
        y : array of shape (n,)
        """
        return self._scores(X)


@parameters()
class SVR(_Regressor, SupportVectorMachine):
    r"""Support vector regression with a kernel.

    Minimises over functions f of the kernel's space and intercepts b::

        1/2 ||f||^2 + C sum_i s_i max(0, |y_i - f(x_i) - b| - epsilon)

    A drop-in for ``sklearn.svm.SVR``.

    Parameters
    ----------
    C : float, default=1.0
        Price of an error; ``np.inf`` allows none above epsilon.
    epsilon : float, default=0.1
        Errors up to this cost nothing.
    solver : {"auto", "working_set", "textbook_smo"}, default="auto"
    trace : bool, default=False
        With "textbook_smo": keep every step in ``trace_``.

    Attributes
    ----------
    n_support_ : array of shape (1,)
    dual_coef_ : array of shape (1, m)
    intercept_ : array of shape (1,)
    coef_ : array of shape (1, d)
        For the linear kernel.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import SVR
    >>> X = np.linspace(0, 3, 40).reshape(-1, 1)
    >>> y = np.sin(2 * X.ravel())
    >>> model = SVR(C=10.0, gamma=1.0, epsilon=0.05).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 0.06), bool(model.verify(X, y))
    (True, True)
    """

    _machine = "svr"
    _objective_text = "1/2 ||f||^2 + C sum_i s_i max(0, |y_i - f(x_i) - b| - epsilon)"

    _: KW_ONLY
    epsilon: float = given(0.1, "[0, inf)")

    def _program(self, target: Array, box: Array) -> DualProgram:
        return DualProgram(target, -box, box, np.zeros(len(box)), float(self.epsilon))

    def _solve(self, program: DualProgram, source: KernelSource) -> DualSolution:
        found = super()._solve(program, source)
        if np.isinf(self.C) and not found.is_solved:
            raise ValueError(
                f"With C=np.inf every error must be at most epsilon={self.epsilon:.3g}, and no "
                "such function was found. Give a finite C, or a larger epsilon."
            )
        return found

    def _parameters(self) -> Mapping[str, float]:
        return {"C": float(self.C), "epsilon": float(self.epsilon)}


@parameters()
class NuSVR(_Regressor, SupportVectorMachine):
    r"""Support vector regression that chooses its width so that a share nu of the rows lies beyond.

    Minimises over functions f of the kernel's space, intercepts b and widths epsilon >= 0::

        1/2 ||f||^2 + C (nu sum_i s_i epsilon + sum_i s_i max(0, |y_i - f(x_i) - b| - epsilon))

    A drop-in for ``sklearn.svm.NuSVR``.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows has an error above epsilon, at least this share supports.
    C : float, default=1.0
        Price of an error.
    solver : {"auto", "working_set"}, default="auto"
    trace : bool, default=False
        Accepted; the textbook's steps are for machines with one threshold.

    Attributes
    ----------
    n_support_ : array of shape (1,)
    dual_coef_ : array of shape (1, m)
    intercept_ : array of shape (1,)
    epsilon_ : float
        The width that was chosen.
    coef_ : array of shape (1, d)
        For the linear kernel.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import NuSVR
    >>> X = np.linspace(0, 3, 40).reshape(-1, 1)
    >>> y = np.sin(2 * X.ravel())
    >>> model = NuSVR(C=10.0, gamma=1.0, nu=0.2).fit(X, y)
    >>> bool(np.mean(np.abs(model.predict(X) - y) > model.epsilon_ + 1e-3) <= 0.2)
    True
    >>> bool(model.verify(X, y))
    True
    """

    _machine = "nu_svr"
    _objective_text = (
        "1/2 ||f||^2 + C (nu sum_i s_i epsilon + sum_i s_i max(0, |y_i - f(x_i) - b| - epsilon))"
    )

    _: KW_ONLY
    nu: float = given(0.5, "(0, 1]")

    def _program(self, target: Array, box: Array) -> DualProgram:
        """Two variables for each row: what pulls it up, and what pulls it down."""
        if np.isinf(self.C):
            raise ValueError("NuSVR shares a finite C among the rows, and C=np.inf. Lower C.")
        n = len(box)
        zeros, start = np.zeros(n), filled(box, 0.5 * float(self.nu) * float(box.sum()))
        return DualProgram(
            np.tile(target, 2),
            np.concatenate([zeros, -box]),
            np.concatenate([box, zeros]),
            np.concatenate([start, -start]),
            split=n,
            row=np.tile(np.arange(n), 2),
        )

    def _answer(self, solution: DualSolution) -> tuple[Array, float]:
        n = len(solution.beta) // 2
        above, below = solution.level
        self.epsilon_ = max(0.0, float(0.5 * (above - below)))
        return solution.beta[:n] + solution.beta[n:], float(0.5 * (above + below))

    def _parameters(self) -> Mapping[str, float]:
        return {"C": float(self.C), "nu": float(self.nu)}

    def _witness(self) -> dict[str, Any]:
        return {"epsilon": np.float64(self.epsilon_)}


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
