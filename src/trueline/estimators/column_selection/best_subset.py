"""Least squares on the best few columns, with a proof that there are no better ones."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from trueline.best_subset import Statement, SubsetPath
from trueline.best_subset.elimination import DEPENDENT, gain_of
from trueline.best_subset.exchange import independent
from trueline.estimators.column_selection.best_subset_search import SubsetRegressor
from trueline.estimators.shared.parameters import KW_ONLY, given, one_of, parameters
from trueline.problem import Problem
from trueline.selection.criteria import CRITERIA

__all__ = ["BestSubset", "L0Regression"]

# With k=None, the sizes go up to this.
_MOST_SIZES = 30
# A fit that leaves no more than this of the target's square is perfect.
_NOTHING = 1e-9


@parameters()
class BestSubset(SubsetRegressor):
    """Least squares on the k best columns: the best of all supports, proven.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + l2/2 ||w||^2    subject to  ||w||_0 <= k

    with sample weights s_i (one by default). Good supports come from exchanges of single columns
    from many starts; branch and bound then proves that there is no better one, or finds it. Each
    node is bounded by the perspective relaxation of the Gram matrix with the best diagonal taken
    out of it, which needs no bound on the coefficients.

    With more columns than rows, and ``l2=0``, some supports may be so nearly dependent that no
    relaxation can rule them out. The proof is then given for the supports whose correlation matrix
    has no eigenvalue below ``min_eigenvalue``, and the certificate says so: its kind is
    "conditioned search". Columns that nearly depend on each other, near copies for example, are
    compared in doubled precision (for up to 200 columns); only where they agree to more than ten
    digits the certificate states, with a far smaller eigenvalue, that such supports were left out.

    Ties: supports whose objectives agree to 11 digits are equal, and of columns that can be
    exchanged without loss (copies of each other) the one with the lowest index is taken.

    Parameters
    ----------
    k : int, sequence of int or None, default=None
        Number of columns; several numbers are searched in one call (see ``path_``), None means all
        from 1 to the number of independent columns (less one if these fit any target), but not
        beyond 30.
    criterion : {"aic", "aicc", "bic", "adjusted_r2", "cp"}, default="bic"
        Which size predicts, if there are several; sizes with as many parameters as rows do not.
    time_limit : float or None, default=60.0
        Seconds for all sizes together; the gap that is then left is in the certificate.
    min_eigenvalue : float or None, default=None
        Compare only supports whose correlation matrix has no eigenvalue below this; 0 compares
        all. None means 0 if the columns can be independent or ``l2`` is positive, and otherwise a
        little less than the smallest one that exchange descents find.

    Attributes
    ----------
    k_ : int
        The size that predicts.
    proven_ : bool
        Whether its search was finished: no support is better, or none that
        ``certificate_.statement`` speaks of.
    path_ : SubsetPath
        For every size: support, coefficients, objective, lower bound, nodes and criteria.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import BestSubset
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BestSubset(k=3).fit(X, y)
    >>> model.support_, model.proven_
    (array([2, 3, 8]), True)
    >>> bool(model.verify(X, y))
    True
    """

    k: Any = given(None, "int", "array-like", None)
    _: KW_ONLY
    criterion: str = given("bic", one_of(*CRITERIA))

    def _limits(self, problem: Problem) -> tuple[int, float]:
        d = problem.n_features
        if self.k is None:
            return min(d, _MOST_SIZES), 0.0
        given = self._given()
        if not given:
            raise ValueError("k is empty: give at least one number of columns.")
        for size in given:
            is_count = isinstance(size, int | np.integer) and not isinstance(size, bool)
            if not is_count or not 0 <= int(size) <= d:
                raise ValueError(
                    f"k must be between 0 and the number of columns, {d}; got {size!r}."
                )
        if len(set(given)) < len(given):
            raise ValueError(f"k has repeated sizes: {self.k!r}.")
        return max(int(size) for size in given), 0.0

    def _given(self) -> list[Any]:
        return [self.k] if isinstance(self.k, Integral) else list(self.k)

    def _sizes(self, statement: Statement) -> list[int]:
        if self.k is not None:
            return [int(size) for size in self._given()]
        # Beyond the number of independent columns nothing is gained.
        task, columns = statement.task, np.flatnonzero(statement.columns)
        apart = independent(task.gram, columns, task.k, DEPENDENT)
        count = len(apart)
        if count < len(columns):
            left = task.constant - gain_of(task.gram, task.cross, apart)
            # So many columns fit anything: which of them are taken would mean nothing.
            count -= int(left <= _NOTHING * task.constant)
        return list(range(1, max(1, count) + 1))

    def _choose(self, path: SubsetPath, rows: float) -> int:
        values = path.criteria[self.criterion]
        cost = -values if self.criterion == "adjusted_r2" else values
        # A fit with as many parameters as rows says nothing, however well it fits.
        parameters = np.array([len(support) for support in path.supports]) + self.fit_intercept
        sensible = ~np.isnan(cost) & (parameters < rows)
        if sensible.any():
            chosen = int(np.argmin(np.where(sensible, cost, np.inf)))
        else:
            chosen = int(np.argmin(path.k))
        self.k_ = int(path.k[chosen])
        return chosen

    def _formula(self, largest: int) -> str:
        if self.k is None:
            return f"||w||_0 <= k,  k = 1, ..., {largest}"
        return f"||w||_0 <= k,  k = {', '.join(str(size) for size in self._given())}"


@parameters()
class L0Regression(SubsetRegressor):
    """Least squares with a price per column: the best of all supports, proven.

    Minimises over w and b::

        1/2 sum_i s_i (y_i - x_i.w - b)^2 + alpha ||w||_0 + l2/2 ||w||^2

    with sample weights s_i (one by default), by the methods of :class:`BestSubset`. With s^2 the
    variance of the noise, alpha = s^2 is AIC, alpha = s^2 log(n) / 2 is BIC.

    Parameters
    ----------
    alpha : float, default=1.0
        Price of a column.
    time_limit : float or None, default=60.0
        Seconds; the gap that is then left is in the certificate.
    min_eigenvalue : float or None, default=None
        As in :class:`BestSubset`.

    Attributes
    ----------
    proven_ : bool
        Whether the search was finished: no support is better, or none that
        ``certificate_.statement`` speaks of.
    path_ : SubsetPath
        The one support, with its objective, lower bound, nodes and criteria.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from trueline import L0Regression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = L0Regression(alpha=20_000.0).fit(X, y)
    >>> model.support_, model.proven_
    (array([2, 3, 8]), True)
    """

    alpha: float = given(1.0, "[0, inf)")

    def _limits(self, problem: Problem) -> tuple[int, float]:
        alpha, d = float(self.alpha), problem.n_features
        if alpha == 0:
            return d, 0.0
        # More columns than this cost more than the fit without any.
        level = np.average(problem.target, axis=0, weights=problem.weights) * self.fit_intercept
        square = float(problem.weigh((problem.target - level) ** 2).sum())
        return int(min(d, np.ceil(0.5 * square / alpha))), alpha

    def _sizes(self, statement: Statement) -> list[int]:
        return [statement.task.k]

    def _choose(self, path: SubsetPath, rows: float) -> int:
        return 0

    def _formula(self, largest: int) -> str:
        return f"+ alpha ||w||_0,  alpha = {float(self.alpha):g}"
