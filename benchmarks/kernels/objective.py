r"""What support vector machines with a Gaussian kernel are worth: the same for every contestant.

With y_i = -1 or 1, coefficients a_i = y_i alpha_i, 0 <= alpha_i <= C, sum a_i = 0, and
K_ij = exp(-gamma ||x_i - x_j||^2), the dual is minimised::

    D(a) = a.K a / 2 - sum abs(a_i)

Any a and b give a lower bound by the primal (weak duality), with f = K a + b::

    D(a') >= - P(a, b),   P(a, b) = a.K a / 2 + C sum max(0, 1 - y_i f_i)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "KernelData",
    "Machine",
    "decision",
    "dual",
    "label_errors",
    "lower_bound",
    "suboptimality",
]

Array = NDArray[np.float64]

# Rows of the kernel matrix computed at a time.
_ROWS = 1000
# How far coefficients may lie outside the box, and their sum from zero, relatively.
_FEASIBLE = 1e-6
# Labels of rows so near to the boundary are not counted: there the tolerance of a fit decides.
_UNDECIDED = 0.05


@dataclass(frozen=True)
class KernelData:
    """What a contestant is given."""

    X: Array
    y: Array
    queries: Array
    gamma: float
    C: float = 1.0


@dataclass(frozen=True)
class Machine:
    """What a contestant gives back: a_i of the rows that have some, and the intercept."""

    support: NDArray[np.intp]
    coef: Array
    intercept: float


def decision(data: KernelData, machine: Machine, rows: Array) -> Array:
    """The values f of some rows."""
    vectors = data.X[machine.support]
    squares = np.einsum("ij,ij->i", vectors, vectors)
    out = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        distance = np.einsum("ij,ij->i", part, part)[:, None] + squares - 2 * part @ vectors.T
        kernel = np.exp(-data.gamma * np.maximum(distance, 0.0))
        out[start : start + _ROWS] = kernel @ machine.coef
    return out + machine.intercept


def _half_square(data: KernelData, machine: Machine) -> float:
    f = decision(data, machine, data.X[machine.support]) - machine.intercept
    return 0.5 * float(machine.coef @ f)


def dual(data: KernelData, machine: Machine) -> float:
    """D, or infinity if the coefficients are not admissible."""
    a, own = machine.coef, data.y[machine.support]
    alpha = a * own
    room = _FEASIBLE * data.C
    is_admissible = len(a) > 0 and np.isfinite(a).all()
    if not is_admissible or alpha.min() < -room or alpha.max() > data.C + room:
        return float("inf")
    if abs(a.sum()) > _FEASIBLE * np.abs(a).sum():
        return float("inf")
    return _half_square(data, machine) - float(np.abs(a).sum())


def lower_bound(data: KernelData, machine: Machine) -> float:
    """A number that no admissible coefficients lie below."""
    excess = np.maximum(0.0, 1.0 - data.y * decision(data, machine, data.X))
    return -_half_square(data, machine) - data.C * float(excess.sum())


def suboptimality(data: KernelData, machine: Machine, least: float) -> float:
    """(D - bound) / |bound|."""
    return (dual(data, machine) - least) / abs(least)


def label_errors(labels: Any, expected: Any) -> float:
    """The share of the labels that differ from the signs of decisions that are clear."""
    expected = np.asarray(expected, dtype=np.float64)
    is_clear = np.abs(expected) > _UNDECIDED
    if len(labels) != len(expected):
        return float("inf")
    return float(np.mean(np.sign(expected[is_clear]) != np.asarray(labels)[is_clear]))
