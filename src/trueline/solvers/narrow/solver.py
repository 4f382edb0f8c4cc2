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

import numpy as np
from numpy.typing import NDArray

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
# Columns whose means are so many spreads away from zero are centred by the general solver.
_FAR = 10.0
# Of the gap to prove, what is left for rounding.
_SHARE = 0.1
_MOST_STEPS = 60


@dataclass(frozen=True)
class _Sides:
    """What the sums of the classes say of each problem; first -1, then +1.

    Attributes
    ----------
    shares : array of shape (problems, 2)
        Weights.
    centre, size, spread : arrays of shape (problems, d)
        Means of the columns (zero without an intercept), sqrt(sum_i s_i x_ij^2), and the same
        about the centre.
    means : array of shape (problems, 2, d)
        At least the sizes of the classes' means about the centre.
    farthest : array of shape (problems,)
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
        centre = np.zeros_like(square)
        means = np.zeros_like(totals)
        if fit_intercept:
            centre = totals.sum(axis=1) / shares.sum(axis=1)[:, None]
            # Bounds on bounds: a thousandth more, and what centring may have lost.
            apart = np.abs(totals - shares[:, :, None] * centre[:, None])
            lost = 8 * (_terms(count) + 4)[:, None] * _EPS * np.sqrt(square)
            means = apart * 1.001 / shares[:, :, None]
            means = means + lost[:, None] / np.sqrt(shares)[:, :, None]
        spread = np.sqrt(np.maximum(square - shares.sum(axis=1)[:, None] * centre**2, 0.0))
        off = np.sqrt(((rows.middle - centre) ** 2).sum(axis=1))
        farthest = np.where(book != 0, rows.farthest, 0.0).max(axis=1) + off
        safe = 1 + 1e-6
        size = np.sqrt(square)
        return cls(shares, centre, size * safe, spread * safe, means, farthest * safe, count)


def _terms(count: NDArray[np.intp]) -> Array:
    """Additions one after the other in the kernel's sums, and in those of the checker."""
    return np.maximum(_chain(count), np.minimum(count, 2048) + count / 2048 + 8)


def _chain(count: NDArray[np.intp]) -> Array:
    return np.minimum(count, CHUNK) + count / CHUNK + 8


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
    d, n, kind = len(rows.middle), rows.columns.shape[1], KINDS[loss.name]
    about = _Sides.of(rows, book, sides, fit_intercept)
    strength = float(np.asarray(penalty.curvature))
    levels = _levels(kind, about.shares) if fit_intercept else np.zeros(len(book))
    each = [loss.value(np.full(len(book), y), levels) for y in (-1.0, 1.0)]
    units = (about.shares * np.stack(each, axis=1)).sum(axis=1)
    targets = gap_to_prove(loss, options.tol, units, is_proven_by_tangent=True)
    reach = np.sqrt(2 * units[:, None] / strength * (about.means**2).sum(axis=2)).max(axis=1)
    V = np.zeros((len(book), len(rows.columns)))
    sums, facts = np.zeros_like(V), np.zeros((len(book), FACTS))
    # Support vectors are found by their scores.
    scores = np.empty((len(book) if kind == SQUARED_HINGE else 1, n))
    quad = np.append(np.full(d, strength), np.zeros(int(fit_intercept)))
    limit = min(_MOST_STEPS, options.max_iter or _MOST_STEPS)

    def work(strand: tuple[int, int]) -> None:
        solve_parts(
            *strand,
            kind,
            rows.columns,
            rows.weights,
            rows.bounds,
            rows.totals,
            rows.grams,
            np.ascontiguousarray(book, dtype=np.float64),
            np.ascontiguousarray(sides, dtype=np.float64),
            quad,
            levels,
            about.centre,
            loss.curvature_bound * (about.spread**2).sum(axis=1),
            reach + 2 + np.sqrt(units / about.shares.min(axis=1)),
            _SHARE * targets,
            limit,
            V,
            sums,
            facts,
            scores,
        )

    run_strands(work, _cuts(len(book)))
    spent = time.perf_counter() - start
    is_far = fit_intercept & (about.size > _FAR * about.spread).any(axis=1)
    ended = (facts[:, 0] > 0) & np.isfinite(V).all(axis=1) & ~is_far
    found: list[Solution | None] = []
    for k in range(len(book)):
        if not ended[k]:
            found.append(None)
            continue
        W, b = V[k, :d, None].copy(), V[k, d:].copy() if fit_intercept else np.zeros(1)
        total = float(about.shares[k].sum())
        column_terms, chain = float(_terms(about.count)[k]), float(_chain(about.count)[k])
        rounding = Rounding(
            Accuracy(d, column_terms, about.size[k]),
            about.centre[k],
            total,
            np.sqrt([total]) * (1 + 1e-6),
            int(about.count[k]),
        )
        of_rows = RowSums(
            *facts[k, 2:].tolist(),
            sums[k, :d],
            about.centre[k],
            about.spread[k],
            float(about.farthest[k]),
            about.shares[k] * (1 - (about.count[k] + 4) * _EPS),
            about.means[k],
        )
        certificate = certify_sums(
            of_rows, rounding, chain, loss, penalty, fit_intercept, W, b
        )
        if not certificate.gap <= targets[k]:
            found.append(None)
            continue
        found.append(
            Solution(
                W,
                b,
                Status.CONVERGED,
                "newton",
                n_iter=int(facts[k, 1]),
                proof=certificate,
                seconds=spent / len(book),
                extra={"scores": scores[k]} if len(scores) > 1 or kind == SQUARED_HINGE else {},
            )
        )
    return found


def _levels(kind: int, shares: Array) -> Array:
    """The best constants: where the slopes of both classes cancel."""
    if kind == LOGISTIC:
        return np.log(shares[:, 1]) - np.log(shares[:, 0])
    return (shares[:, 1] - shares[:, 0]) / shares.sum(axis=1)


def _cuts(count: int) -> list[tuple[int, int]]:
    ends = [math.floor(count * k / _STRANDS) for k in range(_STRANDS + 1)]
    return [(a, b) for a, b in zip(ends, ends[1:]) if a < b]
