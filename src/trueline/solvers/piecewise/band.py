r"""Piecewise linear losses with many rows: few rows first, then the rows that matter.

Most rows are far from their kinks and stay there: all that counts is the sum of their slopes. So
(S. Portnoy and R. Koenker, Statist. Sci. 12 (1997) 279-300, section 5):

1. a sample of m rows gives coefficients that are off by about sqrt(p / m) of the residuals' size
   (least squares on all rows do at least as well where the errors are harmless: they come first);
2. the rows whose kinks are that near are treated one by one, all others as one slope: first as many
   as the sample's error asks for, with rounded kinks (:mod:`trueline.solvers.piecewise.smoothing`),
   then the few that are near to the better coefficients that this gives, down to the vertex;
3. one pass over the data shows which of the others ended up on another side; those join, and the
   vertex is improved from where it is, until none is left.

The second step has about n sqrt(p / m) rows; m balances the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.piecewise.exact import Minimum, approach, exactly, improve, minimise
from trueline.solvers.piecewise.interior import InteriorPoint
from trueline.solvers.piecewise.program import Program
from trueline.solvers.piecewise.smoothing import Smoothed
from trueline.solvers.piecewise.source import Source
from trueline.solvers.piecewise.vertex import Vertex

__all__ = ["Answer", "sample_size", "solve_target", "worked_rows"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# How many spreads of the sample's error the rows of the second step reach.
_REACH = 2.0
# How near the sample comes, relative to the losses at its start.
_ROUGH = 0.1
# The part of the band's rows that may change sides before least squares count as misleading.
_ANOTHER_SIDE = 0.05
# Rows of the last step, for each coefficient; how often the kinks are sharpened.
_FEW, _LEVELS = 40, 40
# How often the rows near their kinks are chosen anew.
_ROUNDS = 6
# Rows that a sample should have on the rarer side of the quantile, for each coefficient.
_RARE = 1.0
# Samples pay if they and the rows near their kinks are so many times fewer than all rows.
_WORTH = 2.5


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


def solve_target(source: Source) -> Answer:
    """The exact answer for one target."""
    n, p = source.problem.n_samples, source.size
    if p == 0:
        return _no_coefficients(source)
    if worked_rows(n, p) == n or _is_extreme(source, sample_size(n, p)):
        return _solve_whole(source)
    return _solve_reduced(source, *_sizes(n, p))


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
    if source.problem.fit_intercept:
        v[-1] += _level(source, y - A @ v)
    return np.asarray(v, dtype=np.float64)


def _level(source: Source, residual: Array) -> float:
    """The intercept that leaves as many residuals above it as should be."""
    if "margins" in source.loss.capabilities:
        return float(residual.mean())
    return float(np.quantile(residual, -source.loss.first_slope / sum(source.loss.jumps)))


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


def _solve_reduced(source: Source, sample: int, near: int) -> Answer:
    """From least squares if those are near enough to tell which rows matter, else from a sample."""
    v, z = _least_squares(source)
    answer = None
    if z is not None:
        answer = _solve_from(source, v, z, near, _ANOTHER_SIDE * near)
    if answer is not None:
        return answer
    n = source.problem.n_samples
    chosen, A = source.sample(sample)
    if source.restricted(A, chosen) is not source:
        return _solve_whole(source)  # the sample may miss what tells columns apart
    # A sample weighs less than all rows, and so must the penalty.
    scaled = _lighter(source.program(A, chosen), sample / n)
    start = _start(source, A, chosen)
    method = InteriorPoint(scaled, start)
    if approach(method, _ROUGH * source.loss_at(A @ start, chosen)):
        v = method.at.v
        answer = _solve_from(source, v, source.scores(v), near, n)
    if answer is None:
        return _solve_whole(source, method.at.steps)
    answer.steps += method.at.steps
    return answer


def _least_squares(source: Source) -> tuple[Array, Array | None]:
    """Least squares with the intercept at the quantile of the residuals, and the scores there."""
    v = np.zeros(source.size)
    fitted = source.fitted()
    # Least squares say little about which rows are at the margins of their classes.
    if fitted is None or "margins" in source.loss.capabilities:
        return v, None
    v[: len(source.kept)] = source.slopes
    if source.problem.fit_intercept:
        v[-1] = _level(source, source.target - fitted)
    return v, fitted + v[-1] if source.problem.fit_intercept else fitted


def _solve_from(source: Source, v: Array, z: Array, near: int, most: float) -> Answer | None:
    """The answer from coefficients nearby; None if more rows than ``most`` were misjudged."""
    few, steps = max(_FEW * source.size, 1000), 0
    for _ in range(_ROUNDS):
        band = Band.around(source, z, near)
        smoothed = Smoothed(band.program, v, band.width)
        if not _sharpen(smoothed, few // 8):
            return None
        v, z = smoothed.v, source.scores(smoothed.v)
        misjudged = len(band.changed(z))
        if misjudged > most:
            return None
        # Fewer rows than changed sides could not hold the coefficients against them.
        if misjudged <= few // 8:
            break
        steps += smoothed.steps
    for count in (few, near):
        steps += smoothed.steps
        band = Band.around(source, z, count)
        smoothed = Smoothed(band.program, smoothed.v, min(smoothed.gamma, band.width))
        found = _vertex(smoothed)
        found = None if found is None else _settled(band, found)
        if found is not None:
            found.steps += steps
            return _answer(source, band.program, found, band.rows, band.slopes)
        z = source.scores(smoothed.v)
    return None


def _sharpen(smoothed: Smoothed, most: int) -> bool:
    """Round the kinks less and less until few are left on their ramps."""
    for _ in range(_LEVELS):
        if not smoothed.settle():
            return False
        count = len(smoothed.ramp())
        if count <= most:
            return True
        smoothed.gamma /= float(np.clip(count / (0.7 * most), 2.0, 10.0))
    return False


def _vertex(smoothed: Smoothed) -> Minimum | None:
    """Sharpen the kinks until the ones that the minimum lies on are clear, and work it out."""
    program, most = smoothed.program, 2 * len(smoothed.v)
    for _ in range(_LEVELS):
        if not _sharpen(smoothed, most):
            return None
        nearness = 1.0 / (1.0 + np.abs(program.offsets(smoothed.v)) / smoothed.gamma)
        nearness[smoothed.ramp()] += 1.0
        v, pi = smoothed.v, smoothed.multipliers()
        found = exactly(program, v, pi, nearness, smoothed.steps)
        if found is not None:
            return found
        smoothed.gamma *= 0.3
    return None


def _settled(band: Band, found: Minimum) -> Minimum | None:
    """Improve until no row beside the band has left its side; None if it could not be done."""
    while True:
        changed = band.changed(band.source.scores(found.v))
        if not len(changed):
            return found
        before = len(band.rows)
        if not band.join(changed):
            return None
        if found.vertex is not None:
            better = improve(_moved(found.vertex, band.program, before), found.steps)
        else:
            better = _vertex(Smoothed(band.program, found.v, band.width))
        if better is None:
            return None
        better.exchanges += found.exchanges
        better.steps = found.steps + (0 if found.vertex is not None else better.steps)
        found = better


class Band:
    """The rows near their kinks one by one, and the slopes of all others.

    Attributes
    ----------
    rows : array of int
        Those that are treated one by one.
    slopes : array of shape (n,)
        Derivatives of the losses of all other rows, times their weights.
    program : Program
    width : float
        Distance of the last row of the band from its kink.
    """

    def __init__(
        self, source: Source, rows: Indices, slopes: Array, piece: NDArray[np.int8], width: float
    ) -> None:
        self.source, self.rows, self.slopes, self._piece = source, rows, slopes, piece
        self.width, self._most = max(width, 1e-300), max(len(rows), 1000)
        self._beside = source.total(slopes)
        self.program = source.program(source.gather(rows), rows, self._beside)

    @classmethod
    def around(cls, source: Source, z: Array, count: int) -> Band:
        """The rows whose kinks are nearest to their scores."""
        piece, distance = _pieces(source, z)
        rows = _nearest(piece, distance, count)
        slopes = source.row_weights * source.loss.gradient(source.target, z)
        slopes[rows] = 0.0
        return cls(source, np.sort(rows), slopes, piece, float(distance[rows].max()))

    def changed(self, z: Array) -> Indices:
        """Rows beside that are on another piece than the one their slope is of."""
        y = self.source.target
        kinks = np.array([-np.inf, *self.source.loss.kinks, np.inf])
        residual = z - y
        noise = 1e-13 * (np.abs(z) + np.abs(y))
        low, high = kinks[self._piece] - noise, kinks[self._piece + 1] + noise
        changed = (residual < low) | (residual > high)
        changed[self.rows] = False
        return np.flatnonzero(changed)

    def join(self, more: Indices) -> bool:
        """Treat more rows one by one; False if there are too many for this band to be right."""
        if len(more) > self._most:
            return False
        A = self.source.gather(more)
        self._beside = self._beside - A.T @ self.slopes[more]
        self.slopes[more] = 0.0
        self.rows = np.concatenate([self.rows, more])
        A = np.concatenate([self.program.A, A])
        self.program = self.source.program(A, self.rows, self._beside)
        return True


def _lighter(program: Program, share: float) -> Program:
    """With the penalty at a share of its strength."""
    if not (program.quad.any() or len(program.lasso)):
        return program
    c, ell = program.c.copy(), program.ell.copy()
    own = slice(len(c) - len(program.lasso), None)
    ell[program.lasso] += 0.5 * c[own] * (1 - share)
    c[own] *= share
    return replace(program, c=c, ell=ell, quad=program.quad * share)


def _pieces(source: Source, z: Array) -> tuple[NDArray[np.int8], Array]:
    """On which straight piece each row is, and how far its nearest kink."""
    residual = z - source.target
    piece = np.zeros(len(z), dtype=np.int8)
    distance = np.full(len(z), np.inf)
    for kink in source.loss.kinks:
        piece += residual > kink
        np.minimum(distance, np.abs(residual - kink), out=distance)
    return piece, distance


def _nearest(piece: NDArray[np.int8], distance: Array, count: int) -> Indices:
    """The rows nearest to their kinks, as many from each straight piece as there are.

    On the rare side of an extreme quantile all rows matter, however far they are.
    """
    pieces = [np.flatnonzero(piece == number) for number in range(int(piece.max()) + 1)]
    share = count // len(pieces)
    left = count - sum(min(len(own), share) for own in pieces)
    chosen = []
    for own in pieces:
        most = share + left
        if len(own) > most:
            own = own[np.argpartition(distance[own], most)[:most]]
        chosen.append(own)
    return np.concatenate(chosen)


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
    s = source.row_weights
    count = len(found.multipliers) - len(program.lasso)
    own = found.multipliers[:count].reshape(-1, len(rows)).sum(axis=0)
    u = slopes / s
    u[rows] = source.loss.first_slopes(source.target[rows]) + own / s[rows]
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
