"""The checker: does a certificate's claim follow from the data?

It reads a certificate as data (:mod:`trueline.check.schema`), recomputes everything from the rows
and answers *proven*, *proven under a stated condition*, or *not proven*. It shares no code with
what it checks: it imports NumPy, ``scipy.sparse`` and the standard library, and restates each
formula that it needs. One file per theorem; each opens with the theorem and its proof.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trueline.check.verdict import (
    Check,
    ProofFileError,
    Refused,
    Verdict,
    Verification,
    VerificationError,
    told,
)

__all__ = [
    "THEOREMS",
    "Check",
    "ProofFileError",
    "Verdict",
    "Verification",
    "VerificationError",
    "read_proof",
    "verify",
    "write_proof",
]

if TYPE_CHECKING:
    from trueline.check.files import read_proof, write_proof

_THEOREMS = {
    "curvature": ("quadratic", "row space", "curvature", "local"),
    "fenchel_young": ("fenchel", "duality", "ordered duality", "tangent", "bounded"),
    "maximum_error": ("maximum error",),
    "concomitant": ("concomitant",),
    "firth": ("stationary",),
    "best_subset": ("search", "conditioned search"),
    "zero_one": ("zero-one packing", "zero-one search"),
    "mistakes": ("training errors", "mistake bound", "kernel mistake bound"),
    "separation": ("separable", "quasi-separable", "not separable", "hard margin", "margin"),
    "kernel_machines": ("kernel duality", "kernel stationarity", "kernel equations"),
    "gaussian_process": ("stationary point", "given parameters", "evidence bounds"),
}
#: The file that proves each kind of claim.
THEOREMS: dict[str, str] = {kind: file for file, kinds in _THEOREMS.items() for kind in kinds}


def verify(
    certificate: Any, X: Any, y: Any = None, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
    """Check a certificate against the data it is about.

    Parameters
    ----------
    certificate : certificate, or mapping with the same fields
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
    effort : {"normal", "full"}
        How much of a search is repeated: "full" rechecks all of it, however long that takes.

    Returns
    -------
    verification : Verification
        True in a boolean context if the claim is proven without any condition. Whatever the
        certificate holds, nothing is raised: what is malformed is not proven.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import Ridge
    >>> from trueline.check import verify
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> print(verify(Ridge().fit(X, y).certificate_, X, y))  # doctest: +ELLIPSIS
    check ...
    The certificate holds.
    """
    import numpy as np  # here, so that the errors of this package can be imported without it

    from trueline.check.claims import check_beside
    from trueline.check.schema import get, witness_of

    if effort not in ("normal", "full"):
        raise ValueError(f"effort must be 'normal' or 'full', got {effort!r}.")
    try:
        kind = get(certificate, "kind")
        if type(kind) is not str or kind not in THEOREMS:
            said = kind[:80] if type(kind) is str else f"a {type(kind).__name__}"
            return Verification((Check("kind of proof", said, "unknown", False),))
        with np.errstate(all="ignore"):  # what is not finite proves nothing
            theorem = import_module(f"trueline.check.theorems.{THEOREMS[kind]}")
            if "proven_coef" in witness_of(certificate):
                return check_beside(theorem.check, certificate, X, y, sample_weight, effort)
            return theorem.check(certificate, X, y, sample_weight, effort)
    except Refused as reason:
        return Verification.refused(reason)
    except OverflowError:  # of sums and powers of numbers that are each within the range
        return Verification.refused("numbers leave the range of doubles")
    except Exception as error:  # a claim that cannot be computed is not proven
        return Verification.refused(f"not computable: {told(error)}")


def __getattr__(name: str) -> Any:
    if name in ("read_proof", "write_proof"):
        from trueline.check import files

        return getattr(files, name)
    raise AttributeError(f"module 'trueline.check' has no attribute {name!r}")
