"""The checks of squared losses: with a quadratic penalty, or one made of coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, ROWS, UNDERFLOW, Check, Rows

__all__ = ["check_fenchel", "check_quadratic", "coercivity"]

Array = NDArray[np.float64]

# Directions of more effect than this on the (equilibrated) design are not rounding.
_LEFT_OUT = 1e-3


def check_quadratic(certificate: Certificate, rows: Rows) -> list[Check]:
    """Gap <= |M^T g|^2 / (2 nu), with M^T H M >= nu I proven again from the rows."""
    suited = "quadratic" in certificate.loss.capabilities & certificate.penalty.capabilities
    nonnegative = "nonnegative" in certificate.penalty.capabilities
    basis = np.asarray(certificate.witness["basis"], dtype=np.float64)
    checks = [Check("loss and penalty are quadratic", "yes", "yes" if suited else "no", suited)]
    if nonnegative:
        least = float(certificate.coef.min(initial=0.0))
        checks.append(Check("coefficients", ">= 0", f"{least:.3g}", least >= 0))
    right_shape = basis.ndim in (1, 2) and len(basis) == rows.d and bool(np.isfinite(basis).all())
    if not suited or not right_shape or (nonnegative and basis.ndim == 2):
        return [*checks, Check("basis", f"{rows.d} rows", f"shape {basis.shape}", False)]
    # A near perfect fit needs no bound: the objective is not negative, and was checked.
    nothing_below = certificate.objective + certificate.objective_rounding
    if nothing_below <= certificate.gap:
        found = f"{nothing_below:.4g}, as no objective is below zero"
        return [*checks, Check("gap", f"<= {certificate.gap:.4g}", found, True)]
    curvature = np.broadcast_to(certificate.penalty.curvature, certificate.coef.shape)
    mean = rows.mean()[0] if certificate.fit_intercept else np.zeros(rows.d)
    centre = mean if certificate.fit_intercept else None
    nu = float(certificate.witness["coercivity"])
    found_nu = coercivity(rows, rows.s, basis, curvature.min(axis=1), centre, nu)
    checks.append(Check("coercivity", f">= {nu:.4g}", f"{found_nu:.4g}", 0 < nu <= found_nu))
    if certificate.kind == "quadratic":
        # M^T H M > 0 leaves no column of M dependent on others: d of them span everything.
        whole = found_nu > 0 and (basis.ndim == 1 or basis.shape[1] == rows.d)
        checks.append(Check("directions covered", "all", "all" if whole else "some", whole))
    else:
        allowed = float(certificate.witness.get("left_out", 0.0))
        effect = _left_out(rows, certificate.fit_intercept, basis, curvature.min(axis=1))
        found = f"effect {effect:.2g} of all"
        holds = effect <= min(allowed, _LEFT_OUT)
        checks.append(Check("directions left out", f"<= {allowed:.2g}", found, holds))
    gap = np.inf
    for gradient in (_gradient_double, _gradient_doubled):
        g, g_error, slope, slope_error = gradient(certificate, rows, curvature)
        off = np.abs(slope) + slope_error
        gap = float(0.5 * (off**2).sum() / rows.weight) + UNDERFLOW * rows.n
        if nonnegative:
            gap += _gap_nonnegative(g, g_error, basis, nu, certificate.coef)
        else:
            gap += _gap_free(g, g_error, basis, nu)
        gap *= 1 + 1e-12  # the rounding of this bound itself
        if gap <= certificate.gap:
            break
    checks.append(Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap))
    return checks


def _left_out(rows: Rows, is_centred: bool, basis: Array, curvature: Array) -> float:
    """How much of the design, columns scaled to equal norm, the span of M does not reproduce.

    With V = X_c T and Z = X_c M: the norm of V - Z C over that of V, for the C of least squares.
    Any C gives an upper bound; the second round removes the rounding of the first.
    """
    mean, mean_low = rows.mean()[:2] if is_centred else (np.zeros(rows.d), np.zeros(rows.d))
    squares = np.zeros(rows.d)
    for where, block in rows:
        squares += rows.s[where] @ ((block - mean) - mean_low) ** 2
    # What is left of a constant column is the rounding of its mean.
    least = (4 * EPS**2 * rows.n * mean) ** 2 * rows.weight
    squares = np.where(squares <= least, 0.0, squares) + curvature
    scale = np.divide(1.0, np.sqrt(squares), out=np.zeros(rows.d), where=squares > 0)
    M = np.diag(basis) if basis.ndim == 1 else basis
    lift = np.diag(np.sqrt(curvature)) if curvature.any() else np.zeros((0, rows.d))

    def pairs() -> Iterator[tuple[Array, Array]]:
        for where, block in rows:
            centred = np.sqrt(rows.s[where])[:, None] * ((block - mean) - mean_low)
            yield centred * scale, centred @ M
        yield lift * scale, lift @ M

    C = np.zeros((M.shape[1], rows.d))
    missed = 0.0
    for _ in range(3):
        gram, cross, missed = np.zeros((M.shape[1],) * 2), np.zeros_like(C), 0.0
        for V, Z in pairs():
            rest = V - Z @ C
            gram += Z.T @ Z
            cross += Z.T @ rest
            missed += float((rest**2).sum())
        C = C + np.linalg.lstsq(gram, cross, rcond=None)[0]
    alive = int(np.count_nonzero(scale))
    return min(1.0, float(np.sqrt(missed / alive))) if alive else 0.0


def coercivity(
    blocks: Iterable[tuple[slice, Array]],
    weights: Array,
    basis: Array,
    curvature: Array,
    mean: Array | None,
    enough: float = np.inf,
) -> float:
    """A number nu, on the safe side of rounding, with M^T (X_c^T S X_c + A) M >= nu I.

    Parameters
    ----------
    blocks : iterable of (slice, array)
        Consecutive blocks of at most 2048 dense rows.
    weights : array of shape (n,)
    basis : array of shape (d,) or (d, r)
        M, one dimension meaning a diagonal matrix.
    curvature : array of shape (d,)
        The diagonal of A.
    mean : array of shape (d,), optional
        About which X is centred; None if there is no intercept.
    enough : float, optional
        Stop early when the penalty alone proves this much.
    """
    diagonal = basis.ndim == 1
    if diagonal:
        from_penalty = float((curvature * basis**2).min(initial=np.inf))
        if from_penalty >= enough:  # the data can only add to this
            return from_penalty
    M = np.diag(basis) if diagonal else basis
    r = M.shape[1]
    d, n, total_weight = len(M), len(weights), float(weights.sum())
    gram, total = np.zeros((r, r)), np.zeros(r)
    drift = 0.0  # squared Frobenius norm of the products' rounding errors
    for where, block in blocks:
        centred = block if mean is None else block - mean
        root = np.sqrt(weights[where])[:, None]
        Z = root * (centred @ M)
        gram += Z.T @ Z
        total += (root * Z).sum(axis=0)
        reach = root * (np.abs(centred) @ np.abs(M))
        drift += float((reach**2).sum())
    lift = np.sqrt(curvature)[:, None] * M
    gram += lift.T @ lift
    size = float(np.trace(gram))
    # S-weighted sums about any point exceed those about the true mean by what the point misses.
    if mean is not None:
        gram -= np.outer(total, total) / total_weight
    least = float(np.linalg.eigvalsh(gram)[0]) if r else np.inf
    least -= 2 * (min(n, ROWS) + n / ROWS + 4 * r + 16) * EPS * size
    root_least = np.sqrt(max(least, 0.0)) - (d + 4) * EPS * np.sqrt(drift)
    return max(root_least, 0.0) ** 2


def _gap_free(g: Array, error: Array, basis: Array, nu: float) -> float:
    M = np.abs(basis)
    if basis.ndim == 1:
        along = M[:, None] * (np.abs(g) + error)
    else:
        own = (len(M) + 2) * EPS
        along = np.abs(basis.T @ g) + M.T @ (error + own * np.abs(g))
    square = float((along**2).sum())
    return 0.0 if square == 0 else square / (2 * nu) if nu > 0 else np.inf


def _gap_nonnegative(g: Array, error: Array, basis: Array, nu: float, W: Array) -> float:
    """sum_j max over e_j >= -w_j of -g_j e_j - h_j e_j^2 / 2, for the worst g within its error."""
    h = (nu / basis**2)[:, None]
    up = np.maximum(error - g, 0.0)
    rising = np.where(up > 0, 0.5 * up * (up / h), 0.0)
    down = np.maximum(error + g, 0.0)
    step = np.where(down > 0, np.minimum(W, down / h), 0.0)
    falling = down * step - 0.5 * h * step * step
    return float(np.maximum(rising, falling).sum())


def _gradient_double(
    certificate: Certificate, rows: Rows, curvature: Array
) -> tuple[Array, Array, Array, Array]:
    """Gradient in double precision: X_c^T S (z - y) + A W, the slope in b, and error bounds."""
    W, b = certificate.coef, certificate.intercept
    g, size = np.zeros_like(W), np.zeros_like(W)
    slope, slope_size = np.zeros_like(b), np.zeros_like(b)
    mean = rows.mean()[0] if certificate.fit_intercept else np.zeros(rows.d)
    for where, block in rows:
        s = rows.s[where, None]
        z = block @ W + b
        r = s * (z - rows.y[where])
        reach = s * (np.abs(block) @ np.abs(W) + np.abs(b) + np.abs(rows.y[where]))
        centred = block - mean
        magnitude = (rows.d + 4) * EPS * reach + (min(rows.n, ROWS) + 4) * EPS * np.abs(r)
        g += centred.T @ r
        size += np.abs(centred).T @ magnitude
        slope += r.sum(axis=0)
        slope_size += magnitude.sum(axis=0)
    blocks = rows.n / ROWS + 4
    g += curvature * W
    size += 4 * EPS * np.abs(curvature * W) + blocks * EPS * (size + np.abs(g))
    if not certificate.fit_intercept:
        return g, size, np.zeros_like(b), np.zeros_like(b)
    slope_size = slope_size + blocks * EPS * (slope_size + np.abs(slope))
    # The mean is rounded to double: that error multiplies the sum of residuals.
    off = 2 * EPS * np.abs(mean) + rows.mean()[2]
    size = size + off[:, None] * (np.abs(slope) + slope_size)
    return g, size, slope, slope_size


def _gradient_doubled(
    certificate: Certificate, rows: Rows, curvature: Array
) -> tuple[Array, Array, Array, Array]:
    """The same in twice the digits."""
    found = rows.doubled(certificate, curvature)
    return found.gradient, found.gradient_rounding, found.slope, found.slope_rounding


def check_fenchel(certificate: Certificate, rows: Rows) -> list[Check]:
    """Gap <= (1 - t)^2 loss + e^2 / (2 S) + sum_j p(w_j) + p*(t q_j) - t q_j w_j.

    The residual of the coefficients is the dual point; t is chosen here.
    """
    penalty, W = certificate.penalty, certificate.coef
    suited = "quadratic" in certificate.loss.capabilities and "coordinates" in penalty.capabilities
    around = bool(np.all(np.asarray(penalty.lower) <= 0) and np.all(np.asarray(penalty.upper) >= 0))
    reach = np.asarray(certificate.witness.get("coefficient_radius", np.full(W.shape, np.inf)))
    checks = [
        Check(
            "squared loss, coordinates",
            "yes",
            "yes" if suited and around else "no",
            suited and around,
        )
    ]
    if not (suited and around) or reach.shape != W.shape or not (reach >= 0).all():
        return [*checks, Check("coefficient radius", f"shape {W.shape}", f"{reach.shape}", False)]
    free = np.isfinite(reach)
    value = penalty.value_per_target(W)
    loss = certificate.objective + certificate.objective_rounding - float(value.sum())
    found = np.inf
    for gradient in (_gradient_double, _gradient_doubled):
        g, error, slope, slope_error = gradient(certificate, rows, np.zeros_like(W))
        off = np.abs(slope) + slope_error if certificate.fit_intercept else np.zeros(W.shape[1])
        found = float(np.sum(off**2)) / (2 * rows.weight)
        ends = [np.where(free, 0.0, end) for end in penalty.worst_ends(-g - error, error - g)]
        t = np.min([penalty.dual_scale(end) for end in ends], axis=0) * (1 - 8 * EPS)
        conjugate = np.sum([penalty.conjugate_per_target(t * end) for end in ends], axis=0)
        product = np.where(free, 0.0, -g * W)
        spread = np.sum(error * np.abs(W), axis=0)
        beyond = np.where(free, np.abs(g) + error, 0.0) * (np.where(free, reach, 0.0) + np.abs(W))
        size = value + conjugate + np.sum(np.abs(product), axis=0) + spread
        terms = value + conjugate - t * np.sum(product, axis=0) + t * spread
        found += float(np.sum(terms + np.sum(beyond, axis=0) + (rows.d + 12) * EPS * size))
        found += float(np.max((1 - t) ** 2)) * loss
        found = found * (1 + 1e-12) + UNDERFLOW * rows.n
        if found <= certificate.gap:
            break
    checks.append(
        Check("gap", f"<= {certificate.gap:.4g}", f"{found:.4g}", found <= certificate.gap)
    )
    return checks
