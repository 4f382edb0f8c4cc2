"""A problem that was made around its minimiser, and the columns that such problems share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.problem import Problem

__all__ = ["Array", "SIGNS", "KnownProblem", "MIX", "hadamard"]


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
    def bending(self) -> float:
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
