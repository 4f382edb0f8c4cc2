"""Least squares in rational arithmetic: the exact optimum of problems whose data are doubles.

Every double is a fraction, so that the objective at rounded coefficients, the true optimum and
their difference are known without any error. For small problems only.
"""

from fractions import Fraction
from itertools import product

import numpy as np

HALF = Fraction(1, 2)


def column(values):
    """A list of fractions."""
    return [Fraction(value) for value in np.asarray(values, dtype=float).ravel().tolist()]


def solve(A, c):
    """A solution of A x = c by elimination with pivots, and the rank; free unknowns are zero.

    The system must be consistent, as normal equations always are.
    """
    n, m = len(A), len(A[0]) if A else 0
    rows = [[*row, right] for row, right in zip(A, c, strict=True)]
    pivots = []
    for j in range(m):
        below = [i for i in range(len(pivots), n) if rows[i][j] != 0]
        if not below:
            continue
        i, place = below[0], len(pivots)
        rows[place], rows[i] = rows[i], rows[place]
        lead = rows[place][j]
        rows[place] = [value / lead for value in rows[place]]
        for other in range(n):
            if other != place and rows[other][j] != 0:
                factor = rows[other][j]
                rows[other] = [
                    a - factor * b for a, b in zip(rows[other], rows[place], strict=True)
                ]
        pivots.append(j)
    x = [Fraction(0)] * m
    for place, j in enumerate(pivots):
        x[j] = rows[place][m]
    return x, len(pivots)


class Quadratic:
    """1/2 sum_i s_i (y_i - x_i.w - b)^2 + 1/2 sum_j alpha_j w_j^2, for one target."""

    def __init__(self, X, y, weights=None, alpha=0.0, fit_intercept=True):
        X = np.asarray(X, dtype=float)
        n, d = X.shape
        self.d, self.fit_intercept = d, fit_intercept
        self.rows = [column(row) + ([Fraction(1)] if fit_intercept else []) for row in X]
        self.y = column(y)
        self.s = column(np.ones(n) if weights is None else np.broadcast_to(weights, n))
        alphas = column(np.broadcast_to(alpha, d))
        self.alpha = alphas + ([Fraction(0)] if fit_intercept else [])
        width = len(self.alpha)
        self.H = [[Fraction(0)] * width for _ in range(width)]
        self.c = [Fraction(0)] * width
        for x, target, s in zip(self.rows, self.y, self.s, strict=True):
            for i in range(width):
                if x[i] == 0:
                    continue
                self.c[i] += s * x[i] * target
                for j in range(width):
                    self.H[i][j] += s * x[i] * x[j]
        for i in range(width):
            self.H[i][i] += self.alpha[i]

    def point(self, w, b=0.0):
        """Coefficients and intercept as one list."""
        return column(w) + (column(b) if self.fit_intercept else [])

    def value(self, v):
        """The objective."""
        loss = sum(
            s * (target - sum(a * b for a, b in zip(x, v, strict=True))) ** 2
            for x, target, s in zip(self.rows, self.y, self.s, strict=True)
        )
        curvature = sum(a * x * x for a, x in zip(self.alpha, v, strict=True))
        return HALF * (loss + curvature)

    def minimum(self):
        """A minimiser and the rank of the Hessian."""
        return solve(self.H, self.c)

    def gap(self, w, b=0.0):
        """The objective at (w, b) minus the optimum, without rounding."""
        return self.value(self.point(w, b)) - self.value(self.minimum()[0])

    def gap_within(self, w, b, basis):
        """The objective at (w, b) minus the least one over w + span(basis) and every intercept."""
        v = self.point(w, b)
        g = [
            sum(h * x for h, x in zip(row, v, strict=True)) - c
            for row, c in zip(self.H, self.c, strict=True)
        ]
        extra = [Fraction(0)] if self.fit_intercept else []
        steps = [column(along) + extra for along in np.asarray(basis).T]
        if self.fit_intercept:
            steps.append([Fraction(0)] * self.d + [Fraction(1)])
        Hs = [
            [sum(h * e for h, e in zip(row, step, strict=True)) for row in self.H] for step in steps
        ]
        A = [
            [sum(a * e for a, e in zip(Hs[i], other, strict=True)) for other in steps]
            for i in range(len(steps))
        ]
        c = [sum(a * e for a, e in zip(g, step, strict=True)) for step in steps]
        x, _ = solve(A, c)
        return HALF * sum(a * b for a, b in zip(x, c, strict=True))

    def nonnegative_minimum(self):
        """The least objective over w >= 0 and where it is: every set of free coefficients is tried.

        A face on which the minimiser is not unique can be left out: along the undetermined
        direction some smaller face is reached.
        """
        best = None
        for free in product([False, True], repeat=self.d):
            keep = [j for j in range(self.d) if free[j]] + ([self.d] if self.fit_intercept else [])
            A = [[self.H[i][j] for j in keep] for i in keep]
            x, rank = solve(A, [self.c[i] for i in keep])
            if rank < len(keep):
                continue
            v = [Fraction(0)] * len(self.alpha)
            for place, j in enumerate(keep):
                v[j] = x[place]
            if all(value >= 0 for value in v[: self.d]):
                value = self.value(v)
                best = (value, v) if best is None or value < best[0] else best
        return best
