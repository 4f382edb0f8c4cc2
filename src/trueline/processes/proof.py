"""Certificates of Gaussian processes: the claims of a fit, with room for their rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.kernel import KernelCertificate
from trueline.certificates.kernel_check import free_slope, likelihood_level

__all__ = ["certify_process"]

Array = NDArray[np.float64]


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
    """What holds of a fit whose log marginal likelihood was found to be ``value``.

    The slopes are evaluated here, by the kernel's own derivatives; what rounding leaves uncertain
    of them is part of the claim.
    """
    found = likelihood_level(kernel, X, Y, noise, coef, is_local)
    slope = math.inf
    if is_local:
        slope = free_slope(found.slopes, found.slope_rounding, kernel.theta, kernel.bounds)
        slope = 1.25 * slope + 1e-12
    off = abs(found.value - value)
    return KernelCertificate(
        kind="stationary point" if is_local else "given parameters",
        objective=-value,
        objective_rounding=2 * found.value_rounding + 2 * off + 1e-290,
        gap=math.inf,
        residual=1.25 * found.residual,
        slope=slope,
        kernel=kernel,
        coef=coef,
        witness={
            "noise": np.asarray(noise),
            "level": np.asarray(level),
            "scale": np.asarray(scale),
        },
    )
