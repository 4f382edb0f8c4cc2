r"""The exact minimum of a piecewise linear loss: few rows first, then the rows that matter.

Most rows are far from their kinks and stay there: all that counts is the sum of their slopes. So
for many rows (S. Portnoy and R. Koenker, Statist. Sci. 12 (1997) 279-300, section 5):

1. a sample of m rows gives coefficients that are off by about sqrt(p / m) in units of the residuals;
2. the rows whose kinks are that near are treated one by one, all others as one slope;
3. one pass over the data shows which of the others ended up on another side; those join, and the
   vertex is improved from where it is, until none is left.

The second step has about n sqrt(p / m) rows; m balances the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.piecewise.faces import minimum_on_face
from trueline.solvers.piecewise.interior import InteriorPoint
from trueline.solvers.piecewise.program import Program
from trueline.solvers.piecewise.source import Source
from trueline.solvers.piecewise.vertex import Vertex, independent_kinks

__all__ = ["Answer", "Minimum", "minimise", "sample_size", "solve_target", "worked_rows"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# How many spreads of the sample's error the rows of the second step reach.
_REACH = 2.0
# The gap, relative to the function's size, at which the vertex is looked for; then ever smaller.
_FIRST_TRY, _LAST_TRY = 1e-8, 1e-14
_ROUGH = 1e-2
# Samples pay if they and the rows near their kinks are so many times fewer than all rows.
_WORTH = 2.5
_MOST_STEPS = 100


@dataclass
class Minimum:
    """Coefficients, the derivative of every row's loss, and how it was found.

    Attributes
    ----------
    v : array of shape (p,)
    multipliers : array
        Of the kinks of the program.
    is_exact : bool
        Whether this is a vertex (or the minimum on a face) whose multipliers prove it.
    kinks : array of int, or None
        Those that the answer lies on.
    steps, exchanges : int
    """

    v: Array
    multipliers: Array
    is_exact: bool
    kinks: Indices | None
    steps: int
    exchanges: int = 0
    vertex: Vertex | None = None


def minimise(program: Program, start: Array, rough: bool = False) -> Minimum:
    """The minimum of a program, by an interior point and then exactly."""
    method = InteriorPoint(program, start)
    size = _size(program, start)
    goal = _ROUGH if rough else _FIRST_TRY
    for _ in range(_MOST_STEPS):
        if method.gap() <= goal * size:
            if rough:
                break
            found = _finish(program, method)
            if found is not None:
                return found
            if goal <= _LAST_TRY:
                break
            goal *= 1e-3
        try:
            method.step()
        except FloatingPointError:
            break
    at = method.at
    return Minimum(at.v, at.multipliers, False, None, at.steps)


def _size(program: Program, start: Array) -> float:
    """What a gap is compared with: the start, or a small part of zero if the start is perfect."""
    here = float(program.c @ np.abs(program.offsets(start)))
    spread = float(program.c @ np.abs(program.t - program.t.mean()))
    return max(here, 1e-4 * spread, 1e-290)


def _finish(program: Program, method: InteriorPoint) -> Minimum | None:
    at = method.at
    if not program.is_linear:
        found = minimum_on_face(program, at)
        if found is None:
            return None
        v, pi = found
        on = np.flatnonzero((pi > 0) & (pi < program.c))
        return Minimum(v, pi, True, on, at.steps)
    kinks = independent_kinks(program, _nearness(program, method))
    if kinks is None:
        return None
    vertex = Vertex(program, kinks, at.v)
    return _improved(vertex, at.steps)


def _nearness(program: Program, method: InteriorPoint) -> Array:
    """Large for kinks that the optimum lies on: room of the multiplier over the offset."""
    at = method.at
    room = np.minimum(at.multipliers, program.c - at.multipliers) / program.c
    return room / (at.above + at.below)


def _improved(vertex: Vertex, steps: int) -> Minimum | None:
    program = vertex.program
    try:
        done = vertex.improve(most=20 * len(program.ell) + 50)
    except FloatingPointError:
        return None
    if not done:
        return None
    pi = np.clip(vertex.multipliers(), 0.0, program.c)
    return Minimum(vertex.v, pi, True, vertex.kinks, steps, vertex.exchanges, vertex)


@dataclass
class Answer:
    """For one target: v in the terms of a source, and the derivative u of every row's loss."""

    source: Source
    v: Array
    u: Array
    on_kinks: Indices
    is_exact: bool
    steps: int
    exchanges: int
    rows: int


def solve_target(source: Source) -> Answer:
    """The exact answer for one target."""
    n, p = source.problem.n_samples, source.size
    if p == 0:
        return _no_coefficients(source)
    if worked_rows(n, p) == n:
        return _solve_whole(source)
    return _solve_reduced(source, *_sizes(n, p))


def _no_coefficients(source: Source) -> Answer:
    """Columns of zeros and no intercept: nothing to choose."""
    y = source.target
    none = np.empty(0, dtype=np.intp)
    return Answer(source, np.empty(0), source.loss.gradient(y, 0 * y), none, True, 0, 0, 0)


def worked_rows(n: int, p: int) -> int:
    """How many rows the interior-point method will see."""
    if p == 0:
        return n
    sample, near = _sizes(n, p)
    return n if _WORTH * (sample + near) >= n else sample + near


def sample_size(n: int, p: int) -> int:
    """Rows of the sample."""
    return max(int((0.5 * _REACH * n * np.sqrt(p)) ** (2 / 3)), 8 * p)


def _sizes(n: int, p: int) -> tuple[int, int]:
    """Rows of the sample, and of those near their kinks."""
    sample = sample_size(n, p)
    return sample, int(_REACH * n * np.sqrt(p / sample))


def _start(A: Array, y: Array) -> Array:
    """Least squares on some rows."""
    gram = A.T @ A
    gram[np.diag_indices_from(gram)] += 1e-10 * np.trace(gram) / max(1, len(gram)) + 1e-300
    return np.linalg.solve(gram, A.T @ y)


def _solve_whole(source: Source) -> Answer:
    rows = slice(None)
    A = source.gather(rows)
    smaller = source.restricted(A)
    if smaller is not source:
        source, A = smaller, smaller.gather(rows)
    program = source.program(A, rows)
    found = minimise(program, _start(A, source.target))
    return _answer(source, program, found, np.arange(len(A)), None)


def _solve_reduced(source: Source, sample: int, near: int) -> Answer:
    n = source.problem.n_samples
    loss, s = source.loss, source.row_weights
    chosen, A = source.sample(sample)
    if source.restricted(A) is not source:
        return _solve_whole(source)  # the sample may miss what tells columns apart
    scaled = source.program(A, chosen)
    scaled = replace(scaled, quad=scaled.quad * (sample / n))
    if len(scaled.lasso):  # a sample weighs less than all rows, and so must the penalty
        scaled = _lighter(scaled, sample / n)
    rough = minimise(scaled, _start(A, source.target[chosen]), rough=True)
    v, steps, exchanges = rough.v, rough.steps, 0
    while True:
        z = source.scores(v)
        piece, distance = _pieces(source, z)
        rows = np.sort(np.argpartition(distance, near)[:near])
        slopes = s * loss.gradient(source.target, z)
        slopes[rows] = 0.0
        program = source.program(source.gather(rows), rows, beside=source.total(slopes))
        found = minimise(program, v)
        steps += found.steps
        while True:
            z = source.scores(found.v)
            changed = _changed(source, z, piece, rows)
            if not len(changed):
                return _answer(source, program, found, rows, slopes, steps, exchanges)
            if found.vertex is None or len(changed) > 0.25 * near:
                break
            # Those rows join; the vertex stays one, and is improved from where it is.
            slopes_joined = slopes[changed]
            slopes[changed] = 0.0
            program, rows = _joined(source, program, rows, changed, slopes_joined)
            vertex = _moved(found.vertex, program, len(rows) - len(changed))
            better = _improved(vertex, 0)
            if better is None:
                break
            exchanges += found.exchanges
            found = better
        v = found.v
        near = min(2 * near, n - 1)
        if 2 * near >= n:
            whole = _solve_whole(source)
            whole.steps += steps
            return whole


def _lighter(program: Program, share: float) -> Program:
    """With the penalty's kinks at a share of their strength."""
    c, start, ell = program.c.copy(), program.start.copy(), program.ell.copy()
    own = slice(len(c) - len(program.lasso), None)
    ell[program.lasso] += 0.5 * c[own] * (1 - share)
    c[own] *= share
    start[own] *= share
    return replace(program, c=c, start=start, ell=ell)


def _pieces(source: Source, z: Array) -> tuple[NDArray[np.int8], Array]:
    """On which straight piece each row is, and how far its nearest kink."""
    residual = z - source.target
    piece = np.zeros(len(z), dtype=np.int8)
    distance = np.full(len(z), np.inf)
    for kink in source.loss.kinks:
        piece += residual > kink
        np.minimum(distance, np.abs(residual - kink), out=distance)
    return piece, distance


def _changed(source: Source, z: Array, piece: NDArray[np.int8], rows: Indices) -> Indices:
    """Rows beside that are on another piece than the one their slope is of."""
    kinks = np.array([-np.inf, *source.loss.kinks, np.inf])
    residual = z - source.target
    noise = 1e-13 * (np.abs(z) + np.abs(source.target))
    changed = (residual < kinks[piece] - noise) | (residual > kinks[piece + 1] + noise)
    changed[rows] = False
    return np.flatnonzero(changed)


def _joined(
    source: Source, program: Program, rows: Indices, more: Indices, slopes: Array
) -> tuple[Program, Indices]:
    """The program with more rows treated one by one."""
    A = source.gather(more)
    all_rows = np.concatenate([rows, more])
    loss = source.loss
    of_rows = loss.first_slope * source.row_weights
    beside = program.ell - program.A.T @ of_rows[rows] - A.T @ slopes
    whole = source.program(np.concatenate([program.A, A]), all_rows)
    # ell holds the lines of the rows and the penalty already: keep what was beside alone.
    linear = np.zeros_like(beside)
    linear[program.lasso] = 0.5 * program.c[len(program.c) - len(program.lasso) :]
    return replace(whole, ell=whole.ell + beside + linear), all_rows


def _moved(vertex: Vertex, program: Program, before: int) -> Vertex:
    """The same vertex in a program with more rows after the first ``before``."""
    now = len(program.A)
    kinks = vertex.kinks
    of_rows = kinks < before * _kinds(program)
    number, place = np.divmod(kinks, before)
    beyond = kinks - before * _kinds(program) + now * _kinds(program)
    return Vertex(program, np.where(of_rows, number * now + place, beyond), vertex.v)


def _kinds(program: Program) -> int:
    """Kinks of one row."""
    return (len(program.t) - len(program.lasso)) // len(program.A)


def _answer(
    source: Source,
    program: Program,
    found: Minimum,
    rows: Indices,
    slopes: Array | None,
    steps: int | None = None,
    exchanges: int = 0,
) -> Answer:
    s = source.row_weights
    count = len(program.t) - len(program.lasso)
    own = found.multipliers[:count].reshape(-1, len(rows)).sum(axis=0)
    u = np.zeros(source.problem.n_samples) if slopes is None else slopes / s
    u[rows] = source.loss.first_slope + own / s[rows]
    on = found.kinks if found.kinks is not None else np.empty(0, dtype=np.intp)
    on = rows[on[on < count] % max(1, len(rows))]
    return Answer(
        source=source,
        v=found.v,
        u=u,
        on_kinks=np.unique(on),
        is_exact=found.is_exact,
        steps=found.steps if steps is None else steps,
        exchanges=found.exchanges + exchanges,
        rows=len(rows),
    )
