"""What each engine is worth: the time of a fit without it over the time with it.

A model is fitted to data of several kinds with every solver there is. Then each solver that took
part is taken out of the registry, and the planner has to do with those that are left. Work that
problems of a set share is taken out in the same way: the same solver then solves them one by one.
An engine that is worth less than 1.5 on everything that users meet should be deleted.
"""

from __future__ import annotations

import functools
import io
import math
import sys
import time
import tokenize
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.isolated import emit, run_module
from benchmarks.machine import LoadMeter, wait_until_quiet
from benchmarks.problems import clouds, regression, text_classes
from benchmarks.report import Table, number, seconds_text
from benchmarks.selection import Request
from benchmarks.sparse.problems import correlated
from benchmarks.store import Store

__all__ = ["CASES", "judge", "measure", "run", "tables"]

TITLE = "what each engine is worth: fits with it and without it"
WORTH = 1.5
_LIMIT = 20.0
_REPEATS, _ENOUGH = 5, 1.0
_METHODS = ("solve", "solve_set", "solve_paths", "solve_from_moments")
_SHARING, _SHARED = ("solve_set", "solve_paths", "set_cost"), ", shared"

Rows = tuple[Any, Any]


# --- the data and the models --------------------------------------------------------------------


def _tall(small: bool) -> Rows:
    data = regression(*((1000, 10) if small else (20_000, 60)), fit_intercept=True)
    return data.X, data.y


def _wide(small: bool) -> Rows:
    return correlated(*((40, 100, 5) if small else (200, 3000, 20)))


def _table(small: bool) -> Rows:
    """Numbers in all units beside indicator columns of categories, as tables become."""
    random = np.random.default_rng(3)
    n = 400 if small else 6000
    numbers = random.lognormal(0.0, 1.0, (n, 8)) * np.geomspace(1e-3, 1e3, 8)
    groups = [np.eye(size)[random.integers(0, size, n)] for size in (3, 5, 12, 20)]
    X = np.hstack([numbers, *groups])
    signal = (X / X.std(axis=0)) @ random.standard_normal(X.shape[1])
    return X, signal + signal.std() * random.standard_normal(n)


def _text(small: bool) -> Rows:
    X, y = text_classes(*((300, 500, 20) if small else (10_000, 20_000, 60)))
    return X, y + 0.3 * np.random.default_rng(0).standard_normal(len(y))


def _flowers(small: bool) -> Rows:
    data = regression(150, 4, fit_intercept=True, seed=5)
    return data.X, data.y


def _centres(small: bool) -> Rows:
    return clouds(*((300, 5, 3) if small else (8000, 40, 12)))


DATA: dict[str, Callable[[bool], Rows]] = {
    "tall": _tall,
    "wide": _wide,
    "table": _table,
    "text": _text,
    "tiny": _flowers,
    "12 classes": _centres,
}
_NUMBERS, _CLASSES = ("tall", "wide", "table", "text", "tiny"), ("tall", "wide", "table", "text")

#: Name -> (class, parameters, kind of target, kinds of data). A strength of None is a tenth of the
#: one from which on all coefficients are zero.
MODELS: dict[str, tuple[str, dict[str, Any], str, tuple[str, ...]]] = {
    "least squares": ("LinearRegression", {}, "number", _NUMBERS),
    "least squares, w >= 0": ("LinearRegression", {"positive": True}, "number", _NUMBERS[:3]),
    "ridge": ("Ridge", {}, "number", _NUMBERS),
    "ridge by cross-validation": ("RidgeCV", {"cv": 5}, "number", ("tall", "wide", "tiny")),
    "lasso": ("Lasso", {"alpha": None}, "number", _NUMBERS),
    "lasso, w >= 0": ("Lasso", {"alpha": None, "positive": True}, "number", _NUMBERS[:2]),
    "elastic net": ("ElasticNet", {"alpha": None}, "number", _NUMBERS),
    "lasso by cross-validation": ("LassoCV", {}, "number", ("tall", "wide", "table", "tiny")),
    "lasso of several targets": ("MultiTaskLasso", {"alpha": None}, "numbers", _NUMBERS[:3]),
    "group lasso": ("GroupLasso", {"alpha": None}, "number", _NUMBERS[:3]),
    "Huber": ("HuberRegressor", {}, "number", ("tall", "table", "tiny")),
    "absolute error": ("LeastAbsoluteDeviations", {}, "number", ("tall", "table", "tiny")),
    "quantile": ("QuantileRegressor", {"alpha": 0.0}, "number", ("tall", "table", "tiny")),
    "quantile, L1": ("QuantileRegressor", {"alpha": 1e-3}, "number", ("tall", "wide", "table")),
    "maximum error": ("ChebyshevRegressor", {}, "number", ("tall", "table", "tiny")),
    "SVR": ("LinearSVR", {"epsilon": 0.1}, "number", _CLASSES),
    "Poisson": ("PoissonRegressor", {"alpha": 1e-3}, "count", ("tall", "wide", "text", "tiny")),
    "gamma": ("GammaRegressor", {"alpha": 1e-3}, "positive", ("tall", "tiny")),
    "logistic, L2": ("LogisticRegression", {}, "sign", (*_CLASSES, "tiny")),
    "logistic, none": ("LogisticRegression", {"C": math.inf}, "sign", ("tall", "table")),
    "logistic, L1": ("LogisticRegression", {"l1_ratio": 1.0, "C": 0.1}, "sign", _CLASSES),
    "logistic, elastic net": ("LogisticRegression", {"l1_ratio": 0.5, "C": 0.1}, "sign", _CLASSES),
    "logistic by cross-validation": ("LogisticRegressionCV", {}, "sign", ("tall", "wide", "text")),
    "softmax, L2": ("LogisticRegression", {}, "class", ("12 classes", "wide", "text")),
    "softmax, L1": ("LogisticRegression", {"l1_ratio": 1.0, "C": 0.1}, "class", ("12 classes",)),
    "squared hinge": ("LinearSVC", {}, "sign", _CLASSES),
    "squared hinge, L1": ("LinearSVC", {"penalty": "l1", "dual": False}, "sign", _CLASSES),
    "squared hinge, classes": ("LinearSVC", {}, "class", ("12 classes", "wide", "text")),
    "hinge": ("LinearSVC", {"loss": "hinge"}, "sign", _CLASSES),
    "hinge, classes": ("LinearSVC", {"loss": "hinge"}, "class", ("12 classes", "text")),
    "hinge of all classes": (
        "LinearSVC",
        {"multi_class": "crammer_singer"},
        "class",
        ("12 classes", "text"),
    ),
    "one against one": ("OneVsOneClassifier", {}, "class", ("12 classes", "wide", "text")),
}
CASES = {
    f"{model} / {data}": (model, data) for model, (*_, kinds) in MODELS.items() for data in kinds
}


def _target(kind: str, y: Any) -> Any:
    """The target of a kind, from the numbers (or classes) that come with the data."""
    if kind == "class":
        is_class = np.issubdtype(y.dtype, np.integer)
        return y if is_class else np.digitize(y, np.quantile(y, np.linspace(0, 1, 7)[1:-1]))
    score = (y - y.mean()) / y.std()
    if kind == "numbers":
        noise = np.random.default_rng(1).standard_normal((len(y), 5))
        return score[:, None] * np.arange(1.0, 6.0) + noise
    random = np.random.default_rng(1)
    made: dict[str, Callable[[], Any]] = {
        "number": lambda: y,
        "sign": lambda: np.where(y > np.median(y), 1, -1),
        "count": lambda: random.poisson(np.exp(0.5 * score)).astype(float),
        "positive": lambda: random.gamma(2.0, np.exp(0.5 * score)),
    }
    return made[kind]()


def _estimator(model: str, X: Any, y: Any) -> Any:
    """The model with its parameters; strengths that depend on the data are filled in."""
    import trueline

    name, parameters, _, _ = MODELS[model]
    if parameters.get("alpha", 0) is None:
        pull = X.T @ (y - y.mean(axis=0))
        size = np.abs(pull) if pull.ndim == 1 else np.linalg.norm(pull, axis=1)
        parameters = {**parameters, "alpha": 0.1 * float(size.max()) / len(y)}
    if name == "GroupLasso":
        parameters = {**parameters, "groups": np.arange(X.shape[1]) // 5}
    if name == "OneVsOneClassifier":
        return trueline.OneVsOneClassifier(trueline.LogisticRegression())
    return getattr(trueline, name)(**parameters)


# --- one case, in a process of its own ----------------------------------------------------------


def measure(case: str, done: tuple[str, ...] = (), small: bool = False) -> None:
    """Fit with everything, then without each engine that took part; report each."""
    model, data = CASES[case]
    X, y = DATA[data](small)
    y = _target(MODELS[model][2], y)
    estimator = _estimator(model, X, y)
    seconds, took_part, is_proven, other = _timed(estimator, X, y)
    emit(kind="all", seconds=seconds, engines=took_part, proven=is_proven, other=other)
    for label in took_part:
        if label in done:
            continue
        emit(kind="start", engine=label)
        name = label.removesuffix(_SHARED)
        with _without(name) if label == name else _alone(name):
            emit(kind="without", engine=label, **_outcome(estimator, X, y))


def _outcome(estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    """What happens to a fit when an engine is missing."""
    from trueline.errors import PairingError

    try:
        seconds, took_part, is_proven, other = _timed(estimator, X, y)
    except PairingError:
        return {"status": "nothing else can"}
    status = "solved" if is_proven else "not proven"
    return {"seconds": seconds, "status": status, "instead": took_part, "other": other}


def _timed(estimator: Any, X: Any, y: Any) -> tuple[float, list[str], bool, float]:
    """Best time of a few fits, the solvers that were called, whether nothing was warned of."""
    from sklearn.base import clone

    times, others, spent = [], [], 0.0
    # The first fit compiles and loads what is needed.
    with _recorded() as names, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(estimator).fit(X, y)
    is_proven = not any("onverge" in type(each.message).__name__ for each in caught)
    while not times or (len(times) < _REPEATS and spent < _ENOUGH):
        meter, start = LoadMeter(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(estimator).fit(X, y)
        times.append(time.perf_counter() - start)
        others.append(meter.stop() or 0.0)
        spent += times[-1]
    return min(times), list(dict.fromkeys(names)), is_proven, min(others)


@contextmanager
def _recorded() -> Iterator[list[str]]:
    """The names of the solvers that are called from outside a solver, and of work they share."""
    from trueline.solvers.base import Solver
    from trueline.solvers.registry import SOLVERS

    names: list[str] = []
    depth = [0]

    def recording(own: Any) -> Any:
        @functools.wraps(own)
        def call(self: Any, *args: Any, **named: Any) -> Any:
            depth[0] += 1
            try:
                found = own(self, *args, **named)
            finally:
                depth[0] -= 1
            if depth[0] == 0 and found is not None and SOLVERS.get(self.name) is self:
                names.append(self.name)
                if own.__name__ in _SHARING and own is not vars(Solver).get(own.__name__):
                    names.append(self.name + _SHARED)
            return found

        return call

    with _patched(
        {
            (kind, method): recording(vars(kind)[method])
            for kind in _classes()
            for method in _METHODS
            if method in vars(kind)
        }
    ):
        yield names


def _classes() -> list[type]:
    from trueline.solvers.registry import SOLVERS

    return list(
        dict.fromkeys(
            kind
            for solver in SOLVERS.values()
            for kind in type(solver).__mro__
            if kind.__module__.startswith("trueline.")
        )
    )


@contextmanager
def _patched(changes: dict[tuple[type, str], Any]) -> Iterator[None]:
    """Other attributes of classes for a while."""
    before = {key: vars(key[0]).get(key[1]) for key in changes}
    for (kind, name), value in changes.items():
        setattr(kind, name, value)
    try:
        yield
    finally:
        for (kind, name), value in before.items():
            if value is None:
                delattr(kind, name)
            else:
                setattr(kind, name, value)


@contextmanager
def _without(name: str) -> Iterator[None]:
    """A registry in which one solver is missing."""
    from trueline import planner
    from trueline.solvers.registry import SOLVERS

    order = list(SOLVERS.items())
    del SOLVERS[name]
    planner.forget_plans()
    try:
        yield
    finally:
        SOLVERS.clear()
        SOLVERS.update(order)
        planner.forget_plans()


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """The same solver, which takes the problems of a set one by one."""
    from trueline import planner
    from trueline.solvers.base import Solver
    from trueline.solvers.registry import SOLVERS

    kind = type(SOLVERS[name])
    planner.forget_plans()
    with _patched({(kind, method): getattr(Solver, method) for method in _SHARING}):
        yield
    planner.forget_plans()


# --- all cases ----------------------------------------------------------------------------------


def run(request: Request) -> Store:
    """Measure what is asked for, one process per case."""
    store = Store("engines", request.folder)
    for name in CASES:
        if not request.wants("cases", name, store.get("cases", name)):
            continue
        wait_until_quiet(request.patience)
        row = judge(*_all_engines(name, request))
        store.put("cases", name, row)
        told = ", ".join(
            f"{key} {number(one.get('worth'), '.2f')}" for key, one in row["engines"].items()
        )
        print(
            f"{name}: {seconds_text(row.get('seconds'))}; {told}{row.get('error', '')}", flush=True
        )
    return store


def _all_engines(name: str, request: Request) -> tuple[list[dict[str, Any]], str]:
    """What a case reports; after a fit that is too slow, the rest afresh."""
    lines: list[dict[str, Any]] = []
    while True:
        done = ";".join(sorted({line["engine"] for line in lines if "engine" in line}))
        outcome = run_module(
            "benchmarks.suites.engines",
            [name, done, "small" if request.small else ""],
            3 * _LIMIT,
            priority=request.priority,
        )
        lines += outcome.lines
        if not outcome.is_late or not any(line["kind"] == "start" for line in outcome.lines):
            return lines, outcome.error


def judge(lines: list[dict[str, Any]], error: str = "") -> dict[str, Any]:
    """The worth of every engine of a case, from what its processes reported.

    Where nothing else solves it, or nobody waits for the end, an engine is worth infinitely much.
    """
    whole = [line for line in lines if line["kind"] == "all"]
    row: dict[str, Any] = {"engines": {}, "error": error} if error else {"engines": {}}
    if not whole:
        return row
    row["seconds"] = min(line["seconds"] for line in whole)
    row["proven"] = whole[-1]["proven"]
    row["other"] = max(line.get("other") or 0.0 for line in lines if line["kind"] != "start")
    for line in lines:
        if line["kind"] == "start":
            row["engines"].setdefault(line["engine"], {"status": "too slow", "worth": math.inf})
        if line["kind"] == "without":
            worth = line["seconds"] / row["seconds"] if line["status"] == "solved" else math.inf
            kept = {key: line[key] for key in ("seconds", "status", "instead") if key in line}
            row["engines"][line["engine"]] = {**kept, "worth": worth}
    return row


def lines_of_code(folder: Path) -> int:
    """Lines of the files of a folder that hold code: no comments, docstrings or blank ones."""
    total = 0
    for path in sorted(folder.rglob("*.py")):
        held: set[int] = set()
        before = tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type in (tokenize.COMMENT, tokenize.NL):
                continue
            layout = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
            is_docstring = token.type == tokenize.STRING and before in layout
            if token.type not in layout and not is_docstring:
                held.update(range(token.start[0], token.end[0] + 1))
            before = token.type
        total += len(held)
    return total


def tables(store: Store) -> list[Table]:
    """Which engine solves what, and what each is worth at most."""
    rows = {name: row for name, row in store.rows.get("cases", {}).items() if name in CASES}
    if not rows:
        return []
    return [_worths(rows), _choices(rows)]


def _folder(engine: str) -> str:
    """The folder of solvers/ in which an engine lives."""
    from trueline.solvers.registry import SOLVERS

    solver = SOLVERS.get(engine.removesuffix(_SHARED))
    return "" if solver is None else type(solver).__module__.split(".")[2]


def _worths(rows: dict[str, dict[str, Any]]) -> Table:
    import trueline

    found: dict[str, list[tuple[float, str]]] = {}
    for name, row in rows.items():
        for engine, one in row["engines"].items():
            found.setdefault(engine, []).append((one["worth"], name))
    body = []
    for engine, worths in sorted(found.items(), key=lambda item: (_folder(item[0]), item[0])):
        least, most = min(worths), max(worths)
        folder = _folder(engine)
        size = lines_of_code(Path(trueline.__file__).parent / "solvers" / folder) if folder else 0
        body.append(
            [
                engine,
                f"{folder} ({size:,})" if folder else "",
                str(len(worths)),
                f"{sum(worth >= WORTH for worth, _ in worths)}",
                f"{_worth(most[0])} ({most[1]})",
                f"{_worth(least[0])} ({least[1]})",
            ]
        )
    heads = ["engine", "folder (lines)", "cases", f"worth {WORTH} or more", "most", "least"]
    notes = [
        "Worth: seconds of the fit without the engine over seconds with it. `none else`: nothing "
        "else solves it to a proven gap within the limit. `shared` is the work that problems of a "
        "set share: without it the same solver takes them one by one.",
    ]
    return Table("Engines, and what each is worth", heads, body, notes)


def _worth(value: float) -> str:
    return "none else" if math.isinf(value) else f"{value:.2f}"


def _choices(rows: dict[str, dict[str, Any]]) -> Table:
    body = []
    for name, row in rows.items():
        model, data = CASES[name]
        for engine, one in row["engines"].items():
            instead = ", ".join(one.get("instead", ())) or one["status"]
            body.append(
                [
                    model,
                    data,
                    engine,
                    seconds_text(row["seconds"]),
                    instead,
                    _worth(one["worth"]),
                    number(row.get("other"), ".2f"),
                ]
            )
    heads = ["model", "data", "engine", "seconds", "without it", "worth", "other load"]
    return Table("Which engine solves what", heads, body)


def main(name: str, done: str, size: str) -> None:
    """Entry of the process of one case."""
    warnings.simplefilter("ignore")
    measure(name, tuple(done.split(";")), size == "small")


if __name__ == "__main__":
    main(*sys.argv[1:4])
