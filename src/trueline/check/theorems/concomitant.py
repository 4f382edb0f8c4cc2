r"""Huber's regression with its scale: a dual point that is made feasible exactly.

Minimised over w, b and sigma >= 0 is, with r_i = x_i.w + b - y_i and S = sum_i s_i,

    F = sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,
    H(t) = t^2 where |t| <= epsilon, 2 epsilon |t| - epsilon^2 beyond; sigma = 0: 2 epsilon |r|.

Theorem. Every u with |u_i| <= 2 epsilon, sum_i s_i u_i^2 <= 4 S and, with an intercept,
sum_i s_i u_i = 0 proves F >= -sum_i s_i u_i y_i - ||X^T (s u)||^2 / (4 alpha).

Proof. sigma H(r / sigma) >= u r - sigma u^2 / 4; the least over sigma >= 0, b and w is the bound.

Any stated u is made feasible. (a) With e = sum_i s_i u_i, the u_i of the heavier sign are
multiplied by 1 - eta, eta = |e| / sum of their s_i |u_i|; columns and target may then be counted
from their means. (b) V = X_c^T (s u) costs V_j^2 / (4 alpha), or is brought to -2 alpha w, the w
stated, by taking off d = X_c G^-1 Z, Z = V + 2 alpha w, G = X_c^T S X_c: with M^T G M >= nu I,
sum_i s_i d_i^2 <= kappa^2 = |M^T Z|^2 / nu, |d_i| <= kappa |M^T x_i| / sqrt(nu), and the bound
changes by sum_i s_i d_i y_i = sum_i s_i d_i (y_i - x_i.a) + Z.a for any a. The V of a constant
column is zero, those of g copies are equal: such are one column, with the mean of their w, and cost
g V^2 / (4 alpha). Without a penalty, other combinations of columns need no Z of their own.
(c) All of u is multiplied by a number up to 1 that brings it within the two bounds. Where none of
this is enough, a condition states how large coefficients may be.

Sums of numbers are rounded once, and so are sums over the rows of a block (a tree of
exact additions): what errs are their terms, by a few eps of their magnitudes.

Read: objective, objective_rounding, gap, loss (epsilon), penalty (alpha), fit_intercept, coef,
intercept; of the witness scale (sigma) and dual (u, of the rows with a positive weight).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, SMALLEST, Array, Indices, fsum, tree_sum
from trueline.check.claims import below, judged, read_about
from trueline.check.rows import (
    Rows,
    Table,
    centre,
    dense,
    independent_columns,
    inverse_basis,
    scores,
)
from trueline.check.schema import Field, read
from trueline.check.verdict import Refused, Verification

_STRENGTH = {"delta": Field(low=1e-100, high=1e100), "alpha": Field(low=0.0, high=1e100)}
_UNITS = 16 * EPS


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a claim about Huber's regression with its scale."""
    rows = Rows(X, y, sample_weight)
    if rows.k != 1:
        raise Refused("there is one target")
    witness = {"scale": Field((1,), low=0.0), "dual": Field(("n", 1))}
    claim = read_about("huber", "l2", certificate, rows, witness)
    strength = read(claim.strength, _STRENGTH, {}, {})
    claim.epsilon, claim.alpha = strength.delta, strength.alpha / 2
    objective, rounding = _objective(rows, claim)
    lower, conditions = _lower_bound(rows, claim)
    said = f"no coefficients and no scale have an objective {below(claim)}"
    return Verification(judged(claim, objective, rounding, lower), said, conditions)


def _objective(rows: Rows, claim: Any) -> tuple[float, float]:
    """F and a bound on the error of evaluating it."""
    sigma, epsilon, s, y = float(claim.scale[0]), claim.epsilon, rows.s, rows.y[:, 0]
    z, off = (part[:, 0] for part in scores(rows.X, claim.coef, claim.intercept))
    r, off = np.abs(z - y), off + EPS * (np.abs(z) + np.abs(y))
    steep = np.minimum(r, epsilon * sigma) / sigma if sigma > 0 else np.full_like(r, epsilon)
    value, penalty = steep * (2 * r - steep * sigma), claim.alpha * float((claim.coef**2).sum())
    total = fsum([sigma * fsum(s), penalty, *(s * value)])
    # sigma H(r / sigma) is steeper nowhere than 2 epsilon.
    error = fsum(s * (2 * epsilon * off + _UNITS * (value + steep * r))) * (1 + 1e-6)
    error += (rows.d + 8) * EPS * penalty + _UNITS * total
    return total, error + (1e-300 if total else 0.0)


class _Point:
    """The stated u, balanced: V and its error, what the bound is without V, and the sizes of u."""

    def __init__(self, rows: Rows, claim: Any) -> None:
        s, y, u = rows.s, rows.y[:, 0], claim.dual[:, 0]
        weighted, self.level, eta = s * u, 0.0, 0.0
        if not np.isfinite(weighted * np.maximum(np.abs(u), np.abs(y))).all():
            raise Refused("products of multipliers leave the range of doubles")
        self.middle = centre(rows, claim.fit_intercept)
        if claim.fit_intercept:
            doubt = _UNITS * fsum(np.abs(weighted))
            side = max(fsum(np.maximum(weighted, 0.0)), fsum(np.maximum(-weighted, 0.0)))
            # Where the sign of the sum is in doubt, both sides are as heavy up to the doubt.
            eta = (abs(fsum(weighted)) + doubt) / (side - 2 * doubt) if side > 0 else 0.0
            self.level = fsum(s * y) / rows.weight
        self.is_balanced = 0 <= eta <= 1
        parts, magnitude, self.squares = [], np.zeros(rows.d), np.zeros(rows.d)
        for where, block in rows:
            centred = block - self.middle
            parts.append(tree_sum(centred * weighted[where, None])[0])
            magnitude += np.abs(centred).T @ np.abs(weighted[where])
            self.squares += s[where] @ centred**2
        self.V = tree_sum(np.stack(parts))[0]
        self.error = (_UNITS + eta) * magnitude * (1 + 1e-9) + rows.n * SMALLEST
        self.most = (np.abs(self.V) + self.error) * (1 + 4 * EPS)
        products, self.beside = weighted * (y - self.level), np.abs(y - self.level)
        off = (_UNITS + eta) * fsum(np.abs(products)) * (1 + _UNITS)
        self.value, self.reach = -fsum(products) - off, 2 * claim.epsilon
        self.size, self.top = np.sqrt(fsum(weighted * u)) * (1 + _UNITS), float(np.abs(u).max())
        self.length = 2 * np.sqrt(fsum(s)) * (1 - _UNITS)

    def shrunk(self, cost: float = 0.0, kappa: float = 0.0, tau: float = 0.0) -> float:
        """The value less a cost, times what keeps u within its bounds; kappa, tau are (b)'s d."""
        within = self.reach / (self.top + tau + 1e-300), self.length / (self.size + kappa + 1e-300)
        value = self.value - cost
        return value * min(1.0, *within) * (1 - 8 * EPS) if value > 0 else value


def _lower_bound(rows: Rows, claim: Any) -> tuple[float, tuple[str, ...]]:
    """The bound of the theorem at the repaired u, and what it presupposes."""
    at, alpha, more = _Point(rows, claim), claim.alpha, 1 + (rows.d + 8) * EPS
    if not at.is_balanced:
        return 0.0, ()
    most = at.most
    cost = most * (most / (4 * alpha)) if alpha > 0 else np.where(most > 0, np.inf, 0.0)
    best = max(at.shrunk() - float(cost.sum()) * more, 0.0)
    if not judged(claim, 0.0, 0.0, best)[1].holds:
        best = max(best, _repaired(rows, claim, at))
    norm, y_size = np.sqrt(at.squares), np.sqrt(fsum(rows.s * at.beside**2))
    alone = np.divide(y_size, norm, out=0 * norm, where=norm > 0)
    radius = 10 * (np.abs(claim.coef[:, 0]) + alone)
    near = at.shrunk() - float(np.minimum(most * radius, cost).sum()) * more
    if judged(claim, 0.0, 0.0, best)[1].holds or near <= best:
        return best, ()
    largest = f"{radius[most * radius < cost].max(initial=0.0):.3g}"
    said = f"coefficients are no larger than {largest}, ten times the stated ones and |y| / |x_j|"
    return near, (said,)


def _repaired(rows: Rows, claim: Any, at: _Point) -> float:
    """The bound of (b), which brings V to -2 alpha w."""
    alpha, more = claim.alpha, 1 + (rows.d + 8) * EPS
    alone, count, shared = _merged(rows, claim.coef[:, 0], claim.fit_intercept)
    keep, rest, exact = independent_columns(rows, alone, at.middle, claim.fit_intercept)
    if len(rest) and (alpha > 0 or not exact):
        return 0.0
    nu, _, M = inverse_basis(Table(rows, at.middle, keep), claim.fit_intercept)
    if nu <= 0:
        return 0.0
    own = np.isin(alone, keep)
    a, mean = shared[own], (shared / count)[own]
    Z = np.abs(at.V[keep] + 2 * alpha * mean) + at.error[keep] + 8 * EPS * alpha * np.abs(mean)
    kappa = float(np.sqrt(((np.abs(M).T @ Z) ** 2).sum() / nu)) * (1 + (2 * rows.d + 8) * EPS)
    longest = square = 0.0
    for where, block in rows:
        centred, s = (block - at.middle)[:, keep], rows.s[where]
        along = np.abs(centred @ M) + (rows.d + 4) * EPS * (np.abs(centred) @ np.abs(M))
        longest = max(longest, float((along**2).sum(axis=1).max()))
        left = np.abs(rows.y[where, 0] - at.level - centred @ a)
        left += (rows.d + 4) * EPS * (at.beside[where] + np.abs(centred) @ np.abs(a))
        square += float(s @ left**2) * (1 + (len(left) + 8) * EPS)
    tau = kappa * float(np.sqrt(longest / nu)) * more
    moved = (kappa * np.sqrt(square) + float(Z @ np.abs(a))) * (more + rows.n * EPS)
    paid = alpha * float((count[own] * mean**2).sum()) * more
    return at.shrunk(moved, kappa, tau) - paid


def _merged(rows: Rows, w: Array, constant: bool) -> tuple[Indices, Array, Array]:
    """Columns that vary, one of each group of exact copies; the sizes and sums of w of groups."""
    X = dense(rows.X)
    seen: dict[bytes, int] = {}
    varies = (X != (X[0] if constant else 0.0)).any(axis=0)
    columns = np.ascontiguousarray(X.T) + 0.0
    places = [seen.setdefault(x.tobytes(), j) for j, x in enumerate(columns)]
    first = np.array(places, dtype=np.intp)
    alone = np.unique(first[varies])
    count, shared = np.bincount(first, minlength=rows.d), np.bincount(first, w, minlength=rows.d)
    return alone, count[alone].astype(np.float64), shared[alone]
