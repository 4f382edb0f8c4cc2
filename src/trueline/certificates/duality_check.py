"""The checks of dual points, and of gradients alone: any convex loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, FEW_ROWS, ROWS, UNDERFLOW, Check, Rows

__all__ = ["check_bounded", "check_duality", "check_ordered"]

Array = NDArray[np.float64]


def check_duality(
    certificate: Certificate, rows: Rows, push: Array | None = None, push_size: Array | float = 0.0
) -> list[Check]:
    """Gap <= P - D(u), for the dual point u of the witness.

    ``push`` is what multipliers of constraints add to s u, and ``push_size`` the sum of their
    magnitudes.
    """
    loss, penalty = certificate.loss, certificate.penalty
    u = np.asarray(certificate.witness["dual"], dtype=np.float64)
    radius = np.asarray(certificate.witness["radius"], dtype=np.float64)
    k = certificate.coef.shape[1]
    u = u[rows.keep] if u.ndim == 2 and len(u) == rows.given else u
    if u.shape != rows.y.shape or radius.shape != (k,) or not (radius >= 0).all():
        return [Check("dual point", f"shape {rows.y.shape}", f"shape {u.shape}", False)]
    # With an intercept, b + x.w = (b + centre.w) + (x - centre).w for any centre: the radius is
    # that of the first term.
    centre = np.asarray(certificate.witness.get("centre", np.zeros(rows.d)), dtype=np.float64)
    if centre.shape != (rows.d,) or not (certificate.fit_intercept or not centre.any()):
        return [Check("centre", f"shape ({rows.d},)", f"shape {centre.shape}", False)]
    own = rows.s[:, None] * u
    weighted = own if push is None else own + push
    magnitude = np.abs(own) + push_size
    parts, size = [], np.zeros_like(certificate.coef)
    for where, block in rows:
        block = block - centre if centre.any() else block
        # Few rows at a time, and the sums of those pairwise: less to lose than in one long sum.
        for start in range(0, len(block), FEW_ROWS):
            few = slice(start, start + FEW_ROWS)
            parts.append(block[few].T @ weighted[where][few])
        size += np.abs(block).T @ magnitude[where]
    V = -np.ascontiguousarray(np.moveaxis(np.stack(parts), 0, -1)).sum(axis=-1)
    error = (min(rows.n, FEW_ROWS) + np.log2(rows.n / FEW_ROWS + 2) + 12) * EPS * size
    # Coefficients within a stated reach need no penalty: abs(w_j) <= R_j costs abs(V_j) R_j,
    # whatever nonnegative penalty there may be.
    reach = np.asarray(certificate.witness.get("coefficient_radius", np.full(V.shape, np.inf)))
    if reach.shape != V.shape or not (reach >= 0).all():
        return [Check("coefficient radius", f"shape {V.shape}", f"shape {reach.shape}", False)]
    free = np.isfinite(reach)
    # Shrink until even the worst rounding of V is inside the domain of p*.
    ends = [np.where(free, 0.0, end) for end in penalty.worst_ends(V - error, V + error)]
    shrink = np.min([penalty.dual_scale(end) for end in ends], axis=0)
    shrink = np.where(shrink < 1, shrink * (1 - 8 * EPS), 1.0)
    if push is not None:  # multipliers that targets share allow for one factor only
        shrink = np.full_like(shrink, shrink.min())
    conjugate = rows.s[:, None] * loss.conjugate(rows.y, u * shrink)
    beyond = np.sum([penalty.conjugate_per_target(end * shrink) for end in ends], axis=0)
    worst = np.where(free, np.abs(V) + error, 0.0) * np.where(free, reach, 0.0)
    beyond = beyond + np.sum(worst * shrink, axis=0)
    lower = -_sums(conjugate) - beyond
    units = (np.log2(rows.n + 2) + 32) * EPS
    size = _sums(rows.s[:, None] * loss.conjugate_magnitude(rows.y, u * shrink))
    rounding = units * (size + np.abs(beyond) + np.abs(lower))
    if certificate.fit_intercept:
        imbalance = np.abs(_sums(weighted)) + units * _sums(magnitude)
        rounding = rounding + imbalance * radius
    bound = float((lower - rounding).sum())
    gap = certificate.objective + certificate.objective_rounding - bound + UNDERFLOW * rows.n
    inside = bool(np.isfinite(bound))
    return [
        Check("dual point is feasible", "yes", "yes" if inside else "no", inside),
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap),
    ]


def check_ordered(certificate: Certificate, rows: Rows) -> list[Check]:
    """The scores are in the order of the quantiles, and multipliers of that order prove the gap.

    With m >= 0 the multipliers of z_j <= z_next, sum m (z_j - z_next) <= 0 for all that is allowed:
    it may be added to the objective before the minimum is bounded from below.
    """
    W, b = certificate.coef, certificate.intercept
    n, k = rows.y.shape
    quantiles = np.atleast_1d(np.asarray(getattr(certificate.loss, "q", np.nan), dtype=float))
    if quantiles.shape != (k,) or not np.isfinite(quantiles).all():
        return [Check("quantiles", f"{k}", f"shape {quantiles.shape}", False)]
    ranks = np.argsort(quantiles, kind="stable")
    order = np.asarray(certificate.witness["order"], dtype=np.float64)
    order = order[rows.keep] if order.ndim == 2 and len(order) == rows.given else order
    if order.shape != (n, k - 1) or not (np.isfinite(order).all() and (order >= 0).all()):
        found = f"shape {order.shape}" if order.shape != (n, k - 1) else "negative or not finite"
        return [Check("multipliers of the order", f"shape {(n, k - 1)}, >= 0", found, False)]
    slack = float(certificate.witness["slack"])
    crossing = 0.0
    for _, block in rows:
        z = (block @ W + b)[:, ranks]
        reach = ((rows.row_terms + 2) * EPS * (np.abs(block) @ np.abs(W) + np.abs(b)))[:, ranks]
        apart = z[:, :-1] - z[:, 1:] + reach[:, :-1] + reach[:, 1:]
        crossing = max(crossing, float(apart.max(initial=0.0)))
    push, push_size = np.zeros((n, k)), np.zeros((n, k))
    push[:, ranks[:-1]] += order
    push[:, ranks[1:]] -= order
    push_size[:, ranks[:-1]] += order
    push_size[:, ranks[1:]] += order
    kept = Check("order", f"kept up to {slack:.3g}", f"{crossing:.3g}", crossing <= slack)
    return [kept, *check_duality(certificate, rows, push, push_size)]


def _sums(values: Array) -> Array:
    """Sums over the rows, pairwise: NumPy does so along contiguous memory only."""
    return np.ascontiguousarray(values.T).sum(axis=1)


def check_bounded(certificate: Certificate, rows: Rows) -> list[Check]:
    """Gap <= sum_j |g_j| radius_j, by convexity."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    radius = np.asarray(certificate.witness["radius"], dtype=np.float64)
    reach_b = np.asarray(certificate.witness["intercept_radius"], dtype=np.float64)
    fitting = radius.shape == W.shape and reach_b.shape == b.shape
    if not fitting or not (radius >= 0).all() or not (reach_b >= 0).all():
        return [Check("radius", f"shape {W.shape}, >= 0", f"shape {radius.shape}", False)]
    g = certificate.penalty.gradient(W)
    size = 4 * EPS * np.abs(g)
    slope, slope_size = np.zeros_like(b), np.zeros_like(b)
    terms = min(rows.n, ROWS) + rows.n / ROWS + 4
    for where, block in rows:
        z, s = block @ W + b, rows.s[where, None]
        u = s * loss.gradient(rows.y[where], z)
        size_of_scores = np.abs(block) @ np.abs(W) + np.abs(b)
        reach = s * size_of_scores
        if "coupled" in loss.capabilities:  # an error of one score is felt by all of its row
            reach = np.sqrt((reach**2).sum(axis=1, keepdims=True)) * np.ones_like(u)
        bend = loss.most_curvature(rows.y[where], z, (rows.row_terms + 4) * EPS * size_of_scores)
        error = (rows.row_terms + 4) * EPS * reach * bend + terms * EPS * np.abs(u)
        g = g + block.T @ u
        size += np.abs(block).T @ error
        slope += u.sum(axis=0)
        slope_size += error.sum(axis=0)
    checks = []
    if "nonnegative" in certificate.penalty.capabilities:
        least = float(W.min(initial=0.0))
        checks.append(Check("coefficients", ">= 0", f"{least:.3g}", least >= 0))
        # Down to zero where the slope is positive, up to the radius where it is negative.
        gain = np.maximum((g + size) * np.minimum(W, radius), (size - g) * radius)
        gap = float(np.maximum(gain, 0.0).sum())
    else:
        gap = float(((np.abs(g) + size) * radius).sum())
    if certificate.fit_intercept:
        gap += float(((np.abs(slope) + slope_size) * reach_b).sum())
    return [
        *checks,
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap),
    ]
