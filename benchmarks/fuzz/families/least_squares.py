"""Squared loss with no or a quadratic penalty.

The reference is the best of the exact minimiser, rounded to doubles, and of the answers of LAPACK.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

import trueline
from benchmarks.fuzz import data
from benchmarks.fuzz.exact import LeastSquares
from benchmarks.fuzz.frame import Case

__all__ = ["least_squares"]

Array = NDArray[np.float64]
Rng = np.random.Generator

_NAMES = ("plain", "plain", "ridge", "ridge", "general", "positive", "classes", "cv")
_PLAIN = ("auto", "auto", "cholesky", "qr", "svd", "conjugate_gradient")
_RIDGE = (*_PLAIN, "kernel", "kernel")
_ALPHAS = (1e-300, 1e-100, 1e-30, 1e-20, 1e-14, 1e-10, 1e-8, 1e-3, 1.0, 1e3, 1e8)


def least_squares(rng: Rng) -> Case:
    """A random estimator of the family on random data."""
    if rng.random() < 0.05:
        n, d = int(rng.integers(20, 61)), int(rng.integers(20, 101))
    else:
        n, d = data.shape(rng)
    is_sparse = rng.random() < 0.25
    fit_intercept = bool(rng.random() < 0.8)
    X, about = data.design(rng, n, d, is_sparse, fit_intercept)
    held, numbers, how = data.as_given(rng, X, is_sparse)
    s, weighing = data.weights(rng, n)
    name = str(rng.choice(_NAMES))
    if name == "classes":
        return _classes(rng, held, numbers, s, fit_intercept, f"{about}, {how}, {weighing}")
    k = int(rng.choice([1, 1, 1, 2, 3]))
    Y, aim = data.targets(rng, numbers, k)
    is_flat = k == 1 and rng.random() < 0.8
    model, alphas = _estimator(rng, name, k, fit_intercept)
    note = f"{model}; {about}, {how}, {weighing}, {aim}"
    is_positive = name == "positive"
    return _case(model, held, numbers, Y, Y[:, 0] if is_flat else Y, s, alphas, note, is_positive)


def _estimator(rng: Rng, name: str, k: int, fit_intercept: bool) -> tuple[Any, Any]:
    """An estimator and its strength (None: the one that it chose)."""
    alpha: Any = float(rng.choice(_ALPHAS))
    if name == "plain":
        solver = str(rng.choice(_PLAIN))
        return trueline.LinearRegression(fit_intercept=fit_intercept, solver=solver), 0.0
    if name == "ridge":
        if k > 1 and rng.random() < 0.5:
            alpha = rng.choice(_ALPHAS, k)
        solver = str(rng.choice(_RIDGE))
        return trueline.Ridge(alpha, fit_intercept=fit_intercept, solver=solver), alpha
    if name == "positive":
        alpha = float(rng.choice([0.0, alpha]))
        model = trueline.Ridge(alpha, fit_intercept=fit_intercept, positive=True)
        if alpha == 0 and rng.random() < 0.5:
            model = trueline.LinearRegression(fit_intercept=fit_intercept, positive=True)
        return model, alpha
    if name == "cv":
        alphas = np.sort(rng.choice(_ALPHAS[4:], 3, replace=False))
        return trueline.RidgeCV(alphas, fit_intercept=fit_intercept), None
    penalty = str(rng.choice(["none", "l2"]))
    solver = str(rng.choice(_PLAIN))
    model = trueline.LinearRegressor(
        "squared", penalty, alpha, fit_intercept=fit_intercept, solver=solver, tol=1e-9
    )
    return model, 0.0 if penalty == "none" else alpha


def _classes(rng: Rng, held: Any, X: Array, s: Any, fit_intercept: bool, about: str) -> Case:
    """Least squares on labels: one target of -1 and 1 for each class, or one for both."""
    n = len(X)
    classes = int(rng.choice([2, 2, 3]))
    labels = np.arange(n) % min(classes, n)
    rng.shuffle(labels)
    if s is not None:  # every class has a row that counts
        s = np.where([np.any(s[labels == label]) for label in labels], s, 1.0)
    alpha = float(rng.choice(_ALPHAS))
    model = trueline.RidgeClassifier(
        alpha, fit_intercept=fit_intercept, solver=str(rng.choice(_RIDGE))
    )
    found = np.unique(labels)
    Y = np.where(labels[:, None] == found, 1.0, -1.0)
    Y = Y[:, 1:] if len(found) == 2 else Y
    return _case(model, held, X, Y, labels, s, alpha, f"{model}; {about}, {len(found)} classes")


def _case(
    model: Any,
    held: Any,
    X: Array,
    Y: Array,
    y: Array,
    s: Array | None,
    alphas: Any,
    note: str,
    is_positive: bool = False,
) -> Case:
    k = Y.shape[1]
    fit_intercept = model.fit_intercept

    def parts(fitted: Any) -> list[LeastSquares]:
        strengths = np.broadcast_to(fitted.alpha_ if alphas is None else alphas, k)
        return [LeastSquares(X, Y[:, [t]], s, strengths[t], fit_intercept) for t in range(k)]

    def value(fitted: Any) -> float:
        W = np.atleast_2d(np.asarray(fitted.coef_, dtype=np.float64)).T
        b = np.broadcast_to(np.asarray(fitted.intercept_, dtype=np.float64), k)
        if is_positive and (W < 0).any():
            return np.inf
        return sum(part.value(W[:, [t]], b[[t]]) for t, part in enumerate(parts(fitted)))

    def reference(fitted: Any) -> float:
        return sum(
            _least_nonnegative(part) if is_positive else _least(part) for part in parts(fitted)
        )

    plain = LeastSquares(X, Y, s, 0.0, fit_intercept)
    # A constant target leaves nothing to explain: a few units in its last places are allowed.
    digits = 1e-20 * LeastSquares(X, Y, s, 0.0, False).constant()
    return Case(model, held, y, s, value, reference, plain.constant() + digits, note)


def _least(problem: LeastSquares) -> float:
    """The least objective of a few points in double precision."""
    A, B, mean, level, size = _centred(problem)
    found = [problem.constant()]
    for cut in (None, 1e-13, 1e-10):
        W = np.linalg.lstsq(A, B, rcond=cut)[0] / size[:, None]
        found.append(problem.value(W, level - mean @ W))
    exact = problem.minimum()
    if exact is not None:
        found.append(problem.value(*exact))
    return min(found)


def _least_nonnegative(problem: LeastSquares) -> float:
    """The objective at the answer of Lawson and Hanson."""
    A, B, mean, level, size = _centred(problem)
    W = np.column_stack([nnls(A, b, maxiter=100 * len(size))[0] for b in B.T]) / size[:, None]
    return min(problem.value(W, level - mean @ W), problem.constant())


def _centred(problem: LeastSquares) -> tuple[Array, Array, Array, Array, Array]:
    """Rows centred and weighted, the penalty's rows below, columns of norm one."""
    X, Y, s = problem.X, problem.Y, problem.s
    d, k = X.shape[1], Y.shape[1]
    mean, level = np.zeros(d), np.zeros(k)
    if problem.fit_intercept:
        # Twice: the mean of what is left removes the rounding of the first.
        mean = X[0] + s @ (X - X[0]) / s.sum()
        level = s @ Y / s.sum()
    V = X - mean
    if problem.fit_intercept:
        V = V - s @ V / s.sum()
    root = np.sqrt(s)[:, None]
    A = np.vstack([root * V, np.sqrt(problem.alpha) * np.eye(d)])
    B = np.vstack([root * (Y - level), np.zeros((d, k))])
    size = np.linalg.norm(A, axis=0)
    size = np.where(size > 0, size, 1.0)
    return A / size, B, mean, level, size
