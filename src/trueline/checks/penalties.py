r"""The laws of penalties.

With p convex, and separable by target unless it is "coupled", one column of W per target:

    prox(V, t) = argmin_W 1/2 ||W - V||^2 + t p(W),     p*(V) = sup_W <V, W> - p(W).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.checks import book
from trueline.checks.book import EPS, LawBook
from trueline.penalties import Penalty

Array = NDArray[np.float64]

PENALTY_LAWS = LawBook("penalty")

_STEPS = (1e-3, 0.3, 1.0, 50.0)
_TARGETS = 3


@dataclass(frozen=True)
class PenaltyPoints:
    """Where the laws are tested.

    Attributes
    ----------
    inside : array of shape (m, d, k)
        Coefficients in the domain of p, exact zeros among them.
    anywhere : array of shape (m, d, k)
        Points of the whole space, for V and for starting points of the proximal step.
    """

    inside: Array
    anywhere: Array

    @classmethod
    def of(cls, penalty: Penalty) -> PenaltyPoints:
        """The points for one penalty: as many rows and columns as its strengths have."""
        d, k = _shape(penalty)
        rng = np.random.default_rng(0)
        sizes = 10.0 ** rng.uniform(-3, 2, (9, d, k))
        anywhere = sizes * rng.choice([-1.0, 0.0, 1.0], p=[0.4, 0.2, 0.4], size=(9, d, k))
        anywhere[0] = 0.0
        is_nonnegative = "nonnegative" in penalty.capabilities
        inside = np.abs(anywhere) if is_nonnegative else _interior(penalty, anywhere)
        return cls(inside, anywhere)


def _interior(penalty: Penalty, V: Array) -> Array:
    """Points off the bounds, where slopes can be taken from both sides."""
    margin = np.minimum(0.01 * (np.asarray(penalty.upper) - penalty.lower), 0.01)
    return np.clip(V, penalty.lower + margin, penalty.upper - margin)


def _nearest(penalty: Penalty, V: Array) -> Array:
    """The point of the penalty's domain that is nearest to V."""
    return np.clip(V, penalty.lower, penalty.upper)


def _arrays(part: Any) -> list[Array]:
    """All arrays among the fields of a part and of the parts inside it."""
    values = [getattr(part, field.name) for field in dataclasses.fields(part)]
    nested = [array for one in values if dataclasses.is_dataclass(one) for array in _arrays(one)]
    return [np.asarray(one) for one in values if isinstance(one, np.ndarray)] + nested


def _per_target(penalty: Penalty, values: Array) -> Array:
    """What a law may compare: values per target, or their total if the targets are coupled."""
    return values.sum(keepdims=True) if _is_coupled(penalty) else values


def _is_coupled(penalty: Penalty) -> bool:
    return "coupled" in penalty.capabilities


def _shape(penalty: Penalty) -> tuple[int, int]:
    groups = _groups(penalty)
    if groups is not None:
        return len(groups), np.broadcast_shapes((_TARGETS,), np.shape(_inner(penalty).alpha))[0]
    arrays: list[Array] = _arrays(penalty) if dataclasses.is_dataclass(penalty) else []
    d, k = np.broadcast_shapes((1, 1), *(array.shape for array in arrays))
    return (6 if d == 1 else d), (_TARGETS if k == 1 else k)


def _inner(penalty: Any) -> Any:
    """The penalty itself, without restrictions around it."""
    return _inner(penalty.base) if hasattr(penalty, "base") else penalty


def _groups(penalty: Penalty) -> Array | None:
    """The group of each coefficient, where a penalty was given groups."""
    return getattr(_inner(penalty), "groups", None)


def with_strength(penalty: Penalty, alpha: float | Array) -> Penalty | None:
    """The same penalty with another ``alpha``; None if it has no strength.

    Examples
    --------
    >>> from trueline.checks.penalties import with_strength
    >>> from trueline.penalties import L1, NonNegative
    >>> with_strength(NonNegative(L1(1.0)), 3.0)
    NonNegative(base=L1(alpha=3.0))
    """
    part: Any = penalty  # a dataclass, which the type of penalties does not say
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name == "alpha":
            return dataclasses.replace(part, alpha=alpha)
        if isinstance(value, Penalty):
            inner = with_strength(value, alpha)
            return None if inner is None else dataclasses.replace(part, **{field.name: inner})
    return None


def _value(penalty: Penalty, W: Array) -> Array:
    """p(W), as laws compare it."""
    return _per_target(penalty, penalty.value_per_target(W))


def _conjugate(penalty: Penalty, V: Array) -> Array:
    """p*(V), as laws compare it."""
    return _per_target(penalty, penalty.conjugate_per_target(V))


def _sum(penalty: Penalty, entries: Array) -> Array:
    """Sums over the coefficients, as laws compare them."""
    return _per_target(penalty, np.sum(entries, axis=0))


def _magnitude(penalty: Penalty, W: Array) -> Array:
    """What the rounding of p(W) is relative to."""
    values = [np.abs(_value(penalty, V)) for V in (W, np.abs(W))]
    return np.max([np.where(np.isfinite(value), value, 0.0) for value in values], axis=0)


@PENALTY_LAWS.law()
def value_is_the_sum_over_targets(penalty: Penalty, points: PenaltyPoints) -> None:
    """p(W) = sum_t p(W_t)."""
    for W in points.inside:
        columns = penalty.value_per_target(W)
        assert columns.shape == (W.shape[1],), f"shape {columns.shape} for W of shape {W.shape}"
        assert isinstance(penalty.value(W), float), f"value is a {type(penalty.value(W))}"
        book.assert_close(penalty.value(W), columns.sum(), 8 * EPS * np.abs(columns).sum())


@PENALTY_LAWS.law()
def value_is_zero_at_zero_and_never_negative(penalty: Penalty, points: PenaltyPoints) -> None:
    """p(0) = 0 and p(W) >= 0."""
    assert penalty.value(np.zeros(points.inside[0].shape)) == 0
    for W in points.anywhere:
        book.assert_at_most(0.0, penalty.value_per_target(W), 0.0)


@PENALTY_LAWS.law()
def targets_do_not_interact(penalty: Penalty, points: PenaltyPoints) -> None:
    """Changing one column of W changes nothing in the others, unless they are coupled."""
    if _is_coupled(penalty):
        scale = penalty.dual_scale(points.anywhere[1])
        assert np.all(scale == scale[0]), f"dual_scale differs between coupled targets: {scale!r}"
        return
    W, other = points.inside[1], points.inside[2].copy()
    other[:, 0] = W[:, 0]
    for name in ("value_per_target", "gradient", "conjugate_per_target", "dual_scale"):
        if (
            name in ("conjugate_per_target", "dual_scale")
            and "conjugate" not in penalty.capabilities
        ):
            continue
        one, two = getattr(penalty, name)(W)[..., 0], getattr(penalty, name)(other)[..., 0]
        assert np.array_equal(one, two), f"{name} of an unchanged column: {one!r} and {two!r}"


@PENALTY_LAWS.law()
def domain_is_what_is_declared(penalty: Penalty, points: PenaltyPoints) -> None:
    """p is finite where the domain is declared to be, and infinite at W < 0 if "nonnegative"."""
    for W in points.inside:
        assert np.isfinite(penalty.value_per_target(W)).all(), f"p is infinite at {W!r}"
    if "nonnegative" in penalty.capabilities:
        W = np.ones(points.inside[0].shape)
        W[0, 0] = -1e-300
        value = penalty.value_per_target(W)
        assert value[0] == np.inf, f"p is {value[0]!r} at a negative coefficient"
        assert np.isfinite(value[1:]).all(), "a negative coefficient concerns its own target alone"
        assert penalty.value(W) == np.inf
    for end, away in ((penalty.lower, -np.inf), (penalty.upper, np.inf)):
        beyond = np.nextafter(end, away) + np.zeros(points.inside[0].shape)
        if np.isfinite(beyond).all():
            assert (penalty.value_per_target(beyond) == np.inf).all(), f"p is finite at {beyond!r}"


@PENALTY_LAWS.law()
def curvature_is_not_overstated(penalty: Penalty, points: PenaltyPoints) -> None:
    """p((a + b)/2) <= (p(a) + p(b))/2 - mu/8 ||a - b||^2, convexity being mu = 0."""
    mu = penalty.curvature
    assert np.all(np.asarray(mu) >= 0), f"curvature is {mu!r}"
    for a in points.inside:
        for b in points.inside:
            ends = 0.5 * (_value(penalty, a) + _value(penalty, b))
            curvature = _sum(penalty, mu / 8 * (a - b) ** 2 + np.zeros(a.shape))
            size = _magnitude(penalty, a) + _magnitude(penalty, b) + curvature
            book.assert_at_most(_value(penalty, (a + b) / 2) + curvature, ends, 16 * EPS * size)


@PENALTY_LAWS.law("quadratic")
def quadratic_means_half_the_curvature_times_the_square(
    penalty: Penalty, points: PenaltyPoints
) -> None:
    """p(W) = sum_j mu_j / 2 w_j^2."""
    for W in points.inside:
        expected = np.sum(0.5 * penalty.curvature * W**2, axis=0)
        book.assert_close(penalty.value_per_target(W), expected, 16 * EPS * expected)


@PENALTY_LAWS.law()
def gradient_is_the_slope_of_the_value(penalty: Penalty, points: PenaltyPoints) -> None:
    """g_j = (p(w_j + h) - p(w_j - h)) / (2 h) for small h, away from w_j = 0."""
    for W in points.inside[1:]:
        gradient = penalty.gradient(W)
        assert gradient.shape == W.shape, f"shape {gradient.shape} for W of shape {W.shape}"
        # Targets that do not interact can be moved at once.
        k = W.shape[1]
        moves = [slice(t, t + 1) for t in range(k)] if _is_coupled(penalty) else [slice(0, k)]
        for at in ((j, these) for j in range(len(W)) for these in moves):
            step = 1e-5 * np.where(W[at] == 0, 1.0, np.abs(W[at]))
            left, right = W.copy(), W.copy()
            left[at] -= step
            right[at] += step
            difference = _value(penalty, right) - _value(penalty, left)
            slope = difference / (right[at] - left[at])
            rounding = 8 * EPS * _magnitude(penalty, right) / step
            smooth = (W[at] != 0) | ("smooth" in penalty.capabilities)
            slack = np.where(smooth, 1e-6 * np.abs(gradient[at]) + rounding + 1e-12, np.inf)
            off = np.abs(gradient[at] - slope)
            book.assert_at_most(off[smooth], 0.0, slack[smooth], w=W[at][smooth])


@PENALTY_LAWS.law()
def gradient_is_a_subgradient(penalty: Penalty, points: PenaltyPoints) -> None:
    """p(x) >= p(w) + <g, x - w> for all x, kinks included."""
    for W in points.inside:
        gradient = penalty.gradient(W)
        for x in points.inside:
            below = _value(penalty, W) + _sum(penalty, gradient * (x - W))
            size = _magnitude(penalty, W) + _magnitude(penalty, x)
            size = size + _sum(penalty, np.abs(gradient) * (np.abs(x) + np.abs(W)))
            book.assert_at_most(below, _value(penalty, x), 16 * EPS * size)


@PENALTY_LAWS.law()
def gradient_at_zero_is_the_least_subgradient(penalty: Penalty, points: PenaltyPoints) -> None:
    """W = 0 minimises p, so that its subgradient of least magnitude is 0."""
    zero = np.zeros(points.inside[0].shape)
    book.assert_close(penalty.gradient(zero), zero, 0.0)


@PENALTY_LAWS.law("prox")
def prox_is_optimal(penalty: Penalty, points: PenaltyPoints) -> None:
    """With w = prox(v, t): t p(x) >= t p(w) + <v - w, x - w> + t mu/2 ||x - w||^2 for all x."""
    mu = penalty.curvature
    for step in _STEPS:
        for v in points.anywhere:
            w = penalty.prox(v, step)
            assert w.shape == v.shape, f"shape {w.shape} for V of shape {v.shape}"
            reached = step * _value(penalty, w)
            assert np.isfinite(reached).all(), f"prox leaves the domain at v = {v!r}"
            for x in (*points.inside, *_neighbours(penalty, w)):
                linear = (v - w) * (x - w) + step * mu / 2 * (x - w) ** 2
                # Factors round relative to v, x and w; differences of p relative to its values.
                size = (np.abs(v) + np.abs(w)) * np.abs(x - w) + np.abs(v - w) * EPS * np.abs(x)
                value = step * _value(penalty, x)
                slack = 16 * EPS * (_sum(penalty, size) + np.abs(value) + np.abs(reached))
                book.assert_at_most(reached + _sum(penalty, linear), value, slack)


def _neighbours(penalty: Penalty, w: Array) -> list[Array]:
    """Points near w: a minimiser that is slightly off loses to one of them."""
    around = [w + 1e-4, w - 1e-4, w * (1 + 1e-4), w * (1 - 1e-4)]
    return [_nearest(penalty, x) for x in around]


@PENALTY_LAWS.law("prox")
def prox_is_not_expansive(penalty: Penalty, points: PenaltyPoints) -> None:
    """||prox(a) - prox(b)|| <= ||a - b|| / (1 + t mu), by coefficient unless they form blocks."""

    def length(V: Array) -> Array:
        is_joint = "blocks" in penalty.capabilities
        return np.sqrt(_sum(penalty, V**2)) if is_joint else np.abs(V)

    for step in _STEPS:
        for a in points.anywhere:
            for b in points.anywhere:
                distance = length(penalty.prox(a, step) - penalty.prox(b, step))
                allowed = length((a - b) / (1 + step * np.asarray(penalty.curvature)))
                book.assert_at_most(distance, allowed, 8 * EPS * (length(a) + length(b)))


@PENALTY_LAWS.law("prox")
def prox_of_step_zero_is_the_nearest_point(penalty: Penalty, points: PenaltyPoints) -> None:
    """prox(v, 0) = v in the domain, and the nearest point of it elsewhere."""
    for v, inside in zip(points.anywhere, points.inside):
        book.assert_close(penalty.prox(inside, 0.0), inside, 0.0)
        book.assert_close(penalty.prox(v, 0.0), _nearest(penalty, v), 0.0)


def _dual_points(penalty: Penalty, points: PenaltyPoints) -> list[Array]:
    """Points in the domain of p*: gradients of p, and scaled points of the space."""
    scaled = [V * (penalty.dual_scale(V) * (1 - 8 * EPS)) for V in points.anywhere]
    return [*(penalty.gradient(W) for W in points.inside), *scaled]


@PENALTY_LAWS.law("conjugate")
def conjugate_obeys_fenchel_and_young(penalty: Penalty, points: PenaltyPoints) -> None:
    """p(W) + p*(V) >= <V, W> for all W and V."""
    for V in _dual_points(penalty, points):
        conjugate = penalty.conjugate_per_target(V)
        assert conjugate.shape == (V.shape[1],), f"shape {conjugate.shape} for {V.shape}"
        for W in points.inside:
            value, most = _value(penalty, W), _per_target(penalty, conjugate)
            size = value + np.abs(most) + _sum(penalty, np.abs(V * W))
            book.assert_at_most(_sum(penalty, V * W), value + most, 16 * EPS * size)


@PENALTY_LAWS.law("conjugate")
def conjugate_is_reached_at_the_gradient(penalty: Penalty, points: PenaltyPoints) -> None:
    """p(W) + p*(V) = <V, W> at V = the gradient of p at W."""
    for W in points.inside:
        V = penalty.gradient(W) * (1 - 16 * EPS)  # rounding up would leave a bounded domain
        value, conjugate = _value(penalty, W), _conjugate(penalty, V)
        size = value + _sum(penalty, np.abs(V * W))
        book.assert_close(value + conjugate, _sum(penalty, V * W), 32 * EPS * size)


@PENALTY_LAWS.law("conjugate", "prox")
def prox_and_conjugate_agree(penalty: Penalty, points: PenaltyPoints) -> None:
    """p(w) + p*(V) = <V, w> at w = prox(v, t), V = (v - w)/t (Moreau's decomposition)."""
    for step in _STEPS:
        for v in points.anywhere:
            w = penalty.prox(v, step)
            V = (v - w) / step
            # The difference rounds: V is drawn into the domain, and the loss of it allowed for.
            V = V * (penalty.dual_scale(V) * (1 - 8 * EPS))
            value, conjugate = _value(penalty, w), _conjugate(penalty, V)
            error = 64 * EPS * (np.abs(v) + np.abs(w)) / step
            # An error of V moves p* by at most its largest slope, which is near w.
            slope = np.abs(w) + error / np.where(penalty.curvature == 0, np.inf, penalty.curvature)
            slack = _sum(penalty, np.abs(V * w) * 64 * EPS + 2 * error * slope)
            book.assert_close(value + conjugate, _sum(penalty, V * w), slack + 64 * EPS * value)


@PENALTY_LAWS.law("conjugate")
def dual_scale_is_the_largest(penalty: Penalty, points: PenaltyPoints) -> None:
    """t = dual_scale(V): 0 <= t <= 1, p*(s V) is finite for s < t, infinite for t < s <= 1."""
    for V in points.anywhere:
        scale = penalty.dual_scale(V)
        assert scale.shape == (V.shape[1],), f"shape {scale.shape} for V of shape {V.shape}"
        book.assert_at_most(0.0, scale, 0.0)
        book.assert_at_most(scale, 1.0, 0.0)
        for share in (0.0, 0.5, 1 - 8 * EPS):
            inside = penalty.conjugate_per_target(V * (share * scale))
            assert np.isfinite(inside).all(), f"p*({share} t V) = {inside!r}, t = {scale!r}"
        beyond = np.minimum(1.0, scale * (1 + 1e-9) + 1e-12)
        outside = penalty.conjugate_per_target(V * beyond)
        missed = (scale < 1.0) & np.isfinite(outside)
        assert not missed.any(), f"t = {scale!r} is not the largest: p*({beyond!r} V) = {outside!r}"
        unscaled = penalty.conjugate_per_target(V)
        assert not np.isinf(unscaled[scale == 1.0]).any(), f"t = 1, but p*(V) = {unscaled!r}"


@PENALTY_LAWS.law()
def strength_may_differ_by_target(penalty: Penalty, points: PenaltyPoints) -> None:
    """An alpha of shape (k,) acts on each target as its number alone would."""
    if _is_coupled(penalty):
        return
    strengths = np.array([0.25, 3.0, 0.0])
    joint = with_strength(penalty, strengths)
    if joint is None or _arrays(penalty):
        return
    W, V = points.inside[3], points.anywhere[4]
    for t, alpha in enumerate(strengths):
        alone = with_strength(penalty, float(alpha))
        assert alone is not None
        one = slice(t, t + 1)
        pairs = [
            (joint.value_per_target(W)[one], alone.value_per_target(W[:, one])),
            (joint.gradient(W)[:, one], alone.gradient(W[:, one])),
            (joint.prox(V, 0.7)[:, one], alone.prox(V[:, one], 0.7)),
        ]
        if "conjugate" in penalty.capabilities:
            pairs += [
                (joint.conjugate_per_target(V)[one], alone.conjugate_per_target(V[:, one])),
                (joint.dual_scale(V)[one], alone.dual_scale(V[:, one])),
            ]
        for together, single in pairs:
            size = np.where(np.isfinite(single), np.abs(single), 0.0)
            book.assert_close(together, single, 4 * EPS * size)


@PENALTY_LAWS.law("conjugate")
def worst_ends_bound_the_conjugate(penalty: Penalty, points: PenaltyPoints) -> None:
    """p*(V) <= p*(A) + p*(B) for every V between two ends, of which A and B are the worst."""
    rng = np.random.default_rng(1)
    for V in points.anywhere:
        low, high = V - rng.random(V.shape), V + rng.random(V.shape)
        bound = sum(penalty.conjugate_per_target(end) for end in penalty.worst_ends(low, high))
        for share in (0.0, 1.0, rng.random(V.shape), rng.integers(0, 2, V.shape)):
            inside = low + share * (high - low)
            value = penalty.conjugate_per_target(inside)
            slack = 64 * EPS * np.sum(np.abs(inside) ** 2 + np.abs(inside), axis=0)
            kept = np.isfinite(bound)
            book.assert_at_most(value[kept], np.asarray(bound)[kept], slack[kept] + 64 * EPS)


@PENALTY_LAWS.law()
def strength_zero_means_no_penalty(penalty: Penalty, points: PenaltyPoints) -> None:
    """alpha = 0: p = 0 on its domain, prox is the nearest point, p*(V) = sup <V, W> over it."""
    free = with_strength(penalty, 0.0)
    if free is None or np.any(free.curvature):  # a second strength is left
        return
    for W, V in zip(points.inside, points.anywhere):
        assert free.value(W) == 0
        book.assert_close(free.gradient(W), np.zeros_like(W), 0.0)
        book.assert_close(free.prox(V, 2.0), _nearest(free, V), 0.0)
        if "conjugate" in free.capabilities:
            # As far as the domain reaches in the direction of V.
            end = np.where(V > 0, free.upper, free.lower)
            expected = np.sum(np.where(V != 0, end * V, 0.0), axis=0, where=V != 0)
            expected = _per_target(free, expected)
            slack = np.where(np.isfinite(expected), 4 * EPS * np.abs(expected), 0.0)
            book.assert_close(_conjugate(free, V), expected, slack)


@PENALTY_LAWS.law()
def negative_and_infinite_strengths_are_refused(penalty: Penalty, points: PenaltyPoints) -> None:
    """alpha is finite and not negative, or ValueError is raised."""
    for alpha in (-1.0, np.nan, np.inf):
        try:
            changed = with_strength(penalty, alpha)
        except ValueError:
            continue
        assert changed is None, f"alpha = {alpha!r} was accepted"


@PENALTY_LAWS.law()
def extreme_coefficients_give_no_nan(penalty: Penalty, points: PenaltyPoints) -> None:
    """From 1e-308 to 1e308 nothing is NaN, and prox is finite."""
    shape = points.inside[0].shape
    for size in (5e-324, 1e-308, 1e-160, 1e150, 1e200, 1e308):
        W = np.full(shape, size)
        signed = W * np.where(np.arange(W.size).reshape(shape) % 2, 1.0, -1.0)
        results = {
            "value_per_target": penalty.value_per_target(W),
            "gradient": penalty.gradient(W),
        }
        if "prox" in penalty.capabilities:
            results["prox"] = penalty.prox(signed, 1.0)
            assert np.isfinite(results["prox"]).all(), f"prox of {size!r}: {results['prox']!r}"
        if "conjugate" in penalty.capabilities:
            results["conjugate_per_target"] = penalty.conjugate_per_target(signed)
            results["dual_scale"] = penalty.dual_scale(signed)
            tiny = with_strength(penalty, size)
            if tiny is not None:
                above = np.nextafter(W, np.inf)
                results["conjugate just outside"] = tiny.conjugate_per_target(above)
        for name, got in results.items():
            assert not np.isnan(got).any(), f"{name} is NaN at magnitude {size!r}"


@PENALTY_LAWS.law()
def single_precision_agrees_with_double(penalty: Penalty, points: PenaltyPoints) -> None:
    """float32 in gives finite numbers that agree with float64 to single precision."""
    unit = float(np.finfo(np.float32).eps)
    for W in points.inside.astype(np.float32):
        wide = W.astype(np.float64)
        value, expected = penalty.value_per_target(W), penalty.value_per_target(wide)
        book.assert_close(value, expected, 32 * unit * expected)
        book.assert_close(
            penalty.gradient(W), penalty.gradient(wide), 8 * unit * np.abs(penalty.gradient(wide))
        )
        if "prox" in penalty.capabilities:
            book.assert_close(
                penalty.prox(W, 0.5), penalty.prox(wide, 0.5), 8 * unit * np.abs(wide)
            )


@PENALTY_LAWS.law()
def inputs_are_not_modified(penalty: Penalty, points: PenaltyPoints) -> None:
    """No method writes into W or V."""
    W = points.inside[1].copy()
    W.flags.writeable = False
    penalty.value(W)
    penalty.gradient(W)
    if "prox" in penalty.capabilities:
        penalty.prox(W, 1.0)
    if "conjugate" in penalty.capabilities:
        penalty.conjugate_per_target(W)
        penalty.dual_scale(W)


@PENALTY_LAWS.law()
def no_coefficients_at_all(penalty: Penalty, points: PenaltyPoints) -> None:
    """W of shape (0, k): p = 0, p* = 0, dual_scale = 1."""
    if any(array.ndim == 2 and array.shape[0] > 1 for array in _arrays(penalty)):
        return
    if _groups(penalty) is not None:
        return
    k = points.inside[0].shape[1]
    W = np.empty((0, k))
    book.assert_close(penalty.value_per_target(W), np.zeros(k), 0.0)
    if "prox" in penalty.capabilities:
        assert penalty.prox(W, 1.0).shape == (0, k)
    if "conjugate" in penalty.capabilities:
        book.assert_close(penalty.conjugate_per_target(W), np.zeros(k), 0.0)
        book.assert_close(penalty.dual_scale(W), np.ones(k), 0.0)


@PENALTY_LAWS.law()
def part_is_a_frozen_value(penalty: Penalty, points: PenaltyPoints) -> None:
    """The penalty cannot be changed, survives pickling, and its text rebuilds it."""
    book.assert_is_frozen(penalty)
    book.assert_survives_pickling(penalty)
    book.assert_text_rebuilds(penalty)
    assert isinstance(penalty.name, str), "name is a string"
    assert isinstance(penalty.formula, str), "formula is a string"


def check_penalty(penalty: Penalty) -> list[str]:
    """Check that a penalty obeys every law that concerns it.

    Parameters
    ----------
    penalty : Penalty
        One of ours or one of your own, with any strength.

    Returns
    -------
    names : list of str
        The laws that were checked; laws about capabilities that the penalty does not claim are
        not.

    Raises
    ------
    AssertionError
        The first law that is broken, with its formula and the numbers.

    Examples
    --------
    >>> from trueline.checks import check_penalty
    >>> from trueline.penalties import L1
    >>> "prox is optimal" in check_penalty(L1(alpha=0.3))
    True
    """
    return PENALTY_LAWS.check(penalty, PenaltyPoints.of(penalty))
