r"""Supports that a bound leaves open, looked at one by one: for the checker of searches.

The bound at the root is one for every support S on its own,

    value on S  >=  K - sum over j in S of g_j,        g_j = r_j^2 / (2 D_j) - alpha,

so that only supports with sum_S g_j > K - L can have a value below L. Where these are few, they are
all fitted, from the sums of squares and products of the rows: with C = 1/2 y'y, columns scaled to
norm one, G their Gram matrix and c their products with the target,

    value on S  =  C - 1/2 c_S' w + alpha |S|,      G_SS w = c_S,

up to 2 e (||w||_1 sqrt(2 C) + 1/2 ||w||_1^2), for sums with relative errors of e.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcome", "fitted_supports", "open_supports"]

Array = NDArray[np.float64]
Support = tuple[int, ...]

_EPS = float(np.finfo(np.float64).eps)
# So many supports are looked at, and so many beginnings of them.
_MOST, _BEGINNINGS = 50_000, 400_000
_BATCH = 4096
# A value counts as known if its rounding is below this part of C: searches lower their bounds by
# more than twice as much.
_SHARP = 4e-11


def open_supports(gain: Array, need: float, k: int) -> list[Support] | None:
    """All supports of at most k columns whose gains add up to more than ``need``.

    None if there are too many of them.
    """
    order = np.argsort(-gain, kind="stable")
    sorted_gain = gain[order]
    top = np.concatenate([[0.0], np.cumsum(np.maximum(sorted_gain, 0.0))])
    need -= 1e-12 * (abs(need) + float(top[min(k, len(gain))]))  # the rounding of these sums
    found: list[Support] = []
    stack: list[tuple[Support, int, float]] = [((), 0, 0.0)]
    for _ in range(_BEGINNINGS):
        if not stack:
            return found
        chosen, first, total = stack.pop()
        if total > need:
            found.append(tuple(int(order[i]) for i in chosen))
            if len(found) > _MOST:
                return None
        left = k - len(chosen)
        for i in range(first, len(gain) if left else first):
            # With this column and the best of the following ones; later ones can add no more.
            if total + sorted_gain[i] + top[min(i + left, len(gain))] - top[i + 1] <= need:
                break
            stack.append(((*chosen, i), i + 1, total + float(sorted_gain[i])))
    return None


@dataclass(frozen=True)
class Outcome:
    """Of fitting supports: the lowest value on the safe side, where, and how many are not known."""

    lowest: float
    support: Support
    unknown: int


def fitted_supports(
    rows: Any,
    columns: NDArray[np.bool_],
    centre: Array,
    level: float,
    l2: float,
    alpha: float,
    delta: float,
    supports: list[Support],
) -> Outcome:
    """Fit supports (of the numbers that the columns have among ``columns``).

    Those whose correlation matrix has an eigenvalue below ``delta`` are left out.
    """
    used = sorted({j for support in supports for j in support})
    place = {j: i for i, j in enumerate(used)}
    G, c, constant, unit = _sums(rows, np.flatnonzero(columns)[used], centre, level, l2)
    lowest, unknown = np.inf, 0
    where: Support = ()
    for size, group in _by_size(supports):
        if size == 0:
            if constant < lowest:
                lowest, where = constant * (1 - unit), ()
            continue
        index = np.array([[place[j] for j in support] for support in group])
        value, rounding, least = _values(G, c, constant, index, unit)
        value += alpha * size
        margin = 4 * size * unit
        excluded = least < delta - margin
        sharp = (rounding <= _SHARP * constant) & (least > max(delta, 0.0) + margin)
        unknown += int(np.count_nonzero(~excluded & ~sharp))
        safe = np.where(sharp, value - rounding, np.inf)
        best = int(np.argmin(safe))
        if safe[best] < lowest:
            lowest, where = float(safe[best]), group[best]
    names = np.flatnonzero(columns)
    return Outcome(lowest, tuple(sorted(int(names[j]) for j in where)), unknown)


def _by_size(supports: list[Support]) -> Iterator[tuple[int, list[Support]]]:
    """Supports of one size at a time, in batches."""
    for size in sorted({len(support) for support in supports}):
        group = [support for support in supports if len(support) == size]
        for start in range(0, len(group), _BATCH):
            yield size, group[start : start + _BATCH]


def _sums(
    rows: Any, used: NDArray[np.intp], centre: Array, level: float, l2: float
) -> tuple[Array, Array, float, float]:
    """G and c in scaled columns, C, and a bound on the relative rounding."""
    m, longest, blocks = len(used), 0, 0
    G, c, target = np.zeros((m, m)), np.zeros(m), 0.0
    magnitude, y_magnitude = np.zeros(m), 0.0
    for where, block in rows:
        s, raw, y = rows.s[where], block[:, used], rows.y[where, 0] - level
        X = raw - centre[used]
        weighted = s[:, None] * X
        G += weighted.T @ X
        c += weighted.T @ y
        target += float(s @ y**2)
        magnitude += s @ raw**2
        y_magnitude += float(s @ rows.y[where, 0] ** 2)
        longest, blocks = max(longest, len(s)), blocks + 1
    G[np.diag_indices(m)] += l2
    square = G.diagonal()
    # Centring errs by eps times the numbers themselves, however small what it leaves.
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.sqrt(max(np.max(magnitude / square, initial=1.0), y_magnitude / target, 1.0))
    unit = (longest + blocks + 16 + 4 * lost) * _EPS
    scale = np.sqrt(square)
    return G / scale[:, None] / scale, c / scale, 0.5 * target, float(unit)


def _values(
    G: Array, c: Array, constant: float, index: NDArray[np.intp], unit: float
) -> tuple[Array, Array, Array]:
    """Values, their rounding, and the smallest eigenvalues of supports of one size."""
    size = index.shape[1]
    values, vectors = np.linalg.eigh(G[index[:, :, None], index[:, None, :]])
    right = c[index]
    along = np.einsum("nij,ni->nj", vectors, right)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        w = np.einsum("nij,nj->ni", vectors, along / np.maximum(values, _EPS))
        reach = np.abs(w).sum(axis=1)
        errors = unit + 8 * size * _EPS
        rounding = 2 * errors * (reach * np.sqrt(2 * constant) + 0.5 * reach**2 + constant)
        value = constant - 0.5 * np.einsum("ni,ni->n", right, w)
    return value, np.where(np.isfinite(rounding), rounding, np.inf), values[:, 0]
