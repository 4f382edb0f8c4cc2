r"""The laws of losses.

With l(z) = loss(y, z) convex in the score z:

    l'  is the slope of l,    l''  the slope of l',    l*(u) = sup_z (u z - l(z)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueline.checks import book
from trueline.checks.book import EPS, LawBook
from trueline.losses import Loss

Array = NDArray[np.float64]

LOSS_LAWS = LawBook("loss")

# Steps out from a kink or a target: dense near zero, far out to both sides.
_OFFSETS = np.concatenate(
    [[0.0], *((-s, s) for s in (0.001, 0.1, 0.4, 0.9, 1.7, 5.0, 40.0, 900.0))]
)
_DUALS = np.array([-900.0, -3.0, -1.0, -0.7, -0.2, 0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 800.0])
# What targets a loss may be about; the first that it accepts is used.
_TARGETS: tuple[tuple[float, ...], ...] = (
    (-2.5, 0.0, 0.3, 1.0, 70.0),
    (-1.0, 1.0),
    (0.0, 1.0),
    (0.0, 1.0, 2.0, 7.0),
    (0.25, 1.0, 30.0),
)


@dataclass(frozen=True)
class LossPoints:
    """Where the laws are tested: pairs of targets and scores, all of them in one long row.

    Attributes
    ----------
    targets : array
        Values that the loss accepts as targets.
    y, z : arrays of equal shape
        Every target with scores around it, around zero, and on both sides of every kink.
    """

    targets: Array
    y: Array
    z: Array

    @classmethod
    def of(cls, loss: Loss, targets: ArrayLike | None = None) -> LossPoints:
        """The points for one loss."""
        chosen = _accepted_targets(loss) if targets is None else np.asarray(targets, dtype=float)
        loss.check_target(chosen)
        pairs = [
            (y, centre + offset)
            for y in chosen
            for centre in {0.0, float(y), *(y + kink for kink in loss.kinks)}
            for offset in _OFFSETS
        ]
        y, z = np.array(pairs).T
        z = np.clip(z, -loss.score_limit, loss.score_limit)
        return cls(chosen, np.ascontiguousarray(y), np.ascontiguousarray(z))

    def step(self) -> Array:
        """A step that balances the truncation and the rounding of a central difference."""
        return 1e-5 * np.maximum(1.0, np.abs(self.z))

    def away_from_kinks(self, loss: Loss, distance: Array) -> NDArray[np.bool_]:
        """Where no kink lies within the distance of the score."""
        away = np.ones(self.z.shape, dtype=bool)
        for kink in loss.kinks:
            away &= np.abs(self.z - self.y - kink) > distance
        return away


def _accepted_targets(loss: Loss) -> Array:
    for values in _TARGETS:
        try:
            loss.check_target(np.array(values))
        except ValueError:
            continue
        return np.array(values)
    raise ValueError(f"{loss!r} accepts none of the usual targets: give targets=... of its own.")


def _pairs(points: LossPoints) -> tuple[Array, Array, Array]:
    """Targets with every pair of the scores that belong to them."""
    rows = []
    for y in points.targets:
        scores = np.unique(points.z[points.y == y])[::2]
        first, second = np.meshgrid(scores, scores)
        rows.append(np.stack([np.full(first.size, y), first.ravel(), second.ravel()]))
    y, first, second = np.concatenate(rows, axis=1)
    return y, first, second


def _slope_matches(
    primitive: Callable[[Array, Array], Array],
    slope: Callable[[Array, Array], Array],
    loss: Loss,
    points: LossPoints,
) -> None:
    step = points.step()
    where = points.away_from_kinks(loss, 2 * step)
    y, z, step = points.y[where], points.z[where], step[where]
    left, right = z - step, z + step
    difference = (primitive(y, right) - primitive(y, left)) / (right - left)
    got = slope(y, z)
    # The values round relatively, and the scores by the rounding of z - y.
    rounding = np.abs(primitive(y, left)) + np.abs(primitive(y, right))
    rounding = rounding + (np.abs(y) + np.abs(z)) * (
        np.abs(slope(y, left)) + np.abs(slope(y, right))
    )
    book.assert_close(
        got, difference, 1e-6 * np.abs(got) + 1e-9 + 4 * EPS * rounding / step, y=y, z=z
    )


@LOSS_LAWS.law()
def gradient_is_the_slope_of_the_value(loss: Loss, points: LossPoints) -> None:
    """l'(z) = (l(z + h) - l(z - h)) / (2 h) for small h, away from kinks."""
    _slope_matches(loss.value, loss.gradient, loss, points)


@LOSS_LAWS.law("curvature")
def curvature_is_the_slope_of_the_gradient(loss: Loss, points: LossPoints) -> None:
    """l''(z) = (l'(z + h) - l'(z - h)) / (2 h) for small h, away from kinks."""
    _slope_matches(loss.gradient, loss.curvature, loss, points)


@LOSS_LAWS.law("curvature")
def derivatives_are_gradient_and_curvature(loss: Loss, points: LossPoints) -> None:
    """Formed together they are what they are alone, to rounding."""
    y, z = points.y, points.z
    for got, alone in zip(
        loss.derivatives(y, z), (loss.gradient(y, z), loss.curvature(y, z)), strict=True
    ):
        book.assert_close(got, alone, 4 * EPS * np.abs(alone), y=y, z=z)


@LOSS_LAWS.law()
def value_is_never_negative(loss: Loss, points: LossPoints) -> None:
    """l(z) >= 0: an objective proves that none is lower by more than itself."""
    book.assert_at_most(-loss.value(points.y, points.z), 0.0, 0.0, y=points.y, z=points.z)


@LOSS_LAWS.law()
def value_is_convex(loss: Loss, points: LossPoints) -> None:
    """l((a + b) / 2) <= (l(a) + l(b)) / 2."""
    y, a, b = _pairs(points)
    middle, ends = loss.value(y, (a + b) / 2), 0.5 * (loss.value(y, a) + loss.value(y, b))
    reach = (np.abs(a) + np.abs(b) + np.abs(y)) * (
        np.abs(loss.gradient(y, a)) + np.abs(loss.gradient(y, b))
    )
    book.assert_at_most(middle, ends, 8 * EPS * (np.abs(ends) + reach), y=y, a=a, b=b)


@LOSS_LAWS.law()
def gradient_is_a_subgradient(loss: Loss, points: LossPoints) -> None:
    """l(b) >= l(a) + l'(a) (b - a) for all a and b, kinks included."""
    y, a, b = _pairs(points)
    slope = loss.gradient(y, a)
    below = loss.value(y, a) + slope * (b - a)
    size = np.abs(loss.value(y, a)) + np.abs(loss.value(y, b))
    size = size + (np.abs(slope) + np.abs(loss.gradient(y, b))) * (
        np.abs(a) + np.abs(b) + np.abs(y)
    )
    book.assert_at_most(below, loss.value(y, b), 8 * EPS * size, y=y, a=a, b=b)


@LOSS_LAWS.law()
def kinks_are_continuous(loss: Loss, points: LossPoints) -> None:
    """At z - y = kink exactly: l is continuous, and l' lies between the slopes on both sides."""
    for y in points.targets:
        for kink in loss.kinks:
            z = np.array(y + kink)
            target = np.array(y)
            here = loss.value(target, z)
            size = np.abs(here) + (np.abs(z) + np.abs(y)) * np.abs(loss.gradient(target, z))
            for beside in (np.nextafter(z, -np.inf), np.nextafter(z, np.inf)):
                # A convex function changes by its steeper slope times the step at most.
                change = np.abs(beside - z) * np.abs(loss.gradient(target, beside))
                slack = 8 * EPS * size + 2 * change
                book.assert_close(loss.value(target, beside), here, slack, y=y, z=z)
            before, slope, after = (loss.gradient(target, z + h) for h in (-1e-7, 0.0, 1e-7))
            book.assert_at_most(before, slope, 8 * EPS * np.abs(slope), y=y, z=z)
            book.assert_at_most(slope, after, 8 * EPS * np.abs(slope), y=y, z=z)


@LOSS_LAWS.law("smooth")
def curvature_bound_holds(loss: Loss, points: LossPoints) -> None:
    """0 <= l''(z) <= L and abs(l'(a) - l'(b)) <= L abs(a - b), with L finite."""
    bound = loss.curvature_bound
    assert np.isfinite(bound), f"a smooth loss has a finite curvature bound, got {bound!r}"
    y, a, b = _pairs(points)
    change = np.abs(loss.gradient(y, a) - loss.gradient(y, b))
    rounding = 8 * EPS * bound * (np.abs(a) + np.abs(b) + np.abs(y))
    book.assert_at_most(change, bound * np.abs(a - b), rounding, y=y, a=a, b=b)
    if "curvature" in loss.capabilities:
        curvature = loss.curvature(points.y, points.z)
        book.assert_at_most(0.0, curvature, 0.0, y=points.y, z=points.z)
        book.assert_at_most(curvature, bound, 4 * EPS * bound, y=points.y, z=points.z)


@LOSS_LAWS.law("quadratic")
def quadratic_means_half_the_squared_error(loss: Loss, points: LossPoints) -> None:
    """l(z) = 1/2 (z - y)^2."""
    expected = 0.5 * (points.z - points.y) ** 2
    book.assert_close(loss.value(points.y, points.z), expected, 4 * EPS * expected)


def _dual_points(points: LossPoints) -> tuple[Array, Array]:
    y, u = np.meshgrid(points.targets, _DUALS)
    return y.ravel(), u.ravel()


@LOSS_LAWS.law("conjugate")
def conjugate_obeys_fenchel_and_young(loss: Loss, points: LossPoints) -> None:
    """l(z) + l*(u) >= u z for all z and u."""
    for y in points.targets:
        scores = np.unique(np.concatenate([points.z[points.y == y], [-1e6, 1e6]]))
        duals = loss.project_dual(np.full(_DUALS.shape, y), _DUALS)
        z, u = (axis.ravel() for axis in np.meshgrid(scores, duals))
        target = np.full(z.shape, y)
        value, conjugate = loss.value(target, z), loss.conjugate(target, u)
        size = np.abs(value) + np.abs(conjugate) + np.abs(u) * (np.abs(z) + np.abs(y))
        book.assert_at_most(u * z, value + conjugate, 8 * EPS * size, y=target, z=z, u=u)


@LOSS_LAWS.law("conjugate")
def conjugate_is_reached_at_the_gradient(loss: Loss, points: LossPoints) -> None:
    """l(z) + l*(u) = u z at u = l'(z)."""
    y, z = points.y, points.z
    u = loss.gradient(y, z)
    value, conjugate = loss.value(y, z), loss.conjugate(y, u)
    size = np.abs(value) + np.abs(u) * (np.abs(z) + np.abs(y)) + u**2
    book.assert_close(value + conjugate, u * z, 16 * EPS * size, y=y, z=z, u=u)


@LOSS_LAWS.law("conjugate")
def conjugate_is_infinite_outside_of_its_domain(loss: Loss, points: LossPoints) -> None:
    """l*(u) is infinite exactly where project_dual moves u, and there u z - l(z) has no bound."""
    y, u = _dual_points(points)
    outside = loss.project_dual(y, u) != u
    conjugate = loss.conjugate(y, u)
    assert np.array_equal(np.isposinf(conjugate), outside), _first(
        np.isposinf(conjugate) != outside, y=y, u=u, conjugate=conjugate
    )
    for target, dual in zip(y[outside], u[outside]):
        far = target + np.array([-1e12, 1e12])
        gain = dual * far - loss.value(np.full(2, target), far)
        assert np.max(gain) > 1e6, f"sup_z (u z - l(z)) is finite at y = {target!r}, u = {dual!r}"


@LOSS_LAWS.law("conjugate")
def projection_lands_on_the_nearest_dual_point(loss: Loss, points: LossPoints) -> None:
    """project_dual is idempotent, lands in the domain of l*, and no point of it is nearer."""
    y, u = _dual_points(points)
    inside = loss.project_dual(y, u)
    conjugate = loss.conjugate(y, inside)
    assert np.all(np.isfinite(conjugate)), _first(~np.isfinite(conjugate), y=y, u=u)
    again = loss.project_dual(y, inside)
    assert np.array_equal(again, inside), _first(
        again != inside, y=y, u=u, once=inside, twice=again
    )
    for other in _DUALS:
        candidate = np.full(u.shape, other)
        allowed = np.isfinite(loss.conjugate(y, candidate))
        nearer = allowed & (np.abs(candidate - u) < np.abs(inside - u))
        assert not nearer.any(), _first(nearer, y=y, u=u, projected=inside, nearer=candidate)


def _first(mask: NDArray[np.bool_], **arrays: NDArray[np.floating]) -> str:
    place = int(np.argmax(mask))
    return ", ".join(f"{name} = {values[place]!r}" for name, values in arrays.items())


def _extreme_points(points: LossPoints) -> tuple[Array, Array]:
    sizes = np.array([5e-324, 1e-308, 1e-150, 1.0, 1e150, 1e200, 1e308])
    scores = np.concatenate([-sizes, [0.0], sizes])
    y, z = np.meshgrid(np.concatenate([points.targets, _huge_targets(points)]), scores)
    return y.ravel(), z.ravel()


def _huge_targets(points: LossPoints) -> Array:
    # Only losses of real targets see huge ones; labels and counts are as they are.
    is_real = points.targets.min() < 0 and points.targets.max() > 1
    return np.array([-1e308, -1e150, 1e-150, 1e150, 1e308]) if is_real else np.array([])


@LOSS_LAWS.law()
def extreme_scores_give_no_nan(loss: Loss, points: LossPoints) -> None:
    """Up to 1e308 nothing is NaN, and l(z) is infinite only if abs(l(0)) + abs(z l'(z)) is.

    (A convex l lies below l(0) + z l'(z).)
    """
    y, z = _extreme_points(points)
    value, slope, curvature = loss.value(y, z), loss.gradient(y, z), loss.curvature(y, z)
    for name, got in (("value", value), ("gradient", slope), ("curvature", curvature)):
        assert not np.isnan(got).any(), f"{name} is NaN: " + _first(np.isnan(got), y=y, z=z)
    reach = np.abs(loss.value(y, np.zeros_like(z))) + np.abs(z) * np.abs(slope)
    # Where z - y itself overflows, a finite value is out of reach of plain arithmetic.
    wrong = ~np.isfinite(value) & np.isfinite(reach) & np.isfinite(z - y)
    assert not wrong.any(), "value is infinite: " + _first(wrong, y=y, z=z, reach=reach)
    if "conjugate" in loss.capabilities:
        conjugate = loss.conjugate(y, z)
        bad = np.isnan(conjugate)
        assert not bad.any(), "conjugate is NaN: " + _first(bad, y=y, u=z)
        moved = loss.project_dual(y, z)
        assert np.isfinite(moved).all(), "projection: " + _first(~np.isfinite(moved), y=y, u=z)


@LOSS_LAWS.law()
def single_precision_agrees_with_double(loss: Loss, points: LossPoints) -> None:
    """float32 in gives finite numbers that agree with float64 to single precision."""
    y, z = points.y.astype(np.float32), points.z.astype(np.float32)
    wide_y, wide_z = y.astype(np.float64), z.astype(np.float64)
    where = points.away_from_kinks(loss, 1e-3 * np.maximum(1.0, np.abs(points.y)))
    unit = float(np.finfo(np.float32).eps)
    slope = np.abs(loss.gradient(wide_y, wide_z))
    for name in ("value", "gradient", "curvature"):
        got = getattr(loss, name)(y, z)
        expected = getattr(loss, name)(wide_y, wide_z)
        assert np.issubdtype(got.dtype, np.floating), f"{name} has dtype {got.dtype}"
        assert np.isfinite(got).all(), f"{name}: " + _first(~np.isfinite(got), y=y, z=z)
        size = np.abs(expected) + (slope + 1.0) * (np.abs(wide_y) + np.abs(wide_z))
        difference = np.abs(got - expected)[where]
        book.assert_at_most(difference, 0.0, 8 * unit * size[where], y=y[where], z=z[where])


@LOSS_LAWS.law()
def shapes_broadcast(loss: Loss, points: LossPoints) -> None:
    """Results have the shape of y and z together, and equal the results one by one."""
    y = np.resize(points.targets, (4, 1))
    z = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
    for name in ("value", "gradient", "curvature", "conjugate", "project_dual"):
        if name in ("conjugate", "project_dual") and "conjugate" not in loss.capabilities:
            continue
        method = getattr(loss, name)
        whole = method(y, z)
        assert whole.shape == (4, 3), f"{name} of shapes (4, 1) and (4, 3) has shape {whole.shape}"
        single = [[method(y[i], z[i, j : j + 1])[0] for j in range(3)] for i in range(4)]
        book.assert_close(whole, single, 2 * EPS * np.abs(np.where(np.isfinite(whole), whole, 0.0)))
        if name != "project_dual":
            flipped = method(np.broadcast_to(y, (4, 3)), z[:, :1])
            assert flipped.shape == (4, 3), f"{name} of (4, 3) and (4, 1) has shape {flipped.shape}"
        assert method(y[:0], z[:0]).shape == (0, 3), f"{name} of no rows at all"


@LOSS_LAWS.law()
def inputs_are_not_modified(loss: Loss, points: LossPoints) -> None:
    """No method writes into y, z or u."""
    y, z = points.y.copy(), points.z.copy()
    y.flags.writeable = z.flags.writeable = False
    for name in ("value", "gradient", "curvature"):
        getattr(loss, name)(y, z)
    if "conjugate" in loss.capabilities:
        loss.conjugate(y, z)
        loss.project_dual(y, z)


@LOSS_LAWS.law()
def part_is_a_frozen_value(loss: Loss, points: LossPoints) -> None:
    """The loss cannot be changed, survives pickling, and its text rebuilds it."""
    book.assert_is_frozen(loss)
    book.assert_survives_pickling(loss)
    book.assert_text_rebuilds(loss)
    assert isinstance(loss.name, str), "name is a string"
    assert isinstance(loss.formula, str), "formula is a string"


def check_loss(loss: Loss, targets: ArrayLike | None = None) -> list[str]:
    """Check that a loss obeys every law that concerns it.

    Parameters
    ----------
    loss : Loss
        One of ours or one of your own.
    targets : array-like, optional
        Targets to test with. By default real numbers, or the first of {-1, 1}, {0, 1}, counts
        and positive numbers that ``loss.check_target`` accepts.

    Returns
    -------
    names : list of str
        The laws that were checked; laws about capabilities that the loss does not claim are not.

    Raises
    ------
    AssertionError
        The first law that is broken, with its formula and the numbers.

    Examples
    --------
    >>> from trueline.checks import check_loss
    >>> from trueline.losses import Huber
    >>> check_loss(Huber(delta=0.5))[0]
    'gradient is the slope of the value'
    """
    return LOSS_LAWS.check(loss, LossPoints.of(loss, targets))
