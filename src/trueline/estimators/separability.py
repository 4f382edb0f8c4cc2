"""Separability of classes, for any kind of table and of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _get_feature_names

from trueline.estimators.labels import encode_labels
from trueline.halfspaces.result import Separability
from trueline.halfspaces.separate import separate

__all__ = ["Separability", "separability"]

Codes = NDArray[np.intp]


def separability(X: Any, y: Any, *, fit_intercept: bool = True) -> Separability:
    r"""Decide whether hyperplanes can separate classes, with a proof in exact arithmetic.

    For two classes, y_i = -1 or 1:

    - *separable*: some w, b have ``y_i (x_i.w + b) > 0`` for all rows;
    - *quasi-separable*: not separable, but some w, b have ``y_i (x_i.w + b) >= 0`` for all rows
      and ``> 0`` for at least one;
    - *not separable*: neither; the classes overlap.

    These are complete separation, quasi-complete separation and overlap of Albert and Anderson
    [1]_ (for columns that depend on each other, of Konis [2]_): a logistic regression without
    penalty has finite coefficients exactly if the classes overlap. With more classes there is a
    score x.w_c + b_c for each, and the own one is to be the largest (Kesler's construction).

    Doubles are rational numbers, and every sign is decided for exactly those numbers. A verdict
    comes with its witnesses: hyperplanes, or the few rows whose convex hulls meet, with their
    weights. :meth:`Separability.verify` checks them independently.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n, d)
        Finite numbers.
    y : array-like of shape (n,)
        Labels of any type that can be sorted, of at least two classes.
    fit_intercept : bool, default=True
        False asks for hyperplanes through the origin.

    Returns
    -------
    answer : Separability
        With ``verdict``, ``coef``, ``intercept``, ``margin``, ``rows``, ``weights``, ``statement``.

    References
    ----------
    .. [1] A. Albert and J. A. Anderson, "On the existence of maximum likelihood estimates in
       logistic regression models", Biometrika 71 (1984) 1-10.
    .. [2] K. Konis, "Linear programming algorithms for detecting separated data in binary logistic
       regression models", DPhil thesis, University of Oxford, 2007.

    Examples
    --------
    >>> from trueline import separability
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> print(separability(corners, [0, 0, 0, 1]))  # AND
    Separable: x0 + x1 - 1.5 is positive for every row of 1 and negative for every row of 0, ...
    >>> answer = separability(corners, [0, 1, 1, 0])  # exclusive or
    >>> print(answer)
    Not separable. No hyperplane separates them strictly: the convex hulls of rows 1 and 2 of 1
    and of rows 0 and 3 of 0 meet, at (0.5, 0.5). No direction separates them even weakly.
    >>> bool(answer.verify(corners, [0, 1, 1, 0]))
    True
    """
    names = _get_feature_names(X)
    A = _doubles(X)
    check_consistent_length(A, y)
    classes, codes = encode_labels(y, "separability")
    if A.shape[1] == 0:
        raise ValueError("separability needs at least one column, but X has none.")
    labels = [f"x{j}" for j in range(A.shape[1])] if names is None else [str(v) for v in names]
    return separate(A, codes, classes, bool(fit_intercept), tuple(labels))


def _doubles(X: Any) -> Any:
    """X in float64, dense or CSR, the same numbers exactly."""
    A = check_array(
        X, accept_sparse="csr", dtype="numeric", ensure_all_finite=True, input_name="X"
    )
    values = A.data if sp.issparse(A) else A
    if values.dtype.kind == "b" or values.dtype in (np.float64, np.float32, np.float16):
        exact = True
    else:
        # Integers, and floats longer than doubles.
        exact = bool((values.astype(np.float64).astype(object) == values.astype(object)).all())
    if not exact:
        raise ValueError(
            "X holds numbers that no double is equal to (integers beyond 2^53, or extended "
            "precision), and separability is decided for doubles exactly. Subtract an offset or "
            "round them yourself first."
        )
    A = A.astype(np.float64)
    return sp.csr_array(A) if sp.issparse(A) else np.ascontiguousarray(A)
