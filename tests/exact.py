"""Exact rational arithmetic on small arrays: the right-hand side of rounding claims."""

from fractions import Fraction

import numpy as np


def fractions(array):
    """Every double is a fraction; this is the exact one."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=float))


def doubles(array):
    """Fractions rounded to double, correctly."""
    return np.vectorize(float, otypes=[float])(array)


def moments(X, Y, weights=None):
    """Weight, means, centred Gram, cross products and squares, without any rounding."""
    X, Y = fractions(X), fractions(Y)
    s = fractions(np.ones(len(X)) if weights is None else weights)
    weight = s.sum()
    x_mean, y_mean = s @ X / weight, s @ Y / weight
    V, R = X - x_mean, Y - y_mean
    return {
        "weight": weight,
        "x_mean": x_mean,
        "y_mean": y_mean,
        "gram": (s[:, None] * V).T @ V,
        "cross": (s[:, None] * V).T @ R,
        "y_square": (s[:, None] * R * R).sum(axis=0),
    }
