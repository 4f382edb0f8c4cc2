"""What the machine's own BLAS and LAPACK need, without a library around them.

No validation, no proof, no care for badly conditioned data: a yardstick rather than a peer.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.contestants.base import Contestant
from benchmarks.objective import Answer, Array, Data


def gram(X: Array) -> Array:
    """X^T X, upper triangle, by one call of the threaded dsyrk (no copy of row-major X)."""
    from scipy.linalg.blas import dsyrk

    return dsyrk(1.0, X.T)


def least_squares(data: Data) -> Answer:
    """Normal equations by dsyrk and Cholesky."""
    from scipy.linalg import cho_factor, cho_solve

    X, y = data.X, data.y
    n, d = X.shape
    hessian, cross = gram(X), X.T @ y
    mean, level = np.zeros(d), 0.0
    if data.fit_intercept:
        mean, level = X.T @ np.ones(n) / n, float(y.mean())
        hessian -= n * np.outer(mean, mean)
        cross -= n * level * mean
    factor = cho_factor(hessian, lower=False, overwrite_a=True, check_finite=False)
    coef = cho_solve(factor, cross, check_finite=False)
    return Answer(coef, level - mean @ coef)


def ridge_folds(data: Data) -> Answer:
    """One block of products per fold, one eigendecomposition per training set."""
    alphas = np.array(data.alphas)
    cuts = np.linspace(0, len(data.y), data.folds + 1).astype(int)
    products = []
    for start, stop in pairwise(cuts):
        rows = np.ones((stop - start, data.X.shape[1] + 2))
        rows[:, 1:-1], rows[:, -1] = data.X[start:stop], data.y[start:stop]
        products.append(rows.T @ rows)
    whole = sum(products)

    def path(moments: Array) -> tuple[Array, Array]:
        count = moments[0, 0]
        mean, level = moments[0, 1:-1] / count, moments[0, -1] / count
        values, vectors = np.linalg.eigh(moments[1:-1, 1:-1] - count * np.outer(mean, mean))
        cross = vectors.T @ (moments[1:-1, -1] - count * level * mean)
        coef = vectors @ (cross[:, None] / (values[:, None] + alphas))
        return coef, level - mean @ coef

    errors = np.zeros(len(alphas))
    for held in products:
        coef, intercept = path(whole - held)
        change = np.vstack([-intercept, -coef, np.ones(len(alphas))])
        errors += np.einsum("ij,ij->j", change, held @ change)
    best = int(np.argmin(errors))
    coef, intercept = path(whole)
    return Answer(coef[:, best], intercept[best], alphas[best])


CONTESTANTS = (
    Contestant("dsyrk + Cholesky", {"least_squares": least_squares}),
    Contestant("Gram blocks + eigh", {"ridge_folds": ridge_folds}),
)
