r"""Offsets and exposures of generalised linear models, taken into target and weights.

With the logarithm as link and exposure e_i = exp(offset_i) the mean of a row is m_i = e_i exp(z_i),
z_i = x_i.w + b. The deviance d of power p is homogeneous,

    d(y, e m) = e^(2 - p) d(y / e, m),

so that the model of the rates y_i / e_i with weights s_i e_i^(2 - p) is the same one, to the last
constant. With the identity as link (and squared error) the offset is subtracted from the target.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Exposed", "as_offset", "expose"]

Array = NDArray[np.float64]

# Logarithms of exposures whose products with counts and weights stay far from the range's ends.
_FARTHEST = 80.0


class Exposed(NamedTuple):
    """Target and weights that an offset leaves; no weights means one for each row."""

    target: Array
    weights: Array | None


def as_offset(offset: Any, exposure: Any, n: int, is_log: bool) -> Array | None:
    """What is added to the scores of n rows, or None; exposures become logarithms.

    Examples
    --------
    >>> from trueline.estimators.regression.exposure import as_offset
    >>> as_offset(None, [1.0, 2.0], 2, is_log=True).round(4)
    array([0.    , 0.6931])
    """
    if offset is None and exposure is None:
        return None
    total = np.zeros(n)
    if offset is not None:
        total = total + _rows(offset, n, "offset")
    if exposure is not None:
        if not is_log:
            raise ValueError(
                "exposure multiplies the mean, which is for the logarithm as link. With "
                "link='identity' give an offset."
            )
        given = _rows(exposure, n, "exposure")
        if not (given > 0).all():
            raise ValueError(
                f"exposure must be positive, but its least value is {given.min():g}. Leave out the "
                "rows without exposure, or give them sample weight zero and any exposure."
            )
        total = total + np.log(given)
    return total


def expose(
    y: Array, weights: Array | None, offset: Array | None, power: float, is_log: bool
) -> Exposed:
    """The target and the weights of the model without offset that has the same deviance."""
    if offset is None:
        return Exposed(y, weights)
    if not is_log:
        if power != 0:
            raise ValueError(
                f"An offset with link='identity' is for power=0, got power={power:g}. "
                "With link='log' every power takes one."
            )
        return Exposed(y - offset, weights)
    largest = float(np.abs(offset).max(initial=0.0))
    if largest > _FARTHEST:
        raise ValueError(
            f"The largest offset is {largest:.3g} in magnitude: an exposure of exp({largest:.3g}) "
            "leaves the range in which double precision can add. Subtract the mean from the "
            "offsets (with a logarithm as link that changes the intercept alone), or leave out the "
            f"rows beyond {_FARTHEST:g}."
        )
    factor = np.exp((2.0 - power) * offset)
    return Exposed(y * np.exp(-offset), factor if weights is None else weights * factor)


def _rows(values: Any, n: int, name: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(n, float(array))
    if array.shape != (n,):
        raise ValueError(
            f"{name} must have one number for each of the {n} rows, got {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return array
