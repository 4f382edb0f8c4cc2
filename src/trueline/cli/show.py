"""Tables and bars for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from trueline.errors import TruelineError
from trueline.table import Table
from trueline.wording import counted, quantity

_BAR = 12  # characters on each side of zero
MOST_ROWS = 30  # longer lists are cut


def console(stderr: bool = False) -> Console:
    """The terminal, asked anew each time so that redirected output is noticed."""
    return Console(stderr=stderr, highlight=False)


def show_error(error: BaseException) -> None:
    """One line in red."""
    expected = isinstance(error, TruelineError | ValueError | OSError)
    message = str(error) if expected else f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.filename:
        message = f"{error.filename}: {error.strerror}."
    text = Text.assemble(("error: ", "bold red"), (" ".join(message.split()), "red"))
    if not expected:
        text.append(" (unexpected; --debug shows where)", "dim")
    console(stderr=True).print(text, soft_wrap=True)


def heading(out: Console, title: str, rest: str = "") -> None:
    """A title on a line of its own."""
    out.print()
    out.print(Text.assemble((title, "bold cyan"), (f"  {rest}" if rest else "", "dim")))


def note(out: Console, text: str, style: str = "dim") -> None:
    """An indented remark."""
    out.print(Padding(Text(text, style), (0, 0, 0, 2), expand=False))


def command(out: Console, what: str, line: str) -> None:
    """A command to copy: on one line, however long it is."""
    out.print(Text(f"  {what:<10} {line}"), soft_wrap=True)


def _grid(*columns: str, right: Sequence[str] = ()) -> Grid:
    """A table without side lines, indented by two."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        grid.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return grid


def _put(out: Console, grid: Grid) -> None:
    out.print(Padding(grid, (0, 0, 0, 2), expand=False))


def show_facts(out: Console, facts: dict[str, str]) -> None:
    """Names and values, two columns."""
    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(name, Text(value))
    _put(out, grid)


def show_columns(out: Console, table: Table, target: str, used: Sequence[str]) -> None:
    """What each column of a table seems to be, and whether it is used."""
    grid = _grid("column", "kind", "values", "missing", "use", right=["missing"])
    names = list(table.columns)
    for name in names[:MOST_ROWS]:
        guess = table.guess(name)
        missing = table.column(name).missing
        use, style = ("target", "bold magenta") if name == target else ("feature", "green")
        if name != target and name not in used:
            use, style = "left out", "yellow"
        grid.add_row(
            Text(name), guess.kind, Text(guess.reason), str(missing or ""), Text(use, style)
        )
    _put(out, grid)
    if len(names) > MOST_ROWS:
        note(out, f"... and {counted(len(names) - MOST_ROWS, 'more column')}")


def _bar(share: float, ascii_only: bool) -> Text:
    """A bar to the left or right of zero; share lies between -1 and 1."""
    block, axis = ("#", "|") if ascii_only else ("\u2588", "\u2502")
    length = max(round(abs(share) * _BAR), 1 if share else 0)
    left = block * length if share < 0 else ""
    right = block * length if share > 0 else ""
    return Text.assemble((left.rjust(_BAR), "red"), (axis, "dim"), (right.ljust(_BAR), "blue"))


def show_coefficients(
    out: Console,
    names: Sequence[str],
    coef: Sequence[float],
    intercept: float,
    most: int = MOST_ROWS,
) -> None:
    """Coefficients with their names and bars, largest first."""
    grid = _grid("name", "coefficient", "", right=["coefficient"])
    order = sorted(range(len(coef)), key=lambda j: -abs(coef[j]))
    largest = max((abs(value) for value in coef), default=0.0) or 1.0
    ascii_only = out.options.ascii_only
    for j in order[:most]:
        bar = _bar(coef[j] / largest, ascii_only)
        grid.add_row(Text(names[j]), f"{coef[j]:.5g}", bar)
    grid.add_row(Text("(intercept)", "dim"), f"{intercept:.5g}", "")
    _put(out, grid)
    if len(coef) > most:
        note(out, f"... and {counted(len(coef) - most, 'smaller coefficient')}")


def show_plan(out: Console, plan: Any) -> None:
    """The solvers that were considered, the chosen one marked."""
    grid = _grid("solver", "time", "work", "memory", "verdict", right=["time", "work", "memory"])
    for row in sorted(plan.table(), key=_rank):
        verdict = str(row["verdict"])
        chosen = verdict.startswith("chosen")
        style = "bold green" if chosen else ("" if row["seconds"] is not None else "dim")
        estimates = (("seconds", "s"), ("flops", "flop"), ("memory", "B"))
        amounts = ["" if row[of] is None else quantity(row[of], unit) for of, unit in estimates]
        cells = [str(row["solver"]), *amounts, verdict]
        grid.add_row(*(Text(cell) for cell in cells), style=style)
    _put(out, grid)


def show_steps(out: Console, steps: Sequence[dict[str, Any]], criterion: str) -> None:
    """What came and went in each step of a search, and the criterion then."""
    grid = _grid("step", "change", "columns", criterion, right=["step", "columns", criterion])
    for number, step in enumerate(steps):
        changes = [
            f"{sign} {', '.join(names)}"
            for sign, names in (("+", step["entered"]), ("-", step["left"]))
            if names
        ]
        change = "start" if number == 0 else "  ".join(changes)
        value = f"{step['criterion']:.6g}"
        grid.add_row(str(number), Text(change), str(step["n_features"]), value)
    _put(out, grid)


def _rank(row: dict[str, Any]) -> tuple[int, float]:
    """The chosen solver first, then by time, then those that cannot be used."""
    verdicts = ["chosen", "possible", "by name only"]
    verdict = str(row["verdict"])
    position = verdicts.index(verdict) if verdict in verdicts else len(verdicts)
    return position, row["seconds"] or 0.0


def show_checks(out: Console, checks: Sequence[Any]) -> None:
    """The claims of a certificate, what was found, and whether each holds."""
    grid = _grid("check", "claimed", "found", "")
    for check in checks:
        verdict = Text("holds", "green") if check.holds else Text("FAILS", "bold red")
        style = "" if check.holds else "red"
        grid.add_row(Text(check.name), Text(check.claimed), Text(check.found, style), verdict)
    _put(out, grid)


def show_rows(out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Some rows of data, as text."""
    grid = _grid(*columns)
    for row in rows[:MOST_ROWS]:
        grid.add_row(*(Text(cell) for cell in row))
    _put(out, grid)
    if len(rows) > MOST_ROWS:
        note(out, f"... and {len(rows) - MOST_ROWS} more rows")


def show_scatter(out: Console, predicted: Any, actual: Any, target: str) -> None:
    """Predicted against actual as characters: denser where more points fall."""
    width, height = 56, 14
    counts, _, _ = np.histogram2d(actual, predicted, bins=(height, width))
    shades = " .:*#" if out.options.ascii_only else " \u00b7\u2022\u25cf\u25cf"
    note(out, f"actual {target}")
    for row in counts[::-1]:
        marks = "".join(shades[min(int(count), len(shades) - 1)] for count in row)
        note(out, f"|{marks}", "blue")
    note(out, f"+{'-' * width}")
    note(out, f"predicted {target}".rjust(width + 1))
