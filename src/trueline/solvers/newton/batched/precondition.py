r"""Newton's equations of many problems: the steps D with H D = -G.

They are solved by preconditioned conjugate gradients, each problem with step lengths of its own,
the more exactly the more the last step has helped (S. C. Eisenstat, H. F. Walker, "Choosing the
forcing terms in an inexact Newton method", SIAM J. Sci. Comput. 17 (1996) 16-32, choice 2). Folds
share most of their rows and their solutions are close, and classes share the directions along which
rows vary, so that one Hessian serves all as preconditioner:

    sum_i h_i [x_i, 1] [x_i, 1]^T + a I,       h_i the mean of the problems' s_i l''_i

is factored, where it has few columns, and kept as long as conjugate gradients end quickly with it
(a kept Hessian is Shamanskii's variant of Newton's method: C. T. Kelley, "Iterative Methods for
Linear and Nonlinear Equations", SIAM 1995, section 5.4). Held-out rows that are in it change the
way to the answer of a fold, not the answer. Scores that are coupled have one Hessian of (d + 1) k
columns. Of sparse and of very wide rows the diagonal of each problem's Hessian is taken. Where that
does not do (weak penalties on dummies, whose columns depend on each other) and the columns are few,
sparse rows get the factors, too.

Rows of some hundred columns (images, spectra) vary along few directions, the same for all problems.
With U the eigenvectors of the covariance of all rows and lambda its eigenvalues, the preconditioner
of each problem is its own Hessian in the r leading directions and the intercept, from rows drawn in
proportion to h_i, and a + lambda_j sum_i h_i in the other directions. U is found once, and a factor
is of r + 1 columns only. (Deflation and spectral preconditioning: G. H. Golub, C. F. Van Loan,
"Matrix Computations", 4th ed., section 11.5; rows by their curvature:
:mod:`trueline.solvers.newton.cg.descent`.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from trueline.numerics.blas import run_strands
from trueline.numerics.gram import weighted_gram
from trueline.solvers.newton.batched.rows import Batch
from trueline.solvers.newton.cg.descent import drawn_rows
from trueline.solvers.newton.dense.descent import Factor

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# Wider Hessians are dear to factor.
_MOST_COLUMNS, _MOST_COUPLED = 1500, 700
# How exactly steps are found, as shares of the squared norm of the gradient: at least, at most; the
# power of what the last step left of it; and the most products with the Hessian.
_COARSEST, _FINEST, _POWER, _MOST_INNER = 1e-2, 1e-10, 1.6, 120
# Conjugate gradients that took no more steps are not worth another factor.
_FEW = 6
# Leading directions, rows for each of them in a factor, and rows for each column in a covariance.
_LEADING, _ROWS_EACH, _ROWS_COVARIANCE = 192, 6, 8
# Numbers in a dense copy of sparse rows, at most.
_MOST_NUMBERS = 20_000_000
# Of the variance of the rows: where leading directions hold less, one Hessian for all is better.
_SHARE = 0.9
# Rows at a time, so that what they are multiplied by stays in the cache.
_BLOCK = 1024
# Products of pairs of columns are formed once for all classes where they fit into the cache.
_FEW_COLUMNS = 16
# Of the diagonal: shifts of all scores by the same, which no loss feels, stay where they are.
_TRACE = 1e-9


def make_preconditioner(batch: Batch) -> Preconditioner:
    """The one for these rows."""
    rows = batch.rows
    width = (rows.width + 1) * (batch.Y.shape[2] if batch.is_coupled else 1)
    most = _MOST_COUPLED if batch.is_coupled else _MOST_COLUMNS
    if rows.design.is_sparse:
        is_small = rows.width <= _MOST_COLUMNS and math.prod(rows.design.shape) <= _MOST_NUMBERS
        return _DiagonalFirst(batch) if is_small else _Diagonal(batch)
    if width > most:
        return _Diagonal(batch)
    if batch.is_coupled:
        return _Coupled(batch)
    if rows.width > _LEADING:
        leading = _LeadingDirections(batch)
        if leading.share >= _SHARE:
            return leading
    return _Factors(batch)


class Preconditioner(ABC):
    """One approximate inverse for all problems, and conjugate gradients with it."""

    def __init__(self, batch: Batch) -> None:
        self.is_stale = True
        self._norms = np.full((len(batch.strength), 1), np.inf)

    @abstractmethod
    def renew(self, batch: Batch, hessian_terms: Array, which: Integers) -> None:
        """Form it at the present points of these problems."""

    @abstractmethod
    def apply(self, R: Array, which: Integers) -> Array:
        """Times R of shape (d + 1, p, k), for these problems."""

    def adapt(self, batch: Batch) -> None:  # noqa: B027 most have nothing to adapt
        """Take over the strengths that the penalties have now."""

    def judge(self, batch: Batch, steps: int) -> None:
        """Whether conjugate gradients took more steps than a new one costs."""
        self.is_stale = steps > _FEW

    def direction(self, batch: Batch, B: Array, G: Array, which: Integers, least: Array) -> Array:
        """D of shape (d + 1, p, k) with H D = -G, almost.

        Parameters
        ----------
        batch : Batch
        B, G : arrays of shape (n, p, k) and (d + 1, p, k)
            What second derivatives are made of, and gradients.
        which : array of shape (p,)
            The numbers of these problems among all.
        least : array of shape (p,)
            The squared norm that the residual need not be below, as a share of that of G.
        """
        if self.is_stale:
            self.renew(batch, B, which)
            self.is_stale = False
        self.adapt(batch)
        product = batch.hessian(B)
        D, R = np.zeros(G.shape), np.negative(G, order="C")
        P = np.ascontiguousarray(self.apply(R, which))
        size = batch.dot(R, P)
        norm = np.sqrt(size.sum(axis=1, keepdims=True))
        fall, self._norms[which] = norm / self._norms[which], norm
        share = np.maximum(fall ** (2 * _POWER), least[:, None])
        enough, steps = np.clip(share, _FINEST, _COARSEST) * size, 0
        while steps < _MOST_INNER and (size > enough).any():
            image = np.ascontiguousarray(product(P))
            along = batch.dot(P, image)
            with np.errstate(divide="ignore", invalid="ignore"):
                a = np.where((along > 0) & (size > 0), size / along, 0.0)
            if not a.any():
                break
            D += a * P
            R -= a * image
            M = np.ascontiguousarray(self.apply(R, which))
            before, size = size, batch.dot(R, M)
            with np.errstate(divide="ignore", invalid="ignore"):
                P *= np.where(before > 0, size / before, 0.0)
            P += M
            steps += 1
        self.judge(batch, steps)
        return D


class _Diagonal(Preconditioner):
    """The diagonals, of each problem its own, renewed at every point."""

    def renew(self, batch: Batch, hessian_terms: Array, which: Integers) -> None:
        h, rows = batch.curvature(hessian_terms), batch.rows
        diagonal = np.empty((rows.width + 1, *h.shape[1:]))
        for place in np.ndindex(h.shape[1:]):
            own = np.ascontiguousarray(h[:, *place])
            diagonal[:-1, *place] = rows.design.column_squares(own, None)
        diagonal[-1] = h.sum(axis=0)
        diagonal[:-1] += batch.strength[:, None]
        self._inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)

    def apply(self, R: Array, which: Integers) -> Array:
        return R * self._inverse

    def judge(self, batch: Batch, steps: int) -> None:
        self.is_stale = True


class _DiagonalFirst(Preconditioner):
    """The diagonals until conjugate gradients do not end with them; then factors.

    On 3190 x 287 dummies of three classes, a search of ten strengths took 24,000 products with the
    diagonals alone, 1,800 with factors, and 2,300 in this way, which spares the factors of data
    that do without.
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._whole = batch
        self._now: Preconditioner = _Diagonal(batch)

    def renew(self, batch: Batch, hessian_terms: Array, which: Integers) -> None:
        self._now.renew(batch, hessian_terms, which)

    def adapt(self, batch: Batch) -> None:
        self._now.adapt(batch)

    def apply(self, R: Array, which: Integers) -> Array:
        return self._now.apply(R, which)

    def judge(self, batch: Batch, steps: int) -> None:
        if steps == _MOST_INNER and isinstance(self._now, _Diagonal):
            self._now = _Factors(self._whole)
        else:
            self._now.judge(batch, steps)
        self.is_stale = self._now.is_stale


class _Factors(Preconditioner):
    """A Cholesky factor for each score, which all problems share."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        n, d = batch.rows.design.shape
        self._A = np.empty((n, d + batch.fit_intercept))
        self._A[:, :d] = batch.rows.design.toarray()
        self._A[:, d:] = 1.0
        self._strength, self._factors = np.nan, list[Factor]()

    def renew(self, batch: Batch, hessian_terms: Array, which: Integers) -> None:
        h = batch.curvature(hessian_terms).mean(axis=1)
        self._grams = [weighted_gram(self._A, np.ascontiguousarray(own)) for own in h.T]
        self._strength = np.nan

    def adapt(self, batch: Batch) -> None:
        """Factors for the strength that these problems have in the mean."""
        strength = float(batch.strength.mean())
        if strength != self._strength:
            d, m = batch.rows.width, self._A.shape[1]
            squares = np.repeat(np.where(np.arange(m) < d, strength, 0.0), len(self._grams[0]) // m)
            self._factors = [_factor(gram, squares) for gram in self._grams]
            self._strength = strength

    def apply(self, R: Array, which: Integers) -> Array:
        out, m = np.zeros_like(R), self._A.shape[1]
        for c, factor in enumerate(self._factors):
            out[:m, :, c] = factor.solve(R[:m, :, c])
        return out


class _LeadingDirections(Preconditioner):
    """Each problem's own Hessian, in the directions along which the rows vary most."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        X = batch.rows.single
        X = batch.rows.design.toarray().astype(np.float32) if X is None else X
        n, d = X.shape
        self._order = np.random.default_rng(0).permutation(n)
        self._fit_intercept = batch.fit_intercept
        # About their mean rows are far from being parallel to the intercept's column.
        self._middle = X.mean(axis=0) if batch.fit_intercept else np.zeros(d, np.float32)
        A = X[np.sort(self._order[: _ROWS_COVARIANCE * d])] - self._middle
        spread, vectors = np.linalg.eigh((A.T @ A).astype(np.float64) / len(A))
        # Largest first.
        self._spread = np.maximum(spread[::-1], 0.0)
        self.share = float(self._spread[:_LEADING].sum() / max(self._spread.sum(), 1e-300))
        self._vectors = np.ascontiguousarray(vectors[:, ::-1], dtype=np.float32)
        few = np.ascontiguousarray(self._vectors[:, :_LEADING])
        self._leading = np.full((n, _LEADING + 1), float(batch.fit_intercept), np.float32)
        self._leading[:, :-1] = X @ few - self._middle @ few
        self._own: dict[tuple[int, int], tuple[Factor, Array]] = {}

    def renew(self, batch: Batch, hessian_terms: Array, which: Integers) -> None:
        h = batch.curvature(hessian_terms)
        places = list(np.ndindex(h.shape[1:]))

        def work(place: tuple[int, ...]) -> tuple[Factor, Array]:
            own: Array = np.ascontiguousarray(h[:, place[0], place[1]])
            return self._inverse(own, float(batch.strength[place[0]]))

        for (j, c), found in zip(places, run_strands(work, places)):
            self._own[int(which[j]), c] = found

    def _inverse(self, h: Array, strength: float) -> tuple[Factor, Array]:
        """The factor in the leading directions, and the curvature in each of the others."""
        where, weights = drawn_rows(h, _ROWS_EACH * _LEADING, self._order)
        A = self._leading[where] * np.sqrt(weights).astype(np.float32)[:, None]
        squares = np.append(np.full(_LEADING, strength), 0.0)
        factor = _factor((A.T @ A).astype(np.float64), squares)
        return factor, strength + float(h.sum()) * self._spread[_LEADING:]

    def apply(self, R: Array, which: Integers) -> Array:
        r, k, flat = _LEADING, R.shape[2], R.reshape(len(R), -1)
        # With w the coefficients about the mean m, the intercept is f - m.w.
        right = flat[:-1] - np.outer(self._middle, flat[-1])
        turned = (self._vectors.T @ right.astype(np.float32)).astype(np.float64)
        out = np.zeros_like(flat)
        for t in range(flat.shape[1]):
            factor, rest = self._own[int(which[t // k]), t % k]
            found = factor.solve(np.append(turned[:r, t], flat[-1, t]))
            turned[:r, t], out[-1, t] = found[:-1], found[-1]
            turned[r:, t] /= rest
        out[:-1] = self._vectors @ turned.astype(np.float32)
        if self._fit_intercept:
            out[-1] -= self._middle @ out[:-1]
        else:
            out[-1] = 0.0
        return out.reshape(R.shape)


class _Coupled(_Factors):
    """One factor for all scores of a row together."""

    def renew(self, batch: Batch, hessian_terms: Array, which: Integers) -> None:
        self._grams = [coupled_hessian(self._A, batch.S.mean(axis=1), hessian_terms.mean(axis=1))]
        self._strength = np.nan

    def apply(self, R: Array, which: Integers) -> Array:
        (factor,) = self._factors
        out, (_, p, k), m = np.zeros_like(R), R.shape, self._A.shape[1]
        right = R[:m].transpose(0, 2, 1).reshape(m * k, p)
        out[:m] = factor.solve(right).reshape(m, k, p).transpose(0, 2, 1)
        return out

    def judge(self, batch: Batch, steps: int) -> None:
        # To form the Hessian costs about so many products with it, for all problems together.
        p, k = batch.Y.shape[1:]
        self.is_stale = steps > max(_FEW, self._A.shape[1] * k / (4 * p))


def coupled_hessian(A: Array, s: Array, Q: Array) -> Array:
    """sum_i s_i (diag(q_i) - q_i q_i^T) kron a_i a_i^T, ordered by column."""
    (_, m), k = A.shape, Q.shape[1]
    H, blocks = np.zeros((m * k, m * k)), np.zeros((k, m, m))
    used = np.flatnonzero(s)
    for start in range(0, len(used), _BLOCK):
        some = used[start : start + _BLOCK]
        rows, weighted = A[some], s[some, None] * Q[some]
        root = weighted / np.sqrt(s[some, None])
        B = (rows[:, :, None] * root[:, None, :]).reshape(len(some), m * k)
        H -= B.T @ B
        if m <= _FEW_COLUMNS:
            pairs = (rows[:, :, None] * rows[:, None, :]).reshape(len(some), m * m)
            blocks += (weighted.T @ pairs).reshape(k, m, m)
        else:
            for c in range(k):
                blocks[c] += rows.T @ (rows * weighted[:, c, None])
    for c in range(k):
        H[c::k, c::k] += blocks[c]
    return H


def _factor(gram: Array, squares: Array) -> Factor:
    """Of gram + diag(squares), and a little more where it needs that."""
    diagonal = np.maximum(gram.diagonal(), 0.0) * (1 + _TRACE) + squares
    # Where no row has curvature nothing is divided by zero.
    diagonal[diagonal <= 0] = float(diagonal.max(initial=0.0)) or 1.0
    H, more = gram.copy(), 0.0
    while True:
        H[np.diag_indices(len(H))] = diagonal * (1 + more)
        factor = Factor(H)
        if factor.least > 0:
            return factor
        more = max(10 * more, 1e-8)
