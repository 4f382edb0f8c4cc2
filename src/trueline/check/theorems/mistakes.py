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
from typing import Any

import numpy as np
import scipy.sparse as sp

from trueline.check.arithmetic import EPS, SMALLEST, Array, fsum
from trueline.check.claims import judged, read_about
from trueline.check.kernels import PairwiseKernel, definite_shift
from trueline.check.rows import Rows, as_doubles, as_matrix, as_weights, length
from trueline.check.schema import Field, get, witness_of
from trueline.check.verdict import Check, Refused, Verification

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
    sure, possible = fsum(s[z < -rad]), fsum(s[z <= rad])
    found, unsure = 0.5 * (sure + possible), 0.5 * (possible - sure)
    checks = list(judged(claim, found, unsure + 8 * EPS * (found + unsure), 0.0))
    within = f" (within {claim.objective_rounding:.2g})" * (claim.objective_rounding > 0)
    said = f"rows of weight {claim.objective:.10g}{within} are on the wrong side{claim.said}"
    if claim.kind == "training errors":
        return Verification(tuple(checks), said)
    for r in range(len(claim.bound)):
        checks += _bound(claim, r)
    checks.append(Check.that("sum of the updates", "the weights at the end", _adds_up(claim)))
    made, most = claim.mistakes.sum(), ", ".join(f"{bound:.6g}" for bound in claim.bound)
    run = f"rate {claim.rate:g}, threshold {claim.threshold:g}, intercept {claim.intercept_step:g}"
    if claim.largest.any():
        run += f", steps of up to {claim.largest.max():g} at once"
    said = f"{said}; the run ({run}) made {made} updates, and at most {most} are possible"
    return Verification(tuple(checks), said)


def _read(certificate: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """The claim with classes, weights, steps and signs of the rows."""
    kind, n, given = get(certificate, "kind"), length(X), witness_of(certificate)
    is_kernel = given.get("kernel") is not None
    if kind != "training errors" and is_kernel != (kind == "kernel mistake bound"):
        raise Refused("a kernel is missing, or there is one where there is none")
    A = None if is_kernel else as_matrix(X)
    sizes = {"n": n, "d": n if A is None else A.shape[1]}
    claim = read_about("zero_one", "none", certificate, sizes, _WITNESS[kind])
    claim.kind, claim.A, claim.K, claim.said, claim.shift = kind, A, None, "", 0.0
    claim.y, claim.plain = as_doubles(y, "y").ravel(), as_weights(sample_weight, n)
    k, direct = claim.coef.shape[1], bool(getattr(claim, "direct", False))
    if claim.y.shape != (n,) or not np.isin(claim.y, (-1, 1) if k == 1 else np.arange(k)).all():
        raise Refused("y does not hold the number of a class, or a sign, for each row")
    problems = len(getattr(claim, "bound", [0] * k))
    if len(claim.class_weights) != max(2, k) or problems != (1 if direct else k):
        raise Refused("class weights or bounds are not as many as classes or problems")
    if is_kernel:
        kernel = PairwiseKernel(claim.kernel, X)
        claim.K, claim.said = kernel.whole(), f", with {kernel.said}"
        claim.intercept_step, claim.largest = float(claim.fit_intercept), np.zeros(k)
        if kind == "kernel mistake bound" and not kernel.is_definite:
            claim.shift = definite_shift(claim.K)
    claim.rows = Rows(X if claim.K is None else claim.K.mid, claim.y)
    claim.classes = (claim.y > 0).astype(int) if k == 1 else claim.y.astype(int)
    claim.own, one = claim.classes[:, None] == np.arange(k), k == 1 or direct
    if direct and k == 1:
        raise Refused("a single column of weights is not learned directly")
    # One class against the rest: the rest has the class weight one.
    share = np.where(claim.own | one, claim.class_weights[claim.classes][:, None], 1.0)
    claim.steps = getattr(claim, "rate", 1.0) * claim.plain[:, None] * share
    claim.signs = claim.y[:, None] if k == 1 else np.where(claim.own, 1.0, -1.0)
    claim.direct = direct
    return claim


def _margins(claim: Any, y: Array, W: Array, b: Array) -> tuple[Array, Array]:
    """By how much rows are right, and the rounding in it."""
    found, _, rad = claim.rows.scores(W, b)
    if claim.K is not None:
        rad += claim.K.rad @ np.abs(W) * (1 + len(y) * EPS)
    if not (np.isfinite(found).all() and np.isfinite(rad).all()):
        raise Refused("scores leave the range of doubles")
    if W.shape[1] == 1:
        return y * found[:, 0], rad[:, 0]
    right, own = found[claim.own], rad[claim.own]
    found[claim.own] = -np.inf
    return right - found.max(axis=1), own + rad.max(axis=1) + 2 * EPS * np.abs(right)


def _bound(claim: Any, r: int) -> list[Check]:
    """Mistakes, margin, R and bound of one problem."""
    of = slice(None) if claim.direct else slice(r, r + 1)
    label = f" of class {r}" if claim.coef.shape[1] > 1 and not claim.direct else ""
    made, steps = int(claim.counts[:, of].sum()), claim.steps[:, r]
    counted = Check(f"updates{label}", f"{claim.mistakes[r]}", f"{made}", made == claim.mistakes[r])
    if math.isinf(claim.bound[r]):
        return [counted]  # nothing separates, nothing is claimed
    h, U, u = claim.intercept_step, claim.separator[:, of], claim.separator_intercept[of]
    taken, largest = steps > 0, float(max(np.abs(U).max(initial=0.0), np.abs(u).max()))
    if not largest or not taken.any() or (h == 0 and u.any()):
        raise Refused("the separator is zero, has an intercept where there is none, or no rows")
    power = -math.frexp(largest)[1]  # a power of two keeps squares within range
    U, u, units = np.ldexp(U, power), np.ldexp(u, power), 1 + (2 * U.size + 8) * EPS
    z, rad = _margins(claim, claim.signs[:, r], U, u)
    g, bulk = float((z - rad)[taken].min()), float((U**2).sum()) * units
    if claim.K is None:
        own = claim.A.multiply(claim.A) if sp.issparse(claim.A) else claim.A**2
        top = np.asarray(own.sum(axis=1)).ravel()[taken].max() + len(U) * SMALLEST
        square = bulk
    else:
        K, beta = claim.K, np.abs(U[:, 0])
        top = (np.diag(K.mid) + np.diag(K.rad))[taken].max()
        square = float(U[:, 0] @ (K.mid @ U[:, 0])) + claim.shift * bulk * units
        square += float(beta @ (K.rad + (2 * len(beta) + 8) * EPS * np.abs(K.mid)) @ beta)
        g -= claim.shift * math.sqrt(bulk) * units
    square = (square + (float((u**2).sum()) / h if h > 0 else 0.0)) * units
    gamma = g / math.sqrt(square) * (1 - 8 * EPS) if square > 0 else -math.inf
    radius = math.sqrt(max(float(top) + h, 0.0)) * units
    low, high = float(steps[taken].min()), float(max(steps[taken].max(), claim.largest[r]))
    wide = (2.0 if claim.direct else 1.0) * high * radius * radius + 2 * claim.threshold
    room = low * (gamma * gamma * (1 - 8 * EPS) - claim.shift)
    bound = wide / room * (1 + 32 * EPS) if gamma > 0 and room > 0 else math.inf
    g, R, most = float(claim.gamma[r]), float(claim.radius[r]), float(claim.bound[r])
    return [
        counted,
        Check(f"margin{label}", f"{g:.6g}", f"{gamma:.6g}", bool(0 < g <= gamma)),
        Check.at_most(f"R{label}", R, radius),
        Check.at_most(f"bound on updates{label}", most, bound),
        Check.at_most(f"updates within it{label}", most, made),
    ]


def _adds_up(claim: Any) -> bool:
    """The sum of (updates by a row) (its step) (the row) is the weights at the end of the run."""
    counts = claim.counts.astype(np.float64)
    moved = counts * claim.steps
    change = moved * claim.signs
    if claim.direct:
        change = np.where(claim.own, moved.sum(axis=1, keepdims=True), 0.0) - moved
    # Every addition rounds a partial sum, which the sum of the magnitudes bounds.
    terms = counts.sum() + len(counts) + 8
    if claim.K is not None:
        same = np.abs(change - claim.coef) <= (counts + 4) * EPS * np.abs(change)
        level, unit = claim.intercept, EPS
    else:
        unit, level = claim.precision + EPS, claim.last_intercept
        size = abs(claim.A).T @ np.abs(change)
        same = np.abs(claim.A.T @ change - claim.last) <= terms * unit * size
    step, bulk = claim.intercept_step, np.abs(change).sum(axis=0)
    near = np.abs(change.sum(axis=0) * step - level) <= terms * unit * bulk * step
    illegal = counts[claim.plain == 0].any() or (claim.direct and counts[claim.own].any())
    return bool(not illegal and same.all() and near.all())
