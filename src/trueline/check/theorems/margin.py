r"""The largest margin: points of hulls against hyperplanes.

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

from fractions import Fraction
from typing import Any

import numpy as np

from trueline.check.formulas.claims import below, judged, read_about
from trueline.check.numbers.arithmetic import EPS, SMALLEST, Array, Integers, as_integers
from trueline.check.numbers.rows import Classified, Rows, dense
from trueline.check.schema import Field, get, read
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

_PLACES = Field(("m",), "integer", low=0)
_MARGIN = {
    "classes": Field(kind="any"),
    "fit_intercept": Field(kind="boolean"),
    "coef": Field(("blocks", "d")),
    "intercept": Field(),
    **dict.fromkeys(("margin", "upper_bound", "radius"), Field(low=0.0)),
    **dict.fromkeys(("rows", "against"), _PLACES),
    "weights": Field(("m",), low=0.0),
}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a margin, as a distance or as the objective of a support vector machine."""
    if get(certificate, "kind") == "hard margin":
        return _check_hard(certificate, Rows(X, y, sample_weight))
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
