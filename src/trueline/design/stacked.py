"""A design of row batches that are read anew in every pass, from a disk or from anywhere else."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.design.base import Accuracy, Array, Design, SecondMoments
from trueline.design.dense import DenseDesign

_EPS = float(np.finfo(np.float64).eps)
# More numbers than this are not held at once where rows are taken in order.
_MOST_COPIED = 2_000_000


# So many moments are kept: of a target or two, with and without weights.
_MOST_KEPT = 4


def _plain(weights: Array | None) -> Array | None:
    """None for weights of one."""
    return None if weights is None or (weights == 1).all() else weights


def _same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _cut(by_row: Iterable[Array | None], where: slice) -> list[Array | None]:
    """What belongs to some rows."""
    return [None if rows is None else rows[where] for rows in by_row]


def added_in_pairs(terms: Iterable[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum of some terms, two neighbours at a time, with few of them held at once.

    Examples
    --------
    >>> from trueline.design.stacked import added_in_pairs
    >>> added_in_pairs("abcdef", lambda a, b: f"({a}{b})")
    '(((ab)(cd))(ef))'
    """
    waiting: list[Any] = []  # sums of powers of two many terms, falling
    for number, term in enumerate(terms, 1):
        while number % 2 == 0:
            term, number = add(waiting.pop(), term), number // 2
        waiting.append(term)
    return reduce(lambda right, left: add(left, right), reversed(waiting))


def _joint(one: SecondMoments, other: SecondMoments) -> SecondMoments:
    """The sums over both parts."""
    sums = [a + b for a, b in zip(one[:4], other[:4])]
    return SecondMoments(sums[0], sums[1], sums[2], sums[3], max(one.terms, other.terms) + 1)


def sums_at(
    design: Design, W: Array, derive: Callable[..., tuple[Array, Array | None]], *by_row: Any
) -> tuple[Array, Array, Array, Array]:
    """X W, X^T U, X^T diag(h) X and X^T h, in one pass; ``derive(X W, *own)`` gives U and h.

    What a step of Newton's method asks of the rows. Without an h the last two are empty.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import DenseDesign
    >>> from trueline.design.stacked import sums_at
    >>> X = DenseDesign(np.array([[1.0], [2.0]]))
    >>> sums_at(X, np.ones(1), lambda z, y: (z - y, np.ones(2)), np.array([3.0, 3.0]))
    (array([1., 2.]), array([-4.]), array([[5.]]), array([3.]))
    """

    def of_piece(part: Design, *own: Any) -> tuple[Any, ...]:
        Z = part.matvec(W)
        U, h = derive(Z, *own)
        if h is None:
            return [Z], part.rmatvec(U), np.empty((0, 0)), np.empty(0)
        sums = part.second_moments(np.empty((len(h), 0)), h, None)
        return [Z], part.rmatvec(U), sums.gram, sums.total

    def of_part(part: Design, *by_row: Any) -> tuple[Any, ...]:
        pieces = part.pieces() if isinstance(part, DenseDesign) else [(slice(None), part)]
        terms = (of_piece(piece, *_cut(by_row, where)) for where, piece in pieces)
        return added_in_pairs(terms, add)

    def add(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(a + b for a, b in zip(one, other))

    parts, *sums = design.summed(of_part, *by_row, add=add)
    scores = np.concatenate(parts)
    if isinstance(design, StackedDesign):
        design.note_scores(W, scores)
    return scores, sums[0], sums[1], sums[2]


class StackedDesign(Design):
    """Rows in consecutive parts, each of which is a design; sums run in their order.

    Every product is one pass over the parts, of which one is held at a time. Results do not depend
    on threads, and only in their last digits on how the rows are cut.
    """

    is_sparse = False
    is_sequential = True
    #: Names of the columns, and what belongs to the rows, where a fit finds them here.
    columns: Any = None
    target: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None
    #: Whether the last scores are kept, as in a fit, which asks for the same again.
    remembers = False

    def __init__(self, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self.nonzeros = shape[0] * shape[1]
        #: (target, weights, moments) that were read before: what least squares needs of the rows.
        self.kept_moments: list[tuple[Array, Array | None, Any]] = []
        self._scored: list[tuple[Array, Array]] = []

    @abstractmethod
    def parts(self) -> Iterator[tuple[slice, Design]]:
        """Where each part is, and its rows."""

    def each(self, make: Callable[..., Any], *by_row: Array | None) -> Iterator[Any]:
        for where, part in self.parts():
            yield make(part, *_cut(by_row, where))

    def stacked(self, make: Callable[..., Array], *by_row: Array | None) -> Array:
        """What is made of the parts, one after the other."""
        return np.concatenate(list(self.each(make, *by_row)))

    def summed(
        self,
        make: Callable[..., Any],
        *by_row: Array | None,
        add: Callable[[Any, Any], Any] = operator.add,
    ) -> Any:
        return added_in_pairs(self.each(make, *by_row), add)

    def mapped(self, make: Callable[[Design], Design], columns: int) -> StackedDesign:
        """Rows that are made of these, part by part, in every pass anew."""
        return _Mapped(self, make, columns)

    def remember(self, is_fit: bool) -> None:
        """At the beginning and at the end of a fit."""
        self.remembers, self._scored = is_fit, []

    def matvec(self, W: Array) -> Array:
        for known, Z in self._scored:
            if np.array_equal(W.ravel(), known):
                return Z.reshape(-1, *W.shape[1:]).copy()
        Z = self.stacked(lambda part: part.matvec(W))
        self.note_scores(W, Z)
        return Z

    def note_scores(self, W: Array, Z: Array) -> None:
        """Keep X W, if a fit is going on."""
        if self.remembers:
            self._scored = [*self._scored[-1:], (W.ravel().copy(), Z.copy())]

    def rmatvec(self, U: Array) -> Array:
        return np.asarray(self.summed(lambda part, own: part.rmatvec(own), U))

    def curved_product(self, H: Array, V: Array, level: Array) -> tuple[Array, Array]:
        both = self.summed(lambda part, own: np.vstack(part.curved_product(own, V, level)), H)
        return both[:-1], both[-1]

    def second_moments(self, Y: Array, weights: Array | None, shift: Array | None) -> SecondMoments:
        def make(part: Design, Y: Array, weights: Array | None) -> SecondMoments:
            return part.second_moments(Y, weights, shift)

        return SecondMoments(*self.summed(make, Y, weights, add=_joint))

    def kernel(self, weights: Array | None, shift: Array | None) -> Array:
        return DenseDesign(self.toarray()).kernel(weights, shift)

    def known_moments(self, weights: Array | None, target: Array | None = None) -> Any:
        """Moments under these weights (and of this target) that were read before, or None."""
        for known, given, moments in self.kept_moments:
            if _same(given, _plain(weights)) and (target is None or _same(known, target)):
                return moments
        return None

    def keep_moments(self, target: Array, weights: Array | None, moments: Any) -> None:
        """Keep what was read of all rows, and forget the oldest."""
        kept = (*self.kept_moments, (target, _plain(weights), moments))
        self.kept_moments = list(kept[-_MOST_KEPT:])

    def column_means(self, weights: Array | None) -> Array:
        known = self.known_moments(weights)
        if known is not None:
            return known.x_mean
        s = np.ones(self.shape[0]) if weights is None else weights
        return self.rmatvec(s) / s.sum()

    def column_largest(self) -> Array:
        return np.asarray(self.summed(lambda part: part.column_largest(), add=np.maximum))

    def column_squares(self, weights: Array | None, shift: Array | None) -> Array:
        known = self.known_moments(weights)
        if known is not None:
            return np.asarray(known.squares_about(shift))
        return np.asarray(self.summed(lambda part, own: part.column_squares(own, shift), weights))

    def row_squares(self, shift: Array | None) -> Array:
        return self.stacked(lambda part: part.row_squares(shift))

    def accuracy(self, weights: Array | None, magnitude: Array | None = None) -> Accuracy:
        n, d = self.shape
        if magnitude is None:
            magnitude = np.sqrt(self.column_squares(weights, None)) * (1 + n * _EPS)
        return Accuracy(d, n, magnitude)  # sums one after the other, at worst

    def blocks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        for where, part in self.parts():
            for own, block in part.blocks(rows):
                yield slice(where.start + own.start, where.start + own.stop), block

    def take(self, rows: NDArray[np.intp] | slice) -> Design:
        if isinstance(rows, slice):
            return self[np.arange(self.shape[0])[rows]]
        wanted = np.arange(self.shape[0])[rows]
        if len(wanted) * self.shape[1] > _MOST_COPIED and (np.diff(wanted) > 0).all():
            return self[wanted]
        order = np.argsort(wanted, kind="stable")
        found = np.empty((len(wanted), self.shape[1]), self.dtype)
        for where, part in self.parts() if len(wanted) else ():
            first, last = np.searchsorted(wanted[order], [where.start, where.stop])
            own = order[first:last]
            if len(own):
                found[own] = part.take(wanted[own] - where.start).toarray()
        return DenseDesign(found)

    def glance(self, count: int) -> Array:
        """The first rows: others would cost a pass."""
        return next(self.blocks(count))[1]

    def __getitem__(self, rows: Any) -> Any:
        """Some rows in ascending order, or all rows of some columns (``[:, columns]``): no copy."""
        if isinstance(rows, tuple):
            every, columns = rows
            chosen = self[every]
            places = np.arange(self.shape[1])[columns]
            own = chosen.of_columns(places)
            own.kept_moments = [(Y, s, m.columns(places)) for Y, s, m in chosen.kept_moments]
            return own
        if isinstance(rows, slice) and rows == slice(None):
            return self
        return self.of_rows(np.arange(self.shape[0])[rows])

    def of_columns(self, columns: NDArray[np.intp]) -> StackedDesign:
        """All rows of some columns."""
        own = self.mapped(lambda part: DenseDesign(part.toarray()[:, columns]), len(columns))
        own.dtype = self.dtype
        return own

    def of_rows(self, rows: NDArray[np.intp]) -> StackedDesign:
        """Some rows in ascending order."""
        return _Chosen(self, rows)

    def __matmul__(self, W: Array) -> Array:
        return self.matvec(W)

    def row(self, i: int) -> Array:
        return self.take(np.array([i])).row(0)


class _Chosen(StackedDesign):
    """Some rows of another one, in ascending order."""

    def __init__(self, base: StackedDesign, rows: NDArray[np.intp]) -> None:
        super().__init__((len(rows), base.shape[1]), base.dtype)
        self._base, self._chosen = base, rows

    def parts(self) -> Iterator[tuple[slice, Design]]:
        last = 0
        for where, part in self._base.parts():
            first, last = np.searchsorted(self._chosen, [where.start, where.stop])
            if first < last or (last == 0 == len(self._chosen)):
                own = self._chosen[first:last] - where.start
                yield slice(int(first), int(last)), part.take(own)
            if last == len(self._chosen) and where.stop < self._base.shape[0]:
                break

    def of_columns(self, columns: NDArray[np.intp]) -> StackedDesign:
        return _Chosen(self._base.of_columns(columns), self._chosen)


class _Mapped(StackedDesign):
    """Rows made of those of another one."""

    def __init__(self, base: StackedDesign, make: Callable[[Design], Design], columns: int) -> None:
        super().__init__((base.shape[0], columns), np.dtype(np.float64))
        self._base, self._make = base, make

    def parts(self) -> Iterator[tuple[slice, Design]]:
        for where, part in self._base.parts():
            yield where, self._make(part)

    def each(self, make: Callable[..., Any], *by_row: Array | None) -> Iterator[Any]:
        first = self._make
        return self._base.each(lambda part, *own: make(first(part), *own), *by_row)

    def summed(
        self,
        make: Callable[..., Any],
        *by_row: Array | None,
        add: Callable[[Any, Any], Any] = operator.add,
    ) -> Any:
        first = self._make
        return self._base.summed(lambda part, *own: make(first(part), *own), *by_row, add=add)

    def take(self, rows: NDArray[np.intp] | slice) -> Design:
        return self._make(self._base.take(rows))

    def sample(self, count: int) -> NDArray[np.intp]:
        return self._base.sample(count)
