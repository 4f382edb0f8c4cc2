"""Greedy search over sets of terms: forward, backward, or both ways at every step.

Terms are columns that enter and leave a model together, as the columns of a factor do.

At each step every admissible exchange of one term is priced from the tableau, the cheapest is made,
and the search ends when none lowers the cost (or when the number of terms asked for is reached).
Exchanges that cost the same to rounding are decided for the lowest column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueline.selection.criteria import Criterion
from trueline.selection.stepwise.forward import PartialCholesky
from trueline.selection.stepwise.tableau import Columns, Outlook, Tableau


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
    >>> from trueline.selection.stepwise.search import make_terms
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


Array = NDArray[np.float64]

DIRECTIONS = ("forward", "backward", "both")
# Exchanges whose costs differ by less, relative to the residual square of the model without
# features, are the same to rounding: the entries of two equal columns need not be equal bits.
_TIE = 1e-11
# A step has to lower the cost by more than what rounding could feign.
_PROGRESS = 1e-10


class Candidates:
    """The terms whose exchange is considered, and whether they are inside now."""

    def __init__(self, terms: Sequence[Columns]) -> None:
        self.terms = terms
        self.single = all(len(term) == 1 for term in terms)
        self.first = np.array([term[0] for term in terms], dtype=np.intp)
        self.inside = np.zeros(len(terms), dtype=bool)
        self.which = np.arange(len(terms))

    def outlook(self, tableau: Tableau | PartialCholesky) -> Outlook:
        """All exchanges, by the formula for single columns where every term is one."""
        if isinstance(tableau, PartialCholesky) or (self.single and not tableau.stranded().any()):
            every, columns = tableau.outlook(), self.first[self.which]
            return Outlook(every.square[columns], every.held_square[columns], every.change[columns])
        return tableau.outlook_of([self.terms[int(i)] for i in self.which], self.leaving)

    @property
    def leaving(self) -> NDArray[np.bool_]:
        """Which of those considered are inside."""
        return self.inside[self.which]


class Scorer(Protocol):
    """Prices models: smaller is better."""

    @property
    def tableau(self) -> Tableau | PartialCholesky:
        """Of all rows."""

    def costs(self, candidates: Candidates) -> tuple[Array, Array]:
        """For the exchange of each candidate its cost and, to order equal costs, its square.

        Infinite where no exchange is possible.
        """

    def cost(self) -> float:
        """The cost of the present model."""

    def progress(self, cost: float) -> float:
        """By how much a cost has to fall to count as less."""

    def exchange(self, term: Columns, leaves: bool) -> None:
        """Make an exchange."""

    def record(self) -> dict[str, Any]:
        """What to write down about the present model."""


class FitScorer:
    """Prices a model by a criterion of its fit.

    Parameters
    ----------
    tableau : Tableau or PartialCholesky
        Of all rows, one target.
    criterion : Criterion
    """

    def __init__(self, tableau: Tableau | PartialCholesky, criterion: Criterion) -> None:
        self.tableau, self.criterion = tableau, criterion
        # Squares below this are rounding: fitting it would look like ever better models.
        self.floor = tableau.floor

    def parameters(self) -> int:
        return int(self.tableau.inside.sum()) + self.criterion.constant

    def square(self) -> float:
        return max(float(self.tableau.square()[0]), self.floor)

    def costs(self, candidates: Candidates) -> tuple[Array, Array]:
        outlook = candidates.outlook(self.tableau)
        square = np.maximum(outlook.square[:, 0], self.floor)
        can = candidates.leaving | (outlook.change != 0)
        cost = self.criterion.cost(square, self.parameters() + outlook.change)
        can_tell = can & ~np.isnan(cost)
        return np.where(can_tell, cost, np.inf), np.where(can, square, np.inf)

    def cost(self) -> float:
        return float(self.criterion.cost(self.square(), self.parameters()))

    def progress(self, cost: float) -> float:
        return _PROGRESS * (1 + abs(cost)) if np.isfinite(cost) else 0.0

    def exchange(self, term: Columns, leaves: bool) -> None:
        if not leaves:
            self.tableau.enter(term)
        else:
            assert isinstance(self.tableau, Tableau)  # a partial factorisation only grows
            self.tableau.leave(term)

    def record(self) -> dict[str, Any]:
        square, parameters = self.square(), self.parameters()
        value = float(self.criterion.value(square, parameters))
        table = self.criterion.table(square, parameters)
        return {"criterion": value, "rss": square, "n_parameters": parameters, **table}


class HeldOutScorer:
    """Prices a model by its mean squared error on held-out rows, over all folds.

    Parameters
    ----------
    fit : FitScorer
        Of all rows, for the books.
    folds : sequence of Tableau
        One per fold, with held-out rows.
    """

    def __init__(self, fit: FitScorer, folds: Sequence[Tableau]) -> None:
        self.fit, self.folds = fit, folds
        self.tableau = fit.tableau
        self.weights = np.array([fold.held.weight for fold in folds if fold.held is not None])
        self.rows = float(self.weights.sum())
        self.floor = sum(fold.held_floor() for fold in folds) / self.rows

    def costs(self, candidates: Candidates) -> tuple[Array, Array]:
        square = self.fit.costs(candidates)[1]
        can = np.isfinite(square)
        total = np.zeros(len(square))
        for fold in self.folds:
            total += candidates.outlook(fold).held_square[:, 0]
        cost = np.maximum(total / self.rows, self.floor)
        return np.where(can, cost, np.inf), square

    def cost(self) -> float:
        total = sum(float(fold.held_square()[0]) for fold in self.folds)
        return max(total / self.rows, self.floor)

    def progress(self, cost: float) -> float:
        return _PROGRESS * abs(cost)

    def exchange(self, term: Columns, leaves: bool) -> None:
        self.fit.exchange(term, leaves)
        # Columns that depend on others in the whole do not come in where only a fold could.
        now = self.tableau.inside
        for fold in self.folds:
            fold.leave(np.flatnonzero(fold.wanted & ~now))
            fold.enter(np.flatnonzero(now & ~fold.wanted))

    def record(self) -> dict[str, Any]:
        each = np.array([fold.held_square()[0] for fold in self.folds]) / self.weights
        spread = float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else np.nan
        books = self.fit.record()
        return {**books, "criterion": self.cost(), "standard_error": spread}


@dataclass
class Selection:
    """What a search found.

    Attributes
    ----------
    columns : array of int
        The columns of the model, ascending.
    history : list of dict
        The books: one record per step.
    finished : bool
        False if the search was ended before its time.
    """

    columns: Columns
    history: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = True


class Search:
    """A greedy search.

    Parameters
    ----------
    scorer : Scorer
        Priced at the model to start from.
    terms : list of arrays of int
        Columns that go together, by their lowest column.
    direction : {"forward", "backward", "both"}
    exactly : int, optional
        Go on until so many terms are inside, whatever they cost.
    at_most : int, optional
        Let no term in beyond this number.
    """

    def __init__(
        self,
        scorer: Scorer,
        terms: list[Columns],
        direction: str,
        exactly: int | None = None,
        at_most: int | None = None,
    ) -> None:
        self.scorer, self.terms, self.direction = scorer, terms, direction
        self.candidates = Candidates(terms)
        self.exactly = exactly
        self.at_most = len(terms) if at_most is None else at_most
        self.inside = self.candidates.inside
        self.scale = max(scorer.tableau.y_square, 1e-300)

    def run(self, on_step: Callable[[dict[str, Any]], bool] | None = None) -> Selection:
        """Search to the end; Ctrl-C ends it early and keeps what was found.

        ``on_step`` is given the record of every step; if it returns True the search ends.
        """
        found = Selection(np.empty(0, dtype=np.intp))
        try:
            self._begin(found)
            while (choice := self._choose()) is not None:
                leaves = bool(self.inside[choice])
                before = self.scorer.tableau.inside.copy()
                self.scorer.exchange(self.terms[choice], leaves)
                self.inside[choice] = not leaves
                self._write(found, before)
                if on_step is not None and on_step(found.history[-1]):
                    found.finished = False
                    break
        except KeyboardInterrupt:
            if not found.history:
                raise
            found.finished = False
        return found

    def _begin(self, found: Selection) -> None:
        before = self.scorer.tableau.inside.copy()
        tableau = self.scorer.tableau
        if self.direction == "backward" and isinstance(tableau, Tableau):
            every = np.sort(np.concatenate(self.terms))
            free = every[tableau.independent(every)]
            # Terms of which nothing is independent of earlier columns stay outside for good.
            self.inside[:] = [np.isin(term, free).any() for term in self.terms]
            used = [term for term, inside in zip(self.terms, self.inside) if inside]
            if used:
                self.scorer.exchange(np.sort(np.concatenate(used)), False)
        self._write(found, before)

    def _write(self, found: Selection, before: NDArray[np.bool_]) -> None:
        now = self.scorer.tableau.inside
        found.columns = np.flatnonzero(now)
        found.history.append(
            {
                "step": len(found.history),
                "entered": np.flatnonzero(now & ~before).tolist(),
                "left": np.flatnonzero(before & ~now).tolist(),
                "n_features": int(now.sum()),
                "n_terms": int(self.inside.sum()),
                **self.scorer.record(),
            }
        )

    def _choose(self) -> int | None:
        """The term to exchange next, or None at the end."""
        count = int(self.inside.sum())
        if self.exactly is not None and count == self.exactly:
            return None
        may_enter = self.direction != "backward" and count < self.at_most
        may_leave = self.direction != "forward" and count > 0
        open_ = np.flatnonzero(np.where(self.inside, may_leave, may_enter))
        if len(open_) == 0:
            return None
        self.candidates.which = open_
        cost, square = self.scorer.costs(self.candidates)
        best = self._cheapest(cost, square)
        if best is None:
            return None
        if self.exactly is None:
            now = self.scorer.cost()
            if not cost[best] < now - self.scorer.progress(now):
                return None
        return int(open_[best])

    def _cheapest(self, cost: Array, square: Array) -> int | None:
        """The lowest of the cheapest, equal costs to rounding being equal."""
        possible = np.isfinite(square)
        if not possible.any():
            return None
        lowest = cost[possible].min()
        if np.isfinite(lowest):
            close = possible & (cost <= lowest + self.scorer.progress(float(lowest)))
        else:  # no criterion tells them apart: the better fit
            close = possible & (cost == lowest)
        least = square[close].min()
        close &= square <= least + _TIE * self.scale
        return int(np.flatnonzero(close)[0])
