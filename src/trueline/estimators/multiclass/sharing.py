"""Which binary problems share their work, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.estimators.multiclass.margins import fit_margins
from trueline.estimators.multiclass.parts import Binary, Coding
from trueline.estimators.multiclass.together import fit_all_rows, fit_by_class

__all__ = ["fit_together"]


def fit_together(
    estimator: Any,
    X: Any,
    codes: NDArray[np.intp] | None,
    book: NDArray[Any],
    binaries: Sequence[Binary],
    fit_params: Mapping[str, Any],
) -> tuple[list[Any] | None, str]:
    """Fit problems that share their work, and say what they share; None where nothing is shared.

    Parameters
    ----------
    estimator : estimator
    X : array or sparse matrix of shape (n, d)
    codes : array of shape (n,), or None
        The number of each row's class; None where rows have sets of labels.
    book : array of shape (classes, problems)
        -1, 0 (takes no part) or +1.
    binaries : sequence of Binary
        The same problems, by their rows and labels.
    fit_params : mapping
    """
    parts = fit_margins(estimator, X, binaries, fit_params)
    if parts is not None:
        return parts, "one set of binary problems on the same rows, solved together"
    if book.all():
        parts = fit_all_rows(estimator, X, binaries, fit_params)
        return parts, "" if parts is None else "one factorisation serves all binary problems"
    assert codes is not None
    parts = fit_by_class(estimator, X, Coding(codes, book, binaries), fit_params)
    return parts, "" if parts is None else "moments of each class, summed for each binary problem"
