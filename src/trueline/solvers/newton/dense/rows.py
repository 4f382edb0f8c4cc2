r"""The rows of a design in standard coordinates.

    x_i.w + b = a_i.v,    a_ij = (x_ij - mean_j) / scale_j,    w_j = v_j / scale_j,
                          the last of a_i is 1 and the last of v is b + mean.w

(without an intercept mean = 0, and there is no last entry). Neither milliseconds since 1970 nor
micrograms disturb anything then. Columns are standardised implicitly, X itself is read; only where
means are so far from zero that subtracting them from finished sums would cost digits is a
standardised copy made. Columns without spread, and those that depend on others where no penalty
tells them apart, are left out.

Functions of rows are evaluated in pieces that stay in a cache, a few threads at a time.

:class:`FollowingGram` is a weighted Gram matrix that follows its weights. After a few steps of
Newton's method few rows still change the piece of their loss that they are on. H(h') = H(h) + sum_i
(h'_i - h_i) a_i a_i^T needs these rows only. Rows taken out leave rounding behind, relative to the
largest H there was: when too little is left above it, H is formed afresh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr

from trueline.design import DenseDesign, Design
from trueline.design.stacked import sums_at
from trueline.losses import Loss
from trueline.moments import Moments
from trueline.numerics.blas import run_strands
from trueline.numerics.gram import weighted_gram, weighted_sums
from trueline.solvers.least_squares.normal_equations import noise_of_squares

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# A mean this many spreads away from zero costs (10^2)^2: four digits of sixteen, in Gram matrices.
_FAR = 100.0
# So many numbers are copied: each product with them is one operation.
_SHORT = 50_000
# Means this many spreads away cost no more than a digit or two.
_NEAR = 10.0
# From here on weighted Gram matrices are formed by a compiled kernel.
_MUCH_WORK = 500_000_000
# Pivots of a correlation matrix below this may be rounding: an orthogonal factorisation decides.
_DOUBTFUL, _DEPENDENT = 1e-9, 1e-11


class OnePass(NamedTuple):
    """Scores of all rows at v, the loss's derivatives there, A^T S u and A^T S diag(h) A."""

    v: Array
    z: Array
    u: Array
    h: Array
    total: Array
    gram: Array


@dataclass(frozen=True)
class StandardRows:
    """Rows a_i, their weights, and the Gram matrix sum_i s_i a_i a_i^T of all of them.

    Attributes
    ----------
    design : Design
        The rows as they are read: X, or the standardised copy.
    weights : array of shape (n,)
    fit_intercept : bool
    mean, scale : arrays of shape (d,)
    kept : array of int
        The columns that take part.
    is_copy : bool
        Whether ``design`` is standardised already, with a column of ones for the intercept.
    gram : array of shape (p, p)
    size : array of shape (d,)
        sum_i s_i x_ij^2, rounded up.
    """

    design: Design
    weights: Array
    fit_intercept: bool
    mean: Array
    scale: Array
    kept: Indices
    is_copy: bool
    gram: Array
    size: Array

    @classmethod
    def of(
        cls,
        design: Design,
        weights: Array | None,
        fit_intercept: bool,
        target: Array | None = None,
    ) -> StandardRows:
        """One or two passes over the data; of rows in parts, moments of the target are kept too.

        Raises ``FloatingPointError`` where squares leave the range of doubles.
        """
        s = np.ones(design.shape[0]) if weights is None else weights
        total = float(s.sum())
        if target is not None and design.is_sequential:
            Moments.from_rows(design, target, weights)
        mean, products, noise = _centred_products(design, weights, s)
        size = products.diagonal() + total * mean**2
        if not np.isfinite(products.sum()) or not _is_ordinary(size):
            raise FloatingPointError("the sums of squares of the data are not finite, or vanish")
        if not fit_intercept:
            products = products + np.outer(mean, total * mean)
            mean = np.zeros_like(mean)
        scale = np.sqrt(products.diagonal() / total)
        # What is left of a constant column is the rounding of its mean.
        least = 64 * _EPS * np.sqrt(size / total)
        if fit_intercept:
            least = np.maximum(least, np.sqrt(noise / total))
        kept = np.flatnonzero(scale > least)
        p = len(kept) + fit_intercept
        gram = np.zeros((p, p))
        inverse = 1.0 / scale[kept]
        gram[: len(kept), : len(kept)] = products[np.ix_(kept, kept)] * np.outer(inverse, inverse)
        gram[len(kept) :, len(kept) :] = total
        is_far = bool((np.abs(mean[kept]) > _FAR * scale[kept]).any())
        is_copy = not design.is_sparse and (is_far or len(s) * p <= _SHORT)
        if is_copy:
            copied = partial(_standardised, mean=mean[kept], inverse=inverse, kept=kept, p=p)
            design = design.mapped(copied, p)
        return cls(design, s, fit_intercept, mean, scale, kept, is_copy, gram, size * (1 + 1e-6))

    @property
    def count(self) -> int:
        """Number of coefficients v."""
        return len(self.kept) + self.fit_intercept

    @property
    def left_out(self) -> Indices:
        """The columns that take no part."""
        is_out = np.ones(len(self.mean), dtype=bool)
        is_out[self.kept] = False
        return np.flatnonzero(is_out)

    @property
    def total_weight(self) -> float:
        return float(self.weights.sum())

    # --- between the coordinates ----------------------------------------------------------------

    def coefficients(self, v: Array) -> tuple[Array, float]:
        """w and b."""
        w = np.zeros(len(self.mean))
        w[self.kept] = v[: len(self.kept)] / self.scale[self.kept]
        return w, float(v[-1] - self.mean @ w) if self.fit_intercept else 0.0

    def standard(self, w: Array, b: float) -> Array:
        """v, from coefficients."""
        v = np.zeros(self.count)
        v[: len(self.kept)] = w[self.kept] * self.scale[self.kept]
        if self.fit_intercept:
            v[-1] = b + self.mean @ w
        return v

    def strength(self, of_coefficients: Array, power: int) -> Array:
        """A penalty's strengths of abs(w)^power as strengths of abs(v)^power."""
        out = np.zeros(self.count)
        out[: len(self.kept)] = of_coefficients[self.kept] / self.scale[self.kept] ** power
        return out

    # --- products -------------------------------------------------------------------------------

    def scores(self, v: Array) -> Array:
        """a_i.v of all rows."""
        if self.is_copy:
            return self.design.matvec(v)
        w, b = self.coefficients(v)
        return self.design.matvec(w) + b

    def total(self, t: Array) -> Array:
        """sum_i t_i a_i, for t of shape (n,) or (n, k)."""
        if self.is_copy:
            return self.design.rmatvec(t)
        # NumPy adds side by side only along contiguous memory.
        overall = np.ascontiguousarray(t.T).sum(axis=-1)
        return self._standardised(self.design.rmatvec(t), overall)

    def _standardised(self, sums: Array, overall: Array) -> Array:
        count = len(self.kept)
        out = np.empty((self.count, *sums.shape[1:]))
        mean, scale = self.mean[self.kept], self.scale[self.kept]
        out[:count] = ((sums[self.kept].T - np.multiply.outer(overall, mean)) / scale).T
        out[count:] = overall
        return out

    def gram_of(self, h: Array, rows: Indices | None = None) -> Array:
        """sum_i h_i a_i a_i^T, of all rows or of some of them; h is not negative."""
        design = self.design if rows is None else self.design.take(rows)
        if isinstance(design, DenseDesign):
            if self.is_copy:
                return weighted_gram(design.X, h)
            gram, sums = weighted_sums(design.X, h)
        else:
            found = design.second_moments(np.empty((len(h), 0)), h, None)
            gram, sums = found.gram, found.total
        return self._standardised_gram(gram, sums, float(h.sum()))

    def _standardised_gram(self, gram: Array, sums: Array, overall: float) -> Array:
        """sum_i h_i a_i a_i^T from the sums of the rows as they are read."""
        if self.is_copy:
            return gram
        count = len(self.kept)
        out = np.empty((self.count, self.count))
        mean, scale, own = self.mean[self.kept], self.scale[self.kept], sums[self.kept]
        if count < len(gram):
            gram = gram[np.ix_(self.kept, self.kept)]
        if self.fit_intercept:
            crossed = np.outer(mean, own - 0.5 * overall * mean)
            gram = gram - (crossed + crossed.T)
        out[:count, :count] = gram / np.outer(scale, scale)
        if self.fit_intercept:
            out[:, -1] = out[-1] = self._standardised(sums, np.asarray(overall))
        return out

    def in_one_pass(self, v: Array, loss: Loss, y: Array) -> OnePass:
        """All that a step of Newton's method asks of the rows, in one pass over them."""
        w, b = (v, 0.0) if self.is_copy else self.coefficients(v)

        def derive(z: Array, y: Array, s: Array) -> tuple[Array, Array]:
            u, h = loss.derivatives(y, z + b)
            return s * u, s * h

        z, pulled, gram, sums = sums_at(self.design, w, derive, y, self.weights)
        z = z + b
        u, h = derivatives(loss, y, z)
        t, overall = self.weights * u, float(self.weights @ h)
        total = pulled if self.is_copy else self._standardised(pulled, t.sum(axis=0))
        return OnePass(v, z, u, h, total, self._standardised_gram(gram, sums, overall))

    def gather(self, rows: Indices | slice) -> Array:
        """Some of the rows a_i, dense."""
        X = self.design.take(rows).toarray()
        if self.is_copy:
            return X
        A = np.ones((len(X), self.count))
        count = len(self.kept)
        np.subtract(X[:, self.kept], self.mean[self.kept], out=A[:, :count])
        A[:, :count] /= self.scale[self.kept]
        return A

    # --- subsets --------------------------------------------------------------------------------

    def sample(self, rows: Indices) -> StandardRows:
        """Some of the rows, in the same coordinates; their weights stand for all."""
        share = self.total_weight / float(self.weights[rows].sum())
        weights = self.weights[rows] * share
        part = replace(self, design=self.design.take(rows), weights=weights)
        return replace(part, gram=part.gram_of(weights))

    def independent(self, is_told_apart: bool) -> StandardRows:
        """Without columns that depend on others, unless a penalty tells them apart."""
        if is_told_apart or not len(self.kept):
            return self
        root = np.sqrt(self.gram.diagonal())
        unit = self.gram / np.outer(root, root)
        _, _, rank, _ = lapack.dpstrf(unit, tol=_DOUBTFUL)
        if rank == self.count:
            return self
        A = self.gather(slice(None)) * np.sqrt(self.weights)[:, None]
        R, order = qr(A, mode="r", pivoting=True, check_finite=False)
        size = np.abs(R.diagonal())
        rank = int(np.count_nonzero(size > _DEPENDENT * size.max(initial=0.0)))
        own = np.sort(order[:rank])
        own = own[own < len(self.kept)]
        if len(own) == len(self.kept):
            return self
        places = np.append(own, len(self.kept)) if self.fit_intercept else own
        part = replace(self, kept=self.kept[own], gram=self.gram[np.ix_(places, places)])
        if not self.is_copy:
            return part
        return replace(part, design=DenseDesign(self.design.toarray()[:, places]))


def _centred_products(
    design: Design, weights: Array | None, s: Array
) -> tuple[Array, Array, Array]:
    """Means of the columns, the Gram matrix about them, and what rounding may leave of squares."""
    n, d = design.shape
    if isinstance(design, DenseDesign) and n * d * d >= _MUCH_WORK:
        # As fast as the Gram matrices to come; where means are near zero, centring costs nothing.
        gram, sums = weighted_sums(design.X, s)
        mean = sums / s.sum()
        level = s.sum() * mean**2
        if np.isfinite(gram).all() and (level <= _NEAR**2 * (gram.diagonal() - level)).all():
            return mean, gram - np.outer(mean, s.sum() * mean), np.zeros(d)
    moments = Moments.from_rows(design, np.empty((n, 0)), weights)
    # Sparse columns are not centred before they are squared.
    noise = noise_of_squares(moments) if design.is_sparse else np.zeros(d)
    return moments.x_mean, moments.gram, noise


def _standardised(
    design: Design, mean: Array, inverse: Array, kept: Indices, p: int
) -> DenseDesign:
    """A copy of the kept columns, standardised, with one of ones behind them if p is larger."""
    n = design.shape[0]
    A = np.ones((n, p))
    for where, X in design.blocks(n):
        np.subtract(X[:, kept], mean, out=A[where, : len(kept)])
    A[:, : len(kept)] *= inverse
    return DenseDesign(A)


def _is_ordinary(size: Array) -> bool:
    """Whether no sum of squares is so large or small that some square may have been lost."""
    present = size[size != 0]
    return bool(((present > 1e-200) & (present < 1e200)).all())


Result = TypeVar("Result")

# Pieces stay in a cache; fewer than four of them take no longer than waking another thread.
_PIECE = 8192
_LONG = 4 * _PIECE


def rowwise(function: Callable[..., Array], *arrays: Array) -> Array:
    """An elementwise function of arrays of shape (n,).

    Temporaries of long arrays would go through memory half a dozen times.

    Examples
    --------
    >>> import numpy as np
    >>> from trueline.solvers.newton.dense.rows import rowwise
    >>> rowwise(np.add, np.ones(3), np.ones(3))
    array([2., 2., 2.])
    """
    if len(arrays[0]) < _LONG:
        return function(*arrays)
    out = np.empty(len(arrays[0]))

    def work(piece: slice) -> None:
        out[piece] = function(*(array[piece] for array in arrays))

    piecewise(work, len(out))
    return out


def derivatives(loss: Loss, y: Array, z: Array) -> tuple[Array, Array]:
    """The first and second derivatives of a loss at all scores."""
    if len(y) < _LONG:
        return loss.derivatives(y, z)
    u, curvatures = np.empty(len(y)), np.empty(len(y))

    def work(piece: slice) -> None:
        u[piece], curvatures[piece] = loss.derivatives(y[piece], z[piece])

    piecewise(work, len(y))
    return u, curvatures


def derivatives_along(
    loss: Loss, y: Array, z: Array, change: Array, t: float, s: Array
) -> tuple[Array, Array, float, float]:
    """The derivatives at the scores z + t change, and those of sum_i s_i l_i by t."""
    n = len(y)
    u, curvatures = np.empty(n), np.empty(n)

    def work(piece: slice) -> Array:
        own = change[piece]
        u[piece], curvatures[piece] = loss.derivatives(y[piece], z[piece] + t * own)
        weighted = s[piece] * own
        return np.array([weighted @ u[piece], (weighted * own) @ curvatures[piece]])

    slope, curvature = np.sum(piecewise(work, n), axis=0)
    return u, curvatures, float(slope), float(curvature)


def piecewise(work: Callable[[slice], Result], n: int) -> list[Result]:
    """Apply ``work`` to pieces of n rows, of few rows at once; the results in their order."""
    if n < _LONG:
        return [work(slice(0, n))]
    pieces = [slice(start, min(start + _PIECE, n)) for start in range(0, n, _PIECE)]
    return run_strands(work, pieces)


# Changed rows are gathered and summed twice as slowly as all rows in their place.
_FEW = 0.4
# Rows with weight are gathered if they are fewer than this share of all.
_SPARSE = 0.5
# H is formed afresh when its diagonal fell below this share of what it was.
_LOST = 1e-5


class FollowingGram:
    """H = sum_i h_i a_i a_i^T for the present h; first h_i = bound s_i, known from the start."""

    def __init__(self, rows: StandardRows, bound: float) -> None:
        self._rows = rows
        self.h = bound * rows.weights
        self.whole = bound * rows.gram
        self.matrix = self.whole
        self._largest = self.matrix.diagonal().copy()
        self.formed = self.updated = 0

    def follow(self, h: Array) -> Array:
        """H for other h."""
        changed = np.flatnonzero(h != self.h)
        present = int(np.count_nonzero(h))
        if len(changed) == 0:
            return self.matrix
        if len(changed) > _FEW * present or not self._update(h, changed):
            self._form(h, present)
        self.h = h
        return self.matrix

    def know(self, h: Array, matrix: Array) -> None:
        """H was summed elsewhere."""
        self.h, self.matrix = h, matrix
        self.formed += 1

    def _update(self, h: Array, changed: NDArray[np.intp]) -> bool:
        difference = h[changed] - self.h[changed]
        matrix = self.matrix
        if len(changed) * len(matrix) <= _SHORT:
            A = self._rows.gather(changed)
            matrix = matrix + (A.T * difference) @ A
        else:
            for sign in (1.0, -1.0):
                some = sign * difference > 0
                if some.any():
                    part = self._rows.gram_of(sign * difference[some], changed[some])
                    matrix = matrix + sign * part
        if (matrix.diagonal() <= _LOST * self._largest).any():
            return False
        self.updated += 1
        self.matrix = matrix
        self._largest = np.maximum(self._largest, matrix.diagonal())
        return True

    def _form(self, h: Array, present: int) -> None:
        if present < _SPARSE * len(h):
            some = np.flatnonzero(h)
            self.matrix = self._rows.gram_of(h[some], some)
        else:
            self.matrix = self._rows.gram_of(h)
        self.formed += 1
        self._largest = self.matrix.diagonal().copy()
