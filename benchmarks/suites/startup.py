"""What people wait for before the first answer: imports, and the first fit of a session."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.machine import LoadMeter, environment, wait_until_quiet
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["IMPORTS", "run", "tables"]

TITLE = "imports and the first fit, in fresh processes"

#: Name -> (what is there already, what is timed).
IMPORTS = {
    "numpy": ("pass", "import numpy"),
    "sklearn.base": ("pass", "import sklearn.base"),
    "sklearn.linear_model": ("pass", "import sklearn.linear_model"),
    "trueline": ("pass", "import trueline"),
    "from trueline import LinearRegression": ("pass", "from trueline import LinearRegression"),
    "trueline, after sklearn.base": ("import sklearn.base", "import trueline"),
    "from trueline import LinearRegression, after sklearn.base": (
        "import sklearn.base",
        "from trueline import LinearRegression",
    ),
    "sklearn.linear_model, after sklearn.base": (
        "import sklearn.base",
        "import sklearn.linear_model",
    ),
}
_DATA = (
    "import numpy as np; random = np.random.default_rng(0); "
    "X = random.standard_normal((150, 4)); y = X @ np.arange(4.0) + random.standard_normal(150)"
)
FITS = {
    "trueline LinearRegression": (
        f"{_DATA}; from trueline import LinearRegression as Model",
        "Model().fit(X, y)",
    ),
    "trueline Ridge": (f"{_DATA}; from trueline import Ridge as Model", "Model().fit(X, y)"),
    "trueline RidgeCV": (f"{_DATA}; from trueline import RidgeCV as Model", "Model().fit(X, y)"),
    "scikit-learn LinearRegression": (
        f"{_DATA}; from sklearn.linear_model import LinearRegression as Model",
        "Model().fit(X, y)",
    ),
    "scikit-learn RidgeCV": (
        f"{_DATA}; from sklearn.linear_model import RidgeCV as Model",
        "Model().fit(X, y)",
    ),
}
GROUPS = {"import": IMPORTS, "first fit": FITS}
_PROCESSES = 5
ADDED_LIMIT, FIRST_FIT_LIMIT = 0.5, 0.2


def run(request: Request) -> Store:
    """Time each in fresh processes, taking turns so that a disturbance hits everyone."""
    store = Store("startup", request.folder)
    wanted = [
        (group, name, code)
        for group, entries in GROUPS.items()
        for name, code in entries.items()
        if request.wants(group, name, store.get(group, name))
    ]
    if not wanted:
        return store
    wait_until_quiet(request.patience)
    for _, _, code in wanted:
        _once(*code)  # fills the caches of files and of compiled kernels
    times: dict[str, list[tuple[float, float]]] = {name: [] for _, name, _ in wanted}
    others: dict[str, list[float]] = {name: [] for _, name, _ in wanted}
    for _ in range(_PROCESSES):
        for _, name, code in wanted:
            meter = LoadMeter()
            times[name].append(_once(*code))
            others[name].append(meter.stop() or 0.0)
    for group, name, _ in wanted:
        inside, whole = (statistics.median(column) for column in zip(*times[name], strict=True))
        row = {"seconds": inside, "process": whole, "other": statistics.median(others[name])}
        store.put(group, name, row)
        print(f"{group} / {name}: {seconds_text(inside)}", flush=True)
    return store


def _once(before: str, timed: str) -> tuple[float, float]:
    """Seconds of the statement inside a fresh process, and of the whole process."""
    code = (
        f"{before}\nimport time\nstart = time.perf_counter()\n{timed}\n"
        "print(time.perf_counter() - start)"
    )
    start = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    return float(result.stdout.split()[-1]), time.perf_counter() - start


def tables(store: Store) -> list[Table]:
    """Imports, first fits, and whether the targets are reached."""
    out = []
    for group in GROUPS:
        rows = store.rows.get(group, {})
        body = [
            [
                name,
                seconds_text(row["seconds"]),
                seconds_text(row["process"]),
                number(row.get("other"), ".2f"),
            ]
            for name, row in rows.items()
        ]
        heads = [group, "median of 5", "whole process", "other load"]
        out.append(Table("", heads, body, _verdicts(group, rows)))
    return out


def _verdicts(group: str, rows: dict[str, dict[str, Any]]) -> list[str]:
    if group == "import":
        added = rows.get("from trueline import LinearRegression, after sklearn.base")
        text = (
            "Target: `from trueline import LinearRegression` adds at most {:.1f} s to sklearn.base"
        )
        return [f"{text.format(ADDED_LIMIT)}: {_verdict(added, ADDED_LIMIT)}."] if added else []
    return [
        f"Target: first fit below {FIRST_FIT_LIMIT} s: {name} {_verdict(row, FIRST_FIT_LIMIT)}."
        for name, row in rows.items()
        if name.startswith("trueline")
    ]


def _verdict(row: dict[str, Any], limit: float) -> str:
    mark = "reached" if row["seconds"] <= limit else "missed"
    return f"{seconds_text(row['seconds'])}, {mark}"
