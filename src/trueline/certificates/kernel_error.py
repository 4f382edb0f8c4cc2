r"""How far kernel values in double precision may be from their formulas, row by row.

Products x.z of d terms err by about d units of |x| |z|, squared distances made of them by d units
of (|x| + |z|)^2; the formula of the kernel carries that on. The bounds are generous, and cost no
more than products with vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["is_definite", "score_error"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


def is_definite(recipe: Mapping[str, Any]) -> bool:
    """Whether every matrix of this kernel is positive semi-definite, by its formula.

    Examples
    --------
    >>> from trueline.certificates.kernel_error import is_definite
    >>> is_definite({"metric": "rbf", "gamma": 0.5}), is_definite({"metric": "precomputed"})
    (True, False)
    """
    metric = recipe["metric"]
    if metric in ("poly", "polynomial"):
        return float(recipe["degree"]).is_integer() and recipe["coef0"] >= 0
    return isinstance(metric, str) and metric in ("linear", "rbf", "laplacian", "cosine", "chi2")


def score_error(recipe: Mapping[str, Any], X: Any, sizes: Array, carried: Array) -> Array:
    """A bound on the error of sum_j c_j k(x_i, x_j) that the kernel values leave.

    Parameters
    ----------
    recipe : mapping
        The kernel, ``metric``, and its parameters.
    X : array or sparse matrix of shape (n, d)
    sizes : array of shape (k,)
        sum_j |c_j|.
    carried : array of shape (n, k)
        sum_j |k(x_i, x_j)| |c_j|.

    Returns
    -------
    error : array of shape (n, k)
    """
    metric = recipe["metric"]
    if callable(metric) or metric == "precomputed":
        return np.zeros(carried.shape)
    d = X.shape[1]
    unit = 8.0 * (d + 16) * _EPS
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    lengths = np.sqrt(np.asarray(squares, dtype=np.float64)).reshape(-1, 1)
    reach = float(lengths.max(initial=0.0))
    gamma = recipe.get("gamma")
    gamma = 1.0 / max(d, 1) if gamma is None else float(gamma)
    if metric == "rbf":
        with np.errstate(over="ignore"):
            relative = np.expm1(np.minimum(gamma * unit * (lengths + reach) ** 2, 700.0)) + unit
        # Values lie between 0 and 1, and so do those of the formula.
        return np.minimum(relative * carried, (1.0 + unit) * sizes)
    if metric in ("laplacian", "chi2", "additive_chi2"):
        return 750.0 * unit * carried
    if metric == "linear":
        return unit * lengths * reach * sizes
    if metric == "cosine":
        return unit * np.ones_like(lengths) * sizes
    inner = gamma * lengths * reach + abs(float(recipe["coef0"]))
    if metric == "sigmoid":
        return unit * (inner + 1.0) * sizes
    degree = float(recipe["degree"])
    return unit * (degree + 1) * inner**degree * sizes
