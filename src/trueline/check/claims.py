"""What claims about coefficients of one loss and penalty have in common."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS
from trueline.check.rows import Rows
from trueline.check.schema import CLAIMS, Field, is_builtin, parameters, read
from trueline.check.verdict import Check, Refused

__all__ = ["judged", "read_about", "require_signs"]

_FIELDS = {
    **CLAIMS,
    "objective_rounding": Field(low=0.0),
    "loss": Field(kind="any"),
    "penalty": Field(kind="any"),
    "fit_intercept": Field(kind="boolean"),
    "coef": Field(("d", "k")),
    "intercept": Field(("k",)),
}


def read_about(
    loss: str, penalty: str, certificate: Any, rows: Rows, witness: Mapping[str, Field]
) -> SimpleNamespace:
    """A claim about this loss and penalty, with their parameters as one mapping ``strength``."""
    claim = read(certificate, _FIELDS, witness, {"n": rows.n, "d": rows.d, "k": rows.k})
    own = is_builtin(claim.loss, "losses") and is_builtin(claim.penalty, "penalties")
    found = parameters(claim.loss), parameters(claim.penalty)
    if not own or (found[0]["name"], found[1]["name"]) != (loss, penalty):
        raise Refused(f"the claim is not about the loss {loss} and the penalty {penalty}")
    if not claim.fit_intercept and claim.intercept.any():
        raise Refused("an intercept where there is none")
    claim.strength = {**found[0], **found[1]}
    return claim


def require_signs(rows: Rows) -> None:
    """Refuse targets other than one of -1 and +1."""
    if rows.k != 1 or not np.isin(rows.y, (-1.0, 1.0)).all():
        raise Refused("the targets are not -1 and +1")


def judged(claim: Any, value: float, error: float, bound: float) -> tuple[Check, Check]:
    """Objective and gap of a claim against what was found, in doubles."""
    off = abs(value - claim.objective) * (1 + 2 * EPS) + error
    gap = claim.objective + claim.objective_rounding - bound
    gap += 4 * EPS * (abs(claim.objective) + claim.objective_rounding + abs(bound))
    said = f"{claim.objective:.12g} within {claim.objective_rounding:.2g}"
    found = f"{value:.12g} within {error:.2g}"
    return (
        Check("objective", said, found, bool(off <= claim.objective_rounding)),
        Check("gap", f"<= {claim.gap:.4g}", f"{gap:.4g}", bool(gap <= claim.gap)),
    )
