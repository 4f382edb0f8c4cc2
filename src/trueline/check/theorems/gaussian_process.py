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

Q = A A' with A = k(X, Z) N' is such a matrix, for any m points Z and any N with N k(Z, Z) N' <= I:
the matrix of the blocks k(X, X), A, A', N k(Z, Z) N' is positive semi-definite. N is the inverse of
a factor P, P P' >= k(Z, Z), divided by what makes |N P| <= 1. For all x and z,

    2 z.y - |A'z|^2 - c |z|^2  <=  y.(A A' + c I)^{-1} y  <=  |y - A x|^2 / c + |x|^2.

A is computed within G, in norm; log |A A' + v I| then errs by at most (m / v)^(1/2) |G|, since the
m singular values of its derivative are 2 e / (e^2 + v) <= v^(-1/2).

Read from the certificate: kind, objective (-L, or minus its lower bound), objective_rounding, gap
(infinite: nothing is proven about other parameters), kernel; of a process also residual (of the
equations K a = Y, in units of the largest target), coef (a) and, if it is stationary, slope (the
largest that is free to be followed; a parameter within 1e-9 of a bound is on it); from the witness:
noise, level and scale of the targets, points (Z) and upper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, SMALLEST, Array, Ball, fsum
from trueline.check.kernels import covariance_of, noise_and_rest, recognised
from trueline.check.rows import as_doubles, as_matrix, as_targets, length
from trueline.check.schema import CLAIMS, Field, get, read
from trueline.check.verdict import Check, Refused, Verification, told

Blocks = Iterator[tuple[slice, Ball, list[Ball]]]

_VALUES = 1_000_000
_LONG = float(np.finfo(np.longdouble).eps)


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Likelihood, slopes and residual of a Gaussian process, or bounds on its likelihood."""
    if sample_weight is not None:
        raise Refused("a Gaussian process has no weights")
    n, is_sparse = length(X), get(certificate, "kind") == "evidence bounds"
    y = as_targets(y, n)
    fields = {**CLAIMS, "kind": Field(kind="text"), "kernel": Field(kind="any")}
    fields["objective_rounding"] = Field(low=0.0, finite=False)  # nothing is said of the value
    witness = {"level": Field(("k",)), "scale": Field(("k",), low=SMALLEST)}
    witness["noise"] = Field(() if is_sparse else ("n",), low=0.0)
    if is_sparse:
        witness |= {"points": Field(("m", "d")), "upper": Field(finite=False)}
    else:
        fields |= {"residual": Field(low=0.0), "slope": Field(low=0.0, finite=False)}
        fields["coef"] = Field(("n", "k"))
    claim = read(certificate, fields, witness, {"n": n, "k": y.shape[1]})
    Y = (y - claim.level) / claim.scale
    try:
        checks, said = (_bounds if is_sparse else _process)(claim, X, Y)
    except (OverflowError, np.linalg.LinAlgError):
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
    blocks, free, said = _covariance(claim.kernel, X, len(Y))
    (n, k), a = Y.shape, claim.coef
    K = Ball.stack(part for _, part, _ in blocks()) + np.diag(claim.noise)
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
    # |Y - K a| from above, summed in the longest numbers there are.
    exact = Y - K.mid.astype(np.longdouble) @ a.astype(np.longdouble)
    error = (K.rad + (n + 4) * _LONG * np.abs(K.mid)) @ np.abs(a) + 3 * EPS * np.abs(Y)
    left = (np.abs(exact).astype(np.float64) + error) * (1 + (n + 8) * EPS)
    fit, logs = float((Y * a).sum()), np.log(np.diag(L))
    off = float((np.abs(a) * left).sum()) + norm * float((left**2).sum())
    off += (n * k + 8) * EPS * float(np.abs(Y * a).sum())
    wrong = float((np.abs(M) * E).sum()) + 2 * (rho * safe) ** 2
    wrong += (2 * n + 16) * EPS * float(np.abs(logs).sum())
    value = -0.5 * (fit + 2 * k * float(logs.sum()) + k * n * math.log(2 * math.pi))
    rounding = 0.5 * (off + k * wrong) * (1 + n * EPS) + 8 * EPS * (abs(value) + k * n)
    rounding = rounding if rho < 0.5 else math.inf
    residual = float(left.max()) / (float(np.abs(Y).max()) or 1.0) * (1 + 4 * EPS)
    claimed = -claim.objective, claim.objective_rounding
    checks = [
        Check.within("log marginal likelihood", *claimed, value, rounding),
        Check.at_most("residual of the equations", claim.residual, residual),
    ]
    said = f"the equations{said} are solved up to {claim.residual:.3g} of the largest target, and "
    is_known = math.isfinite(claim.objective_rounding)
    likelihood = f"{-claim.objective:.10g}" if is_known else "not known"
    said += f"the log marginal likelihood is {likelihood}"
    if claim.kind != "stationary point":
        return checks, said
    steep, errors = _slopes(blocks(), len(free), a, M, left, (rho, safe, norm))
    p, low, high = free.T
    within = (low * (1 - 1e-9) <= p).all() and (p <= high * (1 + 1e-9)).all()
    # What could be followed upwards without leaving the bounds; NaN proves nothing, as infinity.
    up = np.where(p < high * (1 - 1e-9), errors + steep, 0.0)
    down = np.where(p > low * (1 + 1e-9), errors - steep, 0.0)
    steepest = float(np.max([0.0, *up, *down]))
    steepest = math.inf if math.isnan(steepest) else steepest
    checks.append(Check.that("parameters", "within bounds", within))
    checks.append(Check.at_most("slope (local)", claim.slope, steepest))
    said += f", with slopes of at most {claim.slope:.3g} in its {len(free)} free parameters"
    return checks, f"{said} within their bounds"


def _covariance(kernel: Any, X: Any, n: int) -> tuple[Callable[[], Blocks], Array, str]:
    """Blocks of the matrix and of its derivatives, and the free parameters."""
    known = recognised(kernel)
    if known is None:
        return _called(kernel, X, n)
    rows = as_matrix(X)
    if not isinstance(rows, np.ndarray):
        raise Refused("a Gaussian process takes no sparse rows")

    def blocks() -> Blocks:
        step = max(1, _VALUES // n)
        for some in (slice(i, i + step) for i in range(0, n, step)):
            part = rows[some]
            yield some, *covariance_of(known, part, rows, np.eye(len(part), n, some.start))

    return blocks, known.all_free(), ""


def _called(kernel: Any, X: Any, n: int) -> tuple[Callable[[], Blocks], Array, str]:
    """A kernel that is not known here: what it says itself, of rows in double precision."""
    try:
        rows = np.asarray(X) if hasattr(X, "__array__") or kernel.requires_vector_input else X
        is_single = isinstance(rows, np.ndarray) and rows.dtype.kind == "f"
        K, D = kernel(rows.astype(np.float64) if is_single else rows, eval_gradient=True)
        free = np.exp(np.column_stack([kernel.theta, np.reshape(kernel.bounds, (-1, 2))]))
        K, D = as_doubles(K, "the kernel"), as_doubles(D, "its derivatives")
        if K.shape != (n, n) or D.shape != (n, n, len(free)):
            raise Refused(f"the kernel has the shape {K.shape}, its derivatives {D.shape}")
        slopes = [Ball.symmetric(d) for d in np.moveaxis(D, 2, 0)]
    except Exception as error:
        raise Refused(f"the kernel cannot be evaluated: {told(error)}") from None
    said = f", as the kernel {type(kernel).__name__} itself computes it,"
    return lambda: iter([(slice(n), Ball.symmetric(K), slopes)]), free, said


def _slopes(
    blocks: Blocks, p: int, a: Array, M: Array, left: Array, bounds: tuple[float, float, float]
) -> tuple[Array, Array]:
    """1/2 tr((a a' - k M) D) for every parameter, and a bound on its error.

    That a + K^{-1} r is meant, not a, changes a.D a by 2 (K^{-1} D a).r + (K^{-1} r).D K^{-1} r.
    """
    (n, k), (rho, safe, norm) = a.shape, bounds
    weight, size = a @ a.T - k * M, np.abs(a) @ np.abs(a).T + k * np.abs(M)
    slope, error, square, products = np.zeros((4, p))
    turned = np.zeros((p, 2, n, k))  # D a, and its magnitudes
    for rows, _, parts in blocks:
        for j, D in enumerate(parts):
            rough = (2 * n + 16) * EPS * np.abs(D.mid) + D.rad
            slope[j] += 0.5 * float((weight[rows] * D.mid).sum())
            error[j] += 0.5 * float((size[rows] * rough).sum())
            square[j] += float(((np.abs(D.mid) + D.rad) ** 2).sum())
            products[j] += float(((np.abs(D.mid @ M) + rough @ np.abs(M)) ** 2).sum())
            turned[j, :, rows] = D.mid @ a, rough @ np.abs(a)
    off = norm * np.linalg.norm(left, axis=0)  # of a, for each target
    for j, (Da, rest) in enumerate(turned):
        solved = np.abs(M @ Da) + np.abs(M) @ (rest + (n + 2) * EPS * np.abs(Da))
        error[j] += float((solved * left).sum() + 0.5 * math.sqrt(square[j]) * (off**2).sum())
        error[j] += rho * float((off * np.linalg.norm(Da, axis=0)).sum())
    error += 0.5 * k * rho * safe * np.sqrt(products)
    return slope, error * (1 + 4 * n * EPS)


def _bounds(claim: SimpleNamespace, X: Any, Y: Array) -> tuple[list[Check], str]:
    """Lower and upper bound of the log marginal likelihood."""
    rows, Z, n, m = as_matrix(X), claim.points, len(Y), len(claim.points)
    if not isinstance(rows, np.ndarray) or rows.shape[1] != Z.shape[1]:
        raise Refused("the rows are sparse, or the points have other columns")
    if math.isinf(claim.upper) != math.isinf(claim.objective_rounding):
        raise Refused("one of the two bounds is infinite")
    known = recognised(claim.kernel)
    if known is None:
        raise Refused("a part of the kernel is not known")
    noise, rest = noise_and_rest(known)
    v, y = claim.noise + fsum(noise), Y[:, 0]
    if Y.shape[1] != 1 or not v > 0 or not rest or m == 0:
        raise Refused("there are several targets, no noise, nothing but noise, or no points")

    def smooth(A: Array, B: Array) -> Ball:
        parts = [covariance_of(part, A, B, np.zeros((len(A), len(B))))[0] for part in rest]
        return sum(parts[1:], parts[0])

    step, N = max(1, _VALUES // m), _half_inverse(smooth(Z, Z))
    ball = Ball.stack(smooth(rows[i : i + step], Z).dot(N.T) for i in range(0, n, step))
    A, G, square = ball.mid, float(np.linalg.norm(ball.rad)), float((ball.mid**2).sum())
    units = (n + 4 * m + 16) * EPS  # of sums, and of eigenvalues, relative to |A|^2
    G, size = G * (1 + units), math.sqrt(square) * (1 + units)
    if not np.isfinite(A).all() or not math.isfinite(square):
        raise Refused("the covariance leaves the range of doubles")
    trace = float((smooth(rows[:1], rows[:1]) * float(n)).high[0, 0]) - square
    trace = max(trace + units * square + 2 * size * G, 0.0)
    B, c = A.T @ A, v + trace
    logs = np.log1p(np.maximum(np.linalg.eigvalsh(B), 0.0) / v)
    logdet = float(logs.sum()) + n * math.log(v)
    wrong = math.sqrt(m / v) * G + units * m * square / v
    wrong += 8 * EPS * (n + n * abs(math.log(v)) + m * float(logs.sum()))
    # The upper bound with x, the lower bound with z = (y - A x) / c for another x.
    x, other = (np.linalg.solve(B + lift * np.eye(m), A.T @ y) for lift in (v, c))
    left = np.abs(y - A @ x) + (m + 8) * EPS * (np.abs(A) @ np.abs(x) + np.abs(y))
    most = (float(np.linalg.norm(left)) + G * float(np.linalg.norm(x))) ** 2 / v + float(x @ x)
    z = y - A @ other
    along = float(np.linalg.norm(z @ A)) + (G + units * size) * float(np.linalg.norm(z))
    least = (2 * float(z @ y) - float(z @ z) - along**2 / c) / c
    low = -0.5 * (n * math.log(2 * math.pi) + logdet + wrong + most + trace / v)
    high = -0.5 * (n * math.log(2 * math.pi) + logdet - wrong + least)
    error = abs(low) + abs(high) + n + most + trace / v
    error = units * (error + (float(y @ y) + float(z @ z) + along**2 / c) / c)
    low, high, lower = low - error, high + error, -claim.objective - claim.objective_rounding
    checks = [
        Check("lower bound", f"{lower:.12g}", f"<= {low:.12g}", bool(lower <= low)),
        Check("upper bound", f"{claim.upper:.12g}", f">= {high:.12g}", bool(claim.upper >= high)),
    ]
    return checks, f"the log marginal likelihood lies between {lower:.10g} and {claim.upper:.10g}"


def _half_inverse(K: Ball) -> Array:
    """N with N K N' <= I."""
    m, root = len(K.mid), np.sqrt(np.maximum(np.diag(K.mid), 0.0))
    lift = 2 * float(np.linalg.norm(K.rad + (m + 2) * EPS * np.outer(root, root)))
    lift = max(lift, 1e-10 * float((root**2).max()))  # makes P P' >= K
    try:
        P = np.linalg.cholesky(K.mid + lift * np.eye(m))
        N = np.linalg.inv(P)
    except np.linalg.LinAlgError:
        raise Refused("the covariance of the points is not positive definite") from None
    rho = np.linalg.norm(np.abs(np.eye(m) - N @ P) + (m + 2) * EPS * np.abs(N) @ np.abs(P))
    return N / (1 + 2 * rho)
