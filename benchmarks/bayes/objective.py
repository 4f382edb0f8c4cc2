r"""What is maximised, by plain formulas that every answer is judged by.

Gaussian process: with theta = (log c, log l_1, ..., log v), one length scale or one per column,

    L = - 1/2 y.K^{-1} y - 1/2 log |K| - n/2 log(2 pi),   K_ab = c exp(-1/2 sum_k (x_ak - x_bk)^2 /
    l_k^2) + v [a = b]

Bayesian ridge: with theta = (log alpha, log lambda) and centred columns, the log evidence

    1/2 [ d log(lambda) + n log(alpha) - alpha |y - X w|^2 - lambda |w|^2 - sum_j log(lambda + alpha
    e_j) - n log(2 pi) ]       (hyperpriors of 1e-6 are left out: they are the same for all)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

__all__ = ["BayesData", "Theta", "objective", "plain_fit", "suboptimality"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BayesData:
    """What a contestant is given."""

    X: Array
    y: Array
    kind: str
    by_column: bool = False


@dataclass(frozen=True)
class Theta:
    """What a contestant gives back: the logarithms of the module's text."""

    theta: Array


def objective(data: BayesData, theta: Array) -> float:
    """The log marginal likelihood, or the log evidence."""
    if data.kind == "process":
        return _likelihood(data, theta)[0]
    return _evidence(data, theta)


def _kernel(data: BayesData, theta: Array) -> tuple[Array, Array]:
    rows = data.X / np.exp(theta[1:-1])
    square = (rows**2).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2 * rows @ rows.T, 0.0)
    np.fill_diagonal(distance, 0.0)
    return math.exp(theta[0]) * np.exp(-0.5 * distance), distance


def _likelihood(data: BayesData, theta: Array) -> tuple[float, Array]:
    """L and its gradient, as a careful person writes it with SciPy."""
    n = len(data.y)
    smooth, distance = _kernel(data, theta)
    noise = math.exp(theta[-1])
    try:
        factor = linalg.cho_factor(smooth + noise * np.eye(n), lower=True, check_finite=False)
    except linalg.LinAlgError:
        return -math.inf, np.zeros(len(theta))
    a = linalg.cho_solve(factor, data.y, check_finite=False)
    logdet = 2 * float(np.log(np.diag(factor[0])).sum())
    value = -0.5 * (float(data.y @ a) + logdet + n * math.log(2 * math.pi))
    inverse = linalg.lapack.dpotri(factor[0], lower=1)[0]
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    weight = np.outer(a, a) - inverse
    part = weight * smooth
    gradient = [float(part.sum())]
    if data.by_column:
        rows = data.X / np.exp(theta[1:-1])
        sums = part.sum(axis=1)
        product = part @ rows
        gradient += list(2 * (sums @ rows**2 - np.einsum("ij,ij->j", rows, product)))
    else:
        gradient.append(float((part * distance).sum()))
    gradient.append(noise * float(np.trace(weight)))
    return value, 0.5 * np.array(gradient)


def _evidence(data: BayesData, theta: Array) -> float:
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    n, d = X.shape
    alpha, lambda_ = np.exp(theta)
    gram = X.T @ X if n >= d else X @ X.T
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    if n >= d:
        w = vectors @ ((vectors.T @ (X.T @ y)) / (values + lambda_ / alpha))
    else:
        w = X.T @ (vectors @ ((vectors.T @ y) / (values + lambda_ / alpha)))
    error = float(((y - X @ w) ** 2).sum())
    logdet = float(np.log(lambda_ + alpha * values).sum()) + max(d - n, 0) * math.log(lambda_)
    value = d * math.log(lambda_) + n * math.log(alpha) - alpha * error
    return 0.5 * (value - lambda_ * float(w @ w) - logdet - n * math.log(2 * math.pi))


def plain_fit(data: BayesData, tol: float = 2.2e-9, start: Any = None) -> Theta:
    """L-BFGS-B with the gradient above from ones, or from another start."""
    size = 2 + (data.X.shape[1] if data.by_column else 1)
    first = np.zeros(size) if start is None else start
    result = optimize.minimize(
        lambda theta: tuple(-part for part in _likelihood(data, theta)),
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(math.log(1e-5), math.log(1e5))] * size,
        options={"ftol": tol},
    )
    return Theta(result.x)


def suboptimality(data: BayesData, answer: Theta, best: float) -> float:
    """How far below the best known value, relative to it."""
    found = objective(data, np.asarray(answer.theta, dtype=np.float64))
    return (best - found) / abs(best) if math.isfinite(found) else math.inf
