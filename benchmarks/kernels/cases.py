"""The cases: how many rows, what a call may take, and what should be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.judged import Target
from benchmarks.kernels.objective import KernelData
from benchmarks.problems import kernel_classes

__all__ = ["CASES", "PROBLEMS", "QUERIES", "TARGETS", "Case", "data_of"]

#: Rows to predict.
QUERIES = 5000
_COLUMNS = 50

Rows = tuple[Any, Any]


def _rows(n: int) -> Callable[[float], Rows]:
    def make(scale: float) -> Rows:
        return kernel_classes(max(200, round((n + QUERIES) * scale)), _COLUMNS, seed=31)

    return make


#: From the scale (1 is the size of the name) to X and y, with the rows to predict at the end.
PROBLEMS: dict[str, Callable[[float], Rows]] = {str(n): _rows(n) for n in (10_000, 30_000)}


@dataclass(frozen=True)
class Case:
    """A fit, or predictions of a fitted machine; ``limit`` is seconds for one call."""

    title: str
    task: str
    problem: str
    limit: float


def data_of(case: Case, X: Any, y: Any) -> KernelData:
    """What a contestant is given; the last rows, in the proportion of the sizes, are predicted."""
    n = int(case.problem)
    train = round(len(y) * n / (n + QUERIES))
    return KernelData(X[:train], y[:train], X[train:], gamma=1.0 / X.shape[1])


CASES: dict[str, Case] = {
    f"rbf_{n}": Case(
        f"Gaussian kernel, C = 1, gamma = 1/d, n = {n:,}, d = {_COLUMNS}", "svc", str(n), limit
    )
    for n, limit in ((10_000, 30.0), (30_000, 120.0))
} | {
    f"predict_{n}": Case(
        f"Labels of {QUERIES:,} rows by a machine of n = {n:,}, d = {_COLUMNS}",
        "svc_predict",
        str(n),
        120.0,
    )
    for n in (10_000, 30_000)
}

TARGETS = (
    *(
        Target(name, bound, peer)
        for name in ("rbf_10000", "rbf_30000")
        for peer, bound in (("scikit-learn", 4.0), ("LIBSVM", 4.0), ("scikit-learn-intelex", 1.0))
    ),
    *(Target(name, 3.0, "scikit-learn") for name in ("predict_10000", "predict_30000")),
)
