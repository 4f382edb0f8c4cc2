"""The certificate of a search: its answer, its bound, and a witness for the bound at the root."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.node import ROOT_STEPS, Start, relaxed
from trueline.best_subset.relaxation import sum_of_largest
from trueline.best_subset.statement import Statement
from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Rounding, evaluate
from trueline.certificates.quadratic import proven_coercivity
from trueline.problem import Problem

__all__ = ["certify_search"]

Array = NDArray[np.float64]

_ROWS = 2048
_EPS = float(np.finfo(np.float64).eps)
# The bound at the root is claimed this much lower (of the value without columns) than it was found.
_SAFETY = 1e-9
# A checker has sums of its own, which differ by less than this.
_LEAST = 1e-10
# Smaller eigenvalues help no relaxation, and magnify rounding.
_LEAST_DELTA = 1e-7


def certify_search(
    problem: Problem,
    statement: Statement,
    W: Array,
    b: Array,
    search_bound: float,
) -> Certificate:
    """The certificate of coefficients for which a search has proven ``search_bound``.

    Parameters
    ----------
    problem : Problem
        The squared loss and penalty, without the count of non-zeros.
    statement : Statement
        The same from its moments; its task with the k, alpha and delta of the search.
    W, b : arrays of shape (d, 1) and (1,)
    search_bound : float
    """
    task = statement.task
    at = evaluate(problem, Rounding.of(problem).confirmable(), W, b)
    objective = float(at.objective.sum()) + task.alpha * np.count_nonzero(W)
    rounding = float(at.objective_rounding.sum()) + 96 * _EPS * abs(objective)
    witness, root_bound = _root(problem, statement)
    # Never above what the rows say of this very support: moments may know it less well.
    known = min(search_bound, objective - _LEAST * task.constant)
    bound = max(known, root_bound, 0.0)
    gap = max((objective + rounding) * (1 + 8 * _EPS) - bound, 0.0)
    return Certificate(
        kind="conditioned search" if task.delta > 0 else "search",
        objective=objective,
        objective_rounding=rounding,
        gap=gap,
        loss=problem.loss,
        penalty=problem.penalty,
        fit_intercept=problem.fit_intercept,
        coef=W,
        intercept=b,
        witness=witness,
    )


def _root(problem: Problem, statement: Statement) -> tuple[dict[str, Any], float]:
    """The witness of the bound at the root, and the bound: zero where there is none."""
    task, columns, scale = statement.task, statement.columns, statement.scale
    scale = scale[columns]
    witness: dict[str, Any] = {
        "k": np.array(task.k),
        "alpha": np.array(task.alpha),
        "delta": np.array(task.delta),
        "columns": columns,
        "diagonal": np.zeros(0),
        "theta": np.array(1.0),
        "dual": np.zeros(0),
    }
    G = np.ascontiguousarray(task.gram[np.ix_(columns, columns)])
    c = task.cross[columns]
    m = len(c)
    q = min(task.k, m)
    if q == 0 or task.constant == 0:
        return witness, 0.0
    if 0 < task.delta < _LEAST_DELTA:
        task = replace(task, delta=0.0)  # what holds for all supports holds for those stated
    found, start = relaxed(task, G, c, q, G.diagonal(), Start(), np.inf, ROOT_STEPS)
    if found is None:
        return witness, 0.0
    theta = 1.0 if start.theta is None else start.theta
    E, v = start.diagonal, found.v
    if E is not None:
        E = E * min(1.0, _coercivity(problem, columns, E * scale**2)) * (1 - 1e-12)
    if E is None or not E.all():
        if theta == 1.0:
            return witness, 0.0
        E = np.zeros(m)
    D = theta * E + (1 - theta) * task.delta * G.diagonal()
    s = theta * (G @ v - E * v)
    largest = sum_of_largest((c - s) ** 2 / (2 * D), q, task.alpha)
    bound = task.constant * (1 - _SAFETY) - 0.5 * float(v @ s) - float(largest)
    if bound <= 0:
        return witness, 0.0
    witness["diagonal"], witness["dual"] = E * scale**2, v / scale
    witness["theta"] = np.array(theta)
    return witness, bound


def _coercivity(problem: Problem, columns: NDArray[np.bool_], E: Array) -> float:
    """nu with G >= nu E, as the checker will find it."""
    design, n = problem.design, problem.n_samples
    weights = np.ones(n) if problem.weights is None else problem.weights
    mean = design.column_means(problem.weights)[columns] if problem.fit_intercept else None
    blocks = ((rows, block[:, columns]) for rows, block in design.blocks(_ROWS))
    curvature = np.full(len(E), float(np.max(problem.penalty.curvature)))
    return proven_coercivity(blocks, weights, np.diag(1.0 / np.sqrt(E)), curvature, mean) * (
        1 - 1e-9
    )
