"""What to say when a target is missing in some row."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["refuse_missing"]


def refuse_missing(y: Any, name: str) -> None:
    """Raise if some target is None, which conversions would turn into NaN without a word.

    Parameters
    ----------
    y : array-like
        Targets as they were given. Those of numbers are left to the tests for NaN.
    name : str
        The estimator, for messages.

    Examples
    --------
    >>> from trueline.estimators.missing_target import refuse_missing
    >>> try:
    ...     refuse_missing(["ham", None, "spam"], "LogisticRegression")
    ... except ValueError as error:
    ...     print(str(error)[:38])
    Input y contains NaN: y[1] is missing.
    """
    if np.dtype(object) != getattr(y, "dtype", np.dtype(object)):
        return
    try:
        values = np.asarray(y)
    except ValueError:  # rows of unequal length
        return
    if values.dtype != object or values.ndim == 0:  # no target at all is another matter
        return
    for place, value in np.ndenumerate(values):
        if value is None:
            at = ", ".join(map(str, place))
            raise ValueError(
                f"Input y contains NaN: y[{at}] is missing. {name} needs a target for every row: "
                "leave out the rows without one, or fill them in first."
            )
