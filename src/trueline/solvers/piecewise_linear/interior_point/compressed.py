r"""Rows that are mostly zeros, in the form that the methods of this package share.

The rows a_i = (x_i1 / scale_1, ..., x_id / scale_d, 1) of a sparse design are not centred, which
would cost them their zeros, and are kept compressed: scores and sums read what is there, and a Gram
matrix costs the square of a row's number of entries, not of all columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trueline.design import SparseDesign
from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solvers.piecewise_linear.interior_point.program import Program

__all__ = ["CompressedProgram"]

Array = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]


@kernel
def gram_of_rows(
    data: Array, indices: Indices, indptr: Integers, level: float, weights: Array, out: Array
) -> None:
    """Add sum_i weights_i a_i a_i^T, the last of each row being ``level``; below the diagonal.

    The columns of a row ascend.
    """
    last = out.shape[0] - 1
    for i in range(len(weights)):
        if weights[i] == 0.0:
            continue
        start, stop = indptr[i], indptr[i + 1]
        for at in range(start, stop):
            part, row = weights[i] * data[at], np.uint64(indices[at])
            for other in range(start, at + 1):
                out[row, np.uint64(indices[other])] += part * data[other]
            out[last, row] += part * level
        out[last, last] += weights[i] * level * level


@kernel
def scores_of_rows(
    data: Array, indices: Indices, indptr: Integers, level: float, v: Array, out: Array
) -> None:
    """a_i.v of all rows."""
    last = level * v[-1]
    for i in range(len(out)):
        out[i] = column_dot(data, indices, indptr[i], indptr[i + 1], v) + last


@kernel
def sum_of_rows(
    data: Array, indices: Indices, indptr: Integers, level: float, weights: Array, out: Array
) -> None:
    """Add sum_i weights_i a_i."""
    last = out.shape[0] - 1
    for i in range(len(weights)):
        weight = weights[i]
        if weight == 0.0:
            continue
        for at in range(indptr[i], indptr[i + 1]):
            out[np.uint64(indices[at])] += weight * data[at]
        out[last] += weight * level


@dataclass(frozen=True)
class CompressedProgram(Program):
    """A function of compressed rows with one kink each, and no kinks of coefficients.

    Attributes
    ----------
    data, indices, indptr : arrays
        The rows; A of the program has no columns.
    level : float
        The last entry of every row: 1, or 0 without an intercept.
    """

    data: Array
    indices: Indices
    indptr: Integers
    level: float
    _last: dict[str, Array] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, problem: Problem, number: int, scale: Array) -> CompressedProgram:
        """That of one target of a problem, whose columns are divided by a scale."""
        design, loss = problem.design, problem.loss.of_target(number)
        assert isinstance(design, SparseDesign)
        X, y = design.by_rows, np.ascontiguousarray(problem.target[:, number])
        s = np.ones(len(y)) if problem.weights is None else problem.weights
        first, jumps = loss.first_slopes(y), loss.row_jumps(y)[0]
        curvatures = np.broadcast_to(problem.penalty.curvature, (len(scale), problem.n_targets))
        # Without an intercept nothing pulls at the last coefficient, and this keeps it at zero.
        quad = np.append(curvatures[:, number] / scale**2, float(not problem.fit_intercept))
        indices = X.indices.astype(np.int32, copy=False)
        indptr, level = X.indptr.astype(np.int64), float(problem.fit_intercept)
        data = X.data / scale[indices]
        ell = np.zeros(len(quad))
        sum_of_rows(data, indices, indptr, level, first * s, ell)
        return cls(
            A=np.empty((len(y), 0)),
            ell=ell,
            quad=quad,
            lasso=np.empty(0, dtype=np.intp),
            t=y,
            c=jumps * s,
            share=-first / jumps,
            data=data,
            indices=indices,
            indptr=indptr,
            level=level,
        )

    @property
    def _parts(self) -> tuple[Array, Indices, Integers, float]:
        return self.data, self.indices, self.indptr, self.level

    def scores(self, v: Array) -> Array:
        out = np.empty(len(self.t))
        scores_of_rows(*self._parts, v, out)
        return out

    def rmatvec(self, weights: Array) -> Array:
        out = np.zeros(len(self.quad))
        sum_of_rows(*self._parts, weights, out)
        return out

    def gram(self, weights: Array) -> Array:
        out = np.zeros((len(self.quad),) * 2)
        gram_of_rows(*self._parts, weights, out)
        out += np.tril(out, -1).T
        out.flat[:: len(out) + 1] += self.quad
        return out

    def slopes(self, multipliers: Array, v: Array) -> Array:
        # From one step to the next most multipliers stay as they are.
        known = self._last
        if known:
            known["sum"] = known["sum"] + self.rmatvec(multipliers - known["multipliers"])
        else:
            known["sum"] = self.rmatvec(multipliers)
        known["multipliers"] = multipliers
        return self.ell + self.quad * v + known["sum"]

    def gap(self, multipliers: Array, v: Array, offset: Array) -> float:
        """How far v is from the optimum, about, by multipliers that nearly balance the level."""
        slope = self.slopes(multipliers, v)
        kinks = self.c @ np.maximum(offset, 0.0) - multipliers @ offset
        level = abs(float(slope[-1])) * (1.0 + abs(float(v[-1])))
        return float(kinks + 0.5 * (slope[:-1] ** 2 / self.quad[:-1]).sum()) + level
