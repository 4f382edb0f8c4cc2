"""Problems of the online suite: rows to learn from, and rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["CASES", "Case", "Split"]


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows held out; y is -1 or +1."""

    X: Any
    y: np.ndarray
    X_held: Any
    y_held: np.ndarray

    def accuracy(self, w: np.ndarray, b: float) -> float:
        """Share of held-out rows on the right side."""
        return float(np.mean(np.where(self.X_held @ w + b > 0, 1.0, -1.0) == self.y_held))


@dataclass(frozen=True)
class Case:
    """A problem and how it is learned: in one pass, or one row at a time."""

    title: str
    n: int
    held: int
    is_text: bool
    by_row: bool = False

    def make(self, scale: float) -> Split:
        """The rows; a smaller scale has fewer of them."""
        n, held = max(500, int(self.n * scale)), max(500, int(self.held * scale))
        X, y = (text if self.is_text else dense)(n + held)
        return Split(X[:n], y[:n], X[n:], y[n:])


def text(n: int, d: int = 200_000, words: float = 92.0, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Documents: word frequencies by a power law, weights by rarity, rows of length one.

    A fifth of the words speak for a class; labels are noisy.
    """
    random = np.random.default_rng(seed)
    share = 1.0 / (np.arange(d) + 10.0) ** 1.1
    lengths = np.maximum(5, random.lognormal(np.log(words), 0.5, n).astype(int))
    ids = np.searchsorted(np.cumsum(share / share.sum()), random.random(lengths.sum()))
    ids = random.permutation(d)[ids.clip(0, d - 1)]
    X = sp.csr_matrix((np.ones(len(ids)), (np.repeat(np.arange(n), lengths), ids)), shape=(n, d))
    rarity = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=d))) + 1
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags_array(1 / norms) @ X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    scores = X @ (random.standard_normal(d) * (random.random(d) < 0.2))
    scores = (scores - np.median(scores)) / scores.std()
    return X, np.where(scores + 0.4 * random.standard_normal(n) > 0, 1.0, -1.0)


def dense(n: int, d: int = 50, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Columns correlated with their neighbours, in unequal units; noisy labels."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] += 0.5 * X[:, j - 1]
    X *= np.exp(random.normal(0, 0.5, d))
    scores = X @ (random.standard_normal(d) / X.std(axis=0))
    noisy = scores / scores.std() + 0.5 * random.standard_normal(n)
    return X, np.where(noisy > 0, 1.0, -1.0)


CASES = {
    "text": Case(
        "One pass over 100,000 documents of about 80 words, 200,000 columns", 100_000, 20_000, True
    ),
    "dense": Case("One pass over 1,000,000 rows of 50 numbers", 1_000_000, 20_000, False),
    "rows": Case("2,000 rows of 50 numbers, one at a time", 2_000, 20_000, False, by_row=True),
    "documents": Case("2,000 documents, one at a time", 2_000, 20_000, True, by_row=True),
}
