"""Many problems of two classes on the same wide rows, each with a certificate of its own.

Every problem takes some classes as -1 and others as +1 (a row of a code book). All take their steps
together (:mod:`trueline.solvers.books.descent`) until the penalty's curvature alone shows that
nothing is left to gain. A problem that does not get there, or whose gap cannot be proven to be as
small as asked for, is left to the general solver.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.losses import Loss
from trueline.penalties import L2
from trueline.solution import Solution, Status
from trueline.solvers.base import Options
from trueline.solvers.books.descent import BookDescent
from trueline.solvers.books.rows import BookRows, SortedRows
from trueline.solvers.narrow.proof import Sides, Sums, certify_side, constants_of, is_far
from trueline.threads import single_threaded_blas
from trueline.wording import counted

__all__ = ["LEAST_COLUMNS", "MOST_COLUMNS", "solve_wide_books"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

#: Up to fewer columns exact Hessians cost less, and beyond more the directions of the rows.
LEAST_COLUMNS, MOST_COLUMNS = 65, 1500

# Of the gap to prove, the part that is not left for rounding.
_SHARE = 0.1
# One step more costs little: so much is asked for, unless few digits are enough.
_FINE, _COARSE = 1e-8, 1e-6
_MOST_STEPS = 150
# Steps in a row that do not halve what is left: rounding.
_IDLE = 25


def solve_wide_books(
    rows: SortedRows,
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
    rows : SortedRows
    book : array of shape (problems, classes)
        -1, 0 (takes no part) or +1; both labels occur in every problem.
    sides : array of shape (problems, 2)
        What the weights of rows with label -1 and +1 are multiplied by.
    loss : Loss
        The logistic loss or the squared hinge.
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
    >>> from trueline.solvers.books.rows import sorted_rows
    >>> from trueline.solvers.books.solver import solve_wide_books
    >>> X, codes = np.random.default_rng(0).standard_normal((200, 70)), np.arange(200) % 3
    >>> rows = sorted_rows(X, codes, 3, None, fit_intercept=True)
    >>> book = np.array([[-1.0, 1.0, 0.0], [-1.0, -1.0, 1.0]])
    >>> found = solve_wide_books(
    ...     rows, book, np.ones((2, 2)), Logistic(), L2(1.0), True, Options(tol=1e-8)
    ... )
    >>> [bool(one.certificate.relative_gap < 1e-7) for one in found]
    [True, True]
    """
    start = time.perf_counter()
    strength = float(np.asarray(penalty.curvature))
    about = Sides.of(rows, book, sides, fit_intercept)
    levels, units = constants_of(loss, about.shares, fit_intercept)
    # Losses with kinks end by an exact step: nobody gains by leaving it out.
    is_coarse = options.tol >= _COARSE and not loss.kinks
    goals = (options.tol if is_coarse else min(options.tol, _FINE)) * units
    with single_threaded_blas():
        own = BookRows(
            rows.X,
            rows.X.astype(np.float32),
            rows.weights,
            rows.bounds,
            np.ascontiguousarray(book, dtype=np.float64),
            np.ascontiguousarray(sides, dtype=np.float64),
            fit_intercept,
        )
        descent = BookDescent(own, loss, strength, levels)
        _run(descent, _SHARE * goals, min(_MOST_STEPS, options.max_iter or _MOST_STEPS))
        descent.resume()
        facts = descent.look()
    ended = np.isfinite(descent.V).all(axis=1) & np.isfinite(descent.G).all(axis=1)
    ended &= ~is_far(rows.middle, about)
    enough = options.tol * units
    found: list[Solution | None] = [None] * len(book)
    for k in np.flatnonzero(ended).tolist():
        d, count = len(rows.middle), int(about.count[k])
        point = descent.V[k] if fit_intercept else descent.V[k, :d]
        correlation = descent.G[k, :d] - strength * descent.V[k, :d]
        losses, squares, slope, curvature = facts[k].tolist()
        sums = Sums(point, correlation, losses, squares, slope, curvature, own.longest_chain(count))
        certificate = certify_side(k, rows.middle, about, sums, loss, penalty, fit_intercept)
        if certificate.gap <= enough[k]:
            # Support vectors are found by their scores.
            scores = _scores(descent, k) if loss.kinks else None
            found[k] = _solution(certificate, descent, k, scores, float(enough[k]))
    spent = (time.perf_counter() - start) / len(book)
    for solution in found:
        if solution is not None:
            solution.seconds = spent
    return found


def _run(descent: BookDescent, goals: Array, most: int) -> None:
    """Steps until no active problem can gain more than its goal."""
    best, idle = np.full(len(goals), np.inf), np.zeros(len(goals), dtype=np.intp)
    for _ in range(most):
        left = descent.most()
        idle = np.where(left <= 0.5 * best, 0, idle + 1)
        best = np.minimum(best, left)
        at = descent.active
        done = ~(left[at] > goals[at]) | (idle[at] > _IDLE)
        if done.any():
            descent.finish(at[done])
        if not len(descent.active):
            break
        descent.step()


def _scores(descent: BookDescent, k: int) -> Array:
    """Scores of the rows of one problem; of other rows zeros."""
    scores = np.zeros(descent.Z.shape[1])
    for one in descent.rows.stretches(np.array([k])):
        scores[one.rows] = descent.Z[one.at[0], one.rows]
    return scores


def _solution(
    certificate: Certificate, descent: BookDescent, k: int, scores: Array | None, tolerance: float
) -> Solution:
    return Solution(
        certificate.coef,
        certificate.intercept,
        Status.CONVERGED,
        "newton_cg",
        n_iter=int(descent.steps[k]),
        proof=certificate,
        notes=[
            "together with the other binary problems: "
            + counted(descent.products, "Hessian-vector product")
        ],
        tolerance=tolerance,
        extra={} if scores is None else {"scores": scores},
    )
