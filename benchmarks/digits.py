"""How many digits are right: ``python -m benchmarks.digits [--strd FILE]``.

Small problems on which least squares loses digits. The exact answer comes from rational arithmetic
on the very numbers that the contestants are given; a contestant's score is the least number of
correct digits over all coefficients, the intercept included.

Polynomials are given as x and judged against the exact polynomial: a contestant that needs the
powers as columns gets them rounded to double precision, as its users would compute them.

The file of ``--strd`` holds certified data sets, such as those of NIST, in this form; numbers are
decimal strings, the first column is the target::

    {
        "Name": {
            "rows": [["y", "x1", ...], ...],
            "intercept": true,
            "model": "linear" or "poly",
            "degree": 1,
            "coef": ["b", "w1", ...],
        }
    }
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.exact import correct_digits, solve_least_squares
from benchmarks.report import Table
from benchmarks.selection import Request
from benchmarks.store import Store

__all__ = ["CONTESTANTS", "Puzzle", "puzzles", "read_strd", "run", "tables"]

TITLE = "correct digits on data where digits are lost"
#: Stands for an error instead of an answer.
FAILED = -1.0

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Puzzle:
    """Numbers, and the exact answer.

    Attributes
    ----------
    name : str
    x : array of shape (n, p)
        Columns, or the one variable of a polynomial.
    y : array of shape (n,)
    degree : int
        Of the polynomial; 1 for columns as they are.
    fit_intercept : bool
    exact : list of Fraction
        Intercept (if any) and coefficients.
    most : float
        Digits that can be judged.
    """

    name: str
    x: Array
    y: Array
    degree: int
    fit_intercept: bool
    exact: list[Fraction]
    most: float = 15.9

    @property
    def columns(self) -> Array:
        """The design in double precision: powers are rounded here."""
        if self.degree == 1:
            return self.x
        return np.column_stack([self.x[:, 0] ** power for power in range(1, self.degree + 1)])


def exact_answer(
    x: Sequence[Sequence[Fraction]], y: Sequence[Fraction], degree: int, fit_intercept: bool
) -> list[Fraction]:
    """Rational least squares on columns, or on exact powers of the one column."""
    rows = [
        ([Fraction(1)] if fit_intercept else [])
        + (list(row) if degree == 1 else [row[0] ** power for power in range(1, degree + 1)])
        for row in x
    ]
    return solve_least_squares(rows, y)


def puzzle(name: str, x: Any, y: Any, degree: int = 1, fit_intercept: bool = True) -> Puzzle:
    """A puzzle from numbers that are doubles already."""
    x = np.asarray(x, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    y = np.asarray(y, dtype=np.float64)
    rows = [[Fraction(float(value)) for value in row] for row in x]
    answer = exact_answer(rows, [Fraction(float(value)) for value in y], degree, fit_intercept)
    return Puzzle(name, x, y, degree, fit_intercept, answer)


# --- problems built here ------------------------------------------------------------------------


def puzzles() -> list[Puzzle]:
    """All problems that need no file."""
    return [*_wampler(), *_polynomials(), _longley(), *_matrices(), *_lines()]


def _wampler() -> list[Puzzle]:
    """R. H. Wampler's polynomials of degree 5 on 0..20 (J. Amer. Statist. Assoc. 65 (1970) 549).

    Pure powers, decaying powers, and the first with a pattern added that is large and nearly
    orthogonal to all of them.
    """
    x = np.arange(21.0)
    whole = sum(x**power for power in range(6))
    tenths = sum((x / 10) ** power for power in range(6))
    pattern = _orthogonal_pattern(x)
    out = [puzzle("Wampler 1, y = 1 + x + ... + x^5", x, whole, 5)]
    out += [puzzle("Wampler 2, y = 1 + x/10 + ... + (x/10)^5", x, np.round(tenths, 5), 5)]
    for number, size in ((3, 1.0), (4, 100.0), (5, 10_000.0)):
        title = f"Wampler {number}, the first + {size:g} x pattern"
        out.append(puzzle(title, x, whole + size * pattern, 5))
    return out


def _orthogonal_pattern(x: Array) -> Array:
    """A large whole-number pattern with alternating signs."""
    signs = np.where(np.arange(len(x)) % 2 == 0, 1.0, -1.0)
    return signs * np.round(2000.0 + 40.0 * (x - 10.0) ** 2)


def _polynomials() -> list[Puzzle]:
    random = np.random.default_rng(11)
    x = np.round(np.linspace(-8.8, -3.1, 82) + random.uniform(-0.02, 0.02, 82), 9)
    y = np.round(0.9 - 0.05 * (x + 6) ** 2 + 0.003 * random.standard_normal(82), 4)
    near_one = np.round(np.linspace(1.0, 2.0, 40), 6)
    return [
        puzzle("degree 10 on [-8.8, -3.1]", x, y, 10),
        puzzle("degree 7 on [1, 2]", near_one, np.round(np.exp(near_one), 8), 7),
        puzzle("degree 2 on 100,000 .. 3,000,000", np.arange(1, 31) * 1e5, _sags(), 2),
    ]


def _sags() -> Array:
    """Deflections that a load cell might show: a line with a slight bend."""
    load = np.arange(1, 31) * 1e5
    random = np.random.default_rng(12)
    return np.round(7.3e-7 * load - 3e-15 * load**2 + 2e-4 * random.standard_normal(30), 5)


def _longley() -> Puzzle:
    """Longley's employment data as statsmodels ships them."""
    from statsmodels.datasets import longley

    data = longley.load_pandas()
    return puzzle("Longley", data.exog.to_numpy(float), data.endog.to_numpy(float))


def _matrices() -> list[Puzzle]:
    random = np.random.default_rng(13)
    tiny = 2.0**-27
    laeuchli = np.vstack([np.ones(4), tiny * np.eye(4)])
    i, j = np.arange(1, 13)[:, None], np.arange(1, 8)
    hilbert = 1.0 / (i + j - 1.0)
    nodes = np.arange(1, 16)[:, None] / 16.0
    vandermonde = nodes ** np.arange(1, 9)
    base = np.round(random.standard_normal((40, 3)), 6)
    collinear = np.column_stack([base, base.sum(axis=1) + 1e-8 * random.standard_normal(40)])
    return [
        puzzle("Laeuchli, 5 x 4", laeuchli, [4.0, tiny, 2 * tiny, 3 * tiny, tiny], 1, False),
        puzzle("Hilbert, 12 x 7", hilbert, np.arange(1.0, 13.0), 1, False),
        puzzle("Vandermonde, 15 x 8 on (0, 1)", vandermonde, np.round(np.sin(nodes[:, 0]), 8)),
        puzzle("sum of columns + 1e-8 noise", collinear, np.round(base @ [1.0, 2.0, 3.0], 2) + 0.5),
    ]


def _lines() -> list[Puzzle]:
    random = np.random.default_rng(14)
    seconds = 1.7e9 + np.arange(60) * 60.0
    drift = np.round(20.0 + 0.001 * np.arange(60) + 0.01 * random.standard_normal(60), 3)
    offset = 1e8 + np.round(random.uniform(0.0, 1000.0, 36), 1)
    readings = np.round(1.002 * (offset - 1e8) - 0.3 + 0.8 * random.standard_normal(36), 1)
    two = np.column_stack([seconds, np.round(random.standard_normal(60), 3)])
    return [
        puzzle("time stamps in seconds, one a minute", seconds, drift),
        puzzle("time stamps and another column", two, drift),
        puzzle("a line with offset 1e8", offset, readings),
        puzzle("no intercept, 60 .. 70", np.arange(60.0, 71.0), np.arange(130.0, 141.0), 1, False),
    ]


def read_strd(path: Path) -> list[Puzzle]:
    """Certified data sets from a file in the form of this module's text.

    The answer is computed from the decimal numbers and must agree with the certified one.
    """
    out = []
    for name, entry in json.loads(path.read_text()).items():
        rows = [[Fraction(value) for value in row] for row in entry["rows"]]
        y, x = [row[0] for row in rows], [row[1:] for row in rows]
        degree = int(entry.get("degree", 1)) if entry["model"] == "poly" else 1
        answer = exact_answer(x, y, degree, bool(entry["intercept"]))
        agreed = correct_digits([float(Fraction(value)) for value in entry["coef"]], answer)
        if agreed < 13:
            raise ValueError(f"{name}: the file's coefficients are not those of its data.")
        doubles = np.array([[float(value) for value in row] for row in rows])
        fit_intercept = bool(entry["intercept"])
        out.append(Puzzle(name, doubles[:, 1:], doubles[:, 0], degree, fit_intercept, answer, 15.0))
    return out


# --- contestants --------------------------------------------------------------------------------


def _with_ones(case: Puzzle) -> Array:
    ones = np.ones((len(case.y), 1))
    return np.hstack([ones, case.columns]) if case.fit_intercept else case.columns


def _joined(case: Puzzle, model: Any) -> list[float]:
    level = [float(model.intercept_)] if case.fit_intercept else []
    return [*level, *(float(value) for value in model.coef_)]


def _trueline(case: Puzzle) -> list[float]:
    from trueline import LinearRegression

    model = LinearRegression(fit_intercept=case.fit_intercept)
    return _joined(case, model.fit(case.columns, case.y))


def _trueline_polynomial(case: Puzzle) -> list[float] | None:
    from trueline import PolynomialRegression

    if case.degree == 1:
        return None
    model = PolynomialRegression(case.degree, fit_intercept=case.fit_intercept)
    return _joined(case, model.fit(case.x, case.y))


def _sklearn(case: Puzzle, **options: float) -> list[float]:
    from sklearn.linear_model import LinearRegression

    model = LinearRegression(fit_intercept=case.fit_intercept, **options)
    return _joined(case, model.fit(case.columns, case.y))


def _statsmodels(case: Puzzle, method: str) -> list[float]:
    import statsmodels.api as sm

    return [float(value) for value in sm.OLS(case.y, _with_ones(case)).fit(method=method).params]


def _numpy(case: Puzzle) -> list[float]:
    return [float(value) for value in np.linalg.lstsq(_with_ones(case), case.y, rcond=None)[0]]


#: Name -> function to intercept and coefficients, or None where it does not apply.
CONTESTANTS: dict[str, Callable[[Puzzle], list[float] | None]] = {
    "trueline LinearRegression": _trueline,
    "trueline PolynomialRegression": _trueline_polynomial,
    "scikit-learn": _sklearn,
    "scikit-learn (tol=0)": lambda case: _sklearn(case, tol=0.0),
    "statsmodels (pinv)": lambda case: _statsmodels(case, "pinv"),
    "statsmodels (qr)": lambda case: _statsmodels(case, "qr"),
    "numpy lstsq": _numpy,
}


def judge(case: Puzzle) -> dict[str, float | None]:
    """Correct digits of every contestant on one problem."""
    out: dict[str, float | None] = {}
    for name, fit in CONTESTANTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = fit(case)
            except np.linalg.LinAlgError:
                out[name] = FAILED
                continue
        out[name] = None if found is None else correct_digits(found, case.exact, case.most)
    return out


def run(request: Request) -> Store:
    """Judge the problems built here."""
    store = Store("digits", request.folder)
    for case in puzzles():
        if request.wants("built here", case.name, store.get("built here", case.name)):
            store.put("built here", case.name, dict(judge(case)))
    return store


def table(title: str, rows: dict[str, dict[str, Any]]) -> Table:
    """Digits with one decimal; the best of a row is not marked, the numbers speak."""
    names = list(CONTESTANTS)
    body = [[name, *(_least([row.get(one)]) for one in names)] for name, row in rows.items()]
    worst = ["least", *(_least([row.get(one) for row in rows.values()]) for one in names)]
    return Table(title, ["", *names], [*body, worst])


def _least(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    return "fails" if min(known) == FAILED else f"{min(known):.1f}"


def tables(store: Store) -> list[Table]:
    """The table of the problems built here."""
    known = {case.name for case in puzzles()}
    rows = {name: row for name, row in store.rows.get("built here", {}).items() if name in known}
    return [table("Correct digits, the least over all coefficients (15.9 is a full double)", rows)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; nothing is stored."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.digits", description=TITLE)
    options.add_argument("--strd", type=Path, metavar="FILE", help="certified data sets (JSON)")
    given = options.parse_args(arguments)
    rows = {case.name: dict(judge(case)) for case in puzzles()}
    print(table("Correct digits, the least over all coefficients (15.9 is a full double)", rows))
    if given.strd:
        certified = {case.name: dict(judge(case)) for case in read_strd(given.strd)}
        print()
        print(table(f"Certified data of {given.strd.name} (15 digits are certified)", certified))
    return 0


if __name__ == "__main__":
    sys.exit(main())
