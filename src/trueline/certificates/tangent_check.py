r"""Proof by the tangent of the losses, for losses of margins: formulas, and their checker.

The losses are not negative and p(w) = sum_j (l_j abs(w_j) + a_j/2 w_j^2) with l_j + a_j > 0. Every
v with P(v) <= P = P(w) has p(v) <= P, and with g the gradient of the losses at w, h that in c,

    P(w, c) - P(v, c')  <=  p(w) + g.w - (g.v + p(v)) + h.(c - c')

by convexity. Scores are written (x - m).v + c about any centre m of the columns. What remains is to
bound the right side over all that is left for v and c'. With e_j = max(0, abs(g_j) - l_j),

    -(g.v + p(v))  <=  sum_j e_j^2 / (2 a_j)        and also        <=  P max_j e_j / l_j.

A class of total weight S_k has, by Jensen's inequality, a mean score whose margin is at least
phi^-1(P / S_k), phi the loss as a function of the margin. With m_k the mean of its rows and
M_k = sup { abs(m_k.v) : p(v) <= P }, at most P max_j abs(m_kj) / l_j or sqrt(2 P sum_j m_kj^2/a_j),

    two classes    phi^-1(P / S_+) - M_+  <=  c'  <=  M_- - phi^-1(P / S_-)
    softmax        c'_l - c'_k  <=  M_k - phi^-1(P / S_k)    for all l,     where sum_k h_k = 0,

for the softmax with the sup over abs(m_k.(v_k - v_l)), sqrt(2) times the second bound. Everything
is therefore about all coefficients whatsoever, and the coefficients themselves are the witness.

What an intercept may gain is linear in h, and rounding leaves some h. With a squared penalty alone
and losses that are self-concordant there is a second bound. Let G now be the whole gradient in w,
a the least a_j, B = sum_i s_i l_i'' the curvature in c and b its least eigenvalue (where scores are
coupled, of those that add up to zero), D = L sum_i s_i |x_i - m|^2 >= |H_ww|. For steps e in w and
f in c, and f' = f + B^+ H_cw e, the Hessian H of the losses has

    (e, f).H (e, f) >= b |f'|^2
    |H_wc B^+ h| <= (D / b)^1/2 |h|,      |B^+ H_cw e| <= (D / b)^1/2 |e|

so that as long as half of the curvature is left, N^2 = a |e|^2 + b/2 |f'|^2 and

    T^2 = (|G| + (D / b)^1/2 |h|)^2 / a + 2 |h|^2 / b      give      P - P(step) <= T N - N^2 / 2.

Steps with N <= 2 T change the score of a row by r = 2 T (|x_i - m| / a^1/2 + (2 / b)^1/2 +
(D / (a b))^1/2) at most (the range of coupled scores by sqrt(2) times that). If r <= log 2 for all
rows, half of the curvature is left within, P is no lower than here on the edge and by convexity
beyond, and the gap is at most T^2 / 2.

No objective is negative: P itself bounds the gap, which is all that can be said without a penalty
where the classes are separated and the coefficients on their way to infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.checking import EPS, ROWS, UNDERFLOW, Check
from trueline.losses import Loss
from trueline.penalties import Penalty

__all__ = [
    "WITNESS",
    "check_tangent",
    "class_indicators",
    "is_held",
    "least_level_curvature",
    "tangent_gap",
]

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
    local: tuple[float, float, float],
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
    local : triple of float
        b from below (0 if not known), and from above sum_i s_i |x_i - m|^2 and max_i |x_i - m|.
    """
    linear = np.broadcast_to(penalty.linear, W.shape)
    bend = np.broadcast_to(penalty.curvature, W.shape)
    ceiling = ceiling * _SAFE
    if not is_held(penalty, W.shape):
        return ceiling
    gap = _along(W, linear, bend, ceiling, *gradient)
    if c is not None:
        steep = np.abs(slope[0]) + slope[1]
        gap += _levels(loss, linear, bend, c, ceiling, steep, *classes)
        if not linear.any() and local[0] > 0:
            whole = np.abs(gradient[0] + bend * W) + gradient[1] + 4 * EPS * np.abs(bend * W)
            length = float(np.sqrt((whole**2).sum()))
            gap = min(gap, _nearby(loss, float(bend.min()), length, steep, *local))
    return min(gap * _SAFE, ceiling)


def _along(W: Array, linear: Array, bend: Array, ceiling: float, g: Array, error: Array) -> float:
    """What the coefficients may gain: the smaller of both bounds."""
    size = np.abs(W)
    most = np.abs(g) + error
    excess = np.maximum(most - linear * (1 - 4 * EPS), 0.0)
    by_squares = np.inf
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if bend.any():
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


def _nearby(
    loss: Loss, a: float, length: float, steep: Array, b: float, size: float, farthest: float
) -> float:
    """The second bound, infinite where steps reach too far for it."""
    if not (a > 0 and a * b > 0):
        return np.inf
    h, D = float(np.sqrt((steep**2).sum())), loss.curvature_bound * size
    with np.errstate(over="ignore", divide="ignore"):
        T = np.sqrt((length + np.sqrt(D / b) * h) ** 2 / a + 2 * h**2 / b) * _SAFE
        reach = 2 * T * (farthest / np.sqrt(a) + np.sqrt(2 / b) + np.sqrt(D / (a * b))) * _SAFE
    reach *= np.sqrt(2.0) if "coupled" in loss.capabilities else 1.0
    return float(0.5 * T * T) if reach <= np.log(2.0) else np.inf


def least_level_curvature(loss: Loss, y: Array, z: Array, s: Array) -> float:
    """b from below: the least eigenvalue of sum_i s_i l_i'', on scores that add up to zero."""
    if "self_concordant" not in loss.capabilities:
        return 0.0
    bending = loss.bending(y, z)
    if "coupled" not in loss.capabilities:
        return float(s @ bending[:, 0]) * (1 - 1e-6)
    k = z.shape[1]
    B = np.stack([s @ loss.bend(bending, unit[None, :]) for unit in np.eye(k)])
    # On the space of equal scores, where B vanishes, something that is not the least.
    whole = float(np.trace(B))
    values = np.linalg.eigvalsh(0.5 * (B + B.T) + whole / k * np.ones((k, k)))
    return max(float(values[0]) * (1 - 1e-6) - 1e-10 * whole, 0.0)


def check_tangent(certificate: Certificate, rows: Any) -> list[Check]:
    """All checks but that of the objective; ``rows`` are those of the independent checker."""
    loss, penalty, W = certificate.loss, certificate.penalty, certificate.coef
    centre = np.asarray(certificate.witness["about"], dtype=np.float64)
    fits = centre.shape == (rows.d,) and bool(np.isfinite(centre).all())
    fits = fits and (certificate.fit_intercept or not centre.any())
    suited = "margins" in loss.capabilities and "elastic" in penalty.capabilities
    suited = suited and (W.shape[1] == 1 or "coupled" in loss.capabilities)
    checks = [
        Check("centre", f"{rows.d} numbers", "yes" if fits else "no", bool(fits)),
        Check(
            "losses of margins, all coefficients penalised",
            "yes",
            "yes" if suited else "no",
            suited,
        ),
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
        (sums.curvature, sums.size * _SAFE, sums.farthest * _SAFE),
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
        self.size = self.farthest = 0.0
        z = np.empty((rows.n, k))
        terms = min(rows.n, ROWS) + rows.n / ROWS + 8
        bound = loss.curvature_bound
        is_coupled = "coupled" in loss.capabilities
        # Sparse rows stay as they are where nothing is to be subtracted from them.
        for where, block in rows.blocks(keep_sparse=not centre.any()):
            s, y = rows.s[where, None], rows.y[where]
            scores = np.asarray(block @ W) + b
            u = s * loss.gradient(y, scores)
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
            square = (
                np.asarray(centred.multiply(centred).sum(axis=1)).ravel()
                if sp.issparse(centred)
                else (centred**2).sum(axis=1)
            )
            self.size += float(rows.s[where] @ square)
            self.farthest = max(self.farthest, float(np.sqrt(square.max(initial=0.0))))
            z[where] = scores
        self.error += 4 * EPS * np.abs(self.g)
        self.curvature = least_level_curvature(loss, rows.y, z, rows.s)
