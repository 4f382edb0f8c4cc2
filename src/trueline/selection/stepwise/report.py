"""A search as text, and its steps as events for traces and callbacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueline.certificates.base import Certificate
from trueline.selection.stepwise.forward import PartialCholesky
from trueline.selection.stepwise.search import Search
from trueline.selection.stepwise.tableau import Tableau
from trueline.solvers.base import Event, Monitor
from trueline.wording import Readable

_SHOWN_NAMES = 4


def name_of(column: int, names: Sequence[str] | None) -> str:
    """What a column is called."""
    return f"x{column}" if names is None else str(names[column])


def table_of_steps(
    history: Sequence[dict[str, Any]], criterion: str, names: Sequence[str] | None = None
) -> list[str]:
    r"""One line per step: what came and went, and what the model was like then.

    Examples
    --------
    >>> from trueline.selection.stepwise.report import table_of_steps
    >>> books = [
    ...     {"entered": [], "left": [], "n_features": 0, "rss": 4.0, "criterion": 9.0},
    ...     {"entered": [2], "left": [], "n_features": 1, "rss": 1.0, "criterion": 5.5},
    ... ]
    >>> print("\n".join(table_of_steps(books, "aic")))  # doctest: +NORMALIZE_WHITESPACE
    step  features          rss          aic  change
       0         0            4            9  (start)
       1         1            1          5.5  + x2
    """
    lines = [f"{'step':>4}  {'features':>8}  {'rss':>11}  {criterion:>11}  change"]
    for number, step in enumerate(history):
        lines.append(
            f"{number:>4}  {step['n_features']:>8}  {step['rss']:>11.6g}  "
            f"{step['criterion']:>11.6g}  {_change(step, names, number == 0)}"
        )
    return lines


def _change(step: dict[str, Any], names: Sequence[str] | None, is_start: bool) -> str:
    if is_start:
        return "(start)"
    parts = []
    for sign, columns in (("+", step["entered"]), ("-", step["left"])):
        shown = [name_of(j, names) for j in columns[:_SHOWN_NAMES]]
        if len(columns) > _SHOWN_NAMES:
            shown.append(f"... ({len(columns)})")
        parts += [f"{sign} {' '.join(shown)}"] if shown else []
    return "  ".join(parts)


_WAYS = {
    "forward": "lets columns in, from none",
    "backward": "lets columns out, from all",
    "both": "lets columns in or out, from none",
}

_MEANING = {
    "aic": "aic, Akaike's information criterion (smaller is better)",
    "aicc": "aicc, Akaike's criterion corrected for few rows (smaller is better)",
    "bic": "bic, Schwarz's Bayesian information criterion (smaller is better)",
    "adjusted_r2": "adjusted_r2, R^2 with degrees of freedom (larger is better)",
    "cp": "cp, Mallows' Cp (smaller is better)",
    "cv": "cv, mean squared error on held-out rows (smaller is better)",
}


def purpose(
    direction: str,
    criterion: str,
    exactly: int | None,
    at_most: int | None,
    n: int,
    d: int,
    n_terms: int | None = None,
) -> list[str]:
    """What a search on n rows and d columns is for, in a few lines."""
    ends = "until the criterion no longer improves"
    if exactly is not None:
        ends = f"until {exactly} are chosen"
    elif at_most is not None:
        ends += f", at most {at_most}"
    terms = f" in {n_terms} terms" if n_terms not in (None, d) else ""
    return [
        f"search     {direction}: {_WAYS[direction]}, {ends}",
        f"criterion  {_MEANING[criterion]}",
        f"columns    {d}{terms}, {n} rows",
        "then       least squares on the chosen columns, with a certificate",
    ]


@dataclass(frozen=True, repr=False)
class StepwiseExplanation(Readable):
    """Prints as text; ``table()`` gives one row per step of the search."""

    title: Sequence[str]
    history: Sequence[dict[str, Any]] = ()
    criterion: str = ""
    names: Sequence[str] | None = None
    fit: Any = ""
    certificate: Certificate | None = None
    #: Whether every solver of the fit is listed, those for other losses and penalties too.
    all: bool = False

    def table(self) -> list[dict[str, Any]]:
        """The steps, with columns by name."""
        return [
            {
                **step,
                "entered": [name_of(j, self.names) for j in step["entered"]],
                "left": [name_of(j, self.names) for j in step["left"]],
            }
            for step in self.history
        ]

    def __str__(self) -> str:
        lines = list(self.title)
        if self.history:
            lines += ["", *table_of_steps(self.history, self.criterion, self.names)]
            lines += ["", "The fit on the chosen columns:", str(replace(self.fit, all=self.all))]
        return "\n".join(lines)


class Watcher:
    """Hands every step to those who watch the fit."""

    def __init__(
        self, tableau: Tableau | PartialCholesky, search: Search, monitor: Monitor
    ) -> None:
        self.tableau, self.monitor = tableau, monitor
        self.most = search.exactly or search.at_most
        self.start = time.perf_counter()

    def __call__(self, step: dict[str, Any]) -> bool:
        if not self.monitor.callbacks:
            return False
        W = self.tableau.coefficients()
        x_mean, y_mean = self.tableau.centre()
        event = Event(
            iteration=step["step"],
            max_iter=max(self.most, step["step"]),
            objective=0.5 * step["rss"],
            gap=float("inf"),
            seconds=time.perf_counter() - self.start,
            coef=W,
            intercept=y_mean - x_mean @ W,
        )
        return self.monitor.tell(event)
