r"""Sequential minimal optimisation as the textbook writes it, every step visible.

Two multipliers at a time (Platt, "Fast training of support vector machines using sequential minimal
optimization", 1999): sweep over the rows; where the KKT conditions fail by more than the tolerance,
take that row as the first multiplier; take as the second the one whose error differs most from its
error; move both along the line that keeps their sum, to the minimum or to the end of the box;
update the threshold and all errors. Sweeps over all rows alternate with sweeps over the rows that
are not at a bound, until a sweep over all rows changes nothing.

The KKT conditions with threshold b, for rows that may go up and rows that may go down:

    beta_v < high_v   ->   t_v - f_v -+ eps <= b        (alpha = 0 or 0 < alpha < C)
    beta_v > low_v    ->   t_v - f_v -+ eps >= b        (alpha = C or 0 < alpha < C)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.kernels import KernelSource
from trueline.solvers.smo.inner import Way, largest_score
from trueline.solvers.smo.program import DualProgram, DualSolution, levels
from trueline.trace import Trace

Array = NDArray[np.float64]

# Steps without a limit by the caller: so many, or so many for each row if that is more.
_MOST_STEPS, _MOST_STEPS_EACH = 100_000, 100


def solve_textbook(
    program: DualProgram, source: KernelSource, tol: float, max_iter: int = -1, trace: bool = False
) -> DualSolution:
    """Minimise the program; it needs the whole kernel matrix.

    It ends when a sweep gains no more than rounding, and after ``max_iter`` steps, where -1 stands
    for 100,000 or 100 for each row.

    Each record of the trace holds ``iteration``, the rows ``first`` and ``second``, their
    multipliers afterwards, the dual ``objective``, the number of rows whose KKT conditions fail
    (``kkt_failures``), and the largest ``violation``.
    """
    return _Textbook(program, source, tol, max_iter, Trace(enabled=trace)).solve()


class _Textbook:
    def __init__(
        self, program: DualProgram, source: KernelSource, tol: float, max_iter: int, trace: Trace
    ) -> None:
        if len(program.groups) > 1:
            raise ValueError(
                "The textbook's algorithm has one threshold; machines with nu have two. Use "
                "solver='auto'."
            )
        self.program, self.trace = program, trace
        # Both sides may be off by half: the largest violation is then below tol.
        self.slack = 0.5 * tol
        most = max(_MOST_STEPS, _MOST_STEPS_EACH * program.size)
        self.limit = most if max_iter < 0 else max_iter
        self.K = np.empty((source.n, source.n))
        source.rows(np.arange(source.n), self.K)
        self.reach = largest_score(source.diagonal())
        self.beta = program.start.copy()
        self.scores = self.K @ self.beta
        self.threshold = float(levels(program, self.beta, self.scores)[0][0])
        self.steps = 0

    def solve(self) -> DualSolution:
        examine_all, changed = True, 0
        while (changed > 0 or examine_all) and self.steps < self.limit:
            changed = 0
            before, room = self.beta.copy(), self.program.target - self.scores
            for i in np.flatnonzero(self._is_free()) if not examine_all else range(len(self.beta)):
                changed += self._examine(int(i))
                if self.steps >= self.limit:
                    break
            if changed and not self._has_gained(before, room):
                break
            if examine_all:
                if changed == 0:
                    # The threshold of the last step may fail rows that the best one satisfies.
                    level, violation = levels(self.program, self.beta, self.scores)
                    if violation <= 2 * self.slack or self.threshold == level[0]:
                        break
                    self.threshold = float(level[0])
                    changed = 1
                examine_all = False
            elif changed == 0:
                examine_all = True
        level, violation = levels(self.program, self.beta, self.scores)
        solved = violation <= 2 * self.slack
        return DualSolution(
            self.beta, self.scores, level, violation, self.steps, solved, self.trace
        )

    def _has_gained(self, before: Array, room: Array) -> bool:
        """Whether a sweep gained more than rounding."""
        left = self.program.target - self.scores
        way = Way(before, room, self.beta, left, self.program.epsilon)
        return way.gain > way.noise(self.reach)

    def _is_free(self) -> NDArray[np.bool_]:
        return (self.beta > self.program.low) & (self.beta < self.program.high)

    def _gains(self) -> tuple[Array, Array]:
        """u and l of all rows; infinite where a row cannot move that way."""
        room = self.program.target - self.scores
        up, down = self.program.offsets(self.beta)
        return room - up, room - down

    def _examine(self, i: int) -> bool:
        """Take a step with row i if its KKT conditions fail."""
        u, l = self._gains()
        wants_up = u[i] > self.threshold + self.slack
        wants_down = l[i] < self.threshold - self.slack
        if not (wants_up or wants_down):
            return False
        # The second multiplier moves the other way: the one whose error differs most.
        candidates = l if wants_up else -u
        order = np.argsort(candidates)
        mine = u[i] if wants_up else -l[i]
        for j in order:
            if not candidates[j] < mine:
                return False
            if j != i and self._step(i, int(j), wants_up, float(mine - candidates[j])):
                return True
        return False

    def _step(self, i: int, j: int, up: bool, excess: float) -> bool:
        """Move beta_i up (or down) and beta_j as much the other way; False if nothing moves."""
        rising, falling = (i, j) if up else (j, i)
        beta, program, K = self.beta, self.program, self.K
        curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        kink = program.epsilon > 0
        top = 0.0 if kink and beta[rising] < 0 else program.high[rising]
        bottom = 0.0 if kink and beta[falling] > 0 else program.low[falling]
        step = min(excess / curvature, top - beta[rising], beta[falling] - bottom)
        before = beta[rising], beta[falling]
        beta[rising] = top if step == top - beta[rising] else beta[rising] + step
        beta[falling] = bottom if step == beta[falling] - bottom else beta[falling] - step
        moved = beta[rising] - before[0], beta[falling] - before[1]
        if moved == (0.0, 0.0):
            return False
        self.scores += moved[0] * K[rising] + moved[1] * K[falling]
        self.steps += 1
        self._update_threshold(i, j)
        self._record(i, j)
        return True

    def _update_threshold(self, i: int, j: int) -> None:
        """The threshold at which the conditions of a free row hold; else the middle of both."""
        u, l = self._gains()
        for k in (i, j):
            if np.isfinite(u[k]) and u[k] == l[k]:
                self.threshold = float(u[k])
                return
        ends = [v for k in (i, j) for v in (u[k], l[k]) if np.isfinite(v)]
        self.threshold = float(np.mean(ends))

    def _record(self, i: int, j: int) -> None:
        if not self.trace.enabled:
            return
        u, l = self._gains()
        failures = (u > self.threshold + self.slack) | (l < self.threshold - self.slack)
        self.trace.record(
            iteration=self.steps,
            first=i,
            second=j,
            first_multiplier=float(self.beta[i]),
            second_multiplier=float(self.beta[j]),
            objective=self.program.value(self.beta, self.scores),
            threshold=self.threshold,
            kkt_failures=float(failures.sum()),
            violation=float(u.max() - l.min()),
        )
