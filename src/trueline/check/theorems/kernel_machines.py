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

The sums are taken in rationals. What one is off by, s, is taken from one multiplier j with room for
it, which costs at most |s| (|g_j| + eps + |f_j|) + s^2 K_jj (two such moves included); where sum
|beta| is too large by the share h, shrinking all multipliers costs at most h sum |y_i beta_i|.

Infinite prices: if the least margin is q, 0 < q < 1, all margins hold for f / q, whose objective is
the one checked. That errors of svr beyond e count as none is a condition, which says how large they
are.

For other kernels (kind "kernel stationarity") only this is proven: no two multipliers of a group
can be moved against each other with a gain above the violation, per unit and to first order.

Read from the certificate: kind, machine, objective, objective_rounding, gap, violation, kernel,
parameters (C, epsilon, nu), classes, class_weight, support, coef, intercept; from the witness: for
nu_svr epsilon (e), for nu_svc scale (r) and multipliers of each pair (beta), which must be r coef.

Kernel ridge regression: its equations, and what their residual proves.

With K the kernel matrix of the rows of positive weight, strengths alpha_t >= 0 and f = K c,

    objective    sum_t 1/2 sum_i s_i (y_it - f_it)^2 + alpha_t / 2 c_t.K c_t
    residual     r_it = y_it - f_it - alpha_t c_it / s_i.

**Theorem.** If K is positive semi-definite, no function of the kernel's space has an objective
lower by more than 1/2 sum s_i r_it^2.

*Proof.* For every f and every u, s/2 (y - f)^2 >= u (y - f) - u^2 / (2 s), and alpha/2 |f|^2 >=
sum_i u_i f_i - u.K u / (2 alpha). With u = alpha c their sum is a lower bound that does not depend
on f; it is lower than the objective at f = K c by what the theorem says.

Kernels that are not positive semi-definite by formula (given matrices, functions, sigmoid) are
taken with that on the diagonal which makes them so for certain: the rounding of their eigenvalues,
no more than 1e-9 of their norm, or nothing but the equations is proven.

Read from the certificate: objective, objective_rounding, gap, residual (of the largest target),
kernel (metric, gamma, degree, coef0; a function and its parameters), coef; from the witness: alpha.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np

from trueline.check.arithmetic import EPS, Array, Ball, Bools, Indices, exact_sum
from trueline.check.kernels import PairwiseKernel, definite_shift
from trueline.check.rows import as_doubles, as_targets, as_weights, length
from trueline.check.schema import CLAIMS, Field, get, read, shape_of
from trueline.check.verdict import Check, Refused, Verification

_POSITIVE = Field(low=5e-324, finite=False)
_SHARE = Field(low=0.0, high=1.0)
_PARAMETERS = {
    "svc": {"C": _POSITIVE},
    "svr": {"C": _POSITIVE, "epsilon": Field(low=0.0)},
    "nu_svr": {"C": Field(low=5e-324), "nu": _SHARE},
    "nu_svc": {"nu": _SHARE},
    "one_class": {"nu": _SHARE},
}
_WITNESS = {
    "nu_svr": {"epsilon": Field(low=0.0)},
    "nu_svc": {"scale": Field(("pairs",), low=5e-324), "multipliers": Field(("pairs", "m"))},
}
_ALL = slice(None)
_NOTHING = ((_ALL, Fraction(0)),)  # that all multipliers add up to nothing


@dataclass
class _Part:
    """One program: rows, targets, boxes, multipliers, and what the machine makes of them."""

    rows: Indices
    target: Array  # t or y
    price: Array
    beta: Array
    intercept: float
    sums: tuple[tuple[Any, Fraction], ...]
    gain: Any = 0.0  # g
    margin: float | None = None  # 1, or r; none in regression
    epsilon: float = 0.0  # e
    dual_epsilon: float = 0.0  # eps
    paid: Fraction = Fraction(0)  # - nu W r, or nu sum C_i e
    most: Fraction | None = None  # of sum |beta|

    @property
    def low(self) -> Array:
        """What multipliers are at least."""
        return -self.price if self.margin is None else np.minimum(0.0, self.target * self.price)

    @property
    def high(self) -> Array:
        """What multipliers are at most."""
        return self.price if self.margin is None else np.maximum(0.0, self.target * self.price)


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Objective and gap of a kernel machine; or its violation, or the residual of its equations."""
    if get(certificate, "kind") == "kernel equations":
        return _check_ridge(certificate, X, y, sample_weight)
    claim = _read(certificate, X, y, sample_weight)
    kernel = PairwiseKernel(claim.kernel, X)
    parts = _parts(claim)
    found = [_evaluate(part, kernel) for part in parts]
    objective, gap = sum((p[0] for p in found), Ball(0.0)), sum((p[1] for p in found), Ball(0.0))
    violation, beyond = max(p[2] for p in found), max(p[3] for p in found)
    reached = float(objective.mid), float(objective.rad)
    boxed = all(((p.low <= p.beta) & (p.beta <= p.high)).all() for p in parts)
    checks = [
        Check.that("multipliers", "within their boxes", boxed),
        Check.within("objective", claim.objective, claim.objective_rounding, *reached),
        Check.at_most("violation", claim.violation, violation),
    ]
    said = f"the objective of the machine {claim.machine}, with {kernel.said}, is "
    said += f"{claim.objective:.10g}; "
    if claim.kind == "kernel stationarity":
        checks.append(Check.that("gap (local)", "none", math.isinf(claim.gap)))
        said += f"no two multipliers can be moved with a gain above {claim.violation:.3g}"
    else:
        checks.append(Check.that("kernel", "positive semi-definite", kernel.is_definite))
        checks.append(Check.at_most("gap", claim.gap, max(float(gap.high), 0.0)))
        least = claim.objective - claim.objective_rounding - claim.gap
        said += f"no function and intercept reach less than {least:.10g}"
    conditions = (f"errors of up to {beyond:.3g} beyond epsilon count as none",) if beyond else ()
    return Verification(tuple(checks), said, conditions)


def _read(certificate: Any, X: Any, y: Any, sample_weight: Any) -> SimpleNamespace:
    """Everything that is claimed, and targets and weights, in the shapes that they must have."""
    machine, n, classes = get(certificate, "machine"), length(X), [0, 1]
    if type(machine) is not str or machine not in _PARAMETERS:
        raise Refused("the machine is not known")
    has_classes = machine in ("svc", "nu_svc")
    if has_classes:
        if len(shape_of(get(certificate, "classes"))) != 1:
            raise Refused("the classes are no list")
        classes = np.asarray(get(certificate, "classes")).tolist()
    k = len(classes)
    fields = {**CLAIMS, "kind": Field(kind="text"), "violation": Field(low=0.0)}
    fields |= dict.fromkeys(("kernel", "parameters"), Field(kind="any"))
    fields["support"] = Field(("m",), kind="integer", low=0, high=n - 1)
    fields |= {"coef": Field((k - 1, "m")), "intercept": Field(("pairs",))}
    if machine == "svc":
        fields["class_weight"] = Field((k,), low=0.0)
    out = read(certificate, fields, _WITNESS.get(machine, {}), {"pairs": k * (k - 1) // 2})
    given = out.parameters if isinstance(out.parameters, Mapping) else {}
    given = {name: given.get(name) for name in _PARAMETERS[machine]}
    prices = vars(read(given, _PARAMETERS[machine], {}, {}))
    out.C, out.nu = prices.get("C"), Fraction(prices.get("nu", 0))
    out.epsilon = prices.get("epsilon", getattr(out, "epsilon", 0.0))  # given, or chosen
    s = np.ones(n) if sample_weight is None else as_doubles(sample_weight, "sample_weight")
    s = np.full(n, float(s)) if s.ndim == 0 else s
    if s.shape != (n,) or not (s > 0).any() or k < 2:
        raise Refused("there is one class, or not one weight for each row, or none above zero")
    used = s > 0  # rows of weight zero or less are absent
    if len(np.unique(out.support)) != len(out.support) or not used[out.support].all():
        raise Refused("a row supports twice, or has no weight")
    out.machine, out.n, out.used, out.k, out.s = machine, n, np.flatnonzero(used), k, s
    if machine != "one_class":
        if shape_of(y) not in ((n,), (n, 1)):
            raise Refused(f"y has the shape {shape_of(y)}, X has {n} rows")
        target = np.asarray(y).ravel()
        out.y = _codes(target, classes, used) if has_classes else as_doubles(target, "y")
    return out


def _codes(labels: Any, classes: list[Any], used: Bools) -> Indices:
    """The number of the class of each row."""
    try:
        number = {label: code for code, label in enumerate(classes)}
        codes = np.array([number.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    except TypeError:
        raise Refused("labels that cannot be compared") from None
    if len(set(codes[used].tolist())) != len(classes) or (codes[used] < 0).any():
        raise Refused("classes that repeat or have no rows, or labels that are none of them")
    return codes


def _parts(r: SimpleNamespace) -> list[_Part]:
    if r.machine in ("svc", "nu_svc"):
        return [_pair(r, i, *pair) for i, pair in enumerate(combinations(range(r.k), 2))]
    used, s, beta, b, e = r.used, r.s[r.used], np.zeros(r.n), float(r.intercept[0]), r.epsilon
    beta[r.support] = r.coef[0]
    if r.machine == "one_class":
        total = r.nu * exact_sum(s)
        found = _Part(used, np.ones(len(s)), s, beta[used], 0.0, ((_ALL, total),))
        return [replace(found, margin=-b, paid=total * Fraction(b))]
    y, price = r.y[used], _priced(r, s)
    found = _Part(used, y, price, beta[used], b, _NOTHING, gain=y, epsilon=e)
    if r.machine == "svr":
        return [replace(found, dual_epsilon=e)]
    most = r.nu * exact_sum(price)
    return [replace(found, paid=most * Fraction(e), most=most)]


def _priced(r: SimpleNamespace, weights: Array) -> Array:
    """C times weights: all infinite, or none."""
    price = r.C * weights
    if not (np.isfinite(price) if math.isfinite(r.C) else price > 0).all():
        raise Refused("prices leave the range of doubles, or some are infinite and others are not")
    return price


def _pair(r: SimpleNamespace, number: int, a: int, b: int) -> _Part:
    """One versus one; a support vector of class a has row b - 1 or b of coef against class b."""
    sign = -1.0 if r.k == 2 else 1.0  # of two classes the second is the positive one
    own, of = r.y[r.support], np.isin(r.y[r.support], (a, b))
    rows = np.concatenate([r.used[r.y[r.used] == c] for c in (a, b)])
    coef = sign * np.where(of, r.coef[np.where(own == a, b - 1, a), np.arange(len(of))], 0.0)
    level, t = sign * float(r.intercept[number]), np.where(r.y[rows] == a, 1.0, -1.0)
    beta = np.zeros(r.n)
    if r.machine == "svc":
        beta[r.support] = coef
        price = _priced(r, r.class_weight[r.y[rows]] * r.s[rows])
        return _Part(rows, t, price, beta[rows], level, _NOTHING, gain=t, margin=1.0)
    beta[r.support], rho = r.multipliers[number], float(r.scale[number])
    if (np.abs(beta[r.support] - rho * coef) > 8 * EPS * np.abs(beta[r.support])).any():
        raise Refused("multipliers that are not the coefficients")
    total = r.nu * exact_sum(r.s[rows])
    halves = ((t > 0, total / 2), (t < 0, -total / 2))
    found = _Part(rows, t, r.s[rows], beta[rows], level * rho, halves)
    return replace(found, margin=rho, paid=-total * Fraction(rho))


def _evaluate(part: _Part, kernel: PairwiseKernel) -> tuple[Ball, Ball, float, float]:
    """Objective, gap, violation, and errors beyond epsilon where there must be none."""
    beta, used, beyond = part.beta, np.flatnonzero(part.beta), 0.0
    f = kernel.scores(part.rows, part.rows[used], beta[used])
    square, score = (f * beta).sum(), f + part.intercept
    if part.margin is None:
        lack = abs(score - part.target) - part.epsilon
    else:
        lack = score * -part.target + part.margin
    primal = square * 0.5
    if np.isfinite(part.price).all():
        primal += (Ball(np.maximum(lack.mid, 0.0), lack.rad) * part.price).sum()
    elif part.margin is None:
        beyond = max(float(lack.high.max()), 0.0)
    else:
        primal = primal * _stretched(score * part.target)
    primal += Ball.rounded(float(part.paid), 0.0)
    gain = (Ball(part.gain) * beta - part.dual_epsilon * np.abs(beta)).sum()
    gap = primal + square * 0.5 - gain + Ball(0.0, _balance(part, f, kernel))
    return primal, gap, _violation(part, f), beyond


def _stretched(margins: Ball) -> Ball:
    """1 / q^2 for the least margin q, or 1 if that is larger."""
    low, high = (min(float((margins.mid + s * margins.rad).min()), 1.0) for s in (-1, 1))
    if not low > 0:
        raise Refused("margins that are not positive, or only within rounding")
    return Ball.rounded(0.5 * (low**-2 + high**-2), 0.5 * (low**-2 - high**-2), 8 * EPS)


def _balance(part: _Part, f: Ball, kernel: PairwiseKernel) -> float:
    """What it costs the dual objective to make the multipliers add up exactly."""
    cost, moved, size = 0.0, 0.0, np.abs(part.beta)
    slopes = np.abs(part.gain) + part.dual_epsilon + abs(f).high
    for group, total in part.sums:
        s = exact_sum(part.beta[group]) - total
        off = float(abs(s)) * (1 + 4 * EPS)
        room = part.beta - part.low if s > 0 else part.high - part.beta
        able = np.arange(len(room))[group]
        able = able[room[able] * (1 - 4 * EPS) >= off]
        if not len(able):
            return math.inf
        j = able[int(np.argmin(slopes[able]))]
        curvature = float(abs(kernel.block(part.rows[[j]], part.rows[[j]])).high.max())
        cost, moved = cost + off * float(slopes[j]) + off**2 * curvature, moved + off
    if part.most is not None:
        bulk = exact_sum(size) + Fraction(moved)
        share = max(float(1 - part.most / bulk), 0.0) if bulk else 0.0
        cost += share * float(np.abs(part.target) @ size + moved * np.abs(part.target).max())
    return cost * (1 + (len(size) + 16) * EPS)


def _violation(part: _Part, f: Ball) -> float:
    """The largest gain that is left in moving two multipliers of a group against each other."""
    beta, e = part.beta, part.epsilon
    up = (-f + part.gain + np.where(beta < 0, e, -e)).high
    down = (f - part.gain + np.where(beta > 0, e, -e)).high
    up, down = np.where(beta < part.high, up, -np.inf), np.where(beta > part.low, down, -np.inf)
    return float(np.max([0.0, *(up[g].max() + down[g].max() for g, _ in part.sums)]))


# --- kernel ridge regression ---------------------------------------------------------------------

_SHIFT = 1e-9


def _check_ridge(certificate: Any, X: Any, y: Any, sample_weight: Any) -> Verification:
    """Objective, residual and gap of kernel ridge regression."""
    n = length(X)
    y = as_targets(y, n)
    fields = {**CLAIMS, "residual": Field(low=0.0)}
    fields |= {"kernel": Field(kind="any"), "coef": Field(("n", "k"))}
    sizes = {"n": n, "k": y.shape[1]}
    claim = read(certificate, fields, {"alpha": Field(("k",), low=0.0)}, sizes)
    weights = as_weights(sample_weight, n)
    keep = weights > 0
    kernel, proves = PairwiseKernel(claim.kernel, X), math.isfinite(claim.gap)
    y, s, c, alpha = y[keep], weights[keep, None], claim.coef[keep], claim.alpha
    K = kernel.whole()[keep][:, keep]
    shift = 0.0 if kernel.is_definite or not proves else definite_shift(K)
    f = K.dot(c) + Ball(0.0 * c, shift * np.abs(c))
    miss, root = -f + y, Ball.rounded(np.sqrt(s), 0.0)
    left = abs(miss - Ball.rounded(alpha * c / s, 0.0, 2 * EPS))
    residual = left.high.max() / (np.abs(y).max() or 1.0)
    # Weights are taken into the squares, which then underflow only where the terms do.
    miss, left = miss * root, left * root
    objective = ((miss * miss).sum() + (f * Ball.rounded(alpha * c, 0.0)).sum()) * 0.5
    found = float(objective.mid), float(objective.rad)
    checks = [
        Check.that("rows of weight zero", "not used", not claim.coef[~keep].any()),
        Check.within("objective", claim.objective, claim.objective_rounding, *found),
        Check.at_most("residual of the equations", claim.residual, residual * (1 + 4 * EPS)),
    ]
    what = f"the equations of {kernel.said} are solved up to {claim.residual:.3g}"
    what += " of the largest target"
    if not proves:
        return Verification(tuple(checks), f"{what}; nothing about other functions")
    definite = shift <= _SHIFT * float(np.linalg.norm(K.mid))
    checks.append(Check.that("kernel", "positive semi-definite", definite))
    checks.append(Check.at_most("gap", claim.gap, ((left * left).sum() * 0.5).high))
    added = f" (with {shift:.2g} added to the diagonal of its matrix)" if shift else ""
    least = claim.objective - claim.objective_rounding - claim.gap
    what += f", and no function of its space{added} has an objective below {least:.10g}"
    return Verification(tuple(checks), what)
