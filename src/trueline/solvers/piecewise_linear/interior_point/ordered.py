r"""Quantiles that do not cross at any row of the data, by constraint generation.

    minimise  sum_j sum_i s_i l_j(y_i, x_i.w_j + b_j) + penalty
    such that x_i.w_j + b_j <= x_i.w_{j+1} + b_{j+1}   for all rows i and neighbouring quantiles

(H. D. Bondell, B. J. Reich, H. Wang, "Noncrossing quantile regression curve estimation", Biometrika
97 (2010) 825-838). First every quantile by itself; most constraints then hold already. The rows
where neighbours cross worst get a constraint, the quantiles that are tied together by these are
solved together, and so on until nothing crosses. As in
:mod:`trueline.solvers.piecewise_linear.interior_point.targets`, only rows near their kinks are
treated one by one; of the others the sum of the slopes counts.

In the program of several quantiles their order at chosen rows is a further kink. The variables are
one block v_j for each quantile, in ascending order, each with the rows and kinks of a program of
its own. That the score of row a under quantile j is not above that under the next one is a kink of
a slope so steep that it never pays to pass it:

    sum_j program_j(v_j) + sum_e c_e max(0, a_e.(v_j(e) - v_j(e)+1)).

With c_e above the multiplier of the constraint the minimum is that of the constrained problem
(exact penalties: D. P. Bertsekas, "Constrained Optimization and Lagrange Multiplier Methods", 1982,
proposition 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.gram import weighted_gram
from trueline.problem import Problem
from trueline.solvers.piecewise_linear.interior_point.interior import Minimum, minimise
from trueline.solvers.piecewise_linear.interior_point.program import Program
from trueline.solvers.piecewise_linear.interior_point.source import Source
from trueline.solvers.piecewise_linear.interior_point.targets import solve_targets

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
# Rows that are treated one by one, and the slopes of all others (None if there are none).
_Treated = tuple[Indices | slice, Array | None]

_EPS = float(np.finfo(np.float64).eps)
# Rows near their kinks, at least, and constraints that one round adds for a pair, at most.
_FEWEST_NEAR = 500
# How far lines may move, in units of the root mean square by which they cross.
_REACH = 4.0
_MOST_ADDED = 64
_ROUNDS = 50  # for each quantile
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
        answers = solve_targets([sources[t] for t in ranks])
        kept = answers[0].source
        self.sources = [replace(one.source, kept=kept.kept) for one in answers]
        found = [one.source.coefficients(one.v) for one in answers]
        self.v = np.stack([kept.standard(w, b) for w, b in found])
        self.u = np.stack([one.u for one in answers], axis=1)
        self.order = np.zeros((problem.n_samples, len(ranks) - 1))
        self.is_exact = np.array([one.is_exact for one in answers])
        self.steps = sum(one.steps for one in answers)
        self.exchanges = sum(one.exchanges for one in answers)
        self.most_rows = max(one.rows for one in answers)
        # Rows and pairs whose order is asked for; where it holds by itself, nothing is asked.
        self.chosen = np.empty((0, 2), dtype=np.intp)
        # Rows that are treated one by one, for each quantile; None for all.
        self.near: list[Indices | None] = [None] * len(ranks)
        heaviest = float(kept.row_weights().max())
        self.steepness = heaviest * max(8.0, np.sqrt(problem.n_samples))
        self.rounds, self.most_rounds = 0, _ROUNDS * len(ranks)

    def solve(self) -> OrderedAnswer:
        z = self._scores()
        while self.rounds < self.most_rounds:
            pairs = self._add_crossing(z)
            if not len(pairs):
                break
            for chain in self._chains():
                if np.isin(pairs, chain[:-1]).any():
                    self._solve_chain(chain, z)
        return self._answer(z)

    def _chains(self) -> list[Indices]:
        """Quantiles that are tied together: runs of neighbours with constraints between them."""
        tied = np.unique(self.chosen[:, 1])
        runs = np.split(tied, np.flatnonzero(np.diff(tied) > 1) + 1)
        return [np.arange(run[0], run[-1] + 2) for run in runs]

    def _scores(self) -> Array:
        return np.stack(
            [source.scores(v) for source, v in zip(self.sources, self.v, strict=True)], axis=1
        )

    def _noise(self) -> float:
        """What rounding may do to a score."""
        found = [source.coefficients(v) for source, v in zip(self.sources, self.v, strict=True)]
        largest = self.problem.design.column_largest()
        return 64 * _EPS * max(float(largest @ np.abs(w)) + abs(b) for w, b in found)

    def _add_crossing(self, z: Array) -> Indices:
        """Ask for order at the rows where it is broken worst; the pairs where that is new."""
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
        return np.unique(new[:, 1])

    def _solve_chain(self, chain: Indices, z: Array) -> None:
        """Some quantiles with their constraints, steep enough, and all rows that matter.

        Their columns of ``z``, the scores, are brought up to date.
        """
        if self.problem.n_samples > 2 * self._fewest:
            for j in chain:
                self.near[j] = self._near(j, z)
        while True:
            self.rounds += 1
            program, treated = self._program(chain, z)
            size = sum(self.sources[j].loss_at(z[:, j]) for j in chain)
            found = minimise(program, self.v[chain].ravel(), size)
            self.steps += found.steps
            self.exchanges += found.exchanges
            self.v[chain] = found.v.reshape(len(chain), -1)
            has_changed = False
            for j in chain:
                now = self.sources[j].scores(self.v[j])
                has_changed |= self._join(j, z[:, j], now)
                z[:, j] = now
            # A multiplier at its bound is no harm as long as the order is kept.
            broken = program.scores(found.v)[program.order].max(initial=0.0) > self._noise()
            steepest = _AT_BOUND * self.steepness
            at_bound = found.multipliers[program.order].max(initial=0.0) > steepest
            if broken and at_bound and not has_changed:
                self.steepness *= _STEEPER
            elif not has_changed:
                break
            if self.rounds >= self.most_rounds:
                break
        self._keep(chain, program, found, treated)

    @property
    def _fewest(self) -> int:
        """Rows near the line of a quantile, at least."""
        return max(_FEWEST_NEAR, 20 * self.sources[0].size)

    def _near(self, j: int, z: Array) -> Indices:
        """Rows that a line may pass when it makes way for its neighbours."""
        beside = slice(max(0, j - 1), j + 2)
        crossing = np.maximum(-np.diff(z[:, beside], axis=1), 0.0)
        reach = _REACH * float(np.sqrt(np.mean(crossing**2)))
        distance = np.abs(z[:, j] - self.sources[j].target)
        count = max(self._fewest, int(np.count_nonzero(distance <= reach)))
        if count >= len(distance):
            return np.arange(len(distance))
        found, before = np.argpartition(distance, count)[:count], self.near[j]
        return np.unique(found) if before is None else np.union1d(found, before)

    def _join(self, j: int, before: Array, now: Array) -> bool:
        """Treat rows one by one whose slope is no longer the one that was counted; any?"""
        rows, target = self.near[j], self.sources[j].target
        if rows is None:
            return False
        noise = 1e-13 * (np.abs(now) + np.abs(target))
        residual = now - target
        changed = np.where(before > target, residual < -noise, residual > noise)
        changed[rows] = False
        self.near[j] = np.union1d(rows, np.flatnonzero(changed))
        return bool(changed.any())

    def _program(self, chain: Indices, z: Array) -> tuple[JointProgram, list[_Treated]]:
        """The program of a chain, and for each quantile what is in it and what is not."""
        blocks: list[Program] = []
        treated: list[_Treated] = []
        for j in chain:
            source, rows = self.sources[j], self.near[j]
            if rows is None:
                blocks.append(source.program(source.gather(slice(None)), slice(None)))
                treated.append((slice(None), None))
                continue
            beside = source.weigh(source.loss.gradient(source.target, z[:, j]))
            beside[rows] = 0.0
            blocks.append(source.program(source.gather(rows), rows, beside=source.total(beside)))
            treated.append((rows, beside))
        own = self._own(chain)
        order_rows = self.sources[0].gather(own[:, 0])
        program = JointProgram.of(tuple(blocks), order_rows, own[:, 1] - chain[0], self.steepness)
        self.most_rows = max(self.most_rows, *(len(block.A) for block in blocks))
        return program, treated

    def _own(self, chain: Indices) -> Indices:
        """The constraints of a chain."""
        return self.chosen[np.isin(self.chosen[:, 1], chain[:-1])]

    def _keep(
        self, chain: Indices, program: JointProgram, found: Minimum, treated: list[_Treated]
    ) -> None:
        """The dual point of the answer."""
        *parts, order = program.split(found.multipliers)
        s = self.sources[0].row_weights()
        for block, part, (rows, slopes), j in zip(
            program.blocks, parts, treated, chain, strict=True
        ):
            if slopes is not None:
                self.u[:, j] = slopes / s
            self.u[rows, j] = self.sources[j].loss.first_slope + part[: len(block.A)] / s[rows]
        own = self._own(chain)
        self.order[:, chain[:-1]] = 0.0
        np.add.at(self.order, (own[:, 0], own[:, 1]), order)
        self.is_exact[chain] = found.is_exact

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
            is_exact=bool(self.is_exact.all()),
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


@dataclass(frozen=True)
class JointProgram(Program):
    """Blocks of variables, coupled by the order of neighbours.

    Attributes
    ----------
    blocks : tuple of Program
        One for each quantile, all with the same number of variables.
    order_rows : array of shape (r, p)
        Rows at which two neighbours must be in order.
    pairs : array of int of shape (r,)
        The lower neighbour's number.
    """

    blocks: tuple[Program, ...]
    order_rows: Array
    pairs: Indices

    @classmethod
    def of(
        cls, blocks: tuple[Program, ...], order_rows: Array, pairs: Indices, steepness: float
    ) -> JointProgram:
        """The program whose constraints cost ``steepness`` for each unit they are broken by."""
        size = sum(len(block.ell) for block in blocks)
        typical = float(np.median(np.concatenate([block.c for block in blocks])))
        count = len(pairs)
        return cls(
            A=np.empty((0, size)),
            ell=np.concatenate([block.ell for block in blocks]),
            quad=np.concatenate([block.quad for block in blocks]),
            lasso=np.empty(0, dtype=np.intp),
            t=np.concatenate([*(block.t for block in blocks), np.zeros(count)]),
            c=np.concatenate([*(block.c for block in blocks), np.full(count, steepness)]),
            share=np.concatenate(
                [
                    *(np.broadcast_to(block.share, block.t.shape) for block in blocks),
                    np.full(count, 0.5 * min(1.0, typical / steepness)),
                ]
            ),
            blocks=blocks,
            order_rows=order_rows,
            pairs=pairs,
        )

    @property
    def width(self) -> int:
        """Variables of a block."""
        return len(self.blocks[0].ell)

    @property
    def order(self) -> slice:
        """Which kinks are those of the order."""
        return slice(len(self.t) - len(self.pairs), None)

    def split(self, kinks: Array) -> list[Array]:
        """Numbers for all kinks, block by block; those of the order come last."""
        return np.split(kinks, np.cumsum([len(block.t) for block in self.blocks]))

    def scores(self, v: Array) -> Array:
        own = v.reshape(len(self.blocks), -1)
        parts = [block.scores(part) for block, part in zip(self.blocks, own, strict=True)]
        apart = own[self.pairs] - own[self.pairs + 1]
        return np.concatenate([*parts, np.einsum("ij,ij->i", self.order_rows, apart)])

    def rmatvec(self, weights: Array) -> Array:
        *parts, order = self.split(weights)
        out = np.stack(
            [block.rmatvec(part) for block, part in zip(self.blocks, parts, strict=True)]
        )
        pushed = order[:, None] * self.order_rows
        np.add.at(out, self.pairs, pushed)
        np.subtract.at(out, self.pairs + 1, pushed)
        return out.ravel()

    def gram(self, weights: Array) -> Array:
        *parts, order = self.split(weights)
        p, size = self.width, len(self.ell)
        out = np.zeros((size, size))
        for j, (block, part) in enumerate(zip(self.blocks, parts, strict=True)):
            own = slice(j * p, (j + 1) * p)
            out[own, own] = block.gram(part)
        for j in np.unique(self.pairs):
            ours = self.pairs == j
            coupled = weighted_gram(self.order_rows[ours], order[ours])
            low, high = slice(j * p, (j + 1) * p), slice((j + 1) * p, (j + 2) * p)
            out[low, low] += coupled
            out[high, high] += coupled
            out[low, high] -= coupled
            out[high, low] -= coupled
        return out

    def at_zero(self, kinks: Indices) -> Indices:
        parts = []
        ends = np.cumsum([len(block.t) for block in self.blocks])
        home = np.searchsorted(ends, kinks, side="right")
        for j, block in enumerate(self.blocks):
            start = ends[j] - len(block.t)
            parts.append(block.at_zero(kinks[home == j] - start) + j * self.width)
        return np.concatenate(parts)

    def row(self, kink: int) -> Array:
        return self.rows(np.array([kink]))[0]

    def rows(self, kinks: Indices) -> Array:
        p = self.width
        out = np.zeros((len(kinks), len(self.ell)))
        ends = np.cumsum([len(block.t) for block in self.blocks])
        home = np.searchsorted(ends, kinks, side="right")
        for j, block in enumerate(self.blocks):
            ours = np.flatnonzero(home == j)
            if len(ours):
                start = ends[j] - len(block.t)
                out[ours, j * p : (j + 1) * p] = block.rows(kinks[ours] - start)
        for place in np.flatnonzero(home == len(self.blocks)):
            number = kinks[place] - ends[-1]
            j, row = self.pairs[number], self.order_rows[number]
            out[place, j * p : (j + 1) * p] = row
            out[place, (j + 1) * p : (j + 2) * p] = -row
        return out
