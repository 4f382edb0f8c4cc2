r"""The prior whose negative logarithm a penalty is, under noise of scale phi.

p(w_j) = exp(-(a abs(w_j) + c/2 w_j^2) / phi) / Z

squared         normal, variance phi / alpha       Z = sqrt(2 pi phi / alpha)
absolute        Laplace, scale phi / alpha         Z = 2 phi / alpha
elastic net     a mixture of both                  Z = sqrt(2 pi / c) erfcx(a / sqrt(2 c)),
                                                   with a and c in units of phi
non-negative    the same on w_j >= 0               half of Z
none            flat: no density, left out         Z = 1
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

Array = NDArray[np.float64]


def log_prior(penalty: Any, W: Array, phi: float) -> float:
    """The logarithm of the prior density at coefficients of shape (d, k).

    Raises
    ------
    ValueError
        For penalties without a known density.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.penalties import L2
    >>> from trueline.penalties.prior import log_prior
    >>> round(log_prior(L2(1.0), np.zeros((1, 1)), 1.0), 6)  # -log(2 pi) / 2
    -0.918939
    """
    part = penalty
    if part.prior is None:
        raise ValueError(f"The prior of the {part.name} penalty has no known density.")
    half = 0.0
    if "nonnegative" in part.capabilities:
        part, half = part.base, np.log(2.0)
    a = np.broadcast_to(np.asarray(part.linear, dtype=float) / phi, W.shape)
    c = np.broadcast_to(np.asarray(part.curvature, dtype=float) / phi, W.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        curved = 0.5 * np.log(2 * np.pi / c) + np.log(erfcx(a / np.sqrt(2 * c)))
        level = np.where(c > 0, curved, np.where(a > 0, np.log(2.0 / a), 0.0))
    proper = (a > 0) | (c > 0)
    return float((half * proper - level).sum() - penalty.value(W) / phi)
