r"""Leave-one-out for ridge regression in closed form, for all strengths at once.

Leaving row i out changes its residual r_i by the factor 1 / (1 - h_i), h_i the leverage:

    y_i - prediction without row i = r_i / (1 - h_i),
    h_i = s_i / W + sum_j Z_ij^2 / (e_j + alpha)

with Z, e of :mod:`trueline.solvers.least_squares.spectrum` and W the total weight (the first term
belongs to the intercept). For wide data both r_i and 1 - h_i are alpha times sums over U and 1 / (e
+ alpha), and alpha drops out of their ratio. R. D. Cook and S. Weisberg, "Residuals and Influence
in Regression" (1982).

For few strengths the kernel K = V V^T is not decomposed: r_i / (1 - h_i) is the ratio of the entry
i of (K + alpha)^{-1} y~ and the diagonal entry of that inverse, which costs two thirds of n^3
multiplications for each strength, and the eigenvectors ten times as many or more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from trueline.numerics.blas import run_strands
from trueline.problem import Problem
from trueline.solvers import LiftedKernel, Spectrum

Array = NDArray[np.float64]

# Strengths up to which inverses take less time than eigenvectors; of the trace of the kernel, the
# least strength that its rounding leaves alone.
_FEW_STRENGTHS, _RESOLVED = 6, 1e-9


def _block_errors(
    problem: Problem, spectrum: Spectrum, alphas: Array, rows: slice, Z: Array
) -> Array:
    """sqrt(s_i) times the leave-one-out errors of some rows, of shape (m, k, number of alphas)."""
    k, count = problem.n_targets, len(alphas)
    inverse = spectrum.inverse(alphas)
    shrunken = spectrum.projected[:, :, None] * inverse[:, None, :]
    fitted = (Z @ shrunken.reshape(len(inverse), k * count)).reshape(len(Z), k, count)
    leverage = np.square(Z) @ inverse
    if spectrum.rows is not None:
        # Both are the residual and 1 - h divided by alpha: nothing cancels when both are tiny.
        return fitted / np.maximum(leverage, np.finfo(float).tiny)[:, None, :]
    weights = None if problem.weights is None else problem.weights[rows]
    root = np.ones(len(Z)) if weights is None else np.sqrt(weights)
    if problem.fit_intercept:
        leverage += (root**2 / problem.total_weight)[:, None]
    centred = root[:, None] * (problem.target[rows] - spectrum.y_mean)
    left = 1.0 - leverage
    # A row that determines itself cannot be predicted by the others; rounding decides its sign.
    np.maximum(left, 16 * np.finfo(float).eps, out=left)
    np.subtract(centred[:, :, None], fitted, out=fitted)
    fitted /= left[:, None, :]
    return fitted


def leave_one_out_errors(problem: Problem, spectrum: Spectrum, alphas: Array) -> Array:
    """All errors, times the root of the weights: shape (n, k, number of alphas)."""
    out = np.empty((problem.n_samples, problem.n_targets, len(alphas)))
    for rows, Z in spectrum.blocks(problem):
        out[rows] = _block_errors(problem, spectrum, alphas, rows, Z)
    return out


def errors_by_inverses(problem: Problem, alphas: Array) -> Array | None:
    """As :func:`leave_one_out_errors`, for few strengths of wide data; None if these are not."""
    n, d = problem.design.shape
    if n > d or len(alphas) > _FEW_STRENGTHS:
        return None
    known = LiftedKernel.of(problem)
    if not float(alphas.min()) > _RESOLVED * (float(np.trace(known.kernel)) - known.lift):
        return None
    out = np.empty((n, problem.n_targets, len(alphas)))
    for place, alpha in enumerate(alphas):
        # The transpose of a symmetric matrix in rows is the one in columns that LAPACK takes.
        system = (known.kernel + alpha * np.eye(n)).T
        factor, failed = dpotrf(system, overwrite_a=True)
        if failed:
            return None
        solved, _ = dpotrs(factor, known.target)
        inverse, _ = dtrtri(factor, overwrite_c=True)
        diagonal = np.einsum("ij,ij->i", inverse, inverse)
        if known.lift:
            diagonal -= known.lifted**2 / (known.lift + alpha)
        out[:, :, place] = solved / np.maximum(diagonal, np.finfo(float).tiny)[:, None]
    return out


def leave_one_out_squares(problem: Problem, spectrum: Spectrum, alphas: Array) -> Array:
    """Sums of weighted squared errors over the rows, of shape (k, number of alphas)."""

    def work(strand: tuple[int, int]) -> Array:
        total = np.zeros((problem.n_targets, len(alphas)))
        part = _rows_of(problem, *strand)
        for rows, Z in spectrum.blocks(part):
            errors = _block_errors(part, spectrum, alphas, rows, Z)
            total += np.einsum("ika,ika->ka", errors, errors)
        return total

    n = problem.n_samples
    is_small = n * problem.n_features < 1_000_000
    if spectrum.rows is not None or is_small or problem.design.is_sequential:
        return work((0, n))
    cuts = np.linspace(0, n, 5).astype(int)
    strands = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    return np.sum(run_strands(work, strands), axis=0)


def _rows_of(problem: Problem, start: int, stop: int) -> Problem:
    if (start, stop) == (0, problem.n_samples):
        return problem
    return _Part(problem, start, stop)  # type: ignore[return-value]


class _Part:
    """Some consecutive rows of a problem, with the total weight of the whole."""

    def __init__(self, problem: Problem, start: int, stop: int) -> None:
        where = slice(start, stop)
        self.design = problem.design.take(where)
        self.target = problem.target[where]
        self.weights = None if problem.weights is None else problem.weights[where]
        self.fit_intercept = problem.fit_intercept
        self.total_weight = problem.total_weight
        self.n_samples = stop - start
        self.n_targets, self.n_features = problem.n_targets, problem.n_features
