r"""Proof by the tangent of the losses, for losses of margins: formulas, and their checker.

The losses are not negative and p(w) = sum_j (l_j abs(w_j) + a_j/2 w_j^2) with l_j + a_j > 0. Every v
with P(v) <= P = P(w) has p(v) <= P, and with g the gradient of the losses at w, h that in c,

    P(w, c) - P(v, c')  <=  p(w) + g.w - (g.v + p(v)) + h.(c - c')

by convexity. Scores are written (x - m).v + c about any centre m of the columns. What remains is to
bound the right side over all that is left for v and c'. With e_j = max(0, abs(g_j) - l_j),

    -(g.v + p(v))  <=  sum_j e_j^2 / (2 a_j)        and also        <=  P max_j e_j / l_j.

A class of total weight S_k has, by Jensen's inequality, a mean score whose margin is at least
phi^-1(P / S_k), phi the loss as a function of the margin. With m_k the mean of its rows and
M_k = sup { abs(m_k.v) : p(v) <= P }, at most P max_j abs(m_kj) / l_j or sqrt(2 P sum_j m_kj^2/a_j),

    two classes    phi^-1(P / S_+) - M_+  <=  c'  <=  M_- - phi^-1(P / S_-)
    softmax        c'_l - c'_k  <=  M_k - phi^-1(P / S_k)    for all l,     where sum_k h_k = 0,

for the softmax with the sup over abs(m_k.(v_k - v_l)), sqrt(2) times the second bound. Everything is
therefore about all coefficients whatsoever, and the coefficients themselves are the witness.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, ROWS, UNDERFLOW, Check
from trueline.losses import Loss
from trueline.penalties import Penalty

__all__ = ["WITNESS", "check_tangent", "class_indicators", "is_held", "tangent_gap"]

Array = NDArray[np.float64]

#: What such a proof must bring.
WITNESS = ("about",)
_SAFE = 1 + 1e-9


def is_held(penalty: Penalty, shape: tuple[int, int]) -> bool:
    """Whether the penalty is made of absolute values and squares and leaves no coefficient free."""
    if "elastic" not in penalty.capabilities:
        return False
    return bool((np.broadcast_to(penalty.linear + penalty.curvature, shape) > 0).all())


def class_indicators(loss: Loss, y: Array) -> Array:
    """Which class each row is of, one column per class: minus and plus, or the one-hot target."""
    return y if "coupled" in loss.capabilities else np.hstack([y < 0, y > 0]).astype(np.float64)


def tangent_gap(
    loss: Loss,
    penalty: Penalty,
    W: Array,
    c: Array | None,
    ceiling: float,
    gradient: tuple[Array, Array],
    slope: tuple[Array, Array],
    classes: tuple[Array, Array],
) -> float:
    """The bound of the module's text.

    Parameters
    ----------
    loss : Loss
    penalty : Penalty
    W : array of shape (d, k)
    c : array of shape (k,), or None
        The level b + m.w; None without an intercept.
    ceiling : float
        At least P(w).
    gradient, slope : pairs of arrays of shape (d, k) and (k,)
        g and h, each with a bound on its error.
    classes : pair of arrays of shape (classes,) and (classes, d)
        S_k from below, and abs(m_k) from above.
    """
    linear = np.broadcast_to(penalty.linear, W.shape)
    bend = np.broadcast_to(penalty.curvature, W.shape)
    ceiling = ceiling * _SAFE
    gap = _along(W, linear, bend, ceiling, *gradient)
    if c is not None:
        steep = np.abs(slope[0]) + slope[1]
        gap += _levels(loss, linear, bend, c, ceiling, steep, *classes)
    return gap * _SAFE


def _along(W: Array, linear: Array, bend: Array, ceiling: float, g: Array, error: Array) -> float:
    """What the coefficients may gain: the smaller of both bounds."""
    size = np.abs(W)
    most = np.abs(g) + error
    excess = np.maximum(most - linear * (1 - 4 * EPS), 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Fenchel and Young for every coefficient: p(w) + g w + p*(-g), at both ends of g.
        both = [_fenchel_young(W, linear, bend, end) for end in (g - error, g + error)]
        rounding = 16 * EPS * float((linear * size + most * size).sum())
        by_squares = float(np.maximum(*both).sum()) + rounding
        ratio = float(np.where(excess > 0, excess / linear, 0.0).max(initial=0.0))
    terms = linear * size + (0.5 * bend * W) * W + g * W
    magnitude = linear * size + (0.5 * bend * W) * W + most * size
    by_level = float(terms.sum() + (error * size).sum()) + ceiling * ratio
    by_level += (np.log2(W.size + 2) + 24) * EPS * float(magnitude.sum())
    bounds = [bound for bound in (by_squares, by_level) if np.isfinite(bound)]
    return max(min(bounds, default=np.inf), 0.0)


def _fenchel_young(W: Array, linear: Array, bend: Array, g: Array) -> Array:
    """l abs(w) + a/2 w^2 + g w + max(0, abs(g) - l)^2 / (2 a), without cancellation."""
    excess = np.abs(g) - linear
    toward = -np.sign(g)
    slack = 4 * EPS * (np.abs(bend * W) + np.abs(g) + linear)
    apart = np.abs(bend * W - toward * np.maximum(excess, 0.0)) + slack
    beyond = apart * (0.5 * (apart / bend)) + np.maximum(linear * (np.abs(W) - toward * W), 0.0)
    within = np.maximum(linear * np.abs(W) + g * W, 0.0) + (0.5 * bend * W) * W
    return np.where(excess > -slack, np.where(bend > 0, beyond, np.inf), within)


def _levels(
    loss: Loss,
    linear: Array,
    bend: Array,
    c: Array,
    ceiling: float,
    steep: Array,
    shares: Array,
    means: Array,
) -> float:
    """What the intercepts may gain: abs(h) times how far they may be."""
    is_coupled = "coupled" in loss.capabilities
    least, least_bend = linear.min(axis=1), bend.min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(means > 0, means / least, 0.0).max(axis=1, initial=0.0)
        square = np.where(means > 0, means * (means / least_bend), 0.0).sum(axis=1)
        margins = np.array([loss.least_margin(ceiling / share) for share in shares])
    by_squares = np.sqrt(2 * ceiling * square) * (np.sqrt(2.0) if is_coupled else 1.0)
    reach = np.minimum(ceiling * ratio, by_squares) * _SAFE
    far = reach - margins + 1e-9 * np.abs(margins)
    if is_coupled:
        apart = max(float(far.max()), 0.0) + float(np.ptp(c)) * _SAFE
        return 0.5 * float(steep.sum()) * apart
    low, high = -far[1], far[0]
    return float(steep[0]) * float(max(abs(c[0] - low), abs(high - c[0])))


def check_tangent(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks but that of the objective; ``rows`` are those of the independent checker."""
    loss, penalty, W = certificate.loss, certificate.penalty, certificate.coef
    centre = np.asarray(certificate.witness["about"], dtype=np.float64)
    fits = centre.shape == (rows.d,) and bool(np.isfinite(centre).all())
    fits = fits and (certificate.fit_intercept or not centre.any())
    suited = "margins" in loss.capabilities and is_held(penalty, W.shape)
    suited = suited and (W.shape[1] == 1 or "coupled" in loss.capabilities)
    checks = [
        Check("centre", f"{rows.d} numbers", "yes" if fits else "no", bool(fits)),
        Check("losses of margins, all coefficients penalised", "yes", "yes" if suited else "no", suited),
    ]
    if not (fits and suited):
        return checks
    try:
        loss.check_target(rows.y)
    except ValueError as trouble:
        return [*checks, Check("labels", "of this loss", str(trouble), False)]
    members = class_indicators(loss, rows.y)
    shares = (rows.s @ members) * (1 - (rows.n + 4) * EPS)
    if certificate.fit_intercept and not (shares > 0).all():
        return [*checks, Check("classes", "all present", f"weights {shares}", False)]
    sums = _Sums(certificate, rows, centre, members)
    c = certificate.intercept + centre @ W if certificate.fit_intercept else None
    means = (np.abs(sums.members) + sums.member_error) / np.maximum(shares, 1e-300)[:, None]
    ceiling = certificate.objective + certificate.objective_rounding
    gap = tangent_gap(
        loss,
        penalty,
        W,
        c,
        ceiling,
        (sums.g, sums.error),
        (sums.h, sums.h_error),
        (shares, means),
    )
    gap += UNDERFLOW * rows.n
    checks.append(
        Check("gap", f"<= {certificate.gap:.4g}", f"{gap:.4g}", bool(gap <= certificate.gap))
    )
    return checks


class _Sums:
    """Gradient, slope and class sums over centred rows, with bounds on their rounding."""

    def __init__(self, certificate: Certificate, rows: Any, centre: Array, members: Array) -> None:
        loss, W, b = certificate.loss, certificate.coef, certificate.intercept
        d, k = W.shape
        self.g, self.error = np.zeros((d, k)), np.zeros((d, k))
        self.h, self.h_error = np.zeros(k), np.zeros(k)
        classes = members.shape[1]
        self.members, self.member_error = np.zeros((classes, d)), np.zeros((classes, d))
        terms = min(rows.n, ROWS) + rows.n / ROWS + 8
        bound = loss.curvature_bound
        is_coupled = "coupled" in loss.capabilities
        # Sparse rows stay as they are where nothing is to be subtracted from them.
        for where, block in rows.blocks(keep_sparse=not centre.any()):
            s, y = rows.s[where, None], rows.y[where]
            u = s * loss.gradient(y, np.asarray(block @ W) + b)
            off = (rows.row_terms + 4) * EPS * (abs(block) @ np.abs(W) + np.abs(b))
            if is_coupled:  # an error of one score is felt by all of the row
                off = np.broadcast_to(np.sqrt((off**2).sum(axis=1, keepdims=True)), u.shape)
            off = s * bound * off + (terms + 4 * k) * EPS * np.abs(u)
            own = s * members[where]
            centred = block - centre if centre.any() else block
            size = abs(centred)
            self.g += centred.T @ u
            self.error += size.T @ off
            self.h += u.sum(axis=0)
            self.h_error += off.sum(axis=0)
            self.members += (centred.T @ own).T
            self.member_error += terms * EPS * (size.T @ own).T
        self.error += 4 * EPS * np.abs(self.g)
