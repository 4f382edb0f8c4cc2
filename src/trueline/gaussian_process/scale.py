"""Numbers whose squares are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_scale"]

# Squares, and sums of many of them, stay far from the ends of the range.
_LARGEST = 1e140


def check_scale(values: Any, name: str) -> None:
    """Refuse values whose squares would overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.gaussian_process.scale import check_scale
    >>> check_scale(np.array([1e3]), "X")
    """
    data = values.data if hasattr(values, "tocsr") else np.asarray(values)
    if data.dtype.kind == "f" and data.size and float(np.abs(data).max()) > _LARGEST:
        raise ValueError(
            f"The squares of the values of {name} overflow in double precision (the largest is "
            f"{float(np.abs(data).max()):.3g}): divide them by a power of ten."
        )
