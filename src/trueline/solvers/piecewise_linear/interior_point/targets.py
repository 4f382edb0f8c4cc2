r"""Piecewise linear losses with many rows: few rows first, then the rows that matter.

Most rows are far from their kinks and stay there: all that counts is the sum of their slopes. So
(S. Portnoy and R. Koenker, Statist. Sci. 12 (1997) 279-300, section 5):

1. a sample of m rows gives coefficients that are off by about sqrt(p / m) of the residuals' size;
2. the rows whose kinks are that near are treated one by one, all others as one slope: first as many
   as that error asks for, with rounded kinks
   (:mod:`trueline.solvers.piecewise_linear.interior_point.sparse_rows`), then the few that are near
   to the better coefficients that this gives, down to the vertex;
3. one pass over the data shows which of the others ended up on another side; those join, and the
   vertex is improved from where it is, until none is left.

The second step has about n sqrt(p / m) rows; m balances the two.

Several targets (several quantiles) are solved side by side. What needs all rows is asked for: a
target's steps are a generator that yields what it wants a product of, and those of all targets are
formed at once (:func:`solve_targets`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.blas import run_strands
from trueline.solvers.piecewise_linear.interior_point.interior import (
    InteriorPoint,
    Minimum,
    approach,
    exactly,
    improve,
    minimise,
)
from trueline.solvers.piecewise_linear.interior_point.program import Program
from trueline.solvers.piecewise_linear.interior_point.source import Band, Cut, Source
from trueline.solvers.piecewise_linear.interior_point.sparse_rows import Smoothed
from trueline.solvers.piecewise_linear.interior_point.vertex import Vertex

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# How many spreads of the sample's error the rows of the second step reach.
_REACH = 2.0
# How near the sample comes, relative to the losses at its start.
_ROUGH = 0.1
# The part of the band's rows that may change sides before its centre counts as misleading.
_ANOTHER_SIDE = 0.01
# How often such rows join before the band is given up.
_JOINS = 6
# Rows of the last step, for each coefficient; how often the kinks are sharpened, and how often a
# face with a quadratic term is tried: more kinks may meet on it than ever become clear.
_FEW, _LEVELS, _FACES = 20, 40, 8
# When kinks are sharp enough, in rows on their ramps: the part of the last step's rows for the
# first step, and for each coefficient for the vertex.
_FEW_ON_RAMPS, _ON_RAMPS = 0.25, 2
# Rows that a sample should have on the rarer side of the quantile, for each coefficient.
_RARE = 1.0
# Errors of this part of the largest target are rounding.
_PERFECT = 1e-14
# Samples pay if they and the rows near their kinks are so many times fewer than all rows.
_WORTH = 2.5


@dataclass
class Answer:
    """For one target: v in the terms of a source, and the derivative u of every row's loss.

    ``scores`` of all rows are there if they are known.
    """

    source: Source
    v: Array
    u: Array
    on_kinks: Indices
    is_exact: bool
    steps: int
    exchanges: int
    rows: int
    scores: Array | None = None


class Scores(NamedTuple):
    """Asks for a_i.v of all rows."""

    v: Array


class Total(NamedTuple):
    """Asks for sum_i weights_i a_i over all rows."""

    weights: Array


Request = Scores | Total
Steps = Generator[Request, Array, "Answer"]


def solve_targets(sources: Sequence[Source]) -> list[Answer]:
    """The exact answer for every target of one problem."""
    first = sources[0]
    n, p = first.problem.n_samples, first.size
    if worked_rows(n, p) < n:
        first.sample(sample_size(n, p))  # once for all, before they part
    runs = [_steps(source) for source in sources]
    results: list[Request | Answer] = run_strands(_first, runs)
    while True:
        waiting = [j for j, result in enumerate(results) if not isinstance(result, Answer)]
        if not waiting:
            return [result for result in results if isinstance(result, Answer)]
        products = _products([sources[j] for j in waiting], [results[j] for j in waiting])
        onward = [(runs[j], product) for j, product in zip(waiting, products, strict=True)]
        for j, result in zip(waiting, run_strands(_next, onward), strict=True):
            results[j] = result


def _first(run: Steps) -> Request | Answer:
    return _next((run, None))


def _next(work: tuple[Steps, Array | None]) -> Request | Answer:
    """Up to the next request, or to the answer."""
    run, product = work
    try:
        return next(run) if product is None else run.send(product)
    except StopIteration as end:
        return end.value


def _products(sources: list[Source], requests: list[Request | Answer]) -> list[Array]:
    """What was asked for, with one product for all that ask for the same."""
    out: list[Array] = [np.empty(0)] * len(requests)
    scores = [(j, request.v) for j, request in enumerate(requests) if isinstance(request, Scores)]
    totals = [(j, r.weights) for j, r in enumerate(requests) if isinstance(r, Total)]
    if scores:
        found = Source.scores_of([(sources[j], v) for j, v in scores])
        for (j, _), z in zip(scores, found, strict=True):
            out[j] = z
    if totals:
        found = Source.totals_of([(sources[j], weights) for j, weights in totals])
        for (j, _), total in zip(totals, found, strict=True):
            out[j] = total
    return out


def sample_size(n: int, p: int) -> int:
    """Rows of the sample."""
    return max(int((0.5 * _REACH * n * np.sqrt(p)) ** (2 / 3)), 8 * p)


def _sizes(n: int, p: int) -> tuple[int, int]:
    """Rows of the sample, and of those near their kinks."""
    sample = sample_size(n, p)
    return sample, int(_REACH * n * np.sqrt(p / sample))


def worked_rows(n: int, p: int) -> int:
    """How many rows the interior-point method will see."""
    if p == 0:
        return n
    sample, near = _sizes(n, p)
    return n if _WORTH * (sample + near) >= n else sample + near


def _steps(source: Source) -> Steps:
    """The exact answer for one target."""
    n, p = source.problem.n_samples, source.size
    if p == 0:
        return _no_coefficients(source)
    if worked_rows(n, p) == n:
        return _solve_whole(source)
    return (yield from _solve_reduced(source, *_sizes(n, p)))


def _is_extreme(source: Source, sample: int) -> bool:
    """Whether a sample has too few rows on the rare side to say anything."""
    if "margins" in source.loss.capabilities:
        return False
    share = -source.loss.first_slope / sum(source.loss.jumps)
    return sample * min(share, 1 - share) < _RARE * source.size


def _no_coefficients(source: Source) -> Answer:
    """Columns of zeros and no intercept: nothing to choose."""
    y = source.target
    none = np.empty(0, dtype=np.intp)
    return Answer(source, np.empty(0), source.loss.gradient(y, 0 * y), none, True, 0, 0, 0)


def _start(source: Source, A: Array, rows: Indices | slice) -> Array:
    """Least squares on some rows, with the intercept where as many rows are above as should be."""
    y = source.target[rows]
    gram = A.T @ A
    gram[np.diag_indices_from(gram)] += 1e-10 * np.trace(gram) / max(1, len(gram)) + 1e-300
    v = np.linalg.solve(gram, A.T @ y)
    v += np.linalg.solve(gram, A.T @ (y - A @ v))  # without the digits that the trace costs
    if source.problem.fit_intercept:
        v[-1] += _level(source, y - A @ v)
    return np.asarray(v, dtype=np.float64)


def _level(source: Source, residual: Array) -> float:
    """The intercept that leaves as many residuals above it as should be."""
    if "margins" in source.loss.capabilities:
        return float(residual.mean())
    # Some of the rows: that errs less than the coefficients beside it, which are p and not one.
    some = residual[:: max(1, source.size // 8)]
    place = int(len(some) * -source.loss.first_slope / sum(source.loss.jumps))
    return float(np.partition(some, place)[place])


def _solve_whole(source: Source, steps: int = 0) -> Answer:
    rows = slice(None)
    A = source.gather(rows)
    smaller = source.restricted(A)
    if smaller is not source:
        source, A = smaller, smaller.gather(rows)
    program = source.program(A, rows)
    start = _start(source, A, rows)
    size = source.loss_at(A @ start)
    if "margins" in source.loss.capabilities:
        size = max(size, source.loss_at(np.zeros(len(A))))  # least squares may fit labels exactly
    found = minimise(program, start, size)
    found.steps += steps
    return _answer(source, program, found, np.arange(len(A)), np.zeros(len(A)))


def _solve_reduced(source: Source, sample: int, near: int) -> Steps:
    """From a sample, which tells which rows matter."""
    if _is_extreme(source, sample):
        return _solve_whole(source)
    chosen, A = source.sample(sample)
    if source.restricted(A, chosen) is not source:
        return _solve_whole(source)  # the sample may miss what tells columns apart
    # A sample weighs less than all rows, and so must the penalty.
    scaled = _lighter(source.program(A, chosen), sample / source.problem.n_samples)
    start = _start(source, A, chosen)
    if _is_perfect(source, A @ start, chosen) and _is_perfect(source, z := (yield Scores(start))):
        n, none = source.problem.n_samples, np.empty(0, dtype=np.intp)
        # Slopes of zero are in the domain of l*, and balance whatever the rows are.
        return Answer(source, start, np.zeros(n), none, True, 0, 0, 0, z)
    method = InteriorPoint(scaled, start)
    answer = None
    if approach(method, _ROUGH * source.loss_at(A @ start, chosen)):
        v = method.at.v
        z = yield Scores(v)
        answer = yield from _solve_from(source, v, z, near)
    if answer is None:
        return _solve_whole(source, method.at.steps)
    answer.steps += method.at.steps
    return answer


def _is_perfect(source: Source, z: Array, rows: Indices | slice = slice(None)) -> bool:
    """Whether the scores are the targets, up to rounding, and no penalty wants them elsewhere."""
    penalty = source.problem.penalty
    if np.any(penalty.linear) or np.any(penalty.curvature) or source.loss.kinks != (0.0,):
        return False
    y = source.target[rows]
    return bool(np.abs(z - y).max() <= _PERFECT * np.abs(y).max())


def _few(p: int) -> int:
    """Rows of the last step."""
    return max(_FEW * p, 1000)


def _solve_from(
    source: Source, v: Array, z: Array, near: int
) -> Generator[Request, Array, Answer | None]:
    """The answer from coefficients nearby; None if too many rows were misjudged."""
    few = _few(source.size)
    on_ramps = int(_FEW_ON_RAMPS * few)
    cut = Cut.around(source, z, near)
    band = Band(source, cut, (yield Total(cut.slopes)))
    smoothed, steps = Smoothed(band.program, v, band.width), 0
    for _ in range(_JOINS):
        if not _sharpen(smoothed, on_ramps):
            return None
        z = yield Scores(smoothed.v)
        changed = band.changed(z)
        # A vertex moves on by exchanges; a face of few rows is lost if more changed sides.
        if len(changed) <= (
            _ANOTHER_SIDE * near if band.program.is_linear else int(_FEW_ON_RAMPS * few)
        ):
            break
        if not band.join(changed):
            return None
        steps += smoothed.steps
        smoothed = Smoothed(band.program, smoothed.v, smoothed.gamma)
    else:
        return None
    if near <= few and band.program.is_linear and (not len(changed) or band.join(changed)):
        # This band is as small as the last one would be: few exchanges settle the rest.
        steps += smoothed.steps
        smoothed = Smoothed(band.program, smoothed.v, smoothed.gamma)
        answer = yield from _vertex_of(band, smoothed, steps)
        if answer is not None:
            return answer
        z = yield Scores(smoothed.v)
    for count in (few, near):
        steps += smoothed.steps
        band = band.around(z, count)
        smoothed = Smoothed(band.program, smoothed.v, min(smoothed.gamma, band.width))
        answer = yield from _vertex_of(band, smoothed, steps)
        if answer is not None:
            return answer
        z = yield Scores(smoothed.v)
    return None


def _vertex_of(
    band: Band, smoothed: Smoothed, steps: int
) -> Generator[Request, Array, Answer | None]:
    """The answer by the exact minimum of a band; None if there is none to be had."""
    found = _vertex(smoothed)
    if found is None:
        return None
    found, z = yield from _settled(band, found)
    if found is None:
        return None
    found.steps += steps
    answer = _answer(band.source, band.program, found, band.rows, band.slopes)
    answer.scores = z
    return answer


def _sharpen(smoothed: Smoothed, most: int) -> bool:
    """Round the kinks less and less until few are left on their ramps."""
    for _ in range(_LEVELS):
        if not smoothed.settle():
            return False
        _, _, count = smoothed.multipliers()
        if count <= most:
            return True
        smoothed.gamma /= float(np.clip(count / (0.7 * most), 2.0, 10.0))
    return False


def _vertex(smoothed: Smoothed) -> Minimum | None:
    """Sharpen the kinks until the ones that the minimum lies on are clear, and work it out."""
    program, most = smoothed.program, _ON_RAMPS * len(smoothed.v)
    for _ in range(_LEVELS if program.is_linear else _FACES):
        if not _sharpen(smoothed, most):
            return None
        pi, rise, _ = smoothed.multipliers()
        nearness = 1.0 / (1.0 + np.abs(smoothed.offset) / smoothed.gamma) + (rise > 0)
        found = exactly(program, smoothed.v, pi, nearness, smoothed.steps)
        if found is not None:
            return found
        smoothed.gamma *= 0.3
    return None


def _settled(band: Band, found: Minimum) -> Generator[Request, Array, tuple[Minimum | None, Array]]:
    """Improve until no row beside the band has left its side; None if it could not be done."""
    while True:
        z = yield Scores(found.v)
        changed = band.changed(z)
        if not len(changed):
            return found, z
        before = len(band.rows)
        if not band.join(changed):
            return None, z
        if found.vertex is not None:
            better = improve(_moved(found.vertex, band.program, before), found.steps)
        else:
            better = _vertex(Smoothed(band.program, found.v, band.width))
        if better is None:
            return None, z
        better.exchanges += found.exchanges
        better.steps = found.steps + (0 if found.vertex is not None else better.steps)
        found = better


def _lighter(program: Program, share: float) -> Program:
    """With the penalty at a share of its strength."""
    if not (program.quad.any() or len(program.lasso)):
        return program
    c, ell = program.c.copy(), program.ell.copy()
    own = slice(len(c) - len(program.lasso), None)
    ell[program.lasso] += 0.5 * c[own] * (1 - share)
    c[own] *= share
    return replace(program, c=c, ell=ell, quad=program.quad * share)


def _moved(vertex: Vertex, program: Program, before: int) -> Vertex:
    """The same vertex in a program with more rows after the first ``before``."""
    now = len(program.A)
    kinds = (len(program.t) - len(program.lasso)) // now
    kinks = vertex.kinks
    number, place = np.divmod(kinks, before)
    beyond = kinks + (now - before) * kinds
    return Vertex(program, np.where(kinks < before * kinds, number * now + place, beyond), vertex.v)


def _answer(
    source: Source, program: Program, found: Minimum, rows: Indices, slopes: Array
) -> Answer:
    """In terms of all rows; ``slopes`` are those of the rows that are not in ``rows``."""
    count = len(found.multipliers) - len(program.lasso)
    own = found.multipliers[:count].reshape(-1, len(rows)).sum(axis=0)
    weights = source.problem.weights
    u = slopes if weights is None else slopes / weights
    u[rows] = source.loss.first_slopes(source.target[rows]) + own / source.row_weights(rows)
    on = found.kinks if found.kinks is not None else np.empty(0, dtype=np.intp)
    on = rows[on[on < count] % max(1, len(rows))]
    return Answer(
        source=source,
        v=found.v,
        u=u,
        on_kinks=np.unique(on),
        is_exact=found.is_exact,
        steps=found.steps,
        exchanges=found.exchanges,
        rows=len(rows),
    )
