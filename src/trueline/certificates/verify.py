"""The independent checker: recompute every claim of a certificate from the data.

Plain NumPy on blocks of rows. Nothing is shared with any solver, with the planner, the moments or
the design classes; only the formulas of the loss and the penalty are used. Rounding is accounted
for: a claim is accepted only if it holds for the exact real numbers that the doubles stand for.

Notation: eps is the spacing of doubles at 1; a sum of n products evaluated in any order errs by at
most n eps times the sum of magnitudes (Higham, "Accuracy and Stability of Numerical Algorithms",
2nd ed., section 3.1); results of error-free transformations err by about eps^2 instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.errors import VerificationError

__all__ = ["Check", "Verification", "coercivity", "verify"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2048
# Bounds are compared after different, equally valid roundings of themselves.
_SLACK = 1.0 + 1e-9
# Squares below the range of doubles vanish; so much is allowed for each row.
_UNDERFLOW = 1e-305


@dataclass(frozen=True)
class Check:
    """One claim: its name, what was claimed, what was found, and whether it holds."""

    name: str
    claimed: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Verification:
    """The outcome of all checks; true if every one holds."""

    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return all(check.holds for check in self.checks)

    def raise_if_false(self) -> None:
        """Raise :class:`~trueline.errors.VerificationError` naming the claims that fail."""
        failed = [check for check in self.checks if not check.holds]
        if failed:
            lines = [f"{c.name}: claimed {c.claimed}, found {c.found}" for c in failed]
            raise VerificationError("The certificate does not hold: " + "; ".join(lines) + ".")

    def __str__(self) -> str:
        rows = [("check", "claimed", "found", "")]
        rows += [(c.name, c.claimed, c.found, "holds" if c.holds else "FAILS") for c in self.checks]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [
            "  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip()
            for row in rows
        ]
        verdict = "The certificate holds." if self else "The certificate does NOT hold."
        return "\n".join([*lines, verdict])


class _Rows:
    """Data as blocks of dense float64 rows; weights and scaling applied on the way."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, certificate: Certificate) -> None:
        self.X: Any = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        if self.X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {self.X.ndim}.")
        self.n, self.d = self.X.shape
        y = np.asarray(y, dtype=np.float64)
        self.y = y.reshape(-1, 1) if y.ndim == 1 else y
        if sample_weight is None:
            self.s = np.ones(self.n)
        else:
            given = np.asarray(sample_weight, dtype=np.float64)
            self.s = np.broadcast_to(given, self.n).copy()
        # Rows of weight zero are not there, whatever they hold.
        self.given = self.n
        self.keep: NDArray[np.bool_] | slice = slice(None)
        if len(self.y) == self.n and (self.s == 0).any():
            self.keep = self.s > 0
            self.X, self.y, self.s = self.X[self.keep], self.y[self.keep], self.s[self.keep]
            self.n = len(self.s)
        witness = certificate.witness
        self.x_power = witness.get("column_exponent")
        y_power = witness.get("target_exponent")
        if y_power is not None:
            self.y = np.ldexp(self.y, np.asarray(y_power, dtype=int))
        self.weight = float(self.s.sum())

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.n, _ROWS):
            rows = slice(start, min(start + _ROWS, self.n))
            block = self.X[rows]
            dense = block.toarray() if sp.issparse(block) else block
            dense = np.asarray(dense, dtype=np.float64)
            if self.x_power is not None:
                dense = np.ldexp(dense, np.asarray(self.x_power, dtype=int))
            yield rows, dense

    def problems(self, certificate: Certificate) -> str | None:
        """What makes this data unfit for the certificate, or None."""
        d, k = certificate.coef.shape
        if (self.d, self.y.shape) != (d, (self.n, k)):
            return f"X {self.X.shape}, y {self.y.shape}"
        if not np.isfinite(self.y).all() or not np.isfinite(self.s).all() or (self.s < 0).any():
            return "y or weights not finite, or negative weights"
        if not all(np.isfinite(block).all() for _, block in self):
            return "X not finite"
        if not (np.isfinite(certificate.coef).all() and np.isfinite(certificate.intercept).all()):
            return "coefficients not finite"
        return None


def verify(certificate: Certificate, X: Any, y: Any, sample_weight: Any = None) -> Verification:
    """Check a certificate against the data it is about.

    Parameters
    ----------
    certificate : Certificate
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    verification : Verification

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import Ridge
    >>> from trueline.certificates import verify
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> print(verify(Ridge().fit(X, y).certificate_, X, y))  # doctest: +ELLIPSIS
    check ...
    The certificate holds.
    """
    rows = _Rows(X, y, sample_weight, certificate)
    trouble = rows.problems(certificate)
    d, k = certificate.coef.shape
    shape = Check("data fit the model", f"{d} columns, {k} targets", trouble or "yes", not trouble)
    if trouble:
        return Verification((shape,))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        checks = [shape, _check_objective(certificate, rows)]
        if certificate.kind in ("quadratic", "row space"):
            checks += _check_quadratic(certificate, rows)
        elif certificate.kind == "duality":
            checks += _check_duality(certificate, rows)
        elif certificate.kind == "bounded":
            checks += _check_bounded(certificate, rows)
        else:
            checks.append(Check("kind of proof", certificate.kind, "unknown", False))
    return Verification(tuple(checks))


def _check_objective(certificate: Certificate, rows: _Rows) -> Check:
    """sum_i s_i loss(y_i, z_i) + penalty(W), within both roundings."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    total = certificate.penalty.value(W)
    rounding = (rows.d + 8) * _EPS * abs(total)
    for where, block in rows:
        z, s, y = block @ W + b, rows.s[where, None], rows.y[where]
        value = s * loss.value(y, z)
        total += value.sum()
        # The score errs by (d + 2) eps times the magnitudes; the loss passes that on.
        reach = (rows.d + 2) * _EPS * (np.abs(block) @ np.abs(W) + np.abs(b))
        slope = np.abs(loss.gradient(y, z)) + reach * min(loss.curvature_bound, 1e300)
        rounding += (s * slope * reach).sum() + (_ROWS + 8) * _EPS * np.abs(value).sum()
    rounding += (rows.n / _ROWS + 8) * _EPS * abs(total)
    allowed = rounding + certificate.objective_rounding + _UNDERFLOW * rows.n
    return Check(
        "objective",
        f"{certificate.objective:.12g}",
        f"{total:.12g}",
        bool(abs(total - certificate.objective) <= allowed * _SLACK),
    )


# --- squared loss with a quadratic penalty ------------------------------------------------------


def _check_quadratic(certificate: Certificate, rows: _Rows) -> list[Check]:
    """Gap <= |M^T g|^2 / (2 nu), with M^T H M >= nu I proven again from the rows."""
    basis = np.asarray(certificate.witness["basis"], dtype=np.float64)
    nu = float(certificate.witness["coercivity"])
    curvature = np.broadcast_to(certificate.penalty.curvature, certificate.coef.shape)
    mean = _mean(rows) if certificate.fit_intercept else np.zeros(rows.d)
    centre = mean if certificate.fit_intercept else None
    found_nu = coercivity(rows, rows.s, basis, curvature.min(axis=1), centre, nu)
    suited = "quadratic" in certificate.loss.capabilities and (
        "quadratic" in certificate.penalty.capabilities
    )
    checks = [
        Check("loss and penalty are quadratic", "yes", "yes" if suited else "no", suited),
        Check("coercivity", f">= {nu:.4g}", f"{found_nu:.4g}", 0 <= nu <= found_nu * _SLACK),
    ]
    if certificate.kind == "quadratic":
        whole = _spans_everything(basis)
        checks.append(Check("directions covered", "all", "all" if whole else "some", whole))
    nonnegative = "nonnegative" in certificate.penalty.capabilities
    if nonnegative:
        least = float(certificate.coef.min(initial=0.0))
        checks.append(Check("coefficients", ">= 0", f"{least:.3g}", least >= 0))
    # A near perfect fit needs no bound: the objective cannot be negative.
    trivial = certificate.objective + certificate.objective_rounding + _UNDERFLOW * rows.n
    gap = np.inf
    for gradient in (_gradient_double, _gradient_doubled):
        g, g_error, slope, slope_error = gradient(certificate, rows, mean, curvature)
        off = np.abs(slope) + slope_error
        gap = float(0.5 * (off**2).sum() / rows.weight) + _UNDERFLOW * rows.n
        if nonnegative:
            gap += _gap_nonnegative(g, g_error, basis, nu, certificate.coef)
        else:
            gap += _gap_free(g, g_error, basis, nu)
        gap = min(gap, trivial)
        if gap <= certificate.gap * _SLACK:
            break
    checks.append(
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap * _SLACK)
    )
    return checks


def _mean(rows: _Rows) -> Array:
    total = np.zeros(rows.d)
    for where, block in rows:
        total += rows.s[where] @ block
    return total / rows.weight


def _spans_everything(basis: Array) -> bool:
    """Whether the columns of M span all of the coefficient space."""
    if basis.ndim == 1:
        return bool((basis != 0).all())
    if basis.shape[0] != basis.shape[1]:
        return False
    if (np.tril(basis, -1) == 0).all() or (np.triu(basis, 1) == 0).all():
        return bool((basis.diagonal() != 0).all())
    scaled = basis / np.linalg.norm(basis, axis=0)
    return bool(np.linalg.matrix_rank(scaled) == len(basis))


def coercivity(
    blocks: Iterable[tuple[slice, Array]],
    weights: Array,
    basis: Array,
    curvature: Array,
    mean: Array | None,
    enough: float = np.inf,
) -> float:
    """A number nu, on the safe side of rounding, with M^T (X_c^T S X_c + A) M >= nu I.

    Parameters
    ----------
    blocks : iterable of (slice, array)
        Consecutive blocks of at most 2048 dense rows.
    weights : array of shape (n,)
    basis : array of shape (d,) or (d, r)
        M, one dimension meaning a diagonal matrix.
    curvature : array of shape (d,)
        The diagonal of A.
    mean : array of shape (d,), optional
        About which X is centred; None if there is no intercept.
    enough : float, optional
        Stop early when the penalty alone proves this much.
    """
    diagonal = basis.ndim == 1
    if diagonal:
        from_penalty = float((curvature * basis**2).min(initial=np.inf))
        if from_penalty >= enough:  # the data can only add to this
            return from_penalty
    M = np.diag(basis) if diagonal else basis
    r = M.shape[1]
    d, n, total_weight = len(M), len(weights), float(weights.sum())
    gram, total = np.zeros((r, r)), np.zeros(r)
    drift = 0.0  # squared Frobenius norm of the products' rounding errors
    for where, block in blocks:
        centred = block if mean is None else block - mean
        root = np.sqrt(weights[where])[:, None]
        Z = root * (centred @ M)
        gram += Z.T @ Z
        total += (root * Z).sum(axis=0)
        reach = root * (np.abs(centred) @ np.abs(M) + _EPS * np.abs(block) @ np.abs(M))
        drift += float((reach**2).sum())
    # What the mean misses: S-weighted sums about any point exceed those about the true mean.
    if mean is not None:
        gram -= np.outer(total, total) / total_weight
    lift = np.sqrt(curvature)[:, None] * M
    gram += lift.T @ lift
    size = float(np.trace(gram))
    least = float(np.linalg.eigvalsh(gram)[0]) if r else np.inf
    least -= (min(n, _ROWS) + n / _ROWS + 4 * r + 16) * _EPS * abs(size)
    root_least = np.sqrt(max(least, 0.0)) - (d + 4) * _EPS * np.sqrt(drift)
    return max(root_least, 0.0) ** 2


def _gap_free(g: Array, error: Array, basis: Array, nu: float) -> float:
    M = np.abs(basis)
    if basis.ndim == 1:
        along = M[:, None] * (np.abs(g) + error)
    else:
        own = (len(M) + 2) * _EPS
        along = np.abs(basis.T @ g) + M.T @ (error + own * np.abs(g))
    square = float((along**2).sum())
    return 0.0 if square == 0 else square / (2 * nu) if nu > 0 else np.inf


def _gap_nonnegative(g: Array, error: Array, basis: Array, nu: float, W: Array) -> float:
    """sum_j max over e_j >= -w_j of -g_j e_j - h_j e_j^2 / 2, for the worst g within its error."""
    h = np.broadcast_to((nu / basis**2)[:, None], g.shape)
    total = 0.0
    for j, t in np.ndindex(*g.shape):
        worst = 0.0
        for slope in (g[j, t] - error[j, t], g[j, t] + error[j, t]):
            step = float(-slope / h[j, t] if h[j, t] > 0 else -np.sign(slope) * np.inf)
            step = max(step, -float(W[j, t]))
            bend = 0.5 * float(h[j, t]) * step**2
            gain = np.inf if np.isinf(step) else -float(slope) * step - bend
            worst = max(worst, gain if slope != 0 else 0.0)
        total += worst
    return total


def _gradient_double(
    certificate: Certificate, rows: _Rows, mean: Array, curvature: Array
) -> tuple[Array, Array, Array, Array]:
    """Gradient in double precision: X_c^T S (z - y) + A W, the slope in b, and error bounds."""
    W, b = certificate.coef, certificate.intercept
    g, size = np.zeros_like(W), np.zeros_like(W)
    slope, slope_size = np.zeros_like(b), np.zeros_like(b)
    for where, block in rows:
        s = rows.s[where, None]
        z = block @ W + b
        r = s * (z - rows.y[where])
        reach = s * (np.abs(block) @ np.abs(W) + np.abs(b) + np.abs(rows.y[where]))
        centred = block - mean
        magnitude = (rows.d + 4) * _EPS * reach + (min(rows.n, _ROWS) + 4) * _EPS * np.abs(r)
        g += centred.T @ r
        size += (np.abs(centred) + 2 * _EPS * np.abs(mean)).T @ magnitude
        slope += r.sum(axis=0)
        slope_size += magnitude.sum(axis=0)
    blocks = rows.n / _ROWS + 4
    g += curvature * W
    size += 4 * _EPS * np.abs(curvature * W) + blocks * _EPS * size
    if not certificate.fit_intercept:
        return g, size, np.zeros_like(b), np.zeros_like(b)
    # The mean itself is rounded: its error multiplies the sum of residuals.
    size = size + _mean_error(rows, mean)[:, None] * (np.abs(slope) + slope_size)
    return g, size, slope, slope_size * (1 + blocks * _EPS)


def _mean_error(rows: _Rows, mean: Array) -> Array:
    largest = np.zeros(rows.d)
    for _, block in rows:
        np.maximum(largest, np.abs(block).max(axis=0, initial=0.0), out=largest)
    return (min(rows.n, _ROWS) + rows.n / _ROWS + 4) * _EPS * largest


def _gradient_doubled(
    certificate: Certificate, rows: _Rows, mean: Array, curvature: Array
) -> tuple[Array, Array, Array, Array]:
    """The same in twice the digits, by error-free transformations, one target at a time."""
    W, b = certificate.coef, certificate.intercept
    g, g_error = np.zeros_like(W), np.zeros_like(W)
    slope, slope_error = np.zeros_like(b), np.zeros_like(b)
    for t in range(W.shape[1]):
        parts: list[tuple[Array, Array]] = []
        sums: list[tuple[Array, Array]] = []
        size, total = np.zeros(rows.d), 0.0
        for where, block in rows:
            terms, errors = _exact_products(block.T, W[:, t, None])
            terms = np.vstack([terms, np.full((1, len(block)), b[t]), -rows.y[None, where, t]])
            hi, lo = _exact_sum(terms)
            lo = lo + errors.sum(axis=0)
            s = rows.s[where]
            weighted, rest = _exact_products(hi, s)
            rest = rest + lo * s
            products, slack = _exact_products(block, weighted[:, None])
            high, low = _exact_sum(products)
            parts.append((high, low + slack.sum(axis=0) + block.T @ rest))
            high, low = _exact_sum(weighted)
            sums.append((high, low + rest.sum()))
            reach = s * (np.abs(block) @ np.abs(W[:, t]) + abs(b[t]) + np.abs(rows.y[where, t]))
            size += np.abs(block).T @ reach
            total += float(reach.sum())
        high, low = _exact_sum(np.array([part[0] for part in parts]))
        low = low + np.sum([part[1] for part in parts], axis=0)
        slope_high, slope_low = _exact_sum(np.array([part[0] for part in sums]))
        slope_t = float(slope_high + (slope_low + sum(part[1] for part in sums)))
        bend, bend_low = _exact_products(curvature[:, t], W[:, t])
        gradient, more = _exact_sum(np.array([high, bend]))
        g[:, t] = gradient + (more + low + bend_low)
        units = 16 * (rows.n + rows.d) * _EPS**2
        g_error[:, t] = units * size + 2 * _EPS * np.abs(g[:, t])
        if certificate.fit_intercept:
            slope[t] = slope_t
            slope_error[t] = units * total + 2 * _EPS * abs(slope_t)
            off = abs(slope_t) + slope_error[t]
            g_error[:, t] += (_mean_error(rows, mean) + 2 * _EPS * np.abs(mean)) * off
            g[:, t] -= mean * slope_t
    return g, g_error, slope, slope_error


def _exact_products(a: Array, b: Array) -> tuple[Array, Array]:
    """a * b = p + e, exactly (Dekker 1971)."""
    p = a * b
    t = 134217729.0 * a
    a1 = t - (t - a)
    a2 = a - a1
    t = 134217729.0 * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _exact_sum(terms: Array) -> tuple[Array, Array]:
    """Running sum over the first axis, with the sum of the rounding errors (Ogita et al. 2005)."""
    total = np.zeros(terms.shape[1:])
    error = np.zeros(terms.shape[1:])
    for term in terms:
        new = total + term
        part = new - total
        error = error + ((total - (new - part)) + (term - part))
        total = new
    return total, error


# --- any convex loss ----------------------------------------------------------------------------


def _check_duality(certificate: Certificate, rows: _Rows) -> list[Check]:
    """Gap <= P - D(u), for the dual point u of the witness."""
    loss, penalty = certificate.loss, certificate.penalty
    u = np.asarray(certificate.witness["dual"], dtype=np.float64)
    radius = np.asarray(certificate.witness["radius"], dtype=np.float64)
    k = certificate.coef.shape[1]
    u = u[rows.keep] if u.ndim == 2 and len(u) == rows.given else u
    if u.shape != rows.y.shape or radius.shape != (k,) or not (radius >= 0).all():
        return [Check("dual point", f"shape {rows.y.shape}", f"shape {u.shape}", False)]
    weighted = rows.s[:, None] * u
    V, size = np.zeros_like(certificate.coef), np.zeros_like(certificate.coef)
    for where, block in rows:
        V -= block.T @ weighted[where]
        size += np.abs(block).T @ np.abs(weighted[where])
    error = (min(rows.n, _ROWS) + rows.n / _ROWS + 4) * _EPS * size
    # Shrink until even the worst rounding of V is inside the domain of p*. A penalty for
    # nonnegative coefficients looks at the positive side alone: near zero, V goes there.
    outer = np.where(V > -error, np.abs(V) + error, V - error)
    shrink = penalty.dual_scale(outer) * (1 - 8 * _EPS)
    conjugate = rows.s[:, None] * loss.conjugate(rows.y, u * shrink)
    lower = -conjugate.sum(axis=0) - penalty.conjugate_per_target(outer * shrink)
    units = (np.log2(rows.n + 2) + 16) * _EPS
    rounding = units * (np.abs(conjugate).sum(axis=0) + np.abs(lower))
    if certificate.fit_intercept:
        imbalance = np.abs(weighted.sum(axis=0)) + units * np.abs(weighted).sum(axis=0)
        rounding = rounding + imbalance * radius
    bound = float((lower - rounding).sum())
    gap = certificate.objective + certificate.objective_rounding - bound + _UNDERFLOW * rows.n
    inside = bool(np.isfinite(bound))
    return [
        Check("dual point is feasible", "yes", "yes" if inside else "no", inside),
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap * _SLACK),
    ]


def _check_bounded(certificate: Certificate, rows: _Rows) -> list[Check]:
    """Gap <= sum_j |g_j| radius_j, by convexity."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    radius = np.asarray(certificate.witness["radius"], dtype=np.float64)
    reach_b = np.asarray(certificate.witness["intercept_radius"], dtype=np.float64)
    if radius.shape != W.shape or reach_b.shape != b.shape or (radius < 0).any():
        return [Check("radius", f"shape {W.shape}", f"shape {radius.shape}", False)]
    g, size = certificate.penalty.gradient(W), np.zeros_like(W)
    slope, slope_size = np.zeros_like(b), np.zeros_like(b)
    terms = min(rows.n, _ROWS) + rows.n / _ROWS + 4
    for where, block in rows:
        z, s = block @ W + b, rows.s[where, None]
        u = s * loss.gradient(rows.y[where], z)
        reach = s * (np.abs(block) @ np.abs(W) + np.abs(b))
        bend = min(loss.curvature_bound, 1e300)
        error = (rows.d + 4) * _EPS * reach * bend + terms * _EPS * np.abs(u)
        g = g + block.T @ u
        size += np.abs(block).T @ error
        slope += u.sum(axis=0)
        slope_size += error.sum(axis=0)
    checks = []
    if "nonnegative" in certificate.penalty.capabilities:
        least = float(W.min(initial=0.0))
        checks.append(Check("coefficients", ">= 0", f"{least:.3g}", least >= 0))
        # Down to zero where the slope is positive, up to the radius where it is negative.
        gain = np.maximum((g + size) * W, (size - g) * radius)
        gap = float(np.maximum(gain, 0.0).sum())
    else:
        gap = float(((np.abs(g) + size) * radius).sum())
    if certificate.fit_intercept:
        gap += float(((np.abs(slope) + slope_size) * reach_b).sum())
    return [
        *checks,
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap * _SLACK),
    ]
