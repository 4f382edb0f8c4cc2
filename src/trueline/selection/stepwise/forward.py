r"""Forward selection by a partial Cholesky factorisation, for columns too many for a tableau.

After m columns have entered, L of shape (m, d) has G = L^T L + (what is left), and

    left_j  = G_jj - sum_i L_ij^2      what is left of column j,
    r_j     = c_j - sum_i L_ij z_i     its product with the residual,

so that letting j in lowers the residual square by r_j^2 / left_j. A step needs one column of the
Gram matrix and m d multiplications: with few columns chosen of many the Gram matrix need never be
formed (A. Bjorck, "Numerical Methods for Least Squares Problems" (1996), section 2.7; the criterion
is that of orthogonal least squares, S. Chen, S. A. Billings, W. Luo, Int. J. Control 50 (1989)
1873-1896).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from trueline.design.dense import DenseDesign
from trueline.design.sparse import SparseDesign
from trueline.moments import Moments
from trueline.problem import Problem
from trueline.selection.stepwise.tableau import (
    Columns,
    Outlook,
    dependent_below,
    rounding_floor,
)

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Up to so many columns the Gram matrix is cheap, whatever is done with it.
_FEW_COLUMNS = 1000
# One column of the Gram matrix costs about as much as this part of the whole.
_COLUMN_PRICE = 20
_MOST_COLUMNS = 8000


@dataclass(frozen=True)
class GramColumns:
    """Diagonal, cross products, and any column of the Gram matrix when it is asked for.

    Attributes
    ----------
    diagonal, cross, x_mean, size, least : arrays of shape (d,)
        ``size`` is what rounding is relative to; a column of which no more than ``least`` is left
        depends on others.
    y_square, y_mean, weight, floor : float
        ``floor`` is what rounding leaves of the residual square of a perfect fit.
    column : callable
        From the number of a column to a column of the Gram matrix.
    """

    diagonal: Array
    cross: Array
    x_mean: Array
    least: Array
    y_square: float
    y_mean: float
    weight: float
    floor: float
    column: Callable[[int], Array]

    @classmethod
    def from_moments(cls, moments: Moments) -> GramColumns:
        """From the whole Gram matrix."""
        return cls(
            diagonal=moments.gram.diagonal(),
            cross=moments.cross[:, 0],
            x_mean=moments.x_mean,
            least=dependent_below(moments),
            y_square=float(moments.y_square[0]),
            y_mean=float(moments.y_mean[0]),
            weight=moments.weight,
            floor=rounding_floor(moments),
            column=moments.gram.__getitem__,
        )

    @classmethod
    def from_rows(cls, problem: Problem) -> GramColumns:
        """From the rows: one product X^T v for every column that is asked for."""
        design, d = problem.design, problem.n_features
        y = problem.target[:, 0]
        weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
        total = float(weights.sum())
        mean, y_mean = np.zeros(d), 0.0
        if problem.fit_intercept:
            mean, y_mean = design.column_means(problem.weights), float(weights @ y) / total

        def product(v: Array) -> Array:
            return design.rmatvec(v) - mean * v.sum()

        def column(j: int) -> Array:
            return product(weights * (_column_of(design, j) - mean[j]))

        residual = y - y_mean
        size = design.column_squares(problem.weights, None)
        unit = (problem.n_samples / 2 + 16) * _EPS
        diagonal = design.column_squares(problem.weights, mean)
        return cls(
            diagonal=diagonal,
            cross=product(weights * residual),
            x_mean=mean,
            least=np.maximum(1e-10 * diagonal, 16 * _EPS * size),
            y_square=float(weights @ residual**2),
            y_mean=y_mean,
            weight=total,
            floor=16 * unit * float(weights @ residual**2),
            column=column,
        )


def _column_of(design: Any, j: int) -> Array:
    if isinstance(design, DenseDesign):
        return design.X[:, j].astype(np.float64)
    assert isinstance(design, SparseDesign)
    return np.asarray(design.by_columns[:, [j]].todense()).ravel()


class PartialCholesky:
    """Least squares on columns that only ever enter.

    Parameters
    ----------
    columns : GramColumns

    Attributes
    ----------
    inside : array of bool
    order : list of int
        The columns inside, as they entered.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.moments import Moments
    >>> from trueline.selection.stepwise.forward import GramColumns, PartialCholesky
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> model = PartialCholesky(GramColumns.from_moments(Moments.from_rows(as_design(X), y)))
    >>> model.outlook().square.ravel().round(12).tolist()
    [0.0, 1.5]
    """

    def __init__(self, columns: GramColumns) -> None:
        self.columns = columns
        d = len(columns.diagonal)
        self.n_features = d
        self.inside = np.zeros(d, dtype=bool)
        self.order: list[int] = []
        self.left = columns.diagonal.copy()
        self.along = columns.cross.copy()
        self.reached: list[float] = []
        self.L = np.empty((8, d))
        self._square = columns.y_square

    @property
    def y_square(self) -> float:
        """The residual square of the model without columns."""
        return self.columns.y_square

    @property
    def floor(self) -> float:
        """What rounding leaves of the residual square of a perfect fit."""
        return self.columns.floor

    def square(self) -> Array:
        """The residual square."""
        return np.array([max(self._square, 0.0)])

    def free(self) -> NDArray[np.bool_]:
        """The columns outside that do not depend on those inside."""
        return ~self.inside & (self.left > self.columns.least)

    def stranded(self) -> NDArray[np.bool_]:
        """None: dependent columns are not asked for."""
        return np.zeros(self.n_features, dtype=bool)

    def outlook(self) -> Outlook:
        """Each column on its own let in."""
        can = self.free()
        gain = self.along**2 / np.where(can, self.left, np.inf)
        square = np.maximum(self._square - gain, 0.0)[:, None]
        return Outlook(square, np.full_like(square, np.nan), can.astype(np.intp))

    def enter(self, columns: Columns) -> None:
        """Let columns in, one after the other, those that depend on others excepted."""
        for j in columns:
            if self.free()[j]:
                self._enter(int(j))

    def _enter(self, j: int) -> None:
        m = len(self.order)
        if m == len(self.L):
            self.L = np.vstack([self.L, np.empty_like(self.L)])
        known = self.L[:m]
        row = self.columns.column(j) - known[:, j] @ known
        # The entry on the diagonal is known better by itself than as a difference of sums.
        root = float(np.sqrt(self.left[j]))
        row /= root
        row[j] = root
        self.L[m] = row
        step = float(self.along[j]) / root
        self.along -= step * row
        self.left -= row**2
        self._square -= step**2
        self.reached.append(step)
        self.order.append(j)
        self.inside[j] = True

    def coefficients(self) -> Array:
        """w, of shape (d, 1), zero outside."""
        w = np.zeros((self.n_features, 1))
        m = len(self.order)
        if m:
            R = self.L[:m][:, self.order]
            w[self.order, 0] = solve_triangular(R, np.array(self.reached))
        return w

    def centre(self) -> tuple[Array, Array]:
        """The means of the columns and of the target."""
        return self.columns.x_mean, np.array([self.columns.y_mean])


def needs_rows(n: int, d: int, steps: int | None) -> bool:
    """Whether columns of the Gram matrix, one per step, are cheaper than the whole."""
    if d <= _FEW_COLUMNS:
        return False
    return d > _MOST_COLUMNS or d >= n or (steps is not None and _COLUMN_PRICE * steps <= d)


def gram_columns(problem: Problem, steps: int | None) -> GramColumns:
    """Whichever way to the columns of the Gram matrix is cheaper."""
    if needs_rows(*problem.design.shape, steps):
        return GramColumns.from_rows(problem)
    moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    return GramColumns.from_moments(moments if problem.fit_intercept else moments.about_zero())
