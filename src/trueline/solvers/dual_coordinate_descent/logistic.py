r"""Sweeps over the rows of a logistic regression, each of which moves one dual variable.

With the penalty a/2 ||w||^2 the optimal coefficients are w = sum_i y_i c_i q_i x_i, where
c_i = s_i / a and q_i is the probability that row i gives to the other class. The dual,

    minimise over 0 < q < 1    1/2 || sum_i y_i c_i q_i x_i ||^2
                               + sum_i c_i (q_i log q_i + (1 - q_i) log(1 - q_i)),

is descended along one q_i at a time (H.-F. Yu, F.-L. Huang, C.-J. Lin, "Dual coordinate descent
methods for logistic regression and maximum entropy models", Mach. Learn. 85 (2011) 41-75). With
t = log(q_i / (1 - q_i)) the minimum along it is where

    c_i x_i.x_i (q(t) - q_i) + y_i z_i + t = 0,

which increases in t by 1 to 1 + c_i x_i.x_i / 4: Newton's method between two bounds takes one or
two steps, and one exponential each. The gap is the sum over the rows of c_i times the divergence of
p_i, the probability that the margin gives to the other class, from q_i. Near the minimum that is
half of what it is in both directions together,

    (q_i - p_i) (log(q_i / (1 - q_i)) + y_i z_i) / 2,

and its sum over a sweep is an estimate of the gap. An intercept asks for sum_i y_i c_i q_i = 0: as
in :mod:`trueline.solvers.dual_coordinate_descent.solver` a constant column stands for its distance
from a centre, which follows after every sweep.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.base import Certificate
from trueline.certificates.duality import certify_duality
from trueline.design.sparse import LARGE
from trueline.design.sparse_columns import column_dot
from trueline.numerics.jit import kernel
from trueline.problem import Problem
from trueline.solvers.base import Options, Progress
from trueline.solvers.dual_coordinate_descent.kernels import add_row, visiting_order
from trueline.solvers.dual_coordinate_descent.rows import DualIteration, SharedRows, balanced

Array = NDArray[np.float64]

# Where sweeps leave a larger share of the gap than this, Newton's method is faster.
_SLOW, _MOST_SWEEPS = 0.4, 12
# Of small data the proofs of Newton's method cost as much as many sweeps.
_SMALL_SWEEPS = 24
# Smaller tolerances are left to Newton's method: its proofs hold more digits.
_FINEST = 1e-8
# A proof is made when the forecast of the gap is at most this share of the target: it may be a
# little off.
_PROOF_SHARE = 0.5
# The gap is proven after so many sweeps at the latest.
_PROOF_EVERY = 50


class LogisticIteration(DualIteration):
    """The probabilities q, their logits and w."""

    def __init__(
        self, problem: Problem, options: Options, is_watched: bool, shared: SharedRows
    ) -> None:
        super().__init__(problem, options, is_watched, shared)
        n, self._y = problem.n_samples, problem.target[:, 0]
        c = self.weights / self.strength
        self._terms = np.stack([self._y, c, self.rows.squares], axis=1)
        self._logits = np.full(n, -FARTHEST)
        self._gap_estimate, self._gap_forecast = np.inf, np.inf
        self._finest = self.target * max(1.0, _FINEST / options.tol) if options.tol > 0 else np.inf
        self._proof: Certificate | None = None
        if options.start is not None:
            self._start_at(options.start, options.start_intercept)
        self._shares = 1.0 / (1.0 + np.exp(-self._logits))
        if options.start is not None:
            self.w = self.rows.weighted_sum(np.arange(n), self._y * c * self._shares)
        self.expose()

    def _start_at(self, W: Array, b: Array | None) -> None:
        """Begin with the probabilities that a model gives to the rows."""
        intercept = float(b[0]) if b is not None and self.problem.fit_intercept else 0.0
        margins = self._y * (self.problem.design.matvec(W)[:, 0] + intercept)
        self._logits = np.clip(-margins, -FARTHEST, FARTHEST)
        self.centre = intercept + float(self.mean @ W[:, 0])

    def step(self) -> None:
        before = self._gap_estimate
        self._gap_estimate = self.strength * sweep_logistic(
            *self.rows.compressed,
            self.rows.constant,
            self.centre,
            self._terms,
            self._logits,
            self._shares,
            self.w,
            self.state,
        )
        self.move_centre()
        self.sweeps, self._proof = self.sweeps + 1, None
        # The estimate is an average over the sweep, in which the gap fell by the rate: at its end
        # the gap is smaller by the root of that.
        rate = max(self._gap_estimate, 0.0) / before if before > 0 else 0.0
        self._gap_forecast = self._gap_estimate * math.sqrt(rate) if self.sweeps > 1 else np.inf
        if self.has_fallback:
            is_small = self.problem.design.nonzeros < LARGE
            self.hands_over = (
                (self.sweeps > 2 and rate > _SLOW)
                or self.sweeps >= (_SMALL_SWEEPS if is_small else _MOST_SWEEPS)
                or (
                    self.target < self._finest and self._gap_forecast <= _PROOF_SHARE * self._finest
                )
            )

    def progress(self) -> Progress:
        is_due = (
            self._gap_forecast <= _PROOF_SHARE * self.target
            or self.sweeps - self.evaluated >= _PROOF_EVERY
        )
        if not (self.is_watched or is_due):
            return Progress(0.0, np.inf)
        self.evaluated = self.sweeps
        proof = self.certify()
        return Progress(proof.objective, proof.gap)

    def certify(self) -> Certificate:
        if self._proof is None:
            self.expose()
            # Before handing over no better proof is needed.
            enough = np.inf if self.hands_over else self.target
            self._proof = certify_duality(
                self.problem, self.coef, self.intercept, self.dual(), enough
            )
        return self._proof

    def dual(self) -> Array:
        beta = self._y * self.weights * self._shares
        if self.problem.fit_intercept:
            beta = balanced(beta)
        u = np.divide(-beta, self.weights, out=np.zeros_like(beta), where=self.weights > 0)
        return u[:, None]


Integers = NDArray[np.int64]

# Where q is as close to 0 or 1 as this, doubles hardly distinguish it from them.
FARTHEST = 34.0
_MOST_STEPS = 30
# After a step h the slope is off by less than c h^2 / 20, c the curvature; this may be (1 + c) h^2.
_CLOSE = 1e-5


@kernel
def best_logit(margin: float, q: float, curvature: float, start: float) -> float:
    """Where curvature (q(t) - q) + margin + t = 0."""
    low, high = -margin - curvature * (1.0 - q), -margin + curvature * q
    t = min(max(start, low), high)
    for _ in range(_MOST_STEPS):
        other = 1.0 / (1.0 + math.exp(-t))
        off = curvature * (other - q) + margin + t
        if off > 0.0:
            high = t
        else:
            low = t
        step = off / (1.0 + curvature * other * (1.0 - other))
        t -= step
        if not low <= t <= high:
            t = 0.5 * (low + high)
        if (1.0 + curvature) * step * step <= _CLOSE:
            break
    return min(max(t, -FARTHEST), FARTHEST)


@kernel
def sweep_logistic(
    data: Array,
    indices: NDArray[np.int32],
    indptr: Integers,
    constant: float,
    centre: float,
    terms: Array,
    logits: Array,
    shares: Array,
    w: Array,
    state: NDArray[np.uint64],
) -> float:
    """One sweep over compressed rows in random order; an estimate of the gap.

    ``terms`` has the columns y, c and x_i.x_i; ``shares`` are q, ``logits`` log(q / (1 - q)).
    """
    n, d = len(logits), len(w) - 1
    gap_estimate = 0.0
    for i in visiting_order(n, len(data), 0.0, state):
        y, c, square = terms[i, 0], terms[i, 1], terms[i, 2]
        product = column_dot(data, indices, indptr[i], indptr[i + 1], w) + constant * w[d]
        margin, before, q = y * (product + centre), logits[i], shares[i]
        gap_estimate += 0.5 * c * (q - 1.0 / (1.0 + math.exp(margin))) * (before + margin)
        t = best_logit(margin, q, c * square, before)
        new = 1.0 / (1.0 + math.exp(-t))
        change = y * c * (new - q)
        if change != 0.0:
            logits[i], shares[i] = t, new
            add_row(data, indices, indptr[i], indptr[i + 1], change, w)
            w[d] += change * constant
    return gap_estimate
