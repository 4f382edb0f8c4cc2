"""Clarabel, an interior-point solver: the linear programs of ``highs.py`` in its form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.contestants.base import Contestant, Tuned
from benchmarks.objective import Answer
from benchmarks.robust.cases import COMPARED
from benchmarks.robust.objective import RobustData

Array = NDArray[np.float64]


def _solve(cost: Array, A: Any, b: Array, equations: int, tol: float) -> Any:
    """min cost.x with A x + s = b, s zero in the first equations and at least zero in the rest."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    cones = [clarabel.NonnegativeConeT(len(b) - equations)]
    if equations:
        cones.insert(0, clarabel.ZeroConeT(equations))
    size = len(cost)
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)), cost, sp.csc_matrix(A), b, cones, settings
    )
    return solver.solve()


def _with_ones(data: RobustData) -> Array:
    return np.column_stack([data.X, np.ones(len(data.y))])


def _answer(w: Any) -> Answer:
    w = np.asarray(w)
    return Answer(w[:-1], float(w[-1]))


def quantile_primal(data: RobustData, tol: float) -> Answer:
    """One bound per row, above both lines of the loss."""
    X, q = sp.csc_matrix(_with_ones(data)), data.quantiles[0]
    n, d = X.shape
    A = sp.vstack([sp.hstack([-q * X, -sp.eye(n)]), sp.hstack([(1 - q) * X, -sp.eye(n)])])
    b = np.concatenate([-q * data.y, (1 - q) * data.y])
    found = _solve(np.append(np.zeros(d), np.full(n, 1 / n)), A, b, 0, tol)
    return _answer(found.x[:d])


def quantile_dual(data: RobustData, tol: float) -> Answer:
    """As many equations as columns, and a box."""
    X, q = _with_ones(data), data.quantiles[0]
    n, d = X.shape
    A = sp.vstack([sp.csc_matrix(X.T), sp.eye(n), -sp.eye(n)])
    b = np.concatenate([np.zeros(d), np.full(n, q), np.full(n, 1 - q)])
    return _answer(_solve(-data.y, A, b, d, tol).z[:d])


def maximum(data: RobustData, tol: float) -> Answer:
    """Two inequalities per row."""
    X = _with_ones(data)
    n, d = X.shape
    A = np.hstack([np.vstack([X, -X]), np.full((2 * n, 1), -1.0)])
    found = _solve(np.append(np.zeros(d), 1.0), A, np.concatenate([data.y, -data.y]), 0, tol)
    return _answer(found.x[:d])


_LADDER = tuple(float(f"1e-{power}") for power in range(2, 11))
_FEW = ("absolute_1e4", "quantile90_1e4")

CONTESTANTS = (
    Contestant(
        "Clarabel (dual)",
        tuned={"quantile": Tuned(quantile_dual, _LADDER, 1e-3, cases=COMPARED)},
        package="clarabel",
    ),
    Contestant(
        "Clarabel (primal)",
        tuned={
            "quantile": Tuned(quantile_primal, _LADDER, 1e-6, cases=_FEW),
            "maximum": Tuned(maximum, _LADDER, 1e-5),
        },
        package="clarabel",
    ),
)
