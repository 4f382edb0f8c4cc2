r"""Steps of Newton's method, each found by conjugate gradients as exactly as it is worth.

    minimise over V    P(V) = sum_i s_i l(y_i, [x_i, 1].V) + sum a/2 V^2
    H D = -G,          V <- V + t D

The residual of the linear equations is brought down to min(0.1, (|G| / |G_0|)^1/2) of what it was,
in the norm of the preconditioner: convergence is faster than linear (R. S. Dembo, S. C. Eisenstat,
T. Steihaug, "Inexact Newton methods", SIAM J. Numer. Anal. 19 (1982) 400-408). t minimises P along
the step. The preconditioner is renewed when conjugate gradients took longer than they should.

The preconditioner is an approximate inverse of the Hessian, target by target:

    H_t = sum_i h_it [x_i, 1] [x_i, 1]^T + A,        h_it = s_i times the diagonal of the curvature

from a few rows where d is moderate (R. H. Byrd, G. M. Chin, W. Neveitt, J. Nocedal, "On the use of
stochastic Hessian information in optimization methods for machine learning", SIAM J. Optim. 21
(2011) 977-995), else its diagonal. Rows of long data are drawn with probabilities p_i = min(1, c
h_it) and weigh h_it / p_i, anew for every target: the mean is right, and flat rows, which
most are near the minimum, are not read in vain (P. Xu, J. Yang, F. Roosta-Khorasani, C. Re, M. W.
Mahoney, "Sub-sampled Newton methods with non-uniform sampling", NeurIPS 29 (2016)). Products with
sparse rows cost little beside factors: there the diagonal comes first, and factors follow when
products have taken as long as they would.

Scores of the softmax may all be shifted by the same: where the penalty treats all targets alike the
steps of the best ones add up to zero over the targets, and the inverse is taken within that space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueline.losses import Loss
from trueline.numerics.blas import run_strands
from trueline.numerics.gram import SMALL_WORK, weighted_gram
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.iterative import minimise_along
from trueline.solvers.newton.cg.rows import Rows
from trueline.solvers.newton.dense.descent import Factor, intercept_shifts

Array = NDArray[np.float64]

_COARSE, _FINEST = 0.1, 1e-4
_MOST_INNER = 250
# From this many inner steps on another factor costs less than it saves.
_SLOW = 8
# Multiplications of a factorisation in the time of the calls of one product with sparse rows, and
# of one entry of these, forth and back, for one target.
_CALLS, _ENTRY = 3e6, 120.0


class TruncatedDescent:
    """The state of the method.

    Attributes
    ----------
    V, Z : arrays of shape (d + 1, k) and (n, k)
        Coefficients with intercepts last, and scores.
    G : array of shape (d + 1, k)
        The gradient.
    decrease : float
        What the last step promised, 1/2 G.H^-1 G there.
    products : int
        Hessian-vector products so far.
    """

    def __init__(
        self, rows: Rows, loss: Loss, target: Array, curvatures: Array, V: Array, is_alike: bool
    ) -> None:
        self.rows, self.loss, self.curvatures = rows, loss, curvatures
        self.target = rows.arranged(target)
        self.is_alike = is_alike
        self.V = V - V.mean(axis=1, keepdims=True) if is_alike else V
        at_zero = rows.arranged(np.broadcast_to(self.V[-1], target.shape))
        self.Z = rows.scores(self.V) if self.V[:-1].any() else at_zero
        self.products, self.decrease = 0, np.inf
        worth = products_worth_factors(rows, V.shape[1])
        #: Products by the diagonal in one step, after which factors follow; None after that.
        self._patience = None if worth < 2 * _SLOW else int(min(worth, _MOST_INNER))
        self._sample = sampled_rows(rows, V.shape[1]) if self._patience is None else None
        self._preconditioner: Preconditioner | None = None
        self._evaluate()
        self._first = float(np.linalg.norm(self.G)) or 1.0

    def _evaluate(self) -> None:
        """Value and gradient at the present point."""
        s, y, Z = self.rows.weights[:, None], self.target, self.Z
        U = np.empty_like(Z)

        def work(where: slice) -> Array:
            U[where] = s[where] * self.loss.gradient(y[where], Z[where])
            return np.sum(s[where] * self.loss.value(y[where], Z[where]), keepdims=True)

        losses = float(self.rows.over_rows(Z.shape[1], work)[0, 0])
        self.objective = losses + 0.5 * float((self.curvatures * self.V**2).sum())
        self.G = self.rows.total(U) + self.curvatures * self.V

    def _renew(self) -> None:
        h = self.rows.weights[:, None] * self.loss.curvature(self.target, self.Z)
        self._preconditioner = Preconditioner(
            self._sample, self.rows, h, self.curvatures, self.is_alike, not self.V[:-1].any()
        )

    def step(self) -> float:
        """Move; the length of the step, 0 if rounding allows for none."""
        D = self._direction()
        first = float((self.G * D).sum())
        self.decrease = max(-0.5 * first, 0.0)
        if not first < 0 or not np.isfinite(first):
            return 0.0
        change = self.rows.scores(D)
        s, loss, y = self.rows.weights[:, None], self.loss, self.target
        own, across = (
            float((self.curvatures * self.V * D).sum()),
            float((self.curvatures * D**2).sum()),
        )

        def slope(t: float) -> tuple[float, float]:
            def work(where: slice) -> Array:
                along = change[where]
                Z, weighted = self.Z[where] + t * along, s[where] * along
                curved = loss.hessian_product(loss.hessian_terms(y[where], Z), along)
                return np.array(
                    [(weighted * loss.gradient(y[where], Z)).sum(), (weighted * curved).sum()]
                )

            first, second = self.rows.over_rows(change.shape[1], work)
            return float(first) + own + t * across, float(second) + across

        t = minimise_along(slope, first)
        self.V = self.V + t * D
        self.Z = self.Z + t * change
        before = self.objective
        self._evaluate()
        # Where rounding decides, a step back to where it was lower ends the descent.
        return t if self.objective <= before + 1e-12 * abs(before) else 0.0

    def balance(self) -> None:
        """The best intercepts for these coefficients: proofs want them as exact as can be."""
        if self.rows.fit_intercept:
            # Scores afresh: those of many steps have gathered rounding.
            self.Z = self.rows.scores(self.V)
            shift = intercept_shifts(self.loss, self.target, self.Z, self.rows.weights)
            self.V = self.V.copy()
            self.V[-1] += shift
            self.Z = self.Z + shift
            self._evaluate()

    def _direction(self) -> Array:
        """Conjugate gradients for H D = -G."""
        product = self.rows.hessian(self.loss, self.loss.hessian_terms(self.target, self.Z))
        if self._preconditioner is None:
            self._renew()
        assert self._preconditioner is not None
        ratio = float(np.linalg.norm(self.G)) / self._first
        enough = max(min(_COARSE, np.sqrt(ratio)), _FINEST) ** 2
        D, count = conjugate_gradients(
            lambda p: product(p) + self.curvatures * p,
            -self.G,
            self._preconditioner.apply,
            most=self._patience or _MOST_INNER,
            enough=enough,
        )
        self.products += count
        if count == self._patience:
            self._patience, self._sample = None, sampled_rows(self.rows, len(self.G.T))
        if not count:
            return self._preconditioner.apply(-self.G)
        if count >= _SLOW:
            self._preconditioner = None
        return D


Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_ROWS_EACH, _LEAST_ROWS = 3, 2000
# Numbers that the factors of all targets may take, and the widest one of them.
_MOST_NUMBERS, _MOST_COLUMNS = 40_000_000, 2000
# Penalties above this share of the diagonal hide what sums lose in single precision.
_SINGLE = 1e-4
_ROUNDS = 4
# Up to so many columns the inverses themselves are formed: one product does for all targets.
_INVERTED = 64


def drawn_rows(h: Array, count: int, order: Integers) -> tuple[Integers, Array]:
    """About ``count`` rows in proportion to h, none of them twice, and what each stands for.

    Systematic sampling in the given order: one row for each unit of probability.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.newton.cg.descent import drawn_rows
    >>> drawn_rows(np.array([9.0, 0.0, 1.0, 1.0, 1.0, 1.0]), 3, np.arange(6))
    (array([0, 3, 5]), array([9., 2., 2.]))
    """
    total = float(h.sum())
    if not total > 0:
        return np.arange(0), np.zeros(0)
    chances = h * (count / total)
    for _ in range(_ROUNDS):  # what is cut off at one goes to the others
        certain = chances >= 1.0
        rest = float(chances.sum(where=~certain))
        if not rest > 0:
            break
        chances = np.where(certain, 1.0, chances * ((count - np.count_nonzero(certain)) / rest))
    chances = np.minimum(chances, 1.0)
    ends = np.cumsum(chances[order])
    places = np.arange(0.5, ends[-1])
    rows = np.sort(order[np.searchsorted(ends, places, side="right")])
    return rows, h[rows] / chances[rows]


class Sample:
    """Sums over a few rows [x_i, 1] that stand for all; over all of them if there are only few."""

    def __init__(self, rows: Rows) -> None:
        n, d = rows.design.shape
        self._rows, self._count = rows, max(_ROWS_EACH * d, _LEAST_ROWS)
        self._order = np.random.default_rng(0).permutation(n)
        some = rows.dense(np.sort(self._order[: self._count]))
        self._all = some if n <= self._count else None
        self._largest = float((some**2).mean(axis=0).max(initial=0.0))

    def gram(self, h: Array, curvature: float) -> Array:
        """About sum_i h_i [x_i, 1] [x_i, 1]^T, plus at least ``curvature`` later on."""
        if self._all is not None:
            return weighted_gram(self._all, h)
        is_single = self._rows.is_large and curvature >= _SINGLE * self._largest * float(h.sum())
        where, weights = drawn_rows(h, self._count, self._order)
        A = self._rows.dense(where, np.float32 if is_single else np.float64)
        A *= np.sqrt(weights).astype(A.dtype)[:, None]
        return (A.T @ A).astype(np.float64, copy=False)


def sampled_rows(rows: Rows, targets: int) -> Sample | None:
    """A sample for blocks of d x d numbers; None where those would be too large."""
    d = rows.design.shape[1]
    if d > _MOST_COLUMNS or targets * d * d > _MOST_NUMBERS:
        return None
    return Sample(rows)


def products_worth_factors(rows: Rows, targets: int) -> float:
    """How many products with sparse rows take as long as the factors of all targets."""
    n, d = rows.design.shape
    if not rows.design.is_sparse:
        return 0.0
    read = min(n, max(_ROWS_EACH * d, _LEAST_ROWS))
    factors = float(targets) * d * d * (d / 3 + read)
    return factors / (_CALLS + _ENTRY * rows.design.nonzeros * targets)


class Preconditioner:
    """The approximate inverse at one point.

    Parameters
    ----------
    sample : Sample, optional
    rows : Rows
    h : array of shape (n, k)
        s_i h_it.
    curvatures : array of shape (d + 1, k)
        The penalty's curvatures.
    is_alike : bool
        Whether steps add up to zero over the targets.
    is_level : bool
        Whether the scores are the same for all rows: one sum does for all targets.
    """

    def __init__(
        self,
        sample: Sample | None,
        rows: Rows,
        h: Array,
        curvatures: Array,
        is_alike: bool,
        is_level: bool = False,
    ) -> None:
        self._is_alike = is_alike
        self._factors: list[Factor] = []
        self._inverses: Array | None = None
        k = h.shape[1]
        if sample is None:
            diagonal = np.empty_like(curvatures)
            for t in range(k):
                diagonal[:-1, t] = rows.design.column_squares(h[:, t], None)
            diagonal[-1] = h.sum(axis=0)
            self._diagonal = diagonal + curvatures
            self._diagonal[self._diagonal <= 0] = 1.0
            return
        least, totals = curvatures[:-1].min(axis=0, initial=np.inf), h.sum(axis=0)
        shared = sample.gram(h[:, 0], float(least.min())) if is_level and totals[0] > 0 else None

        def work(t: int) -> Factor:
            if shared is None:
                gram = sample.gram(h[:, t], float(least[t]))
            else:
                gram = shared * (totals[t] / totals[0])
            return _factor(gram, curvatures[:, t])

        if len(curvatures) ** 3 * k < SMALL_WORK:
            self._factors = [work(t) for t in range(k)]
        else:
            self._factors = run_strands(work, range(k))
        if len(curvatures) <= _INVERTED:
            whole = np.eye(len(curvatures))
            self._inverses = np.array([factor.solve(whole) for factor in self._factors])

    def apply(self, R: Array) -> Array:
        """The inverse times R, of shape (d + 1, k)."""
        R = R - R.mean(axis=1, keepdims=True) if self._is_alike else R
        if self._inverses is not None:
            out = (self._inverses @ R.T[:, :, None])[:, :, 0].T
        elif self._factors:
            columns = (factor.solve(R[:, t]) for t, factor in enumerate(self._factors))
            out = np.stack(list(columns), axis=1)
        else:
            out = R / self._diagonal
        return out - out.mean(axis=1, keepdims=True) if self._is_alike else out


def _factor(gram: Array, curvatures: Array) -> Factor:
    """The factor of gram + diag(curvatures), and a little more where it needs that."""
    # Dependent columns without a penalty: a trace of one makes them independent.
    trace = gram.diagonal() + curvatures
    gram[np.diag_indices(len(gram))] = trace * (1 + 64 * _EPS) + (trace <= 0)
    factor, more = Factor(gram), 1e-8
    while factor.least <= 0:
        gram[np.diag_indices(len(gram))] += more * trace
        factor, more = Factor(gram), 10 * more
    return factor
