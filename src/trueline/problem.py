r"""Problem: the one place where an objective is written down.

    minimise over W, b     sum_i s_i sum_t loss(y_it, x_i.W_t + b_t)  +  penalty(W)

Sums, not means; weights s_i (weight 2 = row twice, weight 0 = row absent); the strength alpha is
inside the penalty; the intercept b is never penalised. Every solver, certificate and test uses
:meth:`Problem.objective` or quantities derived here. One loss, the maximum error, takes the largest
of the rows in place of their sum (:meth:`~trueline.losses.Loss.total`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueline.design import Design
from trueline.losses import Loss, Squared
from trueline.moments import Moments
from trueline.penalties import Penalty
from trueline.wording import Readable

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Problem(Readable):
    """Data, loss, penalty and whether there is an intercept.

    Parameters
    ----------
    design : Design
        The matrix X, of shape (n, d).
    target : array of shape (n, k)
        One column per target, float64.
    loss : Loss
    penalty : Penalty
        With its strength.
    fit_intercept : bool, default=True
    weights : array of shape (n,), optional
        Sample weights; None means one for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.design import as_design
    >>> from trueline.losses import Squared
    >>> from trueline.penalties import L2
    >>> from trueline.problem import Problem
    >>> problem = Problem(as_design(np.eye(2)), np.array([[1.0], [0.0]]), Squared(), L2(1.0), False)
    >>> problem.objective(np.array([[0.5], [0.0]]), np.zeros(1))
    0.25
    """

    design: Design
    target: Array
    loss: Loss
    penalty: Penalty
    fit_intercept: bool = True
    weights: Array | None = None

    @property
    def n_samples(self) -> int:
        return self.design.shape[0]

    @property
    def n_features(self) -> int:
        return self.design.shape[1]

    @property
    def n_targets(self) -> int:
        return self.target.shape[1]

    @property
    def total_weight(self) -> float:
        return float(self.n_samples) if self.weights is None else float(self.weights.sum())

    @property
    def formula(self) -> str:
        """The objective in plain text."""
        score = "z_i = x_i.w + b" if self.fit_intercept else "z_i = x_i.w"
        terms = self.loss.total_formula(self.weights is not None)
        penalty, comma, restriction = self.penalty.formula.partition(", ")
        terms += ("" if penalty == "0" else f" + {penalty}") + comma + restriction
        numbers = {**_numbers(self.loss), **_numbers(self.penalty)}
        shown = [f"{name} = {value:g}" for name, value in numbers.items()]
        return ",  ".join([terms, score, *shown])

    @property
    def is_open(self) -> bool:
        """Whether the scores alone decide: no penalty, and a curved loss that is no square."""
        known = self.loss.capabilities
        curvatures = "hessian" in known or "curvature" in known
        return "none" in self.penalty.capabilities and curvatures and "quadratic" not in known

    def scores(self, W: Array, b: Array) -> Array:
        """X W + b, of shape (n, k)."""
        return self.design.matvec(W) + b

    def weigh(self, values: Array, rows: slice = slice(None)) -> Array:
        """Multiply rows by their weights; weight zero leaves nothing, not even of infinity."""
        if self.weights is None:
            return values
        weights = self.weights[rows, None]
        return np.multiply(values, weights, where=weights != 0, out=np.zeros_like(values))

    def objective(self, W: Array, b: Array) -> float:
        """What is minimised, at coefficients W of shape (d, k) and intercepts b of shape (k,)."""
        return float(self.objective_per_target(W, b).sum())

    def objective_per_target(self, W: Array, b: Array) -> Array:
        """The objective split by target; the targets do not interact."""
        values = self.loss.value(self.target, self.scores(W, b))
        return self.loss.total(values, self.weights) + self.penalty.value_per_target(W)

    def gradient(self, W: Array, b: Array) -> tuple[Array, Array]:
        """The derivatives of :meth:`objective` by W and by b; at a kink, a subgradient."""
        u = self.loss.total_gradient(self.target, self.scores(W, b), self.weights)
        level = u.sum(axis=0) if self.fit_intercept else np.zeros(W.shape[1])
        return self.design.rmatvec(u) + self.penalty.gradient(W), level

    def loss_gradient(self, W: Array, b: Array) -> tuple[Array, Array, Array]:
        """Gradient of the loss part: with respect to W, to b, and the per-row derivatives u."""
        u = self.loss.gradient(self.target, self.scores(W, b))
        weighted = self.weigh(u)
        return self.design.rmatvec(weighted), weighted.sum(axis=0), u


def _numbers(part: Loss | Penalty) -> dict[str, float]:
    """The parameters of a loss or penalty that are single numbers.

    A default that the formula does not name has no part in it.
    """
    values = vars(part)
    base = _numbers(values["base"]) if "base" in values else {}
    # Defaults of a dataclass are attributes of its class.
    return base | {
        name: value
        for name, value in values.items()
        if isinstance(value, (float, int))
        and (name in part.formula or value != getattr(type(part), name, None))
    }


@dataclass(frozen=True, repr=False)
class MomentsProblem(Readable):
    """A least-squares problem of which only the moments are left: the rows are gone.

    It has the same objective as the :class:`Problem` of all the rows that went into the moments.

    Parameters
    ----------
    moments : Moments
        Centred, as they come from :meth:`Moments.from_rows`.
    penalty : Penalty
    fit_intercept : bool, default=True
    """

    moments: Moments
    penalty: Penalty
    fit_intercept: bool = True
    loss: Loss = Squared()

    @classmethod
    def of(cls, problem: Problem, moments: Moments) -> MomentsProblem:
        """The same problem with the rows replaced by their moments."""
        return cls(moments, problem.penalty, problem.fit_intercept, problem.loss)

    @property
    def n_features(self) -> int:
        return self.moments.n_features

    @property
    def n_targets(self) -> int:
        return self.moments.n_targets

    @property
    def total_weight(self) -> float:
        return self.moments.weight


@dataclass(frozen=True, repr=False)
class ConcomitantProblem(Readable):
    """Huber's regression together with the scale of its residuals.

    Minimised over w, b and sigma >= 0, with r_i = x_i.w + b - y_i, is::

        sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha ||w||^2,
        H(t) = t^2 where |t| <= epsilon, 2 epsilon |t| - epsilon^2 beyond,

    which is convex in all of them together; for sigma = 0 its limit 2 epsilon |r_i| is taken.

    Parameters
    ----------
    parts : Problem
        The data with ``Huber(epsilon)`` and ``L2(2 alpha)``, which hold the two numbers.
    """

    parts: Problem

    @property
    def epsilon(self) -> float:
        return float(self.parts.loss.slope_bound)

    @property
    def alpha(self) -> float:
        return 0.5 * float(np.asarray(self.parts.penalty.curvature))

    @property
    def formula(self) -> str:
        """The objective in plain text."""
        weight = "" if self.parts.weights is None else "s_i "
        score = "x_i.w + b" if self.parts.fit_intercept else "x_i.w"
        return (
            f"sum_i {weight}[sigma + sigma H(r_i / sigma)] + alpha ||w||^2,  r_i = {score} - y_i,  "
            "H(t) = t^2 if |t| <= epsilon else 2 epsilon |t| - epsilon^2,  "
            f"epsilon = {self.epsilon:g},  alpha = {self.alpha:g}"
        )

    def row_values(self, residual: Array, scale: float) -> Array:
        """sigma H(r / sigma), elementwise."""
        size = np.abs(residual)
        slope = np.minimum(size, self.epsilon * scale) / scale if scale > 0 else self.epsilon
        return slope * (2 * size - slope * scale)

    def objective(self, w: Array, b: float, scale: float) -> float:
        """What is minimised, at coefficients of shape (d,), an intercept and a scale."""
        parts = self.parts
        residual = parts.design.matvec(w) + b - parts.target[:, 0]
        values = parts.weigh(self.row_values(residual, scale)[:, None])
        return float(parts.total_weight * scale + values.sum() + self.alpha * w @ w)
