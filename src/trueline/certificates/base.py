"""Certificate: what is proven about a fit, and the witness that proves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss
from trueline.penalties import Penalty
from trueline.wording import Readable, relative

if TYPE_CHECKING:
    from trueline.check import Verification

Array = NDArray[np.float64]
#: Design, target and weights out of what an estimator was given.
Reading = Callable[[Any, Any, Any], tuple[Any, Any, Any]]

#: The kinds of proof, and what each one claims in a sentence. Whether that is proven, and under
#: which condition, is what :mod:`trueline.check` finds out.
KINDS: dict[str, str] = {
    "quadratic": (
        "no coefficients give an objective lower than the one reached by more than the gap"
    ),
    "row space": (
        "no coefficients give an objective lower than the one reached by more than the gap; "
        "columns depend on each other, and what rounding may hide of that is a condition that the "
        "check states"
    ),
    "fenchel": (
        "no coefficients give an objective lower than the one reached by more than the gap, by a "
        "dual point made of the residuals"
    ),
    "duality": (
        "no coefficients give an objective lower than the one reached by more than the gap, by a "
        "dual point"
    ),
    "ordered duality": (
        "no coefficients whose predictions for the fitted rows are in the order of the quantiles "
        "give an objective lower than the one reached by more than the gap; these are in that "
        "order up to the stated slack"
    ),
    "curvature": (
        "no coefficients give an objective lower than the one reached by more than the gap, by the "
        "curvature around them and convexity beyond"
    ),
    "local": (
        "no coefficients within the stated distance give an objective lower than the one reached "
        "by more than the gap; the objective is not convex, and lower values elsewhere are not "
        "excluded"
    ),
    "stationary": (
        "the slope of the penalised likelihood vanishes up to the stated one; it is not convex: "
        "all that is known of other coefficients is that none have an objective lower by more than "
        "the gap"
    ),
    "tangent": (
        "no coefficients give an objective lower than the one reached by more than the gap, by the "
        "tangent of the losses there and the penalty"
    ),
    "concomitant": (
        "no coefficients and no scale give an objective lower than the one reached by more than "
        "the gap"
    ),
    "bounded": (
        "no coefficients give an objective lower than the one reached by more than the gap, by a "
        "dual point made of the slopes of the losses"
    ),
    "search": (
        "no coefficients with at most the stated number of non-zeros give an objective lower than "
        "the one reached by more than the gap, by branch and bound (checked: its bound at the "
        "root, and what this leaves open where that is few supports)"
    ),
    "conditioned search": (
        "no coefficients with at most the stated number of non-zeros, on columns whose correlation "
        "matrix has no eigenvalue below the stated delta, give an objective lower than the one "
        "reached by more than the gap, by branch and bound (checked: its bound at the root, and "
        "what this leaves open where that is few supports)"
    ),
    "maximum error": (
        "no coefficients give a largest error lower than the one reached by more than the gap"
    ),
    "hard margin": (
        "every row is on its margin or beyond, and no coefficients of which this holds give an "
        "objective lower than the one reached by more than the gap"
    ),
    "training errors": (
        "the objective is the weight of the rows that these coefficients get wrong; that fewer "
        "errors are impossible is not claimed"
    ),
    "mistake bound": (
        "the run made the stated number of updates, no more than its bound (R / gamma)^2, with R "
        "the largest norm of a row and gamma the margin of the separator in the witness; the "
        "objective is the weight of the rows that these coefficients get wrong"
    ),
    "kernel mistake bound": (
        "the run made the stated number of updates, no more than its bound (R / gamma)^2, with R "
        "the largest norm of a row and gamma the margin of the separator in the witness, both in "
        "the space of the (positive semidefinite) kernel; the objective is the weight of the rows "
        "that these coefficients get wrong"
    ),
    "zero-one packing": (
        "no hyperplane has errors of a weight lower than the one reached by more than the gap: of "
        "each of the stated sets of rows it gets at least one wrong (checked: in exact arithmetic)"
    ),
    "zero-one search": (
        "no hyperplane has errors of a weight lower than the one reached by more than the gap, by "
        "exhaustive search (checked: the errors, and the sets of rows that bound it at the root)"
    ),
}


def checkable(gap: float, objective: float, floor: float = 1e-14) -> float:
    """A gap that leaves room for whoever checks it, whose bounds round differently.

    Parameters
    ----------
    gap : float
        As proven by the fit.
    objective : float
    floor : float
        The share of the objective below which nothing is claimed: proofs of first order in the
        multipliers round at a few units of the last place, those of second order at its square.
    """
    room = floor * abs(float(objective)) + 1e-290 if floor else 0.0
    return max(float(gap), 0.0) * 1.02 + room


class Proof(Readable):
    """What all certificates have in common: a kind with its statement, and a check.

    Those about an objective have a gap: ``objective``, ``objective_rounding`` and ``gap``.
    """

    kind: str
    objective: float
    objective_rounding: float
    gap: float
    _statements: Mapping[str, str] = KINDS

    @property
    def lower_bound(self) -> float:
        """A number that the optimum is proven not to lie below; minus infinity if local."""
        return self.objective - self.objective_rounding - self.gap

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective (0 / 0 is 0, up to what underflows)."""
        if self.gap <= 1e-280:
            return 0.0
        with np.errstate(divide="ignore"):
            return float(np.float64(self.gap) / np.abs(np.float64(self.objective)))

    @property
    def statement(self) -> str:
        """What is claimed, in a sentence; that of :meth:`verify` has numbers and conditions."""
        return self._statements[self.kind]

    def read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Design, target and weights of the objective out of what the estimator was given.

        Raises
        ------
        ValueError
            If they cannot be the data of the fit: other columns, classes it never saw.
        """
        return X, y, sample_weight

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Check every claim against the data, independently of all solvers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows that were fitted; the kernel matrix, if it is precomputed.
        y : array-like of shape (n,) or (n, k)
            Labels or targets; none for the machine with one class.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        verification : Verification
            True in a boolean context if the claim is proven without any condition; prints as a
            table of checks, with what is proven and under which conditions.
        """
        from trueline.check import Verification, verify

        try:
            X, y, sample_weight = self.read(X, y, sample_weight)
        except ValueError as error:
            return Verification.refused(error)
        return verify(self, X, y, sample_weight)


@dataclass(frozen=True, repr=False)
class Certificate(Proof):
    """The objective reached, a proven lower bound on the optimum, and the witness.

    Attributes
    ----------
    kind : {"quadratic", "row space", "fenchel", "duality", "bounded", ...}
        The kind of proof; :attr:`statement` says it in words.
    objective : float
        ``Problem.objective`` at the coefficients, summed over targets.
    objective_rounding : float
        Bound on the rounding error made in evaluating the objective.
    gap : float
        Proven upper bound on objective minus optimum, on the safe side of rounding.
    loss, penalty, fit_intercept
        What was minimised.
    coef, intercept : arrays of shape (d, k) and (k,)
        The coefficients that the statement is about.
    witness : mapping of str to array
        What :meth:`verify` needs beside data and coefficients.
    reading : callable, optional
        How rows, labels and weights as they were given to the estimator become the design, the
        target and the weights of the objective: classes become signs, for example. Without one,
        they are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline import LinearRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 4.0])
    >>> certificate = LinearRegression().fit(X, y).certificate_
    >>> round(certificate.objective, 6), bool(certificate.gap < 1e-20)
    (0.083333, True)
    >>> bool(certificate.verify(X, y))
    True
    """

    kind: str
    objective: float
    objective_rounding: float
    gap: float
    loss: Loss
    penalty: Penalty
    fit_intercept: bool
    coef: Array
    intercept: Array
    witness: Mapping[str, Any] = field(default_factory=dict)
    reading: Reading | None = field(default=None, repr=False, compare=False)

    @classmethod
    def about(
        cls,
        problem: Any,
        kind: str,
        W: Array,
        b: Array,
        objective: Any,
        rounding: Any,
        gap: Any,
        witness: Mapping[str, Any] | None = None,
    ) -> Certificate:
        """What is claimed of coefficients of a problem; objectives of several targets are added."""
        return cls(
            kind=kind,
            objective=float(np.sum(objective)),
            objective_rounding=float(np.sum(rounding)),
            gap=float(gap),
            loss=problem.loss,
            penalty=problem.penalty,
            fit_intercept=problem.fit_intercept,
            coef=W,
            intercept=b,
            witness={} if witness is None else witness,
        )

    def above_zero(self) -> Certificate:
        """A certificate that claims no more than that no objective is negative."""
        most = checkable(self.objective + self.objective_rounding, self.objective)
        return replace(self, gap=max(self.gap, most))

    def read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """By :attr:`reading`."""
        return (X, y, sample_weight) if self.reading is None else self.reading(X, y, sample_weight)

    def __str__(self) -> str:
        return (
            f"objective {self.objective:.10g}, proven within {self.gap:.3g} of the optimum "
            f"({relative(self.relative_gap)}); {self.kind} proof"
        )
