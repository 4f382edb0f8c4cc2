r"""The checker of Huber regression with its scale: objective and dual bound from the rows.

Minimised is, over w, b and the scale sigma >= 0, with r_i = x_i.w + b - y_i,

    F = sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,
    H(t) = t^2 where |t| <= epsilon, 2 epsilon |t| - epsilon^2 beyond;
    sigma H(r / sigma) is 2 epsilon |r| for sigma = 0, its limit.

Since sigma H(r / sigma) >= u r - sigma u^2 / 4 for all |u| <= 2 epsilon, every u with

    |u_i| <= 2 epsilon,      sum_i s_i u_i^2 / 4 <= sum_i s_i,      sum_i s_i u_i = 0 (intercept)

proves    F >= - sum_i s_i u_i y_i - ||X^T (s u)||^2 / (4 alpha).

Targets may be counted from any level and columns from any centre. What rounding leaves of sum_i s_i
u_i, and of X^T (s u) where there is no penalty, is paid for within the radii of the witness.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Check

__all__ = ["WITNESS", "check_concomitant"]

Array = NDArray[np.float64]

#: What such a proof must bring.
WITNESS = ("scale", "dual", "level", "radius", "centre", "coefficient_radius")
_EPS = float(np.finfo(np.float64).eps)
_FEW_ROWS = 32
_UNDERFLOW = 1e-305


def check_concomitant(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks; ``rows`` are those of the independent checker."""
    scale, u, level, radius, centre, reach = (
        np.asarray(certificate.witness[name], dtype=np.float64) for name in WITNESS
    )
    u = u[rows.keep] if u.ndim == 2 and len(u) == rows.given else u
    shapes = (scale.shape, u.shape, level.shape, radius.shape, centre.shape, reach.shape)
    sound = shapes == ((1,), (rows.n, 1), (1,), (1,), (rows.d,), (rows.d, 1))
    sound = sound and all(np.isfinite(part).all() for part in (scale, u, level, radius, centre))
    sound = sound and bool((radius >= 0).all() and (reach >= 0).all())
    sound = sound and (certificate.fit_intercept or not (centre.any() or level.any()))
    suited = certificate.loss.name == "huber" and certificate.penalty.name == "l2"
    suited = suited and np.ndim(certificate.penalty.curvature) == 0
    positive = sound and bool(scale[0] >= 0)
    checks = [
        Check("witness", "complete", "yes" if sound else "shapes or numbers differ", sound),
        Check("Huber's loss, squared norm", "yes", "yes" if suited else "no", suited),
        Check("scale", ">= 0", f"{scale[0]:.6g}" if sound else "unknown", positive),
    ]
    if not (sound and suited and positive):
        return checks
    objective, rounding = _objective(certificate, rows, float(scale[0]))
    allowed = certificate.objective_rounding
    checks.append(
        Check(
            "objective",
            f"{certificate.objective:.12g} within {allowed:.2g}",
            f"{objective:.12g} within {rounding:.2g}",
            bool(abs(objective - certificate.objective) + rounding <= allowed),
        )
    )
    epsilon = float(certificate.loss.delta)  # type: ignore[attr-defined]
    units = (np.log2(rows.n + 2) + 32) * _EPS
    square = _sum(rows.s * u[:, 0] ** 2) / 4 * (1 + units)
    inside = bool((np.abs(u) <= 2 * epsilon).all()) and square <= rows.weight * (1 - units)
    checks.append(Check("dual point is feasible", "yes", "yes" if inside else "no", bool(inside)))
    lower = _lower_bound(
        certificate, rows, u[:, 0], float(level[0]), float(radius[0]), centre, reach
    )
    gap = certificate.objective + certificate.objective_rounding - lower + _UNDERFLOW * rows.n
    checks.append(
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", bool(gap <= certificate.gap))
    )
    return checks


def _sum(values: Array) -> float:
    return float(np.ascontiguousarray(values).sum())


def _objective(certificate: Certificate, rows: Any, scale: float) -> tuple[float, float]:
    """F and a bound on the error of evaluating it."""
    W, b = certificate.coef, certificate.intercept
    epsilon = float(certificate.loss.delta)  # type: ignore[attr-defined]
    penalty = certificate.penalty.value(W)
    values, errors = np.empty(rows.n), np.empty(rows.n)
    for where, block in rows:
        y = rows.y[where]
        r = np.abs(block @ W + b - y)[:, 0]
        reach = (np.abs(block) @ np.abs(W) + np.abs(b) + np.abs(y))[:, 0]
        reach = (rows.row_terms + 3) * _EPS * reach
        steep = np.minimum(r, epsilon * scale) / scale if scale > 0 else np.full_like(r, epsilon)
        value = steep * (2 * r - steep * scale)
        values[where] = rows.s[where] * value
        # sigma H(r / sigma) is steeper nowhere than 2 epsilon.
        errors[where] = rows.s[where] * (2 * epsilon * reach + 8 * _EPS * (value + steep * r))
    own = scale * rows.weight
    units = (np.log2(rows.n + 2) + 32) * _EPS
    total = own + _sum(values) + penalty
    error = _sum(errors) * (1 + 1e-6) + units * (own + _sum(values))
    return total, error + (rows.d + 8) * _EPS * abs(penalty)


def _lower_bound(
    certificate: Certificate,
    rows: Any,
    u: Array,
    level: float,
    radius: float,
    centre: Array,
    reach: Array,
) -> float:
    """The bound of the module's text, on the safe side of rounding."""
    weighted = rows.s * u
    parts, size = [], np.zeros(rows.d)
    for where, block in rows:
        centred = block - centre
        # Sums of few rows, then pairwise sums of these: the bound on their rounding stays small.
        for start in range(0, len(block), _FEW_ROWS):
            few = slice(start, start + _FEW_ROWS)
            parts.append(centred[few].T @ weighted[where][few])
        size += np.abs(centred).T @ np.abs(weighted[where])
    V = np.ascontiguousarray(np.stack(parts, axis=1)).sum(axis=1)
    error = (min(rows.n, _FEW_ROWS) + np.log2(rows.n / _FEW_ROWS + 2) + 12) * _EPS * size
    most = np.abs(V) + error
    free = np.isfinite(reach[:, 0])
    twice = 2.0 * float(np.asarray(certificate.penalty.curvature))
    within = most[free] * reach[free, 0]
    beyond = np.where(most[~free] > 0, most[~free] * (most[~free] / twice), 0.0)
    outside = float(within.sum() + beyond.sum()) * (1 + (rows.d + 8) * _EPS)
    products = weighted * (rows.y[:, 0] - level)
    units = (np.log2(rows.n + 2) + 32) * _EPS
    value = -_sum(products) - outside - units * _sum(np.abs(products))
    if certificate.fit_intercept:
        # Correctly rounded, whatever cancels; products with weights other than one are rounded too.
        off = 0.0 if (rows.s == 1).all() else _EPS * _sum(np.abs(weighted))
        value -= (abs(math.fsum(weighted)) * (1 + 4 * _EPS) + off) * radius
    return value - 4 * _EPS * abs(value)
