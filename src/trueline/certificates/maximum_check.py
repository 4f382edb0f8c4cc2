r"""The independent check of a proof about the largest error.

Everything is recomputed from the rows: the largest error of the coefficients, and the bound

    sum_i u_i r_i - sum_j abs(V_j) R_j - abs(e) B,    V = sum_i u_i (x_i - c),   e = sum_i u_i,

for the rows of the witness and their multipliers u (``dual + dual_low``, doubled numbers), whose
magnitudes must sum to one at most (see
:mod:`trueline.certificates.maximum` for why it holds). Nothing is shared with what made the claim.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import Check
from trueline.certificates.doubled import (
    exact_product,
    residual_doubled,
    sum_units,
    tree_sum,
    two_sum,
)
from trueline.penalties import NoPenalty

__all__ = ["WITNESS", "check_maximum"]

Array = NDArray[np.float64]

#: What such a proof must bring.
WITNESS = ("rows", "dual", "dual_low", "centre", "radius", "coefficient_radius")
_EPS = float(np.finfo(np.float64).eps)
_SMALLEST = 1e-300
# More numbers than this are not worth twice the digits.
_DOUBLED = 4_000_000


class _Witness(NamedTuple):
    """The rows that the witness names, with their multipliers and the stated radii."""

    places: NDArray[np.intp]
    u: Array
    low: Array
    centre: Array
    radius: Array
    reach: Array


def check_maximum(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks of such a proof; ``rows`` are those of the independent checker."""
    kind = certificate.kind
    suited = kind == "maximum error" and "maximum" in certificate.loss.capabilities
    suited = suited and isinstance(certificate.penalty, NoPenalty)
    fitting = "yes" if suited else f"{certificate.loss.name}, {certificate.penalty.name}"
    checks = [Check("largest error, no penalty", kind, fitting, suited)]
    if not suited:
        return checks
    witness = _read(certificate, rows)
    if isinstance(witness, str):
        return [*checks, Check("witness", "fits the data", witness, False)]
    low = high = 0.0
    for t in range(certificate.coef.shape[1]):
        least, most = _largest_error(certificate, rows, t)
        low, high = low + least, high + most
    claimed, allowed = certificate.objective, certificate.objective_rounding
    holds = claimed - allowed <= low and high <= claimed + allowed
    checks.append(
        Check(
            "largest error",
            f"{claimed:.12g} within {allowed:.2g}",
            f"{low:.12g} to {high:.12g}",
            bool(holds),
        )
    )
    parts = np.abs(np.concatenate([witness.u, witness.low]))
    norm = max(math.fsum(column.tolist()) for column in parts.T)
    checks.append(Check("sum of multipliers", "<= 1", f"{norm:.17g}", norm <= 1))
    bound = _bound(certificate, rows, witness)
    gap = claimed + allowed - bound
    gap += 4 * _EPS * (abs(claimed) + abs(bound))
    checks.append(
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", bool(gap <= certificate.gap))
    )
    return checks


def _read(certificate: Certificate, rows: Any) -> _Witness | str:
    """The witness as arrays, or what is wrong with it."""
    given = {name: np.asarray(certificate.witness[name], dtype=np.float64) for name in WITNESS}
    d, k = certificate.coef.shape
    m = len(given["rows"]) if given["rows"].ndim == 1 else -1
    shapes = {"dual": (m, k), "dual_low": (m, k), "centre": (d,)}
    shapes |= {"radius": (k,), "coefficient_radius": (d, k)}
    for name, shape in shapes.items():
        if given[name].shape != shape:
            return f"{name} of shape {given[name].shape}"
    if not all(np.isfinite(part).all() for part in given.values()):
        return "numbers that are not finite"
    if (given["radius"] < 0).any() or (given["coefficient_radius"] < 0).any():
        return "negative radii"
    places = given["rows"].astype(np.intp)
    inside = (places == given["rows"]) & (places >= 0) & (places < rows.n)
    if not inside.all() or len(np.unique(places)) < m:
        return "rows that are not there"
    if not certificate.fit_intercept and given["centre"].any():
        return "a centre without an intercept"
    return _Witness(places, *(given[name] for name in WITNESS[1:]))


def _largest_error(certificate: Certificate, rows: Any, t: int) -> tuple[float, float]:
    """Two numbers between which the largest error of a target lies."""
    w, b = certificate.coef[:, t], float(certificate.intercept[t])
    least, most, is_complete = 0.0, 0.0, True
    # Rows that may be it: their data, their targets, and how large their errors may be.
    X, y, reach = np.zeros((0, rows.d)), np.zeros(0), np.zeros(0)
    for where, block in rows:
        target = rows.y[where, t]
        error = np.abs(target - (block @ w + b))
        size = np.abs(block) @ np.abs(w) + abs(b) + np.abs(target)
        off = (rows.row_terms + 4) * _EPS * size + _SMALLEST
        least = max(least, float((error - off).max(initial=0.0)))
        most = max(most, float((error + off).max(initial=0.0)))
        # What was doubtful in an earlier block may be settled by this one.
        old, new = reach >= least, error + off >= least
        is_complete = is_complete and (old.sum() + new.sum()) * (rows.d + 1) <= _DOUBLED
        if is_complete:
            X = np.concatenate([X[old], block[new]])
            y = np.concatenate([y[old], target[new]])
            reach = np.concatenate([reach[old], (error + off)[new]])
    if not is_complete or not len(X):
        return least, most
    high = residual_doubled(X, w, b, y)[0]
    off = sum_units(rows.d + 2) * (np.abs(X) @ np.abs(w) + abs(b) + np.abs(y)) + _SMALLEST
    error, off = np.abs(high), off + 2 * _EPS * np.abs(high)
    return float((error - off).max()), float((error + off).max())


def _bound(certificate: Certificate, rows: Any, witness: _Witness) -> float:
    """The bound of the module's text, on the safe side of rounding, summed over the targets."""
    X = _rows_at(rows, witness.places)
    total = 0.0
    for t in range(certificate.coef.shape[1]):
        w, b = certificate.coef[:, t], float(certificate.intercept[t])
        u, low = witness.u[:, t], witness.low[:, t]
        levelled, own = _weighted_errors(X, rows.y[witness.places, t], w, b, u, low)
        V, V_error = _sums(X, u, low, witness.centre)
        e, e_error = _sums(np.ones((len(X), 1)), u, low, np.zeros(1))
        missed = float((np.abs(V) + V_error) @ witness.reach[:, t])
        if certificate.fit_intercept:
            missed += float(abs(e[0]) + e_error[0]) * float(witness.radius[t])
        value = levelled - own - missed * (1 + (rows.d + 8) * _EPS)
        total += max(value - 4 * _EPS * abs(value), 0.0)  # an error is never negative
    return total


def _rows_at(rows: Any, places: NDArray[np.intp]) -> Array:
    """Some rows, dense, in the order of the places."""
    X = np.zeros((len(places), rows.d))
    for where, block in rows:
        here = np.flatnonzero((places >= where.start) & (places < where.stop))
        X[here] = block[places[here] - where.start]
    return X


def _weighted_errors(
    X: Array, y: Array, w: Array, b: float, u: Array, low: Array
) -> tuple[float, float]:
    """sum_i u_i r_i with r = y - X w - b, and a bound on its error."""
    size = np.abs(X) @ np.abs(w) + abs(b) + np.abs(y)
    if X.size > _DOUBLED:
        residual = y - (X @ w + b)
        units = (X.shape[1] + len(X) + 8) * _EPS
        total = float(np.abs(u) @ size + np.abs(low) @ size)
        return float(u @ residual + low @ residual), units * total
    high, rest = residual_doubled(X, w, b, y)  # of X w + b - y
    products, errors = exact_product(-u, high)
    small = -(u * rest + low * high)
    value = math.fsum([*products.tolist(), *errors.tolist(), *small.tolist()])
    units = sum_units(len(w) + 2) + 8 * _EPS**2
    off = units * float(np.abs(u) @ size) + 8 * _EPS * float(np.abs(low) @ size)
    return value, off + 2 * _EPS * abs(value) + len(u) * _SMALLEST


def _sums(X: Array, u: Array, low: Array, centre: Array) -> tuple[Array, Array]:
    """sum_i u_i (x_i - c) and a bound on its error."""
    m = len(X)
    if X.size > _DOUBLED:
        centred = X - centre
        size = np.abs(centred).T @ (np.abs(u) + np.abs(low))
        return centred.T @ u + centred.T @ low, (m + 8) * _EPS * size
    centred, below = two_sum(X, -centre)
    products, errors = exact_product(centred, u[:, None])
    high, rest = tree_sum(products)
    value = high + (rest + (errors.sum(axis=0) + u @ below + low @ centred))
    size = np.abs(centred) + np.abs(below)
    units = sum_units(m) + (2 * m + 16) * _EPS**2
    off = units * (size.T @ np.abs(u)) + (m + 8) * _EPS * (size.T @ np.abs(low))
    return value, off + 4 * _EPS * np.abs(value) + m * _SMALLEST
