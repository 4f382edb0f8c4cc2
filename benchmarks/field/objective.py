r"""What a class minimises, evaluated at any answer: one function for both libraries.

    F(W, b) = c sum_i l(x_i.W + b, y_i) + P(W)

in scikit-learn's scaling of each class. Only differences of F count: constants of l are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

__all__ = ["objective"]


def _squared(z: Any, y: Any) -> Any:
    return 0.5 * (z - y) ** 2


def _poisson(z: Any, y: Any) -> Any:
    """The deviance over two: zero where exp(z) = y."""
    return np.exp(z) - y * z + xlogy(y, y) - y


def _gamma(z: Any, y: Any) -> Any:
    return y * np.exp(-z) + z - np.log(y) - 1.0


def _means(loss: Any) -> Any:
    """Mean loss, and the elastic net's penalty."""

    def value(model: Any, z: Any, y: Any, w: Any) -> float:
        ratio = getattr(model, "l1_ratio", 1.0 if type(model).__name__ == "Lasso" else 0.0)
        strength = model.alpha * (ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * (w**2).sum())
        return float(loss(z, y).mean() + strength)

    return value


def _huber(model: Any, z: Any, y: Any, w: Any) -> float:
    scale = model.scale_
    r = np.abs(z - y) / scale
    loss = np.where(r <= model.epsilon, r**2, 2 * model.epsilon * r - model.epsilon**2)
    return float((scale * (1 + loss)).sum() + model.alpha * (w**2).sum())


def _quantile(model: Any, z: Any, y: Any, w: Any) -> float:
    r = y - z
    loss = np.maximum(model.quantile * r, (model.quantile - 1) * r)
    return float(loss.mean() + model.alpha * np.abs(w).sum())


def _support_regression(model: Any, z: Any, y: Any, w: Any) -> float:
    loss = np.maximum(np.abs(z - y) - model.epsilon, 0.0)
    # LIBLINEAR's intercept is a column of ones, and is penalised.
    b = float(np.ravel(model.intercept_)[0])
    return float(model.C * loss.sum() + 0.5 * ((w**2).sum() + b**2))


def _signs(model: Any, y: Any) -> Any:
    """Targets of one-vs-rest: +1 for a class, -1 for the others."""
    signs = np.where(y[:, None] == model.classes_[None, :], 1.0, -1.0)
    return signs[:, 1:] if len(model.classes_) == 2 else signs


def _support_classification(model: Any, z: Any, y: Any, w: Any) -> float:
    slack = np.maximum(1 - _signs(model, y) * z, 0.0)
    loss = slack**2 if model.loss == "squared_hinge" else slack
    # LIBLINEAR's intercept is a column of ones, and is penalised.
    all_of_it = np.concatenate([w.ravel(), np.ravel(model.intercept_)])
    penalty = np.abs(all_of_it).sum() if model.penalty == "l1" else 0.5 * (all_of_it**2).sum()
    return float(model.C * loss.sum() + penalty)


def _logistic(model: Any, z: Any, y: Any, w: Any) -> float:
    if z.shape[1] == 1:
        loss = np.logaddexp(0.0, -_signs(model, y) * z).sum()
    else:
        own = np.searchsorted(model.classes_, y)
        loss = (logsumexp(z, axis=1) - z[np.arange(len(y)), own]).sum()
    ratio = model.l1_ratio or 0.0
    penalty = ratio * np.abs(w).sum() + 0.5 * (1 - ratio) * (w**2).sum()
    return float(loss + penalty / model.C)


def _ridge_signs(model: Any, z: Any, y: Any, w: Any) -> float:
    return float(0.5 * ((z - _signs(model, y)) ** 2).sum() + 0.5 * model.alpha * (w**2).sum())


_OF = {
    "LinearRegression": lambda model, z, y, w: float(_squared(z, y).sum()),
    "Ridge": lambda model, z, y, w: float(_squared(z, y).sum() + 0.5 * model.alpha * (w**2).sum()),
    "Lasso": _means(_squared),
    "ElasticNet": _means(_squared),
    "PoissonRegressor": _means(_poisson),
    "GammaRegressor": _means(_gamma),
    "HuberRegressor": _huber,
    "QuantileRegressor": _quantile,
    "LinearSVR": _support_regression,
    "LinearSVC": _support_classification,
    "LogisticRegression": _logistic,
    "RidgeClassifier": _ridge_signs,
}


def objective(model: Any, X: Any, y: Any) -> float | None:
    """F at the coefficients of a fitted model; None for classes that minimise no such function."""
    value = _OF.get(type(model).__name__)
    if value is None:
        return None
    w = np.asarray(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_, float)
    z = X @ np.atleast_2d(w).T + np.ravel(model.intercept_)
    return value(model, z if hasattr(model, "classes_") else z.ravel(), y, w)
