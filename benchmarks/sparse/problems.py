"""Data of the sparse suite: generated with fixed seeds, shipped with a library, or from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.problems import text_rows

__all__ = ["correlated", "files", "products", "read_file", "text"]

Array = NDArray[np.float64]
Rows = tuple[Any, Array]

_KINDS = (".npz", ".csv", ".svm", ".libsvm", ".svmlight")


def correlated(
    n: int,
    d: int,
    true: int,
    *,
    rho: float = 0.7,
    snr: float = 3.0,
    are_equal: bool = False,
    seed: int = 0,
) -> Rows:
    """Gaussian columns, each correlated with the one before it by rho (an AR(1) process).

    Parameters
    ----------
    n, d : int
    true : int
        Columns with a weight: drawn at random with normal weights or, if ``are_equal``, evenly
        spaced with weight one.
    rho, snr : float
        Variance of the signal over that of the noise is snr.

    Returns
    -------
    X : array of shape (n, d), Fortran order
        Columns of mean 0 and variance 1.
    y : array of shape (n,)
        Mean 0; variance 1 if ``are_equal``.
    """
    from scipy.signal import lfilter

    random = np.random.default_rng(seed)
    shocks = random.standard_normal((d, n))
    shocks[1:] *= np.sqrt(1 - rho**2)
    X = lfilter([1.0], [1.0, -rho], shocks, axis=0).T
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    weights = np.zeros(d)
    if are_equal:
        weights[np.linspace(0, d - 1, true).astype(int)] = 1.0
    else:
        weights[random.choice(d, true, replace=False)] = random.standard_normal(true)
    signal = X @ weights
    y = signal + signal.std() / np.sqrt(snr) * random.standard_normal(n)
    y -= y.mean()
    return np.asfortranarray(X), y / y.std() if are_equal else y


def text(n: int, d: int, density: float, true: int, *, seed: int = 1) -> Rows:
    """Rows like tf-idf of texts: words by Zipf's law, rows of norm one.

    The rank-frequency law is 1 / (rank + 10); rows have as many words as give the density on
    average. A target is a noisy combination of words from the commoner tenth.
    """
    random = np.random.default_rng(seed)
    by_rows, order = text_rows(random, n, d, density)
    X = sp.csc_matrix(by_rows)
    X.sort_indices()
    weights = np.zeros(d)
    used = random.choice(order[: max(true, d // 10)], true, replace=False)
    weights[used] = random.standard_normal(true)
    y = X @ weights
    y += 0.5 * y.std() * random.standard_normal(n)
    return X, y - y.mean()


def products(name: str) -> Rows:
    """A data set that a library ships, with products of its columns, standardised.

    "diabetes" (442 rows, products of two: scikit-learn), "star98" (303 rows, products of two) and
    "randhie" (20,190 rows, products of three: statsmodels).
    """
    from sklearn.preprocessing import PolynomialFeatures

    X, y, degree = _shipped(name)
    X = X - X.mean(axis=0)
    X = PolynomialFeatures(degree, include_bias=False).fit_transform(X / X.std(axis=0))
    return _standardised(X, y)


def _shipped(name: str) -> tuple[Array, Array, int]:
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        return *load_diabetes(return_X_y=True), 2
    import importlib

    frame = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas()
    y = np.asarray(frame.endog, dtype=float)
    y = y if y.ndim == 1 else y[:, 0] / y.sum(axis=1)  # star98: successes of all
    return np.asarray(frame.exog, dtype=float), y, 2 if name == "star98" else 3


def _standardised(X: Array, y: Array) -> Rows:
    """Mean zero and variance one; columns that repeat a constant go."""
    scale = X.std(axis=0)
    kept = scale > 1e-9 * np.abs(X).max(axis=0)
    X = (X[:, kept] - X[:, kept].mean(axis=0)) / scale[kept]
    return np.asfortranarray(X), y - y.mean()


def files(folder: Path) -> list[Path]:
    """The data files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in _KINDS)


def read_file(path: Path) -> Rows:
    """Numbers from a file: ``.npz`` (X, y), ``.csv`` (head line, target last) or svmlight rows.

    Dense columns are standardised; sparse ones stay as they are, with a centred target.
    """
    if path.suffix == ".npz":
        with np.load(path) as content:
            return _standardised(content["X"].astype(float), content["y"].astype(float).ravel())
    if path.suffix == ".csv":
        table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        return _standardised(table[:, :-1], table[:, -1])
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(path)
    return sp.csc_matrix(X), y - y.mean()
