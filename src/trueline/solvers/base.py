"""What a solver is: what it needs, what it would cost, and how it solves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution
from trueline.solvers.loop import Monitor
from trueline.solvers.pending import single_solutions

__all__ = ["Cost", "Facts", "Options", "Solver"]


@dataclass(frozen=True)
class Facts:
    """What the planner may look at: sizes and structure, and how heavy sparse rows are.

    Attributes
    ----------
    heaviness : float
        The mean of s_i ||x_i||^2 in strengths of the penalty, up to a factor of two: what decides
        how many sweeps over the dual are needed. Infinite where nobody asks for it: it is known of
        sparse rows, one target, one strength and a loss with second derivatives.
    """

    n: int
    d: int
    k: int
    nonzeros: int
    is_sparse: bool
    fit_intercept: bool
    has_weights: bool
    strengths: int
    unpenalised: bool
    itemsize: int
    has_kinks: bool = False
    is_smooth: bool = False
    heaviness: float = math.inf

    @classmethod
    def of(cls, problem: Problem) -> Facts:
        """The facts of a problem."""
        curvature = problem.penalty.curvature
        if isinstance(curvature, float):
            strengths, unpenalised = 1, curvature == 0
        else:
            strengths, unpenalised = len(np.unique(curvature)), not np.all(curvature)
        return cls(
            n=problem.n_samples,
            d=problem.n_features,
            k=problem.n_targets,
            nonzeros=problem.design.nonzeros,
            is_sparse=problem.design.is_sparse,
            fit_intercept=problem.fit_intercept,
            has_weights=problem.weights is not None,
            strengths=strengths,
            unpenalised=bool(unpenalised),
            itemsize=problem.design.dtype.itemsize,
            has_kinks=bool(problem.loss.kinks),
            is_smooth="smooth" in problem.loss.capabilities,
            heaviness=_heaviness(problem) if strengths == 1 and not unpenalised else math.inf,
        )

    @property
    def has_one_strength(self) -> bool:
        """Whether every coefficient is penalised, all alike."""
        return self.strengths <= 1 and not self.unpenalised

    @property
    def density(self) -> float:
        return self.nonzeros / max(1, self.n * self.d)


def _heaviness(problem: Problem) -> float:
    design, loss = problem.design, problem.loss
    if not (design.is_sparse and problem.n_targets == 1 and "bend" in loss.capabilities):
        return math.inf
    with np.errstate(all="ignore"):  # what overflows or is not a number is heavy
        mean = float(np.mean(problem.weigh(design.row_squares(None)[:, None])))
        heaviness = mean / float(np.max(problem.penalty.curvature))
    if not 0 < heaviness < math.inf:
        return 0.0 if heaviness == 0 else math.inf
    return 2.0 ** round(math.log2(heaviness))


@dataclass(frozen=True)
class Cost:
    """An estimate made before anything is computed.

    Attributes
    ----------
    flops : float
        Floating-point operations.
    passes : float
        How often the data are read.
    memory : float
        Bytes allocated beside the data.
    seconds : float
        Expected wall time on an ordinary machine (see :mod:`trueline.planner`).
    """

    flops: float
    passes: float
    memory: float
    seconds: float


@dataclass(frozen=True)
class Options:
    """What a caller may ask of a solver; each solver reads what concerns it.

    Attributes
    ----------
    tol : float
        Stop when the proven gap is below ``tol`` times the objective of the zero model.
    max_iter : int, optional
        Iteration limit; None leaves it to the solver.
    random_state : RandomState, int or None
    eta0 : float, optional
        First step of gradient methods; None computes it from the data.
    schedule : str
        How stochastic steps shrink: "constant", "inverse", "sqrt".
    decay : float, optional
        Rate of the "inverse" schedule per step; None halves the step after ten epochs.
    batch_size : int
        Rows per step of mini-batch methods.
    average : bool
        Whether stochastic methods answer with the mean of their iterates instead of the last.
    start : array of shape (d, k), optional
        Coefficients to start from.
    start_intercept : array of shape (k,), optional
        Intercepts to start from, beside ``start``; None leaves them to the solver.
    has_successor : bool
        Whether another solver goes on where this one sees that its progress has become slow.
    smoothing : float, optional
        Width over which kinks are rounded off at the end, in units of the target; None leaves it to
        the solver.
    """

    tol: float = 1e-6
    max_iter: int | None = None
    random_state: Any = None
    eta0: float | None = None
    schedule: str = "inverse"
    decay: float | None = None
    batch_size: int = 32
    average: bool = False
    start: NDArray[np.float64] | None = None
    start_intercept: NDArray[np.float64] | None = None
    smoothing: float | None = None
    has_successor: bool = False


class Solver(ABC):
    """A way to the minimum.

    Attributes
    ----------
    name : str
        By which it is asked for.
    title : str
        One line for tables.
    needs_loss, needs_penalty : frozenset of str
        Capabilities without which it cannot run.
    accepts_penalty : frozenset of str
        Restrictions it can honour (``"nonnegative"``).
    is_direct : bool
        Whether it ends after a fixed amount of work.
    proof : str
        The kind of certificate its answers carry.
    hands_over : bool
        Whether it stops where its progress has become slow, if another solver is to go on.
    shows_nonfinite : bool
        Whether NaN and infinity in X show in its sums, so that X need not be scanned first.
    is_textbook : bool
        Whether it is here to be learned from or to compare with: chosen by name only.
    takes_few_rows : bool
        Whether :meth:`solve_set` shares work also between members that name few of the rows.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs_loss: ClassVar[frozenset[str]] = frozenset()
    needs_penalty: ClassVar[frozenset[str]] = frozenset()
    accepts_penalty: ClassVar[frozenset[str]] = frozenset()
    is_direct: ClassVar[bool] = True
    proof: ClassVar[str] = "duality"
    hands_over: ClassVar[bool] = False
    shows_nonfinite: ClassVar[bool] = False
    is_textbook: ClassVar[bool] = False
    takes_few_rows: ClassVar[bool] = False

    def refuses(self, facts: Facts) -> str | None:
        """Why this solver cannot take a problem of such a shape; None if it can."""
        return None

    @abstractmethod
    def cost(self, facts: Facts) -> Cost:
        """What solving would cost."""

    @abstractmethod
    def solve(self, problem: Problem, options: Options, monitor: Monitor) -> Solution:
        """Solve."""

    def reads_once(self, facts: Facts) -> bool:
        """Whether the rows of such a problem are read once, for their moments."""
        return False

    def solve_from_moments(
        self, problem: Problem, moments: Moments, options: Options, monitor: Monitor
    ) -> Solution:
        """The same where the moments are known; who does not work from them leaves them aside."""
        return self.solve(problem, options, monitor)

    # --- many problems on the same rows ---------------------------------------------------------

    def set_cost(self, facts: Facts, count: int) -> Cost:
        """What solving so many problems on the same rows would cost.

        A solver that shares work between them says less than so many times :meth:`cost`.
        """
        one = self.cost(facts)
        return Cost(count * one.flops, count * one.passes, one.memory, count * one.seconds)

    def solve_paths(self, problems: ProblemSet, options: Options) -> list[PathSolution] | None:
        """Solve all members, path by path; None if the solver does not follow paths of strengths.

        As :meth:`solve_set`, without an object for each answer.
        """
        return None

    def solve_set(self, problems: ProblemSet, options: Options) -> list[Solution]:
        """Solve all members, path by path, or one by one from the solution of the neighbour.

        A solver that shares work between the members overrides this or :meth:`solve_paths`, and
        :meth:`set_cost`.
        """
        paths = self.solve_paths(problems, options)
        if paths is not None:
            return single_solutions(problems, paths)
        found: list[Solution | None] = [None] * len(problems)
        for path in problems.paths():
            near: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
            for number in path:
                start = problems.members[number].start or near
                own = options
                if start is not None:
                    own = replace(options, start=start[0], start_intercept=start[1])
                solution = self.solve(problems[number], own, Monitor())
                found[number] = solution
                if np.isfinite(solution.coef).all() and np.isfinite(solution.intercept).all():
                    near = solution.coef, solution.intercept
        return [solution for solution in found if solution is not None]
