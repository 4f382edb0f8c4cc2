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
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


class Directions:
    """The directions along which rows vary, and the rows along the leading ones.

    Parameters
    ----------
    X : array of shape (n, d)
        Single precision.
    """

    def __init__(self, X: Single) -> None:
        n, d = X.shape
        count = min(_LEADING, d)
        some = np.random.default_rng(0).permutation(n)[: _ROWS_COVARIANCE * d]
        A = X[np.sort(some)]
        covariance = (A.T @ A).astype(np.float64) / len(A)
        spread, vectors = np.linalg.eigh(covariance)
        # Largest first.
        self.spread = np.maximum(spread[::-1], 0.0)
        self.vectors = np.ascontiguousarray(vectors[:, ::-1])
        self.count = count
        self.leading = np.empty((n, count + 1), np.float32)
        self.leading[:, -1] = 1.0
        few = self.vectors[:, :count].astype(np.float32)

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

    def renew(self, problems: Integers, curvatures: dict[int, tuple[Integers, Array]]) -> None:
        """Find the inverses of some problems, from rows and h_ti of each."""

        def work(t: int) -> tuple[Factor, Array]:
            where, h = curvatures[t]
            return self._found(where, h)

        for t, (factor, rest) in zip(problems, run_strands(work, problems.tolist()), strict=True):
            self._factors[int(t)], self._rest[int(t)] = factor, rest

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
        about, r = self._directions, self._directions.count
        turned = R[:, :-1] @ about.vectors
        out = np.empty_like(R)
        for i, t in enumerate(problems.tolist()):
            found = self._factors[t].solve(np.append(turned[i, :r], R[i, -1]))
            turned[i, :r], out[i, -1] = found[:-1], found[-1]
            turned[i, r:] /= self._rest[t]
        out[:, :-1] = turned @ about.vectors.T
        if not self._fit_intercept:
            out[:, -1] = 0.0
        return out
