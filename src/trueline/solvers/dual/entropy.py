r"""Sweeps over the rows of a logistic regression, each of which moves one dual variable.

With the penalty a/2 ||w||^2 the optimal coefficients are w = sum_i y_i c_i q_i x_i, where
c_i = s_i / a and q_i is the probability that row i gives to the other class. The dual,

    minimise over 0 < q < 1    1/2 || sum_i y_i c_i q_i x_i ||^2
                               + sum_i c_i (q_i log q_i + (1 - q_i) log(1 - q_i)),

is descended along one q_i at a time (H.-F. Yu, F.-L. Huang, C.-J. Lin, "Dual coordinate descent
methods for logistic regression and maximum entropy models", Mach. Learn. 85 (2011) 41-75). With
t = log(q_i / (1 - q_i)) the minimum along it is where

    c_i x_i.x_i (q(t) - q_i) + y_i z_i + t = 0,

which increases in t by 1 to 1 + c_i x_i.x_i / 4: Newton's method between two walls takes one or
two steps, and one exponential each. The gap is the sum over the rows of c_i times the divergence of
p_i, the probability that the margin gives to the other class, from q_i. Near the minimum that is
half of what it is in both directions together,

    (q_i - p_i) (log(q_i / (1 - q_i)) + y_i z_i) / 2,

and what the sweep sees of it tells how fast the gap falls. An intercept asks for
sum_i y_i c_i q_i = 0: as in :mod:`trueline.solvers.dual.solver` a constant column stands for its
distance from a centre, which follows after every sweep.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline._jit import kernel
from trueline.certificates.base import Certificate
from trueline.certificates.duality import certify_duality
from trueline.design.sparse import LARGE
from trueline.design.sparse_columns import column_dot
from trueline.problem import Problem
from trueline.solvers.base import Options
from trueline.solvers.dual.kernels import add_row, visiting_order
from trueline.solvers.dual.rows import Rows, has_light_rows
from trueline.solvers.dual.solver import balanced, random_start, with_constant

__all__ = ["EntropyDescent", "is_worth_it"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Where q is as close to 0 or 1 as this, doubles hardly tell it apart from them.
_FARTHEST = 34.0
_MOST_STEPS = 30
# After a step of length h the slope is off by less than bend h^2 / 20; this may be (1 + bend) h^2.
_CLOSE = 1e-5
# Sweeps that leave more of the gap than this are no match for Newton's method.
_SLOW, _MOST_SWEEPS = 0.4, 12
# Of small data the proofs of Newton's method cost as much as many sweeps.
_SMALL_SWEEPS = 24
# The gap that is looked for, relative to the target: what is predicted may be a little off.
_MARGIN = 0.5


@kernel
def best_logit(margin: float, q: float, bend: float, start: float) -> float:
    """Where bend (q(t) - q) + margin + t = 0."""
    low, high = -margin - bend * (1.0 - q), -margin + bend * q
    t = min(max(start, low), high)
    for _ in range(_MOST_STEPS):
        other = 1.0 / (1.0 + math.exp(-t))
        off = bend * (other - q) + margin + t
        if off > 0.0:
            high = t
        else:
            low = t
        step = off / (1.0 + bend * other * (1.0 - other))
        t -= step
        if not low <= t <= high:
            t = 0.5 * (low + high)
        if (1.0 + bend) * step * step <= _CLOSE:
            break
    return min(max(t, -_FARTHEST), _FARTHEST)


@kernel
def sweep_entropy(
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
    """One sweep over compressed rows in random order; the gap as it was seen on the way.

    ``terms`` has the columns y, c and x_i.x_i; ``shares`` are q, ``logits`` log(q / (1 - q)).
    """
    n, d = len(logits), len(w) - 1
    seen = 0.0
    for i in visiting_order(n, 0.0, state):
        y, c, square = terms[i, 0], terms[i, 1], terms[i, 2]
        product = column_dot(data, indices, indptr[i], indptr[i + 1], w) + constant * w[d]
        margin, before, q = y * (product + centre), logits[i], shares[i]
        seen += 0.5 * c * (q - 1.0 / (1.0 + math.exp(margin))) * (before + margin)
        t = best_logit(margin, q, c * square, before)
        new = 1.0 / (1.0 + math.exp(-t))
        change = y * c * (new - q)
        if change != 0.0:
            logits[i], shares[i] = t, new
            add_row(data, indices, indptr[i], indptr[i + 1], change, w)
            w[d] += change * constant
    return seen


def is_worth_it(problem: Problem) -> bool:
    """Whether a few sweeps lead near the minimum: sparse rows, and a penalty that is not tiny."""
    return problem.loss.name == "logistic" and has_light_rows(problem)


class EntropyDescent:
    """The state of the sweeps.

    Attributes
    ----------
    coef, intercept : arrays of shape (d, 1) and (1,)
    sweeps : int
        How many there were.
    """

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem = problem
        n, self._y = problem.n_samples, problem.target[:, 0]
        self._strength = float(np.max(problem.penalty.curvature))
        self._weights = np.ones(n) if problem.weights is None else problem.weights
        design, _ = with_constant(problem)
        self._rows = Rows(design)
        heaviness = self._weights / self._strength
        self._terms = np.stack([self._y, heaviness, self._rows.squares], axis=1)
        self._logits, self._w = np.full(n, -_FARTHEST), np.zeros(self._rows.size)
        self._shares = 1.0 / (1.0 + np.exp(-self._logits))
        self._state, self._centre = random_start(options), 0.0
        self._seen, self.sweeps = np.inf, 0

    def approach(self, target: float) -> bool:
        """Sweep until the gap is about as small as the target; False if that would not pay."""
        is_small = self.problem.design.nonzeros < LARGE
        most = _SMALL_SWEEPS if is_small else _MOST_SWEEPS
        while self.sweeps < most:
            before, self._seen = self._seen, self._sweep()
            rate = self._seen / before
            if self.sweeps > 2 and rate > _SLOW:
                return False
            # On its way the sweep saw the gap fall by the rate: half of that is yet to be counted.
            if self.sweeps > 1 and self._seen * math.sqrt(rate) <= _MARGIN * target:
                return True
        return False

    def _sweep(self) -> float:
        rows = self._rows
        seen = sweep_entropy(
            *rows.compressed,
            rows.constant,
            self._centre,
            self._terms,
            self._logits,
            self._shares,
            self._w,
            self._state,
        )
        if self.problem.fit_intercept:
            self._centre += rows.constant * float(self._w[-1])
        self.sweeps += 1
        return self._strength * seen

    @property
    def coef(self) -> Array:
        return self._w[:-1, None].copy()

    @property
    def intercept(self) -> Array:
        return np.array([self._centre])

    def certify(self, target: float) -> Certificate:
        """What the dual variables prove; if that is above the target, what others prove too."""
        beta = self._y * self._weights * self._shares
        if self.problem.fit_intercept:
            beta = balanced(beta)
        dual = np.divide(-beta, self._weights, out=np.zeros_like(beta), where=self._weights > 0)
        return certify_duality(self.problem, self.coef, self.intercept, dual[:, None], target)
