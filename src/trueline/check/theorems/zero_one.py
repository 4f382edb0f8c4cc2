r"""The halfspace with the fewest errors: the errors, counted, and the conflicts that bound them.

Minimised over w and b is the weight of the errors, sum_i s_i [y_i (x_i.w + b) <= 0].

Theorem. Equal rows share their weight. Of equal rows with opposite signs, the lighter side is an
error of every (w, b), or the heavier one is and more; without an intercept, all rows of zeros are.
Call what this leaves of the heavier side its weight, and a set of signed rows a_i = y_i (x_i, 1) a
*conflict* if sum_i lambda_i a_i = 0 for some lambda > 0. If conflicts are given charges of which no
row carries more in sum than its weight, no (w, b) has errors of less weight than what
contradictions cost and the sum of the charges.

Proof. sum_i lambda_i a_i.(w, b) = 0 has a term that is not positive: a row of each conflict is
wrong, and rows that are wrong weigh at least the charges of the conflicts that they are in.

Theorem. If the signed rows have full rank, no (w, b) has errors of less weight than the least
weight of rows strictly on the wrong side of v, over all v that vanish on so many independent rows
that they determine it.

Proof. The v for which all rows that (w, b) has right are on their side or on the plane form a cone
(with others that are wrong, if those do not span everything); its extreme rays are such v.

All of the first is in integers: weights and charges are integers times one power of two. If charges
exceed a weight (they were added up in doubles), all are divided by the largest excess. Of a
*search*, what its bound claims beyond the conflicts is proven by the second theorem where those v
are few: v and its products with the rows err by less than (p^2 + p + 8) eps times the permanents
that their determinants have. Elsewhere the search is not repeated, and a condition says so.

Read: kind, objective, objective_rounding, gap, loss, penalty, fit_intercept, coef, intercept, and
of the witness members (rows with a positive weight, one conflict after the other), ends, charges.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, islice, pairwise
from math import comb, factorial
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, Array, Bools, Indices, as_integers, exact_dot, null_space
from trueline.check.claims import below, judged, read_about, require_signs
from trueline.check.rows import Rows, dense
from trueline.check.schema import Field, get
from trueline.check.verdict import Check, Refused, Verification

_WITNESS = {
    "members": Field(("m",), "integer", low=0),
    "ends": Field(("q",), "integer", low=1),
    "charges": Field(("q",), low=0.0),
}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a claim about the fewest errors."""
    rows = Rows(X, y, sample_weight)
    require_signs(rows)
    claim = read_about("zero_one", "none", certificate, rows, _WITNESS)
    if not np.isfinite(claim.gap):
        raise Refused("the gap is not finite")
    X, signs = dense(rows.X), rows.y[:, 0]
    wrong = _errors(rows, X, claim.coef, claim.intercept)
    whole, power = as_integers(np.concatenate([rows.s, claim.charges]))
    s, charges, unit = whole[: rows.n], whole[rows.n :], Fraction(2) ** power
    total = unit * int(sum(s[wrong]))
    A = np.hstack([X, np.ones((rows.n, int(claim.fit_intercept)))]) * rows.y
    place, left, spent = _shared_weights(X, signs, s, claim.fit_intercept)
    packed, holds = _packed(A, place, left, claim, charges)
    errors, gap = judged(claim, total, 0.0, unit * (spent + packed))
    searched = get(certificate, "kind") == "zero-one search"
    if searched and not gap.holds:
        alone = np.unique(place, return_index=True)[1]
        alone = alone[left[place[alone]] > 0]
        least = max(packed, Fraction(_by_vertices(A[alone], left[place[alone]], effort)))
        _, gap = judged(claim, total, 0.0, unit * (spent + least))
    searched = searched and not gap.holds
    if searched:
        gap = Check("gap", gap.claimed, f"{gap.found}, and by search", True)
    return Verification(
        (errors, Check.that("conflicts", f"{len(charges)}", holds), gap),
        f"no hyperplane has errors of a weight {below(claim)}",
        ("the search, which was not repeated, is right",) * searched,
    )


def _errors(rows: Rows, X: Array, W: Array, b: Array) -> Bools:
    """Rows with y (x.w + b) <= 0, exactly."""
    signs, (z, _, unsure) = rows.y[:, 0], (part[:, 0] for part in rows.scores(W, b))
    wrong = np.asarray(signs * z <= 0)
    for i in np.flatnonzero(~(np.abs(z) > unsure)):
        value = exact_dot(np.append(X[i], 1.0), np.append(W, b).tolist())
        wrong[i] = value * int(signs[i]) <= 0
    return wrong


def _shared_weights(
    X: Array, signs: Array, s: Any, fit_intercept: bool
) -> tuple[Indices, Any, int]:
    """Where each signed row's weight is kept, what contradictions leave there, and their cost."""
    holders: dict[bytes, int] = {}
    place = np.array([holders.setdefault(x.tobytes(), len(holders)) for x in X + 0.0], dtype=int)
    place = 2 * place + (signs > 0)
    sides = np.zeros(2 * len(holders), dtype=object)
    np.add.at(sides, place, s)
    twice = np.repeat(np.minimum(sides[::2], sides[1::2]), 2)  # the cost, counted on both sides
    left = sides - twice
    if not fit_intercept:
        zero = np.unique(place[~X.any(axis=1)])
        twice[zero], left[zero] = 2 * sides[zero], 0
    return place, left, int(sum(twice)) // 2


def _packed(A: Array, place: Indices, left: Any, claim: Any, charges: Any) -> tuple[Fraction, bool]:
    """The sum of the charges that the weights allow, and whether the conflicts are some."""
    ends = [0, *claim.ends.tolist()]
    if any(a >= b for a, b in pairwise(ends)) or ends[-1] != len(claim.members):
        raise Refused("the ends of the conflicts do not fit their members")
    if (claim.members >= len(A)).any():
        raise Refused("the conflicts name rows that are not there")
    used, holds = np.zeros(len(left), dtype=object), True
    for chosen, charge in zip(np.split(claim.members, ends[1:-1]), charges, strict=False):
        found = null_space(as_integers(A[chosen])[0].T)
        holds &= len(found) == 1 and bool((found[0] > 0).all() or (found[0] < 0).all())
        used[np.unique(place[chosen])] += charge
    over = np.flatnonzero(used > left)
    if (left[over] == 0).any() or not holds:
        return Fraction(0), False
    excess = max([Fraction(1), *(Fraction(int(used[i]), int(left[i])) for i in over)])
    return int(sum(charges)) / excess, True


def _by_vertices(A: Array, left: Any, effort: str) -> int:
    """The least weight strictly on the wrong side of a vertex, from below; 0 if they are many."""
    n, p = A.shape
    work = comb(n, p - 1) * (n + 4 * factorial(p)) if p < 12 else np.inf
    if work > (3e8 if effort == "normal" else 1e12) or sum(left) > 2**999:
        return 0
    # Powers of two by column and row change no sign.
    A = np.ldexp(A, -np.frexp(np.abs(A).max(axis=0, initial=0.0))[1])
    A = np.ldexp(A, -np.frexp(np.abs(A).max(axis=1, initial=0.0))[1][:, None])
    weights, least, spans, doubtful = left.astype(np.float64), np.inf, False, 0
    choices, units = combinations(range(n), p - 1), (p * p + p + 8) * EPS
    while chunk := list(islice(choices, 4096)):
        M = A[np.array(chunk, dtype=int).reshape(len(chunk), p - 1)]
        parts = [_determinant(np.delete(M, j, axis=2)) for j in range(p)]
        v, size = (np.stack(part) for part in zip(*parts, strict=True))
        v[1::2] *= -1
        z, off = A @ v, units * (np.abs(A) @ size) + 1e-290
        sure = (np.abs(v) > units * size + 1e-290).any(axis=0)
        doubtful += int((~sure).sum())
        if doubtful > 20_000:
            return 0
        z[:, ~sure] = 0.0
        for i in np.flatnonzero(~sure):  # rows that depend on each other determine no vertex
            sure[i] = len(null_space(as_integers(M[i])[0])) == 1
        spans |= bool((np.abs(z) > off).any())
        for wrong in (z < -off, z > off):
            least = min(least, float((weights @ wrong)[sure].min(initial=np.inf)))
    # Sums of whole numbers below 2^53 are exact.
    exact = 1.0 if sum(left) < 2**53 else 1.0 - (n + 4) * EPS
    return int(least * exact) if spans and np.isfinite(least) else 0


def _determinant(M: Array) -> tuple[Array, Array]:
    """Determinants of square matrices, and the permanents of their magnitudes."""
    value = size = np.full(len(M), float(M.shape[1] == 0))
    for j in range(M.shape[2]):
        minor, bound = _determinant(np.delete(M[:, 1:], j, axis=2))
        value, size = value + (-1.0) ** j * M[:, 0, j] * minor, size + np.abs(M[:, 0, j]) * bound
    return value, size
