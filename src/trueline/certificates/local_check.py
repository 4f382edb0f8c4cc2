r"""The checker of local minima: slope, and curvature within a distance, recomputed from the rows.

With a_i = (x_i - m, 1) for the centre m of the witness and M its diagonal, claimed are nu and rho:

    rho >= 2 |M g| / nu,      gap >= |M g|^2 / (2 nu),
    M (sum_i s_i c_i a_i a_i^T + A) M >= nu,
    c_i the least curvature of the loss, of either sign, at scores within rho sum_j |a_ij| M_j
    of z_i.

Then no coefficients within the distance rho have an objective lower than this one by more than the
gap. Nothing is said about coefficients beyond: the loss need not be convex.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Check, Rows
from trueline.certificates.curvature_check import WITNESS, least_curvatures, steepness

__all__ = ["WITNESS", "check_local", "local_coercivity", "local_gap"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2048
_UNDERFLOW = 1e-305


def check_local(certificate: Certificate, rows: Rows) -> list[Check]:
    """All checks but that of the objective; an infinite gap claims nothing else."""
    if np.isinf(certificate.gap):
        return []
    centre, basis, nu, reach = (
        np.asarray(certificate.witness[name], dtype=np.float64) for name in WITNESS
    )
    (d, k), level = certificate.coef.shape, int(certificate.fit_intercept)
    shapes = (centre.shape, basis.shape, nu.shape, reach.shape)
    sound = k == 1 and shapes == ((d,), (d + level, 1), (1,), (1,))
    sound = sound and all(np.isfinite(part).all() for part in (centre, basis, nu, reach))
    sound = sound and bool((basis > 0).all() and (nu > 0).all() and (reach >= 0).all())
    sound = sound and (bool(level) or not centre.any())
    sound = sound and "quadratic" in certificate.penalty.capabilities
    sound = sound and "nonnegative" not in certificate.penalty.capabilities
    checks = [
        Check("witness of curvature", f"{d + level} numbers", "yes" if sound else "no", sound)
    ]
    if not sound:
        return checks
    steep = float(steepness(certificate, rows, centre, basis)[0])
    least = 2 * steep / float(nu[0])
    found = local_coercivity(certificate, rows, centre, basis[:, 0], float(reach[0]))
    gap = local_gap(steep, float(nu[0]), rows.n)
    return [
        *checks,
        Check("reach", f"{reach[0]:.4g}", f">= {least:.4g}", bool(reach[0] >= least)),
        Check("curvature", f">= {nu[0]:.4g}", f"{found:.4g}", bool(found >= nu[0])),
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap),
    ]


def local_gap(steep: float, nu: float, n: int) -> float:
    """|M g|^2 / (2 nu), on the safe side of rounding."""
    return steep**2 / (2 * nu) * (1 + 1e-12) + _UNDERFLOW * n


def local_coercivity(
    certificate: Certificate, rows: Rows, centre: Array, basis: Array, rho: float
) -> float:
    """A lower bound on the smallest eigenvalue of M (sum_i s_i c_i a_i a_i^T + A) M."""
    weights = least_curvatures(certificate, rows, centre, basis, rho, 0)
    if not np.isfinite(weights).all():
        return -np.inf
    r, level = len(basis), int(certificate.fit_intercept)
    bends = np.broadcast_to(certificate.penalty.curvature, certificate.coef.shape)[:, 0]
    gram, size, drift = np.zeros((r, r)), 0.0, 0.0
    for where, scaled, magnitude in _scaled(rows, centre, basis, level):
        own = weights[where, None]
        gram += (own * scaled).T @ scaled
        size += float((np.abs(own) * scaled**2).sum())
        drift += float((np.abs(own) * magnitude**2).sum())
    lift = np.append(bends, np.zeros(level)) * basis**2
    gram += np.diag(lift)
    size += float(lift.sum())
    least = float(np.linalg.eigvalsh(gram)[0])
    # The products are off by the rounding of their rows, and by that of their sums.
    off = 4 * _EPS * np.sqrt(drift)
    terms = min(rows.n, _ROWS) + rows.n / _ROWS + 4 * r + 16
    return least - 2 * terms * _EPS * size - 2 * np.sqrt(size) * off - off**2


def _scaled(
    rows: Rows, centre: Array, basis: Array, level: int
) -> Iterator[tuple[slice, Array, Array]]:
    """Rows M a_i, and the magnitudes of what they are made of."""
    for where, block in rows:
        ones = np.ones((len(block), level))
        away = np.hstack([np.abs(block) + np.abs(centre), ones])
        yield where, np.hstack([block - centre, ones]) * basis, away * basis
