"""What the machines with one program share: regressors, and the machine of one class."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.support_vectors.base import SupportVectorMachine
from trueline.solvers.smo.program import DualProgram, DualSolution

__all__ = ["SingleMachine"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class SingleMachine(SupportVectorMachine):
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
