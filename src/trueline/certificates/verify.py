"""The independent checker: recompute every claim of a certificate from the data.

Plain NumPy on blocks of rows. Nothing is shared with any solver, with the planner, the moments or
the design classes; only the formulas of the loss and the penalty are used. Rounding is accounted
for: a claim is accepted only if it holds for the exact real numbers that the doubles stand for.

Notation: eps is the spacing of doubles at 1; a sum of n products evaluated in any order errs by at
most n eps times the sum of magnitudes (Higham, "Accuracy and Stability of Numerical Algorithms",
2nd ed., section 3.1); results of error-free transformations err by about eps^2 instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueline import check
from trueline.certificates import (
    curvature_check,
    local_check,
    tangent_check,
)
from trueline.certificates.base import Certificate
from trueline.certificates.checking import Check, Rows, Verification, check_objective
from trueline.certificates.duality_check import check_bounded, check_duality, check_ordered
from trueline.certificates.mistakes_check import KINDS_OF_MISTAKES, check_mistakes
from trueline.certificates.quadratic_check import check_fenchel, check_quadratic, coercivity
from trueline.wording import counted

__all__ = ["Check", "Verification", "coercivity", "verify"]

# What each kind of proof must bring.
_WITNESS = {
    "quadratic": ("basis", "coercivity"),
    "row space": ("basis", "coercivity"),
    "fenchel": (),
    "duality": ("dual", "radius"),
    "ordered duality": ("dual", "radius", "order", "slack"),
    "bounded": ("radius", "intercept_radius"),
    "curvature": curvature_check.WITNESS,
    "tangent": tangent_check.WITNESS,
    "local": (),
}


def verify(certificate: Certificate, X: Any, y: Any, sample_weight: Any = None) -> Verification:
    """Check a certificate against the data it is about.

    Parameters
    ----------
    certificate : Certificate
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    verification : Verification

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import Ridge
    >>> from trueline.certificates import verify
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> print(verify(Ridge().fit(X, y).certificate_, X, y))  # doctest: +ELLIPSIS
    check ...
    The certificate holds.
    """
    if certificate.kind not in KINDS_OF_MISTAKES and certificate.kind not in _WITNESS:
        return check.verify(certificate, X, y, sample_weight)  # type: ignore[return-value]
    if certificate.kind in KINDS_OF_MISTAKES:  # about classes, not about numbers
        return check_mistakes(certificate, X, y, sample_weight)
    rows = Rows(X, y, sample_weight, certificate)
    trouble = rows.problems(certificate)
    d, k = certificate.coef.shape
    shape = Check(
        "data fit the model",
        f"{counted(d, 'column')}, {counted(k, 'target')}",
        trouble or "yes",
        not trouble,
    )
    if trouble:
        return Verification((shape,))
    lacks = [name for name in _WITNESS.get(certificate.kind, ()) if name not in certificate.witness]
    if lacks:
        return Verification((shape, Check("witness", "complete", f"lacks {lacks}", False)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        checks = [shape, check_objective(certificate, rows)]
        if certificate.kind == "local":
            return Verification((*checks, *local_check.check_local(certificate, rows)))
        if "nonconvex" in certificate.loss.capabilities:
            return Verification((*checks, Check("loss is convex", "yes", "no", False)))
        if certificate.kind in ("quadratic", "row space"):
            checks += check_quadratic(certificate, rows)
        elif certificate.kind == "fenchel":
            checks += check_fenchel(certificate, rows)
        elif certificate.kind == "duality":
            checks += check_duality(certificate, rows)
        elif certificate.kind == "ordered duality":
            checks += check_ordered(certificate, rows)
        elif certificate.kind == "curvature":
            checks += curvature_check.check_curvature(certificate, rows)
        elif certificate.kind == "tangent":
            checks += tangent_check.check_tangent(certificate, rows)
        elif certificate.kind == "bounded":
            checks += check_bounded(certificate, rows)
        else:
            checks.append(Check("kind of proof", certificate.kind, "unknown", False))
    return Verification(tuple(checks))
