"""A check of the multipliers that a solver returns, before they become a model.

The certificate of a support vector machine costs as much as predicting the training rows, and is
worked out when it is asked for. What implies a small gap costs little: with f = K beta at the rows,

- the multipliers lie in their box and keep the sums of their groups;
- no two of them can be moved against each other with a gain above the tolerance;
- f is K beta, at some rows that are computed afresh.

Prices and weights of any size are taken as far as double precision can hold what becomes of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.kernel import SupportVectorCertificate
from trueline.kernels import Array, KernelFunction, KernelSource, largest_exponent
from trueline.solvers import DualProgram, DualSolution, by_row, largest_score, levels

# Below so many rows single precision gains nothing that anybody would notice.
_FEW_ROWS = 3000
_SINGLE = float(np.finfo(np.float32).eps)
# Rows whose scores are computed afresh.
_SOME = 4
# Violations that the last digits of recomputed scores explain: of the tolerance, and of the scores.
_TIMES, _DIGITS = 2.0, 1e-6


class FoundMachine:
    """What a fit of a support vector machine finds."""

    #: Its name in certificates.
    _machine: str
    dual_coef_: Any
    intercept_: Array
    support_: NDArray[np.int32]
    support_vectors_: Any
    _n_support: NDArray[np.int32]
    classes_: NDArray[Any]
    class_weight_: Array


def judged(
    program: DualProgram, source: KernelSource, solution: DualSolution, tol: float
) -> DualSolution:
    """The solution, called unsolved if it is not what it claims to be."""
    if not solution.is_solved:
        return solution
    beta, scores = solution.beta, solution.scores
    excess = max(levels(program, beta, scores)[1], 0.0)
    excess += _off_scores(program, source, beta, scores)
    infeasible = _off_feasible(program, beta)
    if infeasible == 0.0 and excess <= _TIMES * tol:
        return solution
    size = 1.0 + float(np.abs(scores).max(initial=0.0)) + float(np.abs(program.target).max())
    excess += infeasible * size
    if excess <= _TIMES * tol + _DIGITS * size:
        return solution
    return replace(solution, is_solved=False, violation=excess)


def _off_feasible(program: DualProgram, beta: np.ndarray) -> float:
    """How far the multipliers are outside of their box or off their sums, relative to the box."""
    low, high = program.low, program.high
    off = float(np.maximum(low - beta, beta - high).max(initial=0.0))
    moved = beta - program.start
    for group in program.groups:
        total = float(np.abs(beta[group]).sum() + np.abs(program.start[group]).sum())
        off = max(off, abs(float(moved[group].sum())) - 1e-9 * total)
    return off / (float((high - low).max()) or 1.0) if off > 0 else 0.0


def _off_scores(
    program: DualProgram, source: KernelSource, beta: np.ndarray, scores: np.ndarray
) -> float:
    """How far the scores are from K beta at a few rows, beyond the rounding of their sums."""
    index = np.arange(0, source.n, -(-source.n // _SOME))
    rows = np.empty((len(index), source.n), dtype=source.dtype)
    source.rows(index, rows)
    own = by_row(program, beta, source.n)
    digits = 64 * float(np.finfo(source.dtype).eps)
    rounding = digits * (np.abs(rows) @ np.abs(own))
    return float(np.maximum(np.abs(rows @ own - scores[index]) - rounding, 0.0).max(initial=0.0))


# Squares of sums of multipliers must stay within doubles, with room for sums over rows.
_LARGEST, _SMALLEST = 1e290, 1e-290


def priced(C: float, class_weight: Array, weights: Array) -> Array:
    """C times the weights of the rows; infinite only if C is."""
    if math.isinf(C):
        return np.full(len(weights), np.inf)
    with np.errstate(over="ignore", under="ignore"):
        box = C * class_weight * weights
    if not np.isfinite(box).all() or (box == 0)[class_weight > 0].any():
        raise ValueError(
            f"C={C:.3g} times weights from {weights.min():.3g} to {weights.max():.3g} leaves the "
            "range of double precision. Divide the weights by their mean, and multiply C by it."
        )
    return box


def normalised(weights: Array, source: KernelSource) -> tuple[Array, float]:
    """Weights divided by the largest, up to a power of two, and that power."""
    power = int(np.frexp(weights.max())[1]) - 1
    with np.errstate(under="ignore"):
        units = np.ldexp(weights, -power)
    size, reach = np.ldexp(1.0, power), largest_score(source.diagonal())
    require_range(size * units, reach)
    if 0 < np.square(size * units.sum()) * reach < _SMALLEST:
        raise ValueError(
            f"Sample weights of {weights.max():.3g} make the objective smaller than double "
            "precision can hold. Divide them by their mean."
        )
    return units, float(size)


def require_range(beta: Array, reach: float) -> None:
    """Raise if ||f||^2 leaves the range of double precision, for kernel values up to ``reach``."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.square(np.abs(beta).sum()) * reach
    if not square < _LARGEST:
        raise ValueError(
            f"Multipliers up to {np.abs(beta).max():.3g} and kernel values up to {reach:.3g} make "
            "an objective beyond the range of double precision. Lower C, divide the sample weights "
            "by their mean, or scale the columns."
        )


@dataclass(frozen=True)
class PendingProof:
    """The training data and the statement, until the data have been looked at once more."""

    X: Any
    y: Any
    weights: NDArray[np.float64]
    claim: SupportVectorCertificate

    def certificate(self) -> SupportVectorCertificate:
        """The statement with its numbers."""
        from trueline.certificates.kernel import certify_support_vectors

        return certify_support_vectors(self.claim, self.X, self.y, self.weights)


def gamma_of(kernel: Any, gamma: Any, X: Any) -> float:
    """gamma as a number; "scale" is 1 / (d var(X))."""
    if callable(kernel) or kernel == "precomputed":
        return 0.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else float(X.var())
        return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    return float(gamma)


def precision_of(X: Any, function: KernelFunction, box: float, tol: float) -> Any:
    """Single precision for kernel values where it cannot be felt within tol.

    Scores are sums of kernel values times multipliers of up to ``box``; their errors add up
    like the square root of their number.
    """
    n = X.shape[0]
    if function.name != "rbf" or n <= _FEW_ROWS:
        return np.float64
    error = _SINGLE * (1.0 + largest_exponent(X, function)) * math.sqrt(n) * box
    return np.float32 if error <= 0.1 * tol else np.float64


def short_indices(X: Any) -> Any:
    """Sparse rows with places of 32 bits, which is how kernels count; anything else as it is."""
    if not sp.issparse(X) or X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    if max(X.nnz, X.shape[1]) > np.iinfo(np.int32).max:
        raise ValueError(
            f"X has {X.nnz:,} entries and {X.shape[1]:,} columns; support vector machines with "
            "kernels take up to 2,147,483,647 of either. Use LinearSVC or LinearSVR."
        )
    places = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, *places), shape=X.shape)
