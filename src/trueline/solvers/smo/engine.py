"""Large working sets: violators are solved for together, scores follow by one block of rows.

Each round picks the most violating multipliers, half of them new and half kept from the round
before, solves the program of these alone by steps with two multipliers (on their small matrix,
which stays in cache), and adds the change to all scores at once. Kernel rows are then computed in
blocks by matrix products, and read in blocks (Wen, Shi, Li, He, Chen, "ThunderSVM: a fast SVM
library on GPUs and CPUs", JMLR 19, 2018).

Rows of a kernel matrix that are kept, the least recently used ones making room.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.kernels import KernelSource, MatrixSource
from trueline.numerics.blas import run_strands
from trueline.solvers.smo.inner import Way, add_rows, largest_error, largest_score, solve_pairs
from trueline.solvers.smo.program import (
    DualProgram,
    DualSolution,
    added_up,
    by_row,
    levels,
    polished,
    weighted_rows,
)

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Multipliers that are solved for together: the more rows, the more of them pay. No powers of two:
#: values below each other would compete for the same places of the cache.
WORKING_SET = 500
LARGE_WORKING_SET = 4000
SMALL_SET = 250
_MANY_ROWS = 16_000
#: Programs of up to so many rows have their whole matrix, if there is room for it. In larger ones
#: many rows never matter, and small sets take less than half the time.
WHOLE = 2000
# Where this share of the rows had to be computed, and so many steps for each multiplier did not
# arrive, the whole matrix is worth its price.
_NEARLY_ALL, _LONG = 0.6, 5
# After so many steps for each multiplier, and twice, four times as many, it is asked whether few
# multipliers are free.
_FIRST = 2
# A working set is solved until its violation is this part of what it was.
_INNER = 0.1
# Compiled steps hear no interrupt: they come in portions of this many steps per multiplier. After
# each portion it is asked whether they still get anywhere.
_PORTION = 20
_LEAST_PORTION = 10_000
# So many products are worth a thread's while.
_WORK_OF_STRAND = 200_000
# A pair of each of two groups.
_LEAST_SET = 4
# Steps without a limit by the caller: so many, or so many for each multiplier if that is more.
_MOST_STEPS, _MOST_STEPS_EACH = 10_000_000, 1000
# Scores are added up step by step; where the fresh ones violate tol, steps go on from them.
_STARTS = 4
# Working sets in a row that gain no more than rounding.
_IDLE = 3
# Errors of scores beyond this share of the tolerance are felt: scores are then computed afresh.
_FELT = 0.01


def solve_dual(
    program: DualProgram,
    source: KernelSource,
    tol: float,
    max_iter: int = -1,
    cache_bytes: float = 200e6,
) -> DualSolution:
    """Minimise the program until no violation exceeds tol.

    Parameters
    ----------
    program : DualProgram
    source : KernelSource
    tol : float
    max_iter : int
        Steps with two multipliers; -1 for no limit of the caller's.
    cache_bytes : float
        For kernel values: the rows that are kept, and the matrix of the working set.
    """
    if program.epsilon > 0 and not program.start.any():
        # Where nothing is to be gained, no kernel value is needed to know it.
        level, violation = levels(program, program.start, scores := np.zeros(source.n))
        if violation <= 0:
            return DualSolution(program.start, scores, level, violation, 0, True)
    limit = max(_MOST_STEPS, _MOST_STEPS_EACH * program.size) if max_iter < 0 else max_iter
    if is_whole(source, source.n, cache_bytes):
        return _Whole(program, source).solve(tol, limit)
    q, capacity = _shares(program, source, cache_bytes)
    return _Rounds(program, source, tol, limit, q, capacity).solve()


def is_whole(source: KernelSource, largest: int, cache_bytes: float) -> bool:
    """Whether the matrix is computed as a whole, for programs of up to ``largest`` of its rows."""
    return largest <= WHOLE and np.dtype(source.dtype).itemsize * source.n**2 <= cache_bytes


def _shares(program: DualProgram, source: KernelSource, cache_bytes: float) -> tuple[int, int]:
    """How many multipliers go together and how many kernel rows are kept, within the memory.

    A third of it at most is for the matrix of the working set.
    """
    n, size = source.n, np.dtype(source.dtype).itemsize
    q = min(WORKING_SET if n < _MANY_ROWS else LARGE_WORKING_SET, program.size)
    while q > _LEAST_SET and 3 * size * q * q > cache_bytes:
        q = max(q // 2, _LEAST_SET)
    left = cache_bytes - size * (q * q + min(BLOCK_ROWS, q) * n)
    return q, int(max(0.0, left) // (size * n))


class _Whole:
    """The program with its whole kernel matrix: all multipliers are one working set."""

    def __init__(self, program: DualProgram, source: KernelSource) -> None:
        self.program, self.K, self.diagonal = program, whole_matrix(source), source.diagonal()
        self.targets = program.target[: source.n]

    def solve(self, tol: float, limit: int) -> DualSolution:
        program, beta = self.program, self.program.start.copy()
        steps = 0
        for _ in range(_STARTS):
            room = self.targets - self.sums(beta)
            terms = self.K, self.diagonal, room, beta, program.box, tol
            before, portion = steps, limit
            if program.size > 2 * SMALL_SET:
                portion = _FIRST * program.size
            while True:
                taken, worst = _pairs(*terms, min(limit - steps, portion))
                steps += taken
                if taken < portion or steps >= limit or not worst > tol:
                    break
                is_free = (beta > program.low) & (beta < program.high)
                if is_free.sum() <= SMALL_SET // 2:
                    return self._in_sets(beta, tol, limit, steps)
                portion *= 2
            if steps < limit and self.K.dtype == np.float64:
                beta, scores = polished(program, self, beta, self.targets - room, worst)
            else:
                scores = self.sums(beta)
            level, violation = levels(program, beta, scores)
            if violation <= tol or steps in (before, limit):
                break
        return DualSolution(beta, scores, level, violation, int(steps), bool(violation <= tol))

    def _in_sets(self, beta: Array, tol: float, limit: int, steps: int) -> DualSolution:
        """Long ways of few free multipliers: they are in every working set, the others rest."""
        begun, source = replace(self.program, start=beta), MatrixSource(self.K)
        found = _Rounds(begun, source, tol, limit - steps, SMALL_SET).solve()
        return replace(found, n_iter=steps + found.n_iter)

    def sums(self, beta: Array) -> Array:
        return weighted_rows(self.program, self.K, beta)

    def block(self, rows: Index) -> Array:
        return self.K[rows][:, rows]

    def mend(self, beta: Array, scores: Array, tol: float) -> None:
        box, most = self.program.box, self.program.size + 1000
        solve_pairs(self.K, self.diagonal, self.targets - scores, beta, *box, tol, most)


def _pairs(
    Q: NDArray[Any],
    diagonal: Array,
    room: Array,
    beta: Array,
    box: tuple[Array, Array, float, int],
    tol: float,
    limit: int,
) -> tuple[int, float]:
    """Steps with two multipliers, as :func:`solve_pairs`, as long as they get anywhere.

    They come in portions, between which an interrupt is heard. Each portion must gain more than
    rounding; the way that it went is then gone on with (:mod:`trueline.solvers.smo.inner`).
    """
    n, portion = len(room), max(_LEAST_PORTION, _PORTION * len(beta))
    steps, earlier = 0, None
    while True:
        before = beta.copy(), room.copy()
        most = min(portion, limit - steps)
        taken, worst = solve_pairs(Q, diagonal, room, beta, *box, tol, most)
        steps += int(taken)
        if taken < most or steps >= limit or not worst > tol:
            return steps, worst
        # Rows that have two multipliers stand twice.
        row = np.arange(len(beta)) % n
        last, left = (before[0], before[1][row]), room[row]
        way = Way(*last, beta, left, box[2])
        if not way.gain > way.noise(largest_score(diagonal)):
            return steps, worst
        # From the portion before, its long step included: what goes on and on grows by a factor.
        Way(*(earlier or last), beta, left, box[2]).go_on(beta, left, box[0], box[1])
        room[:], earlier = left[:n], last


def whole_matrix(source: KernelSource) -> NDArray[Any]:
    """The whole kernel matrix; not to be written to."""
    if isinstance(source, MatrixSource) and source.is_whole:
        return source.K
    K = np.empty((source.n, source.n), dtype=source.dtype)
    source.rows(np.arange(source.n), K)
    return K


class _Rounds:
    """The state between rounds."""

    def __init__(
        self,
        program: DualProgram,
        source: KernelSource,
        tol: float,
        limit: int,
        q: int,
        capacity: int = 0,
    ) -> None:
        self.program, self.source, self.tol, self.limit = program, source, tol, limit
        self.q = q
        self.cache = RowCache(source, capacity)
        self.diagonal = source.diagonal()
        self.reach = largest_score(self.diagonal)
        self.beta = program.start.copy()
        self.previous: Index = np.empty(0, dtype=np.intp)
        self.Q: NDArray[Any] = np.empty((self.q, self.q), dtype=source.dtype)

    def solve(self) -> DualSolution:
        program = self.program
        self.scores = self.sums(self.beta)
        steps, rounds, idle = 0, 0, 0
        while True:
            room = program.target - self.scores[program.row]
            up, down = program.offsets(self.beta)
            u, l = room - up, room - down
            worst = max(float(u[g].max() - l[g].min()) for g in program.groups)
            if not worst > self.tol or steps >= self.limit or idle >= _IDLE:
                break
            if self._needs_all(steps):
                return self._with_whole_matrix(steps, rounds)
            chosen = self._select(u, l)
            before = self.beta[chosen]
            goal = max(self.tol * 0.5, _INNER * worst) if math.isfinite(worst) else self.tol
            taken = self._solve_set(chosen, room[chosen], goal, self.limit - steps)
            steps += taken
            rounds += 1
            after = program.target[chosen] - self.scores[program.row[chosen]]
            way = Way(before, room[chosen], self.beta[chosen], after, program.epsilon)
            is_idle = not way.gain > way.noise(self.reach)
            idle = idle + 1 if is_idle else 0
            if taken == 0 and not len(self.previous):
                break
            # A set that gains nothing leaves nothing worth keeping: the next one is all new, and
            # has the most violating pair.
            self.previous = chosen[:0] if is_idle else chosen
        if steps < self.limit and self.source.dtype == np.float64 and worst <= self.tol:
            self.beta, self.scores = polished(program, self, self.beta, self.scores, worst)
        elif largest_error(self.reach, self.beta) > _FELT * self.tol:
            self.scores = self.sums(self.beta)
        level, violation = levels(program, self.beta, self.scores)
        notes = [
            f"{rounds:,} working sets of {self.q:,} multipliers, "
            f"{self.cache.computed:,} kernel rows computed, room for {self.cache.capacity:,}"
        ]
        solved = bool(violation <= self.tol)
        return DualSolution(self.beta, self.scores, level, violation, steps, solved, notes=notes)

    def _needs_all(self, steps: int) -> bool:
        """Whether nearly all rows matter, on a long way, and there is room for their matrix."""
        n = self.source.n
        is_most = self.cache.filled > _NEARLY_ALL * n and self.cache.capacity == n
        return is_most and steps > _LONG * self.program.size

    def _with_whole_matrix(self, steps: int, rounds: int) -> DualSolution:
        """From here all multipliers are one working set."""
        self.cache = RowCache(self.source, 0)  # its memory is that of the matrix
        begun = replace(self.program, start=self.beta)
        found = _Whole(begun, self.source).solve(self.tol, self.limit - steps)
        notes = [
            f"{rounds:,} working sets of {self.q:,} multipliers, then all of them",
            *found.notes,
        ]
        return replace(found, n_iter=steps + found.n_iter, notes=notes)

    def sums(self, beta: Array) -> Array:
        scores, weight = np.zeros(self.source.n), by_row(self.program, beta, self.source.n)
        used = np.flatnonzero(weight)
        self.cache.add(used, weight[used], scores)
        return scores

    def block(self, rows: Index) -> Array:
        out = np.empty((len(rows), len(rows)))
        self.source.block(rows, rows, out)
        return out

    def mend(self, beta: Array, scores: Array, tol: float) -> None:
        self.beta, self.scores = beta, scores
        room = self.program.target - scores[self.program.row]
        up, down = self.program.offsets(beta)
        chosen = self._select(room - up, room - down)
        self._solve_set(chosen, room[chosen], tol, self.q + 1000)

    def _select(self, u: Array, l: Array) -> Index:
        """Half of the last working set, and the most violating ones of both kinds."""
        program = self.program
        is_chosen = np.zeros(program.size, dtype=bool)
        is_chosen[self._keep()] = True
        left = self.q - int(is_chosen.sum())
        for number, group in enumerate(program.groups):
            space = left // (len(program.groups) - number)
            before = int(is_chosen.sum())
            for values, share in ((-u[group], space // 2), (l[group], space - space // 2)):
                values = np.where(is_chosen[group], np.inf, values)
                share = min(share, int(np.isfinite(values).sum()))
                if share > 0:
                    top = np.argpartition(values, share - 1)[:share]
                    is_chosen[group.start + top] = True
            left -= int(is_chosen.sum()) - before
        return np.flatnonzero(is_chosen)

    def _keep(self) -> Index:
        """What stays of the last working set: those that are free first, then the others."""
        previous, program = self.previous, self.program
        beta = self.beta[previous]
        free = (beta > program.low[previous]) & (beta < program.high[previous])
        return previous[np.argsort(~free, kind="stable")[: self.q // 2]]

    def _solve_set(self, chosen: Index, room: Array, goal: float, limit: int) -> int:
        program = self.program
        rows = program.row[chosen]
        Q = self.Q[: len(chosen), : len(chosen)]
        self.source.block(rows, rows, Q)
        before = self.beta[chosen]
        beta = before.copy()
        split = int((chosen < program.split).sum())
        box = (program.low[chosen], program.high[chosen], program.epsilon, split)
        taken, _ = _pairs(Q, self.diagonal[rows], room, beta, box, goal, limit)
        self.beta[chosen] = beta
        weight = added_up(rows, beta - before, self.source.n)
        touched = np.flatnonzero(weight)
        self.cache.add(touched, weight[touched], self.scores)
        return int(taken)


#: Rows that are computed at a time.
BLOCK_ROWS = 256


class RowCache:
    """At most ``capacity`` rows of length n, in one table, and a block for those beyond.

    Attributes
    ----------
    capacity : int
    computed : int
        Rows computed so far; more than n means that some were computed again.
    """

    def __init__(self, source: KernelSource, capacity: int) -> None:
        self.source = source
        self.capacity = max(0, min(capacity, source.n))
        n = source.n
        # The system hands out pages when they are first written: rows that are never needed cost
        # nothing.
        self.table: NDArray[Any] = np.empty((self.capacity, n), dtype=source.dtype)
        self.block: NDArray[Any] = np.empty((0, n), dtype=source.dtype)
        self.slot = np.full(n, -1, dtype=np.intp)
        self.holds = np.full(self.capacity, -1, dtype=np.intp)
        self.used = np.zeros(self.capacity, dtype=np.int64)
        self.clock = 0
        self.filled = 0
        self.computed = 0

    def add(self, rows: Index, weight: Array, scores: Array) -> None:
        """scores += sum_r weight_r K[r] over distinct rows, computed where they are missing."""
        if isinstance(self.source, MatrixSource) and self.source.is_whole:
            self._sum(self.source.K, rows, weight, scores)
            return
        self.clock += 1
        places = self.slot[rows]
        kept = places >= 0
        self.used[places[kept]] = self.clock
        self._sum(self.table, places[kept], weight[kept], scores)
        missing, own = rows[~kept], weight[~kept]
        for start in range(0, len(missing), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            self._add_missing(missing[some], own[some], scores)

    def _add_missing(self, rows: Index, weight: Array, scores: Array) -> None:
        self.computed += len(rows)
        if self.filled + len(rows) <= self.capacity:
            places = np.arange(self.filled, self.filled + len(rows))
            self.source.rows(rows, self.table[self.filled : self.filled + len(rows)])
            self.filled += len(rows)
            self._keep(rows, places)
            self._sum(self.table, places, weight, scores)
            return
        if not len(self.block):
            self.block = np.empty((BLOCK_ROWS, self.source.n), dtype=self.source.dtype)
        block = self.block[: len(rows)]
        self.source.rows(rows, block)
        self._sum(block, np.arange(len(rows)), weight, scores)
        # Rows of this request have the present time: they are not the ones to go.
        old = np.flatnonzero((self.used < self.clock) & (self.holds >= 0))
        take = min(len(old), len(rows))
        if take:
            places = old[np.argpartition(self.used[old], take - 1)[:take]]
            self.slot[self.holds[places]] = -1
            self.table[places] = block[:take]
            self._keep(rows[:take], places)

    def _keep(self, rows: Index, places: Index) -> None:
        self.slot[rows] = places
        self.holds[places] = rows
        self.used[places] = self.clock

    def _sum(self, table: NDArray[Any], places: Index, weight: Array, scores: Array) -> None:
        if not len(places):
            return
        n = len(scores)
        count = max(1, min(32, n * len(places) // _WORK_OF_STRAND))
        cuts = np.linspace(0, n, count + 1).astype(np.intp)
        run_strands(
            lambda strip: add_rows(table, places, weight, scores, *strip), list(pairwise(cuts))
        )
