"""The plan: which solvers could do it, what each would cost, which one is taken and why.

Like a database's query plan. Estimates come from the sizes alone (rows, columns, non-zeros,
targets), through each solver's own :meth:`~trueline.solvers.base.Solver.cost`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from trueline.errors import PairingError
from trueline.guard import Verdict, confirm, judge, judge_by_own, tolerance_of, verdict_of
from trueline.moments import Moments
from trueline.numerics.blas import run_strands, single_threaded_blas
from trueline.plan import Candidate, Plan
from trueline.problem import Problem
from trueline.problem_set import ProblemSet
from trueline.solution import PathSolution, Solution, Status
from trueline.solvers import IndependentColumns, ProximalGradient
from trueline.solvers.base import Cost, Facts, Monitor, Options, Solver, seen_through
from trueline.solvers.registry import SOLVERS, as_solver, missing, solvers_for
from trueline.wording import quantity

# A solver takes over if it is not estimated to take more than so many times as long (and a second),
# nor more bytes.
_FALLBACK_RATIO, _FALLBACK_SECONDS, _FALLBACK_MEMORY = 30.0, 1.0, 2e9
# How many steps gradient methods take depends on values that are not known before the fit: they are
# for problems that no other solver takes.
_LAST_RESORT = ProximalGradient.name
# Endings that the caller asked for: no other solver goes on.
_LIMITS = (Status.MAX_ITER, Status.TIME_LIMIT, Status.STOPPED)
# And where there is no optimum, none finds it.
_ENDINGS = (*_LIMITS, Status.UNBOUNDED)
_BY_NAME = "asked for by name"
# Members of a set that have more numbers than this (128 MB) are copied one at a time; those with
# less than that are judged before another thread is awake.
_MOST_COPIED, _LEAST_SHARED = 1 << 24, 200_000

Result = TypeVar("Result")


def make_plan(problem: Problem, solver: str = "auto") -> Plan:
    """List, estimate, choose.

    Parameters
    ----------
    problem : Problem
    solver : str, default="auto"
        A solver's name overrides the choice (the pairing is still checked).

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.losses import Squared
    >>> from trueline.penalties import L2
    >>> from trueline.planner import make_plan
    >>> from trueline.problem import Problem
    >>> problem = Problem(as_design(np.ones((100, 3))), np.ones((100, 1)), Squared(), L2(1.0))
    >>> make_plan(problem).chosen
    'cholesky'
    """
    return _planned(problem, solver, 1)


def make_set_plans(problems: ProblemSet, solver: str = "auto") -> list[Plan]:
    """The plan of every member of a set.

    Members with the same sort of penalty and the same shape have one plan: the solver that is
    estimated to be the fastest for all of them together, by its
    :meth:`~trueline.solvers.base.Solver.set_cost`.
    """
    known_keys: dict[tuple[int, ...], tuple[object, ...]] = {}  # folds may share penalties
    keys = []
    for number, member in enumerate(problems.members):
        parts = id(member.penalty), id(member.target), member.weights is None
        if parts not in known_keys:
            known_keys[parts] = _plan_key(problems, number)
        keys.append(known_keys[parts])
    plans = {
        key: _planned(problems.on_all_rows(keys.index(key)), solver, keys.count(key))
        for key in dict.fromkeys(keys)
    }
    return [plans[key] for key in keys]


def shares_work(problems: ProblemSet, plans: list[Plan]) -> bool:
    """Whether solving the set by these plans is expected to be less work than one by one."""
    is_whole = all(member.rows is None for member in problems.members)

    def shares(plan: Plan) -> bool:
        solver, facts, count = SOLVERS[plan.chosen], plan.facts, plan.count
        alone = count * solver.cost(facts).seconds
        is_able = is_whole or solver.takes_few_rows
        return is_able and solver.set_cost(facts, count).seconds < alone

    return all(shares(plan) for plan in {id(plan): plan for plan in plans}.values())


def _plan_key(problems: ProblemSet, number: int) -> tuple[object, ...]:
    """What members with the same plan have in common."""
    member = problems.members[number]
    penalty = member.penalty
    strengths = np.shape(penalty.curvature) or float(penalty.curvature) > 0
    return penalty.capabilities, member.target.shape[1], member.weights is None, strengths


def _planned(problem: Problem, solver: str, count: int) -> Plan:
    facts = Facts.of(problem)
    loss, penalty = problem.loss, problem.penalty
    # A plan depends on these alone; small fits in a loop should not pay for planning each time.
    what = (loss.name, loss.capabilities, penalty.capabilities, problem.formula)
    key = (facts, *what, solver, count)
    if key not in _known_plans:
        if len(_known_plans) >= 256:
            _known_plans.clear()
        _known_plans[key] = _plan(problem, facts, solver, count)
    return _known_plans[key]


_known_plans: dict[tuple[object, ...], Plan] = {}


def forget_plans() -> None:
    """Plan everything anew; for those who change the registry of solvers."""
    _known_plans.clear()


def _plan(problem: Problem, facts: Facts, solver: str, count: int) -> Plan:
    loss, penalty = problem.loss, problem.penalty
    asked = None if solver == "auto" else as_solver(solver, loss, penalty)
    eligible: list[tuple[Solver, Cost]] = []
    candidates: list[Candidate] = []
    for candidate in SOLVERS.values():
        lacks = missing(candidate, loss, penalty)
        trouble = lacks or candidate.refuses(facts)
        if trouble:
            fits = lacks is None
            candidates.append(Candidate(candidate.name, candidate.title, None, trouble, fits))
            continue
        cost = candidate.cost(facts) if count == 1 else candidate.set_cost(facts, count)
        verdict = "by name only" if candidate.is_textbook else "possible"
        candidates.append(Candidate(candidate.name, candidate.title, cost, verdict))
        if not candidate.is_textbook:
            eligible.append((candidate, cost))
    fallbacks: tuple[str, ...] = ()
    if asked is not None:
        chosen, reason = asked.name, _BY_NAME
    else:
        chosen, reason = _choose(problem, eligible, candidates)
        fallbacks = _fallbacks_of(chosen, eligible)
    candidates = [
        Candidate(c.solver, c.title, c.cost, "chosen") if c.solver == chosen else c
        for c in candidates
    ]
    return Plan(chosen, reason, problem.formula, facts, tuple(candidates), fallbacks, count)


def _fallbacks_of(chosen: str, eligible: list[tuple[Solver, Cost]]) -> tuple[str, ...]:
    """The cheapest direct solver and the cheapest iterative one that are affordable.

    Where there is none of one sort, the two cheapest of the other. One of the same sort corrects
    what a single method gets wrong, one of the other sort what all factorisations do, or all
    iterations. Solvers made for the same losses come first: they know which of several answers is
    asked for. Gradient methods, whose number of steps is not known, come last. A solver that may
    hand over has a fallback, however expensive.
    """
    known = {solver.name: (solver, cost) for solver, cost in eligible}
    if chosen not in known:
        return ()
    own, first = known.pop(chosen)
    longest = _FALLBACK_RATIO * first.seconds + _FALLBACK_SECONDS
    if own.hands_over:
        able = [cost.seconds for name, (_, cost) in known.items() if name != _LAST_RESORT]
        longest = max(longest, min(able, default=0.0))
    others = sorted(
        (name == _LAST_RESORT, solver.needs_loss != own.needs_loss, cost.seconds, name)
        for name, (solver, cost) in known.items()
        if cost.seconds <= longest and cost.memory <= _FALLBACK_MEMORY
    )
    by_type = [
        [other for other in others if known[other[-1]][0].is_direct is is_direct]
        for is_direct in (True, False)
    ]
    picked = [of_type[0] for of_type in by_type if of_type]
    if len(picked) < len(by_type):
        picked = others[: len(by_type)]
    picked.sort(key=lambda other: (other[0], other[2]))
    return tuple(name for *_, name in picked)


def _choose(
    problem: Problem, eligible: list[tuple[Solver, Cost]], candidates: list[Candidate]
) -> tuple[str, str]:
    """The cheapest of those that remain, and the sentence that says why."""
    if not eligible:
        # Better slow than not at all: fall back on textbook solvers.
        slow = [c for c in candidates if c.cost is not None]
        if not slow:
            raise PairingError(
                f"No solver can minimise the {problem.loss.name} loss with the "
                f"{problem.penalty.name} penalty on data of shape {problem.design.shape}: "
                f"{_advice(problem)}."
            )
        best = min(slow, key=lambda c: c.cost.seconds if c.cost else float("inf"))
        return best.solver, "the only kind of solver for this loss and penalty"
    estimated = [pair for pair in eligible if pair[0].name != _LAST_RESORT]
    eligible = sorted(estimated or eligible, key=lambda pair: pair[1].seconds)
    solver, cost = eligible[0]
    if len(eligible) == 1:
        return solver.name, f"{solver.title}; the only solver that fits"
    second, other = eligible[1]
    return solver.name, (
        f"{solver.title}; estimated {quantity(cost.seconds, 's')}, next best {second.name} "
        f"{quantity(other.seconds, 's')}"
    )


def _advice(problem: Problem) -> str:
    """What to do where no solver fits."""
    able = solvers_for(problem.loss, problem.penalty)
    if not able:
        return "choose another penalty"
    facts = Facts.of(problem)
    return f"give fewer columns, for {able[0].name} {able[0].refuses(facts)}"


def execute(
    problem: Problem,
    plan: Plan,
    options: Options,
    monitor: Monitor,
    moments: Moments | None = None,
) -> Solution:
    """Run the chosen solver; where its answer is not proven, its fallbacks go on from there.

    Moments that are there already are not formed again. BLAS runs single-threaded inside (the
    solvers bring threads of their own), so that the answer does not depend on how many threads
    there are. No BLAS uses threads for tiny matrices.
    """
    start = time.perf_counter()
    n, d = problem.design.shape
    is_tiny = n * d * min(n, d) < 50_000
    with nullcontext() if is_tiny else single_threaded_blas():
        known = IndependentColumns.of(problem) if problem.is_open else None
        if known is None or known.space is None:
            solution = _run_with_fallbacks(problem, plan, options, monitor, moments)
            solution.rank = solution.rank if known is None else known.rank
        else:
            solution = _run_on_independent_columns(problem, known, plan, options, monitor)
    solution.seconds = time.perf_counter() - start
    return solution


def execute_set(problems: ProblemSet, plans: list[Plan], options: Options) -> list[Solution]:
    """Solve every member of a set by its plan; each answer is judged as that of a single problem.

    Members whose answer is not proven, and those that leave directions of the coefficients to be
    chosen by their norm, are solved one by one.
    """
    found: list[Solution | None] = [None] * len(problems)
    with single_threaded_blas():
        for plan in {id(plan): plan for plan in plans}.values():
            own = [i for i, other in enumerate(plans) if other is plan]
            if not problems.on_all_rows(own[0]).is_open:
                for number, solution in zip(own, _run_set(problems.take(own), plan, options)):
                    found[number] = solution

    def alone(number: int) -> Solution:
        return _run_member(problems, number, plans[number], options, found[number])

    ended = [one is not None and (one.status.is_final or one.status in _LIMITS) for one in found]
    others = [number for number, has_ended in enumerate(ended) if not has_ended]
    for number, solution in zip(others, _of_each(problems, alone, others)):
        found[number] = solution
    return [one for one in found if one is not None]


def execute_paths(
    problems: ProblemSet, plans: list[Plan], options: Options
) -> tuple[list[PathSolution], list[Verdict]]:
    """As :func:`execute_set`, path by path, without an object for each answer.

    Returns the paths, and for each member that was solved whether its answer is proven: an
    interrupt from the keyboard ends a single path early.
    """
    found: list[PathSolution] = []
    verdicts: dict[int, Verdict] = {}
    for plan in {id(plan): plan for plan in plans}.values():
        own = [i for i, other in enumerate(plans) if other is plan]
        with single_threaded_blas():
            paths = SOLVERS[plan.chosen].solve_paths(problems.take(own), options)
        if paths is None:
            solved = execute_set(problems.take(own), [plan] * len(own), options)
            verdicts.update(zip(own, map(verdict_of, solved)))
            found += [_path_of_one(number, one) for number, one in zip(own, solved)]
            continue
        for path in paths:
            path.numbers = [own[number] for number in path.numbers]
            for i, (number, gap) in enumerate(zip(path.numbers, path.gaps.tolist())):
                verdicts[number] = Verdict(gap <= path.allowed, gap, path.allowed)
                # Iterative solvers above their tolerance are reported; direct ones run again alone.
                if not gap <= path.allowed and SOLVERS[plan.chosen].is_direct:
                    alone = _run_member(problems, number, plan, options, None)
                    path.coefs[..., i], path.intercepts[:, i] = alone.coef, alone.intercept
                    verdicts[number] = verdict_of(alone)
        found += paths
    return found, [verdicts[number] for number in sorted(verdicts)]


def _path_of_one(number: int, solution: Solution) -> PathSolution:
    parts = solution.coef[..., None], solution.intercept[:, None], np.zeros(1), solution.allowed
    return PathSolution([number], *parts, solution.solver, [solution.n_iter], solution.moments)


def _run_set(problems: ProblemSet, plan: Plan, options: Options) -> list[Solution]:
    """The answers of the chosen solver, judged."""
    start = time.perf_counter()
    solver = SOLVERS[plan.chosen]
    options = _with_fallback(plan, options)
    is_whole = all(member.rows is None for member in problems.members)
    # A solver that shares work only between members on all rows takes others one by one.
    kind = type(solver) if is_whole or solver.takes_few_rows else Solver
    found = kind.solve_set(solver, problems, options)
    seconds = (time.perf_counter() - start) / len(found)

    def judged(number: int) -> None:
        solution = found[number]
        solution.seconds = seconds
        if solution.tolerance is not None:  # the rows of the member need not be read
            own = partial(problems.__getitem__, number)
            verdict = judge_by_own(solution, solution.tolerance, own)
        else:
            verdict = judge(problems.on_all_rows(number), solution, options.tol)
        confirm(solution, verdict)

    _of_each(problems, judged, range(len(found)))
    return found


def _of_each(
    problems: ProblemSet, work: Callable[[int], Result], members: Sequence[int]
) -> list[Result]:
    """Work on members, side by side if that pays and copies of their rows take little memory."""
    if not _LEAST_SHARED <= problems.design.nonzeros <= _MOST_COPIED:
        return [work(number) for number in members]
    return run_strands(work, members)


def _run_member(
    problems: ProblemSet, number: int, plan: Plan, options: Options, near: Solution | None
) -> Solution:
    """One member by itself, from where solving it with the others has led."""
    problem = problems[number]
    if near is not None and near.status is Status.HANDED_OVER:
        with single_threaded_blas():
            return _fall_back(problem, plan, options, Monitor(), near)
    start = problems.members[number].start
    if near is not None and np.isfinite(near.coef).all() and np.isfinite(near.intercept).all():
        start = near.coef, near.intercept
    if start is not None:
        options = replace(options, start=start[0], start_intercept=start[1])
    name = plan.chosen if plan.reason == _BY_NAME else "auto"
    solution = execute(problem, make_plan(problem, name), options, Monitor())
    if near is not None:
        solution.stages = [*near.stages, *solution.stages]
    return solution


def _run_with_fallbacks(
    problem: Problem, plan: Plan, options: Options, monitor: Monitor, moments: Moments | None
) -> Solution:
    """Run the chosen solver and judge its proof; where it does not suffice, run the fallbacks."""
    start = time.perf_counter()
    solver, options = SOLVERS[plan.chosen], _with_fallback(plan, options)
    if moments is None:
        solution = solver.solve(problem, options, monitor)
    else:
        solution = solver.solve_from_moments(problem, moments, options, monitor)
    solution.seconds = time.perf_counter() - start
    verdict = judge(problem, solution, options.tol)
    is_limited = solution.status in _ENDINGS
    confirm(solution, verdict)
    if solution.status is Status.HANDED_OVER or not (verdict.is_proven or is_limited):
        solution = _fall_back(problem, plan, options, monitor, solution)
    return solution


def _with_fallback(plan: Plan, options: Options) -> Options:
    """Solvers that hand over are told whether there is another one."""
    if plan.fallbacks and SOLVERS[plan.chosen].hands_over:
        return replace(options, has_fallback=True)
    return options


def _run_on_independent_columns(
    problem: Problem, known: IndependentColumns, plan: Plan, options: Options, monitor: Monitor
) -> Solution:
    """The answer of least norm, where columns are dependent and no penalty distinguishes them.

    It is found on independent columns. The proof about all columns is more demanding than the one
    at which the solver stopped: where it fails, the solver goes on from there.
    """
    part = known.part(problem)
    found = _run_with_fallbacks(
        part, plan, known.options(options), seen_through(monitor, known.back), None
    )
    solution = known.lifted(problem, found)
    verdict = judge(problem, solution, options.tol)
    if found.status.is_final and not verdict.is_proven:
        near = replace(options, start=found.coef, start_intercept=found.intercept)
        again = _run_with_fallbacks(part, plan, near, Monitor(), None)
        again.n_iter, again.trace = again.n_iter + found.n_iter, found.trace
        other = known.lifted(problem, again)
        if _is_better(other, solution):
            solution, verdict = other, judge(problem, other, options.tol)
    if found.status.is_final:
        solution.stages = []
        confirm(solution, verdict)
    return solution


def _fall_back(
    problem: Problem, plan: Plan, options: Options, monitor: Monitor, first: Solution
) -> Solution:
    """Run the fallbacks, each from the best point so far, until an answer is proven."""
    best, stages, failures = first, first.stages, []
    options = replace(options, has_fallback=False)
    for name in plan.fallbacks:
        if name in {stage.solver for stage in stages}:
            continue  # the solver before has already fallen back on it
        if _is_start(problem, best):
            options = replace(options, start=best.coef, start_intercept=best.intercept)
        start = time.perf_counter()
        try:
            found = SOLVERS[name].solve(problem, options, monitor)
        except (ArithmeticError, np.linalg.LinAlgError, MemoryError) as trouble:
            failures.append(f"{name} was tried and failed: {type(trouble).__name__} {trouble}")
            continue
        found.seconds = time.perf_counter() - start
        verdict = judge(problem, found, options.tol)
        confirm(found, verdict)
        stages = [*stages, *found.stages]
        if verdict.is_proven or _is_better(found, best):
            best = found
        if verdict.is_proven or (first.status is Status.HANDED_OVER and found.status in _LIMITS):
            break
    best.stages = stages
    best.notes += failures
    if best.status is Status.HANDED_OVER:  # to solvers that failed or found nothing better
        best.status = Status.UNPROVEN
    if len(stages) > 1 and first.status is not Status.HANDED_OVER:
        best.notes.append(
            f"the answer of {first.solver} was proven within {stages[0].gap:.3g} only: "
            + (f"{best.solver} took over" if best is not first else "others found no better one")
        )
    return best


def _is_start(problem: Problem, solution: Solution) -> bool:
    """Whether it is worth going on from there, rather than from the best constant.

    Points of dual methods are far worse before many sweeps, if the penalty is weak.
    """
    if not (np.isfinite(solution.coef).all() and np.isfinite(solution.intercept).all()):
        return False
    proof = solution.certificate
    return proof is None or proof.objective <= tolerance_of(problem, 1.0)


def _is_better(one: Solution, other: Solution) -> bool:
    """Whether one has the lower objective, beyond rounding; if neither has, the smaller gap."""
    mine, its = one.certificate, other.certificate
    if mine is None or its is None:
        return mine is not None
    rounding = mine.objective_rounding + its.objective_rounding
    if np.isfinite(rounding) and abs(mine.objective - its.objective) > rounding:
        return bool(mine.objective < its.objective)
    return bool(mine.gap < its.gap)
