"""References that share nothing with the package: enumeration in fractions, and HiGHS."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import lcm

import numpy as np
from scipy.optimize import linprog


def inequalities(X, codes, k, fit_intercept):
    """The rows z with z.b > 0 wanted: own class against each other one, last class without b."""
    out = []
    for x, own in zip(X, codes, strict=True):
        x = [Fraction(v) for v in x] + ([Fraction(1)] if fit_intercept else [])
        for other in range(k):
            if other != own:
                blocks = [[Fraction(0)] * len(x) for _ in range(k)]
                blocks[own], blocks[other] = x, [-v for v in x]
                out.append([v for block in blocks[:-1] for v in block])
    return out


def null_vector(vectors):
    """The combination of the vectors that vanishes, if it is the only one up to a factor."""
    m = len(vectors)
    rows = [[*v, *(int(i == j) for j in range(m))] for i, v in enumerate(vectors)]
    width, rank = len(vectors[0]), 0
    for column in range(width):
        pivot = next((r for r in range(rank, m) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        p = rows[rank][column]
        for r in range(rank + 1, m):
            if f := rows[r][column]:
                rows[r] = [a * p - f * b for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rows[-1][width:] if rank == m - 1 else None


def boundary(vectors):
    """Rows that are zero whenever all are >= 0.

    They are those in some vanishing combination with multipliers >= 0, and every such combination
    is a sum of ones whose rows are dependent in one way only.
    """
    # A positive multiple of each row will do: integers are faster than fractions.
    vectors = [[int(v * lcm(*(u.denominator for u in z))) for v in z] for z in vectors]
    inside = set()
    for size in range(1, len(vectors[0]) + 2):
        for chosen in combinations(range(len(vectors)), size):
            t = null_vector([vectors[i] for i in chosen])
            if t is not None and (all(v > 0 for v in t) or all(v < 0 for v in t)):
                inside |= set(chosen)
    return inside


def verdict_by_highs(X, y, fit_intercept):
    """The verdict for y = -1, 1 by two linear programs."""
    Z = y[:, None] * (np.column_stack([X, np.ones(len(X))]) if fit_intercept else X)
    d = Z.shape[1]
    box = [(-1, 1)] * d
    # The largest t with Z b >= t, then the largest sum of z.b with Z b >= 0.
    strict = linprog(
        [0.0] * d + [-1.0],
        A_ub=np.column_stack([-Z, np.ones(len(Z))]),
        b_ub=np.zeros(len(Z)),
        bounds=[*box, (None, 1)],
    )
    if -strict.fun > 1e-9:
        return "separable"
    weak = linprog(-Z.sum(axis=0), A_ub=-Z, b_ub=np.zeros(len(Z)), bounds=box)
    return "quasi-separable" if -weak.fun > 1e-7 else "not separable"
