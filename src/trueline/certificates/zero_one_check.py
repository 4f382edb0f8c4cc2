r"""The checker of halfspaces with the fewest errors: the errors, and the conflicts that bound them.

Claimed is that no (w, b) has a smaller weight, up to the gap, of

    sum_i s_i [y_i (x_i.w + b) <= 0].

Errors are counted again, in exact arithmetic wherever rounding could matter. A conflict is a set of
signed rows a_i = y_i (x_i, 1) with sum_i lambda_i a_i = 0 for positive lambda: a.v cannot be
positive for all of them. Each conflict may count as much as the weight that others have left on
all of its rows; equal rows share their weights, and contradictory rows have spent the lighter one
on each other. The multipliers are worked out here, in fractions. What a search claims beyond its
root is not repeated, and the check says so.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, Check

__all__ = ["WITNESS", "check_zero_one"]

Array = NDArray[np.float64]

#: What such a proof must bring.
WITNESS = ("members", "ends", "charges", "search_bound")


def check_zero_one(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks; ``rows`` are those of the independent checker, its targets -1 and +1."""
    signs = bool(np.isin(rows.y, (-1.0, 1.0)).all() and rows.y.shape[1] == 1)
    checks = [Check("targets", "-1 and +1", "yes" if signs else "no", signs)]
    if not signs:
        return checks
    X = np.concatenate([block for _, block in rows])
    y = rows.y[:, 0]
    checks.append(_check_errors(certificate, X, y, rows.s))
    packed, of_conflicts = _check_conflicts(certificate, X, y, rows.s)
    return [*checks, *of_conflicts, _check_bound(certificate, packed)]


def _check_errors(certificate: Certificate, X: Array, y: Array, s: Array) -> Check:
    w, b = certificate.coef[:, 0], float(certificate.intercept[0])
    z = y * (X @ w + b)
    unsure = (X.shape[1] + 4) * EPS * (np.abs(X) @ np.abs(w) + abs(b)) + 1e-290
    wrong = z <= 0
    for i in np.flatnonzero(~(np.abs(z) > unsure)):
        score = sum((Fraction(x) * Fraction(c) for x, c in zip(X[i].tolist(), w.tolist())))
        wrong[i] = (score + Fraction(b)) * int(y[i]) <= 0
    total = math.fsum(s[wrong])
    allowed = certificate.objective_rounding
    return Check(
        "errors",
        f"{certificate.objective:.12g} within {allowed:.2g}",
        f"{total:.12g} in {int(wrong.sum())} rows",
        bool(abs(total - certificate.objective) <= allowed),
    )


def _check_conflicts(
    certificate: Certificate, X: Array, y: Array, s: Array
) -> tuple[float, list[Check]]:
    """The bound that the conflicts of the witness give, and whether they are what they should."""
    witness, n = certificate.witness, len(y)
    members = np.asarray(witness["members"]).astype(int)
    ends = np.asarray(witness["ends"]).astype(int)
    charges = np.asarray(witness["charges"], dtype=float)
    sound = len(ends) == len(charges) and bool((charges > 0).all())
    sound = sound and bool((np.diff(ends, prepend=0) > 0).all())
    sound = sound and (int(ends[-1]) if len(ends) else 0) == len(members)
    sound = sound and bool(((members >= 0) & (members < n)).all())
    if not sound:
        said = f"{len(members)} rows, {len(ends)} ends, {len(charges)} charges"
        return 0.0, [Check("witness of the conflicts", "rows, ends, charges", said, False)]
    place, left, spent = _shared_weights(X, y, s, certificate.fit_intercept)
    wrong, used = 0, np.zeros(len(left))
    for first, last, charge in zip([0, *ends[:-1]], ends, charges):
        chosen = members[first:last]
        wrong += not _is_conflict(X[chosen], y[chosen], certificate.fit_intercept)
        np.add.at(used, np.unique(place[chosen]), charge)
    over = float(np.max(used - left * (1 + 8 * n * EPS), initial=0.0))
    return spent + math.fsum(charges), [
        Check(
            "conflicts", f"{len(ends)} in exact arithmetic", f"{len(ends) - wrong} hold", wrong == 0
        ),
        Check("weights spent twice", "none", f"{over:.3g}", over == 0),
    ]


def _shared_weights(
    X: Array, y: Array, s: Array, fit_intercept: bool
) -> tuple[NDArray[np.intp], Array, float]:
    """Where each signed row's weight is kept, what is there, and what contradictions cost."""
    holders: dict[bytes, int] = {}
    place = np.empty(len(y), dtype=np.intp)
    for i, row in enumerate(X + 0.0):
        place[i] = 2 * holders.setdefault(row.tobytes(), len(holders)) + int(y[i] > 0)
    total = np.bincount(place, weights=s, minlength=2 * len(holders)).reshape(-1, 2)
    contradicted = total.min(axis=1)
    left = (total - contradicted[:, None]).ravel()
    spent = math.fsum(contradicted)
    if not fit_intercept:  # rows of zeros are errors whatever the coefficients are
        nothing = np.unique(place[~X.any(axis=1)])
        spent += math.fsum(left[nothing])
        left[nothing] = 0.0
    return place, left, spent


def _is_conflict(X: Array, y: Array, fit_intercept: bool) -> bool:
    """Whether the signed rows have a combination of zero, unique and with positive multipliers."""
    columns = [[Fraction(value) * int(sign) for value in row] for row, sign in zip(X.tolist(), y)]
    if fit_intercept:
        columns = [[*column, Fraction(int(sign))] for column, sign in zip(columns, y)]
    # Eliminate in the transpose: one unknown per row of the data, one equation per column.
    table = [list(equation) for equation in zip(*columns)]
    unknowns, rank = len(columns), 0
    for c in range(unknowns - 1):
        pivot = next((r for r in range(rank, len(table)) if table[r][c] != 0), None)
        if pivot is None:
            return False
        table[rank], table[pivot] = table[pivot], table[rank]
        factor = table[rank][c]
        table[rank] = [value / factor for value in table[rank]]
        for r in range(len(table)):
            if r != rank and table[r][c] != 0:
                times = table[r][c]
                table[r] = [value - times * p for value, p in zip(table[r], table[rank])]
        rank += 1
    # With the last multiplier one, the others are what stands in its column, with the other sign.
    if any(equation[-1] != 0 for equation in table[rank:]):
        return False
    return all(equation[-1] < 0 for equation in table[:rank])


def _check_bound(certificate: Certificate, packed: float) -> Check:
    top = certificate.objective + certificate.objective_rounding
    claimed = float(certificate.witness["search_bound"])
    unit = 8 * EPS * abs(top)
    honest = bool(claimed <= top + unit and certificate.gap >= top - claimed - unit)
    name, proven = "least weight of errors", f">= {certificate.lower_bound:.12g}"
    enough = claimed <= packed * (1 + 8 * EPS)
    if certificate.kind == "zero-one packing" or enough:
        return Check(name, proven, f">= {packed:.12g}, by the conflicts alone", honest and enough)
    said = f">= {packed:.12g} by the conflicts; the search to {claimed:.12g} is not repeated"
    return Check(name, proven, said, honest)
