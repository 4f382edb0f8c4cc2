"""What things cost on an ordinary machine, from which the planner estimates seconds.

Measured on two cores of a current server processor, and fitted to all solvers on the problems of
the benchmark ``regret``. Only ratios matter for the choice of a solver; that benchmark tells how
good the choice is, and how far each estimate is from the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueline.solvers.base import Facts

__all__ = [
    "CALL",
    "GRAM_RATE",
    "ITERATION",
    "gram_seconds",
    "is_rank_deficient",
    "iteration_seconds",
    "kernel_seconds",
    "normal_factor_seconds",
    "orthogonal_seconds",
    "refinement_seconds",
]

#: Multiply-adds per second of a symmetric product X^T X in row blocks on two threads.
GRAM_RATE = 60e9
#: Seconds of a solver's fixed work in the interpreter.
CALL = 6e-4
#: Seconds of one iteration's fixed work in the interpreter.
ITERATION = 2e-4


def is_rank_deficient(facts: Facts) -> bool:
    """Whether there are too few rows to determine the coefficients, whatever their values."""
    return facts.unpenalised and facts.n - facts.fit_intercept < facts.d


def gram_seconds(facts: Facts) -> float:
    """X^T X and X^T Y in row blocks; sparse products are SciPy's, on one thread."""
    n, d, k = facts.n, facts.d, facts.k
    if facts.is_sparse:
        # Each row costs the square of its number of entries, and a little by itself.
        entries = 9e-9 * facts.nonzeros**2 / max(1, n) + 5e-8 * facts.nonzeros
        return entries + 5e-7 * n + 8e-9 * d * d + 5e-9 * facts.nonzeros * k
    return 3e-9 * n * (d + k) + n * d * (d + k) / GRAM_RATE


def normal_factor_seconds(d: int, strengths: int) -> float:
    """Scaling, Cholesky and triangular inverse of d x d, once per strength."""
    return strengths * (1.6e-8 * d**2 + 3.4e-11 * d**3)


def refinement_seconds(facts: Facts) -> float:
    """Exact residuals and gradients, as often as refinement usually needs them."""
    size = float(facts.n) * facts.d * facts.k
    if facts.is_sparse:  # plain residuals instead, and blocks of rows made dense
        return 1e-7 * facts.n * facts.d + 2e-8 * facts.nonzeros * facts.k
    return (1.9e-7 if facts.n * facts.d >= 1_000_000 else 3.2e-7) * size


def orthogonal_seconds(facts: Facts, *, use_svd: bool) -> float:
    """Triangular factor of the rows, pivoting or singular values, and the proof from the rows.

    A penalty adds d rows: then the factor is one of d x d, however few rows there are.
    """
    n, d = facts.n, facts.d
    if is_rank_deficient(facts):
        # Pivoting only finds that singular values are needed; wide designs go there directly.
        again = 0.0 if use_svd or d > n else 2e-10 * d**3
        return 1.0e-9 * d * float(n) ** 2 + 8e-10 * float(n) ** 3 + again
    return facts.strengths * (1.2e-10 * n * d * d + (9e-10 if use_svd else 7e-10) * d**3)


def kernel_seconds(facts: Facts) -> float:
    """X X^T, its factorisation once per strength, and the way back to coefficients."""
    n, d, k = facts.n, facts.d, facts.k
    factor = facts.strengths * 1e-11 * float(n) ** 3 + 2.8e-8 * n**2
    if facts.is_sparse:
        return factor + 2e-8 * facts.nonzeros**2 / max(1, d) + 3e-8 * facts.nonzeros * k
    return factor + 2.4e-11 * float(n) ** 2 * d + 1e-8 * n * d + 1e-9 * n * d * k


def iteration_seconds(facts: Facts) -> float:
    """One product with X and one with X^T, and the vectors around them."""
    n, d, k = facts.n, facts.d, facts.k
    if facts.is_sparse:
        return ITERATION + (6e-9 * facts.nonzeros + 3e-8 * (n + d)) * k
    return ITERATION + (0.9e-9 + 0.2e-9 * k) * n * d + 6e-9 * (n + d) * k
