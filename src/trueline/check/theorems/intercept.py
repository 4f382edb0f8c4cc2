r"""Theorem of the intercept: slopes add up to zero nearby, and what it costs if they do not.

*Theorem.* Let s_i l_i(z_i + t) be convex in the numbers t, one for each target, with the slope g at
a point and curvature at least b within the distance r of it. If b r >= |g| for one number, or
b r >= 2 |g| for several, the slopes of some point within r add up to zero. *Proof.* Beyond r the
sum is no lower than at the centre: its least value lies within. []

*Theorem.* Softmax: slopes with the sum h in place of zero cost no more than h.(c - c') for the
range of better intercepts c'. With S_k and m_k weight and mean of the rows of class k, and P at
least the objective, log(1 + exp(c'_l - c'_k + m_k.(v_l - v_k))) <= P / S_k, and p(v) <= P bounds
m_k.(v_l - v_k). *Proof.* Jensen's inequality for the rows of one class. []

Along a change e of the scores of softmax the curvature keeps the factor exp(min e - max e).

Read from the certificate: nothing beside what :mod:`trueline.check.theorems.fenchel_young` reads.
"""

from __future__ import annotations

import numpy as np

from trueline.check.arithmetic import EPS, Array, fsum
from trueline.check.claims import Claim


def imbalance(claim: Claim, u: Array, error: Array) -> float:
    """What slopes u of softmax that do not add up to zero are worth to better intercepts."""
    penalty, P, s = claim.penalty, claim.ceiling, claim.rows.s[:, None]
    if penalty.blocks is not None or penalty.note or claim.loss.note:
        return np.inf
    members = s * claim.y
    S = members.sum(axis=0) * (1 - 1e-9)
    means, off, _ = claim.sums(members, 0 * members, EPS * members, False)
    means = (np.abs(means) + off) / S
    l, a = (np.where(v > 0, v, 1e-300).min(axis=1) for v in (penalty.linear, penalty.curvature))
    by_linear = (P * (means / l[:, None])).max(axis=0, initial=0.0)
    by_square = 2 * np.sqrt(P * (means * (means / a[:, None])).sum(axis=0))
    most = P / S + np.log(-np.expm1(-P / S)) + np.minimum(by_linear, by_square)
    level = claim.b + claim.centre @ claim.W
    steep = np.array([fsum(column) for column in (s * u).T])
    unsure = (s * (error + 2 * EPS * np.abs(u))).sum(axis=0)
    size = np.abs(level).max() + np.abs(claim.centre) @ np.abs(claim.W)
    room = np.maximum(level - level.min() + 1e-9 * size + most, 0.0)
    return float(((np.maximum(steep, 0.0) + unsure) * room).sum()) * (1 + 1e-6)


def levels(claim: Claim) -> tuple[Array, Array]:
    """Per target a number t, and how far from it sum s l'(z + t) = 0 at the most."""
    loss, s = claim.loss, claim.rows.s
    near, reach = np.zeros(claim.rows.k), np.full(claim.rows.k, np.inf)
    for t in range(claim.rows.k):
        own, y, z = loss.of_target(t), claim.y[:, t], claim.z[:, t]
        best = (np.inf, 0.0, np.inf)
        for _ in range(30):
            at = z + near[t]
            u = own.slope(y, at)
            steep = fsum(s * u)
            error = float(s @ (own.slope_error(y, at) + 4 * EPS * np.abs(u)))
            if near[t]:  # z + t is rounded
                error += float(s @ (own.most_curvature(y, at, EPS * np.abs(at)) * np.abs(at))) * EPS
            curvature = float(s @ own.least_curvature(y, at, 0.0))
            if abs(steep) + error < best[0]:
                best = (abs(steep) + error, near[t], curvature)
            if not curvature > 0 or abs(steep) <= error:
                break
            near[t] -= np.clip(steep / curvature, -1e3, 1e3)
        off, near[t], curvature = best
        r = 0.0 if off == 0 else 1.1 * off / curvature if curvature > 0 else np.inf
        for _ in range(4):  # room for the curvature to be smaller within the reach
            least = float(s @ own.least_curvature(y, z + near[t], r)) * (1 - 1e-9)
            if np.isfinite(r) and least * r >= off:
                reach[t] = r
                break
            r *= 4
    return near, reach


def class_levels(claim: Claim) -> tuple[Array, Array]:
    """The same for softmax, by Newton's method: changes that add up to zero."""
    loss, s, k = claim.loss, claim.rows.s, claim.rows.k
    near, reach = np.zeros(k), np.full(k, np.inf)
    for _ in range(30):
        u = loss.slope(claim.y, claim.z + near)
        p = u + claim.y
        steep = np.array([fsum(s * u[:, t]) for t in range(k)])
        at = claim.z + near
        error = float((s @ (loss.slope_error(claim.y, at) + EPS * np.abs(at))).sum())
        B = np.diag(s @ p) - (s[:, None] * p).T @ p
        whole = float(np.trace(B))
        B = B + whole / k * np.ones((k, k))
        if not np.isfinite(B).all() or whole <= 0:
            break
        least = float(np.linalg.eigvalsh(0.5 * (B + B.T))[0]) - 1e-9 * whole
        size = float(np.linalg.norm(steep)) + error
        r = 2.2 * size / least if least > 0 else np.inf
        if r < 0.05 and np.exp(-2 * r) * least * r >= 2 * size:
            reach = np.full(k, r)
            if float(np.linalg.norm(steep)) <= 4 * error:
                break
        step = np.linalg.lstsq(B, steep, rcond=None)[0]
        near = near - np.clip(step - step.mean(), -1e2, 1e2)
        if not np.isfinite(reach).all() or size > 8 * error:
            continue
        break
    return near, reach
