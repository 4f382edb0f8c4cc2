"""The independent check of the mistake bound of a kernel perceptron.

Recomputed from the kernel matrix: alpha from the updates of each row, R, the margin of the
separator, and the bound. The theorem is in :mod:`trueline.certificates.kernel_mistakes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, Check

__all__ = ["check_kernel_bound"]

Array = NDArray[np.float64]

_SHAPES = {
    "counts": "nk",
    "separator": "nk",
    "separator_intercept": "k",
    "rate": "",
    "threshold": "",
}
_NUMBERS = ("mistakes", "gamma", "radius", "bound")


def check_kernel_bound(certificate: Certificate, K: Any, y: Array, plain: Array) -> list[Check]:
    """All checks beyond the training errors.

    Parameters
    ----------
    K : array of shape (n, n)
    y : array of shape (n,)
        Signs if there is one column of coefficients, else classes.
    plain : array of shape (n,)
        Weights of the rows.
    """
    sizes = dict(zip("nk", certificate.coef.shape))
    shapes = {**_SHAPES, **dict.fromkeys(_NUMBERS, "k")}
    w = {name: np.asarray(certificate.witness.get(name, ()), dtype=np.float64) for name in shapes}
    wrong = [name for name, s in shapes.items() if w[name].shape != tuple(sizes[c] for c in s)]
    K = np.asarray(K, dtype=np.float64)
    sane = (
        not wrong
        and K.shape == (len(y), len(y))
        and bool(np.abs(K - K.T).max(initial=0.0) <= 1e-9 * np.abs(K).max(initial=0.0))
        and float(w["rate"]) > 0
        and float(w["threshold"]) >= 0
        and bool((w["counts"] >= 0).all() and (w["counts"] == np.floor(w["counts"])).all())
        and bool(np.isfinite(w["separator"]).all() and np.isfinite(w["separator_intercept"]).all())
        and bool(certificate.fit_intercept or not w["separator_intercept"].any())
    )
    checks = [Check("witness", "makes sense", "yes" if sane else f"no {wrong}", sane)]
    if not sane:
        return checks
    for r in range(sizes["k"]):
        signs = y if sizes["k"] == 1 else np.where(y == r, 1.0, -1.0)
        checks += _one_problem(certificate, w, K, signs, float(w["rate"]) * plain, r)
    return checks


def _one_problem(
    certificate: Certificate, w: dict[str, Array], K: Array, y: Array, steps: Array, r: int
) -> list[Check]:
    label = "" if certificate.coef.shape[1] == 1 else f" of class {r}"
    counts, taken = w["counts"][:, r], steps > 0
    made = float(counts.sum())
    # A coefficient is a sum of equal numbers, each addition of which is rounded.
    alpha = counts * steps * y
    same = np.abs(alpha - certificate.coef[:, r]) <= (counts + 2) * EPS * np.abs(alpha)
    level = float(certificate.fit_intercept) * alpha.sum()
    slack = (made + len(y) + 2) * EPS * np.abs(alpha).sum()
    agrees = bool(same.all()) and abs(level - certificate.intercept[r]) <= slack
    checks = [
        Check(
            f"updates{label}",
            f"{w['mistakes'][r]:.0f}",
            f"{made:.0f}",
            bool(made == w["mistakes"][r]),
        ),
        Check(f"sum of the updates{label}", "alpha", "yes" if agrees else "no", bool(agrees)),
    ]
    if not np.isfinite(w["bound"][r]):
        return checks  # no separator, nothing claimed
    beta, c, n = w["separator"][:, r], float(w["separator_intercept"][r]), len(y)
    size = np.abs(K) @ np.abs(beta)
    z = y * (K @ beta + c) - (n + 3) * EPS * (size + abs(c))
    square = (float(beta @ (K @ beta)) + c * c) * (1 + 4 * EPS)
    square += (2 * n + 6) * EPS * float(np.abs(beta) @ size)
    gamma = float(z[taken].min(initial=np.inf)) / np.sqrt(square) if square > 0 else -np.inf
    constant = float(certificate.fit_intercept)
    radius = np.sqrt(float(np.diagonal(K)[taken].max(initial=0.0)) + constant) * (1 + 4 * EPS)
    high, low = float(steps[taken].max()), float(steps[taken].min())
    g, R, claimed = (float(w[name][r]) for name in ("gamma", "radius", "bound"))
    bound = (high * R**2 + 2 * float(w["threshold"])) / (low * g**2)
    within = made <= claimed
    return [
        *checks,
        Check(f"margin{label}", f"{g:.6g}", f"{gamma:.6g}", bool(0 < g <= gamma * (1 - 4 * EPS))),
        Check(f"R{label}", f"{R:.6g}", f"{radius:.6g}", bool(R >= radius)),
        Check(
            f"bound on updates{label}",
            f"{claimed:.6g}",
            f"{bound:.6g}",
            bool(claimed >= bound * (1 + 4 * EPS)),
        ),
        Check(
            f"updates within the bound{label}",
            f"{made:.0f} <= {claimed:.6g}",
            "yes" if within else "no",
            bool(within),
        ),
    ]
