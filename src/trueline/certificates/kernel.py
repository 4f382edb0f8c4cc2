r"""Certificates of kernel methods: what is proven about dual coefficients and kernel parameters.

With the kernel matrix K, noise N on its diagonal and targets t, dual coefficients a solve

    (K + diag(N)) a = t.

Three kinds of statement are made about them:

- *kernel equations*: they do, up to a residual r. If K is positive semi-definite and N = alpha / s,
  they minimise 1/2 sum_i s_i (t_i - f_i)^2 + alpha/2 |f|^2 over all functions f of the kernel's
  space, up to the gap 1/2 sum_i s_i r_i^2 (the lower bound is that of the dual point alpha a).
- *stationary point*: besides, the log marginal likelihood is level in the parameters of the kernel,
  up to the stated slope. This is local: another maximum may be higher.
- *evidence bounds*: besides, the log marginal likelihood at these parameters lies between two
  numbers that inducing points give.

What holds is checked by :mod:`trueline.check`, by the formulas of scikit-learn's kernels; for other
kernels, for the matrices that they evaluate to.

How far kernel values in double precision may be from their formulas, row by row.

Products x.z of d terms err by about d units of |x| |z|, squared distances made of them by d units
of (|x| + |z|)^2; the formula of the kernel carries that on. The bounds are generous, and cost no
more than products with vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Proof
from trueline.wording import relative

__all__ = ["KERNEL_KINDS", "KernelCertificate", "is_definite", "score_error"]

Array = NDArray[np.float64]

#: The kinds of proof, and what each one says in a sentence.
KERNEL_KINDS: dict[str, str] = {
    "kernel equations": (
        "the dual coefficients solve their equations to the stated residual; no function of the "
        "space of the positive semi-definite kernel has an objective lower than the one reached by "
        "more than the gap (if the kernel is not known to be positive semi-definite the gap is "
        "infinite, and nothing is said about other functions)"
    ),
    "stationary point": (
        "local: within the bounds the log marginal likelihood is level in the parameters of the "
        "kernel, up to the stated slope, and the dual coefficients solve their equations to the "
        "stated residual; another maximum may be higher"
    ),
    "given parameters": (
        "for the parameters of the kernel as given: the log marginal likelihood has the stated "
        "value, and the dual coefficients solve their equations to the stated residual"
    ),
    "evidence bounds": (
        "for these parameters of the kernel the log marginal likelihood of all rows lies between "
        "the stated bounds; nothing is said about other parameters"
    ),
}


@dataclass(frozen=True, repr=False)
class KernelCertificate(Proof):
    """The objective reached, how well its equations hold, and what verifies both.

    Attributes
    ----------
    kind : {"kernel equations", "stationary point", "given parameters", "evidence bounds"}
        :attr:`statement` says it in words.
    objective : float
        Of kernel ridge regression, or minus the log marginal likelihood.
    objective_rounding : float
        Bound on the error made in evaluating it.
    gap : float
        Proven upper bound on objective minus optimum; infinite for statements that are local.
    residual : float
        Largest residual of the equations, relative to the largest target.
    slope : float
        Largest derivative of the log marginal likelihood in a parameter (a logarithm) that is free
        to move.
    kernel : kernel of scikit-learn, or mapping
        What the matrix is computed with.
    coef : array of shape (n, k)
        Dual coefficients.
    witness : mapping of str to array
        What :meth:`verify` needs beside data and coefficients.
    """

    kind: str
    objective: float
    objective_rounding: float
    gap: float
    residual: float
    slope: float
    kernel: Any
    coef: Array
    witness: Mapping[str, Any] = field(default_factory=dict)
    _statements = KERNEL_KINDS

    def __str__(self) -> str:
        if self.kind == "kernel equations" and math.isinf(self.gap):
            return (
                f"objective {self.objective:.10g}, equations solved to {self.residual:.2g}; the "
                "kernel is not positive semi-definite, so nothing is said about other functions"
            )
        if self.kind == "kernel equations":
            return (
                f"objective {self.objective:.10g}, proven within {self.gap:.3g} of the optimum "
                f"({relative(self.relative_gap)})"
            )
        if self.kind == "evidence bounds":
            return (
                f"log marginal likelihood between {-self.objective:.10g} and "
                f"{float(self.witness['upper']):.10g}"
            )
        level = (
            f", slope at most {self.slope:.3g} (local)" if self.kind != "given parameters" else ""
        )
        return (
            f"log marginal likelihood {-self.objective:.10g}{level}, equations solved to "
            f"{self.residual:.2g}"
        )


_EPS = float(np.finfo(np.float64).eps)


def is_definite(recipe: Mapping[str, Any]) -> bool:
    """Whether every matrix of this kernel is positive semi-definite, by its formula.

    Examples
    --------
    >>> from trueline.certificates.kernel import is_definite
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
