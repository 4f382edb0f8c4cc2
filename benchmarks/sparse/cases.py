"""The cases: a task on a problem, and what a call may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.sparse.problems import Rows, correlated, files, products, read_file, text

__all__ = ["CASES", "PROBLEMS", "Case", "Problem", "all_cases", "file_problems"]

#: Part of the largest strength at which single fits are done.
SINGLE = 0.05
STRENGTHS = 100
FOLDS = 5
#: Seconds after which the gaps of best subsets are compared.
SEARCH_SECONDS = 25.0
#: Seconds in which a proof is asked for.
PROOF_SECONDS = 60.0


@dataclass(frozen=True)
class Problem:
    """Rows that several cases share.

    Attributes
    ----------
    title : str
    make : function
        From the scale (1 is the size of the title) to X and y.
    """

    title: str
    make: Callable[[float], Rows]


def _size(full: int, scale: float, least: int) -> int:
    return max(min(full, least), round(full * scale))


def _correlated(n: int, d: int, true: int, row_scaled: bool, seed: int) -> Problem:
    """Rows and columns shrink together, so that wide stays wide and tall stays tall."""

    def make(scale: float) -> Rows:
        side = np.sqrt(scale)
        rows = _size(n, scale if row_scaled else side, 300 if row_scaled else 60)
        columns = _size(d, side if row_scaled else scale, 60)
        return correlated(rows, columns, max(5, round(true * columns / d)), seed=seed)

    return Problem(f"dense {n:,} x {d:,}", make)


def _text(n: int, d: int, true: int) -> Problem:
    def make(scale: float) -> Rows:
        rows, columns = _size(n, scale, 100), _size(d, scale, 300)
        density = min(0.05, 1e-3 / np.sqrt(scale))
        return text(rows, columns, density, max(10, round(true * scale)))

    return Problem(f"sparse {n:,} x {d:,}, density 1e-3", make)


def _subset(d: int, snr: float) -> Problem:
    def make(scale: float) -> Rows:
        columns = _size(d, scale, 30)
        return correlated(
            _size(500, scale, 80), columns, 10, rho=0.3, snr=snr, are_equal=True, seed=3
        )

    return Problem(f"500 x {d:,}, snr {snr:g}", make)


def _shipped(name: str, title: str) -> Problem:
    return Problem(title, lambda scale: products(name))


PROBLEMS = {
    "wide": _correlated(1000, 20_000, 100, False, 0),
    "tall": _correlated(100_000, 500, 100, True, 1),
    "text": _text(20_000, 200_000, 500),
    "text_small": _text(5_000, 50_000, 200),
    "steps": _correlated(20_000, 500, 60, True, 2),
    **{
        f"subset_d{d}_snr{snr:g}": _subset(d, snr)
        for d, snr in ((1000, 5.0), (1000, 0.5), (100, 0.5), (100, 0.1))
    },
    "diabetes": _shipped("diabetes", "diabetes with products of two, 442 rows"),
    "star98": _shipped("star98", "star98 with products of two, 303 rows"),
    "randhie": _shipped("randhie", "randhie with products of three, 20,190 rows"),
}


@dataclass(frozen=True)
class Case:
    """A task on a problem.

    Attributes
    ----------
    title : str
    task : str
        Contestants that are tuned for it take part.
    problem : str
    ratio : float
        Smallest over largest strength of the lasso.
    choose : int
        Columns to choose.
    limit : float
        Seconds for one call.
    search : float
        The longest search of best subsets, in seconds.
    """

    title: str
    task: str
    problem: str
    ratio: float = 0.0
    choose: int = 0
    limit: float = 20.0
    search: float = SEARCH_SECONDS

    @property
    def strengths(self) -> int:
        """How many strengths the lasso is solved at."""
        return {"lasso_path": STRENGTHS, "lasso_cv": STRENGTHS, "lasso": 1, "certificate": 1}.get(
            self.task, 0
        )


def _path(problem: str, ratio: float, title: str, limit: float) -> Case:
    return Case(
        f"Lasso path, {STRENGTHS} strengths to {ratio:g} of the largest, {title}",
        "lasso_path",
        problem,
        ratio,
        limit=limit,
    )


def _cases() -> dict[str, Case]:
    out = {}
    for problem, limits in (("wide", (15.0, 12.0)), ("tall", (5.0, 5.0)), ("text", (12.0, 12.0))):
        title = PROBLEMS[problem].title
        for (ratio, name), limit in zip(((1e-2, "1e-2"), (1e-3, "1e-3")), limits, strict=True):
            out[f"path_{problem}_{name}"] = _path(problem, ratio, title, limit)
    for problem in ("wide", "tall", "text"):
        title = f"Lasso at {SINGLE:g} of the largest strength, {PROBLEMS[problem].title}"
        out[f"single_{problem}"] = Case(title, "lasso", problem, SINGLE, limit=6.0)
    for problem, limit in (("wide", 12.0), ("tall", 10.0), ("text", 30.0), ("text_small", 6.0)):
        title = f"Lasso, {STRENGTHS} strengths to 0.01 by {FOLDS} folds, {PROBLEMS[problem].title}"
        out[f"cv_{problem}"] = Case(title, "lasso_cv", problem, 1e-2, limit=limit)
    out["forward_20"] = Case(
        "Forward selection, 20 of 500 columns, n = 20,000", "forward", "steps", choose=20
    )
    for count in (2, 20):
        out[f"forward_folds_{count:02d}"] = Case(
            f"Forward selection by {FOLDS} folds, {count} of 500 columns, n = 20,000",
            "forward_folds",
            "steps",
            choose=count,
            limit=60.0,
        )
    for problem in PROBLEMS:
        if problem.startswith("subset"):
            title = f"Best subset, 10 columns, {PROBLEMS[problem].title}"
            # Where the signal is strong a proof is asked for, elsewhere a small gap.
            search = PROOF_SECONDS if problem.endswith("snr5") else SEARCH_SECONDS
            out[problem] = Case(title, "best_subset", problem, choose=10, limit=90.0, search=search)
    for problem in ("wide", "tall"):
        title = f"Cost of the certificate, one lasso, {PROBLEMS[problem].title}"
        out[f"certificate_{problem}"] = Case(title, "certificate", problem, SINGLE)
    for problem in ("diabetes", "star98", "randhie"):
        out[f"real_{problem}"] = _path(problem, 1e-3, PROBLEMS[problem].title, 5.0)
    return out


CASES = _cases()


def file_problems(folder: Path | None) -> dict[str, Problem]:
    """One problem per data file of a folder."""

    def make(path: Path, scale: float) -> Rows:
        return read_file(path)

    paths = [] if folder is None else files(folder)
    return {
        f"file_{path.stem}": Problem(f"{path.stem} (file)", partial(make, path)) for path in paths
    }


def all_cases(folder: Path | None = None) -> tuple[dict[str, Case], dict[str, Problem]]:
    """The cases with those of a folder of files, and their problems."""
    extra = file_problems(folder)
    cases = {
        f"{name}_1e-3": _path(name, 1e-3, problem.title, 10.0) for name, problem in extra.items()
    }
    return CASES | cases, PROBLEMS | extra
