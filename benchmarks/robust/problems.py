"""Data of the robust suite: generated with fixed seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.problems import regression
from benchmarks.sparse.problems import text

__all__ = ["heavy_tails", "words"]

Rows = tuple[Any, NDArray[np.float64]]

#: Degrees of freedom of the noise: a variance, but hardly more.
_FREEDOM = 2.5


def heavy_tails(n: int, d: int, *, seed: int = 0) -> Rows:
    """Correlated columns of unequal scales, and noise of Student's t with heavy tails.

    Columns have mean 0, so that first-order methods are not held up by the intercept. The target
    has variance 1 and mean 3 before the noise of scale 1/2.
    """
    data = regression(n, d, seed=seed, noise=0.0)
    signal = (data.y - data.y.mean()) / data.y.std()
    noise = np.random.default_rng(seed + 1000).standard_t(_FREEDOM, n)
    return data.X, signal + 0.5 * noise + 3.0


def words(n: int, d: int, density: float, true: int, *, seed: int = 1) -> Rows:
    """Rows like tf-idf of texts, by rows, and a target of variance 1."""
    X, y = text(n, d, density, true, seed=seed)
    return sp.csr_matrix(X), y / y.std()
