"""Rows that a hyperplane separates, but for a tenth of the labels, which are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CASES", "CONTESTANTS", "FRONTIER", "MILP", "US", "Outcome", "errors_of", "make"]

Array = NDArray[np.float64]

US, MILP = "trueline", "HiGHS (MILP)"

#: Rows and columns that both are asked for.
CASES = (
    (50, 2),
    (100, 2),
    (200, 2),
    (500, 2),
    (50, 3),
    (100, 3),
    (200, 3),
    (50, 5),
    (100, 5),
    (50, 10),
    (100, 10),
)
#: For each number of columns, ever more rows, up to the first that is not proven in time.
FRONTIER: dict[int, tuple[int, ...]] = {
    2: (1_000, 3_000, 10_000, 30_000, 100_000),
    3: (500, 1_000, 3_000, 10_000, 30_000, 100_000),
    5: (200, 500, 1_000, 2_000, 3_000, 5_000),
    10: (150, 200, 250, 300, 350, 400),
    20: (100, 125, 150, 175, 200, 225),
}


@dataclass(frozen=True)
class Outcome:
    """A hyperplane, and the bound that is claimed for all of them (None without a claim)."""

    coef: Array
    intercept: float
    bound: float | None
    is_proven: bool


def make(n: int, d: int) -> tuple[Array, Array]:
    """Normal rows, labels of a random hyperplane, a tenth of them flipped."""
    generator = np.random.default_rng(1000 * d + n)
    X = generator.standard_normal((n, d))
    level = X @ generator.standard_normal(d) + 0.3 * generator.standard_normal()
    y = np.where(level > 0, 1.0, -1.0)
    y[generator.choice(n, n // 10, replace=False)] *= -1
    return X, y


def errors_of(X: Array, y: Array, outcome: Outcome) -> int:
    """Rows that are not on their side."""
    return int(np.sum(y * (X @ outcome.coef + outcome.intercept) <= 0))


def _trueline(X: Array, y: Array, limit: float) -> Outcome:
    from trueline import ZeroOneHalfspace

    model = ZeroOneHalfspace(time_limit=limit).fit(X, y)
    return Outcome(model.coef_[0], model.intercept_[0], model.lower_bound_, model.proven_)


def _milp(X: Array, y: Array, limit: float) -> Outcome:
    """min sum z,  y_i (x_i.w + b) >= eps - M_i z_i,  |w_j| <= 1,  |b| <= max_i |x_i|_1."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    n, d = X.shape
    size = np.abs(X).sum(axis=1)
    level, eps = size.max(), 1e-3
    table = np.hstack([y[:, None] * X, y[:, None], np.diag(size + level + eps)])
    found = milp(
        np.append(np.zeros(d + 1), np.ones(n)),
        integrality=np.append(np.zeros(d + 1), np.ones(n)),
        bounds=Bounds(
            np.concatenate([-np.ones(d), [-level], np.zeros(n)]),
            np.concatenate([np.ones(d), [level], np.ones(n)]),
        ),
        constraints=LinearConstraint(table, lb=eps),
        options={"time_limit": limit, "mip_rel_gap": 0.0},
    )
    if found.x is None:
        return Outcome(np.zeros(d), 1.0, 0.0, False)
    bound = float(np.ceil(found.mip_dual_bound - 1e-6))
    return Outcome(found.x[:d], float(found.x[d]), bound, found.status == 0)


def _classifier(model: Any) -> Callable[[Array, Array, float], Outcome]:
    def fit(X: Array, y: Array, limit: float) -> Outcome:
        model.fit(X, y)
        return Outcome(model.coef_.ravel(), float(model.intercept_[0]), None, False)

    return fit


def _logistic(X: Array, y: Array, limit: float) -> Outcome:
    from sklearn.linear_model import LogisticRegression

    return _classifier(LogisticRegression())(X, y, limit)


def _support_vectors(X: Array, y: Array, limit: float) -> Outcome:
    from sklearn.svm import LinearSVC

    return _classifier(LinearSVC(max_iter=100_000))(X, y, limit)


def _pocket(X: Array, y: Array, limit: float) -> Outcome:
    """A perceptron that keeps the best weights it has had after any of 1000 passes."""
    A = y[:, None] * np.column_stack([X, np.ones(len(X))])
    generator, v = np.random.default_rng(0), np.zeros(A.shape[1])
    best, fewest = v, len(y) + 1
    for _ in range(1000):
        for i in generator.permutation(len(y)):
            if A[i] @ v <= 0:
                v = v + A[i]
        count = int(np.sum(A @ v <= 0))
        if count < fewest:
            best, fewest = v, count
    return Outcome(best[:-1], float(best[-1]), None, False)


#: Who takes part: those that prove, then those that only find.
CONTESTANTS: dict[str, Callable[[Array, Array, float], Outcome]] = {
    US: _trueline,
    MILP: _milp,
    "logistic regression": _logistic,
    "linear SVM": _support_vectors,
    "pocket": _pocket,
}
