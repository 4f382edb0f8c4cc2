r"""Hyperplanes to start from: surrogates of the 0-1 loss, each convex, and what becomes of them.

Least squares on the signs; logistic regression; the squared hinge of support vector machines; the
perceptron's pocket. Far-away errors pull at all of these. Minimising the concave
sum_i s_i log(eps + l_i) of logistic losses l_i instead, by weights s_i / (eps + l_i) that are
renewed after each Newton step (E. J. Candes, M. B. Wakin and S. P. Boyd, J. Fourier Anal. Appl. 14
(2008) 877-905), lets them go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trueline.numerics.jit import kernel

__all__ = ["starting_points"]

Array = NDArray[np.float64]
Losses = Callable[[Array], tuple[Array, Array, Array]]

_NEWTON_STEPS = 12
_RENEWALS = 15
# Rows per pass of the pocket, and what all surrogates are steadied by.
_POCKET_STEPS = 20_000
_RIDGE = 1e-3


def starting_points(A: Array, s: Array, is_quick: bool = False) -> Iterator[Array]:
    """Hyperplanes for signed rows in which columns have about unit size."""
    yield A[np.argmax(s)]  # gets at least this one right
    yield _least_squares(A, s)
    for losses in (_logistic, _squared_hinge):
        v = np.zeros(A.shape[1])
        for _ in range(_NEWTON_STEPS):
            v = _newton_step(A, s, v, losses)
        yield v
        if is_quick:
            return
    yield _pocket(A, s, _POCKET_STEPS // len(A) + 2)
    # From the logistic fit, ever less patient with those far away.
    for eps in (1.0, 0.2, 0.04):
        v = np.zeros(A.shape[1])
        for _ in range(_RENEWALS):
            loss = np.logaddexp(0.0, -(A @ v))
            weights = s / (eps + loss)
            for _ in range(2):
                v = _newton_step(A, weights * (s.sum() / weights.sum()), v, _logistic)
            yield v


def _least_squares(A: Array, s: Array) -> Array:
    gram = (A * s[:, None]).T @ A
    return _solved(gram, A.T @ s)


def _solved(H: Array, g: Array) -> Array:
    steady = _RIDGE * max(float(np.trace(H)) / len(H), 1e-300)
    return np.asarray(np.linalg.solve(H + steady * np.eye(len(H)), g))


def _logistic(z: Array) -> tuple[Array, Array, Array]:
    """Loss, downward slope and curvature of log(1 + exp(-z))."""
    p = expit(-z)
    return np.logaddexp(0.0, -z), p, np.maximum(p * (1 - p), 1e-6)


def _squared_hinge(z: Array) -> tuple[Array, Array, Array]:
    """Loss, downward slope and curvature of max(0, 1 - z)^2 / 2."""
    short = np.maximum(1.0 - z, 0.0)
    return 0.5 * short**2, short, np.where(short > 0, 1.0, 1e-6)


def _newton_step(A: Array, s: Array, v: Array, losses: Losses) -> Array:
    """One Newton step, halved until the loss is lower."""
    value, slope, curvature = losses(A @ v)
    H = (A * (s * curvature)[:, None]).T @ A
    ridge = _RIDGE * float(s.sum())
    gradient = A.T @ (s * slope) - ridge * v
    step = np.linalg.solve(H + ridge * np.eye(len(v)), gradient)
    before = float(s @ value) + 0.5 * ridge * float(v @ v)
    for _ in range(8):
        new = v + step
        after = float(s @ losses(A @ new)[0]) + 0.5 * ridge * float(new @ new)
        if after <= before:
            return np.asarray(new)
        step = 0.5 * step
    return v


@kernel
def _pocket(A: Array, s: Array, passes: int) -> Array:
    """The best hyperplane that a perceptron comes by, looked at after each pass."""
    n, m = A.shape
    v, best = np.zeros(m), np.zeros(m)
    least = np.inf
    for _ in range(passes):
        for i in range(n):
            z = 0.0
            for c in range(m):
                z += A[i, c] * v[c]
            if z <= 0.0:
                for c in range(m):
                    v[c] += A[i, c]
        total = 0.0
        for i in range(n):
            z = 0.0
            for c in range(m):
                z += A[i, c] * v[c]
            if z <= 0.0:
                total += s[i]
        if total < least:
            least = total
            for c in range(m):
                best[c] = v[c]
    return best
