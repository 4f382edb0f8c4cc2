r"""One node of the search: some columns are in, some are free, the others are out.

Its lower bound is that of the perspective relaxation, P = Q + diag(D), with

    Q = theta (P - diag(E)),      D = theta E + (1 - theta) delta diag(G).

E is the part of P that can be moved to the diagonal (:mod:`trueline.best_subset.relaxation`); theta
= 1 where that is all there is. If the columns are dependent (more columns than rows) E vanishes,
and supports are compared of which the correlation matrix has no eigenvalue below delta: for those,
w'Gw >= delta w'diag(G)w, also after others have been projected out, and theta weighs the two.

What the bound would be with one more column in or out fixes that column when it exceeds the best
value known (reduced costs).

How nearly dependent the columns of a support can be.

With more columns than rows, and no squared penalty, some combination of columns fits anything, and
no convex relaxation bounds what k of them can do: it would have to rule out supports that are
nearly dependent. That is hard in itself (A. M. Tillmann, M. E. Pfetsch, "The computational
complexity of the restricted isometry property", IEEE Trans. Inf. Theory 60 (2014) 1248-1259). So a
proof is then given for the supports whose correlation matrix has no eigenvalue below a stated
delta, and delta is the smallest eigenvalue that exchange descents find among all supports:

    delta  ~  min over |S| = k of the smallest eigenvalue of R_SS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.best_subset.elimination import (
    DEPENDENT,
    DEPENDENT_DOUBLED,
    UNIT,
    best_few,
    best_few_doubled,
    eliminate,
    eliminate_doubled,
    gain_of,
)
from trueline.best_subset.exchange import independent
from trueline.best_subset.relaxation import Relaxed, climb, relax, uniform_diagonal

Array = NDArray[np.float64]
Support = NDArray[np.int64]

# Nodes with no more choices than this are solved by looking at all of them.
_CHOICES = 600_000
_THETAS = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
#: Newton steps for the diagonal: at the root, and in nodes (which inherit a good one).
ROOT_STEPS, _NODE_STEPS = 25, 4
# Strength of the barrier and accuracy of relaxations, in units of the value without columns.
_BARRIER, _ACCURACY = 3e-6, 1e-6
# With more free columns than this, a Newton step for the diagonal takes long.
_LARGE = 400
#: Eigenvalues of correlation matrices below this are rounding.
RAISED = 1e-13
# A node is done again when this part of its columns has been fixed.
_WORTHWHILE = 0.1
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Quadratic:
    """minimise constant - c'w + 1/2 w'Gw + alpha ||w||_0 over w with at most k non-zeros.

    Attributes
    ----------
    gram, cross : arrays of shape (d, d) and (d,)
        G, with the squared penalty on its diagonal, and c.
    constant : float
        The value without columns.
    k : int
    alpha : float
    delta : float
        Only supports whose correlation matrix has no eigenvalue below this are compared; zero
        compares all.
    rank : float
        So many columns may be independent; infinite with a squared penalty.
    unit : float
        Rounding of the entries of G, and of those of c relative to sqrt(2 constant).
    gram_low, cross_low : arrays, optional
        What G and c have beyond double precision, where columns nearly depend on each other.
    """

    gram: Array
    cross: Array
    constant: float
    k: int
    alpha: float = 0.0
    delta: float = 0.0
    rank: float = np.inf
    unit: float = 2.0**-50
    gram_low: Array | None = None
    cross_low: Array | None = None

    @property
    def eps(self) -> float:
        """Rounding of one operation in which columns are projected out."""
        return _EPS if self.gram_low is None else UNIT

    @property
    def dependent(self) -> float:
        """Relative square below which what is left of a column is taken for rounding."""
        return DEPENDENT if self.gram_low is None else DEPENDENT_DOUBLED

    def eliminated(self, inside: Support, free: Support) -> Eliminated:
        """The problem in the free columns, those that are in projected out."""
        if self.gram_low is None:
            P, r, gain, _ = eliminate(self.gram, self.cross, inside, free)
            return Eliminated(P, None, r, None, gain)
        G, low, c, c_low = self.gram, self.gram_low, self.cross, self.cross_low
        return Eliminated(*eliminate_doubled(G, low, c, c_low, inside, free)[:5])

    def gain(self, support: Support) -> float:
        """What a support gains."""
        if self.gram_low is None:
            return float(gain_of(self.gram, self.cross, support))
        return float(self.eliminated(support, np.empty(0, dtype=np.int64)).gain)

    def independent(self, support: Support) -> Support:
        """The columns of a support that do not depend on those before them."""
        if self.gram_low is None:
            return np.asarray(independent(self.gram, support, len(support), DEPENDENT))
        counts = eliminate_doubled(
            self.gram, self.gram_low, self.cross, self.cross_low, support, support[:0]
        )[5]
        return support[counts]

    @property
    def size(self) -> Array:
        """The diagonal of G."""
        return self.gram.diagonal()

    @property
    def tie(self) -> float:
        """Differences below this are rounding."""
        return 1e-11 * self.constant


class Eliminated(NamedTuple):
    """P and r, what they have beyond double precision, and the gain of the columns that are in."""

    P: Array
    P_low: Array | None
    r: Array
    r_low: Array | None
    gain: float

    def part(self, keep: NDArray[np.bool_]) -> Eliminated:
        """The same for some of the free columns."""
        if keep.all():
            return self
        square = np.ix_(keep, keep)
        P_low = None if self.P_low is None else np.ascontiguousarray(self.P_low[square])
        r_low = None if self.r_low is None else self.r_low[keep]
        P = np.ascontiguousarray(self.P[square])
        return Eliminated(P, P_low, self.r[keep], r_low, self.gain)

    def best_few(self, least: Array, q: int, alpha: float) -> tuple[float, Support, float]:
        """The best of all choices of at most q columns: gain, which (-1: none), and a bound.

        The bound is on the determinants of all choices; zero where it is not known.
        """
        if self.P_low is None:
            net, chosen = best_few(self.P, self.r, least, q, alpha)
            return float(net), chosen, 0.0
        net, chosen, lowest = best_few_doubled(
            self.P, self.P_low, self.r, self.r_low, least, q, alpha
        )
        return float(net), chosen, float(lowest)


class Start(NamedTuple):
    """What a node takes over from its parent: E, v, the price and theta."""

    diagonal: Array | None = None
    v: Array | None = None
    level: float = 1.0
    theta: float | None = None

    def part(self, keep: NDArray[np.bool_]) -> Start:
        """The same for some of the columns."""
        E, v = self.diagonal, self.v
        return self._replace(
            diagonal=None if E is None else E[keep], v=None if v is None else v[keep]
        )


@dataclass(order=True)
class Node:
    """Ordered by bound, then by number of creation, so that the search is deterministic."""

    bound: float
    number: int
    inside: Support = field(compare=False)
    free: Support = field(compare=False)
    start: Start = field(compare=False, default=Start())


class Outcome(NamedTuple):
    """What a node gave: its bound, the supports to compare with the best, and its children."""

    bound: float
    candidates: list[Support]
    children: list[Node]
    #: No determinant of the correlations of a support of this node is below it.
    volume: float = 0.0


def is_small(m: int, q: int) -> bool:
    """Whether all choices of at most q of m columns are looked at one by one."""
    return q <= 2 or sum(math.comb(m, t) for t in range(min(q, m) + 1)) <= _CHOICES


def explore(task: Quadratic, upper: float, node: Node) -> Outcome:
    """Bound a node, fix columns, and branch; ``upper`` is the value to beat."""
    inside, free, start, bound = node.inside, node.free, node.start, node.bound
    steps = ROOT_STEPS if node.number == 0 else _NODE_STEPS
    candidates: list[Support] = []
    while True:
        left = task.eliminated(inside, free)
        alive = left.P.diagonal() > task.dependent * task.size[free]
        if not alive.all():
            free, start, left = free[alive], start.part(alive), left.part(alive)
        P, r, gain = left.P, left.r, left.gain
        q, m = task.k - len(inside), len(free)
        offset = task.constant - gain + task.alpha * len(inside)
        if q == 0 or m == 0:
            return Outcome(max(bound, offset), [*candidates, inside], [])
        if is_small(m, q):
            net, chosen, volume = left.best_few(task.dependent * task.size[free], q, task.alpha)
            support = np.concatenate([inside, free[chosen[chosen >= 0]]])
            # Determinants are about supports that are made of free columns alone.
            volume = 0.0 if len(inside) else volume
            return Outcome(max(bound, offset - net), [*candidates, support], [], volume)
        if q >= m and task.alpha == 0:  # more columns never fit worse
            support = np.concatenate([inside, free])
            value = task.constant - task.gain(support)
            return Outcome(max(bound, value), [*candidates, support], [])
        q, enough = min(q, m), upper - offset
        found, start = relaxed(task, P, r, q, task.size[free], start, enough, steps)
        if found is None:  # the fit with all columns is all that is known
            gain, pick = _all_columns(P, r)
            if task.gram_low is not None:  # eigenvalues in double precision would not tell
                whole = task.independent(np.concatenate([inside, free]))
                is_whole = len(whole) == len(inside) + m
                gain = task.gain(whole) - left.gain if is_whole else task.constant
            bound = max(bound, offset - gain)
            return Outcome(bound, candidates, _children(bound, inside, free, start, pick))
        bound = max(bound, offset + found.bound)
        if bound >= upper:
            return Outcome(bound, candidates, [])
        candidates.append(np.concatenate([inside, free[np.argsort(-found.z)[:q]]]))
        into, out = _fixed(found, q, task.alpha, enough)
        if len(inside) + np.count_nonzero(into) > task.k:
            return Outcome(upper, candidates, [])
        keep = ~(into | out)
        inside, free, start = np.concatenate([inside, free[into]]), free[keep], start.part(keep)
        if not into.any() and np.count_nonzero(out) <= _WORTHWHILE * m and keep.any():
            pick = _most_undecided(found.z[keep])
            return Outcome(bound, candidates, _children(bound, inside, free, start, pick))
        steps = _NODE_STEPS


def _all_columns(P: Array, r: Array) -> tuple[float, int]:
    """What all free columns together can gain, and one on which the others depend.

    Small eigenvalues are raised: that can only promise more than there is to gain.
    """
    scale = 1.0 / np.sqrt(P.diagonal())
    values, vectors = np.linalg.eigh(P * scale[:, None] * scale)
    along = vectors.T @ (scale * r)
    gain = 0.5 * float((along**2 / np.maximum(values, RAISED)).sum())
    return gain * (1 + 1e-9), int(np.argmax(np.abs(vectors[:, 0])))


def relaxed(
    task: Quadratic,
    P: Array,
    r: Array,
    q: int,
    size: Array,
    start: Start,
    enough: float,
    steps: int,
) -> tuple[Relaxed | None, Start]:
    """The best relaxation that was found, and where similar ones may start.

    None if the columns are dependent and all supports count.
    """
    m = len(r)
    E, theta = start.diagonal, start.theta
    v = np.zeros(m) if start.v is None else start.v
    tol, level = _ACCURACY * task.constant, start.level
    if E is None and m < task.rank:
        E = uniform_diagonal(P)
    best: Relaxed | None = None
    if E is not None:
        if m > _LARGE:
            steps //= 6
        elif m > 0.7 * task.rank:
            steps = 0
        mu = _BARRIER * task.constant
        best = climb(P, E, r, q, task.alpha, v, level, enough, tol, steps, mu)
        E = best.D
    if task.delta > 0 and (best is None or best.bound < enough):
        for weight in _near(theta):
            D = (1 - weight) * task.delta * size
            Q = weight * P
            if E is not None:
                D = D + weight * E
                Q[np.diag_indices(m)] -= weight * E
            bound, w, h, z, price = relax(Q, D, r, q, task.alpha, v, level, enough, tol)
            if best is None or bound > best.bound:
                best, theta = Relaxed(bound, D, w, h, z, price), weight
            if bound > enough:
                break
    if best is None:
        return None, start
    return best, Start(E, best.v, best.level, theta)


def _near(theta: float | None) -> tuple[float, ...]:
    """The weights to try: all at the root, then the one that was best there and its neighbours."""
    if theta is None:
        return _THETAS
    i = _THETAS.index(theta)
    return (theta, *_THETAS[i + 1 : i + 2], *_THETAS[max(0, i - 1) : i])


def _fixed(
    found: Relaxed, q: int, alpha: float, enough: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Columns that must be in, and that must be out, of anything better than the best known."""
    net = np.maximum(found.h - alpha, 0.0)
    order = np.argsort(-net, kind="stable")
    last = net[order[q - 1]]
    following = net[order[q]] if q < len(net) else 0.0
    chosen = np.zeros(len(net), dtype=bool)
    chosen[order[:q]] = net[order[:q]] > 0
    if_in = found.bound + last - (found.h - alpha)
    if_out = found.bound + net - following
    return chosen & (if_out >= enough), ~chosen & (if_in >= enough)


def _most_undecided(z: Array) -> int:
    return int(np.argmax(np.minimum(z, 1 - z) + 1e-9 * z))


def _children(bound: float, inside: Support, free: Support, start: Start, pick: int) -> list[Node]:
    """One more column in, and the same column out."""
    keep = np.arange(len(free)) != pick
    rest, start = free[keep], start.part(keep)
    return [
        Node(bound, 0, np.append(inside, free[pick]), rest, start),
        Node(bound, 0, inside, rest, start),
    ]


_STARTS = 30
_ROUNDS = 10


def correlation(gram: Array) -> Array:
    """The Gram matrix of columns scaled to norm one; columns of zeros stay so."""
    size = np.sqrt(gram.diagonal())
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    R: Array = gram * scale[:, None] * scale
    return R


def _smallest(R: Array, support: Support) -> tuple[float, Array]:
    values, vectors = np.linalg.eigh(R[np.ix_(support, support)])
    return float(values[0]), vectors[:, 0]


def _most_aligned(R: Array, support: Support) -> int:
    """The column that lowers the smallest eigenvalue most, to first order."""
    pull = np.abs(R[support].T @ _smallest(R, support)[1])
    pull[support] = -1.0
    return int(np.argmax(pull))


def least_eigenvalue(R: Array, k: int, given: Support) -> float:
    """The smallest eigenvalue found among the supports of k columns.

    Parameters
    ----------
    R : array of shape (d, d)
        Correlations of the columns that may enter.
    k : int
    given : array of int
        One support to start from; its own smallest eigenvalue is never below what is returned.
    """
    d = len(R)
    k = min(k, d)
    if k <= 1:
        return 1.0
    upper = np.abs(np.triu(R, 1))
    # Start from the most correlated pairs, each at most once per row.
    rows = np.argsort(-upper.max(axis=1), kind="stable")[:_STARTS]
    starts = [np.array([i, np.argmax(upper[i])]) for i in rows]
    least = _smallest(R, given)[0] if len(given) else 1.0
    for support in starts:
        while len(support) < k:
            support = np.append(support, _most_aligned(R, support))
        least = min(least, _descend(R, support))
    return max(least, 0.0)


def _descend(R: Array, support: Support) -> float:
    """Exchange columns while the smallest eigenvalue falls."""
    value = _smallest(R, support)[0]
    for _ in range(_ROUNDS):
        before = value
        for i in range(len(support)):
            rest = np.delete(support, i)
            trial = np.append(rest, _most_aligned(R, rest))
            reached = _smallest(R, trial)[0]
            if reached < value - 1e-12:
                support, value = trial, reached
        if value == before:
            break
    return value
