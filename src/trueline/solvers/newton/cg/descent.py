r"""Steps of Newton's method, each found by conjugate gradients as exactly as it is worth.

    minimise over V    P(V) = sum_i s_i l(y_i, [x_i, 1].V) + sum a/2 V^2
    H D = -G,          V <- V + t D

The residual of the linear equations is brought down to min(0.1, (|G| / |G_0|)^1/2) of what it was,
in the norm of the preconditioner: convergence is faster than linear (R. S. Dembo, S. C. Eisenstat,
T. Steihaug, "Inexact Newton methods", SIAM J. Numer. Anal. 19 (1982) 400-408). t minimises P along
the step. The preconditioner is renewed when conjugate gradients took longer than they should.

The preconditioner is an approximate inverse of the Hessian, target by target:

    H_t = sum_i h_it [x_i, 1] [x_i, 1]^T + A,        h_it = s_i times the diagonal of the curvature

where the columns are about their means and of the same size. First it is the diagonal: where
columns are independent of each other a dozen products do. The products that each power of ten of
the gradient has taken tell how many are left. Where these would take longer than factors and the
products that factors leave, factors follow, of

    h_t G + A,       h_t = sum_i h_it,       G = sum_i g_i [x_i, 1] [x_i, 1]^T,       sum_i g_i = 1,

with g_i in proportion to sum_t h_it: targets of about the same h_t share one. By the same rule a
Gram matrix of its own follows for each target. They are from a few rows (R. H. Byrd, G. M. Chin, W.
Neveitt, J. Nocedal, "On the use of stochastic Hessian information in optimization methods for
machine learning", SIAM J. Optim. 21 (2011) 977-995). Rows of long data are drawn with probabilities
p_i = min(1, c g_i) and weigh g_i / p_i: the mean is right, and flat rows, which most are near the
minimum, are not read in vain (P. Xu, J. Yang, F. Roosta-Khorasani, C. Re, M. W. Mahoney,
"Sub-sampled Newton methods with non-uniform sampling", NeurIPS 29 (2016)).

Scores of the softmax may all be shifted by the same: where the penalty treats all targets alike the
steps of the best ones add up to zero over the targets, and the inverse is taken within that space.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueline.certificates.evaluation import Evaluation
from trueline.losses import Loss
from trueline.numerics.blas import run_strands
from trueline.numerics.gram import SMALL_WORK, fold, row_strands
from trueline.solvers.conjugate_gradients import conjugate_gradients
from trueline.solvers.iterative import minimise_along
from trueline.solvers.newton.cg.rows import Rows
from trueline.solvers.newton.dense.descent import Factor, intercept_shifts

Array = NDArray[np.float64]

_COARSE, _FINEST = 0.1, 1e-4
_MOST_INNER = 250
# Of the gap asked for, what the equations' residual may leave.
_NEGLIGIBLE = 0.1
# Products that better factors take for a power of ten of the gradient, at best, of one target and
# of several; those powers that are expected where no bound on the gap tells how many are left.
_BEST_PACES, _UNKNOWN = (1.5, 2.5), 5.0
# Factors that take no longer than so many products are made at once.
_CHEAP = 1.5
# Gram matrices of each target are of fewer rows: it is drawn which ones matter to it.
_SHARE_EACH = 0.4


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
    enough : float
        The gap that is enough: 0 to begin with.
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
        self.products, self.decrease, self.enough = 0, np.inf, 0.0
        #: Products that take as long as new factors, and those since the last ones.
        self._worth = products_worth_factors(rows, V.shape[1])
        self._since, self._pace, self._is_shared = 0, 0.0, False
        self._best_pace = _BEST_PACES[V.shape[1] > 1]
        self._sample: Sample | None = None
        if self._worth < _CHEAP:
            self._have_factors()
        self._preconditioner: Preconditioner | None = None
        self._evaluate()
        self._first = float(np.linalg.norm(self.G)) or 1.0

    def _evaluate(self, is_known: bool = False) -> None:
        """Value and gradient at the present point, where derivatives may be known."""
        s, y, Z, loss = self.rows.weights[:, None], self.target, self.Z, self.loss
        if not is_known:
            self._first_derivatives, self._terms = np.empty_like(Z), np.empty_like(Z)
        first, terms = self._first_derivatives, self._terms

        def work(where: slice) -> Array:
            if not is_known:
                first[where], terms[where] = loss.gradient_and_terms(y[where], Z[where])
            return np.sum(s[where] * loss.value(y[where], Z[where]), keepdims=True)

        losses = float(self.rows.over_rows(Z.shape[1], work)[0, 0])
        self.objective = losses + 0.5 * float((self.curvatures * self.V**2).sum())
        self.G = self.rows.total(s * first) + self.curvatures * self.V

    def about(self, gradient: Array) -> float:
        """The gap by strong convexity, but for what rounding and the intercept add."""
        least = float(self.curvatures[:-1].min(initial=np.inf))
        if least == 0:
            return np.inf
        own = gradient[:-1] - np.multiply.outer(self.rows.mean, gradient[-1])
        return float((own**2).sum()) / (2 * least)

    def step(self) -> float:
        """Move; the length of the step, 0 if rounding allows for none."""
        D = self._direction()
        first = float((self.G * D).sum())
        self.decrease = max(-0.5 * first, 0.0)
        if not first < 0 or not np.isfinite(first):
            return 0.0
        change = self.rows.along(D)
        s, loss, y = self.rows.weights[:, None], self.loss, self.target
        own, across = (
            float((self.curvatures * self.V * D).sum()),
            float((self.curvatures * D**2).sum()),
        )

        evaluated = math.nan
        derivatives, terms = self._first_derivatives, self._terms

        def slope(t: float) -> tuple[float, float]:
            nonlocal evaluated
            evaluated = t

            def work(where: slice) -> Array:
                along = change[where]
                weighted = s[where] * along
                u, h = loss.gradient_and_terms(y[where], self.Z[where] + t * along)
                derivatives[where], terms[where] = u, h
                curved = loss.hessian_product(h, along)
                return np.array([(weighted * u).sum(), (weighted * curved).sum()])

            first, second = self.rows.over_rows(change.shape[1], work)
            return float(first) + own + t * across, float(second) + across

        t = minimise_along(slope, first)
        self.V = self.V + t * D
        self.Z = self.Z + t * change
        before = self.objective
        self._evaluate(is_known=t == evaluated)
        # Where rounding decides, a step back to where it was lower ends the descent.
        return t if self.objective <= before + 1e-12 * abs(before) else 0.0

    def balance(self) -> None:
        """The best intercepts for these coefficients: proofs want them as exact as can be.

        The scores are made afresh: those of many steps have gathered rounding.
        """
        self.Z = self.rows.scores(self.V)
        if self.rows.fit_intercept:
            shift = intercept_shifts(self.loss, self.target, self.Z, self.rows.weights)
            self.V = self.V.copy()
            self.V[-1] += shift
            self.Z = self.Z + shift

    def know(self, at: Evaluation) -> None:
        """Take over what a proof has found at the present point."""
        self.objective = float(at.objective.sum())
        self.G = self.curvatures * self.V
        self.G[:-1] += at.correlation
        if self.rows.fit_intercept:
            self.G[-1] += at.slope

    def _direction(self) -> Array:
        """Conjugate gradients for H D = -G."""
        product = self.rows.hessian(self.loss, self._terms)
        inverse, most = self._inverse(), float(_MOST_INNER)
        if not inverse.is_last:
            most = min(most, max(self._worth - self._since, 0.0) + self._best_pace * _UNKNOWN)
        ratio = float(np.linalg.norm(self.G)) / self._first
        share = max(min(_COARSE, np.sqrt(ratio)), _FINEST)
        # Where products take no time, the last step may as well be exact.
        is_small = self.Z.size * (len(self.V) - 1) < SMALL_WORK
        negligible = 0.0 if is_small else _NEGLIGIBLE * self.enough
        D, count = conjugate_gradients(
            lambda p: product(p) + self.curvatures * p,
            -self.G,
            inverse.apply,
            most=int(most),
            enough=share**2,
            is_enough=lambda residual: self.about(residual) <= negligible,
        )
        self.products += count
        self._since += count
        self._pace = count / -np.log10(share)
        return D if count else inverse.apply(-self.G)

    def _have_factors(self) -> None:
        """From now on factors: first of what all targets share, then of each."""
        k = self.V.shape[1]
        self._is_shared = k > 1 and self._sample is None
        self._sample = self._sample or Sample(self.rows)
        self._worth *= _SHARE_EACH * k if self._is_shared else 1.0

    def _inverse(self) -> Preconditioner:
        """The approximate inverse of the Hessian: a better one where it saves what it costs."""
        now = self._preconditioner
        far = self.about(self.G) / (_NEGLIGIBLE * self.enough) if self.enough > 0 else np.inf
        left = 0.5 * np.log10(max(far, 1.0)) if np.isfinite(far) else _UNKNOWN
        is_due = now is None or (self._pace - self._best_pace) * left > self._worth
        if now is not None and now.is_last:  # it was good: weights must have changed a lot
            is_due = is_due and self._since >= self._worth
        elif now is not None and is_due:
            self._have_factors()
        if is_due or self._sample is None:
            h = self.rows.weights[:, None] * self.loss.hessian_diagonal(self._terms)
            parts = self._sample, self.rows, h, self.curvatures
            now = Preconditioner(*parts, self.is_alike, self._is_shared)
            self._since = 0 if is_due else self._since
        assert now is not None
        self._preconditioner = now
        return now


Integers = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Rows in a factor for each column; wider ones are not made.
_ROWS_EACH, _LEAST_ROWS, MOST_COLUMNS = 10, 2000, 4000
# Penalties above this share of the diagonal hide what sums lose in single precision.
_SINGLE = 1e-4
_ROUNDS = 4
# Up to so many columns the inverses themselves are formed: one product does for all targets.
_INVERTED = 64
# Seconds: of the calls of a product; for each number that it reads, of a copy in single precision,
# and for each target; of sparse rows forth and back for each target; for each number that a
# Gram matrix is made of, and each multiplication of it and of a factor.
_CALLS, _READ, _EACH, _SPARSE = 1e-4, 5e-10, 2.5e-10, 4e-9
_COPY, _GRAM, _CHOLESKY = 3e-9, 2.2e-11, 3e-11
_FEW_PRODUCTS = 4.0


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
    """Sums over a few rows [x_i, 1] that stand for all; over all of them if there are only few.

    Attributes
    ----------
    scale : array of shape (d,)
        The sizes of the columns: those of the rows are divided by them.
    """

    def __init__(self, rows: Rows) -> None:
        n, d = rows.design.shape
        self._rows, self._count = rows, _rows_to_draw(n, d, rows.design.is_sparse)
        self._order = np.random.default_rng(0).permutation(n)
        self.scale = np.ones(d) if rows.squares is None else column_sizes(rows)

    def gram(self, h: Array, curvatures: Array, share: float) -> Array:
        """About sum_i g_i [x_i, 1] [x_i, 1]^T, g in proportion to h, from a share of the rows.

        At least ``curvatures`` will be added later on.
        """
        g = h / (float(h.sum()) or 1.0)
        some, weights, d = np.arange(len(g)), g, len(self.scale)
        count = self._count if share == 1.0 else max(int(share * _ROWS_EACH * d), _LEAST_ROWS)
        if len(g) > count:
            some, weights = drawn_rows(g, count, self._order)
        is_single = float(curvatures[:-1].min(initial=np.inf)) >= _SINGLE
        A = self._rows.centred(some, np.sqrt(weights), is_single)
        m, p = A.shape
        parts = run_strands(
            lambda strand: _squared(A[slice(*strand)]), row_strands(m, p, m * p * p)
        )
        unit = np.append(self.scale, 1.0)
        return fold(parts) / np.multiply.outer(unit, unit)


def _squared(A: NDArray[np.floating]) -> Array:
    return (A.T @ A).astype(np.float64, copy=False)


def column_sizes(rows: Rows) -> Array:
    """Of dense rows the columns' sizes about their means; one for columns that are constant."""
    assert rows.squares is not None
    size = np.sqrt(rows.squares / rows.weights.sum())
    return np.where(size > 64 * _EPS * np.abs(rows.mean), size, 1.0)


def _rows_to_draw(n: int, d: int, is_sparse: bool) -> int:
    """Rows of a Gram matrix: for long data so many that it takes as long as a few products.

    Sparse rows would have to be made dense for it.
    """
    few = 0.0 if is_sparse else _FEW_PRODUCTS * n * (_READ + _EACH) / (_GRAM * d)
    return int(max(_ROWS_EACH * d, _LEAST_ROWS, few))


def factor_seconds(n: int, d: int, is_sparse: bool) -> float:
    """Expected time of a Gram matrix and its factor."""
    read = min(n, _rows_to_draw(n, d, is_sparse))
    return float(d) * d * (d / 3 * _CHOLESKY + read * _GRAM) + read * d * _COPY


def product_seconds(nonzeros: int, targets: int, is_sparse: bool) -> float:
    """Expected time of a Hessian-vector product."""
    return _CALLS + (_READ + (_SPARSE if is_sparse else _EACH) * targets) * nonzeros


def products_worth_factors(rows: Rows, targets: int) -> float:
    """How many products take as long as a Gram matrix and a factor."""
    n, d = rows.design.shape
    if d > MOST_COLUMNS:
        return np.inf
    design = rows.design
    is_sparse = design.is_sparse
    product = product_seconds(design.nonzeros, targets, is_sparse)
    return factor_seconds(n, d, is_sparse) / product


class Preconditioner:
    """The approximate inverse at one point.

    Parameters
    ----------
    sample : Sample, optional
        Without one the diagonal is taken.
    rows : Rows
    h : array of shape (n, k)
        s_i h_it.
    curvatures : array of shape (d + 1, k)
        The penalty's curvatures.
    is_alike : bool
        Whether steps add up to zero over the targets.
    is_shared : bool
        Whether all targets have the same Gram matrix.
    """

    def __init__(
        self,
        sample: Sample | None,
        rows: Rows,
        h: Array,
        curvatures: Array,
        is_alike: bool,
        is_shared: bool = False,
    ) -> None:
        self._is_alike, self._mean = is_alike, rows.mean
        #: Whether there is no better one.
        self.is_last = sample is not None and not is_shared
        self._factors: list[tuple[Factor, NDArray[np.intp]]] = []
        self._inverses: Array | None = None
        totals = h.sum(axis=0)
        self._totals = np.where(totals > 0, totals, 1.0)
        if sample is None:
            self._scale, diagonal = np.ones(len(self._mean)), np.empty_like(curvatures)
            if rows.squares is None:
                for t, own in enumerate(h.T):
                    diagonal[:-1, t] = rows.design.column_squares(np.ascontiguousarray(own), None)
            else:
                np.multiply.outer(column_sizes(rows) ** 2, totals, out=diagonal[:-1])
            diagonal[-1] = totals
            self._diagonal = diagonal + curvatures
            self._diagonal[self._diagonal <= 0] = 1.0
            return
        self._scale = sample.scale
        scaled = curvatures / np.append(self._scale, 1.0)[:, None] ** 2 / self._totals
        groups = list(np.arange(h.shape[1])[:, None])
        if is_shared and (curvatures == curvatures[:, :1]).all():
            keys = np.round(0.5 * np.log2(self._totals))
            groups = [np.flatnonzero(keys == key) for key in np.unique(keys)]
        shared = sample.gram(h.sum(axis=1), scaled, 1.0) if is_shared else None
        share = 1.0 if h.shape[1] == 1 else _SHARE_EACH

        def work(group: NDArray[np.intp]) -> tuple[Factor, NDArray[np.intp]]:
            own = scaled[:, group]
            gram = sample.gram(h[:, group[0]], own, share) if shared is None else shared
            return _factor(gram, own.mean(axis=1)), group

        self._factors = [work(group) for group in groups]
        if len(curvatures) <= _INVERTED and len(groups) > 1:
            whole = np.eye(len(curvatures))
            self._inverses = np.empty((len(totals), *whole.shape))
            for factor, group in self._factors:
                self._inverses[group] = factor.solve(whole) / self._totals[group, None, None]

    def apply(self, R: Array) -> Array:
        """The inverse times R, of shape (d + 1, k)."""
        R = R - R.mean(axis=1, keepdims=True) if self._is_alike else R.copy()
        # About the means of the columns the intercept is b + mean.w.
        R[:-1] -= np.multiply.outer(self._mean, R[-1])
        R[:-1] /= self._scale[:, None]
        if self._inverses is not None:
            out = (self._inverses @ R.T[:, :, None])[:, :, 0].T.copy()
        elif self._factors:
            out = np.empty_like(R)
            for factor, group in self._factors:
                out[:, group] = factor.solve(R[:, group]) / self._totals[group]
        else:
            out = R / self._diagonal
        out[:-1] /= self._scale[:, None]
        out[-1] -= self._mean @ out[:-1]
        return out - out.mean(axis=1, keepdims=True) if self._is_alike else out


def _factor(gram: Array, curvatures: Array) -> Factor:
    """The factor of gram + diag(curvatures), and a little more where it needs that."""
    gram = gram.copy()
    # Dependent columns without a penalty: a trace of one makes them independent.
    trace = gram.diagonal() + curvatures
    gram[np.diag_indices(len(gram))] = trace * (1 + 64 * _EPS) + (trace <= 0)
    factor, more = Factor(gram), 1e-8
    while factor.least <= 0:
        gram[np.diag_indices(len(gram))] += more * trace
        factor, more = Factor(gram), 10 * more
    return factor
