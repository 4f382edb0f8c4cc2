r"""Iterative refinement: Newton steps on exactly evaluated gradients.

Given any M with M M^T close to the inverse Hessian (on the span of M), repeat

    r  = y - X w - b                      in doubled precision
    g  = -X^T S r + A w,   h = -sum s r   in doubled precision
    w <- w - M M^T (g - m h)
    b <- b - h / W - m.(step of w)        m the weighted mean of the rows, W the total weight

Each step divides the error by about 1 / (cond(X) eps), so that two or three steps give every
coefficient to the last digit that double precision can hold, as long as cond(X) eps < 1. The
argument is that of A. Bjorck, "Iterative refinement of linear least squares solutions I", BIT 7
(1967) 257-278; the residual is not iterated on because it is evaluated to twice the digits.

In g - m h the rounding of m multiplies h, which itself is as large as the rounding of b makes it.
Where that is felt along M, columns far from zero being the case, m is taken in twice the digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.design.dense import DenseDesign
from trueline.numerics.blas import run_strands
from trueline.numerics.precision import (
    SlicedRows,
    sum_doubled,
    transposed_product_doubled,
    two_product,
    two_sum,
)
from trueline.problem import Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_MAX_STEPS = 12
# Errors of more than this share of a gradient are felt.
_FELT = 1e-3
# Objectives of the same number of good digits.
_NO_WORSE = 1e-10
# Roots of costs, relative to what a constant leaves of the target, that are as good as zero.
_CLOSE = 1e-9
# From so many elements on the rows are shared out to threads.
_THREADED = 1_000_000
# Beyond so many elements times targets, exact evaluation takes longer than it is worth.
_AFFORDABLE = 200_000_000


@dataclass(frozen=True)
class Refined:
    """Coefficients after refinement, and the exactly evaluated gradient there.

    The gradient is that at the best intercept for w (``gradient``), with the derivative in b
    beside it; roundings bound the errors of both, and ``residual_rounding`` that of the weighted
    norm of the residuals, whose square is ``residual_square``. If ``is_evaluated`` is false they
    belong to the point before the last step, which was provably the last one that could change a
    digit.
    """

    coef: Array
    intercept: Array
    gradient: Array
    gradient_rounding: Array
    intercept_gradient: Array
    intercept_rounding: Array
    residual_square: Array
    residual_rounding: Array
    steps: int
    is_evaluated: bool = True


def can_refine(problem: Problem) -> bool:
    """Whether exact products are available for this design, and affordable."""
    affordable = problem.design.nonzeros * problem.n_targets <= _AFFORDABLE
    return affordable and isinstance(problem.design, DenseDesign)


def refine(
    problem: Problem,
    W: Array,
    b: Array,
    basis: Array | None,
    mean: Array,
    curvature: Array,
    X_low: Array | None = None,
    defect: float = np.inf,
    squares: Array | None = None,
) -> Refined:
    """Refine every target.

    Parameters
    ----------
    problem : Problem
        With a dense design.
    W, b : arrays of shape (d, k) and (k,)
        Where to start.
    basis : array of shape (d, r), optional
        M of the module's text; None only evaluates.
    mean : array of shape (d,)
        Weighted mean of the rows; zeros without an intercept.
    curvature : array of shape (d, k)
    X_low : array of shape (n, d), optional
        Low parts of the design, if it is known to more than double precision.
    defect : float, optional
        Bound on || I - M^T H M ||, by which each step shrinks the error. If the next step cannot
        change a digit it is not computed.
    squares : array of shape (d,), optional
        At least the weighted squares of the columns, where that is known already.
    """
    design = problem.design
    assert isinstance(design, DenseDesign)
    parts = []
    exact_mean = cache(partial(_mean_doubled, design.X, problem.weights, X_low))
    if squares is None:
        squares = design.column_squares(problem.weights, None)
    norms = np.sqrt(np.append(squares, problem.total_weight))
    rows = SlicedRows(design.X, problem.weights, norms, X_low)
    for t in range(W.shape[1]):
        one = _Target(problem, rows, norms, t, mean, curvature[:, t], exact_mean)
        w, beta, done, is_evaluated = W[:, t], float(b[t]), 0, True
        if basis is None:
            one.evaluate(w, beta)
            one.centre_exactly()
        else:
            w, beta, done, is_evaluated = _refine_one(one, w, beta, basis, defect)
        if is_evaluated:
            one.bound_rounding(w, beta)
        parts.append(one.outcome(w, beta, done, is_evaluated))
    return parts[0] if len(parts) == 1 else _side_by_side(parts)


def _side_by_side(parts: list[Refined]) -> Refined:
    """Targets that were refined one by one, as one."""
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-1)
        for name, value in vars(parts[0]).items()
        if isinstance(value, np.ndarray)
    }
    steps = max(part.steps for part in parts)
    return Refined(**joined, steps=steps, is_evaluated=all(part.is_evaluated for part in parts))


def _mean_doubled(X: Any, weights: Array | None, X_low: Array | None) -> tuple[Array, Array]:
    """Weighted means of the columns as doubled numbers."""
    s = np.ones(len(X)) if weights is None else weights
    sums, rests = transposed_product_doubled(X, s, np.zeros(len(X)), X_low)
    weight, weight_lo = sums[-1], rests[-1]
    mean = sums[:-1] / weight
    product, error = two_product(mean, np.full_like(mean, weight))
    rest = (sums[:-1] - product) - error + rests[:-1] - mean * weight_lo
    return two_sum(mean, rest / weight)


def evaluate_exactly(
    problem: Problem, W: Array, b: Array, mean: Array, curvature: Array
) -> Refined:
    """The exactly evaluated gradient at given coefficients, without any step."""
    return refine(problem, W, b, None, mean, curvature)


def _refine_one(
    one: _Target, w: Array, b: float, basis: Array, defect: float
) -> tuple[Array, float, int, bool]:
    """Newton steps until a step no longer changes a digit, or nothing shrinks any more."""
    before, best = (math.inf, math.inf, math.inf), (math.inf, w, b)
    root_weight = math.sqrt(one.weight)
    # How a relative error of the mean, times h, is seen along M.
    offsets = np.abs(one.mean) @ np.abs(basis) if one.fit_intercept else np.zeros(1)
    felt = 4 * len(one.y) * _EPS * math.sqrt(offsets @ offsets)
    for step in range(_MAX_STEPS):
        along = one.along(w, b, basis, felt)
        value = one.value(w)
        dw = -(basis @ along)
        db = one.intercept_step(dw)
        length = np.abs(dw)
        # Rounding of the coefficients keeps the gradient large along directions that the data
        # determine well, while the steps along the others still shrink; that of b keeps h large.
        sizes = (
            math.sqrt(along @ along),
            abs(one.h) / root_weight,
            max(float(length.max(initial=0.0)), abs(db)),
        )
        shrinks = any(now <= 0.5 * then for now, then in zip(sizes, before, strict=True))
        if not (math.isfinite(sum(sizes)) and shrinks):
            is_close = max(sizes[:2]) <= _CLOSE * one.spread
            if value <= best[0] * (1 + _NO_WORSE) and is_close:
                return w, b, step, True
            break
        if _settled(w, b, length, abs(db)):
            return w, b, step, True
        best = min(best, (value, w, b), key=lambda seen: seen[0])
        new_w, new_b = w + dw, b + db
        if new_b == b and (new_w == w).all():
            return w, b, step, True
        w, b, before = new_w, new_b, sizes
        size = sizes[0] + sizes[1]
        if defect * size < 1e-8:  # otherwise the bound cannot be small enough: skip its cost
            next_dw = np.sqrt((basis * basis).sum(axis=1)) * (defect * size)
            if _settled(w, b, next_dw, float(np.abs(one.mean) @ next_dw)):
                return w, b, step + 1, False
    # Coefficients of the iterates that double precision does not hold: steps in twice the digits.
    w, b = _refine_doubled(one, *best[1:], basis, felt)
    one.along(w, b, basis, felt)
    if abs(one.h) / root_weight > 1e3 * _CLOSE * one.spread:
        # Rounding of w is felt as well: the best intercept for rounded coefficients.
        b += one.intercept_step(np.zeros_like(w))
        one.along(w, b, basis, felt)
    if one.value(w) > best[0]:
        _, w, b = best
        one.along(w, b, basis, felt)
    return w, b, step, True


def _refine_doubled(
    one: _Target, w: Array, b: float, basis: Array, felt: float
) -> tuple[Array, float]:
    """Newton steps whose iterates are doubled numbers, which are rounded at the end.

    Rounding of the iterates, times offsets of the columns and the condition, can be as large as
    the steps (J. Demmel, Y. Hida, E. J. Riedy, X. S. Li, "Extra-precise iterative refinement for
    overdetermined least squares problems", ACM Trans. Math. Softw. 35 (2009) 28).
    """
    w_low, b_low, before = np.zeros_like(w), 0.0, math.inf
    for _ in range(_MAX_STEPS):
        along = one.along(w, b, basis, felt, w_low, b_low)
        size = math.sqrt(along @ along)
        if not size <= 0.5 * before:
            break
        dw = -(basis @ along)
        w, w_low = two_sum(w, w_low + dw)
        level, rest = two_sum(np.array(b), np.array(b_low + one.intercept_step(dw)))
        b, b_low = float(level), float(rest)
        before = size
    return w, b


def _settled(w: Array, b: float, dw: Array, db: float) -> bool:
    """Whether changes of these magnitudes would leave every coefficient as it is."""
    if not db <= 0.25 * _EPS * abs(b) + _TINY:
        return False
    return bool((dw <= 0.25 * _EPS * np.abs(w) + _TINY).all())


class _Target:
    """Exact evaluation of gradient and residual for one target."""

    def __init__(
        self,
        problem: Problem,
        rows: SlicedRows,
        norms: Array,
        t: int,
        mean: Array,
        curvature: Array,
        exact_mean: Callable[[], tuple[Array, Array]],
    ) -> None:
        self.exact_mean, self.is_centred_exactly = exact_mean, False
        self.rows, self.norms = rows, norms
        self.y, s = problem.target[:, t], problem.weights
        self.weight = problem.total_weight
        self.mean, self.curvature, self.is_curved = mean, curvature, bool(curvature.any())
        self.fit_intercept = problem.fit_intercept
        weighted = self.y if s is None else s * self.y
        self.size = math.sqrt(weighted @ self.y)
        level = float(weighted.sum()) / self.weight if self.fit_intercept else 0.0
        apart = self.y - level
        self.spread = math.sqrt(apart @ apart if s is None else (s * apart) @ apart)
        self.h = 0.0
        # Nothing is known of the rounding until it is asked for.
        self.residual_rounding = self.h_rounding = math.inf
        self.g_rounding: Array | None = None

    def evaluate(self, w: Array, b: float, w_low: Array | None = None, b_low: float = 0.0) -> None:
        """Gradient g (at the best intercept) and derivative h in b."""

        def gradient(rows: slice) -> tuple[Array, Array, float]:
            return self.rows.gradient(w, b, self.y, rows, w_low, b_low)

        n = len(self.y)
        if n * len(w) < _THREADED:
            sums, rests, self.residual_square = gradient(slice(0, n))
        else:
            cuts = np.linspace(0, n, 5).astype(int).tolist()
            strands = [slice(start, stop) for start, stop in pairwise(cuts)]
            parts = run_strands(gradient, strands)
            self.residual_square = sum(part[2] for part in parts)
            total, error = sum_doubled(np.array([part[0] for part in parts]))
            sums, rests = two_sum(total, error + sum(part[1] for part in parts))
        g_hi, g_lo = -sums[:-1], -rests[:-1]
        if self.is_curved:
            curvature, curvature_lo = two_product(self.curvature, w)
            g_hi, error = two_sum(curvature, g_hi)
            g_lo = error + (curvature_lo + g_lo)
        self.parts = g_hi, g_lo, -float(sums[-1]), -float(rests[-1])
        self.g = self.plain_g = g_hi + g_lo
        self.is_centred_exactly = False
        if self.fit_intercept:
            self.h = self.parts[2] + self.parts[3]
            self.g = self.plain_g - self.mean * self.h

    def along(
        self,
        w: Array,
        b: float,
        basis: Array,
        felt: float,
        w_low: Array | None = None,
        b_low: float = 0.0,
    ) -> Array:
        """M^T g at (w, b), about the exact mean if that is felt."""
        self.evaluate(w, b, w_low, b_low)
        along = self.g @ basis
        if felt * abs(self.h) > _FELT * math.sqrt(along @ along):
            self.centre_exactly()
            along = self.g @ basis
        return along

    def value(self, w: Array) -> float:
        """Twice the objective of the last evaluation, which was at w."""
        return self.residual_square + float(self.curvature @ (w * w))

    def centre_exactly(self) -> None:
        """g - m h of the last evaluation once more, all in twice the digits."""
        if not self.fit_intercept:
            return
        g_hi, g_lo, h_hi, h_lo = self.parts
        mean, mean_lo = self.exact_mean()
        product, error = two_product(mean, np.full_like(mean, h_hi))
        g_hi, rest = two_sum(g_hi, -product)
        self.g = g_hi + (rest + (g_lo - error - mean_lo * h_hi - mean * h_lo))
        self.is_centred_exactly = True

    def bound_rounding(self, w: Array, b: float) -> None:
        """Bounds on the rounding of the last evaluation, which was at (w, b)."""
        # Magnitudes by Cauchy and Schwarz: root sums of squares.
        n, x_root, root_weight = len(self.y), self.norms[:-1], float(self.norms[-1])
        units = 32 * (n + len(w)) * _EPS**2
        reach = float(x_root @ np.abs(w) + self.size + abs(b) * root_weight)
        self.residual_rounding = units * reach
        self.g_rounding = units * x_root * reach + 2 * _EPS * np.abs(self.plain_g)
        self.h_rounding = 0.0
        if self.fit_intercept:
            self.h_rounding = units * root_weight * reach + 2 * _EPS * abs(self.h)
            # About the exact mean; the mean's own rounding multiplies a vanishing h.
            off = abs(self.h) + self.h_rounding
            own = units if self.is_centred_exactly else 4 * n * _EPS
            self.g_rounding += own * x_root * off / root_weight

    def outcome(self, w: Array, b: float, steps: int, is_evaluated: bool) -> Refined:
        """What is known of this target after so many steps to (w, b)."""
        numbers = (b, self.h, self.h_rounding, self.residual_square, self.residual_rounding)
        row = np.array(numbers)
        rounding = np.full_like(w, np.inf) if self.g_rounding is None else self.g_rounding
        return Refined(
            coef=w[:, None],
            intercept=row[:1],
            gradient=self.g[:, None],
            gradient_rounding=rounding[:, None],
            intercept_gradient=row[1:2],
            intercept_rounding=row[2:3],
            residual_square=row[3:4],
            residual_rounding=row[4:],
            steps=steps,
            is_evaluated=is_evaluated,
        )

    def intercept_step(self, dw: Array) -> float:
        """The change of b that goes with a change of w."""
        if not self.fit_intercept:
            return 0.0
        return float(-self.h / self.weight - self.mean @ dw)
