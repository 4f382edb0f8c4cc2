"""Problems that were made around their minimisers: what they share, and those with labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from trueline.design import as_design
from trueline.losses import (
    CrammerSinger,
    Hinge,
    Logistic,
    Loss,
    Softmax,
)
from trueline.penalties import (
    L1,
    L2,
    ElasticNet,
    Penalty,
)
from trueline.problem import Problem

Array = NDArray[np.float64]


def hadamard(n: int) -> Array:
    """Orthogonal columns of +1 and -1, the first all +1; n a power of two."""
    H = np.ones((1, 1))
    while len(H) < n:
        H = np.block([[H, H], [H, -H]])
    return H


SIGNS = hadamard(16)

# Integer, with an integer inverse: unit triangular.
MIX = np.array([[1.0, 2.0, -1.0], [0.0, 1.0, 3.0], [0.0, 0.0, 1.0]])


@dataclass(frozen=True)
class KnownProblem:
    """A problem and its answer.

    Attributes
    ----------
    name : str
    X : array or sparse array
    problem : Problem
    coef, intercept : arrays of shape (d, k) and (k,)
        A minimiser, exact.
    dual : array of shape (n, k)
        The u of the module's text, which proves it.
    """

    name: str
    X: Any
    problem: Problem
    coef: Array
    intercept: Array
    dual: Array

    def __str__(self) -> str:
        return self.name

    @property
    def optimum(self) -> float:
        """The least value of the objective."""
        return self.problem.objective(self.coef, self.intercept)

    @property
    def scale(self) -> float:
        """The objective of the best constant model: what tolerances are relative to.

        The zero model without an intercept.
        """
        problem = self.problem
        best = np.zeros(problem.n_targets)
        if problem.fit_intercept:
            weights = np.ones(problem.n_samples) if problem.weights is None else problem.weights
            best = np.average(problem.target, axis=0, weights=weights)
        return problem.objective(np.zeros(self.coef.shape), best)

    @cached_property
    def hessian_terms(self) -> float:
        """mu with P(w) - P* >= mu/2 ||w - w*||^2 for the minimisers w*, 0 if not known."""
        problem = self.problem
        if "quadratic" not in problem.loss.capabilities:
            return 0.0
        X = problem.design.toarray()
        factor = np.ones(len(X)) if problem.weights is None else problem.weights
        if problem.fit_intercept:
            X = X - factor @ X / factor.sum()
        gram = (factor[:, None] * X).T @ X
        least = min(
            np.linalg.eigvalsh(gram + np.diag(curvature))[0]
            for curvature in np.broadcast_to(problem.penalty.curvature, self.coef.shape).T
        )
        return float(least) if least > 1e-9 * np.trace(gram) else 0.0


def plant_labels(
    name: str,
    penalty: Penalty,
    W: Array,
    subgradient: Array,
    *,
    intercept: ArrayLike | None = 0.25,
    wrap: Callable[[Array], Any] = np.asarray,
) -> KnownProblem:
    """A problem of labels: every row once with each class, and weights that make w the answer.

    With p the probabilities at w, weights p_k + r_k leave the slopes -r_k: X^T r is the subgradient
    that was asked for, and r is small enough for all weights to be positive. Logarithms round, so
    that the answer is exact up to rounding.
    """
    X = SIGNS[:, 1:4] @ MIX
    k = W.shape[1]
    b = (
        np.zeros(k)
        if intercept is None
        else np.resize(np.asarray(intercept), k) * np.arange(1, k + 1)
    )
    r = X @ np.linalg.solve(X.T @ X, subgradient)
    n = len(X)
    if k == 1:
        z = X @ W + b
        plus = 1.0 / (1.0 + np.exp(-z)) + r
        target, weights = np.repeat([[1.0], [-1.0]], n, axis=0), np.vstack([plus, 1 - plus])[:, 0]
        loss: Loss = Logistic()
    else:
        loss = Softmax()
        p = loss.probabilities(X @ W + b) + r
        target, weights = np.repeat(np.eye(k), n, axis=0), p.T.ravel()
    rows = wrap(np.tile(X, (max(k, 2), 1)))
    problem = Problem(as_design(rows), target, loss, penalty, intercept is not None, weights)
    dual = loss.gradient(target, problem.scores(W, b))
    return KnownProblem(name, rows, problem, W, b, dual)


def label_problems() -> list[KnownProblem]:
    """Two classes and three, with every loss of labels."""
    w = np.array([[0.75], [-1.0], [0.0]])
    three = np.array([[0.5, -0.25, -0.25], [0.0, 0.25, -0.25], [0.0, 0.0, 0.0]])
    return [
        plant_labels("logistic, l2", L2(0.015625), w, 0.015625 * w),
        plant_labels("logistic, l2, sparse", L2(0.015625), w, 0.015625 * w, wrap=sp.csr_array),
        plant_labels("logistic, l2, no intercept", L2(0.015625), w, 0.015625 * w, intercept=None),
        plant_labels("logistic, l1", L1(0.015625), w, 0.015625 * np.array([[1.0], [-1.0], [0.5]])),
        plant_labels(
            "logistic, elastic net",
            ElasticNet(0.03125, 0.5),
            w,
            0.015625 * np.array([[1.0], [-1.0], [0.5]]) + 0.015625 * w,
        ),
        plant_labels("softmax, l2", L2(0.015625), three, 0.015625 * three),
        plant_labels(
            "softmax, l2, no intercept", L2(0.015625), three, 0.015625 * three, intercept=None
        ),
        plant_labels(
            "softmax, l1",
            L1(0.015625),
            np.array([[0.5, -0.25, 0.0], [0.0, 0.25, -0.25], [0.0, 0.0, 0.0]]),
            0.015625 * np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [0.5, -0.5, 0.0]]),
        ),
    ]


def class_problems() -> list[KnownProblem]:
    """One row along each axis, each of a class of its own: all margins are one, by symmetry.

    Own scores of 3/4 and others of -1/4 are the shortest that differ by one.
    """
    W, rows = np.eye(4) - 0.25, np.eye(4)
    weights = np.full(4, 2.0)

    def known(name: str, fit_intercept: bool, matrix: Any) -> KnownProblem:
        design = as_design(matrix)
        problem = Problem(design, np.eye(4), CrammerSinger(), L2(1.0), fit_intercept, weights)
        return KnownProblem(f"multiclass hinge, {name}", matrix, problem, W, np.zeros(4), -W / 2)

    return [
        known("no intercept", False, rows),
        known("intercept", True, rows),
        known("sparse", False, sp.csr_array(rows)),
    ]


def margin_problems() -> list[KnownProblem]:
    """Two rows of each class on their margins: w = 1/2 leaves them at distance 2 of the boundary.

    Of every two rows of a class one is at z = 1 or -1, with multiplier 1/8, the other beyond.
    """
    X = np.array([[2.0], [4.0], [-2.0], [-4.0]])
    y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    w, u = np.array([[0.5]]), np.array([[-0.125], [0.0], [0.125], [0.0]])

    def known(name: str, fit_intercept: bool, matrix: Any) -> KnownProblem:
        problem = Problem(as_design(matrix), y, Hinge(), L2(1.0), fit_intercept)
        return KnownProblem(f"hinge, {name}", matrix, problem, w, np.zeros(1), u)

    return [known("intercept", True, X), known("sparse", True, sp.csr_array(X))]
