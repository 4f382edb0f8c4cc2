"""Many problems of two classes on few columns, each with a certificate of its own.

Every problem takes some classes as -1 and others as +1 (a column of a code book). What depends on
the classes alone, such as means, spreads and the first Hessian, is added up from the sums of the
classes; the rest is done by :mod:`trueline.solvers.narrow.kernels`, a few problems at a time in
each thread. A problem that does not get there, or whose gap cannot be proven to be as small as
asked for, is left to the general solver.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Rounding
from trueline.certificates.tangent import RowSums, certify_sums
from trueline.design import Accuracy
from trueline.losses import Loss
from trueline.penalties import L2
from trueline.solution import Solution, Status
from trueline.solvers.base import Options
from trueline.solvers.narrow.classes import ClassRows
from trueline.solvers.narrow.kernels import CHUNK, FACTS, LOGISTIC, SQUARED_HINGE, solve_parts
from trueline.solvers.newton import gap_to_prove
from trueline.threads import run_strands

__all__ = ["KINDS", "MOST_COLUMNS", "solve_books"]

Array = NDArray[np.float64]

#: The losses, by name.
KINDS = {"logistic": LOGISTIC, "squared_hinge": SQUARED_HINGE}
#: Beyond so many columns Hessians are worth the tiles of :mod:`trueline.gram`.
MOST_COLUMNS = 64

_EPS = float(np.finfo(np.float64).eps)
# Problems are handed to the threads in so many strands.
_STRANDS = 16
# What is left of columns whose means are so many spreads away from zero may be rounding.
_FAR = 1e6
# Of the gap to prove, the part that is not left for rounding.
_SHARE = 0.1
# Who asks for gaps below this, relative to a constant model, wants all digits.
_FINE = 1e-8
_MOST_STEPS = 60


@dataclass(frozen=True)
class _Sides:
    """What the sums of the classes say of each problem; first -1, then +1.

    Attributes
    ----------
    shares : array of shape (problems, 2)
        Weights.
    centre : array of shape (problems, d)
        Means of the columns, less the middle of all rows (zero without an intercept).
    size, spread : arrays of shape (problems, d)
        sqrt(sum_i s_i x_ij^2) about the middle, and about the centre.
    means : array of shape (problems, 2, d)
        At least the sizes of the classes' means about the centre.
    farthest : array of shape (problems,)
        At least the largest distance of a row from the centre.
    count : array of shape (problems,)
        Rows.
    """

    shares: Array
    centre: Array
    size: Array
    spread: Array
    means: Array
    farthest: Array
    count: NDArray[np.intp]

    @classmethod
    def of(cls, rows: ClassRows, book: Array, sides: Array, fit_intercept: bool) -> _Sides:
        d = len(rows.middle)
        each = np.stack([(book < 0) * sides[:, :1], (book > 0) * sides[:, 1:]], axis=1)
        shares, totals = each @ rows.shares, each @ rows.totals[:, :d]
        square = each.sum(axis=1) @ rows.grams.diagonal(axis1=1, axis2=2)[:, :d]
        count = (book != 0) @ np.diff(rows.bounds)
        centre, means = np.zeros_like(square), np.zeros_like(totals)
        if fit_intercept:
            centre = totals.sum(axis=1) / shares.sum(axis=1)[:, None]
            # Bounds on bounds: a thousandth more, and what centring may have lost.
            apart = np.abs(totals - shares[:, :, None] * centre[:, None])
            lost = 8 * (count[:, None] + 16) * _EPS * np.sqrt(square)
            means = apart * 1.001 / shares[:, :, None]
            means = means + lost[:, None] / np.sqrt(shares)[:, :, None]
        about = np.maximum(square - shares.sum(axis=1)[:, None] * centre**2, 0.0)
        spread = np.sqrt(about + 1e-9 * square)
        off = np.sqrt((centre**2).sum(axis=1))
        farthest = np.where(book != 0, rows.farthest, 0.0).max(axis=1) + off
        safe = 1 + 1e-6
        size = np.sqrt(square)
        return cls(shares, centre, size * safe, spread * safe, means, farthest * safe, count)


def _chain(count: int) -> float:
    """Additions one after the other in the kernel's sums over so many rows."""
    return min(count, CHUNK) + count / CHUNK + 8


def solve_books(
    rows: ClassRows,
    book: Array,
    sides: Array,
    loss: Loss,
    penalty: L2,
    fit_intercept: bool,
    options: Options,
) -> list[Solution | None]:
    """Solutions of the problems, None for those that are left to others.

    Parameters
    ----------
    rows : ClassRows
        With a constant column if there is an intercept.
    book : array of shape (problems, classes)
        -1, 0 (takes no part) or +1; both labels occur in every problem.
    sides : array of shape (problems, 2)
        What the weights of rows with label -1 and +1 are multiplied by.
    loss : Loss
        One of KINDS.
    penalty : L2
        With one strength for all coefficients.
    fit_intercept : bool
    options : Options

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.losses import Logistic
    >>> from trueline.penalties import L2
    >>> from trueline.solvers.base import Options
    >>> from trueline.solvers.narrow.classes import ClassRows
    >>> from trueline.solvers.narrow.solver import solve_books
    >>> X, codes = np.array([[0.0], [1.0], [2.0], [1.5]]), np.array([0, 1, 1, 0])
    >>> rows = ClassRows.of(X, codes, 2, None, fit_intercept=False)
    >>> book = np.array([[-1.0, 1.0]])
    >>> [found] = solve_books(
    ...     rows, book, np.ones((1, 2)), Logistic(), L2(1.0), False, Options(tol=1e-12)
    ... )
    >>> bool(found.certificate.relative_gap < 1e-11)
    True
    """
    start = time.perf_counter()
    kind, strength = KINDS[loss.name], float(np.asarray(penalty.curvature))
    about = _Sides.of(rows, book, sides, fit_intercept)
    levels = _levels(kind, about.shares) if fit_intercept else np.zeros(len(book))
    each = [loss.value(np.full(len(book), y), levels) for y in (-1.0, 1.0)]
    units = (about.shares * np.stack(each, axis=1)).sum(axis=1)
    goals = np.asarray(gap_to_prove(loss, options.tol, units, is_proven_by_tangent=True))
    reaches = about.farthest
    if kind == SQUARED_HINGE:
        reaches = np.sqrt(2 * units[:, None] / strength * (about.means**2).sum(axis=2)).max(axis=1)
        reaches = reaches + 2 + np.sqrt(units / about.shares.min(axis=1))
    p, n = rows.columns.shape
    answers = _Answers.of(len(book), p, n, kind == SQUARED_HINGE)
    arguments: tuple[Any, ...] = (
        kind,
        rows.columns,
        rows.weights,
        rows.bounds,
        rows.totals,
        rows.grams,
        np.ascontiguousarray(book, dtype=np.float64),
        np.ascontiguousarray(sides, dtype=np.float64),
        np.append(np.full(len(rows.middle), strength), np.zeros(int(fit_intercept))),
        levels,
        about.centre,
        loss.curvature_bound * (about.spread**2).sum(axis=1),
        reaches,
        _SHARE * goals,
        min(_MOST_STEPS, options.max_iter or _MOST_STEPS),
        bool((goals < _FINE * units).any()),
    )
    run_strands(lambda strand: solve_parts(*(*strand, *arguments, *answers)), _cuts(len(book)))
    level = np.sqrt(about.shares.sum(axis=1))[:, None] * np.abs(rows.middle)
    is_far = ((level > _FAR * about.size) & (about.size > 0)).any(axis=1)
    ended = (answers.facts[:, 0] > 0) & np.isfinite(answers.points).all(axis=1) & ~is_far
    # Of losses with kinks the last step is exact, whatever rounding lets the tangent prove.
    enough = options.tol * units if loss.kinks else goals
    found: list[Solution | None] = [None] * len(book)
    for k in np.flatnonzero(ended).tolist():
        certificate = _certificate(k, rows.middle, about, answers, loss, penalty, fit_intercept)
        if certificate.gap <= enough[k]:
            # Support vectors are found by their scores.
            scores = answers.scores[k] if kind == SQUARED_HINGE else None
            found[k] = _solution(certificate, int(answers.facts[k, 1]), scores)
    spent = (time.perf_counter() - start) / len(book)
    for solution in found:
        if solution is not None:
            solution.seconds = spent
    return found


class _Answers(NamedTuple):
    """What the kernel fills: points, X^T S u there, facts, and scores if they are wanted."""

    points: Array
    sums: Array
    facts: Array
    scores: Array

    @classmethod
    def of(cls, count: int, p: int, n: int, keeps_scores: bool) -> _Answers:
        scores = np.empty((count if keeps_scores else 1, n))
        return cls(np.zeros((count, p)), np.zeros((count, p)), np.zeros((count, FACTS)), scores)


def _certificate(
    k: int,
    middle: Array,
    about: _Sides,
    answers: _Answers,
    loss: Loss,
    penalty: L2,
    fit_intercept: bool,
) -> Certificate:
    """What is proven of one answer."""
    d, count = about.centre.shape[1], int(about.count[k])
    W, b = answers.points[k, :d, None].copy(), np.zeros(1)
    if fit_intercept:
        b = answers.points[k, d:] - middle @ W
    total = float(about.shares[k].sum())
    # With m the middle, scores are sums of w_j (x_ij - m_j) and a level c that is b + m.w but for
    # rounding: errors of d + 4 units of |x_ij| + |m_j| and of |c| <= |b| + |m|.|w|, twice.
    most = about.size[k] + 5 * math.sqrt(total) * np.abs(middle)
    rounding = Rounding(
        accuracy=Accuracy(2 * d + 8, _chain(count), most),
        mean=about.centre[k],
        weight=total,
        target_size=np.array([math.sqrt(total) * (1 + 1e-6)]),
        rows=count,
    )
    losses, squares, slope, curvature = answers.facts[k, 2:].tolist()
    sums = RowSums(
        losses=losses,
        squares=squares,
        slope=slope,
        curvature=curvature,
        correlation=answers.sums[k, :d],
        size=about.size[k],
        origin=middle,
        centre=about.centre[k],
        spread=about.spread[k],
        farthest=float(about.farthest[k]),
        shares=about.shares[k] * (1 - (count + 4) * _EPS),
        means=about.means[k],
    )
    return certify_sums(sums, rounding, _chain(count), loss, penalty, fit_intercept, W, b)


def _solution(certificate: Certificate, steps: int, scores: Array | None) -> Solution:
    return Solution(
        certificate.coef,
        certificate.intercept,
        Status.CONVERGED,
        "newton",
        n_iter=steps,
        proof=certificate,
        notes=["together with the other binary problems"],
        extra={} if scores is None else {"scores": scores},
    )


def _levels(kind: int, shares: Array) -> Array:
    """The best constants: where the slopes of both classes cancel."""
    if kind == LOGISTIC:
        return np.log(shares[:, 1]) - np.log(shares[:, 0])
    return (shares[:, 1] - shares[:, 0]) / shares.sum(axis=1)


def _cuts(count: int) -> list[tuple[int, int]]:
    ends = [math.floor(count * k / _STRANDS) for k in range(_STRANDS + 1)]
    return [(a, b) for a, b in pairwise(ends) if a < b]
