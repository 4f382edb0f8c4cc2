"""The largest margin: the hyperplane as far as possible from the nearest rows.

    with an intercept       gamma = max  min_i y_i (x_i.w + b) / ||w||
                                  = half the distance of the convex hulls of both classes
    without an intercept    gamma = max  min_i y_i x_i.w / ||w||
                                  = the distance of the origin from the convex hull of the y_i x_i

Every hyperplane gives a lower bound, every pair of points of the hulls an upper bound (for several
classes, every point of the hull of the contrasts of :mod:`trueline.separation.inequalities`, where
the norm is that of all weights). Wolfe's method finds both on a working set of rows; the rows that
the hyperplane has too near are added until there are none. The weights are then refined with
residuals in exact arithmetic, so that both bounds agree to nearly all digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.special.separation import MarginCertificate
from trueline.separation.lifting import Integers, integer_rows
from trueline.separation.nearest import NearestPair, NearestPoint
from trueline.wording import Readable, counted

if TYPE_CHECKING:
    from trueline.check import Verification

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Wolfe's method stops when no row is nearer than this part of the margin.
_CLOSE = 1e-11
_ROUNDS = 200
_REFINEMENTS = 3
_DIGITS = 2**150
_NOT_TOLD = "The margin cannot be told from zero in double precision."


@dataclass(frozen=True, repr=False)
class MaximumMargin(Readable):
    """The hyperplane of largest margin, with bounds on the margin from both sides.

    Attributes
    ----------
    coef : array of shape (d,), or (k, d) for more than two classes
        Scaled such that the nearest rows have ``y_i (x_i.w + b) = 1`` up to rounding, as in a
        support vector machine with a hard margin.
    intercept : float
    margin : float
        Proven: every row has at least this distance from the hyperplane (for several classes, see
        :class:`~trueline.Separability`).
    upper_bound : float
        Proven: no hyperplane has a larger margin.
    support : array of int
        The rows that prove the upper bound, counted from 0.
    against : array of int
        The class, as a position, that each of them is held against.
    weights : array
        Their weights, of sum one; with an intercept, of sum one in each class.
    radius : float
        Not below the largest norm of a row.
    classes : array of shape (k,)
    fit_intercept : bool

    Examples
    --------
    >>> from trueline import maximum_margin
    >>> best = maximum_margin([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 0, 0, 1])
    >>> best.coef.round(6), round(best.intercept, 6), round(best.margin, 6)
    (array([2., 2.]), -3.0, 0.353553)
    """

    coef: Array
    intercept: float
    margin: float
    upper_bound: float
    support: NDArray[np.integer]
    against: NDArray[np.integer]
    weights: Array
    radius: float
    classes: Any
    fit_intercept: bool

    @property
    def relative_gap(self) -> float:
        """(upper bound - margin) / margin."""
        return (self.upper_bound - self.margin) / self.margin

    @property
    def certificate(self) -> MarginCertificate:
        """Both bounds, with what proves them."""
        return MarginCertificate(
            self.classes,
            self.fit_intercept,
            np.atleast_2d(self.coef),
            self.intercept,
            self.margin,
            self.upper_bound,
            self.support,
            self.against,
            self.weights,
            self.radius,
        )

    def verify(self, X: Any, y: Any) -> Verification:
        """Check both bounds against the data, independently of the search."""
        return self.certificate.verify(X, y)

    def __str__(self) -> str:
        return (
            f"The largest margin is {self.margin:.10g}, proven to a relative "
            f"{self.relative_gap:.1g}; {counted(len(self.support), 'row')} of norm up to "
            f"{self.radius:.4g} attain it."
        )


class _Points:
    """Inequalities as points in the metric of the data: blocks of all classes, or one block."""

    def __init__(self, X: Any, codes: Indices, k: int) -> None:
        self.X, self.codes, self.k = X, codes, k
        self.n, self.d = X.shape
        self.count = self.n * (k - 1)

    def places(self, ids: Indices) -> tuple[Indices, Indices, Indices]:
        """Row, own class and other class of each inequality."""
        row, t = np.divmod(ids, self.k - 1)
        own = self.codes[row]
        return row, own, t + (t >= own)

    def take(self, ids: Indices) -> Array:
        """Some points."""
        row, own, other = self.places(ids)
        part = self.X[row]
        part = part.toarray() if sp.issparse(part) else part
        if self.k == 2:
            return part * np.where(own == 1, 1.0, -1.0)[:, None]
        out = np.zeros((len(ids), self.k, self.d))
        out[np.arange(len(ids)), own] = part
        out[np.arange(len(ids)), other] = -part
        return out.reshape(len(ids), -1)

    def inner(self, w: Array) -> Array:
        """p_i.w for all points."""
        if self.k == 2:
            return np.where(self.codes == 1, 1.0, -1.0) * np.asarray(self.X @ w)
        scores = np.asarray(self.X @ w.reshape(self.k, self.d).T)
        every = np.arange(self.n)
        others = np.ones(scores.shape, dtype=bool)
        others[every, self.codes] = False
        return (scores[every, self.codes][:, None] - scores)[others]

    def reach(self, w: Array, largest: Array) -> float:
        """A bound on the rounding error of every entry of ``inner(w)``."""
        weight = np.abs(w.reshape(-1, self.d)).sum(axis=0)
        return float((self.d + 8) * _EPS * (largest @ weight) + 1e-290)


def largest_margin(
    X: Any, codes: Indices, classes: Any, *, fit_intercept: bool = True
) -> MaximumMargin:
    """The largest margin of classes that are separable.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
        float64, finite.
    codes : array of shape (n,)
        Positions in ``classes``; of two classes the second is the positive side.
    classes : array of shape (k,)
        More than two only without an intercept.
    fit_intercept : bool

    Raises
    ------
    ArithmeticError
        If the margin is too small, relative to the size of the rows, to be told from zero in
        double precision.
    """
    k = len(classes)
    if k > 2 and fit_intercept:
        raise ValueError(
            "With more than two classes the margin is that of scores without intercepts: give "
            "fit_intercept=False, and a column of ones if there should be a constant feature."
        )
    A, power = _in_unit(X)
    points = _Points(A, codes, k)
    values = abs(A)
    top = values.max(axis=0)
    largest = np.asarray(top.toarray() if sp.issparse(top) else top).ravel()
    squares = values.multiply(values).sum(axis=1) if sp.issparse(A) else np.einsum("ij,ij->i", A, A)
    radius = float(np.sqrt(np.max(squares)))
    if radius == 0:
        raise ArithmeticError("All rows are zero: there is no margin.")
    nearest, ids, unit = _nearest(points, largest, fit_intercept)
    best = _refined(points, nearest, ids, unit)
    found = _bounded(points, largest, fit_intercept, best, power)
    # Sums of squares err by less than this.
    reach = float(np.ldexp(radius * (1 + (A.shape[1] + 8) * _EPS), -power))
    return replace(found, radius=reach, classes=classes)


def _in_unit(X: Any) -> tuple[Any, int]:
    """X times a power of two, with its largest entry about one."""
    top = float(abs(X).max()) if X.shape[0] else 0.0
    power = -int(np.frexp(top)[1]) if top > 0 else 0
    if -100 <= power <= 100:
        return X, 0
    if sp.issparse(X):
        out = X.copy()
        out.data = np.ldexp(out.data, power)
        return out, power
    return np.ldexp(X, power), power


def _nearest(
    points: _Points, largest: Array, fit_intercept: bool
) -> tuple[NearestPoint, Indices, float]:
    """Wolfe's method on a growing set of rows.

    Returns
    -------
    solver : NearestPoint
    ids : array
        The inequality of each of its points.
    unit : float
        The length that is one for the solver.
    """
    few = max(40, points.d + 1)
    w = _mean_difference(points)
    working = _near(points, w, None, few, fit_intercept)
    solver: NearestPoint | None = None
    fresh = working
    # With an intercept only differences count: those of small numbers are exact.
    middle = np.asarray(points.X.mean(axis=0)).ravel() if fit_intercept else np.zeros(points.d)
    first = _around(points, fresh, middle)
    radius = float(np.sqrt((first**2).sum(axis=1).max())) or 1.0
    for _ in range(_ROUNDS):
        P = _around(points, fresh, middle) / radius
        above = points.places(fresh)[1] == 1
        if not fit_intercept:
            if solver is None:
                solver = NearestPoint(P)
            else:
                solver.add(P)
        elif isinstance(solver, NearestPair):
            solver.extend(P[above], -P[~above])
        else:
            solver = NearestPair(P[above], -P[~above])
        solver.improve(enough=1 - 0.1 * _CLOSE)
        length = float(solver.x @ solver.x)
        if length <= 1e-26:
            raise ArithmeticError(
                "The margin is smaller than the rows by more than 13 digits: the hyperplane of "
                "largest margin cannot be told in double precision."
            )
        slack = max(_CLOSE * length, 4 * points.reach(solver.x, largest) / radius)
        fresh = _near(points, solver.x, (working, slack * radius), few, fit_intercept)
        if len(fresh) == 0:
            return solver, working, radius
        working = np.concatenate([working, fresh])
    raise ArithmeticError(f"The margin was not found in {_ROUNDS} rounds; please report this.")


def _around(points: _Points, ids: Indices, middle: Array) -> Array:
    """Some points, the rows measured from ``middle`` (zero for more than two classes)."""
    P = points.take(ids)
    if points.k > 2 or not middle.any():
        return P
    return P - np.where(points.places(ids)[1] == 1, 1.0, -1.0)[:, None] * middle


def _mean_difference(points: _Points) -> Array:
    sums = np.array(
        [np.asarray(points.X[points.codes == c].mean(axis=0)).ravel() for c in range(points.k)]
    )
    return sums[1] - sums[0] if points.k == 2 else (sums - sums.mean(axis=0)).ravel()


def _near(
    points: _Points,
    w: Array,
    known: tuple[Indices, float] | None,
    few: int,
    fit_intercept: bool,
) -> Indices:
    """The points nearest to the hyperplane of w, of each class if there is an intercept.

    With a working set and a slack, those not in it that are nearer by more than the slack.
    """
    inner = points.inner(w)
    parts = [points.codes == c for c in (0, 1)] if fit_intercept else [np.ones(len(inner), bool)]
    out = []
    for part in parts:
        ids = np.flatnonzero(part)
        if known is not None:
            working, slack = known
            best = inner[working[part[working]]].min()
            ids = ids[inner[ids] < best - slack]
            ids = ids[~np.isin(ids, working)]
        if len(ids) > few:
            ids = ids[np.argpartition(inner[ids], few)[:few]]
        out.append(ids[np.argsort(inner[ids], kind="stable")])
    return np.concatenate(out)


def _members(points: _Points, solver: NearestPoint, ids: Indices) -> list[tuple[int, ...]]:
    """The inequalities that each point of the corral is a sum of: one, or one of each class."""
    if not isinstance(solver, NearestPair):
        return [(int(ids[place]),) for place in solver.corral]
    is_above = points.places(ids)[1] == 1
    above, below = ids[is_above], ids[~is_above]
    return [(int(above[i]), int(below[j])) for i, j in solver.corral]


class _Exact:
    """Weights of the corral, of sum one, and the point they give, in exact arithmetic."""

    def __init__(
        self, points: _Points, members: list[tuple[int, ...]], values: list[Fraction]
    ) -> None:
        # More digits than a double has, but not more and more of them.
        whole_values = [int(value * _DIGITS) for value in values]
        total = sum(whole_values)
        self.values = [Fraction(value, total) for value in whole_values]
        self.weights: dict[int, Fraction] = {}
        for group, value in zip(members, self.values, strict=True):
            for i in group:
                self.weights[i] = self.weights.get(i, Fraction(0)) + value
        self.x = _combined(points, self.weights)
        self.square = sum((v * v for v in self.x), Fraction(0))
        ids = np.array(sorted(self.weights), dtype=np.intp)
        whole, exponent = integer_rows(points.take(ids))
        numbers, common = _common(self.x)
        products = whole.astype(object) @ numbers
        inner = {
            int(i): Fraction(int(v), common) * Fraction(2) ** int(e)
            for i, v, e in zip(ids, products, exponent, strict=True)
        }
        #: p_k.x for the points of the corral.
        self.inner = [sum((inner[i] for i in group), Fraction(0)) for group in members]


def _combined(points: _Points, weights: dict[int, Fraction]) -> list[Fraction]:
    """sum_i weights_i p_i, exactly."""
    ids = np.array(sorted(weights), dtype=np.intp)
    whole, exponent = integer_rows(points.take(ids))
    parts = [weights[int(i)] * Fraction(2) ** int(e) for i, e in zip(ids, exponent, strict=True)]
    numbers, common = _common(parts)
    return [Fraction(int(v), common) for v in numbers @ whole.astype(object)]


def _common(values: list[Fraction]) -> tuple[Integers, int]:
    """Integers and the denominator that they share."""
    common = 1
    for value in values:
        common *= (value * common).denominator
    out: Integers = np.empty(len(values), dtype=object)
    out[:] = [int(value * common) for value in values]
    return out, common


def _refined(points: _Points, solver: NearestPoint, ids: Indices, radius: float) -> _Exact:
    """The weights of the corral, corrected with exact residuals.

    At the nearest point x of the affine hull all p_k.x are equal: their differences tell what is
    missing, and the triangular factor of the corral corrects it.
    """
    members = _members(points, solver, ids)
    best = now = _Exact(points, members, [Fraction(float(v)) for v in solver.weights])
    ones = solver.solve(np.ones(len(members)))
    for _ in range(_REFINEMENTS):
        missing = np.array([float(v - now.inner[0]) for v in now.inner]) / radius**2
        step = -solver.solve(missing)
        step -= ones * (step.sum() / ones.sum())
        moved = [v + Fraction(float(s)) for v, s in zip(now.values, step, strict=True)]
        if min(moved) < 0:
            break
        now = _Exact(points, members, moved)
        if now.square < best.square:
            best = now
    return best


def _root_above(square: Fraction) -> Fraction:
    """Not below the square root, to 80 digits relative to one."""
    shift = 1 << 600
    return Fraction(isqrt(-(-square.numerator * shift // square.denominator)) + 1, 1 << 300)


def _bounded(
    points: _Points, largest: Array, fit_intercept: bool, best: _Exact, power: int
) -> MaximumMargin:
    """The hyperplane in doubles, and both bounds."""
    top = max(abs(v) for v in best.x)
    w = np.array([float(v / top) for v in best.x])
    inner, b = points.inner(w), 0.0
    if fit_intercept:
        above = points.codes == 1
        low, high = inner[above].min(), -inner[~above].min()
        if not low > high:
            raise ArithmeticError(_NOT_TOLD)
        w, b = 2 * w / (low - high), float(-(low + high) / (low - high))
    else:
        if not inner.min() > 0:
            raise ArithmeticError(_NOT_TOLD)
        w = w / inner.min()
    least = _least(points, w, b, largest)
    norm = _root_above(sum((Fraction(float(v)) ** 2 for v in w), Fraction(0)))
    ids = np.array(sorted(best.weights), dtype=np.intp)
    row, own, other = points.places(ids)
    # The bound is that of weights that doubles can hold.
    weights = np.array([float(best.weights[int(i)]) for i in ids])
    shares = {int(i): Fraction(float(v)) for i, v in zip(ids, weights, strict=True)}
    groups = [ids[own == 1], ids[own == 0]] if fit_intercept else [ids]
    for group in groups:
        total = sum(shares[int(i)] for i in group)
        shares.update({int(i): shares[int(i)] / total for i in group})
    square = sum((v * v for v in _combined(points, shares)), Fraction(0))
    upper = _root_above(square) / (2 if fit_intercept else 1)
    unit = Fraction(2) ** -power
    coef = np.ldexp(w, power)
    return MaximumMargin(
        coef=coef if points.k == 2 else coef.reshape(points.k, -1),
        intercept=b,
        margin=_down(max(least, Fraction(0)) / norm * unit),
        upper_bound=_up(upper * unit),
        support=row,
        against=other,
        weights=weights,
        radius=0.0,
        classes=None,
        fit_intercept=fit_intercept,
    )


def _least(points: _Points, w: Array, b: float, largest: Array) -> Fraction:
    """A lower bound on the least y_i (x_i.w + b), exact if few rows are near it."""
    inner = points.inner(w)
    if points.k == 2:
        inner = inner + b * np.where(points.codes == 1, 1.0, -1.0)
    error = points.reach(w, largest) + 4 * _EPS * (abs(b) + np.abs(inner).max())
    near = np.flatnonzero(inner <= inner.min() + 4 * error)
    if len(near) > 2000:
        return Fraction(float(inner.min() - 2 * error))
    exact = [Fraction(float(v)) for v in w]
    signs = np.where(points.places(near)[1] == 1, 1, -1)
    values = []
    for row, sign in zip(points.take(near).tolist(), signs.tolist(), strict=True):
        parts = (Fraction(v) * u for v, u in zip(row, exact, strict=True) if v)
        values.append(sum(parts, Fraction(0)) + (sign * Fraction(b) if b else 0))
    return min(values)


def _down(value: Fraction) -> float:
    return float(np.nextafter(float(value), 0.0))


def _up(value: Fraction) -> float:
    return float(np.nextafter(float(value), np.inf))
