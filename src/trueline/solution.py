"""Solution: what every solver returns, and Status: how it ended, with advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.moments import Moments
from trueline.trace import Trace
from trueline.wording import Readable, counted

Array = NDArray[np.float64]


def resolved(proof: Certificate | PendingCertificate | None) -> Certificate | None:
    """The certificate itself, worked out if it was pending."""
    return proof if proof is None or isinstance(proof, Certificate) else proof.certificate()


class Status(Enum):
    """How a fit ended. Each value is the explanation that reports and warnings print."""

    SOLVED = "solved directly, to rounding"
    CONVERGED = "the proven gap is below the tolerance"
    SETTLED = (
        "the gradient vanished to the tolerance; without a penalty and with so many columns the "
        "gap is proven for a bounded region only"
    )
    SMOOTHED = "the smooth function was minimised to rounding; the gap is what the smoothing leaves"
    STATIONARY = "the gradient vanished to the tolerance; the objective is not convex"
    STALLED = (
        "progress stopped at the rounding level before the gap reached the tolerance: the "
        "tolerance may be finer than double precision can prove on this data; standardise the "
        "columns, or raise tol"
    )
    MAX_ITER = (
        "the iteration limit was reached before the gap fell below the tolerance: raise max_iter, "
        "raise tol, or standardise the columns; solver='auto' picks a faster method"
    )
    HANDED_OVER = "handed over: from here on another solver is faster or more exact"
    TIME_LIMIT = "the time limit was reached before the gap fell below the tolerance"
    STOPPED = "a callback asked to stop"
    UNPROVEN = (
        "the solver ended, but the proof of its answer does not reach the tolerance: standardise "
        "the columns, raise tol, or name another solver"
    )
    UNBOUNDED = (
        "the coefficients grow without end while the objective falls by ever less: without a "
        "penalty there is no best fit of classes that a hyperplane separates"
    )
    DIVERGED = (
        "the iterates became infinite or NaN: the step size is too large for this data; lower "
        "eta0 (or leave it at None so that it is computed), or standardise the columns"
    )

    @property
    def is_final(self) -> bool:
        """Whether the answer is as good as was asked for."""
        return self in _FINAL


_FINAL = (
    Status.SOLVED,
    Status.CONVERGED,
    Status.SETTLED,
    Status.SMOOTHED,
    Status.STATIONARY,
)


class PendingCertificate(Protocol):
    """A proof that is worked out when it is asked for.

    Attributes
    ----------
    coef, intercept : arrays of shape (d, k) and (k,)
        The point that it is about.
    """

    @property
    def coef(self) -> Array: ...

    @property
    def intercept(self) -> Array: ...

    def bound(self) -> float:
        """At least the gap of the certificate, at a fraction of its price; infinite if unknown."""

    def certificate(self) -> Certificate:
        """Work it out."""


#: What a solution carries: a proof, or what will give one when it is asked for.
Proof = Certificate | PendingCertificate


@dataclass(frozen=True, repr=False)
class Stage(Readable):
    """One of the solvers that ran, one after the other, until the answer was proven.

    Attributes
    ----------
    solver : str
    n_iter : int
    seconds : float
    gap : float
        Proven bound on the distance of its answer to the optimum.
    status : Status
    """

    solver: str
    n_iter: int
    seconds: float
    gap: float
    status: Status

    def facts(self) -> list[Any]:
        """Plain data: solver, iterations, seconds, gap, and the ending in words."""
        return [self.solver, self.n_iter, self.seconds, self.gap, self.status.value]


@dataclass
class PathSolution:
    """The answers to members of a set that differ in the strength of their penalty, together.

    Attributes
    ----------
    numbers : list of int
        The members, m of them.
    coefs, intercepts : arrays of shape (d, k, m) and (k, m)
    gaps : array of shape (m,)
        Each is at least the distance of an answer to the optimum.
    allowed : float
        The gap that was to be reached.
    solver : str
    n_iter : sequence of int
    moments : Moments, optional
        Of the rows, when the solver formed them.
    """

    numbers: list[int]
    coefs: Array
    intercepts: Array
    gaps: Array
    allowed: float
    solver: str
    n_iter: Sequence[int]
    moments: Moments | None = None


@dataclass(repr=False)
class Solution(Readable):
    """The same fields from every solver.

    Attributes
    ----------
    coef : array of shape (d, k)
    intercept : array of shape (k,)
    status : Status
    solver : str
        Name of the solver that ran.
    n_iter : int
        Iterations, 1 for a direct solver.
    proof : Certificate or pending proof
        What is proven about the answer; :attr:`certificate` works it out if it is pending.
    trace : Trace
    notes : list of str
        What happened that a person would want to know: rank, refinement, escalation.
    moments : Moments, optional
        The sufficient statistics, when the solver formed them.
    rank : int, optional
        Numerical rank of the (centred) design, when the solver determined it.
    singular_values : array, optional
        Of the (centred, weighted) design, when the solver determined them.
    row_space : array of shape (d, rank), optional
        Vectors that span the directions of the coefficients that the data determine, if those are
        not all.
    residual_square : array of shape (k,), optional
        sum_i s_i (residual of row i)^2 per target, when the solver read the rows for it.
    seconds : float
        Wall time of the solve.
    tolerance : float, optional
        The gap that was to be reached, where it is not the tolerance times the objective of the
        best constant, or where the proof is one that only this solver makes.
    stages : list of Stage
        What ran until the answer was proven, in order; the last one is added by the guard.
    allowed : float
        The gap that the answer was judged by, rounding included; NaN until it was judged.
    """

    coef: Array
    intercept: Array
    status: Status
    solver: str
    n_iter: int = 1
    proof: Proof | None = None
    trace: Trace = field(default_factory=Trace)
    notes: list[str] = field(default_factory=list)
    moments: Moments | None = None
    rank: int | None = None
    singular_values: Array | None = None
    row_space: Array | None = None
    residual_square: Array | None = None
    seconds: float = 0.0
    tolerance: float | None = None
    stages: list[Stage] = field(default_factory=list)
    allowed: float = float("nan")
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"Solution: {self.solver}, {counted(self.n_iter, 'iteration')}, {self.seconds:.3g} s: "
            f"{self.status.value}",
            f"coefficients of shape {self.coef.shape}, {np.count_nonzero(self.coef)} not zero",
        ]
        if isinstance(self.proof, Certificate):
            lines.append(f"proof: {self.proof}")
        return "\n".join([*lines, *self.notes])

    @property
    def certificate(self) -> Certificate | None:
        """What is proven about the answer."""
        self.proof = resolved(self.proof)
        return self.proof

    @certificate.setter
    def certificate(self, certificate: Certificate) -> None:
        self.proof = certificate

    def facts(self) -> dict[str, Any]:
        """What happened, as plain data that an estimator can keep."""
        return {
            "solver": self.solver,
            "n_iter": self.n_iter,
            "seconds": self.seconds,
            "status": self.status.value,
            "notes": list(self.notes),
            "stages": [stage.facts() for stage in self.stages],
            "is_final": self.status.is_final,
            "allowed": self.allowed,
        }
