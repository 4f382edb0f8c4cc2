"""Generated data with fixed seeds: nothing is downloaded, everyone gets the same numbers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.objective import Data

__all__ = [
    "clouds",
    "dense_classes",
    "flowers",
    "images",
    "kernel_classes",
    "regression",
    "ridge_grid",
    "sparse_rows",
    "text_classes",
    "text_rows",
    "texts",
    "with_condition",
]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

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


def text_rows(
    random: np.random.Generator, n: int, d: int, density: float
) -> tuple[sp.csr_matrix, NDArray[np.intp]]:
    """Rows like tf-idf of texts: words by Zipf's law, rows of norm one; and words by frequency.

    The rank-frequency law is 1 / (rank + 10); rows have as many words as give the density on
    average.
    """
    from scipy.optimize import brentq

    share = 1.0 / (np.arange(d) + 11.0)
    share /= share.sum()
    # Words drawn again count as one entry: so many draws leave density * d different ones.
    missing = np.log1p(-share)
    draws = brentq(lambda m: -np.expm1(m * missing).sum() - density * d, 1.0, 50.0 * d)
    lengths = np.maximum(1, random.lognormal(np.log(draws) - 0.08, 0.4, n).astype(int))
    words = random.choice(d, int(lengths.sum()), p=share)
    order = random.permutation(d)
    rows = np.repeat(np.arange(n), lengths)
    X = sp.csr_matrix((np.ones(len(words)), (rows, order[words])), shape=(n, d))
    X.sum_duplicates()
    rarity = np.log(n / np.maximum(1, np.bincount(X.indices, minlength=d)))
    X.data = (1 + np.log(X.data)) * (1 + rarity[X.indices])
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / norms) @ X), order


def text_classes(n: int, d: int, entries: float, *, seed: int = 0) -> tuple[sp.csr_matrix, Array]:
    """Texts of about so many different words, in two classes (-1 and 1) of about equal size.

    A fifth of all words speaks for one of the classes, by a normal weight. Noise makes a classifier
    that knows the weights err in one text of eight, so that there is something to regularise.
    """
    random = np.random.default_rng(seed)
    X, _ = text_rows(random, n, d, entries / d)
    X.sort_indices()
    score = X @ (random.standard_normal(d) * (random.random(d) < 0.2))
    score = (score - np.median(score)) / score.std()
    return X, np.where(score + 0.4 * random.standard_normal(n) > 0, 1.0, -1.0)


def texts(
    n: int,
    d: int,
    classes: int,
    *,
    zipf: float,
    length: float,
    values: str,
    copies: float = 0.0,
    is_balanced: bool = True,
    seed: int = 0,
) -> tuple[sp.csr_matrix, Labels]:
    """Texts in several classes, word by word, from the words that each class prefers.

    Parameters
    ----------
    n, d, classes : int
        Rows, words (those that no text uses are left out), and classes.
    zipf : float
        The share of a word is 1 / (rank + 2.7)^zipf. A class changes that of every fifth word, by
        a lognormal factor. A quarter of all words come from another class, as texts have more
        than one topic.
    length : float
        Words of the median text; lengths are lognormal with a spread of a factor of two.
    values : {"tfidf", "counts", "binary"}
    copies : float
        The share of rows that repeat another one. A tenth of the labels of copies is drawn anew.
    is_balanced : bool
        Otherwise the size of a class falls as 1 / its number.
    seed : int
    """
    random = np.random.default_rng(seed)
    sizes = np.ones(classes) if is_balanced else 1.0 / np.arange(1, classes + 1)
    y = random.choice(classes, n, p=sizes / sizes.sum())
    y[:classes] = np.arange(classes)
    share = (np.arange(d) + 3.7) ** -zipf
    factors = np.exp(1.5 * random.standard_normal((classes, d)))
    shares = share * np.where(random.random((classes, d)) < 0.2, factors, 1.0)
    lengths = np.maximum(1, random.lognormal(np.log(length), 0.7, n).astype(int))
    rows = np.repeat(np.arange(n), lengths)
    topic = np.where(
        random.random(len(rows)) < 0.25, random.integers(0, classes, len(rows)), y[rows]
    )
    words = np.empty(len(rows), dtype=np.int64)
    for number in range(classes):
        here = np.flatnonzero(topic == number)
        reach = np.cumsum(shares[number])
        words[here] = np.searchsorted(reach, reach[-1] * random.random(len(here)))
    X = sp.csr_matrix((np.ones(len(rows)), (rows, random.permutation(d)[words])), shape=(n, d))
    copied = random.choice(n, int(copies * n), replace=False)
    source = np.arange(n)
    source[copied] = random.integers(0, n, len(copied))
    X, y[copied] = X[source], y[source[copied]]
    y[copied[::10]] = random.integers(0, classes, len(copied[::10]))
    X = X[:, np.bincount(X.indices, minlength=d) > 0]
    if values == "binary":
        X.data[:] = 1.0
    elif values == "tfidf":
        from sklearn.feature_extraction.text import TfidfTransformer

        X = TfidfTransformer().fit_transform(X)
    X.sort_indices()
    return X, y


def dense_classes(n: int, d: int, *, seed: int = 0) -> tuple[Array, Array]:
    """Correlated columns of mean zero and unequal scales; two classes (-1 and 1) that overlap."""
    data = regression(n, d, seed=seed)
    return data.X, np.where(data.y > 0, 1.0, -1.0)


def clouds(n: int, d: int, classes: int, *, seed: int = 0) -> tuple[Array, Labels]:
    """Classes around centres, in no order, that overlap as the letters of a scanned text do."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    centres = 1.5 * random.standard_normal((classes, d))
    return centres[y] + 2 * random.standard_normal((n, d)), y


def images(n: int, *, seed: int = 0) -> tuple[Array, Labels]:
    """Digits of scikit-learn, three times as large, moved, darker or lighter, noisy: 28 x 28."""
    from sklearn.datasets import load_digits

    random = np.random.default_rng(seed)
    digits = load_digits()
    large = np.kron(digits.images / 16.0, np.ones((1, 3, 3)))
    chosen = random.integers(0, len(large), n)
    down, right = random.integers(0, 5, n), random.integers(0, 5, n)
    X = np.zeros((n, 28, 28))
    for row in range(5):
        for column in range(5):
            here = np.flatnonzero((down == row) & (right == column))
            X[here, row : row + 24, column : column + 24] = large[chosen[here]]
    X *= random.uniform(0.7, 1.2, n)[:, None, None]
    ink = X > 0
    X[ink] += 0.15 * random.standard_normal(np.count_nonzero(ink))
    return np.clip(X, 0.0, 1.0).reshape(n, 784), digits.target[chosen].astype(np.int64)


def kernel_classes(n: int, d: int, *, seed: int = 0) -> tuple[Array, Array]:
    """Two classes (-1 and 1), each of several clusters, in standardised columns: no line does."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n,
        d,
        n_informative=max(4, 2 * d // 5),
        n_redundant=d // 5,
        n_clusters_per_class=8,
        flip_y=0.02,
        random_state=seed,
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.ascontiguousarray(X), np.where(y == 1, 1.0, -1.0)
