r"""Whether a difference between two models is more than the luck of the folds.

Scores of folds are not independent: training rows overlap. The variance of their mean is larger
than var / J, and a plain paired t-test finds differences that are not there. With J folds, n1 rows
to learn from and n2 to be scored on, and d_j the differences of the scores, the corrected
resampled t-test (C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine
Learning 52 (2003) 239-281, eq. 19) takes

    t = mean(d) / sqrt((1 / J + n2 / n1) var(d)),    J - 1 degrees of freedom.

Several comparisons at once are adjusted by Holm's rule (S. Holm, Scand. J. Statist. 6 (1979)
65-70).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

__all__ = ["PairedTest", "holm", "paired_test"]

Array = NDArray[np.float64]


class PairedTest(NamedTuple):
    """A difference of scores, its corrected standard error, and how surprising it would be."""

    difference: float
    standard_error: float
    p_value: float


def paired_test(first: ArrayLike, second: ArrayLike, test_share: float) -> PairedTest:
    """The corrected resampled t-test of two models on the same folds.

    Parameters
    ----------
    first, second : arrays of shape (folds,)
        Scores of the two models.
    test_share : float
        Test rows for each training row, n2 / n1.

    Examples
    --------
    >>> from trueline.evaluation.significance import paired_test
    >>> test = paired_test([0.9, 0.8, 0.85, 0.9, 0.8], [0.8, 0.75, 0.8, 0.8, 0.75], 0.25)
    >>> round(test.difference, 3), round(test.p_value, 3)
    (0.07, 0.019)
    """
    d = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean = float(d.mean())
    if len(d) < 2:
        return PairedTest(mean, float("nan"), float("nan"))
    variance = float(d.var(ddof=1))
    error = float(np.sqrt((1 / len(d) + test_share) * variance))
    if error == 0:
        return PairedTest(mean, 0.0, 1.0 if mean == 0 else 0.0)
    return PairedTest(mean, error, float(2 * student.sf(abs(mean) / error, len(d) - 1)))


def holm(p_values: ArrayLike) -> Array:
    """Holm's adjusted p-values, in the given order; NaN stays.

    Examples
    --------
    >>> from trueline.evaluation.significance import holm
    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
