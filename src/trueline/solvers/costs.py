"""Rates of an ordinary machine, from which the planner estimates seconds.

They were measured on two cores of a current server processor. Only their ratios matter for the
choice of a solver; the benchmark of the planner's regret tells how good that choice is.
"""

from __future__ import annotations

__all__ = [
    "CALL",
    "DENSE_READ",
    "GRAM_RATE",
    "SMALL_FACTOR_RATE",
    "SPARSE_READ",
    "dense_factor_rate",
    "seconds",
]

#: Multiply-adds per second of a symmetric product X^T X in row blocks on two threads.
GRAM_RATE = 60e9
#: Operations per second of dense factorisations (Cholesky, triangular inverse) of small matrices.
SMALL_FACTOR_RATE = 25e9
#: Elements per second of a product X w with a dense matrix that is read from memory.
DENSE_READ = 2.0e9
#: Non-zeros per second of a product with a sparse matrix.
SPARSE_READ = 0.35e9
#: Seconds that any solver needs for its fixed work in the interpreter.
CALL = 2e-4


def seconds(flops: float, rate: float, calls: float = 1.0) -> float:
    """Time of so many operations at a rate, plus the fixed cost of calls."""
    return flops / rate + calls * CALL


def dense_factor_rate(d: int) -> float:
    """Operations per second of QR on blocks of d columns: wide blocks use the caches better."""
    return 4e9 + 12e9 * min(1.0, d / 300.0)
