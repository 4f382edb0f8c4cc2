"""One contestant on one case of the Bayesian suite, in a process of its own.

``python -m benchmarks.bayes.worker CASE NAME SCALE CACHE LIMIT [FOLDER [BELOW]]``. A first call
(imports, compilation) on a small part of the rows is apart.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bayes.cases import CASES, Case
from benchmarks.bayes.objective import BayesData, suboptimality
from benchmarks.bayes.prepare import load
from benchmarks.contestants import CONTESTANTS
from benchmarks.contestants.base import Tuned
from benchmarks.isolated import emit
from benchmarks.machine import version
from benchmarks.sparse.worker import measure

__all__ = ["judge"]

# Rows of the first call: enough for every part of the code to be loaded.
_PART = 450


def judge(
    case: Case, tuned: Tuned, data: Any, facts: dict[str, Any], answer: Any
) -> dict[str, Any]:
    """What is reported of an answer."""
    assert isinstance(data, BayesData)
    return {"quality": suboptimality(data, answer, facts["best"])}


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
    case, peer = replace(CASES[name], limit=float(limit)), CONTESTANTS[contestant]
    data, facts = load(Path(cache), name, case, float(scale))
    tuned = peer.tuned[case.task]
    start = time.perf_counter()
    tuned.fit(replace(data, X=data.X[:_PART], y=data.y[:_PART]), tuned.ladder[0])
    first = time.perf_counter() - start
    emit(kind="ready", first=first, version=version(peer.package), numpy=np.__version__)
    tightest = float(below) if below else None
    measure(name, case, tuned, data, facts, float(scale), tightest, judge)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
