"""Folds of a search, of which there has to be one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["some_folds"]


def some_folds(splits: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The pairs of rows to fit and rows to score, as a list.

    Examples
    --------
    >>> from trueline.estimators.folds import some_folds
    >>> some_folds([])
    Traceback (most recent call last):
        ...
    ValueError: cv gives no folds: let it be a number of folds, a splitter, or pairs of rows.
    """
    folds = list(splits)
    if not folds:
        raise ValueError(
            "cv gives no folds: let it be a number of folds, a splitter, or pairs of rows."
        )
    return folds
