"""Intercepts that are best for given coefficients, as exactly as double precision allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss

__all__ = ["best_levels"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_STEPS = 6


def best_levels(loss: Loss, target: Array, Z: Array, s: Array) -> Array:
    """What to add to the scores of all rows so that sum_i s_i l'_i vanishes: Newton's method.

    Parameters
    ----------
    loss : Loss
    target, Z : arrays of shape (n, k)
        Targets and scores; close to the minimum already.
    s : array of shape (n,)
        Weights.
    """
    k = Z.shape[1]
    shift, units = np.zeros(k), np.eye(k)
    u = loss.gradient(target, Z)
    slope = s @ u
    for _ in range(_STEPS):
        if np.abs(slope).max() <= 4 * _EPS * float((s @ np.abs(u)).max()):
            break
        bending = loss.bending(target, Z + shift)
        H = np.stack([s @ loss.bend(bending, unit[None, :]) for unit in units])
        ahead = shift - np.linalg.lstsq(H, slope, rcond=1e-12)[0]
        u = loss.gradient(target, Z + ahead)
        after = s @ u
        if not np.abs(after).max() < 0.5 * np.abs(slope).max():
            break
        shift, slope = ahead, after
    return shift
