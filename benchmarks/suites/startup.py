"""What people wait for before the first answer: imports, and the first fit of a session."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.machine import LoadMeter, environment, wait_until_quiet
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store
from trueline.cli.warming import estimators

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
#: Prints the processor seconds of the first fit of a class, on 300 x 8, imports left out.
_FIRST_FIT = """
import sys, time, warnings
import numpy as np, scipy.linalg, scipy.optimize, sklearn.linear_model
import trueline
from trueline.cli.warming import targets
warnings.simplefilter("ignore")
X = np.random.default_rng(0).standard_normal((300, 8))
s = X[:, 0] + 0.5 * X[:, 1] + 0.7 * np.random.default_rng(1).standard_normal(300)
model = getattr(trueline, sys.argv[1])()
numbers, columns = targets(model, s)
y = columns if sys.argv[1].startswith("MultiTask") else numbers
start = time.process_time()
model.fit(X, y)
print(time.process_time() - start)
"""
_PROCESSES = 5
ADDED_LIMIT, FIRST_FIT_LIMIT, EVERY_LIMIT = 0.5, 0.2, 0.5
_EVERY = "first fit on 300 x 8"


def run(request: Request) -> Store:
    """Time each in fresh processes, taking turns so that a disturbance hits everyone."""
    store = Store("startup", request.folder)
    _run_estimators(request, store)
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


def _run_estimators(request: Request, store: Store) -> None:
    """First fits of everything public: on a fresh machine, and in the next session on it."""
    for Model in estimators():
        name = Model.__name__
        if not request.wants(_EVERY, name, store.get(_EVERY, name)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = {way: _first_fit(name, folder) for way in ("cold", "again")}
        if None not in row.values():  # features of tables, models around models
            store.put(_EVERY, name, row)
            print(f"{_EVERY} / {name}: {seconds_text(row['cold'])}", flush=True)


def _first_fit(name: str, folder: str) -> float | None:
    variables = environment() | {"TRUELINE_COMPILE": "auto", "TRUELINE_CACHE_DIR": folder}
    command = [sys.executable, "-c", _FIRST_FIT, name]
    result = subprocess.run(command, capture_output=True, text=True, env=variables)
    return float(result.stdout.split()[-1]) if result.returncode == 0 else None


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
    every = store.rows.get(_EVERY, {})
    ways = ("cold", "again")
    body = [[name, *(seconds_text(row[way]) for way in ways)] for name, row in every.items()]
    heads = [_EVERY, "nothing on disk", "in the next session"]
    late = [name for name, row in every.items() if row["cold"] > EVERY_LIMIT]
    verdict = f"Target: at most {EVERY_LIMIT} s of the processor with nothing on disk. Missed by: "
    return [*out, Table("", heads, body, [f"{verdict}{', '.join(late) or 'none'}."])]


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
