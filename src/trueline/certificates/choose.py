r"""Which proof fits a problem: one place decides, for loops and for final certificates alike.

| loss and penalty                                           | proof     |
| ---------------------------------------------------------- | --------- |
| squared, quadratic; penalty bends every coefficient        | quadratic |
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
from trueline.certificates.evaluation import Evaluation, Rounding, evaluate
from trueline.certificates.fenchel import certify_fenchel, is_fenchel
from trueline.certificates.maximum import certify_maximum
from trueline.certificates.quadratic import Evidence, certify_quadratic
from trueline.certificates.tangent import Tangent, is_tangent
from trueline.certificates.unpenalised import Directions, Free, open_directions, unpenalised
from trueline.problem import Problem

__all__ = ["Prover", "certify", "gap_at"]

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_NEXT_TO_ZERO = 1e-150  # far below any correlation, far above underflow of its ratios


class Prover:
    """Evaluates a problem and its proven gap at many points; the data's constants are kept.

    Parameters
    ----------
    problem : Problem
    basis : array of shape (d,) or (d, r), optional
    coercivity : float, optional
        M and nu of :mod:`trueline.certificates.quadratic`, proven by the caller, for quadratic
        problems whose penalty bends too little (or nothing). Without them the penalty decides.
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
    >>> from trueline.problem import Problem
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
        self.problem, self._left_out = problem, left_out
        self.kind, self._basis, self._coercivity = _choose(problem, basis, coercivity)
        rounding = rounding or Rounding.of(problem)
        self.mean, self.column_norms = rounding.mean, rounding.accuracy.magnitude
        self._rounding = rounding if self.kind == "quadratic" else rounding.confirmable()
        self._tangent = Tangent(problem, rounding) if self.kind == "tangent" else None
        self._is_cone = self.kind == "bounded" and is_cone(problem)

    @cached_property
    def _cone(self) -> Cone | None:
        return find_cone(self.problem)

    @cached_property
    def _directions(self) -> Directions | None:
        if self.kind == "bounded":
            return open_directions(self.problem)
        return Directions.of(self.problem, unpenalised(self.problem))

    def evaluate(self, W: Array, b: Array) -> Evaluation:
        """Objective and derivatives at a point: two products."""
        at = evaluate(self.problem, self._rounding, W, b)
        if self.kind == "maximum error":
            return at._replace(objective=self.problem.objective_per_target(W, b))
        return at

    def gap(self, at: Evaluation, W: Array, b: Array) -> float:
        """The proven gap at an evaluated point, summed over the targets: no further product."""
        if self.kind == "fenchel":
            return certify_fenchel(self.problem, W, b, self._rounding, at, 0.0).gap
        if self.kind == "maximum error":
            return certify_maximum(self.problem, W, b).gap
        if self._tangent is not None:
            return self._tangent.gap(at, W, b)
        if self.kind == "duality":
            free = Free(unpenalised(self.problem), self._directions, W)
            gap, _ = duality_gap(self.problem, self._rounding, at, b, free)
            return float(gap.sum())
        if self._is_cone:
            return cone_gap(self.problem, self._rounding, at, W, self._cone)
        if self.kind == "bounded":
            return bounded_gap(self.problem, self._rounding, at, W, b, self._directions)
        return certify_quadratic(self.problem, W, b, self._evidence(at, W), 0.0).gap

    def certify(self, W: Array, b: Array, at: Evaluation | None = None) -> Certificate:
        """The certificate at a point; some proofs save what it costs to evaluate it again."""
        if self.kind == "fenchel":
            return certify_fenchel(self.problem, W, b, self._rounding)
        if self.kind == "maximum error":
            return certify_maximum(self.problem, W, b)
        if self._tangent is not None:
            return self._tangent.certify(W, b, at)
        if self.kind == "duality":
            return certify_duality(self.problem, W, b)
        if self.kind == "bounded":
            return certify_bounded(self.problem, W, b, self._cone if self._is_cone else None)
        return certify_quadratic(self.problem, W, b, self._evidence(self.evaluate(W, b), W))

    def _evidence(self, at: Evaluation, W: Array) -> Evidence:
        """The gradient at the best intercept, X_c^T S u + A w, with the bound on its rounding."""
        rounding, mean = self._rounding, self._rounding.mean[:, None]
        curvature = self.problem.penalty.curvature * W
        gradient = at.correlation - mean * at.slope + curvature
        error = at.correlation_rounding + 4 * _EPS * (
            np.abs(at.correlation) + np.abs(mean * at.slope) + np.abs(curvature)
        )
        off, slope, slope_error = rounding.mean_error[:, None], at.slope, at.slope_rounding
        if not self.problem.fit_intercept:
            slope, slope_error = np.zeros_like(slope), np.zeros_like(slope)
        error = error + off * np.abs(slope) + (np.abs(mean) + off) * slope_error
        return Evidence(
            gradient=gradient,
            gradient_rounding=error,
            intercept_gradient=slope,
            intercept_rounding=slope_error,
            objective=at.objective,
            objective_rounding=at.objective_rounding,
            basis=self._basis,
            coercivity=self._coercivity,
            is_global=self._basis.ndim == 1 or self._basis.shape[1] == len(self._basis),
            left_out=self._left_out,
        )


def _choose(problem: Problem, basis: Array | None, coercivity: float) -> tuple[str, Array, float]:
    """The kind of proof and, for a quadratic one, its basis and coercivity."""
    penalty, shape = problem.penalty, (problem.n_features, problem.n_targets)
    if "maximum" in problem.loss.capabilities:
        return "maximum error", np.empty(0), 0.0
    is_quadratic = "quadratic" in problem.loss.capabilities & penalty.capabilities
    if is_quadratic:
        if basis is not None and coercivity > 0:
            return "quadratic", basis, coercivity
        least = np.broadcast_to(penalty.curvature, shape).min(axis=1, initial=np.inf)
        if (least > 0).all():
            # One strength for all: keep the basis the identity, exactly.
            flat = least.min(initial=np.inf) == least.max(initial=0.0)
            basis = np.ones(len(least)) if flat else 1.0 / np.sqrt(least)
            proven = float((least * basis**2).min(initial=np.inf)) * (1 - 8 * _EPS)
            return "quadratic", basis, proven if np.isfinite(proven) else 1.0
    if is_fenchel(problem):
        return "fenchel", np.empty(0), 0.0
    if is_tangent(problem):
        return "tangent", np.empty(0), 0.0
    # A domain that ends at zero makes every rounded dual point infeasible.
    near = np.where(unpenalised(problem), 0.0, _NEXT_TO_ZERO)
    around_zero = np.minimum(penalty.dual_scale(near), penalty.dual_scale(-near))
    if "conjugate" in problem.loss.capabilities & penalty.capabilities and (around_zero == 1).all():
        return "duality", np.empty(0), 0.0
    return "bounded", np.empty(0), 0.0


def certify(problem: Problem, W: Array, b: Array) -> Certificate:
    """The certificate of a point, by the proof that fits the problem."""
    return Prover(problem).certify(W, b)


def gap_at(problem: Problem, W: Array, b: Array) -> tuple[float, float]:
    """Objective and proven gap at a point; :class:`Prover` for many points of one problem."""
    prover = Prover(problem)
    at = prover.evaluate(W, b)
    return float(at.objective.sum()), prover.gap(at, W, b)
