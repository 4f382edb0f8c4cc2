r"""Approximate inverses of the Hessian, target by target.

    H_t = sum_i s_i h_it [x_i, 1] [x_i, 1]^T + A,        h_it the diagonal of the loss's curvature

from a sample of the rows where d is moderate (about five rows for each column say enough; R. H.
Byrd, G. M. Chin, W. Neveitt, J. Nocedal, "On the use of stochastic Hessian information in
optimization methods for machine learning", SIAM J. Optim. 21 (2011) 977-995), else its diagonal.
Scores of the softmax may all be shifted by the same: where the penalty treats all targets alike the
steps of the best ones add up to zero over the targets, and the inverse is taken within that space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.gram import weighted_gram
from trueline.solvers.curved.descent import Factor

__all__ = ["Preconditioner", "sampled_rows"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ROWS_EACH, _LEAST_ROWS = 5, 2000
# Numbers that the factors of all targets may take, and the widest one of them.
_MOST_NUMBERS, _MOST_COLUMNS = 40_000_000, 2000


class Sample:
    """Dense rows [x_i, 1] that stand for all."""

    def __init__(self, design: Design, fit_intercept: bool) -> None:
        n, d = design.shape
        count = min(n, max(_ROWS_EACH * d, _LEAST_ROWS))
        self.rows = np.arange(n)
        if count < n:
            chosen = np.random.default_rng(0).choice(n, count, replace=False, shuffle=False)
            self.rows = np.sort(chosen)
        taken = design if count == n else design.take(self.rows)
        X = np.asarray(taken.toarray(), dtype=np.float64)
        self.A = np.hstack([X, np.full((count, 1), float(fit_intercept))])
        self.share = n / count


def sampled_rows(design: Design, fit_intercept: bool, targets: int) -> Sample | None:
    """A sample for blocks of d x d numbers; None where those would be too large."""
    d = design.shape[1]
    if d > _MOST_COLUMNS or targets * d * d > _MOST_NUMBERS:
        return None
    return Sample(design, fit_intercept)


class Preconditioner:
    """The approximate inverse at one point.

    Parameters
    ----------
    sample : Sample, optional
    design : Design
    h : array of shape (n, k)
        s_i h_it.
    bends : array of shape (d + 1, k)
        The penalty's curvatures.
    is_alike : bool
        Whether steps add up to zero over the targets.
    """

    def __init__(
        self, sample: Sample | None, design: Design, h: Array, bends: Array, is_alike: bool
    ) -> None:
        self._is_alike = is_alike
        self._factors: list[Factor] = []
        if sample is None:
            diagonal = np.empty_like(bends)
            for t in range(h.shape[1]):
                diagonal[:-1, t] = design.column_squares(h[:, t], None)
            diagonal[-1] = h.sum(axis=0)
            self._diagonal = diagonal + bends
            self._diagonal[self._diagonal <= 0] = 1.0
            return
        for t in range(h.shape[1]):
            gram = weighted_gram(sample.A, h[sample.rows, t] * sample.share)
            # Dependent columns without a penalty: a trace of one tells them apart.
            trace = gram.diagonal() + bends[:, t]
            gram[np.diag_indices(len(gram))] = trace * (1 + 64 * _EPS) + (trace <= 0)
            factor = Factor(gram)
            while factor.least <= 0:
                gram[np.diag_indices(len(gram))] += 1e-8 * trace
                factor = Factor(gram)
            self._factors.append(factor)

    def apply(self, R: Array) -> Array:
        """The inverse times R, of shape (d + 1, k)."""
        R = R - R.mean(axis=1, keepdims=True) if self._is_alike else R
        if self._factors:
            columns = (factor.solve(R[:, t]) for t, factor in enumerate(self._factors))
            out = np.stack(list(columns), axis=1)
        else:
            out = R / self._diagonal
        return out - out.mean(axis=1, keepdims=True) if self._is_alike else out
