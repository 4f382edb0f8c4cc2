r"""Gaussian processes: the log marginal likelihood, its slopes, and bounds by inducing points.

With K the covariance of the rows plus the variances of the noise on its diagonal and Y the k
targets, which are y, or y less its mean in units of its standard deviation,

    L = sum_t -1/2 Y_t.K^{-1} Y_t - k/2 log |K| - k n/2 log(2 pi)
    dL / dlog p = 1/2 tr((sum_t a_t a_t' - k K^{-1}) dK / dlog p),      a = K^{-1} Y.

*Value.* With r = Y - K a for the given a, Y.K^{-1} Y = Y.a + a.r + r.K^{-1} r. Cholesky's factor is
that of a matrix within (n + 2) u sqrt(K_ii K_jj) of the one factored (Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd ed., theorem 10.3); let E bound that and the rounding of the
kernel, M be an inverse as computed and rho >= || I - K M || for all matrices within E, rho < 1/2.
Then K is positive definite, |K^{-1}| <= |M| / (1 - rho), and log |K| errs by at most
sum |M_ij| E_ij + 2 rho^2 / (1 - rho)^2.

*Slopes.* tr(K^{-1} D) - tr(M D) = tr((I - K M) K^{-1} D) is at most rho || D M ||_F / (1 - rho).

*Evidence bounds* (M. Titsias, AISTATS 2009 and NIPS 2014). For every matrix Q <= K - v I, with
t = tr(K - v I - Q) and v the variance of the noise,

    log N(y; 0, Q + v I) - t / (2 v)  <=  L  <=
        -1/2 (log |Q + v I| + y.(Q + (v + t) I)^{-1} y + n log(2 pi)).

Q = A'A with A = P^{-1} k(Z, X) for any points Z and P P' >= k(Z, Z), which a little more on the
diagonal arranges. A is computed within G; A'A then errs by q <= 2 |A| |G| + |G|^2 in norm, which
changes t by q, y.z for z = (Q + c I)^{-1} y by 2 |A z| |G| |z| + |G|^2 |z|^2 + q^2 |z|^2 / (c - q),
and log |Q + v I| by 2 g |G| + |G|^2 / v + q^2 / v^2, where g^2 is the sum of e / (e + v)^2 over the
eigenvalues e of A A'.

Read from the certificate: kind, objective (-L, or minus its lower bound), objective_rounding, gap
(infinite: nothing is proven about other parameters), residual (of the equations K a = Y, in units
of the largest target), slope (the largest that is free to be followed; a parameter within 1e-9 of
a bound is on it), kernel, coef (a); from the witness: noise, level and scale of the targets,
points (Z) and upper.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, SMALLEST
from trueline.check.kernels import Ball
from trueline.check.process_kernels import (
    Covariance,
    Parameter,
    covariance_of,
    is_known,
    noise_and_rest,
)
from trueline.check.rows import as_doubles, as_matrix, as_targets, length
from trueline.check.schema import CLAIMS, Field, get, read
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

_VALUES = 1_000_000
_LONG = float(np.finfo(np.longdouble).eps)


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Likelihood, slopes and residual of a Gaussian process, or bounds on its likelihood."""
    if sample_weight is not None:
        raise Refused("a Gaussian process has no weights")
    n = length(X)
    y = as_targets(y, n)
    is_sparse = get(certificate, "kind") == "evidence bounds"
    fields = {
        **CLAIMS,
        **dict.fromkeys(("objective_rounding", "residual", "slope"), Field(low=0.0, finite=False)),
        "kind": Field(kind="text"),
        "kernel": Field(kind="any"),
        "coef": Field(("n", "k")),
    }
    witness = {"level": Field(("k",)), "scale": Field(("k",), low=SMALLEST)}
    witness["noise"] = Field(() if is_sparse else ("n",), low=0.0)
    if is_sparse:
        witness |= {"points": Field(("m", "d")), "upper": Field(finite=False)}
    claim = read(certificate, fields, witness, {"n": n, "k": y.shape[1]})
    Y = (y - claim.level) / claim.scale
    try:
        checks, said = (_bounds if is_sparse else _process)(claim, X, Y)
    except OverflowError:
        raise Refused("numbers leave the range of doubles") from None
    checks = [
        Check.that("gap (local)", "none", math.isinf(claim.gap)),
        Check.that("level and scale of the targets", "of the data", _is_normal(claim, y)),
        *checks,
    ]
    return Verification(tuple(checks), f"{said}; nothing about other parameters")


def _is_normal(claim: SimpleNamespace, y: Array) -> bool:
    """Whether targets are as given, or centred and scaled as the data say (constants by 1)."""
    mean, spread = y.mean(axis=0), y.std(axis=0)
    size = 4 * (len(y) + 8) * EPS * np.abs(y).max(axis=0)
    scaled = (np.abs(claim.scale - spread) <= size + 8 * EPS * spread) & (spread > size)
    flat = (claim.scale == 1) & (spread <= 8 * size + 16 * EPS)
    normal = (np.abs(claim.level - mean) <= size) & (scaled | flat)
    return bool(normal.all() or (not claim.level.any() and (claim.scale == 1).all()))


def _process(claim: SimpleNamespace, X: Any, Y: Array) -> tuple[list[Check], str]:
    K, slopes_of, free, said = _covariance(claim.kernel, X, len(Y))
    n, k = Y.shape
    K.mid.flat[:: n + 1] += claim.noise
    K = Ball(K.mid, K.rad + EPS * np.diag(np.diag(K.mid)))
    a, largest = claim.coef, float(np.abs(Y).max()) or 1.0
    if not np.isfinite(K.mid).all() or not (np.diag(K.mid) > 0).all():
        raise Refused("the covariance is not finite, or not positive on its diagonal")
    try:
        L, M = np.linalg.cholesky(K.mid), np.linalg.inv(K.mid)
    except np.linalg.LinAlgError:  # nothing is known of its determinant and its inverse
        L, M = np.eye(n), np.full((n, n), math.inf)
    M = 0.5 * (M + M.T)
    root = np.sqrt(np.diag(K.mid))
    E = K.rad + 0.5 * (n + 2) * EPS * np.outer(root, root)
    R = np.abs(np.eye(n) - K.mid @ M) + (E + 0.5 * (n + 2) * EPS * np.abs(K.mid)) @ np.abs(M)
    rho = float(np.linalg.norm(R)) * (1 + (n + 8) * EPS)
    safe = 1.0 / (1.0 - rho) if rho < 0.5 else math.inf
    norm = min(float(np.linalg.norm(M)), float(np.abs(M).sum(axis=0).max())) * safe
    left = _residual(K, Y, a)
    fit = float((Y * a).sum())
    off = float((np.abs(a) * left).sum()) + norm * float((left**2).sum())
    off += (n * k + 8) * EPS * float(np.abs(Y * a).sum())
    logs = np.log(np.diag(L))
    logdet, wrong = 2 * float(logs.sum()), float((np.abs(M) * E).sum()) + 2 * (rho * safe) ** 2
    wrong += (2 * n + 16) * EPS * float(np.abs(logs).sum())
    value = -0.5 * (fit + k * logdet + k * n * math.log(2 * math.pi))
    rounding = 0.5 * (off + k * wrong) * (1 + n * EPS) + 8 * EPS * (abs(value) + k * n)
    rounding = rounding if rho < 0.5 else math.inf
    residual = float(left.max()) / largest
    allowed = claim.objective_rounding
    checks = [
        Check.within("log marginal likelihood", -claim.objective, allowed, value, rounding),
        Check.at_most("residual of the equations", claim.residual, residual * (1 + 4 * EPS)),
    ]
    said = f"the log marginal likelihood is {-claim.objective:.10g}{said}"
    if claim.kind != "stationary point":
        return checks, said
    steep, errors = _slopes(slopes_of, len(free), a, M, left, (rho, safe, norm), k)
    within = all(p.low * (1 - 1e-9) <= p.value <= p.high * (1 + 1e-9) for p in free)
    slope = _free_slope(free, steep, errors) if rho < 0.5 else math.inf
    checks.append(Check.that("parameters", "within bounds", within))
    checks.append(Check.at_most("slope (local)", claim.slope, slope))
    return checks, f"{said}, with slopes of at most {claim.slope:.3g} within the bounds"


def _covariance(kernel: Any, X: Any, n: int) -> tuple[Ball, Any, list[Parameter], str]:
    """The matrix, a function that gives blocks of its derivatives, and the free parameters."""
    step = max(1, _VALUES // n)

    def block(rows: Array, start: int) -> Covariance:
        part = rows[start : start + step]
        return covariance_of(kernel, part, rows, np.eye(len(part), n, start))

    if not is_known(kernel):
        return _called(kernel, X, n)
    rows = as_matrix(X)
    if not isinstance(rows, np.ndarray):
        raise Refused("a Gaussian process takes no sparse rows")
    parts = [block(rows, start).K for start in range(0, n, step)]
    mid = np.concatenate([part.mid for part in parts])
    rad = np.concatenate([np.broadcast_to(part.rad, part.mid.shape) for part in parts])
    slopes = ((s, block(rows, s).slopes) for s in range(0, n, step))
    return Ball(mid, rad), slopes, block(rows, n).free, ""


def _called(kernel: Any, X: Any, n: int) -> tuple[Ball, Any, list[Parameter], str]:
    """A kernel that is not known here: what it says itself."""
    try:
        rows = np.asarray(X) if hasattr(X, "__array__") or kernel.requires_vector_input else X
        K, D = kernel(rows, eval_gradient=True)
        bounds, values = np.exp(np.reshape(kernel.bounds, (-1, 2))), np.exp(kernel.theta)
        free = [Parameter(float(v), *map(float, two)) for v, two in zip(values, bounds)]
        K, D = as_doubles(K, "the kernel"), as_doubles(D, "its derivatives")
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"the kernel cannot be evaluated: {error}") from None
    if K.shape != (n, n) or D.shape != (n, n, len(free)):
        raise Refused(f"the kernel has the shape {K.shape}, its derivatives {D.shape}")
    said = f", as the kernel {type(kernel).__name__} itself computes it"
    return Ball(K.copy(), 0.0 * K), [(0, [Ball(d) for d in np.moveaxis(D, 2, 0)])], free, said


def _residual(K: Ball, Y: Array, a: Array) -> Array:
    """|Y - K a| from above, summed in the longest numbers there are."""
    long, left = a.astype(np.longdouble), np.empty(Y.shape)
    for start in range(0, len(Y), 400):
        rows = slice(start, start + 400)
        exact = Y[rows].astype(np.longdouble) - K.mid[rows].astype(np.longdouble) @ long
        size = np.abs(K.mid[rows]) @ np.abs(a)
        error = K.rad[rows] @ np.abs(a) + (len(Y) + 4) * _LONG * size + 3 * EPS * np.abs(Y[rows])
        left[rows] = (np.abs(exact).astype(np.float64) + error) * (1 + (len(Y) + 8) * EPS)
    return left


def _slopes(
    blocks: Any, p: int, a: Array, M: Array, left: Array, bounds: tuple[float, float, float], k: int
) -> tuple[Array, Array]:
    """1/2 tr((a a' - k M) D) for every parameter, and a bound on its error.

    That a + K^{-1} r is meant, not a, changes a.D a by 2 (K^{-1} D a).r + (K^{-1} r).D K^{-1} r.
    """
    n, (rho, safe, norm) = len(M), bounds
    weight, size = a @ a.T - k * M, np.abs(a) @ np.abs(a).T + k * np.abs(M)
    slope, error, square, products = (np.zeros(p) for _ in range(4))
    turned = [np.zeros((2, *a.shape)) for _ in range(p)]  # D a, and its magnitudes
    for start, parts in blocks:
        for j, D in enumerate(parts):
            rows = slice(start, start + len(D.mid))
            rough = (2 * n + 16) * EPS * np.abs(D.mid) + D.rad
            slope[j] += 0.5 * float((weight[rows] * D.mid).sum())
            error[j] += 0.5 * float((size[rows] * rough).sum())
            square[j] += float(((np.abs(D.mid) + D.rad) ** 2).sum())
            products[j] += float(((np.abs(D.mid @ M) + rough @ np.abs(M)) ** 2).sum())
            turned[j][:, rows] = D.mid @ a, rough @ np.abs(a)
    off = norm * np.linalg.norm(left, axis=0)  # of a, for each target
    for j, (Da, rest) in enumerate(turned):
        solved = np.abs(M @ Da) + np.abs(M) @ (rest + (n + 2) * EPS * np.abs(Da))
        error[j] += float((solved * left).sum() + 0.5 * math.sqrt(square[j]) * (off**2).sum())
        error[j] += rho * float((off * np.linalg.norm(Da, axis=0)).sum())
    error += 0.5 * k * rho * safe * np.sqrt(products)
    return slope, error * (1 + 4 * n * EPS)


def _free_slope(free: list[Parameter], slopes: Array, errors: Array) -> float:
    """The largest slope that could be followed upwards without leaving the bounds."""
    steep = 0.0
    for p, slope, error in zip(free, slopes, errors):
        up = slope + error if p.value < p.high * (1 - 1e-9) else 0.0
        down = error - slope if p.value > p.low * (1 + 1e-9) else 0.0
        steep = float(np.max([steep, up, down]))  # NaN stays NaN, which proves nothing
    return steep


def _bounds(claim: SimpleNamespace, X: Any, Y: Array) -> tuple[list[Check], str]:
    """Lower and upper bound of the log marginal likelihood."""
    rows, n, m = as_matrix(X), len(Y), len(claim.points)
    noise, rest = noise_and_rest(claim.kernel)
    v, y = claim.noise + math.fsum(noise), Y[:, 0]
    if not isinstance(rows, np.ndarray) or rows.shape[1:] != claim.points.shape[1:]:
        raise Refused("the rows are sparse, or the points have other columns")
    if Y.shape[1] != 1 or not v > 0 or not rest or m == 0:
        raise Refused("there are several targets, no noise, nothing but noise, or no points")

    def smooth(A: Array, B: Array) -> Ball:
        parts = [covariance_of(part, A, B, np.zeros((len(A), len(B)))).K for part in rest]
        return sum(parts[1:], parts[0])

    B, b, length_a, length_g = _projected(smooth, claim.points, rows, y)
    diagonal = smooth(rows[:1], rows[:1]) * float(n)
    moved = 2 * length_a * length_g + length_g**2
    formed = (n + 8) * EPS * length_a**2  # rounding of B, in norm; of eigenvalues as well
    trace = max(float(diagonal.mid[0, 0]) - length_a**2, 0.0)
    trace += float(np.max(diagonal.rad)) + moved + formed
    if not np.isfinite(B).all() or not math.isfinite(length_g):
        raise Refused("the covariance leaves the range of doubles")
    values = np.maximum(np.linalg.eigvalsh(B), 0.0)
    formed += 4 * m * EPS * length_a**2
    logdet = float(np.log1p(values / v).sum()) + n * math.log(v)
    g = math.sqrt(float((values / (values + v) ** 2).sum()))
    wrong = 2 * g * length_g + length_g**2 / v + moved**2 / v**2 + formed * m / v
    wrong += 8 * EPS * (n + n * abs(math.log(v)) + float(np.log1p(values / v).sum()) * m)
    constant = n * math.log(2 * math.pi)

    def fit(c: float) -> tuple[float, float]:
        """y.(A'A + c I)^{-1} y = (y.y - x.b - x.r - r.(A A' + c I)^{-1} r) / c, and its error."""
        x = np.linalg.solve(B + c * np.eye(m), b)
        size, square, product = float(np.linalg.norm(x)), float(y @ y), float(x @ b)
        rough = (n + m + 8) * EPS * length_a * math.sqrt(square) + (formed + 8 * EPS * c) * size
        r = float(np.linalg.norm(b - B @ x - c * x)) + 2 * rough
        error = (r + rough) * size + r**2 / c + 4 * (n + m) * EPS * (square + abs(product))
        found, error = (square - product) / c, error / c
        dual = math.sqrt((abs(found) + error) / c)  # |(A'A + c I)^{-1} y|; A times it is x
        moves = 2 * size * length_g * dual + (length_g**2 + moved**2 / (c - moved)) * dual**2
        return found, error + 2 * moves

    near, near_error = fit(v)
    far, far_error = fit(v + trace)
    low = -0.5 * (constant + logdet + wrong + near + near_error + trace / v)
    high = -0.5 * (constant + logdet - wrong + far - far_error)
    error = 8 * EPS * (abs(low) + abs(high) + constant + n + near + trace / v)
    low, high, lower = low - error, high + error, -claim.objective - claim.objective_rounding
    if not moved < 0.25 * v:  # the points are too close to each other: nothing is known
        low, high = -math.inf, math.inf
    checks = [
        Check("lower bound", f"{lower:.12g}", f"<= {low:.12g}", bool(lower <= low)),
        Check("upper bound", f"{claim.upper:.12g}", f">= {high:.12g}", bool(claim.upper >= high)),
        Check("bounds", "in order", "yes" if lower <= claim.upper else "no", lower <= claim.upper),
    ]
    return checks, f"the log marginal likelihood lies between {lower:.10g} and {claim.upper:.10g}"


def _projected(smooth: Any, Z: Array, X: Array, y: Array) -> tuple[Array, Array, float, float]:
    """A A', A y, |A| and |G| for A = P^{-1} k(Z, X) as computed, with an error within G.

    With N the inverse of P as computed, |P^{-1} L| <= |N L| / (1 - |I - N P|) for what is left of
    the equations, L = k(Z, X) - P A.
    """
    m, n = len(Z), len(X)
    K = smooth(Z, Z)
    root = np.sqrt(np.maximum(np.diag(K.mid), 0.0))
    lift = float(np.linalg.norm(K.rad + (m + 2) * EPS * np.outer(root, root)))
    lift = max(2 * lift, 1e-10 * float((root**2).max()))  # makes P P' >= k(Z, Z)
    try:
        P = np.linalg.cholesky(K.mid + lift * np.eye(m))
        N = np.linalg.inv(P)
    except np.linalg.LinAlgError:
        raise Refused("the covariance of the points is not positive definite") from None
    rho = float(np.linalg.norm(np.abs(np.eye(m) - N @ P) + m * EPS * np.abs(N) @ np.abs(P)))
    B, b, square, error = np.zeros((m, m)), np.zeros(m), 0.0, 0.0
    step = max(1, _VALUES // m)
    for start in range(0, n, step):
        some = slice(start, start + step)
        C = smooth(Z, X[some])
        A = N @ C.mid
        left = np.abs(C.mid - P @ A) + C.rad
        left += (m + 4) * EPS * (np.abs(P) @ np.abs(A) + np.abs(C.mid))
        B, b = B + A @ A.T, b + A @ y[some]
        square += float((A**2).sum())
        error += float(((np.abs(N) @ left) ** 2).sum())
    safe = 1.0 / (1.0 - rho) if rho < 0.5 else math.inf
    return B, b, math.sqrt(square), math.sqrt(error) * safe * (1 + (n + m) * EPS)
