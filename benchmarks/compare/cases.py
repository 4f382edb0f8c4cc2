"""The cases: rows of five kinds, and the models that both sides compare, with the same grids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["ALPHAS", "CASES", "COSTS", "Case", "models_of", "penalties_of"]

ALPHAS = np.logspace(-3, 4, 15)[::-1]
COSTS = np.logspace(-3, 3, 7)


@dataclass(frozen=True)
class Case:
    """Rows and what is predicted from them."""

    title: str
    make: Callable[[bool], tuple[Any, Any]]
    is_classes: bool


def _amounts(small: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    n, d = (300, 13) if small else (20_000, 13)
    X = random.standard_normal((n, 5)) @ random.standard_normal((5, d))
    X += 0.5 * random.standard_normal((n, d))
    return X, X @ random.standard_normal(d) + 3 * random.standard_t(3, n)


def _two(small: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    n, d = (300, 8) if small else (30_000, 100)
    X = random.standard_normal((n, d)) * (random.random((n, d)) < 0.3)
    score = X @ random.standard_normal(d) / np.sqrt(0.3 * d) + random.logistic(size=n)
    return X, np.where(score > 0.5, "high", "low")


def _text(small: bool) -> tuple[Any, Any]:
    """Rows of about 13 words out of a vocabulary with a long tail, scaled to length one."""
    random = np.random.default_rng(2)
    n, d = (200, 150) if small else (5_500, 4_200)
    share = 1.0 / np.arange(2, d + 2)
    words = random.choice(d, size=(n, 13), p=share / share.sum())
    X = sp.csr_array((np.ones(words.size), (np.repeat(np.arange(n), 13), words.ravel())), (n, d))
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_array(sp.diags_array(1 / length) @ X)
    weights = random.standard_normal(d) * (random.random(d) < 0.1)
    score = X @ weights
    return X, np.where(score > np.quantile(score, 0.85), "spam", "ham")


def _letters(small: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    n, classes = (300, 4) if small else (20_000, 26)
    y = random.integers(0, classes, n)
    return 1.5 * random.standard_normal((classes, 16))[y] + 2 * random.standard_normal((n, 16)), y


def _genes(small: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(4)
    d = 100 if small else 2_300
    y = np.arange(63) % 4
    centres = random.standard_normal((4, d)) * (random.random(d) < 0.05)
    return centres[y] + random.standard_normal((63, d)), y


CASES = {
    "amounts": Case("Regression, 20,000 x 13, heavy tails", _amounts, False),
    "two": Case("Two classes, 30,000 x 100", _two, True),
    "text": Case("Two classes, sparse, 5,500 x 4,200", _text, True),
    "letters": Case("26 classes, 20,000 x 16", _letters, True),
    "genes": Case("Four classes, 63 x 2,300", _genes, True),
}


def penalties_of(X: Any, y: Any, ratio: float) -> Any:
    """Strengths of absolute values: from the least that leaves no column to a thousandth."""
    top = np.abs(X.T @ (y - y.mean())).max() / len(y) / ratio
    return top * np.geomspace(1.0, 1e-3, 20)


def models_of(case: Case, X: Any, y: Any, library: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The models of "trueline" or "scikit-learn" with their grids, by name."""
    if library == "trueline":
        import trueline as linear

        svc = linear.LinearSVC
    else:
        from sklearn import linear_model as linear
        from sklearn.svm import LinearSVC as svc
    if not case.is_classes:
        return {
            "least squares": (linear.LinearRegression(), {}),
            "ridge": (linear.Ridge(), {"alpha": ALPHAS}),
            "lasso": (linear.Lasso(), {"alpha": penalties_of(X, y, 1.0)}),
            "elastic net": (linear.ElasticNet(l1_ratio=0.5), {"alpha": penalties_of(X, y, 0.5)}),
            "bayesian ridge": (linear.BayesianRidge(), {}),
            "huber": (linear.HuberRegressor(max_iter=1000), {}),
        }
    theirs = library == "scikit-learn"
    few = len(np.unique(y)) == 2
    sparse = {"solver": "liblinear" if few else "saga"} if theirs else {}
    return {
        "ridge classifier": (linear.RidgeClassifier(), {"alpha": ALPHAS}),
        "logistic, L2": (linear.LogisticRegression(max_iter=1000), {"C": COSTS}),
        "logistic, L1": (linear.LogisticRegression(l1_ratio=1.0, **sparse), {"C": COSTS}),
        "linear SVM": (svc(), {"C": COSTS}),
    }
