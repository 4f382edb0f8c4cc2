"""The books of a search as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["name_of", "table_of_steps"]

_SHOWN_NAMES = 4


def name_of(column: int, names: Sequence[str] | None) -> str:
    """What a column is called."""
    return f"x{column}" if names is None else str(names[column])


def table_of_steps(
    history: Sequence[dict[str, Any]], criterion: str, names: Sequence[str] | None = None
) -> list[str]:
    r"""One line per step: what came and went, and what the model was like then.

    Examples
    --------
    >>> from trueline.selection.stepwise.books import table_of_steps
    >>> books = [
    ...     {"entered": [], "left": [], "n_features": 0, "rss": 4.0, "criterion": 9.0},
    ...     {"entered": [2], "left": [], "n_features": 1, "rss": 1.0, "criterion": 5.5},
    ... ]
    >>> print("\n".join(table_of_steps(books, "aic")))  # doctest: +NORMALIZE_WHITESPACE
    step  features          rss          aic  change
       0         0            4            9  (start)
       1         1            1          5.5  + x2
    """
    lines = [f"{'step':>4}  {'features':>8}  {'rss':>11}  {criterion:>11}  change"]
    for number, step in enumerate(history):
        lines.append(
            f"{number:>4}  {step['n_features']:>8}  {step['rss']:>11.6g}  "
            f"{step['criterion']:>11.6g}  {_change(step, names, number == 0)}"
        )
    return lines


def _change(step: dict[str, Any], names: Sequence[str] | None, is_start: bool) -> str:
    if is_start:
        return "(start)"
    parts = []
    for sign, columns in (("+", step["entered"]), ("-", step["left"])):
        shown = [name_of(j, names) for j in columns[:_SHOWN_NAMES]]
        if len(columns) > _SHOWN_NAMES:
            shown.append(f"... ({len(columns)})")
        parts += [f"{sign} {' '.join(shown)}"] if shown else []
    return "  ".join(parts)
