"""The rank of the columns, and what the data do not determine, for models without a penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trueline.estimators.shared.base import Host
from trueline.solution import Solution
from trueline.solvers.least_squares.normal_equations import orthogonal_complement

__all__ = ["ColumnRank"]

Array = NDArray[np.float64]


class ColumnRank(Host):
    """Adds ``rank_`` and ``null_space_``, where the solver determined them and no penalty chose."""

    n_features_in_: int
    solver_: str
    _row_space: Array | None

    def _keep_of(self, problem: Any, solution: Solution) -> None:
        """Remember the rank of this fit, and nothing of the one before."""
        super()._keep_of(problem, solution)
        for name in ("rank_", "_row_space"):
            self.__dict__.pop(name, None)
        penalty = problem.penalty
        is_free = "none" in penalty.capabilities
        is_free = is_free or not (np.any(penalty.curvature) or np.any(penalty.linear))
        if solution.rank is not None and is_free:
            self.rank_, self._row_space = solution.rank, solution.row_space

    @property
    def null_space_(self) -> Array:
        """An orthonormal basis of the directions that the data do not determine."""
        check_is_fitted(self)
        if not hasattr(self, "rank_"):
            raise AttributeError(
                f"The rank of the columns was not determined: there is a penalty, or "
                f"solver_={self.solver_!r} on so many columns does without it."
            )
        if self._row_space is None:
            return np.zeros((self.n_features_in_, 0))
        return orthogonal_complement(self._row_space)
