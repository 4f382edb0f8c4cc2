r"""Several classes, two at a time: what pairs of classes tell about all of them.

A vanishing combination of rows of two classes is one of the contrasts of all classes. Where the
classes of a pair overlap, so that their contrasts are zero in every weak separation, their scores
differ by nothing; pairs that connect all classes prove overlap of all, with systems that are no
larger than those of two classes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trueline.halfspaces.rows import ContrastRows, SignedRows

__all__ = ["Known", "pairs_of"]


class Known(NamedTuple):
    """Vanishing combinations of inequalities; see :class:`~trueline.halfspaces.decide.Split`."""

    common: dict[int, Fraction]
    spanning: dict[int, Fraction]


def pairs_of(rows: ContrastRows) -> Known:
    """What pairs of classes exclude; pairs that overlap already through others are left out."""
    from trueline.halfspaces.decide import decide

    group = list(range(rows.k))
    common: dict[int, Fraction] = {}
    spanning: dict[int, Fraction] = {}
    for a in range(rows.k):
        for c in range(a + 1, rows.k):
            if group[a] == group[c]:
                continue
            places = np.flatnonzero((rows.codes == a) | (rows.codes == c))
            signs = np.where(rows.codes[places] == a, 1.0, -1.0)
            split = decide(SignedRows(rows.X[places], signs, rows.fit_intercept))
            if not split.boundary.any():
                continue
            found = _contrasts(rows, places, a, c, split.common)
            if not common or len(found) < len(common):
                common = found
            spanning |= _contrasts(rows, places, a, c, split.spanning)
            if split.direction is None:
                merged, other = group[a], group[c]
                group = [merged if g == other else g for g in group]
    return Known(common, spanning)


def _contrasts(
    rows: ContrastRows,
    places: np.ndarray,
    a: int,
    c: int,
    multipliers: dict[int, Fraction],
) -> dict[int, Fraction]:
    """The inequalities of all classes that those of a pair are."""
    out = {}
    for i, value in multipliers.items():
        row = int(places[i])
        own = int(rows.codes[row])
        other = c if own == a else a
        out[row * (rows.k - 1) + other - (other > own)] = value
    return out
