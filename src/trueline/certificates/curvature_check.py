r"""The checker of proofs by curvature: slope, curvature and reach recomputed from the rows.

With a_i = (x_i - m, 1) for the centre m of the witness and M its diagonal, claimed are nu and rho:

    rho >= 2 |M g| / nu,      gap >= |M g|^2 / (2 nu),
    M (sum_i s_i c_i a_i a_i^T + A) M >= nu,
    c_i the least curvature of the loss at scores within rho sum_j |a_ij| M_j of z_i.

g is the slope with the price per unit of a penalty by absolute values, of coefficients at zero
what exceeds this price.

Then no coefficients have a lower objective, up to the gap: within the distance rho by this
curvature, beyond it by convexity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Check
from trueline.certificates.quadratic_check import coercivity

__all__ = ["WITNESS", "check_curvature", "least_curvatures", "steepness"]

Array = NDArray[np.float64]

#: What such a proof must bring.
WITNESS = ("about", "diagonal", "coercivity", "reach")
_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2048
_UNDERFLOW = 1e-305


def check_curvature(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks but that of the objective; ``rows`` are those of the independent checker."""
    centre, basis, nu, reach = (
        np.asarray(certificate.witness[name], dtype=np.float64) for name in WITNESS
    )
    (d, k), offset = certificate.coef.shape, int(certificate.fit_intercept)
    shapes = (centre.shape, basis.shape, nu.shape, reach.shape)
    fitting = shapes == ((d,), (d + offset, k), (k,), (k,))
    sound = fitting and all(np.isfinite(part).all() for part in (centre, basis, nu, reach))
    sound = sound and bool((basis > 0).all() and (nu > 0).all() and (reach >= 0).all())
    sound = sound and (bool(offset) or not centre.any())
    suited = bool({"quadratic", "elastic"} & certificate.penalty.capabilities)
    suited = suited and "nonnegative" not in certificate.penalty.capabilities
    checks = [
        Check(
            "witness of curvature",
            f"{d + offset} numbers a target",
            "yes" if sound else "no",
            sound,
        ),
        Check("elastic penalty, or none", "yes", "yes" if suited else "no", suited),
    ]
    if not (sound and suited):
        return checks
    steep = steepness(certificate, rows, centre, basis)
    gap = float((steep**2 / (2 * nu)).sum()) * (1 + 1e-12) + _UNDERFLOW * rows.n
    enough = bool((reach >= 2 * steep / nu).all())
    checks.append(Check("reach", f"{reach.max():.4g}", f">= {(2 * steep / nu).max():.4g}", enough))

    def augmented() -> Iterator[tuple[slice, Array]]:
        for where, block in rows:
            yield where, np.hstack([block - centre, np.ones((len(block), offset))])

    bends = np.broadcast_to(certificate.penalty.curvature, (d, k))
    for t in range(k):
        weights = least_curvatures(certificate, rows, centre, basis[:, t], float(reach[t]), t)
        bend = np.append(bends[:, t], np.zeros(offset))
        found = coercivity(augmented(), weights, basis[:, t], bend, None)
        checks.append(Check("curvature", f">= {nu[t]:.4g}", f"{found:.4g}", bool(found >= nu[t])))
    checks.append(Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap))
    return checks


def _score_error(rows: Any, block: Array, W: Array, b: Array, target_size: Array) -> Array:
    """How far the computed scores may be from the true ones."""
    reach = np.abs(block) @ np.abs(W) + np.abs(b) + target_size
    return np.asarray((rows.row_terms + 4) * _EPS * reach)


def steepness(certificate: Certificate, rows: Any, centre: Array, basis: Array) -> Array:
    """|M g| per target, on the safe side of rounding."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    linear = np.broadcast_to(certificate.penalty.linear, W.shape)
    g = certificate.penalty.curvature * W + linear * np.sign(W)
    size = 4 * _EPS * (np.abs(certificate.penalty.curvature * W) + linear)
    slope, slope_size = np.zeros_like(b), np.zeros_like(b)
    terms = min(rows.n, _ROWS) + rows.n / _ROWS + 4
    for where, block in rows:
        y, s, centred = rows.y[where], rows.s[where, None], block - centre
        z, off = block @ W + b, _score_error(rows, block, W, b, loss.target_size(y))
        u = s * loss.gradient(y, z)
        error = s * loss.most_curvature(y, z, off) * off + terms * _EPS * np.abs(u)
        g = g + centred.T @ u
        size = size + np.abs(centred).T @ error
        slope += u.sum(axis=0)
        slope_size += error.sum(axis=0)
    # At zero a price per unit keeps coefficients from moving, up to a slope of that price.
    along = basis[: len(W)] * np.maximum(np.abs(g) + size - np.where(W == 0, linear, 0.0), 0.0)
    square = (along**2).sum(axis=0)
    if certificate.fit_intercept:
        square = square + (basis[-1] * (np.abs(slope) + slope_size)) ** 2
    return np.asarray(np.sqrt(square) * (1 + 1e-10))


def least_curvatures(
    certificate: Certificate, rows: Any, centre: Array, basis: Array, rho: float, t: int
) -> Array:
    """s_i c_i for all rows."""
    W, b = certificate.coef[:, [t]], certificate.intercept[[t]]
    loss = certificate.loss.of_target(t)
    out = np.zeros(rows.n)
    d = len(W)
    for where, block in rows:
        y = rows.y[where, t]
        far = np.abs(block - centre) @ basis[:d]
        far = rho * (far + basis[d:].sum()) * (1 + 1e-9)
        far = far + _score_error(rows, block, W, b, loss.target_size(y[:, None]))[:, 0]
        out[where] = rows.s[where] * loss.least_curvature(y, (block @ W + b)[:, 0], far)
    return out
