"""The solvers by name, and the one place where a loss, a penalty and a solver are paired."""

from __future__ import annotations

from trueline.errors import PairingError
from trueline.losses import LOSSES, Loss
from trueline.penalties import PENALTIES, NonNegative, Penalty
from trueline.solvers.base import Solver
from trueline.solvers.block_coordinate_descent.solver import BlockDescent
from trueline.solvers.chebyshev.smoothed import SmoothedMaximum
from trueline.solvers.chebyshev.solver import Exchange, MaximumProgram
from trueline.solvers.coordinate_descent.solver import CoordinateDescent, GramDescent
from trueline.solvers.dual_coordinate_descent.solver import (
    BalancedDualDescent,
    DualClassDescent,
    DualCoordinateDescent,
    EntropyDualDescent,
)
from trueline.solvers.first_order.proximal_gradient import GradientDescent, ProximalGradient
from trueline.solvers.first_order.stochastic_gradient import MiniBatch, StochasticGradient
from trueline.solvers.least_squares.active_set import ActiveSet
from trueline.solvers.least_squares.cholesky import Cholesky
from trueline.solvers.least_squares.krylov import ConjugateGradient
from trueline.solvers.least_squares.qr import QR, SVD
from trueline.solvers.least_squares.spectrum import Kernel
from trueline.solvers.newton.cg.solver import NewtonCG
from trueline.solvers.newton.solver import Newton
from trueline.solvers.piecewise_linear.class_interior_point import ClassInteriorPoint
from trueline.solvers.piecewise_linear.highs import HiGHS
from trueline.solvers.piecewise_linear.interior_point.solver import InteriorPoint, NonCrossing
from trueline.solvers.piecewise_linear.multipliers import Multipliers
from trueline.solvers.piecewise_linear.smoothed import Smoothed
from trueline.solvers.proximal_newton.columns import WorkingSetNewton
from trueline.solvers.proximal_newton.gram import ProximalNewton

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Cholesky(),
        QR(),
        SVD(),
        Kernel(),
        ConjugateGradient(),
        ActiveSet(),
        GramDescent(),
        CoordinateDescent(),
        BlockDescent(),
        InteriorPoint(),
        Multipliers(),
        HiGHS(),
        NonCrossing(),
        Smoothed(),
        DualCoordinateDescent(),
        BalancedDualDescent(),
        EntropyDualDescent(),
        DualClassDescent(),
        ClassInteriorPoint(),
        Exchange(),
        MaximumProgram(),
        SmoothedMaximum(),
        Newton(),
        NewtonCG(),
        ProximalNewton(),
        WorkingSetNewton(),
        ProximalGradient(),
        GradientDescent(),
        StochasticGradient(),
        MiniBatch(),
    )
}


def missing(solver: Solver, loss: Loss, penalty: Penalty) -> str | None:
    """What keeps this solver from this pair, in words; None if nothing does."""
    lacks = [_LOSS_WORDS.get(need, need) for need in sorted(solver.needs_loss - loss.capabilities)]
    lacks += [
        _PENALTY_WORDS.get(need, need)
        for need in sorted(solver.needs_penalty - penalty.capabilities)
    ]
    if "nonnegative" in penalty.capabilities and "nonnegative" not in solver.accepts_penalty:
        lacks.append("coefficients of either sign")
    return f"needs {' and '.join(lacks)}" if lacks else None


#: Capabilities in words, for messages.
_LOSS_WORDS = {
    "quadratic": "squared loss",
    "smooth": "a smooth loss",
    "curvature": "a loss with second derivatives",
    "hessian": "a logistic, softmax, squared hinge, Poisson, gamma or Tweedie loss",
    "conjugate": "a loss with a conjugate",
    "dual_box": "a loss whose conjugate is quadratic on an interval",
    "dual_classes": "the multiclass hinge",
    "dual_entropy": "the logistic loss of two classes",
    "piecewise_linear": "a piecewise linear loss",
    "maximum": "the maximum error",
    "ordered": "quantiles that must not cross",
    "coupled": "a loss that couples the scores of the classes",
    "margins": "a loss of margins",
}
_PENALTY_WORDS = {
    "quadratic": "a quadratic penalty or none",
    "smooth": "a smooth penalty or none",
    "prox": "a penalty with a proximal operator",
    "conjugate": "a penalty with a conjugate",
    "coordinates": "an L1 term (lasso, elastic net) or bounds",
    "nonnegative": "nonnegative coefficients (positive=True)",
    "blocks": "a penalty on groups of coefficients",
    "polyhedral": "an L1 penalty or none",
    "elastic": "an L1, L2 or elastic net penalty or none",
    "none": "no penalty",
}


def solvers_for(loss: Loss, penalty: Penalty) -> list[Solver]:
    """The solvers that can minimise this pair."""
    return [solver for solver in SOLVERS.values() if missing(solver, loss, penalty) is None]


def as_solver(name: str, loss: Loss, penalty: Penalty) -> Solver:
    """A solver by name, checked against the pair.

    Raises
    ------
    PairingError
        Saying what is missing and which solvers work.

    Examples
    --------
    >>> from trueline.losses import Squared
    >>> from trueline.penalties import L1
    >>> from trueline.solvers.registry import as_solver
    >>> as_solver("cholesky", Squared(), L1())
    Traceback (most recent call last):
        ...
    trueline.errors.PairingError: solver='cholesky' cannot minimise the squared loss with the l1 \
penalty: it needs a quadratic penalty or none. Solvers that can: gram_descent, \
coordinate_descent, proximal_newton, proximal_gradient.
    """
    working = ", ".join(solver.name for solver in solvers_for(loss, penalty)) or "none"
    if name not in SOLVERS:
        raise PairingError(
            f"solver={name!r} is not known. Solvers for the {loss.name} loss with the "
            f"{penalty.name} penalty: auto, {working}."
        )
    trouble = missing(SOLVERS[name], loss, penalty)
    if trouble:
        raise PairingError(
            f"solver={name!r} cannot minimise the {loss.name} loss with the {penalty.name} "
            f"penalty: it {trouble}. Solvers that can: {working}."
        )
    return SOLVERS[name]


def pairing_table() -> list[dict[str, str]]:
    """Every loss x penalty with its solvers and kinds of proof, for the documentation."""
    rows = []
    penalties = [cls() for cls in PENALTIES.values() if cls is not NonNegative]
    penalties += [NonNegative(base) for base in penalties if base.name != "bounded"]
    for loss_class in LOSSES.values():
        loss = loss_class()
        for penalty in penalties:
            solvers = solvers_for(loss, penalty)
            name = penalty.name
            if isinstance(penalty, NonNegative):
                name = f"{penalty.base.name}, w >= 0"
            rows.append(
                {
                    "loss": loss.name,
                    "penalty": name,
                    "solvers": ", ".join(solver.name for solver in solvers),
                    "proof": ", ".join(dict.fromkeys(solver.proof for solver in solvers)),
                }
            )
    return rows
