r"""Approximate inverses of the Hessian, target by target.

    H_t = sum_i h_it [x_i, 1] [x_i, 1]^T + A,        h_it = s_i times the diagonal of the curvature

from a few rows where d is moderate (R. H. Byrd, G. M. Chin, W. Neveitt, J. Nocedal, "On the use of
stochastic Hessian information in optimization methods for machine learning", SIAM J. Optim. 21
(2011) 977-995), else its diagonal. Rows of long data are drawn with probabilities p_i = min(1, c
h_it) and weigh h_it / p_i, anew for every target: the mean is right, and rows that hardly bend, as
most do near the minimum, are not read in vain (P. Xu, J. Yang, F. Roosta-Khorasani, C. Re, M. W.
Mahoney, "Sub-sampled Newton methods with non-uniform sampling", NeurIPS 29 (2016)).

Scores of the softmax may all be shifted by the same: where the penalty treats all targets alike the
steps of the best ones add up to zero over the targets, and the inverse is taken within that space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.gram import weighted_gram
from trueline.numerics.gram.blocks import SMALL_WORK
from trueline.numerics.threads import run_strands
from trueline.solvers.newton.cg.rows import Rows
from trueline.solvers.newton.dense.descent import Factor

__all__ = ["Preconditioner", "Sample", "drawn_rows", "sampled_rows"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_ROWS_EACH, _LEAST_ROWS = 3, 2000
# Numbers that the factors of all targets may take, and the widest one of them.
_MOST_NUMBERS, _MOST_COLUMNS = 40_000_000, 2000
# Penalties above this share of the diagonal hide what sums lose in single precision.
_SINGLE = 1e-4
_ROUNDS = 4


def drawn_rows(h: Array, count: int, order: Integers) -> tuple[Integers, Array]:
    """About ``count`` rows in proportion to h, none of them twice, and what each stands for.

    Systematic sampling in the given order: one row for each unit of probability.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.newton.cg.precondition import drawn_rows
    >>> drawn_rows(np.array([9.0, 0.0, 1.0, 1.0, 1.0, 1.0]), 3, np.arange(6))
    (array([0, 3, 5]), array([9., 2., 2.]))
    """
    total = float(h.sum())
    if not total > 0:
        return np.arange(0), np.zeros(0)
    chances = h * (count / total)
    for _ in range(_ROUNDS):  # what is cut off at one goes to the others
        certain = chances >= 1.0
        rest = float(chances.sum(where=~certain))
        if not rest > 0:
            break
        chances = np.where(certain, 1.0, chances * ((count - np.count_nonzero(certain)) / rest))
    chances = np.minimum(chances, 1.0)
    ends = np.cumsum(chances[order])
    places = np.arange(0.5, ends[-1])
    rows = np.sort(order[np.searchsorted(ends, places, side="right")])
    return rows, h[rows] / chances[rows]


class Sample:
    """Sums over a few rows [x_i, 1] that stand for all; over all of them if there are only few."""

    def __init__(self, rows: Rows) -> None:
        n, d = rows.design.shape
        self._rows, self._count = rows, max(_ROWS_EACH * d, _LEAST_ROWS)
        self._order = np.random.default_rng(0).permutation(n)
        some = rows.dense(np.sort(self._order[: self._count]))
        self._all = some if n <= self._count else None
        self._largest = float((some**2).mean(axis=0).max(initial=0.0))

    def gram(self, h: Array, bend: float) -> Array:
        """About sum_i h_i [x_i, 1] [x_i, 1]^T, to which at least ``bend`` is going to be added."""
        if self._all is not None:
            return weighted_gram(self._all, h)
        is_single = self._rows.is_large and bend >= _SINGLE * self._largest * float(h.sum())
        where, weights = drawn_rows(h, self._count, self._order)
        A = self._rows.dense(where, np.float32 if is_single else np.float64)
        A *= np.sqrt(weights).astype(A.dtype)[:, None]
        return (A.T @ A).astype(np.float64, copy=False)


def sampled_rows(rows: Rows, targets: int) -> Sample | None:
    """A sample for blocks of d x d numbers; None where those would be too large."""
    d = rows.design.shape[1]
    if d > _MOST_COLUMNS or targets * d * d > _MOST_NUMBERS:
        return None
    return Sample(rows)


class Preconditioner:
    """The approximate inverse at one point.

    Parameters
    ----------
    sample : Sample, optional
    rows : Rows
    h : array of shape (n, k)
        s_i h_it.
    bends : array of shape (d + 1, k)
        The penalty's curvatures.
    is_alike : bool
        Whether steps add up to zero over the targets.
    is_level : bool
        Whether the scores are the same for all rows: one sum does for all targets.
    """

    def __init__(
        self,
        sample: Sample | None,
        rows: Rows,
        h: Array,
        curvatures: Array,
        is_alike: bool,
        is_level: bool = False,
    ) -> None:
        self._is_alike = is_alike
        self._factors: list[Factor] = []
        k = h.shape[1]
        if sample is None:
            diagonal = np.empty_like(curvatures)
            for t in range(k):
                diagonal[:-1, t] = rows.design.column_squares(h[:, t], None)
            diagonal[-1] = h.sum(axis=0)
            self._diagonal = diagonal + curvatures
            self._diagonal[self._diagonal <= 0] = 1.0
            return
        least, totals = curvatures[:-1].min(axis=0, initial=np.inf), h.sum(axis=0)
        shared = sample.gram(h[:, 0], float(least.min())) if is_level and totals[0] > 0 else None

        def work(t: int) -> Factor:
            if shared is None:
                gram = sample.gram(h[:, t], float(least[t]))
            else:
                gram = shared * (totals[t] / totals[0])
            return _factor(gram, curvatures[:, t])

        if len(curvatures) ** 3 * k < SMALL_WORK:
            self._factors = [work(t) for t in range(k)]
        else:
            self._factors = run_strands(work, range(k))

    def apply(self, R: Array) -> Array:
        """The inverse times R, of shape (d + 1, k)."""
        R = R - R.mean(axis=1, keepdims=True) if self._is_alike else R
        if self._factors:
            columns = (factor.solve(R[:, t]) for t, factor in enumerate(self._factors))
            out = np.stack(list(columns), axis=1)
        else:
            out = R / self._diagonal
        return out - out.mean(axis=1, keepdims=True) if self._is_alike else out


def _factor(gram: Array, curvatures: Array) -> Factor:
    """The factor of gram + diag(bends), and a little more where it needs that."""
    # Dependent columns without a penalty: a trace of one tells them apart.
    trace = gram.diagonal() + curvatures
    gram[np.diag_indices(len(gram))] = trace * (1 + 64 * _EPS) + (trace <= 0)
    factor, more = Factor(gram), 1e-8
    while factor.least <= 0:
        gram[np.diag_indices(len(gram))] += more * trace
        factor, more = Factor(gram), 10 * more
    return factor
