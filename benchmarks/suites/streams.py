"""Rows from Parquet files: fits beside the time that reading them takes, and their memory.

N rows of 50 columns in single precision, in files of 500,000 rows; N is 400,000 times ``--scale``
(``--scale 50`` is 20,000,000 rows, about 4 GB; ``--small`` is a tenth of N). Each contestant runs
in a process of its own, one after the other, several times in turn.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import LoadMeter, environment, wait_until_quiet
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["FITS", "run", "tables"]

TITLE = "fits of Parquet files beside the time of reading them"

_COLUMNS, _PER_FILE, _GROUP, _ROWS = 50, 500_000, 100_000, 400_000
_TURNS = 3
_PREPARE = """
import json, resource, sys, time
import numpy as np, pyarrow.dataset
import trueline
folder, memory = sys.argv[1:]
names = [f"x{j}" for j in range(50)]

def rows(target):
    return trueline.open(folder, target=target, columns=names, memory=memory)

def read():
    for group in pyarrow.dataset.dataset(folder).get_fragments():
        for batch in group.to_batches(columns=[*names, "y"]):
            batch.num_rows
    return 1

def partial_fit(model, target, **given):
    for group in pyarrow.dataset.dataset(folder).get_fragments():
        for batch in group.to_batches(columns=[*names, target]):
            columns = [batch.column(j).to_numpy() for j in range(51)]
            model.partial_fit(np.column_stack(columns[:50]), columns[50], **given)
    return 1

def fit(model, target):
    found = rows(target)
    model.fit(found)
    return found.passes

def path():
    found = rows("y")
    trueline.regularization_path(found)
    return found.passes

# Imports, which take as long as reading a million rows, are not timed.
trueline.open(folder, target="y", columns=names[:2], memory="1MB")
trueline.LassoCV, trueline.LogisticRegression, __import__("sklearn.linear_model")
first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
wall, cpu = time.perf_counter(), time.process_time()
passes = {call}
print(json.dumps(dict(
    wall=time.perf_counter() - wall, cpu=time.process_time() - cpu, passes=passes,
    memory=(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first) / 1024,
)))
"""
_READ = "pyarrow reads the files"
FITS = {
    _READ: "read()",
    "trueline LinearRegression": "fit(trueline.LinearRegression(), 'y')",
    "trueline Ridge": "fit(trueline.Ridge(), 'y')",
    "trueline LassoCV": "fit(trueline.LassoCV(), 'y')",
    "trueline regularization_path, 100 strengths": "path()",
    "trueline LogisticRegression": "fit(trueline.LogisticRegression(), 'kind')",
    "scikit-learn SGDRegressor.partial_fit, one pass": (
        "partial_fit(__import__('sklearn.linear_model').linear_model.SGDRegressor(), 'y')"
    ),
    "scikit-learn SGDClassifier.partial_fit, one pass": (
        "partial_fit(__import__('sklearn.linear_model').linear_model.SGDClassifier("
        "loss='log_loss'), 'kind', classes=[0, 1])"
    ),
}


def run(request: Request) -> Store:
    """Write the files, and time each in fresh processes, taking turns."""
    store = Store("streams", request.folder)
    rows = int(_ROWS * request.scale * (0.1 if request.small else 1.0))
    group = f"{rows:,} x {_COLUMNS}"
    wanted = [name for name in FITS if request.wants(group, name, store.get(group, name))]
    if not wanted:
        return store
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        wait_until_quiet(request.patience)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in wanted}
        for _ in range(1 if request.small else _TURNS):
            for name in wanted:
                meter = LoadMeter()
                found[name].append(once(FITS[name], folder) | {"other": meter.stop() or 0.0})
    for name, lines in found.items():
        row = {key: statistics.median(line[key] for line in lines) for key in lines[0]}
        row["memory"] = max(line["memory"] for line in lines)
        store.put(group, name, row)
        print(f"{group} / {name}: {seconds_text(row['wall'])}", flush=True)
    return store


def write(folder: Path, rows: int) -> None:
    """Files of a target that depends on all columns, and its sign."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    w = random.standard_normal(_COLUMNS)
    for number_, start in enumerate(range(0, rows, _PER_FILE)):
        m = min(_PER_FILE, rows - start)
        X = random.standard_normal((m, _COLUMNS), dtype=np.float32)
        y = (X @ w + random.standard_normal(m)).astype(np.float32)
        columns = {f"x{j}": X[:, j] for j in range(_COLUMNS)}
        table = pa.table({**columns, "y": y, "kind": (y > 0).astype(np.int8)})
        pq.write_table(table, folder / f"{number_:04d}.parquet", row_group_size=_GROUP)


def once(call: str, folder: str, memory: str = "1GB") -> dict[str, Any]:
    """Seconds, passes and memory of a call in a fresh process."""
    command = [sys.executable, "-c", _PREPARE.replace("{call}", call), folder, memory]
    result = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    return dict(json.loads(result.stdout.splitlines()[-1]))


def tables(store: Store) -> list[Table]:
    """Seconds, in units of one reading, of each fit."""
    out = []
    for group, rows in store.rows.items():
        unit = rows.get(_READ)
        body = [
            [
                name,
                f"{row['passes']:.0f}",
                seconds_text(row["wall"]),
                number(row["wall"] / unit["wall"] if unit else None, ".2f"),
                number(row["cpu"] / unit["cpu"] if unit else None, ".2f"),
                number(row["memory"], ".0f"),
                number(row["other"], ".2f"),
            ]
            for name, row in rows.items()
        ]
        heads = [group, "passes", "median of 3", "/ reading", "processor / reading"]
        heads += ["MB at most", "other load"]
        out.append(Table("", heads, body, ["The budget of the fits is 1 GB."]))
    return out
