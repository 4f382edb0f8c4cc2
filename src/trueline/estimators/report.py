"""Explanation: the plan before a fit; the plan, what happened and the proof after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueline.certificates.base import Certificate
from trueline.planner import Plan
from trueline.wording import counted

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """Prints as text; ``table()`` gives the solvers that were considered as rows."""

    plan: Plan
    facts: Mapping[str, Any] | None = None
    certificate: Certificate | None = None
    #: What is chosen before the fit that the plan is about, and how; one line each.
    search: Sequence[str] = ()

    def table(self) -> list[dict[str, object]]:
        """One row per solver: estimates and verdict."""
        return self.plan.table()

    def __str__(self) -> str:
        lines = [str(self.plan)]
        lines += [f"{'' if i else 'search':<11}{line}" for i, line in enumerate(self.search)]
        if self.facts is not None:
            facts = self.facts
            lines.append(
                f"happened   {facts['solver']}, {counted(facts['n_iter'], 'iteration')}, "
                f"{facts['seconds']:.3g} s: {facts['status']}"
            )
            lines += [f"           {note}" for note in facts["notes"]]
            stages = facts.get("stages", ())
            for i, stage in enumerate(stages if len(stages) > 1 else ()):
                lines.append(f"{'' if i else 'stages':<11}{i + 1}. {_stage_text(*stage)}")
        if self.certificate is not None:
            lines.append(f"proof      {self.certificate}")
            lines.append(f"           {self.certificate.statement}")
        return "\n".join(lines)

    __repr__ = __str__


def _stage_text(solver: str, n_iter: int, seconds: float, gap: float, status: str) -> str:
    """One of several solvers that ran, and what was proven of its answer."""
    iterations = counted(n_iter, "iteration")
    proven = f"proven within {gap:.3g} of the optimum"
    return f"{solver}, {iterations}, {seconds:.3g} s, {proven}: {status}"
