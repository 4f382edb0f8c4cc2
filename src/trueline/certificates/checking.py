"""What checks are made of: claims and outcomes, and the data as the checker reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.doubled import (
    Doubled,
    evaluate_doubled,
    mean_doubled,
    objective_doubled,
)
from trueline.errors import VerificationError

__all__ = [
    "EPS",
    "FEW_ROWS",
    "ROWS",
    "UNDERFLOW",
    "Check",
    "Rows",
    "Verification",
    "check_objective",
    "objective_of",
]

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
ROWS = 2048
FEW_ROWS = 64
# Squares below the range of doubles vanish; so much is allowed for each row.
UNDERFLOW = 1e-305


@dataclass(frozen=True)
class Check:
    """One claim: its name, what was claimed, what was found, and whether it holds."""

    name: str
    claimed: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Verification:
    """The outcome of all checks; true if every one holds."""

    checks: tuple[Check, ...]

    @classmethod
    def of_other_data(cls, trouble: Exception) -> Verification:
        """The one check that fails when data cannot be those of the fit."""
        return cls((Check("data fit the model", "yes", str(trouble), False),))

    def __bool__(self) -> bool:
        return all(check.holds for check in self.checks)

    def raise_if_false(self) -> None:
        """Raise :class:`~trueline.errors.VerificationError` naming the claims that fail."""
        failed = [check for check in self.checks if not check.holds]
        if failed:
            lines = [f"{c.name}: claimed {c.claimed}, found {c.found}" for c in failed]
            raise VerificationError("The certificate does not hold: " + "; ".join(lines) + ".")

    def __str__(self) -> str:
        rows = [("check", "claimed", "found", "")]
        rows += [(c.name, c.claimed, c.found, "holds" if c.holds else "FAILS") for c in self.checks]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [
            "  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip()
            for row in rows
        ]
        verdict = "The certificate holds." if self else "The certificate does NOT hold."
        return "\n".join([*lines, verdict])


class Rows:
    """Data as blocks of dense float64 rows; weights and scaling applied on the way."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, certificate: Certificate) -> None:
        self.X: Any = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        if self.X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {self.X.ndim}.")
        self.n, self.d = self.X.shape
        self.row_terms = 0
        y = np.asarray(y, dtype=np.float64)
        self.y = y.reshape(-1, 1) if y.ndim == 1 else y
        if sample_weight is None:
            self.s = np.ones(self.n)
        else:
            given = np.asarray(sample_weight, dtype=np.float64)
            self.s = np.full(self.n, given) if given.ndim == 0 else given.copy()
        # Rows of weight zero are not there, whatever they hold.
        self.given = self.n
        self.keep: NDArray[np.bool_] | slice = slice(None)
        if len(self.y) == self.n and self.s.shape == (self.n,) and (self.s == 0).any():
            self.keep = self.s > 0
            self.X, self.y, self.s = self.X[self.keep], self.y[self.keep], self.s[self.keep]
            self.n = len(self.s)
        witness = certificate.witness
        self.x_power = witness.get("column_exponent")
        y_power = witness.get("target_exponent")
        if y_power is not None:
            self.y = np.ldexp(self.y, np.asarray(y_power, dtype=int))
        self.weight = float(self.s.sum())
        self._mean: tuple[Array, Array, Array] | None = None
        self._doubled: Doubled | None = None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        return self.blocks(keep_sparse=False)

    def blocks(self, *, keep_sparse: bool) -> Iterator[tuple[slice, Any]]:
        """Consecutive rows; those of a sparse matrix as they are where zeros may be left out."""
        keep_sparse = keep_sparse and sp.issparse(self.X) and self.x_power is None
        for start in range(0, self.n, ROWS):
            rows = slice(start, min(start + ROWS, self.n))
            block = self.X[rows]
            if keep_sparse:
                yield rows, block.astype(np.float64, copy=False)
                continue
            dense = block.toarray() if sp.issparse(block) else block
            dense = np.asarray(dense, dtype=np.float64)
            if self.x_power is not None:
                dense = np.ldexp(dense, np.asarray(self.x_power, dtype=int))
            yield rows, dense

    def mean(self) -> tuple[Array, Array, Array]:
        """Means of the columns as doubled numbers, and a bound on their error."""
        if self._mean is None:
            self._mean = mean_doubled(self)
        return self._mean

    def doubled(self, certificate: Certificate, curvature: Array) -> Doubled:
        """Everything about a quadratic problem, in twice the digits."""
        if self._doubled is None:
            self._doubled = evaluate_doubled(certificate, self, curvature)
        return self._doubled

    def objective_doubled(self, certificate: Certificate) -> tuple[float, float]:
        """The objective in twice the digits, and a bound on its error."""
        if "quadratic" in certificate.loss.capabilities & certificate.penalty.capabilities:
            curvature = np.broadcast_to(certificate.penalty.curvature, certificate.coef.shape)
            found = self.doubled(certificate, curvature)
            return found.objective, found.objective_rounding
        return objective_doubled(certificate, self)

    def problems(self, certificate: Certificate) -> str | None:
        """What makes this data unfit for the certificate, or None."""
        d, k = certificate.coef.shape
        if (self.d, self.y.shape, self.s.shape) != (d, (self.n, k), (self.n,)):
            return f"X {self.X.shape}, y {self.y.shape}, weights {self.s.shape}"
        if not np.isfinite(self.y).all() or not np.isfinite(self.s).all() or (self.s < 0).any():
            return "y or weights not finite, or negative weights"
        for _, block in self.blocks(keep_sparse=True):
            numbers = block.data if sp.issparse(block) else block
            if not np.isfinite(numbers).all():
                return "X not finite"
            # A zero adds nothing to a sum, not even rounding: count what is there in a row.
            counts = np.diff(block.indptr) if sp.issparse(block) else None
            counts = np.count_nonzero(block, axis=1) if counts is None else counts
            self.row_terms = max(self.row_terms, int(counts.max(initial=0)))
        if not (np.isfinite(certificate.coef).all() and np.isfinite(certificate.intercept).all()):
            return "coefficients not finite"
        if not certificate.fit_intercept and certificate.intercept.any():
            return "an intercept where there is none"
        return None


def check_objective(certificate: Certificate, rows: Rows) -> Check:
    """sum_i s_i loss(y_i, z_i) + penalty(W) lies within the claimed rounding of the claim."""
    allowed = certificate.objective_rounding
    total, rounding = objective_of(certificate, rows)
    holds = abs(total - certificate.objective) + rounding <= allowed
    if not holds and np.isfinite(allowed):
        total, rounding = rows.objective_doubled(certificate)
        holds = abs(total - certificate.objective) + rounding <= allowed
    return Check(
        "objective",
        f"{certificate.objective:.12g} within {allowed:.2g}",
        f"{total:.12g} within {rounding:.2g}",
        bool(holds),
    )


def objective_of(certificate: Certificate, rows: Rows) -> tuple[float, float]:
    """The objective in double precision, and a bound on its error."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    total = certificate.penalty.value(W)
    rounding = (rows.d + 8) * EPS * abs(total)
    for where, block in rows.blocks(keep_sparse=True):
        z, s, y = np.asarray(block @ W) + b, rows.s[where, None], rows.y[where]
        value = s * loss.value(y, z)
        total += float(value.sum())
        # The score errs by the terms of a row + 2, times eps and the magnitudes; the loss passes
        # that on.
        reach = (rows.row_terms + 2) * EPS * (abs(block) @ np.abs(W) + np.abs(b))
        slope = np.abs(loss.gradient(y, z)) + reach * loss.most_curvature(y, z, reach)
        slope = np.minimum(slope, loss.slope_bound)
        rounding += float((s * slope * reach).sum())
        rounding += (ROWS + 8) * EPS * float(np.abs(value).sum())
    rounding += (rows.n / ROWS + 8) * EPS * abs(total)
    return total, rounding + UNDERFLOW * rows.n
