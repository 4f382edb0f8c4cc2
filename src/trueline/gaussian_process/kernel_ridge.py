"""Kernel ridge regression: its equations, all strengths at once, and leave-one-out.

Minimised over the functions f = sum_j c_j k(x_j, .) of the kernel's space is

    1/2 sum_i s_i (y_i - f(x_i))^2 + alpha/2 |f|^2,        |f|^2 = c^T K c,

by the solution of (K + alpha S^{-1}) c = y. With S^{1/2} K S^{1/2} = Q diag(e) Q^T,

    c(alpha) = S^{1/2} Q [ (Q^T S^{1/2} y) / (e + alpha) ],

and with g_i the diagonal of (K + alpha S^{-1})^{-1} the prediction of row i from all others is
y_i - c_i / g_i (O. Dubrule, "Cross validation of kriging in a unique neighborhood", Math. Geol. 15
(1983) 687-699).

The matrix X X^T of the linear kernel need not be formed where X has few columns: with H = X^T S X,

    (X X^T + alpha S^{-1})^{-1} r = S (r - X (H + alpha)^{-1} X^T S r) / alpha

(M. A. Woodbury, "Inverting modified matrices", 1950), refined with residuals of the equations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

from trueline.certificates.kernel import (
    KernelCertificate,
    is_definite,
    score_error,
)

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 64


@dataclass(frozen=True)
class LinearKernel:
    """The kernel matrix X X^T of rows with few columns, as its products with vectors."""

    X: Array

    def __matmul__(self, c: Array) -> Array:
        return np.asarray(self.X @ (self.X.T @ c))

    def solve(self, Y: Array, alpha: Array, s: Array | None) -> Array:
        """Dual coefficients, with two steps of refinement."""
        weights = np.ones((len(Y), 1)) if s is None else s[:, None]
        gram = self.X.T @ (weights * self.X)
        c = np.zeros(Y.shape)
        for t, strength in enumerate(np.broadcast_to(alpha, Y.shape[1])):
            factor = linalg.cho_factor(gram + strength * np.eye(len(gram)))
            own = c[:, [t]]
            for _ in range(3):
                left = weights * (Y[:, [t]] - self @ own) - strength * own
                shrunk = self.X @ linalg.cho_solve(factor, self.X.T @ left)
                own += (left - weights * shrunk) / strength
            c[:, [t]] = own
        return c


def solve_equations(
    K: Array | LinearKernel,
    Y: Array,
    alpha: Array,
    s: Array | None,
    *,
    with_diagonal: bool = False,
) -> tuple[Array, Array | None, str]:
    """Dual coefficients, the diagonal of the inverse (shape (n, 1) or (n, k)), and how.

    Parameters
    ----------
    K : array of shape (n, n), or LinearKernel
    Y : array of shape (n, k)
    alpha : array of shape (1,) or (k,)
    s : array of shape (n,), optional
        Positive weights.
    with_diagonal : bool, default=False
        Where the diagonal does not come by itself, it costs as much as the coefficients.
    """
    if isinstance(K, LinearKernel):
        return K.solve(Y, alpha, s), None, "Cholesky of X'X + alpha, for the kernel is linear"
    if len(alpha) > 1 and (alpha != alpha[0]).any():
        rotated = Rotated.of(K, Y, s)
        c, g = rotated.solve(alpha)
        return c, g, "one eigendecomposition for all strengths"
    strength = alpha[0] if s is None else alpha[0] / s
    system = K.copy()
    system.flat[:: len(K) + 1] += strength
    factor, failed = lapack.dpotrf(system.T, lower=0, clean=0, overwrite_a=1)
    if not failed:
        c = lapack.dpotrs(factor, np.asfortranarray(Y), lower=0)[0]
        left = Y - K @ c - np.reshape(strength, (-1, 1)) * c
        c = c + lapack.dpotrs(factor, np.asfortranarray(left), lower=0)[0]
        if not with_diagonal:
            return c, None, "Cholesky"
        root = np.triu(lapack.dtrtri(factor, lower=0, overwrite_c=1)[0])
        return c, np.einsum("ij,ij->i", root, root)[:, None], "Cholesky"
    system = 0.5 * (K + K.T)
    system.flat[:: len(K) + 1] += strength
    values, Q = linalg.eigh(system)
    good = np.abs(values) > len(values) * _EPS * np.abs(values).max(initial=0.0)
    scaled = Q[:, good] / values[good]
    c = scaled @ (Q[:, good].T @ Y)
    diagonal = np.einsum("ij,ij->i", scaled, Q[:, good])[:, None]
    kind = "indefinite" if (values < 0).any() and good.all() else "singular"
    return c, diagonal, f"eigenvectors, for the system is {kind}"


@dataclass(frozen=True)
class Rotated:
    """A kernel matrix in its eigenvectors: every strength costs two products."""

    values: Array
    vectors: Array
    along: Array
    root: Array

    @classmethod
    def of(cls, K: Array, Y: Array, s: Array | None) -> Rotated:
        """Decompose once."""
        root = np.ones(len(K)) if s is None else np.sqrt(s)
        values, Q = linalg.eigh(root[:, None] * K * root, check_finite=False)
        return cls(values, Q, Q.T @ (root[:, None] * Y), root)

    def solve(self, alpha: Array) -> tuple[Array, Array]:
        """Dual coefficients and diagonal of the inverse, of shapes (n, k), one strength each."""
        level = self.values[:, None] + np.broadcast_to(alpha, self.along.shape[1])
        small = np.abs(level) <= len(level) * _EPS * np.abs(self.values).max(initial=0.0)
        with np.errstate(divide="ignore"):
            inverse = np.where(small, 0.0, 1.0 / level)
        c = self.root[:, None] * (self.vectors @ (self.along * inverse))
        return c, (self.root**2)[:, None] * ((self.vectors**2) @ inverse)


@dataclass(frozen=True)
class KernelRidgePath:
    """Kernel ridge regression for many strengths.

    Attributes
    ----------
    alphas : array of shape (a,)
    dual_coef : array of shape (a, n) or (a, n, k)
    loo_predictions : arrays of the same shape
        Of every row from all others.
    loo_errors : array of shape (a,) or (a, k)
        Mean squared errors of these, weighted.
    """

    alphas: Array
    dual_coef: Array
    loo_predictions: Array
    loo_errors: Array

    @property
    def best_alpha(self) -> Any:
        """The strength with the smallest leave-one-out error, for each target."""
        best = np.argmin(self.loo_errors, axis=0)
        return self.alphas[best] if np.ndim(best) else float(self.alphas[best])


@dataclass(frozen=True)
class Undecided:
    """A certificate whose gap holds if the kernel matrix has no negative eigenvalue.

    Attributes
    ----------
    certificate : KernelCertificate
    square, slope : float
        sum s c^2, and sum s |y - f| |c| + alpha c^2: what a number on the diagonal of the matrix
        changes.
    error : float
        Norm of the errors of the kernel values.
    """

    certificate: KernelCertificate
    square: float
    slope: float
    error: float

    def decided(self, K: Array) -> KernelCertificate:
        """With the eigenvalues of the matrix looked at: rounding is allowed for, no more."""
        size = float(np.linalg.norm(K))
        lowest = float(linalg.eigvalsh(0.5 * (K + K.T))[0])
        shift = 16 * len(K) * _EPS * size + 2 * max(-lowest, 0.0) + 2 * self.error
        if not shift <= 1e-10 * size:
            return replace(self.certificate, gap=math.inf)
        rounding = self.certificate.objective_rounding
        rounding += 2 * shift * self.slope + 2 * shift**2 * self.square
        root = math.sqrt(2 * self.certificate.gap) + shift * math.sqrt(self.square)
        return replace(self.certificate, gap=0.51 * root**2, objective_rounding=rounding)


def _carried(K: Array | LinearKernel, size: Array) -> Array:
    """At least |K| size."""
    if isinstance(K, LinearKernel):
        magnitudes = np.abs(K.X)
        return np.asarray(magnitudes @ (magnitudes.T @ size))
    # Block by block: magnitudes of the whole matrix would fill the memory once more.
    parts = np.array_split(K, max(1, len(K) // _BLOCK_ROWS))
    return np.concatenate([np.abs(part) @ size for part in parts])


def certify_equations(
    recipe: dict[str, Any],
    X: Any,
    K: Array | LinearKernel,
    Y: Array,
    s: Array | None,
    alpha: Array,
    c: Array,
) -> KernelCertificate | Undecided:
    """Objective, residual and gap, with room for the rounding of whoever checks them.

    The gap is undecided where the formula of the kernel does not say that it is positive
    semi-definite.
    """
    n, k = Y.shape
    weights = np.ones((n, 1)) if s is None else s[:, None]
    alpha = np.broadcast_to(alpha, k)
    f = K @ c
    units = 4 * (n + 24) * _EPS
    carried = _carried(K, np.abs(c))
    error = units * carried + score_error(recipe, X, np.abs(c).sum(axis=0), carried)
    left = np.abs(Y - f - alpha * c / weights) + 2 * error
    left = left + units * (np.abs(Y) + np.abs(f) + np.abs(alpha * c / weights))
    miss = np.abs(Y - f)
    objective = 0.5 * float((weights * miss**2).sum() + (alpha * (c * f).sum(axis=0)).sum())
    rounding = float((weights * (miss * error + error**2)).sum())
    rounding += float((alpha * (np.abs(c) * (error + units * np.abs(f))).sum(axis=0)).sum())
    rounding += units * float((weights * miss**2).sum())
    gap = float((weights * left**2).sum()) * (0.5 + 1e-6)
    largest = float(np.abs(Y).max(initial=0.0)) or 1.0
    certificate = KernelCertificate(
        kind="kernel equations",
        objective=objective,
        objective_rounding=4 * rounding + 1e-290,
        gap=gap + 1e-290,
        residual=2 * float((left + 2 * error).max(initial=0.0)) / largest + 1e-290,
        slope=0.0,
        kernel=recipe,
        coef=c,
        witness={"alpha": np.array(alpha)},
    )
    if isinstance(K, LinearKernel) or is_definite(recipe):
        return certificate
    slope = float((weights * miss * np.abs(c)).sum() + (alpha * c**2).sum())
    each = score_error(recipe, X, np.ones(1), np.abs(K).max(axis=1)[:, None])
    error = math.sqrt(n) * float(np.linalg.norm(each))
    return Undecided(certificate, float((weights * c**2).sum()), slope, error)
