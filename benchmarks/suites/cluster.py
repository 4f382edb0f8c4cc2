"""Fits on a Dask cluster of this machine: two workers, beside a fit in memory by two threads.

L-BFGS of SciPy over gradients by Dask, and dask-ml (in an interpreter of its own, --peer-python),
go on until their objective is within the same distance of a proven lower bound. ``--scale 1`` is
a gigabyte of doubles in 100 columns.
"""

from __future__ import annotations

import json
import subprocess
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.machine import LoadMeter, environment, wait_until_quiet
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store
from trueline import LogisticRegression, Ridge

__all__ = ["TITLE", "run", "tables"]

TITLE = "fits on a cluster of two workers, beside memory, L-BFGS over Dask and dask-ml"
COLUMNS, BLOCKS, TURNS = 100, 16, 3
#: Relative distance from the optimum at which L-BFGS may stop; what ours proves is less.
ENOUGH = 1e-8
MOST = 1.3  # of the time in memory
_MAKE = """
import numpy as np
def block(number, rows, columns):
    random = np.random.default_rng(number)
    X = random.standard_normal((rows, columns))
    w = np.random.default_rng(0).standard_normal(columns) / np.sqrt(columns)
    return np.column_stack([X, X @ w + random.standard_normal(rows)])
"""
_PEER = (
    _MAKE
    + """
import json, sys, time, warnings
import dask, dask.array as da
warnings.simplefilter("ignore")
def main():
    from dask.distributed import Client, LocalCluster
    from dask_ml.linear_model import LinearRegression, LogisticRegression
    task, solver, rows, columns, blocks = *sys.argv[1:3], *map(int, sys.argv[3:])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as c, Client(c):
        parts = [da.from_delayed(dask.delayed(block)(i, rows, columns), (rows, columns + 1), float)
                 for i in range(1, blocks + 1)]
        both = da.concatenate(parts).persist()
        X, y = both[:, :-1].persist(), both[:, -1].persist()
        y = (y > 0).persist() if task == "logistic" else y
        dask.distributed.wait([X, y])
        kind = LogisticRegression if task == "logistic" else LinearRegression
        model = kind(penalty="l2", C=1.0, fit_intercept=False, solver=solver, tol=1e-8,
                     max_iter=200)
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        print(json.dumps([seconds, np.ravel(model.coef_).tolist()]))
if __name__ == "__main__":
    main()
"""
)
_MODELS = {
    "ridge": Ridge(alpha=1.0, fit_intercept=False),
    "logistic": LogisticRegression(C=1.0, fit_intercept=False),
}


def run(request: Request) -> Store:
    """Time the contestants in turns on rows that the workers hold."""
    from dask.distributed import Client, LocalCluster

    store = Store("cluster", request.folder)
    wanted = [task for task in _MODELS if request.wants(task, "memory", store.get(task, "memory"))]
    if not wanted:
        return store
    size = 1e6 if request.small else 1e9 * request.scale
    rows = max(int(size / 8 / COLUMNS / BLOCKS), 50)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):  # type: ignore[no-untyped-call]
        X, y = _data(rows)
        for task in wanted:
            wait_until_quiet(request.patience)
            target = (y > 0).persist() if task == "logistic" else y
            for name, row in _measured(task, X, target, request, rows).items():
                store.put(task, name, row)
                print(f"{task} / {name}: {seconds_text(row['seconds'])}", flush=True)
    return store


def _data(rows: int) -> tuple[Any, Any]:
    import dask
    import dask.array as da
    from dask.distributed import wait

    space: dict[str, Any] = {}
    exec(_MAKE, space)
    shape = (rows, COLUMNS + 1)
    make = dask.delayed(space["block"])
    parts = [da.from_delayed(make(i, rows, COLUMNS), shape, float) for i in range(1, BLOCKS + 1)]
    both = da.concatenate(parts)
    X = both[:, :-1].map_blocks(np.ascontiguousarray).persist()
    y = both[:, -1].persist()
    wait([X, y])
    return X, y


def _measured(task: str, X: Any, y: Any, request: Request, rows: int) -> dict[str, dict[str, Any]]:
    whole, target = X.compute(), y.compute()
    model = _MODELS[task]
    meter = LoadMeter()
    runs: dict[str, Callable[[], Any]] = {
        "memory": lambda: model.fit(whole, target).coef_.ravel().copy(),
        "cluster": lambda: model.fit(X, y).coef_.ravel().copy(),
    }
    found = {name: _timed(call) for name, call in runs.items()}  # once, to compile
    certificate = model.certificate_
    bound = certificate.objective - certificate.gap
    runs["L-BFGS over Dask"] = lambda: _descent(task, X, y, bound * (1 + ENOUGH))
    best: dict[str, tuple[float, Any]] = {}
    for _ in range(TURNS):
        for name, call in runs.items():
            found[name] = _timed(call)
            best[name] = min(best.get(name, (np.inf, None)), found[name], key=lambda pair: pair[0])
    if request.peer_python:
        for solver in ("lbfgs", "newton", "admm"):
            outcome = _peer(request.peer_python, task, solver, rows, request.limit)
            if outcome is not None:
                best[f"dask-ml {solver}"] = outcome
    signed = np.where(target, 1.0, -1.0) if task == "logistic" else target
    other = meter.stop()
    return {
        name: {
            "seconds": seconds,
            "suboptimality": float(_objective(task, whole @ w, signed, w) / bound - 1),
            "ratio": seconds / best["memory"][0],
            "gigabytes": whole.nbytes / 1e9,
            "other": other,
        }
        for name, (seconds, w) in best.items()
    }


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def _objective(task: str, z: Any, y: Any, w: Any) -> float:
    losses = np.logaddexp(0.0, -y * z) if task == "logistic" else 0.5 * (z - y) ** 2
    return float(losses.sum() + 0.5 * w @ w)


def _descent(task: str, X: Any, y: Any, enough: float) -> Any:
    """Coefficients by L-BFGS, value and gradient in one pass of Dask."""
    import dask
    import dask.array as da
    from scipy.optimize import minimize

    y = da.where(y, 1.0, -1.0) if task == "logistic" else y

    def value(w: Any) -> tuple[float, Any]:
        z = X @ w
        if task == "logistic":
            losses, u = da.logaddexp(0.0, -y * z), -y / (1 + da.exp(y * z))
        else:
            losses, u = 0.5 * (z - y) ** 2, z - y
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("ignore")
            total, gradient = dask.compute(losses.sum(), X.T @ u)
        return total + 0.5 * w @ w, gradient + w

    def stop(intermediate_result: Any) -> None:
        if intermediate_result.fun <= enough:
            raise StopIteration

    options = {"maxiter": 500, "ftol": 0.0, "gtol": 0.0}
    start = np.zeros(X.shape[1])
    return minimize(value, start, jac=True, method="L-BFGS-B", options=options, callback=stop).x


def _peer(python: str, task: str, solver: str, rows: int, limit: float) -> tuple[float, Any] | None:
    """The seconds and coefficients of dask-ml; None if it fails or takes too long."""
    command = [python, "-c", _PEER, task, solver, *map(str, (rows, COLUMNS, BLOCKS))]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), timeout=5 * limit
        )
        seconds, coef = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return None
    return float(seconds), np.array(coef)


def tables(store: Store) -> list[Table]:
    """Seconds, distance from the optimum, and the time as a multiple of that in memory."""
    body, verdicts = [], []
    for task, rows in store.rows.items():
        for name, row in rows.items():
            body.append(
                [
                    f"{task}, {row['gigabytes']:.2g} GB",
                    name,
                    seconds_text(row["seconds"]),
                    number(row["ratio"], ".2f"),
                    number(row["suboptimality"], ".1e"),
                    number(row.get("other"), ".2f"),
                ]
            )
        ratio = rows["cluster"]["ratio"]
        mark = "reached" if ratio <= MOST else "missed"
        verdicts.append(
            f"Target: {task} on two workers takes at most {MOST} times as long as in memory: "
            f"{ratio:.2f}, {mark}."
        )
    heads = ["fit", "by", "best of 3", "of memory", "above the bound", "other load"]
    return [Table("", heads, body, verdicts)]
