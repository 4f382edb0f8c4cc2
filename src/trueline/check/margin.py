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
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS
from trueline.check.claims import read_about
from trueline.check.exact import Classified, as_integers, dense, exact_dot, scores_with_error
from trueline.check.rows import Rows
from trueline.check.schema import Field, get, read
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

_PLACES = Field(("m",), "integer", low=0)
_MARGIN = {
    "classes": Field(kind="any"),
    "fit_intercept": Field(kind="boolean"),
    "coef": Field(("blocks", "d")),
    "intercept": Field(),
    "margin": Field(low=0.0),
    "upper_bound": Field(low=0.0),
    "radius": Field(low=0.0),
    "rows": _PLACES,
    "against": _PLACES,
    "weights": Field(("m",), low=0.0),
}


def check(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
    """All checks of a margin, as a distance or as the objective of a support vector machine."""
    if get(certificate, "kind") == "margin":
        return _check_margin(certificate, X, y, sample_weight)
    return _check_hard(certificate, Rows(X, y, sample_weight))


def _check_margin(certificate: Any, X: Any, y: Any, sample_weight: Any) -> Verification:
    sizes: dict[str, int] = {}
    claim = read(certificate, _MARGIN, {}, sizes)
    data = Classified(X, y, sample_weight, claim.classes, sizes["d"], with_ones=False)
    if sizes["blocks"] != (1 if data.k == 2 else data.k) or (data.k > 2 and claim.fit_intercept):
        raise Refused("coef is not that of these classes, or has intercepts for more than two")
    if claim.intercept and not claim.fit_intercept:
        raise Refused("an intercept where there is none")
    data.require(claim.rows, claim.against)
    W = np.vstack([np.zeros((1, data.d)), claim.coef]) if data.k == 2 else claim.coef
    levels = np.array([0.0, claim.intercept]) if data.k == 2 else np.zeros(data.k)
    goal = Fraction(claim.margin) ** 2 * _square(claim.coef)
    wrong = _nearer(data, W, levels, goal)
    square = _hull_square(data, claim.rows, claim.against, claim.weights, claim.fit_intercept)
    factor = 2 if claim.fit_intercept else 1
    above = square <= (factor * Fraction(claim.upper_bound)) ** 2
    longer = _longer(data, Fraction(claim.radius) ** 2)
    checks = (
        Check("margin", f"at least {claim.margin:.12g}", f"{wrong} rows are nearer", wrong == 0),
        Check("upper bound", f"{claim.upper_bound:.12g}", "yes" if above else "no", above),
        Check("norm of rows", f"at most {claim.radius:.12g}", f"{longer} are longer", longer == 0),
    )
    said = f"the largest margin lies between {claim.margin:.10g}, which the stated hyperplane has"
    return Verification(checks, f"{said}, and {claim.upper_bound:.10g}")


def _check_hard(certificate: Any, rows: Rows) -> Verification:
    witness = {"shares": Field(("n", "k"), low=0.0)}
    claim = read_about("hard_margin", "l2", certificate, rows, witness)
    if read(claim.strength, {"alpha": Field()}, {}, {}).alpha != 1:
        raise Refused("the claim is about another strength of the penalty than 1")
    wrong, lower = 0, Fraction(0)
    for t in range(rows.k):
        data = Classified(rows.X, rows.y[:, t], None, [-1.0, 1.0], rows.d, with_ones=False)
        W = np.vstack([np.zeros(rows.d), claim.coef[:, t]])
        wrong += _nearer(data, W, np.array([0.0, claim.intercept[t]]), Fraction(1))
        held = np.flatnonzero(claim.shares[:, t])
        square = _hull_square(
            data, held, 1 - data.codes[held], claim.shares[held, t], claim.fit_intercept
        )
        if square == 0:
            raise Refused("the weights of rows give a point that both hulls share")
        lower += (2 if claim.fit_intercept else Fraction(1, 2)) / square
    value = _square(claim.coef) / 2
    stated, allowed = Fraction(claim.objective), Fraction(claim.objective_rounding)
    gap = stated + allowed - lower
    close = abs(value - stated) <= allowed
    tight = claim.gap == np.inf or gap <= Fraction(claim.gap)
    said = f"{claim.objective:.12g} within {claim.objective_rounding:.2g}"
    checks = (
        Check("margins", "all >= 1", f"{wrong} are below", wrong == 0),
        Check("objective", said, f"{float(value):.12g}", close),
        Check("gap", f"<= {claim.gap:.4g}", f"{float(gap):.4g}", tight),
    )
    said = "all margins are 1 at least, and no such hyperplane has a 1/2 ||w||^2 below "
    said += f"{claim.objective:.10g} by more than {claim.gap:.3g}"
    return Verification(checks, said)


def _square(W: Array) -> Fraction:
    """The sum of squares."""
    whole, power = as_integers(W)
    return int((whole**2).sum()) * Fraction(4) ** power


def _nearer(data: Classified, W: Array, levels: Array, goal: Fraction) -> int:
    """How many inequalities have a value that is not positive, or a square below the goal."""
    level = float(np.sqrt(float(goal))) * (1 + 4 * EPS) if goal < 10**300 else np.inf
    if goal and level < 1e-140:
        level = 1e-140
    exact, wrong = [[Fraction(float(v)) for v in row] for row in W], 0
    for where, block in data:
        scores, error = scores_with_error(block, W)
        scores, error = scores + levels, error + EPS * (np.abs(scores) + np.abs(levels))
        own, every = data.codes[where], np.arange(len(scores))
        gap = scores[every, own][:, None] - scores
        doubt = error[every, own][:, None] + error + 8 * EPS * np.abs(gap)
        sure = gap - 1.01 * doubt > level
        sure[every, own] = True
        for i, c in zip(*np.nonzero(~sure), strict=True):
            g = [a - b for a, b in zip(exact[own[i]], exact[c], strict=True)]
            value = exact_dot(dense(block[[i]])[0], g)
            value += Fraction(float(levels[own[i]])) - Fraction(float(levels[c]))
            wrong += value <= 0 or value**2 < goal
    return wrong


def _hull_square(
    data: Classified, rows: NDArray[Any], against: NDArray[Any], weights: Array, split: bool
) -> Fraction:
    """||p||^2 of the theorem; ``split``: weights of each of two classes count for themselves."""
    a, own = as_integers(weights)[0], data.codes[rows]
    X, power = as_integers(dense(data.rows(rows)))
    sums = [[a[part == c] @ X[part == c] for c in range(data.k)] for part in (own, against)]
    totals = [sum(a[own == c]) for c in range(data.k)] if split else [sum(a)]
    if not all(totals):
        raise Refused("weights of rows that sum to zero")
    if split:
        p, unit = totals[0] * sums[0][1] - totals[1] * sums[0][0], totals[0] * totals[1]
    else:
        first = 1 if data.k == 2 else 0
        p, unit = np.array(sums[0][first:]) - np.array(sums[1][first:]), totals[0]
    return int((p**2).sum()) * Fraction(4) ** power / unit**2


def _longer(data: Classified, limit: Fraction) -> int:
    """How many rows have a squared norm above the limit."""
    level, wrong = float(limit) if limit < 10**300 else 1e300, 0
    for _, block in data:
        squares = np.asarray((block * block).sum(axis=1)).ravel()
        unsure = ~(squares * (1 + (data.d + 4) * EPS) + data.d * 1e-320 < level * (1 - 4 * EPS))
        wrong += sum(_square(dense(block[[i]])[0]) > limit for i in np.flatnonzero(unsure))
    return wrong
