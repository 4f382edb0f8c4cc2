r"""Theorem of Fenchel and Young: a dual point bounds what any other coefficients can gain.

Let P(w, b) = sum_i s_i l_i(z_i) + p(w), z_i = x_i.w + b, and let u be any numbers in the domains of
the conjugates l_i* with sum_i s_i u_i = 0 if there is an intercept. With q = sum_i s_i u_i x_i,

    P(w, b) - P(v, c)  <=  sum_i s_i [l_i(z_i) + l_i*(u_i) - u_i z_i]  +  [p(w) + p*(-q) + q.w]

for all v and c. *Proof.* l_i(z') >= u_i z' - l_i*(u_i) and p(v) >= -q.v - p*(-q) for all z', v; add
them up over z' = x_i.v + c, where q.v cancels and c is multiplied by zero. []

Both brackets are sums of terms that are not negative (:mod:`trueline.check.losses`,
:mod:`trueline.check.penalties`): nothing cancels. The numbers u need not be known exactly,
only to exist. They are made from known ones u^ as follows; each step enters the bound.

1. *Dual point.* The witness u^, or the slopes at the scores; those of a smooth loss at z^ are
   exact for scores that differ from the true ones by a known error d: they cost curvature d^2 / 2.
2. *Balance*, sum s u = 0. Smooth losses: the slopes at z + t for some numbers t near the best
   intercepts; those of softmax may keep their imbalance (:mod:`trueline.check.theorems.intercept`).
   Other losses: the side of heavier sign is multiplied by 1 - h, which by convexity of l* costs
   at most h sum_i s_i l_i(z_i), since l*(0) <= 0 for losses that are not negative. Multiclass
   hinge: the same for each flow of multipliers from class to class.
3. *Domain of p**: u is multiplied by t <= 1, which costs (1 - t) sum_i s_i l_i(z_i) likewise, and
   for squared losses only (1 - t)^2 / 2 sum_i s_i z_i^2. Where p* is finite but large, so that its
   absolute values alone hold all coefficients may cost less.
4. *Coefficients without penalty* need q_j = 0, and those may have it whose penalty is lost in the
   rounding of q. With M^T X_c^T S X_c M >= nu I for these columns (:mod:`trueline.check.rows`),
   u - X_c h with ||S^1/2 X_c h|| <= ||M q|| / nu^1/2 has it.
   Columns that depend on others exactly have it with them (:mod:`trueline.check.rows`).
   Where that is not possible the bound is conditional: |v_j - w_j| <= R costs |q_j| R.

*Ordered quantiles.* Multipliers m >= 0 of z_j <= z_next may be added to s u: they add
m (z_next - z_j) at w, and take away nothing at any v in order.

Read from the certificate: objective, objective_rounding, gap, loss, penalty, fit_intercept, coef,
intercept; witness: dual (n, k), order (n, k - 1) and slack, powers of two of the units.

*A second theorem* says how large coefficients that may not be negative can be, for losses of
residuals. Let t_i be any numbers with sum_i s_i t_i = 0 if there is an intercept, and let
p_j = sum_i s_i t_i x_ij >= 0 for all columns. Every v >= 0 whose objective is at most P has

    p.v = sum_i s_i t_i (r_i + y_i) <= R(P) + |t| |y|,

r its residuals, norms weighted by s, y about its mean if there is an intercept, and R the bound of
the loss on such a sum: |t| sqrt(2 P) for squares. With the dual point u from above and q_j =
sum_i s_i u_i x_ij this bounds what q.v takes away, -q.v <= max_j (-q_j / p_j) p.v. *Proof.* Cauchy
and Schwarz; v >= 0. []

Columns that are constant beside an intercept, or zero, have q_j = 0 and are left out. Of the
penalty no more is used than that it is not negative.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from trueline.check.arithmetic import (
    EPS,
    SMALLEST,
    Array,
    Bools,
    Indices,
    exact_product,
    fsum,
    two_sum,
)
from trueline.check.claims import Claim, read_claim
from trueline.check.rows import (
    Table,
    coercivity,
    independent_columns,
    inverse_basis,
    reached,
)
from trueline.check.schema import Field, parameters
from trueline.check.theorems.cone import cone_bound
from trueline.check.theorems.intercept import class_levels, imbalance, levels
from trueline.check.verdict import Check, Refused, Verification

DUAL = {
    "dual": Field(("n", "k"), optional=True),
    "order": Field(("n", "pairs"), low=0.0, optional=True),
    "slack": Field(low=0.0, optional=True),
    "cone": Field(("d",), low=0.0, optional=True),
    # Of use to the fit alone.
    "centre": Field(("d",), optional=True),
    "about": Field(("d",), optional=True),
}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Objective and gap of a claim about all coefficients."""
    return judged_by_dual(read_claim(certificate, DUAL, X, y, sample_weight))


def judged_by_dual(claim: Claim) -> Verification:
    """Objective and gap of a claim by its dual point."""
    fields = claim.fields
    # That no objective is negative is true of every loss; all else is about convex ones.
    if not claim.loss.is_convex and claim.ceiling > fields.gap:
        raise Refused("the loss is not convex")
    # The steps towards the best intercepts are those of the coupled losses that are known here.
    if claim.loss.is_coupled and claim.loss.note and claim.has_intercept:
        raise Refused("no theorem covers intercepts beside a coupled loss that is not built in")
    is_ordered = parameters(fields.loss).get("name") == "ordered_quantiles"
    if is_ordered != (fields.order is not None):
        raise Refused("multipliers of an order go with ordered quantiles, and these with them")
    if is_ordered and fields.order.shape[1] != claim.rows.k - 1:
        raise Refused(f"multipliers of {fields.order.shape[1]} pairs of {claim.rows.k} quantiles")
    # The dual point of the witness, or the slopes of a smooth loss, whichever proves more.
    dual = fields.dual if claim.loss.has_conjugate else None
    points = [(dual, True)]
    if claim.loss.is_smooth and dual is not None and claim.scale is None:
        points.append((None, True))
    if claim.loss.is_smooth and claim.loss.is_coupled and claim.has_intercept:
        points.append((None, False))
    gap, radius, slack = np.inf, None, fields.slack or 0.0
    for doubled, (dual, moved) in product((False, True), points):
        claim.evaluate(doubled)
        objective = claim.check_objective()
        bound = _Bound(claim, dual, doubled, moved)
        found, limit = bound.gap(fields.gap)
        if not gap <= fields.gap or (found <= fields.gap and limit is None):
            gap, radius = found, limit
        in_order = not is_ordered or bound.crossing() <= slack
        if objective.holds and gap <= fields.gap and radius is None and in_order:
            break
    checks = [objective, Check.at_most("gap", fields.gap, gap)]
    statement = claim.statement()
    if is_ordered:
        checks.append(Check.at_most("order", slack, bound.crossing()))
        statement += f", of those whose quantiles do not cross; these cross by {slack:.3g} at most"
    conditions: tuple[str, ...] = ()
    if radius is not None:
        conditions = (
            f"no coefficient without a penalty is changed by more than {radius:.3g} times its size "
            "and that of the target (about its mean, with an intercept), in units of its column",
        )
    return Verification(tuple(checks), statement, conditions)


class _Bound:
    """The dual point of a claim, and the bound that it gives."""

    def __init__(self, claim: Claim, dual: Array | None, doubled: bool, moved: bool = True) -> None:
        self.claim, self.dual, self.doubled, self.moved = claim, dual, doubled, moved
        rows, loss = claim.rows, claim.loss
        self.s, self.off = rows.s[:, None], claim.off + np.abs(claim.low)
        value = self.s * loss.value(claim.y, claim.z)
        total, error = claim.losses()
        # Per target where targets do not interact; else everything is shared.
        penalty, order = claim.penalty, claim.fields.order
        alone = penalty.blocks is None and not penalty.note and order is None
        self.shared = loss.is_coupled or not alone
        self.losses = value.sum(axis=0) * (1 + 1e-9) + error
        if self.shared:
            self.losses = np.full(rows.k, (total + error) * (1 + 1e-9))
        self.push, self.from_scores = np.zeros((rows.n, rows.k)), False
        self.change: Any = 0.0
        self.share: Any = 0.0
        if claim.fields.order is not None:
            self._order()
        self.excess = self._dual_point()

    # --- the dual point ---------------------------------------------------------------------------

    def _dual_point(self) -> Array:
        """Set u and a bound on its error; return the excess of the losses, per target."""
        claim, loss = self.claim, self.claim.loss
        y, z, off = claim.y, claim.z, self.off
        given = self.dual
        if given is None and loss.is_smooth:
            return self._slopes()
        self.u = loss.slope(y, z) if given is None else claim.rows.kept(given)
        if loss.is_coupled:  # the own class takes what the others have
            off = off.sum(axis=1, keepdims=True) + 0 * off
            others = np.where(y != 0, 0.0, self.u)
            self.u = np.where(y != 0, -others.sum(axis=1, keepdims=True), others)
        self.error = (4 + loss.is_coupled * claim.rows.k) * EPS * np.abs(self.u) * loss.is_coupled
        excess = loss.excess(y, z, self.u)
        if not np.isfinite(excess).all():
            return np.full(claim.rows.k, np.inf)
        if loss.is_smooth:
            apart = np.abs(loss.slope(y, z) - self.u)
            drift = (apart + loss.slope_error(y, z)) * (off + 64 * EPS)
            drift = drift + 0.5 * loss.most_curvature(y, z, off) * off**2
        else:
            drift = 2 * loss.steepest * off
        total = (self.s * (excess * (1 + 64 * EPS) + drift)).sum(axis=0) * (1 + 1e-9)
        if claim.has_intercept:
            total = total + (self._flows() if loss.is_coupled else self._lighter_side())
        return np.asarray(total)

    def _slopes(self) -> Array:
        """The slopes of a smooth loss at the best intercept for these coefficients."""
        claim, loss = self.claim, self.claim.loss
        y, z, off, s = claim.y, claim.z, self.off, self.s
        near, reach = np.zeros(z.shape[1]), np.zeros(z.shape[1])
        if claim.has_intercept and self.moved:
            near, reach = (class_levels if loss.is_coupled else levels)(claim)
        at = z + near
        self.u = loss.slope(y, at)
        curvature = loss.most_curvature(y, at, reach)
        self.error = loss.slope_error(y, at) + np.where(reach > 0, curvature * reach, 0.0)
        way = np.abs(near) + reach + off + EPS * np.abs(at)
        self.way, self.near, self.from_scores = way, np.abs(near), True
        if loss.is_coupled:
            way = np.sqrt((way**2).sum(axis=1, keepdims=True)) + 0 * way
            self.error = self.error + np.sqrt((reach**2).sum()) * curvature
        terms = s * (0.5 * loss.most_curvature(y, z, way) * way) * way
        if not np.isfinite(reach).all():
            return np.full(z.shape[1], np.inf)
        total = terms.sum(axis=0)
        if not self.moved:
            total = total + imbalance(claim, self.u, self.error)
        return (total / (z.shape[1] if loss.is_coupled else 1)) * (1 + 1e-9)

    def _lighter_side(self) -> Array:
        """Make the heavier side lighter, so that the multipliers add up to zero; what it costs."""
        cost = np.zeros(self.u.shape[1])
        weighted, rest = exact_product(self.s, self.u)
        for t in range(len(cost)):
            parts = weighted[:, t], rest[:, t], self.push[:, t]
            total = fsum(np.concatenate(parts))
            sides = np.maximum(weighted[:, t], 0).sum(), np.maximum(-weighted[:, t], 0).sum()
            side = max(sides) if self.claim.fields.order is None else sides[int(total < 0)]
            own = np.arange(len(cost)) == t
            moved, most = np.abs(self.u) * own, 1.0 if self.claim.fields.order is None else 0.5
            if total == 0:
                continue
            if side == 0:  # the other targets and the order are made lighter, by rounding alone
                side, most = abs(float(self.push[:, t].sum())), 1e-12
                moved = np.abs(self.u) * ~own + np.abs(self.push) / self.s
            share = abs(total) * (1 + 8 * EPS) / (side * (1 - 1e-9)) if side > 0 else np.inf
            share = min(share, 1.0) if most == 1.0 else share  # nothing is left of a side alone
            if not share <= most:
                return np.full(len(cost), np.inf)
            self.error += share * moved
            cost[t] = share * self.losses[t]
        return cost

    def _flows(self) -> Array:
        """The same for multipliers that flow from the class of a row to the others; what it costs.

        Too much flows into one class and too little into another: a row of the first gives more to
        the second, or a row of the second less to the first, by t, at a cost of t |h|.
        """
        k, y, s = self.claim.rows.k, self.claim.y, self.claim.rows.s
        z = self.claim.z
        h = np.abs(z + 1.0 - (y * z).sum(axis=1, keepdims=True)) + self.off + 1.0
        high, low = exact_product(self.s, np.where(y != 0, 0.0, self.u))
        left = np.zeros(k)
        for c in range(k):
            own, other = y[:, c] != 0, y[:, c] == 0
            parts = [high[other, c], low[other, c], -high[own].ravel(), -low[own].ravel()]
            left[c] = fsum(np.concatenate(parts))
        unsure, cost = 4 * k * EPS * float(np.abs(left).sum()), 0.0
        for to in np.flatnonzero(left > 0):
            for origin in np.flatnonzero(left < 0):
                amount = min(left[to], -left[origin])
                left[to], left[origin] = left[to] - amount, left[origin] + amount
                amount = (amount + unsure) * (1 + 1e-9)
                gives = (y[:, to] != 0) & (1 + (y * self.u).sum(axis=1) > 2 * amount / s)
                takes = (y[:, origin] != 0) & (self.u[:, to] > 2 * amount / s)
                price = np.where(gives, h[:, origin], np.where(takes, h[:, to], np.inf))
                row = int(np.argmin(price))
                cost += amount * float(price[row])
                self.error[row] += amount / s[row]
        return np.full(k, cost / k if np.abs(left).sum() <= unsure else np.inf)

    # --- ordered quantiles ------------------------------------------------------------------------

    def _order(self) -> None:
        claim = self.claim
        q = np.broadcast_to(-claim.loss.pieces[0][1], claim.rows.k)  # type: ignore[attr-defined]
        self.ranks = np.argsort(q, kind="stable")
        self.multipliers = claim.rows.kept(claim.fields.order)
        self.push[:, self.ranks[:-1]] += self.multipliers
        self.push[:, self.ranks[1:]] -= self.multipliers

    def _steps(self) -> tuple[Array, Array]:
        """z_next - z_j for neighbours in the order, and bounds on the errors."""
        claim = self.claim
        z, low, y, off = (
            part[:, self.ranks] for part in (claim.z, claim.low, claim.rows.y, claim.off)
        )
        steps = np.diff(z, axis=1) + (np.diff(y, axis=1) + np.diff(low, axis=1))
        size = np.abs(np.diff(z, axis=1)) + np.abs(np.diff(y, axis=1))
        return steps, off[:, 1:] + off[:, :-1] + 2 * EPS * size

    def crossing(self) -> float:
        """By how much scores are out of order at the most."""
        steps, off = self._steps()
        return max(float((off - steps).max(initial=0.0)) - 1e-300, 0.0)  # but for underflow

    # --- the bound --------------------------------------------------------------------------------

    def gap(self, claimed: float) -> tuple[float, float | None]:
        """The bound, and the radius that it is subject to (None if it holds everywhere)."""
        claim, penalty, W = self.claim, self.claim.penalty, self.claim.W
        if np.isinf(claimed):
            return claimed, None  # nothing is claimed
        if claim.is_own and claim.ceiling <= claimed:
            return claim.ceiling, None  # no objective is negative
        if not np.isfinite(self.excess).all():
            return np.inf, None
        weighted, rest = exact_product(self.s, self.u)
        if claim.fields.order is not None:
            weighted, small = two_sum(weighted, self.push)
            rest = rest + small
        error = self.s * self.error + 4 * EPS * np.abs(rest)
        q, off, squares = claim.sums(weighted, rest, error, self.doubled)
        if claim.fields.cone is not None:
            bound = cone_bound(claim, claim.fields.cone, q, off, self.excess)
            if bound <= claimed:
                return bound, None
        # Those inside their bounds cost q_j w_j if they are not held, which may be all there is.
        held = penalty.is_free(q, off)
        inside = held | penalty.is_inside(W, off)
        for free in (held, inside) if (inside != held).any() else (held,):
            found = self._held(claimed, free, q, off, squares)
            if found[0] <= claimed:
                break
        return found

    def _held(
        self, claimed: float, free: Bools, q: Array, off: Array, squares: Array
    ) -> tuple[float, float | None]:
        """The bound if these coefficients without a penalty are held at q_j = 0."""
        claim, penalty, W = self.claim, self.claim.penalty, self.claim.W
        excess, radius_cost = self.excess, 0.0
        self.change = self.share = 0.0
        for _ in range(3):
            if not free.any():
                break
            held, further, radius_cost = self._hold(free, q, off, squares, excess)
            # What holds some coefficients may let others go.
            more = free | penalty.is_free(q, further)
            if radius_cost or (more == free).all():
                excess, off = held, further
                break
            free = more
        else:
            return np.inf, None
        total = np.inf
        for everywhere in (False, True):  # the second leaves nothing to p*, where that is less
            t = penalty.scale(np.where(free, 0.0, q), np.where(free, 0.0, off), everywhere)
            t = np.full(len(t), t.min()) if self.shared else t
            t, left = self._left_to_scale(t)
            shrunk = excess + self._shrinking(t, excess, not free.any())
            found = float(shrunk.sum()) + penalty.excess(W, t * q, t * off, free)
            total = min(total, found + left + self._gain_of_order(t))
            if total <= claimed:
                break
        total = total * (1 + 1e-10) + claim.rows.floor
        if radius_cost == 0.0 or not np.isfinite(total):
            return total, None
        radius = (claimed - total) / radius_cost
        if not radius > 2:
            return np.inf, None
        return claimed, radius

    def _shrinking(self, t: Array, excess: Array, is_untouched: bool) -> Array:
        """What it costs the losses, per target, to multiply u by t."""
        if not (t < 1).any():
            return np.zeros(len(t))
        if not self.claim.loss.is_squared:
            return (1 - t) * self.losses / (len(t) if self.shared else 1)
        # z - t u = (1 - t) u less what u differs by: a constant, at right angles to u as
        # sum s u = 0, and rounding.
        far = (1 - t) * np.sqrt((self.s * self.u**2).sum(axis=0)) * (1 + 1e-9)
        apart = np.sqrt(2 * excess)
        if self.from_scores and is_untouched:
            apart = np.sqrt((self.s * (self.way - self.near) ** 2).sum(axis=0))
        return 0.5 * far**2 + far * apart

    def _left_to_scale(self, t: Array) -> tuple[Array, float]:
        """t such that no scale gains at t u, and what is left there of the stated scale."""
        if self.claim.scale is None:
            return t, 0.0
        size, off = (np.sqrt(fsum(self.s * part**2)) for part in (self.u, self.error))
        off, most = off + 16 * EPS * size, 2 * np.sqrt(fsum(self.s))
        t = np.minimum(t, most / (size + off + self.change + SMALLEST) * (1 - 16 * EPS))
        used = t * (1 - self.share) * (np.maximum(size - off, 0.0) / most) ** 2
        left = self.claim.constant * np.maximum(1 + 64 * EPS - used, 0.0)
        return t, float((left + 64 * EPS * self.losses).sum())

    def _gain_of_order(self, t: Array) -> float:
        """What multipliers of the order add at w."""
        if self.claim.fields.order is None:
            return 0.0
        steps, slack = self._steps()
        # Scores that cross give back what they gained by it, as far as t leaves multipliers.
        signed = np.where(steps < 0, t.min() * steps, steps) + slack + 1e-12 * np.abs(steps)
        return float((self.multipliers * signed).sum())

    def _hold(
        self, free: Bools, q: Array, off: Array, squares: Array, excess: Array
    ) -> tuple[Array, Array, float]:
        """Take q_j = 0 for coefficients without a penalty, or say what a change of them costs."""
        claim = self.claim
        centre, constant = claim.means(), claim.has_intercept
        self.change = self.share = np.zeros(self.u.shape[1])
        columns = np.flatnonzero(free.any(axis=1))
        known = independent_columns(claim.rows, columns, centre, constant)
        if free[columns].all() or not (len(known[1]) or claim.loss.room == 0):
            return self._hold_columns(known, free, q, off, squares, excess)
        # A column is held with those that it is made of, in the targets where all of these are.
        cost = 0.0
        for t in range(free.shape[1]):
            own = free & (np.arange(free.shape[1]) == t)
            known = independent_columns(claim.rows, np.flatnonzero(own[:, t]), centre, constant)
            excess, off, more = self._hold_columns(known, own, q, off, squares, excess)
            cost += more
        return excess, off, cost

    def _hold_columns(
        self, known: tuple[Indices, Indices, bool], free: Bools, q: Array, off: Array,
        squares: Array, excess: Array,
    ) -> tuple[Array, Array, float]:  # fmt: skip
        """The same for independent columns, and others that are made of them."""
        claim, loss, rows = self.claim, self.claim.loss, self.claim.rows
        size = np.where(free, np.abs(q) + off, 0.0)
        norms = np.sqrt(np.where(squares > 0, squares, np.inf))[:, None]
        y = rows.y - (rows.s @ rows.y) / rows.weight if claim.has_intercept else rows.y
        reach = np.abs(claim.W) + np.sqrt((self.s * y**2).sum(axis=0)) / norms
        otherwise = excess, off, float((size * reach).sum()) * (1 + 1e-9)
        if loss.note or (loss.room == 0 and not self.from_scores):
            return otherwise
        centre, (columns, _, exact) = claim.means(), known
        if exact and loss.room == 0:
            held, own = self._hold_smooth(columns, size, squares), free.any(axis=0)
            if held is None or not held[0].sum() <= claim.fields.gap:
                return otherwise
            return np.where(own, held[0], excess), off + np.where(own, held[1], 0.0), 0.0
        if not exact:
            return otherwise
        nu, longest, basis = inverse_basis(Table(rows, centre, columns), claim.has_intercept)
        if nu <= 0:
            return otherwise
        # Only what is free in a target has to vanish there; the rest of its q stays as it is.
        own, unsure = (np.where(free, part, 0.0)[columns] for part in (q, off))
        along = np.abs(basis.T @ own) * (1 + 1e-9)
        along = along + np.abs(basis).T @ (unsure + len(columns) * EPS * np.abs(own))
        long = np.sqrt((along**2).sum(axis=0))
        moved = long / np.sqrt(nu) * (1 + 1e-9)
        # |change of u_i| <= ||M x_i|| ||M q|| / nu.
        most = 1.01 * longest * long / nu
        share = most / loss.room * (1 + 1e-9)
        if not (share < 0.5).all():
            return otherwise
        if loss.is_squared:
            excess = 0.5 * (np.sqrt(2 * excess) + moved) ** 2
        else:
            # With a scale, what the conjugates gain the scale loses.
            apart = np.abs(claim.z) + self.off
            apart = apart + np.abs(claim.z) + loss.width if claim.scale is None else apart
            far = np.sqrt((self.s * apart**2).sum(axis=0)) * (1 + 1e-9)
            excess = excess + share * self.losses + moved * far
            excess = excess + 0.5 * moved**2 * (claim.scale is None)
        if claim.scale is not None and not excess.sum() <= claim.fields.gap:
            return otherwise
        self.change, self.share = self.change + moved, self.share + share
        return excess, off + np.sqrt(squares)[:, None] * 1.01 * moved, 0.0

    def _hold_smooth(
        self, columns: Indices, size: Array, squares: Array
    ) -> tuple[Array, Array] | None:
        """The same for smooth losses: slopes at the least value over these coefficients.

        It lies within r, in the units of M, where M (sum_i s_i c_i a_i a_i^T) M >= nu for the least
        curvatures c_i within that distance and nu r >= 2 |M g|
        (:mod:`trueline.check.theorems.curvature`).
        """
        claim, loss, rows = self.claim, self.claim.loss, self.claim.rows
        if loss.is_coupled:
            return None
        part = Table(rows, claim.means(), columns, claim.has_intercept)
        excess, further = np.zeros(rows.k), np.zeros_like(size)
        for t in range(rows.k):
            own, y, z, off = loss.of_target(t), claim.y[:, t], claim.z[:, t], self.way[:, t]
            curvatures = rows.s * own.least_curvature(y, z, off)
            scale = sum(part.each(lambda block, c: c @ block**2, curvatures), np.zeros(part.d))
            M = 1.0 / np.sqrt(np.maximum(scale, 1e-200))
            steep = size[columns, t]
            if claim.has_intercept:
                steep = np.append(steep, float(rows.s @ self.error[:, t]) + 1e-300)
            steep = float(np.linalg.norm(M * steep)) * (1 + 1e-9)
            nu, _ = coercivity(part, M, weights=curvatures)
            r = 2.5 * steep / max(nu, 1e-300)
            far = r * np.concatenate(list(part.each(partial(reached, M)))) * (1 + 1e-9)
            curvatures = rows.s * own.least_curvature(y, z, off + far) * (1 - 4 * EPS)
            if not coercivity(part, M, weights=curvatures)[0] * r >= 2 * steep:
                return None
            way = off + far
            curvature = own.most_curvature(y, z, way)
            excess[t] = float(rows.s @ (0.5 * curvature * way**2)) * (1 + 1e-9)
            further[:, t] = np.sqrt(squares * float(rows.s @ (curvature * far) ** 2)) * 1.01
        return excess, further
