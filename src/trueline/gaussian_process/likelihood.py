"""The log marginal likelihood of a Gaussian process, its gradient, and its average information.

With K = k(X, X) + diag(noise), a_t = K^{-1} y_t for each of k targets and M = sum_t a_t a_t^T - k
K^{-1},

    L            = - 1/2 sum_t y_t.a_t - k/2 log |K| - k n/2 log(2 pi)
    dL / dtheta_j = 1/2 sum_ab M_ab (dK / dtheta_j)_ab

(C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006,
equations 2.30 and 5.9). The derivatives of K are summed up pair by pair and never stored: one
matrix of n x n is all that is kept. For one target the average of observed and expected
information, without terms in second derivatives that vanish on average, is

    A_jl = 1/2 q_j^T K^{-1} q_l,        q_j = (dK / dtheta_j) a

which costs no more than products with vectors (A. R. Gilmour, R. Thompson, B. R. Cullis, "Average
information REML", Biometrics 51 (1995) 1440-1450).

Rows that repeat others are equations too many without noise, and contradictions with little of it:
they are looked for and said.
"""

from __future__ import annotations

import math
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from sklearn.exceptions import ConvergenceWarning

from trueline.gaussian_process.covariance import covariance, gradients
from trueline.gaussian_process.structure import Structure
from trueline.numerics.blas import single_threaded_blas
from trueline.trace import Trace

Array = NDArray[np.float64]

_SMALL = 400


def add_evaluation(trace: Trace, theta: Array, value: float) -> None:
    """One more evaluation: minus the likelihood as the objective, theta as the weights."""
    number = len(trace) + 1
    trace.record(iteration=number, objective=-float(value))
    trace.keep(number, np.reshape(theta, (-1, 1)), np.zeros(1))


class Likelihood:
    """The likelihood of a kernel that is known by formula, as a function of theta.

    Parameters
    ----------
    structure : Structure
    X : array of shape (n, d)
    Y : array of shape (n, k)
    noise : array of shape (n,) or float
        Added to the diagonal.
    trace : Trace, optional
        Receives theta and minus the likelihood of every evaluation.
    """

    def __init__(
        self, structure: Structure, X: Array, Y: Array, noise: Any, trace: Trace | None = None
    ) -> None:
        self.trace = Trace() if trace is None else trace
        self.structure = structure
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        self.Y = np.asfortranarray(Y, dtype=np.float64)
        self.noise = np.broadcast_to(np.asarray(noise, dtype=np.float64), len(X))
        self.evaluations = 0
        self._matrix: Array | None = None
        self._theta = np.empty(0)
        self._alpha = np.empty((0, 0))

    def _threads(self) -> AbstractContextManager[None]:
        """One thread for small matrices: several would spend their time waiting for each other."""
        return single_threaded_blas() if len(self.X) <= _SMALL else nullcontext()

    def value(self, theta: Array) -> float:
        """L, minus infinity where K is not positive definite; the factor is kept for the slope."""
        with self._threads():
            value = self._value(theta)
        add_evaluation(self.trace, theta, value)
        return value

    def _value(self, theta: Array) -> float:
        n, k = self.Y.shape
        if self._matrix is None:
            self._matrix = np.empty((n, n))
        K = self._matrix
        self.evaluations += 1
        self._theta = np.array(theta, dtype=np.float64)
        covariance(self.structure, self._theta, self.X, self.noise, K)
        # The rows of the lower triangle are the columns of Fortran's upper one.
        factor, failed = lapack.dpotrf(K.T, lower=0, clean=0, overwrite_a=1)
        logdet = 2.0 * float(np.log(np.einsum("ii->i", K)).sum()) if failed == 0 else math.nan
        if failed or not math.isfinite(logdet):
            self._theta = np.empty(0)
            return -math.inf
        self._alpha = lapack.dpotrs(factor, self.Y, lower=0)[0]
        fit = float(np.einsum("ij,ij->", self.Y, self._alpha))
        return -0.5 * (fit + k * logdet + k * n * math.log(2 * math.pi))

    def slope(self, with_information: bool = False) -> tuple[Array, Array]:
        """Gradient and average information where the value was last evaluated."""
        with self._threads():
            return self._slope(with_information)

    def _slope(self, with_information: bool) -> tuple[Array, Array]:
        K = self._matrix
        assert K is not None
        assert len(self._theta)
        k = self.Y.shape[1]
        inverse, failed = lapack.dpotri(K.T, lower=0, overwrite_c=1)
        assert failed == 0
        weight = blas.dsyrk(1.0, self._alpha, beta=-float(k), c=inverse, lower=0, overwrite_c=1)
        theta, self._theta = self._theta, np.empty(0)  # the factor is gone
        vector = self._alpha[:, 0] if with_information else None
        sums, products = gradients(self.structure, theta, self.X, None, weight.T, vector)
        if vector is None:
            return 0.5 * sums, np.empty((0, 0))
        q = np.asfortranarray(products.T)
        along = products @ vector
        # K^{-1} = a a^T - M.
        pulled = blas.dsymm(1.0, weight, q, lower=0)
        information = 0.5 * (np.outer(along, along) - products @ pulled)
        return 0.5 * sums, 0.5 * (information + information.T)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """L and its gradient; zero where L is minus infinity."""
        value = self.value(theta)
        if value == -math.inf:
            return value, np.zeros(len(theta))
        return value, self.slope()[0]


def generic_likelihood(
    kernel: Any, X: Any, Y: Array, noise: Any, with_gradient: bool
) -> tuple[float, Array]:
    """L and its gradient for any kernel, by the kernel's own matrix and derivatives."""
    if with_gradient:
        K, dK = kernel(X, eval_gradient=True)
    else:
        K, dK = kernel(X), np.empty((0, 0, 0))
    K = np.array(K, dtype=np.float64, order="C")
    n, k = Y.shape
    nothing = np.zeros(dK.shape[2])
    K.flat[:: n + 1] += noise
    factor, failed = lapack.dpotrf(K.T, lower=0, clean=0, overwrite_a=1)
    diagonal = np.einsum("ii->i", factor)
    if failed or not (np.isfinite(diagonal).all() and (diagonal > 0).all()):
        return -math.inf, nothing
    alpha = lapack.dpotrs(factor, np.asfortranarray(Y), lower=0)[0]
    value = -0.5 * float(np.einsum("ij,ij->", Y, alpha))
    value -= k * float(np.log(diagonal).sum()) + 0.5 * k * n * math.log(2 * math.pi)
    if not with_gradient:
        return value, nothing
    inverse = lapack.dpotri(factor, lower=0, overwrite_c=1)[0]
    upper = np.triu(inverse)
    weight = alpha @ alpha.T - k * (upper + np.triu(upper, 1).T)
    return value, 0.5 * np.einsum("ij,ijk->k", weight, dK, optimize=True)


# Squared differences of targets of equal rows, relative to the noise, that no noise explains.
_BEYOND_NOISE = 1e6


def repeated_rows(X: Any) -> str:
    """A hint, if rows of X are repeated."""
    if not _are_numbers(X):
        return ""
    different = len(np.unique(X, axis=0))
    if different == len(X):
        return ""
    return (
        f" {len(X) - different} of {len(X)} rows of X repeat others, which without noise is "
        "one equation too many each: add a WhiteKernel, or average their targets."
    )


def _are_numbers(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiu"


def warn_of_contradictions(
    X: Any, Y: NDArray[np.float64], kernel: Any, noise: NDArray[np.float64], unit: float
) -> None:
    """Equal rows with different targets, and no noise that could explain them.

    Parameters
    ----------
    X : array of shape (n, d), or a list of what the kernel compares
    Y : array of shape (n, k)
        In units of ``unit``.
    kernel : Kernel
    noise : array of shape (n,)
        Variances beside those of the kernel.
    unit : float
    """
    if not _are_numbers(X):
        return
    order = np.lexsort([*Y.T[:1], *X.T])
    first, second = order[:-1], order[1:]
    apart = np.abs(Y[second] - Y[first]).max(axis=1) * (X[first] == X[second]).all(axis=1)
    if not apart.any():
        return
    worst = int(apart.argmax())
    i, j = sorted((int(first[worst]), int(second[worst])))
    own, shared = kernel.diag(X[[i]])[0], kernel(X[[i]], X[[j]])[0, 0]
    variance = float(own - shared + max(noise[i], noise[j]))
    difference = float(apart[worst])
    if difference**2 > _BEYOND_NOISE * max(variance, 0.0):
        warnings.warn(
            f"Rows {i} and {j} of X are equal, and their targets differ by "
            f"{difference * unit:.3g}, which noise of variance {variance * unit**2:.3g} does not "
            "explain: the fit means little. Add a WhiteKernel() to the kernel, or raise alpha.",
            ConvergenceWarning,
            stacklevel=3,
        )
