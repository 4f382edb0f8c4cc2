"""The fewest errors by brute force, in integers: every ray of the arrangement, and around it."""

from fractions import Fraction
from itertools import combinations


def fewest_errors(rows, weights):
    """Least weight of rows a with a.v <= 0 over all v; rows of integers.

    An open cell either touches a ray on which rows of rank m - 1 vanish, or all rows vanish on
    some line. Next to such a point, only the rows that vanish on it are undecided, in one dimension
    less.
    """
    total = sum(s for row, s in zip(rows, weights) if not any(row))
    both = [(row, s) for row, s in zip(rows, weights) if any(row)]
    rows, weights = [row for row, _ in both], [s for _, s in both]
    if not rows:
        return total
    m = len(rows[0])
    if m == 1:
        above = sum(s for row, s in both if row[0] > 0)
        below = sum(s for row, s in both if row[0] < 0)
        return total + min(above, below)
    line = _vanishing(rows, m)
    if len(line) > 0:
        return total + fewest_errors(_without(rows, line[0]), weights)
    best = sum(weights)
    seen = set()
    for chosen in combinations(rows, m - 1):
        line = _vanishing(chosen, m)
        if len(line) != 1:
            continue
        for v in (line[0], [-x for x in line[0]]):
            scores = [sum(a * x for a, x in zip(row, v)) for row in rows]
            key = tuple((score > 0) - (score < 0) for score in scores)
            if key in seen:
                continue
            seen.add(key)
            wrong = sum(s for s, score in zip(weights, scores) if score < 0)
            on = [i for i, score in enumerate(scores) if score == 0]
            if wrong < best:
                around = _without([rows[i] for i in on], v)
                best = min(best, wrong + fewest_errors(around, [weights[i] for i in on]))
    return total + best


def _vanishing(rows, m):
    """A basis of the vectors that are orthogonal to all rows."""
    table, pivots = [[Fraction(x) for x in row] for row in rows], []
    for c in range(m):
        at = len(pivots)
        row = next((r for r in range(at, len(table)) if table[r][c] != 0), None)
        if row is None:
            continue
        table[at], table[row] = table[row], table[at]
        table[at] = [x / table[at][c] for x in table[at]]
        for r in range(len(table)):
            if r != at:
                table[r] = [x - table[r][c] * p for x, p in zip(table[r], table[at])]
        pivots.append(c)
    free = [c for c in range(m) if c not in pivots]
    basis = []
    for c in free:
        v = [Fraction(0)] * m
        v[c] = Fraction(1)
        for r, pivot in enumerate(pivots):
            v[pivot] = -table[r][c]
        basis.append(v)
    return basis


def _without(rows, v):
    """Rows orthogonal to v in one coordinate less: the one in which v is not zero."""
    c = next(c for c, x in enumerate(v) if x != 0)
    return [[*row[:c], *row[c + 1 :]] for row in rows]
