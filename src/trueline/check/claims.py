"""What claims about coefficients of one loss and penalty have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS
from trueline.check.rows import Rows
from trueline.check.schema import CLAIMS, Field, is_builtin, parameters, read
from trueline.check.verdict import Check, Refused

__all__ = ["below", "exactly", "judged", "nearest", "read_about", "require_signs"]

Fields = Mapping[str, Field]

_FIELDS = {
    **CLAIMS,
    "loss": Field(kind="any"),
    "penalty": Field(kind="any"),
    "fit_intercept": Field(kind="boolean"),
    "coef": Field(("d", "k")),
    "intercept": Field(("k",)),
}


def read_about(
    loss: str, penalty: str, certificate: Any, rows: Rows | Mapping[str, int], witness: Fields
) -> SimpleNamespace:
    """A claim about this loss and penalty, with their parameters as one mapping ``strength``.

    Where there are several names of penalties, it is about one of them; ``rows`` tells the sizes.
    """
    sizes = rows if isinstance(rows, Mapping) else {"n": rows.n, "d": rows.d, "k": rows.k}
    claim = read(certificate, _FIELDS, witness, dict(sizes))
    own = is_builtin(claim.loss, "losses") and is_builtin(claim.penalty, "penalties")
    found = parameters(claim.loss), parameters(claim.penalty)
    if not own or found[0]["name"] != loss or found[1]["name"] not in penalty.split():
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
    off = error + 2 * EPS * abs(value - claim.objective)
    gap = claim.objective + claim.objective_rounding - bound
    gap += 4 * EPS * (abs(claim.objective) + claim.objective_rounding + abs(bound))
    return (
        Check.within("objective", claim.objective, claim.objective_rounding, value, off),
        Check.at_most("gap", claim.gap, gap),
    )


def below(claim: Any) -> str:
    """How far below its objective nothing is, in words."""
    return f"below {claim.objective:.10g} by more than {claim.gap:.3g}"


def exactly(claim: Any, value: Fraction, bound: Fraction) -> tuple[Check, Check]:
    """The same without any rounding."""
    stated, allowed = Fraction(claim.objective), Fraction(claim.objective_rounding)
    close, gap = abs(value - stated) <= allowed, stated + allowed - bound
    said = f"{claim.objective:.12g} within {claim.objective_rounding:.2g}"
    tight = claim.gap == math.inf or gap <= Fraction(claim.gap)
    return (
        Check("objective", said, f"{nearest(value):.12g}", close),
        Check("gap", f"<= {claim.gap:.4g}", f"{nearest(gap):.4g}", tight),
    )


def nearest(value: Fraction) -> float:
    """A double near a rational number of any size, to be printed."""
    return float(max(min(value, Fraction(10**308)), Fraction(-(10**308))))
