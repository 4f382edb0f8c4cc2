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

from trueline.check.formulas.claims import ABOUT, UNITS, read_claim
from trueline.check.numbers.arithmetic import EPS
from trueline.check.schema import get, witness_of
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check_beside"]

#: Where the witness has the fields of the claim at v.
_AT = {name: f"proven_{name}" for name in ("coef", "intercept", "objective", "gap")}
_AT["objective_rounding"] = "proven_rounding"
# All others say something of the coefficients themselves, or of those around them.
_KINDS = ("quadratic", "row space", "fenchel", "duality", "tangent", "bounded", "curvature")


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
    given, schema = witness_of(certificate), {_AT[name]: ABOUT[name] for name in _AT}
    outer = {name: get(certificate, name) for name in ("kind", *ABOUT)}
    rest = {name: value for name, value in given.items() if name not in schema}
    there = {name: given.get(place) for name, place in _AT.items()}
    found = theorem({**outer, **there, "witness": rest}, X, y, sample_weight, effort)
    if not found.holds:
        return Verification(found.checks)
    outer["witness"] = {name: given[name] for name in (*UNITS, *schema) if name in given}
    claim = read_claim(outer, schema, X, y, sample_weight)
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
