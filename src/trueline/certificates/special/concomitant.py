r"""Proof of Huber regression with its scale: a dual point, the natural one or one that is given.

With r_i = x_i.w + b - y_i and H as in :class:`~trueline.problem.ConcomitantProblem`,

    sigma H(r / sigma) = max over |u| <= 2 epsilon of  u r - sigma u^2 / 4.

Exchanging minimum and maximum, sigma >= 0 asks for sum_i s_i u_i^2 / 4 <= sum_i s_i, the intercept
for sum_i s_i u_i = 0, and what is left is minimised by w = -X^T (s u) / (2 alpha):

    D(u) = - sum_i s_i u_i y_i - ||X^T (s u)||^2 / (4 alpha).

At the minimum u_i = clip(2 r_i / sigma, -2 epsilon, 2 epsilon). What rounding leaves of sum_i s_i
u_i is made up for by shrinking the u_i of one sign by a share eta; V = X^T (s u) that no penalty
pays for is brought to -2 alpha w by taking off d = X_c G^-1 (V + 2 alpha w), G = X_c^T S X_c, whose
size the inverse of a factor of G bounds; where there is none, the proof is about coefficients
within a radius.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrcon, dtrtri

from trueline.certificates.base import Certificate
from trueline.certificates.duality import STRETCH, pull_rows
from trueline.design import Design
from trueline.numerics.precision import sum_doubled
from trueline.problem import ConcomitantProblem, Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 1024
# Coefficients and levels so many times larger than those of the data are still covered.
_RADIUS = 10.0
_UNDERFLOW = 1e-290
# Columns whose correlations are worse conditioned than this depend on each other.
_SINGULAR = 1e10


@dataclass(frozen=True)
class Columns:
    """What the proofs of all points have in common: sizes of the columns, a factor of them.

    Attributes
    ----------
    parts : Problem
    mean : array of shape (d,)
        Zero without an intercept.
    spread, magnitude : arrays of shape (d,)
        At least sqrt(sum_i s_i (x_ij - mean_j)^2), and sqrt(sum_i s_i x_ij^2).
    """

    parts: Problem
    mean: Array
    spread: Array
    magnitude: Array

    @classmethod
    def of(cls, parts: Problem) -> Columns:
        """Read from the rows."""
        design, weights = parts.design, parts.weights
        mean = design.column_means(weights) if parts.fit_intercept else np.zeros(parts.n_features)
        spread, size = (np.sqrt(design.column_squares(weights, c)) for c in (mean, None))
        return cls(parts, mean, spread * (1 + 1e-6), size * (1 + 1e-6))

    @cached_property
    def row_terms(self) -> float:
        """Products that are added up to a score: of sparse rows those that are not zero."""
        known = self.parts.design.accuracy(self.parts.weights, self.magnitude)
        return min(known.row_terms, self.parts.n_features)

    @cached_property
    def groups(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Columns that vary (are not zero, without an intercept), one of each group of copies.

        And for each column the first of its group.
        """
        low, high, digests = self.parts.design.summed(_seen, add=_both_seen)
        varies = low != high if self.parts.fit_intercept else (low != 0) | (high != 0)
        seen: dict[bytes, int] = {}
        first = np.array([seen.setdefault(x, j) for j, x in enumerate(digests)], dtype=np.intp)
        return np.unique(first[varies]), first

    @cached_property
    def inverse(self) -> tuple[Array | None, float]:
        """M with M^T G M = 1 for the Gram matrix of these columns; the longest row x^T M."""
        kept, parts, centre = self.groups[0], self.parts, self.mean
        if parts.n_samples < len(kept):
            return None, 0.0

        def factor(part: Design, s: Array) -> Array:
            R = np.zeros((0, len(kept)))
            for where, block in part.blocks(_BLOCK_ROWS):
                R = _triangle(R, np.sqrt(s[where, None]) * (block - centre)[:, kept])
            return R

        s = np.ones(parts.n_samples) if parts.weights is None else parts.weights
        R = parts.design.summed(factor, s, add=_triangle)
        size = np.sqrt(np.square(R).sum(axis=0))
        if len(R) < len(kept) or not (size > 0).all() or dtrcon(R / size)[0] < 1 / _SINGULAR:
            return None, 0.0
        inverse = np.asarray(dtrtri(R)[0], dtype=np.float64)

        def longest(part: Design) -> float:
            rows = (((block - centre)[:, kept] @ inverse) for _, block in part.blocks(_BLOCK_ROWS))
            return max(float(np.square(own).sum(axis=1).max(initial=0.0)) for own in rows)

        return inverse, math.sqrt(parts.design.summed(longest, add=max))

    def unexplained(self, a: Array) -> float:
        """At least the norm of what coefficients a of the groups leave of the target."""
        kept, parts, centre = self.groups[0], self.parts, self.mean
        s = np.ones(parts.n_samples) if parts.weights is None else parts.weights
        y = parts.target[:, 0]
        level = float(s @ y) / float(s.sum()) if parts.fit_intercept else 0.0

        def square(part: Design, y: Array, s: Array) -> float:
            total = 0.0
            for where, block in part.blocks(_BLOCK_ROWS):
                centred = (block - centre)[:, kept]
                off = (len(a) + 8) * _EPS * (np.abs(y[where] - level) + np.abs(centred) @ np.abs(a))
                total += float(s[where] @ (np.abs(y[where] - level - centred @ a) + off) ** 2)
            return total

        return math.sqrt(parts.design.summed(square, y, s))


def certify_concomitant(
    problem: ConcomitantProblem,
    w: Array,
    b: float,
    scale: float,
    u: Array | None,
    columns: Columns | None = None,
) -> Certificate:
    """The certificate of a point.

    Parameters
    ----------
    problem : ConcomitantProblem
    w, b, scale : array of shape (d,), float, float
    u : array of shape (n,), optional
        The dual point; by default the natural one.
    columns : Columns, optional
        Kept by whoever proves several points.
    """
    parts, epsilon = problem.parts, problem.epsilon
    columns = columns or Columns.of(parts)
    y, n = parts.target[:, 0], parts.n_samples
    s = np.ones(n) if parts.weights is None else parts.weights
    total = float(s.sum())
    units = (np.log2(n + 2) + 40) * _EPS
    residual = parts.design.matvec(w) + b - y
    values = s * problem.row_values(residual, scale)
    penalty, own = problem.alpha * float(w @ w), total * scale
    objective = own + float(values.sum()) + penalty
    y_size = np.sqrt(float((s * y) @ y)) * (1 + 1e-6)
    size = float(columns.magnitude @ np.abs(w)) + np.sqrt(total) * abs(b) + y_size
    rounding = 2 * epsilon * np.sqrt(total) * (columns.row_terms + 4) * _EPS * size
    rounding += (units + 20 * _EPS) * (own + float(values.sum())) + (len(w) + 32) * _EPS * penalty
    if u is None:
        u = 2 * np.clip(residual / scale, -epsilon, epsilon) if scale > 0 else None
    if u is None:
        raise ValueError("a scale of zero has no natural dual point: give one.")
    u = np.clip(u, -2 * epsilon, 2 * epsilon)
    if parts.fit_intercept:
        u = _balanced(u, s, 2 * epsilon)
    square = float((s * u) @ u) / 4
    if square > total * (1 - 4 * units):
        u = u * np.sqrt(total * (1 - 6 * units) / square)
    wide = columns.spread if parts.fit_intercept else columns.magnitude
    weighted = s * u
    V = pull_rows(parts, columns.mean, weighted[:, None])[:, 0]
    # Once for these sums, twice for those of whoever checks them.
    u_size = np.sqrt(float(weighted @ u)) * (1 + 1e-6)
    share = 0.0
    if parts.fit_intercept:
        total_u = float(np.abs(weighted).sum())
        share = 2.2 * (abs(float(sum_doubled(weighted)[0])) / total_u + units) if total_u else 0.0
    error = 3 * ((STRETCH + 16 + np.log2(n + 2)) * _EPS + share) * wide * u_size
    level = float((s * y).sum() / total) if parts.fit_intercept else 0.0
    beside = np.abs(y - level)
    products = weighted * (y - level)
    room = 1.5 * (units + share) * float(np.abs(products).sum())
    lower = -float(products.sum()) - room
    lower -= _cost(problem, columns, V, error, w, s, lower, objective, beside, wide, u_size)
    lower -= 16 * _EPS * abs(lower)
    rounding = 2 * rounding + _UNDERFLOW
    gap = (objective + rounding) * (1 + 16 * _EPS) - max(lower, 0.0)
    witness = {"scale": np.array([scale]), "dual": u[:, None]}
    gap, levels = max(gap, 0.0) + _UNDERFLOW, np.array([b])
    return Certificate.about(
        parts, "concomitant", w[:, None], levels, objective, rounding, gap, witness
    )


def _cost(
    problem: ConcomitantProblem,
    columns: Columns,
    V: Array,
    error: Array,
    w: Array,
    s: Array,
    value: float,
    objective: float,
    beside: Array,
    wide: Array,
    u_size: float,
) -> float:
    """What is to be taken off for correlations V, known up to an error, with room."""
    most = np.abs(V) + error
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        beyond = np.where(most > 0, most * (most / (4 * problem.alpha)), 0.0)
    paid = float(beyond.sum()) * (1 + (len(w) + 16) * _EPS)
    # What is left after the penalty itself is next to nothing: look no further.
    needed = problem.alpha * float(w @ w)
    if paid <= needed + 1e-12 * objective:
        return paid
    # Only a penalty that is lost in the rounding of V may be left out of account.
    if (2 * problem.alpha * np.abs(w) > error).any():
        return paid
    target_size = np.sqrt(float((s * beside) @ beside)) * (1 + 1e-6)
    with np.errstate(divide="ignore"):
        alone = np.where(wide > 0, target_size / wide, 0.0)
    within = 1.01 * most * _RADIUS * (np.abs(w) + alone)
    near = float(np.minimum(within, beyond).sum()) * (1 + (len(w) + 16) * _EPS)
    inverse, longest = columns.inverse
    if inverse is None:
        return near
    kept, first = columns.groups
    count, shared = np.zeros(len(w)), np.zeros(len(w))
    np.add.at(count, first, 1.0)
    np.add.at(shared, first, w)
    count, shared = count[kept], shared[kept]
    rest = np.abs(V[kept] + 2 * problem.alpha * shared / count) + error[kept]
    kappa = float(np.linalg.norm(np.abs(inverse).T @ rest))
    grown = max(kappa * longest / (2 * problem.epsilon), kappa / max(u_size, 1e-300))
    moved = kappa * columns.unexplained(shared) + float(rest @ np.abs(shared)) + grown * abs(value)
    needed = problem.alpha * float((shared * shared / count).sum()) * (1 + 1e-14)
    # For all coefficients, unless what that costs shows.
    return 1.5 * moved + needed if moved <= 6e-8 * objective else min(near, paid)


def _seen(part: Design) -> tuple[Array, Array, list[bytes]]:
    """The least and the largest of each column, and digests that show equal columns."""
    X = part.toarray()
    columns = np.ascontiguousarray(X.T) + 0.0  # of the two zeros one
    return X.min(axis=0), X.max(axis=0), [hashlib.sha256(x.tobytes()).digest() for x in columns]


def _both_seen(one: Any, other: Any) -> tuple[Array, Array, list[bytes]]:
    """The same of two parts."""
    digests = [a + b for a, b in zip(one[2], other[2])]
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1]), digests


def _triangle(R: Array, rows: Array) -> Array:
    """The factor of both together."""
    return np.asarray(np.linalg.qr(np.vstack([R, rows]), mode="r"), dtype=np.float64)


def _balanced(u: Array, s: Array, bound: float) -> Array:
    """u with sum_i s_i u_i = 0, as far as rounding lets it, and still within the bound.

    What is missing is shared by the rows inside the bound, whose u is free to move.
    """
    inside = np.abs(u) < bound * (1 - 1e-9)
    room = float(s @ inside)
    if room == 0.0:
        return u
    u = u - inside * (float((s * u).sum()) / room)
    u = u - inside * (float(sum_doubled(s * u)[0]) / room)
    return np.clip(u, -bound, bound)
