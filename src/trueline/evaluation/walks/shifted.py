r"""Ridge regression on sparse rows for all strengths, from one Krylov space for each fold.

    (C + alpha I) w = c,     C = (X - 1 m^T)^T S (X - 1 m^T),     c = (X - 1 m^T)^T S y,

with m the weighted mean. Conjugate gradients for the smallest strength build residuals that are
parallel to those of all other strengths, so that these cost vector operations only, and end early
(B. Jegerlehner, "Krylov space solvers for shifted linear systems", hep-lat/9612014 (1996), eqs.
2.42-2.44; A. Frommer, Computing 70 (2003) 87-109). All folds share the products with X.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.evaluation.walks.batch import Rows

__all__ = ["solve_shifted"]

Array = NDArray[np.float64]

_LIMIT = 2000


def solve_shifted(rows: Rows, Y: Array, S: Array, alphas: Array, tol: float) -> tuple[Array, Array]:
    """Coefficients of all strengths and folds.

    Parameters
    ----------
    rows : Rows
    Y : array of shape (n, k)
    S : array of shape (n, folds)
    alphas : array of shape (m,)
        Positive.
    tol : float
        Norm of the residual that is left, relative to that of c.

    Returns
    -------
    W : array of shape (d, m, folds, k)
    b : array of shape (m, folds, k)
    """
    folds, k = S.shape[1], Y.shape[1]
    total = S.sum(axis=0)
    centred = rows.fit_intercept
    mean = rows.total(S[:, :, None])[:-1, :, 0] / total if centred else np.zeros((rows.d, folds))
    level = (S.T @ Y) / total[:, None] if centred else np.zeros((folds, k))

    def turn(U: Array) -> Array:
        """(X - 1 m^T)^T S U for U of shape (n, folds, k)."""
        weighted = S[:, :, None] * U
        out = _plain(rows.turned, weighted)
        return out - mean[:, :, None] * weighted.sum(axis=0) if centred else out

    def times(P: Array) -> Array:
        Z = _plain(rows.X, P)
        return turn(Z - np.einsum("df,dfk->fk", mean, P) if centred else Z)

    right = turn(Y[:, None, :] - level)
    order = np.argsort(alphas, kind="stable")
    W = _krylov(times, right, alphas[order], tol)
    back = np.argsort(order, kind="stable")
    W = W[:, back]
    b = level - np.einsum("df,dmfk->mfk", mean, W)
    return W, b if centred else np.zeros_like(b)


def _plain(matrix: Any, B: Array) -> Array:
    """A product with an array of shape (., folds, k)."""
    flat = np.ascontiguousarray(B.reshape(len(B), -1))
    return np.asarray(matrix @ flat).reshape(-1, *B.shape[1:])


def _krylov(times: Any, right: Array, alphas: Array, tol: float) -> Array:
    """(C + alpha)^-1 right for increasing strengths, of shape (d, m, folds, k)."""
    m = len(alphas)
    X, P = np.zeros((m, *right.shape)), np.repeat(right[None], m, axis=0)
    shift = (alphas - alphas[0])[:, None, None]
    R, seed = right.copy(), right.copy()
    size = np.einsum("dfk,dfk->fk", R, R)
    first = size.copy()
    zeta, zeta_before = np.ones((m, *size.shape)), np.ones((m, *size.shape))
    a_before, ratio_before = np.ones_like(size), np.zeros_like(size)
    live = m  # the strengths that are not solved yet: the first ones, as large ones end early
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_LIMIT):
            image = times(seed) + alphas[0] * seed
            bend = np.einsum("dfk,dfk->fk", seed, image)
            a = np.where(bend > 0, size / bend, 0.0)
            z, zb = zeta[:live], zeta_before[:live]
            below = a * ratio_before * (zb - z) + zb * a_before * (1 + shift[:live] * a)
            new = np.where(below != 0, z * zb * a_before / below, 0.0)
            step = np.where(z != 0, a * new / z, 0.0)
            X[:live] += step[:, None] * P[:live]
            R = R - a * image
            now = np.einsum("dfk,dfk->fk", R, R)
            ratio = np.where(size > 0, now / size, 0.0)
            turn = np.where(z != 0, ratio * (new / z) ** 2, 0.0)
            P[:live] *= turn[:, None]
            P[:live] += new[:, None] * R
            seed = R + ratio * seed
            zeta_before[:live], zeta[:live] = z, new
            a_before, ratio_before, size = a, ratio, now
            left = (new**2 * now <= tol**2 * first).all(axis=(1, 2))
            while live and left[live - 1]:
                live -= 1
            if not live:
                break
    return np.moveaxis(X, 0, 1)
