"""Claims about labels, in fractions: margins, errors, mistakes, separability, best subsets."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import linprog

from .exactly import Data, Meaningless, dense, number, parts

__all__ = [
    "best_subset", "hard_margin", "kernel_mistake_bound", "margin", "mistake_bound", "separation",
    "training_errors", "weight_of_errors", "zero_one",
]  # fmt: skip


def _fractions(values, shape=None):
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise Meaningless(f"an array of type {array.dtype}")
    if shape is not None and array.shape != tuple(shape):
        raise Meaningless(f"shape {array.shape} where {tuple(shape)} is meant")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Meaningless("numbers that are not finite")
    if array.ndim == 0:
        return Fraction(array.item())
    return [_fractions(row) for row in array]


def is_level(claim):
    """Whether there is an intercept."""
    given = np.asarray(claim.fit_intercept)
    if given.shape or given.dtype.kind != "b":
        raise Meaningless("fit_intercept is neither true nor false")
    return bool(given)


def _gap(claim):
    from .truth import gap_of

    return gap_of(claim)


def _within(claim, value):
    from .truth import within

    return within(claim, value)


def _mp(fraction):
    return mpf(fraction.numerator) / mpf(fraction.denominator)


# --- hard margins ---------------------------------------------------------------------------------


def hard_margin(claim, X, y, weight, hints):
    """1/2 ||w||^2 with every row on its margin or beyond."""
    data = Data(X, y, weight)
    if parts(claim.loss)["name"] != "hard_margin" or not (np.abs(data.targets) == 1).all():
        raise Meaningless("no hard margin")
    penalty = parts(claim.penalty)
    if penalty["name"] != "l2" or np.ndim(penalty["alpha"]) or penalty["alpha"] != 1:
        raise Meaningless("a hard margin is about half the squared norm")
    W, b = _fractions(claim.coef, (data.d, data.k)), _fractions(claim.intercept, (data.k,))
    if not claim.fit_intercept and any(b):
        raise Meaningless("an intercept where there is none")
    rows = _fractions(data.array)
    if _least(rows, data.targets, W, b) < 1:
        return "a row is within the margin"
    reached = sum((v * v for row in W for v in row), Fraction(0)) / 2
    wrong = _within(claim, _mp(reached))
    if wrong:
        return wrong
    for hint in hints:
        if np.shape(getattr(hint, "coef", None)) != (data.d, data.k):
            continue
        V, c = _fractions(hint.coef), _fractions(hint.intercept)
        least = _least(rows, data.targets, V, c)
        if least <= 0:
            continue
        square = sum((v * v for row in V for v in row), Fraction(0)) / 2 / min(least, 1) ** 2
        if _mp(square) < _mp(reached) - _gap(claim):
            return "another hyperplane has a wider margin"
    return None


def _least(rows, targets, W, b):
    return min(
        int(targets[i, t]) * (sum(x * w[t] for x, w in zip(row, W)) + b[t])
        for i, row in enumerate(rows)
        for t in range(len(b))
    )


def margin(claim, X, y, weight, hints):
    """Bounds on the largest margin from both sides."""
    rows, codes, k = _classified(claim, X, y)
    d = len(rows[0])
    blocks = 1 if k == 2 else k
    coef, level = _fractions(claim.coef, (blocks, d)), _fractions(claim.intercept)
    if level and not (claim.fit_intercept and k == 2):
        raise Meaningless("an intercept where there is none")
    claimed = [_fractions(getattr(claim, name), ()) for name in ("margin", "upper_bound", "radius")]
    if min(claimed) < 0:
        raise Meaningless("a negative bound")
    least, square = _smallest(rows, codes, k, coef, level)
    if claimed[0] > 0 and (least < 0 or least**2 < claimed[0] ** 2 * square):
        return "a row is nearer than the margin"
    if claimed[0] == 0 and least < 0:
        return "a row is on the wrong side"
    if any(sum(v * v for v in row) > claimed[2] ** 2 for row in rows):
        return "a row is longer than the radius"
    for hint in hints:
        if np.shape(getattr(hint, "coef", None)) != (blocks, d):
            continue
        if bool(hint.fit_intercept) and not claim.fit_intercept:
            continue
        least, square = _smallest(rows, codes, k, _fractions(hint.coef), _fractions(hint.intercept))
        if least > 0 and least**2 > claimed[1] ** 2 * square:
            return "another hyperplane has a margin above the upper bound"
    return None


def _classified(claim, X, y):
    rows = _fractions(np.asarray(dense(X), dtype=float))
    classes = np.asarray(claim.classes)
    labels = np.asarray(y)
    if classes.ndim != 1 or len(np.unique(classes)) != len(classes) or len(classes) < 2:
        raise Meaningless("classes that are none")
    if labels.shape != (len(rows),) or not np.isin(labels, classes).all():
        raise Meaningless("labels that are not among the classes")
    is_level(claim)
    codes = [int(np.flatnonzero(classes == label)[0]) for label in labels]
    return rows, codes, len(classes)


def _smallest(rows, codes, k, coef, level):
    """The smallest contrast of a row and the squared norm of the weights."""
    W = [[Fraction(0)] * len(rows[0]), coef[0]] if k == 2 else coef
    levels = [Fraction(0), level] if k == 2 else [Fraction(0)] * k
    square = sum((v * v for row in W for v in row), Fraction(0))
    least = None
    for row, own in zip(rows, codes):
        scores = [sum(x * w for x, w in zip(row, W[c])) + levels[c] for c in range(k)]
        gap = min(scores[own] - scores[c] for c in range(k) if c != own)
        least = gap if least is None else min(least, gap)
    return least, square


# --- errors and mistakes --------------------------------------------------------------------------


def weight_of_errors(claim, X, y, weight, with_classes=True):
    """The weight of the rows on a wrong side or on the boundary."""
    rows = kernel_rows(claim, X)
    labels = np.asarray(y, dtype=float).ravel()
    coef = np.asarray(claim.coef)
    if coef.ndim != 2 or len(labels) != len(rows):
        raise Meaningless("coefficients of another shape")
    d, k = coef.shape
    if rows and d != len(rows[0]):
        raise Meaningless("coefficients of another shape")
    W, b = _fractions(coef), _fractions(claim.intercept, (k,))
    if not claim.fit_intercept and any(b):
        raise Meaningless("an intercept where there is none")
    allowed = (-1.0, 1.0) if k == 1 else tuple(range(k))
    if not np.isin(labels, allowed).all():
        raise Meaningless("labels that there are not")
    s = np.ones(len(rows)) if weight is None else np.broadcast_to(weight, (len(rows),))
    s = [Fraction(float(v)) for v in s]
    codes = [int(v > 0) if k == 1 else int(v) for v in labels]
    if with_classes:
        own = _fractions(claim.witness_or("class_weights"), (max(2, k),))
        if min(own) < 0:
            raise Meaningless("negative weights of classes")
        # A product of two doubles, rounded once.
        s = [Fraction(float(v) * float(own[c])) for v, c in zip(s, codes)]
    total = Fraction(0)
    for row, label, code, share in zip(rows, labels, codes, s):
        z = [sum(x * w[t] for x, w in zip(row, W)) + b[t] for t in range(k)]
        if k == 1:
            right = int(label) * z[0] > 0
        else:
            right = all(z[code] > v for c, v in enumerate(z) if c != code)
        total += 0 if right else share
    return _mp(total)


def kernel_rows(claim, X):
    """Rows as fractions; those of the kernel matrix, to 50 digits, where a kernel is named."""
    recipe = claim.witness_or("kernel")
    if recipe is None:
        return _fractions(np.asarray(dense(X), dtype=float))
    from .truth_kernels import _recipe_matrix

    return [[_of_mp(v) for v in row] for row in _recipe_matrix(recipe, X)]


def _of_mp(value):
    sign, digits, power, _ = value._mpf_
    if power < -20_000:  # beside doubles it decides nothing, and its digits would fill the memory
        return Fraction(0)
    whole = Fraction(int(digits)) * (Fraction(2) ** int(power))
    return -whole if sign else whole


def training_errors(claim, X, y, weight, hints):
    """The weight of errors, and no claim about fewer."""
    reached = weight_of_errors(claim, X, y, weight)
    wrong = _within(claim, reached)
    if wrong:
        return wrong
    if claim.witness_or("kernel") is None and reached - _gap(claim) > 0:
        return _fewer(claim, X, y, weight, True)
    return None


def _fewer(claim, X, y, weight, with_classes):
    if np.shape(claim.coef)[1] != 1:
        return None
    low = _fewest(claim, X, y, weight, with_classes)
    reached = weight_of_errors(claim, X, y, weight, with_classes)
    if low < reached - _gap(claim) - mpf(10) ** -12 * abs(reached):
        return f"a hyperplane has errors of weight {mp.nstr(low, 8)}"
    return None


def _fewest(claim, X, y, weight, with_classes):
    """The least weight of errors that linear programs find; counted in fractions."""
    A = np.asarray(dense(X), dtype=float)
    labels = np.asarray(y, dtype=float).ravel()
    n = len(A)
    s = np.ones(n) if weight is None else np.broadcast_to(weight, (n,)).astype(float)
    if with_classes:
        s = s * np.asarray(claim.witness_or("class_weights"), dtype=float)[(labels > 0).astype(int)]
    live = np.flatnonzero(s > 0)
    scale = np.abs(A).max(axis=0, initial=0.0)
    scaled = A / np.where(scale > 0, scale, 1.0)
    if claim.fit_intercept:
        scaled = np.hstack([scaled, np.ones((n, 1))])
    best = mpf(float(s.sum()))
    subsets = sorted(
        (c for m in range(min(len(live), 5)) for c in combinations(live, m)),
        key=lambda c: s[list(c)].sum(),
    )
    for wrong in subsets[:400]:
        cost = s[list(wrong)].sum()
        if cost >= best:
            break
        kept = [i for i in live if i not in wrong]
        B = labels[kept, None] * scaled[kept]
        found = linprog(
            np.append(np.zeros(B.shape[1]), -1.0),
            np.hstack([-B, np.ones((len(kept), 1))]),
            np.zeros(len(kept)),
            bounds=[(-1, 1)] * B.shape[1] + [(None, 1)],
        )
        if found.x is None or found.x[-1] <= 1e-9:
            continue
        d = A.shape[1]
        W = found.x[:d] / np.where(scale > 0, scale, 1.0)
        point = _Point(W[:, None], np.array([found.x[d] if claim.fit_intercept else 0.0]), claim)
        best = min(best, weight_of_errors(point, X, y, weight, with_classes))
        break
    return best


class _Point:
    def __init__(self, coef, intercept, claim):
        self.coef, self.intercept, self.fit_intercept = coef, intercept, claim.fit_intercept
        self.witness_or = claim.witness_or


def zero_one(claim, X, y, weight, hints):
    """Errors counted, and no hyperplane with fewer."""
    if parts(claim.loss)["name"] != "zero_one" or np.ndim(claim.coef) != 2:
        raise Meaningless("no 0-1 loss")
    if np.shape(claim.coef)[1] != 1 or np.ndim(y) > 2:
        raise Meaningless("more than two classes")
    wrong = _within(claim, weight_of_errors(claim, X, y, weight, False))
    return wrong or _fewer(claim, X, y, weight, False)


def mistake_bound(claim, X, y, weight, hints):
    """Updates counted, their sum the last weights, and no more of them than the bound."""
    wrong = training_errors(claim, X, y, weight, hints)
    if wrong:
        return wrong
    rows = _fractions(np.asarray(dense(X), dtype=float))
    labels = np.asarray(y, dtype=float).ravel()
    n, (d, k) = len(rows), np.shape(claim.coef)
    w = {
        name: claim.witness_or(name)
        for name in ("rate", "threshold", "intercept_step", "direct", "precision")
    }
    rate, threshold, step = (_fractions(w[name], ()) for name in list(w)[:3])
    direct = bool(np.asarray(w["direct"]))
    if rate <= 0 or threshold < 0 or step < 0 or (direct and k == 1):
        raise Meaningless("a run that there is not")
    problems = 1 if direct else k
    counts = _fractions(claim.witness_or("counts"), (n, k))
    mistakes, gamma, radius = (
        _fractions(claim.witness_or(name), (problems,)) for name in ("mistakes", "gamma", "radius")
    )
    bound = np.asarray(claim.witness_or("bound"), dtype=float)
    if any(v < 0 or v.denominator != 1 for row in counts for v in row):
        raise Meaningless("updates that are not whole")
    own = _fractions(claim.witness_or("class_weights"), (max(2, k),))
    s = np.ones(n) if weight is None else np.broadcast_to(weight, (n,))
    plain = [Fraction(float(v)) for v in s]
    codes = [int(v > 0) if k == 1 else int(v) for v in labels]
    U, u = (
        _fractions(claim.witness_or("separator"), (d, k)),
        _fractions(claim.witness_or("separator_intercept"), (k,)),
    )
    if step == 0 and any(u):
        raise Meaningless("a separator with an intercept")
    largest = _fractions(claim.witness_or("largest"), (problems,))
    for r in range(problems):
        made = sum(v for row in counts for v in row) if direct else sum(row[r] for row in counts)
        if made != mistakes[r]:
            return f"{made} updates"
        if np.isnan(bound[r]):
            raise Meaningless("a bound that is no number")
        if np.isinf(bound[r]):
            continue
        if made > Fraction(float(bound[r])):
            return "more updates than the bound"
        steps, signs = [], []
        for code, p in zip(codes, plain):
            mine = direct or k == 1 or code == r
            steps.append(rate * p * (own[code] if mine else 1))
            signs.append(1 if (k == 1 and code) or (k > 1 and code == r) else -1)
        counted = [i for i in range(n) if steps[i] > 0]
        of = range(k) if direct else [r]
        square = sum((row[t] ** 2 for row in U for t in of), Fraction(0))
        square += sum((u[t] ** 2 for t in of), Fraction(0)) / step if step > 0 else 0
        margins, longest = [], Fraction(0)
        for i in counted:
            z = [sum(x * row[t] for x, row in zip(rows[i], U)) + u[t] for t in range(k)]
            if direct:
                own_gap = min(z[codes[i]] - v for c, v in enumerate(z) if c != codes[i])
            else:
                own_gap = signs[i] * z[r]
            if own_gap <= 0 or own_gap**2 < gamma[r] ** 2 * square * (1 - Fraction(1, 10**9)):
                return "the separator has a smaller margin"
            margins.append(own_gap)
            longest = max(longest, sum(v * v for v in rows[i]) + step)
            if longest > radius[r] ** 2 * (1 + Fraction(1, 10**9)):
                return "a row is longer than the radius"
        # The bound that the separator gives, whatever margin and radius are claimed for it.
        low = min((steps[i] for i in counted), default=Fraction(1))
        high = max([steps[i] for i in counted] + [largest[r]])
        wide = (2 if direct else 1) * high * longest + 2 * threshold
        least = wide * square / (low * min(margins) ** 2)
        if Fraction(float(bound[r])) < least * (1 - Fraction(1, 10**9)):
            return "the bound does not follow"
    return None


def kernel_mistake_bound(claim, X, y, weight, hints):
    """The same in the space of a kernel; X is the kernel matrix."""
    wrong = training_errors(claim, X, y, weight, hints)
    if wrong:
        return wrong
    exact = kernel_rows(claim, X)
    n, k = np.shape(claim.coef)
    if len(exact) != n or len(exact[0]) != n:
        raise Meaningless("a kernel matrix that is not square")
    labels = np.asarray(y, dtype=float).ravel()
    beta = _fractions(claim.witness_or("separator"), (n, k))
    level = _fractions(claim.witness_or("separator_intercept"), (k,))
    counts = _fractions(claim.witness_or("counts"), (n, k))
    mistakes, gamma, radius = (
        _fractions(claim.witness_or(name), (k,)) for name in ("mistakes", "gamma", "radius")
    )
    bound = np.asarray(claim.witness_or("bound"), dtype=float)
    rate, threshold = (_fractions(claim.witness_or(v), ()) for v in ("rate", "threshold"))
    s = np.ones(n) if weight is None else np.broadcast_to(weight, (n,))
    steps = [rate * Fraction(float(v)) for v in s]
    constant = int(bool(claim.fit_intercept))
    for r in range(k):
        made = sum(row[r] for row in counts)
        if made != mistakes[r]:
            return f"{made} updates"
        if np.isinf(bound[r]):
            continue
        if made > Fraction(float(bound[r])):
            return "more updates than the bound"
        signs = [int(v) if k == 1 else (1 if v == r else -1) for v in labels]
        square = sum(beta[i][r] * beta[j][r] * exact[i][j] for i in range(n) for j in range(n)) + (
            level[r] ** 2 if constant else 0
        )
        if level[r] and not constant:
            raise Meaningless("a separator with an intercept")
        counted = [i for i in range(n) if steps[i] > 0]
        margins, longest = [], Fraction(0)
        for i in counted:
            z = sum(exact[i][j] * beta[j][r] for j in range(n)) + level[r]
            own_gap = signs[i] * z
            if own_gap <= 0 or own_gap**2 < gamma[r] ** 2 * square * (1 - Fraction(1, 10**9)):
                return "the separator has a smaller margin"
            margins.append(own_gap)
            longest = max(longest, exact[i][i] + constant)
            if longest > radius[r] ** 2 * (1 + Fraction(1, 10**9)):
                return "a row is longer than the radius"
        low, high = min(steps[i] for i in counted), max(steps[i] for i in counted)
        least = (high * longest + 2 * threshold) * square / (low * min(margins) ** 2)
        if Fraction(float(bound[r])) < least * (1 - Fraction(1, 10**9)):
            return "the bound does not follow"
    return None


# --- separability ---------------------------------------------------------------------------------


def verdict(rows, codes, k, fit_intercept):
    """Which inequalities can be positive while none is negative: a linear program in fractions."""
    full = [[*row, *([Fraction(1)] if fit_intercept else [])] for row in rows]
    d = len(full[0])
    pairs = [(i, c) for i, own in enumerate(codes) for c in range(k) if c != own]
    # Unknowns of all classes but the first, whose own are zero.
    contrasts = []
    for i, c in pairs:
        line = [Fraction(0)] * (d * (k - 1))
        for block, sign in ((codes[i], 1), (c, -1)):
            if block:
                for j in range(d):
                    line[(block - 1) * d + j] += sign * full[i][j]
        contrasts.append(line)
    return pairs, _positive_part(contrasts)


def _positive_part(contrasts):
    """For each contrast whether some g has it positive and none negative.

    max sum t with t <= A g, 0 <= t <= 1 has t in {0, 1}: a positive multiple of g serves as well.
    The simplex method with Bland's rule on its dual form would do; here on g = p - q, p, q >= 0.
    """
    m, d = len(contrasts), len(contrasts[0])
    # Columns: p (d), q (d), t (m), slacks of t - A g <= 0 (m), slacks of t <= 1 (m).
    width = 2 * d + 3 * m
    table, basis = [], []
    for i, line in enumerate(contrasts):
        row = [Fraction(0)] * (width + 1)
        for j, v in enumerate(line):
            row[j], row[d + j] = -v, v
        row[2 * d + i] = Fraction(1)
        row[2 * d + m + i] = Fraction(1)
        table.append(row)
        basis.append(2 * d + m + i)
    for i in range(m):
        row = [Fraction(0)] * (width + 1)
        row[2 * d + i] = Fraction(1)
        row[2 * d + 2 * m + i] = Fraction(1)
        row[width] = Fraction(1)
        table.append(row)
        basis.append(2 * d + 2 * m + i)
    cost = [Fraction(0)] * (width + 1)
    for i in range(m):
        cost[2 * d + i] = Fraction(-1)
    while True:
        entering = next((j for j in range(width) if cost[j] < 0), None)
        if entering is None:
            break
        leaving, ratio = None, None
        for r, row in enumerate(table):
            if row[entering] > 0:
                own = row[width] / row[entering]
                if ratio is None or own < ratio or (own == ratio and basis[r] < basis[leaving]):
                    leaving, ratio = r, own
        pivot = table[leaving][entering]
        table[leaving] = [v / pivot for v in table[leaving]]
        for r, row in enumerate(table):
            if r != leaving and row[entering]:
                t = row[entering]
                table[r] = [v - t * p if p else v for v, p in zip(row, table[leaving])]
        if cost[entering]:
            t = cost[entering]
            cost = [v - t * p if p else v for v, p in zip(cost, table[leaving])]
        basis[leaving] = entering
    values = {b: row[width] for b, row in zip(basis, table)}
    return [values.get(2 * d + i, Fraction(0)) > 0 for i in range(m)]


_VERDICTS: dict = {}


def separation(claim, X, y, weight, hints):
    """The verdict, the direction, the margin and the boundary."""
    rows, codes, k = _classified(claim, X, y)
    if int(np.asarray(claim.n_features)) != len(rows[0]):
        raise Meaningless("another number of columns")
    fit_intercept = bool(claim.fit_intercept)
    key = (str(rows), tuple(codes), k, fit_intercept)
    if key not in _VERDICTS:
        if len(_VERDICTS) > 2000:
            _VERDICTS.clear()
        _VERDICTS[key] = verdict(rows, codes, k, fit_intercept)
    pairs, positive = _VERDICTS[key]
    kind = "separable" if all(positive) else "quasi-separable" if any(positive) else "not separable"
    if claim.kind != kind:
        return f"the classes are {kind}"
    if kind == "separable":
        return _separable_margin(claim, rows, codes, k, fit_intercept)
    if kind == "quasi-separable":
        boundary = {pair for pair, is_positive in zip(pairs, positive) if not is_positive}
        given = {(int(i), int(c)) for i, c in zip(claim.boundary_rows, claim.boundary_against)}
        if boundary != given:
            return "another boundary"
    return None


def _separable_margin(claim, rows, codes, k, fit_intercept):
    d = len(rows[0])
    G = [[Fraction(int(v)) for v in part] for part in claim.direction]
    if len(G) != k or any(len(part) != d + int(fit_intercept) for part in G):
        raise Meaningless("a direction of another shape")
    bound = Fraction(float(claim.margin))
    if bound < 0:
        raise Meaningless("a negative margin")
    if k == 2:
        norm = sum(((a - c) ** 2 for a, c in zip(G[0][:d], G[1][:d])), Fraction(0))
    else:
        # Adding one vector to the weights of all classes changes nothing: their mean goes.
        means = [sum(column) / k for column in zip(*(part[:d] for part in G))]
        norm = sum(((v - m) ** 2 for part in G for v, m in zip(part[:d], means)), Fraction(0))
    for row, own in zip(rows, codes):
        full = [*row, *([Fraction(1)] if fit_intercept else [])]
        scores = [sum(x * g for x, g in zip(full, part)) for part in G]
        for c in range(k):
            if c != own:
                gap = scores[own] - scores[c]
                if gap <= 0 or gap**2 < bound**2 * norm:
                    return "the direction does not separate with that margin"
    return None


# --- best subsets ---------------------------------------------------------------------------------


def best_subset(data, penalty, k, alpha, delta, fit_intercept, goal):
    """The lowest value of a support with at most k columns, or the first below the goal."""
    l2 = number(penalty["alpha"]) if penalty["name"] == "l2" else mpf(0)
    total = mp.fsum(data.s)
    columns = [list(c) for c in zip(*data.X)] if data.d else []
    target = [row[0] for row in data.y]
    if fit_intercept:
        columns = [_centred(c, data.s, total) for c in columns]
        target = _centred(target, data.s, total)
    square = mp.fsum(s * v * v for s, v in zip(data.s, target))
    best = square / 2
    for m in range(1, min(k, data.d) + 1):
        for support in combinations(range(data.d), m):
            G = mp.matrix(m, m)
            c = mp.matrix(m, 1)
            for i, p in enumerate(support):
                c[i] = mp.fsum(s * v * t for s, v, t in zip(data.s, columns[p], target))
                for j, q in enumerate(support):
                    G[i, j] = mp.fsum(s * v * u for s, v, u in zip(data.s, columns[p], columns[q]))
                G[i, i] += l2
            if delta > 0 and not _is_conditioned(G, delta):
                continue
            for i in range(m):
                G[i, i] += (G[i, i] or 1) * mpf(10) ** -40
            try:
                w = mp.lu_solve(G, c)
            except ZeroDivisionError:
                continue
            value = mpf(0)
            for i in range(data.n):
                r = target[i] - mp.fsum(columns[p][i] * w[e] for e, p in enumerate(support))
                value += data.s[i] * r * r / 2
            value += l2 / 2 * mp.fsum(v * v for v in w) + alpha * m
            best = min(best, value)
            if best < goal:
                return best
    return best


def _centred(values, weights, total):
    mean = mp.fsum(s * v for s, v in zip(weights, values)) / total
    return [v - mean for v in values]


def _is_conditioned(G, delta):
    roots = [mp.sqrt(G[i, i]) for i in range(G.rows)]
    if any(r == 0 for r in roots):
        return False
    C = mp.matrix(G.rows, G.rows)
    for i in range(G.rows):
        for j in range(G.rows):
            C[i, j] = G[i, j] / (roots[i] * roots[j])
    # On the safe side: supports next to the limit are not looked at.
    return min(mp.eigsy(C, eigvals_only=True)) >= delta * (1 + 1e-6)
