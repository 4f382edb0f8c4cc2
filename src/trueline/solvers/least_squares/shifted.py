r"""Ridge regression for all strengths of several paths, from one Krylov space for each target.

    (C + a I) w = c,     C = (X - 1 m^T)^T S (X - 1 m^T),     c = (X - 1 m^T)^T S y,

with m the weighted mean. Conjugate gradients for the smallest strength a build residuals that are
parallel to those of all other strengths, so that these cost vector operations only, and end early
(B. Jegerlehner, "Krylov space solvers for shifted linear systems", hep-lat/9612014 (1996), eqs.
2.42-2.44; A. Frommer, Computing 70 (2003) 87-109). A step of several paths (folds, say) reads the
rows once. The gap of an answer with the gradient g is at most |g|^2 / (2 a); the gradient is
computed afresh at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.problem_set import ProblemSet
from trueline.solution import Solution, Status
from trueline.solvers.iterative import target_gap
from trueline.solvers.pending import CLAIMED, Answer

__all__ = ["can_shift", "has_strengths", "solve_shifted"]

Array = NDArray[np.float64]

_LIMIT = 2000
# Of the gap that is asked for, what is left for rounding.
_SHARE = 0.1
_NOTE = "one Krylov space for all strengths of a path"


def can_shift(problems: ProblemSet) -> bool:
    """Whether all members have one positive strength, and their paths the same number of them."""
    return has_strengths(problems) and len({len(path) for path in problems.paths()}) == 1


def has_strengths(problems: ProblemSet) -> bool:
    """Whether all members have one positive strength."""
    strengths = [member.penalty.curvature for member in problems.members]
    return all(np.ndim(strength) == 0 and float(strength) > 0 for strength in strengths)


@dataclass(frozen=True)
class _Lanes:
    """The targets of all paths side by side, L of them; strengths ascend, of shape (m, L)."""

    problems: ProblemSet
    S: Array
    means: Array
    alphas: Array
    goals: Array

    def product(self, P: Array) -> Array:
        """C P, for P of shape (d, L)."""
        level = -np.einsum("dl,dl->l", self.means, P)
        image, total = self.problems.design.curved_product(self.S, P, level)
        return image - total * self.means


def solve_shifted(problems: ProblemSet, tol: float, name: str) -> list[Solution]:
    """Solutions of all members of a set that :func:`can_shift`.

    Parameters
    ----------
    problems : ProblemSet
    tol : float
        The gap asked for, relative to the objective of the best constant.
    name : str
        The solver's, for the solutions.
    """
    design, members = problems.design, problems.members
    ascending = [path[::-1] for path in problems.paths()]
    first = [problems.on_all_rows(path[0]) for path in ascending]
    k, m = first[0].n_targets, len(ascending[0])
    ones = np.ones(design.shape[0])
    weights = [ones if one.weights is None else one.weights for one in first]
    means, levels = np.zeros((design.shape[1], len(first))), np.zeros((len(first), k))
    if problems.fit_intercept:
        means = np.stack([design.column_means(s) for s in weights], axis=1)
        levels = np.stack([s @ one.target / s.sum() for s, one in zip(weights, first)])
    allowed = np.array([target_gap(one, tol) for one in first])
    S, about = np.repeat(np.stack(weights, axis=1), k, axis=1), np.repeat(means, k, axis=1)
    strengths = [[float(members[i].penalty.curvature) for i in path] for path in ascending]
    alphas = np.repeat(np.array(strengths).T, k, axis=1)
    lanes = _Lanes(problems, S, about, alphas, np.repeat(allowed / k, k))
    centred = np.concatenate([one.target - level for one, level in zip(first, levels)], axis=1)
    weighted = S * centred
    right = design.rmatvec(weighted) - about * weighted.sum(axis=0)
    W, steps = _krylov(lanes, right)
    found: list[Solution | None] = [None] * len(problems)
    for i in range(m):
        g = lanes.product(W[i]) + alphas[i] * W[i] - right
        gaps = (g**2).sum(axis=0) / (2 * alphas[i])
        for f, path in enumerate(ascending):
            own = slice(f * k, (f + 1) * k)
            coef = np.ascontiguousarray(W[i][:, own])
            level = levels[f] - means[:, f] @ coef
            bound, asked = float(gaps[own].sum()), float(allowed[f])
            status = Status.CONVERGED if CLAIMED * bound <= asked else Status.STALLED
            answer = Answer(path[i], coef, level, steps, bound, asked, status)
            found[path[i]] = answer.solution(problems, name, _NOTE)
    return [solution for solution in found if solution is not None]


def _krylov(lanes: _Lanes, right: Array) -> tuple[Array, int]:
    """Coefficients of shape (m, d, L), and the steps that they took."""
    alphas, (m, L) = lanes.alphas, lanes.alphas.shape
    W, P = np.zeros((m, *right.shape)), np.repeat(right[None], m, axis=0)
    R, seed = right.copy(), right.copy()
    zeta, zeta_before = np.ones((m, L)), np.ones((m, L))
    size = np.einsum("dl,dl->l", R, R)
    a_before, ratio_before = np.ones(L), np.zeros(L)
    live = m
    for number in range(_LIMIT):
        # Large strengths end early.
        while live and _is_done(lanes, zeta, size, live - 1):
            live -= 1
        if not live:
            return W, number
        image = lanes.product(seed) + alphas[0] * seed
        with np.errstate(divide="ignore", invalid="ignore"):
            a = _safe(size / np.einsum("dl,dl->l", seed, image))
            R -= a * image
            now = np.einsum("dl,dl->l", R, R)
            ratio = _safe(now / size)
            for i in range(live):
                z, before = zeta[i], zeta_before[i]
                shift = 1.0 + (alphas[i] - alphas[0]) * a
                below = a * ratio_before * (before - z) + before * a_before * shift
                new = _safe(z * before * a_before / below)
                share = _safe(new / z)
                W[i] += (a * share) * P[i]
                P[i] *= ratio * share * share
                P[i] += new * R
                zeta_before[i], zeta[i] = z, new
        seed *= ratio
        seed += R
        a_before, ratio_before, size = np.where(a > 0, a, 1.0), ratio, now
    return W, _LIMIT


def _is_done(lanes: _Lanes, zeta: Array, size: Array, i: int) -> bool:
    return bool((zeta[i] ** 2 * size <= 2 * lanes.alphas[i] * _SHARE * lanes.goals).all())


def _safe(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)
