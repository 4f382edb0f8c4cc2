r"""Claims about coefficients: what they say, and the objective with bounds on its rounding.

Coefficients beside others that are proven.

*Theorem.* If no coefficients have an objective below P(v) - g, none have one below
P(w) - [P(w) - P(v) + g]. *Proof.* Both are the same number. []

The proof at v is that of the stated kind; here the two objectives are compared. Coefficients that
were rounded to single precision are proven in this way.

Read from the certificate: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef,
intercept; witness: proven_coef, proven_intercept, proven_objective, proven_rounding, proven_gap,
and what the proof at v reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from trueline.check.arithmetic import (
    EPS,
    SMALLEST,
    Array,
    exact_product,
    fsum,
    sum_units,
    tree_sum,
    two_sum,
)
from trueline.check.losses import Loss, loss_of
from trueline.check.penalties import Penalty, penalty_of
from trueline.check.rows import Rows, centre
from trueline.check.schema import CLAIMS, Field, get, is_builtin, parameters, read, witness_of
from trueline.check.verdict import Check, Refused, Verification

Fields = Mapping[str, Field]

#: Of a claim about coefficients.
ABOUT = {
    **CLAIMS,
    "coef": Field(("d", "k")),
    "intercept": Field(("k",)),
    "fit_intercept": Field(kind="boolean"),
    "loss": Field(kind="any"),
    "penalty": Field(kind="any"),
}
#: Powers of two that columns and targets were multiplied with.
UNITS = {
    "column_exponent": Field(("d",), "integer", low=-2200, high=2200, optional=True),
    "target_exponent": Field(("k",), "integer", low=-2200, high=2200, optional=True),
}
_FEW = 64  # rows that are added one after the other


def read_about(
    loss: str, penalty: str, certificate: Any, rows: Rows | Mapping[str, int], witness: Fields
) -> SimpleNamespace:
    """A claim about this loss and penalty, with their parameters as one mapping ``strength``.

    Where there are several names of penalties, it is about one of them; ``rows`` tells the sizes.
    """
    sizes = rows if isinstance(rows, Mapping) else {"n": rows.n, "d": rows.d, "k": rows.k}
    claim = read(certificate, ABOUT, witness, dict(sizes))
    own = is_builtin(claim.loss, "losses") and is_builtin(claim.penalty, "penalties")
    found = parameters(claim.loss), parameters(claim.penalty)
    if not own or found[0]["name"] != loss or found[1]["name"] not in penalty.split():
        raise Refused(f"the claim is not about the loss {loss} and the penalty {penalty}")
    _require_intercept(claim)
    claim.strength = {**found[0], **found[1]}
    return claim


def _require_intercept(claim: Any) -> None:
    if not claim.fit_intercept and claim.intercept.any():
        raise Refused("an intercept where there is none")


def require_signs(rows: Rows) -> None:
    """Refuse targets other than one of -1 and +1."""
    if rows.k != 1 or not np.isin(rows.y, (-1.0, 1.0)).all():
        raise Refused("the targets are not -1 and +1")


def judged(claim: Any, value: Any, error: Any, bound: Any) -> tuple[Check, Check]:
    """Objective and gap of a claim against what was found, without any rounding of its own."""
    value, error, bound = (
        Fraction(v) if -np.inf < v < np.inf else v for v in (value, error, bound)
    )
    stated, allowed = Fraction(claim.objective), Fraction(claim.objective_rounding)
    off, gap = abs(value - stated) + error, stated + allowed - bound
    said = f"{claim.objective:.12g} within {claim.objective_rounding:.2g}"
    near = f"{_nearest(value):.12g} within {_nearest(error):.2g}"
    return (
        Check("objective", said, near, bool(off <= allowed)),
        Check("gap", f"<= {claim.gap:.4g}", f"{_nearest(gap):.4g}", bool(gap <= claim.gap)),
    )


def _nearest(value: Any) -> float:
    """A double near a rational number of any size, to be printed."""
    return float(max(min(value, Fraction(10**308)), Fraction(-(10**308))))


def below(claim: Any) -> str:
    """How far below its objective nothing is, in words."""
    return f"below {claim.objective:.10g} by more than {claim.gap:.3g}"


class Claim:
    """A claim about coefficients, with the data and the formulas that it is about.

    Attributes
    ----------
    rows : Rows
    loss : Loss
    penalty : Penalty
    W, b : arrays of shape (d, k) and (k,)
    y : array of shape (n, k)
        As the loss is given it: zero for losses of the residual.
    centre : array of shape (d,)
        What columns are counted from: about their means, zero without an intercept.
    z, low, off : arrays of shape (n, k)
        Scores (or residuals) are z + low up to off; see :meth:`evaluate`.
    scale : float, optional
        Of Huber's regression that minimises over it as well.
    constant : float
        What the objective has beside losses and penalty.
    """

    def __init__(
        self, fields: SimpleNamespace, X: Any, y: Any, sample_weight: Any, loss: Loss | None = None
    ) -> None:
        self.fields = fields
        self.W, self.b = fields.coef, fields.intercept
        # The means of the columns show infinity and NaN, without another pass over the data.
        x_power, y_power = (getattr(fields, name, None) for name in UNITS)
        rows = Rows(X, y, sample_weight, x_power, y_power, finite=not fields.fit_intercept)
        if (rows.d, rows.k) != self.W.shape:
            raise Refused(f"{rows.d} columns and {rows.k} targets, coefficients {self.W.shape}")
        _require_intercept(fields)
        self.rows, self.has_intercept = rows, bool(fields.fit_intercept)
        self.loss: Loss = loss_of(fields.loss, rows.k) if loss is None else loss
        self.scale: float | None = None
        self.constant = 0.0
        self.penalty: Penalty = penalty_of(fields.penalty, self.W.shape)
        self.loss.check_target(rows.y)
        if not self.penalty.admits(self.W):
            raise Refused("coefficients outside the domain of the penalty")
        self.y = np.zeros_like(rows.y) if self.loss.is_residual else rows.y
        self.centre = centre(rows, self.has_intercept and not rows.is_sparse)
        if not np.isfinite(self.centre).all():
            raise Refused("X is not finite, or so large that its sums are not")
        self.z, self.low, self.off = (np.zeros_like(self.y) for _ in range(3))

    def means(self) -> Array:
        """Weighted means of the columns, up to rounding; zero without an intercept."""
        return self.centre if self.centre.any() else centre(self.rows, self.has_intercept)

    @property
    def ceiling(self) -> float:
        """At least the objective, once it was checked."""
        return self.fields.objective + self.fields.objective_rounding

    @property
    def is_own(self) -> bool:
        """Whether the formulas are the checker's own: no objective is negative."""
        return not self.loss.note and not self.penalty.note

    def statement(self) -> str:
        """What is proven about the objective, in a sentence."""
        fields = self.fields
        notes = [note for note in (self.loss.note, self.penalty.note) if note]
        if any(getattr(fields, name, None) is not None for name in UNITS):
            notes.append("in units that are multiplied by the stated powers of two")
        return (
            f"the objective is {fields.objective:.10g} within {fields.objective_rounding:.2g}, and "
            f"no coefficients give one that is lower by more than {fields.gap:.4g}"
        ) + "".join(f", {note}" for note in notes)

    def evaluate(self, doubled: bool) -> None:
        """Scores with bounds on their error, in double precision or twice its digits."""
        if doubled:  # blocks are dense then, and sums about the means lose less
            self.centre = self.means()
        minus, centre = self.rows.y if self.loss.is_residual else None, self.centre
        found = self.rows.scores(self.W, self.b, minus, None if doubled else centre, doubled)
        self.z, self.low, self.off = found

    def losses(self) -> tuple[float, float]:
        """The weighted sum of the losses, and a bound on its error."""
        s, y, z, off = self.rows.s[:, None], self.y, self.z, self.off + np.abs(self.low)
        off = off + self.loss.score_units * EPS * np.abs(z)
        value = s * self.loss.value(y, z)
        if self.loss.is_coupled:  # an error of one score is felt by all of its row
            off = np.broadcast_to(np.sqrt((off**2).sum(axis=1, keepdims=True)), off.shape)
        steep = np.full(z.shape, self.loss.steepest, dtype=np.float64)
        if self.loss.is_smooth:
            curvature = self.loss.most_curvature(y, z, off)
            steep = np.minimum(np.abs(self.loss.slope(y, z)) + curvature * off, steep)
        error = float((s * steep * off).sum()) + 64 * EPS * float(np.abs(value).sum())
        return fsum(value), error * (1 + 1e-9) + self.rows.floor

    def check_objective(self) -> Check:
        """The objective lies within the claimed rounding of the claim."""
        total, error = self.losses()
        penalty, rounding = self.penalty.value(self.W)
        total, error = total + penalty + self.constant, error + rounding
        error += 4 * EPS * abs(total)
        fields = self.fields
        return Check.within("objective", fields.objective, fields.objective_rounding, total, error)

    def sums(
        self, weighted: Array, rest: Array, error: Array, doubled: bool
    ) -> tuple[Array, Array, Array]:
        """sum_i (weighted + rest)_i (x_i - centre), its error, and sum_i s_i (x_i - centre)^2.

        ``rest`` is what double precision leaves of the weighted numbers, ``error`` bounds their
        error.
        """
        rows, middle = self.rows, self.centre
        d, k = rows.d, weighted.shape[1]
        parts: list[Array] = []
        low, off, squares = np.zeros((d, k)), np.zeros((d, k)), np.zeros(d)
        is_sparse, longest = rows.is_sparse and not middle.any(), min(rows.n, _FEW)
        if is_sparse:  # zeros add nothing, not even rounding
            longest = int(np.bincount(rows.X.indices, minlength=1).max(initial=1)) + 1
        units = (longest + math.log2(rows.n / _FEW + 2) + 16) * EPS
        if doubled:
            units = sum_units(rows.n) + (rows.n + 16) * EPS**2
        made = partial(_summed, middle, units, rows.n * EPS, doubled, is_sparse)
        for block in rows.each(made, weighted, rest, error, rows.s, dense=doubled):
            parts += block[0]
            low, off, squares = low + block[1], off + block[2], squares + block[3]
        high, small = tree_sum(np.stack(parts))
        total = high + (small + low)
        return total, off * (1 + 1e-9) + 2 * EPS * np.abs(total) + rows.n * SMALLEST, squares


def _summed(
    middle: Array,
    units: float,
    share: float,
    doubled: bool,
    is_sparse: bool,
    block: Any,
    own: Array,
    rest: Array,
    error: Array,
    s: Array,
) -> tuple[list[Array], Array, Array, Array]:
    """Sums over few rows each, what is beneath them, a bound on errors, and sums of squares."""
    k, low, parts = own.shape[1], np.zeros((len(middle), own.shape[1])), []
    if doubled:
        centred, beneath = two_sum(block, -middle)
        for t in range(k):
            products, slack = exact_product(centred, own[:, t : t + 1])
            high, small = tree_sum(products)
            parts.append(np.where(np.arange(k) == t, high[:, None], 0.0))
            low[:, t] += small + slack.sum(axis=0) + own[:, t] @ beneath
    else:
        centred = np.asarray(block - middle) if middle.any() else block
        few = max(len(own), 1) if is_sparse else _FEW
        starts = range(0, len(own), few)
        parts += [np.asarray(centred[i : i + few].T @ own[i : i + few]) for i in starts]
    low += np.asarray(centred.T @ rest)
    fuzzy = units * np.abs(own) + share * np.abs(rest) + error
    squares = np.asarray((centred * centred).T @ s).reshape(len(middle))
    return parts, low, np.asarray(abs(centred).T @ fuzzy), squares


def read_claim(certificate: Any, witness: Fields, X: Any, y: Any, sample_weight: Any) -> Claim:
    """The claim of a certificate about coefficients."""
    return Claim(read(certificate, ABOUT, {**UNITS, **witness}, {}), X, y, sample_weight)


# --- coefficients beside others ------------------------------------------------------------------

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
