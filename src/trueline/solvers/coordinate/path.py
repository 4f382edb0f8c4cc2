r"""The solutions along a sequence of penalties, each with its duality gap.

    minimise over w in [lower, upper]
        1/2 sum_i s_i (y_i - x_i.w - b)^2 + sum_j (l_j abs(w_j) + a_j/2 w_j^2)

Only some columns are let into the restricted problem; the correlations of all columns with its
residual then tell whether others should have been. The solution moves along straight lines between
changes of its support (M. R. Osborne, B. Presnell, B. A. Turlach, "A new approach to variable
selection in least squares problems", IMA J. Numer. Anal. 20 (2000) 389-403), and so do the
correlations: extrapolating them says which columns will be needed, in the manner of the Hessian
rule (J. Larsson, J. Wallin, "The Hessian screening rule", NeurIPS 2022), and usually for several
penalties ahead. These are solved one after the other, and one reading of the data then confirms
them all. A column that was missed is let in, and everything from there on is done again, so that
the answer does not rest on the prediction.

With r the residual, q = X^T r, and t <= 1 such that t q is in the domain of the conjugate p*,

    gap = 1/2 (1 - t)^2 ||r||^2 + sum_j (p_j(w_j) + p_j*(t q_j) - t q_j w_j).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trueline.solvers.coordinate.gram import RestrictedGram, Terms
from trueline.solvers.coordinate.kernels import dual_scale, fenchel_gap, find_missed
from trueline.solvers.coordinate.source import Source

__all__ = ["PathPoint", "follow_path"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_MOST_AHEAD = 8
# A column is let in when its predicted correlation comes this close to its threshold.
_NEAR = 0.95
_FEW_COLUMNS = 256
# A violation by less than this share of the tolerance is left alone: the gap tells.
_TOLERATED = 0.01
# The restricted problem is solved to this share of the gap that is asked for.
_SHARE = 0.3


@dataclass(frozen=True)
class PathPoint:
    """One solution: its support with the coefficients there, the gap, and how it was found."""

    columns: Integers
    values: Array
    objective: float
    gap: float
    residual_square: float
    sweeps: int

    def coef(self, n_features: int) -> Array:
        """The coefficients as a dense vector."""
        w = np.zeros(n_features)
        w[self.columns] = self.values
        return w


@dataclass
class _Walk:
    """The state of a walk along the path."""

    source: Source
    restricted: RestrictedGram
    rest: Array
    entry: Integers
    correlation: Array  # at the last confirmed point
    present: Array  # at the point where the restricted problem stands
    before: Array | None = None  # at the confirmed point before the last
    step: float = 0.0
    sweeps: int = 0
    points: list[PathPoint] = field(default_factory=list)


def follow_path(
    source: Source,
    terms: Sequence[Terms],
    positions: Sequence[float],
    tol: float,
    *,
    start: Array | None = None,
    keep: Sequence[bool] | None = None,
    max_sweeps: int | None = None,
    on_point: Callable[[int, PathPoint], bool] | None = None,
) -> list[PathPoint]:
    """Solve for each of the penalties in turn.

    Parameters
    ----------
    source : Source
    terms : sequence of Terms
        The penalties, each near the one before.
    positions : sequence of float
        Where each stands on the path, decreasing: correlations are extrapolated in this number.
    tol : float
        The gap, relative to half the squared norm of the target, at which a solution is accepted.
    start : array of shape (d,), optional
        Coefficients to start from.
    on_point : callable, optional
        Called with the index and the point as soon as it is confirmed; True stops the walk.

    Returns
    -------
    points : list of PathPoint
        Shorter than the list of penalties if the walk was stopped.
    """
    walk = _begin(source, terms[0], start)
    index, ahead = 0, 1
    while index < len(terms):
        batch = terms[index : index + ahead]
        _let_in(walk, _predicted(walk, batch[-1], positions, index, len(batch)))
        W = _solve_batch(walk, batch, tol)
        at = source.at(W)
        done = 0
        for done, these in enumerate(batch):  # noqa: B007
            missed = _missed(walk, at.correlation[done], these, tol)
            if len(missed):
                break
            point = _point(walk, W[done], at.correlation[done], at.residual_square[done], these)
            walk.points.append(point)
            before = positions[index + done - 1] if index + done else math.inf
            walk.before, walk.correlation = walk.correlation, at.correlation[done]
            walk.step = before - positions[index + done]
            if on_point is not None and on_point(index + done, point):
                return walk.points
        else:
            done += 1
            missed = np.empty(0, dtype=np.intp)
        last = done if len(missed) else len(batch) - 1
        columns = walk.restricted.columns
        walk.present = at.correlation[last]
        walk.restricted.restore(W[last][walk.entry[columns]], walk.present[columns])
        if len(missed):
            _let_in(walk, missed)
            ahead = max(1, done)
        else:
            ahead = min(2 * ahead, _MOST_AHEAD)
        index += done
    return walk.points


def _begin(source: Source, terms: Terms, start: Array | None) -> _Walk:
    """The first restricted problem: what cannot rest at zero, and what the start brings along."""
    d = source.n_features
    rest = np.clip(0.0, terms.lower, terms.upper)
    w = rest if start is None else np.clip(start, terms.lower, terms.upper)
    at = source.at(np.zeros((1, 0)))
    walk = _Walk(
        source, RestrictedGram(source.scale), rest, np.full(d, -1), *at.correlation, *at.correlation
    )
    free = (terms.linear == 0) & (terms.bend == 0)
    needed = np.ones(d, bool) if source.gathers_all else (w != 0) | free
    if needed.any():
        _let_in(walk, np.flatnonzero(needed))
    if w.any():
        inside = np.flatnonzero(needed)
        W = np.zeros((1, len(inside)))
        W[0, walk.entry[inside]] = w[inside]
        walk.present = walk.correlation = source.at(W).correlation[0]
        columns = walk.restricted.columns
        walk.restricted.set_terms(terms)
        walk.restricted.restore(w[columns], walk.correlation[columns])
    return walk


def _let_in(walk: _Walk, new: Integers) -> None:
    """Let columns into the restricted problem."""
    if not len(new):
        return
    restricted = walk.restricted
    block = walk.source.gather(new)
    entered = restricted.size
    walk.entry[new] = np.arange(entered, entered + len(new))
    order = np.concatenate([walk.entry[restricted.columns], walk.entry[new]])
    restricted.extend(new, block[:, order], np.zeros(len(new)), walk.present[new])


def _predicted(
    walk: _Walk, terms: Terms, positions: Sequence[float], index: int, count: int
) -> Integers:
    """The columns that will be needed at the last of the next penalties."""
    outside = walk.entry < 0
    if not outside.any():
        return np.empty(0, dtype=np.intp)
    q = walk.correlation
    if walk.before is not None and 0 < walk.step < math.inf:
        way = positions[index - 1] - positions[index + count - 1]
        q = q + (q - walk.before) * (way / walk.step)
    with np.errstate(divide="ignore", invalid="ignore"):
        nearness = np.where(outside, np.abs(q) / terms.linear, 0.0)
    blocked = ((q > 0) & (terms.upper <= 0)) | ((q < 0) & (terms.lower >= 0))
    nearness[blocked] = 0.0
    new = np.flatnonzero(nearness >= _NEAR)
    most = max(_FEW_COLUMNS, 2 * walk.restricted.active)
    if len(new) > most:
        new = np.sort(new[np.argpartition(nearness[new], -most)[-most:]])
    return new


def _solve_batch(walk: _Walk, batch: Sequence[Terms], tol: float) -> Array:
    """The restricted solutions of some penalties, one row each, in the order of entry."""
    restricted = walk.restricted
    W = np.zeros((len(batch), restricted.size))
    for row, terms in zip(W, batch, strict=True):
        restricted.set_terms(terms)
        restricted.solve(_SHARE * tol * restricted.scale)
        row[walk.entry[restricted.columns]] = restricted.coef
    return W


def _missed(walk: _Walk, q: Array, terms: Terms, tol: float) -> Integers:
    """Columns outside of the restricted problem that would move."""
    found = np.empty(len(q), dtype=np.intp)
    limits = (terms.linear, terms.lower, terms.upper)
    missed = found[: find_missed(q, walk.entry < 0, *limits, _TOLERATED * tol, found)]
    most = max(_FEW_COLUMNS, 2 * walk.restricted.active)
    if len(missed) > most:
        excess = np.abs(q[missed]) - terms.linear[missed]
        missed = np.sort(missed[np.argpartition(excess, -most)[-most:]])
    return missed


def _point(walk: _Walk, row: Array, q: Array, square: float, terms: Terms) -> PathPoint:
    """A confirmed solution with its gap."""
    inside = walk.restricted.columns
    columns = np.sort(inside[row[walk.entry[inside]] != 0])
    values = row[walk.entry[columns]]
    t = dual_scale(q, *terms)
    # Columns outside rest at zero and are not pulled: their terms vanish.
    w, here = row[walk.entry[inside]], Terms(*(values[inside] for values in terms))
    gap = 0.5 * (1 - t) ** 2 * square + fenchel_gap(t, q[inside], w, *here)
    penalty = terms.linear[columns] @ np.abs(values) + 0.5 * terms.bend[columns] @ values**2
    sweeps, walk.sweeps = walk.restricted.sweeps - walk.sweeps, walk.restricted.sweeps
    return PathPoint(columns, values, 0.5 * square + float(penalty), float(gap), square, sweeps)
