"""Terms: columns that enter and leave a model together, as the columns of a factor do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trueline.selection.stepwise.tableau import Columns

__all__ = ["make_terms"]


def make_terms(groups: Any, n_features: int, names: Sequence[str] | None = None) -> list[Columns]:
    """The terms, each an ascending array of columns, ordered by their lowest column.

    Parameters
    ----------
    groups : None, "factors", array-like of labels, sequence of sequences, or mapping
        None makes each column a term. "factors" joins columns whose names agree before the last
        ``=`` (``city=Rome``, ``city=Oslo``). One label per column joins equal labels. Sequences of
        columns (or a mapping to such), by number or name, are terms; columns they do not mention
        are terms of their own.
    n_features : int
    names : sequence of str, optional
        Of the columns.

    Examples
    --------
    >>> from trueline.selection.stepwise.terms import make_terms
    >>> [term.tolist() for term in make_terms([[1, 2]], 4)]
    [[0], [1, 2], [3]]
    >>> names = ["size", "city=Rome", "city=Oslo"]
    >>> [term.tolist() for term in make_terms("factors", 3, names)]
    [[0], [1, 2]]
    """
    if groups is None:
        return [np.array([j]) for j in range(n_features)]
    if isinstance(groups, str):
        return _by_label(_factors(groups, names), n_features)
    if isinstance(groups, Mapping):
        return _by_columns(list(groups.values()), n_features, names)
    groups = list(groups)
    if groups and all(_is_sequence(group) for group in groups):
        return _by_columns(groups, n_features, names)
    if any(_is_sequence(group) for group in groups):
        raise ValueError(
            "groups mixes labels and lists of columns: give one label per column, or only lists."
        )
    return _by_label(groups, n_features)


def _is_sequence(item: Any) -> bool:
    return isinstance(item, Iterable) and not isinstance(item, str | bytes)


def _factors(groups: str, names: Sequence[str] | None) -> list[str]:
    if groups != "factors":
        raise ValueError(f"groups={groups!r} is not known; the only word is 'factors'.")
    if names is None:
        raise ValueError(
            "groups='factors' reads factors from the names of the columns, but X has none. Give X "
            "as a DataFrame, or one label per column."
        )
    # A name without "=" is a term of its own, also if it equals the name of a factor.
    return [name.rpartition("=")[0] + "=" if "=" in name else name for name in names]


def _by_label(labels: Sequence[Any], n_features: int) -> list[Columns]:
    if len(labels) != n_features:
        raise ValueError(
            f"groups has {len(labels)} labels for {n_features} columns: give one label per column, "
            "or lists of columns."
        )
    members: dict[Any, list[int]] = {}
    for j, label in enumerate(labels):
        if label is None or label != label:
            raise ValueError(f"The label of column {j} in groups is missing ({label!r}).")
        members.setdefault(label, []).append(j)
    return [np.array(columns) for columns in members.values()]


def _by_columns(
    groups: Sequence[Iterable[Any]], n_features: int, names: Sequence[str] | None
) -> list[Columns]:
    owner = np.full(n_features, -1)
    for number, group in enumerate(groups):
        columns = [_column(item, n_features, names) for item in group]
        if not columns:
            raise ValueError(f"Group {number} is empty: leave it out, or name its columns.")
        for j in columns:
            if owner[j] >= 0:
                raise ValueError(f"Column {j} is twice in groups ({owner[j]} and {number}).")
            owner[j] = number
    labels = [(-1, j) if owner[j] < 0 else (int(owner[j]), -1) for j in range(n_features)]
    return _by_label(labels, n_features)


def _column(item: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(item, str):
        if names is None:
            raise ValueError(
                f"groups names the column {item!r}, but the columns of X have no names."
            )
        if item not in names:
            raise ValueError(f"groups names the column {item!r}, which X does not have.")
        return list(names).index(item)
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
        raise ValueError(f"groups holds {item!r}: columns are given by number or name.")
    if not 0 <= item < n_features:
        raise ValueError(f"groups holds column {item}; X has the columns 0 to {n_features - 1}.")
    return int(item)
