"""Suites whose answers are judged by one number: problems on disk, the process of a row, tables.

Such a suite says what its cases, problems and functions are (:class:`Suite`); its modules
``prepare`` and ``worker``, which are processes of their own, hand over to the functions here.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.cache import key, stored_rows
from benchmarks.contestants.base import Tuned
from benchmarks.isolated import emit
from benchmarks.machine import version
from benchmarks.report import Table
from benchmarks.rows import US, against, against_fastest, scales, time_table, versions
from benchmarks.selection import Request
from benchmarks.store import Store
from benchmarks.tuned import measure_rows, taking_part

__all__ = ["Suite", "Target", "run", "tables", "work"]

Rows = tuple[Any, Any]


@dataclass(frozen=True)
class Target:
    """By how much a peer's time must exceed ours; without a name that of the fastest."""

    case: str
    bound: float
    peer: str = ""


@dataclass(frozen=True)
class Suite:
    """What distinguishes one suite from another.

    Attributes
    ----------
    name : str
        ``benchmarks.NAME.prepare`` and ``benchmarks.NAME.worker`` are its processes.
    cases : mapping
        By name; a case has a title, a task, a problem and a limit.
    problems : mapping
        From the scale (1 is the size of the name) to X and y.
    targets : tuple of Target
    data_of : function
        From a case, X and y to what a contestant is given.
    facts_of : function
        From these data to what answers are compared with; as JSON keeps it.
    quality : function
        From the data, an answer and the facts to the relative suboptimality.
    part_of : function
        A small part of the data, for the first call.
    makers : tuple of modules
        Their code decides what the rows are.
    recipes : tuple of modules
        Their code decides what the facts are.
    """

    name: str
    cases: Mapping[str, Any]
    problems: Mapping[str, Callable[[float], Rows]]
    targets: tuple[Target, ...]
    data_of: Callable[[Any, Any, Any], Any]
    facts_of: Callable[[Any], dict[str, Any]]
    quality: Callable[[Any, Any, dict[str, Any]], float]
    part_of: Callable[[Any], Any]
    makers: tuple[ModuleType, ...]
    recipes: tuple[ModuleType, ...]

    def _facts_path(self, cache: Path, name: str, scale: float) -> Path:
        code = b"".join(Path(str(module.__file__)).read_bytes() for module in self.recipes)
        digest = hashlib.sha256(code).hexdigest()[:6]
        return cache / f"{key(name, scale, self.makers)}-{digest}.json"

    def load(self, cache: Path, name: str, scale: float) -> tuple[Any, dict[str, Any]]:
        """The data of a prepared case, and what its answers are compared with."""
        case = self.cases[name]
        X, y = stored_rows(cache, key(case.problem, scale, self.makers))
        facts = json.loads(self._facts_path(cache, name, scale).read_text())
        return self.data_of(case, X, y), facts

    def prepare(self, cache: Path, name: str, scale: float) -> dict[str, Any]:
        """Make what a case needs, if it is not there."""
        case = self.cases[name]
        cache.mkdir(parents=True, exist_ok=True)
        path = self._facts_path(cache, name, scale)
        stem = key(case.problem, scale, self.makers)
        X, y = stored_rows(cache, stem, lambda: self.problems[case.problem](scale))
        if path.exists():
            return dict(json.loads(path.read_text()))
        emit(kind="rows", shape=X.shape)
        facts = {"shape": X.shape, **self.facts_of(self.data_of(case, X, y))}
        path.write_text(json.dumps(facts))
        return facts

    def judge(
        self, case: Any, tuned: Tuned, data: Any, facts: dict[str, Any], answer: Any
    ) -> dict[str, Any]:
        """What is reported of an answer."""
        return {"quality": self.quality(data, answer, facts)}


def _converted(tuned: Tuned, data: Any) -> tuple[Tuned, float]:
    """A fit that has the data in its own format already, and the seconds that took."""
    if tuned.convert is None:
        return tuned, 0.0
    start = time.perf_counter()
    own = tuned.convert(data)
    seconds = time.perf_counter() - start
    return replace(tuned, fit=lambda _, rung: tuned.fit(own, rung)), seconds


def work(
    suite: Suite,
    name: str,
    contestant: str,
    scale: str,
    cache: str,
    limit: str,
    folder: str = "",
    below: str = "",
) -> None:
    """One contestant on one case: a first call on a part of the data, then the measurement."""
    from benchmarks.contestants import CONTESTANTS
    from benchmarks.sparse.worker import measure

    warnings.simplefilter("ignore")
    case, peer = replace(suite.cases[name], limit=float(limit)), CONTESTANTS[contestant]
    data, facts = suite.load(Path(cache), name, float(scale))
    tuned = peer.tuned[case.task]
    start, part = time.perf_counter(), suite.part_of(data)
    _converted(tuned, part)[0].fit(part, tuned.ladder[0])
    first = time.perf_counter() - start
    tuned, seconds = _converted(tuned, data)
    about = {"version": version(peer.package), "numpy": np.__version__, "conversion": seconds}
    emit(kind="ready", first=first, **about)
    tightest = float(below) if below else None
    measure(name, case, tuned, data, facts, float(scale), tightest, suite.judge)


def run(suite: Suite, request: Request, small: float) -> Store:
    """Measure what is asked for, one process after the other; ``small`` is the scale of a try."""

    def limit_of(case: Any) -> float:
        return float(request.own_limit or case.limit)

    scale = small if request.small else request.scale
    return measure_rows(request, suite.name, taking_part(dict(suite.cases)), limit_of, scale)


def _targets(suite: Suite, store: Store) -> Table:
    body = []
    for target in suite.targets:
        rows = store.rows.get(target.case, {})
        if "seconds" not in rows.get(US, {}):
            continue
        if target.peer:
            line = against(rows, target.peer, target.bound)
        else:
            line = against_fastest(rows, target.bound)
        if line is not None:
            body.append([suite.cases[target.case].title, *line])
    heads = ["case", "compared with", "goal", "measured", "reached"]
    return Table("Targets", heads, body, [*versions(store), *scales(store)])


def tables(suite: Suite, store: Store) -> list[Table]:
    """The targets, then one table per case."""
    out = [_targets(suite, store)]
    out += [
        time_table(case.title, store.rows[name])
        for name, case in suite.cases.items()
        if name in store.rows
    ]
    return out
