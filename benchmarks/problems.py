"""Generated data with fixed seeds: nothing is downloaded, everyone gets the same numbers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.objective import Data

__all__ = ["flowers", "regression", "ridge_grid", "sparse_rows", "with_condition"]

Array = NDArray[np.float64]

_ROWS = 20_000


def regression(
    n: int, d: int, *, fit_intercept: bool = False, seed: int = 0, noise: float = 0.5
) -> Data:
    """Correlated columns of unequal scales and means; a tenth of the true weights are zero.

    Neighbouring columns have correlation 1/2; scales spread over a factor of about ten.
    """
    random = np.random.default_rng(seed)
    mixing = np.eye(d) + 0.6 * np.eye(d, k=1)
    mixing *= np.exp(random.normal(0.0, 0.5, d))
    means = random.normal(0.0, 1.0, d) if fit_intercept else np.zeros(d)
    weights = random.standard_normal(d) * (random.random(d) < 0.9)
    X = np.empty((n, d))
    for start in range(0, n, _ROWS):
        rows = X[start : start + _ROWS]
        np.matmul(random.standard_normal(rows.shape), mixing, out=rows)
        rows += means
    signal = X @ weights
    y = signal + noise * signal.std() * random.standard_normal(n)
    return Data(X, y + (3.0 if fit_intercept else 0.0), fit_intercept)


def ridge_grid(n: int, d: int, *, folds: int, strengths: int = 100) -> Data:
    """A noisy regression and a grid of strengths in whose inside the best one lies."""
    base = regression(n, d, fit_intercept=True, seed=2, noise=2.0)
    alphas = tuple(float(a) for a in np.geomspace(1e-2, 1e6, strengths))
    return Data(base.X, base.y, True, alphas, folds)


def flowers(task: str) -> Data:
    """150 rows of 4 measurements, the size of the best known small data set."""
    random = np.random.default_rng(4)
    X = random.gamma(8.0, 0.5, (150, 4)) + np.array([1.0, 2.0, 0.5, 0.0])
    y = X @ np.array([1.0, -0.5, 0.25, 2.0]) + random.standard_normal(150)
    return Data(X, y, True, (0.1, 1.0, 10.0) if task == "ridge_cv" else (1.0,))


def with_condition(n: int, d: int, condition: float, seed: int = 0) -> Array:
    """Gaussian rows whose column directions are stretched from 1 down to 1 / condition."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    if condition > 1:
        X *= np.geomspace(1.0, 1.0 / condition, d)
        mixing = np.linalg.qr(random.standard_normal((min(d, 600), min(d, 600))))[0]
        # Columns of unequal scale alone would be repaired by scaling: turn blocks of them.
        for start in range(0, d, len(mixing)):
            part = X[:, start : start + len(mixing)]
            part[...] = part @ mixing[: part.shape[1], : part.shape[1]]
    return X


def sparse_rows(n: int, d: int, density: float, seed: int = 0) -> sp.csr_array:
    """Rows with about density * d entries in random columns, values near one."""
    random = np.random.default_rng(seed)
    counts = random.binomial(d, density, n)
    rows = np.repeat(np.arange(n), counts)
    columns = random.integers(0, d, counts.sum())
    values = random.normal(1.0, 0.5, counts.sum())
    X = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(n, d)))
    X.sum_duplicates()
    return X
