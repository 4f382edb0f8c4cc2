"""A plan: which solver, with reasons, what it costs, and who takes over."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trueline.solvers.base import Cost, Facts
from trueline.solvers.registry import SOLVERS
from trueline.wording import Readable, counted, quantity


@dataclass(frozen=True)
class Candidate:
    """One solver in the plan: its estimate, or why it is out."""

    solver: str
    title: str
    cost: Cost | None
    verdict: str
    #: Whether it is for this loss and penalty, on data of some shape.
    fits: bool = True


@dataclass(frozen=True, repr=False)
class Plan(Readable):
    """The choice, the reason, and everything that was considered."""

    chosen: str
    reason: str
    objective: str
    facts: Facts
    candidates: tuple[Candidate, ...]
    #: Who takes over, in this order, where the answer is not proven to the tolerance.
    fallbacks: tuple[str, ...] = ()
    #: Problems on the same rows that are solved together, this one among them.
    count: int = 1

    @classmethod
    def only(
        cls,
        solver: str,
        title: str,
        cost: Cost,
        objective: str,
        facts: Facts,
        why: str = "the only solver",
    ) -> Plan:
        """The plan where there is one way."""
        chosen = Candidate(solver, title, cost, "chosen")
        return cls(solver, f"{title}; {why}", objective, facts, (chosen,))

    def table(self) -> list[dict[str, object]]:
        """One row per solver: estimates of work, memory and time, and the verdict."""
        rows: list[dict[str, object]] = []
        for candidate in self.candidates:
            cost = candidate.cost
            rows.append(
                {
                    "solver": candidate.solver,
                    "flops": cost.flops if cost else None,
                    "passes": cost.passes if cost else None,
                    "memory": cost.memory if cost else None,
                    "seconds": cost.seconds if cost else None,
                    "verdict": candidate.verdict,
                }
            )
        return rows

    def __str__(self) -> str:
        return self.text()

    def text(self, every: bool = False) -> str:
        """What is chosen and why in five lines; then the solvers for this loss, or every one."""
        facts = self.facts
        kind = f"sparse ({facts.density:.2g} filled)" if facts.is_sparse else "dense"
        if facts.is_converted:
            kind = f"{'dense' if facts.is_sparse else 'sparse'}, treated as {kind}"
        lines = [
            f"minimise   {self.objective}",
            f"data       {counted(facts.n, 'row')} x {counted(facts.d, 'column')}, {kind}, "
            f"{counted(facts.k, 'target')}",
            *([f"together   {counted(self.count, 'problem')} on these rows"] * (self.count > 1)),
            f"solver     {self.chosen}: {self.reason}",
            *self._growth(),
        ]
        if self.fallbacks:
            then = ", then ".join(self.fallbacks)
            lines.append(f"fallback   {then}, if the answer is not proven to the tolerance")
        return "\n".join([*lines, *self._considered(every)])

    def _growth(self) -> list[str]:
        """What a pass over the data costs, and how the time grows with rows and columns."""
        solver, facts = SOLVERS.get(self.chosen), self.facts
        if solver is None:
            return []
        longer = replace(facts, n=2 * facts.n, nonzeros=2 * facts.nonzeros)
        wider = replace(facts, d=2 * facts.d, nonzeros=2 * facts.nonzeros)
        now, rows, columns = (solver.cost(each) for each in (facts, longer, wider))
        passes = max(1, round(now.passes))
        return [
            f"cost       {counted(passes, 'pass', 'passes')} over the data, "
            f"{quantity(now.flops / passes, 'flop')} each; twice the rows take "
            f"{rows.seconds / now.seconds:.2g} times as long, twice the columns "
            f"{columns.seconds / now.seconds:.2g} times"
        ]

    def _considered(self, every: bool) -> list[str]:
        """Solvers that could run, the fastest first; every other one, or how many they are."""
        able = [(c.cost.seconds, c, c.cost) for c in self.candidates if c.cost is not None]
        lines = [
            f"{candidate.solver:<20} {quantity(cost.seconds, 's'):>9}  "
            f"{quantity(cost.flops, 'flop'):>10}  {quantity(cost.memory, 'B'):>8}  "
            f"{candidate.verdict}"
            for _, candidate, cost in sorted(able, key=lambda each: each[0])
        ]
        out = [candidate for candidate in self.candidates if candidate.cost is None]
        if every:
            lines += [f"{candidate.solver:<20} {candidate.verdict}" for candidate in out]
        elif out:
            shaped = sum(candidate.fits for candidate in out)
            kept = f"{shaped} for data of another shape, " if shaped else ""
            lines.append(f"{kept}{len(out) - shaped} for other losses or penalties: all=True")
        return [f"{'' if i else 'considered':<11}{line}" for i, line in enumerate(lines)]


def multiplications(n: int, d: int, k: int = 1) -> dict[str, float]:
    """What the steps of the normal equations cost, and one step of gradient descent.

    Parameters
    ----------
    n, d, k : int
        Rows, columns, targets.

    Examples
    --------
    >>> from trueline.plan import multiplications
    >>> multiplications(n=100, d=3)
    {"X'X": 900.0, "X'y": 300.0, 'factor': 9.0, 'solve': 9.0, 'descent': 600.0}
    """
    return {
        "X'X": float(n * d**2),
        "X'y": float(n * d * k),
        "factor": d**3 / 3,
        "solve": float(d**2 * k),
        "descent": float(2 * n * d * k),  # X w, then X' of the residuals
    }


def normal_equations_by_hand(facts: Facts) -> list[str]:
    """The steps as a lecture counts them, for dense rows, and where gradient descent costs less."""
    count = multiplications(facts.n, facts.d, facts.k)
    whole = sum(cost for step, cost in count.items() if step != "descent")
    few = int(whole / count["descent"]) if facts.d else 0
    k = " k" if facts.k > 1 else ""
    cross = f"{counted(few, 'step')} or fewer are" if few != 1 else "a single step is"
    last = f"gradient descent costs less where {cross} enough"
    if few == 0:
        last = "the equations cost less than a single step of it"
    if facts.unpenalised and facts.n < facts.d + facts.fit_intercept:
        last += "; with so few rows X'X has no inverse"
    said = {"X'X": "n d^2", "X'y": f"n d{k}", "factor": "d^3/3", "solve": f"d^2{k}"}
    steps = [f"{step}: {said[step]} = {_whole(count[step])}" for step in said]
    return [
        f"normal equations, in multiplications: {',  '.join(steps)}",
        f"{_whole(whole)} in all; a step of gradient descent takes 2 n d{k} = "
        f"{_whole(count['descent'])}: {last}",
    ]


def _whole(value: float) -> str:
    return f"{value:,.0f}" if 10 <= value < 1e7 else f"{value:.3g}"
