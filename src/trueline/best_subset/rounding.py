r"""How far rounding can move the bound of a search.

A search works on sums in double precision. Columns are scaled to norm one, so that every entry of
the Gram matrix and (relative to the norm of the target) of the cross products is off by at most
some ``unit``: the rounding of the moments, and that of eliminating k columns, which by backward
analysis is that of another Gram matrix, no more than (k + 2) eps away (N. J. Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd ed. (2002), theorem 10.3). Bounds of relaxations allow for
their own sums (:func:`trueline.best_subset.relaxation.proven_bound`). With C = 1/2 y'y,
coefficients w on k columns whose correlation matrix has no eigenvalue below l that fit better than
none have ||w||_1 <= sqrt(2 k C / l), and the value of w differs between the two sets of sums by no
more than

    unit ( ||w||_1 sqrt(2 C) + 1/2 ||w||_1^2 )  <=  C unit ( 2 sqrt(k/l) + k/l ),

and by C raised / l where eigenvalues have been raised by ``raised``. So a bound is lowered by this
much before it is claimed, where some l is known for all supports; where none is, the claim is about
supports without smaller eigenvalues than a stated l.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.doubled import is_positive
from trueline.best_subset.node import RAISED, Quadratic, is_small
from trueline.best_subset.relaxation import DEPENDENT_COLUMNS

__all__ = ["allowance", "is_doubtful", "least_of_all", "lowered"]

Array = NDArray[np.float64]
Support = NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)
# At least this part of C is always allowed for, so that a checker with sums of its own agrees.
_LEAST = 1e-10
# A claim about all supports may cost this part of C; beyond it, a condition is stated instead,
_MOST = 1e-7
# which is chosen such that so much is enough.
_CONDITIONED = 1e-9
# Of the smallest eigenvalue of the support that was found.
_PART = 0.95
# Up to so many columns, eigenvalues are computed; beyond, tried out.
_FEW = 500
_LADDER = tuple(10.0**-power for power in range(1, 10))
# In doubled precision.
_LONG_LADDER = tuple(10.0**-power for power in range(1, 22))


def least_of_all(task: Quadratic, allowed: NDArray[np.bool_]) -> float:
    """A number that no eigenvalue of the Gram matrix lies below, zero if there is none.

    With many columns it is found to a factor of ten, which takes a fraction of the time.
    """
    columns = np.flatnonzero(allowed)
    if len(columns) >= task.rank or not len(columns):
        return 0.0
    G = task.gram[np.ix_(columns, columns)]
    if task.gram_low is not None:
        low = np.ascontiguousarray(task.gram_low[np.ix_(columns, columns)])
        return next((v for v in _LONG_LADDER if is_positive(G, low, v)), 0.0)
    if len(G) <= _FEW:
        return max(0.0, float(np.linalg.eigvalsh(G)[0]) - 4 * len(G) ** 2 * _EPS)
    for value in _LADDER:
        try:
            # Where it ends, the rounding of the factors is at most (d + 2) eps of the diagonal.
            np.linalg.cholesky(G - (value + (len(G) + 2) * _EPS) * np.eye(len(G)))
        except np.linalg.LinAlgError:
            continue
        return value
    return 0.0


def _least_of_size(task: Quadratic, allowed: NDArray[np.bool_], k: int) -> float:
    """The same for all supports of k columns, by Gershgorin's circles."""
    columns = np.flatnonzero(allowed)
    k = min(k, len(columns))
    if k <= 1:
        return 1.0
    off = np.abs(task.gram[np.ix_(columns, columns)])
    np.fill_diagonal(off, 0.0)
    largest = np.partition(off, len(columns) - k + 1, axis=1)[:, len(columns) - k + 1 :]
    return 1.0 - float(largest.sum(axis=1).max())


def allowance(unit: float, k: int, least: float, raised: float = 0.0) -> float:
    """The part of C by which rounding can move a bound; ``least`` is l."""
    if least <= 0:
        return math.inf
    root = math.sqrt(max(k, 1) / least)
    return max(_LEAST, unit * (2 * root + root**2) + raised / least)


def is_doubtful(task: Quadratic, allowed: NDArray[np.bool_], is_cheap: bool) -> bool:
    """Whether double precision cannot tell what some support is worth, and twice of it might.

    Where that is cheap, it is asked for as well where it makes a bound sharper.
    """
    count = int(np.count_nonzero(allowed))
    if count >= task.rank and not is_small(count, task.k):
        return False  # some columns depend on others in any precision
    known = max(least_of_all(task, allowed), _least_of_size(task, allowed, task.k))
    most = _CONDITIONED if is_cheap else _MOST
    return allowance(task.unit + (task.k + 2) * task.eps, task.k, known) > most


def lowered(
    task: Quadratic, allowed: NDArray[np.bool_], support: Support, least: float
) -> tuple[float, float]:
    """By how much a bound is lowered, and the eigenvalue to state (zero: all supports).

    Parameters
    ----------
    task : Quadratic
        With the k of the search, and the condition it was made under.
    allowed : array of bool
    support : array of int
        What was found: the claim includes it.
    least : float
        What is known of all supports (:func:`least_of_all`, or from looking at each).
    """
    k, unit = task.k, task.unit + (task.k + 2) * task.eps
    raised = 0.0 if least or task.delta or task.gram_low is not None else RAISED
    known = max(least, task.delta)
    if allowance(unit, k, known, raised) > _MOST:
        known = max(known, _least_of_size(task, allowed, k))
    nodes = _of_nodes(task, allowed)
    if allowance(unit, k, known, raised) <= _MOST:
        return (allowance(unit, k, known, raised) + nodes) * task.constant, task.delta
    own = _own(task, support)
    # unit (2 x + x^2) + raised x^2 / k = _CONDITIONED, for x = sqrt(k / l).
    square = unit + raised / max(k, 1)
    x = (math.sqrt(unit**2 + square * _CONDITIONED) - unit) / square
    stated = max(min(max(k, 1) / x**2, _PART * own), task.dependent, task.delta)
    if known >= stated:
        return (allowance(unit, k, known, raised) + nodes) * task.constant, task.delta
    return (allowance(unit, k, stated, raised) + nodes) * task.constant, stated


def _own(task: Quadratic, support: Support) -> float:
    """The smallest eigenvalue of a support, from below where it is found by trying."""
    if not len(support):
        return 1.0
    if task.gram_low is None:
        return float(np.linalg.eigvalsh(task.gram[np.ix_(support, support)])[0])
    mask = np.zeros(len(task.gram), dtype=bool)
    mask[support] = True
    return least_of_all(task, mask)


def _of_nodes(task: Quadratic, allowed: NDArray[np.bool_]) -> float:
    """What relaxations add where columns are projected out in doubled precision.

    They work on matrices that were rounded to doubles, whose eigenvalues, the diagonal brought to
    one, are at least those for which there is a relaxation.
    """
    if task.gram_low is None or is_small(int(np.count_nonzero(allowed)), task.k):
        return 0.0
    return allowance(8 * _EPS, task.k, DEPENDENT_COLUMNS)
