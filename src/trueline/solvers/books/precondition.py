r"""An inverse of the Hessians of many problems on the same rows, near enough for steps.

Rows of images, spectra or texts vary along few directions, the same for all classes. With U the
eigenvectors of the covariance of all rows, lambda its eigenvalues, and the Hessian of problem t

    H_t = sum_i h_ti [x_i, 1] [x_i, 1]^T + a I

the preconditioner is H_t itself in the r leading directions and the intercept, from rows drawn in
proportion to h_ti, and a + lambda_j sum_i h_ti in the others. U is found once for all problems,
the rows along the leading directions are kept, and a factor is of r + 1 columns only. (Deflation
and spectral preconditioning: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., section
11.5; rows by their curvature: P. Xu, J. Yang, F. Roosta-Khorasani, C. Re, M. W. Mahoney,
"Sub-sampled Newton methods with non-uniform sampling", NeurIPS 29 (2016).)

A problem that took more inner steps with that than it would cost gets a factor of all columns,
which is kept as long as it serves. Where fewer rows bend than are drawn, as few do of a squared
hinge, that is H_t itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from trueline.solvers.curved.descent import Factor
from trueline.solvers.truncated.precondition import drawn_rows
from trueline.threads import run_strands

__all__ = ["Directions", "Preconditioner"]

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Integers = NDArray[np.intp]

# Leading directions, rows for each of them in a factor, and rows for each column in a covariance.
_LEADING, _ROWS_EACH, _ROWS_COVARIANCE = 192, 6, 8
_STRETCH = 4096
# Rows for each column in a factor of all columns, and the inner steps that are few in any case.
_ROWS_WHOLE, _FEW = 3, 8


class _Whole:
    """The factor of a matrix in single precision, its diagonal brought to one."""

    def __init__(self, matrix: Single) -> None:
        diagonal = matrix.diagonal().astype(np.float64)
        self._root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0)).astype(np.float32)
        unit = matrix / np.outer(self._root, self._root)
        for more in (0.0, 1e-5, 1e-3, 1e-1, 1e2):
            unit[np.diag_indices(len(unit))] = 1.0 + more
            self._L, info = lapack.spotrf(unit, lower=1, clean=0)
            if info == 0:
                break

    def solve(self, right: Array) -> Array:
        """The matrix's inverse times a vector."""
        half = blas.strsv(self._L, right.astype(np.float32) / self._root, lower=1)
        found = blas.strsv(self._L, half, lower=1, trans=1) / self._root
        return np.asarray(found, dtype=np.float64)


class Directions:
    """The directions along which rows vary, and the rows along the leading ones.

    Parameters
    ----------
    X : array of shape (n, d)
        Single precision.
    """

    def __init__(self, X: Single) -> None:
        n, d = X.shape
        self.X, count = X, min(_LEADING, d)
        some = np.random.default_rng(0).permutation(n)[: _ROWS_COVARIANCE * d]
        A = X[np.sort(some)]
        covariance = (A.T @ A).astype(np.float64) / len(A)
        spread, vectors = np.linalg.eigh(covariance)
        # Largest first.
        self.spread = np.maximum(spread[::-1], 0.0)
        self.vectors = np.ascontiguousarray(vectors[:, ::-1], dtype=np.float32)
        self.count = count
        self.leading = np.empty((n, count + 1), np.float32)
        self.leading[:, -1] = 1.0
        few = np.ascontiguousarray(self.vectors[:, :count])

        def work(start: int) -> None:
            where = slice(start, start + _STRETCH)
            self.leading[where, :-1] = X[where] @ few

        run_strands(work, range(0, n, _STRETCH))


class Preconditioner:
    """Approximate inverses at one point; vectors are of shape (problems, d + 1).

    Parameters
    ----------
    directions : Directions
    bend : float
        a.
    fit_intercept : bool
    """

    def __init__(self, directions: Directions, bend: float, fit_intercept: bool) -> None:
        self._directions, self._bend, self._fit_intercept = directions, bend, fit_intercept
        self._factors: dict[int, Factor] = {}
        self._rest: dict[int, Array] = {}
        self._whole: dict[int, _Whole] = {}

    def renew(
        self,
        problems: Integers,
        curvatures: dict[int, tuple[Integers, Array]],
        counts: Integers,
    ) -> None:
        """Find the inverses of some problems.

        Parameters
        ----------
        problems : array of int
        curvatures : dict
            Rows and h_ti of each.
        counts : array of shape (problems,)
            Inner steps that each took the last time.
        """
        slow = {t for t in problems.tolist() if counts[t] >= self._worth(curvatures[t][1])}
        stale = [t for t in problems.tolist() if t in slow or t not in self._whole]

        def work(t: int) -> _Whole | tuple[Factor, Array]:
            return self._whole_of(*curvatures[t]) if t in slow else self._found(*curvatures[t])

        for t, found in zip(stale, run_strands(work, stale), strict=True):
            if isinstance(found, _Whole):
                self._whole[t] = found
            else:
                self._factors[t], self._rest[t] = found

    def _worth(self, h: Array) -> float:
        """As many inner steps as a factor of all columns costs: it saves most of them."""
        d = self._directions.X.shape[1]
        drawn = min(_ROWS_WHOLE * d, int(np.count_nonzero(h)))
        return max(_FEW, (drawn + d / 3) * d / (4 * len(h)))

    def _whole_of(self, where: Integers, h: Array) -> _Whole:
        X, d = self._directions.X, self._directions.X.shape[1]
        order = np.random.default_rng(0).permutation(len(h))
        some, weights = drawn_rows(h, _ROWS_WHOLE * d, order)
        A = np.empty((len(some), d + 1), np.float32)
        A[:, :-1], A[:, -1] = X[where[some]], float(self._fit_intercept)
        A *= np.sqrt(weights).astype(np.float32)[:, None]
        gram = A.T @ A
        gram[np.diag_indices(d)] += np.float32(self._bend)
        return _Whole(gram)

    def _found(self, where: Integers, h: Array) -> tuple[Factor, Array]:
        about = self._directions
        r, total = about.count, float(h.sum())
        order = np.random.default_rng(0).permutation(len(h))
        some, weights = drawn_rows(h, _ROWS_EACH * r, order)
        A = about.leading[where[some]] * np.sqrt(weights).astype(np.float32)[:, None]
        gram = (A.T @ A).astype(np.float64)
        gram[np.diag_indices(r)] += self._bend
        if not self._fit_intercept or not gram[r, r] > 0:
            gram[r], gram[:, r] = 0.0, 0.0
            gram[r, r] = 1.0
        factor, more = Factor(gram), 1e-8
        while factor.least <= 0:
            gram[np.diag_indices(r + 1)] *= 1 + more
            factor, more = Factor(gram), 10 * more
        return factor, self._bend + total * about.spread[r:]

    def apply(self, problems: Integers, R: Array) -> Array:
        """The inverses times rows of R, which are about these problems."""
        about, r, at = self._directions, self._directions.count, problems.tolist()
        out = np.empty_like(R)
        light = [i for i, t in enumerate(at) if t not in self._whole]
        turned = (R[light, :-1].astype(np.float32) @ about.vectors).astype(np.float64)
        for own, i in zip(turned, light, strict=True):
            found = self._factors[at[i]].solve(np.append(own[:r], R[i, -1]))
            own[:r], out[i, -1] = found[:-1], found[-1]
            own[r:] /= self._rest[at[i]]
        out[light, :-1] = turned.astype(np.float32) @ about.vectors.T
        for i, t in enumerate(at):
            if t in self._whole:
                out[i] = self._whole[t].solve(R[i])
        if not self._fit_intercept:
            out[:, -1] = 0.0
        return out
