r"""Certificates of kernel support vector machines: primal and dual objective, and their gap.

For f of the kernel's space, an intercept b, and multipliers beta of the rows:

    primal   1/2 ||f||^2 + sum_i C_i loss(y_i, f(x_i) + b)
    dual     sum_i t_i beta_i - eps sum_i |beta_i| - 1/2 beta'K beta

No f has a primal value below the dual value of any feasible beta, provided that the kernel is
positive semi-definite. For kernels of which that is not known (sigmoid, given matrices and
functions) nothing but stationarity is claimed: no pair of multipliers of any group improves the
dual objective by more than its violation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueline.wording import Readable, relative

if TYPE_CHECKING:
    from trueline.check import Verification

__all__ = ["SUPPORT_VECTOR_KINDS", "SupportVectorCertificate"]

Array = NDArray[np.float64]

#: The kinds of proof, and what each one says in a sentence.
SUPPORT_VECTOR_KINDS: dict[str, str] = {
    "kernel duality": (
        "no function of the kernel's space and no intercept give an objective lower than the one "
        "reached by more than the gap"
    ),
    "kernel stationarity": (
        "local: the kernel is not known to be positive semi-definite, so nothing is claimed about "
        "other functions; no two multipliers can be moved against each other with a gain above "
        "the stated violation"
    ),
}


@dataclass(frozen=True, repr=False)
class SupportVectorCertificate(Readable):
    """The objective reached, a proven lower bound, and everything that verifies both.

    Attributes
    ----------
    kind : {"kernel duality", "kernel stationarity"}
        :attr:`statement` says it in words.
    machine : {"svc", "nu_svc", "svr", "nu_svr", "one_class"}
    objective : float
        The primal objective; with several pairs of classes the sum of theirs.
    objective_rounding : float
        Bound on the error made in evaluating it.
    gap : float
        Proven upper bound on objective minus optimum; infinite if the statement is local.
    violation : float
        The largest gain that moving two multipliers against each other still has.
    kernel : KernelFunction or callable
    parameters : mapping of str to float
        C, epsilon, nu, as far as the machine has them.
    classes, class_weight : arrays of shape (k,)
        Empty for machines without classes.
    support : array of int of shape (m,)
        Rows of the training data.
    coef : array of shape (1, m) or (k - 1, m)
        Dual coefficients, in the layout and with the signs of ``dual_coef_``.
    intercept : array
    witness : mapping of str to array
        What :meth:`verify` needs beside data and coefficients.
    """

    kind: str
    machine: str
    objective: float
    objective_rounding: float
    gap: float
    violation: float
    kernel: Any
    parameters: Mapping[str, float]
    classes: Any
    class_weight: Array
    support: NDArray[np.intp]
    coef: Array
    intercept: Array
    witness: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lower_bound(self) -> float:
        """A number that the optimum is proven not to lie below; minus infinity if local."""
        return self.objective - self.objective_rounding - self.gap

    @property
    def dual_objective(self) -> float:
        """The dual objective, on the safe side of rounding."""
        return self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective; infinite if local."""
        if self.gap <= 1e-280:
            return 0.0
        if self.objective == 0 or math.isinf(self.gap):
            return math.inf
        return self.gap / abs(self.objective)

    @property
    def statement(self) -> str:
        """What is proven, in a sentence."""
        return SUPPORT_VECTOR_KINDS[self.kind]

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Check every claim against the data, independently of the solver.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted; the kernel matrix, if it is precomputed.
        y : array-like of shape (n,)
            Labels or targets; not needed for the machine with one class.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
        """
        from trueline.check import verify

        return verify(self, X, y, sample_weight)

    def __str__(self) -> str:
        if self.kind == "kernel duality":
            return (
                f"objective {self.objective:.10g}, proven within {self.gap:.3g} of the optimum "
                f"({relative(self.relative_gap)})"
            )
        return (
            f"objective {self.objective:.10g}, violation {self.violation:.3g} (local: the kernel "
            "is not known to be positive semi-definite)"
        )
