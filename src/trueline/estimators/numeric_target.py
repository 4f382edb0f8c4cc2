"""What to say when a target is made of words, or missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from trueline.estimators.missing_target import refuse_missing

__all__ = ["numeric_target"]


@contextmanager
def numeric_target(estimator: Any, y: Any) -> Iterator[None]:
    """Where validation fails on a target that holds no numbers, say which value and what to do.

    Examples
    --------
    >>> from trueline import LinearRegression
    >>> try:
    ...     LinearRegression().fit([[1.0], [2.0]], ["low", "high"])
    ... except ValueError as error:
    ...     print(str(error)[:64])
    LinearRegression predicts numbers, but y[0] is 'low'. Give y as
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        found = _first_word(y)
        if found is None:
            raise
        place, value = found
        raise ValueError(
            f"{type(estimator).__name__} predicts numbers, but y[{place}] is {value!r}. Give y as "
            "numbers (an encoder such as scikit-learn's OrdinalEncoder makes ordered categories "
            "into numbers), or use a classifier if the values are classes."
        ) from error
    refuse_missing(y, type(estimator).__name__)


def _first_word(y: Any) -> tuple[str, str] | None:
    """The first text that is no number, and its place; None if there is none."""
    try:
        values = np.asarray(y)
    except ValueError:  # rows of unequal length
        return None
    if values.dtype.kind not in "OUST":
        return None
    for place, value in np.ndenumerate(values):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return ", ".join(map(str, place)), str(value)
    return None
