r"""Certificates of Gaussian processes: the claims of a fit, with room for their rounding.

The matrix and its derivatives come from the kernel itself; with an approximate inverse M and
R = I - K M, ||R|| <= rho < 1,

    K^{-1} = M + K^{-1} R,       || K^{-1} R ||_F <= ||M||_2 ||R||_F / (1 - rho),
    | tr(K^{-1} D) - tr(M D) |  <=  ||R||_F ||D M||_F / (1 - rho).

How far kernel values may be from their formulas in exact arithmetic is estimated generously: a
few units for each column and each operation, relative to the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from trueline.certificates.kernel import KernelCertificate

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK = 400


def certify_process(
    kernel: Any,
    X: Any,
    Y: Array,
    noise: Array,
    coef: Array,
    value: float,
    is_local: bool,
    level: Array,
    scale: Array,
) -> KernelCertificate:
    """What holds of a fit whose log marginal likelihood was found to be ``value``."""
    found = _likelihood_level(kernel, X, Y, noise, coef, is_local)
    slope = math.inf
    if is_local:
        slope = _free_slope(found.slopes, found.slope_rounding, kernel.theta, kernel.bounds)
        slope = 1.01 * slope + 1e-12 if math.isfinite(slope) else math.inf
    rounding, k = 2 * (found.value_rounding + abs(found.value - value)), Y.shape[1]
    return KernelCertificate(
        kind="stationary point" if is_local else "given parameters",
        objective=-value,
        objective_rounding=rounding + 1e-290 if math.isfinite(rounding) else math.inf,
        gap=math.inf,
        residual=1.25 * found.residual + 1e-290,
        slope=slope,
        kernel=kernel,
        coef=coef,
        witness={
            "noise": np.array(noise, dtype=np.float64),
            "level": np.array(np.broadcast_to(level, k), dtype=np.float64),
            "scale": np.array(np.broadcast_to(scale, k), dtype=np.float64),
        },
    )


class _Level(NamedTuple):
    """Likelihood, slopes and residual at given parameters, with bounds on their rounding."""

    value: float
    value_rounding: float
    slopes: Array
    slope_rounding: Array
    residual: float


def kernel_units(kernel: Any, X: Any) -> float:
    """Units of rounding in a value of the kernel, relative to the diagonal."""
    inner = [getattr(kernel, name, None) for name in ("k1", "k2", "kernel")]
    total = 16.0 + sum(kernel_units(part, X) for part in inner if part is not None)
    name = type(kernel).__name__
    if name == "Exponentiation":
        return total * max(1.0, float(kernel.exponent))
    if name not in ("RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct"):
        return total
    rows = np.asarray(X, dtype=np.float64)
    largest = np.abs(rows).max(axis=0)
    total += 4.0 * rows.shape[1]
    if name == "DotProduct":
        return total
    # Rows are divided by their length scales before their differences are taken.
    total += 8 * float(np.linalg.norm(largest / np.asarray(kernel.length_scale)))
    if name == "RationalQuadratic":
        total += 8 * float(kernel.alpha)  # (1 + t)^-alpha
    if name == "ExpSineSquared":
        turns = float(np.linalg.norm(largest)) / float(kernel.periodicity)
        total += (64 + 64 * np.pi * turns) * (1 + 8 / float(kernel.length_scale) ** 2)
    return total


@np.errstate(all="ignore")  # what is not finite is claimed to be so
def _likelihood_level(
    kernel: Any, X: Any, Y: Array, noise: Array, coef: Array, with_slopes: bool
) -> _Level:
    """Recompute everything from the kernel and the data."""
    p = kernel.n_dims if with_slopes else 0
    K = np.array(kernel(X), dtype=np.float64)
    n, k = Y.shape
    K.flat[:: n + 1] += noise
    size, own = np.sqrt(np.diag(K)), kernel_units(kernel, X) * _EPS
    unit = own + n * _EPS
    left = _residual(K, Y, coef, own + n * float(np.finfo(np.longdouble).eps), size)
    residual = float(left.max()) / (float(np.abs(Y).max()) or 1.0)
    try:
        L = linalg.cholesky(K, lower=True, check_finite=False)
    except linalg.LinAlgError:  # definite up to rounding: nothing is known of its determinant
        return _Level(0.0, math.inf, np.zeros(p), np.full(p, math.inf), residual)
    M = linalg.cho_solve((L, True), np.eye(n), check_finite=False)
    M = 0.5 * (M + M.T)
    rough = unit * float(np.abs(M).dot(size).dot(size))  # sum |M_ij| E_ij
    defect = np.abs(np.eye(n) - K @ M) + 2 * unit * np.outer(size, size @ np.abs(M))
    rho = float(np.linalg.norm(defect))
    safe = 1.0 / (1.0 - rho) if rho < 0.25 else math.inf
    # Both the root of the sum of squares and the largest sum of a row are above the spectral norm.
    reach = float(min(np.linalg.norm(M), np.abs(M).sum(axis=0).max())) * safe
    fit = float((Y * coef).sum())
    # y.K^{-1} y = y.a + a.r + r.K^{-1} r for the residual r.
    fit_error = float((np.abs(coef) * left).sum()) + reach * float((left**2).sum())
    fit_error += 2 * n * k * _EPS * float(np.abs(Y * coef).sum())
    logs = np.log(np.diag(L))
    logdet = 2 * float(logs.sum())
    logdet_error = 2 * rough + 4 * (rho * safe) ** 2 + 8 * n * _EPS * float(np.abs(logs).sum())
    value = -0.5 * (fit + k * logdet + k * n * math.log(2 * math.pi))
    rounding = 0.5 * (fit_error + k * logdet_error) + 32 * _EPS * (abs(value) + k * n)
    if not with_slopes or p == 0:
        return _Level(value, rounding, np.empty(0), np.empty(0), residual)
    weight = coef @ coef.T - k * M
    slopes, norms, products, turned = _slopes(kernel, X, weight, M, coef, p)
    off = reach * np.linalg.norm(left, axis=0)
    length = np.linalg.norm(coef, axis=0)
    bulk = float(np.linalg.norm(np.abs(coef) @ np.abs(coef).T + k * np.abs(M)))
    norm_K = float(np.linalg.norm(K))
    error = 0.5 * k * rho * safe * (products + unit * norm_K * float(np.linalg.norm(M)))
    # a is meant to be a + K^{-1} r, which changes a.D a by 2 (K^{-1} D a).r, and to second order.
    error += 1.1 * np.array([float((np.abs(M @ Da) * left).sum()) for Da in turned])
    error += 2 * norms * float((off**2 + (rho + unit * reach * norm_K) * off * length).sum())
    error += 2 * unit * bulk * (norms + norm_K)
    return _Level(value, rounding, slopes, error, residual)


def _residual(K: Array, Y: Array, coef: Array, unit: float, size: Array) -> Array:
    """|Y - K coef|, on the safe side, summed in the longest floating point numbers there are."""
    long = coef.astype(np.longdouble)
    out = np.empty(Y.shape)
    carried = unit * size[:, None] * (size @ np.abs(coef))
    for start in range(0, len(K), _BLOCK):
        rows = slice(start, start + _BLOCK)
        left = Y[rows].astype(np.longdouble) - K[rows].astype(np.longdouble) @ long
        out[rows] = np.abs(left).astype(np.float64) + carried[rows] + 8 * _EPS * np.abs(Y[rows])
    return out


def _slopes(
    kernel: Any, X: Any, weight: Array, M: Array, coef: Array, p: int
) -> tuple[Array, Array, Array, Array]:
    """1/2 sum weight dK, ||dK||_F, ||dK M||_F and dK a for every parameter, block by block."""
    n = len(weight)
    turned = np.zeros((p, *coef.shape))
    slopes, square, products = np.zeros(p), np.zeros(p), np.zeros(p)
    for rows, block in _derivatives(kernel, X, n):
        for j in range(p):
            part = block[j]
            slopes[j] += 0.5 * float((weight[rows] * part).sum())
            square[j] += float((part**2).sum())
            products[j] += float(((part @ M) ** 2).sum())
            turned[j, rows] = part @ coef
    return slopes, np.sqrt(square), np.sqrt(products), turned


def _derivatives(kernel: Any, X: Any, n: int) -> Iterator[tuple[slice, list[Array]]]:
    """Rows of dK / d theta; kernels give them for square blocks alone, so pairs of blocks are put
    together.
    """
    starts = range(0, n, _BLOCK)
    for start in starts:
        mine = np.arange(start, min(start + _BLOCK, n))
        rows: list[Array] = []
        for other in starts:
            theirs = np.arange(other, min(other + _BLOCK, n))
            both = mine if other == start else np.concatenate([mine, theirs])
            some = X[both] if isinstance(X, np.ndarray) else [X[i] for i in both]
            gradient = np.asarray(kernel(some, eval_gradient=True)[1], dtype=np.float64)
            m = len(mine)
            part = gradient if other == start else gradient[:m, m:]
            if not rows:
                rows = [np.empty((m, n)) for _ in range(gradient.shape[2])]
            for j, row in enumerate(rows):
                row[:, theirs] = part[:, :, j]
        yield slice(int(mine[0]), int(mine[-1]) + 1), rows


def _free_slope(slopes: Array, rounding: Array, theta: Array, bounds: Array) -> float:
    """The largest slope that could be followed upwards without leaving the bounds."""
    # A parameter this close to its bound counts as on it.
    up = np.where(theta < bounds[:, 1] - 1e-9, slopes + rounding, 0.0)
    down = np.where(theta > bounds[:, 0] + 1e-9, rounding - slopes, 0.0)
    return float(np.maximum(up, down).max(initial=0.0))
