"""What a contestant is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.objective import Answer, Data

__all__ = ["Contestant", "Fit"]

Fit = Callable[[Data], Answer]


@dataclass(frozen=True)
class Contestant:
    """A library, or a way to use it.

    Attributes
    ----------
    name : str
        As the tables print it.
    fits : mapping from task to function
        Tasks: "least_squares", "ridge", "ridge_cv" (leave-one-out), "ridge_folds".
    """

    name: str
    fits: Mapping[str, Fit]
