r"""The guard: every answer is judged by its proof, and a warning says what is not proven.

A solver says how it ended; what counts is what is proven about the point that it returned. The gap
that is allowed is

    tol P(constant) + rounding,

the tolerance relative to the objective of the best model without coefficients. (At coefficients
that are better than that model, tol P(w) is no more, which spares computing P(constant).) Rounding
keeps proofs from going below a number that depends on the data:

- four times the rounding of the objective itself;
- for proofs whose bound is linear in the rounding of the gradient (all but those for quadratic
  functions of independent columns), 1e-9 of the terms that cancel in the objective: these proofs
  multiply the rounding by a radius, which is a thousand times the size of the coefficients, or by
  what dependent columns may hide;
- for proofs of functions that are not quadratic, 1e-6 of the objective: weights or columns that
  differ by powers of ten keep such proofs from less.

All of it together is never more than a millionth of P(constant); where the target is constant and
leaves nothing to explain, never more than 1e-9 of its size. A larger gap is reported.

Direct solvers leave their proofs to be worked out when they are asked for. The guard then asks for
a bound on the gap that costs little (:meth:`~trueline.solution.PendingCertificate.bound`), and
works the proof out only where that does not decide.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from trueline.certificates.base import Certificate
from trueline.certificates.choose import certify
from trueline.moments import Moments
from trueline.problem import MomentsProblem, Problem
from trueline.solution import PendingCertificate, Solution, Stage, Status
from trueline.solvers import constant_model
from trueline.wording import counted, times

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# Of the terms that cancel in an objective: what a proof with a radius cannot distinguish from zero.
_UNSEEN = 1e-9
# Of the objective: the same where weights or columns differ by powers of ten. Solvers stop there.
_FAR_APART = 1e-6
_UNDERFLOW = 1e-280
# Certificates claim a little more than solvers stop at: whoever checks them rounds differently.
_ROOM = 1.2
# A target varies if the best constant leaves errors of more than this share of it; of what it
# leaves, more than this part is never put down to rounding.
_CONSTANT, _SMALL_PART = 1e-10, 1e-6
# Proofs for quadratic functions; those of the first kind are quadratic in the gradient's rounding.
_SHARP, _OF_QUADRATICS = "quadratic", frozenset({"quadratic", "row space"})
# Endings that claim to be as good as was asked for.
_CLAIMS = (Status.SOLVED, Status.CONVERGED, Status.SETTLED, Status.STATIONARY)


class Verdict(NamedTuple):
    """Whether the answer is proven to the tolerance, the proven gap, and the one allowed."""

    is_proven: bool
    gap: float
    allowed: float


def judge(problem: Problem | MomentsProblem, solution: Solution, tol: float) -> Verdict:
    """Judge the proof of a solution; one about another point is replaced by one about this.

    Parameters
    ----------
    problem : Problem or MomentsProblem
    solution : Solution
    tol : float
        The gap asked for, relative to the objective of the best constant.
    """
    W, b = solution.coef, solution.intercept
    proof = solution.proof
    if solution.tolerance is not None:
        return judge_by_own(solution, solution.tolerance, lambda: problem)
    if proof is None or not is_about(proof, W, b):
        if not (isinstance(problem, Problem) and np.isfinite(W).all() and np.isfinite(b).all()):
            return Verdict(False, math.inf, 0.0)
        proof = solution.proof = certify(problem, W, b)
    if not isinstance(proof, Certificate):
        allowed = _asked(problem, solution, tol)
        bound = proof.bound()
        if bound <= allowed:
            return Verdict(True, bound, allowed)
    certificate = solution.certificate
    assert certificate is not None
    gap, objective = certificate.gap, certificate.objective
    below = _ROOM * tol * (objective - gap - certificate.objective_rounding)
    if gap <= below:
        return Verdict(True, gap, below)
    allowed = _ROOM * _asked(problem, solution, tol)
    if not gap <= allowed:
        allowed += _rounding(problem, certificate, allowed / (_ROOM * tol) if tol > 0 else 0.0)
    return Verdict(bool(gap <= allowed), gap, allowed)


def judge_by_own(
    solution: Solution, allowed: float, problem: Callable[[], Problem | MomentsProblem]
) -> Verdict:
    """The same where the solver says which gap it was to reach: there is no other proof either.

    The problem is asked for only where that gap is missed, by rounding perhaps.
    """
    proof = solution.proof
    if proof is None or not is_about(proof, solution.coef, solution.intercept):
        return Verdict(False, math.inf, allowed)
    if not isinstance(proof, Certificate) and proof.bound() <= allowed:
        return Verdict(True, proof.bound(), allowed)
    certificate = solution.certificate
    assert certificate is not None
    gap = certificate.gap
    if certificate.kind == "stationary":
        # No optimum is claimed: what a step along the slope, in its own metric, would gain.
        gap = 0.5 * float(certificate.witness["slope"]) ** 2
    if not gap <= allowed:
        asked = problem()
        most = _most_rounding(asked, tolerance_of(asked, 1.0))
        allowed += min(4 * certificate.objective_rounding, most) + _UNDERFLOW
    return Verdict(bool(gap <= allowed), gap, allowed)


def confirm(solution: Solution, verdict: Verdict) -> None:
    """Write the stage down; an answer that claims more than is proven is called unproven."""
    seconds = solution.seconds - sum(before.seconds for before in solution.stages)
    stage = Stage(solution.solver, solution.n_iter, seconds, verdict.gap, solution.status)
    solution.stages, solution.allowed = [*solution.stages, stage], verdict.allowed
    if not verdict.is_proven and solution.status in _CLAIMS:
        if solution.status is Status.SETTLED:
            solution.notes.append(solution.status.value)
        solution.status = Status.UNPROVEN


def verdict_of(solution: Solution) -> Verdict:
    """What was found when the solution was judged."""
    gap, is_final = min([stage.gap for stage in solution.stages]), solution.status.is_final
    certificate = None if is_final else solution.certificate
    return Verdict(is_final, gap if certificate is None else certificate.gap, solution.allowed)


def is_about(proof: Certificate | PendingCertificate, coef: Array, intercept: Array) -> bool:
    """Whether a proof is about these coefficients."""
    same = proof.coef is coef or np.array_equal(proof.coef, coef)
    return same and (proof.intercept is intercept or np.array_equal(proof.intercept, intercept))


# --- what is allowed ----------------------------------------------------------------------------


def tolerance_of(problem: Problem | MomentsProblem, tol: float) -> float:
    """tol times the objective of the best constant, and the last digits of the targets."""
    if isinstance(problem, MomentsProblem):
        return tol * _half_square(problem.moments, problem.fit_intercept)
    constants, unit = constant_model(problem)
    if "maximum" in problem.loss.capabilities:
        values = problem.loss.value(
            problem.target, np.broadcast_to(constants, problem.target.shape)
        )
        unit = float(problem.loss.total(values, problem.weights).sum())
    return tol * unit if math.isfinite(unit) else 0.0


def _asked(problem: Problem | MomentsProblem, solution: Solution, tol: float) -> float:
    """The gap that was asked for."""
    moments = solution.moments
    if moments is not None and isinstance(problem, Problem):
        return tol * _half_square(moments, problem.fit_intercept)
    return tolerance_of(problem, tol)


def _half_square(moments: Moments, fit_intercept: bool) -> float:
    """The objective of the best constant for squared loss."""
    square = math.fsum(moments.y_square)
    if not fit_intercept:
        square += moments.weight * float(moments.y_mean @ moments.y_mean)
    return 0.5 * square


def _rounding(problem: Problem | MomentsProblem, certificate: Certificate, unit: float) -> float:
    """Gaps that rounding of the data hides."""
    rounding = 4 * certificate.objective_rounding
    if certificate.kind != _SHARP:
        rounding += _UNSEEN * (unit + _cancelling(problem, certificate, unit))
    if certificate.kind not in _OF_QUADRATICS:
        rounding += _FAR_APART * abs(certificate.objective)
    return min(rounding, _most_rounding(problem, unit)) + _UNDERFLOW


def _most_rounding(problem: Problem | MomentsProblem, unit: float) -> float:
    """What is ever put down to rounding, whatever the coefficients.

    Where the target varies, it is a small part of what there is to explain: an answer that
    rounding alone could have made is none.
    """
    if isinstance(problem, MomentsProblem):
        moments = problem.moments
        targets = float(moments.y_size.sum() + moments.weight * (moments.y_mean @ moments.y_mean))
    else:
        targets = float(problem.weigh(problem.loss.target_size(problem.target) ** 2).sum())
    if "quadratic" in problem.loss.capabilities:
        size, varies = targets, unit > _CONSTANT**2 * targets
    else:
        size = math.sqrt(problem.total_weight * targets)
        varies = unit > _CONSTANT * size
    return _SMALL_PART * unit if varies else _UNSEEN * size


def _cancelling(problem: Problem | MomentsProblem, certificate: Certificate, unit: float) -> float:
    """The objective of the magnitudes of targets, terms of the scores and intercepts."""
    W, b = certificate.coef, certificate.intercept
    if isinstance(problem, MomentsProblem):
        moments = problem.moments
        reach = np.sqrt(moments.y_size) + np.sqrt(moments.x_size) @ np.abs(W)
        return float(reach @ reach)
    design, weights, weight = problem.design, problem.weights, problem.total_weight
    targets = problem.loss.target_size(problem.target)
    sizes = np.sqrt(problem.weigh(targets**2).sum(axis=0)) + math.sqrt(weight) * np.abs(b)
    reach = sizes + np.sqrt(design.column_squares(weights, None)) @ np.abs(W)
    if "maximum" in problem.loss.capabilities:
        return float(design.column_largest() @ np.abs(W).sum(axis=1) + np.abs(b).sum())
    if "quadratic" not in problem.loss.capabilities:
        slope = problem.loss.slope_bound if math.isfinite(problem.loss.slope_bound) else 1.0
        return slope * math.sqrt(weight) * float(reach.sum())
    # About the means one factor of each square has no offset.
    spread = reach
    if problem.fit_intercept:
        mean = design.column_means(weights)
        spread = np.sqrt(design.column_squares(weights, mean)) @ np.abs(W) + math.sqrt(2 * unit)
    return float(spread @ reach)


# --- warnings -------------------------------------------------------------------------------


def warn_of_gaps(who: str, what: str, verdicts: Sequence[Verdict], stacklevel: int = 3) -> None:
    """One warning for many fits: how many are not proven, and the largest gap.

    Parameters
    ----------
    who : str
        The estimator or function.
    what : str
        What each fit is: "fold and strength", "class".
    verdicts : sequence of Verdict
    """
    unproven = [verdict for verdict in verdicts if not verdict.gap <= verdict.allowed]
    if not unproven:
        return
    worst = max(unproven, key=lambda verdict: _times(verdict))
    warnings.warn(
        f"{who}: {len(unproven)} of {counted(len(verdicts), 'fit')} ({what}) are not proven to "
        f"the tolerance; the largest gap is {worst.gap:.3g}, {times(_times(worst))} what is "
        "allowed. Standardise the columns, raise tol or max_iter.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def warn_of_gap(
    who: str, what: str, verdict: Verdict, advice: str = "", stacklevel: int = 3
) -> None:
    """One warning for one fit of a model that no registered solver fits.

    Parameters
    ----------
    who, what : str
        The estimator, and what of it is not proven.
    verdict : Verdict
    advice : str, optional
        Why, and what to do.
    """
    if verdict.is_proven:
        return
    warnings.warn(
        f"{who}: {what} are not proven to the tolerance: the gap is {verdict.gap:.3g}, "
        f"{times(_times(verdict))} what is allowed. {advice}".rstrip(),
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def _times(verdict: Verdict) -> float:
    """The gap relative to the one allowed."""
    return verdict.gap / verdict.allowed if verdict.allowed > 0 else math.inf
