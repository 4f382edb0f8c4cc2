"""What ``trueline warm`` does: small fits of every kind, each kernel compiled at its first call."""

from __future__ import annotations

import inspect
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Textbook solvers take long to end, and need the same kernels for every loss: one model is enough.
_FOR_TEXTBOOKS = "Ridge"


def run_warm(into: Path | None) -> None:
    """Compile what is not compiled yet; into another folder for the level of such machines."""
    import typer

    from trueline.numerics import machine_code

    if into is not None:
        level = machine_code.level_of_machine()
        if level is None:
            raise ValueError("There is no level of processors to compile for on such machines.")
        # Numba reads these when it is imported.
        os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = level
    from trueline.numerics.jit import compiler
    from trueline.streams.svmlight_rows import parsed

    folder = compiler.cache_folder() if into is None else compiler.write_into(into)
    if folder is None:
        raise ValueError(
            "Machine code cannot be kept: there is no folder that this user alone can write to. "
            "Set TRUELINE_CACHE_DIR to one."
        )
    before, last = time.perf_counter(), [time.perf_counter()]

    def tell(name: str) -> None:
        now = time.perf_counter()
        typer.echo(f"{now - last[0]:6.1f} s  {name}")
        last[0] = now

    compiler.mode, compiler.after_compiling = "always", tell
    os.environ["TRUELINE_QUIET"] = "1"  # these lines say the same
    parsed(b"1 1:2\n")
    for model, X, y, weights in (*small_fits(), *fits_by_every_solver(), *larger_fits()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Not every model takes every kind of data.
            for options in {}, {"sample_weight": weights}:
                try:
                    model.fit(X, y, **options)
                    last[0] = time.perf_counter()
                except Exception:  # whatever stops a fit, the kernels before it are compiled
                    break
    count = len(list(folder.glob("*.nbc")))
    typer.echo(f"{count} files of machine code in {folder}, {time.perf_counter() - before:.0f} s")


def small_fits() -> Iterator[tuple[Any, Any, Any, Any]]:
    """Every estimator with each kind of rows that leads to code of its own."""
    import numpy as np
    from scipy.sparse import csr_matrix

    random = np.random.default_rng(0)
    # Few columns, more columns than rows, and many rows: without noise, so that searches end soon.
    for n, d, noise in (60, 4, 1.0), (24, 40, 1.0), (300, 8, 0.0):
        X = random.standard_normal((n, d))
        s = X[:, 0] + 0.5 * X[:, 1] + noise * random.standard_normal(n)
        weights = random.uniform(0.5, 1.5, n)
        kinds: list[Any] = [X]
        if n == 60:
            kinds += [np.asfortranarray(X), csr_matrix(X * (abs(X) > 0.5)), X.astype(np.float32)]
        for Model in estimators():
            try:
                model = Model()
            except TypeError:
                continue  # a model around another one
            for rows in kinds:
                for y in targets(model, s):
                    yield model, rows, y, weights


def fits_by_every_solver() -> Iterator[tuple[Any, Any, Any, Any]]:
    """What the planner keeps for larger data, asked for by name."""
    import numpy as np
    from scipy.sparse import csr_matrix

    from trueline.solvers.registry import SOLVERS

    random = np.random.default_rng(0)
    X = random.standard_normal((60, 4))
    s = X[:, 0] + 0.5 * X[:, 1] + random.standard_normal(60)
    weights = random.uniform(0.5, 1.5, 60)
    for Model in estimators():
        if "solver" not in inspect.signature(Model).parameters:
            continue
        for name, solver in SOLVERS.items():
            if solver.is_textbook and Model.__name__ != _FOR_TEXTBOOKS:
                continue
            model = Model(solver=name)
            for rows in X, csr_matrix(X * (abs(X) > 0.5)):
                for y in targets(model, s):
                    yield model, rows, y, weights


def larger_fits() -> Iterator[tuple[Any, Any, Any, Any]]:
    """Data of the kinds for which engines work otherwise: texts, many rows, many columns, ties."""
    import numpy as np
    import scipy.sparse as sp

    import trueline as tl

    rng = np.random.default_rng(0)

    def noisy(X: Any) -> Any:
        signal = np.asarray(X @ rng.standard_normal(X.shape[1]))
        return signal / signal.std() + rng.standard_normal(len(signal))

    def with_target(X: Any, *models: Any, classes: int = 0, targets: int = 1) -> Any:
        y = noisy(X)
        if classes:
            y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
        elif targets > 1:
            y = np.column_stack([y] * targets)
        weights = rng.uniform(0.5, 1.5, X.shape[0])
        for model in models:
            yield model, X, y, weights

    texts = sp.random(600, 1500, 0.02, format="csr", random_state=0)
    counts = sp.random(5000, 100, 0.05, format="csr", random_state=1)
    wide, ties = rng.standard_normal((250, 4000)), np.round(rng.standard_normal((8000, 4)), 1)
    few, single = rng.standard_normal((300, 5)), rng.standard_normal((3200, 5))
    sparse = tl.LogisticRegression(l1_ratio=1.0)
    yield from with_target(texts, sparse, tl.Perceptron(penalty="l1"), classes=2)
    yield from with_target(texts, sparse, tl.LinearSVC(multi_class="crammer_singer"), classes=3)
    yield from with_target(texts, tl.Lasso(alpha=1e-3))
    yield from with_target(texts, tl.MultiTaskLasso(alpha=1e-2), targets=2)
    yield from with_target(counts, tl.LeastAbsoluteDeviations(), tl.Ridge())
    yield from with_target(counts, tl.LinearSVC(loss="hinge"), tl.LinearSVC(), classes=2)
    yield from with_target(single, tl.SVC(), classes=2)  # kernel values in single precision
    yield from with_target(wide, tl.Lasso(alpha=0.1))
    yield from with_target(wide, tl.MultiTaskLasso(alpha=0.1), targets=2)
    yield from with_target(ties, tl.LinearSVR(), tl.QuantileRegressor(alpha=1e-2))
    yield from with_target(rng.standard_normal((6000, 40)), tl.QuantileRegressor(alpha=0.0))
    yield from with_target(few, sparse, tl.LinearSVC(penalty="l1"), classes=2)
    forms = [tl.Perceptron(variant=form) for form in ("pocket", "textbook")]
    yield from with_target(few, *forms, classes=2)
    yield from with_target(few, *forms, classes=3)


def estimators() -> list[Any]:
    """The classes of everything public that fits."""
    import trueline

    everything = [getattr(trueline, name) for name in sorted(trueline.__all__)]
    return [thing for thing in everything if inspect.isclass(thing) and hasattr(thing, "fit")]


def targets(model: Any, s: Any) -> Iterator[Any]:
    """Targets that suit: classes, counts, several columns or numbers."""
    import numpy as np

    kind = getattr(model.__sklearn_tags__(), "estimator_type", None)
    if kind == "classifier":
        yield (s > np.median(s)).astype(int)
        yield np.digitize(s, np.quantile(s, [0.3, 0.7]))
    else:
        yield np.round(np.exp(0.3 * s)) + 1.0  # positive: some models are of counts or amounts
        yield np.column_stack([s, s[::-1]])
