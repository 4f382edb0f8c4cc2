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
from typing import Any

import numpy as np

from trueline.check.numbers.arithmetic import Integers, eliminated, null_space
from trueline.check.numbers.rows import Bools, Classified
from trueline.check.schema import Field, read
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

_PLACES = Field(("m",), "integer", low=0)
_FIELDS = {
    "kind": Field(kind="text"),
    "fit_intercept": Field(kind="boolean"),
    "n_features": Field(kind="integer", low=0),
    "margin": Field(low=0.0),
    **dict.fromkeys(("boundary_rows", "boundary_against"), _PLACES),
    **dict.fromkeys(("classes", "direction", "common", "spanning"), Field(kind="any")),
}
_COMBINATION = {"rows": _PLACES, "against": _PLACES, "multipliers": Field(kind="any")}
_PRIME = 2**31 - 1


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a verdict."""
    claim = read(certificate, _FIELDS, {}, {})
    ones = claim.fit_intercept
    data = Classified(X, y, sample_weight, claim.classes, claim.n_features, with_ones=ones)
    strict, none = claim.kind == "separable", claim.kind == "not separable"
    boundary = np.full((data.n, data.k), none)
    data.contrasts(claim.boundary_rows, claim.boundary_against)  # refuses what is not there
    boundary[claim.boundary_rows, claim.boundary_against] = True
    boundary[np.arange(data.n), data.codes] = False
    parts = [getattr(claim, name) for name in ("common", "spanning")]
    parts = [read(part, _COMBINATION, {}, {}) for part in parts]
    if (len(claim.boundary_rows) and (strict or none)) or (claim.margin and not strict):
        raise Refused("a boundary or a margin is no part of this verdict")
    if strict and any(len(part.rows) for part in parts):
        raise Refused("combinations are no part of the verdict separable")
    checks = []
    if not none:
        G = _direction(claim.direction, data)
        wrong = data.too_small(G, Fraction(claim.margin) ** 2 * data.square(G), boundary)
        wrong += data.not_zero(G, boundary)
        above = int((~boundary).sum()) - data.n
        said = f"{above:,} inequalities positive, {int(boundary.sum()):,} zero"
        found = "yes" if wrong == 0 else f"{wrong} are not"
        checks.append(Check("sides of the hyperplanes", said, found, wrong == 0 and above > 0))
    else:
        _whole(claim.direction, 0, "direction")
    if not strict:
        _, few = _vanishing(data, parts[0])
        vectors, holds = _vanishing(data, parts[1])
        # The first is claimed to be of few rows, no more than Caratheodory's theorem asks for.
        few = few and 1 <= len(parts[0].rows) <= vectors.shape[1] + 1
        boundary[parts[1].rows, parts[1].against] = False
        checks += [
            Check.that("common rows combine to zero", f"{len(parts[0].rows)} rows", few),
            Check.that("spanning rows combine to zero", f"{len(parts[1].rows)} rows", holds),
            Check.that("they span the boundary", "yes", _spans(data, vectors, boundary)),
        ]
    planes = "hyperplanes" if claim.fit_intercept else "hyperplanes through the origin"
    said = f"the {data.n:,} rows of {data.k} classes are {claim.kind} by {planes}"
    if strict:
        said += f", and none is nearer to the stated hyperplanes than {claim.margin:.6g}"
    return Verification(tuple(checks), said)


def _whole(numbers: Any, count: int, name: str) -> Integers:
    """So many Python integers."""
    if not isinstance(numbers, (tuple, list)) or len(numbers) != count:
        raise Refused(f"{name} does not have {count} entries")
    if not all(type(v) is int for v in numbers):
        raise Refused(f"{name} holds what is no integer")
    return np.array(numbers, dtype=object)


def _direction(rows: Any, data: Classified) -> Integers:
    if not isinstance(rows, (tuple, list)) or len(rows) != data.k:
        raise Refused(f"direction does not have {data.k} rows")
    return np.stack([_whole(row, data.p, "direction") for row in rows])


def _vanishing(data: Classified, part: Any) -> tuple[Integers, bool]:
    """Inequalities as vectors of all classes but the last, and whether their combination is 0."""
    t = _whole(part.multipliers, len(part.rows), "multipliers")
    vectors = data.contrasts(part.rows, part.against)[0][:, :-1]
    vectors = vectors.reshape(len(t), data.p * (data.k - 1))
    return vectors, all(v > 0 for v in t) and not (t[:, None] * vectors).sum(axis=0).any()


def _spans(data: Classified, vectors: Integers, rest: Bools) -> bool:
    """Whether all these inequalities are in the span of the vectors."""
    rank = len(eliminated((vectors % _PRIME).astype(np.int64), _PRIME)[1])
    if not rest.any() or rank == vectors.shape[1]:
        return True
    last = np.zeros((1, data.p), dtype=object)
    normals = (np.vstack([v.reshape(-1, data.p), last]) for v in null_space(vectors))
    return all(data.not_zero(G, rest) == 0 for G in normals)
