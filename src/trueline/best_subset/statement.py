r"""The problem of a search from the moments of the rows, what rounding may do to it, and its proof.

    minimise    1/2 sum_i s_i (y_i - x_i.w - b)^2 + l2/2 ||w||^2 + alpha ||w||_0,    ||w||_0 <= k

is a quadratic function of w once the best intercept is put in. Columns are scaled so that the
diagonal of the Gram matrix (with l2) is one: supports and values do not change, rounding does.

Rounding can move the bound of a search. A search works on sums in double precision. Columns are
scaled to norm one, so that every entry of the Gram matrix and (relative to the norm of the target)
of the cross products is off by at most some ``unit``: the rounding of the moments, and that of
eliminating k columns, which by backward analysis is that of another Gram matrix, no more than (k +
2) eps away (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed. (2002), theorem
10.3). Bounds of relaxations allow for their own sums
(:func:`trueline.best_subset.relaxation.proven_bound`). With C = 1/2 y'y, coefficients w on k
columns whose correlation matrix has no eigenvalue below l that fit better than none have ||w||_1 <=
sqrt(2 k C / l), and the value of w differs between the two sets of sums by no more than

    unit ( ||w||_1 sqrt(2 C) + 1/2 ||w||_1^2 )  <=  C unit ( 2 sqrt(k/l) + k/l ),

and by C raised / l where eigenvalues have been raised by ``raised``. So a bound is lowered by this
much before it is claimed, where some l is known for all supports; where none is, the claim is about
supports without smaller eigenvalues than a stated l.

The certificate of a search has its answer, its bound, and a witness for the bound at the root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.elimination import UNIT, centred_products, divided, is_positive
from trueline.best_subset.node import (
    RAISED,
    ROOT_STEPS,
    Quadratic,
    Start,
    correlation,
    is_small,
    relaxed,
)
from trueline.best_subset.relaxation import DEPENDENT_COLUMNS, sum_of_largest
from trueline.certificates.base import Certificate
from trueline.certificates.evaluation import Rounding, evaluate
from trueline.certificates.quadratic import proven_coercivity
from trueline.moments import Moments
from trueline.numerics.precision import two_sum
from trueline.problem import Problem

Array = NDArray[np.float64]

# What is left of a copy of another column, relative to its norm: the rounding of its numbers, as
# where both are the same lengths in other units. What is more is a column in its own right.
_COPY = 4.5e-16
_ROWS = 2048
_EPS = float(np.finfo(np.float64).eps)
_MOST_COLUMNS = 20_000
# Up to so many, and so many products, doubled precision takes seconds at most; or no time.
_FEW_COLUMNS, _WORK, _LITTLE_WORK = 200, 1e9, 1e7


@dataclass(frozen=True)
class Statement:
    """A search to be made.

    Attributes
    ----------
    task : Quadratic
        In scaled columns.
    scale : array of shape (d,)
        Norms by which the columns were divided.
    columns : array of bool
        Columns that take part: not constant, and not the copy of one with a lower index.
    moments : Moments
        About the mean, or about zero without intercept.
    """

    task: Quadratic
    scale: Array
    columns: NDArray[np.bool_]
    moments: Moments


def state(problem: Problem, k: int, alpha: float) -> Statement:
    """Form the moments and scale them."""
    d = problem.n_features
    if d > _MOST_COLUMNS:
        raise ValueError(
            f"X has {d:,} columns: the search keeps all products of two columns, which takes "
            f"{8e-9 * d * d:.0f} GB. Choose at most {_MOST_COLUMNS:,} columns first, for instance "
            "those most correlated with the target."
        )
    moments = Moments.from_rows(problem.design, problem.target, problem.weights)
    moments = moments if problem.fit_intercept else moments.about_zero()
    l2 = float(np.max(problem.penalty.curvature))
    columns = _columns(problem, moments, l2)
    gram = moments.gram + l2 * np.eye(d)
    scale = np.where(columns, np.sqrt(gram.diagonal()), 1.0)
    scale[scale == 0] = 1.0
    square = float(moments.y_square[0])
    if square <= 4 * moments.unit * float(moments.y_size[0]):
        square = 0.0  # a constant target, but for the rounding of its mean
    task = Quadratic(
        gram=np.ascontiguousarray(gram / scale[:, None] / scale),
        cross=np.ascontiguousarray(moments.cross[:, 0] / scale) * float(square > 0),
        constant=0.5 * square,
        k=k,
        alpha=alpha,
        rank=math.inf if l2 > 0 else moments.count - int(problem.fit_intercept),
        unit=_unit(moments, gram.diagonal()[columns], moments.x_size[columns], square),
    )
    work = float(problem.n_samples) * d * d
    if d <= _FEW_COLUMNS and work <= _WORK and is_doubtful(task, columns, work <= _LITTLE_WORK):
        task, scale, moments = _doubled(problem, task, columns, moments, l2)
    return Statement(task, scale, columns, moments)


def _doubled(
    problem: Problem, task: Quadratic, columns: NDArray[np.bool_], moments: Moments, l2: float
) -> tuple[Quadratic, Array, Moments]:
    """The same task, its sums taken in doubled precision."""
    d = problem.n_features
    s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
    Z = np.ascontiguousarray(np.column_stack([problem.design.toarray(), problem.target]))
    shift = np.append(moments.x_mean, moments.y_mean) * float(problem.fit_intercept)
    rest, rest_low, G, low = centred_products(Z, s, shift, problem.fit_intercept)
    G[np.arange(d), np.arange(d)], carry = two_sum(G.diagonal()[:d], np.full(d, l2))
    low[np.arange(d), np.arange(d)] += carry
    scale = np.append(np.where(columns, np.sqrt(G.diagonal()[:d]), 1.0), 1.0)
    scale[scale == 0] = 1.0
    unit_gram, unit_low = divided(G, low, scale)
    square = float(G[d, d]) if task.constant > 0 else 0.0
    present = np.append(columns, square > 0)
    # What is left of the mean is small beside the spread, unless the shift was far from it.
    magnified = 1.0 + problem.total_weight * rest[present] ** 2 / G.diagonal()[present]
    doubled = replace(
        task,
        gram=np.ascontiguousarray(unit_gram[:d, :d]),
        gram_low=np.ascontiguousarray(unit_low[:d, :d]),
        cross=unit_gram[:d, d] * float(square > 0),
        cross_low=unit_low[:d, d] * float(square > 0),
        constant=0.5 * square,
        unit=(problem.n_samples + 32) * UNIT * float(magnified.max(initial=1.0)),
    )
    mean, mean_low = two_sum(shift, rest)
    mean_low += rest_low
    moments = replace(
        moments,
        x_mean=mean[:d],
        x_mean_low=mean_low[:d],
        y_mean=mean[d:],
        y_mean_low=mean_low[d:],
        gram=G[:d, :d] - l2 * np.eye(d),
        cross=G[:d, d:],
        y_square=G[d:, d],
    )
    return doubled, scale[:d], moments


def _unit(moments: Moments, squares: Array, sizes: Array, y_square: float) -> float:
    """The rounding of the moments, relative to the norms of the columns and of the target."""
    magnified = float(np.max(sizes / squares, initial=1.0))
    if y_square > 0:
        magnified = max(magnified, float(moments.y_size[0]) / y_square)
    return moments.unit * magnified + 8 * _EPS


def _columns(problem: Problem, moments: Moments, l2: float) -> NDArray[np.bool_]:
    """All but constant columns and, without l2 (which two copies share), copies."""
    square = moments.gram.diagonal()
    columns: NDArray[np.bool_] = square > 4 * moments.unit * moments.x_size
    if l2 > 0:
        return columns
    R = np.abs(np.tril(correlation(moments.gram), -1))
    pairs = [(int(i), int(j)) for j, i in np.argwhere(R > 1 - 1e-9) if columns[i] and columns[j]]
    if not pairs:
        return columns
    used = sorted({column for pair in pairs for column in pair})
    place = {column: index for index, column in enumerate(used)}
    mean = moments.x_mean[used] if problem.fit_intercept else np.zeros(len(used))
    values = np.concatenate([block[:, used] - mean for _, block in problem.design.blocks(_ROWS)])
    if problem.weights is not None:
        values *= np.sqrt(problem.weights)[:, None]
    for i, j in pairs:
        first, second = values[:, place[i]], values[:, place[j]]
        factor = (first @ second) / (first @ first)
        left = np.linalg.norm(second - factor * first)
        noise = _COPY * np.sqrt(moments.x_size[j])
        if columns[i] and left <= noise:
            columns[j] = False
    return columns


Support = NDArray[np.int64]
# At least this part of C is always allowed for, so that a checker with sums of its own agrees.
_LEAST = 1e-10
# A claim about all supports may cost this part of C; beyond it, a condition is stated instead,
_MOST = 1e-7
# which is chosen such that so much is enough.
_CONDITIONED = 1e-9
# Of the smallest eigenvalue of the support that was found.
_PART = 0.95
# Up to so many columns, eigenvalues are computed; beyond, tried out.
_FEW = 500
_LADDER = tuple(10.0**-power for power in range(1, 10))
# In doubled precision.
_LONG_LADDER = tuple(10.0**-power for power in range(1, 22))


def least_of_all(task: Quadratic, allowed: NDArray[np.bool_]) -> float:
    """A number that no eigenvalue of the Gram matrix lies below, zero if there is none.

    With many columns it is found to a factor of ten, which takes a fraction of the time.
    """
    columns = np.flatnonzero(allowed)
    if len(columns) >= task.rank or not len(columns):
        return 0.0
    G = task.gram[np.ix_(columns, columns)]
    if task.gram_low is not None:
        low = np.ascontiguousarray(task.gram_low[np.ix_(columns, columns)])
        return next((v for v in _LONG_LADDER if is_positive(G, low, v)), 0.0)
    if len(G) <= _FEW:
        return max(0.0, float(np.linalg.eigvalsh(G)[0]) - 4 * len(G) ** 2 * _EPS)
    for value in _LADDER:
        try:
            # Where it ends, the rounding of the factors is at most (d + 2) eps of the diagonal.
            np.linalg.cholesky(G - (value + (len(G) + 2) * _EPS) * np.eye(len(G)))
        except np.linalg.LinAlgError:
            continue
        return value
    return 0.0


def _least_of_size(task: Quadratic, allowed: NDArray[np.bool_], k: int) -> float:
    """The same for all supports of k columns, by Gershgorin's circles."""
    columns = np.flatnonzero(allowed)
    k = min(k, len(columns))
    if k <= 1:
        return 1.0
    off = np.abs(task.gram[np.ix_(columns, columns)])
    np.fill_diagonal(off, 0.0)
    largest = np.partition(off, len(columns) - k + 1, axis=1)[:, len(columns) - k + 1 :]
    # Products that were rounded to doubles tell nothing about smaller eigenvalues.
    return 1.0 - float(largest.sum(axis=1).max()) - 4 * k * _EPS


def allowance(unit: float, k: int, least: float, raised: float = 0.0) -> float:
    """The part of C by which rounding can move a bound; ``least`` is l."""
    if least <= 0:
        return math.inf
    root = math.sqrt(max(k, 1) / least)
    return max(_LEAST, unit * (2 * root + root**2) + raised / least)


def is_doubtful(task: Quadratic, allowed: NDArray[np.bool_], is_cheap: bool) -> bool:
    """Whether double precision cannot tell what some support is worth, and twice of it might.

    Where that is cheap, it is asked for as well where it makes a bound sharper.
    """
    count = int(np.count_nonzero(allowed))
    if count >= task.rank and not is_small(count, task.k):
        return False  # some columns depend on others in any precision
    known = max(least_of_all(task, allowed), _least_of_size(task, allowed, task.k))
    most = _CONDITIONED if is_cheap else _MOST
    return allowance(task.unit + (task.k + 2) * task.eps, task.k, known) > most


def lowered(
    task: Quadratic, allowed: NDArray[np.bool_], support: Support, least: float
) -> tuple[float, float]:
    """By how much a bound is lowered, and the eigenvalue to state (zero: all supports).

    Parameters
    ----------
    task : Quadratic
        With the k of the search, and the condition it was made under.
    allowed : array of bool
    support : array of int
        What was found: the claim includes it.
    least : float
        What is known of all supports (:func:`least_of_all`, or from looking at each).
    """
    k, unit = task.k, task.unit + (task.k + 2) * task.eps
    raised = 0.0 if least or task.delta or task.gram_low is not None else RAISED
    known = max(least, task.delta)
    if allowance(unit, k, known, raised) > _MOST:
        known = max(known, _least_of_size(task, allowed, k))
    nodes = _of_nodes(task, allowed)
    if allowance(unit, k, known, raised) <= _MOST:
        return (allowance(unit, k, known, raised) + nodes) * task.constant, task.delta
    own = _own(task, support)
    # unit (2 x + x^2) + raised x^2 / k = _CONDITIONED, for x = sqrt(k / l).
    square = unit + raised / max(k, 1)
    x = (math.sqrt(unit**2 + square * _CONDITIONED) - unit) / square
    stated = max(min(max(k, 1) / x**2, _PART * own), task.dependent, task.delta)
    if known >= stated:
        return (allowance(unit, k, known, raised) + nodes) * task.constant, task.delta
    return (allowance(unit, k, stated, raised) + nodes) * task.constant, stated


def _own(task: Quadratic, support: Support) -> float:
    """The smallest eigenvalue of a support, from below where it is found by trying."""
    if not len(support):
        return 1.0
    if task.gram_low is None:
        return float(np.linalg.eigvalsh(task.gram[np.ix_(support, support)])[0])
    mask = np.zeros(len(task.gram), dtype=bool)
    mask[support] = True
    return least_of_all(task, mask)


def _of_nodes(task: Quadratic, allowed: NDArray[np.bool_]) -> float:
    """What relaxations add where columns are projected out in doubled precision.

    They work on matrices that were rounded to doubles, whose eigenvalues, the diagonal brought to
    one, are at least those for which there is a relaxation.
    """
    if task.gram_low is None or is_small(int(np.count_nonzero(allowed)), task.k):
        return 0.0
    return allowance(8 * _EPS, task.k, DEPENDENT_COLUMNS)


# The bound at the root is claimed this much lower (of the value without columns) than it was found.
_SAFETY = 1e-9
# Smaller eigenvalues help no relaxation, and magnify rounding.
_LEAST_DELTA = 1e-7


def certify_search(
    problem: Problem,
    statement: Statement,
    W: Array,
    b: Array,
    search_bound: float,
) -> Certificate:
    """The certificate of coefficients for which a search has proven ``search_bound``.

    Parameters
    ----------
    problem : Problem
        The squared loss and penalty, without the count of non-zeros.
    statement : Statement
        The same from its moments; its task with the k, alpha and delta of the search.
    W, b : arrays of shape (d, 1) and (1,)
    search_bound : float
    """
    task = statement.task
    at = evaluate(problem, Rounding.of(problem).confirmable(), W, b)
    objective = float(at.objective.sum()) + task.alpha * np.count_nonzero(W)
    rounding = float(at.objective_rounding.sum()) + 96 * _EPS * abs(objective)
    witness, root_bound = _root(problem, statement)
    # Never above what the rows say of this very support: moments may know it less well.
    known = min(search_bound, objective - _LEAST * task.constant)
    bound = max(known, root_bound, 0.0)
    gap = max((objective + rounding) * (1 + 8 * _EPS) - bound, 0.0)
    kind = "conditioned search" if task.delta > 0 else "search"
    return Certificate.about(problem, kind, W, b, objective, rounding, gap, witness)


def _root(problem: Problem, statement: Statement) -> tuple[dict[str, Any], float]:
    """The witness of the bound at the root, and the bound: zero where there is none."""
    task, columns, scale = statement.task, statement.columns, statement.scale
    scale = scale[columns]
    witness: dict[str, Any] = {
        "k": np.array(task.k),
        "alpha": np.array(task.alpha),
        "delta": np.array(task.delta),
        "columns": columns,
        "diagonal": np.zeros(0),
        "theta": np.array(1.0),
        "dual": np.zeros(0),
    }
    G = np.ascontiguousarray(task.gram[np.ix_(columns, columns)])
    c = task.cross[columns]
    m = len(c)
    q = min(task.k, m)
    if q == 0 or task.constant == 0:
        return witness, 0.0
    if 0 < task.delta < _LEAST_DELTA:
        task = replace(task, delta=0.0)  # what holds for all supports holds for those stated
    found, start = relaxed(task, G, c, q, G.diagonal(), Start(), np.inf, ROOT_STEPS)
    if found is None:
        return witness, 0.0
    theta = 1.0 if start.theta is None else start.theta
    E, v = start.diagonal, found.v
    if E is not None:
        E = E * min(1.0, _coercivity(problem, columns, E * scale**2)) * (1 - 1e-12)
    if E is None or not E.all():
        if theta == 1.0:
            return witness, 0.0
        E = np.zeros(m)
    D = theta * E + (1 - theta) * task.delta * G.diagonal()
    s = theta * (G @ v - E * v)
    largest = sum_of_largest((c - s) ** 2 / (2 * D), q, task.alpha)
    bound = task.constant * (1 - _SAFETY) - 0.5 * float(v @ s) - float(largest)
    if bound <= 0:
        return witness, 0.0
    witness["diagonal"], witness["dual"] = E * scale**2, v / scale
    witness["theta"] = np.array(theta)
    return witness, bound


def _coercivity(problem: Problem, columns: NDArray[np.bool_], E: Array) -> float:
    """nu with G >= nu E, as the checker will find it."""
    design, n = problem.design, problem.n_samples
    weights = np.ones(n) if problem.weights is None else problem.weights
    mean = design.column_means(problem.weights)[columns] if problem.fit_intercept else None
    blocks = ((rows, block[:, columns]) for rows, block in design.blocks(_ROWS))
    curvature = np.full(len(E), float(np.max(problem.penalty.curvature)))
    return proven_coercivity(blocks, weights, np.diag(1.0 / np.sqrt(E)), curvature, mean) * (
        1 - 1e-9
    )
