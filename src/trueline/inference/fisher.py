r"""Covariance of maximum likelihood estimates, by the Fisher information.

With rows a_i = (1, x_i), scores z_i = a_i.v and working weights h_i (the expected curvature of half
the deviance at z_i) the information about v is

    I = sum_i s_i h_i a_i a_i^T / phi,      cov(v) = I^-1

in large samples. The dispersion phi is one for counts and labels; else it is estimated by Pearson's
statistic, phi = sum_i s_i (y_i - m_i)^2 / V(m_i) / (sum_i s_i - p), p the number of coefficients.

P. McCullagh, J. A. Nelder, "Generalized Linear Models", 2nd ed. (1989), sections 2.5 and 4.5.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from trueline.design import Design
from trueline.moments import Moments

__all__ = ["fisher_covariance"]

Array = NDArray[np.float64]

_DEPENDENT = 1e-12


def fisher_covariance(design: Design, h: Array, fit_intercept: bool) -> Array:
    """(sum_i h_i a_i a_i^T)^-1, the intercept first if there is one.

    With an intercept the columns are centred about their means m under the weights h: b + m.w is
    then independent of w, and columns far from zero cost no digits.

    Parameters
    ----------
    design : Design
    h : array of shape (n,)
        Working weights times sample weights, not negative.
    fit_intercept : bool

    Raises
    ------
    ValueError
        Where columns depend on each other.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.inference.fisher import fisher_covariance
    >>> X = np.array([[1.0], [3.0], [5.0]])
    >>> A = np.hstack([np.ones((3, 1)), X])
    >>> np.allclose(fisher_covariance(as_design(X), np.ones(3), True), np.linalg.inv(A.T @ A))
    True
    """
    moments = Moments.from_rows(design, np.empty((len(h), 0)), h)
    if not fit_intercept:
        return _inverse(moments.about_zero().gram)
    d, mean = design.shape[1], moments.x_mean
    own = _inverse(moments.gram)
    out = np.empty((d + 1, d + 1))
    out[1:, 1:] = own
    out[0, 1:] = out[1:, 0] = -own @ mean
    out[0, 0] = 1.0 / h.sum() + mean @ own @ mean
    return out


def _inverse(information: Array) -> Array:
    root = np.sqrt(np.where(information.diagonal() > 0, information.diagonal(), 1.0))
    unit = information / np.outer(root, root)
    L, info = lapack.dpotrf(unit, lower=1)
    if info != 0 or (L.diagonal() ** 2).min(initial=1.0) < _DEPENDENT:
        raise ValueError(
            "The Fisher information is singular: columns depend on each other (or on the "
            "intercept), and the data say nothing about some coefficients. Leave out columns."
        )
    if not len(root):
        return information
    lower, _ = lapack.dpotri(L, lower=1)
    full = np.tril(lower) + np.tril(lower, -1).T
    return np.asarray(full / np.outer(root, root))
