r"""The independent check of bounds on the largest margin.

Comparisons of norms are comparisons of squares of rational numbers: nothing is rounded.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.checking import Check, Verification
from trueline.certificates.margin import MarginCertificate
from trueline.certificates.separation_check import (
    EPS,
    ClassifiedRows,
    dense,
    scores_with_error,
)

__all__ = ["verify_margin"]

Array = NDArray[np.float64]


def verify_margin(certificate: MarginCertificate, X: Any, y: Any) -> Verification:
    """Check bounds on the largest margin against the data they are about.

    Parameters
    ----------
    certificate : MarginCertificate
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)

    Returns
    -------
    verification : Verification
    """
    coef = np.asarray(certificate.coef, dtype=np.float64)
    try:
        # The rows as they are: the intercept is added to scores here.
        data = ClassifiedRows(X, y, certificate.classes, coef.shape[-1], fit_intercept=False)
    except ValueError as error:
        return Verification((Check("data fit the claim", "yes", str(error), False),))
    blocks = 1 if data.k == 2 else data.k
    b = float(certificate.intercept)
    claims = [certificate.margin, certificate.upper_bound, certificate.radius, b]
    finite = np.isfinite(coef).all() and np.isfinite(claims).all() and min(claims[:3]) >= 0
    placed = b == 0 or (certificate.fit_intercept and data.k == 2)
    if coef.shape != (blocks, data.d) or not finite or not placed:
        return Verification((Check("data fit the claim", "yes", "numbers do not fit", False),))
    return Verification(
        (
            Check("data fit the claim", "yes", "yes", True),
            _check_margin(certificate, data, coef, b),
            _check_upper(certificate, data),
            _check_radius(certificate, data),
        )
    )


def _check_margin(
    certificate: MarginCertificate, data: ClassifiedRows, coef: Array, b: float
) -> Check:
    """y (x.w + b) >= margin ||w|| for every row, squared where it is close."""
    W = np.vstack([np.zeros(data.d), coef]) if data.k == 2 else coef
    levels = np.array([0.0, b]) if data.k == 2 else np.zeros(data.k)
    exact = [[Fraction(float(v)) for v in row] for row in W]
    square = sum((v * v for row in exact for v in row), Fraction(0))
    goal = Fraction(certificate.margin) ** 2 * square
    top = float(np.abs(W).max()) or 1.0
    level = certificate.margin * (top * float(np.sqrt(((W / top) ** 2).sum())))
    level *= 1 + (W.size + 8) * EPS
    wrong = 0
    for where, block in data:
        scores, error = scores_with_error(block, W)
        scores = scores + levels
        error = error + EPS * (np.abs(scores) + np.abs(levels))
        own, every = data.codes[where], np.arange(len(scores))
        gap = scores[every, own][:, None] - scores
        doubt = error[every, own][:, None] + error + 8 * EPS * np.abs(gap)
        sure = gap - 1.01 * doubt > level
        sure[every, own] = True
        for i, c in zip(*np.nonzero(~sure), strict=True):
            value = Fraction(float(levels[own[i]])) - Fraction(float(levels[c]))
            for x, u, v in zip(dense(block[[i]])[0].tolist(), exact[own[i]], exact[c], strict=True):
                value += Fraction(x) * (u - v)
            wrong += value <= 0 or value**2 < goal
    found = "no row is nearer" if wrong == 0 else f"{wrong} are nearer"
    return Check("margin", f"at least {certificate.margin:.12g}", found, wrong == 0)


def _check_upper(certificate: MarginCertificate, data: ClassifiedRows) -> Check:
    """The norm of the combination of rows, with weights of sum one."""
    claimed = f"at most {certificate.upper_bound:.12g}"
    rows, against = np.asarray(certificate.rows), np.asarray(certificate.against)
    weights = np.asarray(certificate.weights, dtype=np.float64)
    trouble = data.misplaced(rows, against)
    if trouble or weights.shape != rows.shape or not np.isfinite(weights).all():
        return Check("upper bound", claimed, trouble or "weights do not fit", False)
    if (weights < 0).any():
        return Check("upper bound", claimed, "negative weights", False)
    own = data.codes[rows]
    shares = [Fraction(float(v)) for v in weights]
    # Points of the hulls of both classes, or one of the hull of all.
    groups = own if certificate.fit_intercept and data.k == 2 else np.zeros(len(own), dtype=int)
    totals = {int(g): sum(v for v, h in zip(shares, groups, strict=True) if h == g) for g in groups}
    complete = len(totals) == (2 if certificate.fit_intercept and data.k == 2 else 1)
    if not complete or not all(totals.values()):
        return Check("upper bound", claimed, "weights that sum to zero", False)
    blocks = [[Fraction(0)] * data.d for _ in range(data.k)]
    block = data.rows(rows.astype(np.intp)).tolist()
    for x, c, a, v, g in zip(block, own, against, shares, groups, strict=True):
        share = v / totals[int(g)]
        for j, value in enumerate(x):
            if value:
                part = share * Fraction(value)
                blocks[c][j] += part
                blocks[a][j] -= part
    used = blocks[1:] if data.k == 2 else blocks
    square = sum((v * v for part in used for v in part), Fraction(0))
    factor = 2 if certificate.fit_intercept and data.k == 2 else 1
    holds = square <= (factor * Fraction(certificate.upper_bound)) ** 2
    found = "the weights give no more" if holds else "the weights give more"
    return Check("upper bound", claimed, found, bool(holds))


def _check_radius(certificate: MarginCertificate, data: ClassifiedRows) -> Check:
    """||x_i|| <= radius for every row."""
    limit, wrong = Fraction(certificate.radius) ** 2, 0
    level = float(min(limit, Fraction(np.finfo(np.float64).max)))
    for _, block in data:
        with np.errstate(over="ignore"):
            squares = np.asarray((block * block).sum(axis=1)).ravel()
        near = ~(squares * (1 + (data.d + 4) * EPS) < level * (1 - 4 * EPS))
        for row in dense(block[near]).tolist():
            wrong += sum((Fraction(v) ** 2 for v in row if v), Fraction(0)) > limit
    found = "no row is longer" if wrong == 0 else f"{wrong} are longer"
    return Check("largest norm of a row", f"at most {certificate.radius:.12g}", found, wrong == 0)
