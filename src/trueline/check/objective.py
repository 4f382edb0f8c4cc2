"""The objective at the coefficients: scores, losses and penalty, with bounds on their rounding."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, SMALLEST, exact_product, residual_doubled, sum_units
from trueline.check.losses import Loss, loss_of
from trueline.check.penalties import Penalty, penalty_of
from trueline.check.rows import Rows
from trueline.check.schema import CLAIMS, Field, read
from trueline.check.verdict import Check, Refused

__all__ = ["Claim", "read_claim"]

Array = NDArray[np.float64]

_FIELDS = {
    **CLAIMS,
    "coef": Field(("d", "k")),
    "intercept": Field(("k",)),
    "fit_intercept": Field(kind="boolean"),
    "loss": Field(kind="any"),
    "penalty": Field(kind="any"),
}
_UNITS = {
    "column_exponent": Field(("d",), "integer", low=-2200, high=2200, optional=True),
    "target_exponent": Field(("k",), "integer", low=-2200, high=2200, optional=True),
}


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
    """

    def __init__(self, fields: SimpleNamespace, X: Any, y: Any, sample_weight: Any) -> None:
        self.fields = fields
        self.W, self.b = fields.coef, fields.intercept
        powers = fields.column_exponent, fields.target_exponent
        # The means of the columns tell of infinity and NaN, without another pass over the data.
        rows = Rows(X, y, sample_weight, *powers, finite=not fields.fit_intercept)
        if (rows.d, rows.k) != self.W.shape:
            raise Refused(f"{rows.d} columns and {rows.k} targets, coefficients {self.W.shape}")
        if not fields.fit_intercept and self.b.any():
            raise Refused("an intercept where there is none")
        self.rows, self.has_intercept = rows, bool(fields.fit_intercept)
        self.loss: Loss = loss_of(fields.loss, rows.k)
        self.penalty: Penalty = penalty_of(fields.penalty, self.W.shape)
        self.loss.check_target(rows.y)
        if not self.penalty.admits(self.W):
            raise Refused("coefficients outside the domain of the penalty")
        self.y = np.zeros_like(rows.y) if self.loss.is_residual else rows.y
        self.centre = np.zeros(rows.d)
        if self.has_intercept and not rows.is_sparse:
            self.centre = self.means()
            if not np.isfinite(self.centre).all():
                raise Refused("X is not finite, or so large that its sums are not")
        self.z, self.low, self.off = (np.zeros_like(self.y) for _ in range(3))

    def means(self) -> Array:
        """Weighted means of the columns, up to rounding; zero without an intercept."""
        if not self.has_intercept or self.centre.any():
            return self.centre
        rows = self.rows
        total = sum((rows.s[where] @ block for where, block in rows.blocks()), np.zeros(rows.d))
        return np.asarray(total / rows.weight)

    @property
    def ceiling(self) -> float:
        """At least the objective, once it was checked."""
        return self.fields.objective + self.fields.objective_rounding

    def note(self) -> str:
        """What the statement says about units and formulas of others."""
        notes = [note for note in (self.loss.note, self.penalty.note) if note]
        if self.fields.column_exponent is not None or self.fields.target_exponent is not None:
            notes.append("in units that are multiplied by the stated powers of two")
        return "".join(f", {note}" for note in notes)

    def statement(self) -> str:
        """What is proven about the objective, in a sentence."""
        fields = self.fields
        return (
            f"the objective is {fields.objective:.10g} within {fields.objective_rounding:.2g}, and "
            f"no coefficients give one that is lower by more than {fields.gap:.4g}{self.note()}"
        )

    def evaluate(self, doubled: bool) -> None:
        """Scores with bounds on their error, in double precision or twice its digits."""
        rows, W = self.rows, self.W
        minus = rows.y if self.loss.is_residual else np.zeros_like(rows.y)
        level = self.b
        if self.centre.any() and not doubled:
            high, low = exact_product(self.centre[:, None], W)
            if not np.isfinite(low).all():
                raise Refused("scores leave the range of doubles")
            level = np.array([
                math.fsum([float(b), *high[:, t].tolist(), *low[:, t].tolist()])
                for t, b in enumerate(self.b)
            ])  # fmt: skip
        for where, block in rows if doubled else rows.blocks():
            if not doubled:
                block = block - self.centre if self.centre.any() else block
                self.z[where] = (np.asarray(block @ W) + level) - minus[where]
            size = np.asarray(abs(block) @ np.abs(W))
            size = size + np.abs(self.b if doubled else level) + np.abs(minus[where])
            self.off[where] = (rows.row_terms + 6) * EPS * size + (rows.d + 4) * SMALLEST
            for t in range(W.shape[1] if doubled else 0):
                both = residual_doubled(block, W[:, t], float(self.b[t]), minus[where, t])
                self.z[where, t], self.low[where, t] = both
                self.off[where, t] = sum_units(rows.d + 2) * size[:, t] + (rows.d + 4) * SMALLEST

    def losses(self) -> tuple[float, float]:
        """The weighted sum of the losses, and a bound on its error."""
        s, y, z, off = self.rows.s[:, None], self.y, self.z, self.off + np.abs(self.low)
        off = off + self.loss.score_units * EPS * np.abs(z)
        value = s * self.loss.value(y, z)
        if self.loss.is_coupled:  # an error of one score is felt by all of its row
            off = np.broadcast_to(np.sqrt((off**2).sum(axis=1, keepdims=True)), off.shape)
        steep = np.full(z.shape, self.loss.steepest, dtype=np.float64)
        if self.loss.is_smooth:
            curvature = self.loss.most_bend(y, z, off)
            steep = np.minimum(np.abs(self.loss.slope(y, z)) + curvature * off, steep)
        error = float((s * steep * off).sum()) + 64 * EPS * float(np.abs(value).sum())
        return math.fsum(value.ravel().tolist()), error * (1 + 1e-9) + rows_floor(self.rows)

    def check_objective(self) -> Check:
        """The objective lies within the claimed rounding of the claim."""
        total, error = self.losses()
        penalty, rounding = self.penalty.value(self.W)
        total, error = total + penalty, error + rounding + 2 * EPS * abs(total + penalty)
        claimed, allowed = self.fields.objective, self.fields.objective_rounding
        return Check(
            "objective",
            f"{claimed:.12g} within {allowed:.2g}",
            f"{total:.12g} within {error:.2g}",
            bool(abs(total - claimed) + error <= allowed),
        )


def rows_floor(rows: Rows) -> float:
    """What underflow may hide in a sum over the rows."""
    return 1e-305 * rows.n


def read_claim(
    certificate: Any, witness: dict[str, Field], X: Any, y: Any, sample_weight: Any
) -> Claim:
    """The claim of a certificate about coefficients."""
    return Claim(read(certificate, _FIELDS, {**_UNITS, **witness}, {}), X, y, sample_weight)
