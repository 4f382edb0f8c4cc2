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

The largest margin: points of hulls against hyperplanes.

Theorem. Let a_i >= 0 be weights of rows, of sum one in each of two classes, and p = sum_+ a_i x_i -
sum_- a_i x_i. Every (w, b) with y_i (x_i.w + b) >= m for all rows has m / ||w|| <= ||p|| / 2.
Without an intercept: with weights of sum one over all rows and p = sum_i a_i y_i x_i, it has
m / ||w|| <= ||p||; the same for several classes and the contrasts of rows that hold against them.
So the *margin* min_i y_i (x_i.w + b) / ||w|| of no hyperplane is above ||p|| / 2 (||p||), and the
*hard margin* problem, 1/2 ||w||^2 under y_i (x_i.w + b) >= 1, has no value below 2 / ||p||^2
(1 / (2 ||p||^2)).

Proof. w.p = sum_+ a_i (x_i.w + b) - sum_- a_i (x_i.w + b) >= 2 m, and w.p <= ||w|| ||p||.

Weights are divided by their sums here; norms are compared as squares of rational numbers, so that
nothing is rounded, and rows are on their side by doubles only where their error bound allows.

Read, kind "margin": classes, fit_intercept, coef, intercept, margin, upper_bound, radius (no row
has a larger norm), rows, against, weights. Kind "hard margin": objective, objective_rounding, gap,
loss, penalty, fit_intercept, coef, intercept, and shares, the weights of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.check.arithmetic import (
    EPS,
    ROWS,
    SMALLEST,
    Array,
    Bools,
    Indices,
    Integers,
    as_integers,
    eliminated,
    exact_dot,
    null_space,
)
from trueline.check.claims import below, judged, read_about
from trueline.check.rows import Rows, as_matrix, as_weights, dense
from trueline.check.schema import Field, get, read
from trueline.check.verdict import Check, Refused, Verification

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


class Classified:
    """Rows as exact doubles, with a last column of ones if asked for, and the class of each."""

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, d: int, with_ones: bool
    ) -> None:
        self.X, self.d, self.with_ones, self.p = as_matrix(X), d, with_ones, d + int(with_ones)
        try:
            stated = np.asarray(classes)
            labels, codes = np.unique(np.asarray(y), return_inverse=True)
            same = stated.shape == labels.shape and bool((labels == stated).all())
        except (TypeError, ValueError) as error:
            raise Refused(f"labels cannot be compared: {error}") from None
        self.codes, self.k, self.n = codes.ravel(), len(labels), self.X.shape[0]
        if np.ndim(y) != 1 or self.X.shape != (len(self.codes), d) or not same or self.k < 2:
            raise Refused(f"X has the shape {self.X.shape}, y the labels {labels.tolist()[:9]}")
        if not as_weights(sample_weight, self.n).all():
            raise Refused("this claim is about every row; leave out those of weight zero")

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        """Consecutive blocks of rows, sparse if they are."""
        for start in range(0, self.n, ROWS):
            yield slice(start, start + ROWS), self.rows(slice(start, start + ROWS))

    def rows(self, where: Any) -> Any:
        """Some rows, sparse if they are."""
        part, ones = self.X[where], np.ones((len(self.codes[where]), int(self.with_ones)))
        if sp.issparse(part):
            return sp.csr_array(sp.hstack([part, sp.csr_array(ones)]))
        return np.hstack([part, ones])

    def contrasts(self, rows: Indices, against: Indices) -> tuple[Integers, int]:
        """Inequalities as integer vectors, a block for each class, and the power of two left out.

        Refused are rows and classes that are not there, and rows against their own class.
        """
        if len(rows) and (rows.max() >= self.n or against.max() >= self.k):
            raise Refused("the certificate names rows or classes that are not there")
        if (self.codes[rows] == against).any():
            raise Refused("the certificate holds rows against their own class")
        X, power = as_integers(dense(self.rows(rows)))
        out, every = np.zeros((len(rows), self.k, self.p), dtype=object), np.arange(len(rows))
        out[every, self.codes[rows]], out[every, against] = X, -X
        return out, power

    def square(self, G: Integers) -> Fraction:
        """||g||^2: without intercepts, about the mean; for two classes, of the difference."""
        G, k = G[:, : self.d], self.k
        parts = G[1] - G[0] if k == 2 else k * G - G.sum(axis=0)
        return Fraction(int((parts**2).sum()), 1 if k == 2 else k * k)

    def too_small(self, G: Integers, goal: Fraction, skip: Bools) -> int:
        """How many inequalities are not positive, or have a square below the goal."""
        top = max(max(abs(v) for v in G.ravel()), 1)
        W, level = (G / top).astype(np.float64), np.inf
        if goal <= 10**300 * top**2:
            level = max(sqrt(float(goal / top**2)), 1e-140 if goal else 0.0) * (1 + 4 * EPS)
        wrong = 0
        for where, block in self:
            found, size = np.asarray(block @ W.T), np.asarray(abs(block) @ np.abs(W).T)
            tiny = 1e-322 * np.asarray(abs(block).sum(axis=1)).reshape(-1, 1) + 1e-320 * self.p
            own, every = self.codes[where], np.arange(len(found))
            gap = found[every, own][:, None] - found
            error = (self.p + 8) * EPS * size + tiny
            doubt = error[every, own][:, None] + error + 4 * EPS * np.abs(gap)
            unsure = ~(gap - 1.01 * doubt > level) & ~skip[where]
            unsure[every, own] = False
            for i, c in zip(*np.nonzero(unsure), strict=True):
                value = exact_dot(dense(block[[i]])[0], G[own[i]] - G[c])
                wrong += value <= 0 or value**2 < goal
        return wrong

    def not_zero(self, G: Integers, chosen: Bools) -> int:
        """How many of the chosen inequalities are not zero."""
        wrong = 0
        for where, block in self:
            i, c = np.nonzero(chosen[where])
            values = as_integers(dense(block[i]))[0] * (G[self.codes[where][i]] - G[c])
            wrong += int((values.sum(axis=1) != 0).sum())
        return wrong


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a verdict on separability, or of a margin."""
    kind = get(certificate, "kind")
    if kind == "hard margin":
        return _check_hard(certificate, Rows(X, y, sample_weight))
    if kind == "margin":
        return _check_margin(certificate, X, y, sample_weight)
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


# --- margins -------------------------------------------------------------------------------------

_MARGIN = {
    "classes": Field(kind="any"),
    "fit_intercept": Field(kind="boolean"),
    "coef": Field(("blocks", "d")),
    "intercept": Field(),
    **dict.fromkeys(("margin", "upper_bound", "radius"), Field(low=0.0)),
    **dict.fromkeys(("rows", "against"), _PLACES),
    "weights": Field(("m",), low=0.0),
}


def _check_margin(certificate: Any, X: Any, y: Any, sample_weight: Any) -> Verification:
    """All checks of a largest margin."""
    sizes: dict[str, int] = {}
    claim = read(certificate, _MARGIN, {}, sizes)
    data = Classified(X, y, sample_weight, claim.classes, sizes["d"], with_ones=True)
    if sizes["blocks"] != (1 if data.k == 2 else data.k) or (data.k > 2 and claim.fit_intercept):
        raise Refused("coef is not that of these classes, or has intercepts for more than two")
    if claim.intercept and not claim.fit_intercept:
        raise Refused("an intercept where there is none")
    G, _ = _hyperplanes(data, claim.coef, claim.intercept)
    wrong = _nearer(data, G, Fraction(claim.margin) ** 2 * data.square(G))
    square = _hull_square(data, claim.rows, claim.against, claim.weights, claim.fit_intercept)
    longer = _longer(data, Fraction(claim.radius) ** 2)
    above = square <= ((2 if claim.fit_intercept else 1) * Fraction(claim.upper_bound)) ** 2
    checks = (
        Check("distances", f"at least {claim.margin:.12g}", f"{wrong} are nearer", wrong == 0),
        Check.that("upper bound", f"{claim.upper_bound:.12g}", above),
        Check("norm of rows", f"at most {claim.radius:.12g}", f"{longer} are longer", longer == 0),
    )
    said = f"the largest margin lies between {claim.margin:.10g}, which the stated hyperplane has"
    return Verification(checks, f"{said}, and {claim.upper_bound:.10g}")


def _check_hard(certificate: Any, rows: Rows) -> Verification:
    witness = {"shares": Field(("n", "k"), low=0.0)}
    claim = read_about("hard_margin", "l2", certificate, rows, witness)
    if read(claim.strength, {"alpha": Field()}, {}, {}).alpha != 1:
        raise Refused("the claim is about another strength of the penalty than 1")
    wrong, lower, value = 0, Fraction(0), Fraction(0)
    for t in range(rows.k):
        data = Classified(rows.X, rows.y[:, t], None, [-1.0, 1.0], rows.d, with_ones=True)
        G, power = _hyperplanes(data, claim.coef[None, :, t], claim.intercept[t])
        wrong += _nearer(data, G, Fraction(4) ** -power)
        value += data.square(G) * Fraction(4) ** power / 2
        held, split = np.flatnonzero(claim.shares[:, t]), claim.fit_intercept
        square = _hull_square(data, held, 1 - data.codes[held], claim.shares[held, t], split)
        if square == 0:
            raise Refused("the weights of rows give a point that both hulls share")
        lower += (2 if split else Fraction(1, 2)) / square
    sides = Check("margins", "all >= 1", f"{wrong} are below", wrong == 0)
    said = "all margins are 1 at least, and no such hyperplane has a 1/2 ||w||^2"
    return Verification((sides, *judged(claim, value, 0.0, lower)), f"{said} {below(claim)}")


def _hyperplanes(data: Classified, coef: Array, level: float) -> tuple[Integers, int]:
    """Weights and intercepts of all classes as integers, and the power of two left out."""
    W = np.zeros((data.k, data.p))
    W[data.k - len(coef) :, : data.d], W[-1, -1] = coef, level
    return as_integers(W)


def _nearer(data: Classified, G: Integers, goal: Fraction) -> int:
    return data.too_small(G, goal, np.zeros((data.n, data.k), dtype=bool))


def _hull_square(
    data: Classified, rows: Any, against: Any, weights: Array, split: bool
) -> Fraction:
    """||p||^2 of the theorem; ``split``: weights of each of two classes count for themselves."""
    vectors, power = data.contrasts(rows, against)
    a, own = as_integers(weights)[0], data.codes[rows]
    totals = np.array([sum(a[own == c]) for c in range(data.k)], dtype=object)
    unit = totals[0] * totals[1] if split else sum(a)
    if not unit:
        raise Refused("weights of rows that sum to zero")
    a = a * totals[1 - own] if split else a
    p = (a[:, None, None] * vectors[:, data.k == 2 :, : data.d]).sum(axis=0)
    return int((p**2).sum()) * Fraction(4) ** power / unit**2


def _longer(data: Classified, limit: Fraction) -> int:
    """How many rows have a squared norm above the limit."""
    level, wrong = float(min(limit, Fraction(10**300))) * (1 - 4 * EPS), 0
    for where, _ in data:
        block = data.X[where]
        squares = np.asarray((block * block).sum(axis=1)).ravel()
        unsure = ~(squares * (1 + (data.d + 4) * EPS) + data.d * SMALLEST < level)
        for i in np.flatnonzero(unsure):
            whole, power = as_integers(dense(block[[i]]))
            wrong += int((whole**2).sum()) * Fraction(4) ** power > limit
    return wrong
