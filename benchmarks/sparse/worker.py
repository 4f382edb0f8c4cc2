"""One contestant on one case of the sparse suite, in a process of its own.

``python -m benchmarks.sparse.worker CASE NAME SCALE CACHE LIMIT [FOLDER [BELOW]]``. A first
call (imports, compilation) on a small part of the data is apart. Then the loosest tolerance that
reaches the criterion is looked for, and calls with it are repeated.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.contestants import CONTESTANTS
from benchmarks.contestants.base import Tuned
from benchmarks.isolated import emit
from benchmarks.machine import LoadMeter, version
from benchmarks.objective import Answer, Data
from benchmarks.rows import CRITERION
from benchmarks.selection import DISTURBED
from benchmarks.sparse.cases import Case, all_cases
from benchmarks.sparse.exchange import good_columns
from benchmarks.sparse.ladder import loosest
from benchmarks.sparse.objective import SAME, fold_error, residual_square, suboptimality
from benchmarks.sparse.prepare import load

__all__ = ["Judge", "measure", "measure_certificate"]

#: What a strength that the common folds do not choose counts as.
WRONG_CHOICE = 1.0
# Warm calls end when there are so many, or when they took so long together.
_CALLS, _SECONDS = 5, 4.0
# A call that took so long is not repeated, even if it was the first one on the data.
_SLOW = 10.0
# The search for a tolerance ends after so many times the limit of a call.
_LADDER = 1.5
# Rows and columns of the problem of the first call.
_PART = (200, 40)
# Searches of small problems, as tests have them, are given less time.
_SHORT_SEARCH = 2.0


Judge = Callable[[Any, Tuned, Data, dict[str, Any], Any], dict[str, Any]]


def judge(
    case: Case, tuned: Tuned, data: Data, facts: dict[str, Any], answer: Any
) -> dict[str, Any]:
    """What is reported of an answer."""
    if isinstance(answer, Answer):
        quality = suboptimality(data, answer, np.array(facts["bounds"]))
        # On the same folds, exact enough means the same choice too.
        if case.task == "lasso_cv" and not tuned.has_own_folds:
            chosen = facts["chosen"]
            if abs(answer.alpha - chosen) > SAME * chosen:
                quality = max(quality, WRONG_CHOICE)
        return {"quality": quality, "alpha": float(answer.alpha)}
    value = fold_error if case.task == "forward_folds" else residual_square
    return {
        "objective": value(data, answer.columns),
        "gap": answer.gap,
        "own_gap": answer.own_gap,
        "proven": answer.is_proven,
        "columns": sorted(int(j) for j in answer.columns),
    }


class _Calls:
    """Calls at the rungs of a ladder, each reported."""

    def __init__(
        self, case: Any, tuned: Tuned, data: Data, facts: dict[str, Any], judge: Judge
    ) -> None:
        self.case, self.tuned, self.data, self.facts = case, tuned, data, facts
        self.judge = judge
        self.spent = 0.0
        self.counts: dict[Any, int] = {}

    def __call__(self, rung: Any, is_judged: bool) -> dict[str, Any]:
        emit(kind="start", rung=rung)
        meter, start = LoadMeter(), time.perf_counter()
        answer = self.tuned.fit(self.data, rung)
        seconds = time.perf_counter() - start
        self.spent += seconds
        self.counts[rung] = self.counts.get(rung, 0) + 1
        line = {"rung": rung, "seconds": seconds, "other": meter.stop()}
        emit(kind="returned")
        if is_judged:
            line |= self.judge(self.case, self.tuned, self.data, self.facts, answer)
        emit(kind="call", **line)
        return line


def rungs(tuned: Tuned, case: Any, scale: float) -> list[Any]:
    """The ladder; for searches of best subsets, whose rungs are seconds, up to the case's limit."""
    if case.task != "best_subset" or not isinstance(tuned.ladder[0], float):
        return list(tuned.ladder)
    if scale < 1:
        return [_SHORT_SEARCH]
    return [seconds for seconds in tuned.ladder if seconds <= case.search]


def warm_up(case: Case, tuned: Tuned, data: Data) -> float:
    """Seconds of a first call, with imports and compilation, on a small part of the data."""
    part = _small_part(case, data)
    start = time.perf_counter()
    tuned.fit(part, tuned.ladder[0])
    return time.perf_counter() - start


def _small_part(case: Case, data: Data) -> Data:
    """Some rows of the columns with the most entries, in the same kind of storage."""
    X: Any = data.X[: _PART[0]]
    y = data.y[: _PART[0]]
    entries = np.diff(X.indptr) if sp.issparse(X) else np.zeros(X.shape[1])
    X = X[:, np.sort(np.argsort(-entries, kind="stable")[: _PART[1]])]
    if not sp.issparse(X):
        X = np.asfortranarray(X) if data.X.flags.f_contiguous else np.ascontiguousarray(X)
    part = replace(data, X=X, y=y, choose=min(2, data.choose))
    if case.strengths:
        top = float(np.abs(X.T @ (y - y.mean() * data.fit_intercept)).max()) / len(y)
        steps = np.geomspace(1.0, 0.1, case.strengths) if case.strengths > 1 else [case.ratio]
        part = replace(part, alphas=tuple(top * share for share in steps))
    if data.known:
        part = replace(part, known=tuple(good_columns(X, y, part.choose).tolist()))
    return part


def measure(
    name: str,
    case: Any,
    tuned: Tuned,
    data: Data,
    facts: dict[str, Any],
    scale: float,
    below: float | None = None,
    judge: Judge = judge,
) -> None:
    """Find the rung, then repeat calls with it.

    The case has a task and a limit; ``judge`` says what is reported of an answer. If a process was
    ended because the tolerance ``below`` took too long, only looser ones are tried, from a decade
    away, and for half the time.
    """
    ladder = rungs(tuned, case, scale)
    first = tuned.first_rung(name)
    start = ladder.index(first) if first in ladder else 0
    patience = _LADDER * case.limit
    if below is not None:
        ladder = [rung for rung in ladder if rung > below]
        start, patience = max(0, len(ladder) - 2), patience / 2
    calls = _Calls(case, tuned, data, facts, judge)

    def reaches(index: int) -> bool | None:
        if calls.spent > patience:
            emit(kind="stopped")
            return None
        line = calls(ladder[index], True)
        if "quality" in line:
            return bool(line["quality"] <= CRITERION)
        return bool(line["proven"]) or len(ladder) == 1

    found = loosest(len(ladder), start, reaches)
    if found is None:
        return
    # The very first call on these data may have loaded something more: it does not stand alone.
    is_alone = sum(calls.counts.values()) == 1 and case.task != "best_subset"
    is_alone = is_alone and calls.spent < _SLOW
    spent = calls.spent / sum(calls.counts.values())
    count, calm = 0, 0
    while (is_alone and count == 0) or (spent < _SECONDS and (count < _CALLS or calm < 2)):
        line = calls(ladder[found], False)
        spent, count = spent + line["seconds"], count + 1
        calm += line["other"] is None or line["other"] < DISTURBED


def measure_certificate(tuned: Tuned, data: Data, facts: dict[str, Any]) -> None:
    """Seconds of fits and of their certificates."""
    rung = tuned.ladder[0]
    for _ in range(_CALLS):
        meter, start = LoadMeter(), time.perf_counter()
        model = tuned.fit(data, rung)
        fitted = time.perf_counter()
        gap = float(model.certificate_.relative_gap)
        proven = time.perf_counter()
        answer = Answer(model.coef_)
        other = meter.stop()
        emit(
            kind="certificate",
            fit=fitted - start,
            proof=proven - fitted,
            other=other,
            gap=gap,
            quality=suboptimality(data, answer, np.array(facts["bounds"])),
        )


def main(
    name: str,
    contestant: str,
    scale: str,
    cache: str,
    limit: str,
    folder: str = "",
    below: str = "",
) -> None:
    """Load the data and measure."""
    warnings.simplefilter("ignore")
    case = replace(all_cases(Path(folder) if folder else None)[0][name], limit=float(limit))
    peer = CONTESTANTS[contestant]
    data, facts = load(Path(cache), name, case, float(scale))
    tuned = peer.tuned[case.task]
    first = warm_up(case, tuned, data)
    emit(kind="ready", first=first, version=version(peer.package), numpy=np.__version__)
    if case.task == "certificate":
        measure_certificate(tuned, data, facts)
    else:
        measure(name, case, tuned, data, facts, float(scale), float(below) if below else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
