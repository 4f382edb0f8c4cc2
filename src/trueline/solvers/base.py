"""What a solver is: what it needs, what it would cost, and how it solves.

**Costs** of things on an ordinary machine, from which the planner estimates seconds, were measured
on two cores of a current server processor, and fitted to all solvers on the problems of the
benchmark ``regret``. Only ratios matter for the choice of a solver; that benchmark measures how
good the choice is, and how far each estimate is from the truth. A solver's ``cost`` multiplies
these rates by counts of its own, such as the iterations that it usually takes.

**The loop** of iterative solvers owns iteration, time, stopping, callbacks, trace and status. An
iterative solver supplies an :class:`Iteration`: ``step`` advances it by one iteration, ``progress``
evaluates where it stands. Everything else happens here, once.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.moments import Moments
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution, Status
from trueline.solvers.pending import single_solutions
from trueline.trace import Trace


@dataclass(frozen=True)
class Facts:
    """What the planner may use: sizes and structure, and how large sparse rows are.

    Attributes
    ----------
    heaviness : float
        The mean of s_i ||x_i||^2 divided by the strength of the penalty, rounded to a power of two:
        it decides how many sweeps over the dual are needed. It is computed for sparse rows, one
        strength and a loss with second derivatives, and infinite otherwise.
    is_converted : bool
        Whether the data came dense and are stored as sparse, or the reverse.
    is_read : bool
        Whether every pass reads the rows anew, from a disk or on a cluster
        (``Design.is_sequential``).
    is_compiled : bool
        Whether compiled loops know the loss.
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
    has_margins: bool = False
    heaviness: float = math.inf
    is_converted: bool = False
    is_read: bool = False
    is_compiled: bool = False

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
            has_margins="margins" in problem.loss.capabilities,
            heaviness=_heaviness(problem) if strengths == 1 and not unpenalised else math.inf,
            is_converted=problem.design.is_converted,
            is_read=problem.design.is_sequential,
            is_compiled=bool(problem.loss.compiled),
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
    if not (design.is_sparse and loss.capabilities & {"hessian", "quadratic"}):
        return math.inf
    with np.errstate(all="ignore"):  # what overflows or is not a number becomes infinite
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
    has_fallback : bool
        Whether another solver goes on where the progress of this one has become slow.
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
    has_fallback: bool = False


class Solver(ABC):
    """A way to the minimum.

    Attributes
    ----------
    name : str
        For users, as in ``solver="cholesky"``.
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
        Whether it is for teaching and comparisons: chosen by name only.
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
        """Whether the rows of such a problem are read once, for their moments.

        NaN, infinity and numbers out of range show in these: they are kept in the solution.
        """
        return False

    def solve_from_moments(
        self, problem: Problem, moments: Moments, options: Options, monitor: Monitor
    ) -> Solution:
        """The same where the moments are known; solvers that do not use moments ignore them."""
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


#: Multiply-adds per second of a symmetric product X^T X in row blocks on two threads.
GRAM_RATE = 60e9
#: Seconds of a solver's fixed work in the interpreter.
CALL = 6e-4
#: Seconds of one iteration's fixed work in the interpreter.
ITERATION = 2e-4


def is_rank_deficient(facts: Facts) -> bool:
    """Whether there are too few rows to determine the coefficients, whatever their values."""
    return facts.unpenalised and facts.n - facts.fit_intercept < facts.d


def gram_seconds(facts: Facts) -> float:
    """X^T X and X^T Y in blocks of rows."""
    n, d, k = facts.n, facts.d, facts.k
    if facts.is_sparse:
        # Each row costs the square of its number of entries; what is added up has d^2 numbers.
        pairs = 1e-9 * facts.nonzeros**2 / max(1, n)
        return pairs + (1.2e-8 + 5e-9 * k) * facts.nonzeros + 2e-8 * d * d
    return 3e-9 * n * (d + k) + n * d * (d + k) / GRAM_RATE


def normal_factor_seconds(d: int, strengths: int) -> float:
    """Scaling, Cholesky and triangular inverse of d x d, once per strength."""
    return strengths * (1.6e-8 * d**2 + 3.4e-11 * d**3)


def refinement_seconds(facts: Facts) -> float:
    """Exact residuals and gradients, as often as refinement usually needs them."""
    size = float(facts.n) * facts.d * facts.k
    if facts.is_sparse:  # plain residuals instead, and blocks of rows made dense
        return 1e-7 * facts.n * facts.d + 2e-8 * facts.nonzeros * facts.k
    return (1.9e-7 if facts.n * facts.d >= 1_000_000 else 3.2e-7) * size


def orthogonal_seconds(facts: Facts, *, use_svd: bool) -> float:
    """Triangular factor of the rows, pivoting or singular values, and the proof from the rows.

    A penalty adds d rows: then the factor is one of d x d, however few rows there are.
    """
    n, d = facts.n, facts.d
    if is_rank_deficient(facts):
        # Pivoting only finds that singular values are needed; of wide designs this is known before.
        again = 0.0 if use_svd or d > n else 2e-10 * d**3
        return 1.0e-9 * d * float(n) ** 2 + 8e-10 * float(n) ** 3 + again
    return facts.strengths * (1.2e-10 * n * d * d + (9e-10 if use_svd else 7e-10) * d**3)


def kernel_seconds(facts: Facts) -> float:
    """X X^T, its factorisation once per strength, and the way back to coefficients."""
    n, d, k = facts.n, facts.d, facts.k
    factor = facts.strengths * 1e-11 * float(n) ** 3 + 2.8e-8 * n**2
    if facts.is_sparse:
        # Words that many rows share make products of texts nearly dense: each pair of rows costs.
        product = 4e-8 * facts.nonzeros**2 / max(1, d) + 4e-8 * float(n) ** 2
        return factor + product + 3e-8 * facts.nonzeros * k
    return factor + 2.4e-11 * float(n) ** 2 * d + 1e-8 * n * d + 1e-9 * n * d * k


def iteration_seconds(facts: Facts) -> float:
    """One product with X and one with X^T, and the vectors around them."""
    n, d, k = facts.n, facts.d, facts.k
    if facts.is_sparse:
        # An entry is read once for all targets.
        return ITERATION + (4e-9 + 2e-9 * k) * facts.nonzeros + 3e-8 * (n + d) * k
    return ITERATION + (0.9e-9 + 0.2e-9 * k) * n * d + 6e-9 * (n + d) * k


Array = NDArray[np.float64]


class Progress(NamedTuple):
    """The objective, and a proven bound on its distance to the optimum (inf if unknown)."""

    objective: float
    gap: float


class Event(NamedTuple):
    """What callbacks receive after an iteration."""

    iteration: int
    max_iter: int
    objective: float
    gap: float
    seconds: float
    coef: Array
    intercept: Array


Callback = Callable[[Event], object]
#: Receives the number of an iteration, its coefficients and intercepts.
Keep = Callable[[float, Array, Array], None]


@dataclass
class Monitor:
    """The trace, callbacks and limits of a fit.

    Parameters
    ----------
    trace : Trace
        Filled when enabled.
    callbacks : sequence of callables
        Each receives an :class:`Event` after every check; returning True stops the fit.
    time_limit : float
        Seconds after which the loop stops.
    keep : callable, optional
        Receives the coefficients of every iteration.
    """

    trace: Trace = field(default_factory=Trace)
    callbacks: Sequence[Callback] = ()
    time_limit: float = math.inf
    keep: Keep | None = None

    @property
    def is_watching(self) -> bool:
        """Whether every iteration is to be traced or passed to callbacks."""
        return self.trace.enabled or bool(self.callbacks)

    def tell(self, event: Event) -> bool:
        """Pass an event to the callbacks; whether one of them asks to stop.

        Every callback receives every event, also when an earlier one asked to stop.
        """
        stop = [callback(event) is True for callback in self.callbacks]
        return any(stop)

    def heard(
        self,
        began: float,
        point: Callable[[], tuple[Array, Array]],
        nodes: int,
        value: float,
        bound: float,
        **more: Any,
    ) -> bool:
        """Record the bounds of a search, and pass them to the callbacks; whether it is to stop."""
        seconds, gap = time.perf_counter() - began, max(value - bound, 0.0)
        self.trace.record(iteration=nodes, **more, objective=value, gap=gap, seconds=seconds)
        return bool(self.callbacks) and self.tell(Event(nodes, 0, value, gap, seconds, *point()))

    def solution(
        self, proof: Any, status: Status, solver: str, n_iter: int = 1, **facts: Any
    ) -> Solution:
        """The solution with the coefficients of a proof, and the trace of the fit."""
        W, b = proof.coef, proof.intercept
        return Solution(W, b, status, solver, n_iter, proof=proof, trace=self.trace, **facts)


def seen_through(monitor: Monitor, back: Callable[[Array, Array], tuple[Array, Array]]) -> Monitor:
    """A monitor that receives coefficients after a change of coordinates by ``back``."""
    keep = monitor.keep
    kept = None if keep is None else lambda number, W, b: keep(number, *back(W, b))

    def wrapped(callback: Callback) -> Callback:
        def tell(event: Event) -> object:
            W, b = back(event.coef, event.intercept)
            return callback(event._replace(coef=W, intercept=b))

        return tell

    callbacks = [wrapped(callback) for callback in monitor.callbacks]
    return replace(monitor, callbacks=callbacks, keep=kept)


class Iteration(ABC):
    """The state of an iterative method.

    Attributes
    ----------
    coef, intercept : arrays of shape (d, k) and (k,)
        The current point, valid after :meth:`progress`.
    is_stalled : bool
        Set by a method that makes no progress any more, because of rounding.
    is_settled : bool
        Set by a method whose gradient vanished to the tolerance, where no proof can show it.
    hands_over : bool
        Set by a method whose progress has become slow, if another solver is to go on.
    """

    coef: Array
    intercept: Array
    is_stalled: bool = False
    is_settled: bool = False
    hands_over: bool = False

    @abstractmethod
    def step(self) -> None:
        """Advance by one iteration."""

    @abstractmethod
    def progress(self) -> Progress:
        """Evaluate objective and gap at the current point."""


@np.errstate(over="ignore", invalid="ignore")  # what is not finite ends as DIVERGED
def run(
    iteration: Iteration,
    monitor: Monitor,
    *,
    max_iter: int,
    target_gap: float,
    check_every: int = 1,
    patience: int | None = None,
) -> tuple[Status, int, Progress]:
    """Iterate until the gap is proven small enough, or something else ends it.

    Parameters
    ----------
    iteration : Iteration
    monitor : Monitor
    max_iter : int
    target_gap : float
        Stop when the proven gap is at or below this value.
    check_every : int, default=1
        Progress is evaluated every so many iterations; every time for a trace or callbacks.
    patience : int, optional
        Stop as stalled when the gap has not become smaller for that many iterations.

    Returns
    -------
    status : Status
    n_iter : int
    progress : Progress
        At the end.
    """
    trace, every = monitor.trace, 1 if monitor.is_watching else max(1, check_every)
    start = time.perf_counter()
    best_gap, best_number = math.inf, 0
    progress = iteration.progress()
    if trace.enabled:
        trace.record(iteration=0, objective=progress.objective, gap=progress.gap, seconds=0.0)
    if monitor.keep is not None:
        monitor.keep(0, iteration.coef, iteration.intercept)
    if progress.gap <= target_gap:
        return Status.CONVERGED, 0, progress
    for number in range(1, max_iter + 1):
        iteration.step()
        seconds = time.perf_counter() - start
        late = seconds > monitor.time_limit
        if number % every and number < max_iter and not late:
            continue
        progress = iteration.progress()
        if trace.enabled:
            trace.record(
                iteration=number, objective=progress.objective, gap=progress.gap, seconds=seconds
            )
        if monitor.keep is not None:
            monitor.keep(number, iteration.coef, iteration.intercept)
        is_stopped = False
        if monitor.callbacks:  # they may keep the arrays
            point = iteration.coef.copy(), iteration.intercept.copy()
            is_stopped = monitor.tell(Event(number, max_iter, *progress, seconds, *point))
        if not math.isfinite(progress.objective):
            return Status.DIVERGED, number, progress
        if progress.gap <= target_gap:
            return Status.CONVERGED, number, progress
        if iteration.is_settled:
            return Status.SETTLED, number, progress
        if iteration.hands_over:
            return Status.HANDED_OVER, number, progress
        if is_stopped:
            return Status.STOPPED, number, progress
        if late:
            return Status.TIME_LIMIT, number, progress
        if progress.gap < best_gap:
            best_gap, best_number = progress.gap, number
        elif patience is not None and number - best_number >= patience:
            return Status.STALLED, number, progress
        if iteration.is_stalled:
            return Status.STALLED, number, progress
    return Status.MAX_ITER, max_iter, progress
