"""Assertions that name the worst offender, and laws that every frozen part obeys."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "EPS",
    "assert_at_most",
    "assert_close",
    "assert_is_frozen",
    "assert_same_parts",
    "assert_survives_pickling",
    "assert_text_rebuilds",
]

EPS = float(np.finfo(np.float64).eps)


def _worst(excess: NDArray[Any], **arrays: ArrayLike) -> str:
    """The values at the place where the excess is largest."""
    excess = np.atleast_1d(excess)
    place = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
    shown = [
        f"{name} = {np.broadcast_to(values, excess.shape)[place]!r}"
        for name, values in arrays.items()
    ]
    return ", ".join(shown)


def assert_at_most(left: ArrayLike, right: ArrayLike, slack: ArrayLike, **where: ArrayLike) -> None:
    """left <= right + slack everywhere; NaN is never at most anything."""
    left, right, slack = np.asarray(left), np.asarray(right), np.asarray(slack)
    holds = left <= right + slack
    if not np.all(holds):
        excess = np.where(holds, -np.inf, np.nan_to_num(left - right - slack, nan=np.inf))
        shapes = np.broadcast_shapes(excess.shape, *(np.shape(value) for value in where.values()))
        excess = np.broadcast_to(excess, shapes)
        raise AssertionError(_worst(excess, left=left, right=right, slack=slack, **where))


def assert_close(got: ArrayLike, expected: ArrayLike, slack: ArrayLike, **where: ArrayLike) -> None:
    """abs(got - expected) <= slack everywhere, and equal shapes."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"shape {got.shape}, expected {expected.shape}"
    difference = np.where(got == expected, 0.0, np.abs(got - expected))
    assert_at_most(difference, 0.0, slack, got=got, expected=expected, **where)


def assert_same_parts(first: Any, second: Any) -> None:
    """Equal class and equal fields, arrays included (which ``==`` cannot compare)."""
    assert type(first) is type(second), f"{type(first)} is not {type(second)}"
    if dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            ours, theirs = getattr(first, field.name), getattr(second, field.name)
            if dataclasses.is_dataclass(ours):
                assert_same_parts(ours, theirs)
            else:
                assert np.array_equal(ours, theirs), f"{field.name}: {ours!r} != {theirs!r}"


def assert_is_frozen(part: Any) -> None:
    """Setting a field, or inventing one, raises."""
    names = (
        [field.name for field in dataclasses.fields(part)] if dataclasses.is_dataclass(part) else []
    )
    for name in [*names, "an_attribute_of_no_part"]:
        victim = copy.copy(part)
        try:
            setattr(victim, name, 1.0)
        except (AttributeError, TypeError):
            continue
        raise AssertionError(f"{name} could be set; declare the class @dataclass(frozen=True)")


def assert_survives_pickling(part: Any) -> None:
    """pickle gives the same part back."""
    assert_same_parts(pickle.loads(pickle.dumps(part)), part)


def assert_text_rebuilds(part: Any) -> None:
    """eval(repr(part)) is the part, with the names of its module and its fields' modules."""
    names: dict[str, Any] = {"array": np.array, "np": np, "inf": np.inf}
    parts = [part]
    while parts:
        one = parts.pop()
        names.update(vars(importlib.import_module(type(one).__module__)))
        names[type(one).__name__] = type(one)
        if dataclasses.is_dataclass(one):
            values = [getattr(one, field.name) for field in dataclasses.fields(one)]
            parts.extend(value for value in values if dataclasses.is_dataclass(value))
    assert_same_parts(eval(repr(part), names), part)
