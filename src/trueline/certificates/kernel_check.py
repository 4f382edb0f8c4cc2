r"""The checker of kernel methods: matrix, residual, likelihood and slopes from the data.

Plain NumPy and SciPy, and the kernel's own ``__call__``; nothing is shared with what computed the
fit. Statements are about the matrices K and dK that the kernel evaluates to. Rounding beyond that
is bounded: with an approximate inverse M and the computed residuals R = I - K M, ||R|| <= rho < 1,

    K^{-1} = M + K^{-1} R,       || K^{-1} R ||_F <= ||M||_2 ||R||_F / (1 - rho),
    | tr(K^{-1} D) - tr(M D) |  <=  ||R||_F ||D M||_F / (1 - rho),

and log |K| errs by at most n (n + 16) eps sum_ij |M_ij| sqrt(K_ii K_jj), from the backward error of
Cholesky's factorisation (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., theorem
10.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from trueline.certificates.checking import Check, Verification
from trueline.certificates.kernel import KernelCertificate

__all__ = ["Level", "likelihood_level", "verify_kernel"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK = 400


def verify_kernel(
    certificate: KernelCertificate, X: Any, y: Any, sample_weight: Any = None
) -> Verification:
    """Check a certificate of a kernel method against the data it is about."""
    target = np.asarray(y, dtype=np.float64)
    target = target.reshape(-1, 1) if target.ndim == 1 else target
    n, k = certificate.coef.shape
    fits = len(target) == n and target.shape[1] == k and _length(X) == n
    finite = bool(fits and np.isfinite(target).all() and np.isfinite(certificate.coef).all())
    shape = Check("data fit the model", f"{n} rows, {k} targets", "yes" if finite else "no", finite)
    if not finite:
        return Verification((shape,))
    known = {
        "kernel equations": _check_equations,
        "stationary point": _check_process,
        "given parameters": _check_process,
        "evidence bounds": _check_bounds,
    }
    if certificate.kind not in known:
        return Verification((shape, Check("kind of proof", certificate.kind, "unknown", False)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return Verification(
            (shape, *known[certificate.kind](certificate, X, target, sample_weight))
        )


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


# --- kernel ridge regression --------------------------------------------------------------------


def _check_equations(
    certificate: KernelCertificate, X: Any, y: Array, sample_weight: Any
) -> list[Check]:
    """Objective and gap of kernel ridge regression."""
    from sklearn.metrics.pairwise import pairwise_kernels

    recipe = dict(certificate.kernel)
    alpha = np.atleast_1d(np.asarray(certificate.witness["alpha"], dtype=np.float64))
    n, k = certificate.coef.shape
    s = (
        np.ones(n)
        if sample_weight is None
        else np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)
    )
    rows = s > 0
    idle = bool((certificate.coef[~rows] == 0).all())
    K = np.asarray(pairwise_kernels(X, filter_params=True, **recipe), dtype=np.float64)
    K, y, s, a = K[np.ix_(rows, rows)], y[rows], s[rows, None], certificate.coef[rows]
    alpha = np.broadcast_to(alpha, k)
    f = K @ a
    units = (len(K) + 8) * _EPS
    error = units * (np.abs(K) @ np.abs(a))
    left = y - f - alpha * a / s
    size = error + 8 * _EPS * (np.abs(y) + np.abs(alpha * a / s))
    objective = 0.5 * float((s * (y - f) ** 2).sum()) + 0.5 * float((alpha * (a * f).sum(0)).sum())
    slack = float((s * np.abs(y - f) * error).sum() + 0.5 * (s * error**2).sum())
    slack += 0.5 * float((alpha * (np.abs(a) * error).sum(0)).sum())
    slack += (
        2 * units * float((s * (y - f) ** 2).sum() + (alpha * (np.abs(a) * np.abs(f)).sum(0)).sum())
    )
    gap = 0.5 * float((s * (np.abs(left) + size) ** 2).sum()) * (1 + units)
    largest = float(np.abs(y).max(initial=0.0)) or 1.0
    residual = float((np.abs(left) + size).max(initial=0.0)) / largest
    return [
        Check("rows of weight zero", "not used", "not used" if idle else "used", idle),
        Check(
            "objective",
            f"{certificate.objective:.12g} within {certificate.objective_rounding:.2g}",
            f"{objective:.12g} within {slack:.2g}",
            abs(objective - certificate.objective) + slack <= certificate.objective_rounding,
        ),
        Check(
            "residual of the equations",
            f"<= {certificate.residual:.3g}",
            f"{residual:.3g}",
            residual <= certificate.residual,
        ),
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap),
    ]


# --- Gaussian processes -------------------------------------------------------------------------


class Level(NamedTuple):
    """Likelihood, slopes and residual at given parameters, with bounds on their rounding."""

    value: float
    value_rounding: float
    slopes: Array
    slope_rounding: Array
    residual: float
    is_definite: bool


def _undefined(p: int) -> Level:
    return Level(-math.inf, math.inf, np.full(p, np.nan), np.full(p, np.inf), math.inf, False)


def likelihood_level(
    kernel: Any, X: Any, Y: Array, noise: Array, coef: Array, with_slopes: bool
) -> Level:
    """Recompute everything from the kernel and the data.

    Parameters
    ----------
    kernel : kernel of scikit-learn
    X : array of shape (n, d) or list
    Y, coef : arrays of shape (n, k)
    noise : array of shape (n,)
    with_slopes : bool
    """
    p = kernel.n_dims if with_slopes else 0
    K = np.array(kernel(X), dtype=np.float64)
    n, k = Y.shape
    K.flat[:: n + 1] += noise
    if not np.isfinite(K).all():
        return _undefined(p)
    try:
        L = linalg.cholesky(K, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return _undefined(p)
    M = linalg.cho_solve((L, True), np.eye(n), check_finite=False)
    M = 0.5 * (M + M.T)
    size = np.sqrt(np.diag(K))
    defect = -(K @ M)
    defect.flat[:: n + 1] += 1.0
    rho = float(np.linalg.norm(defect)) + n * _EPS * float((size @ np.abs(M)).max() * size.max())
    safe = 1.0 / (1.0 - rho) if rho < 0.5 else math.inf
    left_size = _residual(K, Y, coef)
    residual = float(left_size.max()) / (float(np.abs(Y).max()) or 1.0)
    # y.K^{-1} y = y.a + y.K^{-1}(y - K a): the correction and what is uncertain of it.
    # Both the root of the sum of squares and the largest sum of a row are above the spectral norm.
    reach = float(min(np.linalg.norm(M), np.abs(M).sum(axis=0).max())) * safe
    off = np.linalg.norm(left_size, axis=0) * reach
    fit = float((Y * coef).sum())
    fit_error = float((np.linalg.norm(Y, axis=0) * off).sum())
    fit_error += 2 * n * _EPS * float(np.abs(Y * coef).sum())
    logdet = 2 * float(np.log(np.diag(L)).sum())
    logdet_error = (n + 16) * _EPS * float(size @ np.abs(M) @ size) * max(safe, 1.0)
    logdet_error += 4 * n * _EPS * float(np.abs(np.log(np.diag(L))).sum())
    value = -0.5 * (fit + k * logdet + k * n * math.log(2 * math.pi))
    rounding = 0.5 * (fit_error + k * logdet_error) + 8 * _EPS * abs(value)
    if not with_slopes or p == 0:
        return Level(value, rounding, np.empty(0), np.empty(0), residual, True)
    weight = coef @ coef.T - k * M
    slopes, rough, products = _slopes(kernel, X, weight, M, p)
    delta = float(off.max())
    length = np.linalg.norm(coef, axis=0)
    slope_error = 0.5 * k * safe * float(np.linalg.norm(defect)) * products
    slope_error += 0.5 * rough * float((2 * length * off + delta**2).sum())
    slope_error += n * _EPS * float(np.linalg.norm(weight)) * rough
    return Level(value, rounding, slopes, slope_error, residual, True)


def _residual(K: Array, Y: Array, coef: Array) -> Array:
    """|Y - K coef|, on the safe side, summed in the longest floating point numbers there are."""
    n = len(K)
    unit = float(np.finfo(np.longdouble).eps)
    long = coef.astype(np.longdouble)
    out = np.empty(Y.shape)
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        left = Y[rows].astype(np.longdouble) - K[rows].astype(np.longdouble) @ long
        size = np.abs(K[rows]) @ np.abs(coef) + np.abs(Y[rows])
        out[rows] = np.abs(left).astype(np.float64) * (1 + 4 * _EPS) + (n + 4) * unit * size
    return out


def _slopes(kernel: Any, X: Any, weight: Array, M: Array, p: int) -> tuple[Array, Array, Array]:
    """1/2 sum weight dK, ||dK||_F and ||dK M||_F for every parameter, block by block."""
    n = len(weight)
    slopes, square, products = np.zeros(p), np.zeros(p), np.zeros(p)
    for rows, block in _derivatives(kernel, X, n):
        for j in range(p):
            part = block[j]
            slopes[j] += 0.5 * float((weight[rows] * part).sum())
            square[j] += float((part**2).sum())
            products[j] += float(((part @ M) ** 2).sum())
    return slopes, np.sqrt(square), np.sqrt(products)


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


def free_slope(slopes: Array, rounding: Array, theta: Array, bounds: Array) -> float:
    """The largest slope that could be followed upwards without leaving the bounds."""
    up = np.where(theta < bounds[:, 1] - 1e-12 * np.abs(bounds[:, 1]), slopes + rounding, 0.0)
    down = np.where(theta > bounds[:, 0] + 1e-12 * np.abs(bounds[:, 0]), rounding - slopes, 0.0)
    return float(np.maximum(up, down).max(initial=0.0))


def _inputs(certificate: KernelCertificate, X: Any, y: Array) -> tuple[Any, Array, Array]:
    witness = certificate.witness
    rows = np.asarray(X) if hasattr(X, "__array__") else X
    if isinstance(rows, list) and certificate.kernel.requires_vector_input:
        rows = np.asarray(rows)
    target = (y - np.asarray(witness["level"])) / np.asarray(witness["scale"])
    return rows, target, np.broadcast_to(np.asarray(witness["noise"], float), len(y))


def _check_process(
    certificate: KernelCertificate, X: Any, y: Array, sample_weight: Any
) -> list[Check]:
    """Likelihood, slopes and residual of a Gaussian process."""
    kernel = certificate.kernel
    rows, target, noise = _inputs(certificate, X, y)
    is_local = certificate.kind == "stationary point"
    found = likelihood_level(kernel, rows, target, noise, certificate.coef, is_local)
    checks = [
        Check(
            "kernel matrix",
            "positive definite",
            "yes" if found.is_definite else "no",
            found.is_definite,
        )
    ]
    if not found.is_definite:
        return checks
    away = abs(-found.value - certificate.objective) + found.value_rounding
    checks += [
        Check(
            "log marginal likelihood",
            f"{-certificate.objective:.12g} within {certificate.objective_rounding:.2g}",
            f"{found.value:.12g} within {found.value_rounding:.2g}",
            bool(away <= certificate.objective_rounding),
        ),
        Check(
            "residual of the equations",
            f"<= {certificate.residual:.3g}",
            f"{found.residual:.3g}",
            bool(found.residual <= certificate.residual),
        ),
    ]
    if is_local:
        theta, bounds = kernel.theta, kernel.bounds
        inside = bool(((theta >= bounds[:, 0] - 1e-9) & (theta <= bounds[:, 1] + 1e-9)).all())
        steep = free_slope(found.slopes, found.slope_rounding, theta, bounds)
        checks += [
            Check("parameters", "within bounds", "yes" if inside else "no", inside),
            Check(
                "slope (local)",
                f"<= {certificate.slope:.4g}",
                f"{steep:.4g}",
                bool(steep <= certificate.slope),
            ),
        ]
    return checks


def _check_bounds(
    certificate: KernelCertificate, X: Any, y: Array, sample_weight: Any
) -> list[Check]:
    """Both bounds that inducing points give, by eigenvalues of a small matrix."""
    rows, target, noise = _inputs(certificate, X, y)
    points = np.asarray(certificate.witness["points"], dtype=np.float64)
    low, high, error = _evidence_bounds(certificate, rows, target[:, 0], float(noise[0]), points)
    claimed_low, claimed_high = -certificate.objective, float(certificate.witness["upper"])
    return [
        Check(
            "lower bound",
            f"{claimed_low:.12g} within {certificate.objective_rounding:.2g}",
            f"{low:.12g} within {error:.2g}",
            bool(abs(low - claimed_low) + error <= certificate.objective_rounding),
        ),
        Check(
            "upper bound",
            f">= {high:.12g}",
            f"{claimed_high:.12g}",
            bool(claimed_high >= high + error - certificate.objective_rounding),
        ),
    ]


def _evidence_bounds(
    certificate: KernelCertificate, X: Array, y: Array, noise: float, points: Array
) -> tuple[float, float, float]:
    """Lower bound, upper bound, and an estimate of the rounding of both.

    Q = K_nm K_mm^{-1} K_mn has the non-zero eigenvalues of B = L^{-1} K_mn K_nm L^{-T}, where
    K_mm = L L^T.
    """
    kernel = certificate.kernel
    variance = float(certificate.witness["variance"]) + noise
    smooth = _without_noise(kernel)
    n, m = len(X), len(points)
    K_mm = np.asarray(smooth(points), dtype=np.float64)
    jitter = float(certificate.witness["jitter"])
    K_mm.flat[:: m + 1] += jitter
    L = linalg.cholesky(K_mm, lower=True)
    B, b, trace = np.zeros((m, m)), np.zeros(m), 0.0
    for start in range(0, n, 2000):
        block = X[start : start + 2000]
        half = linalg.solve_triangular(L, np.asarray(smooth(points, block)), lower=True)
        B += half @ half.T
        b += half @ y[start : start + 2000]
        trace += float(smooth.diag(block).sum() - (half**2).sum())
    trace = max(trace, 0.0)
    values, vectors = linalg.eigh(0.5 * (B + B.T))
    values = np.maximum(values, 0.0)
    along = vectors.T @ b
    square = float(y @ y)

    def fit(level: float) -> float:
        return (square - float((along**2 / (level + values)).sum())) / level

    logdet = float(np.log1p(values / variance).sum()) + n * math.log(variance)
    constant = n * math.log(2 * math.pi)
    low = -0.5 * (constant + logdet + fit(variance) + trace / variance)
    high = -0.5 * (constant + logdet + fit(variance + trace))
    scale = square / variance + abs(logdet) + float(values.sum()) / variance + constant
    error = 8 * (m + math.sqrt(n)) * _EPS * scale * float(np.linalg.cond(K_mm)) ** 0.5
    return low, high, error


def _without_noise(kernel: Any) -> Any:
    """The kernel with its noise taken out of the sum."""
    from sklearn.gaussian_process.kernels import Sum, WhiteKernel

    if isinstance(kernel, Sum):
        left, right = _without_noise(kernel.k1), _without_noise(kernel.k2)
        if left is None or right is None:
            return right if left is None else left
        return Sum(left, right)
    return None if isinstance(kernel, WhiteKernel) else kernel
