r"""The checker of fits with Firth's correction: objective, slope and bound, from the rows.

With labels y_i = -1 or +1, rows a_i = (x_i, 1), scores z_i = a_i.v, h = 1 / ((1 + e^z)(1 + e^-z)),
the information I(v) = sum_i s_i h_i a_i a_i^T and q_i = s_i h_i a_i^T I^-1 a_i, minimised is

    F(v) = sum_i s_i log(1 + exp(-y_i z_i)) - 1/2 log det I(v)
    g    = sum_i (s_i l'_i - q_i (1/2 - p_i)) a_i,          p_i = 1 / (1 + exp(-z_i)).

F is not convex. Claimed are a slope, |M g| with M = diag(I)^-1/2, and a gap: losses are not
negative and h <= 1/4, so that no v whatever has F below -1/2 log det(sum_i s_i a_i a_i^T / 4).

Columns that depend on others are left out of the determinant; their coefficients are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Check, Rows

__all__ = ["WITNESS", "FirthFacts", "check_firth", "firth_facts"]

Array = NDArray[np.float64]

#: What such a claim must bring.
WITNESS = ("slope", "columns")
_EPS = float(np.finfo(np.float64).eps)


class FirthFacts(NamedTuple):
    """The objective, the slope, a lower bound on all objectives, and what rounding may do."""

    objective: float
    slope: float
    bound: float
    rounding: float


def firth_facts(certificate: Certificate, rows: Rows, columns: NDArray[np.intp]) -> FirthFacts:
    """Everything that is claimed, from one look at the rows (two for the slope)."""
    W, b = certificate.coef, certificate.intercept
    level = int(certificate.fit_intercept)
    # About the means, whose choice no determinant feels: columns far from zero keep their digits.
    mean = sum((rows.s[w] @ block[:, columns] for w, block in rows), start=np.zeros(len(columns)))
    mean = mean / rows.weight * level
    p = len(columns) + level
    information, whole = np.zeros((p, p)), np.zeros((p, p))
    losses, parts = [], []
    for where, block in rows:
        s, y = rows.s[where], rows.y[where, 0]
        z = (block @ W + b)[:, 0]
        A = np.hstack([block[:, columns] - mean, np.ones((len(block), level))])
        small = np.exp(-np.abs(z))
        h = small / (1 + small) ** 2
        margin = y * z
        losses.append(s * (np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))))
        information += A.T @ ((s * h)[:, None] * A)
        whole += A.T @ (s[:, None] * A)
        # l' and 1/2 - p, each without cancellation.
        slope = -y * np.where(margin >= 0, small, 1.0) / (1 + small)
        parts.append((A, s, h, slope, 0.5 * np.tanh(-0.5 * z)))
    root = np.sqrt(information.diagonal())
    unit = information / np.outer(root, root)
    inverse = np.linalg.inv(unit)
    sign, own = np.linalg.slogdet(unit)
    if sign <= 0:
        return FirthFacts(np.inf, np.inf, -np.inf, np.inf)
    determinant = own + 2 * float(np.log(root).sum())
    wide = np.sqrt(whole.diagonal())
    largest = float(np.linalg.slogdet(whole / np.outer(wide, wide))[1] + 2 * np.log(wide).sum())
    g = np.zeros(p)
    for A, s, h, slope, away in parts:
        scaled = A / root
        leverage = s * h * ((scaled @ inverse) * scaled).sum(axis=1)
        g += A.T @ (s * slope - leverage * away)
    total = float(np.concatenate(losses).sum())
    objective = total - 0.5 * determinant
    size = total + abs(determinant) + p
    condition = float(np.abs(inverse).sum(axis=0).max())
    rounding = (rows.n + 8 * p + 64) * _EPS * (size + p * condition)
    steep = float(np.linalg.norm(g / root))
    return FirthFacts(objective, steep, -0.5 * (largest - p * np.log(4.0)), rounding)


def check_firth(certificate: Certificate, rows: Rows) -> list[Check]:
    """All checks of such a claim."""
    columns = np.asarray(certificate.witness["columns"])
    d, k = certificate.coef.shape
    whole = columns.ndim == 1 and bool((columns == np.round(columns)).all())
    sound = k == 1 and whole and bool(((columns >= 0) & (columns < d)).all())
    sound = (
        sound
        and len(np.unique(columns)) == len(columns)
        and "margins" in (certificate.loss.capabilities)
    )
    if not sound:
        return [Check("columns of the information", f"of {d}", "not sound", False)]
    kept = columns.astype(np.intp)
    found = firth_facts(certificate, rows, kept)
    others = np.delete(certificate.coef[:, 0], kept)
    slope, allowed = float(certificate.witness["slope"]), certificate.objective_rounding
    off = abs(found.objective - certificate.objective) + found.rounding
    gap = certificate.objective + allowed - found.bound + found.rounding
    return [
        Check("left out columns", "zero", "yes" if not others.any() else "no", not others.any()),
        Check(
            "objective",
            f"{certificate.objective:.12g} within {allowed:.2g}",
            f"{found.objective:.12g} within {found.rounding:.2g}",
            bool(off <= allowed),
        ),
        Check("slope", f"<= {slope:.3g}", f"{found.slope:.3g}", bool(found.slope <= slope)),
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", bool(gap <= certificate.gap)),
    ]
