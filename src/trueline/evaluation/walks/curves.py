r"""Losses of many problems at once: scores of shape (n, p, k), p problems with k scores for a row.

    squared         1/2 (z - y)^2                         u = z - y,              h = 1
    logistic        log(1 + exp(-y z))                    u = -y / (1 + e^{yz}),  h = q (1 - q)
    squared hinge   max(0, 1 - y z)^2                     u = -2 y (1 - y z)_+,   h = 2 [y z < 1]
    softmax         log sum_c exp(z_c) - z_y              u = q - y,              h = diag(q) - qq^T

``look`` gives values (summed over coupled scores), slopes u and what ``bend`` needs to multiply
changes of the scores by the second derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

__all__ = ["CURVES", "Curve"]

Array = NDArray[np.float64]


class Curve(ABC):
    """A loss with two derivatives."""

    is_coupled = False

    @abstractmethod
    def value(self, Y: Array, Z: Array) -> Array:
        """Losses of the rows, of shape (n, p, k), or (n, p, 1) of coupled scores."""

    @abstractmethod
    def look(self, Y: Array, Z: Array) -> tuple[Array, Array]:
        """Slopes, and the state for :meth:`bend`."""

    def bend(self, state: Array, Q: Array) -> Array:
        """Second derivatives times a change of the scores."""
        return state * Q


class Squared(Curve):
    """Half the squared error."""

    def value(self, Y: Array, Z: Array) -> Array:
        return 0.5 * (Z - Y) ** 2

    def look(self, Y: Array, Z: Array) -> tuple[Array, Array]:
        return Z - Y, np.ones_like(Z)


class Logistic(Curve):
    """Logistic loss of labels -1 and +1."""

    def value(self, Y: Array, Z: Array) -> Array:
        M = -Y * Z
        return np.maximum(M, 0.0) + np.log1p(np.exp(-np.abs(M)))

    def look(self, Y: Array, Z: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore"):  # infinity is the right answer: a share of zero
            q = 1.0 / (1.0 + np.exp(Y * Z))
        return -Y * q, q * (1.0 - q)


class SquaredHinge(Curve):
    """Squared hinge of labels -1 and +1."""

    def value(self, Y: Array, Z: Array) -> Array:
        return np.maximum(1.0 - Y * Z, 0.0) ** 2

    def look(self, Y: Array, Z: Array) -> tuple[Array, Array]:
        left = np.maximum(1.0 - Y * Z, 0.0)
        return -2.0 * Y * left, np.where(left > 0, 2.0, 0.0)


class Softmax(Curve):
    """Softmax regression; Y one-hot."""

    is_coupled = True

    def value(self, Y: Array, Z: Array) -> Array:
        top = Z.max(axis=2, keepdims=True)
        total = np.log(np.exp(Z - top).sum(axis=2, keepdims=True)) + top
        return total - (Z * Y).sum(axis=2, keepdims=True)

    def look(self, Y: Array, Z: Array) -> tuple[Array, Array]:
        q = np.exp(Z - Z.max(axis=2, keepdims=True))
        q /= q.sum(axis=2, keepdims=True)
        return q - Y, q

    def bend(self, state: Array, Q: Array) -> Array:
        T = state * Q
        T -= state * T.sum(axis=2, keepdims=True)
        return T


CURVES: dict[str, Curve] = {
    "squared": Squared(),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "softmax": Softmax(),
}
