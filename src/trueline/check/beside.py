r"""Coefficients beside others that are proven.

*Theorem.* If no coefficients have an objective below P(v) - g, none have one below
P(w) - [P(w) - P(v) + g]. *Proof.* Both are the same number. []

The proof at v is that of the stated kind; here the two objectives are compared. Coefficients that
were rounded to single precision are proven in this way.

Read from the certificate: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef,
intercept; witness: proven_coef, proven_intercept, proven_objective, proven_rounding, proven_gap,
and what the proof at v reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueline.check.arithmetic import EPS
from trueline.check.objective import read_claim
from trueline.check.schema import Field, get, witness_of
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check_beside"]

_AT = {
    "proven_coef": Field(("d", "k")),
    "proven_intercept": Field(("k",)),
    "proven_objective": Field(),
    "proven_rounding": Field(low=0.0),
    "proven_gap": Field(low=0.0),
}
# All others say something of the coefficients themselves, or of those around them.
_KINDS = ("quadratic", "row space", "fenchel", "duality", "tangent", "bounded", "curvature")
_SHARED = ("kind", "loss", "penalty", "fit_intercept")


def check_beside(
    theorem: Callable[..., Verification],
    certificate: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    effort: str,
) -> Verification:
    """The proof at the other coefficients by its theorem, and the difference of the objectives."""
    if get(certificate, "kind") not in _KINDS:
        raise Refused("this proof is about its own coefficients only")
    given = witness_of(certificate)
    rest = {name: value for name, value in given.items() if name not in _AT}
    inner = {
        **{name: get(certificate, name) for name in _SHARED},
        "witness": rest,
        "coef": given.get("proven_coef"),
        "intercept": given.get("proven_intercept"),
        "objective": given.get("proven_objective"),
        "objective_rounding": given.get("proven_rounding"),
        "gap": given.get("proven_gap"),
    }
    found = theorem(inner, X, y, sample_weight, effort)
    if not found.holds:
        return Verification(found.checks)
    about = {name: rest[name] for name in ("column_exponent", "target_exponent") if name in rest}
    outer = {name: get(certificate, name) for name in (*_SHARED, "coef", "intercept", "objective",
             "objective_rounding", "gap")}  # fmt: skip
    outer["witness"] = {**about, **{name: given[name] for name in _AT}}
    claim = read_claim(outer, _AT, X, y, sample_weight)
    for doubled in (False, True):
        claim.evaluate(doubled)
        objective = claim.check_objective()
        if objective.holds:
            break
    at = claim.fields
    gap = (claim.ceiling - at.proven_objective) + at.proven_rounding + at.proven_gap
    gap = gap + 8 * EPS * (abs(claim.ceiling) + abs(at.proven_objective) + at.proven_gap)
    checks = [
        *(Check(f"{c.name} beside", c.claimed, c.found, c.holds) for c in found.checks),
        objective,
        Check.at_most("gap", at.gap, gap),
    ]
    return Verification(tuple(checks), claim.statement(), found.conditions)
