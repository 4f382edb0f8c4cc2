"""Is a claim true? Decided in higher precision, from the claim's own words and the data.

``refute`` returns why a claim is certainly false, or None. A claim that makes no sense (shapes,
labels or parameters that have no meaning) is false. What the optimum is bounded by from above is
the objective of points found in high precision (:mod:`.optimum`), by HiGHS or by brute force, so
that nothing true is ever refuted.
"""

from __future__ import annotations

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import linprog

from . import truth_kernels, truth_labels
from .exactly import Data, Meaningless, number, numbers, objective, parts
from .optimum import lower

__all__ = ["optimum_of", "reached", "refute"]

SUMS = (
    "quadratic", "row space", "fenchel", "duality", "ordered duality", "tangent", "bounded",
    "curvature",
)  # fmt: skip


def refute(certificate, X, y, weight, hints=(), same_data=False, thorough=True):
    """Why the claim is false, or None if it may be true.

    Parameters
    ----------
    hints : sequence of certificates
        Honest ones, whose coefficients are worth a look.
    same_data : bool
        Whether the hints are about these very data: then, unless another loss or penalty is
        claimed, they are as good as what solvers would find.
    thorough : bool
        Whether more points are looked for than the hints.
    """
    claim = _Claim(certificate)
    claim.same_data, claim.thorough = same_data, thorough
    try:
        return _refute(claim, X, y, weight, hints)
    except Meaningless as reason:
        return f"no meaning: {reason}"
    except Exception as error:  # what cannot be read says nothing
        return f"no meaning: {type(error).__name__}: {error}"


class _Claim:
    """The fields of a certificate or of a mapping, by name."""

    def __init__(self, certificate):
        self._given = certificate
        self.kind = self._get("kind")
        if self.kind is None and self._get("upper_bound") is not None:
            self.kind = "margin"

    def _get(self, name):
        if isinstance(self._given, dict):
            return self._given.get(name)
        return getattr(self._given, name, None)

    def __getattr__(self, name):
        value = self._get(name)
        if value is None:
            raise Meaningless(f"{name} is missing")
        return value

    def witness_or(self, name, default=None):
        return (self._get("witness") or {}).get(name, default)


def _refute(claim, X, y, weight, hints):
    kind = claim.kind
    if kind in SUMS:
        return _sum_over_rows(claim, X, y, weight, hints)
    known = {
        "local": _local,
        "stationary": _firth,
        "maximum error": _maximum_error,
        "concomitant": _concomitant,
        "search": _search,
        "conditioned search": _search,
        "hard margin": truth_labels.hard_margin,
        "margin": truth_labels.margin,
        "training errors": truth_labels.training_errors,
        "mistake bound": truth_labels.mistake_bound,
        "kernel mistake bound": truth_labels.kernel_mistake_bound,
        "zero-one packing": truth_labels.zero_one,
        "zero-one search": truth_labels.zero_one,
        "separable": truth_labels.separation,
        "quasi-separable": truth_labels.separation,
        "not separable": truth_labels.separation,
        "kernel duality": truth_kernels.machine,
        "kernel stationarity": truth_kernels.machine,
        "kernel equations": truth_kernels.equations,
        "stationary point": truth_kernels.process,
        "given parameters": truth_kernels.process,
        "evidence bounds": truth_kernels.evidence,
    }
    if not isinstance(kind, str) or kind not in known:
        return f"no meaning: the kind {kind!r}"
    return known[kind](claim, X, y, weight, hints)


def within(claim, value, name="objective"):
    """Whether a claimed number is within its rounding of the true one; the reason if not."""
    claimed, rounding = np.asarray(claim.objective), np.asarray(claim.objective_rounding)
    if claimed.dtype.kind not in "fiu" or rounding.dtype.kind not in "fiu":
        raise Meaningless("an objective that is no number")
    if claimed.shape or rounding.shape or np.isnan(rounding) or rounding < 0:
        raise Meaningless("a rounding that is no number")
    if rounding == np.inf:
        return None
    off = abs(value - number(claimed))
    if off > mpf(float(rounding)) * (1 + mpf(10) ** -12):
        return f"{name} {mp.nstr(value, 12)} is off the claim by {mp.nstr(off, 3)}"
    return None


def gap_of(claim):
    gap = np.asarray(claim.gap)
    if gap.shape or gap.dtype.kind not in "fiu" or np.isnan(gap) or gap < 0:
        raise Meaningless("a gap that is no number")
    return mp.inf if np.isinf(gap) else mpf(float(gap))


def coefficients(claim, d, k):
    W, b = numbers(claim.coef, (d, k)), numbers(claim.intercept, (k,))
    truth_labels.is_level(claim)
    if not claim.fit_intercept and any(v != 0 for v in b):
        raise Meaningless("an intercept where there is none")
    return W, b


# --- sums over the rows ---------------------------------------------------------------------------


def _sum_over_rows(claim, X, y, weight, hints):
    data = Data(X, y, weight)
    data = data.scaled(claim.witness_or("column_exponent"), claim.witness_or("target_exponent"))
    loss, penalty = parts(claim.loss), parts(claim.penalty)
    if loss["name"] in ("maximum_error", "zero_one", "hard_margin"):
        raise Meaningless(f"the loss {loss['name']} with this proof")
    W, b = coefficients(claim, data.d, data.k)
    reached = objective(loss, penalty, data, W, b)
    if not mp.isfinite(reached):
        return "the objective is infinite"
    wrong = within(claim, reached)
    if wrong:
        return wrong
    gap = gap_of(claim)
    if not mp.isfinite(gap):
        return None
    if loss["name"] == "ordered_quantiles":
        return _ordered(claim, data, loss, penalty, W, b, reached, gap, hints)
    goal = reached - gap
    if goal <= 0:
        return None  # no objective is negative
    key = None
    if claim.same_data:
        own = (claim.loss, claim.penalty, X, y, weight)
        key = (*map(id, own), str(W), str(b), bool(claim.fit_intercept))
        if _TRUE.get(key, (mp.inf,))[0] <= gap:
            return None  # a smaller gap was looked at before
    starts = [_point(hint, data) for hint in hints]
    starts = [start for start in starts if start is not None]
    for start in starts:
        if objective(loss, penalty, data, *start) < goal:
            return _said(reached, objective(loss, penalty, data, *start), gap)
    if not claim.thorough:
        return None
    fit_intercept = bool(claim.fit_intercept)
    is_solved = claim.same_data and any(
        hint.loss is claim.loss and hint.penalty is claim.penalty
        and bool(hint.fit_intercept) == fit_intercept
        for hint in hints
    )  # fmt: skip
    again = None if is_solved else _solved_again(claim, data)
    starts = ([again] if again is not None else []) + starts
    starts += [(W, b)] if (W, b) not in starts else []
    for start in starts:
        low = lower(loss, penalty, data, *start, fit_intercept)[0]
        if low < goal:
            return _said(reached, low, gap)
    if key is not None:
        _TRUE[key] = gap, own  # kept alive, so that nothing else has their ids
    return None


def optimum_of(certificate, X, y, weight):
    """The certificate with the best coefficients that Newton's method finds from its own."""
    claim = _Claim(certificate)
    if claim.kind not in SUMS or parts(claim.loss)["name"] == "ordered_quantiles":
        return certificate
    data = Data(X, y, weight)
    W, b = coefficients(claim, data.d, data.k)
    loss, penalty = parts(claim.loss), parts(claim.penalty)
    starts = [(W, b), _solved_again(claim, data)]
    points = [
        lower(loss, penalty, data, *start, bool(claim.fit_intercept))
        for start in starts
        if start is not None
    ]
    _, W, b = min(points, key=lambda point: point[0])
    return SimpleNamespace(
        coef=np.array(W, dtype=float), intercept=np.array(b, dtype=float),
        loss=claim.loss, penalty=claim.penalty, fit_intercept=claim.fit_intercept,
    )  # fmt: skip


#: Gaps that were found to be true, by what they are about.
_TRUE: dict = {}


def _said(reached, low, gap):
    return (
        f"another point has {mp.nstr(low, 12)}, lower than {mp.nstr(reached, 12)} by "
        f"{mp.nstr(reached - low, 3)}; the gap is {mp.nstr(gap, 3)}"
    )


def _point(hint, data):
    """Coefficients of another certificate, if they are of this problem."""
    coef, intercept = getattr(hint, "coef", None), getattr(hint, "intercept", None)
    if np.shape(coef) != (data.d, data.k) or np.shape(intercept) != (data.k,):
        return None
    return numbers(coef), numbers(intercept)


def _solved_again(claim, data):
    """Where the library's own solvers end on these data, if they do."""
    from trueline.design import as_design
    from trueline.planner import execute, make_plan
    from trueline.problem import Problem
    from trueline.solvers.base import Monitor, Options

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = Problem(
                as_design(data.array), data.targets, claim.loss, claim.penalty,
                bool(claim.fit_intercept), data.weights,
            )  # fmt: skip
            solution = execute(problem, make_plan(problem), Options(tol=1e-9), Monitor())
        return numbers(solution.coef, (data.d, data.k)), numbers(solution.intercept, (data.k,))
    except Exception:  # a hint less
        return None


def _ordered(claim, data, loss, penalty, W, b, reached, gap, hints):
    """Quantiles that do not cross: other points count if they do not, exactly."""
    q = np.atleast_1d(np.asarray(loss["q"], dtype=float))
    ranks = np.argsort(q, kind="stable")

    def crossing(W, b):
        Z = data.scores(W, b)
        return max(
            (row[lo] - row[hi] for row in Z for lo, hi in itertools.pairwise(ranks)),
            default=mpf(0),
        )

    slack = claim.witness_or("slack")
    if slack is not None and crossing(W, b) > mpf(float(np.max(slack))):
        return "the scores cross by more than the slack"
    for hint in hints:
        start = _point(hint, data)
        if start is None or crossing(*start) > 0:
            continue
        low = objective(loss, penalty, data, *start)
        if low < reached - gap:
            return _said(reached, low, gap)
    return None


# --- other objectives -----------------------------------------------------------------------------


def _local(claim, X, y, weight, hints):
    """No point within the stated distance is lower by more than the gap."""
    data = Data(X, y, weight)
    loss, penalty = parts(claim.loss), parts(claim.penalty)
    W, b = coefficients(claim, data.d, data.k)
    reached = objective(loss, penalty, data, W, b)
    if not mp.isfinite(reached):
        return "the objective is infinite"
    wrong = within(claim, reached)
    gap = gap_of(claim)
    if wrong or not mp.isfinite(gap):
        return wrong
    about = numbers(claim.witness_or("about"), (data.d,))
    extra = int(bool(claim.fit_intercept))
    diagonal = [row[0] for row in numbers(claim.witness_or("diagonal"), (data.d + extra, 1))]
    reach = numbers(claim.witness_or("reach"), (1,))[0]
    for start in [*(_point(hint, data) for hint in hints), (W, b)]:
        if start is None:
            continue
        value, V, c = lower(loss, penalty, data, *start, bool(claim.fit_intercept))
        # Shorten the step until it is within the distance.
        step = [v[0] - w[0] for v, w in zip(V, W)]
        level = c[0] - b[0] + mp.fdot(zip(about, step)) if extra else mpf(0)
        size = mp.sqrt(
            mp.fsum((v / m) ** 2 for v, m in zip(step, diagonal))
            + ((level / diagonal[-1]) ** 2 if extra else 0)
        )
        t = min(mpf(1), reach / size) if size > 0 else mpf(0)
        near = [[w[0] + t * v] for w, v in zip(W, step)]
        value = objective(loss, penalty, data, near, [b[0] + t * (c[0] - b[0])])
        if value < reached - gap:
            return _said(reached, value, gap)
    return None


def _firth(claim, X, y, weight, hints):
    """Objective, slope and bound of the likelihood with Firth's correction."""
    data = Data(X, y, weight)
    loss, penalty = parts(claim.loss), parts(claim.penalty)
    idle = penalty["name"] == "none" or (penalty["name"] == "l2" and not np.any(penalty["alpha"]))
    if loss["name"] != "logistic" or not idle or data.k != 1:
        raise Meaningless("Firth's correction is one of the logistic loss without a penalty")
    W, b = coefficients(claim, data.d, 1)
    columns = np.asarray(claim.witness_or("columns", range(data.d)))
    if columns.ndim != 1 or not np.isin(columns, np.arange(data.d)).all():
        raise Meaningless("columns that are not there")
    columns = [int(c) for c in columns]
    extra = bool(claim.fit_intercept)
    whole = [[*row, *([mpf(1)] if extra else [])] for row in data.X]
    kept = [[row[c] for c in columns] + ([mpf(1)] if extra else []) for row in data.X]
    if _rank(kept) < _rank(whole) and _spread_rank(data, columns, extra):
        return "columns are left out that do not depend on the others"
    if any(W[j][0] != 0 for j in range(data.d) if j not in columns):
        return "a coefficient of a column that is left out"
    reached, slope = _firth_at(data, kept, W, b)
    wrong = within(claim, reached)
    if wrong:
        return wrong
    claimed = number(claim.witness_or("slope", 0.0))
    if slope > claimed * (1 + mpf(10) ** -9):
        return f"the slope is {mp.nstr(slope, 5)}"
    gap = gap_of(claim)
    for hint in hints:
        start = _point(hint, data)
        if start is not None and _firth_at(data, kept, *start)[0] < reached - gap:
            return "another point is lower"
    return None


def _rank(rows):
    rows = [list(row) for row in rows]
    rank = 0
    for c in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][c] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            if rows[r][c] != 0:
                t = rows[r][c] / rows[rank][c]
                rows[r] = [
                    v - t * p if abs(v - t * p) > abs(v) * mpf(10) ** -45 else mpf(0)
                    for v, p in zip(rows[r], rows[rank])
                ]
        rank += 1
    return rank


def _spread_rank(data, columns, extra):
    """Whether the columns left out matter at all, beyond what rounding could have hidden."""
    A = data.array - data.array.mean(axis=0) if extra else data.array
    scale = np.linalg.norm(A, axis=0)
    A = A / np.where(scale > 0, scale, 1.0)
    return np.linalg.matrix_rank(A[:, columns], 1e-6) < np.linalg.matrix_rank(A, 1e-6)


def _firth_at(data, kept, W, b):
    p = len(kept[0]) if kept else 0
    Z = [row[0] for row in data.scores(W, b)]
    losses, information, shares = mpf(0), mp.zeros(p, p), []
    for a, s, y, z in zip(kept, data.s, data.y, Z):
        if abs(y[0]) != 1:
            raise Meaningless("labels other than -1 and +1")
        m = y[0] * z
        losses += s * (max(-m, mpf(0)) + mp.log1p(mp.exp(-abs(m))))
        h = s / ((1 + mp.exp(z)) * (1 + mp.exp(-z)))
        shares.append(h)
        for i in range(p):
            for j in range(p):
                information[i, j] += h * a[i] * a[j]
    if p == 0:
        return losses, mpf(0)
    determinant = mp.det(information)
    if determinant <= 0:
        raise Meaningless("an information matrix that is singular")
    inverse = information**-1
    g = [mpf(0)] * p
    for a, s, y, z, h in zip(kept, data.s, data.y, Z, shares):
        probability = 1 / (1 + mp.exp(-z))
        leverage = h * mp.fsum(a[i] * inverse[i, j] * a[j] for i in range(p) for j in range(p))
        slope = s * (-y[0] / (1 + mp.exp(y[0] * z))) - leverage * (mpf("0.5") - probability)
        g = [v + slope * w for v, w in zip(g, a)]
    # The slope does not depend on where the columns are counted from; its scale does.
    means = [mpf(0)] * p
    if any(row[-1] != 1 for row in kept) is False and p > 1:
        total = mp.fsum(data.s)
        means = [mp.fsum(s * a[i] for s, a in zip(data.s, kept)) / total for i in range(p)]
        means[-1] = mpf(0)
    square = mpf(0)
    for i in range(p):
        own = mp.fsum(h * (a[i] - means[i]) ** 2 for h, a in zip(shares, kept))
        slope = g[i] - means[i] * g[-1] if means[i] != 0 else g[i]
        square += slope**2 / own if own > 0 else 0
    return losses - mp.log(determinant) / 2, mp.sqrt(square)


def _maximum_error(claim, X, y, weight, hints):
    """The largest error, against the linear program, vertices put right in high precision."""
    data = Data(X, y, weight)
    loss, penalty = parts(claim.loss), parts(claim.penalty)
    if loss["name"] != "maximum_error":
        raise Meaningless("another loss")
    W, b = coefficients(claim, data.d, data.k)
    reached = objective(loss, penalty, data, W, b)
    wrong = within(claim, reached)
    if wrong:
        return wrong
    gap = gap_of(claim)
    starts = [_point(hint, data) for hint in hints]
    starts.append(_chebyshev(data, bool(claim.fit_intercept)))
    for start in starts:
        if start is not None and objective(loss, penalty, data, *start) < reached - gap:
            return _said(reached, objective(loss, penalty, data, *start), gap)
    return None


def _chebyshev(data, fit_intercept):
    W, b = np.zeros((data.d, data.k)), np.zeros(data.k)
    scale = np.abs(data.array).max(axis=0, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    for t in range(data.k):
        size = max(float(np.abs(data.targets[:, t]).max(initial=0.0)), 1e-300)
        A = data.array / scale
        ones = np.ones((data.n, 1))
        A = np.hstack([A, ones]) if fit_intercept else A
        upper = np.vstack([np.hstack([A, -ones]), np.hstack([-A, -ones])])
        right = np.concatenate([data.targets[:, t], -data.targets[:, t]]) / size
        cost = np.append(np.zeros(A.shape[1]), 1.0)
        found = linprog(cost, upper, right, bounds=[(None, None)] * (A.shape[1]) + [(0, None)])
        if found.x is None:
            return None
        W[:, t] = found.x[: data.d] / scale * size
        b[t] = found.x[data.d] * size if fit_intercept else 0.0
    return numbers(W), numbers(b)


def _concomitant(claim, X, y, weight, hints):
    """Huber's regression with its scale."""
    data = Data(X, y, weight)
    loss, penalty = parts(claim.loss), parts(claim.penalty)
    if loss["name"] != "huber" or penalty["name"] != "l2" or np.ndim(penalty["alpha"]):
        raise Meaningless("no Huber regression")
    W, b = coefficients(claim, data.d, 1)
    epsilon, twice = number(loss["delta"]), number(penalty["alpha"])
    if twice < 0 or epsilon <= 0 or data.k != 1:
        raise Meaningless("parameters of Huber regression")
    scale = numbers(claim.witness_or("scale"), (1,))[0]
    if scale < 0:
        raise Meaningless("a negative scale")
    reached = _huber_at(data, W, b, scale, epsilon, twice)
    wrong = within(claim, reached)
    if wrong:
        return wrong
    gap = gap_of(claim)
    starts = [((W, b), scale)]
    for hint in hints:
        point = _point(hint, data)
        if point is not None and "scale" in hint.witness:
            starts.append((point, mpf(float(hint.witness["scale"][0]))))
    for (V, c), sigma in starts:
        if not claim.thorough:
            low = _huber_at(data, V, c, sigma, epsilon, twice)
            if low < reached - gap:
                return _said(reached, low, gap)
            continue
        low = _lower_huber(data, V, c, sigma, epsilon, twice, bool(claim.fit_intercept))
        if low < reached - gap:
            return _said(reached, low, gap)
    return None


def _huber_at(data, W, b, scale, epsilon, twice):
    total = mpf(0)
    for s, y, z in zip(data.s, data.y, data.scores(W, b)):
        r = abs(z[0] - y[0])
        if r <= epsilon * scale:
            total += s * (scale + (r * r / scale if scale > 0 else 0))
        else:
            total += s * (scale + 2 * epsilon * r - epsilon**2 * scale)
    return total + twice / 2 * mp.fsum(row[0] ** 2 for row in W)


def _lower_huber(data, W, b, scale, epsilon, twice, fit_intercept):
    """Best scale and Newton's step for the coefficients in turn."""
    best = _huber_at(data, W, b, scale, epsilon, twice)
    for _ in range(25):
        residuals = [z[0] - y[0] for y, z in zip(data.y, data.scores(W, b))]
        # The best scale for the residuals: sum over the near ones of r^2, over what is left.
        order = sorted(residuals, key=abs)
        new = None
        for m in range(len(order) + 1):
            near = [
                (s, r)
                for s, r in zip(data.s, residuals)
                if abs(r) <= (abs(order[m - 1]) if m else -1)
            ]
            room = mp.fsum(data.s) - epsilon**2 * (mp.fsum(data.s) - mp.fsum(s for s, _ in near))
            if room > 0:
                sigma = mp.sqrt(mp.fsum(s * r * r for s, r in near) / room)
                value = _huber_at(data, W, b, sigma, epsilon, twice)
                if new is None or value < new[0]:
                    new = value, sigma
        if new is not None and new[0] < best:
            best, scale = new
        if scale == 0:
            return best
        p = data.d + int(fit_intercept)
        H, g = mp.zeros(p, p), mp.zeros(p, 1)
        for x, s, r in zip(data.X, data.s, residuals):
            a = [*x, *([mpf(1)] if fit_intercept else [])]
            near = abs(r) <= epsilon * scale
            slope = 2 * r / scale if near else 2 * epsilon * mp.sign(r)
            for i in range(p):
                g[i] += s * slope * a[i]
                for j in range(p):
                    H[i, j] += s * (2 / scale if near else 0) * a[i] * a[j]
        for i in range(data.d):
            g[i] += twice * W[i][0]
            H[i, i] += twice
        for i in range(p):
            H[i, i] += (H[i, i] or 1) * mpf(10) ** -30
        try:
            step = mp.lu_solve(H, -g)
        except ZeroDivisionError:
            return best
        moved = False
        for t in (mpf(1), mpf("0.3"), mpf("0.05"), mpf("0.001")):
            V = [[w[0] + t * step[j]] for j, w in enumerate(W)]
            c = [b[0] + (t * step[data.d] if fit_intercept else 0)]
            value = _huber_at(data, V, c, scale, epsilon, twice)
            if value < best:
                moved = best - value > abs(best) * mpf(10) ** -45
                W, b, best = V, c, value
                break
        if not moved and new is None:
            return best
        if not moved:
            again = _huber_at(data, W, b, scale, epsilon, twice)
            if not again < best and not moved:
                return best
    return best


def _search(claim, X, y, weight, hints):
    """At most k non-zeros: every support is fitted."""
    data = Data(X, y, weight)
    loss, penalty = parts(claim.loss), parts(claim.penalty)
    if loss["name"] != "squared" or penalty["name"] not in ("none", "l2") or data.k != 1:
        raise Meaningless("no least squares")
    W, b = coefficients(claim, data.d, 1)
    k, alpha = claim.witness_or("k"), number(claim.witness_or("alpha", 0.0))
    k = int(number(k)) if k is not None and number(k) == int(number(k)) else None
    if k is None or k < 0 or alpha < 0:
        raise Meaningless("no such search")
    count = sum(row[0] != 0 for row in W)
    if count > k:
        return f"{count} non-zero coefficients"
    reached = objective(loss, penalty, data, W, b) + alpha * count
    wrong = within(claim, reached)
    if wrong:
        return wrong
    gap = gap_of(claim)
    if reached - gap <= 0:
        return None
    delta = number(claim.witness_or("delta", 0.0)) if claim.kind == "conditioned search" else 0
    low = truth_labels.best_subset(
        data, penalty, k, alpha, float(delta), bool(claim.fit_intercept), reached - gap
    )
    return _said(reached, low, gap) if low < reached - gap else None


def reached(certificate, X, y, weight):
    """The objective of the certificate's coefficients in high precision, as a double, or None."""
    claim = _Claim(certificate)
    try:
        kind = claim.kind
        if kind in SUMS or kind in ("local", "maximum error", "search", "conditioned search"):
            data = Data(X, y, weight)
            data = data.scaled(
                claim.witness_or("column_exponent"), claim.witness_or("target_exponent")
            )
            W, b = coefficients(claim, data.d, data.k)
            value = objective(parts(claim.loss), parts(claim.penalty), data, W, b)
            if "search" in kind:
                value += number(claim.witness_or("alpha")) * sum(row[0] != 0 for row in W)
        elif kind == "concomitant":
            data = Data(X, y, weight)
            W, b = coefficients(claim, data.d, 1)
            value = _huber_at(
                data, W, b, numbers(claim.witness_or("scale"), (1,))[0],
                number(parts(claim.loss)["delta"]), number(parts(claim.penalty)["alpha"]),
            )  # fmt: skip
        elif kind == "hard margin":
            value = mp.fsum(v * v for row in numbers(claim.coef) for v in row) / 2
        elif kind in ("training errors", "mistake bound", "kernel mistake bound"):
            value = truth_labels.weight_of_errors(claim, X, y, weight)
        elif kind in ("zero-one packing", "zero-one search"):
            value = truth_labels.weight_of_errors(claim, X, y, weight, False)
        elif kind in ("kernel duality", "kernel stationarity"):
            value = truth_kernels.machine_objective(claim, X, y, weight)
        elif kind == "kernel equations":
            value = truth_kernels.ridge_objective(claim, X, y, weight)
        else:
            return None
    except Meaningless:
        return None
    return float(value) if mp.isfinite(value) else None
