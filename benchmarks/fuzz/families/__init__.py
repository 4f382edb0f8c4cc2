"""The families of problems: to add one, a function ``generate(rng) -> Case`` and its line here."""

from __future__ import annotations

from benchmarks.fuzz.families import convex
from benchmarks.fuzz.families.least_squares import least_squares
from benchmarks.fuzz.frame import Generate

__all__ = ["FAMILIES"]

FAMILIES: dict[str, Generate] = {
    "least_squares": least_squares,
    "lasso": convex.lasso,
    "logistic": convex.logistic,
    "margins": convex.margins,
    "absolute": convex.absolute,
    "chebyshev": convex.chebyshev,
    "counts": convex.counts,
}
