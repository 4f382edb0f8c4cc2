"""The cases: what is fitted to which rows, what a call may take, and what should be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bayes.objective import BayesData
from benchmarks.judged import Target
from benchmarks.problems import regression

__all__ = ["CASES", "PROBLEMS", "TARGETS", "Case", "data_of"]

Rows = tuple[Any, Any]


def _surface(n: int) -> Callable[[float], Rows]:
    """A smooth function of three columns, with noise of a tenth of its scale."""

    def make(scale: float) -> Rows:
        rows = max(60, round(n * scale))
        generator = np.random.default_rng(7)
        X = generator.uniform(-2, 2, size=(rows, 3))
        y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.2 * X[:, 2] * X[:, 0]
        return X, y + 0.1 * generator.normal(size=rows)

    return make


def _linear(n: int, d: int) -> Callable[[float], Rows]:
    def make(scale: float) -> Rows:
        root = np.sqrt(scale)
        data = regression(max(30, round(n * root)), max(4, round(d * root)), seed=8, noise=1.0)
        return data.X, data.y

    return make


def _factors(n: int, d: int) -> Callable[[float], Rows]:
    """More columns than rows, twenty causes behind all of them, and noise as large as the signal.

    Independent columns would not do: the more there are, the more alike prior and noise become in
    y, and the evidence has no highest point. Weights near one are near where the libraries start;
    from afar they end at another maximum, where the columns explain the noise as well.
    """

    def make(scale: float) -> Rows:
        root = np.sqrt(scale)
        rows, columns = max(30, round(n * root)), max(60, round(d * root))
        generator = np.random.default_rng(9)
        causes = generator.normal(size=(rows, 20))
        X = causes @ generator.normal(size=(20, columns)) + generator.normal(size=(rows, columns))
        signal = causes @ generator.normal(size=20)
        return X, 100.0 * (signal + signal.std() * generator.normal(size=rows))

    return make


#: From the scale (1 is the size of the name) to X and y.
PROBLEMS: dict[str, Callable[[float], Rows]] = {
    "1000x3": _surface(1000),
    "3000x3": _surface(3000),
    "1e5x50": _linear(100_000, 50),
    "1e4x500": _linear(10_000, 500),
    "300x5000": _factors(300, 5000),
}


@dataclass(frozen=True)
class Case:
    """What is fitted to which rows; ``limit`` is seconds for one call."""

    title: str
    task: str
    problem: str
    limit: float
    by_column: bool = False


def data_of(case: Case, X: Any, y: Any) -> BayesData:
    """What a contestant is given."""
    return BayesData(X, y, case.task, case.by_column)


CASES: dict[str, Case] = {
    f"process{'_ard' if by_column else ''}_{n}": Case(
        f"Gaussian process, RBF{' for each column' if by_column else ''} + noise, n = {n:,}, d = 3",
        "process",
        f"{n}x3",
        limit,
        by_column,
    )
    for n, limit in ((1000, 60.0), (3000, 120.0))
    for by_column in (False, True)
} | {
    f"ridge_{problem}": Case(f"Bayesian ridge, {size}", "bayesian_ridge", problem, 60.0)
    for problem, size in (
        ("1e5x50", "n = 100,000, d = 50"),
        ("1e4x500", "n = 10,000, d = 500"),
        ("300x5000", "n = 300, d = 5,000"),
    )
}

TARGETS: tuple[Target, ...] = (
    *(Target(name, 4.0, "scikit-learn") for name in CASES if name.startswith("process")),
    *(Target(name, 1.0, "SciPy L-BFGS-B") for name in CASES if name.startswith("process")),
    Target("process_1000", 1.5, "GPyTorch"),
    Target("process_3000", 4.0, "GPyTorch"),
    *(Target(name, 1.0, "scikit-learn") for name in CASES if name.startswith("ridge")),
)
