"""Verdicts on separability in plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueline.wording import counted

if TYPE_CHECKING:
    from trueline.halfspaces.result import Separability

__all__ = ["expression", "plain_statement"]

_MOST_TERMS = 6
_MOST_ROWS = 8


def expression(coef: Any, intercept: float, names: tuple[str, ...]) -> str:
    """A linear function with the names of its features.

    Examples
    --------
    >>> from trueline.halfspaces.statement import expression
    >>> expression([1.0, -2.0, 0.0], 3.0, ("age", "income", "height"))
    'age - 2 income + 3'
    """
    terms = [(float(c), name) for c, name in zip(coef, names, strict=True) if c != 0]
    left_out = len(terms) - _MOST_TERMS
    if left_out > 0:
        largest = sorted(terms, key=lambda term: -abs(term[0]))[:_MOST_TERMS]
        terms = [term for term in terms if term in largest][:_MOST_TERMS]
    text = ""
    for value, name in terms:
        size = "" if abs(value) == 1 else f"{abs(value):.4g} "
        text += _signed(value, f"{size}{name}", first=not text)
    if left_out > 0:
        text += f" + ... ({counted(left_out, 'smaller term')})"
    if intercept or not text:
        text += _signed(intercept, f"{abs(intercept):.4g}", first=not text)
    return text


def _signed(value: float, text: str, first: bool) -> str:
    if first:
        return f"-{text}" if value < 0 else text
    return f" - {text}" if value < 0 else f" + {text}"


def _rows(rows: Any) -> str:
    rows = [int(row) for row in rows]
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown = ", ".join(str(row) for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    if more > 0:
        return f"rows {shown} and {counted(more, 'other')}"
    head, _, last = shown.rpartition(", ")
    return f"rows {head} and {last}"


def _label(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _function(answer: Separability) -> str:
    return expression(answer.coef, float(answer.intercept), answer.feature_names)


def plain_statement(answer: Separability) -> str:
    """The sentences of :attr:`Separability.statement`."""
    if len(answer.classes) > 2:
        return _of_several(answer)
    negative, positive = (_label(label) for label in answer.classes)
    if answer.verdict == "separable":
        return (
            f"Separable: {_function(answer)} is positive for every row of {positive} and negative "
            f"for every row of {negative}, and no row is nearer to zero than {answer.margin:.4g}."
        )
    meet = f"No hyperplane separates them strictly: {_meeting(answer)}."
    if answer.verdict == "quasi-separable":
        return (
            f"Quasi-separable: {_function(answer)} is at least 0 for every row of {positive} and "
            f"at most 0 for every row of {negative}; it is 0 for {_rows(answer.boundary)}. {meet}"
        )
    return f"Not separable. {meet} No direction separates them even weakly."


def _meeting(answer: Separability) -> str:
    """Which rows exclude a strict separation."""
    if not answer.fit_intercept:
        if len(answer.rows) == 1:
            return f"{_rows(answer.rows)} is zero, and so on every hyperplane through zero"
        return (
            f"{_rows(answer.rows)}, those of {_label(answer.classes[0])} reflected at zero, have "
            "zero in their convex hull"
        )
    sides = []
    for own in (1, 0):
        # A row is held against the class that is not its own.
        mine = answer.rows[answer.against != own]
        sides.append(f"{_rows(mine)} of {_label(answer.classes[own])}")
    where = ""
    if len(answer.common_point) <= 4:
        numbers = ", ".join(f"{value:.4g}" for value in answer.common_point)
        where = f", at ({numbers})"
    if len(answer.rows) == 2:
        return f"{sides[0]} and {sides[1]} are the same point{where}"
    return f"the convex hulls of {sides[0]} and of {sides[1]} meet{where}"


def _of_several(answer: Separability) -> str:
    """For more than two classes."""
    k = len(answer.classes)
    if answer.verdict == "separable":
        return (
            f"Separable: of the {k} scores, one for each class, the own one is the largest for "
            f"every row, with margin {answer.margin:.4g}."
        )
    pairs = {
        tuple(sorted(pair))
        for pair in zip(answer.own.tolist(), answer.against.tolist(), strict=True)
    }
    names = {_label(answer.classes[c]) for pair in pairs for c in pair}
    where = f"{_rows(np.unique(answer.rows))} of the classes {', '.join(sorted(names))}"
    meet = f"No scores have the own class strictly first for all rows: {where} exclude it."
    if answer.verdict == "quasi-separable":
        return (
            f"Quasi-separable: of the {k} scores, one for each class, none is larger than the own "
            f"one for any row; some are equal for {_rows(answer.boundary)}. {meet}"
        )
    return f"Not separable. {meet} No scores have it first even weakly, but for all equal ones."
