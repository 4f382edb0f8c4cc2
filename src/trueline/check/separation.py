r"""Verdicts on the separability of classes, decided for exactly the numbers that doubles are.

With rows x_i, or (x_i, 1) if there is an intercept, and unknowns g_c of class c, the inequality
(i, c) of row i against another class c has the value d_ic(g) = (g_own - g_c).x_i.

Theorem. (1) If some g has d > 0 for all inequalities, the classes are *separable*; if d >= margin
||g|| as well (the norm without intercepts, of the differences to the mean; for two classes, of the
difference), no row is nearer. (2) If integers t > 0 on at least one inequality have sum t d = 0 for
every g, no g has d > 0 for all. (3) If such t on some inequalities exist, everything in the span of
these is zero for every g with d >= 0. So the classes are *not separable*, not even weakly, if (3)
spans all; and *quasi-separable* if it spans exactly those that some g with d >= 0 has zero, and
others are there.

Proof. (1) is the definition. (2) is half of P. Gordan's theorem (1873), (3) of E. Stiemke's (1915):
terms t d >= 0 that sum to zero are zero. See A. Albert, J. A. Anderson, Biometrika 71 (1984) 1-10.

Read: kind, classes, fit_intercept, n_features, direction (g, as integers), margin, boundary_rows
and boundary_against (the inequalities that are zero), common (t of (2)), spanning (t of (3)).
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS
from trueline.check.exact import (
    Classified,
    Integers,
    as_integers,
    dense,
    exact_dot,
    null_space,
    scores_with_error,
)
from trueline.check.schema import Field, read
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Bools = NDArray[np.bool_]

_PLACES = Field(("m",), "integer", low=0)
_FIELDS = {
    "kind": Field(kind="text"),
    "classes": Field(kind="any"),
    "fit_intercept": Field(kind="boolean"),
    "n_features": Field(kind="integer", low=0),
    "direction": Field(kind="any"),
    "margin": Field(low=0.0),
    "boundary_rows": _PLACES,
    "boundary_against": _PLACES,
    "common": Field(kind="any"),
    "spanning": Field(kind="any"),
}
_COMBINATION = {"rows": _PLACES, "against": _PLACES, "multipliers": Field(kind="any")}
_PRIME = 2**31 - 1


def check(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
    """All checks of a verdict."""
    claim = read(certificate, _FIELDS, {}, {})
    data = Classified(
        X, y, sample_weight, claim.classes, claim.n_features, with_ones=claim.fit_intercept
    )
    boundary = np.full((data.n, data.k), claim.kind == "not separable")
    if claim.kind == "quasi-separable":
        data.require(claim.boundary_rows, claim.boundary_against)
        boundary[claim.boundary_rows, claim.boundary_against] = True
    elif len(claim.boundary_rows):
        raise Refused("a boundary is part of no other verdict than quasi-separable")
    if claim.kind != "separable" and claim.margin:
        raise Refused("a margin is part of no other verdict than separable")
    boundary[np.arange(data.n), data.codes] = False
    G = _direction(claim, data, 0 if claim.kind == "not separable" else data.k)
    parts = [(name, _combination(claim, name, data)) for name in ("common", "spanning")]
    checks = (
        [] if claim.kind == "not separable" else [_check_direction(data, G, claim.margin, boundary)]
    )
    if claim.kind != "separable":
        checks += _check_combinations(data, parts, boundary)
    elif any(len(part.rows) for _, part in parts):
        raise Refused("combinations are no part of the verdict separable")
    planes = "hyperplanes" if claim.fit_intercept else "hyperplanes through the origin"
    said = f"the {data.n:,} rows of {data.k} classes are {claim.kind} by {planes}"
    if claim.kind == "separable":
        said += f", and none is nearer to the stated hyperplanes than {claim.margin:.6g}"
    return Verification(tuple(checks), said)


def _whole(numbers: Any, count: int, name: str) -> list[int]:
    """A sequence of so many Python integers."""
    if not isinstance(numbers, (tuple, list)) or len(numbers) != count:
        raise Refused(f"{name} does not have {count} entries")
    if not all(type(v) is int for v in numbers):
        raise Refused(f"{name} holds what is no integer")
    return list(numbers)


def _combination(claim: Any, name: str, data: Classified) -> Any:
    """Rows, classes that they are held against, and integer multipliers."""
    part = read(getattr(claim, name), _COMBINATION, {}, {})
    data.require(part.rows, part.against)
    part.multipliers = _whole(part.multipliers, len(part.rows), f"multipliers of {name}")
    return part


def _direction(claim: Any, data: Classified, count: int) -> Integers:
    if not isinstance(claim.direction, (tuple, list)) or len(claim.direction) != count:
        raise Refused(f"direction does not have {count} rows")
    G = np.zeros((count, data.p), dtype=object)
    for c, row in enumerate(claim.direction):
        G[c] = _whole(row, data.p, "direction")
    return G


def _check_direction(data: Classified, G: Integers, margin: float, boundary: Bools) -> Check:
    """d >= margin ||g|| and d > 0 off the boundary, d = 0 on it, and not all are on it."""
    top = max(abs(v) for v in G.ravel()) if G.any() else 1
    W = np.array([[float(Fraction(v, top)) for v in row] for row in G])
    goal = Fraction(margin) * _norm_above(G[:, : data.d])
    level = float(goal / top) * (1 + 4 * EPS) if goal / top < 10**300 else np.inf
    wrong = 0
    for where, block in data:
        scores, error = scores_with_error(block, W)
        own, every = data.codes[where], np.arange(len(scores))
        gap = scores[every, own][:, None] - scores
        sure = gap - 1.01 * (error[every, own][:, None] + error + 4 * EPS * np.abs(gap)) > level
        sure[every, own] = True
        for i, c in zip(*np.nonzero(~sure & ~boundary[where]), strict=True):
            value = exact_dot(dense(block[[i]])[0], G[own[i]] - G[c])
            wrong += value <= 0 or value < goal
        for places, a, c in data.groups(where, boundary):
            wrong += int((~_vanishing(dense(block[places]), G[a] - G[c])).sum())
    strict = int((~boundary).sum()) - data.n
    claimed = f"{strict:,} inequalities positive, {int(boundary.sum()):,} zero"
    found = "yes" if wrong == 0 else f"{wrong} are not"
    return Check("sides of the hyperplanes", claimed, found, wrong == 0 and strict > 0)


def _vanishing(block: Any, g: Integers) -> Bools:
    """Which rows have x.g = 0: in words if everything is whole and small, else in integers."""
    size = Fraction(float(np.abs(block).max(initial=0.0))) * sum(abs(v) for v in g)
    if size < 2**62 and max(abs(v) for v in g) < 2**62 and (block == np.rint(block)).all():
        return np.asarray(block.astype(np.int64) @ g.astype(np.int64) == 0)
    return np.asarray(as_integers(block)[0] @ g == 0, dtype=bool)


def _norm_above(G: Integers) -> Fraction:
    """Not below the norm of the weights about their mean; of their difference, for two classes."""
    k = len(G)
    differences = G[1] - G[0] if k == 2 else k * G - G.sum(axis=0)
    # With 64 more digits than the integer part has.
    root = isqrt(int((differences**2).sum()) << 128) + 1
    return Fraction(root, (1 if k == 2 else k) << 64)


def _check_combinations(
    data: Classified, parts: list[tuple[str, Any]], boundary: Bools
) -> list[Check]:
    """Both vanish; the first is of some row; the second spans the boundary."""
    checks, spanning, rest = [], np.zeros((0, 0), dtype=object), boundary.copy()
    for name, part in parts:
        t = part.multipliers
        spanning = _contrasts(data, part.rows, part.against)
        total = np.array(t, dtype=object) @ spanning if t else np.zeros(1)
        # The first is claimed to be of few rows, no more than Caratheodory's theorem asks for.
        few = name != "common" or 1 <= len(t) <= spanning.shape[1] + 1
        holds = few and not np.any(total != 0) and all(v > 0 for v in t)
        said = "yes" if holds else "no"
        checks.append(Check(f"{name} rows combine to zero", f"{len(t)} rows", said, holds))
        rest[part.rows, part.against] = rest[part.rows, part.against] & (name == "common")
    spans = _spans(data, spanning, rest)
    checks.append(Check("they span the boundary", "yes", "yes" if spans else "no", spans))
    return checks


def _contrasts(data: Classified, rows: NDArray[Any], against: NDArray[Any]) -> Integers:
    """Inequalities as integer vectors: the blocks of all classes but the last."""
    X, every = as_integers(dense(data.rows(rows)))[0], np.arange(len(rows))
    out = np.zeros((len(rows), data.k, data.p), dtype=object)
    out[every, data.codes[rows]], out[every, against] = X, -X
    return out[:, :-1].reshape(len(rows), data.p * (data.k - 1))


def _spans(data: Classified, vectors: Integers, rest: Bools) -> bool:
    """Whether all these inequalities are in the span of the vectors."""
    size = data.p * (data.k - 1)
    if not rest.any() or _rank_modulo(vectors) == size:
        return True
    for normal in null_space(vectors):
        G = np.vstack([normal.reshape(data.k - 1, data.p), np.zeros((1, data.p), dtype=object)])
        for where, block in data:
            for places, a, c in data.groups(where, rest):
                if not _vanishing(dense(block[places]), G[a] - G[c]).all():
                    return False
    return True


def _rank_modulo(vectors: Integers) -> int:
    """A lower bound on the rank: a minor that is not zero modulo a prime is not zero."""
    M = (vectors % _PRIME).astype(np.int64)
    rank = 0
    for column in range(M.shape[1]):
        places = rank + np.flatnonzero(M[rank:, column])
        if len(places) == 0:
            continue
        M[[rank, places[0]]] = M[[places[0], rank]]
        M[rank] = M[rank] * pow(int(M[rank, column]), -1, _PRIME) % _PRIME
        M[rank + 1 :] = (M[rank + 1 :] - M[rank + 1 :, column][:, None] * M[rank]) % _PRIME
        rank += 1
    return rank
