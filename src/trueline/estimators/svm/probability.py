r"""Probabilities from scores, calibrated on rows that were left out, in agreement with predict.

For a pair of classes the log-odds of the first one are a function of its score that is zero where
the score is: slope A above zero and slope B below,

    P(first) = 1 / (1 + exp(-A s))  for s > 0,   1 / (1 + exp(-B s))  for s < 0,   A, B >= 0,

fitted by maximum likelihood to scores out of fold, with the targets of Platt ("Probabilistic
outputs for support vector machines", 1999), which keep the slopes finite. A sigmoid with a free
intercept would call rows likely that predict rejects. More than two classes are coupled by the
second method of Wu, Lin and Weng ("Probability estimates for multi-class classification by pairwise
coupling", JMLR 5, 2004); where the largest result is not the class that most pairs vote for, both
exchange places.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from trueline.estimators.svm.pairs import pairs_of

__all__ = ["best_slopes", "calibrate", "probabilities"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_FOLDS = 5
_SURE = 1e-7


def calibrate(machine: Any, X: Any, codes: Index, weights: Array) -> tuple[Array, Array]:
    """Slopes of each pair, with a minus sign as Platt writes them."""
    k = len(machine.classes_)
    slopes = np.empty((2, k * (k - 1) // 2))
    for number, (a, b) in enumerate(pairs_of(k)):
        rows = np.flatnonzero(((codes == a) | (codes == b)) & (weights > 0))
        is_first = codes[rows] == a
        scores = _scores_out_of_fold(machine, X, rows, codes[rows], weights[rows])
        slopes[:, number] = best_slopes(scores, is_first, weights[rows])
    return -slopes[0], -slopes[1]


def _scores_out_of_fold(machine: Any, X: Any, rows: Index, codes: Index, weights: Array) -> Array:
    """Scores of the first class from machines that have not seen the row."""
    scores = np.zeros(len(rows))
    smallest = int(np.unique(codes, return_counts=True)[1].min())
    if smallest < 2:
        # Nothing can be left out of a class of one row: its own scores must do.
        everything = np.arange(len(rows))
        return machine._scores_of_pair(X, rows, codes, weights, everything, everything)
    folds = StratifiedKFold(min(_FOLDS, smallest), shuffle=True, random_state=machine.random_state)
    for learned, left_out in folds.split(rows, codes):
        scores[left_out] = machine._scores_of_pair(X, rows, codes, weights, learned, left_out)
    return scores


def best_slopes(scores: Array, is_first: NDArray[np.bool_], weights: Array) -> tuple[float, float]:
    """Both slopes by maximum likelihood; each side has one, so both are problems of one number."""
    positive, negative = float(weights[is_first].sum()), float(weights[~is_first].sum())
    target = np.where(is_first, (positive + 1) / (positive + 2), 1 / (negative + 2))
    usual = _slope(scores, target, weights, 1.0)
    above, below = scores > 0, scores < 0
    return (
        _slope(scores[above], target[above], weights[above], usual),
        _slope(scores[below], target[below], weights[below], usual),
    )


def _slope(scores: Array, target: Array, weights: Array, otherwise: float) -> float:
    """The slope A >= 0 of log-odds A s that makes the targets most likely, by Newton's method.

    The derivative of the likelihood is monotone in A: bisection guards the steps.
    """
    size = float(np.abs(scores).max(initial=0.0))
    if size == 0.0 or not weights.any():
        return otherwise

    def derivative(A: float) -> float:
        return float(weights @ (scores * (target - expit(A * scores))))

    low, high = 0.0, 1.0 / size
    if derivative(0.0) <= 0.0:
        return 1e-6 / size  # no evidence at all: barely more likely than not
    while derivative(high) > 0.0 and high < 1e6 / size:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if derivative(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


def probabilities(scores: Array, A: Array, B: Array, predicted: Index) -> Array:
    """Probabilities of the classes from the scores of the first class of each pair."""
    first = expit(-np.where(scores > 0, A, B) * scores)
    first = np.clip(first, _SURE, 1 - _SURE)
    if scores.shape[1] == 1:
        return np.column_stack([first, 1 - first])
    k = int((1 + math.isqrt(1 + 8 * scores.shape[1])) // 2)
    coupled = _coupled(first, k)
    rows = np.arange(len(scores))
    top = coupled.argmax(axis=1)
    best, given = coupled[rows, top], coupled[rows, predicted]
    coupled[rows, top], coupled[rows, predicted] = given, best
    return coupled


def _coupled(first: Array, k: int) -> Array:
    """p that minimises sum over pairs of (r_ba p_a - r_ab p_b)^2 on the simplex."""
    m = len(first)
    r = np.zeros((m, k, k))
    for number, (a, b) in enumerate(pairs_of(k)):
        r[:, a, b], r[:, b, a] = first[:, number], 1 - first[:, number]
    Q = -r.transpose(0, 2, 1) * r
    index = np.arange(k)
    Q[:, index, index] = (r**2).sum(axis=1)
    # Stationarity with a multiplier for the sum: [Q e; e' 0] [p; b] = [0; 1].
    system = np.zeros((m, k + 1, k + 1))
    system[:, :k, :k] = Q
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((m, k + 1, 1))
    right[:, k, 0] = 1.0
    p = np.linalg.solve(system, right)[:, :k, 0]
    p = np.maximum(p, 0.0)
    return p / p.sum(axis=1, keepdims=True)
