r"""Which proof fits a problem: one place decides, for loops and for final certificates alike.

| loss and penalty                                           | proof     |
| ---------------------------------------------------------- | --------- |
| squared, quadratic; squared penalty on all coefficients    | quadratic |
| squared, quadratic; a factor of the Hessian is given       | quadratic |
| squared; penalty made of coordinates, zero in its domain   | fenchel   |
| of margins; penalty holds every coefficient                | tangent   |
| penalty whose conjugate is finite around zero              | duality   |
| the rest                                                   | bounded   |

The maximum error is no sum over the rows and has a proof of its own, "maximum error", whose
multipliers a solver brings: without any, an error is only known not to be negative.

The first needs no factorisation: with the penalty's curvatures a_j and M = diag(1 / sqrt(a_j)) the
bound of :mod:`trueline.certificates.quadratic` is sum_j g_j^2 / (2 a_j). For ridge regression this
is the duality gap itself, computed without cancellation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.bounded import (
    Cone,
    bounded_gap,
    certify_bounded,
    cone_gap,
    find_cone,
    is_cone,
)
from trueline.certificates.duality import certify_duality, duality_gap
from trueline.certificates.evaluation import (
    Directions,
    Evaluation,
    Free,
    GapProof,
    Rounding,
    evaluate_objective,
    open_directions,
    unpenalised,
)
from trueline.certificates.fenchel import certify_fenchel, certify_from_moments, is_fenchel
from trueline.certificates.quadratic import Evidence, certify_quadratic
from trueline.certificates.special.maximum import certify_maximum
from trueline.certificates.tangent import Tangent
from trueline.design.stacked import StackedDesign
from trueline.losses import Squared
from trueline.problem import MomentsProblem, Problem

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
#: The kinds of proof that go with other coefficients than their own.
BESIDE = frozenset({"fenchel", "duality", "tangent", "bounded", "curvature"})
# An objective from moments is known to so many digits, or the rows are read once more.
_ENOUGH = 1e-9
_NEXT_TO_ZERO = 1e-150  # far below any correlation, far above underflow of its ratios


class Prover:
    """Evaluates a problem and its proven gap at many points; the data's constants are kept.

    Parameters
    ----------
    problem : Problem
    basis : array of shape (d,) or (d, r), optional
    coercivity : float, optional
        M and nu of :mod:`trueline.certificates.quadratic`, proven by the caller, for quadratic
        problems whose penalty has too little curvature (or none). Without them the penalty decides.
    rounding : Rounding, optional
        The data's constants, if they are already known.
    left_out : float, optional
        What the basis leaves out, if it does not span all coefficients (see
        :class:`~trueline.certificates.quadratic.Evidence`).

    Attributes
    ----------
    kind : {"quadratic", "fenchel", "tangent", "duality", "bounded"}
        The proof that will be used.
    mean : array of shape (d,)
        Weighted means of the columns (zero without an intercept), as a by-product.
    column_norms : array of shape (d,)
        Weighted norms of the columns, not centred.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.certificates.choose import Prover
    >>> from trueline.design import as_design
    >>> from trueline.losses import Squared
    >>> from trueline.penalties import L1
    >>> from trueline.problem import MomentsProblem, Problem
    >>> problem = Problem(as_design(np.eye(2)), np.array([[3.0], [0.5]]), Squared(), L1(1.0), False)
    >>> prover = Prover(problem)
    >>> prover.kind
    'fenchel'
    >>> at = prover.evaluate(np.array([[2.0], [0.0]]), np.zeros(1))
    >>> float(at.objective[0]), bool(prover.gap(at, np.array([[2.0], [0.0]]), np.zeros(1)) < 1e-12)
    (2.625, True)
    """

    def __init__(
        self,
        problem: Problem,
        basis: Array | None = None,
        coercivity: float = 0.0,
        rounding: Rounding | None = None,
        left_out: float = 0.0,
    ) -> None:
        self.problem = problem
        rounding = rounding or Rounding.of(problem)
        self.mean, self.column_norms = rounding.mean, rounding.accuracy.magnitude
        given = (basis, coercivity, left_out) if basis is not None and coercivity > 0 else None
        self._proof = _Quadratic.of(problem, rounding, given) or next(
            proof(problem, rounding) for proof in PROOFS if proof.applies(problem)
        )
        self.kind = self._proof.kind

    def evaluate(self, W: Array, b: Array, scores: Array | None = None) -> Evaluation:
        """Objective and derivatives at a point: two products, one if the scores are known."""
        return self._proof.evaluate(W, b, scores)

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        """The proven gap at an evaluated point, summed over the targets: no further product."""
        return self._proof.gap(at, W, b)

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        """The certificate at a point; some proofs save what it costs to evaluate it again."""
        return self._proof.certify(W, b, at)


class _Maximum(GapProof):
    """The maximum error is no sum over the rows."""

    kind = "maximum error"
    applies = staticmethod(lambda problem: "maximum" in problem.loss.capabilities)

    def evaluate(self, W: Array, b: Array, scores: Array | None = None) -> Evaluation:
        at = super().evaluate(W, b, scores)
        return at._replace(objective=self.problem.objective_per_target(W, b))

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        return certify_maximum(self.problem, W, b)


class _Quadratic(GapProof):
    """By the curvature of the penalty, or what a solver knows of that of the rows."""

    kind = "quadratic"
    basis: Array
    coercivity: float
    left_out: float

    @classmethod
    def of(
        cls, problem: Problem, rounding: Rounding, given: tuple[Array, float, float] | None
    ) -> _Quadratic | None:
        """None where the problem is not quadratic, or nothing is known of its curvature."""
        penalty, shape = problem.penalty, (problem.n_features, problem.n_targets)
        if "quadratic" not in problem.loss.capabilities & penalty.capabilities:
            return None
        least = np.broadcast_to(penalty.curvature, shape).min(axis=1, initial=np.inf)
        if given is None and (least > 0).all():
            # One strength for all: keep the basis the identity, exactly.
            flat = least.min(initial=np.inf) == least.max(initial=0.0)
            basis = np.ones(len(least)) if flat else 1.0 / np.sqrt(least)
            proven = float((least * basis**2).min(initial=np.inf)) * (1 - 8 * _EPS)
            given = basis, proven if np.isfinite(proven) else 1.0, 0.0
        if given is None:
            return None
        out = cls(problem, rounding)
        out.rounding = rounding  # the quadratic bound leaves room of its own
        out.basis, out.coercivity, out.left_out = given
        return out

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        return certify_quadratic(self.problem, W, b, self._evidence(at, W), 0.0).gap

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        return certify_quadratic(self.problem, W, b, self._evidence(self.evaluate(W, b), W))

    def _evidence(self, at: Evaluation, W: Array) -> Evidence:
        """The gradient at the best intercept, X_c^T S u + A w, with the bound on its rounding."""
        gradient, error, slope, slope_error = at.at_best_intercept(
            self.rounding, self.problem.fit_intercept
        )
        curvature = self.problem.penalty.curvature * W
        return Evidence(
            gradient=gradient + curvature,
            gradient_rounding=error + 4 * _EPS * np.abs(curvature),
            intercept_gradient=slope,
            intercept_rounding=slope_error,
            objective=at.objective,
            objective_rounding=at.objective_rounding,
            basis=self.basis,
            coercivity=self.coercivity,
            is_global=self.basis.ndim == 1 or self.basis.shape[1] == len(self.basis),
            left_out=self.left_out,
        )


class _Fenchel(GapProof):
    kind, applies = "fenchel", staticmethod(is_fenchel)

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        return certify_fenchel(self.problem, W, b, self.rounding, at, 0.0).gap

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        return certify_fenchel(self.problem, W, b, self.rounding)


def _has_dual_points(problem: Problem) -> bool:
    """Whether conjugates are finite around zero: else every rounded dual point is infeasible."""
    penalty, near = problem.penalty, np.where(unpenalised(problem), 0.0, _NEXT_TO_ZERO)
    around_zero = np.minimum(penalty.dual_scale(near), penalty.dual_scale(-near))
    has = problem.loss.capabilities & penalty.capabilities
    return "conjugate" in has and bool((around_zero == 1).all())


class _Duality(GapProof):
    kind, applies = "duality", staticmethod(_has_dual_points)

    @cached_property
    def directions(self) -> Directions | None:
        return Directions.of(self.problem, unpenalised(self.problem))

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        free = Free(unpenalised(self.problem), self.directions, W)
        gap, _ = duality_gap(self.problem, self.rounding, at, b, free)
        return float(gap.sum())

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        return certify_duality(self.problem, W, b)


class _Bounded(GapProof):
    kind = "bounded"

    @cached_property
    def cone(self) -> Cone | None:
        return find_cone(self.problem)

    @cached_property
    def directions(self) -> Directions | None:
        return open_directions(self.problem)

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        if is_cone(self.problem):
            return cone_gap(self.problem, self.rounding, at, W, self.cone)
        return bounded_gap(self.problem, self.rounding, at, W, b, self.directions)

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        return certify_bounded(self.problem, W, b, self.cone if is_cone(self.problem) else None)


#: The proofs in the order in which they are asked; the last one fits everything.
PROOFS: tuple[type[GapProof], ...] = (_Maximum, _Fenchel, Tangent, _Duality, _Bounded)


def certify(problem: Problem, W: Array, b: Array) -> Certificate:
    """The certificate of a point, by the proof that fits the problem."""
    return Prover(problem).certify(W, b)


def certify_beside(problem: Problem, proven: Certificate, W: Array, b: Array) -> Certificate:
    """The certificate of coefficients w close to others v that have one.

    P(w) - P* = [P(w) - P(v)] + [P(v) - P*] <= P(w) - P(v) + gap(v). Coefficients are rounded to
    single precision where the data have no more digits. A proof by the slopes at w is of first
    order in that rounding, while what it costs is of second order.
    """
    objective, rounding = _objective_from_moments(problem, W, b) or _objective(problem, W, b)
    rise = objective - proven.objective + rounding + proven.objective_rounding
    slack = 1e-14 * (abs(objective) + abs(proven.objective))
    return replace(
        proven,
        objective=objective,
        objective_rounding=rounding,
        gap=(max(rise, 0.0) + proven.gap) * (1 + 1e-12) + slack,
        coef=W,
        intercept=b,
        witness={
            **proven.witness,
            "proven_coef": proven.coef,
            "proven_intercept": proven.intercept,
            "proven_objective": proven.objective,
            "proven_rounding": proven.objective_rounding,
            "proven_gap": proven.gap,
        },
    )


def _objective(problem: Problem, W: Array, b: Array) -> tuple[float, float]:
    """The objective and its rounding, from the rows."""
    value, error = evaluate_objective(problem, Rounding.of(problem).confirmable(), W, b)
    return float(value.sum()), 2 * float(error.sum())


def _objective_from_moments(problem: Problem, W: Array, b: Array) -> tuple[float, float] | None:
    """The same from moments that were kept, where they tell it to enough digits."""
    design = problem.design
    if not (isinstance(design, StackedDesign) and problem.loss == Squared()):
        return None
    moments = design.known_moments(problem.weights, problem.target)
    if moments is None:
        return None
    found = certify_from_moments(MomentsProblem.of(problem, moments), W, b)
    is_enough = found.objective_rounding <= _ENOUGH * found.objective
    return (found.objective, found.objective_rounding) if is_enough else None
