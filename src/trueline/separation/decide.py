"""Complete separation, quasi-complete separation, or overlap: decided, with witnesses.

For rows z_i (:mod:`trueline.separation.inequalities`) there is exactly one split of the rows into
two parts such that (A. J. Goldman and A. W. Tucker, 1956)

- some b has z_i.b > 0 on the first part and z_i.b = 0 on the second, and
- some multipliers, positive on the second part and zero on the first, have sum t_i z_i = 0,

which is complete separation if the second part is empty, overlap if the first one is, and
quasi-complete separation otherwise (A. Albert and J. A. Anderson, "On the existence of maximum
likelihood estimates in logistic regression models", Biometrika 71 (1984) 1-10; K. Konis, "Linear
programming algorithms for detecting separated data in binary logistic regression models", thesis,
Oxford, 2007).

The second part is found in rounds. Each round looks for b that is strictly positive on all rows
outside the span of the rows known to be in the second part. If there is none, a vanishing
combination puts more rows into it, and its span grows by at least one dimension.

A direction is looked for in double precision, on few rows at a time: most rows never matter. The
rows that a first guess gets most wrong make a working set; Wolfe's method either finds the origin
in its convex hull, and then no direction separates any set of rows with these in it, or a direction
that separates the working set, and then the rows that it gets most wrong are added. Nothing here is
a proof: what is found is handed on to exact arithmetic.

For many unknowns there is a quick try before, the squared hinge loss by L-BFGS:

    minimise  sum_i max(0, 1 - z_i.b)^2

is zero exactly if the rows are separable, and it is enough to come near: the first b with
z_i.b > 0 for all rows ends it. It reads the rows twice per step, whatever the number of unknowns,
where Wolfe's method needs about as many steps as there are unknowns, each as long as their square.
If it does not end, nothing is proven, and the rows it gets wrong are a good working set.

Several classes are looked at two at a time. A vanishing combination of rows of two classes is one
of the contrasts of all classes. Where the classes of a pair overlap, so that their contrasts are
zero in every weak separation, their scores differ by nothing; pairs that connect all classes prove
overlap of all, with systems that are no larger than those of two classes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.separation.exact import (
    Dependence,
    dependence_of,
    direction_from,
    exchange,
    in_span,
    not_positive,
)
from trueline.separation.inequalities import ContrastRows, Rows, SignedRows
from trueline.separation.lifting import Integers, independent
from trueline.separation.nearby import boundary_of
from trueline.separation.nearest import NearestPoint

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# With more unknowns a descent is tried first.
_MANY = 100


@dataclass(frozen=True)
class Proposal:
    """What the search believes.

    Attributes
    ----------
    direction : array of shape (D,) or None
        It seems to separate all rows, in the units of the search.
    corral : indices
        Rows that direction rests on; if there is none, rows whose convex hull seems to hold the
        origin.
    working : indices
        All rows that were looked at closely, in the order of their coming.
    """

    direction: Array | None
    corral: Indices
    working: Indices


def search(
    rows: Rows, basis: Array | None, alive: NDArray[np.bool_], start: Array | None = None
) -> Proposal:
    """Look for b in the span of the basis with z_i.b > 0 for all rows that are alive.

    Parameters
    ----------
    rows : Rows
    basis : array of shape (D, q), optional
        Its columns span the directions that are possible; all directions if not given.
    alive : boolean array of shape (count,)
    start : array of shape (D,), optional
        A direction to try first, in the units of the search.
    """
    none = np.zeros(0, dtype=np.intp)
    if start is not None and _wrong(rows, start, alive, none) is None:
        return Proposal(start, none, none)
    if basis is not None and basis.shape[1] == 0:
        first = np.flatnonzero(alive)[:1]
        return Proposal(None, first, first)
    b = rows.total(alive.astype(np.float64))
    b = b if basis is None else basis @ (basis.T @ b)
    wrong = _wrong(rows, b, alive, none)
    if wrong is None:
        return Proposal(b, none, none)
    if rows.size > _MANY:
        b, separates = descend(rows, basis, alive)
        if separates:
            return Proposal(b, none, none)
        again = _wrong(rows, b, alive, none)
        wrong = wrong if again is None else again
    working, points = wrong, None
    while True:
        fresh = _points(rows, basis, working if points is None else wrong)
        if points is None:
            points = NearestPoint(fresh)
        else:
            points.add(fresh)
        separates = points.improve(enough=0.5)
        corral = working[points.corral]
        if not separates:
            return Proposal(None, corral, working)
        b = points.x if basis is None else basis @ points.x
        wrong = _wrong(rows, b, alive, working)
        if wrong is None:
            return Proposal(b, corral, working)
        if len(wrong) == 0:
            return Proposal(None, corral, working)
        working = np.concatenate([working, wrong])


def _points(rows: Rows, basis: Array | None, ids: Indices) -> Array:
    """Rows in the basis, of length one."""
    P = rows.take(ids) if basis is None else rows.take(ids) @ basis
    length = np.sqrt((P**2).sum(axis=1, keepdims=True))
    return P / np.where(length > 0, length, 1.0)


def _wrong(rows: Rows, b: Array, alive: NDArray[np.bool_], working: Indices) -> Indices | None:
    """The rows that b gets most wrong and that are not in the working set; None if all are right.

    Rows that are only right by less than rounding are wrong.
    """
    margins = rows.margins(b)
    wrong = np.flatnonzero((margins <= rows.reach(b)) & alive)
    if len(wrong) == 0:
        return None
    wrong = wrong[~np.isin(wrong, working)]
    most = max(40, rows.size + 1)
    if len(wrong) > most:
        wrong = wrong[np.argpartition(margins[wrong], most)[:most]]
    return wrong


_STEPS = 300


# Where the slope is so small beside the losses, they are about the multipliers that exclude a
# separation. In a basis in which the rows are spread alike, one is the most it can be.
_HOPELESS = 0.02


class _Ended(Exception):
    """There is no need to go on."""


def descend(rows: Rows, basis: Array | None, alive: NDArray[np.bool_]) -> tuple[Array, bool]:
    """The direction reached, and whether it separates all rows that are alive."""
    from scipy.optimize import minimize

    best: list[Array] = []

    def value(x: Array) -> tuple[float, Array]:
        b = x if basis is None else basis @ x
        margins = rows.margins(b)
        best[:] = [b]
        if (margins[alive] > rows.reach(b)).all():
            raise _Ended
        short = np.where(alive, np.maximum(0.0, 1.0 - margins), 0.0)
        slope = -2.0 * rows.total(short)
        loss = float(short @ short)
        if basis is not None:
            slope = basis.T @ slope
            if slope @ slope <= 4 * _HOPELESS**2 * loss:
                raise _Ended
        return loss, slope

    size = rows.size if basis is None else basis.shape[1]
    options = {"maxiter": _STEPS, "maxcor": 20}
    with suppress(_Ended):
        minimize(value, np.zeros(size), jac=True, method="L-BFGS-B", options=options)
    b = best[0]
    return b, bool((rows.margins(b)[alive] > rows.reach(b)).all())


# Denominators of the fractions that a direction is first rounded to.
_PLEASANT = (12, 1000)
_PROBES = 3
# A round costs as much as looking for the whole boundary, and many tables need no second one.
_ENOUGH_ROUNDS = 2


@dataclass(frozen=True)
class Split:
    """The two parts of the rows, and what proves them; all numbers exact.

    Attributes
    ----------
    boundary : boolean array of shape (count,)
        The second part: z_i.b = 0 whenever z.b >= 0 for all rows.
    direction : array of integers of shape (D,), or None
        z_i.b > 0 on the first part, z_i.b = 0 on the second; None if the first part is empty.
    common : dict of int to Fraction
        Multipliers > 0 of few rows, at most D + 1, with sum t_i z_i = 0; empty if the second part
        is.
    spanning : dict of int to Fraction
        The same for rows that span all of the second part, at most 2 D (none if it is zero).
    """

    boundary: NDArray[np.bool_]
    direction: Integers | None
    common: dict[int, Fraction]
    spanning: dict[int, Fraction]


def decide(rows: Rows, start: Array | None = None) -> Split:
    """Find the two parts.

    Parameters
    ----------
    rows : Rows
    start : array of shape (D,), optional
        A direction that may separate them, in the units of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.separation.decide import decide
    >>> from trueline.separation.inequalities import SignedRows
    >>> X, y = np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> split = decide(SignedRows(X, y, fit_intercept=True))
    >>> split.boundary.tolist(), split.direction.tolist()
    ([False, True, True, False], [1, -1])
    >>> {row: str(value) for row, value in split.common.items()}
    {1: '1', 2: '1'}
    """
    alive = np.ones(rows.count, dtype=bool)
    held = np.zeros(0, dtype=np.intp)
    common: dict[int, Fraction] = {}
    spanning: dict[int, Fraction] = {}
    basis = rows.basis()
    direction: Integers | None = None
    rounds = 0
    if start is not None:
        start = np.ldexp(start, -rows.exponent)
    if isinstance(rows, ContrastRows):
        direction = _quick(rows, basis, alive)
        if direction is not None:
            return Split(~alive, direction, common, spanning)
        common, spanning = pairs_of(rows)
        alive[list(common)] = False
        held = _hold(rows, held, spanning, alive, basis)
    while alive.any():
        inside = _restricted(rows, basis, held)
        proposal = search(rows, inside, alive, None if len(held) else start)
        rounds += 1
        if proposal.direction is None and rounds == _ENOUGH_ROUNDS and start is not None:
            # Each of many rounds would find few rows: from where the fit ended all come at once.
            known = boundary_of(rows, basis, start)
            if known is not None:
                spanning, held = known, _hold(rows, held, known, alive, basis)
                continue
        found = _settle(rows, held, alive, proposal)
        if not isinstance(found, Dependence):
            direction = found
            break
        if not common:
            common = found.multipliers
        alive[list(found.multipliers)] = False
        grown = _joined(spanning, found)
        wider = _hold(rows, held, grown, alive, basis)
        if len(wider) > len(held):  # not a row of zeros, or one in the span already
            spanning, held = grown, wider
    return Split(~alive, direction, common, spanning)


def _quick(rows: Rows, basis: Array | None, alive: NDArray[np.bool_]) -> Integers | None:
    """A direction that separates strictly, if a descent finds one."""
    b, separates = descend(rows, basis, alive)
    if not separates:
        return None
    none = np.zeros(0, dtype=np.intp)
    found = direction_from(rows, none, b, None)
    return found if found is not None and len(not_positive(rows, found, alive)) == 0 else None


def _hold(
    rows: Rows,
    held: Indices,
    spanning: dict[int, Fraction],
    alive: NDArray[np.bool_],
    basis: Array | None,
) -> Indices:
    """Hold what the rows of a vanishing combination span; rows in the span are not alive."""
    wider = _independent(rows, held, spanning)
    if len(wider) > len(held):
        alive[list(spanning)] = False
        if len(wider) == rows.size:
            alive[:] = False
        else:
            _retire(rows, wider, alive, _restricted(rows, basis, wider))
    return wider


def _settle(
    rows: Rows, held: Indices, alive: NDArray[np.bool_], proposal: Proposal
) -> Integers | Dependence:
    """The answer of a round, exact, from what the search proposes."""
    working, b = proposal.working, proposal.direction
    if b is None:
        found = dependence_of(rows, held, proposal.corral)
        if found is not None:
            return found
    else:
        # Doubles as they are do without held rows; simple fractions are nicer where they do.
        simple = _PLEASANT if rows.size <= 50 else ()
        for digits in (*simple, None):
            g = direction_from(rows, held, b, digits)
            if g is not None:
                wrong = not_positive(rows, g, alive)
                if len(wrong) == 0:
                    return g
        working = np.union1d(working, wrong[: rows.size]) if g is not None else working
    if len(working) == 0:
        working = np.flatnonzero(alive)[: rows.size]
    while True:
        decided = exchange(rows, held, working)
        if isinstance(decided, Dependence):
            return decided
        wrong = not_positive(rows, decided, alive)
        if len(wrong) == 0:
            return decided
        working = np.concatenate([working, wrong[: rows.size + 1]])


def _joined(spanning: dict[int, Fraction], found: Dependence) -> dict[int, Fraction]:
    """A vanishing combination, all multipliers positive, of the rows of both."""
    if not spanning:
        return dict(found.multipliers)
    lowest = min((v / spanning[s] for s, v in found.held.items()), default=Fraction(0))
    times = max(1, int(-lowest) + 1)
    out = {s: times * v + found.held.get(s, 0) for s, v in spanning.items()}
    for i, value in found.multipliers.items():
        out[i] = out.get(i, Fraction(0)) + value
    return out


def _independent(rows: Rows, held: Indices, spanning: dict[int, Fraction]) -> Indices:
    """As many linearly independent rows as there are among them; those held stay."""
    more = [i for i in spanning if i not in set(held.tolist())]
    if not more:
        return held
    ids = np.concatenate([held, np.array(more, dtype=np.intp)])
    return ids[independent(rows.integers(ids)[0])[0]]


def _restricted(rows: Rows, basis: Array | None, held: Indices) -> Array | None:
    """A basis of the directions that are zero on the rows held."""
    if len(held) == 0:
        return basis
    frame = np.eye(rows.size) if basis is None else basis
    P = rows.take(held) @ frame
    P /= np.maximum(np.sqrt((P**2).sum(axis=1, keepdims=True)), 1e-300)
    Q = np.linalg.qr(P.T, mode="complete")[0]
    return frame @ Q[:, len(held) :]


def _retire(rows: Rows, held: Indices, alive: NDArray[np.bool_], basis: Array | None) -> None:
    """Rows in the span of those held are no longer alive.

    Values on a few directions tell which rows may be; exact arithmetic decides. A row that is
    missed here by rounding comes up as a dependence later.
    """
    assert basis is not None
    near = alive.copy()
    rng = np.random.default_rng(0)
    for _ in range(_PROBES if basis.shape[1] else 0):
        b = basis @ rng.standard_normal(basis.shape[1])
        near &= np.abs(rows.margins(b)) <= 1e4 * rows.reach(b)
    candidates = np.flatnonzero(near)
    if len(candidates):
        alive[candidates[in_span(rows, held, candidates)]] = False


class Known(NamedTuple):
    """Vanishing combinations of inequalities; see :class:`~trueline.separation.decide.Split`."""

    common: dict[int, Fraction]
    spanning: dict[int, Fraction]


def pairs_of(rows: ContrastRows) -> Known:
    """What pairs of classes exclude; pairs that overlap already through others are left out."""
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
