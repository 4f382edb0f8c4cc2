"""Explanation: the plan before a fit; the plan, what happened and the proof after it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueline.certificates.base import Certificate
from trueline.penalties import Penalty
from trueline.plan import Plan
from trueline.wording import Readable, counted

__all__ = ["Explanation", "in_given_terms"]


@dataclass(frozen=True, repr=False)
class Explanation(Readable):
    """Prints as text; ``table()`` gives the solvers that were considered as rows."""

    plan: Plan
    facts: Mapping[str, Any] | None = None
    certificate: Certificate | None = None
    #: What is chosen before the fit that the plan is about, and how; one line each.
    search: Sequence[str] = ()
    #: Whether every solver is listed, those for other losses and penalties too.
    all: bool = False

    def table(self) -> list[dict[str, object]]:
        """One row per solver: estimates and verdict."""
        return self.plan.table()

    def __str__(self) -> str:
        lines = [self.plan.text(self.all)]
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


def in_given_terms(
    plan: Plan, symbol: str, penalty: Penalty | None, total: float | None, given: float | None
) -> Plan:
    """The same plan, its objective written with the strength that the user gave.

    The objective is a sum over rows. What multiplies the penalty there is ``alpha`` itself, or
    follows from what was given: ``n alpha`` for estimators whose alpha is that of a mean (as in
    scikit-learn), ``1/C`` for those that take C. Both are shown, the given one first.

    Parameters
    ----------
    plan : Plan
    symbol : {"alpha", "n alpha", "1/C"}
    penalty : Penalty, optional
        As it stands in the objective.
    total : float, optional
        The sum of the weights n, where it is known.
    given : float, optional
        The strength that was given, where the sum of the weights is not known.
    """
    part: Any = getattr(penalty, "base", penalty)
    inside = getattr(part, "alpha", None)
    if symbol == "alpha" or inside is None:
        return plan
    formula, *numbers = plan.objective.split(",  ")
    if symbol == "1/C":
        name, value = "C", _one_number(1.0 / np.asarray(inside, dtype=float))
        formula = formula.replace("alpha/2", "1/(2 C)")
    else:
        count = "sum(s)" if "sum_i s_i" in formula else "n"
        name, symbol = "alpha", f"{count} alpha"
        value = given if total is None else _one_number(np.asarray(inside, dtype=float) / total)
        formula = formula.replace("l2/2", f"{count} l2/2")
    formula = re.sub(r"\balpha\b", symbol, formula)
    shown = []
    for number in numbers:
        if number.startswith("alpha = ") and value is not None:
            shown += [f"{name} = {value:g}", f"{symbol} = {inside:g}"]
        elif number.startswith("l2 = ") and total is not None:
            shown.append(f"l2 = {part.l2 / total:g}")
        else:
            shown.append(number)
    if np.ndim(inside) and given is not None:  # every column has its own
        shown.append(f"{name} = {given:g}, times the weight of a column")
    return replace(plan, objective=",  ".join([formula, *shown]))


def _one_number(values: Any) -> float | None:
    """The only value there is; None if columns or targets have their own."""
    return float(values) if np.ndim(values) == 0 else None


def _stage_text(solver: str, n_iter: int, seconds: float, gap: float, status: str) -> str:
    """One of several solvers that ran, and what was proven of its answer."""
    iterations = counted(n_iter, "iteration")
    proven = f"proven within {gap:.3g} of the optimum" if gap < np.inf else "nothing proven"
    return f"{solver}, {iterations}, {seconds:.3g} s, {proven}: {status}"
