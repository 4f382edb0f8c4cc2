"""Problems on disk, with the verdict that a verified certificate proves.

``python -m benchmarks.separability.prepare CASE SCALE CACHE`` makes what a case needs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.cache import key, stored_rows
from benchmarks.isolated import emit
from benchmarks.objective import Data
from benchmarks.separability import cases
from benchmarks.separability.cases import CASES, PROBLEMS

__all__ = ["load", "prepare"]


def _stem(name: str, scale: float) -> str:
    return key(f"separability-{name}", scale, (cases,))


def load(cache: Path, name: str, scale: float) -> tuple[Data, dict[str, Any]]:
    """The data of a prepared case, and what its answers are compared with."""
    stem = _stem(name, scale)
    X, y = stored_rows(cache, stem)
    facts = json.loads((cache / f"{stem}.json").read_text())
    return Data(X, y, fit_intercept=True), facts


def prepare(cache: Path, name: str, scale: float) -> dict[str, Any]:
    """Make what a case needs, if it is not there."""
    from trueline import separability

    cache.mkdir(parents=True, exist_ok=True)
    stem = _stem(name, scale)
    path = cache / f"{stem}.json"
    X, y = stored_rows(cache, stem, lambda: PROBLEMS[CASES[name].problem](scale))
    if path.exists():
        return dict(json.loads(path.read_text()))
    answer = separability(X, y)
    answer.verify(X, y).raise_if_false()
    facts = {"shape": X.shape, "separable": answer.is_separable}
    path.write_text(json.dumps(facts))
    return facts


def main(name: str, scale: str, cache: str, folder: str = "") -> None:
    """Prepare one case."""
    facts = prepare(Path(cache), name, float(scale))
    emit(kind="prepared", shape=facts["shape"], separable=facts["separable"])


if __name__ == "__main__":
    main(*sys.argv[1:])
