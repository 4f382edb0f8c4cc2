r"""Perceptrons: training errors counted, and the updates of a run bounded.

**Theorem** (A. Novikoff, "On convergence proofs on perceptrons", Symposium on the Mathematical
Theory of Automata, 1962). Weights start at zero; each update adds c y_i x_i, with a step
lo <= c <= hi, for a row with y_i w.x_i <= b. If u separates the rows, y_i u.x_i >= g > 0, and
|x_i| <= R, at most (hi R^2 + 2 b) |u|^2 / (lo g^2) updates are made.

*Proof.* Let S be the sum of the steps. Updates add at least c g to u.w and at most c (hi R^2 + 2 b)
to |w|^2, so (g S)^2 <= (u.w)^2 <= |u|^2 |w|^2 <= |u|^2 S (hi R^2 + 2 b); and S >= lo times their
number.

If rows are added together, hi is at least the largest sum of steps at once. An intercept with step
h is a column of sqrt(h). Where the right class gains what a wrong one loses ("direct"), w is the
matrix of weights, and R^2 counts twice. In the space of a kernel u = sum_j beta_j k(x_j, .) + c,
with scores K beta + c, |u|^2 = beta.K beta + c^2 and R^2 = max K_ii + 1 (K_ii without intercept).
If K needs d on its diagonal to be positive semi-definite, |u.w| <= ((|u|^2 + d |beta|^2) (|w|^2 +
d S^2))^(1/2) + d |beta| S, so that the same proof gives (hi R^2 + 2 b) / (lo e) with
e = (g - d |beta|)^2 / (|u|^2 + d |beta|^2) - d.

Read from the certificate: kind, objective (weight of the rows on the wrong side), its rounding, gap
(fewer errors are not excluded), loss, penalty, fit_intercept, coef, intercept; from the witness:
class_weights, kernel; of the run rate, threshold (b), intercept_step, largest, direct, precision,
counts (updates by each row), last (the weights that their sum is); separator; and mistakes, gamma,
radius, bound for each problem, which are derived here and compared.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.check.arithmetic import EPS, ROWS, SMALLEST
from trueline.check.kernels import PairwiseKernel, definite_shift
from trueline.check.rows import as_doubles, as_matrix, as_weights, length
from trueline.check.schema import CLAIMS, Field, get, parameters, read, shape_of, witness_of
from trueline.check.verdict import Check, Refused, Verification

__all__ = ["check"]

Array = NDArray[np.float64]

_ERRORS = {"class_weights": Field(("c",), low=0.0), "kernel": Field(kind="any", optional=True)}
_BOUND = {
    "counts": Field(("n", "k"), kind="integer", low=0),
    "separator": Field(("d", "k")),
    "separator_intercept": Field(("k",)),
    "rate": Field(low=SMALLEST),
    "threshold": Field(low=0.0),
    "mistakes": Field(("p",), kind="integer", low=0),
    "gamma": Field(("p",), low=0.0),
    "radius": Field(("p",), low=0.0),
    "bound": Field(("p",), low=0.0, finite=False),
}
_RUN = {
    "last": Field(("d", "k")),
    "last_intercept": Field(("k",)),
    "intercept_step": Field(low=0.0),
    "largest": Field(("p",), low=0.0),
    "direct": Field(kind="integer", low=0, high=1),
    "precision": Field(low=EPS / 2, high=1.2e-7),
}
_WITNESS = {
    "training errors": _ERRORS,
    "mistake bound": {**_ERRORS, **_BOUND, **_RUN},
    "kernel mistake bound": {**_ERRORS, **_BOUND},
}


def check(certificate: Any, X: Any, y: Any, sample_weight: Any, effort: str) -> Verification:
    """Training errors, and what is claimed about the updates of a run."""
    claim = _read(certificate, X, y, sample_weight)
    s = claim.plain * claim.class_weights[claim.classes]
    z, rad = _margins(claim, claim.y, claim.coef, claim.intercept)
    found, unsure = float(s[z <= 0].sum()), float(s[np.abs(z) <= rad].sum())
    unsure += 2 * (len(s) + 8) * EPS * float(s.sum())
    least, allowed = claim.objective - claim.gap, claim.objective_rounding
    checks = [
        Check.within("training errors", claim.objective, allowed, found, unsure),
        Check("fewest errors, at least", f"{least:.6g}", "0", bool(least <= 0)),
    ]
    said = f"rows of weight {claim.objective:.10g} are on the wrong side{claim.said}"
    if claim.kind == "training errors":
        return Verification(tuple(checks), said)
    for r in range(len(claim.bound)):
        checks += _bound(claim, r)
    checks.append(_updates(claim))
    made, most = claim.mistakes.sum(), ", ".join(f"{bound:.6g}" for bound in claim.bound)
    run = f"rate {claim.rate:g}, threshold {claim.threshold:g}, intercept {claim.intercept_step:g}"
    if claim.largest.any():
        run += f", steps of up to {claim.largest.max():g} at once"
    return Verification(
        tuple(checks),
        f"{said}; the run ({run}) made {made} updates, and at most {most} are possible",
    )


def _read(certificate: Any, X: Any, y: Any, sample_weight: Any) -> SimpleNamespace:
    kind, n, shape = get(certificate, "kind"), length(X), shape_of(get(certificate, "coef"))
    if len(shape) != 2:
        raise Refused(f"coef has the shape {shape}")
    k, direct = shape[1], False
    if kind == "mistake bound":
        given = {"direct": witness_of(certificate).get("direct")}
        direct = bool(read(given, {"direct": _RUN["direct"]}, {}, {}).direct)
    sizes = {"n": n, "d": shape[0], "k": k, "c": max(2, k), "p": 1 if direct else k}
    fields = {"kind": Field(kind="text"), "coef": Field(("d", "k"))}
    fields |= {**CLAIMS, "fit_intercept": Field(kind="boolean"), "intercept": Field(("k",))}
    fields |= {"loss": Field(kind="any"), "penalty": Field(kind="any")}
    claim = read(certificate, fields, _WITNESS[kind], sizes)
    names = tuple(parameters(part).get("name") for part in (claim.loss, claim.penalty))
    if names != ("zero_one", "none") or (direct and k == 1):
        raise Refused(f"the loss and penalty stated are {names}, or one class is learned directly")
    if not claim.fit_intercept and claim.intercept.any():
        raise Refused("an intercept where there is none")
    claim.y, claim.plain = as_doubles(y, "y").ravel(), as_weights(sample_weight, n)
    claim.direct = direct
    labels = (-1.0, 1.0) if k == 1 else np.arange(k)
    if claim.y.shape != (n,) or not np.isin(claim.y, labels).all():
        raise Refused("y does not hold the number of a class, or a sign, for each row")
    claim.classes = (claim.y > 0).astype(int) if k == 1 else claim.y.astype(int)
    claim.said, claim.is_kernel = "", claim.kernel is not None
    if kind != "training errors" and claim.is_kernel != (kind == "kernel mistake bound"):
        raise Refused("a kernel is missing, or there is one where there is none")
    if claim.is_kernel:
        kernel = PairwiseKernel(claim.kernel, X)
        claim.K, claim.said = kernel.whole(), f", with {kernel.said}"
        claim.shift = 0.0 if kernel.is_definite else None
        claim.intercept_step, claim.largest = float(claim.fit_intercept), np.zeros(k)
    else:
        claim.X = as_matrix(X)
    if shape[0] != (n if claim.is_kernel else claim.X.shape[1]):
        raise Refused(f"there are {shape[0]} coefficients, which do not fit X")
    return claim


def _margins(claim: SimpleNamespace, y: Array, W: Array, b: Array) -> tuple[Array, Array]:
    """By how much rows are right, and the rounding in it; sums of m terms err by m + 3 units."""
    n, k = len(y), W.shape[1]
    scores, rad = np.empty((n, k)), np.empty((n, k))
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        A = claim.K.mid[rows] if claim.is_kernel else claim.X[rows]
        terms = int(np.diff(A.indptr).max(initial=0)) if sp.issparse(A) else A.shape[1]
        scores[rows] = A @ W + b
        rad[rows] = (terms + 3) * EPS * (abs(A) @ np.abs(W) + np.abs(b)) + terms * SMALLEST
        if claim.is_kernel:
            rad[rows] += claim.K.rad[rows] @ np.abs(W) * (1 + n * EPS)
    if k == 1:
        return y * scores[:, 0], rad[:, 0]
    gold, at = y.astype(int), np.arange(n)
    right, own = scores[at, gold], rad[at, gold]
    scores[at, gold] = -np.inf
    return right - scores.max(axis=1), own + rad.max(axis=1) + 2 * EPS * np.abs(right)


def _problem(claim: SimpleNamespace, r: int) -> tuple[Array, Array]:
    """Target and steps of the rows: all classes together, two, or one against the rest."""
    own = claim.class_weights[claim.classes]
    if claim.direct or claim.coef.shape[1] == 1:
        return claim.y, claim.rate * claim.plain * own
    mine = claim.y == r
    return np.where(mine, 1.0, -1.0), claim.rate * claim.plain * np.where(mine, own, 1.0)


def _bound(claim: SimpleNamespace, r: int) -> list[Check]:
    """Mistakes, margin, R and bound of one problem."""
    of = slice(None) if claim.direct else slice(r, r + 1)
    label = f" of class {r}" if claim.coef.shape[1] > 1 and not claim.direct else ""
    made, (y, steps) = int(claim.counts[:, of].sum()), _problem(claim, r)
    counted = Check(f"updates{label}", f"{claim.mistakes[r]}", f"{made}", made == claim.mistakes[r])
    if math.isinf(claim.bound[r]):
        return [counted]  # nothing separates, nothing is claimed
    h, U, u = claim.intercept_step, claim.separator[:, of], claim.separator_intercept[of]
    taken, largest = steps > 0, float(max(np.abs(U).max(), np.abs(u).max()))
    if not largest or not taken.any() or (h == 0 and u.any()):
        raise Refused("the separator is zero, has an intercept where there is none, or no rows")
    power = -math.frexp(largest)[1]  # a power of two keeps squares within range
    U, u = np.ldexp(U, power), np.ldexp(u, power)
    z, rad = _margins(claim, y, U, u)
    g, shift = float((z - rad)[taken].min()), 0.0
    extra = float((u**2).sum()) / h if h > 0 else 0.0
    units = 1 + (2 * U.size + 8) * EPS
    if claim.is_kernel:
        K, beta = claim.K, np.abs(U[:, 0])
        if claim.shift is None:
            claim.shift = definite_shift(K)
        shift = claim.shift
        square = float(U[:, 0] @ (K.mid @ U[:, 0])) + extra
        square += float(beta @ (K.rad + (2 * len(beta) + 8) * EPS * np.abs(K.mid)) @ beta)
        top = float((np.diag(K.mid) + np.diag(K.rad))[taken].max()) + h
        bulk = float((beta**2).sum())
        g -= shift * math.sqrt(bulk) * units
        square += shift * bulk * units
    else:
        square = float((U**2).sum()) + extra
        own = claim.X.multiply(claim.X) if sp.issparse(claim.X) else claim.X**2
        top = float(np.asarray(own.sum(axis=1)).ravel()[taken].max()) + len(U) * SMALLEST + h
    gamma = g / math.sqrt(square * units) * (1 - 8 * EPS) if square > 0 else -math.inf
    radius = math.sqrt(max(top, 0.0)) * units
    low, high = float(steps[taken].min()), float(max(steps[taken].max(), claim.largest[r]))
    wide = (2.0 if claim.direct else 1.0) * high * radius**2 + 2 * claim.threshold
    room = low * (gamma**2 * (1 - 8 * EPS) - shift)
    bound = wide / room * (1 + 32 * EPS) if gamma > 0 and room > 0 else math.inf
    g, R, most = float(claim.gamma[r]), float(claim.radius[r]), float(claim.bound[r])
    return [
        counted,
        Check(f"margin{label}", f"{g:.6g}", f"{gamma:.6g}", bool(0 < g <= gamma)),
        Check(f"R{label}", f"{R:.6g}", f"{radius:.6g}", bool(R >= radius)),
        Check(f"bound on updates{label}", f"{most:.6g}", f"{bound:.6g}", bool(most >= bound)),
        Check(f"updates within it{label}", f"<= {most:.6g}", f"{made}", bool(made <= most)),
    ]


def _updates(claim: SimpleNamespace) -> Check:
    """The sum of (updates by a row) (its step) (the row) is the weights at the end of the run."""
    change, counts = np.zeros(claim.counts.shape), claim.counts.astype(np.float64)
    at, legal = np.arange(len(change)), True
    if claim.direct:
        moved = counts * _problem(claim, 0)[1][:, None]
        change = -moved
        change[at, claim.classes] += moved.sum(axis=1)
        legal = not counts[at, claim.classes].any()
    else:
        for r in range(change.shape[1]):
            y, steps = _problem(claim, r)
            change[:, r] = counts[:, r] * steps * y
    legal = legal and not counts[claim.plain == 0].any()
    # Every addition rounds a partial sum, which the sum of the magnitudes bounds.
    terms = counts.sum() + len(change) + 8
    if claim.is_kernel:
        same = np.abs(change - claim.coef) <= (counts + 4) * EPS * np.abs(change)
        level, unit = claim.intercept, EPS
    else:
        A, unit, level = claim.X, claim.precision + EPS, claim.last_intercept
        total, size = A.T @ change, abs(A).T @ np.abs(change)
        same = np.abs(total - claim.last) <= terms * unit * size
    step, bulk = claim.intercept_step, np.abs(change).sum(axis=0)
    near = np.abs(change.sum(axis=0) * step - level) <= terms * unit * bulk * step
    holds = legal and same.all() and near.all()
    return Check.that("sum of the updates", "the weights at the end", holds)
