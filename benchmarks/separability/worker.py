"""One contestant on one case of the suite on separability, in a process of its own.

``python -m benchmarks.separability.worker CASE NAME SCALE CACHE LIMIT``. A contestant says whether
the rows are separable; its quality is 0 if that is true and infinite otherwise.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contestants import CONTESTANTS
from benchmarks.contestants.base import Tuned
from benchmarks.isolated import emit
from benchmarks.machine import version
from benchmarks.objective import Data
from benchmarks.separability.cases import CASES, Case
from benchmarks.separability.prepare import load
from benchmarks.sparse.worker import measure

__all__ = ["judge"]

_PART = 300


def judge(
    case: Case, tuned: Tuned, data: Data, facts: dict[str, Any], answer: Any
) -> dict[str, Any]:
    """What is reported of an answer."""
    return {"quality": 0.0 if answer is facts["separable"] else float("inf")}


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
    data, facts = load(Path(cache), name, float(scale))
    tuned = peer.tuned[case.task]
    start = time.perf_counter()
    tuned.fit(replace(data, X=data.X[:_PART], y=data.y[:_PART]), tuned.ladder[0])
    first = time.perf_counter() - start
    emit(kind="ready", first=first, version=version(peer.package), numpy=np.__version__)
    measure(name, case, tuned, data, facts, float(scale), None, judge)


if __name__ == "__main__":
    main(*sys.argv[1:])
