r"""Kernel support vector machines: primal and dual objective, and their gap.

For functions f of the space of a positive semi-definite kernel and intercepts b, with prices C_i
(the doubles nearest C s_i times the weight of the class) and W the sum of the weights s_i:

    svc        1/2 |f|^2 + sum C_i max(0, 1 - t_i (f_i + b))           for each pair of classes
    nu_svc     1/2 |f|^2 + sum s_i max(0, r - t_i (f_i + b)) - nu W r      for each pair of classes
    one_class  1/2 |f|^2 + sum s_i max(0, r - f_i) - nu W r
    svr        1/2 |f|^2 + sum C_i max(0, |y_i - f_i - b| - e)
    nu_svr     1/2 |f|^2 + sum C_i max(0, |y_i - f_i - b| - e) + nu sum C_i e

**Theorem.** Let f = sum_j beta_j k(x_j, .) with |beta_i| <= C_i, of the sign of t_i where there are
classes, beta_i >= 0 in one_class. If sum beta = 0 (one_class: nu W; nu_svc: nu W / 2 for the first
class, - nu W / 2 for the second; nu_svr also: sum |beta| <= nu sum C_i), no f, b, r, e have an
objective below sum g_i beta_i - eps sum |beta_i| - 1/2 beta.K beta, where g is t in svc, y in svr
and nu_svr, else 0, and eps is e in svr, else 0.

*Proof.* For every f, 1/2 |f|^2 >= sum beta_i f_i - 1/2 beta.K beta; and every loss is at least its
tangent, for example C_i max(0, 1 - t_i z) >= beta_i t_i - beta_i z. Add them up: b, r and e drop
out by the conditions on the sums.

The sums are taken in rationals. What they are off by is taken from one multiplier j with room for
it, which costs at most |s| (|g_j| + eps + |f_j|) + s^2 K_jj / 2; where sum |beta| is too large by
the share h, shrinking all multipliers costs at most h sum |y_i beta_i|.

Infinite prices: margins short by at most q < 1 hold for f / (1 - q), whose objective is the one
checked; errors of svr beyond e are printed, and are no larger than the claimed violation.

For other kernels (kind "kernel stationarity") only this is proven: no two multipliers of a group
can be moved against each other with a gain above the violation, per unit and to first order.

Read from the certificate: kind, machine, objective, objective_rounding, gap, violation, kernel,
parameters (C, epsilon, nu), classes, class_weight, support, coef, intercept; from the witness: for
nu_svr epsilon (e), for nu_svc scale (r) and multipliers of each pair (beta), which must be r coef.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, exact_sum
from trueline.check.kernels import Ball, PairwiseKernel
from trueline.check.rows import as_doubles, length
from trueline.check.schema import Field, get, parameters, read, shape_of
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

_POSITIVE = Field(low=0.0, finite=False)
_SHARE = Field(low=0.0, high=1.0)
_PARAMETERS = {
    "svc": {"C": _POSITIVE},
    "svr": {"C": _POSITIVE, "epsilon": Field(low=0.0)},
    "nu_svr": {"C": Field(low=0.0), "nu": _SHARE},
    "nu_svc": {"nu": _SHARE},
    "one_class": {"nu": _SHARE},
}
_WITNESS = {
    "nu_svr": {"epsilon": Field(low=0.0)},
    "nu_svc": {"scale": Field(("pairs",), low=5e-324), "multipliers": Field(("pairs", "m"))},
}
_KERNEL = {
    "name": Field(kind="text"),
    "gamma": Field(low=0.0),
    "degree": Field(kind="integer", low=0, high=1000),
    "coef0": Field(),
}
_ALL = slice(None)


@dataclass
class _Part:
    """One program: rows, targets, boxes, multipliers, and what the machine makes of them."""

    rows: NDArray[np.intp]
    target: Array  # t or y
    low: Array
    high: Array
    beta: Array
    intercept: float
    gain: Array  # g
    sums: tuple[tuple[Any, Fraction], ...]
    margin: float = 0.0  # 1, or r
    epsilon: float = 0.0  # e
    paid: float = 0.0  # - nu W r, or nu sum C_i e
    dual_epsilon: float = 0.0  # eps
    most: Fraction | None = None  # of sum |beta|
    is_regression: bool = False


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Objective and gap, or violation, of a support vector machine."""
    claim = _read(certificate, X, y, sample_weight)
    kernel, called = _kernel(claim.kernel, X, claim.n)
    try:
        found = [_evaluate(part, kernel) for part in _parts(claim)]
    except OverflowError:
        raise Refused("prices or multipliers leave the range of doubles") from None
    objective, gap = sum(p.objective for p in found), sum(p.gap for p in found)
    rounding = sum(p.rounding + len(found) * 4 * EPS * abs(p.objective) for p in found)
    violation, short = (max(getattr(p, name) for p in found) for name in ("violation", "short"))
    checks = [
        Check.that("multipliers", "within their boxes", all(p.boxes for p in found)),
        Check.within("objective", claim.objective, claim.objective_rounding, objective, rounding),
        Check.at_most("violation", claim.violation, violation),
    ]
    if short:
        checks.append(Check.at_most("errors beyond epsilon", claim.violation, short))
    if claim.kind == "kernel stationarity":
        checks.append(Check.that("gap (local)", "none", math.isinf(claim.gap)))
        said = f"no two multipliers can be moved with a gain above {claim.violation:.3g}{called}"
    else:
        known = kernel.is_definite and not kernel.given
        checks.append(Check.that("kernel", "positive semi-definite", known))
        checks.append(Check.at_most("gap", claim.gap, gap * (1 + len(found) * EPS)))
        said = f"no function and intercept reach less than {claim.objective - gap:.10g}"
    if short:
        said += f", with errors up to {short:.3g} beyond epsilon"
    said = f"the objective of the machine {claim.machine} is {claim.objective:.10g}; {said}"
    return Verification(tuple(checks), said)


def _read(certificate: Any, X: Any, y: Any, sample_weight: Any) -> SimpleNamespace:
    """Everything that is claimed, and targets and weights, in the shapes that they must have."""
    machine, n = get(certificate, "machine"), length(X)
    if not isinstance(machine, str) or machine not in _PARAMETERS:
        raise Refused(f"the machine {machine!r} is not known")
    has_classes = machine in ("svc", "nu_svc")
    if has_classes and len(shape_of(get(certificate, "classes"))) != 1:
        raise Refused("the classes are no list")
    classes = np.asarray(get(certificate, "classes")).tolist() if has_classes else [0, 1]
    k = len(classes)
    fields = {
        "kind": Field(kind="text"),
        "objective": Field(),
        **dict.fromkeys(("objective_rounding", "gap", "violation"), _POSITIVE),
        **dict.fromkeys(("kernel", "parameters"), Field(kind="any")),
        "support": Field(("m",), kind="integer", low=0, high=n - 1),
        "coef": Field((k - 1, "m")),
        "intercept": Field(("pairs",)),
        **({"class_weight": Field((k,), low=0.0)} if machine == "svc" else {}),
    }
    out = read(certificate, fields, _WITNESS.get(machine, {}), {"pairs": k * (k - 1) // 2})
    given = out.parameters if isinstance(out.parameters, Mapping) else {}
    given = {name: given.get(name) for name in _PARAMETERS[machine]}
    out.machine, out.prices = machine, read(given, _PARAMETERS[machine], {}, {})
    s = np.ones(n) if sample_weight is None else as_doubles(sample_weight, "sample_weight")
    out.s = np.full(n, float(s)) if s.ndim == 0 else s
    if out.s.shape != (n,) or not (out.s > 0).any() or k < 2:
        raise Refused("there is one class, or not one weight for each row, or none above zero")
    used = out.s > 0  # rows of weight zero or less are absent
    if len(np.unique(out.support)) != len(out.support) or not used[out.support].all():
        raise Refused("a row supports twice, or has no weight")
    out.n, out.used, out.classes, out.y = n, np.flatnonzero(used), classes, np.zeros(n)
    if machine != "one_class":
        if np.shape(y) not in ((n,), (n, 1)):
            raise Refused(f"y has the shape {np.shape(y)}, X has {n} rows")
        target = np.asarray(y).ravel()
        out.y = _codes(target, classes, used) if has_classes else as_doubles(target, "y")
    return out


def _codes(labels: Any, classes: list[Any], used: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The number of the class of each row."""
    try:
        number = {label: code for code, label in enumerate(classes)}
        codes = np.array([number.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    except TypeError:
        raise Refused("labels that cannot be compared") from None
    if len(set(codes[used].tolist())) != len(classes) or (codes[used] < 0).any():
        raise Refused("classes that repeat or have no rows, or labels that are none of them")
    return codes


def _kernel(kernel: Any, X: Any, n: int) -> tuple[PairwiseKernel, str]:
    """The kernel, and how it is computed if not by formula."""
    if callable(kernel):
        try:
            K = kernel(X, X)
            X = K.toarray() if sp.issparse(K) else np.asarray(K)
        except Exception as error:
            raise Refused(f"the kernel function fails: {error}") from None
        recipe, said = {"metric": "precomputed"}, " (as the kernel function itself computes it)"
    else:
        given = vars(read(parameters(kernel), _KERNEL, {}, {}))
        recipe, said = {"metric": given.pop("name"), **given}, ""
        if recipe["metric"] not in ("linear", "rbf", "poly", "sigmoid", "precomputed"):
            raise Refused(f"the kernel {recipe['metric']!r} is not known")
    out = PairwiseKernel(recipe, X, np.ones(n, dtype=bool))
    if out.given:
        if np.abs(out.X - out.X.T).max(initial=0.0) > 1e-5 * np.abs(out.X).max(initial=0.0):
            raise Refused("the kernel matrix is not symmetric")
        out.X = 0.5 * (out.X + out.X.T)
    return out, said


def _parts(r: SimpleNamespace) -> list[_Part]:
    nu, used, s = Fraction(getattr(r.prices, "nu", 0.0)), r.used, r.s[r.used]
    if r.machine in ("svc", "nu_svc"):
        return [_pair(r, nu, i, *ab) for i, ab in enumerate(combinations(range(len(r.classes)), 2))]
    beta, b, zeros = np.zeros(r.n), float(r.intercept[0]), np.zeros(len(used))
    beta[r.support] = r.coef[0]
    if r.machine == "one_class":
        total = nu * exact_sum(s)
        shared = (used, zeros + 1, zeros, s, beta[used], 0.0, zeros, ((_ALL, total),))
        return [_Part(*shared, margin=-b, paid=float(total) * b)]
    y, price = r.y[used], r.prices.C * s
    shared = (used, y, -price, price, beta[used], b, y, ((_ALL, Fraction(0)),))
    if r.machine == "svr":
        e = r.prices.epsilon
        return [_Part(*shared, epsilon=e, dual_epsilon=e, is_regression=True)]
    most, e = nu * exact_sum(price), r.epsilon
    return [_Part(*shared, epsilon=e, paid=float(most) * e, most=most, is_regression=True)]


def _pair(r: SimpleNamespace, nu: Fraction, number: int, a: int, b: int) -> _Part:
    """One versus one; a support vector of class a has row b - 1 or b of coef against class b."""
    sign = -1.0 if len(r.classes) == 2 else 1.0  # of two classes the second is the positive one
    own, of = r.y[r.support], np.isin(r.y[r.support], (a, b))
    rows = np.concatenate([r.used[r.y[r.used] == c] for c in (a, b)])
    coef = sign * np.where(of, r.coef[np.where(own == a, b - 1, a), np.arange(len(of))], 0.0)
    level, t = sign * float(r.intercept[number]), np.where(r.y[rows] == a, 1.0, -1.0)
    beta, price, rho = np.zeros(r.n), r.s[rows], 1.0
    if r.machine == "svc":
        price = r.prices.C * r.class_weight[r.y[rows]] * price
    else:
        coef, scaled, rho = r.multipliers[number], coef, float(r.scale[number])
        if (np.abs(coef - rho * scaled) > 8 * EPS * np.abs(coef)).any():
            raise Refused("multipliers that are not the coefficients")
    beta[r.support] = coef
    low, high = np.minimum(0.0, t * price), np.maximum(0.0, t * price)
    shared = (rows, t, low, high, beta[rows], level * rho)
    if r.machine == "svc":
        return _Part(*shared, t, ((_ALL, Fraction(0)),), margin=1.0)
    total = nu * exact_sum(price)
    halves = ((t > 0, total / 2), (t < 0, -total / 2))
    return _Part(*shared, 0.0 * t, halves, margin=rho, paid=-float(total) * rho)


def _evaluate(part: _Part, kernel: PairwiseKernel) -> SimpleNamespace:
    """Objective, gap and violation; sums of n terms err by n + 16 units of their magnitudes."""
    beta, units = part.beta, (len(part.rows) + 16) * EPS
    used = np.flatnonzero(beta)
    f = kernel.scores(part.rows, part.rows[used], beta[used])
    square = Ball(float(beta @ f.mid), float(np.abs(beta) @ (f.rad + units * np.abs(f.mid))))
    score, size = f.mid + part.intercept, np.abs(f.mid) + abs(part.intercept) + np.abs(part.target)
    error = f.rad + 4 * EPS * (size + abs(part.margin) + part.epsilon)
    if part.is_regression:
        losses = np.maximum(np.abs(part.target - score) - part.epsilon, 0.0)
    else:
        losses = np.maximum(part.margin - part.target * score, 0.0)
    price, half, short = np.maximum(part.high, -part.low), 0.5, 0.0
    if np.isinf(price).any():
        if not np.isinf(price).all():
            raise Refused("some prices are infinite, others are not")
        short, loss = float((losses + error).max()), Ball(0.0)
        if not part.is_regression:  # f / (1 - short) has all margins
            half = 0.5 / (1.0 - short) ** 2 if short < 1 else math.inf
            short = 0.0
    else:
        loss = Ball(float(price @ losses), float(price @ (error + units * losses)))
    bulk = float(np.abs(beta).sum())
    gain = float(part.gain @ beta) - part.dual_epsilon * bulk
    objective = half * square.mid + loss.mid + part.paid
    rounding = half * square.rad + loss.rad + units * (abs(objective) + abs(half * square.mid))
    rounding += 8 * EPS * abs(part.paid)
    gap = objective + 0.5 * square.mid - gain + rounding + 0.5 * square.rad
    gap += 4 * units * (np.abs(part.gain) @ np.abs(beta) + part.dual_epsilon * bulk)
    gap += units * abs(square.mid) + _balance(part, f, kernel)
    boxes = bool(((part.low <= beta) & (beta <= part.high)).all())
    found = {"objective": objective, "rounding": rounding, "gap": max(gap, 0.0), "short": short}
    return SimpleNamespace(**found, violation=_violation(part, f), boxes=boxes)


def _balance(part: _Part, f: Ball, kernel: PairwiseKernel) -> float:
    """What it costs the dual objective to make the multipliers add up exactly."""
    cost, moved = 0.0, 0.0
    slopes = np.abs(part.gain) + part.dual_epsilon + np.abs(f.mid) + f.rad
    for group, total in part.sums:
        s = exact_sum(part.beta[group]) - total
        size = float(abs(s)) * (1 + 4 * EPS)
        room = part.beta - part.low if s > 0 else part.high - part.beta
        able = np.arange(len(room))[group]
        able = able[room[able] * (1 - 4 * EPS) >= size]
        if s == 0 or not len(able):
            cost += 0.0 if s == 0 else math.inf
            continue
        j = able[int(np.argmin(slopes[able]))]
        own = kernel.block(part.rows[[j]], part.rows[[j]])
        curvature = float(np.abs(own.mid).max() + np.max(own.rad))
        cost, moved = cost + size * float(slopes[j]) + 0.5 * size**2 * curvature, moved + size
    if part.most is not None:
        bulk = exact_sum(np.abs(part.beta))
        excess = float(bulk - part.most) * (1 + EPS) + moved
        if excess > 0:
            worth = float(np.abs(part.target) @ np.abs(part.beta))
            worth += moved * float(np.abs(part.target).max())
            cost += excess / max(float(bulk), 1e-300) * worth
    return cost * (1 + (len(part.beta) + 16) * EPS)


def _violation(part: _Part, f: Ball) -> float:
    """The largest gain that is left in moving two multipliers of a group against each other."""
    slope, e, error = part.gain - f.mid, part.epsilon, f.rad + 4 * EPS * np.abs(f.mid)
    up = np.where(part.beta < 0, slope + e, slope - e) + error
    down = np.where(part.beta > 0, slope - e, slope + e) - error
    up = np.where(part.beta < part.high, up, -np.inf)
    down = np.where(part.beta > part.low, down, np.inf)
    return max(0.0, *(float(up[g].max() - down[g].min()) for g, _ in part.sums))
