"""How good the planner's choices are: time of the chosen solver over time of the best one.

Every solver that the plan admits (textbook forms apart) solves the same problem to the same proven
gap. One process per problem; solvers run in the order of their estimates, so that a slow one at
the end cannot keep a better one from being measured.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.isolated import emit, run_module
from benchmarks.machine import LoadMeter, wait_until_quiet
from benchmarks.problems import sparse_rows, with_condition
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

if TYPE_CHECKING:
    from trueline.problem import Problem
    from trueline.solution import Solution

__all__ = ["SHAPES", "Shape", "judge", "run", "tables"]

TITLE = "the planner's choices beside the best possible ones"
GAP = 1e-6
# Iterative solvers stop themselves; a direct one ends its process.
_SOLVER_SECONDS, _PROCESS_SECONDS = 4.0, 8.0
# Estimates beyond this multiple of the best are believed, except for the best three.
_HOPELESS, _ALWAYS = 20.0, 3
_REPEAT_SECONDS, _REPEATS = 0.5, 5


@dataclass(frozen=True)
class Shape:
    """Sizes and structure of a least-squares problem."""

    n: int
    d: int
    density: float = 1.0
    condition: float = 1.0
    targets: int = 1
    alpha: float = 0.0
    weights: bool = False
    nonnegative: bool = False

    @property
    def name(self) -> str:
        """All that differs from the plain case."""
        parts = [f"{self.n}x{self.d}"]
        parts += [f"density {self.density:g}"] if self.density < 1 else []
        parts += [f"condition {self.condition:.0e}"] if self.condition > 1 else []
        parts += [f"{self.targets} targets"] if self.targets > 1 else []
        parts += [f"alpha {self.alpha:g}"] if self.alpha else []
        parts += ["weights"] if self.weights else []
        parts += ["w >= 0"] if self.nonnegative else []
        return ", ".join(parts)

    def problem(self) -> Problem:
        """The problem, with an intercept."""
        from trueline.estimators.shared.base import build_problem
        from trueline.losses import Squared
        from trueline.penalties import L2, NonNegative, NoPenalty, Penalty

        random = np.random.default_rng(7)
        X: Any = (
            with_condition(self.n, self.d, self.condition)
            if self.density == 1
            else sparse_rows(self.n, self.d, self.density)
        )
        signal = X @ random.standard_normal((self.d, self.targets))
        Y = signal + 0.5 * signal.std() * random.standard_normal(signal.shape)
        weights = random.random(self.n) + 0.5 if self.weights else None
        penalty: Penalty = L2(self.alpha) if self.alpha else NoPenalty()
        if self.nonnegative:
            penalty = NonNegative(penalty)
        return build_problem(X, Y, weights, Squared(), penalty, True)


def _shapes() -> list[Shape]:
    tall = [(50, 3), (150, 4), (1000, 10), (1000, 100), (10_000, 20), (10_000, 300)]
    tall += [(100_000, 10), (100_000, 100), (200_000, 200), (20_000, 1000), (6000, 2000)]
    square_and_wide = [(100, 100), (500, 500), (1500, 1500), (20, 50), (100, 1000), (300, 5000)]
    square_and_wide += [(1000, 5000)]
    shapes = [Shape(n, d, alpha=alpha) for n, d in tall for alpha in (0.0, 1.0)]
    shapes += [Shape(n, d, alpha=alpha) for n, d in square_and_wide for alpha in (0.0, 1.0)]
    for n, d in ((1000, 50), (20_000, 200), (2000, 1000), (200, 1000)):
        shapes += [Shape(n, d, condition=1e5, alpha=alpha) for alpha in (0.0, 1e-2)]
        shapes += [Shape(n, d, condition=1e9)]
    for n, d, density in (
        (1000, 200, 0.05),
        (20_000, 500, 0.01),
        (20_000, 500, 0.1),
        (200_000, 1000, 0.003),
        (200_000, 5000, 0.001),
        (50_000, 5000, 0.01),
        (5000, 5000, 0.002),
        (1000, 5000, 0.01),
        (300, 5000, 0.02),
    ):
        shapes += [Shape(n, d, density, alpha=alpha) for alpha in (0.0, 1.0)]
    shapes += [Shape(20_000, 100, targets=20, alpha=alpha) for alpha in (0.0, 1.0)]
    shapes += [Shape(500, 2000, targets=50, alpha=10.0), Shape(200, 10, targets=5)]
    shapes += [Shape(20_000, 500, 0.01, targets=10, alpha=1.0)]
    shapes += [Shape(20_000, 100, weights=True), Shape(20_000, 500, 0.01, weights=True, alpha=1.0)]
    shapes += [Shape(1000, 20, nonnegative=True), Shape(10_000, 300, nonnegative=True, alpha=1.0)]
    return shapes


SHAPES = {shape.name: shape for shape in _shapes()}


# --- one problem, in a process of its own -------------------------------------------------------


def measure(shape: Shape, done: tuple[str, ...] = ()) -> None:
    """Run the admissible solvers of one problem and report each; leave out those done already."""
    from trueline.planner import make_plan
    from trueline.solvers.iterative import target_gap
    from trueline.solvers.registry import SOLVERS

    problem = shape.problem()
    plan = make_plan(problem)
    admitted = [
        (candidate.cost.seconds, candidate.solver)
        for candidate in plan.candidates
        if candidate.cost is not None and not SOLVERS[candidate.solver].is_textbook
    ]
    admitted.sort()
    target = target_gap(problem, GAP)
    emit(kind="plan", chosen=plan.chosen)
    for rank, (estimate, name) in enumerate(admitted):
        if name in done:
            continue
        if rank >= _ALWAYS and estimate > _HOPELESS * admitted[0][0]:
            emit(kind="solver", solver=name, estimate=estimate, status="not tried")
            continue
        emit(kind="start", solver=name, estimate=estimate)
        emit(kind="solver", solver=name, estimate=estimate, **_solve(problem, name, target))


def _solve(problem: Problem, name: str, target: float) -> dict[str, Any]:
    """Best time of a few runs, and whether the gap was reached."""
    from trueline.solvers.base import Monitor, Options
    from trueline.solvers.registry import SOLVERS

    def once() -> Any:
        monitor = Monitor(time_limit=_SOLVER_SECONDS)
        return SOLVERS[name].solve(problem, Options(tol=GAP), monitor)

    best, spent, others, solution = math.inf, 0.0, [], None
    for repeat in range(_REPEATS + 1):
        meter, start = LoadMeter(), time.perf_counter()
        solution = once()
        seconds = time.perf_counter() - start
        others.append(meter.stop() or 0.0)
        # The first run compiles and loads: it counts only if it is the only affordable one.
        if repeat or seconds > _REPEAT_SECONDS:
            best = min(best, seconds)
        spent += seconds
        if spent > _REPEAT_SECONDS and math.isfinite(best):
            break
    return {
        "seconds": best,
        "status": "solved" if _is_solved(problem, solution, name, target) else "gap not reached",
        "iterations": solution.n_iter,
        "other": min(others),
    }


def _is_solved(problem: Problem, solution: Solution, name: str, target: float) -> bool:
    """Whether the answer is as good as asked for, by proof or (sparse, no penalty) as settled.

    Where a dense problem does not determine the coefficients, an iterative answer has the least
    norm to its tolerance only: there, direct solvers compete among themselves.
    """
    from trueline.solution import Status
    from trueline.solvers.base import Facts, is_rank_deficient
    from trueline.solvers.registry import SOLVERS

    if is_rank_deficient(Facts.of(problem)) and not problem.design.is_sparse:
        return SOLVERS[name].is_direct and solution.status.is_final
    certificate = solution.certificate
    proven = certificate is not None and certificate.gap <= 1.01 * target
    return proven or solution.status is Status.SETTLED


# --- all problems -------------------------------------------------------------------------------


def run(request: Request) -> Store:
    """Measure what is asked for, one process per problem."""
    store = Store("regret", request.folder)
    for name, shape in SHAPES.items():
        if not request.wants("shapes", name, store.get("shapes", name)):
            continue
        if request.small and shape.n * shape.d > 200_000:
            continue
        wait_until_quiet(request.patience)
        row = judge(*_all_solvers(name, request.priority))
        store.put("shapes", name, row)
        print(f"{name}: {row.get('chosen')} regret {number(row.get('regret'), '.2f')}", flush=True)
    return store


def _all_solvers(name: str, priority: int) -> tuple[list[dict[str, Any]], str]:
    """What the solvers of one problem report; after one that is too slow, the rest afresh."""
    lines: list[dict[str, Any]] = []
    while True:
        done = ",".join(sorted({line["solver"] for line in lines if "solver" in line}))
        outcome = run_module(
            "benchmarks.suites.regret", [name, done], _PROCESS_SECONDS, priority=priority
        )
        lines += outcome.lines
        if not outcome.is_late or not any(line["kind"] == "start" for line in outcome.lines):
            return lines, outcome.error


def judge(lines: list[dict[str, Any]], error: str = "") -> dict[str, Any]:
    """The chosen solver's time over the best one's, from what a process reported.

    A chosen solver that does not reach the gap, or never ended, has infinite regret.
    """
    chosen = next((line["chosen"] for line in lines if line["kind"] == "plan"), None)
    solvers = {
        line["solver"]: {key: line[key] for key in line if key not in ("kind", "solver")}
        for line in lines
        if line["kind"] == "solver"
    }
    for line in lines:
        if line["kind"] == "start" and line["solver"] not in solvers:
            solvers[line["solver"]] = {"estimate": line["estimate"], "status": "too slow"}
    times = {name: row["seconds"] for name, row in solvers.items() if row["status"] == "solved"}
    row: dict[str, Any] = {"chosen": chosen, "solvers": solvers}
    if error:
        row["error"] = error
    if times:
        row["best"] = min(times, key=lambda name: times[name])
        row["regret"] = times.get(chosen, math.inf) / times[row["best"]]
        others = [
            solvers[name].get("other") or 0.0 for name in {row["best"], chosen} & times.keys()
        ]
        row["other"] = max(others)
    return row


def tables(store: Store) -> list[Table]:
    """Summary, the worst ten, and estimates against measurements."""
    rows = {name: row for name, row in store.rows.get("shapes", {}).items() if name in SHAPES}
    known = {name: row for name, row in rows.items() if "regret" in row}
    if not known:
        return []
    regrets = [row["regret"] for row in known.values()]
    near = sum(regret <= 1.1 for regret in regrets)
    summary = Table(
        "Regret of the planner: seconds of the chosen solver over seconds of the best",
        ["problems", "median", "mean", "worst", "chosen within 10 % of the best"],
        [
            [
                str(len(regrets)),
                f"{statistics.median(regrets):.2f}",
                f"{statistics.fmean(regrets):.2f}",
                f"{max(regrets):.2f}",
                f"{near} of {len(regrets)}",
            ]
        ],
    )
    return [summary, _worst(known), _estimates(rows)]


def _worst(rows: dict[str, dict[str, Any]]) -> Table:
    worst = sorted(rows.items(), key=lambda item: -item[1]["regret"])[:10]
    body = []
    for name, row in worst:
        chosen, best = row["solvers"][row["chosen"]], row["solvers"][row["best"]]
        body.append(
            [
                name,
                row["chosen"],
                seconds_text(chosen.get("seconds")) or chosen["status"],
                row["best"],
                seconds_text(best["seconds"]),
                f"{row['regret']:.2f}",
                number(row.get("other"), ".2f"),
            ]
        )
    heads = ["problem", "chosen", "its time", "best", "its time", "regret", "other load"]
    return Table("The worst ten", heads, body)


def _estimates(rows: dict[str, dict[str, Any]]) -> Table:
    """Measured over estimated seconds per solver: geometric mean, spread, extremes."""
    ratios: dict[str, list[tuple[float, str]]] = {}
    for name, row in rows.items():
        for solver, one in row["solvers"].items():
            if one["status"] == "solved":
                log = math.log10(one["seconds"] / one["estimate"])
                ratios.setdefault(solver, []).append((log, name))
    body = []
    for solver, found in ratios.items():
        logs = [log for log, _ in found]
        low, high = min(found), max(found)
        spread = statistics.pstdev(logs)
        body.append(
            [
                solver,
                str(len(found)),
                f"{10 ** statistics.fmean(logs):.2f}",
                f"{10**spread:.2f}",
                f"{10 ** low[0]:.2f} ({low[1]})",
                f"{10 ** high[0]:.2f} ({high[1]})",
            ]
        )
    heads = ["solver", "problems", "measured / estimated", "spread (factor)", "least", "most"]
    return Table("Estimated and measured seconds", heads, body)


def main(name: str, done: str) -> None:
    """Entry of the process of one problem."""
    warnings.simplefilter("ignore")
    measure(SHAPES[name], tuple(done.split(",")))


if __name__ == "__main__":
    main(*sys.argv[1:3])
