r"""The solutions along a sequence of penalties, each with its duality gap.

    minimise over w in [lower, upper]
        1/2 sum_i s_i (y_i - x_i.w - b)^2 + sum_j (l_j abs(w_j) + a_j/2 w_j^2)

Only the columns of a working set take part in the restricted problem; the correlations of all
columns with its residual then show which others violate their optimality conditions. The solution
moves along straight lines between changes of its support (M. R. Osborne, B. Presnell, B. A.
Turlach, "A new approach to variable selection in least squares problems", IMA J. Numer. Anal. 20
(2000) 389-403), and so do the correlations: extrapolating them says which columns will be needed,
in the manner of the Hessian rule (J. Larsson, J. Wallin, "The Hessian screening rule", NeurIPS
2022). One reading of the data then confirms the solution. A column that was missed enters the
working set, and the penalty is solved for again, so that the answer does not depend on the
prediction.

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

# A column enters the working set when its predicted correlation comes this close to its threshold.
_NEAR = 0.95
_FEW_COLUMNS = 128
# A violation by less than this share of the tolerance is tolerated: the gap is what counts.
_TOLERATED = 0.01
# A gap of this share of the target's squared norm is rounding.
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
    current : PathPoint
        The current point, confirmed or not.
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
        # For each column its place in the working set, -1 outside; and the columns in this order
        self._entry = np.full(source.n_features, -1)
        self._working_set = np.empty(0, dtype=np.intp)
        self._sweeps, self._n_outside = 0, source.n_features
        # Correlations at the last but one confirmed point
        self._previous_correlation: Array | None = None
        # Coefficients, in the order of the working set, and residuals of the last two points
        self._recent_points: list[tuple[Array, Array]] = []
        self._begin(start)

    @property
    def is_done(self) -> bool:
        """Whether all penalties were solved for."""
        return len(self.points) == len(self._terms)

    def _begin(self, start: Array | None) -> None:
        """The first working set: columns without a penalty, and those that the start uses."""
        source, terms = self.source, self._terms[0]
        w = np.minimum(np.maximum(0.0 if start is None else start, terms.lower), terms.upper)
        at = source.at(np.zeros((1, 0)))
        self._record(at, 0)
        if w.any():
            self._enter_nonzero(w)
            at = source.at(w[self._working_set][None])
            self._record(at, 0)
            self._restricted.set_terms(terms)
            self._restore(w[self._working_set])
        self._confirmed_correlation = self.correlation
        square = float(at.residual_square[0])
        self.current = PathPoint(self._working_set[:0], w[:0], 0.5 * square, np.inf, square, 0)
        if w.any():
            self.current = self._point(w[self._working_set], self.correlation, square, terms)
        self._proposals, self._proposed = np.empty((0, source.n_features)), at
        strengths = np.array([each.strength or 0.0 for each in self._terms])
        if not w.any() and (strengths > 0).all() and (strengths[1:] < strengths[:-1]).all():
            curvatures = np.array([each.same_curvature for each in self._terms])
            self._proposals, self._proposed = source.proposals(strengths, curvatures)
        if not w.any() and not len(self._proposals):
            self._enter_nonzero(w)

    def _enter_nonzero(self, w: Array) -> None:
        """Enter the columns that cannot stay at zero, and those that are not zero in w."""
        terms = self._terms[0]
        free = (terms.linear == 0) & (terms.curvature == 0)
        self._add_columns(np.flatnonzero((w != 0) | free | self.source.takes_all_columns))

    @property
    def proposed(self) -> int:
        """How many of the points that were confirmed are those of the homotopy."""
        return min(len(self.points), len(self._proposals))

    def advance(self) -> list[PathPoint]:
        """Solve for the next penalty and confirm the solution by one reading of the data.

        Returns the points that were confirmed, possibly none.
        """
        k = len(self.points)
        if k < len(self._proposals):
            self._take_proposals()
            return self.points
        terms = self._terms[k]
        self._add_columns(self._predicted(k))
        row = self._solve(k)
        at = self.source.at(row[None], self._threshold(k + 1))
        self._record(at, 0)
        missed = self._missed(terms, self._tolerances[k])
        self.current = self._point(row, self.correlation, float(at.residual_square[0]), terms)
        if not len(missed):
            self.points.append(self.current)
            self._previous_correlation = self._confirmed_correlation
            self._confirmed_correlation = self.correlation
            if self._residual is not None:
                self._recent_points = [*self._recent_points[-1:], (row, self._residual)]
        self._restore(row)
        self._add_columns(missed)
        return self.points[k:]

    def _take_proposals(self) -> None:
        """Confirm the proposed solutions; the first too large gap and all after it are dropped."""
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
                self._previous_correlation = self._confirmed_correlation
                self._confirmed_correlation = self.correlation
        if good:
            self.current = self.points[-1]
        if not self.is_done:
            self._enter_nonzero(np.zeros(self.source.n_features))
            self._restore(W[min(good, len(W) - 1), self._working_set])

    def _threshold(self, k: int) -> float:
        """Smaller correlations matter neither now nor for penalty k."""
        terms = self._terms[min(k, len(self._terms) - 1)]
        return 0.0 if terms.strength is None else _NEAR * terms.strength

    def _record(self, at: At, i: int) -> None:
        """What is known about the current point."""
        self.correlation = at.correlation[i]
        self._largest = largest(self.correlation)
        self._residual = None if at.residual is None else at.residual[i]

    def _restore(self, row: Array) -> None:
        """Move the restricted problem to the current point; ``row`` is in the order of entry."""
        restricted = self._restricted
        w, q = row[self._entry[restricted.columns]], self.correlation[restricted.columns]
        if isinstance(restricted, RestrictedColumns):
            assert self._residual is not None
            restricted.restore(w, q, self._residual)
        else:
            restricted.restore(w, q)

    def _add_columns(self, new: Integers) -> None:
        """Let columns enter the working set."""
        if not len(new):
            return
        self._n_outside -= len(new)
        if self._restricted.size + len(new) > self.source.max_gram_columns:
            self._leave_gram()
        restricted = self._restricted
        self._entry[new] = np.arange(restricted.size, restricted.size + len(new))
        self._working_set = np.append(self._working_set, new)
        w, q = np.zeros(len(new)), self.correlation[new]
        if isinstance(restricted, RestrictedColumns):
            assert isinstance(self.source, RowsSource)
            restricted.extend(new, self.source.take_in(new), w, q)
        else:
            block = self.source.gather(new)
            order = self._entry[np.concatenate([restricted.columns, new])]
            restricted.extend(new, block[:, order], w, q)

    def _leave_gram(self) -> None:
        """Go on without the Gram matrix: of so many columns it costs more than it saves."""
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

    def _predicted(self, k: int) -> Integers:
        """The columns that enter the working set before penalty k is solved for."""
        if self._n_outside == 0:
            return np.empty(0, dtype=np.intp)
        terms, at = self._terms[k], self._positions
        q, before, extrapolation = self._confirmed_correlation, self._confirmed_correlation, 0.0
        if self._previous_correlation is not None and k > 1:
            before = self._previous_correlation
            extrapolation = (at[k - 1] - at[k]) / (at[k - 2] - at[k - 1])
        if terms.strength is not None:
            found = np.empty(len(q), dtype=np.intp)
            count = find_near(q, before, extrapolation, _NEAR * terms.strength, self._entry, found)
            return self._top_columns(found[:count], q)
        q = q + (q - before) * extrapolation
        with np.errstate(divide="ignore", invalid="ignore"):
            nearness = np.where(self._entry < 0, np.abs(q) / terms.linear, 0.0)
        nearness[((q > 0) & (terms.upper <= 0)) | ((q < 0) & (terms.lower >= 0))] = 0.0
        return self._top_columns(np.flatnonzero(nearness >= _NEAR), nearness)

    def _top_columns(self, columns: Integers, size: Array) -> Integers:
        """The columns of the largest absolute ``size``, as many as are worth entering at once."""
        most = max(_FEW_COLUMNS, self._restricted.active)
        if len(columns) <= most:
            return columns
        return np.sort(columns[np.argpartition(np.abs(size[columns]), -most)[-most:]])

    def _solve(self, k: int) -> Array:
        """The restricted solution for penalty k, in the order of entry."""
        restricted, at = self._restricted, self._positions
        restricted.set_terms(self._terms[k])
        if isinstance(restricted, RestrictedColumns) and self._can_extrapolate():
            extrapolation = (at[k - 1] - at[k]) / (at[k - 2] - at[k - 1])
            restricted.extrapolate(*self._recent_points[0], extrapolation)
        is_last = self._is_one_answer and k == len(self._terms) - 1
        restricted.solve(_SHARE * self._tolerances[k] * restricted.scale, is_last)
        row = np.zeros(restricted.size)
        row[self._entry[restricted.columns]] = restricted.coef
        return row

    def _can_extrapolate(self) -> bool:
        """Whether two confirmed points are known, the current one being the last."""
        return len(self._recent_points) == 2 and self._residual is self._recent_points[-1][1]

    def _missed(self, terms: Terms, tolerance: float) -> Integers:
        """Columns outside of the working set that violate their optimality conditions."""
        q, slack = self.correlation, _TOLERATED * tolerance
        if self._n_outside == 0:
            return np.empty(0, dtype=np.intp)
        if terms.strength is not None:
            if self._largest <= (1 + slack) * terms.strength:
                return np.empty(0, dtype=np.intp)
            over = np.flatnonzero(np.abs(q) >= (1 + slack) * terms.strength)
            return self._top_columns(over[self._entry[over] < 0], q)
        found = np.empty(self.source.n_features, dtype=np.intp)
        limits = (terms.linear, terms.lower, terms.upper)
        count = find_missed(q, self._entry < 0, *limits, slack, found)
        return self._top_columns(found[:count], np.abs(q) - terms.linear)

    def _point(self, row: Array, q: Array, square: float, terms: Terms) -> PathPoint:
        """The point with the coefficients ``row``, in the order of entry, and its gap."""
        working_set, entries = self._working_set, np.flatnonzero(row)
        order = np.argsort(working_set[entries])
        columns, values = working_set[entries][order], row[entries][order]
        # Columns outside the working set are zero, and stay so: their terms of the gap vanish.
        if terms.strength is not None:
            at = At(q[None, working_set], np.array([square]))
            (gap,), (objective,) = _free_gaps(row[None], at, [terms], self._largest)
        else:
            t = dual_scale(q, terms.linear, terms.curvature, terms.lower, terms.upper)
            gap = 0.5 * (1 - t) ** 2 * square
            gap += fenchel_gap(t, q[working_set], row, *terms.at(working_set))
            linear, curvature, *_ = terms.at(columns)
            objective = 0.5 * square + linear @ np.abs(values) + 0.5 * curvature @ values**2
        sweeps, self._sweeps = self._restricted.sweeps - self._sweeps, self._restricted.sweeps
        return PathPoint(columns, values, float(objective), float(gap), square, sweeps)


def _free_gaps(
    W: Array, at: At, terms: Sequence[Terms], largest: float = 0.0
) -> tuple[Array, Array]:
    """Gaps and objectives of points without bounds, each with a strength of its own.

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
