"""Linear classifiers on texts of several kinds, beside scikit-learn and LIBLINEAR.

Each pair is measured twice. With default parameters, one fit against another. And at equal
accuracy: each library with the loosest tolerance of a ladder that gets within 1e-6 of the least
objective known. Times are those of the processor, in one process, the libraries taking turns;
LIBLINEAR's are without the conversion of the rows. Set NUMBA_NUM_THREADS=1 and
OPENBLAS_NUM_THREADS=1 to compare arithmetic only.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import trueline
from benchmarks.field.objective import objective
from benchmarks.machine import LoadMeter
from benchmarks.problems import texts
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["CASES", "MODELS", "run", "tables"]

TITLE = "linear classifiers on texts of many kinds, beside scikit-learn and LIBLINEAR"

#: What is generated, by name; the words of `texts`.
CASES: dict[str, dict[str, Any]] = {
    "notes": {"n": 8000, "d": 20_000, "classes": 2, "zipf": 1.0, "length": 12, "values": "tfidf"},
    "messages": {
        **{"n": 6000, "d": 8000, "classes": 2, "zipf": 1.1, "length": 8, "values": "counts"},
        **{"copies": 0.4, "is_balanced": False},
    },
    "reviews": {
        "n": 4000,
        "d": 40_000,
        "classes": 2,
        "zipf": 1.1,
        "length": 150,
        "values": "tfidf",
    },
    "articles": {
        **{"n": 3000, "d": 30_000, "classes": 2, "zipf": 0.9, "length": 300, "values": "binary"},
        "is_balanced": False,
    },
    "news": {"n": 5000, "d": 60_000, "classes": 20, "zipf": 1.0, "length": 80, "values": "tfidf"},
    "tags": {
        **{"n": 6000, "d": 10_000, "classes": 52, "zipf": 1.2, "length": 30, "values": "tfidf"},
        **{"copies": 0.2, "is_balanced": False},
    },
    "topics": {"n": 3000, "d": 15_000, "classes": 8, "zipf": 1.3, "length": 60, "values": "counts"},
    "headlines": {
        **{"n": 9000, "d": 30_000, "classes": 5, "zipf": 0.8, "length": 10, "values": "binary"},
        "copies": 0.1,
    },
}
_SMALL = {"n": 300, "d": 1000, "length": 10}

_LADDER = tuple(10.0**-power for power in range(1, 11))
_CLOSE = 1e-6
# Seconds after which no tighter tolerance is tried, and after which fits are not repeated.
_LIMIT, _ENOUGH, _REPEATS = 10.0, 1.0, 5


@dataclass(frozen=True)
class _Model:
    """A class of both libraries; LIBLINEAR's numbers of the solvers that do the same."""

    home: str
    kind: str
    parameters: dict[str, Any]
    theirs: dict[str, Any] = field(default_factory=dict)
    liblinear: tuple[int, ...] = ()
    takes: int = 1000


_LINEAR, _SVM = "sklearn.linear_model", "sklearn.svm"
_NO_LEVEL = {"fit_intercept": False}

_ONLY_LIBLINEAR = {"solver": "liblinear"}

MODELS = {
    "LogisticRegression": _Model(_LINEAR, "LogisticRegression", {}),
    "LogisticRegression, no intercept": _Model(
        _LINEAR, "LogisticRegression", _NO_LEVEL, liblinear=(0, 7), takes=2
    ),
    "LogisticRegression, L1, no intercept": _Model(
        *(_LINEAR, "LogisticRegression", {"l1_ratio": 1.0, **_NO_LEVEL}, _ONLY_LIBLINEAR),
        liblinear=(6,),
        takes=2,
    ),
    "LinearSVC": _Model(_SVM, "LinearSVC", {}, liblinear=(1, 2)),
    "LinearSVC, hinge": _Model(_SVM, "LinearSVC", {"loss": "hinge"}, liblinear=(3,)),
    "LinearSVC, L1": _Model(_SVM, "LinearSVC", {"penalty": "l1", "dual": False}, liblinear=(5,)),
    "RidgeClassifier": _Model(_LINEAR, "RidgeClassifier", {}),
    "Perceptron": _Model(_LINEAR, "Perceptron", {}),
}


@dataclass
class _Liblinear:
    """A solver of LIBLINEAR, on rows in its own format, with the parameters of a model."""

    model: Any
    rows: Any
    solver: int
    tol: float

    def fit(self, X: Any, y: Any) -> Any:
        """Train on the rows; a model of scikit-learn with the coefficients found."""
        from liblinear.liblinearutil import train

        found = train(self.rows, f"-s {self.solver} -c 1 -e {self.tol} -q")
        model, k = self.model, 1 if found.nr_class == 2 else found.nr_class
        W = np.ctypeslib.as_array(found.w, (found.nr_feature, k)).T.copy()
        model.classes_ = np.unique(y)
        order = np.argsort(found.get_labels())
        W = W[order] if k > 1 else W * (1 if order[0] else -1)
        model.coef_ = W[:, : X.shape[1]]
        model.intercept_ = W[:, X.shape[1] :].sum(axis=1)
        return model


def run(request: Request) -> Store:
    """Measure what is asked for, here: nothing is isolated."""
    store = Store("texts", request.folder)
    for case, words in CASES.items():
        wanted = [who for who, model in MODELS.items() if words["classes"] <= model.takes]
        wanted = [who for who in wanted if request.wants(case, who, store.get(case, who))]
        if not wanted:
            continue
        X, y = texts(**{**words, **(_SMALL if request.small else {})}, seed=1)
        for who in wanted:
            meter = LoadMeter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = measure(MODELS[who], X, y)
            store.put(case, who, {**row, "other": meter.stop(), "shape": _shape(X, y)})
            print(f"{case} / {who}: {', '.join(_cells(row))}", flush=True)
    return store


def _shape(X: Any, y: Any) -> str:
    n, d = X.shape
    return f"{n:,} x {d:,}, {X.nnz / n:.0f} words, {len(np.unique(y))} classes"


def measure(model: _Model, X: Any, y: Any) -> dict[str, Any]:
    """Seconds of all libraries, with default parameters and at equal accuracy."""

    def ours(**more: Any) -> Any:
        return getattr(trueline, model.kind)(**model.parameters, **more)

    def theirs(**more: Any) -> Any:
        kind = getattr(importlib.import_module(model.home), model.kind)
        return kind(**model.parameters, **model.theirs, **more)

    default = _times({"ours": ours(), "theirs": theirs()}, X, y)
    if model.kind == "Perceptron":  # it minimises nothing
        return {"default": default}
    tools: dict[str, Callable[[float], Any]] = {
        "ours": lambda tol: ours(tol=tol),
        "theirs": lambda tol: theirs(tol=tol),
    }
    if model.liblinear:
        from liblinear.liblinearutil import problem

        # Its own constant column is lost where rows are a matrix of SciPy.
        columns = [X, np.ones((X.shape[0], 1))] if ours().fit_intercept else [X]
        rows = problem(y.astype(float), sp.hstack(columns, "csr"))
        for solver in model.liblinear:
            tools[f"LIBLINEAR {solver}"] = lambda tol, solver=solver: _Liblinear(
                theirs(), rows, solver, tol
            )
    least = objective(ours(tol=1e-9).fit(X, y), X, y)
    rungs = {who: _loosest(make, X, y, least) for who, make in tools.items()}
    found = {who: tools[who](tol) for who, tol in rungs.items() if tol is not None}
    return {"default": default, "rungs": rungs, "equal": _times(found, X, y)}


def _loosest(make: Callable[[float], Any], X: Any, y: Any, least: float) -> float | None:
    """The first tolerance that is close enough; None if there is none, or a fit takes too long."""
    for tol in _LADDER:
        start = time.process_time()
        value = objective(make(tol).fit(X, y), X, y)
        if value <= (1 + _CLOSE) * least:
            return tol
        if time.process_time() - start > _LIMIT:
            break
    return None


def _times(models: dict[str, Any], X: Any, y: Any) -> dict[str, float]:
    """The best of several fits of each, taking turns."""
    times: dict[str, list[float]] = {who: [] for who in models}
    for count in range(_REPEATS):
        for who, model in models.items():
            start = time.process_time()
            model.fit(X, y)
            times[who].append(time.process_time() - start)
        if count and sum(map(sum, times.values())) > _ENOUGH:
            break
    return {who: min(own) for who, own in times.items()}


def _ratios(row: dict[str, Any]) -> tuple[float, float]:
    """What another fit takes, over ours: with default parameters; the fastest at equal accuracy."""
    default, equal = row["default"], row.get("equal", {})
    others = [equal[who] for who in equal if who != "ours"]
    fastest = min(others, default=float("nan")) / equal.get("ours", float("nan"))
    return default["theirs"] / default["ours"], fastest


def _cells(row: dict[str, Any]) -> list[str]:
    default, equal = row["default"], row.get("equal", {})
    others = [who for who in equal if who != "ours"]
    fastest = min(others, key=lambda who: equal[who], default="")
    first, second = _ratios(row)
    cells = [seconds_text(default["ours"]), number(first, ".2f"), seconds_text(equal.get("ours"))]
    return [*cells, fastest.replace("theirs", "scikit-learn"), number(second, ".2f")]


def tables(store: Store) -> list[Table]:
    """A row for each pair, and the ratios of all together."""
    pairs = [
        (f"{who} / {case}", row) for case, rows in store.rows.items() for who, row in rows.items()
    ]
    body = [[label, row["shape"], *_cells(row)] for label, row in sorted(pairs)]
    notes = []
    for number_of, text in enumerate(("With default parameters", "At equal accuracy")):
        ratios = [_ratios(row)[number_of] for _, row in pairs]
        known = np.array([ratio for ratio in ratios if ratio == ratio])
        if len(known):
            mean = np.exp(np.log(known).mean())
            notes.append(f"{text}: {mean:.2f} in the geometric mean, {known.min():.2f} at least.")
    heads = ["model / texts", "shape", "ours, by default", "scikit-learn's time / ours"]
    heads += ["ours, equal accuracy", "fastest other", "its time / ours"]
    return [Table("", heads, body, notes)] if body else []
