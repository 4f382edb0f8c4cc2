r"""Quantiles that do not cross at any row of the data, by constraint generation.

    minimise  sum_j sum_i s_i l_j(y_i, x_i.w_j + b_j) + penalty
    such that x_i.w_j + b_j <= x_i.w_{j+1} + b_{j+1}   for all rows i and neighbouring quantiles

(H. D. Bondell, B. J. Reich, H. Wang, "Noncrossing quantile regression curve estimation", Biometrika
97 (2010) 825-838). First every quantile by itself; most constraints then hold already. The rows
where neighbours cross worst get a constraint, all quantiles are solved together, and so on until
nothing crosses. As in :mod:`trueline.solvers.piecewise.exact`, only rows near their kinks are
treated one by one; of the others the sum of the slopes is all that counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.problem import Problem
from trueline.solvers.piecewise.band import solve_target
from trueline.solvers.piecewise.exact import Minimum, minimise
from trueline.solvers.piecewise.joint import JointProgram
from trueline.solvers.piecewise.program import Program
from trueline.solvers.piecewise.source import Source
from trueline.threads import run_strands

__all__ = ["OrderedAnswer", "solve_ordered"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Rows near their kinks, at least, and constraints that one round adds for a pair, at most.
_FEWEST_NEAR = 500
# How far lines may move, in units of the root mean square by which they cross.
_REACH = 4.0
_MOST_ADDED = 64
_ROUNDS = 100
# A multiplier this near to the steepness of its kink says that it should be steeper.
_AT_BOUND = 0.99
_STEEPER = 16.0


@dataclass
class OrderedAnswer:
    """Coefficients in order of the targets, the dual point, and the multipliers of the order.

    ``order`` has the shape (n, k - 1): entry (i, j) belongs to row i and the j-th pair of
    neighbours in ascending order of the quantiles.
    """

    W: Array
    b: Array
    u: Array
    order: Array
    is_exact: bool
    steps: int
    exchanges: int
    rows: int
    constraints: int
    rounds: int


def solve_ordered(problem: Problem, ranks: Indices) -> OrderedAnswer:
    """The answer for all targets, whose numbers in ascending order of quantiles are ``ranks``."""
    return _Ordered(problem, ranks).solve()


class _Ordered:
    """The rounds, and what is kept between them."""

    def __init__(self, problem: Problem, ranks: Indices) -> None:
        self.problem, self.ranks = problem, ranks
        sources = Source.of(problem)
        answers = run_strands(solve_target, [sources[t] for t in ranks])
        kept = answers[0].source
        self.sources = [replace(one.source, kept=kept.kept) for one in answers]
        found = [one.source.coefficients(one.v) for one in answers]
        self.v = np.stack([kept.standard(w, b) for w, b in found])
        self.u = np.stack([one.u for one in answers], axis=1)
        self.order = np.zeros((problem.n_samples, len(ranks) - 1))
        self.is_exact = all(one.is_exact for one in answers)
        self.steps = sum(one.steps for one in answers)
        self.exchanges = sum(one.exchanges for one in answers)
        self.most_rows = max(one.rows for one in answers)
        # Rows and pairs whose order is asked for; where it holds by itself, nothing is asked.
        self.chosen = np.empty((0, 2), dtype=np.intp)
        self.rounds = 0

    def solve(self) -> OrderedAnswer:
        z = self._scores()
        near: list[Indices | None] = [None] * len(self.sources)
        heaviest = float(self.sources[0].row_weights.max())
        steepness = heaviest * max(8.0, np.sqrt(self.problem.n_samples))
        while self._add_crossing(z) and self.rounds < _ROUNDS:
            near, steepness, z = self._solve_constrained(near, steepness, z)
        return self._answer(z)

    def _scores(self) -> Array:
        return np.stack(
            [source.scores(v) for source, v in zip(self.sources, self.v, strict=True)], axis=1
        )

    def _size(self, z: Array) -> float:
        """The losses of all rows and quantiles."""
        return sum(source.loss_at(z[:, j]) for j, source in enumerate(self.sources))

    def _noise(self) -> float:
        """What rounding may do to a score."""
        found = [source.coefficients(v) for source, v in zip(self.sources, self.v, strict=True)]
        largest = self.problem.design.column_largest()
        return 64 * _EPS * max(float(largest @ np.abs(w)) + abs(b) for w, b in found)

    def _add_crossing(self, z: Array) -> bool:
        """Ask for order at the rows where it is broken worst; False if there is none."""
        limit = max(_MOST_ADDED, 4 * self.sources[0].size)
        noise = self._noise()
        added = []
        for j in range(z.shape[1] - 1):
            crossing = z[:, j] - z[:, j + 1]
            crossing[self.chosen[self.chosen[:, 1] == j, 0]] = 0.0
            rows = np.flatnonzero(crossing > noise)
            if len(rows) > limit:
                rows = rows[np.argpartition(-crossing[rows], limit)[:limit]]
            added.append(np.stack([rows, np.full(len(rows), j)], axis=1))
        new = np.concatenate(added)
        self.chosen = np.concatenate([self.chosen, new])
        return bool(len(new))

    def _solve_constrained(
        self, near: list[Indices | None], steepness: float, z: Array
    ) -> tuple[list[Indices | None], float, Array]:
        """All quantiles with the chosen constraints, steep enough, and all rows that matter."""
        if self.problem.n_samples > 2 * self._fewest:
            near = [self._near(j, z, rows) for j, rows in enumerate(near)]
        while True:
            self.rounds += 1
            program, beside = self._program(near, steepness, z)
            found = minimise(program, self.v.ravel(), self._size(z))
            self.steps += found.steps
            self.exchanges += found.exchanges
            self.v = found.v.reshape(self.v.shape)
            before, z = z, self._scores()
            changed = [
                _moved(self.sources[j], before[:, j], z[:, j], near[j]) for j in range(z.shape[1])
            ]
            if any(len(rows) for rows in changed) and self.rounds < _ROUNDS:
                near = [_with(rows, more) for rows, more in zip(near, changed, strict=True)]
                continue
            # A multiplier at its bound is no harm as long as the order is kept.
            broken = program.scores(found.v)[program.order].max(initial=0.0) > self._noise()
            at_bound = found.multipliers[program.order].max(initial=0.0) > _AT_BOUND * steepness
            if broken and at_bound and self.rounds < _ROUNDS:
                steepness *= _STEEPER
                continue
            self._keep(program, found, near, beside)
            return near, steepness, z

    @property
    def _fewest(self) -> int:
        """Rows near the line of a quantile, at least."""
        return max(_FEWEST_NEAR, 20 * self.sources[0].size)

    def _near(self, j: int, z: Array, rows: Indices | None) -> Indices:
        """Rows that a line may pass when it makes way for its neighbours."""
        crossing = np.maximum(z[:, :-1] - z[:, 1:], 0.0)[:, max(0, j - 1) : j + 1]
        reach = _REACH * float(np.sqrt(np.mean(crossing**2)))
        distance = np.abs(z[:, j] - self.sources[j].target)
        count = max(self._fewest, int(np.count_nonzero(distance <= reach)))
        if count >= len(distance):
            return np.arange(len(distance))
        found = np.argpartition(distance, count)[:count]
        return np.unique(found) if rows is None else np.union1d(found, rows)

    def _program(
        self, near: list[Indices | None], steepness: float, z: Array
    ) -> tuple[JointProgram, list[Array | None]]:
        blocks: list[Program] = []
        slopes: list[Array | None] = []
        for j, (source, rows) in enumerate(zip(self.sources, near, strict=True)):
            if rows is None:
                blocks.append(source.program(source.gather(slice(None)), slice(None)))
                slopes.append(None)
                continue
            beside = source.row_weights * source.loss.gradient(source.target, z[:, j])
            beside[rows] = 0.0
            A = source.gather(rows)
            blocks.append(source.program(A, rows, beside=source.total(beside)))
            slopes.append(beside)
        order_rows = self.sources[0].gather(self.chosen[:, 0])
        program = JointProgram.of(tuple(blocks), order_rows, self.chosen[:, 1], steepness)
        self.most_rows = max(self.most_rows, *(len(block.A) for block in blocks))
        return program, slopes

    def _keep(
        self,
        program: JointProgram,
        found: Minimum,
        near: list[Indices | None],
        beside: list[Array | None],
    ) -> None:
        """The dual point of the answer."""
        *parts, order = program.split(found.multipliers)
        s = self.sources[0].row_weights
        for j, (part, rows, slopes) in enumerate(zip(parts, near, beside, strict=True)):
            where = slice(None) if rows is None else rows
            count = len(program.blocks[j].A)
            if slopes is not None:
                self.u[:, j] = slopes / s
            self.u[where, j] = self.sources[j].loss.first_slope + part[:count] / s[where]
        self.order[:] = 0.0
        np.add.at(self.order, (self.chosen[:, 0], self.chosen[:, 1]), order)
        self.is_exact = found.is_exact

    def _answer(self, z: Array) -> OrderedAnswer:
        found = [source.coefficients(v) for source, v in zip(self.sources, self.v, strict=True)]
        W = np.stack([w for w, _ in found], axis=1)
        b = np.array([level for _, level in found])
        if self.problem.fit_intercept:
            b = b + self._lift(z)
        back = np.argsort(self.ranks)
        return OrderedAnswer(
            W=W[:, back],
            b=b[back],
            u=self.u[:, back],
            order=self.order,
            is_exact=self.is_exact,
            steps=self.steps,
            exchanges=self.exchanges,
            rows=self.most_rows,
            constraints=len(self.chosen),
            rounds=self.rounds,
        )

    def _lift(self, z: Array) -> Array:
        """Where neighbours touch, rounding may let them cross: lift the upper ones by so little."""
        noise = self._noise() / 8
        crossing = (z[:, :-1] - z[:, 1:]).max(axis=0)
        return np.concatenate(
            [[0.0], np.cumsum(np.where(crossing > -noise, crossing + noise, 0.0))]
        )


def _with(rows: Indices | None, more: Indices) -> Indices | None:
    return None if rows is None else np.union1d(rows, more)


def _moved(source: Source, before: Array, now: Array, rows: Indices | None) -> Indices:
    """Rows beside whose slope is no longer the one that was counted."""
    if rows is None:
        return np.empty(0, dtype=np.intp)
    noise = 1e-13 * (np.abs(now) + np.abs(source.target))
    residual = now - source.target
    changed = np.where(before > source.target, residual < -noise, residual > noise)
    changed[rows] = False
    return np.flatnonzero(changed)
