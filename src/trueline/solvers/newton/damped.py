r"""Damped Newton steps to the minimum of one smooth convex function, to the last digits.

    (H + lambda L) s = -g,        v <- v + s

with the gradient g, the Hessian H and a bound L of its eigenvalues. Steps that bring less than they
promise are taken back and lambda grows, towards gradient descent; with every success it shrinks,
towards Newton's method (K. Levenberg, Quart. Appl. Math. 2 (1944) 164-168; D. W. Marquardt, J. SIAM
11 (1963) 431-441). H may be singular, as it is where a function is straight in some direction.

Near the minimum the values agree to rounding long before the coordinates do: there a step counts
if it halves the gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from trueline.solution import Status

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# What a step must bring of what it promised; beyond the second part the promise was good.
_ENOUGH, _GOOD = 1e-4, 0.75
# Of lambda: the first value, the least, and after how much damping a step is too short to matter.
_FIRST, _LEAST, _MOST = 1e-2, 1e-13, 1e13
_UP, _DOWN, _FAST_DOWN = 10.0, 0.3, 0.01
# Promises below this part of the value are judged by the gradient.
_FLAT = 1e-9


class SmoothFunction(ABC):
    """A convex function of p coordinates with a Hessian almost everywhere."""

    @abstractmethod
    def value(self, v: Array) -> tuple[float, float]:
        """The function, up to a constant, and the size of what was added up for it."""

    @abstractmethod
    def derivatives(self, v: Array) -> tuple[Array, Array]:
        """Gradient and Hessian."""

    @property
    @abstractmethod
    def stiffness(self) -> float:
        """A bound L > 0 of the eigenvalues of all Hessians, or their order of magnitude."""


class DampedNewton:
    """A point on its way to the minimum of one function.

    Attributes
    ----------
    v : array of shape (p,)
    is_done : bool
        Whether rounding leaves nothing to be gained.
    """

    def __init__(self, function: SmoothFunction, v: Array) -> None:
        self.v = v
        self.follow(function)

    def follow(self, function: SmoothFunction) -> None:
        """The same point, another function."""
        self.function, self._damping = function, _FIRST
        self._at, self._size = function.value(self.v)
        self._g, self._H = function.derivatives(self.v)
        self.is_done = not self._g.any()

    def step(self) -> None:
        """One step that is worth it; none if there is none any more."""
        was_flat = False
        while not self.is_done:
            s = self._solved()
            left = -float(self._g @ s + 0.5 * s @ (self._H @ s))
            trial = self.v + s
            value, size = self.function.value(trial)
            gained, is_flat = self._at - value, left <= _FLAT * self._size
            if is_flat:
                g, H = self.function.derivatives(trial)
                is_good = np.linalg.norm(g) <= 0.5 * np.linalg.norm(self._g)
                if is_good:
                    self._accept(trial, value, size, g, H)
                    return
                # The full step is the one that can halve the gradient; it is tried once.
                self.is_done = was_flat or self._damping == _LEAST
                was_flat, self._damping = True, _LEAST
            elif gained >= _ENOUGH * left:
                self._accept(trial, value, size, *self.function.derivatives(trial))
                self._damping *= _FAST_DOWN if gained >= _GOOD * left else _DOWN
                self._damping = max(self._damping, _LEAST)
                return
            else:
                self._damping *= _UP
                self.is_done = self._damping > _MOST

    def _accept(self, v: Array, value: float, size: float, g: Array, H: Array) -> None:
        self.v, self._at, self._size, self._g, self._H = v, value, size, g, H
        self.is_done = not g.any()

    def _solved(self) -> Array:
        raised = self._H.copy()
        raised[np.diag_indices(len(raised))] += self._damping * self.function.stiffness
        try:
            s: Array = cho_solve(cho_factor(raised, check_finite=False), -self._g)
        except LinAlgError:  # rounding of a singular Hessian
            s = -np.linalg.pinv(raised, hermitian=True) @ self._g
        return s


def status_of(ended: Status, gap: float, smoothing_gap: float, was_asked_for: bool) -> Status:
    """How a smoothed fit ended that may have found the minimum of its last smooth function.

    There the gap to the function without smoothing is at most ``smoothing_gap``, by theory. If it
    is not, or if this smoothing is just the finest one, rounding has kept the steps from the goal.
    """
    if ended is not Status.SETTLED:
        return ended
    is_there = was_asked_for and gap <= smoothing_gap * (1 + 1e-6)
    return Status.SMOOTHED if is_there else Status.STALLED
