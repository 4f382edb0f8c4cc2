r"""The penalties, restated: value, and what a slope q of the losses leaves to be gained.

Most are sums over blocks g of coefficients (single ones, groups, rows of W) of

    p(w) = l ||w_g|| + a/2 ||w_g||^2        on  low <= w <= high  (bounds for single ones only).

For a slope q of the losses the *excess* of w is, by Fenchel and Young, never negative:

    x(w, q) = p(w) + q.w + p*(-q) = f(w) - min f,      f(v) = p(v) + q.v.

With v the minimiser, n = v / ||v|| its direction and D = w - v, per block,

    v = 0 inside:   l ||w|| + q.w + a/2 ||w||^2
    else:           a/2 ||D||^2 + l (||w|| - n.w) + slope at v (only at a bound) times D.

It is convex in q with derivative w - v, and v moves by ||error|| / a at most where q is uncertain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, Array, Bools
from trueline.check.schema import Field, is_builtin, parameters, read
from trueline.check.verdict import Refused


class Penalty:
    """Norms and squares of blocks, within bounds.

    Attributes
    ----------
    linear, curvature, low, high : arrays of shape (d, k)
        l, a and the bounds of each coefficient.
    blocks : array of int of shape (d, k), or None
        The block of each coefficient; None if each is its own.
    note : str
        What the statement must add, for penalties of others.
    """

    note = ""

    def __init__(
        self, shape: tuple[int, int], linear: Any = 0.0, curvature: Any = 0.0,
        low: Any = -np.inf, high: Any = np.inf, blocks: Any = None,
    ) -> None:  # fmt: skip
        self.linear, self.curvature, self.low, self.high = (
            np.broadcast_to(np.asarray(part, dtype=np.float64), shape)
            for part in (linear, curvature, low, high)
        )
        self.blocks = blocks

    @property
    def is_bounded(self) -> bool:
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def is_free(self, q: Array, error: Array) -> Bools:
        """Coefficients that nothing holds in a direction in which q may fall."""
        falls = (np.isinf(self.high) & (q - error < 0)) | (np.isinf(self.low) & (q + error > 0))
        # A strength below the rounding of q holds nothing that could be seen.
        return (self.linear <= 1e3 * error * (self.linear > 0)) & (self.curvature == 0) & falls

    def is_inside(self, W: Array, error: Array) -> Bools:
        """Coefficients on no bound without a penalty, or with one that the rounding of q hides."""
        steep = self.linear + self.curvature * np.abs(W)
        return (steep <= 1e3 * error * (steep > 0)) & (W > self.low) & (W < self.high)

    def admits(self, W: Array) -> bool:
        """Whether the coefficients are within the bounds."""
        return bool(((W >= self.low) & (W <= self.high)).all())

    def _sum(self, values: Array) -> Array:
        """Sums over the blocks, at each of their entries."""
        if self.blocks is None:
            return values
        totals = np.bincount(self.blocks.ravel(), weights=values.ravel())
        return totals[self.blocks]

    def _norm(self, V: Array) -> Array:
        """Norms of the blocks, at each of their entries, safe from under- and overflow."""
        if self.blocks is None:
            return np.abs(V)
        top = np.zeros(int(self.blocks.max(initial=0)) + 1)
        np.maximum.at(top, self.blocks.ravel(), np.abs(V).ravel())
        scale = np.where(top > 0, top, 1.0)[self.blocks]
        return scale * np.sqrt(self._sum((V / scale) ** 2))

    def value(self, W: Array) -> tuple[float, float]:
        """p(W), and a bound on its rounding."""
        norm = self._norm(W)
        # The norm of a block is shared by its entries as their squares are.
        share = np.where(norm > 0, np.abs(W) * (np.abs(W) / np.where(norm > 0, norm, 1.0)), 0.0)
        total = float((self.linear * share + (0.5 * self.curvature * W) * W).sum())
        return total, (W.size + 32) * EPS * total + 1e-300

    def scale(self, q: Array, error: Array, everywhere: bool = False) -> Array:
        """Per target, a t <= 1 such that -t q is in the domain of p* for all q within the error.

        ``everywhere``: such that p* is zero at -t q, also of what has squares beside its norms.
        """
        down = np.where(np.isinf(self.high), error - q, 0.0)
        up = np.where(np.isinf(self.low), q + error, 0.0)
        size = self._norm(np.maximum(np.maximum(down, up), 0.0))
        size = size * (1 + 32 * EPS * np.sqrt(q.size))
        out = (everywhere | (self.curvature == 0)) & (self.linear > 0) & (size > self.linear)
        room = np.where(out, self.linear / np.where(out, size, 1.0) * (1 - 8 * EPS), 1.0)
        return np.asarray(room.min(axis=0, initial=1.0))

    def excess(self, W: Array, q: Array, error: Array, free: Bools) -> float:
        """x(W, q) at the worst q within its error, or at q = 0 for coefficients that are free."""
        l, a = self.linear, self.curvature
        # Blocks may be free in part: the others have what is left of the norm.
        q, error = np.where(free, 0.0, q), np.where(free, 0.0, error)
        norm, size = self._norm(q), self._norm(W)
        inside = norm <= l  # the minimiser is zero, where zero is allowed
        best = np.where(inside, 0.0, -q * (1 - l / np.where(norm > 0, norm, 1.0)) / a)
        at = np.where(free, 0.0, np.clip(best, self.low, self.high))
        if not np.isfinite(at).all():
            return np.inf
        steep = np.where((at != best) & (at != 0), q + l * np.sign(at) + a * at, 0.0)
        unit = np.sign(at) if self.blocks is None else -q / np.where(norm > 0, norm, 1.0)
        fuzzy = np.where((at == best) & ~inside, 8 * EPS * np.abs(q) / a, 0.0)
        moved = np.abs(W - at) + 4 * EPS * np.abs(W) + fuzzy
        share = np.where(size > 0, np.abs(W) * (np.abs(W) / np.where(size > 0, size, 1.0)), 0.0)
        rest = l * share + np.where(at == 0, q * W, -l * unit * W)
        rest = np.maximum(rest, 0.0) if self.blocks is None else rest
        terms = (0.5 * a * moved) * moved + np.abs(steep) * moved + rest
        rounding = (16 + np.sqrt(W.size)) * EPS * (l * share + np.abs(q * W))
        # How far the minimiser moves with q: a step of the error over a, or from bound to bound.
        # |q| + error is the largest magnitude of each entry, so that no norm is above its norm.
        stays = self._norm(np.abs(q) + error) <= l
        if self.blocks is None:
            stays = stays | ((np.abs(q) - error > l) & (a == 0))
            stays = stays | ((self.low >= 0) & (q - error >= -l))  # at the lower bound
            stays = stays | ((self.high <= 0) & (q + error <= l))
        span = np.where(stays, 0.0, self.high - self.low)
        further = np.minimum(np.where(a > 0, self._norm(error) / a, np.inf), span)
        uncertain = np.where(error > 0, error * (moved + further), 0.0)
        total = np.where(free, l * share + 0.5 * a * W * W, terms + rounding + uncertain).sum()
        return float(total) * (1 + 1e-12) if not np.isnan(total) else np.inf


class _NonNegativeBlocks(Penalty):
    """Norms of blocks of coefficients that may not be negative: only falling slopes matter."""

    def admits(self, W: Array) -> bool:
        return bool((W >= 0).all())

    def is_free(self, q: Array, error: Array) -> Bools:
        return super().is_free(np.minimum(q, 0.0), error)

    def scale(self, q: Array, error: Array, everywhere: bool = False) -> Array:
        return super().scale(np.minimum(q, 0.0), error, everywhere)

    def excess(self, W: Array, q: Array, error: Array, free: Bools) -> float:
        rising = float((np.maximum(q, 0.0) * W).sum()) * (1 + 1e-12)
        return super().excess(W, np.minimum(q, 0.0), error, free) + rising


class _Foreign(Penalty):
    """A penalty that is not built in: its own formulas are used."""

    def __init__(self, penalty: Any, shape: tuple[int, int]) -> None:
        super().__init__(shape, curvature=1.0)  # nothing is free
        self.penalty = penalty
        self.note = f"with the penalty as {type(penalty).__qualname__} itself computes it"

    def admits(self, W: Array) -> bool:
        return bool(np.isfinite(self.penalty.value(W)))

    def value(self, W: Array) -> tuple[float, float]:
        total = float(self.penalty.value(W))
        return total, (W.size + 32) * EPS * abs(total) + 1e-300

    def scale(self, q: Array, error: Array, everywhere: bool = False) -> Array:
        ends = self.penalty.worst_ends(-q - error, error - q)
        room = np.min([self.penalty.dual_scale(V) for V in ends], axis=0)
        return np.where(room < 1, room * (1 - 8 * EPS), 1.0)

    def excess(self, W: Array, q: Array, error: Array, free: Bools) -> float:
        ends = self.penalty.worst_ends(-q - error, error - q)
        conjugate = sum(float(np.sum(self.penalty.conjugate_per_target(V))) for V in ends)
        value, rounding = self.value(W)
        size = float(np.abs(q * W).sum())
        found = value + conjugate + float((q * W).sum()) + float((error * np.abs(W)).sum())
        return max(found, 0.0) + rounding + (W.size + 32) * EPS * (size + conjugate)


#: The share of absolute values in the strength; None where it is a parameter.
_RATIOS = {"none": 0.0, "l2": 0.0, "l1": 1.0, "elastic_net": None, "multi_task": None}


def penalty_of(penalty: Any, shape: tuple[int, int]) -> Penalty:
    """The checker's own formulas for a built-in penalty, given by its name and parameters."""
    if not is_builtin(penalty, "penalties"):
        if not hasattr(penalty, "conjugate_per_target"):
            raise Refused("the penalty is none")
        return _Foreign(penalty, shape)
    given = parameters(penalty)
    name = given["name"]

    def strength(field: str, low: float = 0.0, high: float = np.inf, finite: bool = True) -> Array:
        """A number, or an array that broadcasts against the coefficients."""
        value = given.get(field)
        form = tuple("abc"[: value.ndim]) if isinstance(value, np.ndarray) else ()
        schema = {field: Field(form, low=low, high=high, finite=finite)}
        found = np.asarray(getattr(read(given, schema, {}, {}), field))
        pairs = zip(found.shape[::-1], shape[::-1], strict=False)
        if found.ndim > 2 or any(own not in (1, size) for own, size in pairs):
            raise Refused(f"{field} of the penalty has the shape {found.shape}")
        return found

    if name in _RATIOS:
        alpha = strength("alpha") if name != "none" else np.asarray(0.0)
        known = _RATIOS[name]
        ratio = strength("l1_ratio", high=1.0) if known is None else np.asarray(known)
        blocks = None
        if name == "multi_task":
            if alpha.ndim or ratio.ndim:
                raise Refused("strengths of tasks are one number")
            blocks = np.broadcast_to(np.arange(shape[0])[:, None], shape).copy()
        return Penalty(shape, alpha * ratio, alpha * (1.0 - ratio), blocks=blocks)
    if name in ("nonnegative", "bounded"):
        base = penalty_of(given.get("base"), shape)
        if name == "nonnegative" and base.blocks is not None and not base.note:
            return _NonNegativeBlocks(shape, base.linear, base.curvature, blocks=base.blocks)
        if base.note or base.blocks is not None or base.is_bounded:
            raise Refused("bounds go with none, l1, l2 and elastic_net")
        low, high = np.asarray(0.0), np.asarray(np.inf)
        if name == "bounded":
            low = strength("lower", -np.inf, 1e300, False)
            high = strength("upper", -1e300, np.inf, False)
        if np.any(low > high):
            raise Refused("the bounds leave no room")
        return Penalty(shape, base.linear, base.curvature, low, high)
    if name == "group":
        alpha, l2 = strength("alpha"), strength("l2")
        if alpha.ndim > 1 or l2.ndim:
            raise Refused("strengths of groups are one number, or one for each target")
        return _groups(given, shape, alpha, l2)
    raise Refused(f"the penalty {name!r} is not known")


def _groups(given: Any, shape: tuple[int, int], alpha: Array, l2: Array) -> Penalty:
    d, k = shape
    own = {"groups": Field((d,), "integer", low=0, high=d, optional=True)}
    groups = read(given, own, {}, {}).groups
    if groups is None:
        return Penalty(shape, np.broadcast_to(alpha, k), l2)
    count = int(groups.max(initial=-1)) + 1
    weights = read(given, {"weights": Field((count,), low=0.0, optional=True)}, {}, {}).weights
    weights = np.sqrt(np.bincount(groups, minlength=count)) if weights is None else weights
    linear = weights[groups][:, None] * np.broadcast_to(alpha, k)
    blocks = groups[:, None] + count * np.arange(k)
    return Penalty(shape, linear, l2, blocks=blocks)
