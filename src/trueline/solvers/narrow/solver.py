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
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.losses import Loss
from trueline.penalties import L2
from trueline.solution import Solution, Status
from trueline.solvers.base import Options
from trueline.solvers.narrow.classes import ClassRows
from trueline.solvers.narrow.kernels import CHUNK, FACTS, LOGISTIC, SQUARED_HINGE, solve_parts
from trueline.solvers.narrow.proof import Sides, Sums, certify_side, constants_of, is_far
from trueline.solvers.newton import gap_to_prove
from trueline.threads import run_strands

__all__ = ["KINDS", "MOST_COLUMNS", "solve_books"]

Array = NDArray[np.float64]

#: The losses, by name.
KINDS = {"logistic": LOGISTIC, "squared_hinge": SQUARED_HINGE}
#: Beyond so many columns Hessians are worth the tiles of :mod:`trueline.gram`.
MOST_COLUMNS = 64

# Problems are handed to the threads in so many strands.
_STRANDS = 16
# Of the gap to prove, the part that is not left for rounding.
_SHARE = 0.1
# Who asks for gaps below this, relative to a constant model, wants all digits.
_FINE = 1e-8
_MOST_STEPS = 60


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
    about = Sides.of(rows, book, sides, fit_intercept)
    levels, units = constants_of(loss, about.shares, fit_intercept)
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
    ended = (answers.facts[:, 0] > 0) & np.isfinite(answers.points).all(axis=1)
    ended &= ~is_far(rows.middle, about)
    # Of losses with kinks the last step is exact, whatever rounding lets the tangent prove.
    enough = options.tol * units if loss.kinks else goals
    found: list[Solution | None] = [None] * len(book)
    for k in np.flatnonzero(ended).tolist():
        sums = answers.about(k, len(rows.middle), int(about.count[k]))
        certificate = certify_side(k, rows.middle, about, sums, loss, penalty, fit_intercept)
        if certificate.gap <= enough[k]:
            # Support vectors are found by their scores.
            scores = answers.scores[k] if kind == SQUARED_HINGE else None
            found[k] = _solution(certificate, int(answers.facts[k, 1]), scores, float(enough[k]))
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

    def about(self, k: int, d: int, rows: int) -> Sums:
        """The answer to one problem."""
        losses, squares, slope, curvature = self.facts[k, 2:].tolist()
        point, correlation = self.points[k], self.sums[k, :d]
        return Sums(point, correlation, losses, squares, slope, curvature, _chain(rows))


def _solution(
    certificate: Certificate, steps: int, scores: Array | None, tolerance: float
) -> Solution:
    return Solution(
        certificate.coef,
        certificate.intercept,
        Status.CONVERGED,
        "newton",
        n_iter=steps,
        proof=certificate,
        notes=["together with the other binary problems"],
        tolerance=tolerance,
        extra={} if scores is None else {"scores": scores},
    )


def _cuts(count: int) -> list[tuple[int, int]]:
    ends = [math.floor(count * k / _STRANDS) for k in range(_STRANDS + 1)]
    return [(a, b) for a, b in pairwise(ends) if a < b]
