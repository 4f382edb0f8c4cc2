r"""Probabilities from scores: slopes and steps through the boundary, fitted to rows left out.

For two classes the probability of the second one is a rising function of the score s that passes
through one half where s changes its sign, so that the more likely class is the predicted one.

    sigmoid     P = 1 / (1 + exp(-A s)) for s > 0,  1 / (1 + exp(-B s)) for s < 0,     A, B >= 0
    isotonic    P >= 1/2 for s > 0, P <= 1/2 for s < 0, each of them the best rising steps

by maximum likelihood, the first with the targets of J. Platt, "Probabilistic outputs for support
vector machines" (1999), the second by least squares (B. Zadrozny, C. Elkan, "Transforming
classifier scores into accurate multiclass probability estimates", KDD 2002). With more classes each
score against the rest has a sigmoid A s + B or rising steps of its own; results are divided by
their sum, and where the largest one is not the predicted class, both exchange places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from trueline.estimators.logistic import LogisticRegression
from trueline.estimators.support_vectors.probability import best_slopes

__all__ = ["fit_calibrators", "probabilities_of"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# No row is certain, and none of two classes is exactly between them.
_SURE, _TIE = 1e-7, 1e-9


def fit_calibrators(scores: Array, codes: Index, weights: Array, method: str) -> list[Any]:
    """One calibrator for two classes (scores of shape (n, 1)), one for each class of more."""
    if scores.shape[1] == 1:
        of_two = _two_slopes if method == "sigmoid" else _two_sides
        return [of_two(scores[:, 0], codes == 1, weights)]
    of_one = _sigmoid if method == "sigmoid" else _steps
    return [of_one(scores[:, k], codes == k, weights) for k in range(scores.shape[1])]


def probabilities_of(scores: Array, calibrators: list[Any], predicted: Index) -> Array:
    """Of all classes, in rows that add up to one; the largest is that of the predicted class."""
    if len(calibrators) == 1:
        second = np.clip(_apply(calibrators[0], scores[:, 0]), _SURE, 1 - _SURE)
        second = np.where(predicted == 1, np.maximum(second, 0.5 + _TIE), second)
        second = np.where(predicted == 0, np.minimum(second, 0.5 - _TIE), second)
        return np.column_stack([1 - second, second])
    each = np.stack([_apply(one, scores[:, k]) for k, one in enumerate(calibrators)], axis=1)
    each = np.clip(each, _SURE, 1.0)
    each = each / each.sum(axis=1, keepdims=True)
    rows, top = np.arange(len(each)), each.argmax(axis=1)
    best, given = each[rows, top], each[rows, predicted]
    each[rows, top], each[rows, predicted] = given, best
    return each


def _apply(calibrator: dict[str, Any], scores: Array) -> Array:
    kind = calibrator["kind"]
    if kind == "slopes":
        slope = np.where(scores > 0, calibrator["above"], calibrator["below"])
        return np.asarray(expit(slope * scores))
    if kind == "sigmoid":
        return np.asarray(expit(calibrator["slope"] * scores + calibrator["level"]))
    return np.interp(scores, calibrator["at"], calibrator["values"])


def _two_slopes(scores: Array, is_second: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    above, below = best_slopes(scores, is_second, weights)
    return {"kind": "slopes", "above": above, "below": below}


def _two_sides(scores: Array, is_second: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    """Steps on both sides of zero; between them, where no score was seen, a line."""
    at, values = [np.zeros(0)], [np.zeros(0)]
    for side, low, high in ((scores < 0, 0.0, 0.5), (scores > 0, 0.5, 1.0)):
        if side.any():
            part = _monotone(scores[side], is_second[side], weights[side], low, high)
            at.append(part[0])
            values.append(part[1])
    found = {"kind": "steps", "at": np.concatenate(at), "values": np.concatenate(values)}
    return found if len(found["at"]) else {"kind": "steps", "at": [0.0], "values": [0.5]}


def _steps(scores: Array, is_own: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    at, values = _monotone(scores, is_own, weights, 0.0, 1.0)
    return {"kind": "steps", "at": at, "values": values}


def _monotone(
    scores: Array, is_own: NDArray[np.bool_], weights: Array, low: float, high: float
) -> tuple[Array, Array]:
    model = IsotonicRegression(y_min=low, y_max=high, out_of_bounds="clip")
    model.fit(scores, is_own.astype(float), sample_weight=weights)
    return np.asarray(model.X_thresholds_, dtype=float), np.asarray(model.y_thresholds_)


def _sigmoid(scores: Array, is_own: NDArray[np.bool_], weights: Array) -> dict[str, Any]:
    """A s + B by logistic regression on both labels of each row, weighted by Platt's targets."""
    own, others = float(weights[is_own].sum()), float(weights[~is_own].sum())
    target = np.where(is_own, (own + 1) / (own + 2), 1 / (others + 2))
    size = float(np.abs(scores).max(initial=0.0)) or 1.0
    X = np.concatenate([scores, scores])[:, None] / size
    labels = np.repeat([1, 0], len(scores))
    shares = np.concatenate([weights * target, weights * (1 - target)])
    model = LogisticRegression(C=np.inf, tol=1e-6).fit(X, labels, shares)
    slope = float(model.coef_[0, 0]) / size
    if slope <= 0:  # scores that say nothing, or the contrary: the share of the class is left
        return {"kind": "sigmoid", "slope": 0.0, "level": float(np.log(own / others))}
    return {"kind": "sigmoid", "slope": slope, "level": float(model.intercept_[0])}
