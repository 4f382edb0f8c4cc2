"""Ten-line perceptrons in plain Python, to compare with."""

import numpy as np


def perceptron(X, y, order, rate=1.0, weights=None, intercept=True, margin=0.0, step=1.0):
    """Weights, intercept and row after each update; y in {-1, +1}, order an iterable of rows."""
    w, b, history = np.zeros(X.shape[1]), 0.0, []
    for i in order:
        if y[i] * (sum(w * X[i]) + b) <= margin:
            c = rate * y[i] * (1.0 if weights is None else weights[i])
            w = w + c * X[i]
            b = b + c * step * intercept
            history.append((i, w, b))
    return history


def textbook(X, y, limit=10_000):
    """Correct the first mistake found, from the first row on."""
    w, b, history = np.zeros(X.shape[1]), 0.0, []
    while limit:
        limit -= 1
        wrong = [i for i in range(len(X)) if y[i] * (sum(w * X[i]) + b) <= 0]
        if not wrong:
            return history
        i = wrong[0]
        w, b = w + y[i] * X[i], b + y[i]
        history.append((i, w, b))
    raise AssertionError("not separable within the limit")


def direct(X, codes, k, order):
    """The multiclass perceptron: add to the right class, subtract from the best other one."""
    W, b, history = np.zeros((k, X.shape[1])), np.zeros(k), []
    for i in order:
        scores = [sum(W[r] * X[i]) + b[r] for r in range(k)]
        others = [r for r in range(k) if r != codes[i]]
        rival = max(others, key=lambda r: scores[r])
        if scores[codes[i]] <= scores[rival]:
            W, b = W.copy(), b.copy()
            W[codes[i]] += X[i]
            W[rival] -= X[i]
            b[codes[i]] += 1
            b[rival] -= 1
            history.append((i, W, b))
    return history


def passive_aggressive(X, y, order, form, C):
    """PA, PA-I, PA-II without an intercept."""
    w, history = np.zeros(X.shape[1]), []
    for i in order:
        loss, square = max(0.0, 1 - y[i] * sum(w * X[i])), sum(X[i] ** 2)
        if form == "PA-II":
            step = loss / (square + 1 / (2 * C))
        else:
            step = loss / square if square else 0.0
        if form == "PA-I":
            step = min(C, step)
        if step:
            w = w + step * y[i] * X[i]
            history.append((i, w, 0.0))
    return history
