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
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, ROWS
from trueline.check.coercivity import coercivity
from trueline.check.exact import as_integers, dense
from trueline.check.objective import Claim, read_claim
from trueline.check.rows import Rows
from trueline.check.schema import Field, get, is_builtin, parameters
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]
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


def check(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, effort: str = "normal"
) -> Verification:
    """All checks of a claim about the best support."""
    claim = read_claim(certificate, _WITNESS, X, y, sample_weight)
    f, rows = claim.fields, claim.rows
    _require(claim)
    l2 = _l2(claim)
    if (get(certificate, "kind") == "conditioned search") != (f.delta > 0) or (
        f.theta < 1 and f.delta == 0
    ):
        raise Refused("delta or theta are not those of the kind of proof")
    count = int(np.count_nonzero(claim.W))
    checks = [Check("non-zero coefficients", f"<= {f.k}", str(count), count <= f.k)]
    checks.append(_check_objective(claim, f.alpha * count))
    mean, level = np.zeros(rows.d), 0.0
    if claim.has_intercept:
        mean = sum((rows.s[at] @ block for at, block in rows.blocks()), mean) / rows.weight
        level = float(rows.s @ rows.y[:, 0]) / rows.weight
    conditions = _left_out(rows, f.columns, mean, l2, claim.has_intercept)
    # What every value is to be above.
    goal = (claim.ceiling - f.gap) * (1 + 4 * EPS) if claim.ceiling > f.gap else 0.0
    used = np.flatnonzero(f.columns)
    sums = _sums(claim, used, mean, level, l2)
    constant, gain = _root(claim, used, sums, l2)
    largest = np.sort(np.maximum(gain, 0.0))[max(0, len(gain) - f.k) :] if f.k else np.zeros(0)
    bound = max(constant - float(largest.sum()) * (1 + (f.k + 2) * EPS), 0.0)
    found, holds = f"{bound:.10g} at the root", True
    if goal > bound:
        limit = _MOST if effort == "normal" else None
        need = constant - goal
        lower, seen, doubtful, better = _fitted(claim, used, sums, gain, need, goal, limit)
        found += f", {lower:.10g} on {seen:,} open supports" if seen else ", many supports are open"
        holds = better == 0
        if doubtful:
            what = "which was not repeated" if doubtful < 0 else f"also on {doubtful:,} supports"
            conditions += (f"the branch and bound search, {what}, is right",)
    checks.append(Check("bound", f">= {goal:.12g}", found, holds))
    dependent = f" and no eigenvalue of their correlations below {f.delta:g}" * (f.delta > 0)
    return Verification(
        tuple(checks),
        f"no coefficients with at most {f.k} non-zeros{dependent} have a value below "
        f"{f.objective:.10g} by more than {f.gap:.3g}",
        conditions,
    )


def _l2(claim: Claim) -> float:
    """The strength of the squared penalty."""
    penalty = parameters(claim.fields.penalty)
    return float(penalty["alpha"]) if penalty["name"] == "l2" else 0.0


def _require(claim: Claim) -> None:
    """Refuse all but squares, with or without their penalty."""
    f = claim.fields
    loss, penalty = parameters(f.loss), parameters(f.penalty)
    own = is_builtin(f.loss, "losses") and is_builtin(f.penalty, "penalties")
    if not own or loss["name"] != "squared" or penalty["name"] not in ("none", "l2"):
        raise Refused("the claim is about another loss than squares, or another penalty")
    if claim.rows.k != 1 or f.column_exponent is not None or f.target_exponent is not None:
        raise Refused("there is one target, in its own units")
    if len(f.diagonal) not in (0, int(f.columns.sum())):
        raise Refused("the witness of the root is about other columns")
    alpha = np.asarray(penalty.get("alpha", 0.0))
    if alpha.ndim or alpha.dtype.kind not in "fiu" or not 0 <= alpha < 1e300:
        raise Refused("the strength of the penalty is no single number")


def _check_objective(claim: Claim, price: float) -> Check:
    f = claim.fields
    for doubled in (False, True):
        claim.evaluate(doubled)
        total, error = claim.losses()
        penalty, rounding = claim.penalty.value(claim.W)
        value = total + penalty + price
        error = error + rounding + 4 * EPS * abs(value)
        holds = abs(value - f.objective) + error <= f.objective_rounding
        if holds:
            break
    said = f"{f.objective:.12g} within {f.objective_rounding:.2g}"
    return Check("objective", said, f"{value:.12g} within {error:.2g}", bool(holds))


def _left_out(
    rows: Rows, columns: NDArray[np.bool_], mean: Array, l2: float, constant: bool
) -> tuple[str, ...]:
    """Refuse columns left out that are neither constant nor copies; say which are so nearly."""
    left, kept, doubtful = np.flatnonzero(~columns), np.flatnonzero(columns), []
    if len(left) == 0:
        return ()
    dots, size = np.zeros((len(left), len(kept))), np.zeros(rows.d)
    first, varies = None, np.zeros(rows.d, dtype=bool)
    for where, block in rows:
        first = (block[0] if constant else np.zeros(rows.d)) if first is None else first
        varies |= (block != first).any(axis=0)
        centred = block - mean
        size += rows.s[where] @ centred**2
        dots += centred[:, left].T @ (rows.s[where, None] * centred[:, kept])
    for j, products in zip(left, dots, strict=True):
        if not varies[j]:
            continue
        near = 1.0 - products**2 / (size[j] * size[kept]) if len(kept) else np.ones(1)
        best = int(np.argmin(near))
        if l2 > 0 or not near[best] <= _COPY:
            raise Refused(f"column {j} is left out, and neither constant nor a copy of another one")
        factor = products[best] / size[kept[best]]
        factor = float(np.copysign(2.0 ** np.rint(np.log2(abs(factor))), factor))
        if not all((block[:, j] == factor * block[:, kept[best]]).all() for _, block in rows):
            doubtful.append(int(j))
    return (f"columns {doubtful[:9]}, which were left out, are copies of others",) * bool(doubtful)


def _sums(claim: Claim, used: NDArray[np.intp], mean: Array, level: float, l2: float) -> _Sums:
    """G, c and C in columns scaled to norm one."""
    rows, m, square = claim.rows, len(used), 0.0
    G, c, t = np.zeros((m, m)), np.zeros(m), np.zeros(m + 1)
    for where, block in rows:
        s, A, y = rows.s[where], block[:, used] - mean[used], rows.y[where, 0] - level
        G, c = G + A.T @ (s[:, None] * A), c + A.T @ (s * y)
        square, t = square + float(s @ y**2), t + np.append(s @ A, s @ y)
    norm = np.sqrt(np.append(G.diagonal(), square))
    terms = (min(rows.n, ROWS) + rows.n / ROWS + 16) * EPS
    # t itself errs by terms times sum s |x - centre| <= sqrt(S) norm.
    missed = (np.abs(t) / np.sqrt(rows.weight) + terms * norm) * claim.has_intercept
    e = terms + float(np.max(missed / np.where(norm > 0, norm, 1.0), initial=0.0)) ** 2
    scale = np.sqrt(G.diagonal() + l2)
    if not (scale > 1e-150).all() or not np.isfinite(G).all():
        raise Refused("columns that take part are zero, or too large or small for squares")
    unit = (G + l2 * np.eye(m)) / scale[:, None] / scale
    return _Sums(unit, c / scale, 0.5 * square, scale, e * (1 + 1e-6) + 8 * EPS)


def _root(claim: Claim, used: NDArray[np.intp], sums: _Sums, l2: float) -> tuple[float, Array]:
    """The first theorem: its constant from below, and the gains g_j from above."""
    f, nothing = claim.fields, (-np.inf, np.full(len(used), np.inf))
    some = bool(f.diagonal.any())
    if len(f.diagonal) == 0 or (some and not f.diagonal.all()) or (not some and f.theta == 1):
        return nothing
    if some:
        basis = 1.0 / np.sqrt(f.diagonal)
        nu, _ = coercivity(claim.rows, used, None, l2, basis, claim.has_intercept)
        if not nu >= 1:
            return nothing
    E, v = f.diagonal / sums.scale**2 * (1 - 8 * EPS), f.dual * sums.scale
    length, y_size, e = float(np.abs(v).sum()), np.sqrt(2 * sums.C), sums.e + (len(v) + 8) * EPS
    pulled = sums.G @ v - E * v
    r = np.abs(sums.c - f.theta * pulled) + e * (y_size + (1 + E.max()) * length)
    D = (f.theta * E + (1 - f.theta) * f.delta * (1 - e)) * (1 - 8 * EPS)
    gain = np.where(D > 0, r**2 / (2 * D), np.inf) * (1 + 8 * EPS) - f.alpha
    off = e * (sums.C + (1 + E.max()) * length**2)
    constant = sums.C - 0.5 * f.theta * float(v @ pulled) - off
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
    claim: Claim, used: NDArray[np.intp], sums: _Sums, gain: Array, need: float, goal: float,
    limit: int | None,
) -> tuple[float, int, int, int]:  # fmt: skip
    """Least bound on open supports, their number, those in doubt (-1: too many), those better."""
    f, supports = claim.fields, _open_supports(gain, need, claim.fields.k)
    held = list(islice(supports, None if limit is None else limit + 1))
    if limit is not None and len(held) > limit:
        return 0.0, 0, -1, 0
    doubtful: list[Support] = []
    lowest, better = np.inf, 0
    for size in sorted({len(support) for support in held}):
        group = [support for support in held if len(support) == size]
        for start in range(0, len(group), _BATCH):
            part = group[start : start + _BATCH]
            index = np.array(part, dtype=np.intp).reshape(len(part), size)
            low, high, least = _values(sums, index)
            low, high = low + f.alpha * size, high + f.alpha * size
            covered = least >= f.delta - 4 * size * sums.e  # the others are not spoken of
            surely = (high < goal) & (least > f.delta + 4 * size * sums.e)
            better += int(surely.sum())
            open_ = covered & ~surely & ~(low >= goal)
            doubtful += [part[i] for i in np.flatnonzero(open_)]
            lowest = min(lowest, float(low[covered & ~open_].min(initial=np.inf)))
    work = sum(claim.rows.n * (len(support) + 1) ** 2 for support in doubtful)
    if limit is None or work <= _WORK:
        exact = [_exact_value(claim, used[list(support)]) for support in doubtful]
        values = [v + Fraction(f.alpha) * len(t) for v, t in zip(exact, doubtful, strict=True)]
        below = sum(value < Fraction(goal) for value in values)  # if delta speaks of them
        return lowest, len(held), below, better + (below if f.delta == 0 else 0)
    return lowest, len(held), len(doubtful), better


def _exact_value(claim: Claim, columns: NDArray[np.intp]) -> Fraction:
    """The least value on a support without alpha, by elimination in rational numbers."""
    rows, m = claim.rows, len(columns)
    table = np.column_stack([dense(rows.X[:, columns]), rows.y])
    scale = -np.frexp(np.abs(table).max(axis=0))[1]  # powers of two keep the integers short
    Z, power = as_integers(np.ldexp(table, scale))
    s, weight = as_integers(rows.s)
    gram, total = (s[:, None] * Z).T @ Z, s @ Z
    unit, count = Fraction(4) ** power * Fraction(2) ** weight, int(sum(s))
    M = [[Fraction(int(v)) * unit for v in row] for row in gram]
    for i, j in product(range(m + 1), repeat=2):
        if claim.has_intercept:
            M[i][j] -= Fraction(int(total[i]) * int(total[j]), count) * unit
        if i == j < m:
            M[i][i] += Fraction(_l2(claim)) * Fraction(4) ** int(scale[i])
    for c in range(m):
        if M[c][c] == 0:  # an exact combination of those before
            continue
        for i in range(c + 1, m + 1):
            factor = M[i][c] / M[c][c]
            M[i] = [a - factor * b for a, b in zip(M[i], M[c], strict=True)]
    return M[m][m] / 2 / Fraction(4) ** int(scale[m])


def _values(sums: _Sums, index: NDArray[np.intp]) -> tuple[Array, Array, Array]:
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
