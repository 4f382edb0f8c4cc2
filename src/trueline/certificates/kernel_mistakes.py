r"""The mistake bound of the perceptron in the space of a kernel.

Novikoff's theorem (:mod:`trueline.certificates.mistakes`) asks for products of rows only, and so
holds for rows phi(x_i) with k(x_i, x_j) = phi(x_i).phi(x_j), where k is positive semidefinite. A
separator u = sum_j beta_j phi(x_j) with intercept c has the scores K beta + c and the squared norm

    beta.K beta + c^2;      R^2 is the largest K_ii + 1      (without an intercept: no c, no 1).

The weights of the run are alpha_i = (updates by row i) (its step) y_i: their number cannot be
misstated. A matrix that needs delta on its diagonal to be positive semidefinite has a bound with
less room: with g the smallest of y_i times the scores, gamma^2 is to be replaced by

    (g - delta |beta|)^2 / (beta.K beta + c^2 + delta |beta|^2) - delta.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.kernel import is_definite, score_error
from trueline.certificates.mistakes import margins_of

__all__ = ["bound_kernel_mistakes"]

Array = NDArray[np.float64]

#: Kernel matrix, signs, whether there is an intercept; to beta and c of largest margin.
Widest = Callable[[Array, Array, bool], tuple[Array, float] | None]

_EPS = float(np.finfo(np.float64).eps)
# Eigenvalues of larger matrices would take longer than learning.
_MOST_ROWS = 500


def bound_kernel_mistakes(
    certificate: Certificate,
    K: Array,
    y: Array,
    weights: Array | None,
    counts: NDArray[np.int32],
    rate: float,
    threshold: float,
    recipe: Mapping[str, Any],
    X: Any,
    widest: Widest | None = None,
) -> Certificate:
    """Add the mistake bound to counted training errors, if something at hand separates the rows.

    Parameters
    ----------
    certificate : Certificate
        Of kind "training errors": ``coef`` is alpha of shape (n, k).
    K : array of shape (n, n)
    y : array of shape (n,)
        Signs if k is 1, else classes from 0.
    counts : array of int, of shape (n, k)
        Updates by each row.
    recipe : mapping
        How the matrix is computed from the rows.
    X : array or sparse matrix of shape (n, d)
    widest : callable, optional
        A separator of larger margin than that of the run.
    """
    n, k = certificate.coef.shape
    delta = _shift(recipe, K)
    if not np.isfinite(delta):
        return certificate
    constant = float(certificate.fit_intercept)
    units = 8.0 * (n + 32) * _EPS
    plain = np.ones(n) if weights is None else weights
    steps = rate * plain
    taken = steps > 0
    own = np.abs(np.diagonal(K))[:, None]
    own = own + 2 * score_error(recipe, X, np.ones(1), own)
    square = float(own[taken].max(initial=0.0)) + constant
    if not (np.isfinite(square) and square > 0):
        return certificate
    radius = np.sqrt(square) * (1 + 1e-12 + units)

    def margin(signs: Array, candidate: tuple[Array, float]) -> float:
        size = np.abs(candidate[0])
        carried = (np.abs(K) @ size)[:, None]
        error = 2 * score_error(recipe, X, np.array([size.sum()]), carried) + units * carried
        return _margin(K, signs, taken, candidate, constant, error[:, 0], delta)

    separator, level = np.zeros((n, k)), np.zeros(k)
    gamma, bound = np.zeros(k), np.full(k, np.inf)
    for r in range(k):
        signs = y if k == 1 else np.where(y == r, 1.0, -1.0)
        candidates = [(certificate.coef[:, r], float(certificate.intercept[r]))]
        if margin(signs, candidates[0]) <= 0:
            continue
        if widest is not None and taken.all():
            wider = widest(K, signs, certificate.fit_intercept)
            candidates += [] if wider is None else [wider]
        margins = [margin(signs, candidate) for candidate in candidates]
        best = int(np.argmax(margins))
        separator[:, r], level[r] = candidates[best]
        gamma[r] = margins[best]
        low, high = steps[taken].min(), steps[taken].max()
        room = gamma[r] ** 2 - delta
        if room > 0:
            bound[r] = (high * radius**2 + 2 * threshold) / (low * room) * (1 + 1e-12 + units)
    if not np.isfinite(bound).any():
        return certificate
    witness = {
        "counts": counts.astype(np.float64),
        "separator": separator,
        "separator_intercept": level,
        "rate": np.array(rate),
        "threshold": np.array(threshold),
        "mistakes": counts.sum(axis=0, dtype=np.float64),
        "gamma": gamma,
        "radius": np.full(k, radius),
        "bound": bound,
    }
    kind = "kernel mistake bound"
    return replace(certificate, kind=kind, witness={**certificate.witness, **witness})


def _shift(recipe: Mapping[str, Any], K: Array) -> float:
    """What makes the matrix positive semidefinite; infinite if nobody looks."""
    if is_definite(recipe):
        return 0.0
    if len(K) > _MOST_ROWS:
        return np.inf
    lowest = float(np.linalg.eigvalsh((K + K.T) / 2)[0])
    return 2 * max(-lowest, 0.0) + 16 * len(K) * _EPS * float(np.linalg.norm(K))


def _margin(
    K: Array,
    y: Array,
    taken: NDArray[np.bool_],
    candidate: tuple[Array, float],
    constant: float,
    error: Array,
    delta: float,
) -> float:
    """The margin of a separator, from below; not positive if it is none."""
    beta, level = candidate
    if constant == 0 and level != 0:
        return 0.0
    z, _ = margins_of(K, y, beta[:, None], np.array([level]))
    bulk = float(beta @ beta)
    square = float(beta @ (K @ beta)) + level**2 + 2 * float(np.abs(beta) @ error)
    square += delta * bulk * (1 + 1e-9)
    if not 0 < square < np.inf:
        return 0.0
    least = float((z - error - 8 * _EPS * abs(level))[taken].min(initial=np.inf))
    least -= delta * np.sqrt(bulk) * (1 + 1e-9)
    return least / np.sqrt(square) * (1 - 1e-12 - 8 * len(beta) * _EPS)
