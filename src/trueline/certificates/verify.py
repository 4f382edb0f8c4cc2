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

from trueline.certificates import concomitant_check, curvature_check, maximum_check, search
from trueline.certificates.base import Certificate
from trueline.certificates.doubled import (
    Doubled,
    evaluate_doubled,
    mean_doubled,
    objective_doubled,
)
from trueline.errors import VerificationError
from trueline.wording import counted

__all__ = ["Check", "Verification", "coercivity", "verify"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2048
_FEW_ROWS = 64
# Squares below the range of doubles vanish; so much is allowed for each row.
_UNDERFLOW = 1e-305
# Directions of more effect than this on the (equilibrated) design are not rounding.
_LEFT_OUT = 1e-3


# What each kind of proof must bring.
_WITNESS = {
    "quadratic": ("basis", "coercivity"),
    "row space": ("basis", "coercivity"),
    "fenchel": (),
    "duality": ("dual", "radius"),
    "ordered duality": ("dual", "radius", "order", "slack"),
    "bounded": ("radius", "intercept_radius"),
    "curvature": curvature_check.WITNESS,
    "concomitant": concomitant_check.WITNESS,
    "search": search.WITNESS,
    "conditioned search": search.WITNESS,
    "maximum error": maximum_check.WITNESS,
}


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
        self.row_terms = 0
        y = np.asarray(y, dtype=np.float64)
        self.y = y.reshape(-1, 1) if y.ndim == 1 else y
        if sample_weight is None:
            self.s = np.ones(self.n)
        else:
            given = np.asarray(sample_weight, dtype=np.float64)
            self.s = np.full(self.n, given) if given.ndim == 0 else given.copy()
        # Rows of weight zero are not there, whatever they hold.
        self.given = self.n
        self.keep: NDArray[np.bool_] | slice = slice(None)
        if len(self.y) == self.n and self.s.shape == (self.n,) and (self.s == 0).any():
            self.keep = self.s > 0
            self.X, self.y, self.s = self.X[self.keep], self.y[self.keep], self.s[self.keep]
            self.n = len(self.s)
        witness = certificate.witness
        self.x_power = witness.get("column_exponent")
        y_power = witness.get("target_exponent")
        if y_power is not None:
            self.y = np.ldexp(self.y, np.asarray(y_power, dtype=int))
        self.weight = float(self.s.sum())
        self._mean: tuple[Array, Array, Array] | None = None
        self._doubled: Doubled | None = None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        for start in range(0, self.n, _ROWS):
            rows = slice(start, min(start + _ROWS, self.n))
            block = self.X[rows]
            dense = block.toarray() if sp.issparse(block) else block
            dense = np.asarray(dense, dtype=np.float64)
            if self.x_power is not None:
                dense = np.ldexp(dense, np.asarray(self.x_power, dtype=int))
            yield rows, dense

    def mean(self) -> tuple[Array, Array, Array]:
        """Means of the columns as doubled numbers, and a bound on their error."""
        if self._mean is None:
            self._mean = mean_doubled(self)
        return self._mean

    def doubled(self, certificate: Certificate, curvature: Array) -> Doubled:
        """Everything about a quadratic problem, in twice the digits."""
        if self._doubled is None:
            self._doubled = evaluate_doubled(certificate, self, curvature)
        return self._doubled

    def objective_doubled(self, certificate: Certificate) -> tuple[float, float]:
        """The objective in twice the digits, and a bound on its error."""
        if "quadratic" in certificate.loss.capabilities & certificate.penalty.capabilities:
            curvature = np.broadcast_to(certificate.penalty.curvature, certificate.coef.shape)
            found = self.doubled(certificate, curvature)
            return found.objective, found.objective_rounding
        return objective_doubled(certificate, self)

    def problems(self, certificate: Certificate) -> str | None:
        """What makes this data unfit for the certificate, or None."""
        d, k = certificate.coef.shape
        if (self.d, self.y.shape, self.s.shape) != (d, (self.n, k), (self.n,)):
            return f"X {self.X.shape}, y {self.y.shape}, weights {self.s.shape}"
        if not np.isfinite(self.y).all() or not np.isfinite(self.s).all() or (self.s < 0).any():
            return "y or weights not finite, or negative weights"
        for _, block in self:
            if not np.isfinite(block).all():
                return "X not finite"
            # A zero adds nothing to a sum, not even rounding: count what is there in a row.
            terms = int(np.count_nonzero(block, axis=1).max(initial=0))
            self.row_terms = max(self.row_terms, terms)
        if not (np.isfinite(certificate.coef).all() and np.isfinite(certificate.intercept).all()):
            return "coefficients not finite"
        if not certificate.fit_intercept and certificate.intercept.any():
            return "an intercept where there is none"
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
    shape = Check(
        "data fit the model",
        f"{counted(d, 'column')}, {counted(k, 'target')}",
        trouble or "yes",
        not trouble,
    )
    if trouble:
        return Verification((shape,))
    lacks = [name for name in _WITNESS.get(certificate.kind, ()) if name not in certificate.witness]
    if lacks:
        return Verification((shape, Check("witness", "complete", f"lacks {lacks}", False)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # All other proofs are about sums over the rows.
        if certificate.kind == "maximum error" or "maximum" in certificate.loss.capabilities:
            return Verification((shape, *maximum_check.check_maximum(certificate, rows)))
        if "search" in certificate.kind:
            return Verification((shape, *search.check_search(certificate, rows)))
        if certificate.kind == "concomitant":
            return Verification((shape, *concomitant_check.check_concomitant(certificate, rows)))
        checks = [shape, _check_objective(certificate, rows)]
        if certificate.kind in ("quadratic", "row space"):
            checks += _check_quadratic(certificate, rows)
        elif certificate.kind == "fenchel":
            checks += _check_fenchel(certificate, rows)
        elif certificate.kind == "duality":
            checks += _check_duality(certificate, rows)
        elif certificate.kind == "ordered duality":
            checks += _check_ordered(certificate, rows)
        elif certificate.kind == "curvature":
            checks += curvature_check.check_curvature(certificate, rows)
        elif certificate.kind == "bounded":
            checks += _check_bounded(certificate, rows)
        else:
            checks.append(Check("kind of proof", certificate.kind, "unknown", False))
    return Verification(tuple(checks))


def _check_objective(certificate: Certificate, rows: _Rows) -> Check:
    """sum_i s_i loss(y_i, z_i) + penalty(W) lies within the claimed rounding of the claim."""
    allowed = certificate.objective_rounding
    total, rounding = _objective(certificate, rows)
    holds = abs(total - certificate.objective) + rounding <= allowed
    if not holds and np.isfinite(allowed):
        total, rounding = rows.objective_doubled(certificate)
        holds = abs(total - certificate.objective) + rounding <= allowed
    return Check(
        "objective",
        f"{certificate.objective:.12g} within {allowed:.2g}",
        f"{total:.12g} within {rounding:.2g}",
        bool(holds),
    )


def _objective(certificate: Certificate, rows: _Rows) -> tuple[float, float]:
    """The objective in double precision, and a bound on its error."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    total = certificate.penalty.value(W)
    rounding = (rows.d + 8) * _EPS * abs(total)
    for where, block in rows:
        z, s, y = block @ W + b, rows.s[where, None], rows.y[where]
        value = s * loss.value(y, z)
        total += float(value.sum())
        # The score errs by the terms of a row + 2, times eps and the magnitudes; the loss passes
        # that on.
        reach = (rows.row_terms + 2) * _EPS * (np.abs(block) @ np.abs(W) + np.abs(b))
        slope = np.abs(loss.gradient(y, z)) + reach * min(loss.curvature_bound, 1e300)
        slope = np.minimum(slope, loss.slope_bound)
        rounding += float((s * slope * reach).sum())
        rounding += (_ROWS + 8) * _EPS * float(np.abs(value).sum())
    rounding += (rows.n / _ROWS + 8) * _EPS * abs(total)
    return total, rounding + _UNDERFLOW * rows.n


# --- squared loss with a quadratic penalty ------------------------------------------------------


def _check_quadratic(certificate: Certificate, rows: _Rows) -> list[Check]:
    """Gap <= |M^T g|^2 / (2 nu), with M^T H M >= nu I proven again from the rows."""
    suited = "quadratic" in certificate.loss.capabilities & certificate.penalty.capabilities
    nonnegative = "nonnegative" in certificate.penalty.capabilities
    basis = np.asarray(certificate.witness["basis"], dtype=np.float64)
    checks = [Check("loss and penalty are quadratic", "yes", "yes" if suited else "no", suited)]
    if nonnegative:
        least = float(certificate.coef.min(initial=0.0))
        checks.append(Check("coefficients", ">= 0", f"{least:.3g}", least >= 0))
    right_shape = basis.ndim in (1, 2) and len(basis) == rows.d and bool(np.isfinite(basis).all())
    if not suited or not right_shape or (nonnegative and basis.ndim == 2):
        return [*checks, Check("basis", f"{rows.d} rows", f"shape {basis.shape}", False)]
    # A near perfect fit needs no bound: the objective is not negative, and was checked.
    nothing_below = certificate.objective + certificate.objective_rounding
    if nothing_below <= certificate.gap:
        found = f"{nothing_below:.4g}, as no objective is below zero"
        return [*checks, Check("gap", f"<= {certificate.gap:.4g}", found, True)]
    curvature = np.broadcast_to(certificate.penalty.curvature, certificate.coef.shape)
    mean = rows.mean()[0] if certificate.fit_intercept else np.zeros(rows.d)
    centre = mean if certificate.fit_intercept else None
    nu = float(certificate.witness["coercivity"])
    found_nu = coercivity(rows, rows.s, basis, curvature.min(axis=1), centre, nu)
    checks.append(Check("coercivity", f">= {nu:.4g}", f"{found_nu:.4g}", 0 < nu <= found_nu))
    if certificate.kind == "quadratic":
        # M^T H M > 0 leaves no column of M dependent on others: d of them span everything.
        whole = found_nu > 0 and (basis.ndim == 1 or basis.shape[1] == rows.d)
        checks.append(Check("directions covered", "all", "all" if whole else "some", whole))
    else:
        allowed = float(certificate.witness.get("left_out", 0.0))
        effect = _left_out(rows, certificate.fit_intercept, basis, curvature.min(axis=1))
        found = f"effect {effect:.2g} of all"
        holds = effect <= min(allowed, _LEFT_OUT)
        checks.append(Check("directions left out", f"<= {allowed:.2g}", found, holds))
    gap = np.inf
    for gradient in (_gradient_double, _gradient_doubled):
        g, g_error, slope, slope_error = gradient(certificate, rows, curvature)
        off = np.abs(slope) + slope_error
        gap = float(0.5 * (off**2).sum() / rows.weight) + _UNDERFLOW * rows.n
        if nonnegative:
            gap += _gap_nonnegative(g, g_error, basis, nu, certificate.coef)
        else:
            gap += _gap_free(g, g_error, basis, nu)
        gap *= 1 + 1e-12  # the rounding of this bound itself
        if gap <= certificate.gap:
            break
    checks.append(Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap))
    return checks


def _left_out(rows: _Rows, is_centred: bool, basis: Array, curvature: Array) -> float:
    """How much of the design, columns scaled to equal norm, the span of M does not reproduce.

    With V = X_c T and Z = X_c M: the norm of V - Z C over that of V, for the C of least squares.
    Any C gives an upper bound; the second round removes the rounding of the first.
    """
    mean, mean_low = rows.mean()[:2] if is_centred else (np.zeros(rows.d), np.zeros(rows.d))
    squares = np.zeros(rows.d)
    for where, block in rows:
        squares += rows.s[where] @ ((block - mean) - mean_low) ** 2
    # What is left of a constant column is the rounding of its mean.
    least = (4 * _EPS**2 * rows.n * mean) ** 2 * rows.weight
    squares = np.where(squares <= least, 0.0, squares) + curvature
    scale = np.divide(1.0, np.sqrt(squares), out=np.zeros(rows.d), where=squares > 0)
    M = np.diag(basis) if basis.ndim == 1 else basis
    lift = np.diag(np.sqrt(curvature)) if curvature.any() else np.zeros((0, rows.d))

    def pairs() -> Iterator[tuple[Array, Array]]:
        for where, block in rows:
            centred = np.sqrt(rows.s[where])[:, None] * ((block - mean) - mean_low)
            yield centred * scale, centred @ M
        yield lift * scale, lift @ M

    C = np.zeros((M.shape[1], rows.d))
    missed = 0.0
    for _ in range(3):
        gram, cross, missed = np.zeros((M.shape[1],) * 2), np.zeros_like(C), 0.0
        for V, Z in pairs():
            rest = V - Z @ C
            gram += Z.T @ Z
            cross += Z.T @ rest
            missed += float((rest**2).sum())
        C = C + np.linalg.lstsq(gram, cross, rcond=None)[0]
    alive = int(np.count_nonzero(scale))
    return min(1.0, float(np.sqrt(missed / alive))) if alive else 0.0


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
        reach = root * (np.abs(centred) @ np.abs(M))
        drift += float((reach**2).sum())
    lift = np.sqrt(curvature)[:, None] * M
    gram += lift.T @ lift
    size = float(np.trace(gram))
    # S-weighted sums about any point exceed those about the true mean by what the point misses.
    if mean is not None:
        gram -= np.outer(total, total) / total_weight
    least = float(np.linalg.eigvalsh(gram)[0]) if r else np.inf
    least -= 2 * (min(n, _ROWS) + n / _ROWS + 4 * r + 16) * _EPS * size
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
    h = (nu / basis**2)[:, None]
    up = np.maximum(error - g, 0.0)
    rising = np.where(up > 0, 0.5 * up * (up / h), 0.0)
    down = np.maximum(error + g, 0.0)
    step = np.where(down > 0, np.minimum(W, down / h), 0.0)
    falling = down * step - 0.5 * h * step * step
    return float(np.maximum(rising, falling).sum())


def _gradient_double(
    certificate: Certificate, rows: _Rows, curvature: Array
) -> tuple[Array, Array, Array, Array]:
    """Gradient in double precision: X_c^T S (z - y) + A W, the slope in b, and error bounds."""
    W, b = certificate.coef, certificate.intercept
    g, size = np.zeros_like(W), np.zeros_like(W)
    slope, slope_size = np.zeros_like(b), np.zeros_like(b)
    mean = rows.mean()[0] if certificate.fit_intercept else np.zeros(rows.d)
    for where, block in rows:
        s = rows.s[where, None]
        z = block @ W + b
        r = s * (z - rows.y[where])
        reach = s * (np.abs(block) @ np.abs(W) + np.abs(b) + np.abs(rows.y[where]))
        centred = block - mean
        magnitude = (rows.d + 4) * _EPS * reach + (min(rows.n, _ROWS) + 4) * _EPS * np.abs(r)
        g += centred.T @ r
        size += np.abs(centred).T @ magnitude
        slope += r.sum(axis=0)
        slope_size += magnitude.sum(axis=0)
    blocks = rows.n / _ROWS + 4
    g += curvature * W
    size += 4 * _EPS * np.abs(curvature * W) + blocks * _EPS * (size + np.abs(g))
    if not certificate.fit_intercept:
        return g, size, np.zeros_like(b), np.zeros_like(b)
    slope_size = slope_size + blocks * _EPS * (slope_size + np.abs(slope))
    # The mean is rounded to double: that error multiplies the sum of residuals.
    off = 2 * _EPS * np.abs(mean) + rows.mean()[2]
    size = size + off[:, None] * (np.abs(slope) + slope_size)
    return g, size, slope, slope_size


def _gradient_doubled(
    certificate: Certificate, rows: _Rows, curvature: Array
) -> tuple[Array, Array, Array, Array]:
    """The same in twice the digits."""
    found = rows.doubled(certificate, curvature)
    return found.gradient, found.gradient_rounding, found.slope, found.slope_rounding


# --- squared loss with a penalty made of coordinates --------------------------------------------


def _check_fenchel(certificate: Certificate, rows: _Rows) -> list[Check]:
    """Gap <= (1 - t)^2 loss + e^2 / (2 S) + sum_j p(w_j) + p*(t q_j) - t q_j w_j.

    The residual of the coefficients is the dual point; t is chosen here.
    """
    penalty, W = certificate.penalty, certificate.coef
    suited = "quadratic" in certificate.loss.capabilities and "coordinates" in penalty.capabilities
    around = bool(np.all(np.asarray(penalty.lower) <= 0) and np.all(np.asarray(penalty.upper) >= 0))
    reach = np.asarray(certificate.witness.get("coefficient_radius", np.full(W.shape, np.inf)))
    checks = [
        Check(
            "squared loss, coordinates",
            "yes",
            "yes" if suited and around else "no",
            suited and around,
        )
    ]
    if not (suited and around) or reach.shape != W.shape or not (reach >= 0).all():
        return [*checks, Check("coefficient radius", f"shape {W.shape}", f"{reach.shape}", False)]
    free = np.isfinite(reach)
    value = penalty.value_per_target(W)
    loss = certificate.objective + certificate.objective_rounding - float(value.sum())
    found = np.inf
    for gradient in (_gradient_double, _gradient_doubled):
        g, error, slope, slope_error = gradient(certificate, rows, np.zeros_like(W))
        off = np.abs(slope) + slope_error if certificate.fit_intercept else np.zeros(W.shape[1])
        found = float(np.sum(off**2)) / (2 * rows.weight)
        ends = [np.where(free, 0.0, end) for end in penalty.worst_ends(-g - error, error - g)]
        t = np.min([penalty.dual_scale(end) for end in ends], axis=0) * (1 - 8 * _EPS)
        conjugate = np.sum([penalty.conjugate_per_target(t * end) for end in ends], axis=0)
        product = np.where(free, 0.0, -g * W)
        spread = np.sum(error * np.abs(W), axis=0)
        beyond = np.where(free, np.abs(g) + error, 0.0) * (np.where(free, reach, 0.0) + np.abs(W))
        size = value + conjugate + np.sum(np.abs(product), axis=0) + spread
        terms = value + conjugate - t * np.sum(product, axis=0) + t * spread
        found += float(np.sum(terms + np.sum(beyond, axis=0) + (rows.d + 12) * _EPS * size))
        found += float(np.max((1 - t) ** 2)) * loss
        found = found * (1 + 1e-12) + _UNDERFLOW * rows.n
        if found <= certificate.gap:
            break
    checks.append(
        Check("gap", f"<= {certificate.gap:.4g}", f"{found:.4g}", found <= certificate.gap)
    )
    return checks


# --- any convex loss ----------------------------------------------------------------------------


def _check_duality(
    certificate: Certificate, rows: _Rows, push: Array | None = None, push_size: Array | float = 0.0
) -> list[Check]:
    """Gap <= P - D(u), for the dual point u of the witness.

    ``push`` is what multipliers of constraints add to s u, and ``push_size`` the sum of their
    magnitudes.
    """
    loss, penalty = certificate.loss, certificate.penalty
    u = np.asarray(certificate.witness["dual"], dtype=np.float64)
    radius = np.asarray(certificate.witness["radius"], dtype=np.float64)
    k = certificate.coef.shape[1]
    u = u[rows.keep] if u.ndim == 2 and len(u) == rows.given else u
    if u.shape != rows.y.shape or radius.shape != (k,) or not (radius >= 0).all():
        return [Check("dual point", f"shape {rows.y.shape}", f"shape {u.shape}", False)]
    # With an intercept, b + x.w = (b + centre.w) + (x - centre).w for any centre: the radius is
    # that of the first term.
    centre = np.asarray(certificate.witness.get("centre", np.zeros(rows.d)), dtype=np.float64)
    if centre.shape != (rows.d,) or not (certificate.fit_intercept or not centre.any()):
        return [Check("centre", f"shape ({rows.d},)", f"shape {centre.shape}", False)]
    own = rows.s[:, None] * u
    weighted = own if push is None else own + push
    magnitude = np.abs(own) + push_size
    parts, size = [], np.zeros_like(certificate.coef)
    for where, block in rows:
        block = block - centre if centre.any() else block
        # Few rows at a time, and the sums of those pairwise: less to lose than in one long sum.
        for start in range(0, len(block), _FEW_ROWS):
            few = slice(start, start + _FEW_ROWS)
            parts.append(block[few].T @ weighted[where][few])
        size += np.abs(block).T @ magnitude[where]
    V = -np.ascontiguousarray(np.moveaxis(np.stack(parts), 0, -1)).sum(axis=-1)
    error = (min(rows.n, _FEW_ROWS) + np.log2(rows.n / _FEW_ROWS + 2) + 12) * _EPS * size
    # Coefficients within a stated reach need no penalty: abs(w_j) <= R_j costs abs(V_j) R_j,
    # whatever nonnegative penalty there may be.
    reach = np.asarray(certificate.witness.get("coefficient_radius", np.full(V.shape, np.inf)))
    if reach.shape != V.shape or not (reach >= 0).all():
        return [Check("coefficient radius", f"shape {V.shape}", f"shape {reach.shape}", False)]
    free = np.isfinite(reach)
    # Shrink until even the worst rounding of V is inside the domain of p*.
    ends = [np.where(free, 0.0, end) for end in penalty.worst_ends(V - error, V + error)]
    shrink = np.min([penalty.dual_scale(end) for end in ends], axis=0) * (1 - 8 * _EPS)
    if push is not None:  # multipliers that targets share allow for one factor only
        shrink = np.full_like(shrink, shrink.min())
    conjugate = rows.s[:, None] * loss.conjugate(rows.y, u * shrink)
    beyond = np.sum([penalty.conjugate_per_target(end * shrink) for end in ends], axis=0)
    worst = np.where(free, np.abs(V) + error, 0.0) * np.where(free, reach, 0.0)
    beyond = beyond + np.sum(worst * shrink, axis=0)
    lower = -_sums(conjugate) - beyond
    units = (np.log2(rows.n + 2) + 32) * _EPS
    # The term u y of a conjugate may cancel against the rest of it.
    size = _sums(np.abs(conjugate) + 2 * np.abs(own * rows.y))
    rounding = units * (size + np.abs(beyond) + np.abs(lower))
    if certificate.fit_intercept:
        imbalance = np.abs(_sums(weighted)) + units * _sums(magnitude)
        rounding = rounding + imbalance * radius
    bound = float((lower - rounding).sum())
    gap = certificate.objective + certificate.objective_rounding - bound + _UNDERFLOW * rows.n
    inside = bool(np.isfinite(bound))
    return [
        Check("dual point is feasible", "yes", "yes" if inside else "no", inside),
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap),
    ]


def _check_ordered(certificate: Certificate, rows: _Rows) -> list[Check]:
    """The scores are in the order of the quantiles, and multipliers of that order prove the gap.

    With m >= 0 the multipliers of z_j <= z_next, sum m (z_j - z_next) <= 0 for all that is allowed:
    it may be added to the objective before the minimum is bounded from below.
    """
    W, b = certificate.coef, certificate.intercept
    n, k = rows.y.shape
    quantiles = np.atleast_1d(np.asarray(getattr(certificate.loss, "q", np.nan), dtype=float))
    if quantiles.shape != (k,) or not np.isfinite(quantiles).all():
        return [Check("quantiles", f"{k}", f"shape {quantiles.shape}", False)]
    ranks = np.argsort(quantiles, kind="stable")
    order = np.asarray(certificate.witness["order"], dtype=np.float64)
    order = order[rows.keep] if order.ndim == 2 and len(order) == rows.given else order
    if order.shape != (n, k - 1) or not (np.isfinite(order).all() and (order >= 0).all()):
        found = f"shape {order.shape}" if order.shape != (n, k - 1) else "negative or not finite"
        return [Check("multipliers of the order", f"shape {(n, k - 1)}, >= 0", found, False)]
    slack = float(certificate.witness["slack"])
    crossing = 0.0
    for _, block in rows:
        z = (block @ W + b)[:, ranks]
        reach = ((rows.row_terms + 2) * _EPS * (np.abs(block) @ np.abs(W) + np.abs(b)))[:, ranks]
        apart = z[:, :-1] - z[:, 1:] + reach[:, :-1] + reach[:, 1:]
        crossing = max(crossing, float(apart.max(initial=0.0)))
    push, push_size = np.zeros((n, k)), np.zeros((n, k))
    push[:, ranks[:-1]] += order
    push[:, ranks[1:]] -= order
    push_size[:, ranks[:-1]] += order
    push_size[:, ranks[1:]] += order
    kept = Check("order", f"kept up to {slack:.3g}", f"{crossing:.3g}", crossing <= slack)
    return [kept, *_check_duality(certificate, rows, push, push_size)]


def _sums(values: Array) -> Array:
    """Sums over the rows, pairwise: NumPy does so along contiguous memory only."""
    return np.ascontiguousarray(values.T).sum(axis=1)


def _check_bounded(certificate: Certificate, rows: _Rows) -> list[Check]:
    """Gap <= sum_j |g_j| radius_j, by convexity."""
    loss, W, b = certificate.loss, certificate.coef, certificate.intercept
    radius = np.asarray(certificate.witness["radius"], dtype=np.float64)
    reach_b = np.asarray(certificate.witness["intercept_radius"], dtype=np.float64)
    fitting = radius.shape == W.shape and reach_b.shape == b.shape
    if not fitting or not (radius >= 0).all() or not (reach_b >= 0).all():
        return [Check("radius", f"shape {W.shape}, >= 0", f"shape {radius.shape}", False)]
    g = certificate.penalty.gradient(W)
    size = 4 * _EPS * np.abs(g)
    slope, slope_size = np.zeros_like(b), np.zeros_like(b)
    terms = min(rows.n, _ROWS) + rows.n / _ROWS + 4
    for where, block in rows:
        z, s = block @ W + b, rows.s[where, None]
        u = s * loss.gradient(rows.y[where], z)
        reach = s * (np.abs(block) @ np.abs(W) + np.abs(b))
        bend = min(loss.curvature_bound, 1e300)
        error = (rows.row_terms + 4) * _EPS * reach * bend + terms * _EPS * np.abs(u)
        g = g + block.T @ u
        size += np.abs(block).T @ error
        slope += u.sum(axis=0)
        slope_size += error.sum(axis=0)
    checks = []
    if "nonnegative" in certificate.penalty.capabilities:
        least = float(W.min(initial=0.0))
        checks.append(Check("coefficients", ">= 0", f"{least:.3g}", least >= 0))
        # Down to zero where the slope is positive, up to the radius where it is negative.
        gain = np.maximum((g + size) * np.minimum(W, radius), (size - g) * radius)
        gap = float(np.maximum(gain, 0.0).sum())
    else:
        gap = float(((np.abs(g) + size) * radius).sum())
    if certificate.fit_intercept:
        gap += float(((np.abs(slope) + slope_size) * reach_b).sum())
    return [
        *checks,
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", gap <= certificate.gap),
    ]
