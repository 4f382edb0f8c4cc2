r"""The best of all supports: the answer, the bound at the root of a search, what that leaves open.

Claimed is that no w with at most k non-zeros (on columns whose correlation matrix has no eigenvalue
below delta, if delta > 0) has a value lower than the one reached by more than the gap, of

    1/2 sum_i s_i (y_i - x_i.w - b)^2 + l2/2 ||w||^2 + alpha ||w||_0.

Theorem. Let G be the Gram matrix of the centred columns with l2 on its diagonal, c their products
with the target, C half its centred square, v any vector, E >= 0 diagonal with G - E positive
semidefinite, 0 <= theta <= 1 (1 unless delta > 0), D = theta E + (1 - theta) delta diag(G), r = c -
theta (G - E) v. For w on a support T,

    value(w) >= C - theta/2 v'(G - E)v - sum over j in T of g_j,      g_j = r_j^2 / (2 D_j) - alpha.

Proof. w'Gw >= theta (w'(G - E)w + w'Ew) + (1 - theta) delta w'diag(G)w, and w'(G - E)w >= 2 v'(G -
E)w - v'(G - E)v; what is left of the value is a sum over the columns, each minimised by itself.

Theorem. With columns scaled to norm one, f(w) = C - c'w + w'Gw/2 on T, any w and G_TT >= lambda >
0, the value on T is at least f(w) - |G w - c|^2 / (2 lambda) + alpha |T|.

Supports that the first theorem leaves open are fitted by the second, and those that are too nearly
dependent for doubles in rational numbers; if either are too many (effort "full" knows no limit),
that the search is right is a condition. Columns left out are constant, or (without l2) a power of
two times one that is there, exactly; that those near it are so up to rounding is a condition.

Rounding. With N = min(n, 2048) + n / 2048 and t = sum_i s_i (x_i - centre), scaled sums err by
e = (N + 16) eps + max |t_j|^2 / (S G_jj): the latter is what the computed mean misses.

Read: kind, objective, objective_rounding, gap, loss, penalty (l2), fit_intercept, coef, intercept;
of the witness k, alpha, delta, columns (that take part), diagonal (E), theta, dual (v).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from trueline.check.arithmetic import EPS, ROWS, SMALLEST, Array, Indices, as_integers
from trueline.check.claims import Claim, below, read_about
from trueline.check.rows import Rows, Table, centre, coercivity, dense
from trueline.check.schema import Field, get, read
from trueline.check.verdict import Check, Refused, Verification

Support = tuple[int, ...]

_WITNESS = {
    "k": Field(kind="integer", low=0),
    "alpha": Field(low=0.0),
    "delta": Field(low=0.0, high=1.0),
    "columns": Field(("d",), "boolean"),
    "diagonal": Field(("m",), low=0.0),
    "theta": Field(low=0.0, high=1.0),
    "dual": Field(("m",)),
}
_MOST, _BATCH = 50_000, 4096
# Products of integers that are made in about a second.
_WORK = 2_000_000
# What is left of a copy of another column, relative to its square.
_COPY = 1e-11


class _Sums(NamedTuple):
    """Of the columns that take part: G, c, C, their norms, and a bound e on all errors."""

    G: Array
    c: Array
    C: float
    scale: Array
    e: float


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """All checks of a claim about the best support."""
    claim = read_about("squared", "none l2", certificate, {}, _WITNESS)
    about = Claim(claim, X, y, sample_weight)
    rows = about.rows
    if rows.k != 1 or len(claim.diagonal) not in (0, int(claim.columns.sum())):
        raise Refused("there is one target, and a witness of all columns that take part")
    conditioned = get(certificate, "kind") == "conditioned search"
    if conditioned != (claim.delta > 0) or (claim.theta < 1 and not conditioned):
        raise Refused("delta or theta are not those of the kind of proof")
    claim.l2, count = 0.0, int(np.count_nonzero(claim.coef))
    if claim.strength["name"] == "l2":
        claim.l2 = read(claim.strength, {"alpha": Field(low=0.0, high=1e300)}, {}, {}).alpha
    sums, conditions = _sums(rows, claim)
    # What every value is to be above.
    ceiling = claim.objective + claim.objective_rounding
    goal = (ceiling - claim.gap) * (1 + 4 * EPS) if ceiling > claim.gap else 0.0
    about.constant = claim.alpha * count
    about.evaluate(True)
    constant, gain = _root(rows, claim, sums)
    largest = np.sort(np.maximum(gain, 0.0))[::-1][: claim.k]
    bound = max(constant - float(largest.sum()) * (1 + (claim.k + 2) * EPS), 0.0)
    found, better = f"{bound:.10g} at the root", 0
    if goal > bound:
        limit = _MOST if effort == "normal" else None
        held = list(islice(_open_supports(gain, constant - goal, claim.k), limit and limit + 1))
        if limit and len(held) > limit:
            found, open_ = f"{found}, many supports are open", "which was not repeated"
        else:
            lower, doubtful, better = _fitted(rows, claim, sums, held, goal, limit)
            found += f", {lower:.10g} on {len(held):,} open supports"
            plural = "s" * (doubtful != 1)
            open_ = f"also on {doubtful:,} support{plural}" * bool(doubtful)
        conditions += (f"the branch and bound search, {open_}, is right",) * bool(open_)
    checks = (
        Check.at_most("non-zero coefficients", claim.k, count),
        about.check_objective(),
        Check("bound", f">= {goal:.12g}", found, better == 0),
    )
    said = f" and no eigenvalue of their correlations below {claim.delta:g}" * conditioned
    said = f"no coefficients with at most {claim.k} non-zeros{said} have a value {below(claim)}"
    return Verification(checks, said, conditions)


def _sums(rows: Rows, claim: Any) -> tuple[_Sums, tuple[str, ...]]:
    """G, c and C in columns scaled to norm one, and what is presupposed of those left out."""
    d, used, mean = rows.d, np.flatnonzero(claim.columns), np.zeros(rows.d + 1)
    tables = lambda: ((w, np.hstack([block, rows.y[w]])) for w, block in rows)  # noqa: E731
    if claim.fit_intercept:
        mean = sum((rows.s[where] @ table for where, table in tables()), mean) / rows.weight
    G, t = np.zeros((d + 1, d + 1)), np.zeros(d + 1)
    for where, table in tables():
        A = table - mean
        G, t = G + A.T @ (rows.s[where, None] * A), t + rows.s[where] @ A
    conditions = _left_out(rows, claim, G)
    norm, own = np.sqrt(G.diagonal()), np.append(used, d)
    terms = (min(rows.n, ROWS) + rows.n / ROWS + 16) * EPS
    # t itself errs by terms times sum s |x - centre| <= sqrt(S) norm.
    missed = (np.abs(t) / np.sqrt(rows.weight) + terms * norm) * claim.fit_intercept
    share = np.max((missed / np.where(norm > 0, norm, 1.0))[own])
    scale = np.sqrt(G.diagonal()[used] + claim.l2)
    if not (scale > 1e-150).all() or not np.isfinite(G[own][:, own]).all() or rows.s.min() < 1e-300:
        raise Refused("columns that take part or weights are zero, or too large or small")
    unit = (G[used][:, used] + claim.l2 * np.eye(len(used))) / scale[:, None] / scale
    e = (terms + float(share) ** 2) * (1 + 1e-6) + 8 * EPS
    e += rows.n * SMALLEST / (float(G[d, d]) or 1.0)  # squares of the target may underflow
    return _Sums(unit, G[used, d] / scale, 0.5 * float(G[d, d]), scale, e), conditions


def _left_out(rows: Rows, claim: Any, G: Array) -> tuple[str, ...]:
    """Refuse columns left out that are neither constant nor copies; say which are so nearly."""
    kept, doubtful = np.flatnonzero(claim.columns), []
    for j in np.flatnonzero(~claim.columns):
        x = dense(rows.X[:, [j]])
        if (x == (x[0] if claim.fit_intercept else 0.0)).all():
            continue
        near = 1.0 - G[j, kept] ** 2 / (G[j, j] * G.diagonal()[kept])
        best = kept[int(np.argmin(near))] if len(kept) else j
        if claim.l2 > 0 or best == j or not near.min() <= _COPY:
            raise Refused(f"column {j} is left out, and neither constant nor a copy of another one")
        factor = G[j, best] / G[best, best]
        factor = float(np.copysign(2.0 ** np.rint(np.log2(abs(factor))), factor))
        if (x != factor * dense(rows.X[:, [best]])).any():
            doubtful.append(int(j))
    return (f"columns {doubtful[:9]}, which were left out, are copies of others",) * bool(doubtful)


def _root(rows: Rows, claim: Any, sums: _Sums) -> tuple[float, Array]:
    """The first theorem: its constant from below, and the gains g_j from above."""
    used, E, theta = np.flatnonzero(claim.columns), claim.diagonal, claim.theta
    nothing = (-np.inf, np.full(len(used), np.inf))
    if len(E) == 0 or (E.any() and not E.all()) or (not E.any() and theta == 1):
        return nothing
    if E.any():
        table = Table(rows, centre(rows, claim.fit_intercept), used)
        lift = np.full(len(used), claim.l2)
        if not coercivity(table, 1.0 / np.sqrt(E), claim.fit_intercept, lift)[0] >= 1:
            return nothing
    E, v = E / sums.scale**2 * (1 - 8 * EPS), claim.dual * sums.scale
    length, y_size, e = float(np.abs(v).sum()), np.sqrt(2 * sums.C), sums.e + (len(v) + 8) * EPS
    pulled = sums.G @ v - E * v
    r = np.abs(sums.c - theta * pulled) + e * (y_size + (1 + E.max()) * length)
    D = (theta * E + (1 - theta) * claim.delta * (1 - e)) * (1 - 8 * EPS)
    gain = np.where(D > 0, r**2 / (2 * D), np.inf) * (1 + 8 * EPS) - claim.alpha
    off = e * (sums.C + (1 + E.max()) * length**2)
    constant = sums.C - 0.5 * theta * float(v @ pulled) - off
    return (constant, gain) if np.isfinite(gain).all() and np.isfinite(constant) else nothing


def _open_supports(gain: Array, need: float, k: int) -> Iterator[Support]:
    """All supports of at most k columns whose gains add up to more than ``need``."""
    if not np.isfinite(gain).all():
        gain, need = np.ones(len(gain)), -1.0
    order = np.argsort(-gain, kind="stable")
    ordered = gain[order]
    top = np.concatenate([[0.0], np.cumsum(np.maximum(ordered, 0.0))])
    need -= 1e-12 * (abs(need) + float(top[min(k, len(gain))]))  # the rounding of these sums
    stack: list[tuple[Support, int, float]] = [((), 0, 0.0)]
    while stack:
        chosen, first, total = stack.pop()
        if total > need:
            yield tuple(int(order[i]) for i in chosen)
        left = k - len(chosen)
        for i in range(first, len(gain) if left else first):
            # With this column and the best of the following ones; later ones can add no more.
            if total + ordered[i] + top[min(i + left, len(gain))] - top[i + 1] <= need:
                break
            stack.append(((*chosen, i), i + 1, total + float(ordered[i])))


def _fitted(
    rows: Rows, claim: Any, sums: _Sums, held: list[Support], goal: float, limit: int | None
) -> tuple[float, int, int]:
    """Least bound on these supports, how many of them are in doubt, and how many are better."""
    doubtful: list[Support] = []
    lowest, better = np.inf, 0
    for size in sorted({len(support) for support in held}):
        group = [support for support in held if len(support) == size]
        for start in range(0, len(group), _BATCH):
            part = group[start : start + _BATCH]
            low, high, least = _values(sums, np.array(part, dtype=np.intp).reshape(len(part), size))
            low, high = low + claim.alpha * size, high + claim.alpha * size
            covered = least >= claim.delta - 4 * size * sums.e  # the others are not spoken of
            surely = (high < goal) & (least > claim.delta + 4 * size * sums.e)
            better += int(surely.sum())
            open_ = covered & ~surely & ~(low >= goal)
            doubtful += [part[i] for i in np.flatnonzero(open_)]
            lowest = min(lowest, float(low[covered & ~open_].min(initial=np.inf)))
    work = sum(rows.n * (len(support) + 1) ** 2 for support in doubtful)
    if limit is not None and work > _WORK:
        return lowest, len(doubtful), better
    below = sum(_exact_value(rows, claim, support) < Fraction(goal) for support in doubtful)
    return lowest, below, better + (below if claim.delta == 0 else 0)  # if delta speaks of them


def _exact_value(rows: Rows, claim: Any, support: Support) -> Fraction:
    """The least value on a support, by elimination in rational numbers."""
    X = dense(rows.X[:, np.flatnonzero(claim.columns)[list(support)]])
    ones = np.ones((rows.n, int(claim.fit_intercept)))
    pairs = [as_integers(column) for column in np.hstack([ones, X, rows.y]).T]
    Z, s = np.stack([whole for whole, _ in pairs]), as_integers(rows.s)
    units = np.array([Fraction(2) ** power for _, power in pairs], dtype=object)
    M = (s[0] * Z) @ Z.T * np.outer(units, units) * Fraction(2) ** s[1]
    for c in range(ones.shape[1], len(M) - 1):
        M[c, c] += Fraction(claim.l2)
    for c in range(len(M) - 1):
        if M[c, c] != 0:  # not an exact combination of those before
            M = M - np.outer(M[:, c], M[c]) / M[c, c]
    return M[-1, -1] / 2 + Fraction(claim.alpha) * len(support)


def _values(sums: _Sums, index: Indices) -> tuple[Array, Array, Array]:
    """The second theorem: values of supports from below and above, and least eigenvalues."""
    n, size = index.shape
    if size == 0:
        value = np.full(n, sums.C)
        return value * (1 - 4 * sums.e), value * (1 + 4 * sums.e), np.full(n, np.inf)
    G, c = sums.G[index[:, :, None], index[:, None, :]], sums.c[index]
    values, vectors = np.linalg.eigh(G)
    along = np.einsum("nij,ni->nj", vectors, c) / np.maximum(values, EPS)
    w = np.einsum("nij,nj->ni", vectors, along)
    pulled = np.einsum("nij,nj->ni", G, w)
    value = sums.C - (c * w).sum(axis=1) + 0.5 * (pulled * w).sum(axis=1)
    length, y_size, e = np.abs(w).sum(axis=1), np.sqrt(2 * sums.C), sums.e + 4 * size * EPS
    off = e * (sums.C + length * y_size + 0.5 * length**2)
    slope = np.linalg.norm(pulled - c, axis=1) + e * np.sqrt(size) * (y_size + length)
    least = values[:, 0] - size * (e + 16 * size * EPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(least > 0, value - off - slope**2 / (2 * least), -np.inf)
    return np.where(np.isnan(low), -np.inf, low), value + off, values[:, 0]
