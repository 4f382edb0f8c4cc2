"""What a search for the best subset leaves behind: fits, the table of sizes, what happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.design import as_design
from trueline.guard import verdict_of, warn_of_gap
from trueline.penalties import NoPenalty
from trueline.planner import execute, make_plan
from trueline.problem import Problem
from trueline.selection.criteria import CRITERIA, Criterion
from trueline.solvers.base import Options
from trueline.solvers.loop import Event, Monitor
from trueline.subset import Answer, Statement
from trueline.wording import counted

__all__ = ["fit_on", "listener", "notes", "status", "tabulated"]

Array = NDArray[np.float64]


def fit_on(
    problem: Problem, X: Any, support: NDArray[np.int64], dtype: np.dtype
) -> tuple[Array, Array]:
    """The fit on a support, by the solver that suits it, in the precision that will be kept."""
    W = np.zeros((problem.n_features, 1))
    if len(support):
        few = X.tocsc()[:, support].tocsr() if sp.issparse(X) else X[:, support]
        part = replace(problem, design=as_design(few))
        solution = execute(part, make_plan(part), Options(), Monitor())
        warn_of_gap("The fit on a support", "its coefficients", verdict_of(solution), stacklevel=5)
        W[support], b = solution.coef, solution.intercept
    elif problem.fit_intercept:
        b = np.average(problem.target, axis=0, weights=problem.weights)
    else:
        b = np.zeros(1)
    return W.astype(dtype).astype(np.float64), b.astype(dtype).astype(np.float64)


def tabulated(
    problem: Problem, statement: Statement, answers: list[Answer], fits: list[tuple[Array, Array]]
) -> dict[str, Any]:
    """The path as plain arrays, which model files can hold."""
    task, founds = statement.task, [answer.found for answer in answers]
    losses = [2.0 * replace(problem, penalty=NoPenalty()).objective(W, b) for W, b in fits]
    square = np.array(losses)
    total, rows = 2.0 * task.constant, problem.total_weight
    constant = int(problem.fit_intercept)
    criterion = Criterion("bic", rows, total, bool(constant), _noise_variance(statement, problem))
    parameters = np.array([len(found.support) + constant for found in founds])
    objective = [
        problem.objective(W, b) + task.alpha * len(found.support)
        for (W, b), found in zip(fits, founds)
    ]
    return {
        "k": np.array([answer.k for answer in answers]),
        "supports": [found.support for found in founds],
        "coef": np.array([W[:, 0] for W, _ in fits]),
        "intercept": np.array([b[0] for _, b in fits]),
        "objective": np.array(objective),
        "lower_bound": np.array([max(found.lower_bound, 0.0) for found in founds]),
        "proven": np.array([found.is_proven for found in founds]),
        "nodes": np.array([found.nodes for found in founds]),
        "delta": np.array([answer.delta for answer in answers]),
        "residual_square": square,
        "seconds": np.array([answer.seconds for answer in answers]),
        "criteria": {
            name: np.atleast_1d(np.asarray(criterion.value(square, parameters, name), float))
            for name in CRITERIA
        },
    }


def _noise_variance(statement: Statement, problem: Problem) -> float:
    """Of the fit with all columns; NaN if these leave no degree of freedom."""
    moments, columns = statement.moments, statement.columns
    left = moments.weight - int(columns.sum()) - int(problem.fit_intercept)
    if left <= 0:
        return float("nan")
    gram, cross = moments.gram[np.ix_(columns, columns)], moments.cross[columns]
    scale = np.sqrt(gram.diagonal())
    R = gram / scale[:, None] / scale
    w = np.linalg.lstsq(R, cross / scale[:, None], rcond=1e-12)[0]
    square = float(moments.y_square[0]) - float((w * (cross / scale[:, None])).sum())
    return max(square, 0.0) / left


def listener(
    statement: Statement, monitor: Monitor, began: float
) -> Callable[[int, int, float, float, NDArray[np.int64]], bool]:
    """Writes down what the search tells, and hands it to the callbacks."""

    def hear(k: int, nodes: int, value: float, bound: float, support: NDArray[np.int64]) -> bool:
        seconds, gap = time.perf_counter() - began, max(value - bound, 0.0)
        monitor.trace.record(iteration=nodes, k=k, objective=value, gap=gap, seconds=seconds)
        if not monitor.callbacks:
            return False
        event = Event(nodes, 0, value, gap, seconds, *_coefficients(statement, support))
        # Every callback hears of every event, also when an earlier one asked to stop.
        stop = [callback(event) is True for callback in monitor.callbacks]
        return any(stop)

    return hear


def _coefficients(statement: Statement, support: NDArray[np.int64]) -> tuple[Array, Array]:
    """Coefficients and intercept of a support, from the moments."""
    moments, task = statement.moments, statement.task
    W = np.zeros((len(statement.scale), 1))
    block, right = task.gram[np.ix_(support, support)], task.cross[support]
    W[support, 0] = np.linalg.lstsq(block, right, rcond=None)[0] / statement.scale[support]
    return W, moments.y_mean - moments.x_mean @ W


def status(answers: list[Answer]) -> str:
    """How the search ended, in words."""
    finished = sum(answer.found.is_proven for answer in answers)
    reasons = {answer.found.reason for answer in answers if not answer.found.is_proven}
    said = f"{finished} of {counted(len(answers), 'size')} proven"
    return said + (f"; stopped by: {', '.join(sorted(reasons))}" if reasons else "")


def notes(answers: list[Answer]) -> list[str]:
    """For which supports the proof holds, if not for all."""
    deltas = [answer.delta for answer in answers if answer.delta > 0]
    if not deltas:
        return []
    return [f"compared: supports whose correlations have eigenvalues of {min(deltas):.3g} or more"]
