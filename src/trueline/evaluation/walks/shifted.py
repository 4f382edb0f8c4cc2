r"""Ridge regression on sparse rows for all strengths, from one Krylov space for each fold.

    (C + alpha I) w = c,     C = (X - 1 m^T)^T S (X - 1 m^T),     c = (X - 1 m^T)^T S y,

with m the weighted mean. Conjugate gradients for the smallest strength build residuals that are
parallel to those of all other strengths, so that these cost vector operations only, and end early
(B. Jegerlehner, "Krylov space solvers for shifted linear systems", hep-lat/9612014 (1996), eqs.
2.42-2.44; A. Frommer, Computing 70 (2003) 87-109). A step of several folds reads the rows once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.evaluation.walks.batch import Rows
from trueline.evaluation.walks.lanes import LANES
from trueline.guard import Verdict

__all__ = ["solve_shifted"]

Array = NDArray[np.float64]

_LIMIT = 2000


def solve_shifted(
    rows: Rows, Y: Array, S: Array, alphas: Array, tol: float
) -> tuple[Array, Array, list[Verdict]]:
    """Coefficients of all strengths and folds.

    Parameters
    ----------
    rows : Rows
        Sparse.
    Y : array of shape (n, k)
    S : array of shape (n, folds)
    alphas : array of shape (m,)
        Positive.
    tol : float
        Norm of the residual that is left, relative to that of c.

    Returns
    -------
    W : array of shape (d, m, folds, k)
    b : array of shape (m, folds, k)
    verdicts : list of Verdict
        Whether the steps led to that residual, for problems that went together.
    """
    from trueline.evaluation.walks.kernels import shifted_solutions

    X: Any = rows.X
    folds, k = S.shape[1], Y.shape[1]
    order = np.argsort(alphas, kind="stable")
    W, b = np.empty((rows.d, len(alphas), folds, k)), np.zeros((len(alphas), folds, k))
    totals = S.sum(axis=0)
    means, levels = np.zeros((folds, rows.d)), np.zeros((folds, k))
    if rows.fit_intercept:
        means = (np.asarray(rows.turned @ S) / totals).T.copy()
        levels = (S.T @ Y) / totals[:, None]
    verdicts: list[Verdict] = []
    problems = [(f, c) for c in range(k) for f in range(folds)]
    for start in range(0, len(problems), LANES):
        own = np.array(problems[start : start + LANES])
        f, c = own[:, 0], own[:, 1]
        weighted = S[:, f] * (Y[:, c] - levels[f, c])
        rights = np.asarray(rows.turned @ weighted).T - means[f] * weighted.sum(axis=0)[:, None]
        found = np.zeros((len(own), len(alphas), rows.d))
        of_rows = X.data, X.indices, X.indptr, np.ascontiguousarray(S[:, f].T), means[f]
        rights = np.ascontiguousarray(rights)
        steps = shifted_solutions(*of_rows, rights, alphas[order], tol, _LIMIT, found)
        verdicts.append(Verdict(steps < _LIMIT, math.inf if steps >= _LIMIT else 0.0, tol))
        for number, (f, c) in enumerate(own):
            W[:, order, f, c] = found[number].T
            if rows.fit_intercept:
                b[order, f, c] = levels[f, c] - found[number] @ means[f]
    return W, b, verdicts
