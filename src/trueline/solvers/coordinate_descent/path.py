r"""The solutions along a sequence of penalties, each with its duality gap.

    minimise over w in [lower, upper]
        1/2 sum_i s_i (y_i - x_i.w - b)^2 + sum_j (l_j abs(w_j) + a_j/2 w_j^2)

Only some columns are let into the restricted problem; the correlations of all columns with its
residual then tell whether others should have been. The solution moves along straight lines between
changes of its support (M. R. Osborne, B. Presnell, B. A. Turlach, "A new approach to variable
selection in least squares problems", IMA J. Numer. Anal. 20 (2000) 389-403), and so do the
correlations: extrapolating them says which columns will be needed, in the manner of the Hessian
rule (J. Larsson, J. Wallin, "The Hessian screening rule", NeurIPS 2022). One reading of the data
then confirms the solution. A column that was missed is let in, and the penalty is solved for again,
so that the answer does not rest on the prediction.

With r the residual, q = X^T r, and t <= 1 such that t q is in the domain of the conjugate p*,

    gap = 1/2 (1 - t)^2 ||r||^2 + sum_j (p_j(w_j) + p_j*(t q_j) - t q_j w_j).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.coordinate_descent.columns import RestrictedColumns
from trueline.solvers.coordinate_descent.gram import RestrictedGram
from trueline.solvers.coordinate_descent.kernels import (
    dual_scale,
    fenchel_gap,
    find_missed,
    find_near,
    largest,
)
from trueline.solvers.coordinate_descent.source import At, PathPoint, RowsSource, Source, Terms

__all__ = ["PathPoint", "WorkingSetPath", "follow_path"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# A column is let in when its predicted correlation comes this close to its threshold.
_NEAR = 0.95
_FEW_COLUMNS = 128
# A violation by less than this share of the tolerance is left alone: the gap tells.
_TOLERATED = 0.01
# A gap of this share of the target's square is rounding.
_ROUNDING = 1e-14
# The restricted problem is solved to this share of the gap that is asked for.
_SHARE = 0.7


class WorkingSetPath:
    """The solutions along a sequence of penalties.

    Parameters
    ----------
    source : Source
    terms : sequence of Terms
        The penalties, each near the one before.
    positions : sequence of float
        Where each stands on the path, decreasing: correlations are extrapolated in this number.
    tolerances : sequence of float
        For each, the gap relative to half the squared norm of the target that is asked for.
    start : array of shape (d,), optional
        Coefficients to start from.
    is_one_answer : bool
        Whether only the last solution is wanted.

    Attributes
    ----------
    points : list of PathPoint
        The solutions that are confirmed.
    present : PathPoint
        The present point, confirmed or not.
    correlation : array of shape (d,)
        X^T r there.
    """

    def __init__(
        self,
        source: Source,
        terms: Sequence[Terms],
        positions: Sequence[float],
        tolerances: Sequence[float],
        start: Array | None = None,
        is_one_answer: bool = False,
    ) -> None:
        self._is_one_answer = is_one_answer
        self.source, self.points = source, list[PathPoint]()
        self._terms, self._positions, self._tolerances = terms, positions, tolerances
        self._restricted: RestrictedGram | RestrictedColumns = RestrictedGram(source.scale)
        # For each column when it was let in; and the columns in this order
        self._entry = np.full(source.n_features, -1)
        self._inside = np.empty(0, dtype=np.intp)
        self._sweeps, self._outside = 0, source.n_features
        self._before: Array | None = None  # correlations at the last but one confirmed point
        # Coefficients, by entry, and residuals of the last two points
        self._trail: list[tuple[Array, Array]] = []
        self._begin(start)

    @property
    def is_done(self) -> bool:
        """Whether all penalties were solved for."""
        return len(self.points) == len(self._terms)

    def _begin(self, start: Array | None) -> None:
        """The first restricted problem: what cannot rest at zero, and what the start brings."""
        source, terms = self.source, self._terms[0]
        w = np.minimum(np.maximum(0.0 if start is None else start, terms.lower), terms.upper)
        at = source.at(np.zeros((1, 0)))
        self._record(at, 0)
        if w.any():
            self._open(w)
            at = source.at(w[self._inside][None])
            self._record(at, 0)
            self._restricted.set_terms(terms)
            self._restore(w[self._inside])
        self._last = self.correlation
        square = float(at.residual_square[0])
        self.present = PathPoint(self._inside[:0], w[:0], 0.5 * square, np.inf, square, 0)
        if w.any():
            self.present = self._point(w[self._inside], self.correlation, square, terms)
        self._proposals, self._proposed = np.empty((0, source.n_features)), at
        strengths = np.array([each.strength or 0.0 for each in self._terms])
        if not w.any() and (strengths > 0).all() and (strengths[1:] < strengths[:-1]).all():
            curvatures = np.array([each.same_curvature for each in self._terms])
            self._proposals, self._proposed = source.proposals(strengths, curvatures)
        if not w.any() and not len(self._proposals):
            self._open(w)

    def _open(self, w: Array) -> None:
        """Let in what cannot rest at zero, and what is not at rest."""
        terms = self._terms[0]
        free = (terms.linear == 0) & (terms.curvature == 0)
        self._add_columns(np.flatnonzero((w != 0) | free | self.source.gathers_all))

    @property
    def proposed(self) -> int:
        """How many of the points that were confirmed are those of the homotopy."""
        return min(len(self.points), len(self._proposals))

    def advance(self) -> list[PathPoint]:
        """Solve for the next penalty and confirm the solution by one reading of the data.

        Returns the points that were confirmed, possibly none.
        """
        first = len(self.points)
        if first < len(self._proposals):
            self._take_proposals()
            return self.points
        terms = self._terms[first]
        self._add_columns(self._predicted(first))
        row = self._solve(first)
        at = self.source.at(row[None], self._threshold(first + 1))
        self._record(at, 0)
        missed = self._missed(terms, self._tolerances[first])
        self.present = self._point(row, self.correlation, float(at.residual_square[0]), terms)
        if not len(missed):
            self.points.append(self.present)
            self._before, self._last = self._last, self.correlation
            if self._residual is not None:
                self._trail = [*self._trail[-1:], (row, self._residual)]
        self._restore(row)
        self._add_columns(missed)
        return self.points[first:]

    def _take_proposals(self) -> None:
        """Confirm the solutions that were proposed; from the first bad one they go."""
        W, at = self._proposals, self._proposed
        terms = self._terms[: len(W)]
        limits = np.maximum(self._tolerances[: len(W)], _ROUNDING) * self.source.scale
        gaps, objectives = _free_gaps(W, at, terms)
        good = len(W) if (gaps <= limits).all() else int(np.argmin(gaps <= limits))
        self._proposals = W[:good]
        numbers = objectives.tolist(), gaps.tolist(), at.residual_square.tolist()
        for row, objective, gap, square in zip(W[:good], *numbers):
            columns = np.flatnonzero(row)
            self.points.append(PathPoint(columns, row[columns], objective, gap, square, 0))
        for i in range(max(good - 2, 0), min(good + 1, len(W))):
            self._record(at, i)
            if i < good:
                self._before, self._last = self._last, self.correlation
        if good:
            self.present = self.points[-1]
        if not self.is_done:
            self._open(np.zeros(self.source.n_features))
            self._restore(W[min(good, len(W) - 1), self._inside])

    def _threshold(self, place: int) -> float:
        """Smaller correlations matter neither now nor for the penalty at this place."""
        terms = self._terms[min(place, len(self._terms) - 1)]
        return 0.0 if terms.strength is None else _NEAR * terms.strength

    def _record(self, at: At, i: int) -> None:
        """What is known about the present point."""
        self.correlation = at.correlation[i]
        self._largest = largest(self.correlation)
        self._residual = None if at.residual is None else at.residual[i]

    def _restore(self, row: Array) -> None:
        """Let the restricted problem stand at the present point, with coefficients by entry."""
        restricted = self._restricted
        w, q = row[self._entry[restricted.columns]], self.correlation[restricted.columns]
        if isinstance(restricted, RestrictedColumns):
            assert self._residual is not None
            restricted.restore(w, q, self._residual)
        else:
            restricted.restore(w, q)

    def _add_columns(self, new: Integers) -> None:
        """Let columns into the restricted problem."""
        if not len(new):
            return
        self._outside -= len(new)
        if self._restricted.size + len(new) > self.source.most_gram:
            self._leave_gram()
        restricted = self._restricted
        self._entry[new] = np.arange(restricted.size, restricted.size + len(new))
        self._inside = np.append(self._inside, new)
        w, q = np.zeros(len(new)), self.correlation[new]
        if isinstance(restricted, RestrictedColumns):
            assert isinstance(self.source, RowsSource)
            restricted.extend(new, self.source.take_in(new), w, q)
        else:
            block = self.source.gather(new)
            order = self._entry[np.concatenate([restricted.columns, new])]
            restricted.extend(new, block[:, order], w, q)

    def _leave_gram(self) -> None:
        """So many columns are in that their Gram matrix costs more than it saves."""
        old = self._restricted
        if isinstance(old, RestrictedColumns):
            return
        assert isinstance(self.source, RowsSource)
        assert self._residual is not None
        self._restricted = RestrictedColumns(self.source, old.sweeps)
        by_entry = np.argsort(self._entry[old.columns])
        columns, w = old.columns[by_entry], old.coef[by_entry]
        q = self.correlation[columns]
        self._restricted.extend(columns, old.squares[by_entry], w, q)
        self._restricted.restore(w, q, self._residual)
        self._restricted.active = old.active

    def _predicted(self, first: int) -> Integers:
        """The columns to let in before the next penalty is solved for."""
        if self._outside == 0:
            return np.empty(0, dtype=np.intp)
        terms, at = self._terms[first], self._positions
        q, before, way = self._last, self._last, 0.0
        if self._before is not None and first > 1:
            before = self._before
            way = (at[first - 1] - at[first]) / (at[first - 2] - at[first - 1])
        if terms.strength is not None:
            found = np.empty(len(q), dtype=np.intp)
            count = find_near(q, before, way, _NEAR * terms.strength, self._entry, found)
            return self._foremost(found[:count], q)
        q = q + (q - before) * way
        with np.errstate(divide="ignore", invalid="ignore"):
            nearness = np.where(self._entry < 0, np.abs(q) / terms.linear, 0.0)
        nearness[((q > 0) & (terms.upper <= 0)) | ((q < 0) & (terms.lower >= 0))] = 0.0
        return self._foremost(np.flatnonzero(nearness >= _NEAR), nearness)

    def _foremost(self, columns: Integers, size: Array) -> Integers:
        """No more columns than make sense at once: those of the largest absolute ``size``."""
        most = max(_FEW_COLUMNS, self._restricted.active)
        if len(columns) <= most:
            return columns
        return np.sort(columns[np.argpartition(np.abs(size[columns]), -most)[-most:]])

    def _solve(self, first: int) -> Array:
        """The restricted solution of a penalty, in the order of entry."""
        restricted, at = self._restricted, self._positions
        restricted.set_terms(self._terms[first])
        if isinstance(restricted, RestrictedColumns) and self._is_on_its_way():
            way = (at[first - 1] - at[first]) / (at[first - 2] - at[first - 1])
            restricted.extrapolate(*self._trail[0], way)
        is_last = self._is_one_answer and first == len(self._terms) - 1
        restricted.solve(_SHARE * self._tolerances[first] * restricted.scale, is_last)
        row = np.zeros(restricted.size)
        row[self._entry[restricted.columns]] = restricted.coef
        return row

    def _is_on_its_way(self) -> bool:
        """Whether the present point is the last one confirmed and knows where it came from."""
        return len(self._trail) == 2 and self._residual is self._trail[-1][1]

    def _missed(self, terms: Terms, tolerance: float) -> Integers:
        """Columns outside of the restricted problem that would move."""
        q, slack = self.correlation, _TOLERATED * tolerance
        if self._outside == 0:
            return np.empty(0, dtype=np.intp)
        if terms.strength is not None:
            if self._largest <= (1 + slack) * terms.strength:
                return np.empty(0, dtype=np.intp)
            over = np.flatnonzero(np.abs(q) >= (1 + slack) * terms.strength)
            return self._foremost(over[self._entry[over] < 0], q)
        found = np.empty(self.source.n_features, dtype=np.intp)
        limits = (terms.linear, terms.lower, terms.upper)
        count = find_missed(q, self._entry < 0, *limits, slack, found)
        return self._foremost(found[:count], np.abs(q) - terms.linear)

    def _point(self, row: Array, q: Array, square: float, terms: Terms) -> PathPoint:
        """The point with the coefficients ``row``, in the order of entry, and its gap."""
        inside, entries = self._inside, np.flatnonzero(row)
        order = np.argsort(inside[entries])
        columns, values = inside[entries][order], row[entries][order]
        # Columns outside rest at zero and are not pulled: their terms vanish.
        if terms.strength is not None:
            at = At(q[None, inside], np.array([square]))
            (gap,), (objective,) = _free_gaps(row[None], at, [terms], self._largest)
        else:
            t = dual_scale(q, terms.linear, terms.curvature, terms.lower, terms.upper)
            gap = 0.5 * (1 - t) ** 2 * square + fenchel_gap(t, q[inside], row, *terms.at(inside))
            linear, curvature, *_ = terms.at(columns)
            objective = 0.5 * square + linear @ np.abs(values) + 0.5 * curvature @ values**2
        sweeps, self._sweeps = self._restricted.sweeps - self._sweeps, self._restricted.sweeps
        return PathPoint(columns, values, float(objective), float(gap), square, sweeps)


def _free_gaps(
    W: Array, at: At, terms: Sequence[Terms], largest: float = 0.0
) -> tuple[Array, Array]:
    """Gaps and objectives of points that nothing bounds, each with a strength of its own.

    ``largest`` is what correlations may have reached in columns that are left out here.
    """
    strengths = np.array([each.strength for each in terms], dtype=float)
    curvatures = np.array([each.same_curvature for each in terms])
    half, sizes = 0.5 * at.residual_square, np.abs(at.correlation)
    l, a = strengths[:, None], curvatures[:, None]
    penalty = l * np.abs(W)
    t = np.ones(len(W))
    if not curvatures.all():
        top = np.maximum(sizes.max(axis=1, initial=0.0), largest)
        t = np.where(curvatures > 0, 1.0, strengths / np.maximum(strengths, top))
    terms_of_gap = penalty - t[:, None] * at.correlation * W
    if curvatures.any():
        squares = 0.5 * a * W**2
        excess = np.maximum(sizes - l, 0.0)
        dual = np.divide(0.5 * excess**2, a, out=np.zeros_like(sizes), where=a > 0)
        penalty, terms_of_gap = penalty + squares, terms_of_gap + squares + dual
    gaps = (1 - t) ** 2 * half + np.maximum(terms_of_gap, 0.0).sum(axis=1)
    return gaps, half + penalty.sum(axis=1)


def follow_path(
    source: Source,
    terms: Sequence[Terms],
    positions: Sequence[float],
    tol: float,
    start: Array | None = None,
) -> Iterator[PathPoint]:
    """Solve for each of the penalties in turn; the points come as soon as they are confirmed."""
    path = WorkingSetPath(source, terms, positions, [tol] * len(terms), start)
    while not path.is_done:
        yield from path.advance()
