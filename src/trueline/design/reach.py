r"""Which correlations can have become large: a column need not be read to know that it has not.

A column x whose correlation with a residual r_0 is known has, with any other residual r,

    abs(x.r) <= abs(x.r_0) + min(||x|| ||r - r_0||, ||x||_1 max_i abs(r_i - r_0i)).

How far the residual has gone is kept as the length of its way, which is at least ||r - r_0||
whenever the column was read: one number instead of all former residuals, as the odometer of a car.
The bound with r_0 = 0 holds besides. (A static bound of this kind is the sphere test of L. El
Ghaoui, V. Viallon, T. Rabbani, "Safe feature elimination for the lasso", Pac. J. Optim. 8 (2012)
667-698; here it is renewed for each column on its own when that is read.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.design.base import Array
from trueline.numerics.jit import kernel

__all__ = ["Reach"]

Integers = NDArray[np.intp]

# Room for rounding: of the level, and of a correlation that is remembered.
_ROOM = 1e-9
_ROUNDING = 1e-12


@kernel
def _travel(r: Array, last: Array, ways: Array) -> tuple[float, float]:
    """Go from ``last`` to r: both ways grow, and r is written down. Returns two norms of r."""
    step = most_step = length = largest = 0.0
    for i in range(len(r)):
        change, value = abs(r[i] - last[i]), abs(r[i])
        step += change * change
        length += value * value
        most_step, largest = max(most_step, change), max(largest, value)
        last[i] = r[i]
    ways[0] += np.sqrt(step)
    ways[1] += most_step
    return np.sqrt(length), largest


@kernel
def _within_reach(
    norms: Array,
    sums: Array,
    length: float,
    largest: float,
    known: Array,
    read_at: Array,
    ways: Array,
    rounding: float,
    level: float,
    out: Integers,
) -> int:
    """Write down the columns whose correlation may be as large as the level; how many.

    They are going to be read.
    """
    count = 0
    for j in range(len(norms)):
        norm, total = norms[j], sums[j]
        moved = min(norm * (ways[0] - read_at[0, j]), total * (ways[1] - read_at[1, j]))
        bound = abs(known[j]) + moved + rounding * norm
        out[count] = j  # written always, kept if it may matter: no branch to foresee
        count += int(not min(norm * length, total * largest, bound) < level)
    for k in range(count):
        read_at[0, out[k]], read_at[1, out[k]] = ways[0], ways[1]
    return count


class Reach:
    """The correlations of all columns with a residual that moves, as far as they are known.

    Parameters
    ----------
    norms, sums : arrays of shape (d,)
        The Euclidean norm of each column, and the sum of its absolute values.

    Attributes
    ----------
    known : array of shape (d,)
        The correlation with the residual at which the column was last read; who reads a column
        writes it down here.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design.reach import Reach
    >>> reach = Reach(norms=np.array([1.0, 0.1]), sums=np.array([1.0, 0.1]))
    >>> reach.may_matter(np.array([2.0, 0.0]), level=0.5)
    array([0])
    """

    def __init__(self, norms: Array, sums: Array) -> None:
        d = len(norms)
        self._norms, self._sums = norms, sums
        # Before anything is read: the correlations with a residual of zero.
        self.known = np.zeros(d)
        self._read_at = np.zeros((2, d))
        self._ways = np.zeros(2)
        self._last = np.empty(0)
        self._longest = 0.0

    def may_matter(self, r: Array, level: float) -> Integers:
        """The columns whose correlation with r may be as large as the level: they are to be read.

        All others are smaller for certain.
        """
        return self.may_matter_to(r[:, None], level)

    def may_matter_to(self, R: Array, level: float) -> Integers:
        """The same for several residuals, the columns of R, which are passed one after another.

        Who reads a column writes down its correlation with the last of them.
        """
        if not len(self._last):
            self._last = np.zeros(len(R))
        length = largest = 0.0
        for r in R.T:
            norms = _travel(np.ascontiguousarray(r), self._last, self._ways)
            length, largest = max(length, norms[0]), max(largest, norms[1])
        self._longest = max(self._longest, length)
        out = np.empty(len(self._norms), dtype=np.intp)
        count = _within_reach(
            self._norms,
            self._sums,
            length,
            largest,
            self.known,
            self._read_at,
            self._ways,
            _ROUNDING * self._longest,
            level * (1 - _ROOM),
            out,
        )
        return out[:count]

    def leave_out(self, columns: Integers) -> None:
        """Somebody else keeps the correlations of these columns from now on."""
        self.known[columns] = 0.0
        self._read_at[:, columns] = np.inf
