"""The rows of a design as the kernels of this package take them, and products with some of them.

Sparse columns without any entry: their coefficients are zero, and the rest is solved alone.

Words that do not occur have no gradient: with a penalty a/2 w_j^2 the best w_j is zero, and V_j = 0
adds nothing to the dual. Objective and gap are those of the other columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.design import AugmentedDesign, Design, SparseDesign
from trueline.numerics.threads import run_strands
from trueline.problem import Problem
from trueline.solution import Solution
from trueline.solvers.base import Options
from trueline.solvers.dual_coordinate_ascent import class_kernels, kernels
from trueline.solvers.loop import Monitor, seen_through
from trueline.wording import counted

__all__ = ["Rows", "occurring_columns", "solve_on_columns"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Products of so many numbers are worth a second strand.
_MANY = 200_000
# If the largest number is between this and its inverse, squares may be summed in single precision.
_RANGE = 1e12


class Rows:
    """Dense or compressed rows, and the constant that each of them ends with.

    Attributes
    ----------
    size : int
        Number of coefficients, that of the constant included.
    constant : float
    squares : array of shape (n,)
        x_i.x_i
    """

    def __init__(self, design: Design) -> None:
        self.constant = 0.0
        if isinstance(design, AugmentedDesign):
            self.constant = design.constant
            design = design.base
        self.size = design.shape[1] + 1
        self.squares = design.row_squares(None) + self.constant**2
        self._density = design.nonzeros / max(1, design.shape[0])
        self._parts: tuple[Any, ...]
        self._score: Callable[..., None]
        self._pull: Callable[..., None]
        self._sweep: Callable[..., tuple[int, float, float]]
        if isinstance(design, SparseDesign):
            X = design.rows_as_given
            indices, starts = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
            self._parts = X.data, indices, starts
            self._score, self._pull = kernels.score_sparse, kernels.pull_sparse
            self._sweep = kernels.sweep_sparse
        else:
            self._parts = (np.ascontiguousarray(_doubles(design)),)
            self._score, self._pull = kernels.score_dense, kernels.pull_dense
            self._sweep = kernels.sweep_dense

    def sweep(self, *state: Any) -> tuple[int, float, float]:
        """One sweep of coordinate descent."""
        return self._sweep(*self._parts, self.constant, *state)

    @property
    def compressed(self) -> tuple[Array, NDArray[np.int32], Integers]:
        """Entries, columns and starts of the rows, of dense ones too."""
        if len(self._parts) == 1:
            n, d = self._parts[0].shape
            columns = np.tile(np.arange(d, dtype=np.int32), n)
            self._parts = self._parts[0].ravel(), columns, np.arange(n + 1) * d
            self._score, self._pull = kernels.score_sparse, kernels.pull_sparse
            self._sweep = kernels.sweep_sparse
        data, indices, starts = self._parts
        return data, indices, starts

    def class_sweep(self, *state: Any) -> tuple[int, float]:
        """One sweep of coordinate descent on the multipliers of several classes."""
        is_dense = len(self._parts) == 1
        sweep: Callable[..., tuple[int, float]] = class_kernels.class_sweep_sparse
        if is_dense:
            sweep = class_kernels.class_sweep_dense
        return sweep(self._parts, self.constant, *state)

    def is_short(self, count: int) -> bool:
        """Whether the products of so many rows cost less than what calls them."""
        return len(self._parts) > 1 and len(self._strands(count)) == 1

    def scores(self, rows: Integers, w: Array, constant: float | None = None) -> Array:
        """x_i.w of some rows; those may end with another constant."""
        return self._scores(self._parts, rows, w, self.constant if constant is None else constant)

    def weighted_sum(self, rows: Integers, weights: Array) -> Array:
        """sum_i weights_i x_i over some rows."""
        return self._pulled(self._parts, rows, weights, self.constant)

    def roughly_there_and_back(self, rows: Integers, weights: Array) -> Array:
        """X (X^T weights) for some rows; compressed ones in single precision, in half the time."""
        size = float(np.abs(weights).max(initial=0.0))
        if self._single is None or not size > 0:
            return self.scores(rows, self.weighted_sum(rows, weights))
        pulled = self._pulled(self._single, rows, (weights / size).astype(np.float32), 0.0)
        there = self._scores(self._single, rows, pulled, 0.0).astype(np.float64) * size
        return there + self.constant**2 * weights.sum()

    @cached_property
    def _single(self) -> tuple[Any, ...] | None:
        """Compressed rows in single precision, if their squares are within its range."""
        if len(self._parts) == 1:
            return None
        data, *places = self._parts
        size = max(data.max(initial=0.0), -data.min(initial=0.0))
        if not 1 / _RANGE < size < _RANGE:
            return None
        return data.astype(np.float32), *places

    def _scores(
        self, parts: tuple[Any, ...], rows: Integers, w: NDArray[Any], constant: float
    ) -> NDArray[Any]:
        out = np.empty(len(rows), dtype=w.dtype)

        def work(strand: slice) -> None:
            self._score(*parts, rows[strand], w, constant, out[strand])

        strands = self._strands(len(rows))
        if len(strands) == 1:
            work(strands[0])  # threads would cost more
        else:
            run_strands(work, strands)
        return out

    def _pulled(
        self, parts: tuple[Any, ...], rows: Integers, weights: NDArray[Any], constant: float
    ) -> NDArray[Any]:
        def work(strand: slice) -> NDArray[Any]:
            out = np.zeros(self.size, dtype=weights.dtype)
            self._pull(*parts, rows[strand], weights[strand], constant, out)
            return out

        strands = self._strands(len(rows))
        if len(strands) == 1:
            return work(strands[0])
        first, *others = run_strands(work, strands)
        for other in others:
            first += other
        return first

    def _strands(self, count: int) -> list[slice]:
        """Two halves if they are long."""
        if count * self._density < _MANY:
            return [slice(0, count)]
        return [slice(0, count // 2), slice(count // 2, count)]


def _doubles(design: Design) -> Array:
    if design.dtype == np.float64 and hasattr(design, "X"):
        return np.asarray(design.X)
    return design.toarray()


# It pays to leave columns out if no more than this share of them occurs.
_SHARE = 0.6


def occurring_columns(problem: Problem) -> NDArray[np.intp] | None:
    """The columns with entries; None where leaving out the others would not pay."""
    design = problem.design
    is_alike = isinstance(problem.penalty.curvature, float) and problem.penalty.curvature > 0
    if not (isinstance(design, SparseDesign) and is_alike):
        return None
    d = problem.n_features
    if d < 1000 or design.nonzeros > 20 * d:  # likely that nearly all occur
        return None
    occurs = np.zeros(d, dtype=bool)
    occurs[design.rows_as_given.indices] = True
    found = np.flatnonzero(occurs)
    return found if len(found) <= _SHARE * d else None


def solve_on_columns(
    solve: Callable[[Problem, Options, Monitor], Solution],
    problem: Problem,
    columns: NDArray[np.intp],
    options: Options,
    monitor: Monitor,
) -> Solution:
    """Solve for the coefficients of these columns; all others are zero."""
    d = problem.n_features
    place = np.zeros(d, dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    assert isinstance(problem.design, SparseDesign)
    X = problem.design.rows_as_given
    few = sp.csr_array((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(columns)))

    def back(W: Array, b: Array) -> tuple[Array, Array]:
        whole = np.zeros((d, W.shape[1]))
        whole[columns] = W
        return whole, b

    if options.start is not None:
        options = replace(options, start=options.start[columns])
    smaller = replace(problem, design=SparseDesign(few))
    found = solve(smaller, options, seen_through(monitor, back))
    W, _ = back(found.coef, found.intercept)
    note = f"{counted(d - len(columns), 'column')} without entries left out: coefficients of zero"
    proof = _of_all(problem, found.certificate, W, found.coef)
    return replace(found, coef=W, proof=proof, notes=[*found.notes, note])


def _of_all(
    problem: Problem, proof: Certificate | None, W: Array, own: Array
) -> Certificate | None:
    """The proof of some coefficients, for all of them."""
    if proof is None:
        return None
    # Whoever checks it sums up all coefficients, and allows a unit of rounding for each.
    units = 1.01 * (problem.n_features - len(own)) * float(np.finfo(np.float64).eps)
    more = units * abs(problem.penalty.value(own))
    return replace(
        proof,
        coef=W,
        objective_rounding=proof.objective_rounding + more,
        gap=proof.gap + more,
    )
