r"""Ridge regression on sparse rows for all strengths, from one Krylov space for each fold.

    (C + alpha I) w = c,     C = (X - 1 m^T)^T S (X - 1 m^T),     c = (X - 1 m^T)^T S y,

with m the weighted mean. Conjugate gradients for the smallest strength build residuals that are
parallel to those of all other strengths, so that these cost vector operations only, and end early
(B. Jegerlehner, "Krylov space solvers for shifted linear systems", hep-lat/9612014 (1996), eqs.
2.42-2.44; A. Frommer, Computing 70 (2003) 87-109). A step reads the training rows of the fold once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.evaluation.walks.batch import Rows

__all__ = ["solve_shifted"]

Array = NDArray[np.float64]

_LIMIT = 2000


def solve_shifted(rows: Rows, Y: Array, S: Array, alphas: Array, tol: float) -> tuple[Array, Array]:
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
    """
    from trueline.evaluation.walks.kernels import shifted_solutions

    X: Any = rows.X
    folds, k = S.shape[1], Y.shape[1]
    order = np.argsort(alphas, kind="stable")
    W, b = np.empty((rows.d, len(alphas), folds, k)), np.zeros((len(alphas), folds, k))
    for f in range(folds):
        s = np.ascontiguousarray(S[:, f])
        total, mean, level = float(s.sum()), np.zeros(rows.d), np.zeros(k)
        if rows.fit_intercept:
            mean, level = np.asarray(rows.turned @ s) / total, (s @ Y) / total
        for c in range(k):
            weighted = s * (Y[:, c] - level[c])
            right = np.asarray(rows.turned @ weighted) - mean * weighted.sum()
            found = np.zeros((len(alphas), rows.d))
            of_rows = X.data, X.indices, X.indptr, s, mean
            shifted_solutions(*of_rows, right, alphas[order], tol, _LIMIT, found)
            W[:, order, f, c] = found.T
            if rows.fit_intercept:
                b[order, f, c] = level[c] - found @ mean
    return W, b
