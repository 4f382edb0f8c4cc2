"""Certificates by the tangent of the losses; see :mod:`trueline.certificates.tangent_check`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate, checkable
from trueline.certificates.curvature import centred_sums, shifted_sums
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate, evaluation_of_sums
from trueline.certificates.tangent_check import (
    class_indicators,
    is_held,
    least_level_curvature,
    tangent_gap,
)
from trueline.losses import Loss
from trueline.penalties import Penalty
from trueline.problem import Problem

__all__ = ["RowSums", "Tangent", "at_most_objective", "certify_sums", "is_tangent"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_UNDERFLOW = 1e-290
# Columns whose means are so many spreads away from zero are centred before they are summed.
_FAR = 10.0


def is_tangent(problem: Problem) -> bool:
    """Whether this proof applies: losses of margins, every coefficient penalised."""
    loss = problem.loss.capabilities
    return (
        "margins" in loss
        and (problem.n_targets == 1 or "coupled" in loss)
        and is_held(problem.penalty, (problem.n_features, problem.n_targets))
        and bool((_shares(problem) > 0).all())
    )


def _shares(problem: Problem) -> Array:
    """The total weights of the classes."""
    if "coupled" not in problem.loss.capabilities and problem.weights is None:  # no copies
        below, above = (np.count_nonzero(side) for side in (problem.target < 0, problem.target > 0))
        return np.array([float(below), float(above)])
    members = class_indicators(problem.loss, problem.target)
    return members.sum(axis=0) if problem.weights is None else problem.weights @ members


class Tangent:
    """Proves gaps at many points of one problem; what the data alone decide is kept.

    Parameters
    ----------
    problem : Problem
    rounding : Rounding, optional
        The data's constants, if they are already known.
    """

    def __init__(self, problem: Problem, rounding: Rounding | None = None) -> None:
        self.problem = problem
        self.rounding = (rounding or Rounding.of(problem)).confirmable()
        # About the means, which costs sparse rows their zeros: those are taken as they are.
        is_centred = problem.fit_intercept and not problem.design.is_sparse
        self.centre = self.rounding.mean if is_centred else np.zeros(problem.n_features)
        self._classes: tuple[Array, Array] | None = None
        self._spread: Array | None = None
        self._farthest: float | None = None

    @property
    def spread(self) -> Array:
        """At least sqrt(sum_i s_i (x_ij - centre_j)^2)."""
        if self._spread is None:
            design, weights = self.problem.design, self.problem.weights
            shift = self.centre if self.centre.any() else None
            self._spread = np.sqrt(design.column_squares(weights, shift)) * (1 + 1e-6)
        return self._spread

    @property
    def classes(self) -> tuple[Array, Array]:
        """Weights of the classes from below, and their centred means from above."""
        if self._classes is None:
            problem = self.problem
            members = class_indicators(problem.loss, problem.target)
            shares = _shares(problem) * (1 - (problem.n_samples + 4) * _EPS)
            means = np.zeros((len(shares), problem.n_features))
            if problem.fit_intercept:
                sums = problem.design.rmatvec(problem.weigh(members)).T
                sums = np.abs(sums - np.outer(shares, self.centre))
                # Bounds on bounds: a thousandth more, and what centring may have lost.
                lost = np.sqrt(shares)[:, None] * self.rounding.products(np.ones(1))[:, 0] * 8
                means = (sums * 1.001 + lost) / shares[:, None]
            self._classes = shares, means
        return self._classes

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        """The proven gap at an evaluated point."""
        problem, centre = self.problem, self.centre
        is_far = problem.fit_intercept and bool(centre.any())
        is_far = is_far and bool((self.rounding.accuracy.magnitude > _FAR * self.spread).any())
        if is_far:
            g, error = centred_sums(problem, self.rounding, at, centre, self.spread)
        else:
            g, error = shifted_sums(at, centre)
        ceiling = float(at.objective.sum() + 3 * at.objective_rounding.sum())
        # The checker sums the slope as it sums any column.
        terms = self.rounding.accuracy.column_terms + 4 * problem.n_targets + 8
        ones = np.sqrt(self.rounding.weight) * terms * _EPS * at.size
        # Once for these sums, once for those of whoever checks them, once for what they differ by.
        gap = tangent_gap(
            problem.loss,
            problem.penalty,
            W,
            b + centre @ W if problem.fit_intercept else None,
            ceiling,
            (g, 3 * error),
            (at.slope, 3 * at.slope_rounding + ones),
            self.classes,
            self._local(at),
        )
        return gap * (1 + 1e-9) + _UNDERFLOW * problem.n_samples

    def _local(self, at: Evaluation) -> tuple[float, float, float]:
        """What the bound by curvature nearby needs to know, each a little on the safe side."""
        problem = self.problem
        if not problem.fit_intercept or np.any(problem.penalty.linear):
            return 0.0, 0.0, 0.0
        s = np.ones(problem.n_samples) if problem.weights is None else problem.weights
        b = least_level_curvature(problem.loss, problem.target, at.scores, s)
        if self._farthest is None:
            shift = self.centre if self.centre.any() else None
            squares = problem.design.row_squares(shift)
            self._farthest = float(np.sqrt(squares.max(initial=0.0))) * (1 + 1e-6)
        return b * (1 - 1e-6), float((self.spread**2).sum()) * (1 + 1e-6), self._farthest

    def evaluate(self, W: Array, b: Array) -> Evaluation:
        """Objective and derivatives at a point: two products."""
        return evaluate(self.problem, self.rounding, W, b)

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        """The certificate of a point."""
        problem = self.problem
        at = at or self.evaluate(W, b)
        return Certificate(
            kind="tangent",
            objective=float(at.objective.sum()),
            objective_rounding=float(2 * at.objective_rounding.sum()),
            gap=checkable(self.gap(at, W, b), at.objective.sum()),
            loss=problem.loss,
            penalty=problem.penalty,
            fit_intercept=problem.fit_intercept,
            coef=W,
            intercept=b,
            witness={},
        )


def at_most_objective(problem: Problem, certificate: Certificate) -> Certificate:
    """The certificate, or that no objective is negative, where that says more."""
    is_single = problem.n_targets == 1 or "coupled" in problem.loss.capabilities
    if certificate.gap <= certificate.objective or not is_single:
        return certificate
    if "margins" not in problem.loss.capabilities or "elastic" not in problem.penalty.capabilities:
        return certificate
    return Tangent(problem).certify(certificate.coef, certificate.intercept)


class RowSums(NamedTuple):
    """What sums over the rows of a problem with one target say of a point, all the proof needs.

    Attributes
    ----------
    losses, squares, slope, curvature : float
        sum_i s_i l_i, sum_i s_i u_i^2, sum_i s_i u_i and sum_i s_i l_i''.
    correlation, size, origin : arrays of shape (d,)
        sum_i s_i u_i (x_i - o) for an origin o of the rows, and at least
        sqrt(sum_i s_i (x_ij - o_j)^2).
    centre, spread : arrays of shape (d,)
        Any numbers m less the origin (zero without an intercept), and at least
        sqrt(sum_i s_i (x_ij - o_j - m_j)^2).
    farthest : float
        At least max_i |x_i - o - m|.
    shares, means : arrays of shape (2,) and (2, d)
        The weights of the classes, and at least the sizes of their means about o + m.
    """

    losses: float
    squares: float
    slope: float
    curvature: float
    correlation: Array
    size: Array
    origin: Array
    centre: Array
    spread: Array
    farthest: float
    shares: Array
    means: Array


def certify_sums(
    sums: RowSums,
    rounding: Rounding,
    chain: float,
    loss: Loss,
    penalty: Penalty,
    fit_intercept: bool,
    W: Array,
    b: Array,
) -> Certificate:
    """The certificate of a point whose sums are known: no pass over the rows.

    Parameters
    ----------
    sums : RowSums
    rounding : Rounding
        Of scores that round as those in the sums did.
    chain : float
        Most additions one after the other in sums over rows.
    loss, penalty, fit_intercept, W, b
        What was minimised, and where.
    """
    rounding = rounding.confirmable()
    at = evaluation_of_sums(rounding, chain, loss, penalty, W, b, sums)
    about = sums.origin + sums.centre
    g, error = shifted_sums(at, sums.centre)
    terms = rounding.accuracy.column_terms + 12
    ones = np.sqrt(rounding.weight) * terms * _EPS * at.size
    local = (0.0, 0.0, 0.0)
    if fit_intercept and "self_concordant" in loss.capabilities and not np.any(penalty.linear):
        size = float(sums.spread @ sums.spread) * (1 + 1e-6)
        local = (sums.curvature * (1 - 2e-6), size, sums.farthest)
    gap = tangent_gap(
        loss,
        penalty,
        W,
        b + about @ W if fit_intercept else None,
        float(at.objective[0] + 3 * at.objective_rounding[0]),
        (g, 3 * error),
        (at.slope, 3 * at.slope_rounding + ones),
        (sums.shares, sums.means),
        local,
    )
    return Certificate(
        kind="tangent",
        objective=float(at.objective[0]),
        objective_rounding=float(2 * at.objective_rounding[0]),
        gap=checkable(gap * (1 + 1e-9) + _UNDERFLOW * rounding.rows, at.objective[0]),
        loss=loss,
        penalty=penalty,
        fit_intercept=fit_intercept,
        coef=W,
        intercept=b,
        witness={},
    )
